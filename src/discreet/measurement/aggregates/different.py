"""SUM(DISTINCT x) and AVG(DISTINCT x): values that differ, each once in its group, clipped to public bounds.

As in COUNT(DISTINCT x), a value is one however many rows or people of a group have it. Values are clipped before they
are compared, as they are before they are added: beyond a bound all are that bound.
"""

from __future__ import annotations

from discreet.dataclass import dataclass
from discreet.measurement.aggregates.aggregation import Aggregation, argument_of
from discreet.measurement.aggregates.mean import mean_of
from discreet.measurement.aggregates.sum import sum_of
from discreet.measurement.intervals.estimators import RatioEstimator, TotalEstimator
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import DistinctMomentNeed, Need
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.model.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfDifferent(Aggregation):
    """An aggregate of different values.

    Args:
        function: what SQL calls it before DISTINCT.
        powers: of values that are added up.
    """

    bounded: bool = True
    power: int = 1
    function: str
    powers: frozenset[int]

    def write_call(self, argument: str) -> str:
        """Returns how SQL writes it."""
        return f"{self.function}(DISTINCT {argument})"

    def adds_up(self, groups: int) -> bool:
        """Denies it: two groups may have the same values."""
        del groups
        return False

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        """Returns sums over different values."""
        return (DistinctMomentNeed(argument_of(aggregate), self.powers, self.word),)


class _Sum(_OfDifferent):
    """The sum of different values, of the argument's own type."""

    __slots__ = ()

    def result_type(self, argument: Expression | None) -> Type:
        """Returns that of the argument."""
        return Type.INT if argument is None else argument.type

    def estimator(self, aggregate: Aggregate, sources: Sources) -> TotalEstimator:
        return sum_of(sources.different[argument_of(aggregate)])


class _Mean(_OfDifferent):
    """The mean of different values."""

    __slots__ = ()

    def estimator(self, aggregate: Aggregate, sources: Sources) -> RatioEstimator:
        """Returns the quotient of their sum and their number."""
        return mean_of(sources.different[argument_of(aggregate)])


DIFFERENT = (
    _Sum(kind="sum_distinct", function="SUM", powers=frozenset({1})),
    _Mean(kind="mean_distinct", label="AVG_DISTINCT", function="AVG", powers=frozenset({0, 1})),
)
