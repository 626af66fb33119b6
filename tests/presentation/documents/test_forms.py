"""A form declares the parts of a document once: it writes them in their order, and reads nothing that does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from discreet.errors import InternalError, InvalidParameter
from discreet.plan.model.types import Type
from discreet.presentation.documents.result_documents import DocumentForm, InlinePart, read_plain, write_plain


@dataclass(frozen=True)
class Place:
    ward: str
    beds: int


@dataclass(frozen=True)
class Visit:
    place: Place
    price: Fraction | None
    days: frozenset[str]
    span: tuple[int, int]
    types: dict[str, Type] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"to {self.place.ward}"


VISIT = DocumentForm(
    kind="visit",
    about="A visit.",
    make=Visit,
    parts={
        "span": tuple[int, int],
        "place": InlinePart(Place),
        "price": Fraction | None,
        "days": frozenset[str],
        "types": dict[str, Type],
        "guests": int,
        "text": str,
    },
    writes=lambda visit: {"guests": len(visit.days)},
).declare()
MADE = Visit(Place("A", 3), Fraction(1, 3), frozenset({"tu", "mo"}), (1, 2), {"age": Type.INT})
WRITTEN: dict[str, Any] = {
    "kind": "visit",
    "span": [1, 2],
    "ward": "A",
    "beds": 3,
    "price": "1/3",
    "days": ["mo", "tu"],
    "types": {"age": "int"},
    "guests": 2,
    "text": "to A",
}


def test_parts_are_written_in_their_order_and_read_back() -> None:
    assert list(VISIT.write(MADE).items()) == list(WRITTEN.items())
    assert VISIT.read(WRITTEN) == MADE


def test_objects_inside_others_travel_in_their_own_form() -> None:
    assert write_plain({"first": (MADE,)}) == {"first": [WRITTEN]}
    assert read_plain(dict[str, tuple[Visit, ...]], {"first": [WRITTEN]}) == {"first": (MADE,)}


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("kind", "call"),
        ("span", [1, 2, 3]),
        ("span", "12"),
        ("beds", "3"),
        ("beds", True),
        ("price", "a third"),
        ("days", "mo"),
        ("days", [1]),
        ("types", {"age": "number"}),
        ("types", ["age"]),
    ],
)
def test_a_part_that_does_not_fit_is_refused(name: str, part: object) -> None:
    for document in ({**WRITTEN, name: part}, {key: value for key, value in WRITTEN.items() if key != name}):
        with pytest.raises(InvalidParameter, match="to be a whole document of kind 'visit'"):
            VISIT.read(document)


def test_a_type_that_is_not_plain_is_a_fault_of_ours() -> None:
    with pytest.raises(InternalError):
        read_plain(complex, 1)
