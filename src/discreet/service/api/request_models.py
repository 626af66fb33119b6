"""What bodies of requests may hold; everything else is refused, the name of an analyst above all.

Who asks is who has the key. Amounts are numbers or texts such as "1/3", kept exactly as they are written.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

from discreet.ledger import Role
from discreet.ledger.serialization import LONGEST_NAME
from discreet.service.api.exact_json import WrittenFloat
from discreet.service.caller import ServiceRole

LONGEST_SQL = 1 << 16  # characters
MOST_QUESTIONS = 200
_WRITTEN = re.compile(r"[+-]?[0-9]{1,60}(/[0-9]{1,60}|(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,3})?)")


def _exact(value: object) -> str:
    """The text of an amount."""
    if isinstance(value, bool) or not isinstance(value, int | WrittenFloat | str):
        raise ValueError("a number, or a text such as 0.1 or 1/3")
    text = value.text if isinstance(value, WrittenFloat) else str(value)
    if _WRITTEN.fullmatch(text) is None:
        raise ValueError("a number, or a text such as 0.1 or 1/3")
    return text


_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^{_WRITTEN.pattern}$"}], "examples": ["0.1"]}
Amount = Annotated[str, BeforeValidator(_exact), WithJsonSchema(_SCHEMA)]
Sql = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_SQL)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
Text = Annotated[str, StringConstraints(max_length=2000)]


class Model(BaseModel):
    """A body: no field that is not known, nothing coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LimitsModel(Model):
    """How much one unit may count."""

    groups: Annotated[int, Field(ge=1, le=10**9)] = 1
    rows: Annotated[int, Field(ge=1, le=10**9)] = 1


class Day(Model):
    """A parameter that is a day."""

    date: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


class Moment(Model):
    """A parameter that is a moment, without a zone."""

    timestamp: Annotated[str, StringConstraints(max_length=26)]


Scalar = bool | int | float | Annotated[str, StringConstraints(max_length=LONGEST_SQL)] | None
Parameter = Scalar | Day | Moment
Parameters = Annotated[list[Parameter], Field(max_length=1000)] | dict[Name, Parameter] | None


class Request(Model):
    """What every request for work may have.

    Attributes:
        project: whose cap it counts against, too; a key that is bound to one needs none.
        wait: false for a job, which is looked at and followed elsewhere.
    """

    project: Annotated[str, StringConstraints(max_length=LONGEST_NAME)] = ""
    wait: bool = True

    @property
    def arguments(self) -> dict[str, Any]:
        """What the curator's method takes, in plain JSON; what was not given is left out."""
        given = self.model_dump(mode="python", exclude_unset=True, exclude={"project", "wait"})
        made: dict[str, Any] = json.loads(json.dumps(given))  # numbers of no class of our own
        return made


class _Planned(Request):
    sql: Sql
    parameters: Parameters = None
    delta: Amount | None = None
    limits: LimitsModel | Literal["choose"] | None = None
    other: Scalar = None
    confidence: Amount = "0.95"


class Explained(_Planned):
    """A question that is explained."""

    epsilon: Amount | None = None
    within: Amount | None = None
    max_epsilon: Amount | None = None
    rows: Annotated[int, Field(ge=1, le=10**18)] = 1000


class Rehearsed(_Planned):
    """A question that is answered with rows that are made up."""

    epsilon: Amount = "1"
    rows: Annotated[int, Field(ge=1, le=10**6)] = 1000


class Compared(_Planned):
    """A question for which budgets are compared."""

    candidates: Annotated[list[Amount], Field(min_length=1, max_length=50)] | None = None
    rows: Annotated[int, Field(ge=1, le=10**18)] = 1000


class Asked(_Planned):
    """A question that is asked and paid."""

    epsilon: Amount | None = None
    within: Amount | None = None
    max_epsilon: Amount | None = None
    profile: Amount | None = None
    coverage: Amount | None = None


class AskedTogether(Request):
    """Questions that are paid with one charge."""

    questions: Annotated[list[Sql], Field(min_length=1, max_length=MOST_QUESTIONS)]
    epsilon: Amount
    delta: Amount | None = None
    limits: LimitsModel | Literal["choose"] | None = None
    confidence: Amount = "0.95"


class Profiled(Request):
    """A table of which a profile is bought."""

    table: Name
    epsilon: Amount
    columns: Annotated[list[Name], Field(max_length=1000)] | None = None
    by: Annotated[list[list[Name]], Field(max_length=100)] | None = None


class Fitted(Request):
    """A learner of `discreet.learn`, and the rows that it learns from."""

    learner: Name
    parameters: dict[Name, Any] = {}
    sql: Sql
    target: Name | None = None
    rows_per_unit: Annotated[int, Field(ge=1, le=10**6)] = 1


class BudgetModel(Model):
    """A budget: epsilon, epsilon and delta, or rho with a delta."""

    epsilon: Amount | None = None
    delta: Amount | None = None
    rho: Amount | None = None


class Amended(Model):
    """Another budget for an account."""

    budget: BudgetModel
    note: Text = ""


class Renewed(Model):
    """A new period of an account, with the same budget or another."""

    budget: BudgetModel | None = None
    note: Text = ""


class Unlocked(Model):
    """Failure credits that are given back."""

    note: Text = ""


class Appointed(Model):
    """A role in the book, of an account or (account "") of all of it, and perhaps a cap."""

    who: Name
    role: Literal[tuple(each.value for each in Role)]  # type: ignore[valid-type]  # mypy wants the values spelled out
    account: Annotated[str, StringConstraints(max_length=LONGEST_NAME)] = ""
    cap: BudgetModel | None = None


class Allotted(Model):
    """A cap of a project on an account."""

    project: Name
    cap: BudgetModel
    note: Text = ""


class NewPerson(Model):
    """Somebody who may be given keys."""

    name: Name
    role: Literal[tuple(each.value for each in ServiceRole)]  # type: ignore[valid-type]  # mypy wants them spelled out


class NewKey(Model):
    """A key for somebody who is known."""

    name: Name
    tables: Annotated[list[Name], Field(max_length=1000)] | None = None
    project: Annotated[str, StringConstraints(max_length=LONGEST_NAME)] = ""
    expires_days: Annotated[int, Field(ge=1, le=3660)] = 90
    note: Annotated[str, StringConstraints(max_length=LONGEST_NAME)] = ""


class Rotated(Model):
    """How long the key lasts that replaces another; as long as that one unless it is said."""

    expires_days: Annotated[int, Field(ge=1, le=3660)] | None = None
