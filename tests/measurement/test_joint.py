"""Pairs of arguments: how far a row moves their sums, by brute force, and that all follows from them exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from discreet.measurement.aggregates import estimators, needs
from discreet.measurement.aggregates.covariance import CovarianceEstimator
from discreet.measurement.intervals.estimators import RatioEstimator
from discreet.measurement.releases.additive import JointStatistics
from discreet.measurement.releases.layouts import Layout, Requirements, build_centred_layout, build_paired_layout
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.nodes import Aggregate, ColumnRef
from discreet.plan.model.readings import Statistic
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from tests.cases import every

Pair = tuple[int | None, int | None]
X, Y = ColumnRef("x", Type.INT), ColumnRef("y", Type.INT)
KINDS: tuple[str, ...] = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept")
ENDS = {"x": (-2, 5), "y": (0, 3)}
XS, YS = (-9, -2, 1, 5, None), (0, 2, 9, None)  # beyond, on and between the bounds, and missing
ROWS: tuple[Pair, ...] = tuple(product(XS, YS))


def layout(*kinds: str, build: Any = build_paired_layout, arguments: tuple[ColumnRef, ColumnRef] = (X, Y)) -> Layout:
    columns = {
        name: ColumnSchema(name=name, type=Type.INT, bounds=ColumnBounds(Fraction(low), Fraction(high)))
        for name, (low, high) in ENDS.items()
    }
    asked, table = needs(aggregates(*kinds, arguments=arguments)), TableSchema(name="t", columns=columns)
    return build(Requirements.of(asked, table, most_rows=1, sized=False))  # type: ignore[no-any-return]


def aggregates(*kinds: str, arguments: tuple[ColumnRef, ColumnRef] = (X, Y)) -> tuple[Aggregate, ...]:
    first, second = arguments
    return tuple(Aggregate(name=kind, kind=kind, argument=first, other=second) for kind in kinds)


def clipped(row: Pair) -> tuple[int, int] | None:
    if row[0] is None or row[1] is None:
        return None
    x, y = (min(max(v, low), high) for v, (low, high) in zip(row, ENDS.values(), strict=True))  # type: ignore[type-var]
    return x, y  # type: ignore[return-value]


def term(statistic: Statistic, row: Pair) -> int:
    """What a row adds, by the statistic's own words; arguments are columns where both have a value."""
    both = clipped(row)
    if both is None:
        return 0
    if statistic.kind == "values":
        return 1
    own = both[column(statistic) == "y"] - statistic.shift
    return own if statistic.factor is None else own * term(statistic.factor, row) - statistic.less


def column(statistic: Statistic) -> str:
    argument: Any = statistic.argument
    return str(argument.arguments[2].name)


def added(form: JointStatistics, rows: tuple[Pair, ...]) -> tuple[int, ...]:
    return tuple(s.times * sum(term(s, row) for row in rows) for s in form.statistics)


def moves(form: JointStatistics, rows: int, neighbours: Neighbours) -> Iterator[tuple[int, ...]]:
    bags = [bag for n in range(rows + 1) for bag in combinations_with_replacement(ROWS, n)]
    found = {added(form, bag) for bag in bags}
    if neighbours is Neighbours.ADD_REMOVE:
        yield from found
        return
    yield from (tuple(a - b for a, b in zip(new, old, strict=True)) for new, old in product(found, found))


def check_bound(form: JointStatistics, rows: int, neighbours: Neighbours) -> None:
    """No neighbour is farther than claimed; one that comes or goes is as far."""
    contribution = QueryContribution(limits=Limits(1, rows), neighbours=neighbours)
    found = list(moves(form, rows, neighbours))
    width = len(form.statistics)
    for weights in ([Fraction(1, 3)] * width, [Fraction(1, 2 + i * i) for i in range(width)]):
        for power, bound in ((1, contribution.l1), (2, contribution.l2_squared)):
            claimed = bound(form.corners, weights)
            largest = max(sum(abs(m * w) ** power for m, w in zip(move, weights, strict=True)) for move in found)
            assert largest <= claimed
            assert neighbours is Neighbours.REPLACE or largest == claimed


@every("neighbours", Neighbours)
@every("rows", [1, 2])
@every("kind", KINDS)
def test_no_unit_moves_the_sums_farther_than_claimed(kind: str, rows: int, neighbours: Neighbours) -> None:
    (form,) = layout(kind).forms
    check_bound(form, 1 if neighbours is Neighbours.REPLACE else rows, neighbours)


@pytest.mark.parametrize("place", range(6))
def test_mutant_a_side_of_the_box_too_short(place: int) -> None:
    (form,) = layout("corr").forms
    largest = max(abs(corner[place]) for corner in form.corners)
    nearer = {largest: largest - 1, -largest: 1 - largest}
    short = tuple((*k[:place], nearer.get(k[place], k[place]), *k[place + 1 :]) for k in form.corners)
    with pytest.raises(AssertionError):
        check_bound(replace(form, corners=short), 1, Neighbours.ADD_REMOVE)


def test_mutant_products_from_another_centre() -> None:
    (form,) = layout("covar_pop").forms
    wrong = tuple(replace(s, shift=0) if s.kind == "product" else s for s in form.statistics)
    with pytest.raises(AssertionError):
        check_bound(replace(form, statistics=wrong), 1, Neighbours.ADD_REMOVE)


def test_all_aggregates_of_two_arguments_share_one_form() -> None:
    assert [len(form.statistics) for form in layout(*KINDS).forms] == [6]
    assert [len(form.statistics) for form in layout("covar_pop", "covar_samp").forms] == [4]
    assert layout("corr").forms == layout("corr", arguments=(Y, X)).forms


def mean(ratio: RatioEstimator, exact: list[int]) -> Fraction:
    return ratio.centre + ratio.top.value(exact) / ratio.bottom.value(exact)


@pytest.mark.parametrize("build", [build_paired_layout, build_centred_layout])
@pytest.mark.parametrize("arguments", [(X, Y), (Y, X)])
def test_without_noise_every_part_is_exact(build: Any, arguments: tuple[ColumnRef, ColumnRef]) -> None:
    made = layout(*KINDS, build=build, arguments=arguments)
    exact = [number for form in made.forms for number in added(form, ROWS)]
    found = [both for row in ROWS if (both := clipped(row)) is not None]
    pairs = [(y, x) if arguments[0] == Y else (x, y) for x, y in found]
    n = len(pairs)
    a, b = Fraction(sum(x for x, _ in pairs), n), Fraction(sum(y for _, y in pairs), n)
    for recipe in estimators(aggregates(*KINDS, arguments=arguments), made.sources).values():
        assert isinstance(recipe, CovarianceEstimator)
        assert (mean(recipe.first, exact), mean(recipe.second, exact)) == (a, b)
        assert recipe.product.bottom.value(exact) == n
        centres = recipe.first.centre, recipe.second.centre
        together = Fraction(sum((x - centres[0]) * (y - centres[1]) for x, y in pairs)) / n
        assert mean(recipe.product, exact) == together
        for spread in recipe.spreads:
            values = [x if spread.mean == recipe.first else y for x, y in pairs]
            squares = Fraction(sum((v - spread.origin) ** 2 for v in values)) / n
            assert mean(spread.squares, exact) == squares
