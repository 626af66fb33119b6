"""The ledger in one SQLite file: write-ahead log, a sync for every commit, one writer at a time.

Formal guarantee: `begin` is BEGIN IMMEDIATE, so that nothing that is read can change before it is written, in this or
any other process; `end` comes after the log was synced (synchronous=FULL), so that what was acknowledged survives a
crash. After an error while committing it is unknown what is on the disk (a second fsync may report success for lost
pages), so this process never writes to the file again. Ctrl-C is heard while `begin` waits for others; between `begin`
and `end` it waits (`Deferral`), so that no transaction is left open. The file must be on a local disk.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from discreet.errors import LedgerError, LedgerMissing, LedgerTampered
from discreet.ledger.store.ledger_store import DEAF, NEW, VERSION, Deferral, Places, Store, Transaction
from discreet.ledger.store.sqlite_tables import APPLICATION, STATEMENTS, check_statements
from discreet.ledger.store.transaction import Remembered, SqlTransaction

MEMORY = ":memory:"
_BROKEN: set[str] = set()  # files to which a commit failed in this process
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")  # how the names of passing obstacles begin


class SqliteTransaction(SqlTransaction):
    """The rows of a ledger file, through one connection inside a transaction.

    Args:
        connection: in a transaction.
        remembered: states as they were at some head.
        cursor: for statements that are over at once; made anew, it costs as much as a short statement.
    """

    def __init__(
        self, connection: sqlite3.Connection, remembered: Remembered | None = None, cursor: sqlite3.Cursor | None = None
    ) -> None:
        super().__init__(remembered)
        self._connection = connection
        self._query = connection.execute
        self._write = self._short = (cursor or connection.cursor()).execute

    def _stream(self, select: str, condition: str, values: Sequence[Any], after: int = 0) -> Iterator[tuple[Any, ...]]:
        query = f"{select} WHERE sequence > ?{condition} ORDER BY sequence"
        last = after
        try:
            for row in self._connection.execute(query, (after, *values)):
                last = row[0]
                yield row
        except sqlite3.DatabaseError:
            raise LedgerTampered(last + 1, "it cannot be read") from None

    def require_version(self, version: int) -> None:
        """Raises the ledger's version if needed; the number is in the file's header, and part of the transaction."""
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        if found < version:
            self._connection.execute(f"PRAGMA user_version={int(version)}")

    def answer_start(self, sequence: int, length: int) -> bytes:
        """Returns the first bytes of an answer through a blob handle: a statement would read the whole row."""
        try:
            with self._connection.blobopen("answers", "payload", sequence, readonly=True) as payload:
                return payload.read(length)
        except sqlite3.OperationalError:  # there is no such row, or no bytes in it
            return b""

    def check(self) -> None:
        """Checks that the tables, triggers and pages of the file are undamaged."""
        check_statements(self._connection)
        if self._connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise LedgerTampered(0, "the pages of the file are damaged")


class SqliteStore(Store):
    """One connection for writing and one for reading, each behind a lock, made anew after a fork.

    Args:
        path: the file, created with mode 0600 if there is none; ":memory:" for a ledger that dies with the process.
        timeout: seconds to wait for other writers.
        read_only: refuses every write, and never creates a file.

    Raises:
        LedgerError: if the file cannot be opened, is no ledger, or was written by a newer version.
    """

    def __init__(self, path: str, *, timeout: float = 30.0, read_only: bool = False) -> None:
        self.path = path if path == MEMORY else os.path.realpath(path)
        self._timeout, self._read_only = timeout, read_only
        self._deferral = Deferral()
        with _translate_errors():
            if self.path != MEMORY:
                _ready_file(self.path, create=not read_only)
            self._connect()

    def _connect(self) -> None:
        self._process = os.getpid()
        self._remembered: Remembered | None = None
        self._looked: Remembered | None = None
        self._times: dict[int, tuple[str, int]] = {}
        self._writer = self._open()
        self._writer.execute(f"PRAGMA busy_timeout={int(1000 * min(DEAF, self._timeout))}")  # the rest is `begin`'s
        self._cursor = self._writer.cursor()
        self._write_lock = threading.RLock()
        self._reader, self._read_lock = self._writer, self._write_lock
        if self.path != MEMORY:
            self._reader, self._read_lock = self._open(), threading.RLock()
            self._identity = _identity(self.path)
        self._glance = self._reader.cursor()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            _recognise(connection)
            _configure(connection, self._timeout, durable=self.path != MEMORY)
            if self._read_only:
                connection.execute("PRAGMA query_only=ON")
            else:
                _create(connection)
            check_statements(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def begin(self, places: Places = list) -> Transaction:  # noqa: ARG002 - a read takes no trip to anywhere
        """Waits for all other writers and excludes them until `end`."""
        if self._process != os.getpid():
            self._after_fork()
        tries = 1 + int(self._timeout / DEAF)  # each try waits for `DEAF` seconds only: Ctrl-C is heard in between
        while tries:
            tries -= 1
            self._deferral.hold(self._write_lock)
            try:
                self._begin_now()
                break
            except BaseException as error:
                self._deferral.let_go(self._write_lock)
                if not tries or not isinstance(error, sqlite3.Error) or not _name(error).startswith(_BUSY):
                    _retell(error)
                    raise
        self._rows = SqliteTransaction(self._writer, self._remembered, self._cursor)
        self._rows.times = self._times
        self._remembered = None  # until what follows is committed
        return self._rows

    @property
    def is_stopped(self) -> bool:
        """Whether a commit failed in this process: only a restart can show what is on the disk."""
        return bool(_BROKEN) and self.path in _BROKEN and self.path != MEMORY

    def _begin_now(self) -> None:
        if self.is_stopped:
            raise LedgerError("An earlier commit failed in this process", "Check the disk and start again.")
        self._refuse_moved_file()
        self._cursor.execute("BEGIN IMMEDIATE")

    def end(self, error: BaseException | None) -> None:
        """Commits and syncs what was written, or undoes it after an error."""
        try:
            if error is None:
                self._commit()
                head, known = self._remembered = self._rows.remembered_state
                self._looked = head, known.copy()  # what readers start from: the next transaction changes its own
            else:
                self._roll_back()
                _retell(error)
        finally:
            self._deferral.let_go(self._write_lock)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Opens a view of one state of the ledger."""
        self._after_fork()
        with self._read_lock:
            reader, glance = self._reader, self._glance
            try:  # a question opens several views, and a context manager of its own for errors took a fifth of each
                self._refuse_moved_file()
                try:
                    if reader.in_transaction and reader is not self._writer:
                        glance.execute("ROLLBACK")  # an interrupt came before the end of an earlier look
                    glance.execute("BEGIN")
                    rows = SqliteTransaction(reader, self._looked, glance)
                    rows.times = self._times
                    yield rows
                    self._looked = rows.seen_state or self._looked
                finally:
                    if reader.in_transaction:
                        glance.execute("ROLLBACK")
            except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
                _retell(error)

    def backup(self, path: str) -> None:
        """Writes a copy of one state of the ledger to a new file, private to its owner and synced; replaces nothing."""
        self._after_fork()
        with self._read_lock, _translate_errors():
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(path, isolation_level=None)) as copy:
                copy.execute("PRAGMA synchronous=FULL")
                self._reader.backup(copy)
            _sync(path)
            _sync(os.path.dirname(os.path.abspath(path)))

    def close(self) -> None:
        """Closes both connections; those inherited over a fork are left alone."""
        if self._process == os.getpid():
            self._reader.close()
            self._writer.close()

    def _commit(self) -> None:
        try:
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            _BROKEN.add(self.path)
            self._roll_back()
            raise LedgerError(
                f"A commit failed ({_name(error)}). Whether it is on the disk is not known",
                "This process writes no more. Check the disk, start again, and ask again with the same key.",
            ) from None

    def _roll_back(self) -> None:
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except sqlite3.Error:  # the transaction is then still open: nothing may follow it
            _BROKEN.add(self.path)

    def _refuse_moved_file(self) -> None:
        if self.path == MEMORY:
            return
        found = os.stat(self.path)
        if found[1:3] != self._identity:
            raise LedgerError("The ledger file was moved or replaced while it was open", "Open and verify it again.")

    def _after_fork(self) -> None:
        """SQLite connections do not survive a fork: the child opens its own and never touches the parent's."""
        if self._process == os.getpid():
            return
        if self.path == MEMORY:
            raise LedgerError("A ledger in memory stays in the process that made it", "Use a file.")
        self._inherited = self._writer, self._reader  # kept: closing them here could drop the parent's locks
        with _translate_errors():
            self._connect()


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Errors of the database and the file system under our own name."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        _retell(error)


def _retell(error: BaseException) -> None:
    """Raises an error of the database or the file system under our own name, without the values that caused it."""
    if isinstance(error, sqlite3.Error):
        hint = "Others are writing to it. Try again." if _name(error).startswith(_BUSY) else "Nothing was written."
        raise LedgerError(f"The ledger cannot be used ({_name(error)})", hint) from None
    if isinstance(error, UnicodeDecodeError):  # in the texts of the schema itself
        raise LedgerTampered(0, "the file holds bytes that are not text") from None
    if isinstance(error, OSError):
        raise LedgerError(f"The ledger file cannot be used ({error.strerror})", "Check the path.") from None


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__


def _identity(path: str) -> tuple[int, int]:
    """Returns the inode and the device of the file at a path."""
    return os.stat(path)[1:3]


def _ready_file(path: str, *, create: bool) -> None:
    """Makes the file readable by its owner only; a new one is synced into its directory before anything is written."""
    if not os.path.exists(path) and create:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            _sync(os.path.dirname(path))
        except FileExistsError:  # another process was faster
            pass
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise LedgerMissing("There is no ledger file", "Check the path.") from None
    if create and found.st_mode & 0o077 and found.st_uid == os.getuid():
        os.chmod(path, 0o600)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _configure(connection: sqlite3.Connection, timeout: float, *, durable: bool) -> None:
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "fullfsync=ON", "checkpoint_fullfsync=ON"):
        connection.execute(f"PRAGMA {pragma}")
    if durable:
        _write_ahead(connection, timeout)
    connection.execute("PRAGMA synchronous=FULL")
    if connection.execute("PRAGMA synchronous").fetchone() != (2,):
        raise LedgerError("SQLite refuses to sync every commit", "Use another build of SQLite.")


def _write_ahead(connection: sqlite3.Connection, timeout: float) -> None:
    """Turns the write-ahead log on, and waits for other processes, which SQLite does not do the first time."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if not _name(error).startswith(_BUSY) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise LedgerError("The file system does not support a write-ahead log", "Put the ledger on a local disk.")


def _recognise(connection: sqlite3.Connection) -> None:
    """Refuses what is no ledger, or one of the future, before anything about the file is changed.

    One transaction sees one state: another process may be making the tables right now.
    """
    connection.execute("BEGIN")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (size,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    finally:
        connection.execute("ROLLBACK")
    if (version or application or size) and application != APPLICATION:
        raise LedgerError("The file is not a ledger", "Pass the path of a ledger, or of a new file.")
    if version > VERSION:
        raise LedgerError(f"The ledger was written by a newer version (schema {version})", "Upgrade discreet.")


def _create(connection: sqlite3.Connection) -> None:
    """Makes the tables once, also if several processes try."""
    if connection.execute("PRAGMA user_version").fetchone() != (0,):
        return
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone() == (0,):
        for statement in STATEMENTS:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={NEW}")
    connection.execute("COMMIT")
