"""Sums of products: exact on every engine, NULL where one side is, and never beyond what a database multiplies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import DuckDB, Memory
from discreet.engines.sql import statement
from discreet.plan.model.readings import ContributionBounding, Reading, Statistic
from tests.effort import tried
from tests.engines.tables import EDGES, WIDE, Bench, F, N, arrow, bounding, col
from tests.open_groups import unsealed

TYPES = {"u": N, "g": N, "x": N, "y": F}
Y = Statistic(kind="sum", argument=col("y", F), exponent=-2, low=-5, high=40, shift=-2)
X = Statistic(kind="sum", argument=col("x", N), low=-7, high=9, shift=1)
CROSS = replace(X, kind="product", factor=Y, less=3, times=2)
SQUARE = replace(X, kind="product", factor=X, less=32)
CUBE = replace(X, kind="product", factor=replace(X, kind="product", factor=X), times=3)
MIXED = replace(CROSS, factor=replace(Y, kind="product", factor=X))


@pytest.mark.ci
def test_products_of_edges(bench: Bench) -> None:
    pairs = [(x, y) for x in EDGES[N] for y in EDGES[F]]
    bench.load([{"u": i % 5, "g": i % 2, "x": x, "y": y} for i, (x, y) in enumerate(pairs)], TYPES)
    for limits in (None, bounding(1, 3), bounding(2, 7)):
        bench.agreed(Reading(table="t", keys=(col("g", N),), bounding=limits, statistics=(CROSS, SQUARE, MIXED)))
        bench.agreed(Reading(table="t", bounding=limits, statistics=(SQUARE, X, CROSS, CUBE)))


def test_the_formula(bench: Bench) -> None:
    bench.load([{"u": 1, "g": 1, "x": x, "y": y} for x, y in ((3, 1.0), (None, 1.0), (3, None), (100, -9.0))], TYPES)
    cross = 2 * ((3 - 1) * (4 + 2) - 3 + (9 - 1) * (-5 + 2) - 3)
    square = 2 * ((3 - 1) ** 2 - 32) + (9 - 1) ** 2 - 32
    cube, mixed = 3 * (2 * 2**3 + 8**3), 2 * (2 * 6 * 2 - 3 + 8 * -3 * 8 - 3)
    asked = Reading(table="t", statistics=(CROSS, SQUARE, CUBE, MIXED))
    assert bench.agreed(asked) == {(): (cross, square, cube, mixed)}


def test_the_largest_products_are_exact(bench: Bench) -> None:
    end = 1 << 31
    wide = Statistic(kind="sum", argument=col("x", N), low=-end, high=end)
    bench.load([{"u": i, "g": 0, "x": (-1) ** i * end, "y": 0.0} for i in range(100)], TYPES)
    asked = Reading(table="t", statistics=(replace(wide, kind="product", factor=wide, less=-WIDE),))
    assert bench.agreed(asked) == {(): (100 * (WIDE + WIDE),)}


def test_products_without_meaning_are_refused(bench: Bench) -> None:
    bench.load([{"u": 1, "g": 1, "x": 1, "y": 1.0}], TYPES)
    wrongs: list[Statistic] = [
        replace(X, kind="product"),
        replace(X, factor=Y),
        replace(CROSS, factor=replace(Y, kind="rows", argument=None)),
        replace(CROSS, factor=replace(Y, times=2)),
        replace(CROSS, factor=CROSS),
        replace(CUBE, factor=CUBE),  # four terms, and more
        replace(CUBE, factor=replace(SQUARE, less=1)),
        replace(CUBE, low=-(1 << 30), high=1 << 30, factor=replace(SQUARE, low=-(1 << 30), high=1 << 30, less=0)),
        replace(CROSS, less=WIDE + 1),
        replace(CROSS, high=1 << 31, factor=replace(Y, low=-(1 << 31), shift=2)),
        replace(CROSS, high=WIDE, shift=-1, factor=replace(Y, low=0, high=0, shift=0)),
    ]
    bench.check_refused(*(Reading(table="t", statistics=(wrong,)) for wrong in wrongs))


cells = st.fixed_dictionaries(
    {
        "u": st.integers(0, 3),
        "g": st.integers(0, 2),
        "x": st.none() | st.integers(-9, 12),
        "y": st.none() | st.floats(width=16),
    }
)


@pytest.mark.ci
@tried(25)
@given(rows=st.lists(cells, max_size=25), limits=st.builds(bounding, st.integers(1, 2), st.integers(1, 3)))
def test_engines_agree_on_random_tables(rows: list[dict[str, Any]], limits: ContributionBounding) -> None:
    referee = Memory()
    referee.register("t", rows, TYPES)
    with DuckDB(threads=1) as engine:
        engine.register("t", arrow(rows[::-1], TYPES), TYPES)
        for bounds in (limits, None):
            asked = Reading(table="t", keys=(col("g", N),), bounding=bounds, statistics=(CROSS, SQUARE, CUBE))
            assert unsealed(engine.read(asked)) == unsealed(referee.read(asked))


def test_mutant_the_shift_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"u": i, "g": 0, "x": i, "y": 1.0} for i in range(9)]
    asked, honest = Reading(table="t", statistics=(CROSS,)), statement._product
    referee = Memory()
    referee.register("t", rows, TYPES)
    monkeypatch.setattr(statement, "_product", lambda p, c, s: honest(p, c, replace(s, shift=0)))
    with DuckDB(threads=1) as engine:
        engine.register("t", arrow(rows, TYPES), TYPES)
        assert unsealed(engine.read(asked)) != unsealed(referee.read(asked))
