"""Which files a source is read from: what tells that two sources are the same data without looking at the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.engines.duckdb.sources import FileTable, existing


def files_of(source: Any) -> dict[str, str]:
    """For each file of a source its path, links followed, and the file that is there now, as device and inode.

    Two paths to one file, by a link of either kind or because it was moved, have the same device and inode. A table of
    a database is named with its file. What lies in memory has no files.

    >>> files_of([{"age": 40}])
    {}

    Raises:
        InvalidParameter: if a file is not there.
    """
    if isinstance(source, FileTable):
        table = f"#{source.schema}.{source.table}".casefold()  # DuckDB does not tell letter cases apart
        return {f"{path}{table}": f"{file}{table}" for path, file in _found([source.path]).items()}
    if isinstance(source, str | Path):
        return _found([source])
    if isinstance(source, Sequence) and source and all(isinstance(path, str | Path) for path in source):
        return _found(source)
    return {}


def _found(paths: Sequence[str | Path]) -> dict[str, str]:
    found = {}
    for path in map(existing, paths):
        state = path.stat()
        found[str(path)] = f"{state.st_dev}:{state.st_ino}"
    return found
