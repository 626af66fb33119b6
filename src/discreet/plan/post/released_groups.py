"""Released groups on their way through steps: values with intervals, aggregates of them, and certain conditions.

An aggregate is what SQL says of the released values, with an interval for what it says of the true ones. A condition is
certain if it holds whatever the noise was: for all values within their intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import accumulate
from typing import Any, Protocol

from discreet.dataclass import dataclass
from discreet.plan.analysis.value_bounds import span
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.interval_arithmetic import EVERYTHING, End, Span
from discreet.plan.model.nodes import Expression, FunctionCall, Literal, Value
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import (
    Cell,
    Measured,
    NoisyTime,
    as_noisy,
    cell,
    resolve_known_parts,
    span_of,
    values_of,
)

ZERO = Fraction(0)


class GroupNoise(Protocol):
    """The noise of one aggregate, whose sums over groups have a joint interval."""

    def ends(self, place: int) -> tuple[Fraction, Fraction]:
        """Returns the noisy value of a group, less and more what the rounding of values may have moved it by."""

    def reach(self, count: int) -> Fraction:
        """Returns a distance that the noise of a sum of so many groups exceeds with at most the probability at hand."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A value, its place among the released groups, and whether it is a member: by its values, and surely."""

    part: Cell
    place: int | None = None
    shown: bool = True
    sure: bool = True

    @property
    def value(self) -> Any:
        """Returns the released value, without its interval."""
        return self.part.value if isinstance(self.part, Measured) else self.part

    @property
    def span(self) -> Span:
        """Returns what the true value may be."""
        return span_of(self.part)

    @property
    def is_sure(self) -> bool:
        """Returns whether it is there by its values and whatever the noise."""
        return self.shown and self.sure

    @property
    def is_exact(self) -> bool:
        """Returns whether neither its value nor its membership depends on noise."""
        return self.is_sure and not isinstance(self.part, Measured)


def present(kind: str, members: Sequence[GroupMember]) -> list[GroupMember]:
    """Returns the members that an aggregate looks at: NULL counts for nothing but for COUNT(*)."""
    return [member for member in members if kind == "count" or member.part is not None]


def aggregate_members(kind: str, result: Type, given: Sequence[GroupMember], law: GroupNoise | None = None) -> Cell:
    """Computes an aggregate of members, plain if no noise decides it.

    Args:
        kind: count, count_values, sum, mean, min, max or any.
        result: the type of the aggregate.
        given: its members, with those that only might be there.
        law: the noise of the members' values, if sums have a joint interval.
    """
    members = present(kind, given)
    if kind == "any":
        return _first(result, members)
    values = [member.value for member in members if member.shown and (kind == "count" or member.value is not None)]
    value = of_values(kind, result, values)
    if not is_measured(result, members) or all(member.is_exact for member in members):
        return plain(value)
    if law is not None and kind in ("sum", "mean") and members and all(member.is_sure for member in members):
        ends = [law.ends(member.place) for member in members if member.place is not None]
        low, high = sum((end for end, _ in ends), ZERO), sum((end for _, end in ends), ZERO)
        reach = law.reach(len(members))
        return as_noisy(value, summed_span(kind, result, (low - reach, high + reach), len(members)))
    return as_noisy(value, _span(kind, members), result)


def _first(result: Type, members: Sequence[GroupMember]) -> Cell:
    """Returns the value of the first group that has one; noise has no part in which it is, unless groups are unsure."""
    if not members or members[0].is_sure:
        return members[0].part if members else None
    value = next((member.value for member in members if member.shown), None)
    return as_noisy(value, hull_of(members), result) if is_measured(result, members) else plain(value)


def is_measured(result: Type, members: Sequence[GroupMember]) -> bool:
    """Returns whether what is made of members has an interval: a number, or a day or moment of such that have one."""
    return result.is_number or any(isinstance(member.part, NoisyTime) for member in members)


def plain(value: Any) -> Value:
    """Returns a value that no noise decides, as a column has it: rationals as doubles."""
    found: Value = float(value) if isinstance(value, Fraction) else value
    return found


def of_values(kind: str, result: Type, values: Sequence[Any]) -> Any:
    """Computes what SQL says of values that are not NULL."""
    if kind.startswith("count"):
        return len(values)
    if kind in ("min", "max"):
        return (min if kind == "min" else max)(values, default=None)
    return of_sum(kind, result, sum((Fraction(value) for value in values), ZERO), len(values))


def of_sum(kind: str, result: Type, total: Fraction, count: int) -> int | Fraction | None:
    """Computes a sum or a mean of so many values from their sum."""
    if not count:
        return None
    if kind == "mean":
        return total / count
    return total.numerator if result is Type.INT and total.denominator == 1 else total


def summed_span(kind: str, result: Type, ends: tuple[Fraction, Fraction], count: int) -> Span:
    """Returns the interval of a sum between two numbers, or of a mean of so many values; whole sums are whole."""
    low, high = ends
    if kind == "mean":
        return Span(low / count, high / count, nullable=False)
    if result is Type.INT:
        low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
    return Span(low, high, nullable=False)


def _span(kind: str, members: Sequence[GroupMember]) -> Span:
    """Returns what an aggregate may be if each member's true value lies in its interval."""
    if kind.startswith("count"):
        sure = [member for member in members if member.sure and (kind == "count" or member.value is not None)]
        return Span(Fraction(len(sure)), Fraction(len(members)), nullable=False)
    if kind == "sum":
        low = sum((m.span.low if m.sure else min(m.span.low, ZERO) for m in members), ZERO)
        return Span(low, sum((m.span.high if m.sure else max(m.span.high, ZERO) for m in members), ZERO))
    certain = [member.span for member in members if member.sure]
    around = hull_of(members)
    if kind == "max":
        return Span(max((span.low for span in certain), default=around.low), around.high)
    if kind == "min":
        return Span(around.low, min((span.high for span in certain), default=around.high))
    if len(certain) < len(members):
        return around
    low, high = sum((span.low for span in certain), ZERO), sum((span.high for span in certain), ZERO)
    return Span(low / len(certain), high / len(certain))


def hull_of(members: Sequence[GroupMember]) -> Span:
    """Returns the interval around all that the value of a member may be."""
    spans = [member.span for member in members]
    return Span(min(s.low for s in spans), max(s.high for s in spans)) if spans else EVERYTHING


class PrefixSums:
    """Sums of a list between two places, of numbers that may be infinite."""

    def __init__(self, ends: Sequence[End]) -> None:
        finite = (ZERO if isinstance(end, float) else end for end in ends)
        self._sums = list(accumulate(finite, initial=ZERO))
        self._infinite = list(accumulate((isinstance(end, float) for end in ends), initial=0))
        self._end = next((end for end in ends if isinstance(end, float)), ZERO)

    def between(self, start: int, stop: int) -> End:
        """Computes the sum of the numbers from one place up to another."""
        if self._infinite[stop] > self._infinite[start]:
            return self._end
        return self._sums[stop] - self._sums[start]


_NEVER_NULL = frozenset(
    {"add", "subtract", "multiply", "divide", "negate", "absolute", "round", "floor", "ceil", "to_float"}
)
"""Functions whose results, if their intervals are bounded, are never NULL."""


def certain(condition: Expression, spans: Mapping[str, Span]) -> bool | None:
    """Returns True if a settled condition holds for all values within their intervals, False if for none, else None."""
    if isinstance(condition, Literal):
        return condition.value is True
    if not isinstance(condition, FunctionCall):
        return None
    if condition.function in ("and", "or"):
        found = [certain(part, spans) for part in condition.arguments]
        decisive = condition.function == "or"
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    compared = _COMPARED.get(condition.function)
    if compared is None or not all(_is_present(part) for part in condition.arguments):
        return None
    one, other = (span(part, spans) for part in condition.arguments)
    return None if one.is_empty or other.is_empty else compared(one, other)


def _is_present(expression: Expression) -> bool:
    """Returns whether an expression of numbers, days or moments has a value."""
    if isinstance(expression, Literal):
        return expression.value is not None and (expression.type.is_number or expression.type.is_time)
    if isinstance(expression, FunctionCall):
        return expression.function in _NEVER_NULL and all(map(_is_present, expression.arguments))
    return expression.type.is_number or expression.type.is_time


def _less(one: Span, other: Span) -> bool | None:
    return True if one.high < other.low else False if one.low >= other.high else None


def _less_equal(one: Span, other: Span) -> bool | None:
    return True if one.high <= other.low else False if one.low > other.high else None


def _differ(one: Span, other: Span) -> bool | None:
    return True if one.high < other.low or other.high < one.low else None


def _equal(one: Span, other: Span) -> bool | None:
    return False if _differ(one, other) else None


_COMPARED: dict[str, Callable[[Span, Span], bool | None]] = {
    "less": _less,
    "less_equal": _less_equal,
    "greater": lambda one, other: _less(other, one),
    "greater_equal": lambda one, other: _less_equal(other, one),
    "equal": _equal,
    "not_equal": _differ,
}


@dataclass(frozen=True, slots=True)
class ReleasedGroup:
    """A released group on its way.

    Args:
        cells: keys, aggregates and what steps made.
        place: among the released groups; None once groups are put together.
        shown: whether it is there by the released values.
        sure: whether it is there whatever the noise.
    """

    cells: Mapping[str, Cell]
    place: int | None
    shown: bool = True
    sure: bool = True
    values: dict[str, Any] = field(init=False)
    spans: dict[str, Span] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", values_of(self.cells))
        object.__setattr__(self, "spans", {name: span_of(part) for name, part in self.cells.items()})

    def value(self, expression: Expression) -> Any:
        """Computes an expression by the released values."""
        return evaluate(expression, self.values)

    def resolve_expression(self, expression: Expression) -> Expression:
        """Writes out everything in an expression that no noise decides."""
        return resolve_known_parts(expression, self.values, lambda name: isinstance(self.cells[name], Measured))

    def cell(self, expression: Expression) -> Cell:
        """Computes an expression with its interval; plain if no noise decides it."""
        return cell(self.resolve_expression(expression), self.cells)

    def member(self, argument: Expression | None) -> GroupMember:
        """Returns the group as a member of what is aggregated."""
        return GroupMember(1 if argument is None else self.cell(argument), self.place, self.shown, self.sure)

    def certain(self, condition: Expression) -> bool | None:
        """Returns whether a condition is true whatever the noise; None if that depends on it."""
        return certain(self.resolve_expression(condition), self.spans)
