"""Grids of days and moments: whole steps between public bounds, the same on every engine, and intervals that hold."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import DuckDB, Memory
from discreet.engines.abstract_engine import steps as on_grid
from discreet.errors import InvalidParameter
from discreet.measurement.releases.grids import STEPS
from discreet.measurement.releases.rank_draws import split_into_blocks
from discreet.measurement.releases.time_grids import TimeGrid
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions.date_functions import DAY, day_number
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import ColumnBounds
from discreet.plan.model.types import Type
from tests.engines.tables import EDGES, arrow
from tests.open_groups import unsealed

KINDS: dict[Type, Any] = {Type.DATE: st.dates(), Type.TIMESTAMP: st.datetimes()}
CALENDAR = ColumnBounds(Fraction(1), Fraction(dt.date.max.toordinal() + 1))
LENGTHS = {  # days between the bounds, and the step that leaves a million
    Fraction(1, 86400): 1,
    Fraction(1): 1_000,
    Fraction(20): 1_000_000,
    Fraction(800): 60_000_000,
    Fraction(365 * 200): 3_600_000_000,
}


def between(one: dt.date, other: dt.date) -> ColumnBounds:
    return ColumnBounds(*sorted((day_number(one), day_number(other))))


def step_of(grid: TimeGrid, value: dt.date | None) -> int | None:
    """The step of a value, as a reading has it."""
    number = evaluate(grid.number(ColumnRef("x", grid.kind)), {"x": value})
    return on_grid(number, 0, grid.steps.low, grid.steps.high)


def held(value: dt.date, grid: TimeGrid) -> dt.date:
    """The value clipped to the bounds."""
    return min(max(value, grid.value(0)), grid._moment(grid.last))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
@given(data=st.data())
def test_a_value_is_near_its_step_and_in_the_interval_of_it(kind: Type, data: st.DataObject) -> None:
    ends = data.draw(st.lists(KINDS[kind], min_size=2, max_size=2, unique=True))
    grid, value = TimeGrid.of(between(*ends), kind), data.draw(KINDS[kind])
    step = step_of(grid, value)
    assert step is not None
    near = held(value, grid)
    assert abs(day_number(near) - day_number(grid.value(step))) <= Fraction(grid.rounding, DAY)
    interval = grid.noisy(step, step, step)
    assert interval.low <= near <= interval.high
    assert grid.value(0) <= interval.low <= grid.value(step) <= interval.high <= grid._moment(grid.last)
    assert type(grid.value(step)) is type(value)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
@given(data=st.data())
def test_steps_keep_the_order(kind: Type, data: st.DataObject) -> None:
    ends = data.draw(st.lists(KINDS[kind], min_size=2, max_size=2, unique=True))
    grid = TimeGrid.of(between(*ends), kind)
    one, other = sorted(data.draw(st.lists(KINDS[kind], min_size=2, max_size=2)))
    first, second = step_of(grid, one), step_of(grid, other)
    assert first is not None
    assert second is not None
    assert first <= second
    assert grid.value(first) <= grid.value(second)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_engines_agree_on_every_edge(kind: Type) -> None:
    rows = [{"x": value} for value in EDGES[kind]]
    grids = [
        TimeGrid.of(CALENDAR, kind),
        TimeGrid.of(between(dt.date(2023, 12, 30), dt.datetime(2024, 3, 1, 7, 8, 9, 123)), kind),
    ]
    referee = Memory()
    referee.register("t", rows, {"x": kind})
    with DuckDB(threads=1) as engine:
        engine.register("t", arrow(rows, {"x": kind}), {"x": kind})
        for grid in grids:
            x = ColumnRef("x", kind)
            for split in (split_into_blocks(grid.number(x), grid.steps),):
                asked = Reading(table="t", split=split)
                assert unsealed(engine.read(asked)) == unsealed(referee.read(asked))
            assert step_of(grid, None) is None


@pytest.mark.parametrize(("days", "length"), LENGTHS.items(), ids=str)
def test_moments_have_the_longest_steps_that_leave_a_million(days: Fraction, length: int) -> None:
    grid = TimeGrid.of(ColumnBounds(Fraction(738_000), 738_000 + days), Type.TIMESTAMP)
    assert grid.step == length
    assert length == 1 or grid.steps.width >= STEPS
    assert TimeGrid.of(ColumnBounds(Fraction(738_000), 738_001 + days), Type.DATE).step == DAY


def test_bounds_that_hold_no_two_days_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="two dates"):
        TimeGrid.of(ColumnBounds(Fraction(738_000), Fraction(1_476_001, 2)), Type.DATE)
    with pytest.raises(InvalidParameter, match="two timestamps"):
        TimeGrid.of(ColumnBounds(Fraction(-9), Fraction(0)), Type.TIMESTAMP)


def test_mutant_an_interval_without_what_was_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimeGrid, "rounding", 0)
    grid = TimeGrid.of(CALENDAR, Type.TIMESTAMP)
    moment = dt.datetime(2026, 1, 1, 0, 20)
    step = step_of(grid, moment)
    assert step is not None
    assert not grid.noisy(step, step, step).low <= moment <= grid.noisy(step, step, step).high
