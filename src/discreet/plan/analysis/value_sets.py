"""What an expression may be, given what its columns may be: sets of values, NULL among them if it is possible.

Unlike `bounds`, nothing here rests on declarations: a set holds the value of every row whose columns are in theirs,
whatever else it holds. What is not known to be impossible is possible, and a function that is not named below may be
anything, also NULL.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce, singledispatch
from itertools import product

from discreet.dataclass import dataclass
from discreet.plan.analysis.value_bounds import bound_call, span
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.expressions.functions.date_functions import day_number
from discreet.plan.expressions.functions.record import Nulls
from discreet.plan.expressions.interval_arithmetic import EMPTY, EVERYTHING, Span, hull
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal, Value
from discreet.plan.model.types import Type

MOST_TRIED = 400
"""Of combinations of arguments for which a function is simply computed: all days of a year are."""

NOTHING: frozenset[Value] = frozenset()


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values that an expression may have, and whether it may be NULL.

    Args:
        few: all of them, if they are few.
        span: in which they lie, if they are numbers or days.
        nullable: whether NULL is possible.
        never: some that it does not have.
    """

    few: frozenset[Value] | None
    span: Span
    nullable: bool
    never: frozenset[Value] = NOTHING

    @classmethod
    def of(cls, values: Iterable[Value]) -> ValueSet:
        """Returns the set of these values.

        >>> ValueSet.of([1, 3, None]).holds(2)
        False
        """
        found = set(values)
        few = frozenset(value for value in found if value is not None)
        return cls(few, _around_all(few), nullable=None in found)

    @classmethod
    def between(cls, low: Value, high: Value) -> ValueSet:
        """Returns all numbers, days or moments from one to another; whole numbers and days one by one, if few."""
        ends = _exactly(low), _exactly(high)
        if _is_counted(low) and ends[1].high - ends[0].low < MOST_TRIED:
            return cls.of(_list_range(low, int(ends[0].low), int(ends[1].high)))
        return cls(None, Span(ends[0].low, ends[1].high, nullable=False), nullable=False)

    @classmethod
    def any_of(cls, kind: Type) -> ValueSet:
        """Returns everything that a type has, and NULL."""
        return cls.of([False, True, None]) if kind is Type.BOOL else cls(None, EVERYTHING, nullable=True)

    @property
    def values(self) -> list[Value] | None:
        """Returns all values, NULL among them if it is possible; None if they are many."""
        return None if self.few is None else [*self.few, *([None] if self.nullable else [])]

    def holds(self, value: Value) -> bool:
        """Returns whether a value is possible."""
        if value is None:
            return self.nullable
        if self.few is not None:
            return value in self.few
        exact = _exactly(value)
        return value not in self.never and self.span.low <= exact.high and exact.low <= self.span.high

    def __or__(self, other: ValueSet) -> ValueSet:
        """Returns what one of the two has."""
        few = None if self.few is None or other.few is None else self.few | other.few
        return ValueSet(few, hull([self.span, other.span]), self.nullable or other.nullable)


def _is_counted(value: Value) -> bool:
    """Returns whether there are few values between two: whole numbers and days."""
    return isinstance(value, int) or (isinstance(value, dt.date) and not isinstance(value, dt.datetime))


def _list_range(like: Value, first: int, last: int) -> Iterable[Value]:
    numbers = range(first, last + 1)
    return map(dt.date.fromordinal, numbers) if isinstance(like, dt.date) else numbers


def _exactly(value: Value) -> Span:
    """Returns the span of one value; texts and truth values have none."""
    if isinstance(value, bool) or not isinstance(value, int | float | dt.date):
        return EVERYTHING
    return Span.exactly(day_number(value) if isinstance(value, dt.date) else value)


def _around_all(few: frozenset[Value]) -> Span:
    """Returns the span of values of one type, by the least and the largest alone: for many of them, many times."""
    if not few:
        return EMPTY
    if any(isinstance(value, bool) or not isinstance(value, int | float | dt.date) for value in few):
        return EVERYTHING
    low, high = min(few), max(few)  # type: ignore[type-var]
    return Span(_exactly(low).low, _exactly(high).high, nullable=False)


Sets = Mapping[str, ValueSet]
"""What is known of columns by name; of others nothing is."""


@singledispatch
def possible(expression: Expression, columns: Sets) -> ValueSet:
    """Returns a set that holds every value of an expression, given one for each column that is known.

    >>> x = ColumnRef("x", Type.INT)
    >>> older = FunctionCall("greater", (x, Literal(17, Type.INT)), Type.BOOL)
    >>> possible(older, {"x": ValueSet.between(0, 9)}).values
    [False]
    """
    del columns
    return ValueSet.any_of(expression.type)


@possible.register
def _(expression: Literal, columns: Sets) -> ValueSet:
    del columns
    return ValueSet.of([expression.value])


@possible.register
def _(expression: ColumnRef, columns: Sets) -> ValueSet:
    return columns.get(expression.name) or ValueSet.any_of(expression.type)


@possible.register
def _(expression: FunctionCall, columns: Sets) -> ValueSet:
    if expression.function == "if":
        return _unite_branches(expression, columns)
    parts = [possible(part, columns) for part in expression.arguments]
    tried = _try_combinations(expression, parts)
    if tried is not None:
        return tried
    shaped = _SHAPED.get(expression.function)
    if shaped is not None:
        return shaped(expression.function, parts)
    if expression.type is Type.BOOL:
        return ValueSet.of([False, True, *([None] if _may_be_null(expression, parts, EVERYTHING) else [])])
    around = _around(expression, parts, columns)
    return ValueSet(None, around, nullable=_may_be_null(expression, parts, around))


def _around(expression: FunctionCall, parts: Sequence[ValueSet], columns: Sets) -> Span:
    """Returns values by the arguments alone, which decide on NULL, and by the shape of the whole: both hold."""
    one = bound_call(expression, [replace(part.span, nullable=part.nullable) for part in parts])
    other = span(expression, {name: known.span for name, known in columns.items()})
    return Span(max(one.low, other.low), min(one.high, other.high), one.nullable)


def _try_combinations(expression: FunctionCall, parts: Sequence[ValueSet]) -> ValueSet | None:
    """Returns the values for all combinations of few values of the arguments, even if no row has them together."""
    kinds = tuple(part.type for part in expression.arguments)
    return _compute_combinations(expression.function, kinds, expression.type, tuple(parts))


@lru_cache(maxsize=4096)  # the branches of a CASE, such as the bands of a histogram, ask for the same again and again
def _compute_combinations(
    function: str, kinds: tuple[Type, ...], result: Type, parts: tuple[ValueSet, ...]
) -> ValueSet | None:
    lists = [values for part in parts if (values := part.values) is not None]
    if len(lists) < len(parts) or math.prod(map(len, lists)) > MOST_TRIED:
        return None
    names = [ColumnRef(f"#{place}", kind) for place, kind in enumerate(kinds)]
    applied = FunctionCall(function, tuple(names), result)
    rows = ({name.name: value for name, value in zip(names, row, strict=True)} for row in product(*lists))
    return ValueSet.of(evaluate(applied, row) for row in rows)


# ------------------------------------------------------------------------------------------------------- by their shape


def _unite_branches(expression: FunctionCall, columns: Sets) -> ValueSet:
    """Returns the branches that are come to."""
    condition, yes, no = expression.arguments
    truth = possible(condition, columns)
    come_to = [*([yes] if truth.holds(True) else []), *([no] if truth.nullable or truth.holds(False) else [])]
    return reduce(ValueSet.__or__, [possible(branch, columns) for branch in come_to])


def _first_present(_: str, parts: Sequence[ValueSet]) -> ValueSet:
    """Arguments after one that is never NULL do not count."""
    sure = next((place for place, part in enumerate(parts) if not part.nullable), len(parts) - 1)
    found = reduce(ValueSet.__or__, parts[: sure + 1])
    return ValueSet(found.few, found.span, nullable=all(part.nullable for part in parts))


def _is_null(_: str, parts: Sequence[ValueSet]) -> ValueSet:
    (x,) = parts
    return ValueSet.of([*([True] if x.nullable else []), *([False] if x.few is None or x.few else [])])


def _compare_sets(function: str, parts: Sequence[ValueSet]) -> ValueSet:
    """Returns a comparison of numbers or days by where they lie; of texts, by what they never are."""
    one, other = parts
    a, b = one.span, other.span
    some = not a.is_empty and not b.is_empty
    truths: list[Value] = [None] if one.nullable or other.nullable else []
    found = [some and test(a, b) for test in _COMPARISONS[function]]
    if function in ("equal", "not_equal") and (_excludes(one, other) or _excludes(other, one)):
        found = [some and function == "not_equal", some and function == "equal"]
    return ValueSet.of(truths + [truth for truth, is_possible in zip((True, False), found, strict=True) if is_possible])


def _excludes(one: ValueSet, other: ValueSet) -> bool:
    return other.few is not None and all(not one.holds(value) for value in other.few)


def _is_point(a: Span, b: Span) -> bool:
    return a.low == a.high == b.low == b.high


Test = Callable[[Span, Span], bool]
_COMPARISONS: Mapping[str, tuple[Test, Test]] = {
    "less": (lambda a, b: a.low < b.high, lambda a, b: a.high >= b.low),
    "less_equal": (lambda a, b: a.low <= b.high, lambda a, b: a.high > b.low),
    "greater": (lambda a, b: a.high > b.low, lambda a, b: a.low <= b.high),
    "greater_equal": (lambda a, b: a.high >= b.low, lambda a, b: a.low < b.high),
    "equal": (lambda a, b: a.low <= b.high and b.low <= a.high, lambda a, b: not _is_point(a, b)),
    "not_equal": (lambda a, b: not _is_point(a, b), lambda a, b: a.low <= b.high and b.low <= a.high),
}
"""For each comparison whether it may be TRUE, and whether it may be FALSE."""


def _test_membership(_: str, parts: Sequence[ValueSet]) -> ValueSet:
    x, *members = parts
    found = any(x.holds(value) for member in members for value in member.few or ())
    return ValueSet.of([False, *([True] if found else []), *([None] if x.nullable else [])])


_SHAPED: Mapping[str, Callable[[str, Sequence[ValueSet]], ValueSet]] = {
    "coalesce": _first_present,
    "is_null": _is_null,
    "in": _test_membership,
    **dict.fromkeys(_COMPARISONS, _compare_sets),
}

# --------------------------------------------------------------------------------------------------- whether it is NULL


def _may_be_null(expression: FunctionCall, parts: Sequence[ValueSet], around: Span) -> bool:
    """Returns whether a function may be NULL, by its record: for its arguments, or although all have a value."""
    record = FUNCTIONS[expression.function]
    if record.nulls is Nulls.ALL:
        return all(part.nullable for part in parts)
    if any(part.nullable for part in parts):
        return True
    return record.present is None or not record.present(expression, [part.span for part in parts], around)
