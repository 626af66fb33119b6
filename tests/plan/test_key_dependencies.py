"""What keys decide: never more than they do, whatever the day, and the same value."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from discreet.plan.analysis import key_dependencies
from discreet.plan.analysis.key_dependencies import express_by_keys, looked_up
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.expressions.functions.date_functions import DATES
from discreet.plan.expressions.functions.record import CalendarFacts
from discreet.plan.model.nodes import ColumnRef, Expression, Literal, Value, columns, substitute
from discreet.plan.model.types import Type

DAY, MOMENT = ColumnRef("day", Type.DATE), ColumnRef("moment", Type.TIMESTAMP)
SEVEN, CONSTANT = Literal(7, Type.INT), Literal(dt.date(2024, 1, 1), Type.DATE)
ROWS: list[dict[str, Value]] = [
    {"day": day, "moment": dt.datetime.combine(day, dt.time(17))}
    for day in (dt.date(2022, 12, 1) + dt.timedelta(days=i) for i in range(400))
]


def nothing(*_: object) -> None:
    """No public table tells anything."""


def parts(x: ColumnRef) -> Iterator[Expression]:
    """All functions of one day, and some of these."""
    for name in (function.name for function in DATES):
        if any(signature.arguments == (x.type,) for signature in FUNCTIONS[name].signatures):
            yield call(name, x)
    if x.type is Type.TIMESTAMP:
        yield call("to_date", x)
    yield call("modulo", call("day_of_week", x), SEVEN)
    yield call("integer_divide", call("month", x), Literal(6, Type.INT))
    yield call("concat", call("to_text", call("year", x)), call("month_name", x))
    yield call("upper", call("day_name", x))


PAIRS = [(key, value) for x in (DAY, MOMENT) for key, value in product(parts(x), repeat=2)]


@cache
def values(expression: Expression) -> list[Value]:
    """What an expression is in every row."""
    return [evaluate(expression, row) for row in ROWS]


def check(key: Expression, value: Expression) -> bool:
    """What is decided is so in every row, and has the value that it says; tells whether it is."""
    found = express_by_keys(value, [key], nothing)
    if found is None:
        return False
    told: dict[Value, set[Value]] = defaultdict(set)
    for one, other in zip(values(key), values(value), strict=True):
        told[one].add(other)
    assert all(len(each) == 1 for each in told.values()), (key, value)
    told_by_key = substitute(found, {key: ColumnRef("#key", key.type)}, lambda other: other)
    assert {column.name for column in columns(told_by_key)} <= {"#key"}
    assert all(evaluate(told_by_key, {"#key": one}) == other for one, (other,) in told.items())
    return True


def test_nothing_is_decided_that_is_not_so() -> None:
    count = sum(check(key, value) for key, value in PAIRS)
    assert count > 120


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (call("day_of_week", DAY), call("day_name", DAY)),
        (call("modulo", call("day_of_week", MOMENT), SEVEN), call("day_name", MOMENT)),
        (call("month_name", DAY), call("quarter", DAY)),
        (
            call("start_of_month", MOMENT),
            call("concat", call("month_name", MOMENT), call("to_text", call("year", MOMENT))),
        ),
        (call("to_date", MOMENT), call("week", MOMENT)),
    ],
)
def test_what_people_ask_is_decided(key: Expression, value: Expression) -> None:
    assert check(key, value)


@pytest.mark.parametrize(("period", "other"), [("week", "year"), ("month", "week")])
def test_mutant_a_week_has_one_year(monkeypatch: pytest.MonkeyPatch, period: str, other: str) -> None:
    monkeypatch.setitem(key_dependencies._LONGER, period, (other,))
    with pytest.raises(AssertionError):
        test_nothing_is_decided_that_is_not_so()


@pytest.mark.parametrize(
    ("function", "calendar"),
    [
        ("week", CalendarFacts(within="month")),
        ("day_of_year", CalendarFacts(within="year")),
        ("day", CalendarFacts(cycle="week")),
    ],
)
def test_mutant_a_record_says_that_a_function_changes_too_rarely(
    monkeypatch: pytest.MonkeyPatch, function: str, calendar: CalendarFacts
) -> None:
    monkeypatch.setitem(FUNCTIONS, function, replace(FUNCTIONS[function], calendar=calendar))
    with pytest.raises(AssertionError):
        test_nothing_is_decided_that_is_not_so()


def test_a_list_is_looked_up() -> None:
    keys: list[tuple[Type, list[Value]]] = [
        (Type.TEXT, ["b", "a", "é", "B", ""]),
        (Type.INT, [3, -1, 2**62]),
        (Type.BOOL, [True, False]),
        (Type.DATE, [dt.date(2024, 1, 1)]),
        (Type.TEXT, [f"{i}" for i in range(499)]),
    ]
    for kind, known in keys:
        for listed in (known, [*known, None]):
            table = {value: float(i) for i, value in enumerate(listed)}
            found = looked_up(ColumnRef("k", kind), table.items(), Type.FLOAT)
            assert found is not None
            assert {value: evaluate(found, {"k": value}) for value in listed} == table
            assert evaluate(found, {"k": None}) == table.get(None)
    assert looked_up(ColumnRef("k", Type.INT), [(1, 2), (1, 3)], Type.INT) is None
    assert looked_up(ColumnRef("k", Type.INT), [(1, 2), (1, 2)], Type.INT) is not None
    assert looked_up(ColumnRef("k", Type.INT), [(i, 2) for i in range(501)], Type.INT) is None
