"""Explanations, budgets side by side, and profiles as documents: facts that are known before anything is spent."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from discreet.accounting import Risk
from discreet.curator.asking.choices import BudgetChoice, Choices
from discreet.curator.asking.explanation import Explanation
from discreet.dataclass import dataclass
from discreet.measurement.profile.profile import CONFIDENCE, QUANTILES, Profile
from discreet.measurement.profile.sizes import Figure
from discreet.plan.model.schema import Limits
from discreet.plan.post.steps import answer_columns
from discreet.presentation.documents.answer_documents import COLUMNS, question_types, write_columns
from discreet.presentation.documents.result_documents import (
    Document,
    DocumentForm,
    InlinePart,
    types_of,
    write_amount,
    write_plain,
)
from discreet.report.html import element


class RemoteResult(SimpleNamespace):
    """A result that a service returned: its parts are attributes, and it prints as the curator's own.

    Attributes:
        document: everything that the service returned.
    """

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)

    def __str__(self) -> str:
        return str(self.text)

    def _repr_html_(self) -> str:
        return element("pre", str(self))


def _asked_columns(told: Explanation) -> Document:
    question = told.program.question
    return {"columns": write_columns(question_types(question, answer_columns(question)))}


EXPLANATION: DocumentForm[RemoteResult] = DocumentForm(
    kind="explanation",
    about="A question before it is asked, with the columns that the answer would have.",
    make=RemoteResult,
    parts={
        "columns": COLUMNS,
        **types_of(Explanation, without=("program", "remarks")),
        "limits": Limits,
        "notes": tuple[str, ...],
        "facts": dict[str, str],
        "text": str,
    },
    writes=_asked_columns,
    reads=lambda document: {"document": document, "columns": tuple(each["name"] for each in document["columns"])},
)

CHOICE = DocumentForm(
    kind="choice",
    says_kind=False,
    about="A budget: the errors of each number, and what an attacker could learn.",
    make=BudgetChoice,
    parts={**types_of(BudgetChoice, without=("risk",)), "risk": InlinePart(Risk), "words": str},
).declare()
CHOICES = DocumentForm(
    kind="choices",
    about="Budgets side by side.",
    make=Choices,
    parts={"confidence": Fraction, "rows": int, "choices": tuple[BudgetChoice, ...], "text": str},
).declare()


@dataclass(frozen=True, slots=True)
class GroupsAbove:
    """The share of people who have more groups than the table's limit, by some columns."""

    by: tuple[str, ...]
    limit: int
    above: Figure


@dataclass(frozen=True, slots=True)
class LostValues:
    """The shares of a column's counted values that are clipped to bounds, and that are missing."""

    clipped: Figure | None
    missing: Figure | None


def _profile_document(profile: Profile) -> Document:
    """Returns what methods of a profile tell; one whose rows are people has no rows per person, and no groups."""
    limit = profile.plan.limits.groups
    known = ((keys, profile.groups(keys)) for keys in profile.plan.by)
    found = {
        "confidence": CONFIDENCE,
        "people": profile.people(),
        "without_id": profile.rows_without_id(1 - CONFIDENCE),
        "rows_per_person": None if profile.by_row else {write_amount(q): profile.rows.quantile(q) for q in QUANTILES},
        "groups": [GroupsAbove(keys, limit, sizes.share_above(limit)) for keys, sizes in known if sizes is not None],
        "values": {
            name: LostValues(*(profile.share_of_values(subject, name) for subject in ("outside", "missing")))
            for name in profile.plan.columns
        },
        "suggested": profile.suggest_limits(),
    }
    return {name: write_plain(part) for name, part in found.items()}


PROFILE: DocumentForm[RemoteResult] = DocumentForm(
    kind="profile",
    about="A paid profile of a table. Figures are value, low, high, with 95 % confidence each.",
    make=RemoteResult,
    parts={
        "table": str,
        "epsilon": Fraction,
        "private": bool,
        "by_row": bool,
        "most_rows": int | None,
        "confidence": Fraction,
        "people": Figure,
        "without_id": Figure,
        "rows_per_person": dict[str, int] | None,
        "groups": list[GroupsAbove],
        "values": dict[str, LostValues],
        "suggested": Limits,
        "text": str,
    },
    writes=_profile_document,
    reads=lambda document: {"document": document},
)
