"""Sessions of a PostgreSQL server: opened when they are needed, kept for the next read, and never shared by processes.

A read is one transaction, read-only and of one snapshot. Its query is declared as a cursor, and its rows are fetched
from that: if it fails while rows are read, or is stopped, the server's log says FETCH, and not what was asked. What
could fail before, because the table is locked or closed to the role, is tried first, by a query of no rows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from discreet.errors import InvalidParameter
from discreet.lazy import load
from discreet.server_address import ServerAddress

OLDEST = 150000  # whose Unicode is that of `unit_ids.UNICODE` or later
_ROWS_AT_ONCE = 10_000  # fetched between two moments at which a read can be stopped
_SECONDS_TO_CONNECT = 10
_FORGOTTEN: list[Any] = []  # sessions of a parent process: to close them would close the parent's

SETTINGS: Mapping[str, str] = {
    "search_path": "pg_catalog",
    "standard_conforming_strings": "on",
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "row_security": "off",  # rows are never left out silently
    "cursor_tuple_fraction": "1.0",  # all rows are fetched
    "jit": "off",
    "enable_nestloop": "on",
}
"""What a transaction sets for itself."""


def driver() -> Any:
    """Returns psycopg.

    Raises:
        MissingExtra: if it is not installed.
    """
    return load("psycopg", "A table of a PostgreSQL server")


class Sessions:
    """The open sessions of one server.

    Args:
        server: where it is.
        settings: of each transaction, in addition to `SETTINGS`.
    """

    def __init__(self, server: ServerAddress, settings: Mapping[str, str]) -> None:
        self._server, self._settings = server, {**SETTINGS, **settings}
        self._idle: list[Any] = []
        self._process, self._lock = os.getpid(), threading.Lock()

    def close(self) -> None:
        """Closes the sessions that are not at work."""
        with self._lock:
            idle, self._idle = self._own(), []
        for session in idle:
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
        session = self._acquire_session()
        try:
            yield session
            session.execute("ROLLBACK")
        except BaseException:
            with suppress(Exception):
                session.close()
            raise
        with self._lock:
            self._idle.append(session)

    def _acquire_session(self) -> Any:
        """Returns a session in a transaction; one whose connection was lost meanwhile is replaced."""
        with self._lock:
            idle = self._own()
            session = idle.pop() if idle else None
        if session is not None:
            try:
                return self._begin(session)
            except driver().Error:
                with suppress(Exception):
                    session.close()
        return self._begin(self._open_session())

    def _own(self) -> list[Any]:
        """Returns the idle sessions of this process."""
        if self._process != os.getpid():
            _FORGOTTEN.extend(self._idle)
            self._idle, self._process = [], os.getpid()
        return self._idle

    def _begin(self, session: Any) -> Any:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        calls = ", ".join(f"set_config(${2 * i + 1}, ${2 * i + 2}, true)" for i in range(len(self._settings)))
        session.execute(f"SELECT {calls}", [text for pair in self._settings.items() for text in pair])
        return session

    def _open_session(self) -> Any:
        psycopg = driver()
        try:
            session = psycopg.connect(
                self._server.conninfo,
                autocommit=True,
                prepare_threshold=None,
                cursor_factory=psycopg.RawCursor,
                client_encoding="utf8",
                connect_timeout=_SECONDS_TO_CONNECT,
                fallback_application_name="discreet",
            )
        except psycopg.Error:  # whose text may repeat what it was given
            hint = (
                "Check that it runs, and that PGUSER, PGPASSWORD, .pgpass or a service file give you access: try psql. "
                "`discreet postgres-role` prints the SQL that makes a role."
            )
            raise InvalidParameter("source", str(self._server), "to be a server that can be reached", hint) from None
        self._check_server(session)
        return session

    def _check_server(self, session: Any) -> None:
        encoding = session.info.parameter_status("server_encoding")
        if session.info.server_version < OLDEST or encoding != "UTF8":
            session.close()
            condition = "to be a database in UTF8 of PostgreSQL 15 or later"
            raise InvalidParameter("source", str(self._server), condition, "Copy the table to one.")


def fetch_rows(session: Any, sql: str, parameters: Sequence[Any], stopped: threading.Event) -> list[tuple[Any, ...]]:
    """Fetches the rows of a query in a transaction.

    Raises:
        TimeoutError: if the event was set before all rows were there.
    """
    session.execute(f"DECLARE answer NO SCROLL CURSOR FOR {sql}", parameters)
    rows: list[tuple[Any, ...]] = []
    while True:
        some = session.execute(f"FETCH {_ROWS_AT_ONCE} FROM answer").fetchall()
        if stopped.is_set():  # what was fetched so far is not all
            raise TimeoutError
        rows += some
        if len(some) < _ROWS_AT_ONCE:
            return rows
