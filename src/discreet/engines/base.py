"""What every engine promises, and the checks that come before any of them looks at a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from discreet.errors import InvalidParameter, QueryFailed
from discreet.plan.model.nodes import Call, Column, Expression
from discreet.plan.model.readings import Groups, Reading
from discreet.plan.model.relations import tables
from discreet.plan.model.types import Type
from discreet.plan.validation import check_reading

READS: Mapping[tuple[Type, Type], tuple[str, ...]] = {
    (Type.INT, Type.FLOAT): ("to_float",),
    (Type.INT, Type.TEXT): ("to_text",),
    (Type.FLOAT, Type.INT): ("to_int",),
    (Type.BOOL, Type.INT): ("to_int",),
    (Type.BOOL, Type.TEXT): ("to_text",),
    (Type.TEXT, Type.INT): ("trim", "to_int"),
    (Type.TEXT, Type.FLOAT): ("trim", "to_float"),
    (Type.TEXT, Type.BOOL): ("trim", "lower", "read_bool"),
    (Type.TEXT, Type.DATE): ("trim", "to_date"),
    (Type.TEXT, Type.TIMESTAMP): ("trim", "read_timestamp"),
    (Type.DATE, Type.TEXT): ("to_text",),
    (Type.DATE, Type.TIMESTAMP): ("midnight",),
    (Type.TIMESTAMP, Type.DATE): ("to_date",),
    **{(kind, kind): () for kind in Type},
}
"""How a column stored as one type is read as another: functions applied in turn, each total, NULL where it fails.

Three of them are for reading only: *read_bool* (true, t, yes, y, 1 and their opposites), *read_timestamp* (YYYY-MM-DD,
optionally with T or a space and HH:MM, :SS and up to six decimals) and *midnight* (of a day). A NaN, an infinity and a
day outside the years 1 to 9999 are NULL.
"""

_RESULTS = {
    "to_int": Type.INT,
    "to_float": Type.FLOAT,
    "to_text": Type.TEXT,
    "to_date": Type.DATE,
    "trim": Type.TEXT,
    "lower": Type.TEXT,
    "read_bool": Type.BOOL,
    "read_timestamp": Type.TIMESTAMP,
    "midnight": Type.TIMESTAMP,
}


def read_as(name: str, stored: Type, declared: Type) -> Expression:
    """The expression that reads a stored column as its declared type.

    >>> read_as("age", Type.TEXT, Type.INT).function
    'to_int'

    Raises:
        InvalidParameter: if such a column cannot be read as that type.
    """
    if (stored, declared) not in READS:
        hint = f"It is stored as {stored.value}; declare that, or convert the file."
        raise InvalidParameter(f"types[{name!r}]", declared.value, "to fit the stored column", hint)
    expression: Expression = Column(name, stored)
    for function in READS[stored, declared]:
        expression = Call(function, (expression,), _RESULTS[function])
    return expression


class Engine(ABC):
    """Tables and exact reads of them.

    Formal guarantees: a reading is refused for what it is (`InvalidParameter`) before a row is touched; once rows are
    touched the only error is `QueryFailed`, whose text is constant. The result is a function of the set of rows, the
    same whatever their order and the number of threads, and the same on every engine.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Mapping[str, Type]] = {}

    def register(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        """Makes a source readable under a name.

        Args:
            name: the table's name in readings; registering it again replaces it.
            source: what the engine documents: rows, a frame, a path, a table of a database.
            columns: the declared columns and types; no other column exists for readings.

        Raises:
            InvalidParameter: if the source has no such columns, or they cannot be read as these types.
        """
        if not columns:
            raise InvalidParameter("columns", "{}", "to name at least one column", "Declare the table's columns.")
        self._attach(name, source, dict(columns))
        self._columns[name] = dict(columns)

    def read(self, reading: Reading) -> Groups:
        """Exact integers for every group that has a kept row.

        Raises:
            InvalidParameter: if the reading is not one this engine can run; nothing was read.
            QueryFailed: for every failure after that, whatever its cause, which is not kept.
        """
        for table in (reading.table, *(tables(reading.source) if reading.source is not None else ())):
            if table not in self._columns:
                raise InvalidParameter("table", table, "to be registered", "Register it first.")
        check_reading(reading, self._columns)
        run = self._prepare(reading)
        try:
            return dict(run)
        except Exception:  # noqa: BLE001 - causes carry data: dropped here, all of them
            failed = QueryFailed()
        raise failed

    @abstractmethod
    def schema_of(self, source: Any) -> dict[str, Type]:
        """The columns whose types the source's format carries; the content is never looked at."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of everything; the engine cannot be used afterwards."""

    @abstractmethod
    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None: ...

    @abstractmethod
    def _prepare(self, reading: Reading) -> Iterator[tuple[Any, Any]]:
        """Translates, touching no row; the iterator that comes back reads when it is first asked."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
