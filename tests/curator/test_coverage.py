"""Intervals hold the kept, clipped table's value as often as the law of their noise says, and never less than stated.

One question about many equal groups gives as many independent intervals. With N of them, a coverage p is measured with
a standard error of sqrt(p (1 - p) / N); four of these are allowed, on fixed seeds.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import polars as pl
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget

GROUPS = 2_000
TIMES = 10
AGES = (3, 30, 41, 55, 200, None)  # of each group: one beyond the bounds, one missing
CLIPPED = (3, 30, 41, 55, 120)
TRUTH = {"n": Fraction(6), "k": Fraction(5), "s": Fraction(sum(CLIPPED)), "m": Fraction(sum(CLIPPED), 5)}


@cache  # frames never change
def table(ages: tuple[int | None, ...]) -> pl.DataFrame:
    columns = {
        "id": [f"{g}-{i}" for g in range(GROUPS) for i in range(len(ages))],
        "g": [g for g in range(GROUPS) for _ in ages],
        "age": ages * GROUPS,
        "one": [1] * len(ages) * GROUPS,
    }
    return pl.DataFrame(columns, schema={"id": pl.String, "g": pl.Int64, "age": pl.Int64, "one": pl.Int64})


def curator(ages: tuple[int | None, ...] = AGES, bounds: tuple[int, int] = (0, 120), **declared: Any) -> Curator:
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(29))
    made.protect(
        table(ages),
        name="t",
        bounds={"age": bounds, "one": (0, 1)},
        keys={"g": list(range(GROUPS))},
        budget=Budget(epsilon=10**6, delta="1e-3"),
        **declared,
    )
    return made


def hits(answer: Any, name: str, truth: Any) -> float:
    return float(sum(row[f"{name}_low"] <= truth <= row[f"{name}_high"] for row in answer) / len(answer))


def error(p: float) -> float:
    return 4 * math.sqrt(p * (1 - p) / GROUPS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_a_count_by_laplace_noise_covers_as_its_law_says(epsilon: str, confidence: float) -> None:
    """P(|Z| <= t) = 1 - 2 a^(t + 1) / (1 + a) for discrete Laplace noise."""
    answer = curator().ask("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=epsilon, delta=0, confidence=confidence)
    half = answer[0]["n_high"] - answer[0]["n"]
    a = math.exp(-float(epsilon))
    truth = 1 - 2 * a ** (half + 1) / (1 + a)
    assert truth >= confidence > 1 - 2 * a**half / (1 + a)  # no shorter interval would do
    assert abs(hits(answer, "n", 6) - truth) <= error(truth)


def test_a_count_by_gaussian_noise_covers_as_its_law_says() -> None:
    """P(z) ~ exp(-z^2 / (2 sigma^2)), summed over the interval."""
    made = curator(unit="id", max_groups=50)
    sql, options = "SELECT g, COUNT(*) AS n FROM t GROUP BY g", {"epsilon": "5", "delta": "1e-6"}
    program = made.explain(sql, **options).program  # type: ignore[arg-type]
    assert program.noise.law == "gaussian"
    answer = made.ask(sql, **options)  # type: ignore[arg-type]
    half, sigma = answer[0]["n_high"] - answer[0]["n"], float(program.noise.scales[0])
    law = [math.exp(-(z**2) / (2 * sigma**2)) for z in range(200)]
    truth = (law[0] + 2 * sum(law[1 : half + 1])) / (law[0] + 2 * sum(law[1:]))
    assert truth >= 0.95
    assert abs(hits(answer, "n", 6) - truth) <= error(truth)


EVERYTHING = "SELECT g, COUNT(*) AS n, COUNT(age) AS k, SUM(age) AS s, AVG(age) AS m FROM t GROUP BY g"
SHARED = "SELECT g, COUNT(*) AS n, AVG(age) AS m, AVG(one) AS o, AVG(2 * age) AS d FROM t GROUP BY g"


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("sql", "options", "law"),
    [
        (EVERYTHING, {"epsilon": "2", "delta": 0}, "laplace"),
        (SHARED, {"epsilon": "8", "delta": 0}, "laplace"),
        (SHARED, {"epsilon": "20", "delta": "1e-4", "limits": Limits(20, 1)}, "gaussian"),
    ],
    ids=["paired", "shared, Laplace", "shared, Gaussian"],
)
def test_what_is_computed_from_several_statistics_covers_as_stated(sql: str, options: dict[str, Any], law: str) -> None:
    """At least as often as stated, and not much more: fine noise is hardly rounded, so the law allows both."""
    made = curator(AGES * TIMES, unit="id", max_groups=1)
    assert made.explain(sql, **options).program.noise.law == law
    for confidence, more in ((0.95, 0.02), (0.5, 0.1)):
        answer = made.ask(sql, confidence=confidence, **options)
        for name in {"n", "k", "s", "m"} & set(answer.columns) - ({"n"} if sql == SHARED else set()):
            share = hits(answer, name, TRUTH[name] * (1 if name == "m" else TIMES))
            assert share >= confidence - error(confidence), name
            assert share <= confidence + more + error(confidence), name


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ages", [(0, 0, 0), (120, 120), (None,), ()], ids=str)
def test_means_at_the_ends_and_of_nothing(ages: tuple[int | None, ...]) -> None:
    """At an end half of the misses are cut off by the bounds; without values every number is as good as another."""
    answer = curator(ages).ask("SELECT g, AVG(age) AS m FROM t GROUP BY g", epsilon=1, delta=0)
    assert all(0 <= row["m_low"] <= row["m"] <= row["m_high"] <= 120 for row in answer)
    if ages and ages[0] is not None:
        assert hits(answer, "m", ages[0]) >= 0.95 - error(0.95)


@pytest.mark.ci
def test_ratios_of_aggregates_cover_too() -> None:
    """Each part has half of the risk, so the whole has at most all of it."""
    answer = curator(AGES * TIMES).ask("SELECT g, SUM(age) / COUNT(*) AS r FROM t GROUP BY g", epsilon=1, delta=0)
    assert hits(answer, "r", sum(CLIPPED) / 6) >= 0.95 - error(0.95)


def test_bounds_far_from_zero() -> None:
    answer = curator((1003, 1001, 1009), bounds=(1000, 1010)).ask(
        "SELECT g, SUM(age) AS s, COUNT(*) AS n, AVG(age) AS m FROM t GROUP BY g", epsilon=1, delta=0
    )
    for name, truth in (("s", 3013), ("n", 3), ("m", 3013 / 3)):
        assert hits(answer, name, truth) >= 0.95 - error(0.95)
