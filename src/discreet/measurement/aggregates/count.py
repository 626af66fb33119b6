"""COUNT(*), COUNT(x), COUNT(DISTINCT unit) and COUNT(DISTINCT x): a row, a value or a person is one."""

from __future__ import annotations

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.measurement.aggregates.aggregation import Aggregation, argument_of
from discreet.measurement.intervals.estimators import TotalEstimator
from discreet.measurement.releases.additive import LinearCombination
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import DistinctCountNeed, MomentNeed, Need, RowCountNeed, UnitCountNeed
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.model.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count(Aggregation):
    """A count of something: a whole number that is never negative but for noise."""

    targetable: bool = True

    def result_type(self, argument: Expression | None) -> Type:
        del argument
        return Type.INT


class _RowCount(_Count):
    """COUNT(*): the number of rows."""

    __slots__ = ()

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        del aggregate
        return (RowCountNeed(),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> TotalEstimator:
        del aggregate
        return _number(sources.rows)


class _UnitCount(_Count):
    """COUNT(DISTINCT unit): people, where a unit is one."""

    __slots__ = ()

    def adds_up(self, groups: int) -> bool:
        """Returns whether no unit is in two groups: else people would be counted twice."""
        return groups == 1

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        del aggregate
        return (UnitCountNeed(),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> TotalEstimator:
        del aggregate
        return _number(sources.units)


class _ValueCount(_Count):
    """COUNT(x): rows where an argument is not NULL."""

    __slots__ = ()

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        """Returns the number of values."""
        return (MomentNeed(argument_of(aggregate), frozenset({0})),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> TotalEstimator:
        values = sources.moments[argument_of(aggregate)].power(0)
        return TotalEstimator(values, whole=True, values=values, positive=True)


class _DistinctCount(_Count):
    """COUNT(DISTINCT x): how many different values an argument has."""

    __slots__ = ()

    def adds_up(self, groups: int) -> bool:
        """Denies it: two groups may have the same values."""
        del groups
        return False

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        return (DistinctCountNeed(argument_of(aggregate)),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> TotalEstimator:
        return _number(sources.distinct[argument_of(aggregate)])


def _number(linear: LinearCombination | None) -> TotalEstimator:
    if linear is None:
        raise InternalError("Nothing counts what was to be counted.")
    return TotalEstimator(linear, whole=True, positive=True)


COUNTS = (
    _RowCount(kind="count", arguments=0),
    _ValueCount(kind="count_values", label="COUNT"),
    _UnitCount(kind="count_units", arguments=0),
    _DistinctCount(kind="count_distinct"),
)
