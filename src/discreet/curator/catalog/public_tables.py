"""Public tables: they are no secret, so nothing is charged for them; protected tables take group keys from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cache, partial
from typing import Any

from discreet.curator.catalog.declarations import by_column
from discreet.engines.abstract_engine import Engine
from discreet.errors import InvalidParameter, QueryFailed
from discreet.plan.analysis.group_keys import MOST_DECIMALS, from_whole, shift_decimals, whole_key
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import ColumnRef, Value
from discreet.plan.model.readings import Reading, Split, Statistic
from discreet.plan.model.relations import BaseTable, Fold, UnitAggregation
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.sql.functions.operators import FALSE

MOST_KEYS = 10**6
_MOST_ALIKE = 1 << 21
MOST_LOOKED_UP = 500
"""Rows of a public table whose columns may be told by others in an answer."""

_HINT = 'List the keys, or name a column of a public table, e.g. keys={"ward": "wards.ward"}.'

Keys = Mapping[str, Sequence[Value] | str]
"""For each column its public keys: a list, or "table.column" of a public table."""


Unique = Sequence[str | Sequence[str]]
"""Columns in which no two rows agree: one by one, or several that do so together."""


def public_schema(
    name: str, columns: Mapping[str, Type], engine: Engine | None = None, unique: Unique = ()
) -> TableSchema:
    """Returns the schema of a public table; with an engine that holds it, its numbers have the bounds they keep to now.

    Queries that join the table compute with values within these bounds. Privacy does not rest on them, since every
    argument of an aggregate is clipped. They are no list of keys, as another state of the table may have others.
    Doubles that have few decimals now may be grouped by. Rows that are people of their own are joined by columns that
    are `unique`.

    >>> public_schema("wards", {"ward": Type.TEXT}).public
    True
    """
    full = without_null(name, columns, engine)
    described = {
        column: ColumnSchema(
            name=column,
            type=kind,
            bounds=kept_to(name, column, kind, engine),
            decimals=written_with(name, column, kind, engine),
            limited=kind.is_number,
            present=column in full,
        )
        for column, kind in columns.items()
    }
    looks_up = None if engine is None else cache(partial(_combinations, engine, name, described))
    if looks_up is not None:
        for column in described:
            looks_up((), column)  # now, so that no question reads the table while it is planned
    apart = tuple((one,) if isinstance(one, str) else tuple(one) for one in unique)
    for one in apart:
        _check_unique(name, one, columns, engine)
    repeated = {} if engine is None else {**_count_repeats(name, columns, engine), **dict.fromkeys(apart, 1)}
    return TableSchema(name=name, columns=described, public=True, lookup=looks_up, repeated=repeated, unique=apart)


def _check_unique(table: str, names: tuple[str, ...], columns: Mapping[str, Type], engine: Engine | None) -> None:
    """Checks that columns are unique now; the table is public, so the result is no secret. NULL equals nothing."""
    unknown = next((name for name in names if name not in columns), None)
    if unknown is not None or not names:
        known = f"Its columns are {', '.join(columns)}."
        raise InvalidParameter("unique", unknown or "[]", f"to name columns of {table!r}", known)
    keys = tuple(ColumnRef(name, columns[name]) for name in names)
    if any(key.type is Type.FLOAT for key in keys):
        raise InvalidParameter(
            "unique", ", ".join(names), "not to be of type float", "Use whole numbers, texts or days."
        )
    asked = Reading(table=table, keys=keys, statistics=(Statistic(kind="rows"),))
    found = {} if engine is None else engine.read_public(asked)
    if any(count > 1 for key, (count, *_) in found.items() if None not in key):
        hint = "Leave it out, or remove repeated rows first."
        raise InvalidParameter("unique", ", ".join(names), f"to be unique in {table!r}", hint)


def _combinations(
    engine: Engine, table: str, columns: Mapping[str, ColumnSchema], names: tuple[str, ...], last: str
) -> list[tuple[tuple[Value, ...], Value]] | None:
    """Returns the values that columns have together in some row, doubles as they are written with few decimals.

    Returns:
        None if one has doubles of many, if there are more than `MOST_LOOKED_UP`, or if the table cannot be read.
    """
    schema = TableSchema(name=table, columns=columns)
    given = [ColumnRef(name, columns[name].type) for name in (*names, last)]
    keys = [(each, 0.0) if each.type is not Type.FLOAT else whole_key(each, schema) for each in given]
    known = [key for key in keys if key is not None]
    if len(known) < len(keys):
        return None
    try:
        asked = Reading(table=table, keys=tuple(key for key, _ in known), statistics=(Statistic(kind="rows"),))
        groups = engine.read_public(asked)
    except QueryFailed:
        return None
    if len(groups) > MOST_LOOKED_UP:
        return None
    scales = [scale for _, scale in known]
    rows = [tuple(map(_as_written, group, scales)) for group in groups]
    return [(row[:-1], row[-1]) for row in rows]


def _count_repeats(table: str, columns: Mapping[str, Type], engine: Engine) -> dict[tuple[str, ...], int]:
    """Returns how many rows there are now, and how many agree in each column at most: so often a join may repeat a row.

    NULL agrees with nothing. Texts agree here as ids do, which is more often, and doubles tell no rows apart. What
    cannot be read, or is more than a list of sizes holds, is left out.
    """
    found: dict[tuple[str, ...], int] = {}
    with suppress(QueryFailed):
        counted = engine.read_public(Reading(table=table, statistics=(Statistic(kind="rows"),)))
        found[()] = sum(count for (count,) in counted.values())
    for column in (name for name, kind in columns.items() if kind is not Type.FLOAT):
        with suppress(QueryFailed):
            sizes = _sizes(table, column, engine)
            found |= {(column,): max(sizes, default=0)} if _MOST_ALIKE not in sizes else {}
    return found


def _sizes(table: str, column: str, engine: Engine) -> tuple[int, ...]:
    """Returns how many rows share a value of a column, each number once: as if the column were a unit."""
    folded = UnitAggregation(BaseTable(table, column), (), (Fold(name="#rows", kind="count", type=Type.INT),))
    split = Split(argument=ColumnRef("#rows", Type.INT), exponent=0, low=0, high=_MOST_ALIKE)
    cells = engine.read_public(Reading(table=table, source=folded, split=split)).get((), ())
    return cells[: len(cells) // 2]


def _as_written(value: Value, scale: float) -> Value:
    """Returns a double that was read as a whole number, so many times as large; everything else as it is."""
    return value / scale if scale and isinstance(value, int) else value


_STEPS, _SHIFT = 1 << 20, 9  # a reading looks at 2^21 steps, in cells of 2^9: 11 bits of the largest value
_COARSEST, _FINEST = 43, -60  # exponents of a step: values up to 2^63, and down to nothing


def kept_to(table: str, column: str, kind: Type, engine: Engine | None) -> ColumnBounds | None:
    """Returns limits that hold every number in a column of a public table, about a thousandth wider than they must be.

    Returns:
        None without an engine, for other columns, and where nothing can be read or a value is beyond 2^63.
    """
    if engine is None or not kind.is_number:
        return None
    limits = _around(table, ColumnRef(column, kind), engine)
    if limits is None or kind is Type.FLOAT:
        return limits
    return ColumnBounds(Fraction(math.floor(limits.low)), Fraction(math.ceil(limits.high)))


def _around(table: str, column: ColumnRef, engine: Engine) -> ColumnBounds | None:
    found, exponent = None, _COARSEST
    while exponent >= _FINEST:
        try:
            cells = _cells(table, column, exponent, engine)
        except QueryFailed:
            return None
        if not cells or cells[0] == 0 or cells[-1] == 2 * _STEPS >> _SHIFT:
            return found
        first, last = (cells[0] << _SHIFT) - _STEPS - 1, (cells[-1] + 1 << _SHIFT) - _STEPS
        found = ColumnBounds(first * Fraction(2) ** exponent, last * Fraction(2) ** exponent)
        if (max(abs(first), abs(last)) << 1) >= _STEPS:
            return found
        exponent -= (_STEPS // (max(abs(first), abs(last)) + 1)).bit_length() - 1
    return found


def _cells(table: str, column: ColumnRef, exponent: int, engine: Engine) -> tuple[int, ...]:
    """Returns the cells that hold a value, in ascending order; the first and last hold everything beyond, too."""
    split = Split(argument=column, exponent=exponent, low=-_STEPS, high=_STEPS, shift=_SHIFT)
    numbers = engine.read_public(Reading(table=table, split=split)).get((), ())
    return numbers[: len(numbers) // 2]


def written_with(table: str, column: str, kind: Type, engine: Engine | None) -> int | None:
    """Returns the fewest decimals that write every double in a column of a public table; None if there are too many."""
    if engine is None or kind is not Type.FLOAT:
        return None
    value = ColumnRef(column, kind)
    for decimals in range(MOST_DECIMALS + 1):
        again = call("equal", from_whole(shift_decimals(value, decimals), 10.0**decimals), value)
        others = call("and", call("not", call("is_null", value)), call("not", call("coalesce", again, FALSE)))
        try:
            found = engine.read_public(Reading(table=table, where=others, statistics=(Statistic(kind="rows"),)))
        except QueryFailed:
            return None
        if not any(count for (count,) in found.values()):
            return decimals
    return None


def without_null(table: str, columns: Mapping[str, Type], engine: Engine | None) -> frozenset[str]:
    """Returns the columns of a public table in which every row has a value now; none without an engine."""
    if engine is None or not columns:
        return frozenset()
    nulls = tuple(Statistic(kind="nulls", argument=ColumnRef(name, kind)) for name, kind in columns.items())
    try:
        found = engine.read_public(Reading(table=table, statistics=nulls))
    except QueryFailed:
        return frozenset()
    counts = found.get((), (0,) * len(nulls))
    return frozenset(name for name, count in zip(columns, counts, strict=True) if not count)


def resolve_keys(
    keys: Keys, columns: Mapping[str, Type], public: Mapping[str, TableSchema], engine: Engine
) -> dict[str, Sequence[Value]]:
    """Returns declared keys, with every reference to a public table replaced by the values that are there now.

    Args:
        keys: as they were declared.
        columns: of the protected table, with their types.
        public: the public tables that were registered.
        engine: where they can be read.

    Raises:
        InvalidParameter: if a reference names no public column, one of another type, or too many values.
    """
    return {
        column: _resolve_reference(column, given, columns.get(column), public, engine)
        if isinstance(given, str)
        else given
        for column, given in by_column("keys", keys).items()
    }


def _resolve_reference(
    column: str, reference: str, kind: Type | None, public: Mapping[str, TableSchema], engine: Engine
) -> list[Value]:
    option = f"keys[{column!r}]"
    table, _, source = reference.rpartition(".")
    if table not in public:
        known = f" Public tables are: {', '.join(sorted(public))}." if public else ""
        raise InvalidParameter(option, reference, "to be a column of a public table", _HINT + known)
    if source not in public[table].columns:
        hint = f"Its columns are {', '.join(sorted(public[table].columns))}."
        raise InvalidParameter(option, reference, f"to be a column of {table!r}", hint)
    found = public[table].columns[source].type
    if kind is not None and found is not kind:
        hint = f"It is {found.value}. Declare the same type for both with types=..."
        raise InvalidParameter(option, reference, f"to be of type {kind.value}, like {column!r}", hint)
    return _values(option, table, ColumnRef(source, found), engine)


def _values(option: str, table: str, column: ColumnRef, engine: Engine) -> list[Value]:
    """Returns the distinct values of a public column in their order; NULL is no key."""
    if column.type is Type.FLOAT:
        raise InvalidParameter(option, f"{table}.{column.name}", "not to be of type float", "Group by bands instead.")
    try:
        groups = engine.read_public(Reading(table=table, keys=(column,), statistics=(Statistic(kind="rows"),)))
    except QueryFailed:
        hint = "Check its file. Nothing was charged."
        raise InvalidParameter(option, f"{table}.{column.name}", "to be readable", hint) from None
    values: list[Any] = [value for (value,) in groups if value is not None]
    if not 0 < len(values) <= MOST_KEYS:
        raise InvalidParameter(option, f"{len(values)} values", f"to be 1 to {MOST_KEYS} values", "Use another column.")
    return sorted(values)
