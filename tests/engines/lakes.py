"""Rows written as many files, in every form that a steward's folder may have."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

Row = Mapping[str, Any]
ARROW = {"patient": pa.int64(), "ward": pa.string(), "age": pa.int64(), "charge": pa.float64(), "kind": pa.string()}
PARTITION = "ward"


def table(rows: Sequence[Row], names: Iterable[str] = ARROW) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], ARROW[name]) for name in names})


def parquet(rows: Sequence[Row], path: Path, names: Iterable[str] = ARROW) -> None:
    pq.write_table(table(rows, names), path.with_suffix(".parquet"), row_group_size=7)


def separated(rows: Sequence[Row], names: Sequence[str], delimiter: str = ",") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(names)
    writer.writerows([["" if row[name] is None else row[name] for name in names] for row in rows])
    return text.getvalue().encode()


def lines(rows: Sequence[Row], names: Sequence[str]) -> bytes:
    return "".join(f"{json.dumps({name: row[name] for name in names})}\n" for row in rows).encode()


def packed(content: bytes, path: Path) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(content)


WRITERS: Mapping[str, Callable[[Sequence[Row], Path, Sequence[str]], object]] = {
    "parquet": parquet,
    "csv": lambda rows, path, names: path.with_suffix(".csv").write_bytes(separated(rows, names)),
    "csv.gz": lambda rows, path, names: path.with_suffix(".csv.gz").write_bytes(gzip.compress(separated(rows, names))),
    "csv.zst": lambda rows, path, names: packed(separated(rows, names), path.with_suffix(".csv.zst")),
    "tsv": lambda rows, path, names: path.with_suffix(".tsv").write_bytes(separated(rows, names, "\t")),
    "ndjson": lambda rows, path, names: path.with_suffix(".ndjson").write_bytes(lines(rows, names)),
    "jsonl.gz": lambda rows, path, names: path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(lines(rows, names))),
    "feather": lambda rows, path, names: feather.write_feather(table(rows, names), str(path.with_suffix(".feather"))),
    "arrow": lambda rows, path, names: stream(table(rows, names), path.with_suffix(".arrow")),
}
"""How rows are written as one file of a format, some of their columns only."""


def stream(rows: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), rows.schema) as out:
        out.write_table(rows, max_chunksize=5)


def scattered(rows: Sequence[Row], folder: Path, kind: str, files: int = 3) -> Path:
    """Rows in some files, with their columns in different orders."""
    folder.mkdir(parents=True)
    names = list(ARROW)
    for place in range(files):
        turned = names[place:] + names[:place]
        WRITERS[kind](rows[place::files], folder / f"part{place}", turned)
    return folder


def partitioned(rows: Sequence[Row], folder: Path, kind: str) -> Path:
    """Rows in a folder for each ward, whose files do not have the column; wards are in no order."""
    folder.mkdir(parents=True)
    rest = [name for name in ARROW if name != PARTITION]
    for ward in dict.fromkeys(row[PARTITION] for row in rows):
        below = folder / f"{PARTITION}={'__HIVE_DEFAULT_PARTITION__' if ward is None else ward}"
        below.mkdir()
        WRITERS[kind]([row for row in rows if row[PARTITION] == ward], below / "part", rest)
    return folder
