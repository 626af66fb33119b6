"""The ledger on a PostgreSQL server: one advisory lock for all who write, one transaction for each act.

Formal guarantee: `begin` returns inside a transaction that holds the ledger's advisory lock, and every statement in it
sees what was committed before, so that no process can change what is read before it is written. `end` comes
after what was written, and all that was seen, is durable.

Waiting for the disk inside the lock would make all writers wait for it. So the transaction is committed without waiting
(synchronous_commit = off), which releases the lock, and then a second, tiny transaction is committed with waiting. The
server's log is flushed in order: once the second is durable, the first is, and the waits of many clients share one
flush. A crash in between loses the end of the ledger, which was not acknowledged to any caller. A reader who sees what
is not known to be durable waits in the same way before anything that was read leaves this module.

If the connection is lost while committing, it is unknown whether the commit took place. The lock settles it: the next
process that holds it finds the entry in the ledger, or knows that it will never be there. A server that is back within
the time-out therefore costs nothing but time.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from typing import Any

from discreet.errors import InternalError, LedgerError, LedgerMissing, LedgerUnavailable
from discreet.ledger.entry import GENESIS, Head
from discreet.ledger.renewal.clock import Clock
from discreet.ledger.store import postgres_tables
from discreet.ledger.store.ledger_store import Deferral, Place, Places, Store, Transaction
from discreet.ledger.store.postgres_connections import Connections, Statement
from discreet.ledger.store.transaction import MOST_FORESEEN, TAIL, Remembered, SqlTransaction, foreseeing
from discreet.postgres_url import without

_FETCHED = 5000  # rows of a long table at once
_MOST_WAITING = 500  # statements that are sent at once
_IDLE = 30.0  # seconds after which the server gives up a transaction whose client is gone, and the lock with it

_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"  # each statement sees what was committed before it
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PATH = "SELECT set_config('search_path', %s, true), clock_timestamp()"
_LOCKED = (  # the settings come first, and hold until the end of the transaction
    "SELECT set_config('search_path', %s, true), set_config('synchronous_commit', 'off', true), "
    "set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true), "
    "pg_advisory_xact_lock(%s)"
)
_CLOCK = "SELECT clock_timestamp()"  # after the lock, so that entries are in the order of their times
_LOCK = "SELECT pg_advisory_xact_lock(%s)"
_HASH = "SELECT hash FROM entries WHERE sequence = %s"
_FLUSHED = (  # a transaction of its own, whose commit is waited for since it writes to the log
    "SELECT (SELECT hash FROM {schema}.entries WHERE sequence = %s), set_config('synchronous_commit', %s, true), "
    "pg_logical_emit_message(true, 'discreet', '')"
)
_COMMENT = "SELECT obj_description(to_regnamespace(?), 'pg_namespace')"
_ABOUT = "SELECT to_regnamespace(%s) IS NOT NULL, obj_description(to_regnamespace(%s), 'pg_namespace')"


class PostgresTransaction(SqlTransaction):
    """The rows of a ledger on a server, through one connection inside a transaction.

    What is written waits for the next statement that reads, or the end, so that it takes no trip of its own.

    Args:
        connections: where the connection is from.
        connection: in a transaction.
        schema: of the tables.
        tail: the last entry.
        moment: of the server's clock, when the transaction began.
        remembered: states as they were at some head.
    """

    def __init__(
        self,
        connections: Connections,
        connection: Any,
        schema: str,
        tail: Head,
        *,
        moment: dt.datetime,
        remembered: Remembered | None = None,
    ) -> None:
        super().__init__(remembered)
        self._connections, self._connection, self._schema = connections, connection, schema
        self._clock = Clock(moment.astimezone(dt.UTC))
        self._waiting: list[Statement] = []
        self._tail = tail
        if remembered is not None and remembered[0] == tail:
            self._known = remembered[1]
        self._query = self._short = self._ask
        self._write = self._later

    def _later(self, query: str, values: Sequence[Any]) -> None:
        self._waiting.append((_with_marks(query), values))
        if len(self._waiting) >= _MOST_WAITING:
            self.send()

    def _ask(self, query: str, values: Sequence[Any]) -> Any:
        return self.send((_with_marks(query), values))

    def send(self, *last: Statement) -> Any:
        """Runs what has waited and these statements, in one trip, and returns the cursor of the last."""
        waiting, self._waiting = self._waiting, []
        return self._connections.together(self._connection, (*waiting, *last))[-1]

    def _stream(self, select: str, condition: str, values: Sequence[Any], after: int = 0) -> Iterator[tuple[Any, ...]]:
        page = f"{select} WHERE sequence > ?{condition} ORDER BY sequence LIMIT {_FETCHED}"
        while rows := self._ask(page, (after, *values)).fetchall():
            yield from rows
            after = rows[-1][0]

    def require_version(self, version: int) -> None:
        """Raises the version of the ledger if needed; only the owner of the tables may do that."""
        (about,) = self._ask(_COMMENT, (self._schema,)).fetchone()
        if postgres_tables.version(about) < version:
            statement = postgres_tables.version_sql(self._schema, version)
            hint = f"Its owner runs: {statement};"
            with self._connections.rights_to(f"upgrade the ledger to version {version}", hint):
                self.send((statement, ()))

    def check(self) -> None:
        """Checks that the tables and triggers are as they were made."""
        postgres_tables.check_tables(self._connection, self._schema)


class PostgresStore(Store):
    """One connection for writing, behind a lock, and spare ones for readers; all are made anew after a fork.

    Args:
        url: the address of the database, as libpq reads it, without a password; `schema` in it names the schema of the
            tables, which are made if they are not there and the role may make them.
        timeout: seconds to wait for other writers, and for a server that went away.
        read_only: refuses every write, and never makes tables.

    Raises:
        LedgerError: if the server cannot be reached, does not keep what it acknowledges, or has no ledger.
        InvalidParameter: if there is a password in the address.
        MissingExtra: if psycopg is not installed.
    """

    def __init__(self, url: str, *, timeout: float = 30.0, read_only: bool = False) -> None:
        self._url, own = without(url, "schema", called="ledger")
        self.path = url
        self._schema = postgres_tables.check_identifier(own.get("schema", postgres_tables.SCHEMA))
        self._key = int.from_bytes(sha256(f"discreet ledger {self._schema}".encode()).digest()[:8], "big", signed=True)
        self._search_path = f"{self._schema}, pg_catalog, pg_temp"
        self._flushed = _FLUSHED.format(schema=self._schema)
        self._timeout, self._read_only = timeout, read_only
        self._deferral = Deferral()
        self._start()
        try:
            with self._connections.translate_errors(), self._connections.borrow() as connection:
                self._recognise(connection)
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        self._process = os.getpid()
        self._connections = Connections(self._url, timeout=self._timeout, read_only=self._read_only)
        self._writer: Any = None
        self._rows: PostgresTransaction | None = None
        self._remembered: Remembered | None = None
        self._times: dict[int, tuple[str, int]] = {}
        self._durable = Head(0, GENESIS)  # exactly this head is known to be on the disk
        self._write_lock = threading.RLock()

    def _recognise(self, connection: Any) -> None:
        """Refuses what is no ledger, and makes the tables if there is nothing."""
        there, about = self._about(connection)
        if not there:
            self._create(connection)
            _, about = self._about(connection)
        postgres_tables.version(about)
        with self._connections.rights_to(f"use the ledger in schema {self._schema}"):
            connection.execute(f"SELECT 1 FROM {self._schema}.entries WHERE sequence = 0")  # noqa: S608 - a checked name
        postgres_tables.check_tables(connection, self._schema)

    def _create(self, connection: Any) -> None:
        if self._read_only:
            raise LedgerMissing(f"There is no ledger in schema {self._schema} of the database", "Check the address.")
        with self._connections.rights_to("create a ledger here"), connection.transaction():
            connection.execute(_LOCK, (self._key,))
            if not self._about(connection)[0]:
                connection.execute(postgres_tables.tables_sql(self._schema))

    def _about(self, connection: Any) -> tuple[bool, str | None]:
        """Returns whether the schema exists, and its comment."""
        there, about = connection.execute(_ABOUT, (self._schema, self._schema)).fetchone()
        return there, about

    def close(self) -> None:
        """Closes the connections; those inherited over a fork are left alone."""
        if self._process == os.getpid():
            self._drop()
            self._connections.close()

    def give_up(self) -> None:
        """Ends every wait for the server at once."""
        self._connections.give_up()

    def _drop(self) -> None:
        """Closes the writing connection; the server undoes what it has not committed."""
        connection, self._writer = self._writer, None
        if connection is not None:
            connection.close()

    def _after_fork(self) -> None:
        """Connections do not survive a fork: the child opens its own and never touches the parent's."""
        if self._process != os.getpid():
            self._inherited = self._writer, self._connections  # kept: closing them would end the parent's
            self._start()

    # ------------------------------------------------------------------------------------------------------ writing

    def begin(self, places: Places = list) -> Transaction:
        """Waits for all other writers and excludes them; the states at those places are read on the same round trip."""
        if self._read_only:
            raise LedgerError("The ledger was opened read-only", "Nothing was written.")
        self._after_fork()
        self._deferral.hold(self._write_lock)
        try:
            if self._rows is not None:
                raise InternalError("A transaction was begun inside another.")
            self._rows = self._connections.run_with_retries(lambda: self._begin_transaction(places()[:MOST_FORESEEN]))
        except BaseException as error:
            self._deferral.let_go(self._write_lock)
            self._connections.retell(error)
            raise
        self._remembered = None  # until what follows is committed
        return self._rows

    def _begin_transaction(self, places: Sequence[Place]) -> PostgresTransaction:
        """Begins a transaction; if a state does not fit its seal, there is none."""
        foreseen = [foreseeing(places)] if places else []
        statements = [(_with_marks(query), values) for query, values in foreseen]
        clock, tail, *found = self._lock_and_query((_CLOCK, ()), (TAIL, ()), *statements)
        head = Head(*tail[0]) if tail else Head(0, GENESIS)
        told: dict[str, Any] = {"moment": clock[0][0], "remembered": self._remembered}
        rows = PostgresTransaction(self._connections, self._writer, self._schema, head, **told)
        rows.times = self._times
        try:
            if found:
                rows.learn(places, found[0])
        except BaseException:
            self._drop()
            raise
        return rows

    def _lock_and_query(self, *statements: Statement) -> list[list[Any]]:
        """Begins a transaction that holds the lock; returns the rows of each statement in it.

        Signals are heard during the wait. The connection is dropped, and the lock with it, if anything happens.
        """
        wait, idle = max(1, int(1000 * self._timeout)), int(1000 * max(_IDLE, self._timeout))
        lock = _LOCKED, (self._search_path, f"{wait}ms", f"{idle}ms", self._key)
        try:
            if self._writer is None:
                self._writer = self._connections.connect()
            with self._hearing():
                cursors = self._connections.together(self._writer, ((_WRITING, ()), lock, *statements))
                return [cursor.fetchall() for cursor in cursors[2:]]
        except BaseException:
            self._drop()
            raise

    def end(self, error: BaseException | None) -> None:
        """Commits what was written and waits until it is durable, or undoes it after an error."""
        rows = self._rows
        if rows is None:
            raise InternalError("A transaction was ended before it was begun.")
        try:
            if error is None:
                self._commit(rows)
                self._remembered = rows.remembered_state
            else:
                self._roll_back()
                self._connections.retell(error)
        finally:
            self._rows = None
            self._deferral.let_go(self._write_lock)
        if error is None:
            self._make_durable(rows.tail())

    def _commit(self, rows: PostgresTransaction) -> None:
        """Commits, without waiting for the disk; whatever goes wrong, finds out what has become of it."""
        try:
            if rows.send(("COMMIT", ())).statusmessage == "COMMIT":
                return
            self._drop()
        except Exception as error:
            self._drop()
            if not self._is_written(rows.tail()):
                self._connections.retell(error)
                raise
            return
        raise LedgerError("The server undid the transaction", "Nothing was written. Try again.")

    def _is_written(self, head: Head) -> bool:
        """Finds out whether a commit took place: the lock is free once it has, or never will.

        Raises:
            LedgerError: if the server does not come back in time.
        """
        at = _HASH, (head.sequence,)
        with _unknown(head), self._connections.translate_errors():
            (found,) = self._connections.run_with_retries(lambda: self._lock_and_query(at))
        self._roll_back()
        return found == [(head.hash,)]

    def _make_durable(self, head: Head) -> None:
        """Waits until what was seen is on the disk, also on the standbys that the server waits for.

        Raises:
            LedgerError: if it is not in the ledger any more, since the server has crashed; no caller has seen it.
        """
        if head == self._durable or not head.sequence or self._connections.standby:
            return
        with _unknown(head), self._connections.translate_errors():
            there = self._connections.run_with_retries(lambda: self._flush(head))
        if not there:
            raise LedgerError("The server crashed before it had written", "Nothing was written. Try again.")
        self._durable = head

    def _flush(self, head: Head) -> bool:
        """Commits with waiting; returns whether the head was in the ledger, so that it is durable now."""
        with self._connections.borrow() as connection, self._connections.fail_on_warnings(connection):
            row = connection.execute(self._flushed, (head.sequence, self._connections.waits)).fetchone()
            return bool(row[0] == head.hash)

    def _roll_back(self) -> None:
        try:
            if self._writer is not None:
                self._writer.execute("ROLLBACK")
        except self._connections.error:
            self._drop()

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        """Hears signals during a wait for others."""
        self._deferral.end()
        try:
            yield
        finally:
            self._deferral.begin()

    # ------------------------------------------------------------------------------------------------------ reading

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Opens a view of one state of the ledger."""
        self._after_fork()
        with self._connections.translate_errors():
            connection, head, moment = self._connections.run_with_retries(self._view)
            try:
                rows = PostgresTransaction(self._connections, connection, self._schema, head, moment=moment)
                rows.times = self._times
                yield rows
            finally:
                self._connections.give_back(connection)
            self._make_durable(head)

    def _view(self) -> tuple[Any, Head, dt.datetime]:
        """Returns a connection inside a transaction that sees one state, the last entry of that state, and the time."""
        connection = self._connections.take()
        try:
            view = (_READING, ()), (_PATH, (self._search_path,)), (TAIL, ())
            *_, path, tail = self._connections.together(connection, view)
            row, (_, moment) = tail.fetchone(), path.fetchone()
            return connection, Head(*row) if row else Head(0, GENESIS), moment
        except BaseException:
            connection.close()
            raise


@contextmanager
def _unknown(head: Head) -> Iterator[None]:
    """Names the entry whose fate is unknown if the server does not come back."""
    try:
        yield
    except LedgerError as error:
        raise LedgerUnavailable(
            f"{error.reason}. Whether entry {head.sequence} is in the ledger is not known",
            "A charge may have been made. Ask again with the same key: an existing charge is found.",
        ) from None


@lru_cache(maxsize=256)
def _with_marks(query: str) -> str:
    """Returns the statement with psycopg's placeholders; ours hold no other question marks, nor percent signs."""
    return query.replace("?", "%s")
