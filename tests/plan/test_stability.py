"""What one unit can change, by brute force over everything a unit can own, under both relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import pytest

from discreet.plan import aggregates, stability
from discreet.plan.aggregates import Form, Steps
from discreet.plan.nodes import Column
from discreet.plan.reading import Statistic
from discreet.plan.schema import Bounds, Limits
from discreet.plan.stability import Contribution
from discreet.plan.types import Type
from discreet.privacy import Neighbours

X = Column("x", Type.INT)
BOUNDS = Bounds(Fraction(-2), Fraction(5))
VALUES = (-9, -2, 1, 5, 9, None)  # beyond the bounds on both sides, on them, between them, and missing

STEPS, POSITIVE = (Steps.of(bounds, Type.INT) for bounds in (BOUNDS, Bounds(Fraction(0), Fraction(5))))
FORMS: dict[str, Form] = {
    "rows": aggregates.rows_form(),
    "values": aggregates.values_form(X),
    "values and nulls": aggregates.values_form(X, nulls=True),
    "units": aggregates.units_form(),
    "sum": aggregates.sum_form(X, STEPS),
    "sum of positives": aggregates.sum_form(X, POSITIVE),
    "pair": aggregates.paired_form(X, STEPS, nulls=False),
    "pair and nulls": aggregates.paired_form(X, STEPS, nulls=True),
    "centred": aggregates.centred_form(X, STEPS),
}

Rows = tuple[int | None, ...]
Owned = dict[str, Rows]  # the rows of one unit in each group


def term(statistic: Statistic, x: int | None) -> int:
    if statistic.kind in ("rows", "nulls"):
        return int(statistic.kind == "rows" or x is None)
    if x is None:
        return 0
    return 1 if statistic.kind == "values" else min(max(x, statistic.low), statistic.high) - statistic.shift


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


def moves(form: Form, names: str, limits: Limits, neighbours: Neighbours) -> Iterator[list[tuple[int, ...]]]:
    """The difference of the statistics of neighbours, one vector for each group."""
    zero = (0,) * len(form.statistics)
    owned = [tuple(added(form, o[g]) if g in o else zero for g in names) for o in everything(names, limits)]
    distinct = sorted(Counter(owned))
    if neighbours is Neighbours.ADD_REMOVE:
        yield from (list(one) for one in distinct)
        return
    for old, new in product(distinct, distinct):
        yield [tuple(a - b for a, b in zip(n, o, strict=True)) for n, o in zip(new, old, strict=True)]


def weighted(vectors: Sequence[Sequence[int]], weights: Sequence[Fraction], power: int) -> Fraction:
    return sum((abs(x * w) ** power for vector in vectors for x, w in zip(vector, weights, strict=True)), Fraction(0))


def check_bound(name: str, limits: Limits, names: str, neighbours: Neighbours) -> None:
    """No neighbour is farther than the bound, and one is exactly as far."""
    form = FORMS[name]
    contribution = Contribution(limits=limits, grouped=len(names) > 1, neighbours=neighbours)
    found = list(moves(form, names, limits, neighbours))
    for weights in ((Fraction(1, 3),) * 3, (Fraction(2), Fraction(1, 7), Fraction(1, 2))):
        used = weights[: len(form.statistics)]
        for power, bound in ((1, contribution.l1), (2, contribution.l2_squared)):
            claimed = bound(form.corners, used, once=form.once)
            largest = max(weighted(move, used, power) for move in found)
            assert largest <= claimed
            assert largest == claimed


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("limits", [Limits(1, 1), Limits(1, 2), Limits(2, 1)], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_no_unit_moves_the_statistics_farther_than_claimed(name: str, limits: Limits, neighbours: Neighbours) -> None:
    names = "abcd"[: 2 * limits.groups]  # under REPLACE old and new groups can be different ones
    check_bound(name, limits, names, neighbours)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", FORMS)
def test_without_groups(name: str, rows: int, neighbours: Neighbours) -> None:
    check_bound(name, Limits(1, rows), "a", neighbours)


def test_known_sensitivities() -> None:
    """Counts and histograms: 1 and 1 under add/remove, 1 and 2 under replace; ages from 18 to 100: 100 and 82."""
    one = [Fraction(1)]
    ages = aggregates.sum_form(X, Steps.of(Bounds(Fraction(18), Fraction(100)), Type.INT))
    for neighbours, count, histogram, total in ((Neighbours.ADD_REMOVE, 1, 1, 100), (Neighbours.REPLACE, 1, 2, 100)):
        alone = Contribution(limits=Limits(), grouped=False, neighbours=neighbours)
        grouped = Contribution(limits=Limits(), grouped=True, neighbours=neighbours)
        assert alone.l1(FORMS["rows"].corners, one) == count
        assert grouped.l1(FORMS["rows"].corners, one) == histogram
        assert alone.l1(ages.corners, one) == total  # replace: 82 only if no row can be filtered out


class TestMutants:
    """Each slip is seen by the brute-force check."""

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
