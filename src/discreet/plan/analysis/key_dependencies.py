"""What the keys of a group decide: expressions that have one value in it, written in terms of the keys.

A weekday's number decides its name, a month its quarter, the first day of a month its year; and a column of a public
table may decide others. Nothing private rests on it: what is written here is computed from released keys alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence

from discreet.plan.analysis.relation_schema import Schemas, public_origin
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal, Relation, Value, columns
from discreet.plan.model.types import Type

MOST_VALUES = 500
"""Of a key, that others are looked up by."""

Decide = Callable[[ColumnRef, Sequence[ColumnRef]], Expression | None]
"""Writes a column in terms of others, where a public table says how; None where it does not."""

_LONGER: Mapping[str, tuple[str, ...]] = {
    "day": ("day", "week", "month", "quarter", "year"),
    "week": ("week",),
    "month": ("month", "quarter", "year"),
    "quarter": ("quarter", "year"),
    "year": ("year",),
}
"""For a period, those that hold all of it, itself among them: a week may lie in two months."""

_YEAR = [dt.date(2024, month, 1) for month in range(1, 13)]
_WEEK = [dt.date(2024, 1, day) for day in range(1, 8)]  # from a Monday on
_CYCLES: Mapping[str, Sequence[dt.date]] = {"year": _YEAR, "week": _WEEK}
"""A day of each month of the year, and of each day of the week."""


def express_by_keys(expression: Expression, keys: Sequence[Expression], public: Decide) -> Expression | None:
    """Writes an expression in terms of keys; None if they do not decide it.

    Args:
        expression: over columns of a row.
        keys: expressions with one value in every group.
        public: what public tables say.

    >>> day = ColumnRef("day", Type.DATE)
    >>> weekday, name = FunctionCall("day_of_week", (day,), Type.INT), FunctionCall("day_name", (day,), Type.TEXT)
    >>> found = express_by_keys(name, [weekday], lambda *_: None)
    >>> [evaluate(found, {"day": dt.date(2026, 1, monday)}) for monday in (5, 12)]
    ['Monday', 'Monday']
    """
    if expression in keys or isinstance(expression, Literal):
        return expression
    if isinstance(expression, ColumnRef):
        others = [key for key in keys if isinstance(key, ColumnRef)]
        return public(expression, others)
    if not isinstance(expression, FunctionCall):
        return None
    parts = [express_by_keys(part, keys, public) for part in expression.arguments]
    known = [part for part in parts if part is not None]
    if len(known) == len(parts):
        return FunctionCall(expression.function, tuple(known), expression.type)
    return _of_a_day(expression, keys) or _of_a_cycle(expression, keys)


def _of_a_day(expression: FunctionCall, keys: Iterable[Expression]) -> Expression | None:
    """Returns a function of a day as one of what a key is of the same day: the key is a day of the same period."""
    within = FUNCTIONS[expression.function].calendar.within
    for key in keys:
        same = isinstance(key, FunctionCall) and key.arguments == expression.arguments and key.type is Type.DATE
        if (
            same
            and isinstance(key, FunctionCall)
            and within in _LONGER.get(FUNCTIONS[key.function].calendar.within or "", ())
        ):
            return call(expression.function, key)
    return None


def _of_a_cycle(expression: FunctionCall, keys: Iterable[Expression]) -> Expression | None:
    """Returns a function of a month of the year, or of a day of the week, looked up by a key that says which."""
    cycle = FUNCTIONS[expression.function].calendar.cycle
    if cycle is None:
        return None
    (day,) = expression.arguments
    for key in keys:
        if _tells(key, day, cycle):
            pairs = [(_of(key, day, each), _of(expression, day, each)) for each in _CYCLES[cycle]]
            if (found := looked_up(key, pairs, expression.type)) is not None:
                return found
    return None


def _tells(key: Expression, day: Expression, cycle: str) -> bool:
    """Returns whether a key reads a day through functions of a cycle alone."""
    if isinstance(key, FunctionCall) and FUNCTIONS[key.function].calendar.cycle == cycle and key.arguments == (day,):
        return True
    parts = key.arguments if isinstance(key, FunctionCall) else ()
    return bool(parts) and all(isinstance(part, Literal) or _tells(part, day, cycle) for part in parts)


def _of(expression: Expression, day: Expression, value: dt.date) -> Value:
    """Returns an expression of a day, for one day."""
    column = ColumnRef("#day", Type.DATE)
    found: Value = evaluate(_read(expression, day, column), {column.name: value})
    return found


def _read(expression: Expression, day: Expression, column: ColumnRef) -> Expression:
    if not isinstance(expression, FunctionCall) or not any(True for _ in columns(expression)):
        return expression
    if expression.arguments == (day,):
        return FunctionCall(expression.function, (column,), expression.type)
    return FunctionCall(
        expression.function, tuple(_read(part, day, column) for part in expression.arguments), expression.type
    )


def looked_up(key: Expression, pairs: Iterable[tuple[Value, Value]], kind: Type) -> Expression | None:
    """Writes what a key is paired with, NULL where with nothing; None if with several things, or if keys are many."""
    table: dict[Value, Value] = {}
    for value, result in pairs:
        if table.setdefault(value, result) != result or len(table) > MOST_VALUES:
            return None
    listed = sorted((value, result) for value, result in table.items() if value is not None)
    found = _build_search(key, listed, kind)
    if None not in table:
        return found
    return call("if", call("is_null", key), Literal(table[None], kind), found)


def _build_search(key: Expression, table: Sequence[tuple[Value, Value]], kind: Type) -> Expression:
    """Halves the list until one is left."""
    if not table:
        return Literal(None, kind)
    if len(table) == 1:
        ((value, result),) = table
        same = call("equal", key, Literal(value, key.type))
        return call("if", same, Literal(result, kind), Literal(None, kind))
    middle = len(table) // 2
    before = call("not", key) if key.type is Type.BOOL else call("less", key, Literal(table[middle][0], key.type))
    return call("if", before, _build_search(key, table[:middle], kind), _build_search(key, table[middle:], kind))


def told_by_public(
    relation: Relation | None, column: ColumnRef, others: Sequence[ColumnRef], *, schemas: Schemas
) -> Expression | None:
    """Writes a column of a public table in terms of another in the same row; None if none decides it.

    Args:
        relation: the rows that have these columns.
        column: what is to be written.
        others: in whose terms.
        schemas: the declared tables by name.
    """
    origin = None if relation is None else public_origin(relation, column.name, schemas)
    look_up = None if origin is None else schemas[origin[1]].lookup
    if relation is None or origin is None or look_up is None:
        return None
    for other in others:
        beside = public_origin(relation, other.name, schemas)
        rows = look_up((beside[2],), origin[2]) if beside is not None and beside[:2] == origin[:2] else None
        found = None if rows is None else looked_up(other, [(key, value) for (key,), value in rows], column.type)
        if found is not None:
            return found
    return None
