"""Relations over lists of dicts in plain Python: what `rows` must agree with, slow and obvious."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cmp_to_key, partial, singledispatch
from itertools import pairwise
from typing import Any

from discreet.engines.abstract_engine import steps
from discreet.engines.row_choice import Salt, normalize_id, put_together
from discreet.errors import InternalError
from discreet.plan.expressions.evaluation import INT_HIGH, INT_LOW, evaluate
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, Relation, SortKey, Value
from discreet.plan.model.relations import (
    BaseTable,
    Cut,
    Declared,
    Fold,
    Join,
    LinkedTable,
    MarkJoin,
    Pairs,
    RelationUnion,
    Select,
    SemiJoin,
    UnitAggregation,
    Window,
    WindowedRelation,
    besides_units,
    has_people,
    shape,
)
from discreet.plan.model.types import Type

Row = dict[str, Value]
Tables = Mapping[str, Sequence[Row]]


@singledispatch
def gather(relation: Relation, tables: Tables, declared: Declared) -> list[Row]:
    """Returns the rows of a relation."""
    del tables, declared
    raise InternalError(f"A {type(relation).__name__} cannot be read.")


@gather.register
def _(relation: BaseTable, tables: Tables, declared: Declared) -> list[Row]:
    del declared
    rows = tables[relation.name]
    if relation.unit is None:
        return list(rows)
    if relation.period is not None:
        first_day = relation.period.first_day
        return [{**row, UNIT: put_together([row[str(relation.unit)], evaluate(first_day, row)])} for row in rows]
    if isinstance(relation.unit, tuple):
        return [{**row, UNIT: put_together([row[name] for name in relation.unit])} for row in rows]
    return [{**row, UNIT: normalize_id(row[relation.unit])} for row in rows]


@gather.register
def _(relation: LinkedTable, tables: Tables, declared: Declared) -> list[Row]:
    units: dict[Value, set[Value]] = defaultdict(set)
    for row in gather(relation.through, tables, declared):
        if row[UNIT] is not None and row[relation.key] is not None:
            units[row[relation.key]].add(row[UNIT])
    return [{**row, UNIT: unit} for row in tables[relation.name] for unit in units.get(row[relation.column], ())]


@gather.register
def _(relation: Select, tables: Tables, declared: Declared) -> list[Row]:
    rows = gather(relation.source, tables, declared)
    kept = [row for row in rows if relation.where is None or evaluate(relation.where, row) is True]
    return [
        _with_unit({column.name: evaluate(column.expression, row) for column in relation.columns}, row) for row in kept
    ]


def _with_unit(made: Row, row: Row) -> Row:
    return {**made, UNIT: row[UNIT]} if UNIT in row else made


@gather.register
def _(relation: UnitAggregation, tables: Tables, declared: Declared) -> list[Row]:
    groups: dict[tuple[Value, ...], list[Row]] = defaultdict(list)
    for row in gather(relation.source, tables, declared):
        if row[UNIT] is not None:
            groups[(row[UNIT], *(evaluate(key.expression, row) for key in relation.keys))].append(row)
    return [
        {
            **{key.name: value for key, value in zip(relation.keys, place[1:], strict=True)},
            **{fold.name: fold_rows(fold, rows) for fold in relation.folds},
            UNIT: place[0],
        }
        for place, rows in groups.items()
    ]


@gather.register
def _(relation: WindowedRelation, tables: Tables, declared: Declared) -> list[Row]:
    rows = [row for row in gather(relation.source, tables, declared) if row[UNIT] is not None]
    names = [name for name in shape(relation.source, declared) if name != UNIT]
    made: list[Row] = [{} for _ in rows]
    for window in relation.windows:
        for place, value in enumerate(places(window, rows, names)):
            made[place][window.name] = value
    return [{**row, **values} for row, values in zip(rows, made, strict=True)]


def fold_rows(fold: Fold | Window, rows: Sequence[Row]) -> Value:
    """Computes one value of several rows."""
    if fold.argument is None:
        return len(rows)
    if isinstance(fold, Fold) and fold.by is not None:
        return _extreme(fold, fold.by, rows)
    values = [value for row in rows if (value := evaluate(fold.argument, row)) is not None]
    if fold.kind in ("sum", "mean"):
        return _total(fold, values)
    return _FOLDS[fold.kind](values)


def _extreme(fold: Fold, by: Expression, rows: Sequence[Row]) -> Value:
    """Returns the value of the smallest or largest pair; in *first* and *last*, NULL only if all values there are."""
    pairs = [(evaluate(by, row), evaluate(fold.argument, row)) for row in rows if fold.argument is not None]
    known: list[Any] = [pair for pair in pairs if pair[0] is not None]
    if fold.kind in ("arg_min", "arg_max"):
        known = [pair for pair in known if pair[1] is not None]
    choose = min if fold.kind in ("arg_min", "first") else max
    place = choose((pair[0] for pair in known), default=None)
    found: Value = choose((value for at, value in known if at == place and value is not None), default=None)
    return found


def _total(fold: Fold | Window, values: Sequence[Any]) -> Value:
    exponent, low, high = fold.grid
    return _scale_total(fold, sum(steps(value, exponent, low, high) or 0 for value in values), len(values))


def _scale_total(fold: Fold | Window, total: int, count: int) -> Value:
    """Returns a sum of steps, or the mean of so many of them."""
    exponent, _, _ = fold.grid
    if not count or not INT_LOW <= total <= INT_HIGH:
        return None
    if fold.kind == "mean":
        return float(total) / count * 2.0**exponent
    return total if fold.type is Type.INT else float(total) * 2.0**exponent


_FOLDS: dict[str, Callable[[Sequence[Any]], Value]] = {
    "count_values": len,
    "count_distinct": lambda values: len(set(values)),
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
}


@gather.register
def _(relation: Join, tables: Tables, declared: Declared) -> list[Row]:
    left, right = gather(relation.left, tables, declared), gather(relation.right, tables, declared)
    on = _find_join_pairs(relation.left, relation.right, relation.on, declared)
    found = _by_key(right, [b for _, b in on])
    empty = dict.fromkeys((name for name in shape(relation.right, declared) if name != UNIT), None)
    pairs: list[Row] = []
    for row in left:
        partners = _partners(row, [a for a, _ in on], found)
        if relation.single:
            partners = _smallest(partners)
        pairs += [_merge_rows(row, partner) for partner in partners]
        if relation.outer and not partners:
            pairs.append({**row, **empty})
    return pairs


def _smallest(rows: Sequence[Row]) -> list[Row]:
    """Returns the smallest of equal rows by all columns, NULL last; none of none."""
    return sorted(rows, key=lambda row: [(value is None, value) for value in row.values()])[:1]


def _merge_rows(row: Row, partner: Row) -> Row:
    merged = {**partner, **row}
    return merged if UNIT in row else {name: value for name, value in merged.items() if name != UNIT}


def _by_key(rows: Iterable[Row], on: Sequence[Expression]) -> dict[tuple[Value, ...], list[Row]]:
    found: dict[tuple[Value, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(evaluate(expression, row) for expression in on)].append(row)
    return found


def _find_join_pairs(left: Relation, right: Relation, on: Pairs, declared: Declared) -> Pairs:
    """Returns what must be equal: if both sides have people, their ids in normal form replace those as written.

    A row without an id has no pair, and counts nowhere.
    """
    if not (has_people(left, declared) and has_people(right, declared)):
        return on
    whose = ColumnRef(UNIT, shape(left, declared)[UNIT])
    return (*besides_units(left, right, on, declared), (whose, whose))


def _partners(row: Row, on: Sequence[Expression], found: Mapping[tuple[Value, ...], list[Row]]) -> list[Row]:
    """Returns rows that are equal; NULL equals nothing."""
    key = tuple(evaluate(expression, row) for expression in on)
    return [] if None in key else found.get(key, [])


@gather.register
def _(relation: SemiJoin, tables: Tables, declared: Declared) -> list[Row]:
    pairs = _find_join_pairs(relation.source, relation.other, relation.on, declared)
    on = [a for a, _ in pairs]
    found = _by_key(gather(relation.other, tables, declared), [b for _, b in pairs])
    rows = gather(relation.source, tables, declared)
    if relation.negated:
        rows = [row for row in rows if _is_known(row, on)]
    return [row for row in rows if bool(_partners(row, on, found)) is not relation.negated]


@gather.register
def _(relation: MarkJoin, tables: Tables, declared: Declared) -> list[Row]:
    pairs = _find_join_pairs(relation.source, relation.other, relation.on, declared)
    on = [a for a, _ in pairs]
    found = _by_key(gather(relation.other, tables, declared), [b for _, b in pairs])
    return [
        {**row, relation.name: bool(_partners(row, on, found)) if _is_known(row, on) else None}
        for row in gather(relation.source, tables, declared)
    ]


def _is_known(row: Row, on: Sequence[Expression]) -> bool:
    return all(evaluate(expression, row) is not None for expression in on)


@gather.register
def _(relation: Cut, tables: Tables, declared: Declared) -> list[Row]:
    return first_rows(relation, shape(relation.source, declared), gather(relation.source, tables, declared))


def first_rows(relation: Cut, columns: Mapping[str, Type], rows: Iterable[Row]) -> list[Row]:
    """Returns at most so many rows of each unit; rows without an id are left out."""
    own: dict[Value, list[Row]] = defaultdict(list)
    for row in rows:
        if row[UNIT] is not None:
            own[row[UNIT]].append(row)
    order = partial(_cut_order, relation, columns, Salt(relation.salt))
    few = [row for theirs in own.values() if len(theirs) <= relation.rows for row in theirs]
    many = [sorted(theirs, key=order)[: relation.rows] for theirs in own.values() if len(theirs) > relation.rows]
    return [*few, *(row for theirs in many for row in theirs)]


def _cut_order(relation: Cut, columns: Mapping[str, Type], salt: Salt, row: Row) -> list[Any]:
    """Returns the place of a row among its unit's rows: by ranks of what is compared, of all of it, and its values."""
    unit = row[UNIT]
    compared = [(part.type, evaluate(part, row)) for part in relation.by]
    values = [(kind, row[name]) for name, kind in columns.items() if name != UNIT]
    whole = tuple(value for kind, value in values if kind is not Type.FLOAT)
    return [
        *(salt.rank(unit, (value,)) for kind, value in compared if kind is not Type.FLOAT),
        *((value is None, value or 0.0) for kind, value in compared if kind is Type.FLOAT),
        salt.rank(unit, whole),
        *((0,) if value is None else (1, value) for _, value in values),
    ]


@gather.register
def _(relation: RelationUnion, tables: Tables, declared: Declared) -> list[Row]:
    return [row for source in relation.sources for row in gather(source, tables, declared)]


def places(window: Window, rows: Sequence[Row], columns: Sequence[str]) -> list[Value]:
    """Computes the value of a window for each row.

    Args:
        window: which one.
        rows: all of them.
        columns: by which rows are ordered where the window's own order leaves a choice.
    """
    groups: dict[tuple[Value, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        groups[(row[UNIT], *(evaluate(part, row) for part in window.partition))].append(place)
    found: list[Value] = [None] * len(rows)
    for group in groups.values():
        by_rows = cmp_to_key(partial(_compare, window.order, columns))
        ordered = sorted(group, key=lambda place: by_rows(rows[place]))
        for place, value in zip(ordered, _values(window, [rows[place] for place in ordered]), strict=True):
            found[place] = value
    return found


def _values(window: Window, rows: Sequence[Row]) -> Iterator[Value]:
    """Yields the values of rows of one group, which are in order; one person may have very many."""
    last = _last_peers(window, rows)
    folds = _folds(window, rows, last) if window.kind in _FOLDED else []
    first, peers = 0, 0
    for place in range(len(rows)):
        if place == 0 or last[place - 1] < place:
            first, peers = place, peers + 1
        if window.kind == "row_number":
            yield place + 1
        elif window.kind == "rank":
            yield first + 1
        elif window.kind == "dense_rank":
            yield peers
        elif window.kind in _FOLDED:
            yield folds[place]
        else:
            yield _elsewhere(window, rows, place)


_FOLDED = ("count", "count_values", "sum", "mean", "min", "max")


def _folds(window: Window, rows: Sequence[Row], last: Sequence[int]) -> list[Value]:
    """Folds over all rows, or, in an order, over those up to each row and its equals, added up as rows come."""
    if not window.order:
        return [fold_rows(window, rows)] * len(rows)
    found: list[Value] = []
    so_far, argument = _SoFar(window), window.argument
    for start, end in pairwise([-1, *sorted(set(last))]):
        for row in rows[start + 1 : end + 1]:
            so_far.add(None if argument is None else evaluate(argument, row))
        found += [so_far.value()] * (end - start)
    return found


class _SoFar:
    """A fold over values that come one by one."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._rows = self._count = self._total = 0
        self._extreme: Any = None

    def add(self, value: Any) -> None:
        self._rows += 1
        if value is None:
            return
        self._count += 1
        if self._window.kind in ("sum", "mean"):
            self._total += steps(value, *self._window.grid) or 0
        elif self._window.kind in ("min", "max"):
            choose = min if self._window.kind == "min" else max
            self._extreme = value if self._extreme is None else choose(self._extreme, value)

    def value(self) -> Value:
        if self._window.argument is None or self._window.kind == "count":
            return self._rows
        if self._window.kind == "count_values":
            return self._count
        if self._window.kind in ("sum", "mean"):
            return _scale_total(self._window, self._total, self._count)
        found: Value = self._extreme
        return found


def _elsewhere(window: Window, rows: Sequence[Row], place: int) -> Value:
    there = {"lag": place - window.offset, "lead": place + window.offset, "first": 0, "last": len(rows) - 1}[
        window.kind
    ]
    if window.argument is None or not 0 <= there < len(rows):
        return None
    value: Value = evaluate(window.argument, rows[there])
    return value


def _last_peers(window: Window, rows: Sequence[Row]) -> list[int]:
    """Returns for each row the place of the last one that is equal to it in the window's order."""
    last = list(range(len(rows)))
    for place in reversed(range(len(rows) - 1)):
        if _compare(window.order, (), rows[place], rows[place + 1]) == 0:
            last[place] = last[place + 1]
    return last


def _compare(order: Sequence[SortKey], columns: Sequence[str], one: Row, other: Row) -> int:
    for part in order:
        found = _sign(evaluate(part.expression, one), evaluate(part.expression, other), descending=part.descending)
        if found:
            return found
    return next((found for name in columns if (found := _sign(one[name], other[name]))), 0)


def _sign(a: Any, b: Any, *, descending: bool = False) -> int:
    """Returns the sign of an order with NULL last, in both directions."""
    if a is None or b is None:
        return (a is None) - (b is None)
    return int((a < b) - (a > b) if descending else (a > b) - (a < b))
