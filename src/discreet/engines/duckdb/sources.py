"""What an embedded engine can be given, and which types its format carries; contents are never looked at for types.

A path ending in .parquet, .csv or .tsv (or a list of such paths with the same columns), a frame (pandas, polars, Arrow:
whatever narwhals or the Arrow PyCapsule interface can read), or `FileTable`, a table of a .duckdb file.

What a source is depends on its kind and on the types of its columns, never on a value in it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.engines.cells import text_of
from discreet.errors import InvalidParameter

PARQUET, CSV = (".parquet", ".pq"), (".csv", ".tsv", ".txt")
_GLOB = set("*?[]{}")
_INSTALL = "Install what frames need: pip install 'discreet[frames]'."
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTable:
    """A table of a .duckdb file, opened read-only."""

    path: Path
    table: str
    schema: str = "main"


@dataclass(frozen=True, slots=True)
class Parquet:
    """Parquet files with the same columns."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Csv:
    """Text files with a header; every column is text until its declared type is read from it, an empty cell is NULL.

    The table is what the parser finds: a line with bytes that are not UTF-8, or of over two million bytes, is left out
    where the column that has them is read; cells beyond the header are left out, missing cells are NULL.
    """

    paths: tuple[Path, ...]
    header: tuple[str, ...]
    delimiter: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame in memory, as an object with the Arrow PyCapsule interface; `texts` are columns of Python objects."""

    stream: Any
    texts: tuple[str, ...] = ()


class Stream:
    """Rows of a database of ours, of types that need no care, read anew whenever they are asked for."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._read().__arrow_c_stream__(requested_schema)


Source = Parquet | Csv | Frame | FileTable


def source_of(given: Any) -> Source:
    """The kind of source that something is.

    Raises:
        InvalidParameter: if it is none, or a file that is not there.
    """
    if isinstance(given, FileTable):
        return FileTable(path=existing(given.path), table=given.table, schema=given.schema)
    if isinstance(given, str | Path):
        return _files((existing(given),))
    if isinstance(given, Sequence) and given and all(isinstance(path, str | Path) for path in given):
        return _files(tuple(existing(path) for path in given))
    return _frame(given)


def existing(path: str | Path) -> Path:
    """The file itself: links followed, no pattern, no address."""
    resolved = Path(str(path).replace("\0", "*")).resolve()
    if _GLOB & set(str(resolved)) or not resolved.is_file():
        raise InvalidParameter("source", str(path), "to be an existing file", "Name one file, without patterns.")
    return resolved


def _files(paths: tuple[Path, ...]) -> Parquet | Csv:
    endings = {path.suffix.lower() for path in paths}
    if endings <= set(PARQUET):
        return Parquet(paths)
    if endings <= set(CSV):
        return _csv(paths)
    raise InvalidParameter("source", str(paths[0].name), "to end in .parquet, .csv or .tsv", "Convert the file.")


def _csv(paths: tuple[Path, ...]) -> Csv:
    """Only the first line is read here: a header is public, as a table's columns are."""
    headers = [_first_line(path) for path in paths]
    line = headers[0]
    delimiter = max(_DELIMITERS, key=line.count)
    names = tuple(next(csv.reader([line], delimiter=delimiter), []))
    if any(header != line for header in headers) or len(set(names)) < len(names) or not all(names):
        hint = "Write one line of column names, each once, the same in every file."
        raise InvalidParameter("source", paths[0].name, "to begin with a header", hint)
    return Csv(paths, names, delimiter)


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return file.readline(1 << 20).rstrip("\r\n")


def _frame(given: Any) -> Frame:
    if isinstance(given, Stream):
        return Frame(given)
    try:
        import narwhals as nw  # noqa: PLC0415 - optional: frames only

        from discreet.engines.duckdb import arrow  # noqa: PLC0415 - optional: pyarrow
    except ImportError:
        raise _refused(given, _INSTALL if hasattr(given, "__arrow_c_stream__") else "") from None
    native = nw.from_native(given, pass_through=True, allow_series=False)
    if isinstance(native, nw.LazyFrame):
        raise InvalidParameter("source", type(given).__name__, "not to be lazy", "Collect it first.")
    if not isinstance(native, nw.DataFrame) or native.implementation.is_pyarrow():
        return _streamed(given)
    objects = tuple(name for name, kind in native.schema.items() if kind == nw.Object)
    if native.implementation.is_pandas_like():
        return Frame(arrow.pandas(nw.to_native(native), text_of), objects)
    return _streamed(nw.to_native(native.drop(*objects)))


def _streamed(given: Any) -> Frame:
    """Frames can be read as often as they are asked; a reader of batches only once."""
    from discreet.engines.duckdb import arrow  # noqa: PLC0415 - optional: pyarrow

    if not hasattr(given, "__arrow_c_stream__") or hasattr(given, "read_next_batch"):
        raise _refused(given)
    try:
        return Frame(arrow.stream_of(given))
    except ValueError:  # a type that Arrow has not
        raise _refused(given, "Leave out columns of types that Arrow does not have, such as 128-bit numbers.") from None


def _refused(given: Any, hint: str = "") -> InvalidParameter:
    usual = "Pass a path to Parquet or CSV, a pandas, polars or Arrow frame, or a FileTable."
    return InvalidParameter("source", type(given).__name__, "to be a table", hint or usual)
