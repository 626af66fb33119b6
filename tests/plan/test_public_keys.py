"""Public keys are looked at by column, and what is wrong with one of them is seen as if it stood alone."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from discreet.errors import InvalidParameter
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from discreet.plan.validation import check_reading, check_value

VALUES: list[Any] = [
    None,
    True,
    1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    1.0,
    "a",
    "é",
    "\ud800",
    dt.date(2020, 1, 1),
    dt.datetime(2020, 1, 1),
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
]
GOOD: dict[Type, Any] = {
    Type.BOOL: False,
    Type.INT: 7,
    Type.TEXT: "b",
    Type.DATE: dt.date(2021, 1, 1),
    Type.TIMESTAMP: dt.datetime(2021, 1, 1),
}


def is_taken(keys: list[tuple[Any, ...]], kind: Type) -> bool:
    columns = {"k": kind, "n": Type.INT}
    asked = Reading(
        table="t",
        keys=(ColumnRef("k", kind), ColumnRef("n", Type.INT)),
        public_keys=tuple(keys),
        statistics=(Statistic(kind="rows"),),
    )
    try:
        check_reading(asked, {"t": columns})
    except InvalidParameter:
        return False
    return True


def is_value(value: Any, kind: Type) -> bool:
    try:
        check_value(value, kind)
    except InvalidParameter:
        return False
    return True


@pytest.mark.parametrize("kind", GOOD)
def test_one_wrong_value_among_good_ones_is_seen(kind: Type) -> None:
    good = GOOD[kind]
    taken = {repr(value): is_taken([(good, 1), (value, 2), (None, 3), (good, 4)], kind) for value in VALUES}
    assert taken == {repr(value): is_value(value, kind) for value in VALUES}
    assert set(taken.values()) == {True, False}


@pytest.mark.parametrize("keys", [[(1, 1), (2,)], [(1, 1), (1, 2, 3)], [()]])
def test_keys_of_another_length_are_refused(keys: list[tuple[Any, ...]]) -> None:
    assert not is_taken(keys, Type.INT)


def test_no_keys_at_all_are_taken() -> None:
    assert is_taken([], Type.INT)
    assert is_taken([(None, None)], Type.INT)
