"""The names of an answer's columns: those the author gave, or readable ones made from what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import singledispatch

from discreet.plan.model.nodes import Aggregate, Call, Column, Expression

_PREFIXES = {
    "count": "count",
    "count_values": "count",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "var_samp": "variance",
    "stddev_samp": "stddev",
}
_SHORT = {
    "coalesce": "",
    "to_int": "",
    "to_float": "",
    "to_text": "",
    "to_date": "date",
    "absolute": "abs",
    "day_of_week": "isodow",
}
_OPERATORS = {"add", "subtract", "multiply", "divide", "integer_divide", "modulo", "negate", "if"}


def readable(expression: Expression, aggregates: Mapping[str, Aggregate]) -> str:
    """A name for a column of the answer that the author did not name.

    >>> from discreet.plan.model.types import Type
    >>> charge = Column("charge", Type.FLOAT)
    >>> made = {"#1": Aggregate(name="#1", kind="mean", argument=charge)}
    >>> readable(Column("#1", Type.FLOAT), made)
    'avg_charge'
    """
    return _name(expression, aggregates) or "value"


@singledispatch
def _name(expression: Expression, aggregates: Mapping[str, Aggregate]) -> str:
    del expression, aggregates
    return ""


@_name.register
def _(expression: Column, aggregates: Mapping[str, Aggregate]) -> str:
    if expression.name.startswith("#grouping"):
        return "grouping"
    made = aggregates.get(expression.name)
    if made is None:
        return "" if expression.name.startswith("#") else expression.name
    about = [part for part in (made.argument, made.other) if part is not None]
    return _joined(_prefix(made), *(_name(part, aggregates) for part in about))


@_name.register
def _(expression: Call, aggregates: Mapping[str, Aggregate]) -> str:
    if expression.function in _OPERATORS:
        return ""
    own = _SHORT.get(expression.function, expression.function)
    return _joined(own, _name(expression.arguments[0], aggregates))


def _prefix(made: Aggregate) -> str:
    if made.quantile is None:
        return _PREFIXES.get(made.kind, made.kind)
    return "median" if made.quantile == Fraction(1, 2) else f"p{percent(made.quantile)}"


def percent(share: Fraction) -> str:
    """A share in per cent, as a part of a name.

    >>> percent(Fraction(1, 4)), percent(Fraction("0.999"))
    ('25', '99_9')
    """
    return f"{float(100 * share):g}".replace(".", "_")


def _joined(*parts: str) -> str:
    return "_".join(part for part in parts if part)


def distinct(name: str, taken: Iterable[str]) -> str:
    """The name, with a number if another column has it.

    >>> distinct("count", ["count", "Count_2"])
    'count_3'
    """
    used = {other.casefold() for other in taken}
    candidates = [name, *(f"{name}_{i}" for i in range(2, len(used) + 3))]
    return next(candidate for candidate in candidates if candidate.casefold() not in used)
