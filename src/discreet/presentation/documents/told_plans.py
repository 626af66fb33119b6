"""What a service tells of questions and tables: as objects that print like the curator's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.measurement.profile.sizes import Figure
from discreet.plan.model.schema import Limits
from discreet.presentation.documents.json_values import Given, reader
from discreet.presentation.documents.plain_results import read_fields
from discreet.privacy import Loss
from discreet.privacy.events import Event
from discreet.report.html import element


@dataclass(frozen=True, slots=True, kw_only=True)
class _Printed:
    """Something that has a printed form of its own.

    Attributes:
        document: all that was told.
    """

    document: Mapping[str, Any]

    def __str__(self) -> str:
        return str(self.document["text"])

    def _repr_html_(self) -> str:
        return element("pre", str(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldExplanation(_Printed):
    """A question before it is asked; see `Explanation` for what its attributes mean."""

    columns: tuple[str, ...]
    account: str
    unit: str
    cost: Loss | None
    remaining: Loss
    errors: dict[str, float]
    confidence: Fraction
    rows: int
    event: Event
    limits: Limits
    notes: tuple[str, ...]
    free: str | None
    pending: bool
    caps: Mapping[str, Loss]
    refusal: str | None
    facts: Mapping[str, str]


@reader("explanation")
def read_explanation(document: Given) -> ToldExplanation:
    """Returns the explanation of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    names = tuple(each["name"] for each in document["columns"])
    return read_fields(ToldExplanation, document, document=document, columns=names)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldProfile(_Printed):
    """A paid portrait of a table; see `Profile`. Answers about the table use it where it is kept."""

    table: str
    epsilon: Fraction
    private: bool
    people: Figure | None
    suggested: Limits


@reader("account of a table")
def read_profile(document: Given) -> ToldProfile:
    """Returns the profile of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    return read_fields(ToldProfile, document, document=document)
