"""A reading as one SQL statement, and its rows as exact statistics.

Without a unit column the statement is one aggregation; with one, a strategy of bounding writes it. A database hands
over rows of Python's objects, or an Arrow table where there may be many groups: both become the same columns of keys
and exact integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.engines.sql.bounded_rows import BoundedRows, several
from discreet.engines.sql.contribution_bounds import BoundedQuery, can_be_sorted
from discreet.engines.sql.dialect import Dialect, Strategy
from discreet.engines.sql.join_bounds import heavy
from discreet.engines.sql.one_sort import GroupSort, OneSort
from discreet.engines.sql.printer import (
    Access,
    PrintedReading,
    Printer,
    Term,
    TermKind,
    grid_steps,
    print_subquery,
    select,
)
from discreet.engines.sql.relation_printer import RelationPrinter, StoredTable
from discreet.engines.sql.total_bound import TotalBound
from discreet.errors import InternalError
from discreet.exact.integer_columns import (
    Column,
    WideColumn,
    column_of,
    combine_columns,
    concatenate_columns,
    narrow_column,
    objects,
)
from discreet.lazy import pa
from discreet.plan.model.group_columns import GroupColumns, KeyColumn, key_column, public_keys
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import CellSelection, ContributionBounding, Reading, Split, Spread, Statistic
from discreet.plan.model.types import Type


def split_statement(reading: Reading, split: Split, printer: Printer) -> Statement:
    """Prints the statement of a split that has been checked: kept rows counted by group and cell, as two lists."""
    keys = [printer.name(printer.print(key)) for key in reading.keys]
    argument = printer.name(printer.print(split.argument))
    parts = PrintedReading(
        printer=printer,
        keys=tuple((key, node.type) for key, node in zip(keys, reading.keys, strict=True)),
        where=None if reading.where is None else printer.print(reading.where),
        terms=(("sum", grid_steps(printer, split.term, argument, split.argument.type)),),
        public_keys=reading.public_keys,
        counts_units=False,
        made=reading.source is not None,
    )
    if reading.bounding is None:
        return _of_lists(reading, printer, _print_cell_counts(parts, split, _rows(parts)))
    bounded = _bound_rows(parts, reading.bounding)
    counted = _print_cell_counts(parts, split, print_subquery(bounded.print_kept_rows()))
    made = _of_lists(reading, printer, f"{bounded.tables()} {counted}")
    return replace(made, presort=_presort(bounded, parts, reading.bounding))


def spread_statement(reading: Reading, spread: Spread, printer: Printer) -> Statement:
    """Prints the statement of a spread that has been checked: units counted by group and number of groups."""
    if reading.bounding is None:
        raise InternalError("A reading reached an engine unchecked.")
    keys = [printer.name(printer.print(key)) for key in reading.keys]
    parts = PrintedReading(
        printer=printer,
        keys=tuple((key, node.type) for key, node in zip(keys, reading.keys, strict=True)),
        where=None if reading.where is None else printer.print(reading.where),
        terms=(),
        public_keys=None,
        counts_units=True,
        made=reading.source is not None,
    )
    return _of_lists(reading, printer, BoundedRows(parts, reading.bounding).spread(spread.without))


def _of_lists(reading: Reading, printer: Printer, sql: str) -> Statement:
    return Statement(sql=sql, parameters=_pick_parameters(printer, sql), keys=_kinds(reading), finish=None)


def _rows(parts: PrintedReading) -> str:
    """Returns all rows: no unit has more than one."""
    columns, where = [*parts.key_columns, *parts.named_terms], parts.where.sql if parts.where else ""
    text = select(*columns, source=parts.printer.rows([*columns, where]), where=where)
    public = parts.public("b")
    return print_subquery(select("*", source=print_subquery(text, "b"), where=public) if public else text)


def _print_cell_counts(parts: PrintedReading, split: Split, rows: str) -> str:
    """Cells and counts of each group, from the kept rows."""
    found = print_subquery(select(*parts.k, f"t0 - ({split.low}) AS s", source=rows, where="t0 IS NOT NULL"), "z")
    if split.only is not None:
        found = _only(parts, split.only, found)
    shifted, ordered = parts.dialect.shifted, parts.dialect.ordered_list
    counted = select(
        *(f"z.{k}" for k in parts.k),
        f"{shifted.format('z.s', split.shift)} AS c",
        "COUNT(*) AS n",
        source=found,
        group=[str(i + 1) for i in range(len(parts.keys) + 1)],
    )
    cells = [f"{ordered.format('c', 'c')} AS cells", f"{ordered.format('n', 'c')} AS counts"]
    having = "" if parts.keys else "COUNT(*) > 0"
    return select(*parts.k, *cells, source=print_subquery(counted), group=parts.k, having=having)


def _only(parts: PrintedReading, only: CellSelection, rows: str) -> str:
    """Returns rows in the cells that are listed: a join with each of them once, which is faster than EXISTS."""
    kinds = [*(kind for _, kind in parts.keys), Type.INT, Type.INT]
    lists = [list(values) for values in zip(*((*key, first, last) for key, first, last in only.places), strict=True)]
    lists = lists or [[] for _ in kinds]
    table = parts.dialect.public_table(lists, kinds, parts.printer.parameters)
    keys = [f"p{i}" for i in range(len(parts.keys))]
    first, last = f"p{len(keys)}", f"p{len(keys) + 1}"
    place = parts.dialect.shifted.format("z.s", only.shift)
    if not parts.dialect.run:
        on = " AND ".join([*_equal_keys(parts, keys, lists), f"{place} BETWEEN q.{first} AND q.{last}"])
        listed = select("1", source=print_subquery(table, "q"), where=on)
        return print_subquery(select("*", source=rows, where=f"EXISTS ({listed})"), "z")
    cells = select(*keys, parts.dialect.run.format(first, last) + " AS w", source=print_subquery(table))
    on = " AND ".join([*_equal_keys(parts, keys, lists), f"q.w = {place}"])
    return f"{rows} JOIN {print_subquery(select('DISTINCT *', source=print_subquery(cells)), 'q')} ON {on}"


def _equal_keys(parts: PrintedReading, keys: Sequence[str], lists: Sequence[Sequence[Any]]) -> list[str]:
    """Prints conditions that listed keys are those of a row, NULL being like NULL."""
    return [
        parts.dialect.same(f"q.{p}", f"z.{k}") if None in values else f"q.{p} = z.{k}"
        for p, k, values in zip(keys, parts.k, lists, strict=False)
    ]


_STRATEGIES: Mapping[Strategy, type[BoundedQuery | OneSort | GroupSort]] = {
    "suspects": BoundedQuery,
    "one_sort": OneSort,
    "group_sort": GroupSort,
}


def _bound_rows(
    parts: PrintedReading, bounding: ContributionBounding
) -> BoundedQuery | OneSort | GroupSort | TotalBound:
    """Returns the reading's bounded rows, found as the dialect finds them best."""
    if bounding.total is not None:
        return TotalBound(parts, bounding)
    if parts.printer.access.is_sorted and can_be_sorted(parts, bounding):
        return BoundedQuery(parts, bounding, is_sorted=True)
    return _STRATEGIES[parts.dialect.strategy](parts, bounding)


@dataclass(frozen=True)
class Presort:
    """A query for the rows that an engine sorts by itself before a statement (`unit_sort`).

    Its first column is the unit, NULL where a row has none, and its last one the rank. The statement finds the rows in
    the table `SORTED_ROWS`.

    Args:
        sql: the text.
        parameters: what travels with it.
        groups: the limit of groups.
        is_numbered: whether the second column is a number of the group.
    """

    sql: str
    parameters: Mapping[str, Any]
    groups: int
    is_numbered: bool


def _presort(
    bounded: BoundedQuery | OneSort | GroupSort | TotalBound, parts: PrintedReading, bounding: ContributionBounding
) -> Presort | None:
    """Returns what comes before a statement of bounded rows; None if an engine sorts nothing."""
    if not isinstance(bounded, BoundedQuery) or not bounded.is_sorted:
        return None
    sql = bounded.rows_to_sort()
    parameters = _pick_parameters(parts.printer, sql)
    return Presort(sql=sql, parameters=parameters, groups=bounding.groups, is_numbered=bounded.is_numbered)


Weights = Mapping[int, int]
"""A statistic as a sum of aggregates, by their places in the result, NULL counting as 0."""

_FEW_GROUPS = 1000


@dataclass(frozen=True)
class Statement:
    """SQL, its parameters, and how its rows become statistics; those of a split are two lists.

    Args:
        sql: the text.
        parameters: what travels with it.
        keys: the types of the keys, which come first in the result.
        finish: how each statistic is made of the columns after them; None for lists.
        is_long: whether there may be many groups, by public facts.
        presort: which rows the engine sorts first; None if it sorts nothing.
    """

    sql: str
    parameters: Mapping[str, Any]
    keys: tuple[Type, ...]
    finish: tuple[Weights, ...] | None
    is_long: bool = False
    presort: Presort | None = None

    def groups(self, fetched: Fetched) -> GroupColumns:
        """Returns keys and statistics, from what the database handed over."""
        keys, start = tuple(fetched.keys(place, kind) for place, kind in enumerate(self.keys)), len(self.keys)
        if self.finish is None:
            return GroupColumns(fetched.length, keys, cells=fetched.lists(start))
        places = sorted({place for weights in self.finish for place in weights})
        columns = {place: fetched.integers(start + place) for place in places}
        statistics = (
            combine_columns([columns[place] for place in weights], list(weights.values()), fetched.length)
            for weights in self.finish
        )
        return GroupColumns(fetched.length, keys, tuple(statistics))


@dataclass
class _Columns:
    """The aggregates of a statement, each once: what it sums per row, and where it comes in the result.

    `rows` and `units` are always the first two. A value is counted by a term that is NULL where it is, its own or that
    of a sum, so that few columns are needed.
    """

    terms: dict[tuple[TermKind, Term], int] = field(default_factory=dict)
    counted: dict[Term, Term] = field(default_factory=dict)

    def add(self, kind: TermKind, term: Term) -> int:
        return self.terms.setdefault((kind, term), len(self.terms) + 2)

    def count(self, value: Term, term: Term) -> int:
        return self.add("values", self.counted.setdefault(value, term))


_PLAIN = Access()


def translate_reading(
    reading: Reading, dialect: Dialect, tables: Mapping[str, StoredTable], access: Access = _PLAIN
) -> Statement:
    """Prints a reading that has been checked.

    Args:
        reading: what is asked.
        dialect: the database's.
        tables: the registered tables by name.
        access: how the table is read best, if the reading is of one.
    """
    if reading.source is None:
        own = tables[reading.table]
        printer = Printer(dialect, own.sql, own.stored, own.declared, access=access)
        return statement(reading, printer)
    rows = RelationPrinter(dialect, tables)
    printer, likely = rows.printer(reading.source), heavy(rows, reading)
    made = statement(reading, printer, likely)
    sql = rows.shared_tables.before(made.sql)
    return replace(made, sql=sql, parameters=_pick_parameters(printer, sql))


def statement(reading: Reading, printer: Printer, likely: str | None = None) -> Statement:
    """Prints a reading that has been checked; `likely` is what `join_bounds.heavy` says of it."""
    if reading.split is not None:
        return split_statement(reading, reading.split, printer)
    if reading.spread is not None:
        return spread_statement(reading, reading.spread, printer)
    keys = [printer.name(printer.print(key)) for key in reading.keys]
    where = None if reading.where is None else printer.print(reading.where)
    columns = _Columns()
    columns.counted |= _summed_values(printer, reading.statistics)
    finish = tuple(_finish(printer, columns, statistic) for statistic in reading.statistics)
    parts = PrintedReading(
        printer=printer,
        keys=tuple((key, node.type) for key, node in zip(keys, reading.keys, strict=True)),
        where=where,
        terms=tuple(columns.terms),
        public_keys=reading.public_keys,
        counts_units=any(statistic.kind == "units" for statistic in reading.statistics),
        made=reading.source is not None,
        heavy=likely,
    )
    presort = None
    if reading.bounding is None:
        sql = _by_row(parts)
    else:
        if likely is None and reading.source is None:
            parts = replace(parts, heavy=several(parts, reading.bounding))
        bounded = _bound_rows(parts, reading.bounding)
        sql, presort = bounded.sql(), _presort(bounded, parts, reading.bounding)
    many = bool(keys) and (reading.public_keys is None or len(reading.public_keys) > _FEW_GROUPS)
    parameters, kinds = _pick_parameters(printer, sql), _kinds(reading)
    return Statement(sql=sql, parameters=parameters, keys=kinds, finish=finish, is_long=many, presort=presort)


def _kinds(reading: Reading) -> tuple[Type, ...]:
    return tuple(key.type for key in reading.keys)


def _pick_parameters(printer: Printer, sql: str) -> dict[str, Any]:
    """Returns the parameters that a statement names: those of what was left out of it would be refused."""
    names = printer.dialect.parameters_of(sql) if printer.parameters else ()
    return {name: value for name, value in printer.parameters.items() if name in names}


def _finish(printer: Printer, columns: _Columns, statistic: Statistic) -> Weights:
    times = statistic.times
    if statistic.kind in ("rows", "units"):
        return {0 if statistic.kind == "rows" else 1: times}
    if statistic.factor is not None:
        return _product(printer, columns, statistic)
    if statistic.kind in ("sum", "distinct_sum"):
        return _sum(printer, columns, statistic)
    if statistic.kind == "distinct":
        return _distinct(printer, columns, statistic)
    argument = _argument(printer, statistic)[1]
    values = columns.count(argument, argument)
    if statistic.kind == "values":
        return {values: times}
    return {0: times, values: -times}


def _summed_values(printer: Printer, statistics: Iterable[Statistic]) -> dict[Term, Term]:
    """Returns the term of a sum for each value that is summed; a count of the values needs no other."""
    sums = [statistic for statistic in statistics if statistic.kind == "sum" and statistic.factor is None]
    return {_argument(printer, statistic)[1]: _term(printer, statistic) for statistic in reversed(sums)}


def _argument(printer: Printer, statistic: Statistic) -> tuple[Expression, Term]:
    if statistic.argument is None:
        raise InternalError("A reading reached an engine unchecked.")
    return statistic.argument, printer.name(printer.print(statistic.argument))


def _term(printer: Printer, statistic: Statistic) -> Term:
    """Returns what a row adds to a sum, before its shift; NULL where the argument is."""
    argument, term = _argument(printer, statistic)
    return grid_steps(printer, statistic, term, argument.type)


def _sum(printer: Printer, columns: _Columns, statistic: Statistic) -> Weights:
    times, shift, term = statistic.times, statistic.shift, _term(printer, statistic)
    is_distinct = statistic.kind == "distinct_sum"
    total = columns.add("distinct_sum" if is_distinct else "sum", term)
    if shift == 0:
        return {total: times}
    count = columns.add("distinct", term) if is_distinct else columns.count(_argument(printer, statistic)[1], term)
    return {total: times, count: -shift * times}


def _product(printer: Printer, columns: _Columns, statistic: Statistic) -> Weights:
    """Terms counted from their shifts and multiplied: `validation` proves that 64 bits hold the product."""
    text = " * ".join(f"({{{i}}} - ({part.shift}))" for i, part in enumerate(statistic.terms))
    product = printer.name(printer.fill(text, *(_term(printer, part) for part in statistic.terms)))
    total, count = columns.add("sum", product), columns.add("values", product)
    times, less = statistic.times, statistic.less
    return {total: times, count: -less * times}


def _distinct(printer: Printer, columns: _Columns, statistic: Statistic) -> Weights:
    """Returns distinct values; texts are compared, and put in order, by their code points."""
    (argument, term), times = _argument(printer, statistic), statistic.times
    if argument.type is Type.TEXT:
        term = printer.name(printer.fill(printer.dialect.by_code_points, term))
    place = columns.add("distinct", term)
    return {place: times}


def _between(parts: PrintedReading) -> str:
    """Prints the condition to be among many public keys that are all whole numbers between two ends; "" elsewhere."""
    keys = parts.public_keys or ()
    ends = public_keys(keys).ends if len(keys) > _FEW_GROUPS else None
    return (
        ""
        if ends is None
        else " AND ".join(f"g.k{i} BETWEEN {least} AND {most}" for i, (least, most) in enumerate(ends))
    )


def _by_row(parts: PrintedReading) -> str:
    """Prints one aggregation; public keys are looked for among the groups, which are fewer than rows."""
    aggregates = ["COUNT(*) AS a0", "COUNT(*) AS a1", *parts.aggregates([term.sql for _, term in parts.terms])]
    columns, where = [*parts.key_columns, *aggregates], parts.where.sql if parts.where else ""
    text = select(
        *columns,
        source=parts.printer.rows([*columns, where]),
        where=where,
        group=[str(i + 1) for i in range(len(parts.keys))],
        having="" if parts.keys else "COUNT(*) > 0",
    )
    public = _between(parts) or parts.public("g")
    return select("*", source=print_subquery(text, "g"), where=public) if public else text


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FetchedRows:
    """A result as rows."""

    rows: Sequence[tuple[Any, ...]]

    @property
    def length(self) -> int:
        """Returns the number of rows."""
        return len(self.rows)

    def keys(self, place: int, kind: Type) -> KeyColumn:
        """Returns a column of keys."""
        return key_column([row[place] for row in self.rows], kind)

    def integers(self, place: int) -> Column:
        """Returns a column of integers, 0 for NULL."""
        return column_of([int(row[place] or 0) for row in self.rows])

    def lists(self, start: int) -> list[tuple[int, ...]]:
        """Returns the lists from a place on, put together for each row."""
        return [tuple(chain.from_iterable(row[start:])) for row in self.rows]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FetchedTable:
    """A result as an Arrow table."""

    table: Any

    @property
    def length(self) -> int:
        """Returns the number of rows."""
        return int(self.table.num_rows)

    def keys(self, place: int, kind: Type) -> KeyColumn:
        """Returns a column of keys: numbers as they lie there, other values as Python's objects."""
        column = self.table.column(place)
        if kind is not Type.INT:
            return key_column(_values(column), kind)
        numbers = narrow_column(self.integers(place))
        if column.null_count == 0 and not isinstance(numbers, WideColumn):
            return numbers
        values = zip(objects(numbers).tolist(), column.is_null().to_pylist(), strict=True)
        return key_column([None if absent else value for value, absent in values], kind)

    def integers(self, place: int) -> Column:
        """Returns a column of integers, 0 for NULL."""
        return concatenate_columns([_integers(chunk) for chunk in self.table.column(place).chunks])

    def lists(self, start: int) -> list[tuple[int, ...]]:
        """Returns the lists from a place on, put together for each row."""
        columns = [column.to_pylist() for column in self.table.columns[start:]]
        return [tuple(chain.from_iterable(row)) for row in zip(*columns, strict=True)]


Fetched = FetchedRows | FetchedTable


def _integers(chunk: Any) -> Column:
    """Integers of 64 bits or fewer, or the two words of decimals of 38 digits without decimals."""
    if pa.types.is_integer(chunk.type) and (chunk.type.bit_width < 64 or chunk.type == pa.int64()):
        held = np.frombuffer(chunk.buffers()[1], dtype=chunk.type.to_pandas_dtype())
        return _zero_nulls(chunk, held[chunk.offset : chunk.offset + len(chunk)].astype(np.int64))
    if not (pa.types.is_decimal128(chunk.type) and chunk.type.scale == 0):
        return column_of([int(value or 0) for value in chunk.to_pylist()])
    words = np.frombuffer(chunk.buffers()[1], dtype=np.uint64)
    pairs = words[2 * chunk.offset : 2 * (chunk.offset + len(chunk))].reshape(-1, 2)
    low, high = (_zero_nulls(chunk, pairs[:, place].copy().view(np.int64)) for place in (0, 1))
    return narrow_column(WideColumn(high, low.view(np.uint64)))


def _zero_nulls(chunk: Any, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the words of what is not NULL, 0 for the rest."""
    if chunk.null_count:
        words[chunk.is_null().to_numpy(zero_copy_only=False)] = 0
    return words


def _values(column: Any) -> list[Any]:
    """Texts, truth values, days and moments, and doubles that are there, in one step; everything else one by one."""
    kind = column.type
    at_once = pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind)
    at_once |= kind == pa.timestamp("us") or (pa.types.is_float64(kind) and column.null_count == 0)
    found: list[Any] = column.to_numpy().tolist() if at_once else column.to_pylist()
    return found
