"""Several quantiles at once: the joint law on all small tables, its price, and how the budget is shared by levels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import pytest

from discreet.accounting.composition import compose as basic
from discreet.accounting.composition import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.exact import Enclosure
from discreet.mechanisms import quantile_draw as divide_module
from discreet.mechanisms import quantile_tree as tree_module
from discreet.mechanisms.mechanism import Law
from discreet.mechanisms.quantile_draw import IntervalDraw, part_of
from discreet.mechanisms.quantile_tree import QuantileNode, QuantileTree, best_shape, carry
from discreet.mechanisms.ranks import DisjointRanks, RankTarget, price_ranks
from discreet.mechanisms.value_counts import Histogram
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours, events

ADD, SWAP = Neighbours.ADD_REMOVE, Neighbours.REPLACE
LAST, GRAIN, MOST = 2, 1, 3
X = ColumnRef("x", Type.INT)
THREE = tuple(map(Fraction, ("1/4", "1/2", "9/10")))
QUARTERS = tuple(map(Fraction, ("1/4", "1/2", "3/4")))
Table = tuple[int, ...]


def contribution(neighbours: Neighbours, rows: int = 1, *, grouped: bool = False, groups: int = 1) -> QueryContribution:
    return QueryContribution.of(limits=Limits(groups, rows), neighbours=neighbours, shown=[None if grouped else 1])


def tree_of(limits: QueryContribution, law: Law, shares: Sequence[Fraction] = THREE, share: str = "2") -> QuantileTree:
    """A tree over three points of two places each."""
    made = QuantileTree.of(X, shares, LAST, limits, (law, Fraction(share)))
    assert made is not None
    return replace(made, grain=GRAIN)


def histogram(table: Table) -> Histogram:
    cells = Counter(table)
    return Histogram.of(LAST, 0, [*sorted(cells), *(cells[cell] for cell in sorted(cells))])


# ---------------------------------------------------------------------------- the law, from what the draws are made of


Outcome = Mapping[int, int]


class Joint:
    """The joint law of all places of a tree in one group, as the draws have it."""

    def __init__(self, tree: QuantileTree) -> None:
        self.tree = tree
        self.places = [[k for k in (place.lower, place.upper) if k is not None] for place in tree.nodes]
        self._scores: dict[Any, dict[int, Fraction]] = {}
        self._logs: dict[Any, float] = {}

    def outcomes(self, table: Table) -> list[dict[int, int]]:
        """Everything that can come out: a place for each quantile by its number, in the order of drawing."""
        values = histogram(table)
        found: list[dict[int, int]] = [{}]
        for level in range(len(self.tree.levels)):
            for number in self.tree.of_level(level):
                found = [
                    {**before, number: place}
                    for before in found
                    for part in [divide_module.part_of((), values, self.tree, number, before)]
                    for place in range(part.low, part.high + 1)
                ]
        return found

    def scores(self, table: Table, number: int, outcome: Outcome) -> dict[int, Fraction]:
        """The exponents of the weights of all places of one draw, given those before."""
        key = self._key(table, number, outcome)
        if key not in self._scores:
            part = divide_module.part_of((), histogram(table), self.tree, number, outcome)
            self._scores[key] = {z: part._rate * part.loss(z) for z in range(part.low, part.high + 1)}
            self._logs[key] = math.log(math.fsum(math.exp(-float(w)) for w in self._scores[key].values()))
        return self._scores[key]

    def _key(self, table: Table, number: int, outcome: Outcome) -> Any:
        return table, number, *(outcome[k] for k in self.places[number])

    def log(self, table: Table, outcome: Outcome) -> float:
        """The logarithm of a probability, nearly."""
        return -math.fsum(
            float(self.scores(table, number, outcome)[place]) + self._logs[self._key(table, number, outcome)]
            for number, place in outcome.items()
        )

    def exact_log(self, table: Table, outcome: Outcome, digits: int = 30) -> Enclosure:
        """The same, enclosed."""
        total = Enclosure.of(0, digits)
        for number, place in outcome.items():
            weights, whole = self.scores(table, number, outcome), Enclosure.of(0, digits)
            for exponent in weights.values():
                whole += Enclosure.of(-exponent, digits).exp()
            total = total - weights[place] - whole.log()
        return total

    def moved(self, one: Table, other: Table, number: int, outcome: Outcome) -> Fraction:
        """The length of the interval in which the privacy losses of one draw lie."""
        a, b = (self.scores(table, number, outcome) for table in (one, other))
        assert set(a) == set(b)
        moves = [a[place] - b[place] for place in a]
        return max(moves) - min(moves)

    def ranges(self, one: Table, other: Table) -> Iterator[tuple[events.Event, list[Fraction]]]:
        """For each level and all that can come out before it, how far the privacy losses of its draws range."""
        seen = set()
        for outcome in self.outcomes(one):
            for level, event in enumerate(self.tree.levels):
                before = (level, *(z for k, z in outcome.items() if self.tree.nodes[k].level < level))
                if before not in seen:
                    seen.add(before)
                    yield event, [self.moved(one, other, k, outcome) for k in self.tree.of_level(level)]

    def check(self, law: Law, one: Table, other: Table) -> None:
        """The ranges of each level are within its price, exactly; so are the privacy losses of all outcomes."""
        for event, ranges in self.ranges(one, other):
            assert sum(r * r for r in ranges) / 8 <= zcdp(terms(event)).rho
            assert law == "gaussian" or sum(ranges) <= basic(terms(event)).epsilon
        if law == "laplace":
            total = sum(Fraction(basic(terms(event)).epsilon) for event in self.tree.levels)
            worst = max(self.outcomes(one), key=lambda outcome: abs(self.log(one, outcome) - self.log(other, outcome)))
            loss = self.exact_log(one, worst) - self.exact_log(other, worst)
            assert not loss.below(-total)
            assert not Enclosure.of(total, 30).below(loss)


def tables(most: int) -> list[Table]:
    return [table for size in range(most + 1) for table in combinations_with_replacement(range(LAST + 1), size)]


def neighbours(relation: Neighbours, rows: int) -> Iterator[tuple[Table, Table]]:
    """Pairs that differ by what one unit has: up to so many rows, or up to so many instead of others."""
    for common in tables(MOST - rows):
        for old, new in product(tables(rows), tables(rows)):
            if old < new and (relation is SWAP or not old):
                yield tuple(sorted(common + old)), tuple(sorted(common + new))


def check_all(relation: Neighbours, rows: int, law: Law, shares: Sequence[Fraction] | None = None) -> None:
    if shares is None:
        shares = QUARTERS if relation is SWAP and law == "gaussian" else THREE
    joint = Joint(tree_of(contribution(relation, rows), law, shares))
    for one, other in neighbours(relation, rows):
        joint.check(law, one, other)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("relation", [ADD, SWAP])
def test_neighbours_are_as_near_as_was_charged(relation: Neighbours, rows: int, law: Law) -> None:
    check_all(relation, rows, law)


def test_the_ends_as_quantiles() -> None:
    check_all(ADD, 1, "laplace", tuple(map(Fraction, ("0", "1/2", "1"))))


@pytest.mark.parametrize("relation", [ADD, SWAP])
def test_groups_that_a_unit_leaves_and_enters(relation: Neighbours) -> None:
    """With keys a unit of one row is removed from a group, and under REPLACE added to another, too."""
    joint = Joint(tree_of(contribution(relation, grouped=True), "laplace"))
    for one, other in neighbours(ADD, 1):
        for event, ranges in joint.ranges(one, other):
            assert sum(ranges) * (1 if relation is ADD else 2) <= basic(terms(event)).epsilon


def test_the_price_is_reached() -> None:
    """For some tables and places the losses of a level range over most of its epsilon."""
    joint = Joint(tree_of(contribution(ADD), "laplace"))
    found: dict[events.Event, Fraction] = {}
    for one, other in neighbours(ADD, 1):
        for event, ranges in joint.ranges(one, other):
            found[event] = max(found.get(event, Fraction(0)), sum(ranges, Fraction(0)))
    assert len(found) == 2
    assert all(most > Fraction(3, 4) * Fraction(basic(terms(event)).epsilon) for event, most in found.items())


# ------------------------------------------------------------------------------------------------------------- mutants


def fails(relation: Neighbours, law: Law, rows: int = 1) -> None:
    """With shapes that were chosen before anything was broken."""
    with pytest.raises(AssertionError):
        check_all(relation, rows, law)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_mutant_values_move_losses_half_as_far(monkeypatch: pytest.MonkeyPatch, law: Law) -> None:
    right = price_ranks

    def loud(*arguments: Any) -> tuple[Fraction, events.Event]:
        constant, event = right(*arguments)
        return 2 * constant, event

    monkeypatch.setattr("discreet.mechanisms.quantile_tree.price_ranks", loud)
    fails(ADD, law)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_mutant_children_are_drawn_from_all_values(monkeypatch: pytest.MonkeyPatch, law: Law) -> None:
    def careless(
        key: tuple[()], values: Histogram, tree: QuantileTree, number: int, before: Mapping[int, int]
    ) -> IntervalDraw:
        right = part_of(key, values, tree, number, before)
        return replace(right, share=tree.shares[number], masses=(0, values.values << tree.grain))

    monkeypatch.setattr(divide_module, "part_of", careless)
    fails(ADD, law)


@pytest.mark.parametrize(("law", "name"), [("laplace", "moves"), ("gaussian", "l2_squared")])
def test_mutant_replaced_rows_are_priced_as_removed_ones(monkeypatch: pytest.MonkeyPatch, law: Law, name: str) -> None:
    right = getattr(DisjointRanks, name)
    best_shape(QUARTERS if law == "gaussian" else THREE, contribution(SWAP), law)  # as it is without the mistake
    monkeypatch.setattr(DisjointRanks, name, lambda parts, limits: right(parts, replace(limits, neighbours=ADD)))
    fails(SWAP, law)


def test_mutant_two_rows_are_priced_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    right = DisjointRanks.moves
    monkeypatch.setattr(
        DisjointRanks, "moves", lambda parts, limits: right(parts, replace(limits, limits=Limits(1, 1)))
    )
    fails(ADD, "laplace", rows=2)


# --------------------------------------------------------------------------------------------------- shapes and budgets

FOUR = tuple(map(Fraction, ("1/4", "1/2", "3/4", "19/20")))


def test_the_median_comes_first_and_levels_share_the_budget() -> None:
    shape = best_shape(FOUR, contribution(ADD), "laplace")
    assert shape is not None
    assert [place.level for place in shape.nodes] == [1, 0, 1, 2]
    assert [place.own for place in shape.nodes] == [Fraction(1, 2), Fraction(1, 2), Fraction(1, 2), Fraction(4, 5)]
    assert sum(shape.parts) == 1
    many = best_shape(tuple(Fraction(k, 32) for k in range(1, 32)), contribution(ADD), "laplace")
    assert many is not None
    assert len(many.parts) == 5
    assert {place.own for place in many.nodes} == {Fraction(1, 2)}


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_no_other_shares_of_the_levels_err_less(law: Law) -> None:
    shape = best_shape(FOUR, contribution(ADD), law)
    assert shape is not None
    costs = tree_module._coefficients(FOUR, shape.nodes, contribution(ADD), law)
    power = 2 if law == "laplace" else 1

    def error(parts: Sequence[Fraction]) -> Fraction:
        return sum((cost / part**power for cost, part in zip(costs, parts, strict=True)), Fraction(0))

    best = error(shape.parts)
    for up, down in product(range(3), range(3)):
        other = list(shape.parts)
        other[up] += Fraction(1, 50)
        other[down] -= Fraction(1, 50)
        assert up == down or error(other) > best
    assert best < len(FOUR) * Fraction(len(FOUR)) ** power  # each by itself, for a quarter of the budget


def test_errors_are_carried_over() -> None:
    """A part whose ends are e and f ranks off has its share s of them off by (1 - s) e + s f; and so on."""
    places = (
        QuantileNode(None, 1, 1, Fraction(1, 2)),
        QuantileNode(None, None, 0, Fraction(1, 2)),
        QuantileNode(1, 3, 2, Fraction(1, 4)),
        QuantileNode(1, None, 1, Fraction(4, 5)),
    )
    whole = Fraction(1)
    assert carry(places) == (
        {0: whole, 1: Fraction(1, 2)},
        {1: whole},
        {2: whole, 3: Fraction(1, 4), 1: Fraction(3, 4) + Fraction(1, 4) * Fraction(1, 5)},
        {3: whole, 1: Fraction(1, 5)},
    )


def test_variances_are_those_of_the_parts_and_of_what_is_carried_over() -> None:
    tree = tree_of(contribution(ADD), "laplace", FOUR)
    assert tree.variance(1) == 1 / tree.rates[1] ** 2
    assert tree.variance(0) == 1 / tree.rates[0] ** 2 + Fraction(1, 4) / tree.rates[1] ** 2
    for number, share in enumerate(FOUR):
        alone = Fraction(2, 4) / (2 * RankTarget(share).one)
        assert tree.variance(number) < 1 / alone**2
        assert tree.reach(number, LAST + 1, Fraction(1, 20)) > 0


def test_quantiles_that_are_close_stay_by_themselves() -> None:
    for shares in (("1/2", "51/100"), ("1/2",), ("1/2", "1/2")):
        assert best_shape(tuple(map(Fraction, shares)), contribution(ADD), "laplace") is None


def test_numbers_too_large_for_a_tree() -> None:
    wide, fine = 1 << 60, tuple(map(Fraction, ("200003/999983", "1/2", "900001/999979", "955001/999961")))
    budget: tuple[Law, Fraction] = ("laplace", Fraction(1))
    assert QuantileTree.of(X, THREE, wide, contribution(ADD), budget) is None
    assert QuantileTree.of(X, fine, 9, contribution(ADD), budget) is None
    for width in (9, 1 << 20, 1 << 45):
        made = QuantileTree.of(X, THREE, width, contribution(ADD), budget)
        assert made is not None
        assert (width + 1) << made.grain < 1 << 62
        assert max(place.own.denominator for place in made.nodes) << made.grain + 32 < 1 << 62


def test_roots_are_whole_and_just_below() -> None:
    for power, value in product((2, 3), (Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(10**9, 7))):
        root = tree_module._root(value, power)
        assert root == 1 or Fraction(root, 1024) ** power <= value
        assert value < Fraction(root + 1, 1024) ** power


def test_levels_cost_what_was_asked_together() -> None:
    for law, rows, groups in product(("laplace", "gaussian"), (1, 3), (1, 4)):
        limits = contribution(ADD, rows, grouped=True, groups=groups)
        tree = QuantileTree.of(X, FOUR, 99, limits, (law, Fraction(1, 3)))  # type: ignore[arg-type]
        assert tree is not None
        paid = basic(terms(tree.levels)).epsilon if law == "laplace" else zcdp(terms(tree.levels)).rho
        assert paid == Fraction(1, 3)
        for level, below in pairwise(range(len(tree.levels))):
            assert set(tree.of_level(level)) & set(tree.of_level(below)) == set()
