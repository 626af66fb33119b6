"""QUANTILE, MEDIAN, MIN and MAX: points of a public grid drawn near ranks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.measurement.aggregates.aggregation import Aggregation, argument_of
from discreet.measurement.intervals.estimators import Estimator
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases.additive import Integers
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import Need, RankNeed
from discreet.measurement.releases.rank_draws import RISK, RankDraw
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import NoisyNumber, NoisyTime


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileEstimator(Estimator):
    """Computes a quantile, MIN or MAX from drawn points.

    Formal guarantee. Intervals hold the aggregate of the kept, clipped values, but for RISK. Rounding to the grid keeps
    the order of values, so that it moves a quantile no further than it can move one of them; what is said below of
    values on the grid holds of the values themselves with ends that are as much wider.

    *Quantiles.* Fences are drawn among blocks of points, as if each block were one point of a coarser grid: it claims
    the ranks from the number of values before it to the number of those in it as well. Fewer candidates err less. Let a
    fence have the target q n - o with o = t + 1, where t is the reach of its loss for half of RISK. But for that risk
    its loss is below t, so it is the first block, or fewer than q n - 1 values are before it. Either way its first
    point is at or below all values from rank q n on, and below both values between which PERCENTILE_CONT interpolates,
    whose ranks lie between q n - 1 and q n + 2. Likewise above, with q n + o and the last point of a block: it is the
    last block, or more than q n + 1 values are in it and before it. The two together miss with RISK at most; where they
    come out in the wrong order, the hull holds what either does.

    *MAX.* The target is n - t, t being the reach for RISK. But for that risk the point is the first one, or fewer than
    n values are below it: the largest value is at or above it. Nothing private bounds that value from above but its
    public bound. MIN likewise.
    """

    draw: RankDraw

    def variance(self, noise: Noise) -> Fraction:
        """Returns the square of the error's scale, in ranks."""
        del noise
        return self.draw.variance

    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> list[NoisyNumber | NoisyTime]:
        """Returns the point of each row, with its interval."""
        del noise
        return [self._noisy(row, outside) for row in rows.tolist()]

    def _noisy(self, row: Sequence[int], outside: Fraction) -> NoisyNumber | NoisyTime:
        draw, steps = self.draw, self.draw.steps
        known = draw.certain and outside >= RISK
        return self.between(row, *(self._ends(row, row[draw.place]) if known else (steps.low, steps.high)))

    def between(self, row: Sequence[int], low: int, high: int) -> NoisyNumber | NoisyTime:
        """Returns the point of a row with an interval between two steps, wider by what rounding moves."""
        draw, steps, value = self.draw, self.draw.steps, row[self.draw.place]
        if draw.times is not None:
            return draw.times.noisy(min(max(value, low), high), low, high)
        middle, least, most = (self._value(step) for step in (min(max(value, low), high), low, high))
        if not steps.error:
            return NoisyNumber(middle, least, most)
        return NoisyNumber(
            middle, max(least - steps.error, steps.bounds.low), min(most + steps.error, steps.bounds.high)
        )

    def _ends(self, row: Sequence[int], value: int) -> tuple[int, int]:
        draw = self.draw
        if draw.fences:
            one, other = row[draw.place + 1], row[draw.place + 2]
            return min(one, other), max(one, other)
        return (value, draw.steps.high) if draw.need.share else (draw.steps.low, value)

    def _value(self, step: int) -> int | Fraction:
        exact = step * self.draw.steps.step
        return exact.numerator if self.draw.steps.whole else exact

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns what is drawn, and where an extreme may lie."""
        return (_of_extreme(self.draw) if self.draw.need.extreme else _DRAWN,)


_DRAWN = (
    "Quantiles are drawn at random among all points between the public bounds, nearly always close in rank; in a group "
    "without values, anywhere."
)


def _of_extreme(draw: RankDraw) -> str:
    name, word = ("MAX", "largest") if draw.need.share else ("MIN", "smallest")
    return (
        f"{name} is a private quantile near the extreme, not the extreme itself: it aims at the value "
        f"{abs(draw.point.target.offset):,} ranks inside the {word} one. The extreme may lie anywhere between it and "
        "the bound of the column, and beyond that if values were clipped to it."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked(Aggregation):
    """An aggregate that is drawn near a rank.

    Args:
        share: of an extreme: 0 for the smallest value, 1 for the largest; None takes that of the question.
    """

    bounded: bool = True
    timed: bool = True
    drawn: bool = True
    share: Fraction | None = None

    def result_type(self, argument: Expression | None) -> Type:
        """Returns that of the argument."""
        return Type.INT if argument is None else argument.type

    def adds_up(self, groups: int) -> bool:
        """Denies it: ranks in two groups say nothing about ranks in both."""
        del groups
        return False

    @property
    def no_target(self) -> tuple[str, str]:
        """Returns why `within=` refuses it."""
        return (
            "The error of a quantile is not known beforehand: it depends on how dense the values are.",
            "Ask for it with an epsilon; its answer comes with an interval.",
        )

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        return (self._rank(aggregate),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> QuantileEstimator:
        """Returns how it follows from what was drawn."""
        return QuantileEstimator(draw=sources.drawn[self._rank(aggregate)])

    def _rank(self, aggregate: Aggregate) -> RankNeed:
        share = aggregate.quantile if self.share is None else self.share
        if share is None:
            raise InternalError("A quantile has no share.")
        return RankNeed(argument_of(aggregate), share, extreme=self.share is not None)


class _Quantile(_Ranked):
    """A quantile whose share the question names, such as MEDIAN."""

    __slots__ = ()

    @property
    def not_of_rows(self) -> tuple[str, str]:
        """Returns why it cannot stand where values of single rows do."""
        return "A quantile is allowed only in SELECT, HAVING or ORDER BY of the whole query.", "Ask for a mean: {mean}."


QUANTILES = (
    _Quantile(kind="quantile", label="MEDIAN"),
    _Ranked(kind="min", functions=("MIN",), share=Fraction(0)),
    _Ranked(kind="max", functions=("MAX",), share=Fraction(1)),
)
