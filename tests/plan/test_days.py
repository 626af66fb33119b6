"""Days, moments, texts and whole doubles: bounds hold values, lists are complete, and nothing grows without end."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator.catalog.declarations import declare
from discreet.errors import InvalidParameter
from discreet.plan.analysis.group_keys import values
from discreet.plan.analysis.value_bounds import bounds, is_whole
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import LONGEST_TEXT
from discreet.plan.expressions.functions.date_functions import day_number
from discreet.plan.model.nodes import Expression
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from discreet.sql.select import parse
from tests.cases import try_all
from tests.plan.tables import SCHEMAS

FIRST, LAST = dt.date(2019, 12, 30), dt.date(2021, 3, 1)
EARLY, LATE = dt.datetime(2020, 1, 31, 6), dt.datetime(2020, 12, 31, 18)


def _table(first: dt.date, last: dt.date) -> TableSchema:
    return TableSchema(
        name="stays",
        unit="id",
        columns={
            "id": ColumnSchema(name="id", type=Type.INT),
            "a": ColumnSchema(name="a", type=Type.DATE, bounds=ColumnBounds(day_number(first), day_number(last))),
            "b": ColumnSchema(name="b", type=Type.TIMESTAMP, bounds=ColumnBounds(day_number(EARLY), day_number(LATE))),
            "n": ColumnSchema(name="n", type=Type.INT, bounds=ColumnBounds(Fraction(-3), Fraction(14))),
            "x": ColumnSchema(name="x", type=Type.FLOAT, bounds=ColumnBounds(Fraction(0), Fraction(100))),
            "t": ColumnSchema(name="t", type=Type.TEXT),
        },
    )


STAYS = _table(FIRST, LAST)
NUMBERS = (
    *("a - DATE '2020-06-01'", "DATE_DIFF('day', a, b)", "DATE_DIFF('week', b, a)", "DATE_DIFF('month', a, b)"),
    *("DATE_DIFF('quarter', b, a)", "DATE_DIFF('year', a, b)", "DATE_DIFF('hour', b, b + INTERVAL (n) DAY)"),
    *("YEAR(a)", "YEAR(b + INTERVAL (n) MONTH)", "(a + n) - CAST(b AS DATE)", "WEEK(a)", "DAYOFYEAR(b)"),
    *("LAST_DAY(a) - DATE_TRUNC('week', b)", "DATE_TRUNC('quarter', b) - DATE_TRUNC('year', a)"),
    *("EXTRACT(DOW FROM a)", "(a - INTERVAL 2 YEAR) - (a + INTERVAL (n) MONTH)", "GREATEST(a, DATE '2020-02-02') - a"),
    *("SQRT(x)", "POWER(x, 3)", "(x - 50) ^ 2", "x / NULLIF(n, 0)", "TRUNC(x - 50)", "SIGN(n)", "POWER(n, -1)"),
    *("FLOOR(x / 10) * 10", "n / FLOOR(x / 30)", "SQRT(x - 50)"),
    *("DATE_DIFF('minute', a, b)", "DATE_DIFF('second', b, b + INTERVAL (n) DAY)", "DATE_DIFF('hour', a, b)"),
    *("EPOCH(b - a)", "EXTRACT(EPOCH FROM a)", "EXTRACT(HOUR FROM (b - CAST(a AS TIMESTAMP)))"),
    *("EXTRACT(DAY FROM (a - b))", "EXTRACT(YEAR FROM AGE(a, b))", "DATE_PART('month', AGE(b, a))"),
)


def expression(text: str, table: TableSchema = STAYS) -> Expression:
    asked = parse(f"SELECT AVG({text}) AS m FROM stays", {"stays": table}).aggregates[0].argument
    assert asked is not None
    return asked


rows = st.fixed_dictionaries(
    {
        "a": st.none() | st.dates(FIRST, LAST),
        "b": st.none() | st.datetimes(EARLY, LATE),
        "n": st.none() | st.integers(-3, 14),
        "x": st.none() | st.floats(0, 100),
    }
)


@cache
def bounded(text: str) -> tuple[Expression, ColumnBounds]:
    made = expression(text)
    limits = bounds(made, STAYS)
    assert limits is not None
    return made, limits


@given(row=rows)
def test_bounds_hold_what_is_made_of_days(row: dict[str, Any]) -> None:
    def check(text: str) -> None:
        made, limits = bounded(text)
        value = evaluate(made, row)
        assert value is None or limits.low <= Fraction(value) <= limits.high
        assert value is None or not is_whole(made) or Fraction(value).denominator == 1

    try_all(NUMBERS, check)


def test_bounds_are_not_wider_than_they_must_be() -> None:
    assert bounds(expression("a - DATE '2020-06-01'"), STAYS) == ColumnBounds(Fraction(-154), Fraction(273))
    assert bounds(expression("YEAR(a)"), STAYS) == ColumnBounds(Fraction(2019), Fraction(2021))
    assert bounds(expression("x / NULLIF(n, 0)"), STAYS) == ColumnBounds(Fraction(-100), Fraction(100))


LISTS = {
    "YEAR(a)": (2019, 2020, 2021, None),
    "DATE_TRUNC('year', a)": (*(dt.date(year, 1, 1) for year in (2019, 2020, 2021)), None),
    "STRFTIME(DATE_TRUNC('quarter', b), '%Y-%m')": ("2020-01", "2020-04", "2020-07", "2020-10", None),
    "FLOOR(x / 50) * 50": (0, 50, 100, None),
    "EXTRACT(DOW FROM a)": (*range(7), None),
    "'day ' || DAYOFWEEK(b)": (*(f"day {day}" for day in range(7)), None),
}


@pytest.mark.parametrize("text", LISTS)
def test_keys_are_listed_where_bounds_tell_them(text: str) -> None:
    key = parse(f"SELECT {text} AS k, COUNT(*) AS n FROM stays GROUP BY k", {"stays": STAYS}).keys[0].expression
    found = values(key, STAYS)
    assert found is not None
    assert set(found) == set(LISTS[text])


def test_names_of_days_and_months_are_listed() -> None:
    for text, count in (("DAYNAME(a)", 7), ("MONTHNAME(b)", 12)):
        key = parse(f"SELECT {text} AS k, COUNT(*) AS n FROM stays GROUP BY k", {"stays": STAYS}).keys[0].expression
        found = values(key, STAYS)
        assert found is not None
        assert len(found) == count + 1


def test_a_long_chain_of_cases_is_listed_or_not_in_time() -> None:
    branches = " ".join(f"WHEN n = {place} THEN UPPER(TRIM('x'))" for place in range(40))
    chain = f"CASE {branches} ELSE t END"
    key = parse(f"SELECT {chain} AS k, COUNT(*) AS n FROM stays GROUP BY k", {"stays": STAYS}).keys[0].expression
    assert values(key, STAYS) is None


def test_a_whole_double_is_a_key_and_shown_as_it_was_asked() -> None:
    asked = parse("SELECT FLOOR(x / 10) * 10 AS k, COUNT(*) AS n FROM stays GROUP BY k ORDER BY k", {"stays": STAYS})
    assert asked.keys[0].expression.type is Type.INT
    assert asked.outputs[0].expression.type is Type.FLOAT
    assert evaluate(asked.keys[0].expression, {"x": 37.5}) == 30
    assert evaluate(asked.outputs[0].expression, {asked.keys[0].name: 30}) == 30.0


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("t || t", LONGEST_TEXT // 2),
        ("REPLACE(t, 'a', 'bbbb')", LONGEST_TEXT // 4),
        ("CONCAT(t, 'x')", LONGEST_TEXT - 1),
    ],
)
def test_texts_do_not_grow_beyond_the_longest(text: str, length: int) -> None:
    made = parse(f"SELECT COUNT({text}) AS n FROM stays", {"stays": STAYS}).aggregates[0].argument
    assert made is not None
    assert len(evaluate(made, {"t": "a" * length})) <= LONGEST_TEXT
    assert evaluate(made, {"t": "a" * (length + 1)}) is None


@pytest.mark.parametrize(
    "text",
    [
        "-- rows\nSELECT /* all */ COUNT(*) AS n -- of them\r\nFROM visits /* twice? */ /**/",
        "/* a ; b */ SELECT COUNT(*) AS n FROM visits -- the end",
        "SELECT COUNT(*) AS n FROM visits -- 'not a text",
    ],
)
def test_comments_change_nothing(text: str) -> None:
    assert parse(text, SCHEMAS) == parse("SELECT COUNT(*) AS n FROM visits", SCHEMAS)


def _declared(kind: Type, pair: Any) -> ColumnBounds | None:
    schema = declare(
        "t",
        {"c": kind},
        bounds={"c": pair},
        keys={},
        limits=Limits(),
        neighbours=Neighbours.ADD_REMOVE,
        version="",
    )
    return schema.columns["c"].bounds


def test_days_are_declared_as_days_or_texts() -> None:
    wanted = ColumnBounds(Fraction(FIRST.toordinal()), Fraction(LAST.toordinal()))
    assert _declared(Type.DATE, (FIRST, LAST)) == wanted
    assert _declared(Type.DATE, (FIRST.isoformat(), LAST.isoformat())) == wanted
    assert _declared(Type.TIMESTAMP, (FIRST, LAST)) == ColumnBounds(
        wanted.low, wanted.high + 1
    )  # the last day is all of it
    assert _declared(Type.TIMESTAMP, (EARLY, LATE)) == ColumnBounds(day_number(EARLY), day_number(LATE))


@pytest.mark.parametrize(
    ("kind", "pair"),
    [
        (Type.DATE, (LAST, FIRST)),
        (Type.DATE, ("2020-02-30", "2021-01-01")),
        (Type.DATE, (1, 2)),
        (Type.TIMESTAMP, (EARLY.replace(tzinfo=dt.timezone.utc), LATE)),  # noqa: UP017 - as callers write it
        (Type.TEXT, ("a", "b")),
        (Type.DATE, (FIRST,)),
    ],
)
def test_what_is_no_pair_of_days_is_refused(kind: Type, pair: Any) -> None:
    with pytest.raises(InvalidParameter):
        _declared(kind, pair)
