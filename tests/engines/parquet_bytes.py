"""Parquet files written byte by byte, so that they hold what no library would write: one row group, plain pages.

Only what the format itself says is followed: any bytes of the physical type may stand under any annotation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTES, FIXED = range(8)
UTF8, ENUM, DECIMAL, DATE, JSON = 0, 4, 5, 6, 19
TIMESTAMP_MILLIS, TIMESTAMP_MICROS = 9, 10
UINT_8, UINT_16, UINT_32, UINT_64, INT_8, INT_16, INT_32, INT_64 = range(11, 19)

_BOOL_TRUE, _BOOL_FALSE, _I8, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 3, 5, 6, 8, 9, 12
Fields = dict[int, tuple[int, Any]]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _signed(number: int) -> bytes:
    return _varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _value(kind: int, value: Any) -> bytes:
    if kind == _STRUCT:
        return _fields(value)
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == _I8:
        return struct.pack("b", value)
    if kind == _LIST:
        inner, values = value
        head = bytes([len(values) << 4 | inner]) if len(values) < 15 else bytes([0xF0 | inner]) + _varint(len(values))
        return head + b"".join(_value(inner, each) for each in values)
    return _signed(value)


def _fields(fields: Fields) -> bytes:
    """A struct in the compact protocol of Thrift."""
    out, last = b"", 0
    for place, (kind, value) in sorted(fields.items()):
        named = (_BOOL_TRUE if value else _BOOL_FALSE) if kind == _BOOL_TRUE else kind
        out += bytes([(place - last) << 4 | named])
        out += b"" if kind == _BOOL_TRUE else _value(kind, value)
        last = place
    return out + b"\0"


def logical(place: int, fields: Fields | None = None) -> Fields:
    """A logical type by its place in the union."""
    return {place: (_STRUCT, fields or {})}


def logical_timestamp(unit: int, *, utc: bool) -> Fields:
    """A moment; the unit is 1 for milliseconds, 2 for microseconds, 3 for nanoseconds."""
    return logical(8, {1: (_BOOL_TRUE, utc), 2: (_STRUCT, {unit: (_STRUCT, {})})})


def logical_integer(bits: int, *, signed: bool) -> Fields:
    return logical(10, {1: (_I8, bits), 2: (_BOOL_TRUE, signed)})


@dataclass(frozen=True)
class Stored:
    """A column: how it is stored, what it is said to be, and the bytes of each cell, None for NULL."""

    type: int
    cells: Sequence[bytes | None]
    length: int = 0
    converted: int | None = None
    logical: Fields = field(default_factory=dict)
    scale: int = 0
    precision: int = 0
    statistics: bool = True

    def schema(self, name: str) -> Fields:
        fields: Fields = {1: (_I32, self.type), 3: (_I32, 1), 4: (_BINARY, name.encode())}
        if self.length:
            fields[2] = (_I32, self.length)
        if self.converted is not None:
            fields[6] = (_I32, self.converted)
        if self.precision:
            fields |= {7: (_I32, self.scale), 8: (_I32, self.precision)}
        return fields | ({10: (_STRUCT, self.logical)} if self.logical else {})

    def page(self) -> bytes:
        """Levels as one bit-packed run, then the values that are there."""
        groups = -(-len(self.cells) // 8)
        bits = sum((cell is not None) << place for place, cell in enumerate(self.cells))
        levels = _varint(groups << 1 | 1) + bits.to_bytes(groups, "little")
        values = b"".join(self._plain(cell) for cell in self.cells if cell is not None)
        body = struct.pack("<I", len(levels)) + levels + values
        head = {1: (_I32, len(self.cells)), 2: (_I32, 0), 3: (_I32, 3), 4: (_I32, 3)}
        return _fields({1: (_I32, 0), 2: (_I32, len(body)), 3: (_I32, len(body)), 5: (_STRUCT, head)}) + body

    def _plain(self, cell: bytes) -> bytes:
        return struct.pack("<I", len(cell)) + cell if self.type == BYTES else cell

    def extremes(self) -> Fields:
        """The statistics that writers add: how many cells are NULL, the smallest and the largest of the others."""
        known = [cell for cell in self.cells if cell is not None]
        if not self.statistics or not known or self.type not in _ORDERS:
            return {}
        ordered = sorted(known, key=_ORDERS[self.type])
        nulls = len(self.cells) - len(known)
        return {12: (_STRUCT, {3: (_I64, nulls), 5: (_BINARY, ordered[-1]), 6: (_BINARY, ordered[0])})}


_ORDERS: Mapping[int, Callable[[bytes], Any]] = {
    INT32: lambda cell: int.from_bytes(cell, "little", signed=True),
    INT64: lambda cell: int.from_bytes(cell, "little", signed=True),
    BYTES: bytes,
}


def parquet(columns: Mapping[str, Stored]) -> bytes:
    """A file of these columns."""
    rows = len(next(iter(columns.values())).cells)
    out, chunks = b"PAR1", []
    for name, column in columns.items():
        page, size = column.page(), len(column.page())
        meta: Fields = {
            1: (_I32, column.type),
            2: (_LIST, (_I32, [0, 3])),
            3: (_LIST, (_BINARY, [name.encode()])),
            4: (_I32, 0),
            5: (_I64, rows),
            6: (_I64, size),
            7: (_I64, size),
            9: (_I64, len(out)),
        }
        chunks.append({2: (_I64, len(out)), 3: (_STRUCT, meta | column.extremes())})
        out += page
    group = {1: (_LIST, (_STRUCT, chunks)), 2: (_I64, len(out)), 3: (_I64, rows)}
    root: Fields = {4: (_BINARY, b"schema"), 5: (_I32, len(columns))}
    schema = [root, *(column.schema(name) for name, column in columns.items())]
    footer = _fields({1: (_I32, 2), 2: (_LIST, (_STRUCT, schema)), 3: (_I64, rows), 4: (_LIST, (_STRUCT, [group]))})
    return out + footer + struct.pack("<I", len(footer)) + b"PAR1"
