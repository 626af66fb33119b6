"""What every engine promises, and the checks that come before any of them looks at a row."""

from __future__ import annotations

import datetime as dt
import math
import numbers
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, QueryFailed, UnsupportedQuery
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.plan.expressions.evaluation import INT_HIGH, INT_LOW, evaluate
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal, Value
from discreet.plan.model.readings import Groups, Reading
from discreet.plan.model.relations import salt_cuts, tables
from discreet.plan.model.types import Type
from discreet.plan.validation import check_reading, is_unicode

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


@lru_cache(maxsize=4096)
def read_as(name: str, stored: Type, declared: Type) -> Expression:
    """Returns the expression that reads a stored column as its declared type.

    >>> read_as("age", Type.TEXT, Type.INT).function
    'to_int'

    Raises:
        InvalidParameter: if such a column cannot be read as that type.
    """
    if (stored, declared) not in READS:
        hint = f"It is stored as {stored.value}. Declare that type, or convert the file."
        raise InvalidParameter(f"types[{name!r}]", declared.value, "to fit the stored column", hint)
    expression: Expression = ColumnRef(name, stored)
    for function in READS[stored, declared]:
        expression = FunctionCall(function, (expression,), _RESULTS[function])
    return expression


def check_columns(table: str, stored: Mapping[str, Type], declared: Mapping[str, Type], *, hint: str) -> None:
    """Refuses declared columns that a table does not have, or that cannot be read as their types.

    Raises:
        InvalidParameter: naming the column; the hint says which columns are readable.
    """
    for column, kind in declared.items():
        if column not in stored:
            raise InvalidParameter("column", column, f"to be a readable column of {table!r}", hint)
        read_as(column, stored[column], kind)


class Engine(ABC):
    """Tables and exact reads of them.

    Formal guarantees: a reading is refused for what it is (`InvalidParameter`) before a row is touched; once rows are
    touched the only error is `QueryFailed`, whose text is constant. The result is a function of the set of rows, the
    same whatever their order and the number of threads, and the same on every engine.

    >>> from discreet.engines import Memory
    >>> from discreet.plan.model.readings import Statistic
    >>> count = Reading(table="visits", statistics=(Statistic(kind="rows"),))
    >>> with Memory() as engine:
    ...     engine.register("visits", [{"age": 40}, {"age": 60}], {"age": Type.INT})
    ...     engine.read(count)
    <exact groups>
    >>> engine.read(count)  # it is closed by now
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected table='visits' to be registered. Register it first.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Mapping[str, Type]] = {}
        self._public: set[str] = set()

    def register(self, name: str, source: Any, columns: Mapping[str, Type], *, public: bool = False) -> None:
        """Makes a source readable under a name.

        Args:
            name: the table's name in readings; registering it again replaces it.
            source: what the engine documents: rows, a frame, a path, a table of a database.
            columns: the declared columns and types; no other column exists for readings.
            public: whether the table is public, so that `read_public` reads it.

        Raises:
            InvalidParameter: if the source has no such columns, or they cannot be read as these types.
        """
        if not columns:
            raise InvalidParameter("columns", "{}", "to name at least one column", "Declare the table's columns.")
        self._attach(name, source, dict(columns))
        self._columns[name] = dict(columns)
        self._public = self._public | {name} if public else self._public - {name}

    def read(self, reading: Reading) -> ExactGroups:
        """Computes exact integers for every group that has a kept row, and seals them.

        Raises:
            InvalidParameter: if the reading is not one this engine can run; nothing was read.
            QueryFailed: for every failure after that, whatever its cause, which is not kept.
        """
        return ExactGroups(self._run_reading(reading))

    def read_public(self, reading: Reading) -> Groups:
        """Computes the same of public tables.

        Raises:
            InvalidParameter: if one of the tables was not registered as public, or as `read` does; nothing was read.
            QueryFailed: as `read` does.
        """
        private = [table for table in _tables(reading) if table not in self._public]
        if private:
            raise InvalidParameter("table", private[0], "to be public", "Register it as a public table.")
        return self._run_reading(reading).groups

    def _run_reading(self, reading: Reading) -> GroupColumns:
        """Checks and runs a reading."""
        for table in _tables(reading):
            if table not in self._columns:
                raise InvalidParameter("table", table, "to be registered", "Register it first.")
        check_reading(reading, self._columns)
        run = self._prepare(_salt_reading(reading))
        try:
            return run()
        except Exception:  # noqa: BLE001 - causes carry data: dropped here, all of them
            failed = QueryFailed()
        raise failed

    def check(self, names: Collection[str], expressions: Collection[Expression]) -> None:
        """Refuses what this engine cannot compute with our meaning, before it is paid for.

        Args:
            names: the tables of a question.
            expressions: all that it computes from their rows.

        Raises:
            UnsupportedQuery: with what to do instead.
        """
        del names, expressions

    def freeze(self, source: Any, columns: Mapping[str, Type]) -> Any:
        """Returns what registers columns of a source as they are now, also later.

        What is not kept in memory stays as it is.

        Raises:
            InvalidParameter: as `register` does.
        """
        del columns
        return source

    def allow_objects(self, places: Sequence[str]) -> None:
        """Refuses, from now on, objects of buckets and web servers that are not in these places.

        Raises:
            InvalidParameter: if one of them is no address.
        """
        del places

    def origins(self, source: Any) -> dict[str, str]:
        """Returns where a source is, and what is there, if this engine knows more of it than files."""
        del source
        return {}

    @abstractmethod
    def schema_of(self, source: Any) -> dict[str, Type]:
        """Returns the columns whose types the source's format carries; the content is never looked at."""

    @abstractmethod
    def close(self) -> None:
        """Releases everything; the engine cannot be used afterwards."""

    @abstractmethod
    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None: ...

    @abstractmethod
    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        """Translates a reading, and reads no row; the function that it returns reads when it is called."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _tables(reading: Reading) -> tuple[str, ...]:
    return (reading.table, *(tables(reading.source) if reading.source is not None else ()))


def _salt_reading(reading: Reading) -> Reading:
    """Returns a reading whose cuts before joins choose rows by the salt of its limits."""
    if reading.source is None or reading.bounding is None:
        return reading
    return replace(reading, source=salt_cuts(reading.source, reading.bounding.salt))


@dataclass(frozen=True, slots=True)
class SourceKind:
    """Sources that bring an engine of their own: which one they name, None if none, and how it is made."""

    names: Callable[[Any], Hashable | None]
    make: Callable[[Any], Engine]


class BySource(Engine):
    """Several engines: each table is read where it is, and a question about tables of one engine by that.

    Nothing is carried from one engine to another.

    Args:
        usual: the engine of sources that bring none of their own.
        kinds: of sources that do.

    >>> from discreet.engines import Memory
    >>> tuples = SourceKind(lambda source: "tuples" if isinstance(source, tuple) else None, lambda name: Memory())
    >>> engine = BySource(Memory(), [tuples])
    >>> engine.register("visits", [{"ward": "A"}], {"ward": Type.TEXT})
    >>> engine.register("wards", ({"ward": "A"},), {"ward": Type.TEXT})
    >>> engine.check(["visits", "wards"], [])
    Traceback (most recent call last):
    discreet.errors.UnsupportedQuery: The tables of this question are in different databases, and rows are not ...
    """

    def __init__(self, usual: Engine, kinds: Sequence[SourceKind]) -> None:
        super().__init__()
        self._usual, self._kinds = usual, tuple(kinds)
        self._others: dict[Hashable, Engine] = {}
        self._places: dict[str, Engine] = {}

    def schema_of(self, source: Any) -> dict[str, Type]:
        """Returns the columns whose types the source's format carries."""
        return self._engine(source).schema_of(source)

    def freeze(self, source: Any, columns: Mapping[str, Type]) -> Any:
        """Returns a source as its engine keeps it."""
        return self._engine(source).freeze(source, columns)

    def allow_objects(self, places: Sequence[str]) -> None:
        """Hands the places to the engine of objects."""
        self._usual.allow_objects(places)

    def origins(self, source: Any) -> dict[str, str]:
        """Returns where a source is, as its engine says."""
        return self._engine(source).origins(source)

    def check(self, names: Collection[str], expressions: Collection[Expression]) -> None:
        """Refuses what joins tables of different engines, and what the engine of the tables cannot compute."""
        engines = {id(engine): engine for name in names if (engine := self._places.get(name)) is not None}
        if len(engines) > 1:
            reason = "The tables of this question are in different databases, and rows are not copied between them."
            raise UnsupportedQuery(reason, "Copy one of the tables to where the other is, and protect that.")
        for engine in engines.values():
            engine.check(names, expressions)

    def close(self) -> None:
        """Closes the engine of every kind of source."""
        for engine in (self._usual, *self._others.values()):
            engine.close()

    def _engine(self, source: Any) -> Engine:
        for kind in self._kinds:
            named = kind.names(source)
            if named is not None:
                if named not in self._others:
                    self._others[named] = kind.make(named)
                return self._others[named]
        return self._usual

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        engine = self._engine(source)
        engine.register(name, source, columns)
        self._places[name] = engine

    def _run_reading(self, reading: Reading) -> GroupColumns:
        """Reads where the tables are."""
        return self._holder(reading)._run_reading(reading)

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        return self._holder(reading)._prepare(reading)

    def _holder(self, reading: Reading) -> Engine:
        """Returns the engine of a reading's tables."""
        self.check({reading.table, *(() if reading.source is None else tables(reading.source))}, ())
        return self._places.get(reading.table, self._usual)


TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"
)


def read_value(expression: Expression, raw: Value) -> Value:
    """Computes the value of what `read_as` made, on a cell."""
    if not isinstance(expression, FunctionCall):
        return raw
    inner = expression.arguments[0]
    value = read_value(inner, raw)
    if value is None:
        return None
    if expression.function in _READING:
        return _READING[expression.function](value)
    found: Value = evaluate(FunctionCall(expression.function, (Literal(value, inner.type),), expression.type), {})
    return found


def stored_value(raw: Any) -> tuple[Type, Value]:
    """Returns the type of ours that a Python object is stored as, and its plain value; other objects are texts.

    >>> stored_value(Decimal("1.5")), stored_value(Decimal("NaN")), stored_value(1 << 64)
    ((<Type.FLOAT: 'float'>, 1.5), (<Type.FLOAT: 'float'>, None), (<Type.INT: 'int'>, None))
    """
    kind, convert = _PLAIN.get(id(type(raw))) or _form(raw)
    try:
        return kind, convert(raw)
    except Exception:  # noqa: BLE001 - an object's own code, which may raise anything
        return kind, None


def _form(raw: Any) -> _Form:
    return next((form for classes, form in _STORED if isinstance(raw, classes)), (Type.TEXT, text_of))


def text_of(raw: Any) -> str | None:
    """Returns an object as text; NULL of what is missing, not equal to itself, bytes, or without a text in Unicode."""
    try:
        missing = raw is None or bool(raw != raw) or isinstance(raw, bytes | bytearray | memoryview)  # noqa: PLR0124
        text = "" if missing else str(raw)
    except Exception:  # noqa: BLE001 - an object's own code, which may raise anything
        return None
    return None if missing or not is_unicode(text) else text


def _whole(raw: Any) -> int | None:
    number = int(raw)
    return number if INT_LOW <= number <= INT_HIGH else None


def _finite(raw: Any) -> float | None:
    number = float(raw)
    return number if math.isfinite(number) else None


def _moment(raw: dt.datetime) -> dt.datetime:
    """Returns a moment without a zone, in UTC, and without what a subclass adds."""
    moment = raw if raw.tzinfo is None else raw.astimezone(dt.UTC)
    return dt.datetime.combine(_day(moment), dt.time(moment.hour, moment.minute, moment.second, moment.microsecond))


def _day(raw: dt.date) -> dt.date:
    return dt.date(raw.year, raw.month, raw.day)


_Form = tuple[Type, Callable[[Any], Value]]
_STORED: tuple[tuple[tuple[type, ...], _Form], ...] = (
    ((bool, np.bool_), (Type.BOOL, bool)),
    ((numbers.Integral,), (Type.INT, _whole)),
    ((numbers.Real, Decimal), (Type.FLOAT, _finite)),
    ((dt.datetime,), (Type.TIMESTAMP, _moment)),
    ((dt.date,), (Type.DATE, _day)),
)
_PLAIN: Mapping[int, _Form] = {
    id(type(None)): (Type.TEXT, lambda _: None),
    id(str): (Type.TEXT, lambda text: text if is_unicode(text) else None),
    **{id(type(raw)): _form(raw) for raw in (True, 0, 0.0, dt.date.min, dt.datetime.min)},
}
"""The usual classes, found without asking an object anything, not even how its class is compared."""


def _read_bool(text: str) -> bool | None:
    return True if text in TRUE else False if text in FALSE else None


def _read_timestamp(text: str) -> dt.datetime | None:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    time = dt.time.fromisoformat(_six_decimals((match[2] or " 00:00")[1:]))
    try:
        return dt.datetime.combine(dt.date.fromisoformat(match[1]), time)
    except ValueError:  # there is no such day
        return None


def _six_decimals(time: str) -> str:
    whole, point, decimals = time.partition(".")
    return f"{whole}{point}{decimals:0<6}" if point else whole


_READING: Mapping[str, Callable[[Any], Value]] = {
    "read_bool": _read_bool,
    "read_timestamp": _read_timestamp,
    "midnight": lambda day: dt.datetime.combine(day, dt.time()),
}
"""The three that questions do not have."""


def steps(value: Value, exponent: int, low: int, high: int) -> int | None:
    """Computes the term of a sum, clip(floor(x * 2^-exponent + 1/2), low, high), exactly; NULL of NULL.

    >>> steps(0.49999999999999994, 0, -9, 9), steps(-1.5, 0, -9, 9), steps(1e300, -20, 0, 500)
    (0, -1, 500)
    """
    if value is None:
        return None
    top, bottom = value.as_integer_ratio()  # type: ignore[union-attr]
    top, bottom = (top, bottom << exponent) if exponent > 0 else (top << -exponent, bottom)
    return max(low, min(high, (2 * top + bottom) // (2 * bottom)))
