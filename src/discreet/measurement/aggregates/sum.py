"""SUM: values clipped to public bounds and added up."""

from __future__ import annotations

from fractions import Fraction

from discreet.measurement.aggregates.base import Aggregation, argument_of
from discreet.measurement.intervals.estimators import Total
from discreet.measurement.releases.additive import Linear
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.moments import PowerSums
from discreet.measurement.releases.needs import Moments, Need
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.model.types import Type


def sum_of(sums: PowerSums) -> Total:
    """Returns the sum of an argument: that from the centre, and the centre once for each value."""
    steps, values = sums.grid, sums.powers.get(0)
    moved = Linear(()) if values is None else values * sums.centre
    return Total(
        (sums.power(1) + moved) * Fraction(steps.step),
        whole=steps.whole,
        rounding=steps.error,
        values=values,
        positive=steps.bounds.low >= 0,
    )


class _Sum(Aggregation):
    """The sum of an argument's values, of its own type."""

    __slots__ = ()

    def result_type(self, argument: Expression | None) -> Type:
        """Returns that of the argument."""
        return Type.INT if argument is None else argument.type

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        """Returns the sum alone."""
        return (Moments(argument_of(aggregate), frozenset({1}), self.word),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> Total:
        """Returns the sum."""
        return sum_of(sources.moments[argument_of(aggregate)])


SUM = _Sum(kind="sum", functions=("SUM",), bounded=True, power=1, targetable=True)
