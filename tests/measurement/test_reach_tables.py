"""Intervals of many means, looked up in a table: never narrower than those that are searched for, and hardly wider."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.measurement.intervals import noise as noise_module
from discreet.measurement.intervals.estimators import RatioEstimator
from discreet.measurement.program.program import Program, ReleaseFormat, choose
from discreet.mechanisms.mechanism import Law
from discreet.noise import SeededBits, discrete_laplace
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.sql.select import parse

pytestmark = pytest.mark.ci

GROUPS = 4200
MOVED = 1e-4  # of the width of an interval, at either end


def program(low: int, high: int, *, law: Law = "laplace", edition: ReleaseFormat = ReleaseFormat.NOW) -> Program:
    bounds = ColumnBounds(Fraction(low), Fraction(high))
    schema = TableSchema(name="t", columns={"x": ColumnSchema(name="x", type=Type.FLOAT, bounds=bounds)})
    asked = parse("SELECT AVG(x) AS m, COUNT(*) AS n FROM t", {"t": schema})
    return choose(asked, schema, epsilon=Fraction(1), delta=Fraction(1, 10**6), law=law, edition=edition)


def mean(made: Program) -> RatioEstimator:
    (found,) = [each for each in made.estimators.values() if isinstance(each, RatioEstimator)]
    return found


def released(made: Program, largest: int) -> Any:
    """Noisy statistics of groups that have from none to so many values, whose means are anywhere within the bounds."""
    place, bits, estimator = np.arange(GROUPS), SeededBits(3), mean(made)
    counts, shares = place * 7919 % largest, place * 0.6180339887 % 1
    means = float(estimator.low - estimator.centre) + shares * float(estimator.width)
    weights = np.zeros((2, len(made.noise.scales)))
    for row, linear in enumerate((estimator.top, estimator.bottom)):
        for statistic, weight in linear.weights:
            weights[row, statistic] = float(weight)
    exact = np.linalg.pinv(weights) @ np.stack([counts * means, counts])  # statistics that say so
    noise = [discrete_laplace(scale, GROUPS, bits=bits) for scale in made.noise.scales]
    return (np.rint(exact).astype(np.int64) + np.stack(noise)).T.astype(object)


def cells(made: Program, rows: Any, *, tabled: bool, outside: Fraction = Fraction(1, 20)) -> Any:
    return mean(made).cells(replace(made.noise, tabled=tabled), rows, outside)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize(("low", "high", "largest"), [(0, 100, 10**5), (-3, 1, 10), (1000, 1001, 1000)])
def test_a_table_moves_ends_outwards_and_hardly(law: Law, low: int, high: int, largest: int) -> None:
    made = program(low, high, law=law)
    rows = released(made, largest)
    looked_up, searched = (cells(made, rows, tabled=tabled) for tabled in (True, False))
    width = searched.high - searched.low
    assert np.all(looked_up.low <= searched.low)
    assert np.all(looked_up.high >= searched.high)
    assert np.all(searched.low - looked_up.low <= MOVED * width)
    assert np.all(looked_up.high - searched.high <= MOVED * width)
    assert np.any(looked_up.high > searched.high)  # so a table was made


def test_few_groups_and_earlier_rules_are_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_module, "_looked_up", None)  # nobody may look anything up
    made = program(0, 100)
    rows = released(made, 1000)
    assert len(cells(made, rows[:4000], tabled=True)) == 4000
    assert len(cells(made, rows, tabled=False)) == GROUPS
    with pytest.raises(TypeError):
        cells(made, rows, tabled=True)
    assert [program(0, 100, edition=edition).noise.tabled for edition in ReleaseFormat] == [
        edition is ReleaseFormat.NOW for edition in ReleaseFormat
    ]


def test_where_a_table_would_be_too_coarse_intervals_are_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_module, "_PLACES", 64)
    made = program(0, 100)
    rows = released(made, 1000)
    looked_up, searched = (cells(made, rows, tabled=tabled) for tabled in (True, False))
    assert np.array_equal(looked_up.low, searched.low)
    monkeypatch.setattr(noise_module, "_WIDER", 1.0)  # the check is what keeps it from being coarse
    assert np.max(searched.low - cells(made, rows, tabled=True).low) > 0


def test_means_far_from_where_they_are_counted_are_searched_for() -> None:
    """In doubles, the places of a table could not be told apart there."""
    made = program(0, 100)
    far = replace(mean(made), centre=Fraction(-(10**17)))
    rows = released(made, 1000)
    looked_up, searched = (
        far.cells(replace(made.noise, tabled=tabled), rows, Fraction(1, 20)) for tabled in (True, False)
    )
    assert np.array_equal(looked_up.low, searched.low)
    assert np.array_equal(looked_up.high, searched.high)
