"""Cuts as SQL: at most so many rows of each unit, with work only for units that have more (`relations.Cut`).

How many rows each unit has is counted once for the whole statement, however often its rows are read, and so are rows
computed that are made of several tables. All rows of units that have few pass by; those of the others are ranked and
sorted, and the first ones stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from discreet.engines.row_choice import P, Salt
from discreet.engines.sql.contribution_bounds import mixed
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.printer import nested, select
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
        source: what stands after FROM.
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
        placed = self._placed(dialect, rows, salt, names)
        return f"{few} UNION ALL {select(*names, source=nested(placed), where=f'cut_place <= {rows}')}"

    def _placed(self, dialect: Dialect, rows: int, salt: Salt, names: list[str]) -> str:
        """Rows of units with too many, numbered in the order of `relations.Cut`: ranks are z^4 mod P."""
        unit, kind = self.unit
        number = dialect.rank_numbers[kind].format(unit)
        doubles = [name for name, of in self.compared if of is Type.FLOAT]
        whole = [(name, of) for name, of in self.columns if of is not Type.FLOAT]
        ranked = [[pair] for pair in self.compared if pair[1] is not Type.FLOAT] + [whole]
        places, carried = range(len(ranked)), [*names, *doubles]
        z = [f"{mixed(dialect, salt, number, keys)} AS z{i}" for i, keys in enumerate(ranked)]
        many = nested(select("u", source=self.sizes, where=f"n > {rows}"), "m")
        text = select(*carried, *z, source=nested(f"SELECT s.* FROM {self.source} AS s JOIN {many} ON m.u = s.{unit}"))
        for _ in range(2):
            squared = [f"z{i} * z{i} % {P} AS z{i}" for i in places]
            text = select(*carried, *squared, source=dialect.derived(text))
        order = [
            *(f"z{i}" for i in places[:-1]),
            *(f"{name} NULLS LAST" for name in doubles),
            f"z{places[-1]}",
            *(f"{dialect.by_code_points.format(n) if of is Type.TEXT else n} NULLS FIRST" for n, of in self.columns),
        ]
        place = f"ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY {', '.join(order)}) AS cut_place"
        return select(*names, place, source=dialect.derived(text))
