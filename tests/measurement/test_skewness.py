"""Skewness: exact without noise, held by its interval, within what any rows give, and paid for as a row can move it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import Curator
from discreet.engines import DuckDB
from discreet.measurement.aggregates import estimators
from discreet.measurement.aggregates import skewness as skewness_module
from discreet.measurement.aggregates.skewness import SkewnessEstimator
from discreet.measurement.intervals.arithmetic import Ends
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases.argument_moments import power_error
from discreet.measurement.releases.layouts import Layout, build_centred_layout, build_paired_layout
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.plan.post.outputs import NoisyNumber
from discreet.privacy import Budget, Neighbours
from tests.curator.test_coverage import AGES, CLIPPED, TIMES, curator, error, hits
from tests.effort import tried
from tests.measurement.test_aggregates import X, Y, aggregates, ints, needs, statistics, value
from tests.plan.test_stability import check_bound

LAYOUTS = pytest.mark.parametrize("build", [build_paired_layout, build_centred_layout])
Build = Callable[[Any], Layout]


def truth(values: list[float]) -> float | None:
    """By its definition."""
    n, mean = len(values), math.fsum(values) / max(len(values), 1)
    second, third = (math.fsum((x - mean) ** k for x in values) / max(n, 1) for k in (2, 3))
    return None if n < 3 or second == 0 else math.sqrt(n * (n - 1)) / (n - 2) * third / second**1.5


# ---------------------------------------------------------------------------------------------------------- sensitivity


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("counted", [False, True])
@LAYOUTS
def test_no_unit_moves_the_sums_farther_than_claimed(build: Build, counted: bool, neighbours: Neighbours) -> None:
    """By brute force over all rows of one unit: no neighbour is farther, and one that comes or goes is as far."""
    asked: list[tuple[str, Any]] = [("skewness", X), *([("count", None)] if counted else [])]
    made = build(needs(*asked, low=-2, high=5)).forms
    forms = {"rows" if form.statistics[0].kind == "rows" else "pair and cubes": form for form in made}
    for name in forms:
        for limits in (Limits(1, 1), Limits(1, 2)):
            check_bound(name, limits, "ab", neighbours, forms)


def test_all_moments_of_an_argument_share_one_form() -> None:
    asked = [(kind, X) for kind in ("mean", "var_pop", "skewness", "sum", "count_values")]
    assert [len(form.statistics) for form in build_paired_layout(needs(("count", None), *asked)).forms] == [5]
    assert [len(form.statistics) for form in build_centred_layout(needs(("count", None), *asked)).forms] == [1, 4]


# ------------------------------------------------------------------------------------------------------------ exactness


@LAYOUTS
@given(st.lists(st.none() | ints, max_size=6).map(tuple))
def test_without_noise_every_mean_is_exact(build: Build, rows: tuple[int | None, ...]) -> None:
    layout = build(needs(("skewness", X)))
    found = estimators(aggregates(("skewness", X)), layout.sources)["#0"]
    assert isinstance(found, SkewnessEstimator)
    exact = statistics(layout, rows)
    clipped = [min(max(x, -20), 30) - found.spread.origin for x in rows if x is not None]
    means = [value(part, exact) for part in (found.spread.squares, found.cubes)]
    expected = [sum(x**k for x in clipped) / Fraction(len(clipped)) for k in (2, 3)] if clipped else [None, None]
    assert means == expected


def test_rounding_moves_a_cube_no_further_than_its_error() -> None:
    layout = build_paired_layout(needs(("skewness", Y)))
    steps = layout.sources.moments[Y].grid
    assert steps.error > 0
    for x in (-20.0, -19.9999999, 4.9999993, 29.99999, 30.0):
        step = math.floor(Fraction(x) / steps.step + Fraction(1, 2))
        moved = (Fraction(x) - steps.middle * steps.step) ** 3 - (step - steps.middle) ** 3 * steps.step**3
        assert abs(moved) <= power_error(steps, 3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("delta", ["0", "1e-3"])
def test_with_much_budget_answers_are_those_of_plain_sql(unit: str | None, delta: str) -> None:
    sql = (
        "SELECT g, SKEWNESS(x) AS a, SKEWNESS(y) AS b, SKEWNESS(x - 3 * y) FILTER (WHERE x > 5) AS c, "
        "SKEWNESS(x * 1000000000) AS d, AVG(x) AS m, STDDEV(x) AS s, COUNT(*) AS n FROM t GROUP BY g"
    )
    rows = [
        {"id": i // 2, "g": i % 3, "x": None if i % 7 == 0 else i * i % 44 - 3, "y": (i * 37 % 1000) ** 2 / 1e5 - 1}
        for i in range(300)
    ]
    table = pl.DataFrame(rows, schema={"id": pl.Int64, "g": pl.Int64, "x": pl.Int64, "y": pl.Float64})
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(4))
    made.protect(
        table,
        name="t",
        unit=unit,
        bounds={"x": (-3, 40), "y": (-1, 9)},
        keys={"g": [0, 1, 2]},
        max_groups=3 if unit else 1,
        max_rows=2 if unit else 1,
        budget=Budget(epsilon=10**15, delta="1e-2"),
    )
    answer = made.ask(sql, epsilon=10**13, delta=delta)
    plain = duckdb.connect()
    plain.register("t", table)
    for row, (_, *expected) in zip(answer, plain.execute(f"{sql} ORDER BY g").fetchall(), strict=True):
        assert [row[name] for name in ("a", "b", "c", "d", "m", "s", "n")] == pytest.approx(expected, rel=1e-3)


# ------------------------------------------------------------------------------------------------------------ intervals

SQL = "SELECT g, SKEWNESS(age) AS w, VARIANCE(age) AS v, AVG(age) AS m, COUNT(*) AS n FROM t GROUP BY g"
TRUTH = truth([float(x) for x in CLIPPED] * TIMES)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("options", "law"),
    [
        ({"epsilon": "40", "delta": 0}, "laplace"),
        ({"epsilon": "60", "delta": "1e-4", "limits": Limits(20, 1)}, "gaussian"),
    ],
    ids=["Laplace", "Gaussian"],
)
def test_intervals_cover_as_stated(options: dict[str, Any], law: str) -> None:
    made = curator(AGES * TIMES, unit="id", max_groups=1)
    assert made.explain(SQL, **options).program.noise.law == law
    for confidence in (0.95, 0.5):
        answer = made.ask(SQL, confidence=confidence, **options)
        assert hits(answer, "w", TRUTH) >= confidence - error(confidence)
        assert all(row["w"] is None or row["w_low"] <= row["w"] <= row["w_high"] for row in answer)
    wide = sorted(row["w_high"] - row["w_low"] for row in answer)
    assert wide[len(wide) // 2] < math.sqrt(len(CLIPPED) * TIMES)  # half of all possible numbers is no answer


@pytest.mark.ci
def test_coverage_notices_a_forgotten_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ages whose mean lies far from the middle: without its part, moments are those about the middle."""
    made = curator((3, 3, 5, 9) * TIMES)
    sql, right = "SELECT g, SKEWNESS(age) AS w FROM t GROUP BY g", truth([3.0, 3.0, 5.0, 9.0] * TIMES)
    assert hits(made.ask(sql, epsilon=10**4, delta=0), "w", right) >= 0.95 - error(0.95)
    monkeypatch.setattr(skewness_module, "product", lambda one, _: Ends(0 * one.low, 0 * one.low, 0 * one.low))
    assert hits(curator((3, 3, 5, 9) * TIMES).ask(sql, epsilon=10**4, delta=0), "w", right) < 0.5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ages", [(0, 0, 0), (0, 120), (7,), (None,), (0, 0, 120), ()], ids=str)
def test_constants_few_values_and_nothing(ages: tuple[int | None, ...]) -> None:
    answer = curator(ages).ask("SELECT g, SKEWNESS(age) AS w, COUNT(age) AS n FROM t GROUP BY g", epsilon=4, delta=0)
    assert all(math.isfinite(row["w_low"]) and math.isfinite(row["w_high"]) for row in answer)
    assert all(row["w"] is None or row["w_low"] <= row["w"] <= row["w_high"] for row in answer)
    expected = truth([float(age) for age in ages if age is not None])
    if expected is not None:
        assert hits(answer, "w", expected) >= 0.95 - error(0.95)


huge = st.integers(-(10**60), 10**60)


@tried(60)
@given(
    st.lists(st.lists(huge | st.integers(-5, 5), min_size=8, max_size=8), min_size=1, max_size=4),
    st.sampled_from([X, Y]),
    st.sampled_from([build_paired_layout, build_centred_layout]),
    st.sampled_from(["laplace", "gaussian"]),
    st.fractions(Fraction(1, 1000), 10**9),
    st.fractions(Fraction(1, 10**6), Fraction(9, 10)),
)
def test_every_release_has_a_finite_answer(  # noqa: PLR0917 - hypothesis passes them in order
    rows: list[list[int]], argument: Any, build: Any, law: Any, scale: Fraction, outside: Fraction
) -> None:
    layout: Layout = build(needs(("skewness", argument)))
    width = sum(len(form.statistics) for form in layout.forms)
    (found,) = estimators(aggregates(("skewness", argument)), layout.sources).values()
    released = np.array([row[:width] for row in rows], dtype=object)
    noise = Noise(law, (scale,) * width)
    number = layout.sources.moments[argument].power(0)
    for row, cell in zip(released, found.cells(noise, released, outside), strict=True):
        assert isinstance(cell, NoisyNumber)
        most = max(Fraction(3), Fraction(number.value(row)) + noise.reach(number, outside / 4) + 1)
        limit = math.sqrt(most) * (1 + 1e-9)
        assert -limit <= cell.low <= cell.high <= limit
        assert cell.value is None or cell.low <= cell.value <= cell.high


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=12))
def test_no_rows_give_more_than_the_root_of_their_number(values: list[float]) -> None:
    found = truth(values) if max(values) - min(values) > 1e-3 else None  # apart from what doubles lose
    if found is not None:
        assert abs(found) <= math.sqrt(len(values)) * (1 + 1e-6)
