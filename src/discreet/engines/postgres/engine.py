"""PostgreSQL as an engine: it aggregates, and only exact integers of groups come back.

Guarantees: only SQL that `statement` printed reaches it, with texts passed as parameters; each read is one read-only
transaction of one snapshot, in a session whose settings are ours; a deadline and Ctrl-C stop it; nothing that the
server says of a failure reaches the caller; what fails on the way leaves no question in the server's log, which says
FETCH.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from discreet import check
from discreet.engines.abstract_engine import Engine, check_columns
from discreet.engines.postgres.dialect import DIALECT
from discreet.engines.postgres.posix_patterns import CERTAINLY, UNCERTAIN, is_certain
from discreet.engines.postgres.sessions import Sessions, fetch_rows
from discreet.engines.postgres.table_description import TableDescription, describe_source
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.relation_printer import StoredTable
from discreet.engines.sql.statement import FetchedRows, Statement, translate_reading
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.nodes import Expression, FunctionCall, Literal, parts_of
from discreet.plan.model.readings import Reading
from discreet.plan.model.relations import tables
from discreet.plan.model.types import Type
from discreet.postgres_url import is_postgres
from discreet.progress import stoppable
from discreet.server_address import ServerAddress, ServerTable

_PARAMETER = re.compile(r"\$(q[0-9]+)")
_AMOUNT = re.compile(r"[0-9]+(kB|MB|GB)")
_UNREADABLE = "Its type cannot be read, or this role may not read it: see schema_of, or grant SELECT on it."
_CANCEL = 5.0  # seconds in which a server is asked to stop


class Postgres(Engine):
    """A database of a PostgreSQL server, from version 15 on.

    A source is "SCHEMA.TABLE", "TABLE" of the schema public, a `ServerTable`, or its address as one text. Passwords are
    taken from the environment, a service file or .pgpass, and never from the address.

    Args:
        server: the address of the database, like "postgresql://db.example/clinic".
        deadline: seconds after which a question is stopped; None for none.
        lock_timeout: seconds to wait for a locked table.
        work_mem: what one step of a plan may keep in memory, such as "256MB"; None leaves it to the server.

    >>> Postgres("postgresql://db.example/clinic")
    Postgres(postgresql://db.example/clinic)
    """

    dialect: Dialect = DIALECT

    def __init__(
        self,
        server: str | ServerAddress,
        *,
        deadline: float | None = None,
        lock_timeout: float = 10.0,
        work_mem: str | None = None,
    ) -> None:
        super().__init__()
        self._server = server if isinstance(server, ServerAddress) else ServerAddress.of(server)
        settings = {"lock_timeout": _milliseconds(check.positive(lock_timeout=lock_timeout))}
        if deadline is not None:
            settings["statement_timeout"] = _milliseconds(check.positive(deadline=deadline))
        if work_mem is not None:
            if not _AMOUNT.fullmatch(work_mem):
                raise InvalidParameter("work_mem", work_mem, "to be an amount of memory", "Pass e.g. work_mem='256MB'.")
            settings["work_mem"] = work_mem
        self._deadline = deadline
        self._sessions = Sessions(self._server, settings)
        self._tables: dict[str, TableDescription] = {}

    def __repr__(self) -> str:
        return f"Postgres({self._server})"

    def schema_of(self, source: Any) -> dict[str, Type]:
        """Returns the columns that the table has and this role may read, of types that can be read."""
        return {name: kind for name, (kind, _) in self._describe_source(source).columns.items()}

    def origins(self, source: Any) -> dict[str, str]:
        """Returns the table's address, without a user, and what the server calls it."""
        table = self._table(source)
        return {f"{table.server}/{table.schema}.{table.table}": f"postgresql:{self._describe_source(source).identity}"}

    def check(self, names: Collection[str], expressions: Collection[Expression]) -> None:
        """Refuses groups of patterns that PostgreSQL would find elsewhere, and texts that it cannot hold."""
        del names
        for part in (part for expression in expressions for part in parts_of(expression)):
            if isinstance(part, FunctionCall) and part.function == "extract" and not _is_certain(part):
                raise UnsupportedQuery(UNCERTAIN, CERTAINLY)
            if isinstance(part, Literal) and isinstance(part.value, str) and "\0" in part.value:
                raise UnsupportedQuery("A text in PostgreSQL cannot contain U+0000.", "Leave it out.")

    def close(self) -> None:
        """Closes the sessions, and forgets the tables."""
        self._sessions.close()
        self._tables.clear()
        self._columns.clear()

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        found = self._describe_source(source)
        check_columns(name, {column: kind for column, (kind, _) in found.columns.items()}, columns, hint=_UNREADABLE)
        self._tables[name] = found

    def _describe_source(self, source: Any) -> TableDescription:
        with self._sessions.transaction() as session:
            return describe_source(session, self._table(source))

    def _table(self, source: Any) -> ServerTable:
        """Returns the table of this database that a source names."""
        if is_postgres(source):
            source = ServerTable.of(source)
        if isinstance(source, ServerTable):
            if source.server != self._server:
                hint = "Protect it with a separate curator, or leave out the engine: each source then chooses its own."
                raise InvalidParameter("source", str(source.server), f"to be at {self._server}", hint)
            return source
        if not isinstance(source, str) or not source:
            hint = 'Name a table of the server, like "public.visits".'
            raise InvalidParameter("source", type(source).__name__, "to be a table of PostgreSQL", hint)
        return ServerTable.within(self._server, source)

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        stored = {
            name: StoredTable(found.sql, dict(found.columns), self._columns[name])
            for name, found in self._tables.items()
        }
        asked = {reading.table, *(() if reading.source is None else tables(reading.source))}
        made, looks = translate_reading(reading, self.dialect, stored), [self._look(name) for name in sorted(asked)]
        return lambda: self._groups(made, looks)

    def _look(self, name: str) -> str:
        """Returns a query that fails, before the question is sent, if a table is locked, gone or closed to the role."""
        columns = ", ".join(map(self.dialect.quote_name, self._columns[name]))
        return f"SELECT {columns} FROM {self._tables[name].sql} LIMIT 0"

    def _groups(self, made: Statement, looks: Sequence[str]) -> GroupColumns:
        names = list(dict.fromkeys(_PARAMETER.findall(made.sql)))
        places = {name: f"${place}" for place, name in enumerate(names, start=1)}
        sql = _PARAMETER.sub(lambda found: places[found[1]], made.sql)
        values = [made.parameters[name] for name in names]
        with self._sessions.transaction() as session:

            def read(stopped: threading.Event) -> list[tuple[Any, ...]]:
                for look in looks:
                    session.execute(look)
                return fetch_rows(session, sql, values, stopped)

            rows = stoppable(read, lambda: session.cancel_safe(timeout=_CANCEL), deadline=self._deadline)
        return made.groups(FetchedRows(rows))


def _is_certain(extract: FunctionCall) -> bool:
    _, pattern = extract.arguments
    return isinstance(pattern, Literal) and is_certain(str(pattern.value))


def _milliseconds(seconds: Any) -> str:
    """Returns a time as the server reads it: rounded up, for none means no limit."""
    return f"{min(int(seconds * 1000) + 1, (1 << 31) - 1)}ms"
