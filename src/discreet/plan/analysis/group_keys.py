"""Group keys: all values that an expression can have, where public facts tell them, and doubles that make groups.

Privacy never rests on a list being complete: it is a function of public facts, and rows whose key is not in it are
dropped before contributions are bounded. It rests on nothing else than that: no list ever comes from data.

Doubles that are computed differ in their last digits where people mean the same value, so they make no groups. What is
rounded does, and so does a column of a public table whose values have few decimals: rows are grouped by the whole
number, and the key is shown as it was written. The number is a function of the row alone, whatever the column holds.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

from discreet.plan.analysis.value_bounds import bounds, is_whole
from discreet.plan.analysis.value_sets import ValueSet, possible
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import FUNCTIONS, LAST_DAY
from discreet.plan.expressions.interval_arithmetic import Span
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal, Value, columns, parts_of
from discreet.plan.model.schema import MANY, ColumnSchema, IdentityKey, TableSchema
from discreet.plan.model.types import Type

MOST_VALUES = 500
"""The length of an undeclared list; longer ones would be zeros for the most part, and such keys stay private."""

MOST_TRIED = 10_000
"""Of combinations of what columns hold that an expression is computed for: all days of 27 years are."""

Values = tuple[Value, ...]


def values(expression: Expression, schema: TableSchema) -> Values | None:
    """Returns every value of an expression over rows that keep to their declarations, NULL last.

    A column's declared keys are all its values, and NULL is none of them. Otherwise a truth value is FALSE, TRUE or
    NULL, a whole number or a day within declared bounds is one of those or NULL, and what is computed from columns, or
    from what is computed from them, is whatever comes out for some combination of values.

    Returns:
        None if there are more than `MOST_VALUES`, or no end of them is known; declared keys may be more.

    >>> from discreet.plan.model.schema import ColumnSchema
    >>> day = ColumnRef("day", Type.DATE)
    >>> visits = TableSchema(name="visits", columns={"day": ColumnSchema(name="day", type=Type.DATE)})
    >>> values(FunctionCall("quarter", (day,), Type.INT), visits)
    (1, 2, 3, 4, None)
    """
    declared = _declared_keys(expression, schema)
    if declared is not None:
        return declared
    read = frozenset(schema.columns[column.name] for column in columns(expression) if column.name in schema.columns)
    few = all(known.keys is None or len(known.keys) <= MOST_TRIED for known in read)
    found = (_list_values if few else _list_values.__wrapped__)(expression, read)
    if found is None or len(found) > MOST_VALUES:
        return _list_case_values(expression)
    return _order_values(found, expression.type)


@lru_cache(maxsize=256)  # a question is planned several times
def _list_values(expression: Expression, read: frozenset[ColumnSchema]) -> Values | None:
    """Returns what an expression of declared columns may be, given that columns with values have one."""
    schema = TableSchema(name="", columns={known.name: known for known in read})
    found = _values(expression, schema)
    if found is None:
        return None
    facts = possible(expression, _sets(schema, bounded=False))
    null = possible(expression, _sets(schema, bounded=True)).nullable
    return tuple(value for value in found if (null if value is None else facts.holds(value)))


def _sets(schema: TableSchema, *, bounded: bool) -> dict[str, ValueSet]:
    """Describes columns with a value in every row: that they have one, and where rows within bounds lie.

    Groups of values beyond the bounds stay, so that bands without an end catch them.
    """
    found = {}
    for name, known in schema.columns.items():
        everything = ValueSet.any_of(known.type)
        held = known.bounds if bounded and not known.limited else None
        span = everything.span if held is None else Span(held.low, held.high)
        if known.has_values if bounded else known.present:
            found[name] = replace(everything, span=span, nullable=False)
    return found


def is_declared(expression: Expression, schema: TableSchema) -> bool:
    """Returns whether the values of an expression are written out: a column's keys, or a list in the question."""
    return _declared_keys(expression, schema) is not None or _list_case_values(expression) is not None


def rest_of(expression: Expression) -> Literal | None:
    """Returns the ELSE of CASE WHEN x IN (...) THEN x ELSE 'other' END, as a key; None of all other expressions."""
    if not isinstance(expression, FunctionCall) or expression.function != "if":
        return None
    condition, x, rest = expression.arguments
    if not isinstance(condition, FunctionCall) or condition.function != "in" or condition.arguments[0] != x:
        return None
    is_written = all(isinstance(part, Literal) for part in (*condition.arguments[1:], rest))
    return rest if is_written and isinstance(rest, Literal) else None


def _list_case_values(expression: Expression) -> Values | None:
    """Returns the list of CASE WHEN x IN (...) THEN x ELSE 'other' END, and what all other rows are."""
    rest = rest_of(expression)
    if (
        rest is None
        or not isinstance(expression, FunctionCall)
        or not isinstance(expression.arguments[0], FunctionCall)
    ):
        return None
    listed = [part.value for part in expression.arguments[0].arguments[1:] if isinstance(part, Literal)]
    return tuple(dict.fromkeys([*(value for value in listed if value is not None), rest.value]))


def _declared_keys(expression: Expression, schema: TableSchema) -> Values | None:
    known = schema.columns.get(expression.name) if isinstance(expression, ColumnRef) else None
    return None if known is None else known.keys


def _values(expression: Expression, schema: TableSchema) -> Values | None:
    """Asks the shape before the bounds: bands without an end catch values beyond the bounds."""
    found = _try_combinations(expression, schema, bounded=False)
    if found is None and isinstance(expression, FunctionCall):
        found = _list_branch_values(expression, schema)
    if found is None:
        found = _try_combinations(expression, schema, bounded=True)
    if found is None and isinstance(expression, FunctionCall) and FUNCTIONS[expression.function].values:
        found = (*FUNCTIONS[expression.function].values, None)
    if found is None and isinstance(expression, FunctionCall) and expression.function not in ("if", "coalesce"):
        found = _combine_argument_values(expression, schema)
    return _between(expression, schema) if found is None else found


def _list_branch_values(expression: FunctionCall, schema: TableSchema) -> Values | None:
    if expression.function == "if":
        return _together(_values(part, schema) for part in expression.arguments[1:])
    if expression.function == "coalesce":
        return _first_present(expression, schema)
    if expression.type is Type.BOOL:
        return (False, True) if expression.function == "is_null" else (False, True, None)
    return None


def _combine_argument_values(expression: FunctionCall, schema: TableSchema) -> Values | None:
    """Returns the values for all combinations of the arguments' values, whether or not a row can have them together."""
    lists = [(part.value,) if isinstance(part, Literal) else _values(part, schema) for part in expression.arguments]
    known = [values for values in lists if values is not None]
    if len(known) < len(lists) or math.prod(map(len, known)) > MOST_VALUES:
        return None
    names = [ColumnRef(f"#{i}", part.type) for i, part in enumerate(expression.arguments)]
    applied = FunctionCall(expression.function, tuple(names), expression.type)
    return tuple(dict.fromkeys(_results(applied, names, known)))


def _try_combinations(expression: Expression, schema: TableSchema, *, bounded: bool) -> Values | None:
    """Returns the values for all combinations of the columns' values, if those are few.

    A column with declared keys may be NULL as well. What only comes of that counts, unless it is NULL itself: such rows
    are left out under the column's own name, too.
    """
    names = list(dict.fromkeys(columns(expression)))
    lists = [_of_column(column, expression, schema, bounded=bounded) for column in names]
    known = [values for values in lists if values is not None]
    if len(known) < len(lists) or math.prod(len(values) + 1 for values in known) > MOST_TRIED:
        return None
    usual = list(_results(expression, names, known))
    pairs = zip(names, known, strict=True)
    wider = [values if _is_present(column, schema) else (*values, None) for column, values in pairs]
    more = _results(expression, names, [tuple(dict.fromkeys(values)) for values in wider])
    return tuple(dict.fromkeys([*usual, *(value for value in more if value is not None)]))


def _results(expression: Expression, names: Sequence[ColumnRef], lists: Iterable[Values]) -> Iterator[Value]:
    for combination in product(*lists):
        yield evaluate(expression, {column.name: value for column, value in zip(names, combination, strict=True)})


def _of_column(column: ColumnRef, expression: Expression, schema: TableSchema, *, bounded: bool) -> Values | None:
    declared = _declared_keys(column, schema)
    if declared is not None:
        return declared
    missing = () if _is_present(column, schema) else (None,)
    if column.type is Type.BOOL:
        return (False, True, *missing)
    if not bounded:
        return None
    held = _moments(column, expression, schema) if column.type is Type.TIMESTAMP else _between(column, schema)
    return None if held is None else (*(value for value in held if value is not None), *missing)


def _is_present(column: ColumnRef, schema: TableSchema) -> bool:
    known = schema.columns.get(column.name)
    return known is not None and known.present


def _moments(column: ColumnRef, expression: Expression, schema: TableSchema) -> Values | None:
    """Returns a moment of each day within bounds, or of each hour, if an expression says no more of a moment."""
    around = [part for part in parts_of(expression) if isinstance(part, FunctionCall) and column in part.arguments]
    told = {FUNCTIONS[part.function].calendar.within for part in around}
    if told & {None, "minute"} or column == expression:
        return None
    days = _between(FunctionCall("to_date", (column,), Type.DATE), schema)
    if days is None:
        return None
    hours = range(24) if "hour" in told else (0,)
    found = [dt.datetime.combine(day, dt.time(hour)) for day in days if isinstance(day, dt.date) for hour in hours]
    return tuple(found)


def _between(expression: Expression, schema: TableSchema) -> Values | None:
    """Returns what lies within bounds, and NULL; bounds that only limit contributions do not count."""
    if not (is_whole(expression) or expression.type is Type.DATE):
        return None
    limited = any(_is_limited(column, schema) for column in columns(expression))
    limits = None if limited else bounds(expression, schema, floored=False)
    if limits is None or limits.width > (_MOST_DAYS if expression.type is Type.DATE else MOST_TRIED):
        return None
    whole = range(math.ceil(limits.low), math.floor(limits.high) + 1)
    if expression.type is Type.DATE:
        return (*_days(expression, whole), None)
    return (*(map(float, whole) if expression.type is Type.FLOAT else whole), None)


_MOST_DAYS = 366 * MOST_VALUES


def _days(expression: Expression, whole: range) -> list[dt.date]:
    """Returns the days with these numbers that can begin or end a month, say, if that is what is asked for.

    Such a day is its own: the first day of the month of a first day is that day.
    """
    days = map(dt.date.fromordinal, range(max(whole.start, 1), min(whole.stop, LAST_DAY + 1)))
    record = FUNCTIONS[expression.function] if isinstance(expression, FunctionCall) else None
    own = None if record is None or record.calendar.within is None else record.compute
    return [day for day in days if own is None or own(day) == day]


def _is_limited(column: ColumnRef, schema: TableSchema) -> bool:
    known = schema.columns.get(column.name)
    return known is None or known.limited


def _together(parts: Iterable[Values | None]) -> Values | None:
    found: dict[Value, None] = {}
    for part in parts:
        if part is None:
            return None
        found |= dict.fromkeys(part)
    return tuple(found)


def _first_present(expression: FunctionCall, schema: TableSchema) -> Values | None:
    """Allows NULL only if every argument may be NULL."""
    parts = [_values(part, schema) for part in expression.arguments]
    found = _together(parts)
    if found is None or all(part is None or None in part for part in parts):
        return found
    return tuple(value for value in found if value is not None)


def combinations(lists: Sequence[Values]) -> tuple[Values, ...]:
    """Returns all combinations of values, one of each list; many of them are made once for the same lists.

    >>> combinations([("a", "b"), (1, 2)])
    (('a', 1), ('a', 2), ('b', 1), ('b', 2))
    """
    if math.prod(map(len, lists)) <= MANY:
        return tuple(product(*lists))
    return _many_combinations(tuple(map(IdentityKey, lists)))


@lru_cache(maxsize=4)  # each may be as long as the groups of a question
def _many_combinations(lists: tuple[IdentityKey[Values], ...]) -> tuple[Values, ...]:
    parts = [each.value for each in lists]
    return tuple(zip(*parts, strict=True) if len(parts) == 1 else product(*parts))


def in_order(keys: Iterable[Values]) -> list[Values]:
    """Returns unlisted groups by their keys: numbers by size, days by time, texts by code points, NULL last.

    >>> in_order([("b", 10), (None, 1), ("b", 2), ("B", None)])
    [('B', None), ('b', 2), ('b', 10), (None, 1)]
    """
    return sorted(keys, key=lambda key: [(value is None, value) for value in key])


def _order_values(found: Values, kind: Type) -> Values:
    """Returns numbers by size, other values in the order in which they were written; NULL last."""
    present = [value for value in found if value is not None]
    if kind is Type.INT or kind is Type.DATE:
        present.sort()
    return (*present, None) if None in found else tuple(present)


MOST_DECIMALS = 6
_ROUNDED = ("round", "floor", "ceil")
_LARGEST_DIVISOR = 10.0**9


def whole_key(expression: Expression, schema: TableSchema) -> tuple[Expression, float] | None:
    """Returns a key of doubles as whole numbers, and what these are divided by to get the double back.

    >>> two = Literal(2.0, Type.FLOAT)
    >>> whole = FunctionCall("round", (call("multiply", ColumnRef("x", Type.FLOAT), two),), Type.FLOAT)
    >>> whole_key(call("divide", whole, two), TableSchema(name="t"))[1]
    2.0
    """
    if expression.type is not Type.FLOAT:
        return None
    if is_whole(expression):
        return call("to_int", expression), 1.0
    rounded = _match_rounding(expression)
    if rounded is not None:
        return rounded
    known = schema.columns.get(expression.name) if isinstance(expression, ColumnRef) else None
    return (
        None
        if known is None or known.decimals is None
        else (shift_decimals(expression, known.decimals), 10.0**known.decimals)
    )


def _match_rounding(expression: Expression) -> tuple[Expression, float] | None:
    """Matches ROUND(x * c) / c as whole numbers, which is what ROUND(x, 2) means; and FLOOR and CEIL likewise."""
    if not isinstance(expression, FunctionCall) or expression.function != "divide":
        return None
    rounded, divisor = expression.arguments
    scale = divisor.value if isinstance(divisor, Literal) else None
    if not isinstance(rounded, FunctionCall) or rounded.function not in _ROUNDED or not isinstance(scale, float):
        return None
    (grown,) = rounded.arguments
    alike = isinstance(grown, FunctionCall) and grown.function == "multiply" and divisor in grown.arguments
    return (call("to_int", rounded), scale) if alike and 1 <= scale <= _LARGEST_DIVISOR else None


def shift_decimals(value: Expression, decimals: int) -> Expression:
    """Returns the whole number nearest to a double, after so many decimals."""
    moved = value if decimals == 0 else call("multiply", value, Literal(10.0**decimals, Type.FLOAT))
    return call("to_int", call("round", moved))


def from_whole(key: Expression, scale: float) -> Expression:
    """Returns the double that a whole number encodes."""
    double = call("to_float", key)
    return double if scale == 1 else call("divide", double, Literal(scale, Type.FLOAT))
