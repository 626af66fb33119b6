"""Folds and windows as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.engines.sql import grid
from discreet.engines.sql.expressions import Printer, Term
from discreet.plan.model.readings import Statistic
from discreet.plan.model.relations import Fold, Window
from discreet.plan.model.types import Type

FOLDS = {"count_values": "COUNT({0})", "count_distinct": "COUNT(DISTINCT {0})", "min": "MIN({0})", "max": "MAX({0})"}
"""Aggregates of a term {0} that need nothing but the values."""


def term_of(printer: Printer, made: Fold | Window, argument: Term) -> Term:
    """What is put into the aggregate: steps of the grid, or the value itself."""
    if made.kind not in ("sum", "mean") or made.argument is None:
        return argument
    exponent, low, high = made.grid
    statistic = Statistic(kind="sum", argument=made.argument, exponent=exponent, low=low, high=high)
    return grid.steps(printer, statistic, argument, made.argument.type)


def summed(printer: Printer, made: Fold | Window, over: str = "") -> str:
    """A sum or a mean of steps {0}, of a group or over a window."""
    total = f"TRY_CAST({printer.dialect.total('{0}')}{over} AS BIGINT)"
    if made.kind == "sum" and made.type is Type.INT:
        return total
    step, count = f"CAST('{2.0 ** made.grid[0]!r}' AS DOUBLE)", f"COUNT({{0}}){over}"
    if made.kind == "sum":
        return f"CAST({total} AS DOUBLE) * {step}"
    return f"CASE WHEN {count} > 0 THEN CAST({total} AS DOUBLE) / {count} * {step} END"


_PLACES = {"row_number": "ROW_NUMBER()", "rank": "RANK()", "dense_rank": "DENSE_RANK()", "count": "COUNT(*)"}
_PEERS = ("rank", "dense_rank", "count", "count_values", "sum", "mean", "min", "max")
_ALL_ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


@dataclass(frozen=True)
class Frame:
    """A window whose parts have names; the SQL over them."""

    printer: Printer
    window: Window
    place: int
    terms: dict[str, Term]

    @classmethod
    def of(cls, printer: Printer, window: Window, place: int) -> Frame:
        """The window in this place of a list."""
        terms: dict[str, Term] = {}
        if window.argument is not None:
            terms[f"w{place}"] = term_of(printer, window, printer.name(printer.print(window.argument)))
        for i, part in enumerate(window.partition):
            terms[f"w{place}p{i}"] = printer.print(part)
        for i, order in enumerate(window.order):
            terms[f"w{place}o{i}"] = printer.print(order.expression)
        return cls(printer, window, place, terms)

    def sql(self, unit: str, columns: Sequence[str]) -> str:
        """The value for each row; where the order leaves a choice, columns decide."""
        window, name = self.window, f"w{self.place}"
        over = self._over(unit, columns)
        if window.kind in ("lag", "lead"):
            return f"{window.kind.upper()}({name}, {window.offset}){over}"
        if window.kind in ("first", "last"):
            return f"{window.kind.upper()}_VALUE({name}){over}"
        if window.kind in ("sum", "mean"):
            return summed(self.printer, window, over).format(name)
        text = _PLACES.get(window.kind) or FOLDS[window.kind].format(name)
        return f"{text}{over}"

    def _over(self, unit: str, columns: Sequence[str]) -> str:
        partition = ", ".join([unit, *(f"w{self.place}p{i}" for i in range(len(self.window.partition)))])
        terms = [
            f"w{self.place}o{i} {'DESC' if order.descending else 'ASC'} NULLS LAST"
            for i, order in enumerate(self.window.order)
        ]
        if self.window.kind not in _PEERS:
            terms += [f"{column} ASC NULLS LAST" for column in columns]
        ordered = f" ORDER BY {', '.join(terms)}" if terms else ""
        frame = f" {_ALL_ROWS}" if self.window.kind in ("first", "last") else ""
        return f" OVER (PARTITION BY {partition}{ordered}{frame})"
