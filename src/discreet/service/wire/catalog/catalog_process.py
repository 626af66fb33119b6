"""The process that answers catalog queries: a line of JSON in, a line of JSON out, no file and no table behind it.

It is killed when a query takes too long, and a text that crashes the parser ends only this process.
"""

from __future__ import annotations

import datetime as dt
import json
import resource
import sys
from collections import OrderedDict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TextIO

import duckdb

from discreet.errors import DiscreetError, UnknownTable, UnsupportedQuery
from discreet.service.wire.catalog import catalog_functions, catalog_tables
from discreet.sql.catalog_queries import CatalogScope, catalog_query

MOST_ROWS = 20_000
_KEPT = 16  # engines; each holds the tables that one person sees
_OIDS = {
    "BOOLEAN": 16,
    "TINYINT": 21,
    "SMALLINT": 21,
    "INTEGER": 23,
    "BIGINT": 20,
    "UINTEGER": 26,
    "FLOAT": 700,
    "DOUBLE": 701,
    "HUGEINT": 1700,
    "DATE": 1082,
    "TIMESTAMP": 1114,
    "VARCHAR[]": 1009,
    "SMALLINT[]": 1005,
    "INTEGER[]": 1007,
    "BIGINT[]": 1016,
    "UINTEGER[]": 1028,
}  # all others are texts
_MEMORY = 1 << 30  # bytes
_HINT = "Ask the catalog for tables and columns; see docs/postgresql_wire.md."

Reply = dict[str, Any]


class Catalogs:
    """Engines in memory, one for each view of the declared tables."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, duckdb.DuckDBPyConnection] = OrderedDict()

    def reply(self, request: Mapping[str, Any]) -> Reply:
        """Returns columns and rows, or why there are none."""
        try:
            return self._answer_request(request)
        except UnknownTable as error:
            return {"error": "UnknownTable", "name": error.name, "known": error.known[:50]}
        except UnsupportedQuery as error:
            place = {"position": error.position} if error.position else {}
            return {"error": "UnsupportedQuery", "reason": error.reason, "hint": error.hint, **place}
        except (DiscreetError, duckdb.Error, RecursionError, ValueError):
            return {"error": "UnsupportedQuery", "reason": "The catalog cannot answer this query.", "hint": _HINT}

    def _answer_request(self, request: Mapping[str, Any]) -> Reply:
        scope = CatalogScope(
            tables=catalog_tables.tables(),
            functions=catalog_functions.FUNCTIONS,
            settings=request["settings"],
            user=request["user"],
            database=request["database"],
        )
        made = catalog_query(request["sql"], request["parameters"], scope)
        cursor = self._engine(request).execute(made)
        columns = [(name, _OIDS.get(str(kind), 25)) for name, kind, *_ in cursor.description or ()]
        rows = cursor.fetchmany(MOST_ROWS + 1)
        if len(rows) > MOST_ROWS:
            raise UnsupportedQuery(f"A catalog query returns at most {MOST_ROWS} rows.", "Add a LIMIT.")
        return {"columns": columns, "rows": [[_plain(value) for value in row] for row in rows]}

    def _engine(self, request: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
        key = json.dumps([request["facts"], request["user"], request["database"]], sort_keys=True)
        if key not in self._kept:
            made = catalog_tables.database(request["facts"], user=request["user"], name=request["database"])
            self._kept[key] = made
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)[1].close()
        self._kept.move_to_end(key)
        return self._kept[key].cursor()


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it; an array as PostgreSQL writes it."""
    if isinstance(value, list):
        return "{" + ",".join(map(_element, value)) + "}"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.date):
        return value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()
    return value if isinstance(value, int | float | str | None) else str(value)


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def confine() -> None:
    """Limits this process: it writes no files, uses bounded memory, and leaves no dump of its memory."""
    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_DATA, _MEMORY),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(limit, (most, most))


def serve(source: TextIO, sink: TextIO) -> None:
    """Answers line by line until there is no more."""
    catalogs = Catalogs()
    for line in source:
        request = json.loads(line)
        reply = catalogs.reply(request) if request else {"ready": True}
        sink.write(json.dumps(reply) + "\n")
        sink.flush()


if __name__ == "__main__":
    confine()
    serve(sys.stdin, sys.stdout)
