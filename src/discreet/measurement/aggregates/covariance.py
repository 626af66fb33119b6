"""COVAR, CORR and REGR_SLOPE: how two arguments go together, over rows where both have a value.

With a and b counted from the middles of their bounds, a row that has both moves the number of pairs, the sums of a, of
b and of a b, and where they are needed those of a^2 and b^2, less half of the largest (see `spread`). Each move lies
between two ends, and a row at the right ends of both arguments has the longest move in every one of them at once: so
the box of all ends has no longer diagonal, in any weighted norm, than such a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from discreet.measurement.aggregates.form import Form, Joint, Ratio, Variance
from discreet.measurement.aggregates.linear import Linear
from discreet.measurement.aggregates.steps import Steps
from discreet.measurement.aggregates.sum import clipped_sum
from discreet.measurement.aggregates.variance import half_square, product_error, square_sum
from discreet.plan.model.nodes import Aggregate, Call, Expression, Literal
from discreet.plan.model.readings import Statistic
from discreet.plan.model.types import Type

Ends = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Side:
    """An argument, where the other one has a value too, and its grid."""

    argument: Expression
    steps: Steps
    squared: bool

    @property
    def ends(self) -> Ends:
        """The smallest and the largest value, from the middle."""
        return self.steps.low - self.steps.middle, self.steps.high - self.steps.middle


def _present(argument: Expression, other: Expression) -> Expression:
    """The argument where the other has a value, NULL elsewhere."""
    missing = Call("is_null", (other,), Type.BOOL)
    return Call("if", (missing, Literal(None, argument.type), argument), argument.type)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arguments whose products are asked for."""

    one: Side
    other: Side

    @property
    def _moves(self) -> tuple[tuple[Statistic, Ends, int], ...]:
        """What is added up, between which ends a pair of values moves it, and the grain of its total."""
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
        """What each counts for, so that all move about as far as the one that moves farthest."""
        farthest = [max(map(abs, ends)) for _, ends, _ in self._moves]
        return tuple(max(farthest) // far for far in farthest)

    def form(self) -> Form:
        """All of them, with the corners of the box."""
        moves = list(zip(self._moves, self._times, strict=True))
        sides = [(times * low, times * high) for (_, (low, high), _), times in moves]
        return Form(
            statistics=tuple(replace(statistic, times=times) for (statistic, _, _), times in moves),
            corners=tuple(dict.fromkeys(product(*sides))),
            grains=tuple(grain for (_, _, grain), _ in moves),
        )

    def recipe(self, place: int, aggregate: Aggregate, *, swapped: bool) -> Joint:
        """How an aggregate follows from the form at a place."""
        sums = [Linear.at(place + i) * Fraction(1, times) for i, times in enumerate(self._times)]
        means = [_mean(side, total, sums[0]) for side, total in zip((self.one, self.other), sums[1:3], strict=True)]
        unit = self.one.steps.step * self.other.steps.step
        low, high = self._moves[3][1]
        together = Ratio(
            top=sums[3] * unit,
            bottom=sums[0],
            centre=Fraction(0),
            low=low * unit,
            high=high * unit,
            error=product_error(self.one.steps, self.other.steps),
        )
        squares = iter(sums[4:])
        spreads = [
            _spread(side, mean, next(squares)) if side.squared else None
            for side, mean in zip((self.one, self.other), means, strict=True)
        ]
        first, second = (1, 0) if swapped else (0, 1)
        return Joint(
            kind=aggregate.kind,
            first=means[first],
            second=means[second],
            product=together,
            first_spread=spreads[first] if aggregate.kind == "corr" else None,
            second_spread=spreads[second] if aggregate.kind not in ("covar_pop", "covar_samp") else None,
        )


Arguments = tuple[Expression, Expression]


def in_order(aggregate: Aggregate) -> Arguments | None:
    """The arguments of an aggregate of pairs, in an order that does not depend on how they were written."""
    if aggregate.argument is None or aggregate.other is None:
        return None
    first, second = sorted((aggregate.argument, aggregate.other), key=repr)
    return first, second


def pairs(aggregates: Iterable[Aggregate], steps: Mapping[Expression, Steps]) -> dict[Arguments, Pair]:
    """The pairs of arguments whose products are asked for, each once."""
    squared: dict[Arguments, set[Expression | None]] = {}
    for aggregate in aggregates:
        arguments = in_order(aggregate)
        if arguments is not None:
            squared.setdefault(arguments, set()).update(_squared(aggregate))
    return {
        (x, y): Pair(Side(_present(x, y), steps[x], x in needed), Side(_present(y, x), steps[y], y in needed))
        for (x, y), needed in squared.items()
    }


def _squared(aggregate: Aggregate) -> set[Expression | None]:
    """The arguments whose variance an aggregate needs: both of a correlation, the second of a regression."""
    if aggregate.kind in ("covar_pop", "covar_samp"):
        return set()
    return {aggregate.argument, aggregate.other} if aggregate.kind == "corr" else {aggregate.other}


def _mean(side: Side, total: Linear, number: Linear) -> Ratio:
    steps = side.steps
    return Ratio(
        top=total * steps.step,
        bottom=number,
        centre=steps.middle * steps.step,
        low=steps.bounds.low,
        high=steps.bounds.high,
        error=steps.error,
    )


def _spread(side: Side, mean: Ratio, squares: Linear) -> Variance:
    unit, most = side.steps.step**2, side.ends[1] ** 2
    found = Ratio(
        top=squares * unit,
        bottom=mean.bottom,
        centre=half_square(side.steps) * unit,
        low=Fraction(0),
        high=most * unit,
        error=product_error(side.steps, side.steps),
    )
    return Variance(mean=mean, squares=found, origin=mean.centre, sample=False, root=False)
