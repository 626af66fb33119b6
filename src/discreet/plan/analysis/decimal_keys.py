"""Doubles as group keys: those that stand for whole numbers, or for whole numbers divided by a constant.

Doubles that are computed differ in their last digits where people mean the same value, so they make no groups. What is
rounded does, and so does a column of a public table whose values have few decimals: rows are grouped by the whole
number, and the key is shown as it was written. The number is a function of the row alone, whatever the column holds.
"""

from __future__ import annotations

from discreet.plan.analysis.function_bounds import is_whole
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import Call, Column, Expression, Literal
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type

MOST_DECIMALS = 6
_ROUNDED = ("round", "floor", "ceil")
_LARGEST_DIVISOR = 10.0**9


def whole_key(expression: Expression, schema: TableSchema) -> tuple[Expression, float] | None:
    """A key of doubles as whole numbers, and the number by which these are divided to get the double back.

    >>> two = Literal(2.0, Type.FLOAT)
    >>> whole = Call("round", (call("multiply", Column("x", Type.FLOAT), two),), Type.FLOAT)
    >>> whole_key(call("divide", whole, two), TableSchema(name="t"))[1]
    2.0
    """
    if expression.type is not Type.FLOAT:
        return None
    if is_whole(expression):
        return call("to_int", expression), 1.0
    rounded = _rounded(expression)
    if rounded is not None:
        return rounded
    known = schema.columns.get(expression.name) if isinstance(expression, Column) else None
    return (
        None if known is None or known.decimals is None else (shifted(expression, known.decimals), 10.0**known.decimals)
    )


def _rounded(expression: Expression) -> tuple[Expression, float] | None:
    """ROUND(x * c) / c as whole numbers, which is what ROUND(x, 2) means; and FLOOR and CEIL likewise."""
    if not isinstance(expression, Call) or expression.function != "divide":
        return None
    rounded, divisor = expression.arguments
    scale = divisor.value if isinstance(divisor, Literal) else None
    if not isinstance(rounded, Call) or rounded.function not in _ROUNDED or not isinstance(scale, float):
        return None
    (grown,) = rounded.arguments
    alike = isinstance(grown, Call) and grown.function == "multiply" and divisor in grown.arguments
    return (call("to_int", rounded), scale) if alike and 1 <= scale <= _LARGEST_DIVISOR else None


def shifted(value: Expression, decimals: int) -> Expression:
    """The whole number nearest to a double, after so many decimals."""
    moved = value if decimals == 0 else call("multiply", value, Literal(10.0**decimals, Type.FLOAT))
    return call("to_int", call("round", moved))


def from_whole(key: Expression, scale: float) -> Expression:
    """The double that a whole number stands for."""
    double = call("to_float", key)
    return double if scale == 1 else call("divide", double, Literal(scale, Type.FLOAT))
