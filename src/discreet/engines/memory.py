"""The referee: readings over lists of dicts in plain Python, slow and obvious, to which every engine must agree."""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from discreet.engines.base import Engine, read_as
from discreet.engines.choosing import Salt, canonical, digest, normalised
from discreet.engines.pure import evaluate, steps
from discreet.engines.validation import INT_HIGH, INT_LOW
from discreet.errors import InvalidParameter
from discreet.plan.nodes import Expression, Value
from discreet.plan.reading import Bounding, Groups, Reading, Statistic
from discreet.plan.types import Type

Row = dict[str, Value]
Keys = tuple[Value, ...]
Pairs = dict[Value, dict[Keys, list[Row]]]  # the rows of each unit and group


class Memory(Engine):
    """Tables as sequences of dicts.

    >>> from discreet.plan.reading import Reading, Statistic
    >>> engine = Memory()
    >>> engine.register("visits", [{"age": 30}, {"age": None}], {"age": Type.INT})
    >>> engine.read(Reading(table="visits", statistics=(Statistic(kind="rows"),)))
    {(): (2,)}
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, list[Row]] = {}

    def schema_of(self, source: Any) -> dict[str, Type]:
        """Nothing: dicts carry no types apart from their content."""
        del source
        return {}

    def close(self) -> None:
        """Forgets the rows."""
        self._rows.clear()
        self._columns.clear()

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        if not isinstance(source, Sequence) or isinstance(source, str | bytes):
            raise InvalidParameter("source", type(source).__name__, "to be a sequence of dicts")
        self._rows[name] = [{column: _cell(row, column, kind) for column, kind in columns.items()} for row in source]

    def _prepare(self, reading: Reading) -> Iterator[tuple[Keys, tuple[int, ...]]]:
        rows = self._rows[reading.table]
        return (pair for pair in _answer(reading, rows, self._columns[reading.table]).items())


def _utc(moment: dt.datetime) -> dt.datetime:
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)


_STORED: Mapping[type, tuple[Type, Callable[[Any], Value]]] = {
    bool: (Type.BOOL, bool),
    int: (Type.INT, lambda n: n if INT_LOW <= n <= INT_HIGH else None),
    float: (Type.FLOAT, lambda x: x if math.isfinite(x) else None),
    Decimal: (Type.FLOAT, float),
    str: (Type.TEXT, str),
    dt.date: (Type.DATE, lambda day: day),
    dt.datetime: (Type.TIMESTAMP, _utc),
}


def _cell(row: Mapping[str, Any], column: str, declared: Type) -> Value:
    """A cell read as the declared type."""
    raw = row.get(column)
    if raw is None:
        return None
    if type(raw) not in _STORED:
        raise InvalidParameter("source", type(raw).__name__, "to hold numbers, texts, days and moments only")
    stored, clean = _STORED[type(raw)]
    return evaluate(read_as(column, stored, declared), {column: clean(raw)})


def _answer(reading: Reading, rows: Iterable[Row], columns: Iterable[str]) -> Groups:
    kept = [row for row in rows if reading.where is None or evaluate(reading.where, row) is True]
    public = None if reading.public_keys is None else set(reading.public_keys)
    pairs = _pairs(reading, kept, public)
    if reading.bounding is not None:
        pairs = _bounded(pairs, reading.bounding, list(columns))
    groups: dict[Keys, list[list[Row]]] = defaultdict(list)
    for of_unit in pairs.values():
        for keys, theirs in of_unit.items():
            groups[keys].append(theirs)
    by_row = reading.bounding is None
    return {keys: tuple(_value(s, lots, by_row) for s in reading.statistics) for keys, lots in groups.items()}


def _pairs(reading: Reading, rows: Iterable[Row], public: set[Keys] | None) -> Pairs:
    """Rows by unit and group; without a unit column all rows stand under one unit, which nothing bounds."""
    pairs: Pairs = defaultdict(lambda: defaultdict(list))
    for row in rows:
        keys = tuple(evaluate(key, row) for key in reading.keys)
        unit = True if reading.bounding is None else normalised(row[reading.bounding.unit])
        if unit is not None and (public is None or keys in public):
            pairs[unit][keys].append(row)
    return pairs


def _bounded(pairs: Pairs, bounding: Bounding, columns: list[str]) -> Pairs:
    salt = Salt(bounding.salt)
    return {
        unit: {
            keys: sorted(rows, key=lambda row: _place(salt, unit, keys, row, columns))[: bounding.rows]
            for keys, rows in _allowed(salt, unit, of_unit, bounding.groups).items()
        }
        for unit, of_unit in pairs.items()
    }


def _allowed(salt: Salt, unit: Value, groups: dict[Keys, list[Row]], limit: int) -> dict[Keys, list[Row]]:
    """The groups whose rank is below the (limit + 1)-th smallest of different ranks; none, if still too many."""
    ranks = {keys: salt.rank(unit, keys) for keys in groups}
    above = sorted(set(ranks.values()))[limit:]
    kept = {keys: rows for keys, rows in groups.items() if not above or ranks[keys] < above[0]}
    return kept if len(kept) <= limit else {}


def _place(salt: Salt, unit: Value, keys: Keys, row: Row, columns: list[str]) -> tuple[Any, ...]:
    values = [unit, *keys, *(row[column] for column in columns)]
    text = salt.prefix + "".join(canonical(value) for value in values)
    floats = [row[column] for column in columns if isinstance(row[column], float)]
    return digest(text), floats


def _value(statistic: Statistic, lots: list[list[Row]], by_row: bool) -> int:
    return statistic.times * _once(statistic, lots, by_row)


def _once(statistic: Statistic, lots: list[list[Row]], by_row: bool) -> int:
    rows = [row for lot in lots for row in lot]
    if statistic.kind == "units":
        return len(rows) if by_row else len(lots)
    if statistic.kind == "rows":
        return len(rows)
    terms = [term for row in rows if (term := _term(statistic, statistic.argument, row)) is not None]
    if statistic.kind == "nulls":
        return len(rows) - len(terms)
    return len(terms) if statistic.kind == "values" else sum(term - statistic.shift for term in terms)


def _term(statistic: Statistic, argument: Expression | None, row: Row) -> int | None:
    value = None if argument is None else evaluate(argument, row)
    if statistic.kind != "sum":
        return None if value is None else 0
    return steps(value, statistic.exponent, statistic.low, statistic.high)
