"""Many files as one table of DuckDB: each group of files that are alike is one scan, and columns are matched by name.

A declared column is the value that the file's folder is named after, or else the file's own column of that name, or
else NULL. A file's values are read as the declared type by the functions that read any other source, and are NULL where
there is no such function, so that no file's type is an error. DuckDB never guesses: it is told the columns of each
file, and its own partitions and its union of types are off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from discreet.dataclass import dataclass
from discreet.engines.duckdb import arrow
from discreet.engines.duckdb.composed.declared_columns import select_declared
from discreet.engines.duckdb.csv_header import first_record, split_header
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.source_tables import (
    PLACE,
    describe_source,
    footers,
    from_text,
    json_names,
    write_statistics,
)
from discreet.engines.duckdb.sources import (
    STORED,
    ArrowFrame,
    ComposedTable,
    Csv,
    DuckDBColumn,
    JsonLines,
    Parquet,
)
from discreet.engines.objects.object_set import ObjectSet
from discreet.engines.sources.file_set import FileSet, ListedFile, Listing, ReadableFile
from discreet.errors import InvalidParameter
from discreet.plan.model.types import Type

Columns = Mapping[str, DuckDBColumn]

_PACKED = 16  # how much longer a packed file may be in memory
_STORED = 2  # how much longer numbers may be than where Parquet and Arrow store them


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are alike, with the columns that they have and what reads them."""

    files: tuple[ListedFile, ...]
    columns: Columns
    source: Parquet | Csv | JsonLines | ArrowFrame

    @property
    def partitions(self) -> frozenset[str]:
        """Returns the names of the partitions that each of these files lies in."""
        return frozenset(self.files[0].partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """How files of a format are told apart and read.

    Args:
        shapes: returns for each file what it shares with those that one scan can read.
        group: returns files of one shape as a source; of columns that no format tells, those that are named.
        is_split: whether files of a shape are read partition by partition, since no row tells which file it is from.
        is_slow: whether cells are texts.
    """

    shapes: Callable[[Sequence[ListedFile]], Sequence[Hashable]]
    group: Callable[[Sequence[ListedFile], Collection[str]], FileGroup]
    is_split: Callable[[Any], bool] = lambda _: False
    is_slow: bool = False


# -------------------------------------------------------------------------------------------------------------- formats


def paths_of_files(files: Iterable[ListedFile]) -> tuple[ReadableFile, ...]:
    """Returns what files are read by."""
    return tuple(file.path for file in files)


def _text_column(sql: str) -> DuckDBColumn:
    return DuckDBColumn("VARCHAR", Type.TEXT, STORED["VARCHAR"][1].replace("{0}", sql))


def _parquet_shapes(files: Sequence[ListedFile]) -> Sequence[Hashable]:
    known = footers(paths_of_files(files))
    return [known[file.place] for file in files]


def is_shadowed(shape: Any) -> bool:
    """Returns whether a column of Parquet is called as DuckDB's own, which tell rows and files apart."""
    return any(str(name).lower() in PLACE for name, *_ in shape)


def parquet_files(files: Sequence[ListedFile], names: Collection[str]) -> FileGroup:
    """Files are read by DuckDB; those in which it could not tell rows apart are read by Arrow."""
    del names
    paths = paths_of_files(files)
    if is_shadowed(footers(paths[:1])[files[0].place]):
        return frame_of_files(files, arrow.parquet(paths, arrow.parquet_names(paths[0]), counted=True))
    return FileGroup(tuple(files), describe_source(Parquet(paths[:1])), Parquet(paths))


def _csv_shapes(files: Sequence[ListedFile]) -> Sequence[Hashable]:
    records = (first_record(file.path, file.packing) for file in files)
    return [(record, file.packing) for record, file in zip(records, files, strict=True)]


def _csv(files: Sequence[ListedFile], names: Collection[str]) -> FileGroup:
    """Columns are found by their places: of two with one name, the first one counts."""
    del names
    header = split_header(first_record(files[0].path, files[0].packing))
    places = tuple(f"#{place}" for place, _ in enumerate(header.names))
    columns = dict[str, DuckDBColumn]()
    for name, place in zip(header.names, places, strict=True):
        columns.setdefault(name, _text_column(DIALECT.quote_name(place)))
    return FileGroup(
        tuple(files), columns, Csv(paths_of_files(files), places, header.delimiter, files[0].packing or "none")
    )


def _json(files: Sequence[ListedFile], names: Collection[str]) -> FileGroup:
    columns = {name: _text_column(DIALECT.quote_name(f"#{place}")) for place, name in enumerate(names)}
    return FileGroup(tuple(files), columns, JsonLines(paths_of_files(files), tuple(names), files[0].packing or "none"))


def _arrow(files: Sequence[ListedFile], names: Collection[str]) -> FileGroup:
    del names
    return frame_of_files(files, arrow.ipc_files(paths_of_files(files)))


def frame_of_files(files: Sequence[ListedFile], stream: Any) -> FileGroup:
    """Returns files that are read by Arrow."""
    frame = ArrowFrame(stream)
    columns = {name: column for name, column in describe_source(frame).items() if name != arrow.ROWS}
    return FileGroup(tuple(files), columns, frame)


_INDEX = PLACE[0]  # the place of a row's file among those of a scan

FORMATS: Mapping[str, FileFormat] = {
    "parquet": FileFormat(shapes=_parquet_shapes, group=parquet_files, is_split=is_shadowed),
    "csv": FileFormat(shapes=_csv_shapes, group=_csv, is_slow=True),
    "ndjson": FileFormat(shapes=lambda files: [file.packing for file in files], group=_json, is_slow=True),
    "arrow": FileFormat(
        shapes=lambda files: [arrow.ipc_schema(path) for path in paths_of_files(files)],
        group=_arrow,
        is_split=lambda _: True,
    ),
}
"""Formats that files of one table may have, by the names that `file_set.format_of` gives them."""


def _group_files(files: Sequence[ListedFile], names: Collection[str], *, split: bool) -> Iterator[FileGroup]:
    """Yields groups of files that one scan can read; where they are split, all values of partitions are the same."""
    for name, kind in FORMATS.items():
        chosen = [file for file in files if file.format == name]
        groups = defaultdict[Hashable, list[ListedFile]](list)
        for file, shape in zip(chosen, kind.shapes(chosen) if chosen else (), strict=True):
            apart = split or kind.is_split(shape)
            values = tuple(sorted(file.partitions.items() if apart else dict.fromkeys(file.partitions).items()))
            groups[shape, values].append(file)
        for alike in groups.values():
            yield kind.group(alike, names)


# ---------------------------------------------------------------------------------------------------------- description


def describe_files(source: FileSet | ObjectSet) -> dict[str, Type | None]:
    """Returns the columns of the files that are there now, for their steward; None for a type that must be declared.

    A text has no types, a partition's values are texts, and a column that two files store as different types has none.
    The names in lines of JSON are content, and not among them.

    Raises:
        InvalidParameter: if a file cannot be read.
    """
    found = dict[str, Type | None]()
    with _list_for_steward(source) as listing:
        for group in _group_files(listing.files, (), split=False):
            for name, column in group.columns.items():
                kind = None if isinstance(group.source, Csv) else column.type
                found[name] = kind if found.get(name, kind) is kind else None
            found |= dict.fromkeys(group.partitions)
    chosen = source.chosen if isinstance(source, FileSet) else None
    if chosen is None:
        return found
    return {name: found[stored] for name, stored in chosen.items() if stored in found}


def steward_table(name: str, source: FileSet) -> tuple[Listing, ComposedTable, dict[str, Type]]:
    """Returns the files that are there now as one table, with all their columns, for their steward.

    A column without a type is a text. The names in lines of JSON are looked for: this is content, which no query sees.

    Raises:
        InvalidParameter: if a file cannot be read.
    """
    columns = {name: told or Type.TEXT for name, told in describe_files(source).items()}
    listing = _list_for_steward(source)
    for packing in sorted({file.packing for file in listing.files if file.format == "ndjson"}):
        lines = [file for file in listing.files if (file.format, file.packing) == ("ndjson", packing)]
        columns = dict.fromkeys(json_names(paths_of_files(lines), packing or "none"), Type.TEXT) | columns
    return listing, union_of_files(name, listing, columns), columns


def _list_for_steward(source: FileSet | ObjectSet) -> Listing:
    if isinstance(source, ObjectSet):
        return source.list_for_steward()
    try:
        return source.list_files()
    except OSError:
        raise InvalidParameter("source", str(source.root), "to be a folder of files that can be read") from None


# -------------------------------------------------------------------------------------------------------------- reading


def union_of_files(name: str, listing: Listing, columns: Mapping[str, Type]) -> ComposedTable:
    """Returns the listed files as one table with these columns.

    Args:
        name: of the table; tables of its parts begin with it.
        listing: the files.
        columns: the declared ones.

    Raises:
        InvalidParameter: if a file cannot be read.
    """
    return _union(name, listing, columns, careful=False)


def _union(name: str, listing: Listing, columns: Mapping[str, Type], *, careful: bool) -> ComposedTable:
    queries, parts = list[str](), dict[str, tuple[Any, Columns]]()
    names = {n: n if listing.chosen is None else listing.chosen.get(n, n) for n in columns}
    asked = tuple(dict.fromkeys(names.values()))
    for group in _group_files(listing.files, asked, split=careful):
        source, chosen = group.source, {n: column for n, column in group.columns.items() if n in asked}
        if isinstance(source, Csv) and not source.header:  # an empty file
            continue
        if isinstance(source, ArrowFrame) or (careful and isinstance(source, Parquet)):
            kind = type(source)
            # counted by kind: frames that were copied are found again, with care, under the same names
            count = sum(isinstance(known, kind) for known, _ in parts.values())
            part = f"{name}_{kind.__name__.lower()}{count}"
            parts[part] = (source, chosen)
            stored = {n: (c.type, DIALECT.quote_name(n)) for n, c in chosen.items()}
        else:
            part = from_text(source)
            stored = {n: (c.type, c.sql) for n, c in chosen.items()}
        stored |= {n: (Type.TEXT, _partition(group.files, n)) for n in group.partitions & set(asked)}
        read = {name: stored[n] for name, n in names.items() if n in stored}
        queries.append(select_declared(part, read, columns))
    is_measured = all(file.format == "parquet" for file in listing.files)
    return ComposedTable(
        sql=" UNION ALL ".join(queries) or empty(columns),
        parts=parts,
        careful=partial(_union, name, listing, columns, careful=True),
        paths=paths_of_files(listing.files),
        size=listing.size,
        unpacked=max((_PACKED if file.packing else _STORED for file in listing.files), default=1),
        is_slow=any(FORMATS[file.format].is_slow for file in listing.files),
        is_measured=is_measured,
        statistics=partial(write_statistics, paths_of_files(listing.files), names) if is_measured else None,
        require_unchanged=listing.require_unchanged,
    )


def _partition(files: Sequence[ListedFile], name: str) -> str:
    """Writes a partition's value: that of the file which a row is from."""
    return value_by_file([constant(file.partitions[name]) for file in files])


def value_by_file(values: Sequence[str]) -> str:
    """Writes the value of the file that a row is from, of those of the files of a scan, in their order."""
    return values[0] if len(set(values)) == 1 else f"([{', '.join(values)}])[CAST({_INDEX} AS BIGINT) + 1]"


def constant(value: str | None) -> str:
    """Writes a text as its bytes, for it may be anything; a value that no folder names is NULL."""
    return "CAST(NULL AS VARCHAR)" if value is None else f"decode(from_hex('{value.encode().hex()}'))"


def empty(columns: Mapping[str, Type]) -> str:
    """Writes a query for a table without rows."""
    shown = (f"{DIALECT.cast('NULL', kind)} AS {DIALECT.quote_name(name)}" for name, kind in columns.items())
    return f"SELECT {', '.join(shown)} WHERE false"
