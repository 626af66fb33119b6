"""DuckDB's types as ours: one expression for each, total for every value that the type can store.

Where a format stores more than a type of ours holds, the rest is NULL: moments and days outside the years 1 to 9999 or
infinite, whole numbers beyond 64 bits, decimals with more digits than they declare, texts that are not UTF-8. Columns
of types that are not listed here cannot be declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.engines.sql.expressions import quoted
from discreet.plan.model.types import Type

_MOMENT = "CASE WHEN {0} BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN {0} END"
_DAY = "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {0} END"
# A moment with a zone is read in UTC. Microseconds are compared first: the moment of others does not exist.
_ZONED = (
    "CASE WHEN epoch_us({0}) BETWEEN -62135596800000000 AND 253402300799999999 THEN make_timestamp(epoch_us({0})) END"
)
_EXACT_DIGITS, _EXACT_POWER = 15, 22  # so many digits, and ten to this power, are doubles; quotients are rounded once

STORED: Mapping[str, tuple[Type, str]] = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"), (Type.INT, "CAST({0} AS BIGINT)")
    ),
    "BIGINT": (Type.INT, "{0}"),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), (Type.INT, "TRY_CAST({0} AS BIGINT)")),
    "FLOAT": (Type.FLOAT, "CAST({0} AS DOUBLE)"),
    "DOUBLE": (Type.FLOAT, "{0}"),
    "BOOLEAN": (Type.BOOL, "{0}"),
    "VARCHAR": (Type.TEXT, "{0}"),
    "UUID": (Type.TEXT, "CAST({0} AS VARCHAR)"),
    "DATE": (Type.DATE, _DAY),
    "TIMESTAMP": (Type.TIMESTAMP, _MOMENT),
    **dict.fromkeys(
        ("TIMESTAMP_S", "TIMESTAMP_MS"), (Type.TIMESTAMP, _MOMENT.replace("{0}", "TRY_CAST({0} AS TIMESTAMP)"))
    ),
    # All that are finite are within our years; DuckDB's statistics take the infinite ones for finite.
    "TIMESTAMP_NS": (Type.TIMESTAMP, "CASE WHEN isfinite({0}) THEN CAST({0} AS TIMESTAMP) END"),
    "TIMESTAMP WITH TIME ZONE": (Type.TIMESTAMP, _ZONED),
    "TIMESTAMPTZ_NS": (Type.TIMESTAMP, _ZONED.replace("{0}", "CAST({0} AS TIMESTAMPTZ)")),
}

UNCHECKED_TEXT = "TRY(decode(encode({0})))"
"""A text that nobody has checked to be UTF-8; NULL if it is not."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source: its type in DuckDB, ours, and the expression that reads it."""

    native: str
    type: Type
    sql: str


def columns(relation: Any, *, checked: bool = True) -> dict[str, Column]:
    """The readable columns of a relation, from its types alone.

    Args:
        relation: DuckDB's.
        checked: whether DuckDB makes sure that texts are UTF-8 before it hands them on.
    """
    found = {}
    for name, kind in zip(relation.columns, relation.types, strict=True):
        read = _PARAMETRIC[kind.id](kind) if kind.id in _PARAMETRIC else STORED.get(str(kind))
        if read is not None:
            text = UNCHECKED_TEXT if str(kind) == "VARCHAR" and not checked else read[1]
            found[name] = Column(str(kind), read[0], text.replace("{0}", quoted(name)))
    return found


def listed(chosen: Iterable[tuple[str, Column]]) -> str:
    """What stands after SELECT to read columns under their names."""
    return ", ".join(f"{column.sql} AS {quoted(name)}" for name, column in chosen)


def _decimal(kind: Any) -> tuple[Type, str]:
    """Correctly rounded, as its text would be; a column may hold more digits than it declares."""
    width, scale = (size for _, size in kind.children)
    value = "CAST(CAST({0} AS VARCHAR) AS DOUBLE)"
    if scale <= _EXACT_POWER:
        few = _largest(min(width, _EXACT_DIGITS), width, scale)
        value = f"CASE WHEN {{0}} BETWEEN -{few} AND {few} THEN CAST({{0}} AS DOUBLE) ELSE {value} END"
    most = _largest(width, width, scale)
    return Type.FLOAT, f"CASE WHEN {{0}} BETWEEN -{most} AND {most} THEN {value} END"


def _largest(digits: int, width: int, scale: int) -> str:
    """The largest decimal of so many digits."""
    written = ("9" * digits).zfill(scale + 1)
    point = len(written) - scale
    return f"CAST('{written[:point]}.{written[point:]}' AS DECIMAL({width},{scale}))"


_PARAMETRIC: Mapping[str, Callable[[Any], tuple[Type, str]]] = {
    "decimal": _decimal,
    "enum": lambda _: (Type.TEXT, "CAST({0} AS VARCHAR)"),
}
