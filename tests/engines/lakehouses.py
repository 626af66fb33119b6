"""Tables of Delta and Iceberg: written by their libraries, and Delta logs written by hand where the library cannot."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

# ---------------------------------------------------------------------------------------------------------------- Delta

LOG = "_delta_log"
Files = Mapping[str, tuple[pa.Table, Mapping[str, Any]]]
"""Rows by the name of their file, with what else the log says of it."""

_VERSION_2 = {"minReaderVersion": 2, "minWriterVersion": 5}


def delta(path: Path, *commits: pa.Table, partition_by: Sequence[str] = (), **options: Any) -> Path:
    """Writes a table, a version for each of the commits; more of it if it is there."""
    for rows in commits:
        by = [*partition_by] or None
        deltalake.write_deltalake(path, rows, mode="append", partition_by=by, **options)
    return path


def vacuum(path: Path) -> None:
    """Removes all files that the newest version does not list."""
    table = deltalake.DeltaTable(path)
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def version_of(path: Path) -> int:
    return deltalake.DeltaTable(path).version()


def field(name: str, kind: Any, number: int | None = None, physical: str = "") -> dict[str, Any]:
    """Describes a column of a log; with a number, one of a table that maps columns."""
    mapped = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": {} if number is None else mapped}


def features(*names: str) -> dict[str, Any]:
    """Describes the protocol of a table with these features."""
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}


def by_hand(
    path: Path,
    fields: Sequence[Mapping[str, Any]],
    files: Files,
    *,
    mode: str = "none",
    protocol: Mapping[str, Any] = _VERSION_2,
    partition_by: Sequence[str] = (),
    uuid: str = "11111111-2222-3333-4444-555555555555",
) -> Path:
    """Writes a table of one version, with what else the log shall say of each file."""
    (path / LOG).mkdir(parents=True)
    described = {
        "id": uuid,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
        "partitionColumns": list(partition_by),
        "configuration": {} if mode == "none" else {"delta.columnMapping.mode": mode},
        "createdTime": 1,
    }
    log: list[dict[str, Any]] = [{"protocol": dict(protocol)}, {"metaData": described}]
    for name, (rows, told) in files.items():
        pq.write_table(rows, path / name)
        action = {"path": name, "partitionValues": {}, "size": (path / name).stat().st_size, "modificationTime": 1}
        stats = json.dumps({"numRecords": rows.num_rows})
        log.append({"add": {**action, "dataChange": True, "stats": stats, **told}})
    (path / LOG / f"{0:020}.json").write_text("\n".join(map(json.dumps, log)))
    return path


def edit_log(path: Path, before: str, after: str) -> None:
    """Changes the first entry of a log."""
    entry = path / LOG / f"{0:020}.json"
    text = entry.read_text()
    assert before in text
    entry.write_text(text.replace(before, after))


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def vector(rows: Sequence[int]) -> dict[str, Any]:
    """Returns the action's field for deleted rows below 65,536, inside of the log: one array of a roaring bitmap."""
    numbers = b"".join(struct.pack("<H", row) for row in rows)
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + numbers
    content = struct.pack("<iqI", 1681511377, 1, 0) + bitmap
    padded = content + bytes(-len(content) % 4)
    text = ""
    for place in range(0, len(padded), 4):
        (number,) = struct.unpack(">I", padded[place : place + 4])
        text += "".join(_Z85[number // 85**power % 85] for power in range(4, -1, -1))
    told = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(content), "cardinality": len(rows)}
    return {"deletionVector": told}


# -------------------------------------------------------------------------------------------------------------- Iceberg

CATALOG = "local"


@contextmanager
def catalog(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlCatalog]:
    """Opens a catalog in a SQLite file, which pyiceberg's configuration names `local`."""
    address = f"sqlite:///{folder}/catalog.db"
    monkeypatch.setenv(f"PYICEBERG_CATALOG__{CATALOG.upper()}__URI", address)
    found = SqlCatalog(CATALOG, uri=address, warehouse=f"file://{folder}/warehouse")
    found.create_namespace_if_not_exists("care")
    try:
        yield found
    finally:
        found.engine.dispose()


def iceberg(found: SqlCatalog, *commits: pa.Table, name: str = "visits", **options: Any) -> Table:
    """Writes a table, a snapshot for each of the commits."""
    table = found.create_table(f"care.{name}", schema=commits[0].schema, **options)
    for rows in commits:
        if rows.num_rows:
            table.append(rows)
    return table


def address_of(name: str = "visits") -> str:
    return f"iceberg://{CATALOG}/care.{name}"
