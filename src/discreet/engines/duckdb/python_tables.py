"""Tables of plain Python and numpy as streams of Arrow: columns in a dictionary, rows in a list, structured arrays.

An array has the type of its elements. What is in a list, or in an array of objects, is any Python object, and is read
as the type that is declared for it, as a referee in plain Python reads it; no object makes this fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from discreet.dataclass import dataclass
from discreet.engines.abstract_engine import READS, read_as, read_value, stored_value, text_of
from discreet.engines.duckdb.arrow import PlainBatchStream
from discreet.errors import InvalidParameter
from discreet.lazy import pa
from discreet.plan.model.nodes import Value
from discreet.plan.model.types import Type

_ROWS = 1 << 16  # of a batch
_UNITS = ("s", "ms", "us", "ns")  # of moments that Arrow has
_DAYS = np.iinfo(np.int32)
_NOT_A_TIME = np.iinfo(np.int64).min
_HINT = "Give each column as a list or a one-dimensional numpy array, all of one length."

Columns = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowList:
    """Rows as dictionaries; a name that a row does not have is NULL there."""

    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its type in Arrow, how a part of it becomes an array, and whether it holds any Python objects."""

    type: Any
    read: Callable[[slice], Any]
    is_untyped: bool = False


def is_row_list(given: Any) -> bool:
    """Returns whether something is a list of rows, by its first one; an empty list is a table without rows."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes | bytearray | memoryview):
        return False
    return not given or isinstance(given[0], Mapping)


def columns_in(given: Any) -> Columns | None:
    """Returns the columns of a dictionary or of a structured array; None of anything else."""
    if isinstance(given, np.ndarray):
        names = given.dtype.names
        return None if names is None else {name: given[name] for name in names}
    return given if isinstance(given, Mapping) else None


def column_stream(
    columns: Columns, declared: Mapping[str, Type] | None = None
) -> tuple[PlainBatchStream, tuple[str, ...]]:
    """Returns columns as a stream, and the names of those that hold any Python objects.

    Args:
        columns: the columns.
        declared: the types of some; objects without one are texts.

    Raises:
        InvalidParameter: if they are not named columns of one length.
    """
    lengths = {len(cells) if _is_column(cells) else -1 for cells in columns.values()}
    if len(lengths) != 1 or -1 in lengths or not all(isinstance(name, str) for name in columns):
        raise InvalidParameter("source", "dict", "to hold columns of one length by their names", _HINT)
    (length,) = lengths
    kinds = declared or {}
    found = {name: _column(cells, kinds.get(name, Type.TEXT)) for name, cells in columns.items()}
    made = {name: column for name, column in found.items() if column is not None}
    return _stream(made, length), tuple(name for name, column in made.items() if column.is_untyped)


def row_stream(given: RowList, declared: Mapping[str, Type]) -> PlainBatchStream:
    """Returns the declared columns of rows as a stream.

    Raises:
        InvalidParameter: if a row is no dictionary.
    """
    rows = given.rows
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidParameter("source", type(rows).__name__, "to be a list of dictionaries", "Pass rows of one kind.")

    def column(name: str, kind: Type, part: slice) -> Any:
        return _values([_cell(row, name) for row in rows[part]], kind)

    columns = {name: _Column(_arrow_type(kind), partial(column, name, kind)) for name, kind in declared.items()}
    return _stream(columns, len(rows))


def _cell(row: Mapping[str, Any], name: str) -> Any:
    try:
        return row.get(name)
    except Exception:  # noqa: BLE001 - a mapping's own code, which may raise anything
        return None


def _stream(columns: Mapping[str, _Column], length: int) -> PlainBatchStream:
    schema = pa.schema([(name, column.type) for name, column in columns.items()])

    def batches() -> Iterator[Any]:
        for start in range(0, length, _ROWS):
            part = slice(start, start + _ROWS)
            yield pa.RecordBatch.from_arrays([column.read(part) for column in columns.values()], schema=schema)

    return PlainBatchStream(schema, batches)


def _is_column(cells: Any) -> bool:
    if isinstance(cells, np.ndarray):
        return cells.ndim >= 1  # one of more dimensions has no type that can be read, and is left out
    return isinstance(cells, Sequence) and not isinstance(cells, str | bytes | bytearray | memoryview)


def _column(cells: Any, declared: Type) -> _Column | None:
    """Returns a column; None if no type that can be read is in it."""
    if not isinstance(cells, np.ndarray):
        return _Column(_arrow_type(declared), lambda part: _values(cells[part], declared), is_untyped=True)
    kind = cells.dtype.kind
    if cells.ndim != 1:
        return None
    if kind == "O":
        return _Column(_arrow_type(declared), lambda part: _values(cells[part].tolist(), declared), is_untyped=True)
    return _KINDS[kind](cells) if kind in _KINDS else None


def _values(cells: Iterable[Any], kind: Type) -> Any:
    """Returns Python objects as a type; NULL of what cannot be read."""
    return pa.array([_value(cell, kind) for cell in cells], _arrow_type(kind))


def _value(cell: Any, kind: Type) -> Value:
    stored, value = stored_value(cell)
    if value is None or stored is kind:
        return value
    if (stored, kind) in READS:
        return read_value(read_as("cell", stored, kind), value)
    return text_of(cell) if kind is Type.TEXT else None  # a mixed column loses nothing


def _arrow_type(kind: Type) -> Any:
    return {
        Type.INT: pa.int64(),
        Type.FLOAT: pa.float64(),
        Type.BOOL: pa.bool_(),
        Type.TEXT: pa.large_string(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }[kind]


def _texts(cells: Any) -> _Column:
    return _Column(pa.large_string(), lambda part: _values(cells[part].tolist(), Type.TEXT))


def _numbers(cells: Any) -> _Column | None:
    native = cells.dtype.newbyteorder("=")
    try:
        kind = pa.from_numpy_dtype(native)
    except pa.ArrowException:  # such as numbers of 80 bits
        return None
    return _Column(kind, lambda part: pa.array(_copy(cells[part], native), kind, mask=_mask(cells[part])))


def _moments(cells: Any) -> _Column | None:
    unit, count = np.datetime_data(cells.dtype)
    if count != 1 or unit not in (*_UNITS, "D"):
        return None
    kind = pa.date32() if unit == "D" else pa.timestamp(unit)

    def read(part: slice) -> Any:
        numbers = _copy(cells[part], cells.dtype.newbyteorder("=")).view(np.int64)
        masked = _mask(cells[part])
        missing = numbers == _NOT_A_TIME
        missing = missing if masked is None else missing | masked
        if unit == "D":
            numbers = np.clip(numbers, _DAYS.min, _DAYS.max).astype(np.int32)
        return pa.array(numbers, mask=missing).view(kind)

    return _Column(kind, read)


def _copy(cells: Any, kind: Any) -> Any:
    """Returns cells one after the other, in the byte order of this machine."""
    return np.array(np.ma.getdata(cells), dtype=kind, order="C")


def _mask(cells: Any) -> Any:
    return np.ma.getmaskarray(cells) if isinstance(cells, np.ma.MaskedArray) else None


_KINDS: Mapping[str, Callable[[Any], _Column | None]] = {
    **dict.fromkeys("biuf", _numbers),
    "M": _moments,
    **dict.fromkeys("UT", _texts),  # which may have lone surrogates
}
"""Readers of arrays, by numpy's letters for kinds of elements; of other kinds there is nothing that can be read."""
