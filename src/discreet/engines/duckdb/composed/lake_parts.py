"""A snapshot of a Delta or Iceberg table as one table of DuckDB: its files, by the columns that they store.

Files that store their columns alike are one scan, as those of a folder are (`file_parts`). What differs is how a column
is found: by the id of its field, or by the name that the log gives it, so that a renamed column is the same in old and
new files, and a column that was added later is NULL in old ones. Values of partitions have their types already. Rows
that the snapshot lists as deleted are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from discreet.dataclass import dataclass
from discreet.engines.abstract_engine import stored_value
from discreet.engines.duckdb import arrow
from discreet.engines.duckdb.composed.declared_columns import select_declared
from discreet.engines.duckdb.composed.file_parts import (
    Columns,
    FileGroup,
    constant,
    empty,
    frame_of_files,
    is_shadowed,
    parquet_files,
    paths_of_files,
    value_by_file,
)
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.source_tables import PLACE, columns_in, footers, from_text
from discreet.engines.duckdb.sources import ArrowFrame, ComposedTable, DuckDBColumn
from discreet.engines.lakes.lake_table import LakeColumn, LakeFile, LakeSnapshot
from discreet.engines.sources.file_set import ListedFile, Listing
from discreet.lazy import pa
from discreet.plan.model.types import Type

_UNPACKED = 2  # how much longer numbers may be than where they are stored
_FILE, _ROW = '"#file"', '"#row"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _LakeGroup:
    """Files that one scan can read.

    Args:
        files: as the snapshot lists them.
        found: the same, as the query finds them.
        footer: how they store their columns.
    """

    files: tuple[LakeFile, ...]
    found: tuple[ListedFile, ...]
    footer: tuple[tuple[Any, ...], ...]

    @property
    def has_deletes(self) -> bool:
        """Returns whether some of their rows were deleted."""
        return any(file.deleted is not None for file in self.files)


def union_of_lake(
    name: str, snapshot: LakeSnapshot, listing: Listing, columns: Mapping[str, Type], *, careful: bool = False
) -> ComposedTable:
    """Returns the files of a snapshot as one table with these columns.

    Args:
        name: of the table; tables of its parts begin with it.
        snapshot: what the log lists.
        listing: its files as a query finds them, in the same order.
        columns: the declared ones.
        careful: whether no value of a row may make reading fail.

    Raises:
        InvalidParameter: if a file cannot be read.
    """
    queries, parts = list[str](), dict[str, tuple[Any, Columns]]()
    wanted = [column for column in snapshot.columns if column.name in columns]
    for group in _groups(snapshot.files, listing.files, careful=careful):
        stored_as = _names(wanted, group.footer)
        is_apart = group.has_deletes and (careful or is_shadowed(group.footer))
        made = _deleted_apart(group) if is_apart else parquet_files(group.found, ())
        source, chosen = made.source, {n: c for n, c in made.columns.items() if n in stored_as.values()}
        if isinstance(source, ArrowFrame) or careful:
            part = f"{name}_{type(source).__name__.lower()}{len(parts)}{'_careful' * careful}"
            parts[part] = (source, chosen)
            read = {n: (c.type, DIALECT.quote_name(n)) for n, c in chosen.items()}
        else:
            part = from_text(source)
            read = {n: (c.type, c.sql) for n, c in chosen.items()}
            if group.has_deletes:
                gone = f"{name}_deleted{len(parts)}"
                parts[gone] = _deleted_rows(group.files)
                part = _without_deleted(part, gone)
        stored = {column.name: _read(column, group, stored_as, read) for column in wanted}
        queries.append(select_declared(part, {n: one for n, one in stored.items() if one is not None}, columns))
    return ComposedTable(
        sql=" UNION ALL ".join(queries) or empty(columns),
        parts=parts,
        careful=partial(union_of_lake, name, snapshot, listing, columns, careful=True),
        paths=paths_of_files(listing.files),
        size=listing.size,
        unpacked=_UNPACKED,
        is_measured=True,  # it costs a scan of one column, once for an open database
    )


def _groups(files: Sequence[LakeFile], found: Sequence[ListedFile], *, careful: bool) -> Iterator[_LakeGroup]:
    """Yields groups of files; with care, no row tells which file it is from: all of a group have the same constants."""
    known = footers(paths_of_files(found), ids=True) if found else {}
    groups = defaultdict[Any, list[tuple[LakeFile, ListedFile]]](list)
    for number, (file, listed) in enumerate(zip(files, found, strict=True)):
        footer, alone = known[listed.place], file.deleted is not None
        apart = careful or is_shadowed(footer)
        values = tuple(sorted((name, repr(value) if apart else "") for name, value in file.values.items()))
        groups[footer, values, alone, number if apart and alone else None].append((file, listed))
    for (footer, *_), alike in groups.items():
        yield _LakeGroup(files=tuple(f for f, _ in alike), found=tuple(f for _, f in alike), footer=footer)


def _names(wanted: Sequence[LakeColumn], footer: Sequence[tuple[Any, ...]]) -> dict[str, str]:
    """Returns under which names files store columns; those that they do not have are left out.

    Where fields have ids, only ids count: another column may have had the name before.
    """
    there = columns_in(footer)
    by_id = {field_id: name for name, field_id in there.items() if field_id is not None}
    found = dict[str, str]()
    for column in wanted:
        if column.field_id is not None and by_id:
            name = by_id.get(column.field_id)
        else:
            name = next((name for name in column.names if name in there), None)
        if name is not None:
            found[column.name] = name
    return found


def _read(
    column: LakeColumn, group: _LakeGroup, stored_as: Mapping[str, str], read: Mapping[str, tuple[Type, str]]
) -> tuple[Type, str] | None:
    """Returns the type and the SQL of a column in a group of files; None if it has no value there."""
    if column.name in stored_as:
        return read.get(stored_as[column.name])
    if column.type is None:
        return None
    values = [file.values.get(column.name, column.default) for file in group.files]
    return column.type, value_by_file([_literal(value, column.type) for value in values])


def _literal(value: Any, kind: Type) -> str:
    """Writes a value of a partition, or a default, as a value of its column's type; NULL if it is none."""
    found, plain = stored_value(value)
    if plain is None or found is not kind:
        return DIALECT.cast("NULL", kind)
    return constant(str(plain)) if kind is Type.TEXT else DIALECT.literal(plain, kind)


# --------------------------------------------------------------------------------------------------------- deleted rows


def _deleted_rows(files: Sequence[LakeFile]) -> tuple[ArrowFrame, Columns]:
    """Returns the rows that were deleted as a table: the place of the file in its scan, and the number of the row."""
    numbers = [pa.array(file.deleted, pa.int64()) for file in files]
    places = [pa.array([place] * len(one), pa.int64()) for place, one in enumerate(numbers)]
    table = pa.table({"#file": pa.chunked_array(places, pa.int64()), "#row": pa.chunked_array(numbers, pa.int64())})
    columns = {name: DuckDBColumn("BIGINT", Type.INT, DIALECT.quote_name(name)) for name in table.column_names}
    return ArrowFrame(table), columns


def _without_deleted(scan: str, gone: str) -> str:
    """Writes what comes after FROM to read the rows that were not deleted; they still tell which file they are from."""
    place, row = PLACE
    return (
        f"(SELECT * FROM (SELECT *, {place}, {row} FROM {scan}) AS one "
        f"ANTI JOIN {gone} AS other ON one.{place} = other.{_FILE} AND one.{row} = other.{_ROW})"
    )


def _deleted_apart(group: _LakeGroup) -> FileGroup:
    """Returns a file read by Arrow, which fails at no value, without the rows that were deleted."""
    paths = paths_of_files(group.found)
    stream = arrow.parquet(paths, arrow.parquet_names(paths[0]), counted=True, without=group.files[0].deleted)
    return frame_of_files(group.found, stream)
