"""Cuts as SQL: at most so many rows of each unit, with work only for units that have more (`relations.Cut`).

    cut_side    the rows, and what a join compares beside them
    cut_units   units with too many rows

All rows of other units pass by; those of these units are ranked and sorted, and the first ones stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.engines.row_choice import P, Salt
from discreet.engines.sql.contribution_bounds import mixed
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.printer import nested, select
from discreet.plan.model.types import Type

Typed = Sequence[tuple[str, Type]]
"""Columns of a query with their types."""


@dataclass(frozen=True, kw_only=True)
class CutSide:
    """Rows that are to be cut.

    Args:
        sql: a query for them.
        columns: all of theirs but the unit.
        compared: what a join compares.
        unit: whose rows they are.
        once: whether reading them again takes longer than to keep them.
    """

    sql: str
    columns: Typed
    compared: Typed
    unit: tuple[str, Type]
    once: bool

    def print(self, dialect: Dialect, rows: int, salt: Salt) -> str:
        """Prints a query for the first rows of each unit, with the columns and the unit under their own names."""
        unit, _ = self.unit
        names = [*(name for name, _ in self.columns), unit]
        counted = select(
            unit, source="cut_side", where=f"{unit} IS NOT NULL", group=[unit], having=f"COUNT(*) > {rows}"
        )
        few = select(
            *names,
            source="cut_side AS s",
            where=f"{unit} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM cut_units AS m WHERE m.{unit} = s.{unit})",
        )
        first = select(*names, source=nested(self._placed(dialect, salt, names)), where=f"cut_place <= {rows}")
        kept = dialect.once if self.once else dialect.inline
        tables = f"cut_side {kept} ({self.sql}), cut_units {dialect.once} ({counted})"
        return f"WITH {tables} {few} UNION ALL {first}"

    def _placed(self, dialect: Dialect, salt: Salt, names: list[str]) -> str:
        """Rows of units with too many, numbered in the order of `relations.Cut`: ranks are z^4 mod P."""
        unit, kind = self.unit
        number = dialect.rank_numbers[kind].format(unit)
        doubles = [name for name, of in self.compared if of is Type.FLOAT]
        whole = [(name, of) for name, of in self.columns if of is not Type.FLOAT]
        ranked = [[pair] for pair in self.compared if pair[1] is not Type.FLOAT] + [whole]
        places, carried = range(len(ranked)), [*names, *doubles]
        z = [f"{mixed(dialect, salt, number, keys)} AS z{i}" for i, keys in enumerate(ranked)]
        many = f"(SELECT s.* FROM cut_side AS s JOIN cut_units AS m ON m.{unit} = s.{unit}) AS s"
        text = select(*carried, *z, source=many)
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
