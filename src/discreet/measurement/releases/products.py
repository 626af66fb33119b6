"""Products of two arguments: one form over the rows where both have a value, and what follows from it.

With a and b counted from the middles of their bounds, a row that has both moves the number of pairs, the sums of a, of
b and of a b, and where they are needed those of a^2 and b^2, less half of the largest (see `moments`). Each move lies
between two ends, and a row at the right ends of both arguments has the longest move in every one of them at once: so
the box of all ends has no longer diagonal, in any weighted norm, than such a row.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

from discreet.dataclass import dataclass
from discreet.measurement.releases.additive import JointStatistics, LinearCombination
from discreet.measurement.releases.argument_moments import PowerSums, clipped_sum, half_square, square_sum
from discreet.measurement.releases.grids import Steps
from discreet.plan.model.nodes import Expression, FunctionCall, Literal
from discreet.plan.model.readings import Statistic
from discreet.plan.model.types import Type

Ends = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ProductArgument:
    """An argument, where the other one has a value too, and its grid."""

    argument: Expression
    steps: Steps
    squared: bool

    @property
    def ends(self) -> Ends:
        """Returns the smallest and the largest value, from the middle."""
        return self.steps.low - self.steps.middle, self.steps.high - self.steps.middle


@dataclass(frozen=True, slots=True)
class ProductSums:
    """The product sums of two arguments, from released statistics, over rows where both have a value.

    Args:
        first: of one argument; its power 0 is the number of such rows.
        second: of the other.
        products: the sum of the products of both, each counted from the middle of its bounds, in their steps.
    """

    first: PowerSums
    second: PowerSums
    products: LinearCombination


@dataclass(frozen=True, slots=True)
class ArgumentPair:
    """Two arguments whose products are asked for."""

    one: ProductArgument
    other: ProductArgument

    @classmethod
    def of(cls, x: tuple[Expression, Steps, bool], y: tuple[Expression, Steps, bool]) -> ArgumentPair:
        """Returns a pair of arguments, each with its grid and whether its squares are needed."""
        return cls(ProductArgument(_present(x[0], y[0]), *x[1:]), ProductArgument(_present(y[0], x[0]), *y[1:]))

    @property
    def _moves(self) -> tuple[tuple[Statistic, Ends, int], ...]:
        """Returns what is added up, between which ends a pair of values moves it, and the grain of its total."""
        first, second = (clipped_sum(side.argument, side.steps, side.steps.middle) for side in (self.one, self.other))
        products = [a * b for a in self.one.ends for b in self.other.ends]
        fine = self.one.steps.finer, self.other.steps.finer
        moves = [
            (Statistic(kind="values", argument=self.one.argument), (1, 1), 0),
            (first, self.one.ends, fine[0]),
            (second, self.other.ends, fine[1]),
            (replace(first, kind="product", factor=second), (min(products), max(products)), sum(fine)),
        ]
        for side in (self.one, self.other):
            if side.squared:
                less = half_square(side.steps)
                ends = -less, side.ends[1] ** 2 - less
                moves.append((square_sum(side.argument, side.steps), ends, 2 * side.steps.finer))
        return tuple(moves)

    @property
    def _times(self) -> tuple[int, ...]:
        """Returns the weight of each, so that all move about as far as the one that moves farthest."""
        farthest = [max(map(abs, ends)) for _, ends, _ in self._moves]
        return tuple(max(farthest) // far for far in farthest)

    def form(self) -> JointStatistics:
        """Returns all of them, with the corners of the box."""
        moves = list(zip(self._moves, self._times, strict=True))
        sides = [(times * low, times * high) for (_, (low, high), _), times in moves]
        return JointStatistics(
            statistics=tuple(replace(statistic, times=times) for (statistic, _, _), times in moves),
            corners=tuple(dict.fromkeys(product(*sides))),
            grains=tuple(grain for (_, _, grain), _ in moves),
        )

    def sums(self, place: int) -> ProductSums:
        """Returns what follows from the form at a place."""
        sums = [LinearCombination.at(place + i) * Fraction(1, times) for i, times in enumerate(self._times)]
        squares = iter(sums[4:])
        first, second = (
            PowerSums(
                powers={0: sums[0], 1: total, **({2: next(squares)} if side.squared else {})},
                steps=side.steps,
                centre=Fraction(side.steps.middle),
            )
            for side, total in zip((self.one, self.other), sums[1:3], strict=True)
        )
        return ProductSums(first, second, sums[3])


def _present(argument: Expression, other: Expression) -> Expression:
    """Returns the argument where the other has a value, NULL elsewhere."""
    missing = FunctionCall("is_null", (other,), Type.BOOL)
    return FunctionCall("if", (missing, Literal(None, argument.type), argument), argument.type)
