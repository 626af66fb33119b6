"""Post-processing: outputs, HAVING, ORDER BY, LIMIT and OFFSET, computed from released values alone.

Whatever happens here costs nothing and can fail for no one: a ratio whose denominator may be zero has the interval of
all numbers, one whose denominator is zero has no value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.exact import float_above, float_below
from discreet.plan.analysis.value_bounds import span
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.interval_arithmetic import EVERYTHING, End, Span
from discreet.plan.model.nodes import Column, Expression, Order, Question, Value, columns


@dataclass(frozen=True, slots=True)
class Noisy:
    """A released number and its interval; no value if it is a quotient by zero."""

    value: int | float | Fraction | None
    low: int | float | Fraction
    high: int | float | Fraction


Cell = Value | Noisy
Row = Mapping[str, Cell]


def finish(question: Question, rows: Sequence[Row]) -> list[dict[str, Cell]]:
    """Computes the rows of an answer from released values.

    Args:
        question: what was asked.
        rows: for each released group its keys, by the keys' names, and its aggregates as `Noisy`, by theirs.

    Returns:
        The outputs by name. Those computed from aggregates are `Noisy` if they are numbers.

    *Formal guarantee.* A function of released values, which it holds to their intervals: if each aggregate's true value
    lies in its interval, so does each output's. With k aggregates in an output, intervals of confidence 1 - a each give
    one of 1 - k a at least.

    >>> from discreet.plan.model.nodes import Aggregate, Output
    >>> from discreet.plan.model.types import Type
    >>> n = Column("#1", Type.INT)
    >>> asked = Question(
    ...     table="visits", aggregates=(Aggregate(name="#1", kind="count"),), outputs=(Output("n", n),), limit=1
    ... )
    >>> finish(asked, [{"#1": Noisy(42, 39, 45)}])
    [{'n': Noisy(value=42, low=39, high=45)}]
    """
    kept = [row for row in rows if question.having is None or evaluate(question.having, values_of(row)) is True]
    for order in reversed(question.order):  # sorting keeps the order of equals, so the first order is applied last
        kept = _sorted(kept, order)
    end = None if question.limit is None else question.offset + question.limit
    shown = kept[question.offset : end]
    return [{output.name: cell(output.expression, row) for output in question.outputs} for row in shown]


def cell(expression: Expression, row: Row) -> Cell:
    """Computes one output, with its interval if it is a number that depends on released ones."""
    if isinstance(expression, Column):
        return row[expression.name]
    noisy = any(isinstance(row[column.name], Noisy) for column in columns(expression))
    value: Value = evaluate(expression, values_of(row))
    if not noisy or not expression.type.is_number:
        return value
    return as_noisy(value, span(expression, {name: span_of(part) for name, part in row.items()}))


def as_noisy(value: Value | Fraction, found: Span) -> Noisy:
    """Returns a value with its interval; if it is no number, with that of all of them."""
    if value is None or isinstance(value, str | bool) or not isinstance(value, int | float | Fraction):
        return Noisy(None, -math.inf, math.inf)
    return Noisy(value, min(value, _below(found.low)), max(value, _above(found.high)))


def spread(part: Cell, noisy: bool) -> Cell:
    """Returns a cell as its column has it: `Noisy` where the column depends on noise, even if the number is certain."""
    if not noisy or isinstance(part, Noisy):
        return part
    exact = isinstance(part, int | float | Fraction) and not isinstance(part, bool)
    if exact:
        return Noisy(part, part, part)  # type: ignore[arg-type]
    return Noisy(None, -math.inf, math.inf) if part is None else part


def values_of(row: Row) -> dict[str, Any]:
    """Returns the released values by name."""
    return {name: part.value if isinstance(part, Noisy) else part for name, part in row.items()}


def span_of(part: Cell) -> Span:
    """Returns the interval in which the true value may be."""
    if isinstance(part, Noisy):
        return Span(_end(part.low), _end(part.high), nullable=part.value is None)
    is_number = isinstance(part, int | float | Fraction) and not isinstance(part, bool)
    return Span.exactly(part) if is_number else EVERYTHING  # type: ignore[arg-type]


def _end(end: float | Fraction) -> End:
    return float(end) if isinstance(end, float) and math.isinf(end) else Fraction(end)


def _below(end: End) -> int | float:
    return _shown(end, float_below)


def _above(end: End) -> int | float:
    return _shown(end, float_above)


def _shown(end: End, rounded: Any) -> int | float:
    """Whole numbers as they are, others as doubles that err outwards."""
    if isinstance(end, float):
        return end
    return end.numerator if end.denominator == 1 else rounded(end)


def _sorted(rows: Sequence[Row], order: Order) -> list[Row]:
    """Rows by a value, NULL last in both directions."""
    valued = [(evaluate(order.expression, values_of(row)), row) for row in rows]
    present = [pair for pair in valued if pair[0] is not None]
    present.sort(key=lambda pair: pair[0], reverse=order.descending)
    return [row for _, row in present] + [row for value, row in valued if value is None]
