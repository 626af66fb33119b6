"""A service as a database for Python (PEP 249): every SELECT is a question that is asked and paid.

Nothing is asked before an epsilon is set: `connect(url, key=..., epsilon=0.1)`, or ``SET discreet.epsilon = 0.1``.
Intervals are columns. `commit` does nothing, and `rollback` gives nothing back.

>>> connection = connect("https://data.example", key="dk_3f9a_5ec7e7")
>>> connection.cursor().execute("SELECT COUNT(*) AS n FROM visits")
Traceback (most recent call last):
discreet.remote.dbapi.ProgrammingError: No epsilon is set. Execute SET discreet.epsilon = 0.1 first, ...
"""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from discreet import check, errors
from discreet.curator.asking.answer import Answer
from discreet.errors import DiscreetError
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.remote.http_transport import TIMEOUT
from discreet.remote.remote_curator import RemoteCurator
from discreet.remote.remote_curator import connect as _connect
from discreet.requests.question_requests import Ask

apilevel = "2.0"
threadsafety = 1  # threads may share the module; a connection keeps its epsilon for one of them
paramstyle = "qmark"

_SET = re.compile(r"\s*SET\s+discreet\.epsilon\s*(?:=|\sTO\s)\s*'?([0-9./eE+-]+)'?\s*;?\s*", re.IGNORECASE)


class Warning(Exception):  # noqa: A001 - the name that PEP 249 gives it
    """Never raised: notes are in `Cursor.answer`. It is no `Error`, as PEP 249 has it.

    >>> Connection.Warning is Warning, issubclass(Warning, Error)
    (True, False)
    """


class Error(Exception):
    """Whatever went wrong; its cause is the error of this library, if there is one.

    >>> try:
    ...     connect("http://data.example", key="dk_3f9a_5ec7e7")
    ... except Error as error:
    ...     print(type(error).__name__, "because of", repr(error.__cause__))
    ProgrammingError because of InvalidParameter("Expected url='http://data.example' to begin with https://. Without ...
    """


class InterfaceError(Error):
    """Something was used that is closed.

    >>> with connect("https://data.example", key="dk_3f9a_5ec7e7") as connection:
    ...     cursor = connection.cursor()
    >>> cursor.execute("SET discreet.epsilon = 0.1")
    Traceback (most recent call last):
    discreet.remote.dbapi.InterfaceError: The cursor or its connection is closed.
    """


class DatabaseError(Error):
    """Something is refused, by the service or before it is asked: every error but those of what is closed.

    >>> cursor = connect("https://data.example", key="dk_3f9a_5ec7e7").cursor()
    >>> for text in ("SET discreet.epsilon = 0", "SELECT COUNT(*) AS n FROM visits"):
    ...     try:
    ...         cursor.execute(text)
    ...     except DatabaseError as error:
    ...         print(error)
    Expected epsilon='0' > 0. Pass a positive number, e.g. epsilon=0.1.
    No epsilon is set. Execute SET discreet.epsilon = 0.1 first, or pass epsilon= to connect.
    """


class DataError(DatabaseError):
    """A value does not fit; see `OperationalError` for an example."""


class OperationalError(DatabaseError):
    """The service, the budget or the right to ask is missing.

    >>> from unittest.mock import Mock
    >>> refusals = [errors.InvalidValue("to be finite", "Replace it."), errors.InsufficientBudget("0.1", "0.05")]
    >>> refusals += [errors.KeyConflict(7), errors.InternalError("Something went wrong.")]
    >>> service = Mock(**{"perform_document.side_effect": refusals})  # in the place of a service that sends them
    >>> cursor = Connection(service, epsilon=0.1).cursor()
    >>> for _ in refusals:
    ...     try:
    ...         cursor.execute("SELECT COUNT(*) AS n FROM visits")
    ...     except (DataError, OperationalError, IntegrityError, InternalError) as error:
    ...         print(type(error).__name__, error)
    DataError Expected the value to be finite. Replace it.
    OperationalError The charge needs 0.1. Remaining: 0.05.
    IntegrityError The idempotency key belongs to another request, entry 7. Use a new key for ...
    InternalError Something went wrong.
    """


class IntegrityError(DatabaseError):
    """An idempotency key came back with another question; cursors make a new key for each."""


class InternalError(DatabaseError):
    """The service failed, or its database did."""


class ProgrammingError(DatabaseError):
    """The question or a parameter is refused; nothing was spent.

    >>> connect("https://data.example", key="dk_3f9a_5ec7e7").cursor().fetchone()
    Traceback (most recent call last):
    discreet.remote.dbapi.ProgrammingError: There are no rows. Execute a SELECT first.
    """


class NotSupportedError(DatabaseError):
    """Something that a service does not do.

    >>> cursor = connect("https://data.example", key="dk_3f9a_5ec7e7", epsilon=0.1).cursor()
    >>> cursor.executemany("SELECT COUNT(*) AS n FROM visits WHERE ward = ?", [["A"], ["B"]])
    Traceback (most recent call last):
    discreet.remote.dbapi.NotSupportedError: Each question is charged separately. Call execute for each of them.
    """


_ERRORS: tuple[tuple[type[DiscreetError], type[DatabaseError]], ...] = (
    (errors.KeyConflict, IntegrityError),
    (errors.InvalidValue, DataError),
    (errors.InvalidParameter, ProgrammingError),
    (errors.UnsupportedQuery, ProgrammingError),
    (errors.UnsupportedEvent, ProgrammingError),
    (errors.UnknownTable, ProgrammingError),
    (errors.InternalError, InternalError),
    (DiscreetError, OperationalError),
)


class _TypeObject:
    """A kind of columns, equal to the types that it has."""

    def __init__(self, *types: str) -> None:
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        return other in self._types

    def __hash__(self) -> int:
        return hash(self._types)


STRING, NUMBER, DATETIME = _TypeObject("text"), _TypeObject("int", "float", "bool"), _TypeObject("date", "timestamp")
BINARY, ROWID = _TypeObject(), _TypeObject()
Date, Timestamp, Time = dt.date, dt.datetime, dt.time
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:
    """Returns the day, in local time, of a moment in seconds since 1970.

    >>> DateFromTicks(Timestamp(2026, 3, 1, 12, 30).timestamp())
    datetime.date(2026, 3, 1)
    """
    return Date(*time.localtime(ticks)[:3])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    """Returns a moment in seconds since 1970 as local time, without a zone and without fractions of a second.

    >>> TimestampFromTicks(Timestamp(2026, 3, 1, 12, 30, 15, 250_000).timestamp())
    datetime.datetime(2026, 3, 1, 12, 30, 15)
    """
    return Timestamp(*time.localtime(ticks)[:6])


def TimeFromTicks(ticks: float) -> dt.time:
    """Returns the time of day, in local time, of a moment in seconds since 1970.

    >>> TimeFromTicks(Timestamp(2026, 3, 1, 12, 30).timestamp())
    datetime.time(12, 30)
    """
    return Time(*time.localtime(ticks)[3:6])


def connect(
    url: str,
    *,
    key: str,
    epsilon: check.Number | None = None,
    delta: check.Number | None = None,
    timeout: float = TIMEOUT,
    ca_file: str | Path | None = None,
) -> Connection:
    """Returns a connection; see `discreet.connect`. Every question has this epsilon and delta."""
    with _translate_errors():
        return Connection(_connect(url, key=key, timeout=timeout, ca_file=ca_file), epsilon=epsilon, delta=delta)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except DiscreetError as error:
        kind = next(made for told, made in _ERRORS if isinstance(error, told))
        raise kind(str(error)) from error


class _Closable:
    """Something that may be used until it is closed, at the latest at the end of its block."""

    closed = False

    def close(self) -> None:
        """Ends it; further use is an error."""
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Connection(_Closable):
    """A connection to a service, with the settings of its questions.

    Attributes:
        curator: the service.
        epsilon: what each question may cost; None until it is set.

    >>> with connect("https://data.example", key="dk_3f9a_5ec7e7") as connection:
    ...     _ = connection.cursor().execute("SET discreet.epsilon = 0.1")
    >>> connection.epsilon, connection.closed
    (Fraction(1, 10), True)
    """

    Warning, Error, InterfaceError, DatabaseError, DataError = Warning, Error, InterfaceError, DatabaseError, DataError
    OperationalError, IntegrityError, InternalError = OperationalError, IntegrityError, InternalError
    ProgrammingError, NotSupportedError = ProgrammingError, NotSupportedError

    def __init__(
        self, curator: RemoteCurator, *, epsilon: check.Number | None = None, delta: check.Number | None = None
    ) -> None:
        self.curator, self.delta = curator, delta
        self.epsilon = None if epsilon is None else check.positive(epsilon=epsilon)

    def cursor(self) -> Cursor:
        """Returns a new cursor of this connection."""
        self._require_open()
        return Cursor(self)

    def commit(self) -> None:
        """Does nothing: what was asked is charged."""
        self._require_open()

    def rollback(self) -> None:
        """Does nothing: what was charged stays charged."""
        self._require_open()

    def _require_open(self) -> None:
        if self.closed:
            raise InterfaceError("The connection is closed.")


class Cursor(_Closable):
    """Asks a question, and gives its rows.

    Attributes:
        description: of each column the name and the type, after a question.
        rowcount: how many rows there are; -1 before a question.
        arraysize: how many rows `fetchmany` gives.
        answer: the whole answer of the last question, with its cost and notes.

    >>> from discreet import Budget, Curator, engines, noise
    >>> from discreet.presentation.documents.answer_documents import ANSWER
    >>> curator = Curator.for_tests(engine=engines.Memory(), bits=noise.SeededBits(8))
    >>> curator.protect([{"ward": "A"}] * 60, name="visits", types={"ward": "text"}, budget=Budget(epsilon=1))
    >>> class Service:  # a curator of this process, in the place of one that is reached over HTTP
    ...     def perform_document(self, request):
    ...         return ANSWER.write(curator.perform(request))
    >>> cursor = Connection(Service(), epsilon=0.5).cursor()
    >>> cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE ward = ?", ["A"]).fetchall()
    [(59, 53, 65)]
    >>> [name for name, *_ in cursor.description], str(cursor.answer.cost)
    (['n', 'n_low', 'n_high'], 'epsilon=0.5, 50 % of the budget')
    """

    def __init__(self, connection: Connection) -> None:
        self.connection, self.arraysize = connection, 1
        self._forget()

    def _forget(self) -> None:
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount, self.answer = -1, None
        self._rows: Iterator[tuple[Any, ...]] | None = None

    answer: Answer | None

    def execute(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Self:
        """Asks a question, or sets the epsilon of those that follow.

        Args:
            operation: one SELECT, or SET discreet.epsilon = 0.1.
            parameters: the values of ? in it.
        """
        self._require_open()
        self._forget()
        setting = _SET.fullmatch(operation)
        with _translate_errors():
            if setting is not None:
                self.connection.epsilon = check.positive(epsilon=setting[1])
            else:
                self._ask(operation, parameters)
        return self

    def _ask(self, question: str, parameters: Sequence[Any] | Mapping[str, Any] | None) -> None:
        if self.connection.epsilon is None:
            hint = "Execute SET discreet.epsilon = 0.1 first, or pass epsilon= to connect."
            raise ProgrammingError(f"No epsilon is set. {hint}")
        epsilon, delta = self.connection.epsilon, self.connection.delta
        asked = Ask.of(sql=question, parameters=parameters or None, epsilon=epsilon, delta=delta)
        document = self.connection.curator.perform_document(asked)
        self.answer = answer = ANSWER.read(document)
        unknown = (None,) * 5  # sizes, scales, and whether there are NULLs
        self.description = [(each["name"], each["type"], *unknown) for each in document["columns"]]
        self.rowcount = len(answer)
        self._rows = (tuple(record[name] for name in answer.columns) for record in answer)

    def executemany(self, operation: str, parameters: Sequence[Any]) -> None:
        """Is refused: each of many questions would be paid.

        Raises:
            NotSupportedError: always.
        """
        del operation, parameters
        raise NotSupportedError("Each question is charged separately. Call execute for each of them.")

    def fetchone(self) -> tuple[Any, ...] | None:
        """Returns the next row; None after the last."""
        return next(self._open_rows(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Returns the next rows, as many as `arraysize` unless a size is given."""
        rows = self._open_rows()
        wanted = range(self.arraysize if size is None else size)
        return [row for _, row in zip(wanted, rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns all rows that are left."""
        return list(self._open_rows())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._open_rows()

    def _open_rows(self) -> Iterator[tuple[Any, ...]]:
        self._require_open()
        if self._rows is None:
            raise ProgrammingError("There are no rows. Execute a SELECT first.")
        return self._rows

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def _require_open(self) -> None:
        if self.closed or self.connection.closed:
            raise InterfaceError("The cursor or its connection is closed.")
