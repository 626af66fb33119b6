"""Iceberg tables: what the metadata of a table say of one of its snapshots, as `pyiceberg` reads them.

A table is named by its catalog, which the configuration of pyiceberg describes (`.pyiceberg.yaml`, or the environment),
so that no credentials pass through here; or by a file of metadata. Columns are found in files by the ids of their
fields: a renamed column is the same, and one that was dropped and added again is another. Files without ids are read by
the name mapping of the table. The value of a column that a file does not have is that of its partition, where the
partition is by the column itself, or else the default of the column, or else NULL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import StaticTable, Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.utils.config import Config

from discreet.engines.lakes.lake_table import (
    ICEBERG,
    LakeColumn,
    LakeFile,
    LakeSnapshot,
    SnapshotGone,
    checked_files,
)
from discreet.errors import InvalidParameter
from discreet.plan.model.types import Type

_NONE = "empty"  # the name of the snapshot of a table that has none yet

_TYPES: Mapping[str, Type] = {
    **dict.fromkeys(("int", "long"), Type.INT),
    **dict.fromkeys(("float", "double", "decimal"), Type.FLOAT),
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), Type.TIMESTAMP),
    **dict.fromkeys(("string", "uuid"), Type.TEXT),
    "boolean": Type.BOOL,
    "date": Type.DATE,
}
_EPOCH = dt.datetime(1970, 1, 1)
_FROM_NUMBERS: Mapping[str, Callable[[int], dt.date]] = {
    "date": lambda days: _EPOCH.date() + dt.timedelta(days),
    **dict.fromkeys(("timestamp", "timestamptz"), lambda number: _EPOCH + dt.timedelta(microseconds=number)),
    **dict.fromkeys(
        ("timestamp_ns", "timestamptz_ns"), lambda number: _EPOCH + dt.timedelta(microseconds=number // 1000)
    ),
}
"""How partitions and defaults write days and moments."""


def newest(place: str) -> str:
    """Returns the name of the newest snapshot, and of the schema that the table has with it.

    Raises:
        InvalidParameter: if the metadata cannot be read.
    """
    table = _open_table(place)
    if table is None:
        hint = "Name a catalog of .pyiceberg.yaml, as in iceberg://CATALOG/NAMESPACE.TABLE, or a file of metadata."
        raise InvalidParameter("source", place, "to be an Iceberg table that can be read", hint)
    snapshot = table.current_snapshot()
    told = _NONE if snapshot is None else snapshot.snapshot_id
    return f"iceberg:{table.metadata.table_uuid}:{told}:{table.metadata.current_schema_id}"


def read_snapshot(place: str, snapshot: str) -> LakeSnapshot:
    """Returns what the metadata say of a snapshot.

    Raises:
        SnapshotGone: if they do not have it, or are those of another table.
        InvalidParameter: if it has what cannot be read.
    """
    table = _open_table(place)
    _, uuid, number, schema_id = snapshot.split(":")
    if table is None or str(table.metadata.table_uuid) != uuid:
        raise SnapshotGone
    schema = table.schemas().get(int(schema_id))
    found = None if number == _NONE else table.snapshot_by_id(int(number))
    if schema is None or (found is None and number != _NONE):
        raise SnapshotGone
    root = _local_path(table.location(), place)
    mapping = table.metadata.name_mapping()
    names = {} if mapping is None else {field.field_id: tuple(field.names) for field in mapping.root}
    columns = tuple(_column(field, names.get(field.field_id, ())) for field in schema.fields)
    try:
        files = [] if found is None else [*_files(table, found, schema, place)]
    except OSError:  # a list of its files was removed
        raise SnapshotGone from None
    return LakeSnapshot(root=root, columns=columns, files=checked_files(root, files))


def _open_table(place: str) -> Table | None:
    """Returns a table as its catalog has it now; what a catalog says of a failure may name servers and roles."""
    try:
        if not place.startswith(ICEBERG):
            return StaticTable.from_metadata(place)
        catalog, _, name = place.removeprefix(ICEBERG).partition("/")
        told: Any = Config().get_catalog_config(catalog) or {}  # as it is now, not when pyiceberg was imported
        return load_catalog(catalog, **told).load_table(name)
    except Exception:  # noqa: BLE001 - of any catalog, driver or file system
        return None


def _local_path(address: str, place: str) -> Path:
    """Returns the path of an address in this machine.

    Raises:
        InvalidParameter: if it is elsewhere.
    """
    if urlsplit(address).scheme not in ("", "file"):
        hint = "Files in object stores are not read from Iceberg tables yet. Copy the table to a local disk."
        raise InvalidParameter("source", place, "to have its files on this machine", hint)
    return Path(address.removeprefix("file:").removeprefix("//")).resolve()  # nothing is written as in an address


def _column(field: Any, names: tuple[str, ...]) -> LakeColumn:
    kind = str(field.field_type).partition("(")[0]
    default = _value(field.initial_default, kind)
    return LakeColumn(name=field.name, type=_TYPES.get(kind), field_id=field.field_id, names=names, default=default)


def _files(table: Table, snapshot: Any, schema: Any, place: str) -> Iterator[LakeFile]:
    """Yields the files of a snapshot.

    Raises:
        InvalidParameter: if rows were deleted by files of their own, or a file is not Parquet.
    """
    specs = table.specs()
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            file = entry.data_file
            if file.content != DataFileContent.DATA:
                hint = "Rewrite its files with the deletes applied (rewrite_data_files), then protect it."
                raise InvalidParameter("source", place, "to have no files of deleted rows", hint)
            if file.file_format != FileFormat.PARQUET:
                hint = "Rewrite them as Parquet, then protect it."
                raise InvalidParameter("source", place, "to have files of Parquet alone", hint)
            values = _values(specs[manifest.partition_spec_id], file.partition, schema)
            yield LakeFile(path=_local_path(file.file_path, place), values=values)


def _values(spec: Any, partition: Any, schema: Any) -> dict[str, Any]:
    """Returns the values of columns by which a file is partitioned as they are, by the names of a schema."""
    found = {}
    for position, part in enumerate(spec.fields):
        field = next((field for field in schema.fields if field.field_id == part.source_id), None)
        if field is not None and isinstance(part.transform, IdentityTransform):
            found[field.name] = _value(partition[position], str(field.field_type))
    return found


def _value(raw: Any, kind: str) -> Any:
    """Returns a value as an object of Python; None where there is no such day."""
    try:
        return _FROM_NUMBERS[kind](raw) if kind in _FROM_NUMBERS and isinstance(raw, int) else raw
    except OverflowError:
        return None
