"""What a steward declares about a table, checked and made canonical: the only source of bounds, keys and limits."""

from __future__ import annotations

import datetime as dt
import json
import numbers
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.errors import InvalidParameter
from discreet.plan.nodes import Value
from discreet.plan.schema import Bounds, ColumnSchema, Limits, TableSchema
from discreet.plan.types import Type
from discreet.privacy import Neighbours

_KINDS: dict[Type, tuple[type, ...]] = {
    Type.INT: (numbers.Integral,),
    Type.BOOL: (bool,),
    Type.TEXT: (str,),
    Type.DATE: (dt.date,),
    Type.TIMESTAMP: (dt.datetime,),
}


def declare(
    name: str,
    columns: Mapping[str, Type],
    *,
    unit: str | None,
    bounds: Mapping[str, tuple[check.Number, check.Number]],
    keys: Mapping[str, Sequence[Value]],
    limits: Limits,
    neighbours: Neighbours,
    version: str,
) -> TableSchema:
    """The schema of a protected table.

    Raises:
        InvalidParameter: if a declaration names no column, or does not fit its type.
    """
    for option, names in (("bounds", bounds), ("keys", keys)):
        for column in names:
            if column not in columns:
                raise InvalidParameter(option, column, f"to name a column of {name!r}", _known(columns))
    described = {
        column: ColumnSchema(
            name=column,
            type=kind,
            bounds=_bounds(column, kind, bounds[column]) if column in bounds else None,
            keys=_keys(column, kind, keys[column]) if column in keys else None,
        )
        for column, kind in columns.items()
    }
    if unit is not None and unit not in columns:
        raise InvalidParameter("unit", unit, f"to name a column of {name!r}", _known(columns))
    return TableSchema(name=name, columns=described, unit=unit, limits=limits, neighbours=neighbours, version=version)


def _known(columns: Mapping[str, Type]) -> str:
    return f"Its columns are {', '.join(sorted(columns))}."


def _bounds(column: str, kind: Type, pair: tuple[check.Number, check.Number]) -> Bounds:
    if not kind.is_number:
        raise InvalidParameter(f"bounds[{column!r}]", kind.value, "to be of a column of numbers", "Leave it out.")
    ends = tuple(pair)
    if len(ends) != 2:
        raise InvalidParameter(f"bounds[{column!r}]", pair, "to be a pair (low, high)", "Pass e.g. (0, 120).")
    low, high = (check.rational(bounds=end) for end in ends)
    return Bounds(low, high)


def _keys(column: str, kind: Type, values: Sequence[Value]) -> tuple[Value, ...]:
    if kind is Type.FLOAT:
        raise InvalidParameter(f"keys[{column!r}]", "float", "to be of another type", "Group by bands instead.")
    listed = tuple(values)
    wrong = [value for value in listed if not _is(kind, value)]
    if not listed or wrong:
        shown = wrong[0] if wrong else "no keys"
        raise InvalidParameter(f"keys[{column!r}]", shown, f"to be of type {kind.value}", "List every public key.")
    if len(set(listed)) != len(listed):
        raise InvalidParameter(f"keys[{column!r}]", "repeated keys", "to be different", "List each key once.")
    return listed


def _is(kind: Type, value: Value) -> bool:
    if isinstance(value, bool) and kind is not Type.BOOL:
        return False
    if isinstance(value, dt.datetime) and kind is Type.DATE:
        return False
    return isinstance(value, _KINDS[kind])


def declaration(schema: TableSchema) -> str:
    """Everything declared but the version, as canonical JSON: what the book compares when it is declared again."""
    columns = {
        column.name: {
            "type": column.type.value,
            "bounds": None if column.bounds is None else [str(column.bounds.low), str(column.bounds.high)],
            "keys": None if column.keys is None else [_text(value) for value in column.keys],
        }
        for column in schema.columns.values()
    }
    fields: dict[str, Any] = {
        "columns": columns,
        "limits": [schema.limits.groups, schema.limits.rows],
        "name": schema.name,
        "unit": schema.unit,
    }
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _text(value: Value) -> str | int | bool | None:
    return (
        value.isoformat() if isinstance(value, dt.date) else str(Fraction(value)) if isinstance(value, float) else value
    )
