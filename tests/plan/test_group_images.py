"""Lists of groups are what an expression can be over declared values: no value is missing, and none is impossible."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.measurement.program.program import choose
from discreet.noise import SeededBits
from discreet.plan.analysis import group_keys
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions.date_functions import day_number
from discreet.plan.model.nodes import Question, columns
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Budget
from discreet.sql.select import parse

FIRST, LAST = dt.date(2024, 1, 15), dt.date(2025, 3, 10)
LONG = dt.date(2015, 2, 3), dt.date(2024, 11, 5)
SHORT = dt.date(2024, 4, 29), dt.date(2024, 5, 2)
NUMBERS, TENTHS = range(-3, 31), [n / 16 for n in range(-32, 33)]


def days(first: dt.date, last: dt.date) -> list[Any]:
    return [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]


def moments(first: dt.date, last: dt.date) -> list[Any]:
    return [dt.datetime.combine(day, dt.time(hour, 30)) for day in days(first, last) for hour in (0, 7, 23)]


DOMAINS: dict[str, Sequence[Any]] = {
    "n": NUMBERS,
    "x": TENTHS,
    "day": days(FIRST, LAST),
    "long": days(*LONG),
    "short": days(*SHORT),
    "seen": moments(FIRST, LAST),
    "clock": [dt.datetime.combine(day, dt.time(hour, 59)) for day in days(*SHORT) for hour in range(24)],
    "flag": (False, True),
    "text": ("", "a", "ab", "b", "zz"),
    "ward": ("A", "B", "C"),
    "code": tuple(f"k{n}" for n in range(600)),
}
KINDS = {
    **dict.fromkeys(("day", "long", "short"), Type.DATE),
    **dict.fromkeys(("seen", "clock"), Type.TIMESTAMP),
    **dict.fromkeys(("text", "ward", "code"), Type.TEXT),
    "n": Type.INT,
    "x": Type.FLOAT,
    "flag": Type.BOOL,
}
KEYED = ("ward", "code")


@cache
def declared(*, present: bool) -> TableSchema:
    """Columns by name; those whose values are in bounds, and keys, as they would be declared."""
    return TableSchema(name="t", columns={name: _column(name, present) for name in DOMAINS}, account="t")


def _column(name: str, present: bool) -> ColumnSchema:
    values, kind = DOMAINS[name], KINDS[name]
    ends = None
    if kind.is_number or kind.is_time:
        low, high = (day_number(v) if kind.is_time else Fraction(v) for v in (values[0], values[-1]))
        ends = ColumnBounds(low, high)
    keys = tuple(values) if name in KEYED else None
    return ColumnSchema(name=name, type=kind, bounds=ends, keys=keys, present=present)


def asked(key: str) -> Question:
    return parse(f"SELECT {key} AS k, COUNT(*) AS v FROM t GROUP BY 1", {"t": declared(present=False)})


def shown(question: Question, *, present: bool) -> list[Any]:
    keys = choose(question, declared(present=present), epsilon=Fraction(1)).reading.public_keys
    assert keys is not None, "the groups are private"
    return [key for (key,) in keys]


def image(question: Question, *, present: bool) -> set[Any]:
    """Every value of the key, over all combinations of what its columns may hold."""
    (key,) = question.keys
    names = list(dict.fromkeys(columns(key.expression)))
    lists = [[*DOMAINS[column.name], *([] if present or column.name in KEYED else [None])] for column in names]
    rows = itertools.product(*lists)
    return {evaluate(key.expression, {c.name: v for c, v in zip(names, row, strict=True)}) for row in rows}


OF_DAYS = (
    *("LAST_DAY({})", "YEAR({})", "QUARTER({})", "MONTH({})", "WEEK({})", "DAY({})", "ISODOW({})", "DAYOFYEAR({})"),
    *("DAYNAME({})", "MONTHNAME({})", "EXTRACT(DOW FROM {})", "EXTRACT(MONTH FROM {}) % 3", "CAST({} AS DATE)"),
    *(f"DATE_TRUNC('{part}', {{}})" for part in ("year", "quarter", "month", "week", "day")),
    *("YEAR({}) * 100 + MONTH({})", "LAST_DAY({}) + INTERVAL 1 DAY", "DATE_TRUNC('month', {}) - INTERVAL 1 DAY"),
    *("DATE_TRUNC('year', LAST_DAY({}))", "STRFTIME({}, '%Y-%m')", "MONTH({}) // 6", "DAY(LAST_DAY({}))"),
    *("YEAR({}) || '-' || QUARTER({})", "MONTH({} + INTERVAL 1 MONTH)"),
)
MANY = ("CAST({} AS DATE)", "DATE_TRUNC('week', {})", "DATE_TRUNC('day', {})")  # more than are listed, of ten years
EXACT = (
    *(text.replace("{}", name) for text in OF_DAYS for name in ("day", "short", "seen")),
    *(text.replace("{}", "long") for text in OF_DAYS if text not in MANY),
    *(
        "HOUR(clock)",
        "HOUR(clock) // 8",
        "DAY(clock) * 100 + HOUR(clock)",
        "n",
        "n // 10",
        "n % 7",
        "MOD(n, 3)",
        "ABS(n)",
        "n * 2",
        "n * n % 5",
    ),
    *("CAST(n AS TEXT)", "LENGTH(CAST(n AS TEXT))", "n // 10 * 10", "GREATEST(n, 5)", "LEAST(n, 0)"),
    *("COALESCE(n, 0)", "NULLIF(n, 3)", "n - n % 4", "n // 2 + n // 3", "ROUND(n / 4.0)", "CEIL(n / 4.0)"),
    *("FLOOR(x)", "CEIL(x)", "ROUND(x)", "CAST(x AS INT)", "FLOOR(x * 2)", "TRUNC(x)", "FLOOR(x) * 10"),
    *("ward", "UPPER(ward)", "LOWER(ward)", "ward || '!'", "'ward ' || ward"),
    *("ward = 'A'", "ward LIKE 'A%'", "ward IN ('A', 'Z')", "ward BETWEEN 'A' AND 'B'", "LENGTH(ward)"),
    *(
        "code LIKE 'k1%'",
        "code = 'k7'",
        "code IN ('k1', 'k2')",
        "code ~ 'k[0-3]'",
        "code < 'k5'",
        "STARTS_WITH(code, 'k1')",
    ),
    *("flag", "NOT flag", "flag AND ward = 'A'", "CAST(flag AS INT)", "flag = (ward = 'A')"),
    *("text LIKE 'a%'", "text = 'a'", "text IN ('a', 'b')", "text BETWEEN 'a' AND 'b'", "text ~ 'b'", "text IS NULL"),
    *("COALESCE(text LIKE 'a%', FALSE)", "CONTAINS(text, 'b')", "flag IS NULL", "flag IS TRUE", "n IS NULL"),
    *("CASE WHEN ward = 'A' THEN 1 WHEN ward = 'B' THEN 2 END", "CASE WHEN flag THEN 'yes' ELSE 'no' END"),
    *("CASE ward WHEN 'A' THEN 'x' ELSE ward END", "SIGN(n)", "SIGN(x)", "n > 3", "n BETWEEN 2 AND 5", "x <= 0.5"),
    *("day < DATE '2024-06-01'", "day BETWEEN DATE '2024-02-01' AND DATE '2024-03-01'", "n IN (1, 2)", "n % 2 = 0"),
    *("COALESCE(ward, 'none') = 'A'", "flag OR n > 3"),
)
MORE: dict[str, set[Any]] = {
    # rows with NULL where keys are declared are told where the expression tells them
    "COALESCE(ward, 'none')": {"none"},
    "ward IS NULL": {True},
    "CONCAT(ward, '-', ward)": {"-"},
    "CASE WHEN ward IS NULL THEN 'none' ELSE 'some' END": {"none"},
    # bands catch what lies beyond the bounds
    "CASE WHEN n < -5 THEN 'low' ELSE 'usual' END": {"low"},
    "n > 1000": {True},
    "WIDTH_BUCKET(n, 0, 20, 2)": set(),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("present", [False, True], ids=["with NULL", "without NULL"])
@pytest.mark.parametrize("key", EXACT)
def test_the_groups_are_the_image_of_what_is_declared(key: str, present: bool) -> None:
    question = asked(key)
    found = shown(question, present=present)
    assert len(found) == len(set(found))
    assert set(found) == image(question, present=present)


@pytest.mark.parametrize("present", [False, True], ids=["with NULL", "without NULL"])
@pytest.mark.parametrize("key", MORE)
def test_groups_beyond_what_is_declared_are_those_of_rows_beyond_it(key: str, present: bool) -> None:
    question = asked(key)
    found, possible = set(shown(question, present=present)), image(question, present=present)
    assert possible <= found
    assert found - possible <= MORE[key]


def test_the_check_sees_days_that_end_no_month_and_nulls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is needed: without it a list has groups that no row is in."""
    group_keys._list_values.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(group_keys, "_sets", lambda *_, **__: {})
        for key in ("text LIKE 'a%'", "text IS NULL", "FLOOR(x)"):
            with pytest.raises(AssertionError):
                test_the_groups_are_the_image_of_what_is_declared(key, True)
    group_keys._list_values.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(group_keys, "_try_combinations", lambda *_, **__: None)
        patch.setattr(group_keys, "_combine_argument_values", lambda *_: None)
        test_the_groups_are_the_image_of_what_is_declared("LAST_DAY(day)", False)  # by the ends of months alone
        group_keys._list_values.cache_clear()
        patch.setattr(group_keys, "_days", lambda _, whole: [dt.date.fromordinal(n) for n in whole])
        with pytest.raises(AssertionError):
            test_the_groups_are_the_image_of_what_is_declared("LAST_DAY(day)", False)
    group_keys._list_values.cache_clear()


def test_days_of_many_years_are_those_of_their_months() -> None:
    """Where there are too many days to try each, what is its own month's end is an end of a month."""
    ends = ColumnBounds(day_number(dt.date(1990, 1, 1)), day_number(dt.date(2025, 12, 31)))
    day = ColumnSchema(name="day", type=Type.DATE, bounds=ends)
    question = asked("LAST_DAY(day)")
    found = group_keys.values(question.keys[0].expression, TableSchema(name="t", columns={"day": day}))
    assert found is not None
    assert len(found) == 36 * 12 + 1
    assert all(value is None or (value + dt.timedelta(days=1)).day == 1 for value in found)  # type: ignore[operator]


@pytest.fixture(scope="module")
def clinic() -> Curator:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    wards = [{"ward": name, "floor": place, "name": f"ward {name}", "note": None} for place, name in enumerate("ABC")]
    types = {"ward": "text", "floor": "int", "name": "text", "note": "text"}
    curator.public(wards, name="wards", types=types)
    curator.public(wards[:2], name="two", types=types)
    rows = [
        {"who": f"p{n}", "ward": "ABC"[n % 3], "other": "AB"[n % 2], "seen": moments(FIRST, LAST)[n * 20]}
        for n in range(60)
    ]
    curator.protect(
        rows,
        name="t",
        unit="who",
        max_rows=1,
        types={"who": "text", "ward": "text", "other": "text", "seen": "timestamp"},
        bounds={"seen": (str(FIRST), str(LAST))},
        keys={"ward": ["A", "B", "C"]},
        budget=Budget(epsilon=10**9),
    )
    return curator


@pytest.mark.parametrize(
    ("sql", "null"),
    [
        ("SELECT w.name LIKE 'ward%' AS k, COUNT(*) AS v FROM t JOIN wards w USING (ward) GROUP BY 1", False),
        ("SELECT w.floor > 0 AS k, COUNT(*) AS v FROM t JOIN wards w ON t.ward = w.ward GROUP BY 1", False),
        ("SELECT w.note LIKE 'a%' AS k, COUNT(*) AS v FROM t JOIN wards w USING (ward) GROUP BY 1", True),
        ("SELECT w.floor > 0 AS k, COUNT(*) AS v FROM t LEFT JOIN wards w USING (ward) GROUP BY 1", False),
        ("SELECT w.floor > 0 AS k, COUNT(*) AS v FROM t LEFT JOIN two w USING (ward) GROUP BY 1", True),
        ("SELECT w.floor > 0 AS k, COUNT(*) AS v FROM t LEFT JOIN wards w ON t.other = w.ward GROUP BY 1", True),
        ("SELECT t.other LIKE 'A%' AS k, COUNT(*) AS v FROM t JOIN wards w ON t.other = w.ward GROUP BY 1", False),
        ("SELECT other LIKE 'A%' AS k, COUNT(*) AS v FROM t GROUP BY 1", True),
        ("SELECT n > 1 AS k, COUNT(*) AS v FROM (SELECT who, COUNT(*) AS n FROM t GROUP BY who) GROUP BY 1", False),
        ("SELECT x LIKE 'A%' AS k, COUNT(*) AS v FROM (SELECT COALESCE(other, '') AS x FROM t) GROUP BY 1", False),
    ],
)
def test_groups_of_null_are_shown_where_null_is_possible(clinic: Curator, sql: str, null: bool) -> None:
    keys = [row["k"] for row in clinic.ask(sql, epsilon=10**6)]
    assert (None in keys) is null
    assert {True, False} <= set(keys)


def test_answers_at_a_huge_epsilon_have_every_row_once(clinic: Curator) -> None:
    answer = clinic.ask("SELECT LAST_DAY(seen) AS k, COUNT(*) AS v FROM t GROUP BY 1", epsilon=10**6)
    assert len(answer) == 15 + 1  # from January 2024 to March 2025, and NULL
    assert sum(row["v"] for row in answer) == 60
