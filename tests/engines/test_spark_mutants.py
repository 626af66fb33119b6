"""Spark's SQL with a mistake in it: comparisons with the referee would notice each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from discreet.engines import Memory
from discreet.engines.spark import engine as spark_engine
from discreet.engines.sql.statement import Statement, translate_reading
from discreet.errors import QueryFailed
from discreet.plan.expressions.functions import Template
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Groups, Reading, Statistic
from tests.engines.spark_tables import SparkOfRows
from tests.engines.tables import EDGES, B, D, F, N, T, bounding, call, col, lit, witnesses
from tests.engines.test_bounding import COLUMNS, X, crowd, table
from tests.engines.test_mutants import ASKED, SORTED, of_equal_rank
from tests.engines.test_spark_readings import folds, joins, others, windows
from tests.open_groups import unsealed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def spark(spark_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkOfRows]:
    with SparkOfRows(spark_session, tmp_path_factory.mktemp("mutants")) as engine:
        yield engine


def noticed(spark: SparkOfRows, referee: Memory, reading: Reading) -> bool:
    try:
        return unsealed(spark.read(reading)) != unsealed(referee.read(reading))
    except QueryFailed:
        return True


# ------------------------------------------------------------------------------------------------------------ functions

WRONG: dict[str, tuple[Template, Expression]] = {
    "integer division rounds down": (
        Template("CASE WHEN {1} <> 0 THEN try_cast(floor(CAST({0} AS DECIMAL(38,0)) / {1}) AS BIGINT) END"),
        call("integer_divide", N, col("n", N), col("m", N)),
    ),
    "a remainder is never negative": (
        Template("pmod({0}, CASE WHEN {1} <> 0 THEN {1} END)"),
        call("modulo", N, col("n", N), col("m", N)),
    ),
    "halves are rounded to even": (Template("bround({0}, 0)"), call("round", F, col("x", F))),
    "numbers are rounded as they become whole": (
        Template("CASE WHEN abs({0}) < 1e18D THEN CAST(round({0}) AS BIGINT) END"),
        call("to_int", N, col("x", F)),
    ),
    "a week begins on Sunday": (Template("CAST(dayofweek({0}) AS BIGINT)"), call("day_of_week", N, col("d", D))),
    "days are counted backwards": (
        Template("CAST(datediff({0}, {1}) AS BIGINT)"),
        call("days_between", N, col("d", D), lit(EDGES[D][4], D)),
    ),
    "length in bytes": (Template("CAST(octet_length({0}) AS BIGINT)"), call("length", N, col("t", T))),
    "letters by the version of Java": (Template("upper({0})"), call("upper_case", T, col("t", T))),
    "any text that Spark takes for a number": (Template("try_cast({0} AS DOUBLE)"), call("to_float", F, col("t", T))),
    "any text that Spark takes for a day": (Template("try_cast({0} AS DATE)"), call("to_date", D, col("t", T))),
    "places before the first count from the end": (
        Template("substring({0}, CAST({1} % 9 AS INT), CAST({2} AS INT))"),
        call("substring", T, col("t", T), lit(-2, N), lit(4, N)),
    ),
    "a line feed may follow": (
        Template("{0} RLIKE replace({1}, r'\\z', '$')"),
        call("like", B, col("t", T), lit("%b", T)),
    ),
    "a backslash hides the next sign": (
        Template("{0} LIKE 'a!%' ESCAPE '!'"),
        call("like", B, col("t", T), lit("a%", T)),
    ),
}
"""A template that means something else, for a function of the dialect."""


@cache
def edges() -> list[dict[str, Any]]:
    """Rows in which edge values meet, each value at least once."""
    texts = [*EDGES[T], "ab\n", "ab", "1d", "2024"]
    return [
        {
            "id": i,
            "n": EDGES[N][i % len(EDGES[N])],
            "m": EDGES[N][i * 7 // 3 % len(EDGES[N])],
            "x": EDGES[F][i % len(EDGES[F])],
            "d": EDGES[D][i % len(EDGES[D])],
            "t": texts[i % len(texts)],
        }
        for i in range(3 * len(texts))
    ]


@pytest.mark.parametrize("mistake", WRONG)
def test_a_function_that_means_something_else(spark: SparkOfRows, mistake: str) -> None:
    wrong, expression = WRONG[mistake]
    referee, columns = Memory(), {"id": N, "n": N, "m": N, "x": F, "d": D, "t": T}
    for engine in (referee, spark):
        engine.register("t", edges(), columns)
    keys, statistics = witnesses(expression)
    reading = Reading(table="t", keys=(col("id", N), *keys), statistics=statistics)
    assert unsealed(spark.read(reading)) == unsealed(referee.read(reading))
    honest, dialect = spark.dialect, copy.copy(spark.dialect)
    first = expression.arguments[0].type  # type: ignore[attr-defined]
    name = expression.function  # type: ignore[attr-defined]
    dialect._templates = {**honest._templates, name: wrong, (name, first): wrong}
    try:
        spark.dialect = dialect
        assert noticed(spark, referee, reading)
    finally:
        spark.dialect = honest


# ----------------------------------------------------------------------------------------------------------- statements

SUMS = Reading(
    table="t",
    keys=(col("b", T),),
    statistics=(Statistic(kind="sum", argument=col("a", N), low=-(1 << 62), high=1 << 62),),
)
BOUNDED = Reading(
    table="t",
    keys=(col("a", N), col("b", T)),
    bounding=bounding(3, 2),
    statistics=(Statistic(kind="rows"), Statistic(kind="sum", argument=X, exponent=-2, low=-10, high=10)),
)
TEXTS: dict[str, tuple[Reading, str, str]] = {
    "sums of 64 bits": (SUMS, "DECIMAL(38,0)", "BIGINT"),
    "NULL before all in windows": (windows(), "NULLS LAST", "NULLS FIRST"),
    "equal places in windows": (windows(), "RANK()", "ROW_NUMBER()"),
    "the smallest for the largest": (folds(), "MAX(", "MIN("),
    "NULL equals NULL in no public key": (others()[-1], "<=>", "="),
    "inner instead of outer": (joins()[0], "LEFT JOIN", "JOIN"),
    "rows without a match": (joins()[1], "NOT EXISTS", "EXISTS"),
    "each row once": (joins()[2], "UNION ALL", "UNION"),
    "infinities are numbers": (BOUNDED, " AND c2 <= CAST('1.7976931348623157e+308' AS DOUBLE)", ""),
    "halves down": (BOUNDED, "+ 1L, 1)", "+ 0L, 1)"),
    "ids as they are written": (BOUNDED, "discreet_id(", "coalesce("),
    "another digest": (BOUNDED, "1, 7), 16, 10)", "2, 7), 16, 10)"),
    "a group too many": (BOUNDED, "d <= 3", "d <= 4"),
    "rows are not bounded": (BOUNDED, "moved % n >= n - 2", "TRUE"),
    "cells in any order": (others()[1], "array_sort(", "reverse("),
}
"""A reading, and what is written instead of something in its statement."""


def rows() -> list[dict[str, Any]]:
    """People whose ids are written in several ways, with values that are halves, infinite or missing, and huge keys."""
    made = [*table(13, 150, 11), *crowd()[:60]]
    values = (0.125, float("inf"), float("-inf"), float("nan"), None, -0.375)
    made += [
        {"u": u, "a": a, "b": b, "x": values[a % 6]} for u in ("Zoe\u0308 ", "Zo\u00eb") for a in range(6) for b in "01"
    ]
    return [*made, *({"u": "9", "a": (1 << 62) + i, "b": "huge", "x": 1.0} for i in range(5))]


@pytest.fixture
def people(spark: SparkOfRows) -> Memory:
    """The referee, which has the same tables."""
    referee, public = Memory(), [{"c": c, "d": d} for c, d in (("1", 7), ("1", 5), (None, 1))]
    for engine in (referee, spark):
        engine.register("t", rows(), COLUMNS)
        engine.register("p", public, {"c": T, "d": N})
    return referee


def instead(old: str, new: str) -> Callable[..., Statement]:
    def written(*arguments: Any) -> Statement:
        made = translate_reading(*arguments)
        assert old in made.sql, f"{old} is not in {made.sql}"
        return replace(made, sql=made.sql.replace(old, new))

    return written


@pytest.mark.parametrize("mistake", TEXTS)
def test_a_statement_that_says_something_else(
    spark: SparkOfRows, people: Memory, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, old, new = TEXTS[mistake]
    assert unsealed(spark.read(reading)) == unsealed(people.read(reading))
    monkeypatch.setattr(spark_engine, "translate_reading", instead(old, new))
    assert noticed(spark, people, reading)


@pytest.mark.parametrize("mistake", SORTED)
def test_a_mistake_in_bounding(spark: SparkOfRows, mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    referee, alike = Memory(), of_equal_rank()
    for engine in (referee, spark):
        engine.register("t", alike, COLUMNS)
    right: Groups = unsealed(referee.read(ASKED))
    assert unsealed(spark.read(ASKED)) == right
    SORTED[mistake](monkeypatch)
    assert unsealed(spark.read(ASKED)) != right
