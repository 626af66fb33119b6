"""The value of an expression in plain Python: outputs are computed by it, and every engine is held to it.

Total by construction: every function has a value, or NULL (None), for all arguments of its types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from discreet.errors import InternalError
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.expressions.functions.conversions import as_double
from discreet.plan.expressions.functions.record import Nulls
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal
from discreet.plan.model.types import Type

Values = Mapping[str, Any]
"""Values by column; numbers may be int, float or Fraction."""

INT_LOW, INT_HIGH = -(2**63), 2**63 - 1


def evaluate(expression: Expression, values: Values) -> Any:
    """Computes the value of an expression, None for NULL.

    >>> half = FunctionCall("divide", (ColumnRef("n", Type.FLOAT), Literal(0.0, Type.FLOAT)), Type.FLOAT)
    >>> evaluate(half, {"n": 3.0}) is None
    True
    """
    if isinstance(expression, FunctionCall):
        return _evaluate_call(expression, values)
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, ColumnRef):
        return values[expression.name]
    raise InternalError(f"A {type(expression).__name__} has no value.")


def _evaluate_call(expression: FunctionCall, values: Values) -> Any:
    function, parts = expression.function, expression.arguments
    kinds, as_given = _find_argument_types(function, tuple([part.type for part in parts]), expression.type)
    if function == "if":  # every expression is total: the other branch has a value that is not needed
        place = 1 if evaluate(parts[0], values) is True else 2
        return _argument(evaluate(parts[place], values), kinds[place])
    arguments = [evaluate(part, values) for part in parts]
    if not as_given:
        arguments = [_argument(value, kind) for value, kind in zip(arguments, kinds, strict=True)]
    record = FUNCTIONS[function]
    if record.nulls is not Nulls.ANY:
        return record.compute(arguments)
    if None in arguments:
        return None
    return _RESULTS[expression.type](record.compute(*arguments))


@cache
def _find_argument_types(function: str, given: tuple[Type, ...], result: Type) -> tuple[tuple[Type, ...], bool]:
    """Returns the types that the function takes these arguments as, and whether none of them is a double."""
    fitting = (signature for signature in FUNCTIONS[function].signatures if signature.accepts(given))
    signature = next((signature for signature in fitting if signature.result is result), None)
    kinds = given if signature is None else signature.types_of(len(given))
    return kinds, Type.FLOAT not in kinds


def _argument(value: Any, kind: Type) -> Any:
    """Numbers where doubles are asked for become doubles; those that do not exist are NULL."""
    return _double(value) if kind is Type.FLOAT else value


def _double(value: Any) -> float | None:
    return None if value is None else as_double(value)


def _whole(value: Any) -> Any:
    return value if value is not None and INT_LOW <= value <= INT_HIGH else None


_RESULTS: dict[Type, Callable[[Any], Any]] = {kind: lambda value: value for kind in Type}
_RESULTS |= {Type.FLOAT: _double, Type.INT: _whole}
