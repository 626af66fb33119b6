"""Comparisons, logic and choices, in which NULL often has a say of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from discreet.plan.expressions.functions.record import (
    ALL,
    ORDERED,
    B,
    D,
    Function,
    N,
    Nulls,
    Rounding,
    S,
    Signature,
    T,
    Template,
    always_present,
    each,
    takes,
)
from discreet.plan.expressions.interval_arithmetic import Span, hull
from discreet.plan.model.types import Type

# ------------------------------------------------------------------------------------------------------------ in Python


def _and(arguments: Sequence[Any]) -> bool | None:
    if any(argument is False for argument in arguments):
        return False
    return None if None in arguments else True


def _or(arguments: Sequence[Any]) -> bool | None:
    if any(argument is True for argument in arguments):
        return True
    return None if None in arguments else False


def _if(arguments: Sequence[Any]) -> Any:
    condition, yes, no = arguments
    return yes if condition is True else no


def _coalesce(arguments: Sequence[Any]) -> Any:
    return next((argument for argument in arguments if argument is not None), None)


def _null_if(arguments: Sequence[Any]) -> Any:
    first, second = arguments
    return None if first is not None and first == second else first


# --------------------------------------------------------------------------------------------------------------- bounds


def _first_present(spans: Sequence[Span]) -> Span:
    """Arguments after one that is never NULL do not count."""
    sure = next((i for i, s in enumerate(spans) if not s.nullable), len(spans) - 1)
    around = hull(spans[: sure + 1])
    return Span(around.low, around.high, nullable=all(s.nullable for s in spans))


# -------------------------------------------------------------------------------------------------------------- records


def _comparison(
    name: str, symbol: str, compute: Callable[[Any, Any], Any], kinds: Sequence[Type], more: str = ""
) -> Function:
    return Function(
        name,
        f"a {symbol} b{more}",
        each(2, kinds, B),
        compute=compute,
        alike=True,
        symbol=symbol,
        sql=f"{{0}} {symbol} {{1}}",
    )


CONDITIONS = (
    _comparison("equal", "=", eq, ALL, "; TEXT by code points"),
    _comparison("not_equal", "<>", ne, ALL),
    _comparison("less", "<", lt, ORDERED, "; TEXT by code points"),
    _comparison("less_equal", "<=", le, ORDERED),
    _comparison("greater", ">", gt, ORDERED),
    _comparison("greater_equal", ">=", ge, ORDERED),
    Function(
        "and",
        "Kleene's conjunction: FALSE if one is FALSE, else NULL if one is NULL",
        takes(B, B, result=B),
        compute=_and,
        nulls=Nulls.OWN,
        present=always_present,
        advice="AND joins conditions: {filtered}.",
        sql="{0} AND {1}",
    ),
    Function(
        "or",
        "Kleene's disjunction: TRUE if one is TRUE, else NULL if one is NULL",
        takes(B, B, result=B),
        compute=_or,
        nulls=Nulls.OWN,
        present=always_present,
        advice="OR joins conditions: {filtered}.",
        sql="{0} OR {1}",
    ),
    Function(
        "not",
        "negation; NULL of NULL",
        takes(B, result=B),
        compute=lambda a: not a,
        present=always_present,
        advice="NOT takes a condition: {filtered}.",
        sql="NOT {0}",
    ),
    Function(
        "is_null",
        "whether a is NULL; never NULL",
        each(1, ALL, B),
        compute=lambda arguments: arguments[0] is None,
        nulls=Nulls.OWN,
        symbol="IS NULL",
        sql="{0} IS NULL",
    ),
    Function(
        "in",
        "whether a equals one of the others, which are literals and not NULL",
        each(2, (N, T, D, S, B), B, variadic=True),
        compute=lambda a, *members: a in members,
        alike=True,
        advice="IN takes whole numbers, texts or dates of the column's type; for other numbers use BETWEEN: "
        "{filtered}.",
        sql="{0} IN ({rest})",
    ),
    Function(
        "if",
        "b if a is TRUE, else c; NULL branches allowed",
        tuple(Signature((B, kind, kind), kind) for kind in ALL),
        compute=_if,
        nulls=Nulls.OWN,
        bounds=lambda spans: hull(spans[1:]),
        rounding=Rounding.KEPT,
        symbol="CASE",
        sql="CASE WHEN {0} THEN {1} ELSE {2} END",
    ),
    Function(
        "coalesce",
        "the first argument that is not NULL; NULL if all are",
        each(1, ALL, variadic=True),
        compute=_coalesce,
        nulls=Nulls.ALL,
        bounds=_first_present,
        rounding=Rounding.KEPT,
        alike=True,
        words=("COALESCE", "IFNULL", "NVL"),
        example="AVG(COALESCE(age, 50))",
        sql="coalesce({all})",
    ),
    Function(
        "null_if",
        "NULL if a = b, else a, also if b is NULL",
        each(2, ALL),
        compute=_null_if,
        nulls=Nulls.OWN,
        bounds=lambda spans: Span(spans[0].low, spans[0].high),
        rounding=Rounding.KEPT,
        alike=True,
        words=("NULLIF",),
        example="AVG(NULLIF(age, 0))",
        sql=Template("CASE WHEN {0} = {1} THEN NULL ELSE {0} END", repeats=(0,)),
    ),
)
