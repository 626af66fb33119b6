"""Arrow batches made plain: what DuckDB converts while it scans, and can fail or guess on, is converted here before.

Bytes are looked at anew and never checked, so that no value of a row makes a conversion fail: moments lose their zone,
which changes nothing about the moment; decimals of any width have 38 digits; half floats are floats; dictionaries and
runs are written out. Columns of types that have no plain form, such as lists, bytes or durations, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from discreet.engines.sources.file_set import ReadableFile
from discreet.engines.sources.open_object import OpenObject
from discreet.errors import InvalidParameter
from discreet.lazy import load, pa, pc, pq

_ROWS = 1 << 16  # of a batch
_DAY = 86_400_000  # milliseconds
_MOST_DIGITS = 38

Convert = Callable[[Any], Any]
Batches = Callable[[], Iterable[Any]]


ROWS = "#rows"
"""A column of NULLs, which counts rows where no other column is read."""


class PlainBatchStream:
    """A stream of plain batches, made anew whenever it is asked for.

    Args:
        schema: of what is given.
        batches: reads what is given; not called before the first read.
        counted: whether rows count that have no plain column: there is a column ROWS as well.
    """

    def __init__(self, schema: Any, batches: Batches, *, counted: bool = False) -> None:
        self._batches, self._counted = batches, counted
        made = ((place, field.name, plain(field.type)) for place, field in enumerate(schema))
        self._kept = [(place, name, form) for place, name, form in made if form is not None]
        self.schema = pa.schema([(name, kind) for _, name, (kind, _) in self._kept])
        if counted:
            self.schema = self.schema.append(pa.field(ROWS, pa.bool_()))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self._convert_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def select(self, names: Collection[str]) -> PlainBatchStream:
        """Returns a stream of some columns; of all, if one is not there, or DuckDB would rename one of two alike."""
        known = {name.casefold() for name in self.schema.names}
        part = copy(self)
        if len(known) == len(self.schema.names) and {*names} <= {*self.schema.names}:
            part._kept = [kept for kept in self._kept if kept[1] in names]
            part._counted = False
            part.schema = pa.schema([(name, kind) for _, name, (kind, _) in part._kept])
        return part

    def count_rows(self) -> int:
        """Reads what is given once more, for the number of its rows."""
        return sum(batch.num_rows for batch in self._batches())

    def freeze(self) -> Any:
        """Returns a table with all that is read now, in memory of its own."""
        return pa.Table.from_batches([_copy_batch(batch) for batch in self._convert_batches()], self.schema)

    def _convert_batches(self) -> Iterator[Any]:
        for batch in self._batches():
            arrays = [convert(batch.column(place)) for place, _, (_, convert) in self._kept]
            if self._counted:
                arrays.append(pa.nulls(batch.num_rows, pa.bool_()))
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _copy_batch(batch: Any) -> Any:
    """Returns a batch in memory of its own: what is written for another process shares nothing."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.ipc.open_stream(out.getvalue()) as reader:
        return reader.read_next_batch()


def stream_of(given: Any) -> PlainBatchStream:
    """Returns a stream of anything with the Arrow PyCapsule interface; only its schema is read here."""
    reader = pa.RecordBatchReader.from_stream(given)
    return PlainBatchStream(reader.schema, lambda: pa.RecordBatchReader.from_stream(given))


def parquet(
    paths: Sequence[ReadableFile], names: Sequence[str], *, counted: bool = False, without: Any = None
) -> PlainBatchStream:
    """Reads columns of Parquet files of the same schema, in batches; of one, perhaps without some rows."""

    def batches() -> Iterator[Any]:
        for path in paths:
            first = 0
            with pq.ParquetFile(_parquet_input(path)) as file:
                for batch in file.iter_batches(_ROWS, columns=names):
                    shown = batch.select(names)
                    yield shown if without is None else _without_rows(shown, without - first)
                    first += batch.num_rows

    with pq.ParquetFile(_parquet_input(paths[0])) as file:
        schema = file.schema_arrow
    return PlainBatchStream(pa.schema([schema.field(name) for name in names]), batches, counted=counted)


def _without_rows(batch: Any, numbers: Any) -> Any:
    kept = np.ones(batch.num_rows, bool)
    kept[numbers[(numbers >= 0) & (numbers < batch.num_rows)]] = False
    return batch.filter(pa.array(kept))


def _parquet_input(path: ReadableFile) -> Any:
    return path.reader() if isinstance(path, OpenObject) else path


def parquet_names(path: ReadableFile) -> list[str]:
    """Returns the names of a file's columns."""
    with pq.ParquetFile(_parquet_input(path)) as file:
        return list(file.schema_arrow.names)


_FILE = b"ARROW1"  # how a file of Arrow begins; a stream has no name


def ipc_schema(path: ReadableFile) -> Any:
    """Returns the schema of a file that Arrow or Feather wrote.

    Raises:
        InvalidParameter: if it is none.
    """
    try:
        with _open_reader(path) as reader:
            return reader.schema
    except (OSError, pa.ArrowException):
        raise InvalidParameter("source", "an Arrow file", "to be readable", "Write it again.") from None


def ipc_files(paths: Sequence[ReadableFile]) -> PlainBatchStream:
    """Reads files of Arrow with the same schema, in batches."""

    def batches() -> Iterator[Any]:
        for path in paths:
            with _open_reader(path) as reader:
                yield from _record_batches(reader)

    return PlainBatchStream(ipc_schema(paths[0]), batches, counted=True)


@contextmanager
def _open_reader(path: ReadableFile) -> Iterator[Any]:
    with pa.PythonFile(path.open()) if isinstance(path, OpenObject) else pa.OSFile(str(path)) as file:
        is_file = file.read(len(_FILE)) == _FILE
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            yield reader


def _record_batches(reader: Any) -> Iterator[Any]:
    """Yields the batches of a reader; what a damaged one would have DuckDB read beyond its bytes is refused."""
    count = getattr(reader, "num_record_batches", None)
    batches = reader if count is None else map(reader.get_batch, range(count))
    for batch in batches:
        batch.validate()
        yield batch


def pandas(frame: Any, texts: Callable[[Any], Any]) -> PlainBatchStream:
    """Reads a frame of pandas in batches; `texts` makes a text or None of each cell of columns of Python objects."""
    kinds = [_pandas_type(kind) for kind in frame.dtypes]
    kept = [place for place, kind in enumerate(kinds) if kind is not None]

    def column(place: int, rows: slice) -> Any:
        cells, kind = frame.iloc[rows, place], kinds[place]
        if _is_of_objects(cells.dtype):
            return pa.array([texts(cell) for cell in cells.astype(object)], kind)
        found = pa.array(cells, kind, from_pandas=True)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def batches() -> Iterator[Any]:
        for start in range(0, len(frame), _ROWS):
            rows = slice(start, start + _ROWS)
            yield pa.RecordBatch.from_arrays([column(place, rows) for place in kept], schema=schema)

    schema = pa.schema([(str(frame.columns[place]), kinds[place]) for place in kept])
    return PlainBatchStream(schema, batches)


def _is_of_objects(kind: Any) -> bool:
    """Returns whether cells, or the names of categories, are any Python objects."""
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)
    return str(kind) == "object" or getattr(kind, "storage", "") == "python"


def _pandas_type(kind: Any) -> Any | None:
    """Returns the Arrow type of a dtype; None if there is none."""
    if _is_of_objects(kind):
        return pa.large_string()  # the texts of a batch may be of any length
    try:
        return pa.array(_empty(kind), from_pandas=True).type
    except (pa.ArrowException, TypeError):
        return None


def _empty(kind: Any) -> Any:
    return load("pandas", "A pandas frame").Series([], dtype=kind)


def plain(kind: Any) -> tuple[Any, Convert] | None:
    """Returns the plain type that replaces another, and how an array becomes one; None if there is none."""
    if _is_plain(kind) or (pa.types.is_dictionary(kind) and _is_text(kind.value_type)):
        return kind, _same
    form = next((form(kind) for name, form in _FORMS.items() if getattr(pa.types, name)(kind)), None)
    try:  # some conversions of rare types are not there yet
        return form if form is not None and form[1](pa.nulls(0, kind)).type == form[0] else None
    except pa.ArrowException:
        return None


def _is_plain(kind: Any) -> bool:
    return any(getattr(pa.types, name)(kind) for name in _AS_THEY_ARE) or _is_text(kind) or bool(kind == pa.uuid())


def _is_text(kind: Any) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _same(array: Any) -> Any:
    return array


def _view(array: Any, kind: Any) -> Any:
    """Returns the same bytes under another type."""
    return pa.Array.from_buffers(kind, len(array), array.buffers(), array.null_count, array.offset)


def _moment(kind: Any) -> tuple[Any, Convert]:
    naive = pa.timestamp(kind.unit)
    return naive, lambda array: _view(array, naive)


def _decimal(kind: Any) -> tuple[Any, Convert] | None:
    """Returns a decimal type of the most digits there can be: a decimal may hold more than it declares."""
    if not 0 <= kind.scale <= _MOST_DIGITS:
        return None
    wide = pa.decimal128(_MOST_DIGITS, kind.scale)
    return wide, lambda array: _view(array, wide) if pa.types.is_decimal128(kind) else array.cast(wide)


def _half(_: Any) -> tuple[Any, Convert]:
    return pa.float32(), lambda array: array.cast(pa.float32())


def _day_of_milliseconds(_: Any) -> tuple[Any, Convert]:
    """Milliseconds as days, held to those that there are."""

    def convert(array: Any) -> Any:
        days = pc.divide(array.view(pa.int64()), _DAY)
        held = pc.max_element_wise(
            pc.min_element_wise(days, (1 << 31) - 1, skip_nulls=False), -(1 << 31), skip_nulls=False
        )
        return held.cast(pa.int32()).view(pa.date32())

    return pa.date32(), convert


def _written_out(kind: Any) -> tuple[Any, Convert] | None:
    """Returns the type of a dictionary or of runs with each value written in its place."""
    inner = plain(kind.value_type)
    if inner is None:
        return None
    decode = pc.run_end_decode if pa.types.is_run_end_encoded(kind) else lambda array: array.dictionary_decode()
    return inner[0], lambda array: inner[1](decode(array))


_AS_THEY_ARE = ("is_integer", "is_boolean", "is_float32", "is_float64", "is_date32")
_FORMS: dict[str, Callable[[Any], tuple[Any, Convert] | None]] = {
    "is_timestamp": _moment,
    "is_decimal32": _decimal,
    "is_decimal64": _decimal,
    "is_decimal128": _decimal,
    "is_float16": _half,
    "is_date64": _day_of_milliseconds,
    "is_dictionary": _written_out,
    "is_run_end_encoded": _written_out,
}
"""How other types are made plain, by the names of pyarrow's tests for them; what none of them is has no plain form."""
