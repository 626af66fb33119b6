"""MariaDB as an engine: it aggregates, and only exact integers of groups come back.

Guarantees: only SQL that `statement` printed reaches it, in which texts are written as their bytes; all readings of
one query are one read-only transaction of one snapshot, in a session whose settings are ours; a deadline and Ctrl-C
stop it; nothing that the server says of a failure reaches the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from discreet import check
from discreet.engines.abstract_engine import Engine, check_columns
from discreet.engines.mariadb.address import MariaDBAddress, MariaDBTable, is_mariadb
from discreet.engines.mariadb.dialect import DIALECT
from discreet.engines.mariadb.ids import doubtful_texts, name_variable, other_ids, variables, with_ids
from discreet.engines.mariadb.innodb_tables import InnoDBTable, describe_source, is_stored
from discreet.engines.mariadb.pcre_patterns import BOUNDED, SLOW, is_quick
from discreet.engines.mariadb.snapshots import SnapshotPool, closed_on_error, fetch_rows, rows_of, run
from discreet.engines.mariadb.text_templates import IDS
from discreet.engines.sources.query_view import query_view
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.relation_printer import StoredTable
from discreet.engines.sql.statement import FetchedRows, Statement, translate_reading
from discreet.errors import InvalidParameter, QueryFailed, UnsupportedQuery
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.nodes import Expression, FunctionCall, Literal, parts_of
from discreet.plan.model.readings import Reading
from discreet.plan.model.relations import tables
from discreet.plan.model.types import Type
from discreet.progress import stoppable

_UNREADABLE = "Its type cannot be read, or this user may not read it: see schema_of, or grant SELECT on it."


class MariaDB(Engine):
    """A database of a MariaDB server, from version 10.11 on.

    A source is a table of it, a `MariaDBTable`, or its address as one text. Passwords are taken from the environment
    (MYSQL_PWD) or ~/.my.cnf, and never from the address.

    Args:
        server: the address of the database, like "mysql://db.example/clinic".
        deadline: seconds after which a question is stopped; None for none.
        lock_timeout: seconds to wait for a locked table.

    >>> MariaDB("mysql://db.example/clinic")
    MariaDB(mysql://db.example/clinic)
    """

    dialect: Dialect = DIALECT

    def __init__(
        self, server: str | MariaDBAddress, *, deadline: float | None = None, lock_timeout: float = 10.0
    ) -> None:
        super().__init__()
        self._server = server if isinstance(server, MariaDBAddress) else MariaDBAddress.of(server)
        settings = {"lock_wait_timeout": str(int(check.positive(lock_timeout=lock_timeout)) + 1)}
        settings["max_statement_time"] = "0" if deadline is None else str(float(check.positive(deadline=deadline)))
        self._deadline = deadline
        self._sessions = SnapshotPool(self._server, settings)
        self._tables: dict[str, InnoDBTable] = {}

    def __repr__(self) -> str:
        return f"MariaDB({self._server})"

    def schema_of(self, source: Any) -> dict[str, Type]:
        """Returns the columns that the table has and this user may read, of types that can be read."""
        return {name: kind for name, (kind, _) in self._describe_source(source).columns.items()}

    def origins(self, source: Any) -> dict[str, str]:
        """Returns the table's address, without a user, and what the server calls it."""
        table = self._table(source)
        return {f"{table.server}/{table.table}": f"mysql:{self._describe_source(source).identity}"}

    def check(self, names: Collection[str], expressions: Collection[Expression]) -> None:
        """Refuses patterns that MariaDB may not find."""
        del names
        for part in (part for expression in expressions for part in parts_of(expression)):
            if isinstance(part, FunctionCall) and part.function in ("matches", "extract") and not _is_quick(part):
                raise UnsupportedQuery(SLOW, BOUNDED)

    def close(self) -> None:
        """Closes the sessions, and forgets the tables."""
        self._sessions.close()
        self._tables.clear()
        self._columns.clear()

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        found = self._describe_source(source)
        stored = {column: kind for column, (kind, _) in found.stored(columns).items()}
        check_columns(name, stored, columns, hint=_UNREADABLE)
        self._tables[name] = found

    def _describe_source(self, source: Any) -> InnoDBTable:
        with self._sessions.transaction() as session:
            return describe_source(session, self._table(source))

    def _table(self, source: Any) -> MariaDBTable:
        """Returns the table of this database that a source names."""
        if is_mariadb(source):
            source = MariaDBTable.of(source)
        if isinstance(source, MariaDBTable):
            if source.server != self._server:
                hint = "Protect it with a separate curator, or leave out the engine: each source then chooses its own."
                raise InvalidParameter("source", str(source.server), f"to be at {self._server}", hint)
            return source
        if not isinstance(source, str) or not source:
            hint = 'Name a table of the server, like "visits".'
            raise InvalidParameter("source", type(source).__name__, "to be a table of MariaDB", hint)
        return MariaDBTable(server=self._server, table=source)

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        stored = {
            name: StoredTable(found.sql, found.stored(self._columns[name]), self._columns[name])
            for name, found in self._tables.items()
        }
        asked = {reading.table, *(() if reading.source is None else tables(reading.source))}
        made = translate_reading(reading, self.dialect, stored)
        texts = doubtful_texts(reading, stored) if IDS in made.sql else []
        return lambda: self._groups(made, sorted(asked), texts)

    def _look(self, name: str) -> str:
        """Returns a query that fails, before the question is sent, if a table is locked, gone or closed to the user."""
        columns = ", ".join(map(self.dialect.quote_name, self._columns[name]))
        return f"SELECT {columns} FROM {self._tables[name].sql} LIMIT 0"

    def _groups(self, made: Statement, names: Sequence[str], texts: Sequence[str]) -> GroupColumns:
        """Reads the snapshot of the present query, which all of its readings have in common."""
        with query_view() as view:
            session = view.once((id(self), "session"), self._sessions.begin, self._sessions.end)

            def read(stopped: threading.Event) -> list[tuple[Any, ...]]:
                for name in names:
                    if not is_stored(session, self._tables[name]):
                        raise QueryFailed
                    rows_of(session, self._look(name))
                return fetch_rows(session, _with_ids(session, made.sql, texts, stopped), stopped)

            with closed_on_error(session):
                rows = stoppable(read, lambda: self._sessions.stop(session), deadline=self._deadline)
        return made.groups(FetchedRows(_convert_rows(made, rows)))


def _with_ids(session: Any, sql: str, texts: Sequence[str], stopped: threading.Event) -> str:
    """Returns a statement behind the table of ids that it needs, if any, which is found by these queries."""
    if IDS not in sql:
        return sql
    doubtful = dict.fromkeys(row[0] for text in texts for row in fetch_rows(session, text, stopped))
    values = variables(other_ids(list(doubtful)))
    for place, value in enumerate(values):
        run(session, f"SET {name_variable(place)} = {value}")
    return with_ids(sql, len(values))


def _convert_rows(made: Statement, rows: list[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """Returns rows whose truth values are truth values, and whose lists are lists of numbers."""
    places = [place for place, kind in enumerate(made.keys) if kind is Type.BOOL]
    if not places and made.finish is not None:
        return rows
    converted = []
    for row in rows:
        values = list(row)
        for place in places:
            values[place] = None if values[place] is None else bool(values[place])
        if made.finish is None:
            start = len(made.keys)
            values[start:] = [tuple(map(int, text.split(","))) for text in values[start:]]
        converted.append(tuple(values))
    return converted


def _is_quick(call: FunctionCall) -> bool:
    _, pattern = call.arguments
    return isinstance(pattern, Literal) and is_quick(str(pattern.value))
