"""Connections to a PostgreSQL server that keeps what it acknowledges, and its errors under our own name."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from discreet.errors import LedgerError, LedgerTampered, LedgerUnavailable
from discreet.lazy import load
from discreet.quiet_loggers import quiet

if TYPE_CHECKING:
    import psycopg

Statement = tuple[str, Sequence[Any]]
Result = TypeVar("Result")

_MOST_SPARE = 4  # connections that are kept for the next who needs one
_LOGGERS = [logging.getLogger(name) for name in ("psycopg", "psycopg.transaction")]  # of errors that we tell ourselves
_PAUSE = 0.1  # seconds between tries to reach a server
_SERVER = "SELECT current_setting('fsync'), current_setting('synchronous_commit'), pg_is_in_recovery()"


class Connections:
    """Makes connections to one database, and keeps a few spare ones.

    Args:
        url: the address, without a password.
        timeout: seconds to wait for a server that went away.
        read_only: whether a standby will do.

    Attributes:
        waits: the setting of synchronous_commit with which a commit is waited for.
        standby: whether the server is one; all that it shows is durable, and it is never written.

    Raises:
        MissingExtra: if psycopg is not installed.
    """

    def __init__(self, url: str, *, timeout: float, read_only: bool) -> None:
        self._psycopg: Any = load("psycopg", "A ledger on PostgreSQL")
        self._url, self.timeout, self._read_only = url, timeout, read_only
        self._spare: list[Any] = []
        self._made: WeakSet[Any] = WeakSet()
        self._given_up = False
        self._pipelines = bool(self._psycopg.Pipeline.is_supported())
        self.waits, self.standby = "on", False

    def connect(self) -> psycopg.Connection[Any]:
        """Returns a new connection, on which each statement is a transaction of its own until one is begun.

        Raises:
            LedgerError: if the server could lose what it acknowledges, or is a standby and shall be written.
        """
        defaults = {
            "connect_timeout": max(2, int(min(5, self.timeout))),
            "fallback_application_name": "discreet",
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "target_session_attrs": "any" if self._read_only else "primary",
            "tcp_user_timeout": int(1000 * max(1.0, self.timeout)),
        }
        told = self._psycopg.conninfo.conninfo_to_dict(self._url)
        settings = {**defaults, **told, "client_encoding": "UTF8"}
        connection: psycopg.Connection[Any] = self._psycopg.connect(**settings, autocommit=True)
        self._made.add(connection)
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        fsync, waits, self.standby = connection.execute(_SERVER).fetchone() or ("off", "off", False)
        self.waits = "on" if waits == "off" else waits
        if fsync == "off":
            hint = "Ask its administrator to set fsync = on."
            raise LedgerError("The server loses what it acknowledges when it crashes (fsync = off)", hint)
        if self.standby and not self._read_only:
            raise LedgerError("The server is a standby, which takes no charges", "Name the primary server.")

    def take(self) -> Any:
        """Returns a spare connection, or a new one; no other caller has it until it is given back."""
        try:
            return self._spare.pop()
        except IndexError:
            return self.connect()

    def give_back(self, connection: Any) -> None:
        """Keeps a connection for the next who needs one, unless there is any doubt about it."""
        status = self._psycopg.pq.TransactionStatus
        with suppress(self._psycopg.Error):
            if connection.info.transaction_status in (status.INTRANS, status.INERROR):
                connection.execute("ROLLBACK")
        if connection.info.transaction_status == status.IDLE and len(self._spare) < _MOST_SPARE:
            self._spare.append(connection)
        else:
            connection.close()

    @contextmanager
    def borrow(self) -> Iterator[Any]:
        """Takes a connection, and gives it back at the end."""
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    @contextmanager
    def fail_on_warnings(self, connection: Any) -> Iterator[None]:
        """Treats a warning as a failure: a cancelled wait for standbys ends with a warning, and with success."""
        warnings: list[Any] = []
        connection.add_notice_handler(warnings.append)
        try:
            yield
        finally:
            connection.remove_notice_handler(warnings.append)
        if warnings:
            raise self._psycopg.OperationalError("the wait for a standby was cancelled")

    def close(self) -> None:
        """Closes all spare connections."""
        with suppress(IndexError):
            while True:
                self._spare.pop().close()

    def together(self, connection: Any, statements: Sequence[Statement]) -> list[Any]:
        """Runs statements in one trip to the server, where libpq can, and returns their cursors."""
        if len(statements) == 1:
            return [connection.execute(*statements[0])]
        with quiet(*_LOGGERS), connection.pipeline() if self._pipelines else nullcontext():
            return [connection.execute(query, values) for query, values in statements]

    def run_with_retries(self, act: Callable[[], Result]) -> Result:
        """Runs an action on a server that may have gone away, and again as soon as it is back.

        Raises:
            LedgerError: if it does not come back in time, or something else is wrong.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return act()
            except self._psycopg.OperationalError as error:
                late = self._given_up or time.monotonic() > deadline
                if isinstance(error, self._psycopg.errors.LockNotAvailable) or late:
                    self.retell(error)
                self.close()  # the spare ones are probably lost as well
                time.sleep(_PAUSE)

    def give_up(self) -> None:
        """Ends every wait for the server: what runs on a connection fails at once, and is not tried again."""
        self._given_up = True
        for connection in list(self._made):
            with suppress(self._psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as handle:
                handle.shutdown(socket.SHUT_RDWR)

    @property
    def error(self) -> type[Exception]:
        """The class of all errors of the database."""
        return self._psycopg.Error  # type: ignore[no-any-return]

    @contextmanager
    def rights_to(self, act: str, hint: str = "") -> Iterator[None]:
        """Turns a lack of rights into an error that names the action and what helps."""
        try:
            yield
        except self._psycopg.errors.InsufficientPrivilege:
            hint = hint or "Ask the ledger's owner to run what `discreet ledger sql` prints. See docs/shared_ledger.md."
            raise LedgerError(f"The role may not {act}", hint) from None

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raises errors of the database under our own name."""
        try:
            yield
        except (self._psycopg.Error, UnicodeError) as error:
            self.retell(error)

    def retell(self, error: BaseException | None) -> None:
        """Raises an error of the database under our own name, without the values that caused it."""
        undone, errors = "Nothing was written.", self._psycopg.errors
        if isinstance(error, errors.LockNotAvailable):
            raise LedgerUnavailable("The ledger cannot be used", "Others are writing to it. Try again.") from None
        if isinstance(error, errors.InsufficientPrivilege):
            raise LedgerError(
                "The role lacks a right on the ledger", f"{undone} Ask its owner to grant the right."
            ) from None
        if isinstance(error, self._psycopg.OperationalError):  # about the server, never about values
            told = str(error).partition("\n")[0].strip()
            raise LedgerUnavailable(f"The ledger's server cannot be used ({told})", undone) from None
        if isinstance(error, self._psycopg.Error):
            told = error.sqlstate or type(error).__name__
            raise LedgerError(f"The ledger cannot be used (PostgreSQL {told})", undone) from None
        if isinstance(error, UnicodeEncodeError):
            raise LedgerError("The ledger cannot hold a text that is not Unicode", undone) from None
        if isinstance(error, UnicodeDecodeError):
            raise LedgerTampered(0, "the ledger holds bytes that are not text") from None
