"""Public grids of days and moments: whole steps from the first one between public bounds.

Days are steps of their own. Moments are rounded to the nearest hour, minute, second, millisecond or microsecond from
the first one: the longest of these that leaves a million steps between the bounds, as real numbers have. What rounding
can have moved is part of every interval.
"""

from __future__ import annotations

import datetime as dt
import math

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.measurement.releases.grids import STEPS, Steps
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.functions import LAST_DAY
from discreet.plan.expressions.functions.date_functions import DAY
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.schema import ColumnBounds
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import NoisyTime

_LENGTHS = (3_600_000_000, 60_000_000, 1_000_000, 1_000, 1)
"""Of a step, in microseconds."""

_LAST = LAST_DAY * DAY + DAY - 1  # the last microsecond of the year 9999, counted from the day of number 0


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Days or moments from a first to a last one, in steps of so many microseconds.

    Args:
        kind: DATE or TIMESTAMP.
        first: the smallest, in microseconds from the day of number 0.
        last: the largest.
        step: a day for days.
    """

    kind: Type
    first: int
    last: int
    step: int

    @classmethod
    def of(cls, bounds: ColumnBounds, kind: Type) -> TimeGrid:
        """Returns the grid between bounds, which are numbers of days.

        Raises:
            InvalidParameter: if there are no two days or moments between them.
        """
        whole = DAY if kind is Type.DATE else 1
        first = max(math.ceil(bounds.low * DAY / whole) * whole, DAY)
        last = min(math.floor(bounds.high * DAY / whole) * whole, _LAST // whole * whole)
        if first >= last:
            raise InvalidParameter("bounds", "these", f"to have two {kind.value}s between them", "Widen them.")
        lengths = (DAY,) if kind is Type.DATE else _LENGTHS
        return cls(kind, first, last, next((step for step in lengths if last - first >= step * STEPS), lengths[-1]))

    @property
    def steps(self) -> Steps:
        """Returns the same as whole numbers from 0 on; the last one may lie half a step beyond the bounds."""
        return Steps(0, 0, (self.last - self.first + self.step // 2) // self.step)

    @property
    def rounding(self) -> int:
        """Returns how far rounding can move a moment, in microseconds."""
        return 0 if self.kind is Type.DATE else self.step // 2

    def number(self, argument: Expression) -> Expression:
        """Returns how many steps an argument is from the first one, to the nearest."""
        first = Literal(self.value(0), self.kind)
        if self.kind is Type.DATE:
            return call("days_between", first, argument)
        passed = call("microseconds_between", first, argument)
        if self.step == 1:
            return passed
        middle = call("add", passed, Literal(self.step // 2, Type.INT))
        return call("integer_divide", middle, Literal(self.step, Type.INT))

    def value(self, step: int) -> dt.date:
        """Returns the day or moment of a step, held to the bounds."""
        return self._moment(self.first + step * self.step)

    def noisy(self, value: int, low: int, high: int) -> NoisyTime:
        """Returns a step with an interval between two, which holds what was rounded to them as well."""
        least, most = self.first + low * self.step - self.rounding, self.first + high * self.step + self.rounding
        return NoisyTime(self.value(value), self._moment(least), self._moment(most))

    def _moment(self, at: int) -> dt.date:
        days, rest = divmod(min(max(at, self.first), self.last), DAY)
        day = dt.date.fromordinal(days)
        if self.kind is Type.DATE:
            return day
        return dt.datetime.combine(day, dt.time()) + dt.timedelta(microseconds=rest)
