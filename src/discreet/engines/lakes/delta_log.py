"""Delta tables: what the log of a table says of one of its versions, as `deltalake` reads it.

Columns are found in files by their names; by their physical names or ids where the table maps columns (`name` and
`id` are the modes of the protocol). Values of partitions are in the log alone, already of their types. Rows that a
deletion vector names were deleted. A feature of the protocol that is not listed here is refused: rows could be read
that are no longer there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from discreet.engines.lakes.lake_table import LakeColumn, LakeFile, LakeSnapshot, SnapshotGone, checked_files
from discreet.engines.sources.file_set import check_plain
from discreet.errors import InvalidParameter
from discreet.lazy import pa
from discreet.plan.model.types import Type

_VECTORS = "deletionVectors"
_FEATURES = frozenset(
    (
        _VECTORS,
        "columnMapping",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    )
)
"""What a reader must know of the protocol, and this one does."""

_TYPES: Mapping[str, Type] = {
    **dict.fromkeys(("long", "integer", "short", "byte"), Type.INT),
    **dict.fromkeys(("double", "float", "decimal"), Type.FLOAT),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), Type.TIMESTAMP),
    "boolean": Type.BOOL,
    "string": Type.TEXT,
    "date": Type.DATE,
}
_PHYSICAL, _ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"


def newest(place: str) -> str:
    """Returns the name of the newest version: with the id of the table, for a later one may lie in the same folder.

    Raises:
        InvalidParameter: if the log cannot be read.
    """
    check_plain(Path(place))
    table = _open_table(place, None)
    if table is None:
        hint = "Open it with another program to see what is wrong, or write its rows to Parquet."
        raise InvalidParameter("source", place, "to be a Delta table that can be read", hint)
    return _name(table)


def read_snapshot(place: str, snapshot: str) -> LakeSnapshot:
    """Returns what the log says of a version.

    Raises:
        SnapshotGone: if the log does not have it, or is that of another table.
        InvalidParameter: if it has what cannot be read.
    """
    table = _open_table(place, int(snapshot.rpartition(":")[2]))
    if table is None or _name(table) != snapshot:
        raise SnapshotGone
    features = frozenset(table.protocol().reader_features or ())
    if not features <= _FEATURES:
        told, hint = ", ".join(sorted(features - _FEATURES)), "Write its rows as a table without it."
        raise InvalidParameter("source", place, f"to be readable without the feature {told}", hint)
    metadata, root = table.metadata(), Path(place)
    mode = metadata.configuration.get("delta.columnMapping.mode", "none")
    parts = frozenset(metadata.partition_columns)
    fields = json.loads(table.schema().to_json())["fields"]
    return LakeSnapshot(
        root=root,
        columns=tuple(_column(field, mode, is_part=field["name"] in parts) for field in fields),
        files=checked_files(root, [*_files(table, root, has_vectors=_VECTORS in features)]),
    )


def _open_table(place: str, version: int | None) -> DeltaTable | None:
    try:
        return DeltaTable(place, version=version)
    except DeltaError:
        return None


def _name(table: DeltaTable) -> str:
    return f"delta:{table.metadata().id}:{table.version()}"


def _column(field: Mapping[str, Any], mode: str, *, is_part: bool) -> LakeColumn:
    kind, name = field["type"], field["name"]
    read = _TYPES.get(kind.partition("(")[0]) if isinstance(kind, str) else None
    if is_part:
        return LakeColumn(name=name, type=read)
    if mode == "id":
        return LakeColumn(name=name, type=read, field_id=int(field["metadata"][_ID]))
    return LakeColumn(name=name, type=read, names=(name if mode == "none" else field["metadata"][_PHYSICAL],))


def _files(table: DeltaTable, root: Path, *, has_vectors: bool) -> Iterator[LakeFile]:
    """Yields the files of a version; paths in the log are relative, and written as in an address."""
    try:
        deleted = _deleted_rows(table) if has_vectors else {}
    except DeltaError:
        hint = "Rewrite its files without deleted rows (REORG TABLE ... APPLY (PURGE)), then protect it."
        raise InvalidParameter("source", str(root), "to have deletion vectors that can be read", hint) from None
    for row in pa.table(table.get_add_actions()).select(["path", *_partition(table)]).to_pylist():
        path = _path(root, row["path"])
        yield LakeFile(path=path, values=row.get("partition") or {}, deleted=deleted.pop(str(path), None))
    if deleted:
        raise InvalidParameter("source", str(root), "to have deletion vectors of its own files")


def _path(root: Path, written: str) -> Path:
    """Returns the path of a file; an address is made one that lies in no folder of a table."""
    return Path(os.path.normpath(Path("/" if urlsplit(written).scheme else root, unquote(written))))


def _partition(table: DeltaTable) -> list[str]:
    return ["partition"] if table.metadata().partition_columns else []


def _deleted_rows(table: DeltaTable) -> dict[str, Any]:
    """Returns the numbers of the rows that were deleted, by the paths of their files."""
    found = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for uri, kept in zip(batch.column("filepath"), batch.column("selection_vector"), strict=True):
            place = np.flatnonzero(~kept.values.to_numpy(zero_copy_only=False))
            found[os.path.normpath(unquote(urlsplit(uri.as_py()).path))] = place
    return found
