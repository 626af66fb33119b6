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

Where an engine sorts rows by itself (`Access.is_sorted`), the rows of base are fetched first, and come back with a
state of each (`unit_sort`). Those that are surely kept are taken as they are, and base has the undecided ones alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.engines.row_choice import BUCKET, P
from discreet.engines.sql.bounded_rows import BoundedRows, Others, PlacedTable
from discreet.engines.sql.printer import PrintedReading, print_subquery, select
from discreet.engines.unit_sort import KEPT, UNDECIDED
from discreet.plan.model.readings import ContributionBounding
from discreet.plan.model.types import Type

_LADDER = 16  # the largest limit of groups for which ceilings are worth their price

SORTED_ROWS = "sorted_rows"
"""The table of rows that come back with a state."""


def can_be_sorted(parts: PrintedReading, bounding: ContributionBounding) -> bool:
    """Returns whether an engine may sort the rows of a reading by itself: units are numbers, and groups have ranks."""
    is_whole = parts.printer.declared[bounding.unit] is Type.INT
    return parts.dialect.strategy == "suspects" and is_whole and bool(parts.keys) and parts.heavy is None


class BoundedQuery:
    """The common table expressions and the query over them.

    Args:
        parts: the reading's.
        bounding: its limits.
        is_sorted: whether the rows of `rows_to_sort` come back with a state.
    """

    def __init__(self, parts: PrintedReading, bounding: ContributionBounding, *, is_sorted: bool = False) -> None:
        self.is_sorted = is_sorted
        self._rows = BoundedRows(parts, bounding)
        self._parts, self._limits, self._kind = parts, bounding, self._rows.kind
        self._k, self._placing = self._rows.k, PlacedTable(self._rows)
        self._ceiled = bool(parts.keys) and bounding.groups <= _LADDER

    def sql(self) -> str:
        """Prints the whole statement."""
        return f"{self.tables()} {self._result()}"

    def tables(self) -> str:
        """Prints the common table expressions."""
        once = self._parts.dialect.once
        tables = self._undecided_rows() if self.is_sorted else self._all_rows()
        tables += [("suspects", once, self._suspects()), ("below", once, self._below())]
        tables += [("placed", once, self._print_placed_rows())] if self._parts.terms else []
        named = ", ".join(f"{name} {how} ({text})" for name, how, text in tables)
        return f"WITH {named}"

    def _all_rows(self) -> list[tuple[str, str, str]]:
        """Returns the names of common table expressions up to base, how often each is computed, and their queries."""
        once, inline, rows = self._parts.dialect.once, self._parts.dialect.inline, self._rows
        tables = [("own", inline, rows.own(rows.carrying))]
        if self._parts.heavy is not None:
            tables.append(("heavy", once, self._parts.heavy))
        kept = once if self._parts.is_kept else inline
        tables.append(("base", kept, self._with_rank(rows.base("own AS b", rows.carried), rows.carried)))
        if not self._parts.is_kept:
            tables.append(("bare", inline, self._with_rank(rows.base(print_subquery(rows.own([]), "b"), []), [])))
        return tables

    def _undecided_rows(self) -> list[tuple[str, str, str]]:
        text = select(*self._sorted_columns, source=SORTED_ROWS, where=f"state = {UNDECIDED}")
        return [("base", self._parts.dialect.once, text)]

    @property
    def _sorted_columns(self) -> Sequence[str]:
        return ["u", *self._k, *self._rows.carried, "r"]

    def rows_to_sort(self) -> str:
        """Prints a query for the rows that an engine sorts by itself: all rows of base, u first and r last.

        Rows without an id may be among them: a condition on what an id is computed from would compute it twice.
        """
        rows = self._rows
        base = self._with_rank(rows.base(print_subquery(rows.own(rows.carrying), "b"), rows.carried), rows.carried)
        return select(*(f"b.{name}" for name in self._sorted_columns), source=print_subquery(base, "b"))

    @property
    def is_numbered(self) -> bool:
        """Returns whether groups have numbers g, the second column of the rows to sort."""
        return self._rows.numbered is not None

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
        return "base" if self._parts.is_kept or self.is_sorted else "bare"

    @property
    def _everybody(self) -> bool:
        """Returns whether the innocent have a ceiling, too."""
        return self._ceiled and self._parts.is_dense and not self.is_sorted

    @property
    def _others(self) -> Others:
        """Returns where the rows are that are kept and not placed."""
        return {"below": "v IS NULL", **({SORTED_ROWS: f"state = {KEPT}"} if self.is_sorted else {})}

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
        return self._placing.totals(self._others)

    def _counts(self) -> str:
        """Returns rows and units where there are no terms: pairs of v and a group instead of their rows."""
        numbers = ["COUNT(*) AS a0", "COUNT(*) AS a1"]
        others = [select(*self._k, *numbers, source=t, where=w, group=self._k) for t, w in self._others.items()]
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
        source = print_subquery(" UNION ALL ".join([*others, own]))
        return select(*self._k, *totals, source=source, group=self._k, having="SUM(a0) > 0")

    def print_kept_rows(self) -> str:
        """Prints a query for keys and terms of the rows kept."""
        return self._placing.print_kept_rows(self._others)
