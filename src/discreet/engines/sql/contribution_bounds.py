"""The statement of a reading with bounded contributions: `row_choice` in SQL, with work only where it is needed.

    own        rows with a unit, and their keys and terms
    heavy      if rows are joined: units that may exceed their limits by a count of the sides; or, where most units
               seem to have one row, those that have more than are surely within the limits; others' rows count as they
               are, and are not looked at below
    base       own rows with keys that count, and the rank r of their groups; the public groups, if there are such, have
               numbers g; rows are kept, so that they are read and ranked once, unless there are too many to keep
    bare       the same without terms, where base is read anew wherever it is named
    suspects   units that may have too many groups or rows, and a ceiling that their groups' ranks stay below; a
               suspect whose rows below it are surely each in a group of its own, *apart*, has nothing more to choose,
               and a ceiling that is written as a negative number
    below      rows below the ceilings of their units, with the unit v where there is more to choose
    placed     those with v, in the groups that are kept, and how many rows n their unit has in their group
    picked     the rows kept of groups with too many rows

The result is made of the rows below without v, those placed that are not too many, and those picked: all others' rows
pass by once, in no order, and are never sorted. Where nothing but rows and units is counted, one row for each unit v
and group is placed instead. Where there are no keys, each unit has one group.

A suspect's ceiling comes from a set m1 of 63 bits, the buckets that its ranks lie in: the `groups` smallest ranks lie
in the lowest `groups` buckets that are not empty. A second set o, of the buckets with an odd number of rows, separates
groups. Each bucket of m1 - o has one row more than its first, or three, five, ...; each of o none, or two, four, ... So
n rows are at least |m1| + |m1 - o|, and if they are no more, then buckets of o have one row each. If moreover the
lowest `groups` buckets are all of o, each of them has one row, and thus one group, and no other group: these rows are
the ones to keep, as long as one row is within the limit, which it always is. Nothing else rests on buckets: those that
hold several groups make innocents suspects, and ceilings higher than necessary.

Where units are whole numbers close together (`Access.is_dense`), every unit is written among the suspects, the innocent
with a ceiling above all of their rows: a database finds the place of each in a list, which it does for inner joins.

The first half of the module is what every strategy starts from (`BoundedRows`): whose rows are, ranks and orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from discreet.engines.row_choice import BUCKET, P, Salt
from discreet.engines.sql.group_ranks import PLACES, GroupRank
from discreet.engines.sql.printer import PrintedReading, print_subquery, select
from discreet.engines.sql.unit_terms import is_somebody, unit_of
from discreet.plan.model.nodes import Value
from discreet.plan.model.readings import ContributionBounding
from discreet.plan.model.types import Type

ALIKE = "RANGE BETWEEN CURRENT ROW AND CURRENT ROW"
"""The frame of a window that holds the rows in the same place; ranks do not depend on frames."""

_SMALL = 1 << 24  # a limit of rows by which every place can be multiplied
_LADDER = 16  # the largest limit of groups for which ceilings are worth their price


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
        self._somebody = is_somebody(parts.printer, bounding.unit, self.kind)
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
        by_code_points = self.parts.dialect.by_code_points
        for k, (_, kind) in zip(self.parts.k, self.parts.keys, strict=True):
            yield f"{by_code_points.format(k) if kind is Type.TEXT else k} NULLS FIRST"

    def same_group(self, one: str, other: str) -> list[str]:
        """Returns conditions that rows of two tables are of the same group."""
        return self.parts.same_keys(one, other) if self.numbered is None else [f"{one}.g = {other}.g"]

    def order(self) -> str:
        """Returns each term in turn; whether one is there need not be asked of rows that are in its order already."""
        order: list[str] = []
        told: set[str] = set()
        for t, (kind, _) in zip(self.parts.t, self.parts.terms, strict=True):
            by = present(t) if kind == "values" else f"{t} NULLS FIRST"
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

    def totals(self, others: str = "") -> str:
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

    def print_kept_rows(self, others: str = "") -> str:
        """Prints a query for keys and terms of the rows kept; rows without v of another table are all among them."""
        columns, k = self._parts.columns, self._rows.k
        found = select(*k, *columns, source=self._rows.with_terms(print_subquery(self._print_rows_within(others)), k))
        return self._rows.with_keys(found, columns)

    def _print_rows_within(self, others: str, *, told: bool = False) -> str:
        rows, first = self._limits.rows, ["1 AS f"] if told else []
        own = [select(*self.names, *first, source=others, where="v IS NULL")] if others else []
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


class BoundedQuery:
    """The common table expressions and the query over them.

    Args:
        parts: the reading's.
        bounding: its limits.
    """

    def __init__(self, parts: PrintedReading, bounding: ContributionBounding) -> None:
        self._rows = BoundedRows(parts, bounding)
        self._parts, self._limits, self._kind = parts, bounding, self._rows.kind
        self._k, self._placing = self._rows.k, PlacedTable(self._rows)
        self._ceiled = bool(parts.keys) and bounding.groups <= _LADDER

    def sql(self) -> str:
        """Prints the whole statement."""
        return f"{self.tables()} {self._result()}"

    def tables(self) -> str:
        """Prints the common table expressions."""
        once, inline, rows = self._parts.dialect.once, self._parts.dialect.inline, self._rows
        tables = [("own", inline, rows.own(rows.carrying))]
        if self._parts.heavy is not None:
            tables.append(("heavy", once, self._parts.heavy))
        kept = once if self._parts.is_kept else inline
        tables.append(("base", kept, self._with_rank(rows.base("own AS b", rows.carried), rows.carried)))
        if not self._parts.is_kept:
            tables.append(("bare", inline, self._with_rank(rows.base(print_subquery(rows.own([]), "b"), []), [])))
        tables += [("suspects", once, self._suspects()), ("below", once, self._below())]
        tables += [("placed", once, self._print_placed_rows())] if self._parts.terms else []
        named = ", ".join(f"{name} {how} ({text})" for name, how, text in tables)
        return f"WITH {named}"

    def _with_rank(self, base: str, carried: list[str]) -> str:
        """Returns the rows of a query with r, if there are keys."""
        if not self._parts.keys:
            return base
        rank = self._rows.rank
        ranked = rank.of(rank.number("u"), print_subquery(base, "b"), ["u", *self._k, *carried])
        return select("*", source=ranked)

    def _light(self) -> str:
        """Prints the rows of units surely within their limits; public keys are looked for among their groups."""
        parts = self._parts
        found = select(
            *parts.k,
            "COUNT(*) AS a0",
            "COUNT(*) AS a1",
            *parts.aggregates(parts.t),
            source="own",
            where="NOT EXISTS (SELECT 1 FROM heavy WHERE heavy.u = own.u)",
            group=parts.k,
        )
        numbered = self._rows.numbered
        if numbered is not None:
            return numbered.sql(print_subquery(found, "x"), "x", [f"x.{a}" for a in ("a0", "a1", *parts.a)])
        return select("*", source=print_subquery(found, "x"), where=parts.public("x"))

    def _suspects(self) -> str:
        if not self._parts.keys:
            having = f"COUNT(u) > {self._rows_apart}"
            return select("u", f"{P} AS ceiling", source=self._counted_table, group=["u"], having=having)
        dialect = self._parts.dialect
        bit = dialect.bucket_bit.format("r")
        sets = [f"{dialect.bits.format(bit)} AS m1", f"{dialect.odd_bits.format(bit)} AS o"]
        counted = select("u", "COUNT(u) AS n", *sets, source=self._counted_table, group=["u"])
        where = "" if self._everybody else f"NOT ({self._innocent()})"
        text = select("*", source=dialect.write_subquery(counted), where=where)
        if not self._ceiled:
            return select("u", f"{P} AS ceiling", source=print_subquery(text))
        for i in range(1, self._limits.groups + 1):  # the lowest bit less each time
            text = select("*", f"m{i} & (m{i} - 1) AS m{i + 1}", source=dialect.write_subquery(text))
        chosen = f"{self._innocent()} OR ({self._apart()})" if self._everybody else self._apart()
        ceiling = f"CASE WHEN {chosen} THEN -1 ELSE 1 END * ({self._ceiling()}) AS ceiling"
        return select("u", ceiling, source=dialect.write_subquery(text))

    @property
    def _counted_table(self) -> str:
        """Returns the table in which rows are counted."""
        return "base" if self._parts.is_kept else "bare"

    @property
    def _everybody(self) -> bool:
        """Returns whether the innocent have a ceiling, too."""
        return self._ceiled and self._parts.is_dense

    def _innocent(self) -> str:
        """Returns a condition on one unit's rows: surely within the limits."""
        groups, few = self._limits.groups, min(self._limits.groups, self._rows_apart)
        return f"n <= {few} OR (n <= {groups} AND {self._parts.dialect.bit_count.format('m1')} = n)"

    def _apart(self) -> str:
        """Returns a condition on one unit's rows: those in the lowest buckets are surely each in a group of its own."""
        count, low = self._parts.dialect.bit_count, f"(m1 - m{self._limits.groups + 1})"
        told = f"n - {count.format('m1')} = {count.format('(m1 - o)')}"
        return f"{told} AND (m1 - o) & {low} = 0"

    @property
    def _rows_apart(self) -> int:
        """Returns how many rows of an innocent unit may share a group: one where units are counted."""
        return 1 if self._parts.counts_units else self._limits.rows

    def _ceiling(self) -> str:
        """Returns the end of the bucket of the lowest bit that is left; there is none if few buckets are used."""
        left = f"m{self._limits.groups}"
        bucket = self._parts.dialect.bit_count.format(f"({left} & -{left}) - 1")
        return f"CASE WHEN {left} = 0 THEN {P} ELSE ({bucket} + 1) * {BUCKET} END"

    @property
    def _marks(self) -> list[str]:
        """Returns what rows below are marked with: the unit that has more to choose, and the rank."""
        return ["v", *(["r"] if self._parts.keys else [])]

    def _below(self) -> str:
        """Returns rows below their unit's ceiling, if it has one.

        A difference is compared with zero, above the join: DuckDB makes a comparison of both sides part of the join,
        and no longer finds units by their places.
        """
        own = [*self._k, *self._rows.carried, *self._marks[1:]]
        joined = select(
            *(f"b.{name}" for name in (*own, "u")),
            "s.ceiling",
            source=f"base AS b {'' if self._everybody else 'LEFT '}JOIN suspects AS s ON b.u = s.u",
            where="".join(self._rows.owner_conditions),
        )
        within = "" if self._everybody or not self._ceiled else "ceiling IS NULL OR "
        within += "r - abs(ceiling) < 0" if self._ceiled else ""
        return select(*own, "CASE WHEN ceiling > 0 THEN u END AS v", source=print_subquery(joined), where=within)

    def _print_ranked_rows(self, source: str, columns: list[str]) -> str:
        """Prints columns of rows with v, and r."""
        if self._parts.keys:
            return print_subquery(select(*columns, "r", source=source))
        return self._rows.rank.of(self._rows.rank.number("v"), source, columns)

    def _print_placed_rows(self) -> str:
        names = self._placing.names
        rows = print_subquery(select("v", *names, *self._marks[1:], source="below", where="v IS NOT NULL"))
        return self._placing.table(self._print_ranked_rows(rows, ["v", *names]))

    def _result(self) -> str:
        parts = self._parts
        found = self._counts() if not parts.terms else self._totals()
        columns = ["a0", "a1", *parts.a]
        if parts.heavy is not None:
            totals = [f"SUM({a}) AS {a}" for a in columns]
            source = print_subquery(f"{found} UNION ALL {self._light()}")
            found = select(*self._k, *totals, source=source, group=self._k, having="SUM(a0) > 0")
        return self._rows.with_keys(found, columns)

    def _totals(self) -> str:
        return self._placing.totals(others="below")

    def _counts(self) -> str:
        """Returns rows and units where there are no terms: pairs of v and a group instead of their rows."""
        others = select(*self._k, "COUNT(*) AS a0", "COUNT(*) AS a1", source="below", where="v IS NULL", group=self._k)
        pair = [*self._k, *self._marks]
        pairs = print_subquery(select(*pair, "COUNT(*) AS n", source="below", where="v IS NOT NULL", group=pair))
        number = [f"LEAST(n, {self._limits.rows}) AS a0", "1 AS a1"]
        if self._parts.keys:
            place = f"ROW_NUMBER() OVER (PARTITION BY v ORDER BY {self._rows.group_order()}) AS d"
            placed = print_subquery(
                select(*self._k, "n", place, source=self._print_ranked_rows(pairs, [*self._k, "v", "n"]))
            )
            own = select(*self._k, *number, source=placed, where=f"d <= {self._limits.groups}")
        else:
            own = select(*number, source=pairs)
        totals = ["SUM(a0) AS a0", "SUM(a1) AS a1"]
        source = print_subquery(f"{others} UNION ALL {own}")
        return select(*self._k, *totals, source=source, group=self._k, having="SUM(a0) > 0")

    def print_kept_rows(self) -> str:
        """Prints a query for keys and terms of the rows kept."""
        return self._placing.print_kept_rows(others="below")
