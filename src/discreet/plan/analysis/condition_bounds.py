"""What a condition tells of columns: narrower spans where it is TRUE, and where it is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from discreet.plan.expressions.spans import EMPTY, EVERYTHING, End, Span
from discreet.plan.model.nodes import Call, Column, Expression, Literal
from discreet.plan.model.types import Type

Spans = Mapping[str, Span]

_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
}
_OPPOSITE = {
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
    "not_equal": "equal",
}


def where_true(condition: Expression, columns: Spans) -> Spans:
    """Spans of the columns on rows where a condition is TRUE; a column that is NULL there has no value to hold.

    >>> column = Column("x", Type.INT)
    >>> older = Call("greater", (column, Literal(17, Type.INT)), Type.BOOL)
    >>> where_true(older, {"x": Span(Fraction(0), Fraction(120))})["x"].low
    Fraction(18, 1)
    """
    if not isinstance(condition, Call):
        return columns
    if condition.function == "and":
        return where_true(condition.arguments[1], where_true(condition.arguments[0], columns))
    if condition.function == "not":
        return where_not_true(condition.arguments[0], columns)
    return _compared(condition.function, condition, columns)


def where_not_true(condition: Expression, columns: Spans) -> Spans:
    """Spans on rows where a condition is FALSE or NULL.

    A comparison of a column with a number is NULL only where the column is, and there it has no value to hold. NOT and
    OR of such comparisons are no more: NULL leaves nothing open but what NULL columns do.
    """
    if not isinstance(condition, Call):
        return columns
    if condition.function == "or":
        return where_not_true(condition.arguments[1], where_not_true(condition.arguments[0], columns))
    opposite = _OPPOSITE.get(condition.function)
    return columns if opposite is None else _compared(opposite, condition, columns)


def _compared(comparison: str, condition: Call, columns: Spans) -> Spans:
    """Spans where a comparison of one column with one number holds."""
    if condition.function not in (*_MIRRORED, "not_equal"):
        return columns
    one, other = condition.arguments
    if isinstance(one, Literal):
        one, other, comparison = other, one, _MIRRORED.get(comparison, comparison)
    value = other.value if isinstance(other, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return columns
    one, rule = _plain(one, value), _RULES.get(comparison)
    if not isinstance(one, Column) or rule is None:
        return columns
    low, high = rule(Fraction(value), one.type is Type.INT)
    known = columns.get(one.name, EVERYTHING)
    kept = Span(max(known.low, low), min(known.high, high), known.nullable)
    return {**columns, one.name: EMPTY if kept.is_empty else kept}


def _plain(expression: Expression, value: float) -> Expression:
    """A column of whole numbers that is compared as doubles: below 2^53, both compare alike."""
    if not isinstance(expression, Call) or expression.function != "to_float" or abs(value) >= 1 << 53:
        return expression
    (inner,) = expression.arguments
    return inner if inner.type is Type.INT else expression


_RULES: dict[str, Callable[[Fraction, bool], tuple[End, End]]] = {
    "less": lambda value, whole: (-math.inf, Fraction(math.ceil(value) - 1) if whole else value),
    "less_equal": lambda value, whole: (-math.inf, Fraction(math.floor(value)) if whole else value),
    "greater": lambda value, whole: (Fraction(math.floor(value) + 1) if whole else value, math.inf),
    "greater_equal": lambda value, whole: (Fraction(math.ceil(value)) if whole else value, math.inf),
    "equal": lambda value, _: (value, value),
}
