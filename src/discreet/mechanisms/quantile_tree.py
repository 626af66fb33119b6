"""Several quantiles of one argument at once, by recursive splitting: what each level draws, costs and hands on.

A quantile that was drawn divides the values of its group; the next ones are looked for in the parts (Kaplan, Schnapp,
Stemmer 2022, "Differentially private approximate quantiles"). Everything here follows from public facts.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

from discreet.dataclass import dataclass
from discreet.mechanisms.mechanism import Law
from discreet.mechanisms.ranks import FARTHEST, ContributionLimits, DisjointRanks, RankAim, RankTarget, price_ranks
from discreet.privacy import events

FINEST_GRAIN, COARSEST_GRAIN = 16, 8
"""A point of the grid is divided into 2^16 places, or into fewer where numbers would not fit into 62 bits."""

_ALL_TREES = 5  # of so many quantiles every tree is looked at, of more the balanced ones


@dataclass(frozen=True, slots=True)
class QuantileNode:
    """The place of a quantile in a tree.

    Args:
        lower: the nearest of the smaller quantiles that are drawn before it, by its number; None if there is none.
        upper: of the larger ones.
        level: how many are drawn before it, one after the other.
        own: its share of the values between these two.
    """

    lower: int | None
    upper: int | None
    level: int
    own: Fraction


@dataclass(frozen=True, slots=True)
class QuantileTreeShape:
    """How quantiles are arranged, and which part of their budget each level gets."""

    nodes: tuple[QuantileNode, ...]
    parts: tuple[Fraction, ...]

    def of_level(self, level: int) -> list[int]:
        """Returns the numbers of the quantiles that are drawn together."""
        return [number for number, node in enumerate(self.nodes) if node.level == level]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileTree:
    """One point in every group for each of several quantiles, level by level.

    A point is looked for between the nearest two that were drawn before it, each end included, with a probability
    proportional to e^(-rate loss), where the loss is that of `DisjointRanks`. Points of the grid are divided into
    2^grain places each; what is released in the end is the point.

    Formal guarantee: whatever the data, releasing the points of all groups, or of those that were selected to be shown,
    is described by `levels` together, under the relation and the limits of the contribution it was built for.

    Proof. Fix what the levels before have released. The parts of this level are then fixed, too, and so are the options
    in each; its points are drawn independently. Let the losses of part k in group g move by at most m between two
    neighbours. The privacy loss of the point that is drawn there lies in an interval of length 2 rate m (Durfee, Rogers
    2019), rate m being c times the move in units of `DisjointRanks.ones`, where c = rate one is the same for all parts
    of the level. For `laplace` budgets the lengths of all parts and groups add up to at most 2 c `DisjointRanks.l1` =
    epsilon. The sum of independent losses that lie in intervals lies in one of their joint length: the parts of a group
    together are a release of bounded range, and as in `Pick` all groups are G of them, one for each of the `pieces`.
    For `gaussian` budgets a range r is r^2 / 8-zCDP (Cesar, Rogers 2021), and these add up to c^2
    `DisjointRanks.l2_squared` / 2 = rho at most. Levels compose adaptively, as each of these does.

    Args:
        argument: whose quantiles they are, which distinguishes the trees of several columns.
        shares: which, in ascending order.
        nodes: the place of each in the tree.
        rates: in units of ranks.
        levels: the price of each level.
        grain: how finely a point is divided, as a power of two.
    """

    argument: Hashable
    shares: tuple[Fraction, ...]
    nodes: tuple[QuantileNode, ...]
    rates: tuple[Fraction, ...]
    levels: tuple[events.Event, ...]
    grain: int

    @classmethod
    def of(
        cls,
        argument: Hashable,
        shares: Sequence[Fraction],
        last: int,
        contribution: ContributionLimits,
        budget: tuple[Law, Fraction],
        *,
        longest: int | None = None,
    ) -> QuantileTree | None:
        """Returns the best tree for an epsilon, or for a rho where the law is Gaussian; None if there is no good one.

        Quantiles that are close to each other err less when drawn one by one: they are far from the middle of their
        parts. Nor is there a tree for shares and grids whose numbers are too large.

        Args:
            argument: whose quantiles they are.
            shares: which.
            last: the largest point of the grid; the smallest is 0.
            contribution: what one unit can change.
            budget: the law, and the epsilon or rho of all levels together.
            longest: shares within parts are rounded to denominators up to this; None keeps them as they are.
        """
        law, total = budget
        wanted = tuple(sorted(shares))
        shape = best_shape(wanted, contribution, law, longest)
        if shape is None:
            return None
        grain = _grain(shape, last)
        if grain < COARSEST_GRAIN:
            return None
        rates, levels = [Fraction(0)] * len(wanted), []
        for level, part in enumerate(shape.parts):
            numbers = shape.of_level(level)
            targets = DisjointRanks(tuple(shape.nodes[number].own for number in numbers))
            constant, event = price_ranks(law, targets, contribution, total * part)
            levels.append(event)
            for number, one in zip(numbers, targets.ones, strict=True):
                rates[number] = constant / one
        return cls(
            argument=argument, shares=wanted, nodes=shape.nodes, rates=tuple(rates), levels=tuple(levels), grain=grain
        )

    def of_level(self, level: int) -> list[int]:
        """Returns the numbers of the quantiles that are drawn together."""
        return [number for number, node in enumerate(self.nodes) if node.level == level]

    def variance(self, number: int) -> Fraction:
        """Returns the square of the scale of a quantile's error in ranks, with what the points before it carry over."""
        carried = carry(self.nodes)[number]
        return sum(((factor / self.rates[k]) ** 2 for k, factor in carried.items()), Fraction(0))

    def foreseen(self, number: int) -> RankAim:
        """Returns the aim around which a quantile will be looked for, wherever those before it come out.

        An error t times as large as the sum of all scales needs one of them t times as large as its own.
        """
        scale = sum((factor / self.rates[k] for k, factor in carry(self.nodes)[number].items()), Fraction(0))
        return RankAim(RankTarget(self.shares[number]), 1 / scale)

    def reach(self, number: int, points: int, risk: Fraction) -> int:
        """Returns a distance in ranks that is reached with at most this probability.

        Each of the points that it rests on has an equal part of the risk, and 2^grain times as many options. Where a
        part ends, values that are equal are divided to the nearest of 2^grain places, which is left out here.
        """
        carried = carry(self.nodes)[number]
        aims = {k: RankAim(RankTarget(self.shares[k]), self.rates[k]) for k in carried}
        far = {k: aim.reach(points << self.grain, risk / len(carried)) for k, aim in aims.items()}
        return min(math.ceil(sum(factor * far[k] for k, factor in carried.items())), FARTHEST)


@lru_cache(maxsize=1024)
def best_shape(
    shares: tuple[Fraction, ...], contribution: ContributionLimits, law: Law, longest: int | None = None
) -> QuantileTreeShape | None:
    """Returns the shape of the least error, None if none errs less than quantiles drawn one by one.

    The error is the sum, over quantiles, of the variance in ranks in units of what the quantile would have if drawn
    alone for the same budget. A level of the budget e adds A / e^2 to it, or A / e where it is a rho, where A is a sum
    of squares over its points and over those that they are carried over to. For a given sum of the e this is least for
    e in proportion to the cube root of A, or to the square root; it is then the cube, or the square, of the sum of
    these roots over that of the budget. Drawn one by one, m quantiles have m equal parts: m^3, or m^2.
    """
    power = 3 if law == "laplace" else 2
    if len(shares) < 2 or len(set(shares)) < len(shares):
        return None
    found = []
    for nodes in _arrange_trees(shares, longest):
        roots = [_root(coefficient, power) for coefficient in _coefficients(shares, nodes, contribution, law)]
        found.append((sum(roots), tuple(Fraction(root, sum(roots)) for root in roots), nodes))
    total, parts, nodes = min(found, key=lambda one: one[0])
    return QuantileTreeShape(nodes, parts) if total < len(shares) * _ROOT_OF_ONE else None


@lru_cache(maxsize=1024)
def carry(nodes: tuple[QuantileNode, ...]) -> tuple[Mapping[int, Fraction], ...]:
    """Returns for each quantile the points that it rests on, itself included, and how much of their errors it takes.

    Between a lower end that is e ranks off and an upper one that is f ranks off, the target at the share s of the part
    is (1 - s) e + s f off.
    """
    found: dict[int, dict[int, Fraction]] = {}
    for number in sorted(range(len(nodes)), key=lambda k: nodes[k].level):
        node, own = nodes[number], {number: Fraction(1)}
        for end, factor in ((node.lower, 1 - node.own), (node.upper, node.own)):
            for k, much in ({} if end is None else found[end]).items():
                own[k] = own.get(k, Fraction(0)) + factor * much
        found[number] = own
    return tuple(found[number] for number in range(len(nodes)))


def _coefficients(
    shares: Sequence[Fraction], nodes: tuple[QuantileNode, ...], contribution: ContributionLimits, law: Law
) -> list[Fraction]:
    """Returns the A of `best_shape` for each level."""
    weights, found = [Fraction(0)] * len(shares), []
    for share, rests in zip(shares, carry(nodes), strict=True):
        target = RankTarget(share)
        alone = target.l1(contribution) ** 2 if law == "laplace" else target.l2_squared(contribution)
        for k, factor in rests.items():
            weights[k] += factor**2 / alone
    for level in range(1 + max(node.level for node in nodes)):
        numbers = [k for k, node in enumerate(nodes) if node.level == level]
        parts = DisjointRanks(tuple(nodes[k].own for k in numbers))
        moves = parts.l1(contribution) ** 2 if law == "laplace" else parts.l2_squared(contribution)
        found.append(moves * sum(one**2 * weights[k] for k, one in zip(numbers, parts.ones, strict=True)))
    return found


_ROOT_OF_ONE = 1 << 10


def _root(value: Fraction, power: int) -> int:
    """Returns 2^10 times a root, rounded down, but at least 1: parts of a budget need not be more exact."""
    scaled = value.numerator * _ROOT_OF_ONE**power // value.denominator
    low, high = 1, 2 << -(-scaled.bit_length() // power)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**power <= scaled else (low, middle)
    return low


def _arrange_trees(shares: Sequence[Fraction], longest: int | None) -> Iterator[tuple[QuantileNode, ...]]:
    """Yields binary search trees over the shares: all, or for many shares the balanced ones that lean to a side."""
    count = len(shares)
    for lean in (None,) if count <= _ALL_TREES else (0, 1):
        for pairs in _trees(shares, (0, count), (None, None, 0), lean):
            yield tuple(_shorter(node, longest) for _, node in sorted(pairs, key=lambda pair: pair[0]))


def _shorter(node: QuantileNode, longest: int | None) -> QuantileNode:
    return node if longest is None else replace(node, own=node.own.limit_denominator(longest))


_Ends = tuple[int | None, int | None, int]
_Numbered = tuple[tuple[int, QuantileNode], ...]


def _trees(shares: Sequence[Fraction], among: tuple[int, int], ends: _Ends, lean: int | None) -> Iterator[_Numbered]:
    first, stop = among
    if first == stop:
        yield ()
        return
    lower, upper, level = ends
    low = Fraction(0) if lower is None else shares[lower]
    high = Fraction(1) if upper is None else shares[upper]
    for top in range(first, stop) if lean is None else ((first + stop - lean) // 2,):
        node = QuantileNode(lower, upper, level, (shares[top] - low) / (high - low))
        left = _trees(shares, (first, top), (lower, top, level + 1), lean)
        right = _trees(shares, (top + 1, stop), (top, upper, level + 1), lean)
        for one, other in product(left, right):
            yield (*one, (top, node), *other)


def _grain(shape: QuantileTreeShape, last: int) -> int:
    """Returns how finely points are divided such that places of the grid, and losses of 2^32 values, fit into 62 bits.

    Losses are counted in units of one place of a value over the denominator of a share.
    """
    unit = max(node.own.denominator for node in shape.nodes).bit_length()
    return min(FINEST_GRAIN, 62 - FARTHEST.bit_length() - unit, 61 - (last + 1).bit_length())
