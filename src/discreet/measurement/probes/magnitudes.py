"""The sizes of numbers by powers of two: public buckets, and the range of those that are not empty.

A positive number is in the bucket of the smallest power of two that is at least as large, a negative one in the bucket
of its opposite; zero has its own, and NULL is in none. What lies beyond the last bucket counts as in it. Days and
moments are in the buckets of their years.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from discreet.plan.expressions.calls import call
from discreet.plan.expressions.functions.date_functions import day_number
from discreet.plan.model.nodes import Expression, FunctionCall, Literal, Value
from discreet.plan.model.schema import ColumnBounds, TableSchema
from discreet.plan.model.types import Type

POWERS = {Type.INT: (0, 48), Type.FLOAT: (-20, 40)}
"""The powers of two that end the first and the last positive bucket."""

YEARS = range(1800, 2201)
"""The years that have a bucket."""


def fallback(kind: Type) -> ColumnBounds:
    """Returns the range that is taken where no bucket is certainly in use.

    >>> fallback(Type.INT), fallback(Type.DATE) == range_of(Type.DATE, range(1970, 2070).__contains__)
    (ColumnBounds(low=Fraction(-1, 1), high=Fraction(1, 1)), True)
    """
    return _of_years(kind, 1970, 2069) if kind.is_time else ColumnBounds(Fraction(-1), Fraction(1))


def buckets(kind: Type) -> range:
    """Returns the numbers of all buckets, from the most negative to the most positive; zero is that of zero.

    >>> buckets(Type.INT)
    range(-49, 50)
    """
    if kind.is_time:
        return YEARS
    first, last = POWERS[kind]
    most = last - first + 1
    return range(-most, most + 1)


def edge(kind: Type, bucket: int) -> Fraction:
    """Returns the end of a bucket that is farther from zero.

    >>> edge(Type.INT, 8), edge(Type.INT, -1), edge(Type.FLOAT, 1)
    (Fraction(128, 1), Fraction(-1, 1), Fraction(1, 1048576))
    """
    if bucket < 0:
        return -edge(kind, -bucket)
    first, _ = POWERS[kind]
    power = first + bucket - 1
    return Fraction(0) if not bucket else Fraction(1 << power) if power >= 0 else Fraction(1, 1 << -power)


@lru_cache(maxsize=256)  # hundreds of comparisons, the same for every question about a column
def bucket_of(x: Expression) -> Expression:
    """Returns the number of the bucket of an expression's value; NULL for NULL."""
    numbered = buckets(x.type)
    found = _held_year(x) if x.type.is_time else _between(x, numbered[0], numbered[-1])
    return _if(FunctionCall("is_null", (x,), Type.BOOL), Literal(None, Type.INT), found)


def widest(kind: Type) -> ColumnBounds:
    """Returns the range of all buckets."""
    numbered = buckets(kind)
    if kind.is_time:
        return _of_years(kind, numbered[0], numbered[-1])
    return ColumnBounds(edge(kind, numbered[0]), edge(kind, numbered[-1]))


def choosable(schema: TableSchema) -> dict[str, ColumnBounds]:
    """Returns the columns of a protected table whose bounds may be chosen privately, and the widest there are for each.

    Ids are no quantities.
    """
    if schema.public:
        return {}
    return {
        column.name: widest(column.type)
        for column in schema.columns.values()
        if (column.type.is_number or column.type.is_time) and column.bounds is None and column.name not in schema.ids
    }


def supposing(schema: TableSchema) -> TableSchema:
    """Returns a table as if the widest bounds were declared wherever none are, marked as limits of ours."""
    found = choosable(schema)
    columns = {
        name: replace(c, bounds=found[name], limited=True) if name in found else c for name, c in schema.columns.items()
    }
    return replace(schema, columns=columns)


def range_of(kind: Type, used: Callable[[int], bool]) -> ColumnBounds | None:
    """Returns the smallest range that holds every bucket in use; None if there is none.

    >>> range_of(Type.INT, {5, 7}.__contains__)
    ColumnBounds(low=Fraction(8, 1), high=Fraction(64, 1))
    """
    found = [bucket for bucket in buckets(kind) if used(bucket)]
    if not found:
        return None
    if kind.is_time:
        return _of_years(kind, found[0], found[-1])
    low, high = _near(kind, found[0], -1), _near(kind, found[-1], 1)
    return ColumnBounds(low, high) if low < high else ColumnBounds(low, edge(kind, 1))  # all of them are zero


def _of_years(kind: Type, first: int, last: int) -> ColumnBounds:
    """Returns bounds from the first day of a year to the last day of another, or to its end."""
    end = day_number(dt.date(last, 12, 31))
    return ColumnBounds(day_number(dt.date(first, 1, 1)), end if kind is Type.DATE else end + 1)


def _held_year(x: Expression) -> Expression:
    """Returns the year, or the first or last that has a bucket."""
    first, last = (Literal(year, Type.INT) for year in (YEARS[0], YEARS[-1]))
    return call("least", call("greatest", call("year", x), first), last)


def _near(kind: Type, bucket: int, side: int) -> Fraction:
    """Returns the end of a bucket on one side, -1 for the lower."""
    return edge(kind, bucket) if bucket * side >= 0 else edge(kind, bucket + side)


def _between(x: Expression, low: int, high: int) -> Expression:
    """Halves the buckets until one is left: as few comparisons as possible."""
    if low == high:
        return Literal(low, Type.INT)
    middle = (low + high) // 2
    return _if(_at_most(x, middle), _between(x, low, middle), _between(x, middle + 1, high))


def _at_most(x: Expression, bucket: int) -> Expression:
    """Returns whether a value is in this bucket or one below: a bucket holds the end that is farther from zero."""
    if bucket >= 0:
        return FunctionCall("less_equal", (x, _literal(x.type, edge(x.type, bucket))), Type.BOOL)
    return FunctionCall("less", (x, _literal(x.type, edge(x.type, bucket + 1))), Type.BOOL)


def _if(condition: Expression, yes: Expression, no: Expression) -> Expression:
    return FunctionCall("if", (condition, yes, no), Type.INT)


def _literal(kind: Type, value: Fraction) -> Literal:
    exact: Value = int(value) if kind is Type.INT else float(value)
    return Literal(exact, kind)
