"""Bounded contributions by sorting: every row is placed within its unit, and those in the first places stay.

By one sort (`OneSort`):

    base       rows with a unit, and keys that count, with the rank r of their group
    placed     the same in the order of (unit, rank, key, terms), with the place of the group in its unit, and the row's
               place among the n rows of its unit and group
    kept       those that `row_choice` keeps

By a sort of the groups (`GroupSort`), where a database keeps what is computed once:

    placed     rows of base in the groups that are kept, in the order of (unit, rank, key), with n
    kept       those that are not too many, and of others those that `row_choice` keeps, which only they are sorted for

Where nothing but rows and units is counted, one row for each unit and group is placed instead.

Their cost does not depend on who is near a limit. On databases that sort well and look up badly they are the better way
(`Dialect.strategy`); where limits bind no unit, `contribution_bounds` is, on those that look up well.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.engines.sql.bounded_rows import BoundedRows, PlacedTable
from discreet.engines.sql.printer import PrintedReading, print_subquery, select
from discreet.plan.model.readings import ContributionBounding
from discreet.plan.model.types import Type


class OneSort:
    """The common table expression of the rows kept, and the query over it.

    Args:
        parts: the reading's; whom a count of joined sides suspects does not matter here.
        bounding: its limits.
    """

    def __init__(self, parts: PrintedReading, bounding: ContributionBounding) -> None:
        self._rows = BoundedRows(replace(parts, heavy=None), bounding)
        self._parts, self._limits = self._rows.parts, bounding

    def sql(self) -> str:
        """Prints the whole statement."""
        parts, k = self._parts, self._rows.k
        if parts.terms:
            units = "COUNT(CASE WHEN moved < n THEN 1 END)" if self._limits.rows > 1 else "COUNT(*)"
            totals = ["COUNT(*) AS a0", f"{units} AS a1", *parts.aggregates(parts.t)]
            source = print_subquery(self._print_rows_within([*parts.columns, "moved", "n"]))
        else:
            totals = [f"SUM(LEAST(n, {self._limits.rows})) AS a0", "COUNT(*) AS a1"]
            source = print_subquery(self._kept_pairs())
        having = "" if parts.keys else "COUNT(*) > 0"
        found = select(*k, *totals, source=source, group=k, having=having)
        return f"{self.tables()} {self._rows.with_keys(found, ['a0', 'a1', *parts.a])}"

    def tables(self) -> str:
        """Prints the common table expressions."""
        inline = self._parts.dialect.inline
        own, base = self._rows.own(self._rows.carrying), self._rows.base("own AS b", self._rows.carried)
        return f"WITH own {inline} ({own}), base {inline} ({base})"

    def print_kept_rows(self) -> str:
        """Prints a query for keys and terms of the rows kept."""
        columns = self._parts.columns
        return self._rows.with_keys(self._print_rows_within(columns), columns)

    def _print_rows_within(self, columns: list[str]) -> str:
        """Prints those rows that stay of n rows in their places."""
        where = f"moved % n >= n - {self._limits.rows}"
        return select(*self._rows.k, *columns, source=print_subquery(self._print_placed_rows()), where=where)

    def _print_placed_rows(self) -> str:
        """Prints windows of one partition whose orders begin alike: one sort serves them all.

        A database can leave a unit at its last group that is kept, where a condition on that comes with the window;
        one of several machines would sort before the exchange as well, if rows did not come together before.
        """
        rows, dialect = self._rows, self._parts.dialect
        names = [*rows.k, *rows.carried]
        over = f"OVER (PARTITION BY u ORDER BY {rows.group_order()}"
        groups = select(
            "u", *names, "r", f"DENSE_RANK() {over}) AS d", f"RANK() {over}) AS q", source=_print_ranked_rows(rows, "u")
        )
        within = f"d <= {self._limits.groups}" if self._parts.keys else ""
        kept = select("u", *names, "r", "q", source=print_subquery(groups), where=within)
        place = dialect.cast(f"ROW_NUMBER() {over}, {rows.order()}) - q", Type.INT)
        names = [*rows.k, *self._parts.columns]
        termed = rows.with_terms(print_subquery(kept), ["u", *rows.k, "r", "q"])
        placed = select(*names, "r", rows.rows_alike("u"), f"{place} AS place", source=termed)
        return select(*names, "n", f"{rows.moved_place('place')} AS moved", source=dialect.write_subquery(placed))

    def _kept_pairs(self) -> str:
        """Returns one row for each unit and each of its groups that are kept, with the number of its rows."""
        rows, own = self._rows, ["b.u", *(f"b.{name}" for name in self._rows.k)]
        hint = self._parts.dialect.together.format("u") if self._parts.keys else ""  # else they meet by their group
        columns = [f"{hint}b.u", *own[1:], "COUNT(*) AS n"]
        pairs = select(*columns, source="base AS b", where="".join(rows.owner_conditions), group=own)
        if not self._parts.keys:
            return pairs
        ranked = rows.rank.of(rows.rank.number("u"), print_subquery(pairs), ["u", *rows.k, "n"])
        place = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {rows.group_order()}) AS d"
        placed = select(*rows.k, "n", place, source=ranked)
        return select(*rows.k, "n", source=print_subquery(placed), where=f"d <= {self._limits.groups}")


class GroupSort:
    """The common table expressions of rows in kept groups, and the query over them.

    Args:
        parts: the reading's; whom a count of joined sides suspects does not matter here.
        bounding: its limits.
    """

    def __init__(self, parts: PrintedReading, bounding: ContributionBounding) -> None:
        self._rows, self._pairs = BoundedRows(replace(parts, heavy=None), bounding), OneSort(parts, bounding)
        self._parts, self._placing = self._rows.parts, PlacedTable(self._rows)

    def sql(self) -> str:
        """Prints the whole statement."""
        if not self._parts.terms:
            return self._pairs.sql()
        found = self._rows.with_keys(self._placing.totals(), ["a0", "a1", *self._parts.a])
        return f"{self.tables()} {found}"

    def tables(self) -> str:
        """Prints the common table expressions."""
        placed = self._placing.table(_print_ranked_rows(self._rows, "v"))
        return f"{self._pairs.tables()}, placed {self._parts.dialect.once} ({placed})"

    def print_kept_rows(self) -> str:
        """Prints a query for keys and terms of the rows kept."""
        return self._placing.print_kept_rows()


def _print_ranked_rows(rows: BoundedRows, unit: str) -> str:
    """Prints a table of rows with their unit, under this name, and the rank r of their group."""
    names = [*rows.k, *rows.carried]
    own = [f"{rows.parts.dialect.together.format(unit)}b.u AS {unit}", *(f"b.{name}" for name in names)]
    base = select(*own, source="base AS b", where="".join(rows.owner_conditions))
    return rows.rank.of(rows.rank.number(unit), print_subquery(base), [unit, *names])
