"""Post-processing: outputs, HAVING, ORDER BY, LIMIT and OFFSET, computed from released values alone.

Whatever happens here costs nothing and can fail for no one: a ratio whose denominator may be zero has the interval of
all numbers, one whose denominator is zero has no value.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import float_above, float_below
from discreet.plan.analysis.value_bounds import span
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import LAST_DAY
from discreet.plan.expressions.functions.date_functions import DAY, day_number
from discreet.plan.expressions.interval_arithmetic import EVERYTHING, End, Span
from discreet.plan.model.group_columns import ColumnarRows, list_values
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal, Question, SortKey, Value, columns
from discreet.plan.model.types import Type

Numbers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoisyNumber:
    """A released number and its interval; no value if it is a quotient by zero. A zero has no sign."""

    value: int | float | Fraction | None
    low: int | float | Fraction
    high: int | float | Fraction

    def __post_init__(self) -> None:
        if self.value == 0 or self.low == 0 or self.high == 0:
            for name in ("value", "low", "high"):
                if getattr(self, name) == 0:
                    object.__setattr__(self, name, getattr(self, name) + 0)  # -0.0 + 0 is 0.0


class NoisyColumn(Sequence[NoisyNumber]):
    """Released numbers with their intervals; a `NoisyNumber` is made when one is looked at.

    Args:
        value: whole numbers, or doubles.
        low: of the same kind.
        high: of the same kind.

    >>> column = NoisyColumn(np.array([3, 5]), np.array([1, 3]), np.array([5, 7]))
    >>> column[1], len(column)
    (NoisyNumber(value=5, low=3, high=7), 2)
    """

    __slots__ = ("high", "low", "value")

    def __init__(self, value: Numbers, low: Numbers, high: Numbers) -> None:
        self.value, self.low, self.high = value + 0, low + 0, high + 0  # -0.0 + 0 is 0.0

    def take_places(self, places: Sequence[int]) -> NoisyColumn:
        """Returns the numbers at some places, in this order."""
        chosen = np.asarray(places, dtype=np.intp)
        return NoisyColumn(self.value[chosen], self.low[chosen], self.high[chosen])

    def at(self, value: Numbers) -> NoisyColumn:
        """Returns intervals of other values, as much wider as it takes to hold them."""
        return NoisyColumn(value, np.minimum(self.low, value), np.maximum(self.high, value))

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[NoisyNumber]:
        return map(NoisyNumber, self.value.tolist(), self.low.tolist(), self.high.tolist())

    @overload
    def __getitem__(self, index: int) -> NoisyNumber: ...
    @overload
    def __getitem__(self, index: slice) -> NoisyColumn: ...

    def __getitem__(self, index: int | slice) -> NoisyNumber | NoisyColumn:
        parts = self.value[index], self.low[index], self.high[index]
        return NoisyColumn(*parts) if isinstance(index, slice) else NoisyNumber(*(part.item() for part in parts))


@dataclass(frozen=True, slots=True)
class NoisyTime:
    """A released day or moment and its interval, which is that of all years where nothing is known."""

    value: dt.date | None
    low: dt.date
    high: dt.date


Measured = NoisyNumber | NoisyTime
"""A released value that has an interval."""


Cell = Value | Measured
Row = Mapping[str, Cell]


def plain_rows(rows: Sequence[dict[str, Cell]]) -> ColumnarRows[Any]:
    """Returns rows with each noisy value spread over three columns, as plain values; ends are rounded outwards."""
    held = ColumnarRows.of(rows)
    made: dict[str, Any] = {}
    for name, cells in held.columns.items():
        parts = _plain_columns(cells)
        made |= dict(zip((name, f"{name}_low", f"{name}_high")[: len(parts)], parts, strict=True))
    return ColumnarRows(made, len(held))


def _plain_columns(cells: Sequence[Cell]) -> tuple[Any, ...]:
    """Returns a column of cells as one of plain values, or as three if they have intervals."""
    if isinstance(cells, NoisyColumn):
        return cells.value, cells.low, cells.high
    kinds = set(map(type, cells))
    if not kinds & {NoisyNumber, NoisyTime}:
        return ([cell + 0.0 if isinstance(cell, float) else cell for cell in cells] if float in kinds else cells,)
    return tuple(map(list, zip(*map(_plain_ends, cells), strict=True)))


def _plain_ends(cell: Cell) -> tuple[Any, Any, Any]:
    if isinstance(cell, NoisyTime):
        return cell.value, cell.low, cell.high
    if isinstance(cell, NoisyNumber):
        return _plain(cell.value, float), _plain(cell.low, float_below), _plain(cell.high, float_above)
    return cell, None, None


def _plain(part: float | Fraction | None, rounded: Callable[[Fraction], float]) -> int | float | None:
    return part if part is None or isinstance(part, int | float) else rounded(part)


def finish(question: Question, rows: Sequence[Row]) -> ColumnarRows[Cell]:
    """Computes the rows of an answer from released values.

    Args:
        question: what was asked.
        rows: for each released group its keys, by the keys' names, and its aggregates as `NoisyNumber`, by theirs.

    Returns:
        The outputs by name. Those computed from aggregates are `NoisyNumber` if they are numbers; days and moments that
        are computed from such are `NoisyTime`.

    *Formal guarantee.* A function of released values, which it holds to their intervals: if each aggregate's true value
    lies in its interval, so does each output's. With k aggregates in an output, intervals of confidence 1 - a each give
    one of 1 - k a at least.

    >>> from discreet.plan.model.nodes import Aggregate, Output
    >>> from discreet.plan.model.types import Type
    >>> n = ColumnRef("#1", Type.INT)
    >>> asked = Question(
    ...     table="visits", aggregates=(Aggregate(name="#1", kind="count"),), outputs=(Output("n", n),), limit=1
    ... )
    >>> finish(asked, [{"#1": NoisyNumber(42, 39, 45)}])
    [{'n': NoisyNumber(value=42, low=39, high=45)}]
    """
    kept = ColumnarRows.of(rows)
    if question.having is not None:
        kept = kept.take_places(
            [place for place, found in enumerate(_evaluate_rows(question.having, kept)) if found is True]
        )
    for order in reversed(question.order):  # sorting keeps the order of equals, so the first order is applied last
        kept = kept.take_places(_sort_places(_evaluate_rows(order.expression, kept), order))
    end = None if question.limit is None else question.offset + question.limit
    shown = kept[question.offset : end]
    return ColumnarRows({output.name: _cells(output.expression, shown) for output in question.outputs}, len(shown))


def _cells(expression: Expression, rows: ColumnarRows[Cell]) -> Sequence[Cell]:
    """Returns one output of all rows."""
    if isinstance(expression, ColumnRef) and rows:
        return rows.columns[expression.name]
    return [cell(expression, row) for row in rows]


def _evaluate_rows(expression: Expression, rows: ColumnarRows[Cell]) -> Sequence[Value]:
    """Returns what an expression of released values is in each row."""
    names = sorted({column.name for column in columns(expression)})
    if not rows:
        return []
    if not names:
        return [evaluate(expression, {})] * len(rows)
    given = [values_of_column(rows.columns[name]) for name in names]
    if isinstance(expression, ColumnRef):
        return given[0]
    return [evaluate(expression, dict(zip(names, values, strict=True))) for values in zip(*given, strict=True)]


def cell(expression: Expression, row: Row) -> Cell:
    """Computes one output, with its interval if it has one."""
    if isinstance(expression, ColumnRef):
        return row[expression.name]
    noisy = [column.type for column in columns(expression) if isinstance(row[column.name], Measured)]
    values = values_of(row)
    value: Value = evaluate(expression, values)
    if not has_interval(expression.type, noisy):
        return value
    known = resolve_known_parts(expression, values, lambda name: isinstance(row[name], Measured))
    return as_noisy(value, span(known, {name: span_of(part) for name, part in row.items()}), expression.type)


def resolve_known_parts(
    expression: Expression, values: Mapping[str, Value], noisy: Callable[[str], bool]
) -> Expression:
    """Writes out everything in an expression that no noise decides: known parts, and branches of CASE."""
    if not any(noisy(column.name) for column in columns(expression)):
        return Literal(evaluate(expression, values), expression.type)
    if not isinstance(expression, FunctionCall):
        return expression
    if expression.function == "if":
        condition, then, other = expression.arguments
        known = resolve_known_parts(condition, values, noisy)
        if isinstance(known, Literal):
            return resolve_known_parts(then if known.value is True else other, values, noisy)
    parts = tuple(resolve_known_parts(part, values, noisy) for part in expression.arguments)
    return FunctionCall(expression.function, parts, expression.type)


def has_interval(kind: Type, noisy: Iterable[Type]) -> bool:
    """Returns whether values of a type that are computed from noisy ones of some types have an interval.

    Numbers have; days and moments only if they are computed from such, and not chosen by a number.
    """
    return any(True for _ in noisy) if kind.is_number else kind.is_time and any(part.is_time for part in noisy)


def as_noisy(value: Value | Fraction, found: Span, kind: Type = Type.FLOAT) -> Measured:
    """Returns a value of a type with its interval; if it has none, with that of all values."""
    if kind.is_time:
        return _as_time(value, found, kind)
    if value is None or isinstance(value, str | bool) or not isinstance(value, int | float | Fraction):
        return NoisyNumber(None, -math.inf, math.inf)
    return NoisyNumber(value, min(value, _below(found.low)), max(value, _above(found.high)))


def _as_time(value: object, found: Span, kind: Type) -> NoisyTime:
    """Returns whole days, or microseconds, around the interval; what has no end ends with the calendar."""
    low, high = _moment(found.low, kind, math.floor), _moment(found.high, kind, math.ceil)
    if not isinstance(value, dt.date):
        return NoisyTime(None, _moment(-math.inf, kind, math.floor), _moment(math.inf, kind, math.ceil))
    return NoisyTime(value, min(value, low), max(value, high))


def _moment(end: End, kind: Type, rounded: Callable[[Fraction], int]) -> dt.date:
    """Returns the day or moment with a number, as it is rounded."""
    parts = 1 if kind is Type.DATE else DAY
    held = min(max(end, Fraction(1)), Fraction(LAST_DAY + 1))
    at = min(rounded(Fraction(held) * parts), (LAST_DAY + 1) * parts - 1)
    day = dt.date.fromordinal(at // parts)
    if kind is Type.DATE:
        return day
    return dt.datetime.combine(day, dt.time()) + dt.timedelta(microseconds=at % parts)


def spread(part: Cell, kind: Type | None) -> Cell:
    """Returns a cell as its column has it: with an interval if the column has those, even if the value is certain.

    Args:
        part: the cell.
        kind: the type of a column that has intervals.
    """
    if kind is None or isinstance(part, Measured):
        return part
    if part is None:
        return as_noisy(None, EVERYTHING, kind)
    if isinstance(part, dt.date):
        return NoisyTime(part, part, part)
    exact = isinstance(part, int | float | Fraction) and not isinstance(part, bool)
    return NoisyNumber(part, part, part) if exact else part  # type: ignore[arg-type]


def values_of(row: Row) -> dict[str, Any]:
    """Returns the released values by name."""
    return {name: part.value if isinstance(part, Measured) else part for name, part in row.items()}


def values_of_column(column: Sequence[Cell]) -> Sequence[Any]:
    """Returns the released values of a column."""
    if isinstance(column, NoisyColumn):
        return list_values(column.value)
    parts: Sequence[Cell] = list_values(column)
    return [part.value if isinstance(part, Measured) else part for part in parts]


def span_of(part: Cell) -> Span:
    """Returns the interval in which the true value may be; days and moments are numbers of days."""
    if isinstance(part, Measured):
        return Span(_end(part.low), _end(part.high), nullable=part.value is None)
    if isinstance(part, dt.date):
        return Span.exactly(day_number(part))
    is_number = isinstance(part, int | float | Fraction) and not isinstance(part, bool)
    return Span.exactly(part) if is_number else EVERYTHING  # type: ignore[arg-type]


def _end(end: float | Fraction | dt.date) -> End:
    if isinstance(end, dt.date):
        return day_number(end)
    return float(end) if isinstance(end, float) and math.isinf(end) else Fraction(end)


def _below(end: End) -> int | float:
    return _round_end(end, float_below)


def _above(end: End) -> int | float:
    return _round_end(end, float_above)


def _round_end(end: End, rounded: Any) -> int | float:
    """Returns whole numbers as they are, others as doubles that err outwards."""
    if isinstance(end, float):
        return end
    return end.numerator if end.denominator == 1 else rounded(end)


def _sort_places(values: Sequence[Any], order: SortKey) -> list[int]:
    """Returns the places of rows by a value, NULL last in both directions."""
    present = [place for place, value in enumerate(values) if value is not None]
    present.sort(key=values.__getitem__, reverse=order.descending)
    return present + [place for place, value in enumerate(values) if value is None]
