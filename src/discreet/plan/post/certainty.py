"""Whether a condition on released values holds whatever the noise was: for all values within their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from discreet.plan.analysis.value_bounds import span
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.size import columns
from discreet.plan.expressions.spans import Span
from discreet.plan.model.nodes import Call, Expression, Literal, Value

_NEVER_NULL = frozenset(
    {"add", "subtract", "multiply", "divide", "negate", "absolute", "round", "floor", "ceil", "to_float"}
)
"""Functions whose results, if their intervals are bounded, are never NULL."""


def settled(expression: Expression, values: Mapping[str, Value], noisy: Callable[[str], bool]) -> Expression:
    """The expression with everything written out that no noise decides: known parts, and branches of CASE."""
    if not any(noisy(column.name) for column in columns(expression)):
        return Literal(evaluate(expression, values), expression.type)
    if not isinstance(expression, Call):
        return expression
    if expression.function == "if":
        condition, then, other = expression.arguments
        known = settled(condition, values, noisy)
        if isinstance(known, Literal):
            return settled(then if known.value is True else other, values, noisy)
    parts = tuple(settled(part, values, noisy) for part in expression.arguments)
    return Call(expression.function, parts, expression.type)


def certain(condition: Expression, spans: Mapping[str, Span]) -> bool | None:
    """True if a settled condition is true for all values within their intervals, False if for none, else None."""
    if isinstance(condition, Literal):
        return condition.value is True
    if not isinstance(condition, Call):
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
    """Whether an expression of numbers has a value."""
    if isinstance(expression, Literal):
        return expression.value is not None and expression.type.is_number
    if isinstance(expression, Call):
        return expression.function in _NEVER_NULL and all(map(_is_present, expression.arguments))
    return expression.type.is_number


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
