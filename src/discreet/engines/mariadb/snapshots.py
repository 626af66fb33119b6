"""Sessions of a MariaDB server: opened when they are needed, kept for the next read, and never shared by processes.

A read is one read-only transaction of one snapshot, which is taken before its first statement. A session says all that
results depend on: what the server's files, a statement at its start (`init_connect`) or a role would set counts for
nothing.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from discreet.engines.mariadb.address import MariaDBAddress
from discreet.engines.mariadb.text_templates import COLLATION, LONGEST_ID
from discreet.errors import InvalidParameter
from discreet.lazy import load

OLDEST = (10, 11)  # whose collations have the letter case of Unicode 14.0
_ROWS_AT_ONCE = 10_000  # fetched between two moments at which a read can be stopped
_SECONDS_TO_CONNECT = 10
_LARGEST_PACKET = 1 << 30
_FORGOTTEN: list[Any] = []  # sessions of a parent process: to close them would close the parent's

_MODES = (
    *("PIPES_AS_CONCAT", "NO_BACKSLASH_ESCAPES", "NO_UNSIGNED_SUBTRACTION"),
    *("NO_ZERO_DATE", "NO_ZERO_IN_DATE"),  # a text of such a day is none
)

SETTINGS: Mapping[str, str] = {
    "sql_mode": f"'{','.join(_MODES)}'",
    "time_zone": "'+00:00'",
    "old_mode": "''",
    "default_regex_flags": "''",
    # Longer keys are cut off by a sort: rows of one person would be those of several, and have several limits. This
    # holds every text of TEXT, and every id. A sort fails without room for fifteen rows of keys; there is room for
    # sixty such texts in one key, and what is not needed is not used.
    "max_sort_length": str(3 * LONGEST_ID),
    "sort_buffer_size": str(1 << 28),
    "group_concat_max_len": str(1 << 30),
    "div_precision_increment": "4",
    "sql_select_limit": "18446744073709551615",
    "sql_big_selects": "1",
    "sql_auto_is_null": "0",
    "system_versioning_asof": "DEFAULT",
    "in_predicate_conversion_threshold": "0",
    "completion_type": "0",
    "sql_quote_show_create": "1",
    "query_cache_type": "0",
    "slow_query_log": "0",
    "max_error_count": "0",  # warnings repeat values
    "optimizer_switch": "'default,derived_merge=off,condition_pushdown_for_derived=off,split_materialized=off'",
    "tx_isolation": "'REPEATABLE-READ'",
}
"""What a session sets for itself; a value is computed once, in the subquery that names it, and not where it is used."""


def driver() -> Any:
    """Returns PyMySQL.

    Raises:
        MissingExtra: if it is not installed.
    """
    return load("pymysql", "A table of a MariaDB server")


class SnapshotPool:
    """The open sessions of one server.

    Args:
        server: where it is.
        settings: of each session, in addition to `SETTINGS`.
    """

    def __init__(self, server: MariaDBAddress, settings: Mapping[str, str]) -> None:
        self._server, self._settings = server, {**SETTINGS, **settings}
        self._idle: list[Any] = []
        self._process, self._lock = os.getpid(), threading.Lock()

    def close(self) -> None:
        """Closes the sessions that are not at work."""
        with self._lock:
            idle, self._idle = self._own(), []
        for session in idle:
            with suppress(Exception):
                session.close()

    def __del__(self) -> None:
        """Closes the sessions of an engine that was not closed."""
        with suppress(Exception):
            self.close()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Yields a session in a read-only transaction of one snapshot; one that fails is not used again.

        Raises:
            InvalidParameter: if the server cannot be reached.
        """
        session = self.begin()
        try:
            with closed_on_error(session):
                yield session
        finally:
            self.end(session)

    def end(self, session: Any) -> None:
        """Ends a transaction; the session is kept for the next one, unless it has failed."""
        if not session.open:
            return
        with suppress(Exception), closed_on_error(session):
            run(session, "ROLLBACK")
            with self._lock:
                self._idle.append(session)

    def stop(self, session: Any) -> None:
        """Stops what a session does, by another one."""
        other = self._connect()
        try:
            run(other, f"KILL QUERY {session.thread_id()}")
        finally:
            other.close()

    def begin(self) -> Any:
        """Returns a session in a transaction; one whose connection was lost meanwhile is replaced.

        Raises:
            InvalidParameter: if the server cannot be reached.
        """
        with self._lock:
            idle = self._own()
            session = idle.pop() if idle else None
        if session is not None:
            try:
                return self._begin(session)
            except driver().Error:
                session._force_close()
        return self._begin(self._open_session())

    def _own(self) -> list[Any]:
        """Returns the idle sessions of this process."""
        if self._process != os.getpid():
            _FORGOTTEN.extend(self._idle)
            self._idle, self._process = [], os.getpid()
        return self._idle

    def _begin(self, session: Any) -> Any:
        run(session, f"SET SESSION {', '.join(f'{name} = {value}' for name, value in self._settings.items())}")
        run(session, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        return session

    def _open_session(self) -> Any:
        session = self._connect()
        found = re.match(r"(?:5\.5\.5-)?([0-9]+)\.([0-9]+).*MariaDB", str(rows_of(session, "SELECT VERSION()")[0][0]))
        if found is None or (int(found[1]), int(found[2])) < OLDEST:
            session.close()
            condition = "to be a server of MariaDB 10.11 or later"
            raise InvalidParameter("source", str(self._server), condition, "Copy the table to one, or to a file.")
        run(session, f"SET NAMES utf8mb4 COLLATE {COLLATION}")
        run(session, "SET ROLE NONE")  # what may be read is what this user was granted
        return session

    def _connect(self) -> Any:
        pymysql = driver()
        try:
            return pymysql.connect(
                **self._server.arguments(),
                database=self._server.database,
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=_SECONDS_TO_CONNECT,
                max_allowed_packet=_LARGEST_PACKET,
                program_name="discreet",
            )
        except (pymysql.Error, OSError, RuntimeError, ValueError):  # whose text may repeat what it was given
            hint = (
                "Check that it runs, and that MYSQL_PWD or ~/.my.cnf give you access: try mariadb. "
                "`discreet.engines.mariadb.reader_account.role_statements` returns the SQL that makes a user."
            )
            raise InvalidParameter("source", str(self._server), "to be a server that can be reached", hint) from None


@contextmanager
def closed_on_error(session: Any) -> Iterator[None]:
    """Closes a session if the block fails, at once: one that is stopped has rows to send, for which `close` waits."""
    try:
        yield
    except BaseException:
        session._force_close()
        raise


def run(session: Any, sql: str) -> None:
    """Runs a statement without a result."""
    with session.cursor() as cursor:
        cursor.execute(sql)


def rows_of(session: Any, sql: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the rows of a query, whose values are texts that travel in it."""
    with session.cursor() as cursor:
        cursor.execute(sql, values or None)
        return list(cursor.fetchall())


def fetch_rows(session: Any, sql: str, stopped: threading.Event) -> list[tuple[Any, ...]]:
    """Fetches the rows of a query as they come.

    Raises:
        TimeoutError: if the event was set before all rows were there.
    """
    rows: list[tuple[Any, ...]] = []
    with session.cursor(load("pymysql.cursors", "A table of a MariaDB server").SSCursor) as cursor:
        cursor.execute(sql)
        while True:
            some = cursor.fetchmany(_ROWS_AT_ONCE)
            if stopped.is_set():  # what was fetched so far is not all
                raise TimeoutError
            rows += some
            if len(some) < _ROWS_AT_ONCE:
                return rows
