"""The tables of PostgreSQL servers that a file declares."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.curator.config.toml_file import Config, ProtectedTable
from discreet.postgres_url import is_postgres
from discreet.server_address import ServerAddress, ServerTable


def tables_on_servers(config: Config) -> list[tuple[ServerTable, Sequence[str]]]:
    """Returns the declared tables of PostgreSQL servers, and of each with declared types the columns that are named."""
    declared = [(table.source, _columns(table)) for table in config.tables]
    declared += [(table.source, tuple(table.types or ())) for table in config.public]
    found: list[tuple[ServerTable, Sequence[str]]] = []
    for source, columns in ((str(source), columns) for source, columns in declared if not isinstance(source, tuple)):
        if is_postgres(source):
            found.append((ServerTable.of(source), columns))
        elif is_postgres(config.engine):
            found.append((ServerTable.within(ServerAddress.of(str(config.engine)), source), columns))
    return found


def _columns(table: ProtectedTable) -> tuple[str, ...]:
    """Returns the columns that a table's declarations name; none, which means all, if it declares no types."""
    types = table.declared.get("types")
    ids = (table.unit.partition("->")[0].strip(),) if isinstance(table.unit, str) else table.unit or ()
    others = (*ids, *table.declared.get("bounds", ()), *table.declared.get("keys", ()))
    return tuple(dict.fromkeys((*types, *others))) if types else ()
