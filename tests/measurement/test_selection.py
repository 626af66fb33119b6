"""Which private groups are shown: exact chances of a lone person, the choice between two ways, and what is shared."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.measurement.program.program import Program, ReleaseFormat, choose
from discreet.measurement.selection import OptimalGroupSelection, Threshold
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from discreet.privacy.events import strip_calibration
from discreet.sql.select import parse

DELTA = Fraction(1, 10**5)
COUNT = "SELECT key, COUNT(*) AS n FROM t GROUP BY key"
MEAN = "SELECT key, AVG(x) AS m FROM t GROUP BY key"
BOTH = "SELECT key, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY key"
SUM = "SELECT key, SUM(x) AS s FROM t GROUP BY key"
PEOPLE = "SELECT key, COUNT(DISTINCT id) AS p, SUM(x) AS s FROM t GROUP BY key"


def program(sql: str, *, limits: Limits, neighbours: Neighbours = Neighbours.ADD_REMOVE, **options: Any) -> Program:
    columns = {
        "id": ColumnSchema(name="id", type=Type.INT),
        "key": ColumnSchema(name="key", type=Type.TEXT),
        "x": ColumnSchema(name="x", type=Type.INT, bounds=ColumnBounds(Fraction(0), Fraction(3))),
    }
    schema = TableSchema(name="t", columns=columns, unit="id", limits=limits, neighbours=neighbours)
    asked: dict[str, Any] = {"epsilon": Fraction(1), "delta": DELTA} | options
    return choose(parse(sql, {"t": schema}), schema, **asked)


def chance(program: Program, threshold: Threshold) -> float:
    """The exact probability that the largest group of one person alone is shown, by convolution of the noise's law.

    Of noise that is cut, with the cut that the threshold has.
    """
    law, unit = np.ones(1), math.lcm(*(weight.denominator for _, weight in threshold.size.linear.weights))
    reach = 4_000
    z = np.arange(-reach, reach + 1)
    for place, weight in threshold.size.linear.weights:
        scale = float(program.noise.scales[place])
        one = np.exp(-np.abs(z) / scale if program.noise.law == "laplace" else -(z**2) / (2 * scale**2))
        if threshold.cut is not None:
            one[np.abs(z) > threshold.cut] = 0
        step = abs(int(weight * unit))
        spread = np.zeros(2 * reach * step + 1)
        spread[::step] = one / one.sum()
        law = np.convolve(law, spread)
    away = np.arange(len(law)) - len(law) // 2
    return float(law[away >= (threshold.smallest - threshold.size.most) * unit].sum())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("limits", [Limits(1, 1), Limits(4, 2), Limits(40, 1)], ids=str)
@pytest.mark.parametrize("sql", [COUNT, MEAN, BOTH, PEOPLE])
def test_a_group_of_one_person_is_shown_with_at_most_its_share_of_delta(
    sql: str, limits: Limits, neighbours: Neighbours
) -> None:
    made = program(sql, limits=limits, neighbours=neighbours)
    if not isinstance(made.selection, Threshold):
        return
    twice = made.selection.cut is not None and neighbours is Neighbours.REPLACE
    share = made.selection.delta / (limits.groups * (2 if twice else 1))
    shown = chance(made, made.selection)
    assert shown <= share * (1 + 1e-6)
    assert shown >= share / (3 if sql == COUNT else 10)  # whole thresholds, and the slack of continuous noise
    lower = replace(made.selection, smallest=made.selection.smallest - 3)
    assert chance(made, lower) > shown


def test_the_threshold_of_a_plain_count_is_the_published_one() -> None:
    made = program(COUNT, limits=Limits())
    assert isinstance(made.selection, Threshold)
    assert made.selection.smallest == 12  # 1 + ceil(ln((e + 2e-5 - 1) / ((e + 1) 1e-5))): noise is cut at 11
    (measure,) = made.measures
    assert measure.cuts == ((0, 11),)
    before = program(COUNT, limits=Limits(), edition=ReleaseFormat.UNCUT)
    assert isinstance(before.selection, Threshold)
    assert before.selection.smallest == 13  # 1 + ceil(ln(1 / ((1 + 1/e) 1e-5)))
    assert before.event == made.event


def test_the_count_of_a_mean_selects_its_keys_for_nothing() -> None:
    for sql in (MEAN, SUM):
        made = program(sql, limits=Limits(2, 1))
        assert isinstance(made.selection, Threshold)
        assert len(made.measures) == 1
        assert len(made.reading.statistics) == 2


def test_many_rows_of_a_person_make_it_better_to_count_people() -> None:
    made = program(COUNT, limits=Limits(1, 50))
    assert isinstance(made.selection, OptimalGroupSelection)
    assert made.reading.statistics[-1].kind == "units"
    assert made.selection.half_kept < 50
    told = program("SELECT key, COUNT(DISTINCT id) AS p FROM t GROUP BY key", limits=Limits(1, 50))
    assert isinstance(told.selection, Threshold)
    assert told.selection.size.most == 1


def test_many_groups_of_a_person_make_gaussian_noise_better() -> None:
    made = program(COUNT, limits=Limits(200, 1))
    assert isinstance(made.selection, Threshold)
    assert made.noise.law == "gaussian"


def test_the_price_is_what_was_asked() -> None:
    for limits in (Limits(1, 1), Limits(1, 50), Limits(200, 1)):
        made = program(BOTH, limits=limits)
        assert made.selection is not None
        parts = [*(measure.event for measure in made.measures), made.selection.event]
        assert strip_calibration(made.event).events == tuple(parts)  # type: ignore[attr-defined]


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(10**6)])
def test_extreme_budgets_select_too(epsilon: Fraction) -> None:
    assert program(BOTH, limits=Limits(2, 2), epsilon=epsilon).selection is not None
