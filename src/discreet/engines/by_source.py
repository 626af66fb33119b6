"""Engines chosen by their sources: each table is read where it is, and a question about tables of one engine by that.

Files and frames are read by DuckDB in this process; a table of a server or a cluster, there. Nothing is carried from
one engine to another: what joins tables of two of them is refused before anything is charged.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from discreet.engines.abstract_engine import BySource, Engine, SourceKind
from discreet.errors import InvalidParameter
from discreet.lazy import Module, load
from discreet.postgres_url import is_postgres
from discreet.server_address import MYSQL, ServerAddress, ServerTable

if TYPE_CHECKING:
    from discreet.engines.duckdb import engine as embedded
else:  # DuckDB, which is loaded with the first curator that reads files
    embedded = Module("discreet.engines.duckdb.engine")


def _server(source: Any) -> Hashable | None:
    if isinstance(source, ServerTable):
        return source.server
    return ServerTable.of(source).server if is_postgres(source) else None


def _postgres(server: ServerAddress) -> Engine:
    """Returns an engine of a server; it is loaded only where there is a server."""
    made: Engine = load("discreet.engines.postgres.engine", "A table of a PostgreSQL server").Postgres(server)
    return made


def _is_mariadb(source: Any) -> bool:
    return isinstance(source, str) and source.startswith(MYSQL)


def _mariadb_server(source: Any) -> Hashable | None:
    """Returns the server of a table's address; its classes are loaded only where there is one."""
    if not _is_mariadb(source):
        return None
    server: Hashable = _mariadb_module("address").MariaDBTable.of(source).server
    return server


def _mariadb(server: Any) -> Engine:
    made: Engine = _mariadb_module("engine").MariaDB(server)
    return made


def _mariadb_module(name: str) -> Any:
    return load(f"discreet.engines.mariadb.{name}", "A table of a MariaDB server")


_SPARK = re.compile(r"(?:(?:spark|sc)://[^/]+|local(?:\[[^]/]*\])?)")


def _cluster(source: Any) -> Hashable | None:
    """Returns the address of a Spark cluster that a table's begins with, or the session of a DataFrame."""
    if isinstance(source, str):
        address, _, table = source.rpartition("/")
        return address if table and "://" in address and _SPARK.fullmatch(address) else None
    if type(source).__module__.startswith("pyspark."):
        session: Hashable = getattr(source, "sparkSession", None)
        return session
    return None


def _spark(session: Any) -> Engine:
    made: Engine = load("discreet.engines.spark.engine", "A table of a Spark cluster").Spark(session)
    return made


KINDS: tuple[SourceKind, ...] = (
    SourceKind(_server, _postgres),
    SourceKind(_mariadb_server, _mariadb),
    SourceKind(_cluster, _spark),
)
"""Kinds of sources besides files and frames."""


def engine_at(address: str | None) -> Engine | None:
    """Returns the engine of a server, whose tables are sources; None without an address.

    Raises:
        InvalidParameter: if the address is none of a server.
    """
    if address is None:
        return None
    if is_postgres(address):
        return _postgres(ServerAddress.of(address))
    if _is_mariadb(address):
        return _mariadb(address)
    if address == "spark" or _SPARK.fullmatch(address):
        return _spark(None if address == "spark" else address)
    hint = (
        "Write postgresql://HOST/DATABASE, mysql://HOST/DATABASE or spark://HOST:7077, or leave it out: files are read "
        "without one."
    )
    raise InvalidParameter("engine", address, "to be the address of a server", hint)


def by_source() -> Engine:
    """Returns an engine that reads files and frames by DuckDB, embedded, and tables of servers by their servers.

    >>> import pyarrow
    >>> with by_source() as engine:
    ...     engine.schema_of(pyarrow.table({"age": [40, 60], "ward": ["A", "B"]}))
    {'age': <Type.INT: 'int'>, 'ward': <Type.TEXT: 'text'>}
    """
    return BySource(embedded.DuckDB(), KINDS)
