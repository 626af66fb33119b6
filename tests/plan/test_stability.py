"""What one unit can change, by brute force over everything a unit can own, under both relations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.measurement.releases import layouts, moments
from discreet.measurement.releases.additive import Form
from discreet.measurement.releases.grids import Steps
from discreet.measurement.releases.moments import half_square, trapezoid
from discreet.plan.analysis import stability
from discreet.plan.analysis.stability import Contribution
from discreet.plan.model.nodes import Column
from discreet.plan.model.readings import Statistic
from discreet.plan.model.schema import Bounds, Limits
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from tests.cases import every

X = Column("x", Type.INT)
BOUNDS = Bounds(Fraction(-2), Fraction(5))
VALUES = (-9, -2, 1, 5, 9, None)  # beyond the bounds on both sides, on them, between them, and missing

STEPS, POSITIVE = (Steps.of(bounds, Type.INT) for bounds in (BOUNDS, Bounds(Fraction(0), Fraction(5))))
FORMS: dict[str, Form] = {
    "rows": layouts.rows_form(),
    "values": moments.values_form(X),
    "values and nulls": moments.values_form(X, nulls=True),
    "units": layouts.units_form(),
    "sum": moments.sum_form(X, STEPS),
    "sum of positives": moments.sum_form(X, POSITIVE),
    "pair": moments.paired_form(X, STEPS, nulls=False),
    "pair and nulls": moments.paired_form(X, STEPS, nulls=True),
    "centred": moments.centred_form(X, STEPS),
    "pair and squares": moments.paired_form(X, STEPS, 2, nulls=False),
    "pair, squares and nulls": moments.paired_form(X, STEPS, 2, nulls=True),
    "centred and squares": moments.centred_form(X, STEPS, 2),
    "pair and cubes": moments.paired_form(X, STEPS, 3, nulls=False),
    "pair, cubes and nulls": moments.paired_form(X, STEPS, 3, nulls=True),
    "centred and cubes": moments.centred_form(X, STEPS, 3),
}
CURVED = {
    name for name in FORMS if "squares" in name or "cubes" in name
}  # corners around a curve, not on it: near where rows are replaced

Rows = tuple[int | None, ...]
Owned = dict[str, Rows]  # the rows of one unit in each group


def term(statistic: Statistic, x: int | None) -> int:
    if statistic.kind in ("rows", "nulls"):
        return int(statistic.kind == "rows" or x is None)
    if x is None:
        return 0
    own = min(max(x, statistic.low), statistic.high) - statistic.shift
    if statistic.factor is not None:
        return own * term(statistic.factor, x) - statistic.less
    return 1 if statistic.kind == "values" else own


def added(form: Form, rows: Rows) -> tuple[int, ...]:
    """What the rows of one unit in one group add to the statistics."""
    return tuple(
        int(bool(rows)) if statistic.kind == "units" else statistic.times * sum(term(statistic, x) for x in rows)
        for statistic in form.statistics
    )


def everything(names: str, limits: Limits) -> Iterator[Owned]:
    """All that a unit can own within the limits."""
    bags = [bag for n in range(1, limits.rows + 1) for bag in combinations_with_replacement(VALUES, n)]
    for count in range(limits.groups + 1):
        for chosen in combinations(names, count):
            for rows in product(bags, repeat=count):
                yield dict(zip(chosen, rows, strict=True))


def moves(form: Form, names: str, limits: Limits, neighbours: Neighbours) -> NDArray[np.int64]:
    """The differences of the statistics of neighbours: for each pair of them, and each group, a vector."""
    zero = (0,) * len(form.statistics)
    owned = [tuple(added(form, o[g]) if g in o else zero for g in names) for o in everything(names, limits)]
    distinct = np.array(sorted(set(owned)), dtype=np.int64)
    if neighbours is Neighbours.ADD_REMOVE:
        return distinct
    return (distinct[:, None] - distinct).reshape(-1, *distinct.shape[1:])


def farthest(found: NDArray[np.int64], weights: Sequence[Fraction], power: int) -> Fraction:
    """The largest sum of powers of weighted differences, exactly: weights as whole parts of one unit."""
    unit = math.lcm(*(weight.denominator for weight in weights))
    sizes = np.abs(found) * np.array([int(weight * unit) for weight in weights])
    assert int(sizes.max()) < 1 << 25  # so that no square and no sum of them overflows
    return Fraction(int((sizes**power).sum(axis=(1, 2)).max()), unit**power)


def check_bound(
    name: str, limits: Limits, names: str, neighbours: Neighbours, forms: Mapping[str, Form] = FORMS
) -> None:
    """No neighbour is farther than the bound, and one is exactly as far."""
    form, is_near = forms[name], name in CURVED and neighbours is Neighbours.REPLACE
    contribution = Contribution(limits=limits, grouped=len(names) > 1, neighbours=neighbours)
    found = moves(form, names, limits, neighbours)
    for weights in ((Fraction(1, 3),) * 5, (Fraction(2), *(Fraction(1, part) for part in (7, 2, 5, 3)))):
        used = weights[: len(form.statistics)]
        for power, bound in ((1, contribution.l1), (2, contribution.l2_squared)):
            claimed = bound(form.corners, used, once=form.once)
            largest = farthest(found, used, power)
            assert largest <= claimed
            assert claimed <= largest * (Fraction(3, 2) if is_near else 1)


LIMITS = (Limits(1, 1), Limits(1, 2), Limits(2, 1))
MANY = {name for name in CURVED if name != "pair and squares"}  # of which two groups have many different moves
CASES = [
    pytest.param(
        name, limits, id=f"{name}, {limits}", marks=[pytest.mark.slow] if name in MANY and limits.groups > 1 else []
    )
    for name in FORMS
    for limits in LIMITS
]


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("name", "limits"), CASES)
def test_no_unit_moves_the_statistics_farther_than_claimed(name: str, limits: Limits, neighbours: Neighbours) -> None:
    names = "abcd"[: 2 * limits.groups]  # under REPLACE old and new groups can be different ones
    check_bound(name, limits, names, neighbours)


@every("neighbours", Neighbours)
@every("rows", [1, 2])
@every("name", FORMS)
def test_without_groups(name: str, rows: int, neighbours: Neighbours) -> None:
    check_bound(name, Limits(1, rows), "a", neighbours)


def test_known_sensitivities() -> None:
    """Counts and histograms: 1 and 1 under add/remove, 1 and 2 under replace; ages from 18 to 100: 100 and 82."""
    one = [Fraction(1)]
    ages = moments.sum_form(X, Steps.of(Bounds(Fraction(18), Fraction(100)), Type.INT))
    for neighbours, count, histogram, total in ((Neighbours.ADD_REMOVE, 1, 1, 100), (Neighbours.REPLACE, 1, 2, 100)):
        alone = Contribution(limits=Limits(), grouped=False, neighbours=neighbours)
        grouped = Contribution(limits=Limits(), grouped=True, neighbours=neighbours)
        assert alone.l1(FORMS["rows"].corners, one) == count
        assert grouped.l1(FORMS["rows"].corners, one) == histogram
        assert alone.l1(ages.corners, one) == total  # replace: 82 only if no row can be filtered out


@given(
    st.tuples(st.integers(-300, 300), st.integers(1, 300)).map(lambda ends: Steps(0, ends[0], ends[0] + ends[1])),
    st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)),
)
def test_the_trapezoid_holds_every_point_of_its_curve(steps: Steps, way: tuple[int, int]) -> None:
    """No point is farther in any direction than some corner."""

    def far(point: tuple[int, int]) -> int:
        return point[0] * way[0] + point[1] * way[1]

    points = [
        (x - steps.middle, (x - steps.middle) ** 2 - half_square(steps)) for x in range(steps.low, steps.high + 1)
    ]
    assert max(map(far, points)) <= max(map(far, trapezoid(steps)))


class TestMutants:
    """Each slip is seen by the brute-force check."""

    @pytest.mark.parametrize("slip", ["a corner too near", "less forgotten", "a square of another centre"])
    def test_squares(self, slip: str) -> None:
        form = FORMS["pair and squares"]
        square = form.statistics[2]
        if slip == "a corner too near":
            broken = replace(form, corners=tuple((a, b, q - 1 if q > 0 else q) for a, b, q in form.corners))
        elif slip == "less forgotten":
            broken = replace(form, statistics=(*form.statistics[:2], replace(square, less=0)))
        else:
            broken = replace(form, statistics=(*form.statistics[:2], replace(square, shift=0)))
        with pytest.raises(AssertionError):
            check_bound("x", Limits(1, 1), "ab", Neighbours.ADD_REMOVE, {"x": broken})

    def test_replace_like_add_remove(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = Contribution.l1

        def wrong(self: Contribution, *arguments: object, **options: object) -> Fraction:
            added_only = Contribution(limits=self.limits, grouped=self.grouped, neighbours=Neighbours.ADD_REMOVE)
            return right(added_only, *arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(Contribution, "l1", wrong)
        with pytest.raises(AssertionError):
            check_bound("rows", Limits(1, 1), "ab", Neighbours.REPLACE)

    def test_rows_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = Contribution.l2_squared
        monkeypatch.setattr(
            Contribution, "l2_squared", lambda self, corners, weights, **_: right(self, corners, weights, once=True)
        )
        with pytest.raises(AssertionError):
            check_bound("sum", Limits(1, 2), "ab", Neighbours.ADD_REMOVE)

    def test_a_corner_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = stability._length
        monkeypatch.setattr(stability, "_length", lambda vector, weights: right(vector[1:], weights[1:]))
        with pytest.raises(AssertionError):
            check_bound("pair", Limits(1, 1), "ab", Neighbours.ADD_REMOVE)
