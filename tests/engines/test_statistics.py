"""Exact integers: the quantiser (RT-016), sums beyond 64 bits, small moves of large sums (RT-013), order (RT-015)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import DuckDB, Memory
from discreet.engines.abstract_engine import steps
from discreet.engines.sql import printer
from discreet.errors import QueryFailed
from discreet.exact import float_above, float_below
from discreet.noise import SeededBits
from discreet.plan.model.nodes import Value
from discreet.plan.model.readings import ContributionBounding, Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines.tables import EDGES, WIDE, B, Bench, D, F, N, T, arrow, call, col, lit
from tests.open_groups import unsealed

X = col("x", F)
GRIDS = [
    *((-20, 0, 500 << 20), (-20, -(500 << 20), 3), (0, -7, 7), (-52, -(1 << 61) - 1, (1 << 61) + 1), (10, -5, 1 << 50)),
    *(
        (-1000, -WIDE, WIDE),
        (1000, -WIDE, WIDE),
        (960, -3, 3),
        (-1, -1, 0),
        (62, -2, 2),
        (63, -2, 2),
        (64, 1, 2),
        (65, -2, -1),
    ),
]


def total(kind: Type, exponent: int, low: int, high: int, shift: int = 0) -> Statistic:
    return Statistic(kind="sum", argument=col("x", kind), exponent=exponent, low=low, high=high, shift=shift)


def by_id(*statistics: Statistic) -> Reading:
    return Reading(table="t", keys=(col("id", N),), statistics=statistics)


@pytest.mark.parametrize("kind", [N, F], ids=["int", "float"])
def test_the_grid_is_exact_on_edges(bench: Bench, kind: Type) -> None:
    bench.load([{"id": i, "x": x} for i, x in enumerate(EDGES[kind])], {"id": N, "x": kind})
    bench.agreed(by_id(*(total(kind, *grid) for grid in GRIDS)))


BETWEEN_DOUBLES = [
    (0, (1 << 53) + 1, (1 << 53) + 1),
    (0, -(1 << 53) - 1, (1 << 53) + 1),
    (-1, -(1 << 54) - 3, -(1 << 54) - 3),
    (-1000, -3, (1 << 60)),
    (964, 1, (1 << 60) - 1),
    (1000, 1 << 25, 1 << 59),
    (1000, -(1 << 59), -(1 << 25)),
]
"""Grids with bounds that are no doubles, that have none between them, or beyond all of them."""


def next_to_the_ends() -> list[Value]:
    """The doubles on both sides of each bound, and those that are in no order with others."""
    grids = [*GRIDS, *BETWEEN_DOUBLES]
    ends = [Fraction(end) * Fraction(2) ** exponent for exponent, *ends in grids for end in ends]
    near = [float(end) for end in ends if abs(end) < 2**1024 - 2**970]
    beside = [math.nextafter(x, to) for x in near for to in (math.inf, -math.inf)]
    return list(dict.fromkeys([*near, *beside, *EDGES[F]]))


def test_values_next_to_the_ends_are_clipped(bench: Bench) -> None:
    bench.load([{"id": i, "x": x} for i, x in enumerate(next_to_the_ends())], {"id": N, "x": F})
    sums = (total(F, *grid) for grid in (*GRIDS, *BETWEEN_DOUBLES))
    bench.agreed(by_id(Statistic(kind="values", argument=X), *sums))


def infinite_ones_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(printer, "_LARGEST", math.inf)


def ends_beyond_the_bounds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(printer, "float_above", float_below)
    patch.setattr(printer, "float_below", float_above)


def ends_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(printer, "float_above", lambda end: math.nextafter(float_above(end), math.inf))


@pytest.mark.parametrize("mutate", [None, infinite_ones_counted, ends_beyond_the_bounds, ends_left_out])
def test_the_referee_notices(
    monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None] | None
) -> None:
    rows = [{"id": i, "x": x} for i, x in enumerate(next_to_the_ends())]
    reading = by_id(*(total(F, *grid) for grid in BETWEEN_DOUBLES))
    memory = Memory()
    memory.register("t", rows, {"id": N, "x": F})
    if mutate is not None:
        mutate(monkeypatch)
    with DuckDB(threads=1) as engine:
        engine.register("t", arrow(rows, {"id": N, "x": F}), {"id": N, "x": F})
        try:
            is_right = unsealed(engine.read(reading)) == unsealed(memory.read(reading))
        except QueryFailed:  # steps beyond 64 bits
            is_right = False
    assert is_right is (mutate is None)


def doubles(bits: SeededBits, count: int) -> list[float]:
    """All bit patterns; halves and their neighbours; numbers of everyday size."""
    raw = bits.words(count).view(np.float64).tolist()
    halves = [(n % 4096) / 2 - 1024 for n in bits.words(count).tolist()]
    nudged = [math.nextafter(half, half + (-1) ** i) if i % 3 else half for i, half in enumerate(halves)]
    return [*raw, *nudged, *((x % 1000.0 if math.isfinite(x) else x) for x in raw)]


@pytest.mark.slow
def test_100_000_doubles_are_rounded_as_fractions_are(bits: SeededBits) -> None:
    values = doubles(bits, 34_000)  # three of each
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "x": pa.array(values, pa.float64())})
    grids = [(-20, 0, 500 << 20), (0, -1024, 1024), (-40, -WIDE, WIDE), (3, -WIDE, WIDE)]
    with DuckDB(threads=1) as engine:
        engine.register("t", table, {"id": N, "x": F})
        answer = unsealed(engine.read(by_id(*(total(F, *grid) for grid in grids))))
    for i, x in enumerate(values):
        clean = x if math.isfinite(x) else None
        assert answer[(i,)] == tuple(steps(clean, *grid) or 0 for grid in grids), x


def test_the_referee_rounds_half_up() -> None:
    assert [steps(x, 0, -9, 9) for x in (0.5, 1.5, -0.5, -1.5, 0.49999999999999994)] == [1, 2, 0, -1, 0]
    assert steps(Fraction(1, 3).numerator, -2, -9, 9) == 4
    for x in (value for kind in (N, F) for value in EDGES[kind] if value is not None and math.isfinite(value)):
        for exponent in (-1000, -3, 0, 5, 1000):
            nearest = math.floor(Fraction(x) / Fraction(2) ** exponent + Fraction(1, 2))
            assert steps(x, exponent, -WIDE, WIDE) == max(-WIDE, min(WIDE, nearest))


def test_sums_beyond_64_and_53_bits_are_exact(bench: Bench) -> None:
    bench.load([{"x": (1 << 62) - i} for i in range(100)], {"x": N})
    reading = Reading(table="t", statistics=(total(N, 0, -WIDE, WIDE), total(N, 0, -WIDE, WIDE, shift=-WIDE)))
    exact = sum((1 << 62) - i for i in range(100))
    assert bench.agreed(reading) == {(): (exact, exact + 100 * WIDE)}


def test_one_row_moves_a_large_sum_by_what_it_is_worth(bench: Bench) -> None:
    low = 1 << 52
    reading = Reading(table="t", statistics=(total(F, 0, low, low + 1),))
    bench.load([{"x": float(low)}] * 1000, {"x": F})
    before = bench.agreed(reading)[()][0]
    bench.load([{"x": float(low)}] * 999 + [{"x": 1e300}], {"x": F})
    assert bench.agreed(reading)[()][0] == before + 1


def test_rows_values_nulls_units_and_shift(bench: Bench) -> None:
    cells = [1.0, None, float("nan"), float("inf"), -1e300, 2.5]
    bench.load([{"x": x} for x in cells], {"x": F})
    statistics = (
        Statistic(kind="rows"),
        Statistic(kind="units"),
        Statistic(kind="values", argument=X),
        total(F, -1, -4, 6),
        total(F, -1, -4, 6, shift=10),
        Statistic(kind="nulls", argument=X),
        Statistic(kind="nulls", argument=X, times=7),
    )
    assert bench.agreed(Reading(table="t", statistics=statistics)) == {(): (6, 6, 3, 2 - 4 + 5, 3 - 30, 3, 21)}
    by_half = Reading(
        table="t",
        bounding=ContributionBounding(unit="id", groups=1, rows=1, salt="s"),
        statistics=(Statistic(kind="nulls", argument=X, times=2), Statistic(kind="rows", times=3)),
    )
    bench.load([{"id": i // 2, "x": None} for i in range(8)], {"id": N, "x": F})
    assert bench.agreed(by_half) == {(): (8, 12)}


def test_no_kept_row_is_no_group(bench: Bench) -> None:
    bench.load([{"x": 1.0}], {"x": F})
    nobody = call("greater", B, X, lit(5.0, F))
    rows = (Statistic(kind="rows"),)
    assert bench.agreed(Reading(table="t", where=nobody, statistics=rows)) == {}
    assert bench.agreed(Reading(table="t", where=nobody, keys=(call("to_int", N, X),), statistics=rows)) == {}
    assert bench.agreed(Reading(table="t", where=lit(None, B), statistics=rows)) == {}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [N, T, B, D, Type.TIMESTAMP], ids=lambda kind: kind.value)
def test_keys_come_back_as_they_are(bench: Bench, kind: Type) -> None:
    bench.load([{"k": value} for value in EDGES[kind]], {"k": kind})
    everything = Reading(table="t", keys=(col("k", kind),), statistics=(Statistic(kind="rows"),))
    answer = bench.agreed(everything)
    assert {type(key) for (key,) in answer} == {type(value) for value in EDGES[kind]}
    public: tuple[tuple[Value, ...], ...] = ((None,), (EDGES[kind][1],), (EDGES[kind][1],))
    some = Reading(table="t", keys=(col("k", kind),), public_keys=public, statistics=(Statistic(kind="rows"),))
    assert bench.agreed(some) == {key: answer[key] for key in set(public)}


def test_public_keys_of_several_columns_and_of_none(bench: Bench) -> None:
    bench.load([{"a": i % 3, "b": str(i % 2)} for i in range(12)], {"a": N, "b": T})
    keys, rows = (col("a", N), col("b", T)), (Statistic(kind="rows"),)
    public = ((0, "1"), (2, "0"), (7, "7"))
    assert set(bench.agreed(Reading(table="t", keys=keys, public_keys=public, statistics=rows))) == set(public[:2])
    assert bench.agreed(Reading(table="t", keys=keys, public_keys=(), statistics=rows)) == {}


def test_order_threads_and_files_do_not_matter(bits: SeededBits) -> None:
    values = [(i % 5, x) for i, x in enumerate(doubles(bits, 3000))]
    reading = Reading(
        table="t", keys=(col("id", N),), statistics=(total(F, -20, 0, 500 << 20), total(F, -1000, -WIDE, WIDE))
    )
    seen = []
    for threads, ordered in ((1, values), (2, values[::-1]), (2, sorted(values, key=str))):
        table = pa.table({"id": pa.array([i for i, _ in ordered]), "x": pa.array([x for _, x in ordered])})
        with DuckDB(threads=threads) as engine:
            engine.register("t", table, {"id": N, "x": F})
            seen.append(unsealed(engine.read(reading)))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.ci
@given(
    x=st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False),
    exponent=st.integers(-70, 70),
    ends=st.tuples(st.integers(-WIDE, WIDE), st.integers(-WIDE, WIDE)),
)
def test_any_grid_on_any_number(x: float, exponent: int, ends: tuple[int, int]) -> None:
    low, high = sorted(ends)
    kind = N if isinstance(x, int) else F
    with DuckDB(threads=1) as engine:
        engine.register("t", pa.table({"x": pa.array([x])}), {"x": kind})
        answer = unsealed(engine.read(Reading(table="t", statistics=(total(kind, exponent, low, high),))))
    assert answer[()][0] == steps(x, exponent, low, high)


def test_statistics_without_meaning_are_refused(bench: Bench) -> None:
    bench.load([{"x": 1.0, "s": "a"}], {"x": F, "s": T})
    wrongs: list[Statistic] = [
        Statistic(kind="sum", argument=X, low=1, high=0),
        Statistic(kind="sum", argument=X, low=0, high=WIDE + 1),
        Statistic(kind="sum", argument=col("s", T)),
        Statistic(kind="sum"),
        Statistic(kind="rows", argument=X),
        Statistic(kind="nulls"),
        Statistic(kind="rows", times=0),
        Statistic(kind="median", argument=X),  # type: ignore[arg-type]
        Statistic(kind="sum", argument=X, exponent=1001, high=1),
    ]
    bench.check_refused(*(Reading(table="t", statistics=(wrong,)) for wrong in wrongs))


def test_other_readings_without_meaning_are_refused(bench: Bench) -> None:
    bench.load([{"x": 1.0}], {"x": F})
    rows = (Statistic(kind="rows"),)
    bench.check_refused(
        Reading(table="absent", statistics=rows),
        Reading(table="t", statistics=()),
        Reading(table="t", keys=(X,), statistics=rows),
        Reading(table="t", where=X, statistics=rows),
        Reading(table="t", keys=(call("to_int", N, X),), public_keys=((1, 2),), statistics=rows),
        Reading(table="t", keys=(call("to_int", N, X),), public_keys=(("a",),), statistics=rows),
    )
