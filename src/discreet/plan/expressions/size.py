"""How large an expression is, found without recursion, so that nothing above meets a plan it cannot walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from discreet.plan.model.nodes import Call, Column, Expression

LARGEST = 10_000  # parts of one expression, each counted as often as it stands there
DEEPEST = 100  # calls inside each other


def fits(expression: Expression) -> bool:
    """Whether an expression is small enough to be walked by simple recursion.

    >>> from discreet.plan.model.types import Type
    >>> x = Column("x", Type.INT)
    >>> for _ in range(200):
    ...     x = Call("add", (x, x), Type.INT)
    >>> fits(x)
    False
    """
    waiting, seen = [(expression, 1)], 0
    while waiting:
        part, depth = waiting.pop()
        seen += 1
        if seen > LARGEST or depth > DEEPEST:
            return False
        if isinstance(part, Call):
            waiting += [(argument, depth + 1) for argument in part.arguments]
    return True


def columns(expression: Expression) -> Iterator[Column]:
    """The columns that an expression reads, from left to right, each as often as it stands there."""
    if isinstance(expression, Column):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns(argument)


def substitute(
    expression: Expression, known: Mapping[Expression, Expression], other: Callable[[Column], Expression]
) -> Expression:
    """The expression with its largest known parts replaced, and every column outside of them by what `other` says."""
    if expression in known:
        return known[expression]
    if isinstance(expression, Column):
        return other(expression)
    if not isinstance(expression, Call):
        return expression
    parts = tuple(substitute(part, known, other) for part in expression.arguments)
    return Call(expression.function, parts, expression.type)
