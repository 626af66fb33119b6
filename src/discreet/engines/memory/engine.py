"""The referee: readings over lists of dicts in plain Python, slow and obvious, to which every engine must agree."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from discreet.engines.abstract_engine import READS, Engine, read_as, read_value, steps, stored_value
from discreet.engines.memory.relation_rows import gather
from discreet.engines.row_choice import Salt, normalize_id, stays
from discreet.errors import InternalError, InvalidParameter
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.nodes import Expression, Value
from discreet.plan.model.readings import ContributionBounding, Groups, Reading, Split, Spread, Statistic
from discreet.plan.model.types import Type

Row = dict[str, Value]
Keys = tuple[Value, ...]
Pairs = dict[Value, dict[Keys, list[Row]]]  # the rows of each unit and group


class Memory(Engine):
    """Tables as sequences of dicts.

    >>> from discreet.plan.model.readings import Reading, Statistic
    >>> engine = Memory()
    >>> engine.register("visits", [{"age": 30}, {"age": None}], {"age": Type.INT})
    >>> engine.read(Reading(table="visits", statistics=(Statistic(kind="rows"),)))
    <exact groups>
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, list[Row]] = {}

    def schema_of(self, source: Any) -> dict[str, Type]:
        """Returns nothing: dicts carry no types apart from their content."""
        del source
        return {}

    def close(self) -> None:
        """Forgets all rows and columns."""
        self._rows.clear()
        self._columns.clear()

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        is_list = isinstance(source, Sequence) and not isinstance(source, str | bytes)
        if not is_list or not all(isinstance(row, Mapping) for row in source):
            raise InvalidParameter("source", type(source).__name__, "to be a sequence of dicts")
        self._rows[name] = [{column: cell(row, column, kind) for column, kind in columns.items()} for row in source]

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        def read() -> GroupColumns:
            if reading.source is None:
                rows = self._rows[reading.table]
            else:
                rows = gather(reading.source, self._rows, self._columns)
            width = None if reading.split or reading.spread else len(reading.statistics)
            return GroupColumns.of(_answer(reading, rows), [key.type for key in reading.keys], width)

        return read


def cell(row: Mapping[str, Any], column: str, declared: Type) -> Value:
    """Reads a cell as the declared type; NULL where it cannot be."""
    stored, value = stored_value(row.get(column))
    if value is None or stored is declared:
        return value
    if (stored, declared) not in READS:
        return None
    return read_value(read_as(column, stored, declared), value)


def _answer(reading: Reading, rows: Iterable[Row]) -> Groups:
    kept = [row for row in rows if reading.where is None or evaluate(reading.where, row) is True]
    public = None if reading.public_keys is None else set(reading.public_keys)
    pairs = _pairs(reading, kept, public)
    if reading.spread is not None:
        return _spread(reading.spread, pairs, reading.bounding)
    split = reading.split
    if reading.bounding is not None:
        pairs = _bound_rows(pairs, reading.bounding, reading.statistics if split is None else (split.term,))
    groups: dict[Keys, list[list[Row]]] = defaultdict(list)
    for of_unit in pairs.values():
        for keys, theirs in of_unit.items():
            groups[keys].append(theirs)
    if split is not None:
        counted = {keys: _cells(split, keys, lots) for keys, lots in groups.items()}
        return {keys: numbers for keys, numbers in counted.items() if numbers}
    by_row = reading.bounding is None
    return {keys: tuple(_value(s, lots, by_row) for s in reading.statistics) for keys, lots in groups.items()}


def _pairs(reading: Reading, rows: Iterable[Row], public: set[Keys] | None) -> Pairs:
    """Returns rows by unit and group; without a unit column all rows are of one unit, which nothing bounds."""
    pairs: Pairs = defaultdict(lambda: defaultdict(list))
    for row in rows:
        keys = tuple(evaluate(key, row) for key in reading.keys)
        unit = True if reading.bounding is None else normalize_id(row[reading.bounding.unit])
        if unit is not None and (public is None or keys in public):
            pairs[unit][keys].append(row)
    return pairs


def _bound_rows(pairs: Pairs, bounding: ContributionBounding, statistics: Sequence[Statistic]) -> Pairs:
    kept: Pairs = {}
    salt = Salt(bounding.salt)
    if bounding.total is not None:
        return {unit: _within_total(unit, groups, bounding.total, salt, statistics) for unit, groups in pairs.items()}
    for unit, groups in pairs.items():
        ranks = {keys: salt.rank(unit, keys) for keys in groups}
        smallest = sorted(groups, key=lambda keys: (ranks[keys], [_nulls_first(key) for key in keys]))
        kept[unit] = {
            keys: _pick_rows(groups[keys], bounding.rows, ranks[keys], statistics)
            for keys in smallest[: bounding.groups]
        }
    return kept


def _within_total(
    unit: Value, groups: dict[Keys, list[Row]], total: int, salt: Salt, statistics: Sequence[Statistic]
) -> dict[Keys, list[Row]]:
    """Returns at most so many rows of one unit in all its groups, evenly spaced in the order of groups and terms."""
    rows = [
        (keys, row)
        for keys in sorted(groups, key=lambda keys: [_nulls_first(key) for key in keys])
        for row in _in_order(groups[keys], statistics)
    ]
    start, n, kept = salt.rank(unit, ()), len(rows), defaultdict[Keys, list[Row]](list)
    for place, (keys, row) in enumerate(rows):
        if n <= total or stays(place, total, start, n):
            kept[keys].append(row)
    return kept


def _spread(spread: Spread, pairs: Pairs, bounding: ContributionBounding | None) -> Groups:
    """Returns units of each group by how many groups they are kept in."""
    if bounding is None:
        raise InternalError("A reading reached an engine unchecked.")
    hidden = set(spread.without)
    left = {unit: {keys: rows for keys, rows in of.items() if keys not in hidden} for unit, of in pairs.items()}
    counts: dict[Keys, Counter[int]] = defaultdict(Counter)
    for of_unit in _bound_rows(left, replace(bounding, total=None), ()).values():
        for keys in of_unit:
            counts[keys][len(of_unit)] += 1
    return {keys: (*sorted(found), *(found[n] for n in sorted(found))) for keys, found in counts.items()}


def _pick_rows(rows: list[Row], limit: int, rank: int, statistics: Sequence[Statistic]) -> list[Row]:
    """Returns at most so many rows, evenly spaced in the order of their terms."""
    if len(rows) <= limit:
        return rows
    ordered = _in_order(rows, statistics)
    return [row for place, row in enumerate(ordered) if stays(place, limit, rank, len(rows))]


def _in_order(rows: list[Row], statistics: Sequence[Statistic]) -> list[Row]:
    """Returns rows in the order of their terms."""
    return sorted(rows, key=lambda row: [_nulls_first(_term(s, s.argument, row)) for s in statistics])


def _nulls_first(value: Value) -> tuple[Any, ...]:
    return (0,) if value is None else (1, value)


def _cells(split: Split, keys: Keys, lots: list[list[Row]]) -> tuple[int, ...]:
    """Cells and counts of the rows of one group."""
    places = () if split.only is None else split.only.places
    wanted = None if split.only is None else {c for key, a, b in places if key == keys for c in range(a, b + 1)}
    wide = 0 if split.only is None else split.only.shift
    counts: dict[int, int] = defaultdict(int)
    for row in (row for lot in lots for row in lot):
        step = _term(split.term, split.argument, row)
        if step is not None and (wanted is None or step - split.low >> wide in wanted):
            counts[step - split.low >> split.shift] += 1
    cells = sorted(counts)
    return (*cells, *(counts[cell] for cell in cells))


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
    if statistic.kind == "distinct":
        return len(set(terms))
    if statistic.kind == "values":
        return len(terms)
    if statistic.kind == "distinct_sum":
        terms = list(set(terms))
    return sum(term - (statistic.less if statistic.factor else statistic.shift) for term in terms)


def _term(statistic: Statistic, argument: Expression | None, row: Row) -> Any:
    """Returns what a row adds to a sum, or its value; NULL if it has none."""
    value = None if argument is None else evaluate(argument, row)
    if statistic.kind == "distinct":
        return value
    if statistic.kind not in ("sum", "product", "distinct_sum"):
        return None if value is None else 0
    if statistic.factor is not None:
        return _product(statistic, row)
    return steps(value, statistic.exponent, statistic.low, statistic.high)


def _product(statistic: Statistic, row: Row) -> int | None:
    """Returns all terms, each counted from its shift, multiplied."""
    pairs = [(part.shift, _term(part, part.argument, row)) for part in statistic.terms]
    return None if any(term is None for _, term in pairs) else math.prod(term - shift for shift, term in pairs)
