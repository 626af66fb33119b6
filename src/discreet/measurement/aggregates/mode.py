"""MODE: the most frequent of public values, drawn by how many rows each has."""

from __future__ import annotations

from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.measurement.aggregates.aggregation import Aggregation, argument_of
from discreet.measurement.intervals.estimators import Estimator
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases.additive import Integers
from discreet.measurement.releases.candidates import CandidateDraw
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import ModeNeed, Need
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.plan.model.nodes import Aggregate, Expression, Value
from discreet.plan.model.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeEstimator(Estimator):
    """Takes the drawn candidate as the mode, which has no interval."""

    draw: CandidateDraw

    def variance(self, noise: Noise) -> Fraction:
        """Returns the square of the error's scale, in rows."""
        del noise
        return self.draw.variance

    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> list[Value]:
        """Returns the candidate of each row."""
        del noise, outside
        return [self.draw.candidates.values[row[self.draw.place]] for row in rows.tolist()]

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns among what it is drawn, and how near its count is to the largest."""
        count, far = len(self.draw.candidates.values), self.draw.reach(1 - CONFIDENCE)
        among = f"{count} public value" + ("" if count == 1 else "s")
        said = (
            f"MODE is drawn among {among}. Rows with another value, or without one, are not counted for it. In each "
            f"group, with {float(CONFIDENCE):.0%} confidence, it is a value with at most {far:,} fewer rows than the "
            "most frequent one. If several are equally frequent, or nothing is counted, it is any of them. What is "
            "computed from it takes it as it is."
        )
        return (said,)


class _Mode(Aggregation):
    """The most frequent value of an argument."""

    __slots__ = ()

    def result_type(self, argument: Expression | None) -> Type:
        """Returns that of the argument."""
        return Type.INT if argument is None else argument.type

    def adds_up(self, groups: int) -> bool:
        """Denies it: the most frequent value of two groups may be that of neither."""
        del groups
        return False

    @property
    def no_target(self) -> tuple[str, str]:
        """Returns why `within=` refuses it."""
        return (
            "A mode is a value and has no distance from the truth.",
            "Ask for it with an epsilon; a note of the answer says how near its count is to the largest.",
        )

    @property
    def not_of_rows(self) -> tuple[str, str]:
        """Returns why it cannot stand where values of single rows do."""
        return "A mode is allowed only in SELECT, HAVING or ORDER BY of the whole query.", "Ask for the groups: {top}."

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        """Returns the most frequent candidate."""
        return (ModeNeed(argument_of(aggregate)),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> ModeEstimator:
        """Returns what was drawn."""
        return ModeEstimator(draw=sources.drawn[ModeNeed(argument_of(aggregate))])


MODE = _Mode(kind="mode", drawn=True, listed=True)
