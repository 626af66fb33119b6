"""Questions inside a question that are released together with it: SELECTs of one number, and joined ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from discreet.plan.model.nodes import Column, Output, Question
from discreet.plan.post.steps import AttachQuestion
from discreet.sql.refusals import Source

MOST_BLOCKS = 8
"""Questions that may share one budget."""


@dataclass(frozen=True, slots=True)
class Subqueries:
    """The questions beside one, as they are met.

    Args:
        source: the text, for positions.
        read: the plan of a SELECT.
        found: those met so far.
        before: how many there were already.
    """

    source: Source
    read: Callable[[exp.Expr], Question]
    found: list[Question] = field(default_factory=list)
    before: int = 0

    def scalar(self, node: exp.Expr) -> Column:
        """Returns the column of a SELECT of one number, made if it is new."""
        block = self.read(node.this)
        if len(block.outputs) != 1 or block.keys:
            hint = "Leave GROUP BY out, or join it by its keys as a name of WITH: {count}."
            self.source.refuse("A SELECT inside an expression gives one number.", hint, node)
        place = self.place(block, node)
        return Column(f"#b{place}", block.outputs[0].expression.type)

    def place(self, block: Question, node: exp.Expr) -> int:
        """Returns where a question stands among those beside."""
        if block.steps or block.beside or block.having is not None or block.order or block.limit is not None:
            hint = "Filter, sort and rank in the outer SELECT: {grouped}."
            self.source.refuse("A question inside another one counts and groups, and does nothing more.", hint, node)
        if block not in self.found:
            self.found.append(block)
        if self.before + len(self.found) >= MOST_BLOCKS:
            hint = "Ask them one by one: {count}."
            self.source.refuse(f"More than {MOST_BLOCKS} questions would share one budget.", hint, node)
        return self.before + self.found.index(block)

    def attached(self) -> list[AttachQuestion]:
        """Returns the steps that attach the numbers of SELECTs in brackets."""
        return [attached(self.before + i, block) for i, block in enumerate(self.found) if not block.keys]


def attached(place: int, block: Question) -> AttachQuestion:
    """Returns the step that attaches the only number of a question beside."""
    (output,) = block.outputs
    return AttachQuestion(place, (Output(f"#b{place}", Column(output.name, output.expression.type)),))


def columns_of(place: int, block: Question) -> dict[str, Column]:
    """Returns the columns that the outputs of a joined question become."""
    return {output.name: Column(f"#b{place}_{i}", output.expression.type) for i, output in enumerate(block.outputs)}


def joined(place: int, block: Question, on: Sequence[tuple[object, str]], *, outer: bool) -> AttachQuestion:
    """Returns the step that attaches the outputs of a question beside to groups of equal keys."""
    types = {output.name: output.expression.type for output in block.outputs}
    columns = tuple(Output(column.name, Column(name, types[name])) for name, column in columns_of(place, block).items())
    return AttachQuestion(place, columns, tuple(on), outer)  # type: ignore[arg-type]
