"""SUM: values clipped to public bounds and added up."""

from __future__ import annotations

from fractions import Fraction

from discreet.measurement.aggregates.aggregation import Aggregation, argument_of
from discreet.measurement.intervals.estimators import TotalEstimator
from discreet.measurement.releases.additive import LinearCombination
from discreet.measurement.releases.argument_moments import PowerSums
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import MomentNeed, Need
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.model.types import Type


def sum_of(sums: PowerSums) -> TotalEstimator:
    """Returns the sum of an argument: that from the centre, and the centre once for each value."""
    steps, values = sums.grid, sums.powers.get(0)
    moved = LinearCombination(()) if values is None else values * sums.centre
    return TotalEstimator(
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
        return (MomentNeed(argument_of(aggregate), frozenset({1}), self.word),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> TotalEstimator:
        return sum_of(sources.moments[argument_of(aggregate)])


SUM = _Sum(kind="sum", functions=("SUM",), bounded=True, power=1, targetable=True)
