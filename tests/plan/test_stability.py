"""What one unit can change, by brute force over everything a unit can own, under both relations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.measurement.releases import argument_moments, layouts
from discreet.measurement.releases.additive import JointStatistics
from discreet.measurement.releases.argument_moments import half_square, trapezoid
from discreet.measurement.releases.grids import Steps
from discreet.plan.analysis import stability
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import Statistic
from discreet.plan.model.schema import ColumnBounds, Limits
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from tests.cases import every, try_all

X = ColumnRef("x", Type.INT)
BOUNDS = ColumnBounds(Fraction(-2), Fraction(5))
VALUES = (-9, -2, 1, 5, 9, None)  # beyond the bounds on both sides, on them, between them, and missing

STEPS, POSITIVE = (Steps.of(bounds, Type.INT) for bounds in (BOUNDS, ColumnBounds(Fraction(0), Fraction(5))))
FORMS: dict[str, JointStatistics] = {
    "rows": layouts.rows_form(),
    "values": argument_moments.values_form(X),
    "values and nulls": argument_moments.values_form(X, nulls=True),
    "units": layouts.units_form(),
    "sum": argument_moments.sum_form(X, STEPS),
    "sum of positives": argument_moments.sum_form(X, POSITIVE),
    "pair": argument_moments.paired_form(X, STEPS, nulls=False),
    "pair and nulls": argument_moments.paired_form(X, STEPS, nulls=True),
    "centred": argument_moments.centred_form(X, STEPS),
    "pair and squares": argument_moments.paired_form(X, STEPS, 2, nulls=False),
    "pair, squares and nulls": argument_moments.paired_form(X, STEPS, 2, nulls=True),
    "centred and squares": argument_moments.centred_form(X, STEPS, 2),
    "pair and cubes": argument_moments.paired_form(X, STEPS, 3, nulls=False),
    "pair, cubes and nulls": argument_moments.paired_form(X, STEPS, 3, nulls=True),
    "centred and cubes": argument_moments.centred_form(X, STEPS, 3),
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


def added(form: JointStatistics, rows: Rows) -> tuple[int, ...]:
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
                if limits.total is None or sum(map(len, rows)) <= limits.total:
                    yield dict(zip(chosen, rows, strict=True))


def moves(form: JointStatistics, names: str, limits: Limits, neighbours: Neighbours) -> NDArray[np.int64]:
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


WEIGHTS = ((Fraction(1, 3),) * 5, (Fraction(2), *(Fraction(1, part) for part in (7, 2, 5, 3))))


def check_bound(
    name: str, limits: Limits, names: str, neighbours: Neighbours, forms: Mapping[str, JointStatistics] = FORMS
) -> None:
    """No neighbour is farther than the bound, and one is exactly as far."""
    form = forms[name]
    found = moves(form, names, limits, neighbours)

    def far(used: Sequence[Fraction], power: int) -> Fraction:
        return farthest(found, used, power)

    check_claims(form, contribution(limits, neighbours, len(names)), far, is_curved=name in CURVED)


def contribution(limits: Limits, neighbours: Neighbours, shown: int | None) -> QueryContribution:
    return QueryContribution.of(limits=limits, neighbours=neighbours, shown=[shown])


def check_claims(
    form: JointStatistics,
    claims: QueryContribution,
    far: Callable[[Sequence[Fraction], int], Fraction],
    *,
    is_curved: bool,
) -> None:
    """The bound holds in both norms, for several weights, and is attained, or nearly if corners are around a curve."""
    is_near = is_curved and claims.neighbours is Neighbours.REPLACE
    for weights in WEIGHTS:
        used = weights[: len(form.statistics)]
        for power, bound in ((1, claims.l1), (2, claims.l2_squared)):
            claimed, largest = bound(form.corners, used, once=form.once), far(used, power)
            assert largest <= claimed
            assert claimed <= largest * (Fraction(3, 2) if is_near else 1)


# ---------------------------------------------------------------------------------------------------- few public groups


@cache
def in_a_group(name: str, rows: int) -> NDArray[np.int64]:
    """All that a unit with a row in a group may add to it."""
    bags = [bag for n in range(1, rows + 1) for bag in combinations_with_replacement(VALUES, n)]
    return np.array(sorted({added(FORMS[name], bag) for bag in bags}), dtype=np.int64)


@cache
def sizes(name: str, rows: int, weights: tuple[Fraction, ...], power: int) -> dict[tuple[int, int], Fraction]:
    """The largest move of one group, by whether the unit was in it before and is in it afterwards."""
    owned = in_a_group(name, rows)[:, None, :]
    pairs = (owned - owned.swapaxes(0, 1)).reshape(-1, 1, owned.shape[2])
    alone, stays = (farthest(found, weights, power) for found in (owned, pairs))
    return {(0, 0): Fraction(0), (1, 0): alone, (0, 1): alone, (1, 1): stays}


def over_groups(each: Mapping[tuple[int, int], Fraction], most: int, shown: int, neighbours: Neighbours) -> Fraction:
    """The largest sum over so many groups, group by group: for each number of groups used before and after."""
    best = {(0, 0): Fraction(0)}
    for _ in range(shown):
        longer: dict[tuple[int, int], Fraction] = {}
        for (old, new), (before, after) in product(best, each):
            used = old + before, new + after
            if max(used) <= most and (neighbours is Neighbours.REPLACE or used[1] == 0):
                longer[used] = max(longer.get(used, Fraction(0)), best[old, new] + each[before, after])
        best = longer
    return max(best.values())


def check_few_groups(name: str, limits: Limits, shown: int, neighbours: Neighbours) -> None:
    """No neighbour is farther than the bound for so many public groups, and one is exactly as far."""

    def far(used: Sequence[Fraction], power: int) -> Fraction:
        return over_groups(sizes(name, limits.rows, tuple(used), power), limits.groups, shown, neighbours)

    check_claims(FORMS[name], contribution(limits, neighbours, shown), far, is_curved=name in CURVED)


FEW = [
    (Limits(groups, rows), shown, neighbours)
    for groups, rows, shown, neighbours in product(range(1, 5), range(1, 4), range(1, 5), Neighbours)
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMS)
def test_few_public_groups(name: str) -> None:
    """One to four groups, of which a unit may enter one to four with one to three rows each, in both relations."""
    try_all(FEW, lambda case: check_few_groups(name, *case))


def test_group_by_group_is_every_neighbour() -> None:
    """What is found group by group is what all neighbours are, tried one by one."""
    for name, groups, shown, neighbours in product(("pair and nulls", "units"), (1, 2), (1, 2, 3), Neighbours):
        limits, weights = Limits(groups, 1), WEIGHTS[1][: len(FORMS[name].statistics)]
        found = moves(FORMS[name], "abc"[:shown], limits, neighbours)
        for power in (1, 2):
            each = sizes(name, 1, weights, power)
            assert over_groups(each, groups, shown, neighbours) == farthest(found, weights, power)


def test_two_genders_move_by_two() -> None:
    """Known values: COUNT(*) of one row a group, by the number of groups, the limit and the relation."""
    rows, one = FORMS["rows"].corners, [Fraction(1)]
    few: dict[tuple[int | None, int], int] = {(1, 7): 1, (2, 2): 2, (2, 9): 2, (3, 2): 3, (3, 3): 3, (4, 3): 4}
    for (shown, limit), moved in {**few, (4, 2): 4, (5, 3): 5, (6, 3): 6, (None, 3): 6}.items():
        replaced = contribution(Limits(limit, 1), Neighbours.REPLACE, shown)
        assert replaced.l1(rows, one) == replaced.l2_squared(rows, one) == moved, (shown, limit)
        joined = contribution(Limits(limit, 1), Neighbours.ADD_REMOVE, shown)
        assert joined.l1(rows, one) == min(limit, shown or limit)


def test_several_groupings_add_up() -> None:
    for neighbours in Neighbours:
        together = QueryContribution.of(limits=Limits(3, 2), neighbours=neighbours, shown=[2, 4, None, 1])
        each = [contribution(Limits(3, 2), neighbours, shown) for shown in (2, 4, None, 1)]
        for form in FORMS.values():
            ones = [Fraction(1)] * len(form.statistics)
            assert together.l1(form.corners, ones) == sum(one.l1(form.corners, ones) for one in each)
            assert together.l2_squared(form.corners, ones) == sum(one.l2_squared(form.corners, ones) for one in each)


def test_never_more_than_by_limits_alone() -> None:
    """Fewer groups are never farther, and many are as far as if nobody knew their number."""
    for limits, neighbours in product((Limits(1, 1), Limits(3, 2)), Neighbours):
        known = [contribution(limits, neighbours, shown) for shown in (1, 2, 3, 4, 5, 6, 7, None)]
        for form in FORMS.values():
            ones = [Fraction(1)] * len(form.statistics)
            far = [each.l1(form.corners, ones) for each in known]
            assert far == sorted(far)
            before = QueryContribution.by_limits(limits=limits, neighbours=neighbours, grouped=[True])
            assert far[-1] == far[-2] == before.l1(form.corners, ones)
            assert before.l2_squared(form.corners, ones) == known[-1].l2_squared(form.corners, ones)


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


TOTALS = [
    (Limits(total=total), shown, neighbours)
    for total, shown, neighbours in product((1, 2, 3), (1, 2, 3), Neighbours)
    if total < 3 or shown < 3  # of three rows in three groups there are too many neighbours
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in FORMS if name not in MANY])
def test_a_total_of_rows(name: str) -> None:
    """One to three rows of a unit in all of one to three groups together, in both relations."""
    try_all(TOTALS, lambda case: check_bound(name, case[0], "abc"[: case[1]], case[2]))


def test_a_total_is_that_of_one_group() -> None:
    """It is not multiplied by groups: 50 rows in any groups move counts by 50, and squares by 50^2 (100, 2 50^2)."""
    rows, one, limits = FORMS["rows"].corners, [Fraction(1)], Limits(total=50)
    for neighbours, times in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE, 2)):
        for shown in (7, None):
            moved = contribution(limits, neighbours, shown)
            assert [moved.l1(rows, one), moved.l2_squared(rows, one)] == [times * 50, times * 2500]
        alone = contribution(limits, neighbours, 1)
        assert [alone.l1(rows, one), alone.l2_squared(rows, one)] == [50, 2500]
        summed = contribution(limits, neighbours, 12).added_up(sums=3, parts=4)
        assert [summed.l1(rows, one), summed.l2_squared(rows, one)] == [times * 50, times * 2500]
        assert contribution(limits, neighbours, 12).added_up(sums=1, parts=12).l2_squared(rows, one) == 2500
        units = FORMS["units"].corners
        assert contribution(limits, neighbours, None).l1(units, one, once=True) == times * 50


def test_a_total_of_each_grouping() -> None:
    for neighbours in Neighbours:
        together = QueryContribution.of(limits=Limits(total=3), neighbours=neighbours, shown=[2, None, 1])
        each = [contribution(Limits(total=3), neighbours, shown) for shown in (2, None, 1)]
        for form in FORMS.values():
            ones = [Fraction(1)] * len(form.statistics)
            assert together.l1(form.corners, ones) >= sum(one.l1(form.corners, ones) for one in each)
            assert together.l2_squared(form.corners, ones) >= sum(one.l2_squared(form.corners, ones) for one in each)


def test_known_sensitivities() -> None:
    """Counts and histograms: 1 and 1 under add/remove, 1 and 2 under replace; ages from 18 to 100: 100 and 82."""
    one = [Fraction(1)]
    ages = argument_moments.sum_form(X, Steps.of(ColumnBounds(Fraction(18), Fraction(100)), Type.INT))
    for neighbours, count, histogram, total in ((Neighbours.ADD_REMOVE, 1, 1, 100), (Neighbours.REPLACE, 1, 2, 100)):
        alone = contribution(Limits(), neighbours, 1)
        grouped = contribution(Limits(), neighbours, None)
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
        right = QueryContribution.l1

        def wrong(self: QueryContribution, *arguments: object, **options: object) -> Fraction:
            added_only = replace(self, neighbours=Neighbours.ADD_REMOVE)
            return right(added_only, *arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(QueryContribution, "l1", wrong)
        with pytest.raises(AssertionError):
            check_bound("rows", Limits(1, 1), "ab", Neighbours.REPLACE)

    @pytest.mark.parametrize("neighbours", Neighbours)
    def test_a_total_forgotten(self, monkeypatch: pytest.MonkeyPatch, neighbours: Neighbours) -> None:
        """A unit may have all of its rows in one group, and leaves one group for another if it is replaced."""
        if neighbours is Neighbours.ADD_REMOVE:
            monkeypatch.setattr(QueryContribution, "rows", 1)
            right = QueryContribution.l1
            monkeypatch.setattr(QueryContribution, "l1", lambda self, *a, **_: right(self, *a, once=True) / self.groups)
        else:
            monkeypatch.setattr(QueryContribution, "full_overlap", property(lambda self: self.full_groups))
        with pytest.raises(AssertionError):
            check_bound("rows", Limits(total=2), "ab", neighbours)

    def test_rows_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = QueryContribution.l2_squared
        monkeypatch.setattr(
            QueryContribution,
            "l2_squared",
            lambda self, corners, weights, **_: right(self, corners, weights, once=True),
        )
        with pytest.raises(AssertionError):
            check_bound("sum", Limits(1, 2), "ab", Neighbours.ADD_REMOVE)

    def test_a_corner_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = stability._length
        monkeypatch.setattr(stability, "_length", lambda vector, weights: right(vector[1:], weights[1:]))
        with pytest.raises(AssertionError):
            check_bound("pair", Limits(1, 1), "ab", Neighbours.ADD_REMOVE)
