"""A released group on its way through further steps: its values, their intervals, and whether it is there at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.spans import Span
from discreet.plan.model.nodes import Expression
from discreet.plan.post.certainty import certain, settled
from discreet.plan.post.group_aggregates import Member
from discreet.plan.post.outputs import Cell, Noisy, cell, span_of, values_of


@dataclass(frozen=True, slots=True)
class Group:
    """A released group on its way.

    Args:
        cells: keys, aggregates and what steps made.
        place: among the released groups; None once groups are put together.
        shown: whether it is there by the released values.
        sure: whether it is there whatever the noise.
    """

    cells: Mapping[str, Cell]
    place: int | None
    shown: bool = True
    sure: bool = True
    values: dict[str, Any] = field(init=False)
    spans: dict[str, Span] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", values_of(self.cells))
        object.__setattr__(self, "spans", {name: span_of(part) for name, part in self.cells.items()})

    def value(self, expression: Expression) -> Any:
        """An expression by the released values."""
        return evaluate(expression, self.values)

    def settled(self, expression: Expression) -> Expression:
        """An expression with everything written out that no noise decides."""
        return settled(expression, self.values, lambda name: isinstance(self.cells[name], Noisy))

    def cell(self, expression: Expression) -> Cell:
        """An expression with its interval; plain if no noise decides it."""
        return cell(self.settled(expression), self.cells)

    def member(self, argument: Expression | None) -> Member:
        """The group as a member of what is aggregated."""
        return Member(1 if argument is None else self.cell(argument), self.place, self.shown, self.sure)

    def certain(self, condition: Expression) -> bool | None:
        """Whether a condition is true whatever the noise; None if that depends on it."""
        return certain(self.settled(condition), self.spans)
