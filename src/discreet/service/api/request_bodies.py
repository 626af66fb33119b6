"""Bodies of requests: strict JSON whose numbers are kept as they are written, and the fields of each.

Everything else is refused, above all the name of an analyst: the key alone says who asks. Amounts are numbers or texts
such as "1/3".

Formal guarantee: a name that appears twice in an object, NaN, an infinity, a number beyond all floats and nesting
deeper than `DEEPEST` are refused, so that no two readers can understand one body differently.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema, create_model
from starlette.requests import Request as HttpRequest

from discreet.errors import ServiceError
from discreet.hint_text import Hint, Spelling
from discreet.ledger.serialization import LONGEST_NAME
from discreet.requests.request import Arg, Argument, ArgumentKind, arguments, check_kinds, write_argument
from discreet.requests.request import Request as Asked
from discreet.service.acts.steward_actions import MOST_ENTRIES

DEEPEST = 32
LONGEST_SQL = 1 << 16  # characters
MOST_LISTED = 1000
"""The most items of a list whose argument names no other number."""
_WRITTEN = re.compile(r"[+-]?[0-9]{1,60}(/[0-9]{1,60}|(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,3})?)")


JSON = Spelling(name=str, given=lambda name, value: f'"{name}": "{value}"' if value else f'"{name}"')
"""How arguments are written in a body."""


class MalformedBody(ServiceError):
    """The body of a request is not JSON, or has no single meaning."""


class WrittenFloat(float):
    """A number with a point or an exponent, and its text.

    >>> WrittenFloat("0.10").text
    '0.10'
    """

    text: str

    def __new__(cls, text: str) -> Self:
        """Returns the number, which keeps its text."""
        made = super().__new__(cls, text)
        made.text = text
        return made


def parse_body(body: bytes) -> Any:
    """Returns the content of a body.

    Raises:
        MalformedBody: if it is not understood.

    >>> parse_body(b'{"epsilon": 0.1, "epsilon": 10}')
    Traceback (most recent call last):
    discreet.service.api.request_bodies.MalformedBody: The body cannot be read: a name appears twice in an object. ...
    """
    try:
        content = json.loads(
            body.decode("utf-8"), object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant
        )
    except RecursionError:
        _refuse("it is nested too deeply")
    except ValueError:  # of JSON, of UTF-8, and of a whole number with thousands of digits
        _refuse("it is not JSON in UTF-8")
    if _depth(content) > DEEPEST:
        _refuse(f"it is nested more than {DEEPEST} deep")
    return content


class ExactRequest(HttpRequest):
    """A request whose JSON is read by `parse_body`."""

    async def json(self) -> Any:
        """Returns the content of the body, read by `parse_body`."""
        return parse_body(await self.body())


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        _refuse("a name appears twice in an object")
    return made


def _finite(text: str) -> WrittenFloat:
    found = WrittenFloat(text)
    if not math.isfinite(found):
        _refuse("a number is too large")
    return found


def _no_constant(_: str) -> NoReturn:
    _refuse("NaN and infinities are not numbers in JSON")


def _refuse(reason: str) -> NoReturn:
    raise MalformedBody(f"The body cannot be read: {reason}", "Send JSON as described in /v1/openapi.json.")


def _depth(content: Any) -> int:
    deepest, level = 0, [content]
    while level:
        deepest += 1
        inner = [each for each in level if isinstance(each, dict | list)]
        level = [part for each in inner for part in (each.values() if isinstance(each, dict) else each)]
    return deepest


# --------------------------------------------------------------------------------------------------------------- models


def _exact(value: object) -> str:
    """Returns the text of an amount."""
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


class StrictModel(BaseModel):
    """A body: no field that is not known, nothing coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    no_arguments: ClassVar[frozenset[str]] = frozenset()

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a verb in plain JSON; what was not given is left out."""
        given = self.model_dump(mode="python", exclude_unset=True, exclude=set(self.no_arguments))
        made: dict[str, Any] = json.loads(json.dumps(given))  # numbers of no class of our own
        return made


class QueryModel(StrictModel):
    """The query string of an address: texts, some of them read as numbers."""

    model_config = ConfigDict(extra="ignore", strict=False, frozen=True)


class PageModel(QueryModel):
    """Which page of a list is asked for.

    Attributes:
        after: the last entry to leave out: 0, or `next` of the page before.
        limit: how many at most.
        account: only of this account.
    """

    after: Annotated[int, Field(ge=0, le=(1 << 62) - 1)] = 0
    limit: Annotated[int, Field(ge=1, le=MOST_ENTRIES)] = 100
    account: Annotated[str, StringConstraints(max_length=LONGEST_NAME)] | None = None


class LimitsModel(StrictModel):
    """The contribution limits of one unit."""

    groups: Annotated[int, Field(ge=1, le=10**9)] = 1
    rows: Annotated[int, Field(ge=1, le=10**9)] = 1


class Day(StrictModel):
    """A parameter that is a day."""

    date: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


class Moment(StrictModel):
    """A parameter that is a moment, without a zone."""

    timestamp: Annotated[str, StringConstraints(max_length=26)]


Scalar = bool | int | float | Annotated[str, StringConstraints(max_length=LONGEST_SQL)] | None
Parameter = Scalar | Day | Moment
Parameters = Annotated[list[Parameter], Field(max_length=1000)] | dict[Name, Parameter] | None


class RequestModel(StrictModel):
    """What every request for work may have in addition to its arguments.

    Attributes:
        project: the project whose cap it counts against, too; a key that is bound to one needs none.
        wait: false for a job, which is looked at and followed elsewhere.
    """

    no_arguments: ClassVar[frozenset[str]] = frozenset({"project", "wait"})
    project: Annotated[str, StringConstraints(max_length=LONGEST_NAME)] = ""
    wait: bool = True


class BudgetModel(StrictModel):
    """A budget: epsilon, epsilon and delta, or rho with a delta; per, zone, start and of say for how long."""

    epsilon: Amount | None = None
    delta: Amount | None = None
    rho: Amount | None = None
    per: Name | None = None
    zone: Name | None = None
    start: Name | None = None
    of: Name | None = None


def _choose_type(arg: Arg) -> Any:
    return Literal[arg.choices] if arg.choices else Name


_TYPES: Mapping[ArgumentKind, Callable[[Arg], Any]] = check_kinds(
    {
        ArgumentKind.SQL: lambda _: Sql,
        ArgumentKind.NAME: _choose_type,
        ArgumentKind.NAMES: lambda _: list[Name],
        ArgumentKind.TEXT: lambda _: Text,
        **dict.fromkeys(
            (ArgumentKind.AMOUNT, ArgumentKind.SHARE, ArgumentKind.DELTA, ArgumentKind.PRICE), lambda _: Amount
        ),
        ArgumentKind.COUNT: lambda arg: Annotated[int, Field(ge=1, le=arg.most)],
        ArgumentKind.LIMITS: lambda _: LimitsModel | Literal["choose"],
        ArgumentKind.VALUE: lambda _: Scalar,
        ArgumentKind.VALUES: lambda _: Parameters,
        ArgumentKind.LEARNER: lambda _: Name,
        ArgumentKind.GENERATOR: _choose_type,
        ArgumentKind.DOMAIN: lambda _: dict[Name, Any],
        ArgumentKind.DOMAINS: lambda _: dict[Name, dict[Name, Any]],
        ArgumentKind.RULES: lambda _: list[dict[Name, Any]] | dict[Name, list[dict[Name, Any]]],
        ArgumentKind.BUDGET: lambda _: BudgetModel,
    },
    "http",
)
"""The type that JSON has for each kind of argument."""


def body_of(
    request: type[Asked[Any]], *, base: type[StrictModel] = RequestModel, without: Collection[str] = ()
) -> type[StrictModel]:
    """Returns the body that a request has over HTTP, without arguments that are elsewhere, as in the path."""
    fields: dict[str, Any] = {}
    for argument in arguments(request):
        if "http" in argument.arg.faces and argument.name not in without:
            fields |= _fields(argument)
    made: type[StrictModel] = create_model(request.__name__, __base__=base, __doc__=request.__doc__, **fields)
    return made


def _fields(argument: Argument) -> dict[str, Any]:
    arg, described = argument.arg, Hint(argument.arg.help).spell_for(JSON)
    if arg.kind is ArgumentKind.LEARNER:
        given: Any = (dict[Name, Any], Field(default={}, description="Its parameters that differ from their defaults."))
        return {"learner": (Name, Field(description=described)), "parameters": given}
    kind = _TYPES[arg.kind](arg)
    if arg.many:
        kind = Annotated[list[kind], Field(min_length=1, max_length=arg.most or MOST_LISTED)]  # type: ignore[valid-type]
    if argument.is_required:
        return {argument.name: (kind, Field(description=described))}
    if argument.default == "" and arg.kind is ArgumentKind.NAME:  # an empty name means all of them
        kind = Annotated[str, StringConstraints(max_length=LONGEST_NAME)]
    default = None if argument.default is None else write_argument(argument.name, argument.default, arg)
    return {argument.name: (kind | None, Field(default=default, description=described))}
