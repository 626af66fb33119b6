"""Expressions with huge, tiny or unbounded values are answered or refused with a typed error; they never crash."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import DiscreetError, InternalError, QueryFailed
from discreet.noise import SeededBits
from discreet.plan.expressions.interval_arithmetic import Span
from discreet.privacy import Budget
from tests.curator.fuzz import Draw

TYPES = {
    "person": "int",
    "n": "int",
    "big": "int",
    "free": "int",
    "x": "float",
    "tiny": "float",
    "huge": "float",
    "wild": "float",
    "text": "text",
    "key": "text",
    "flag": "bool",
    "day": "date",
    "at": "timestamp",
}
BOUNDS: dict[str, Any] = {
    "n": (0, 100),
    "big": (-(2**62), 2**62),
    "x": (0, 1000),
    "tiny": (-1e-300, 1e-300),
    "huge": (-1e300, 1e300),
    "day": ("2024-01-01", "2025-03-31"),
    "at": ("0001-01-01", "9999-12-31"),
}
ROWS = [
    {
        "person": place % 7,
        "n": place,
        "big": (-1) ** place * 2 ** (place % 62),
        "free": 7**place % 2**62,
        "x": place * 3.7,
        "tiny": place * 1e-302,
        "huge": (-1.0) ** place * 10.0 ** (place * 12 % 300),
        "wild": [float("inf"), float("nan"), 5e-324, -1e308, 0.0, None][place % 6],
        "text": ["", "12", "2.5", "abc", None][place % 5],
        "key": "ab"[place % 2],
        "flag": [True, False, None][place % 3],
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=place * 9),
        "at": dt.datetime(1 + place * 200, 2, 3, 4, 5, 6),
    }
    for place in range(40)
]

RULES = {
    "N": (
        "n|big|free|{i}|({N} + {N})|({N} - {N})|({N} * {N})|({N} // {N})|({N} % {N})|ABS({N})|LENGTH({T})|SIGN({F})|"
        "CAST({F} AS INT)|YEAR({D})|MONTH({D})|DATE_DIFF('day', {D}, {D})|DATE_DIFF('second', at, {S})|"
        "WIDTH_BUCKET({F}, 0, 10, 5)|CASE WHEN {B} THEN {N} ELSE {N} END|COALESCE({N}, {N})|NULLIF({N}, {N})|"
        "TRY_CAST({T} AS INT)|GREATEST({N}, {N})|DAY(LAST_DAY({D}))|POSITION('a' IN {T})"
    ),
    "F": (
        "x|tiny|huge|wild|{f}|({F} + {F})|({F} - {F})|({F} * {F})|({F} / {F})|({N} / {F})|({F} / {N})|({N} / {N})|"
        "ABS({F})|-{F}|ROUND({F})|ROUND({F}, 2)|ROUND({F}, -3)|FLOOR({F})|CEIL({F})|TRUNC({F})|SQRT({F})|LN({F})|"
        "LOG({F})|LOG2({F})|EXP({F})|POWER({F}, {F})|POWER({F}, 3)|POWER({F}, -2)|{F} ^ 2|CBRT({F})|SIN({F})|TAN({F})|"
        "ASIN({F})|ATAN2({F}, {F})|SINH({F})|COSH({F})|TANH({F})|LOG({F}, {F})|GREATEST({F}, {F})|LEAST({F}, {N})|"
        "COALESCE({F}, {F})|CAST({N} AS DOUBLE)|CASE WHEN {B} THEN {F} ELSE {F} END|CAST({T} AS DOUBLE)|DEGREES({F})|"
        "EPOCH({S} - at)"
    ),
    "B": (
        "flag|({N} > {N})|({F} <= {F})|({F} = {F})|({T} LIKE 'a%')|({D} < DATE '2024-07-01')|({N} IN (1, 2))|"
        "({F} IS NULL)"
    ),
    "T": "text|key|'2.5'|CAST({N} AS TEXT)|UPPER({T})|SUBSTRING({T}, {N}, {N})|CONCAT({T}, {T})|CAST({D} AS TEXT)",
    "D": "day|CAST({S} AS DATE)|({D} + INTERVAL 3 MONTH)|({D} - INTERVAL 1 DAY)|DATE_TRUNC('month', {D})|LAST_DAY({D})",
    "S": "at|(at + INTERVAL 1 HOUR)|TIMESTAMP '2024-01-01 00:00:00'",
    "i": "0|1|-1|7|1000000|9223372036854775807|-9223372036854775807",
    "f": "0.0|0.5|-2.5|1e-320|1e-300|1e300|1.7976931348623157e308|-1e308",
}
LEAVES = {"N": "n|big|free|{i}", "F": "x|tiny|huge|wild|{f}", "B": "flag", "T": "text|key", "D": "day", "S": "at"}
QUESTIONS = (
    "SELECT COUNT({F}) AS v FROM t",
    "SELECT SUM({F}) AS v FROM t",
    "SELECT SUM({N}) AS v FROM t",
    "SELECT AVG({F}) AS v, COUNT(*) AS n FROM t",
    "SELECT AVG({N}) AS v FROM t WHERE {B}",
    "SELECT VARIANCE({F}) AS v FROM t",
    "SELECT STDDEV({N}) AS v FROM t",
    "SELECT SKEWNESS({F}) AS v FROM t",
    "SELECT CORR({F}, {N}) AS v FROM t",
    "SELECT REGR_SLOPE({F}, {F}) AS v FROM t",
    "SELECT MEDIAN({F}) AS v FROM t",
    "SELECT QUANTILE({N}, 0.9) AS v FROM t",
    "SELECT MIN({F}) AS v, MAX({N}) AS w FROM t",
    "SELECT MAX({D}) AS v FROM t",
    "SELECT COUNT(DISTINCT {F}) AS v FROM t",
    "SELECT SUM(DISTINCT {N}) AS v FROM t",
    "SELECT HISTOGRAM({F}, 0, 10, 50) AS v FROM t",
    "SELECT HISTOGRAM({F}) AS v FROM t",
    "SELECT HISTOGRAM({N}, 7) AS v FROM t",
    "SELECT HISTOGRAM({F}, -1e308, 0, 1e308) AS v FROM t",
    "SELECT {N} AS k, COUNT(*) AS v FROM t GROUP BY 1",
    "SELECT FLOOR({F}) AS k, COUNT(*) AS v FROM t GROUP BY 1",
    "SELECT ROUND({F}, 1) AS k, SUM(x) AS v FROM t GROUP BY 1",
    "SELECT {D} AS k, COUNT(*) AS v FROM t GROUP BY 1",
    "SELECT {B} AS k, AVG({F}) AS v FROM t GROUP BY 1",
    "SELECT WIDTH_BUCKET({F}, 0, 10, 5) AS k, COUNT(*) AS v FROM t GROUP BY 1",
    "SELECT key, SUM({F}) / COUNT(*) AS v FROM t GROUP BY key",
    "SELECT key, EXP(SUM({N})) AS v, SUM(x) * 1e308 AS w FROM t GROUP BY key",
    "SELECT AVG(d) AS v FROM (SELECT person, SUM({F}) AS d FROM t GROUP BY person)",
    "SELECT MAX(d) AS v FROM (SELECT person, AVG({N}) AS d FROM t GROUP BY person)",
    "SELECT MODE({N}) AS v FROM t",
)


def everything() -> Curator:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(5))
    curator.protect(
        ROWS,
        name="t",
        unit="person",
        types=TYPES,
        bounds=BOUNDS,
        keys={"key": ["a", "b"]},
        max_rows=3,
        max_groups=2,
        budget=Budget(epsilon=10**9, delta="0.1"),
    )
    return curator


def written(draw: Draw, text: str, depth: int) -> str:
    """A text with its places filled, leaves alone once it is deep."""

    def filled(place: re.Match[str]) -> str:
        kind = place[1]
        options = (RULES if depth > 0 else {**RULES, **LEAVES})[kind]
        return written(draw, draw.one(options.split("|")), depth - 1)

    return re.sub(r"\{(\w)\}", filled, text)


def outcome(curator: Curator, sql: str, *, asks: bool) -> str:
    """What became of a question: answered or refused; everything else fails."""
    try:
        curator.explain(sql, epsilon=1)
        if asks:
            str(curator.ask(sql, epsilon=1))
    except (InternalError, QueryFailed) as error:
        pytest.fail(f"{sql}: {type(error).__name__} {error}")
    except DiscreetError:
        return "refused"
    except Exception as error:  # noqa: BLE001 - that there is none is what is tested
        pytest.fail(f"{sql}: {type(error).__name__} {error}")
    return "answered"


def outcomes(seed: int, depth: int, rounds: int) -> Counter[str]:
    draw, found, curator = Draw(seed), Counter[str](), everything()
    for place, text in enumerate(QUESTIONS * rounds):
        found[outcome(curator, written(draw, text, depth), asks=place % 4 == 0)] += 1
    return found


@pytest.mark.ci
@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
def test_simple_expressions_in_every_aggregate(seed: int) -> None:
    found = outcomes(seed, depth=1, rounds=1)
    assert min(found["answered"], found["refused"]) > 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_deep_expressions_in_every_aggregate(seed: int) -> None:
    assert outcomes(seed, depth=3, rounds=2)["answered"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT HISTOGRAM(LENGTH(text) / x, 0, 10, 50) AS v FROM t",
        "SELECT HISTOGRAM(LENGTH(text) / tiny, 0, 10, 50) AS v FROM t",
        "SELECT HISTOGRAM(free / huge, 3) AS v FROM t",
        "SELECT WIDTH_BUCKET(LENGTH(text) / x, 0, 10, 5) AS k, COUNT(*) AS v FROM t GROUP BY 1",
        "SELECT LENGTH(text) / x > 3 AS k, COUNT(*) AS v FROM t GROUP BY 1",
        "SELECT COUNT(*) AS v FROM t WHERE wild * huge > free / tiny",
        "SELECT AVG(GREATEST(LEAST(wild + huge * huge, 9), 0)) AS v FROM t",
    ],
)
def test_a_quotient_without_bounds_is_no_crash(sql: str) -> None:
    outcome(everything(), sql, asks=True)


EDGES = (
    Fraction(0),
    Fraction(1),
    Fraction(-3, 7),
    Fraction(10) ** 400,
    -(Fraction(10) ** 400),
    1 / Fraction(10) ** 400,
)


@pytest.mark.parametrize("one", [*EDGES, math.inf, -math.inf])
@pytest.mark.parametrize("other", [*EDGES, math.inf, -math.inf])
def test_interval_arithmetic_takes_ends_beyond_doubles(one: Fraction | float, other: Fraction | float) -> None:
    """A rational that is larger than all doubles, beside an end that is infinite: sums, products and quotients."""
    left = Span(min(one, Fraction(2)), max(one, Fraction(2)))
    right = Span(min(other, Fraction(3)), max(other, Fraction(3)))
    for made in (left + right, left - right, left * right, left / right, -left, abs(left)):
        assert made.low <= made.high
        assert all(not isinstance(end, float) or math.isinf(end) for end in (made.low, made.high))
    assert (left + right).low <= 5 <= (left + right).high
    assert (left * right).low <= 6 <= (left * right).high
