"""Intervals hold the true aggregate, not that of values on a grid: noise near zero, tables whose roundings add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import Curator
from discreet.curator.asking.explanation import errors
from discreet.curator.catalog.declarations import declare
from discreet.curator.replay import replay as replay_module
from discreet.engines import Memory
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.intervals.noise import Noise, NoiseTerms
from discreet.measurement.program.error_targets import farthest
from discreet.measurement.program.program import ReleaseFormat, choose
from discreet.measurement.releases.additive import LinearCombination
from discreet.measurement.releases.grids import Steps
from discreet.mechanisms.mechanism import Law
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Loss, Neighbours
from discreet.sql.select import parse
from tests.curator.editions import as_of
from tests.effort import tried

QUIET = 10**9  # an epsilon at which nearly all noise is zero
AMPLE = Budget(epsilon=10**14)
AMPLE_DELTA = Budget(epsilon=10**14, delta=1e-2)

Rows = Sequence[Mapping[str, Any]]
Pair = tuple[Fraction, Fraction]


def holds(low: Any, truth: Fraction | float, high: Any) -> bool:
    """Whether the truth lies in an interval; a root is known to a few units of the last place only."""
    slack = abs(truth) * 2.0**-48 if isinstance(truth, float) else 0
    return Fraction(low) - Fraction(slack) <= truth <= Fraction(high) + Fraction(slack)


def clipped(values: Sequence[float], low: Fraction, high: Fraction) -> list[Fraction]:
    return [min(max(Fraction(value), low), high) for value in values]


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def variance(values: Sequence[Fraction]) -> Fraction:
    return mean([value**2 for value in values]) - mean(values) ** 2


def quantile(values: Sequence[Fraction], share: Fraction) -> Fraction:
    """As PERCENTILE_CONT interpolates."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


ONE: dict[str, Callable[[Sequence[Fraction]], Fraction | float]] = {
    "SUM(x)": lambda v: sum(v, Fraction(0)),
    "AVG(x)": mean,
    "VAR_POP(x)": variance,
    "VARIANCE(x)": lambda v: variance(v) * len(v) / (len(v) - 1),
    "STDDEV_POP(x)": lambda v: math.sqrt(variance(v)),
    "MEDIAN(x)": lambda v: quantile(v, Fraction(1, 2)),
    "QUANTILE_CONT(x, 0.9)": lambda v: quantile(v, Fraction(9, 10)),
    "MIN(x)": min,
    "MAX(x)": max,
}
"""Aggregates of one column, and the truth."""


def curator_of(rows: Rows, bounds: Mapping[str, Any], budget: Loss = AMPLE, **options: Any) -> Curator:
    made = Curator.for_tests(engine=Memory(), bits=SeededBits(5))
    types = {"x": "float", "y": "float", "g": "text", "who": "int"}
    named = {name: types[name] for name in rows[0]}
    made.protect(list(rows), name="t", types=named, bounds=bounds, budget=budget, **options)
    return made


def ends_of(curator: Curator, sql: str, **options: Any) -> list[tuple[Any, Any]]:
    """The interval of the only number of each row."""
    answer = curator.ask(sql, **{"epsilon": QUIET, **options})
    return [(record["a_low"], record["a_high"]) for record in answer.records]


WIDE = (0, 2**24)
TABLES: dict[str, tuple[list[float], tuple[Any, Any]]] = {
    "small beside large": ([1.0] * 100 + [2.0**24], WIDE),
    "halves of a step": ([8.0] * 30 + [24.0] * 30 + [2.0**-30], WIDE),
    "dust": ([2.0**-60] * 50 + [3e-310] * 2 + [1.0], (0, 1)),
    "thirds": ([1 / 3] * 70 + [-2 / 3] * 30, (-1, 1)),
    "bounds off every grid": ([0.1] * 40 + [7.3] * 10 + [99.9], ("0.1", "7.3")),
    "far from zero": ([1e9 + 0.1] * 20 + [1e9 + 0.9] * 10, (10**9, 10**9 + 1)),
    "the edge of a step": ([2.0**-21 - 2.0**-59, 0.6 * 2.0**-59], (0, 1)),
    "below zero": ([-1e-9] * 90 + [-5e6], (-(10**7), 0)),
}


def check_table(name: str, **options: Any) -> None:
    """Every aggregate of a table, each by itself."""
    values, (low, high) = TABLES[name]
    curator = curator_of([{"x": x} for x in values], {"x": (low, high)}, **options)
    true = clipped(values, Fraction(low), Fraction(high))
    for sql, truth in ONE.items():
        ((a, b),) = ends_of(curator, f"SELECT {sql} AS a FROM t")
        assert holds(a, truth(true), b), (sql, a, truth(true), b)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TABLES)
def test_every_interval_holds_the_truth(name: str) -> None:
    check_table(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_every_interval_holds_the_truth_if_rows_are_replaced(name: str) -> None:
    check_table(name, neighbours=Neighbours.REPLACE)


def covariance(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    return mean([a * b for a, b in zip(x, y, strict=True)]) - mean(x) * mean(y)


PAIRS: dict[str, Callable[[Sequence[Fraction], Sequence[Fraction]], Fraction | float]] = {
    "COVAR_POP(y, x)": covariance,
    "COVAR_SAMP(y, x)": lambda x, y: covariance(x, y) * len(x) / (len(x) - 1),
    "CORR(y, x)": lambda x, y: float(covariance(x, y)) / math.sqrt(variance(x) * variance(y)),
    "REGR_SLOPE(y, x)": lambda x, y: covariance(x, y) / variance(x),
    "REGR_INTERCEPT(y, x)": lambda x, y: mean(y) - covariance(x, y) / variance(x) * mean(x),
}


@pytest.mark.parametrize(
    "neighbours", [Neighbours.ADD_REMOVE, pytest.param(Neighbours.REPLACE, marks=pytest.mark.slow)], ids=str
)
def test_intervals_of_pairs_hold_the_truth(neighbours: Neighbours) -> None:
    rows = [{"x": 1 / 3 + k % 2, "y": 2.0**-25 * (k % 3) + 0.1} for k in range(60)]
    curator = curator_of(rows, {"x": (0, 3), "y": ("0.1", "0.9")}, neighbours=neighbours)
    x, y = clipped([row["x"] for row in rows], *map(Fraction, (0, 3))), [Fraction(row["y"]) for row in rows]
    for sql, truth in PAIRS.items():
        ((a, b),) = ends_of(curator, f"SELECT {sql} AS a FROM t")
        assert holds(a, truth(x, y), b), (sql, a, float(truth(x, y)), b)


# ---------------------------------------------------------------------------------------------- groups, and after them

GROUPS: dict[str, list[float]] = {"A": [1.0] * 50, "B": [0.3] * 40 + [2.0**24], "C": [5e6 + 7.9]}
ROWS = [{"g": g, "x": x} for g, values in GROUPS.items() for x in values]
SUMS = {g: sum(map(Fraction, values), Fraction(0)) for g, values in GROUPS.items()}
TOTAL = sum(SUMS.values(), Fraction(0))
COUNT = sum(map(len, GROUPS.values()))


def grouped(budget: Loss = AMPLE, **options: Any) -> Curator:
    return curator_of(ROWS, {"x": WIDE}, budget, **{"keys": {"g": list(GROUPS)}, **options})


AFTER: dict[str, list[Fraction]] = {
    "SELECT SUM(x) AS a FROM t GROUP BY g": list(SUMS.values()),
    "SELECT COUNT(*) AS n, SUM(x) AS a FROM t GROUP BY g": list(SUMS.values()),
    "SELECT AVG(x) AS a FROM t GROUP BY g": [mean(list(map(Fraction, values))) for values in GROUPS.values()],
    "SELECT SUM(x) / COUNT(*) AS a FROM t": [TOTAL / COUNT],
    "SELECT SUM(x) FILTER (WHERE x < 2) AS a FROM t": [50 + 40 * Fraction(0.3)],
    "SELECT SUM(x / 4 + 1) AS a FROM t": [TOTAL / 4 + COUNT],
    "SELECT AVG(CASE WHEN x < 2 THEN x ELSE 0 END) AS a FROM t": [(50 + 40 * Fraction(0.3)) / COUNT],
    "SELECT SUM(SUM(x)) OVER () AS a FROM t GROUP BY g": [TOTAL] * 3,
    "SELECT SUM(SUM(x)) OVER (ORDER BY g) AS a, COUNT(*) AS n FROM t GROUP BY g": [
        SUMS["A"],
        SUMS["A"] + SUMS["B"],
        TOTAL,
    ],
    "SELECT AVG(s) AS a FROM (SELECT g, SUM(x) AS s FROM t GROUP BY g) AS q": [TOTAL / 3],
    "SELECT SUM(x) AS a FROM t GROUP BY ROLLUP (g)": [*SUMS.values(), TOTAL],
}
"""Questions, and the true value of each row."""


def check_after(curator: Curator, sql: str, truths: Sequence[Fraction], **options: Any) -> None:
    ends = ends_of(curator, sql, **options)
    assert len(ends) == len(truths)
    for (low, high), truth in zip(ends, truths, strict=True):
        assert holds(low, truth, high), (sql, low, float(truth), high)


@pytest.mark.parametrize("delta", [0, pytest.param("1e-3", marks=pytest.mark.slow)])
@pytest.mark.parametrize("sql", AFTER)
def test_what_follows_from_groups_holds_the_truth(sql: str, delta: Any) -> None:
    check_after(grouped(AMPLE_DELTA if delta else AMPLE), sql, AFTER[sql], **({"delta": delta} if delta else {}))


@pytest.mark.parametrize("columns", ["SUM(x) AS a", "COUNT(*) AS n, SUM(x) AS a", "COUNT(*) AS n, AVG(x) AS a"])
def test_private_groups_and_the_rest_of_them_hold_the_truth(columns: str) -> None:
    """C has one row and is not shown; what is not shown is added up before it is rounded."""
    rows = [*ROWS, *({"g": f"D{k}", "x": 0.9} for k in range(99))]
    curator = curator_of(rows, {"x": WIDE}, AMPLE_DELTA)
    options: dict[str, Any] = {"delta": "1e-9", "other": "rest"}
    answer = curator.ask(f"SELECT g, {columns} FROM t GROUP BY g", epsilon=QUIET, **options)
    hidden = Fraction(5e6 + 7.9) + 99 * Fraction(0.9)
    sums = {"A": (SUMS["A"], 50), "B": (SUMS["B"], 41), "rest": (hidden, 100)}
    assert [record["g"] for record in answer.records] == ["A", "B", "rest"]
    for record in answer.records:
        total, count = sums[record["g"]]
        truth = total / count if "AVG" in columns else total
        assert holds(record["a_low"], truth, record["a_high"])


def test_what_follows_from_releases_holds_the_truth() -> None:
    """A union of released groups, and a mean as the quotient of a released sum and a released count: both free."""
    curator = grouped()
    curator.ask("SELECT g, SUM(x) AS s FROM t GROUP BY g", epsilon=QUIET)
    curator.ask("SELECT g, COUNT(x) AS n FROM t GROUP BY g", epsilon=QUIET)
    for sql, truth in {
        "SELECT SUM(x) AS a FROM t WHERE g IN ('A', 'B')": SUMS["A"] + SUMS["B"],
        "SELECT AVG(x) AS a FROM t": TOTAL / COUNT,
    }.items():
        answer = curator.ask(sql, epsilon=QUIET // 1000)
        assert answer.replayed
        assert holds(answer.records[0]["a_low"], truth, answer.records[0]["a_high"])


def test_adjusted_numbers_hold_the_truth() -> None:
    answer = grouped().ask("SELECT g, SUM(x) AS a FROM t GROUP BY ROLLUP (g)", epsilon=QUIET).adjusted()
    for record, truth in zip(answer.records, [*SUMS.values(), TOTAL], strict=True):
        assert holds(record["a_low"], truth, record["a_high"])


def test_sums_of_one_person_are_as_fine() -> None:
    """Each has forty values of which the grid of a million steps makes nothing."""
    rows = [{"who": k % 25, "x": 1.0} for k in range(1000)]
    curator = curator_of(rows, {"x": WIDE}, unit="who", max_rows=50)
    clipped_sum = "LEAST(GREATEST(s, 0), 1000)"
    inner = "SELECT who, SUM(x) AS s FROM t GROUP BY who"
    ((low, high),) = ends_of(curator, f"SELECT AVG({clipped_sum}) AS a FROM ({inner}) AS q")
    assert holds(low, Fraction(40), high)
    assert high - low < 1


# -------------------------------------------------------------------------------------------------------- every table


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[float], Pair]:
    """Many equal values, bounds that are near, far, wide or narrow."""
    low = Fraction(draw(st.integers(-(10**6), 10**6)), 10 ** draw(st.integers(0, 6)))
    width = Fraction(draw(st.integers(1, 10**9)), 10 ** draw(st.integers(0, 9)))
    inside = st.integers(0, 10**6).map(lambda k: float(low + width * k / 10**6))
    small = st.floats(allow_nan=False, allow_infinity=False)
    values = draw(st.lists(st.one_of(inside, small), min_size=2, max_size=4))
    repeats = draw(st.lists(st.integers(1, 40), min_size=len(values), max_size=len(values)))
    return [x for x, times in zip(values, repeats, strict=True) for _ in range(times)], (low, low + width)


@tried(20)
@given(tables(), st.sampled_from(list(Neighbours)))
def test_any_table(table: tuple[list[float], Pair], neighbours: Neighbours) -> None:
    values, (low, high) = table
    curator = curator_of([{"x": x} for x in values], {"x": (low, high)}, neighbours=neighbours)
    true = clipped(values, low, high)
    for sql in ("SUM(x)", "AVG(x)", "VAR_POP(x)"):
        try:
            ((a, b),) = ends_of(curator, f"SELECT {sql} AS a FROM t")
        except UnsupportedQuery:  # too fine for the size of its numbers
            continue
        assert holds(a, ONE[sql](true), b)


# -------------------------------------------------------------------------------------------------- not absurdly wide

CONFIDENCE = Fraction(19, 20)
ORDINARY = (
    "SUM(x)",
    "COUNT(*) AS n, SUM(x)",
    "AVG(x)",
    "VARIANCE(x)",
    "STDDEV(x)",
    "COVAR_POP(x, y)",
    "REGR_SLOPE(x, y)",
    "MEDIAN(x)",
)


def described(name: str, types: Mapping[str, Type], **options: Any) -> TableSchema:
    usual: dict[str, Any] = {
        "unit": None,
        "keys": {},
        "limits": Limits(),
        "neighbours": Neighbours.ADD_REMOVE,
        "version": "1",
    }
    return declare(name, types, **{**usual, **options})


@pytest.mark.parametrize(
    ("neighbours", "delta"),
    [
        (Neighbours.ADD_REMOVE, "0"),
        pytest.param(Neighbours.ADD_REMOVE, "1e-6", marks=pytest.mark.slow),
        pytest.param(Neighbours.REPLACE, "0", marks=pytest.mark.slow),
        pytest.param(Neighbours.REPLACE, "1e-6", marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", ORDINARY)
def test_ordinary_intervals_are_as_wide_as_before(columns: str, neighbours: Neighbours, delta: str) -> None:
    """In a group of a million rows, at epsilon 1: within one in a hundred of what noise alone makes."""
    bounds = {"x": (0, 100), "y": ("-0.1", "7.3")}
    schema = described("t", {"x": Type.FLOAT, "y": Type.FLOAT}, bounds=bounds, neighbours=neighbours)
    asked = parse(f"SELECT {columns} AS a FROM t", {"t": schema})
    before, after = (
        errors(
            choose(asked, schema, epsilon=Fraction(1), delta=Fraction(delta), edition=edition),
            confidence=CONFIDENCE,
            rows=10**6,
        )["a"]
        for edition in (ReleaseFormat.ONE_GRID, ReleaseFormat.NOW)
    )
    assert before <= after * (1 + 1e-9)
    assert after <= 1.01 * before


@pytest.mark.parametrize("sql", ["SUM(n)", "COUNT(n) AS k, SUM(n)", "AVG(n)", "STDDEV(n)", "SUM(CAST(n AS DOUBLE))"])
def test_whole_numbers_are_not_widened(sql: str) -> None:
    """Their grid is exact: intervals are those of the noise alone, however small it is."""
    schema = described("t", {"n": Type.INT}, bounds={"n": (0, 99)})
    asked = parse(f"SELECT {sql} AS a FROM t", {"t": schema})
    for epsilon in (1, QUIET):
        editions = (ReleaseFormat.ONE_GRID, ReleaseFormat.NOW)
        before, after = (choose(asked, schema, epsilon=Fraction(epsilon), edition=edition) for edition in editions)
        assert before.event == after.event
        assert errors(before, confidence=CONFIDENCE, rows=50) == errors(after, confidence=CONFIDENCE, rows=50)


def test_a_target_holds_the_rounding() -> None:
    """Of all that a table may have: 2^36 values of 2^24, each moved by 2^-53 of that and half a fine step."""
    curator = grouped()
    least = curator.explain("SELECT SUM(x) AS a FROM t", within=200, max_epsilon=10**9)
    program = curator.explain("SELECT SUM(x) AS a FROM t", epsilon=least.cost.epsilon).program
    assert 120 < farthest(program, Fraction(1, 20), {}) <= 200
    assert least.errors["a"] <= 200
    with pytest.raises(InvalidParameter, match="possible at some budget"):
        curator.explain("SELECT SUM(x) AS a FROM t", within=100, max_epsilon=10**9)


# --------------------------------------------------------------------------------------------------- releases of before


def as_before(patch: pytest.MonkeyPatch) -> None:
    """Curators as they were when values had one grid."""
    as_of(patch, ReleaseFormat.ONE_GRID)


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Until it is undone, curators are as they were."""
    with monkeypatch.context() as patch:
        as_before(patch)
        yield patch


LATER = {
    "laplace": ("SELECT COUNT(x) AS n, SUM(x) AS a FROM t", "0"),
    "gaussian": ("SELECT g, AVG(x) AS a, VARIANCE(x) AS v FROM t GROUP BY g", "1e-3"),
    "quantile": ("SELECT MEDIAN(x) AS a FROM t", "0"),
}


@pytest.mark.parametrize(
    "neighbours", [Neighbours.ADD_REMOVE, pytest.param(Neighbours.REPLACE, marks=pytest.mark.slow)], ids=str
)
@pytest.mark.parametrize("name", LATER)
def test_what_was_released_before_is_replayed_as_it_was(
    before: pytest.MonkeyPatch, name: str, neighbours: Neighbours
) -> None:
    sql, delta = LATER[name]
    options: dict[str, Any] = {"epsilon": 10, **({"delta": delta} if delta != "0" else {})}
    curator = curator_of(ROWS, {"x": ("0.1", 10**7)}, AMPLE_DELTA, keys={"g": list(GROUPS)}, neighbours=neighbours)
    first = curator.ask(sql, key="once", **options)
    before.undo()
    again = curator.ask(sql, **options)
    assert again.replayed
    assert again.records == first.records
    assert curator.ask(sql, key="once", **options).records == first.records
    spent = curator.budget("t").spent
    fresh = curator.ask(sql, **{**options, "epsilon": 20})
    assert not fresh.replayed
    assert str(curator.budget("t").spent) != str(spent)


def test_what_was_released_before_follows_on_its_own_grid(before: pytest.MonkeyPatch) -> None:
    """Sums of released groups, and the quotient of an old sum and a new count."""
    curator = curator_of(ROWS, {"x": ("0.1", 10**7)}, AMPLE, keys={"g": list(GROUPS)})
    old = curator.ask("SELECT g, SUM(x) AS a FROM t GROUP BY g", epsilon=QUIET)
    before.undo()
    curator.ask("SELECT g, COUNT(x) AS n FROM t GROUP BY g", epsilon=QUIET)
    total = sum(record["a"] for record in old.records)
    answer = curator.ask("SELECT SUM(x) AS a FROM t", epsilon=QUIET // 1000)
    assert answer.replayed
    assert answer.records[0]["a"] == total
    (mean_of_all,) = curator.ask("SELECT AVG(x) AS a FROM t", epsilon=QUIET // 1000).records
    assert mean_of_all["a"] == pytest.approx(total / COUNT, rel=1e-12)


# ------------------------------------------------------------------------------------------------------------- mutants


def check_sum() -> None:
    ((low, high),) = ends_of(grouped(), "SELECT COUNT(x) AS n, SUM(x) AS a FROM t")
    assert holds(low, TOTAL, high)


def check_edge() -> None:
    values, bounds = TABLES["the edge of a step"]
    ((low, high),) = ends_of(curator_of([{"x": x} for x in values], {"x": bounds}), "SELECT SUM(x) AS a FROM t")
    assert holds(low, sum(map(Fraction, values), Fraction(0)), high)


def check_reach() -> None:
    """Half a step of each statistic beside the noise of a sum, whichever way its reach is found."""
    sums = [
        LinearCombination.of({0: Fraction(3)}),
        LinearCombination.of({0: Fraction(3), 1: Fraction(-1)}),
        LinearCombination.of({1: Fraction(1, 3)}),
    ]
    for law in LAWS:
        plain = Noise(law, (Fraction(100), Fraction(70)))
        for linear, more in zip(sums, (1.5, 1.5, 0.0), strict=True):
            found = replace(plain, rounded=(True, False)).reach(linear, Fraction(1, 20))
            assert float(found - plain.reach(linear, Fraction(1, 20))) == pytest.approx(more, abs=1e-9)


def check_replay() -> None:
    options: dict[str, Any] = {"epsilon": 10, "delta": "1e-3"}
    with pytest.MonkeyPatch.context() as patch:
        as_before(patch)
        curator = curator_of(ROWS, {"x": ("0.1", 10**7)}, AMPLE_DELTA, keys={"g": list(GROUPS)})
        first = curator.ask(LATER["gaussian"][0], **options)
    assert curator.ask(LATER["gaussian"][0], **options).records == first.records


def no_value_is_moved(patch: pytest.MonkeyPatch) -> None:
    honest = Steps.clipping
    patch.setattr(Steps, "clipping", lambda *given, **more: replace(honest(*given, **more), error=Fraction(0)))


def no_total_is_rounded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Noise, "rounding", lambda *_: Fraction(0))


def no_total_of_a_mean_is_rounded(patch: pytest.MonkeyPatch) -> None:
    honest = NoiseTerms.of
    patch.setattr(NoiseTerms, "of", lambda noise, sums: honest(replace(noise, rounded=()), sums))


def values_stay_on_the_grid_of_noise(patch: pytest.MonkeyPatch) -> None:
    honest: Any = Steps._around
    patch.setattr(Steps, "_around", staticmethod(lambda bounds, exponent, _: honest(bounds, exponent, exponent)))
    no_value_is_moved(patch)


def every_release_is_of_today(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replay_module, "edition_of", lambda _: ReleaseFormat.NOW)


LAWS: tuple[Law, Law] = ("laplace", "gaussian")
MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], Callable[[], None]] = {
    no_value_is_moved: check_edge,
    no_total_is_rounded: check_sum,
    no_total_of_a_mean_is_rounded: check_reach,
    values_stay_on_the_grid_of_noise: check_sum,
    every_release_is_of_today: check_replay,
}


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_mutants_are_noticed(monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None]) -> None:
    MUTANTS[mutate]()
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        MUTANTS[mutate]()
