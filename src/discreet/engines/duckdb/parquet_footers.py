"""How Parquet files store their columns, as their footers tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from discreet.dataclass import dataclass
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.sources.file_set import ReadableFile

_WIDTHS = ((4, 2), (9, 4), (18, 8), (38, 16))  # digits of a decimal, and the bytes that DuckDB keeps it in
_BYTES = {"INT32": 4, "INT64": 8}


@dataclass(frozen=True, slots=True)
class ParquetColumn:
    """How a file stores a column."""

    native: str
    physical: str
    length: int
    precision: int
    in_milliseconds: bool

    @property
    def kept_in(self) -> int:
        """Returns the bytes of a decimal in DuckDB."""
        return next((size for digits, size in _WIDTHS if self.precision <= digits), 0)

    @property
    def is_total(self) -> bool:
        """Returns whether no bytes make DuckDB's reader fail; milliseconds and texts are read in another way."""
        return not self.native.startswith("DECIMAL") or self.physical in _BYTES or 0 < self.length <= self.kept_in

    @property
    def bytes(self) -> int:
        """Returns the bytes of a value in the file."""
        return _BYTES.get(self.physical, self.length)


def stored_columns_of(connection: duckdb.DuckDBPyConnection, path: ReadableFile) -> dict[str, ParquetColumn]:
    """Returns the columns of a file that have no parts, from its footer."""
    asked = "name, num_children, duckdb_type, type, type_length, precision, converted_type, logical_type"
    rows = connection.execute(f"SELECT {asked} FROM parquet_schema({DIALECT.text_literal(str(path))})").fetchall()
    found, place = {}, 1
    while place < len(rows):
        name, children, *facts = rows[place]
        if not children:
            found[name] = _leaf(*facts)
        place += _size(rows, place)
    return found


def columns_in(footer: Sequence[tuple[Any, ...]]) -> dict[str, int | None]:
    """Returns the columns of a file that have no parts, with the ids of their fields, from a footer with ids."""
    found, place = dict[str, int | None](), 1
    while place < len(footer):
        name, children, *_, field_id = footer[place]
        if not children:
            found.setdefault(name, field_id)
        place += _size(footer, place)
    return found


def _size(rows: Sequence[tuple[Any, ...]], place: int) -> int:
    """Returns how many rows describe a column and its parts."""
    size = 1
    for _ in range(rows[place][1] or 0):
        size += _size(rows, place + size)
    return size


def _leaf(
    native: str, physical: str, length: str | None, precision: int | None, *annotations: str | None
) -> ParquetColumn:
    converted, logical = annotations
    in_milliseconds = converted == "TIMESTAMP_MILLIS" or "MILLIS=MilliSeconds" in (logical or "")
    return ParquetColumn(native, physical, int(length or 0), precision or 0, in_milliseconds)
