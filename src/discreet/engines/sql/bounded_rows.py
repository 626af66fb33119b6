"""What every strategy of bounding starts from: whose rows are, ranks and orders, public groups, and placed rows.

own        rows with a unit, and their keys and terms
base       own rows with keys that count; the public groups, if there are such, have numbers g
placed     rows of units v in the groups that are kept, and how many rows n their unit has in their group
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from discreet.engines.row_choice import Salt
from discreet.engines.sql.group_ranks import PLACES, GroupRank
from discreet.engines.sql.printer import PrintedReading, Printer, Term, print_subquery, select
from discreet.plan.model.nodes import UNIT, ColumnRef, Value
from discreet.plan.model.readings import ContributionBounding
from discreet.plan.model.row_period import RowPeriod
from discreet.plan.model.types import Type

ALIKE = "RANGE BETWEEN CURRENT ROW AND CURRENT ROW"
"""The frame of a window that holds the rows in the same place; ranks do not depend on frames."""

_SMALL = 1 << 24  # a limit of rows by which every place can be multiplied


class BoundedRows:
    """Rows with a unit u, groups k0, k1, ... or, if they are public, their number g, and terms.

    Args:
        parts: the reading's.
        bounding: its limits.
    """

    def __init__(self, parts: PrintedReading, bounding: ContributionBounding) -> None:
        self.parts, self.limits = parts, bounding
        self.kind = parts.printer.declared[bounding.unit]
        self._unit = unit_of(parts.printer, bounding.unit, self.kind)
        self._somebody = _is_somebody(parts.printer, bounding.unit, self.kind)
        salt = Salt(bounding.salt)
        self.numbered = _PublicGroups(parts, salt) if parts.keys and parts.public_keys is not None else None
        self.k = parts.k if self.numbered is None else ["g"]
        raw = parts.printer.raw(parts.named_terms)
        self._after = not self.late and parts.heavy is None and 0 < len(raw) <= len(parts.columns)
        self.carried = raw if self._after else parts.columns

    @cached_property
    def rank(self) -> GroupRank:
        """Returns the rank of groups; few bounds need one."""
        kinds = None if self.numbered else [kind for _, kind in self.parts.keys]
        return GroupRank(self.parts.dialect, Salt(self.limits.salt), self.kind, kinds)

    @property
    def carrying(self) -> list[str]:
        """Returns what own rows carry: terms, or their sources where these are as little and few rows need them."""
        return self.carried if self._after else self.parts.named_terms

    def with_terms(self, source: str, beside: list[str]) -> str:
        """Prints a table of the terms of rows that carry what they are computed from, and other columns with them."""
        if not self._after:
            return source
        termed = self.parts.named_terms
        return print_subquery(select(*beside, *termed, source=self.parts.printer.later(termed, source, beside)))

    def own(self, terms: list[str]) -> str:
        """Prints a query for the unit, keys and terms of rows with an id."""
        where = self.parts.where
        columns = [f"{self._unit.sql} AS u", *self.parts.key_columns, *terms]
        conditions = [self._somebody.sql] if not self.late else []
        conditions += [where.sql] if where else []
        return select(*columns, source=self.parts.printer.rows([*columns, *conditions]), where=" AND ".join(conditions))

    def base(self, own: str, terms: list[str]) -> str:
        """Prints a query for those of own rows, called b, that have keys which count, and may be too many."""
        heavy = "b.u IN (SELECT u FROM heavy)" if self.parts.heavy is not None else ""
        if self.numbered is not None:
            return self.numbered.sql(own, "b", ["b.u", *(f"b.{t}" for t in terms)], where=heavy)
        conditions = [self.parts.public("b"), heavy]
        return select("*", source=own, where=" AND ".join(filter(None, conditions)))

    @property
    def late(self) -> bool:
        """Returns whether rows without an id are left out late, since ids would be read twice before."""
        return self.parts.printer.access.is_slow

    @property
    def owner_conditions(self) -> list[str]:
        """Returns a condition that a row has an id, if rows without one are still among those kept."""
        return ["b.u IS NOT NULL"] if self.late else []

    def ordered_keys(self) -> Iterator[str]:
        """Yields what puts groups of equal rank in order."""
        if self.numbered is not None:
            yield self.numbered.place
            return
        dialect = self.parts.dialect
        for k, (_, kind) in zip(self.parts.k, self.parts.keys, strict=True):
            key = dialect.by_code_points.format(k) if kind is Type.TEXT else k
            yield dialect.sort_key(key, nulls_first=True)

    def same_group(self, one: str, other: str) -> list[str]:
        """Returns conditions that rows of two tables are of the same group."""
        return self.parts.same_keys(one, other) if self.numbered is None else [f"{one}.g = {other}.g"]

    def order(self) -> str:
        """Returns each term in turn; whether one is there need not be asked of rows that are in its order already."""
        order: list[str] = []
        told: set[str] = set()
        for t, (kind, _) in zip(self.parts.t, self.parts.terms, strict=True):
            by = present(t) if kind == "values" else self.parts.dialect.sort_key(t, nulls_first=True)
            order += [] if by in told else [by]
            told |= {by, present(t)}
        return ", ".join(order)

    def group_order(self) -> str:
        """Prints what puts the groups of a unit in the order in which they are kept."""
        return ", ".join(["r", *self.ordered_keys()])

    def rows_alike(self, unit: str) -> str:
        """Prints for each row how many rows n its unit has in its group."""
        return f"COUNT(*) OVER (PARTITION BY {unit} ORDER BY {self.group_order()} {ALIKE}) AS n"

    def moved_place(self, place: str) -> str:
        """Prints a place's number times the limit of rows, plus the rank: modulo n, of n rows, it decides which stay.

        It is below n for the first row that stays of each pair, and for no other.
        """
        place = self.parts.dialect.widen(place) if self.limits.rows > _SMALL else place
        return f"{place} * {self.limits.rows} + r % n"

    def with_keys(self, text: str, columns: list[str]) -> str:
        """Returns a query for columns of groups, with the groups' keys."""
        return text if self.numbered is None else self.numbered.print_keys(print_subquery(text), "x", columns)

    def spread(self, without: tuple[tuple[Value, ...], ...]) -> str:
        """Prints a statement for the units of each group by how many groups they are kept in, as two lists.

        All pairs of a unit and a group are ranked, whatever the strategy: which groups a unit is kept in counts for
        each of them.
        """
        parts, groups, dialect = self.parts, self.limits.groups, self.parts.dialect
        conditions = [*self.owner_conditions, *([f"NOT {parts.among(without, 'b')}"] if without else [])]
        own = ["b.u", *(f"b.{k}" for k in parts.k)]
        pairs = print_subquery(select(*own, source="own AS b", where=" AND ".join(conditions), group=own))
        ranked = self.rank.of(self.rank.number("u"), pairs, ["u", *parts.k])
        place = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {self.group_order()}) AS place"
        placed = print_subquery(select(*parts.k, place, "COUNT(*) OVER (PARTITION BY u) AS m", source=ranked))
        kept = select(*parts.k, f"LEAST(m, {groups}) AS c", source=placed, where=f"place <= {groups}")
        counted = select(*parts.k, "c", "COUNT(*) AS n", source=print_subquery(kept), group=[*parts.k, "c"])
        cells = [f"{dialect.ordered_list.format(x, 'c')} AS {name}" for x, name in (("c", "cells"), ("n", "counts"))]
        found = select(*parts.k, *cells, source=print_subquery(counted), group=parts.k)
        return f"WITH own {dialect.inline} ({self.own([])}) {found}"


def several(parts: PrintedReading, bounding: ContributionBounding) -> str | None:
    """Prints a query for units with so many rows that they may exceed the limits, if most seem to have one row each.

    Rows of the others are counted as they come: none of their ranks is computed. Where units are counted, a unit has
    one of them; no sum shows how many values differ. If there are as many different units as rows, which a set of their
    numbers shows, no unit has several.
    """
    access, dialect = parts.printer.access, parts.dialect
    is_whole = parts.printer.declared[bounding.unit] is Type.INT
    if access.ends is None or access.is_slow or parts.distinct or not (is_whole and dialect.count_between):
        return None
    different = dialect.count_between.format("u", *access.ends)
    some = select(f"COUNT(*) <> {different}", source="own")
    few = 1 if parts.counts_units else bounding.rows
    few = min(few, bounding.groups) if parts.keys else few
    return select("u", source="own", where=f"({some})", group=["u"], having=f"COUNT(*) > {few}")


def unit_of(printer: Printer, column: str, kind: Type) -> Term:
    """Prints the id that counts (`row_choice.normalised`)."""
    unit = printer.name(printer.print(ColumnRef(column, kind)))
    known = kind is not Type.TEXT or column == UNIT  # which was made by this function
    return unit if known else printer.name(printer.fill(printer.dialect.normalised_id, unit))


def _is_somebody(printer: Printer, column: str, kind: Type) -> Term:
    """Prints that the id is not NULL, from the column as stored: a database would compute the id once more."""
    unit = printer.name(printer.print(ColumnRef(column, kind)))
    known = kind is not Type.TEXT or column == UNIT
    return printer.fill("{0} IS NOT NULL" if known else printer.dialect.is_id, unit)


def unit_of_parts(printer: Printer, columns: Sequence[tuple[str, Type]]) -> Term:
    """Prints the id that several columns make (`row_choice.put_together`); what is joined to NULL is NULL."""
    return _put_together(printer, [(unit_of(printer, column, kind), kind) for column, kind in columns])


def unit_of_period(printer: Printer, column: str, period: RowPeriod) -> Term:
    """Prints the id of one person's rows of one period, of two parts like any other."""
    person = unit_of(printer, column, printer.declared[column])
    first_day = printer.name(printer.print(period.first_day))
    return _put_together(printer, [(person, printer.declared[column]), (first_day, Type.DATE)])


def _put_together(printer: Printer, parts: Sequence[tuple[Term, Type]]) -> Term:
    texts = [printer.name(printer.fill(printer.dialect.id_parts[kind], part)) for part, kind in parts]
    length = printer.dialect.length
    lengths = (printer.dialect.cast(length.format(f"{{{i}}}"), Type.TEXT) for i in range(len(texts)))
    pieces = " || ".join(f"{counted} || ':' || {{{i}}}" for i, counted in enumerate(lengths))
    return printer.name(printer.fill(pieces, *texts))


def present(term: str) -> str:
    """Prints 1 for a term that is not NULL, and 0 for NULL."""
    return f"CASE WHEN {term} IS NULL THEN 0 ELSE 1 END"


class _PublicGroups:
    """Public groups, each with one number g: what its keys add to the rank, times 2^32, and its place in their order.

    So keys are compared with the public ones once for each row, and a text's digest is computed once for each group.
    """

    def __init__(self, parts: PrintedReading, salt: Salt) -> None:
        known = sorted(dict.fromkeys(parts.public_keys or ()), key=lambda keys: [(k is not None, k) for k in keys])
        numbers = [(salt.of_keys(keys) << PLACES) + place for place, keys in enumerate(known)]
        kinds, self._dialect = [kind for _, kind in parts.keys], parts.dialect
        self._lists = [[keys[i] for keys in known] for i in range(len(kinds))]
        self._keys, self._number = [f"p{i}" for i in range(len(kinds))], f"p{len(kinds)}"
        listed = parts.dialect.public_table([*self._lists, numbers], [*kinds, Type.INT], parts.printer.parameters)
        self._table = parts.dialect.looked_up(listed, self._keys)

    place = f"g & {(1 << PLACES) - 1}"
    """Where a group comes among those of equal rank."""

    def sql(self, source: str, name: str, columns: list[str], where: str = "") -> str:
        """Prints a query for g and columns of a source's rows that have public keys k0, k1, ..."""
        same = " AND ".join(
            self._dialect.same(f"q.{p}", f"{name}.k{i}") if None in self._lists[i] else f"q.{p} = {name}.k{i}"
            for i, p in enumerate(self._keys)
        )
        source = f"{source} JOIN {print_subquery(self._table, 'q')} ON {same}"
        return select(f"q.{self._number} AS g", *columns, source=source, where=where)

    def print_keys(self, source: str, name: str, columns: list[str]) -> str:
        """Prints a query for the keys and columns of a source's rows that have a number g."""
        keys = (f"q.{p} AS k{i}" for i, p in enumerate(self._keys))
        source = f"{source} JOIN {print_subquery(self._table, 'q')} ON q.{self._number} = {name}.g"
        return select(*keys, *(f"{name}.{column}" for column in columns), source=source)


Others = Mapping[str, str]
"""Tables with rows that are kept as they are, the only ones of their unit and group, and what they fulfil there."""

NONE: Others = {}


class PlacedTable:
    """The table `placed` of rows of units v in the groups that are kept, and which of them stay.

    Args:
        rows: the rows that are bounded.
    """

    def __init__(self, rows: BoundedRows) -> None:
        self._rows, self._parts, self._limits = rows, rows.parts, rows.limits
        self.names = [*rows.k, *rows.carried]

    def table(self, ranked: str) -> str:
        """Prints `placed` from a table of rows with v and r; the windows are alike, and found at once."""
        over = f"OVER (PARTITION BY v ORDER BY {self._rows.group_order()} {ALIKE})"
        windows = [f"DENSE_RANK() {over} AS d", f"COUNT(*) {over} AS n"]
        placed = select("v", *self.names, "r", *windows, source=ranked)
        within = f"d <= {self._limits.groups}" if self._parts.keys else ""
        return select("v", *self.names, "r", "n", source=print_subquery(placed), where=within)

    def totals(self, others: Others = NONE) -> str:
        """Prints what the rows kept add up to; where units are counted, the first row of each pair is marked by f."""
        parts, k, told = self._parts, self._rows.k, self._parts.counts_units and self._limits.rows > 1
        units = "COUNT(f) AS a1" if told else "COUNT(*) AS a1"
        return select(
            *(*k, "COUNT(*) AS a0", units, *parts.aggregates(parts.t)),
            source=self._rows.with_terms(
                print_subquery(self._print_rows_within(others, told=told)), [*k, *(["f"] if told else [])]
            ),
            group=k,
            having="" if parts.keys else "COUNT(*) > 0",
        )

    def print_kept_rows(self, others: Others = NONE) -> str:
        """Prints a query for keys and terms of the rows kept."""
        columns, k = self._parts.columns, self._rows.k
        found = select(*k, *columns, source=self._rows.with_terms(print_subquery(self._print_rows_within(others)), k))
        return self._rows.with_keys(found, columns)

    def _print_rows_within(self, others: Others, *, told: bool = False) -> str:
        rows, first = self._limits.rows, ["1 AS f"] if told else []
        own = [select(*self.names, *first, source=table, where=where) for table, where in others.items()]
        if told:
            own.append(self._print_picked_rows(["CASE WHEN moved < n THEN 1 END AS f"], ""))
        else:
            own.append(select(*self.names, source="placed", where=f"n <= {rows}"))
            own.append(self._print_picked_rows([], f"n > {rows}"))
        return " UNION ALL ".join(own)

    def _print_picked_rows(self, columns: list[str], where: str) -> str:
        """Prints rows of pairs with too many; `moved_place` is below n for the first one that stays of each pair."""
        rows = print_subquery(select("v", *self.names, "r", "n", source="placed", where=where))
        pair = ", ".join(["v", *self._rows.k])
        place = f"ROW_NUMBER() OVER (PARTITION BY {pair} ORDER BY {self._rows.order()}) - 1 AS place"
        termed = self._rows.with_terms(rows, ["v", *self.names, "r", "n"])
        found = select(*self.names, "r", "n", place, source=termed)
        moved = print_subquery(
            select(*self.names, "n", f"{self._rows.moved_place('place')} AS moved", source=print_subquery(found))
        )
        return select(*self.names, *columns, source=moved, where=f"moved % n >= n - {self._limits.rows}")
