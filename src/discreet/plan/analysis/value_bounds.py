"""How far the values of an expression can lie apart, from public declarations alone.

The bounds decide to which limits an aggregate clips, and so how much noise it needs. Privacy never rests on them:
whatever a row holds, its value is clipped to them before it is added.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, singledispatch

from discreet.exact import float_above
from discreet.plan.expressions.functions import FUNCTIONS, LAST_DAY
from discreet.plan.expressions.functions.date_functions import day_number
from discreet.plan.expressions.functions.elementary import LOGARITHMS
from discreet.plan.expressions.functions.record import Rounding
from discreet.plan.expressions.interval_arithmetic import (
    EMPTY,
    EVERYTHING,
    INT_HIGH,
    INT_LOW,
    End,
    Span,
    hull,
)
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal
from discreet.plan.model.nodes import columns as named
from discreet.plan.model.schema import ColumnBounds, TableSchema
from discreet.plan.model.types import Type

Spans = Mapping[str, Span]
"""What is known of each column."""

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
    """Narrows the columns' intervals to rows where a condition is TRUE; a NULL column has no value to hold there.

    >>> column = ColumnRef("x", Type.INT)
    >>> older = FunctionCall("greater", (column, Literal(17, Type.INT)), Type.BOOL)
    >>> where_true(older, {"x": Span(Fraction(0), Fraction(120))})["x"].low
    Fraction(18, 1)
    """
    if not isinstance(condition, FunctionCall):
        return columns
    if condition.function == "and":
        return where_true(condition.arguments[1], where_true(condition.arguments[0], columns))
    if condition.function == "not":
        return where_not_true(condition.arguments[0], columns)
    return _narrow_by_comparison(condition.function, condition, columns)


def where_not_true(condition: Expression, columns: Spans) -> Spans:
    """Narrows the columns' intervals to rows where a condition is FALSE or NULL.

    A comparison of a column with a number is NULL only where the column is, and there it has no value to hold. NOT and
    OR of such comparisons are no more: NULL leaves nothing open but what NULL columns do.
    """
    if not isinstance(condition, FunctionCall):
        return columns
    if condition.function == "or":
        return where_not_true(condition.arguments[1], where_not_true(condition.arguments[0], columns))
    opposite = _OPPOSITE.get(condition.function)
    return columns if opposite is None else _narrow_by_comparison(opposite, condition, columns)


def _narrow_by_comparison(comparison: str, condition: FunctionCall, columns: Spans) -> Spans:
    """Spans where a comparison of one column with one number holds."""
    if condition.function not in (*_MIRRORED, "not_equal"):
        return columns
    one, other = condition.arguments
    if isinstance(one, Literal):
        one, other, comparison = other, one, _MIRRORED.get(comparison, comparison)
    value = other.value if isinstance(other, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return columns
    one, rule = _plain(one, value), _COMPARISON_RULES.get(comparison)
    if not isinstance(one, ColumnRef) or rule is None:
        return columns
    low, high = rule(Fraction(value), one.type is Type.INT)
    known = columns.get(one.name, EVERYTHING)
    kept = Span(max(known.low, low), min(known.high, high), known.nullable)
    return {**columns, one.name: EMPTY if kept.is_empty else kept}


def _plain(expression: Expression, value: float) -> Expression:
    """Returns a column of whole numbers that is compared as doubles: below 2^53, both compare alike."""
    if not isinstance(expression, FunctionCall) or expression.function != "to_float" or abs(value) >= 1 << 53:
        return expression
    (inner,) = expression.arguments
    return inner if inner.type is Type.INT else expression


_COMPARISON_RULES: dict[str, Callable[[Fraction, bool], tuple[End, End]]] = {
    "less": lambda value, whole: (-math.inf, Fraction(math.ceil(value) - 1) if whole else value),
    "less_equal": lambda value, whole: (-math.inf, Fraction(math.floor(value)) if whole else value),
    "greater": lambda value, whole: (Fraction(math.floor(value) + 1) if whole else value, math.inf),
    "greater_equal": lambda value, whole: (Fraction(math.ceil(value)) if whole else value, math.inf),
    "equal": lambda value, _: (value, value),
}


def bounds(expression: Expression, schema: TableSchema, *, floored: bool = True) -> ColumnBounds | None:
    """Computes limits that hold every value of an expression whose columns are within their declared bounds.

    Those of days and moments are numbers of days (`day_number`).

    Args:
        expression: over one row.
        schema: of the rows.
        floored: whether limits may leave logarithms near zero out, to be clipped, where there are none else (`floors`).

    Returns:
        None if there are none. A constant's limits reach to zero, since limits must lie apart.

    >>> from discreet.plan.model.schema import ColumnSchema
    >>> age = ColumnSchema(name="age", type=Type.INT, bounds=ColumnBounds(Fraction(0), Fraction(120)))
    >>> schema = TableSchema(name="visits", columns={"age": age})
    >>> ten = Literal(10, Type.INT)
    >>> bounds(FunctionCall("subtract", (ColumnRef("age", Type.INT), ten), Type.INT), schema)
    ColumnBounds(low=Fraction(-10, 1), high=Fraction(110, 1))
    """
    if expression.type not in _MEASURED:
        return None
    read = {column.name for column in named(expression)} & schema.columns.keys()  # of a wide table, few
    found = _bound_expression(
        expression, frozenset((name, _declared_span(schema.columns[name].bounds)) for name in read), floored
    )
    if found.is_empty:
        return ColumnBounds(Fraction(0), Fraction(1))
    if not found.is_bounded:
        return None
    low, high = Fraction(found.low), Fraction(found.high)
    if low < high:
        return ColumnBounds(low, high)
    return (
        ColumnBounds(min(low, Fraction(0)), max(high, Fraction(0))) if low else ColumnBounds(Fraction(0), Fraction(1))
    )


@lru_cache(maxsize=256)  # a question is planned several times, and a profile asks the same of many tables
def _bound_expression(expression: Expression, columns: frozenset[tuple[str, Span]], floored: bool) -> Span:
    """Returns the interval of an expression; with floors under its logarithms if it has none else."""
    if not floored:
        return span(expression, dict(columns))
    found = _bound_expression(expression, columns, False)
    return found if found.is_bounded else span(floors(expression, dict(columns)), dict(columns))


SMALLEST = Fraction(1, 1 << 30)
"""The part of an upper bound below which a logarithm is clipped, where no lower bound above zero is declared."""


def floors(expression: Expression, columns: Spans) -> Expression:
    """Raises what is under a logarithm to a small part of its upper bound: what is clipped there has a lower limit."""
    if not isinstance(expression, FunctionCall):
        return expression
    parts = tuple(floors(part, columns) for part in expression.arguments)
    if expression.function in LOGARITHMS:
        high = span(parts[-1], columns).high
        least = math.inf if isinstance(high, float) else float_above(high * SMALLEST)
        if 0 < least < math.inf:
            parts = (*parts[:-1], FunctionCall("greatest", (parts[-1], Literal(least, Type.FLOAT)), Type.FLOAT))
    return FunctionCall(expression.function, parts, expression.type)


def _declared_span(declared: ColumnBounds | None) -> Span:
    return EVERYTHING if declared is None else Span(declared.low, declared.high)


def is_whole(expression: Expression) -> bool:
    """Returns whether every value of an expression is a whole number, by its shape alone.

    >>> is_whole(FunctionCall("floor", (Literal(2.5, Type.FLOAT),), Type.FLOAT))
    True
    """
    if expression.type is Type.INT:
        return True
    if isinstance(expression, Literal):
        return expression.value is None or (isinstance(expression.value, float) and expression.value.is_integer())
    if not isinstance(expression, FunctionCall) or expression.type is not Type.FLOAT:
        return False
    rounding = FUNCTIONS[expression.function].rounding
    values = expression.arguments[1:] if expression.function == "if" else expression.arguments
    return rounding is Rounding.WHOLE or (rounding is Rounding.KEPT and all(is_whole(part) for part in values))


@singledispatch
def span(expression: Expression, columns: Spans) -> Span:
    """Computes an interval that holds every value of an expression of numbers, given one for each column.

    Days and moments count as numbers of days. Everything that is not known to be bounded is unbounded, and expressions
    that are neither numbers nor days are.
    """
    del expression, columns
    return EVERYTHING


@span.register
def _(expression: ColumnRef, columns: Spans) -> Span:
    return columns.get(expression.name, EVERYTHING)


@span.register
def _(expression: Literal, columns: Spans) -> Span:
    del columns
    if expression.value is None:
        return EMPTY
    if isinstance(expression.value, dt.date):
        return Span.exactly(day_number(expression.value))
    return Span.exactly(expression.value) if isinstance(expression.value, int | float) else EVERYTHING


@span.register
def _(expression: FunctionCall, columns: Spans) -> Span:
    rule = FUNCTIONS[expression.function].bounds
    if rule is None or expression.type not in _MEASURED:
        return EVERYTHING
    shaped = _SHAPED.get(expression.function)
    found = shaped(expression, columns) if shaped is not None else None
    if found is None:
        return bound_call(expression, [span(argument, columns) for argument in expression.arguments])
    return _AS[expression.type](found)


def bound_call(expression: FunctionCall, spans: Sequence[Span]) -> Span:
    """Computes an interval that holds every value of a function, given one for each of its arguments."""
    rule = FUNCTIONS[expression.function].bounds
    if rule is None or expression.type not in _MEASURED:
        return EVERYTHING
    if expression.function == "to_int" and expression.arguments[0].type is Type.BOOL:
        return Span(Fraction(0), Fraction(1))
    return _AS[expression.type](rule(spans))


def _as_int(found: Span) -> Span:
    """Returns what is surely in 64 bits; an unbounded whole number stays unbounded, for bounds of 2^63 have no use."""
    return found.within(INT_LOW, INT_HIGH) if found.is_bounded else found


def _as_day(found: Span) -> Span:
    """Returns what is surely within the years 1 to 9999; an unbounded day stays unbounded."""
    return found.within(Fraction(1), Fraction(LAST_DAY + 1)) if found.is_bounded else found


_AS: dict[Type, Callable[[Span], Span]] = {
    Type.FLOAT: Span.as_floats,
    Type.INT: _as_int,
    Type.DATE: _as_day,
    Type.TIMESTAMP: _as_day,
}
_MEASURED = frozenset(_AS)


def _bound_branches(expression: FunctionCall, columns: Spans) -> Span:
    """Bounds each branch by the rows that come to it: it is computed from no others."""
    condition, yes, no = expression.arguments
    return hull([span(yes, where_true(condition, columns)), span(no, where_not_true(condition, columns))])


def _bound_product(expression: FunctionCall, columns: Spans) -> Span | None:
    """Bounds a product; a square is not negative."""
    one, other = expression.arguments
    size = abs(span(one, columns))
    return size * size if one == other else None


def _bound_quotient(expression: FunctionCall, columns: Spans) -> Span | None:
    """Bounds a quotient by a whole number of a row: one that is not zero is 1 at least, or -1 at most.

    A released count that may be zero leaves a ratio open: see `finish`.
    """
    top, bottom = expression.arguments
    if any(column.name.startswith("#") for column in named(bottom)) or not is_whole(bottom):
        return None
    divisor, dividend = span(bottom, columns), span(top, columns)
    sides = [divisor.within(Fraction(1), math.inf), divisor.within(-math.inf, Fraction(-1))]
    return hull([dividend / side for side in sides if not side.is_empty] or [EMPTY])


def _long(expression: FunctionCall, columns: Spans) -> Span | None:
    """Returns the length of a text of a known form: part of another, a number, a truth value or a day."""
    del columns
    (text,) = expression.arguments
    if not isinstance(text, FunctionCall):
        return None
    most = text.arguments[-1] if text.function == "substring" else None
    if isinstance(most, Literal) and isinstance(most.value, int):
        return Span(Fraction(0), Fraction(max(most.value, 0)))
    known = _LENGTHS.get(text.arguments[0].type) if text.function == "to_text" else None
    return None if known is None else Span(Fraction(known[0]), Fraction(known[1]))


def _logarithm(expression: FunctionCall, columns: Spans) -> Span | None:
    """Bounds a positive whole number of a row from below by 1; a released count may be zero (`_bound_quotient`)."""
    (value,) = expression.arguments
    if any(column.name.startswith("#") for column in named(value)) or not is_whole(value):
        return None
    rule = FUNCTIONS[expression.function].bounds
    return None if rule is None else rule([span(value, columns).within(Fraction(1), math.inf)])


_LENGTHS = {Type.INT: (1, 20), Type.BOOL: (4, 5), Type.DATE: (10, 10)}

_SHAPED: dict[str, Callable[[FunctionCall, Spans], Span | None]] = {
    "if": _bound_branches,
    "multiply": _bound_product,
    "divide": _bound_quotient,
    "length": _long,
    **dict.fromkeys(LOGARITHMS - {"log"}, _logarithm),
}
"""Rules that look at the arguments themselves, not at their spans alone; None leaves it to the plain rule."""
