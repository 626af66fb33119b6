"""AVG: the sum of values over their number, both released with noise, held to the public bounds."""

from __future__ import annotations

from discreet.measurement.aggregates.aggregation import Aggregation, argument_of
from discreet.measurement.intervals.estimators import RatioEstimator
from discreet.measurement.releases.argument_moments import PowerSums
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import MomentNeed, Need
from discreet.plan.model.nodes import Aggregate


def mean_of(sums: PowerSums) -> RatioEstimator:
    """Returns the mean of an argument, from the sum of its values and their number."""
    steps = sums.grid
    return RatioEstimator(
        top=sums.power(1) * steps.step,
        bottom=sums.power(0),
        centre=sums.centre * steps.step,
        low=steps.bounds.low,
        high=steps.bounds.high,
        rounding=steps.error,
    )


class _Mean(Aggregation):
    """The mean of an argument's values."""

    __slots__ = ()

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        """Returns the number of values and their sum."""
        return (MomentNeed(argument_of(aggregate), frozenset({0, 1}), self.word),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> RatioEstimator:
        """Returns the quotient of the two."""
        return mean_of(sources.moments[argument_of(aggregate)])


MEAN = _Mean(
    kind="mean",
    label="AVG",
    functions=("AVG",),
    bounded=True,
    power=1,
    targetable=True,
    quotient=("sum", "count_values"),
)
