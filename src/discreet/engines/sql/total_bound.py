"""At most so many rows of one unit in all groups together: the few units with more are found, and they alone sorted.

    own        rows with a unit, and their keys and terms
    base       those with keys that count; public groups have numbers g
    crowded    units with more rows than the limit, and how many, n
    picked     the rows of crowded units that `row_choice` keeps, evenly spaced in the order of groups and terms

All other rows are kept as they are: none of them is ranked or put in order.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.engines.row_choice import Salt
from discreet.engines.sql.bounded_rows import BoundedRows
from discreet.engines.sql.group_ranks import GroupRank
from discreet.engines.sql.printer import PrintedReading, print_subquery, select
from discreet.errors import InternalError
from discreet.plan.model.readings import ContributionBounding


class TotalBound:
    """The common table expressions of the rows kept, and the query over them.

    Args:
        parts: the reading's; whom a count of joined sides suspects does not matter here.
        bounding: its limits.
    """

    def __init__(self, parts: PrintedReading, bounding: ContributionBounding) -> None:
        if bounding.total is None:
            raise InternalError("A reading reached an engine unchecked.")
        self._parts, self._total = replace(parts, heavy=None), bounding.total
        self._rows = BoundedRows(self._parts, replace(bounding, rows=bounding.total))
        self._rank = GroupRank(parts.dialect, Salt(bounding.salt), self._rows.kind, [])

    def sql(self) -> str:
        """Prints the whole statement."""
        parts, k = self._parts, self._rows.k
        units = "COUNT(DISTINCT u)" if parts.counts_units else "COUNT(*)"
        totals = ["COUNT(*) AS a0", f"{units} AS a1", *parts.aggregates(parts.t)]
        having = "" if parts.keys else "COUNT(*) > 0"
        found = select(*k, *totals, source=print_subquery(self._print_rows(["u"])), group=k, having=having)
        return f"{self.tables()} {self._rows.with_keys(found, ['a0', 'a1', *parts.a])}"

    def tables(self) -> str:
        """Prints the common table expressions."""
        rows, dialect = self._rows, self._parts.dialect
        kept = dialect.once if self._parts.is_kept else dialect.inline
        named = [
            ("own", dialect.inline, rows.own(rows.carrying)),
            ("base", kept, rows.base("own AS b", rows.carried)),
            ("crowded", dialect.once, self._print_crowded_units()),
        ]
        return "WITH " + ", ".join(f"{name} {how} ({text})" for name, how, text in named)

    def print_kept_rows(self) -> str:
        """Prints a query for keys and terms of the rows kept."""
        return self._rows.with_keys(self._print_rows([]), self._parts.columns)

    def _print_crowded_units(self) -> str:
        where = "".join(self._rows.owner_conditions)
        return select(
            "b.u", "COUNT(*) AS n", source="base AS b", where=where, group=["b.u"], having=f"COUNT(*) > {self._total}"
        )

    def _print_rows(self, beside: list[str]) -> str:
        """Prints a query for groups and terms of the rows kept, and other columns beside them."""
        names = [*beside, *self._rows.k]
        others = [*self._rows.owner_conditions, "NOT EXISTS (SELECT 1 FROM crowded AS c WHERE c.u = b.u)"]
        own = [f"b.{name}" for name in (*names, *self._rows.carried)]
        light = print_subquery(select(*own, source="base AS b", where=" AND ".join(others)))
        whole = select(*names, *self._parts.columns, source=self._rows.with_terms(light, names))
        picked = select(
            *names,
            *self._parts.columns,
            source=print_subquery(self._print_placed_rows()),
            where=f"moved % n >= n - {self._total}",
        )
        return f"{whole} UNION ALL {picked}"

    def _print_placed_rows(self) -> str:
        """Prints the rows of crowded units, each with its place among those of its unit, moved by the unit's rank."""
        rows, dialect = self._rows, self._parts.dialect
        names = ["u", *rows.k]
        own = [f"b.{name}" for name in (*names, *rows.carried)]
        theirs = select(*own, "c.n", source="base AS b JOIN crowded AS c ON c.u = b.u")
        ranked = self._rank.of(self._rank.number("u"), print_subquery(theirs), [*names, *rows.carried, "n"])
        order = ", ".join(filter(None, [*(rows.ordered_keys() if self._parts.keys else ()), rows.order()])) or "n"
        place = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {order}) - 1 AS place"
        termed = rows.with_terms(ranked, [*names, "n", "r"])
        placed = select(*names, *self._parts.columns, "n", "r", place, source=termed)
        moved = f"{rows.moved_place('place')} AS moved"
        return select(*names, *self._parts.columns, "n", moved, source=dialect.write_subquery(placed))
