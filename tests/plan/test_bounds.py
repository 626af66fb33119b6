"""Bounds of expressions, and the functions that have none."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.model.schema import ColumnBounds
from discreet.sql.functions.grammar import read
from discreet.sql.refusals import SqlSource
from discreet.sql.scope import Scope
from discreet.sql.select import select
from tests.cases import every
from tests.plan.tables import SCHEMAS, VISITS


def found(text: str) -> ColumnBounds | None:
    source = SqlSource(f"SELECT {text}", SCHEMAS, 7)
    scope = Scope(source=source, schema=VISITS, alias="visits")
    return bounds(read(select(source).expressions[0], scope), VISITS)


EXACT: list[tuple[str, tuple[float, float]]] = [
    ("age", (0, 120)),
    ("-age", (-120, 0)),
    ("age + 1", (1, 121)),
    ("age - index", (-5, 119)),
    ("age * 2", (0, 240)),
    ("age * debt", (-1200, 1200)),
    ("debt * debt", (0, 100)),
    ("(debt + 1) * (1 + debt)", (-99, 121)),  # conservative: the two are not known to be the same
    ("(index - 3) * (index - 3)", (0, 4)),
    ("ABS(debt)", (0, 10)),
    ("ABS(age - 60)", (0, 60)),
    ("charge / 1000", (0, 50)),
    ("age / index", (0, 120)),
    ("age // 7", (0, 17)),
    ("age % 10", (0, 9)),
    ("(age - 60) % 10", (-9, 9)),
    ("GREATEST(LEAST(weight, 100), 0)", (0, 100)),
    ("LEAST(GREATEST(weight, 0), 100)", (0, 100)),
    ("GREATEST(age, 50)", (50, 120)),
    ("GREATEST(age, debt)", (-10, 120)),  # either may be NULL, and then the other counts
    ("LEAST(age, debt)", (-10, 120)),
    ("LEAST(COALESCE(age, 3), 7)", (0, 7)),
    ("CASE WHEN smoker THEN age END", (0, 120)),
    ("CASE WHEN smoker THEN 1 ELSE 0 END", (0, 1)),
    ("CASE WHEN smoker THEN -age ELSE charge END", (-120, 50_000)),
    ("COALESCE(age, -5)", (-5, 120)),
    ("NULLIF(age, 3)", (0, 120)),
    ("FLOOR(debt / 4)", (-3, 2)),
    ("CEIL(debt / 4)", (-2, 3)),
    ("ROUND(debt / 4)", (-3, 3)),
    ("CAST(debt / 4 AS INT)", (-2, 2)),
    ("CAST(smoker AS INT)", (0, 1)),
    ("CAST(age AS DOUBLE)", (0, 120)),
    ("MONTH(day)", (1, 12)),
    ("QUARTER(day)", (1, 4)),
    ("DAY(day)", (1, 31)),
    ("ISODOW(day)", (1, 7)),
    ("HOUR(seen)", (0, 23)),
    ("CASE WHEN weight > 100 THEN 100 WHEN weight < 0 THEN 0 ELSE weight END", (0, 100)),
    ("CASE WHEN 18 <= age THEN age END", (18, 120)),
    ("CASE WHEN age > 17 AND age < 65 THEN age ELSE 0 END", (0, 64)),
    ("CASE WHEN age >= 18 THEN age ELSE -age END", (-17, 120)),
    ("CASE WHEN age > 17.5 THEN age END", (18, 120)),
    ("CASE WHEN age = 7 THEN age END", (0, 7)),
    ("CASE WHEN NOT (age > 10) THEN age END", (0, 10)),
    ("CASE WHEN age < 3 OR age > 9 THEN 5 ELSE age END", (3, 9)),
    ("CASE WHEN visits_before BETWEEN 1 AND 9 THEN visits_before END", (1, 9)),
    ("charge / (index - 1)", (0, 50_000)),
    ("charge / (age - 60)", (-50_000, 50_000)),
    ("(100 + index) % 10", (1, 5)),
    ("COALESCE(7, weight)", (0, 7)),
    ("LENGTH(SUBSTRING(ward, 2, 5))", (0, 5)),
    ("LENGTH(CAST(age AS TEXT))", (1, 20)),
    ("1", (0, 1)),
    ("-3", (-3, 0)),
    ("0", (0, 1)),
    ("CAST(NULL AS INT)", (0, 1)),
]


@every(("text", "ends"), EXACT)
def test_bounded(text: str, ends: tuple[float, float]) -> None:
    assert found(text) == ColumnBounds(Fraction(ends[0]), Fraction(ends[1]))


UNBOUNDED = [
    "weight",
    "visits_before",
    "patient_id + age",
    "age / debt",
    "1 / (debt - 4)",
    "CASE WHEN age > 10 THEN weight END",
    "CASE WHEN weight > 10 THEN weight END",
    "CASE WHEN smoker OR weight < 10 THEN weight ELSE 0 END",
    "GREATEST(weight, 0)",
    "LEAST(weight, 100)",
    "CASE WHEN smoker THEN age ELSE weight END",
    "COALESCE(age, weight)",
    "CAST(ward AS INT)",
    "CAST(ward AS DOUBLE)",
    "LENGTH(ward)",
    "YEAR(day)",
    "ward",
    "smoker",
    "day",
]


@every("text", UNBOUNDED)
def test_unbounded(text: str) -> None:
    assert found(text) is None


def test_decimals_are_rounded_outwards() -> None:
    """0.1 is not a double: the bounds of a product by it hold the doubles around the true ones."""
    ends = found("charge * 0.1")
    assert ends is not None
    assert ends.high >= Fraction(50_000) * Fraction(0.1)
    assert float(ends.high) == pytest.approx(5_000)


def test_whole_numbers_stay_in_64_bits() -> None:
    assert found("age * 9223372036854775807") == ColumnBounds(Fraction(0), Fraction(2**63 - 1))
