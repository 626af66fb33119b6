"""Objects as files of DuckDB: it asks for ranges of bytes of those that a query has opened, and of no others."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
from fsspec.spec import AbstractFileSystem

from discreet.engines.sources.open_object import SCHEME, ObjectReader, opened_at

_NEVER = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)  # of all: what is opened is one version


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes open objects readable by a database."""
    connection.register_filesystem(_OpenObjects())


class _OpenObjects(AbstractFileSystem):  # type: ignore[misc]
    """The open objects of this process, by their numbers."""

    protocol = SCHEME
    cachable = False

    def open(self, path: str, mode: str = "rb", **_: Any) -> ObjectReader:
        """Opens an object to be read by ranges."""
        del mode
        return ObjectReader(opened_at(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Returns the size of an object."""
        return {"name": path, "size": opened_at(path).size, "type": "file"}

    def glob(self, path: str, **_: Any) -> list[str]:
        """Returns the object alone: a number is no pattern."""
        opened_at(path)
        return [path]

    def exists(self, path: str, **_: Any) -> bool:
        """Returns that an object is open."""
        opened_at(path)
        return True

    def isfile(self, path: str) -> bool:
        """Returns that an object is open."""
        return self.exists(path)

    def modified(self, path: str) -> dt.datetime:
        """Returns one moment for all."""
        opened_at(path)
        return _NEVER
