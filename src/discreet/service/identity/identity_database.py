"""The database of people, keys, sessions and counts: one SQLite file of its own, next to the ledger.

It holds nothing that proves who a person is: of keys, tokens and links only hashes, which cannot be turned back, since
what is hashed has 128 random bits or more. What is written is numbered (`PRAGMA user_version`): a file of an earlier
version is brought up to date, step by step and in one transaction; one of a later version is refused.

Formal guarantee: what `acting` wrote is on the disk when it returns, so that a revoked key stays revoked after a crash.
What `counting` wrote survives a crash of the process, and perhaps not one of the machine.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.errors import ServiceUnavailable

APPLICATION = 0x44495349  # "DISI", in the header of every such file
MEMORY = ":memory:"
_WAIT = 5.0  # seconds for another process that writes, such as a command of the steward's

_FIRST = (
    """CREATE TABLE people (
      name TEXT PRIMARY KEY, folded TEXT NOT NULL UNIQUE, role TEXT NOT NULL, created REAL NOT NULL, disabled REAL
    ) WITHOUT ROWID""",
    """CREATE TABLE keys (
      id TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES people, hash BLOB NOT NULL,
      stored_key BLOB NOT NULL, server_key BLOB NOT NULL,
      tables TEXT, project TEXT NOT NULL, note TEXT NOT NULL,
      created REAL NOT NULL, expires REAL NOT NULL, revoked REAL
    ) WITHOUT ROWID""",
    "CREATE INDEX keys_by_person ON keys (person)",
    """CREATE TABLE sessions (
      hash BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE, person TEXT NOT NULL REFERENCES people,
      created REAL NOT NULL, used REAL NOT NULL, expires REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX sessions_by_person ON sessions (person)",
    """CREATE TABLE links (
      hash BLOB PRIMARY KEY, person TEXT NOT NULL REFERENCES people, created REAL NOT NULL, expires REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
)
_SECOND = (
    """CREATE TABLE counts (
      day TEXT NOT NULL, credential TEXT NOT NULL, questions INTEGER NOT NULL, PRIMARY KEY (day, credential)
    ) WITHOUT ROWID""",
)
MIGRATIONS = (_FIRST, _SECOND)
"""What makes each version out of the one before; a step that was ever released is never changed."""

VERSION = len(MIGRATIONS)


class IdentityDatabase:
    """One connection that syncs each commit and one that does not, behind a lock; safe for threads.

    Args:
        path: the file, made with mode 0600 if there is none; ":memory:" for tests.

    Raises:
        ServiceUnavailable: if the file cannot be used, is something else, or was written by a newer version.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._lock = threading.RLock()
        with _translate_errors():
            if self.path != MEMORY:
                _ready_file(self.path)
            self._durable = self._open_connection("FULL")
            _migrate(self._durable)
            self._quick = self._durable if self.path == MEMORY else self._open_connection("NORMAL")

    def _open_connection(self, synchronous: str) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        try:
            _recognise(connection)
            connection.row_factory = sqlite3.Row
            for pragma in ("trusted_schema=OFF", "foreign_keys=ON", "secure_delete=ON", "journal_mode=WAL"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute(f"PRAGMA synchronous={synchronous}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def acting(self) -> Iterator[sqlite3.Connection]:
        """Opens a transaction that excludes other writers, and is on the disk at its end; an error undoes it."""
        with self._transaction(self._durable) as connection:
            yield connection

    @contextmanager
    def counting(self) -> Iterator[sqlite3.Connection]:
        """Opens a transaction for what is written often and may be lost with the power."""
        with self._transaction(self._quick) as connection:
            yield connection

    @contextmanager
    def _transaction(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        with self._lock, _translate_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Returns the rows of a query as of now, with what another process has written.

        A value that is no Unicode, as a client can make one up, is in no row.
        """
        try:
            with self._lock, _translate_errors():
                return list(self._quick.execute(query, values))
        except UnicodeEncodeError:
            return []

    def row(self, query: str, *values: Any) -> sqlite3.Row | None:
        """Returns the first row of a query, if there is one."""
        return next(iter(self.rows(query, *values)), None)

    def close(self) -> None:
        """Closes both connections to the file."""
        with self._lock:
            self._quick.close()
            self._durable.close()


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raises errors of the database and the file system as our own, without the values that caused them."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", None) or type(error).__name__
        hint = "No one can sign in. Check the setting identities."
        raise ServiceUnavailable(f"The database of identities cannot be used ({name})", hint) from None
    except OSError as error:
        reason = f"The file of identities cannot be used ({error.strerror})"
        raise ServiceUnavailable(reason, "Check the setting identities.") from None


def _ready_file(path: str) -> None:
    """Makes a file that only its owner can read, or takes others' rights from one that was copied here."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        found = os.stat(path)
        if found.st_mode & 0o077 and found.st_uid == os.getuid():
            os.chmod(path, 0o600)


def _recognise(connection: sqlite3.Connection) -> None:
    """Refuses what is something else, or of the future, before anything about the file is changed."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (size,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (version or application or size) and application != APPLICATION:
        raise ServiceUnavailable("The file is not a database of identities", "Check the setting identities.")
    if version > VERSION:
        raise ServiceUnavailable(
            f"The database of identities was written by a newer version (schema {version})", "Upgrade discreet."
        )


def _migrate(connection: sqlite3.Connection) -> None:
    """Brings the tables up to date, once, in the first process that opens the file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        if version < VERSION:
            connection.execute(f"PRAGMA application_id={APPLICATION}")
            connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
