"""Variances: intervals hold the kept, clipped table's value, much budget gives plain SQL's, nothing is undefined."""

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
from discreet.measurement.aggregates import covariance as covariance_module
from discreet.measurement.aggregates import estimators
from discreet.measurement.aggregates import variance as variance_module
from discreet.measurement.aggregates.variance import VarianceEstimator
from discreet.measurement.intervals.arithmetic import Ends
from discreet.measurement.intervals.estimators import RatioEstimator
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases.layouts import Layout, build_centred_layout, build_paired_layout
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.plan.post.outputs import NoisyNumber
from discreet.privacy import Budget
from tests.curator.test_coverage import AGES, CLIPPED, GROUPS, TIMES, curator, error, hits
from tests.effort import tried
from tests.measurement.test_aggregates import X, Y, aggregates, needs
from tests.measurement.test_joint import KINDS, layout
from tests.measurement.test_joint import aggregates as joint_aggregates

MEAN = Fraction(sum(CLIPPED), len(CLIPPED))
POPULATION = float(sum((x - MEAN) ** 2 for x in CLIPPED) / len(CLIPPED))
NUMBER = len(CLIPPED) * TIMES
SAMPLE = POPULATION * NUMBER / (NUMBER - 1)
TRUTH = {"v": POPULATION, "s": SAMPLE, "d": math.sqrt(POPULATION), "e": math.sqrt(SAMPLE), "m": float(MEAN)}
SQL = (
    "SELECT g, VAR_POP(age) AS v, VARIANCE(age) AS s, STDDEV_POP(age) AS d, STDDEV(age) AS e, AVG(age) AS m, "
    "COUNT(*) AS n FROM t GROUP BY g"
)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("sql", "options", "law"),
    [
        (SQL, {"epsilon": "2", "delta": 0}, "laplace"),
        (SQL, {"epsilon": "20", "delta": "1e-4", "limits": Limits(20, 1)}, "gaussian"),
    ],
    ids=["Laplace", "Gaussian"],
)
def test_intervals_cover_as_stated(sql: str, options: dict[str, Any], law: str) -> None:
    made = curator(AGES * TIMES, unit="id", max_groups=1)
    assert made.explain(sql, **options).program.noise.law == law
    for confidence in (0.95, 0.5):
        answer = made.ask(sql, confidence=confidence, **options)
        for name, truth in TRUTH.items():
            assert hits(answer, name, truth) >= confidence - error(confidence), name
    wide = [row["v_high"] - row["v_low"] for row in answer]
    assert sorted(wide)[GROUPS // 2] < 60**2 / 2  # half of all possible numbers is no answer


def covered(answer: Any) -> float:
    return hits(answer, "v", POPULATION)


def asked() -> Any:
    sql = "SELECT g, VAR_POP(age) AS v FROM t GROUP BY g"
    return curator(AGES * TIMES).ask(sql, epsilon=2, delta=0, confidence=0.5)


@pytest.mark.parametrize("mutant", ["squares without their mean", "a reach of a tenth"])
def test_coverage_notices(monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    if mutant == "a reach of a tenth":
        right: Callable[..., Any] = RatioEstimator.ends
        monkeypatch.setattr(RatioEstimator, "ends", lambda self, noise, rows, _: right(self, noise, rows, 0.95))
    else:
        monkeypatch.setattr(variance_module, "squares", lambda low, high: (0 * low, 0 * high))
    assert covered(asked()) < 0.5 - error(0.5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ages", [(0, 0, 0), (0, 120), (7,), (None,), ()], ids=str)
def test_variances_at_the_ends_and_of_nothing(ages: tuple[int | None, ...]) -> None:
    answer = curator(ages).ask("SELECT g, VAR_POP(age) AS v, STDDEV(age) AS e FROM t GROUP BY g", epsilon=1, delta=0)
    assert all(0 <= row["v_low"] <= row["v"] <= row["v_high"] <= 60**2 for row in answer)
    assert all(0 <= row["e_low"] <= row["e"] <= row["e_high"] <= 120 * math.sqrt(0.5) + 1e-9 for row in answer)
    if len(ages) > 1:
        assert hits(answer, "v", 3600 if 120 in ages else 0) >= 0.95 - error(0.95)
        assert hits(answer, "e", 120 * math.sqrt(0.5) if 120 in ages else 0) >= 0.95 - error(0.95)


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
    asked = [(kind, argument) for kind in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")]
    layout: Layout = build(needs(*asked))
    width = sum(len(form.statistics) for form in layout.forms)
    noise = Noise(law, (scale,) * width)
    statistics = np.array([row[:width] for row in rows], dtype=object)
    for recipe in estimators(aggregates(*asked), layout.sources).values():
        assert isinstance(recipe, VarianceEstimator)
        most = 50**2 * (0.5 if recipe.sample else 0.25)
        for cell in recipe.cells(noise, statistics, outside):
            assert cell.value is not None
            assert 0 <= cell.low <= cell.value <= cell.high <= (math.sqrt(most) if recipe.root else most) * (1 + 1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("delta", ["0", "1e-3"])
def test_with_much_budget_answers_are_those_of_plain_sql(unit: str | None, delta: str) -> None:
    kinds = ("VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "AVG", "SUM", "COUNT")
    parts = [f"{kind}({x}) AS {kind}_{x}" for kind in kinds for x in "xy"]
    sql = f"SELECT g, VARIANCE(2 * x - y) FILTER (WHERE x > 5) AS f, {', '.join(parts)} FROM t GROUP BY g"
    rows = [
        {"id": i // 2, "g": i % 3, "x": None if i % 7 == 0 else i * i % 44 - 3, "y": (i * 37 % 1000) / 100 - 1}
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
    for row, (_, *truth) in zip(answer, plain.execute(f"{sql} ORDER BY g").fetchall(), strict=True):
        names = [name for name in answer.columns if name != "g" and not name.endswith(("_low", "_high"))]
        for name, value in zip(names, truth, strict=True):
            assert row[name] == pytest.approx(value, rel=1e-4), name


def test_a_wide_whole_number_is_squared_as_a_double() -> None:
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(4))
    table = pl.DataFrame({"x": [10**12, 3 * 10**12, 2 * 10**12, None]}, schema={"x": pl.Int64})
    made.protect(table, name="t", bounds={"x": (0, 10**13)}, budget=Budget(epsilon=10**15))
    answer = made.ask("SELECT VAR_POP(x) AS v, SUM(x) AS s FROM t", epsilon=10**13)[0]
    assert answer["v"] == pytest.approx(2 / 3 * 10**24, rel=1e-4)
    assert answer["s"] == pytest.approx(6 * 10**12, abs=10)


# --------------------------------------------------------------------------------------------------------------- pairs

PAIRS = ((3, 1.0), (30, 4.5), (41, 2.0), (55, 8.0), (200, 9.0), (None, 5.0), (20, None))  # one beyond, two missing
KEPT = [(float(min(x, 120)), y) for x, y in PAIRS if x is not None and y is not None]


def moment(values: list[float]) -> float:
    return sum(values) / len(values)


A, B = moment([x for x, _ in KEPT]), moment([y for _, y in KEPT])
COV = moment([(x - A) * (y - B) for x, y in KEPT])
VX, VY = moment([(x - A) ** 2 for x, _ in KEPT]), moment([(y - B) ** 2 for _, y in KEPT])
JOINT = {
    "c": COV,
    "s": COV * len(KEPT) * TIMES / (len(KEPT) * TIMES - 1),
    "r": COV / math.sqrt(VX * VY),
    "b": COV / VX,
    "a": B - COV / VX * A,
}
JOINT_SQL = (
    "SELECT g, COVAR_POP(x, y) AS c, COVAR_SAMP(y, x) AS s, CORR(x, y) AS r, REGR_SLOPE(y, x) AS b, "
    "REGR_INTERCEPT(y, x) AS a, COUNT(*) AS n FROM t GROUP BY g"
)


def paired_curator(pairs: Any, **declared: Any) -> Curator:
    columns = {
        "id": [f"{g}-{i}" for g in range(GROUPS) for i in range(len(pairs))],
        "g": [g for g in range(GROUPS) for _ in pairs],
        "x": [x for x, _ in pairs] * GROUPS,
        "y": [y for _, y in pairs] * GROUPS,
    }
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(31))
    made.protect(
        pl.DataFrame(columns, schema={"id": pl.String, "g": pl.Int64, "x": pl.Int64, "y": pl.Float64}),
        name="t",
        bounds={"x": (0, 120), "y": (0, 10)},
        keys={"g": list(range(GROUPS))},
        budget=Budget(epsilon=10**6, delta="1e-3"),
        **declared,
    )
    return made


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("options", "law"),
    [
        ({"epsilon": "6", "delta": 0}, "laplace"),
        ({"epsilon": "9", "delta": "1e-4", "limits": Limits(2, 1)}, "gaussian"),
    ],
    ids=["Laplace", "Gaussian"],
)
def test_intervals_of_pairs_cover_as_stated(options: dict[str, Any], law: str) -> None:
    made = paired_curator(PAIRS * TIMES, unit="id", max_groups=1)
    assert made.explain(JOINT_SQL, **options).program.noise.law == law
    for confidence in (0.95, 0.5):
        answer = made.ask(JOINT_SQL, confidence=confidence, **options)
        for name, truth in JOINT.items():
            assert hits(answer, name, truth) >= confidence - error(confidence), name
            assert all(row[name] is None or row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for row in answer)
        assert all(-1 <= row["r_low"] <= row["r_high"] <= 1 for row in answer)
        assert all(-300 <= row["c_low"] <= row["c_high"] <= 300 for row in answer)
    assert sum(row["r_high"] - row["r_low"] < 1 for row in answer) > GROUPS // 2  # more than nothing is said


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("pairs", [((7, 1.0), (7, 9.0)), ((7, 1.0),), ((None, 2.0),), ()], ids=str)
def test_regressions_on_a_constant_and_on_nothing(pairs: Any) -> None:
    answer = paired_curator(pairs).ask(JOINT_SQL, epsilon=6, delta=0)
    assert all(-1 <= row["r_low"] <= row["r_high"] <= 1 for row in answer)
    assert any(row["b_low"] == -math.inf and row["b_high"] == math.inf for row in answer)
    if len(pairs) == 2:
        assert hits(answer, "c", 0) >= 0.95 - error(0.95)


def test_pairs_with_much_budget_are_those_of_plain_sql() -> None:
    rows = [
        {"g": i % 3, "x": None if i % 7 == 0 else i * i % 44, "y": None if i % 11 == 0 else i % 10 / 2}
        for i in range(300)
    ]
    table = pl.DataFrame(rows, schema={"g": pl.Int64, "x": pl.Int64, "y": pl.Float64})
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(4))
    bounds, keys = {"x": (0, 44), "y": (0, 5)}, {"g": [0, 1, 2]}
    made.protect(table, name="t", bounds=bounds, keys=keys, budget=Budget(epsilon=10**15, delta="1e-2"))
    plain = duckdb.connect()
    plain.register("t", table)
    for delta in ("0", "1e-3"):
        answer = made.ask(JOINT_SQL, epsilon=10**13, delta=delta)
        for row, (_, *truth) in zip(answer, plain.execute(f"{JOINT_SQL} ORDER BY g").fetchall(), strict=True):
            assert [row[name] for name in (*JOINT, "n")] == pytest.approx(truth, rel=1e-3)


@pytest.mark.ci
@tried(60)
@given(
    st.lists(st.lists(huge | st.integers(-5, 5), min_size=6, max_size=6), min_size=1, max_size=4),
    st.sampled_from(["laplace", "gaussian"]),
    st.fractions(Fraction(1, 1000), 10**9),
    st.fractions(Fraction(1, 10**6), Fraction(9, 10)),
)
def test_every_release_of_pairs_has_an_answer(
    rows: list[list[int]], law: Any, scale: Fraction, outside: Fraction
) -> None:
    noise, made = Noise(law, (scale,) * 6), layout(*KINDS)
    for recipe in estimators(joint_aggregates(*KINDS), made.sources).values():
        for cell in recipe.cells(noise, np.array(rows, dtype=object), outside):
            assert isinstance(cell, NoisyNumber)
            assert cell.low <= cell.high
            assert cell.value is None or cell.low <= cell.value <= cell.high
            assert cell.value is None or math.isfinite(cell.value)


@pytest.mark.ci
def test_coverage_of_pairs_notices_a_forgotten_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    sql, pairs = "SELECT g, COVAR_POP(x, y) AS c FROM t GROUP BY g", ((3, 1.0), (9, 2.0), (15, 1.5)) * TIMES
    truth = 1.0  # the means, 9 and 1.5, lie far from the middles
    assert hits(paired_curator(pairs).ask(sql, epsilon=6, delta=0), "c", truth) >= 0.95 - error(0.95)
    monkeypatch.setattr(covariance_module, "product", lambda one, _: Ends(0 * one.low, 0 * one.low, 0 * one.low))
    assert hits(paired_curator(pairs).ask(sql, epsilon=6, delta=0), "c", truth) < 0.5
