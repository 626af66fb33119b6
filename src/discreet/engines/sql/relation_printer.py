"""Relations as SQL: what comes after FROM when the rows of a reading are made of several tables.

Every relation becomes a SELECT whose columns are called x0, x1, ... in the order of `shape`; nothing that an analyst
wrote is part of the text but values that travel as parameters.

A cut keeps at most so many rows of each unit (`plan.model.relations.Cut`). How many rows each unit has is counted once
for the whole statement, however often its rows are read, and so are rows computed that are made of several tables. All
rows of units that have few pass by; those of the others are ranked and sorted, and the first ones stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from discreet.dataclass import dataclass
from discreet.engines.row_choice import P, Salt
from discreet.engines.sql.bounded_rows import unit_of, unit_of_parts, unit_of_period
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.group_ranks import print_rank_number
from discreet.engines.sql.printer import Printer, Term, grid_steps, print_subquery, select
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, Relation
from discreet.plan.model.readings import Statistic
from discreet.plan.model.relations import (
    BaseTable,
    Cut,
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
    shape,
)
from discreet.plan.model.types import Type

Typed = Sequence[tuple[str, Type]]
"""Columns of a query with their types."""


@dataclass
class SharedTables:
    """Common table expressions of a whole statement, each computed once; a query that is printed twice is one of them.

    Args:
        dialect: the database's.
        names: of the queries so far, in an order in which each may use those before it.
    """

    dialect: Dialect
    names: dict[str, str] = field(default_factory=dict)

    def name(self, query: str) -> str:
        """Returns the name under which the rows of a query are found."""
        return self.names.setdefault(query, f"cut{len(self.names)}")

    def before(self, statement: str) -> str:
        """Prints a statement, which may begin with tables of its own, behind these."""
        if not self.names:
            return statement
        listed = ", ".join(f"{name} {self.dialect.once} ({query})" for query, name in self.names.items())
        return f"WITH {listed}{', ' if statement.startswith('WITH ') else ' '}{statement.removeprefix('WITH ')}"


@dataclass(frozen=True, kw_only=True)
class CutSide:
    """Rows that are to be cut.

    Args:
        source: what comes after FROM.
        columns: all of theirs but the unit.
        compared: what a join compares.
        unit: whose rows they are.
        sizes: the name of a table of units u and how many rows n they have.
    """

    source: str
    columns: Typed
    compared: Typed
    unit: tuple[str, Type]
    sizes: str

    def print(self, dialect: Dialect, rows: int, salt: Salt) -> str:
        """Prints a query for the first rows of each unit, with the columns and the unit under their own names."""
        unit, _ = self.unit
        names = [*(name for name, _ in self.columns), unit]
        many = select("1", source=f"{self.sizes} AS m", where=f"m.u = s.{unit} AND m.n > {rows}")
        few = select(*names, source=f"{self.source} AS s", where=f"{unit} IS NOT NULL AND NOT EXISTS ({many})")
        placed = self._print_placed_rows(dialect, rows, salt, names)
        return f"{few} UNION ALL {select(*names, source=print_subquery(placed), where=f'cut_place <= {rows}')}"

    def _print_placed_rows(self, dialect: Dialect, rows: int, salt: Salt, names: list[str]) -> str:
        """Prints rows of units with too many, numbered in the order of `relations.Cut`: ranks are z^4 mod P."""
        unit, kind = self.unit
        number = dialect.rank_numbers[kind].format(unit)
        doubles = [name for name, of in self.compared if of is Type.FLOAT]
        whole = [(name, of) for name, of in self.columns if of is not Type.FLOAT]
        ranked = [[pair] for pair in self.compared if pair[1] is not Type.FLOAT] + [whole]
        places, carried = range(len(ranked)), [*names, *doubles]
        z = [f"{print_rank_number(dialect, salt, number, keys)} AS z{i}" for i, keys in enumerate(ranked)]
        many = print_subquery(select("u", source=self.sizes, where=f"n > {rows}"), "m")
        text = select(
            *carried, *z, source=print_subquery(f"SELECT s.* FROM {self.source} AS s JOIN {many} ON m.u = s.{unit}")
        )
        for _ in range(2):
            squared = [f"z{i} * z{i} % {P} AS z{i}" for i in places]
            text = select(*carried, *squared, source=dialect.write_subquery(text))
        order = [
            *(f"z{i}" for i in places[:-1]),
            *map(dialect.sort_key, doubles),
            f"z{places[-1]}",
            *(
                dialect.sort_key(dialect.by_code_points.format(n) if of is Type.TEXT else n, nulls_first=True)
                for n, of in self.columns
            ),
        ]
        place = f"ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY {', '.join(order)}) AS cut_place"
        return select(*names, place, source=dialect.write_subquery(text))


def term_of(printer: Printer, made: Fold | Window, argument: Term) -> Term:
    """Prints what is put into the aggregate: steps of the grid, or the value itself."""
    if made.kind not in ("sum", "mean") or made.argument is None:
        return argument
    exponent, low, high = made.grid
    statistic = Statistic(kind="sum", argument=made.argument, exponent=exponent, low=low, high=high)
    return grid_steps(printer, statistic, argument, made.argument.type)


def print_sum(printer: Printer, made: Fold | Window, over: str = "") -> str:
    """Prints a sum or a mean of steps {0}, of a group or over a window."""
    dialect = printer.dialect
    total = dialect.narrow(f"{dialect.total('{0}')}{over}")
    if made.kind == "sum" and made.type is Type.INT:
        return total
    double, scaled = dialect.cast(total, Type.FLOAT), dialect.scale_by_power(made.grid[0]).text
    count = f"COUNT({{0}}){over}"
    if made.kind == "sum":
        return scaled.format(double)
    return f"CASE WHEN {count} > 0 THEN {scaled.format(f'({double} / {count})')} END"


_PLACES = {"row_number": "ROW_NUMBER()", "rank": "RANK()", "dense_rank": "DENSE_RANK()", "count": "COUNT(*)"}
_PEERS = ("rank", "dense_rank", "count", "count_values", "sum", "mean", "min", "max")
_ALL_ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


@dataclass(frozen=True)
class WindowPrinter:
    """A window whose parts have names; the SQL over them."""

    printer: Printer
    window: Window
    place: int
    terms: dict[str, Term]

    @classmethod
    def of(cls, printer: Printer, window: Window, place: int) -> WindowPrinter:
        """Returns the window in this place of a list, its parts printed."""
        terms: dict[str, Term] = {}
        if window.argument is not None:
            terms[f"w{place}"] = term_of(printer, window, printer.name(printer.print(window.argument)))
        for i, part in enumerate(window.partition):
            terms[f"w{place}p{i}"] = printer.print(part)
        for i, order in enumerate(window.order):
            terms[f"w{place}o{i}"] = printer.print(order.expression)
        return cls(printer, window, place, terms)

    def sql(self, unit: str, columns: Sequence[str]) -> str:
        """Prints the value for each row; where the order leaves a choice, columns decide."""
        window, name = self.window, f"w{self.place}"
        over = self._over(unit, columns)
        if window.kind in ("lag", "lead"):
            return f"{window.kind.upper()}({name}, {window.offset}){over}"
        if window.kind in ("first", "last"):
            return f"{window.kind.upper()}_VALUE({name}){over}"
        if window.kind in ("sum", "mean"):
            return print_sum(self.printer, window, over).format(name)
        if window.argument is None or window.kind in _PLACES:
            return self.printer.dialect.cast(f"{_PLACES[window.kind]}{over}", Type.INT)  # Spark's have 32 bits
        return f"{self.printer.dialect.fold(window.kind, window.argument.type)}{over}".format(name)

    def _over(self, unit: str, columns: Sequence[str]) -> str:
        partition = ", ".join([unit, *(f"w{self.place}p{i}" for i in range(len(self.window.partition)))])
        sort_key = self.printer.dialect.sort_key
        terms = [
            sort_key(f"w{self.place}o{i}", descending=order.descending) for i, order in enumerate(self.window.order)
        ]
        if self.window.kind not in _PEERS:
            terms += map(sort_key, columns)
        ordered = f" ORDER BY {', '.join(terms)}" if terms else ""
        frame = f" {_ALL_ROWS}" if self.window.kind in ("first", "last") else ""
        return f" OVER (PARTITION BY {partition}{ordered}{frame})"


Stored = Mapping[str, tuple[Type, str]]


@dataclass(frozen=True)
class StoredTable:
    """A table in the database: its SQL, how its columns are stored, and what they are declared as."""

    sql: str
    stored: Stored
    declared: Mapping[str, Type]


@dataclass
class RelationPrinter:
    """Prints relations of one statement.

    Args:
        dialect: the database's.
        tables: by name.
        parameters: of the whole statement.
    """

    dialect: Dialect
    tables: Mapping[str, StoredTable]
    parameters: dict[str, Any] = field(default_factory=dict)
    _printed: dict[tuple[Relation, tuple[Expression, ...]], ComparedRelation] = field(default_factory=dict)

    def shape(self, relation: Relation) -> dict[str, Type]:
        """Returns the columns of a relation with their types."""
        return shape(relation, self._declared_types)

    @property
    def _declared_types(self) -> dict[str, Mapping[str, Type]]:
        return {name: stand.declared for name, stand in self.tables.items()}

    def printer(self, relation: Relation) -> Printer:
        """Returns a printer over the rows of a relation."""
        types = self.shape(relation)
        stored = {name: (kind, f"x{i}") for i, (name, kind) in enumerate(types.items())}
        rows, known = self.dialect.write_subquery(self.sql(relation)), _is_finite(relation)
        return Printer(self.dialect, rows, stored, types, parameters=self.parameters, is_finite=known)

    def sql(self, relation: Relation) -> str:
        """Prints the SELECT of a relation."""
        return _PRINT[type(relation)](self, relation)

    def _table(self, relation: BaseTable) -> str:
        stand = self.tables[relation.name]
        printer = Printer(self.dialect, stand.sql, stand.stored, stand.declared, parameters=self.parameters)
        terms = [printer.print(ColumnRef(name, kind)) for name, kind in stand.declared.items()]
        if relation.period is not None:
            terms.append(unit_of_period(printer, str(relation.unit), relation.period))
        elif isinstance(relation.unit, tuple):
            terms.append(unit_of_parts(printer, [(name, stand.declared[name]) for name in relation.unit]))
        elif relation.unit is not None:
            terms.append(unit_of(printer, relation.unit, stand.declared[relation.unit]))
        return _print_query(printer, _print_terms(terms))

    def _print_reached_table(self, relation: LinkedTable) -> str:
        """Prints the table's rows with the units that have their keys, each pair of key and unit once."""
        declared = self.tables[relation.name].declared
        through = self.shape(relation.through)
        places = list(through)
        key, unit = f"x{places.index(relation.key)}", f"x{places.index(UNIT)}"
        source = self.dialect.write_subquery(self.sql(relation.through))
        known = f"SELECT DISTINCT {key} AS k, {unit} AS u FROM {source} WHERE {unit} IS NOT NULL"
        own = [f"a.x{i}" for i in range(len(declared))]
        listed = ", ".join(f"{column} AS x{i}" for i, column in enumerate([*own, "b.u"]))
        rows, column = self._table(BaseTable(relation.name, None)), own[list(declared).index(relation.column)]
        return f"SELECT {listed} FROM ({rows}) AS a JOIN ({known}) AS b ON {column} = b.k"

    def _select(self, relation: Select) -> str:
        printer = self.printer(relation.source)
        expressions = [column.expression for column in relation.columns]
        if UNIT in printer.declared:
            expressions.append(ColumnRef(UNIT, printer.declared[UNIT]))
        terms = [printer.print(expression) for expression in expressions]
        return _print_query(
            printer, _print_terms(terms), "" if relation.where is None else printer.print(relation.where).sql
        )

    def _per_unit(self, relation: UnitAggregation) -> str:
        printer = self.printer(relation.source)
        keys = [printer.print(key.expression) for key in relation.keys]
        unit = printer.print(ColumnRef(UNIT, printer.declared[UNIT]))
        folds = [_fold(printer, fold) for fold in relation.folds]
        inner = ", ".join(
            [f"{key.sql} AS k{i}" for i, key in enumerate(keys)]
            + [f"{unit.sql} AS u"]
            + [f"{term.sql} AS {t}" for i, (_, terms) in enumerate(folds) for t, term in _name_terms(i, terms).items()]
        )
        source = _print_query(printer, inner, f"{unit.sql} IS NOT NULL")
        names = [f"k{i}" for i in range(len(keys))]
        columns = [*names, *(text.format(*_name_terms(i, terms)) for i, (text, terms) in enumerate(folds)), "u"]
        listed = ", ".join(f"{column} AS x{i}" for i, column in enumerate(columns))
        return f"SELECT {listed} FROM {self.dialect.write_subquery(source)} GROUP BY {', '.join([*names, 'u'])}"

    def _print_windows(self, relation: WindowedRelation) -> str:
        """Prints columns, then what windows are made of, under names; then the windows over those."""
        printer = self.printer(relation.source)
        own = [printer.print(ColumnRef(name, kind)) for name, kind in printer.declared.items()]
        unit = f"x{list(printer.declared).index(UNIT)}"
        frames = [WindowPrinter.of(printer, window, place) for place, window in enumerate(relation.windows)]
        terms = [f"{term.sql} AS {name}" for frame in frames for name, term in frame.terms.items()]
        source = _print_query(printer, ", ".join([_print_terms(own), *terms]))
        others = [f"x{place}" for place, name in enumerate(printer.declared) if name != UNIT]
        columns = [*others, *(frame.sql(unit, others) for frame in frames), unit]
        listed = ", ".join(f"{column} AS x{i}" for i, column in enumerate(columns))
        return f"SELECT {listed} FROM {self.dialect.write_subquery(source)} WHERE {unit} IS NOT NULL"

    def _join(self, relation: Join) -> str:
        left, right = self._sides(relation.left, relation.right, relation.on)
        columns = [f"a.{name}" for name in left.columns if name != left.unit]
        columns += [f"b.{name}" for name in right.columns if name != right.unit]
        columns += [f"a.{left.unit}"] if left.unit else []
        word = "LEFT JOIN" if relation.outer else "JOIN"
        listed = ", ".join(f"{column} AS x{i}" for i, column in enumerate(columns))
        paired = self._first(right) if relation.single else right.sql
        return f"SELECT {listed} FROM ({left.sql}) AS a {word} ({paired}) AS b ON {_same(left, right)}"

    def _first(self, side: ComparedRelation) -> str:
        """Returns the smallest of the rows that are equal in all that is compared."""
        compared = ", ".join(f"j{i}" for i in range(side.pairs))
        order = ", ".join(map(self.dialect.sort_key, side.columns))
        ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {compared} ORDER BY {order}) AS r FROM ({side.sql}) AS c"
        return f"SELECT * FROM {self.dialect.write_subquery(ranked)} WHERE r = 1"

    def _print_matches(self, relation: SemiJoin) -> str:
        left, right = self._sides(relation.source, relation.other, relation.on)
        listed = ", ".join(f"a.{name}" for name in left.columns)
        found = f"EXISTS (SELECT 1 FROM ({right.sql}) AS b WHERE {_same(left, right)})"
        known = [f"a.j{i} IS NOT NULL" for i in range(left.pairs)]
        condition = " AND ".join([*known, f"NOT {found}"]) if relation.negated else found
        return f"SELECT {listed} FROM ({left.sql}) AS a WHERE {condition}"

    def _print_marks(self, relation: MarkJoin) -> str:
        """Prints marks without comparing units again; the mark of a row without an id counts for nothing.

        It is a join with distinct values, so that a row meets one: PostgreSQL looks up EXISTS row by row.
        """
        left, right = self._sides(relation.source, relation.other, relation.on)
        known = [f"a.j{i} IS NOT NULL" for i in range(left.pairs)] or [f"a.{left.unit} IS NOT NULL"]
        keys = [*(f"j{i}" for i in range(right.pairs)), *([right.unit] if left.unit and right.unit else [])]
        there = select("DISTINCT " + ", ".join(keys), "1 AS there", source=f"({right.sql}) AS c")
        columns = [f"a.{name}" for name in left.columns if name != left.unit]
        columns += [f"CASE WHEN {' AND '.join(known)} THEN b.there IS NOT NULL END"]
        columns += [f"a.{left.unit}"] if left.unit else []
        listed = ", ".join(f"{column} AS x{i}" for i, column in enumerate(columns))
        return f"SELECT {listed} FROM ({left.sql}) AS a LEFT JOIN ({there}) AS b ON {_same(left, right)}"

    def _cut(self, relation: Cut) -> str:
        side, types = self.side(relation.source, relation.by), self.shape(relation.source)
        named = zip(side.columns, types.values(), strict=True)
        made = CutSide(
            source=self._cut_source(relation, side),
            columns=[(name, kind) for name, kind in named if name != side.unit],
            compared=[(f"j{i}", part.type) for i, part in enumerate(relation.by)],
            unit=(side.unit, types[UNIT]),
            sizes=self.sizes(relation),
        )
        return made.print(self.dialect, relation.rows, Salt(relation.salt))

    def sizes(self, relation: Cut) -> str:
        """Returns the name of a table of units u, and how many rows n each has that are to be cut."""
        plain = _is_plain(relation.source)
        side = self.side(relation.source, () if plain else relation.by)  # what is compared does not matter here
        found = select(f"{side.unit} AS u", source=f"{self._cut_source(relation, side)} AS s")
        counted = select("u", "COUNT(*) AS n", source=f"({found}) AS s", where="u IS NOT NULL", group=["u"])
        return self.shared_tables.name(counted)

    def _cut_source(self, relation: Cut, side: ComparedRelation) -> str:
        """Reads rows of one table anew where they are needed, which is faster than keeping them."""
        return f"({side.sql})" if _is_plain(relation.source) else self.shared_tables.name(side.sql)

    @cached_property
    def shared_tables(self) -> SharedTables:
        """Returns the tables that the whole statement has in common."""
        return SharedTables(self.dialect)

    def _union(self, relation: RelationUnion) -> str:
        return " UNION ALL ".join(self.sql(source) for source in relation.sources)

    def _sides(self, left: Relation, right: Relation, on: Pairs) -> tuple[ComparedRelation, ComparedRelation]:
        """Returns both sides, without what compares their units again."""
        on = besides_units(left, right, on, self._declared_types)
        return self.side(left, [a for a, _ in on]), self.side(right, [b for _, b in on])

    def side(self, relation: Relation, on: Sequence[Expression]) -> ComparedRelation:
        """Prints a relation with its columns and what is to be compared, the second time in the same words."""
        asked = relation, tuple(on)
        if asked not in self._printed:
            self._printed[asked] = self._side(*asked)
        return self._printed[asked]

    def _side(self, relation: Relation, on: Sequence[Expression]) -> ComparedRelation:
        printer = self.printer(relation)
        terms = [printer.print(expression) for expression in on]
        stored = [printer.print(ColumnRef(name, kind)) for name, kind in printer.declared.items()]
        compared = "".join(f", {term.sql} AS j{i}" for i, term in enumerate(terms))
        columns = [f"x{i}" for i in range(len(stored))]
        unit = columns[list(printer.declared).index(UNIT)] if UNIT in printer.declared else ""
        return ComparedRelation(_print_query(printer, f"{_print_terms(stored)}{compared}"), columns, unit, len(terms))


@dataclass(frozen=True)
class ComparedRelation:
    """A relation that is to be compared with another: its SELECT, columns and unit, and how many are compared."""

    sql: str
    columns: list[str]
    unit: str
    pairs: int


def _is_plain(relation: Relation) -> bool:
    """Returns whether rows are those of a table, computed and filtered: to read them is faster than to keep them."""
    while isinstance(relation, Select):
        relation = relation.source
    return isinstance(relation, BaseTable)


def _is_finite(relation: Relation) -> bool:
    """Returns whether infinite numbers are NULL already: the sums of folds and windows may leave a double's range."""
    if isinstance(relation, RelationUnion):
        return all(_is_finite(source) for source in relation.sources)
    return not isinstance(relation, UnitAggregation | WindowedRelation)


def _same(left: ComparedRelation, right: ComparedRelation) -> str:
    """Prints that two rows are a pair: equal in all that is compared, and of one person if both have ids."""
    pairs = [f"a.j{i} = b.j{i}" for i in range(left.pairs)]
    if left.unit and right.unit:
        pairs.append(f"a.{left.unit} = b.{right.unit}")
    return " AND ".join(pairs)


def _print_query(printer: Printer, columns: str, where: str = "") -> str:
    """Prints a query over what the printer has printed."""
    return select(columns, source=printer.rows([columns, where]), where=where)


def _print_terms(terms: Sequence[Term]) -> str:
    return ", ".join(f"{term.sql} AS x{i}" for i, term in enumerate(terms))


def _name_terms(place: int, terms: Sequence[Term]) -> dict[str, Term]:
    """Returns the terms of the fold in this place, by their names."""
    return {f"t{place}" if part == 0 else f"t{place}p{part}": term for part, term in enumerate(terms)}


def _fold(printer: Printer, fold: Fold) -> tuple[str, tuple[Term, ...]]:
    """Returns the aggregate of a fold, with {0}, {1} for its terms, and the terms."""
    if fold.argument is None:
        return "COUNT(*)", (Term("1", 0, simple=True),)
    argument = printer.name(printer.print(fold.argument))
    if fold.by is not None:
        form = printer.dialect.extreme(fold.kind, fold.argument.type)
        return _extreme(printer, form, argument, printer.name(printer.print(fold.by)))
    made = printer.dialect.fold(fold.kind, fold.argument.type) or print_sum(printer, fold)
    return made, (term_of(printer, fold, argument),)


def _extreme(
    printer: Printer, form: tuple[tuple[str, ...], str], value: Term, by: Term
) -> tuple[str, tuple[Term, ...]]:
    """Prints the value of the smallest or largest pair, none with NULL; in *first* and *last* a value may be NULL.

    Of pairs with the same first part one with a value comes first: a NULL is never compared with a value.
    """
    terms, aggregate = form
    return aggregate, tuple(printer.name(printer.fill(term, value, by)) for term in terms)


_PRINT: Mapping[type[Relation], Callable[[RelationPrinter, Any], str]] = {
    BaseTable: RelationPrinter._table,
    LinkedTable: RelationPrinter._print_reached_table,
    Select: RelationPrinter._select,
    UnitAggregation: RelationPrinter._per_unit,
    WindowedRelation: RelationPrinter._print_windows,
    Join: RelationPrinter._join,
    Cut: RelationPrinter._cut,
    SemiJoin: RelationPrinter._print_matches,
    MarkJoin: RelationPrinter._print_marks,
    RelationUnion: RelationPrinter._union,
}
