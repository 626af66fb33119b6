"""UNION ALL of answers: several whole questions released together, whose rows stand one after the other.

Columns have the names of the first question. What several of them ask for alike is released once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from discreet.plan.expressions.calls import Mismatch, alike
from discreet.plan.model.nodes import ColumnRef, Expression, Output, Question
from discreet.plan.post.steps import UnionAll
from discreet.sql.clauses.assembly import tidy
from discreet.sql.clauses.select_parts import MOST_BLOCKS, QueryFragment
from discreet.sql.refusals import SqlSource

ENDS = ("order", "limit", "offset")
"""The parts that come once, at the end."""

_PARTS = ("this", "expression", "distinct", "with_")


def branches(tree: exp.Expr, source: SqlSource, *, is_whole: bool = True) -> Iterator[exp.Expr]:
    """Yields the SELECTs of a UNION ALL from left to right.

    Raises:
        UnsupportedQuery: if rows are dropped, sorted or cut before they stand together.
    """
    while isinstance(tree, exp.Subquery) and not tree.alias:
        tree = tree.this
    for clause in () if is_whole else ENDS:
        if tree.args.get(clause) is not None:
            reason = "ORDER BY, LIMIT and OFFSET belong at the end of a UNION ALL."
            source.refuse(reason, "Write them once, after the last SELECT: {top}.", tree.args[clause])
    if not isinstance(tree, exp.Union):
        yield tree
        return
    odd = [name for name, part in tree.args.items() if part and name not in (*_PARTS, *ENDS)]
    if odd or tree.args.get("distinct") or (tree.args.get("with_") and not is_whole):
        reason = "UNION drops equal rows of an answer, and with noise, chance decides which rows are equal."
        source.refuse(reason, "Write UNION ALL, which keeps equal rows; or ask for one of them: {grouped}.", tree)
    yield from branches(tree.this, source, is_whole=False)
    yield from branches(tree.expression, source, is_whole=False)


def stack_queries(questions: Sequence[Question], trees: Sequence[exp.Expr], source: SqlSource) -> Question:
    """Returns the question whose rows are those of several questions.

    Args:
        questions: in order; columns have the names of the first.
        trees: their texts.
        source: for positions.

    Raises:
        UnsupportedQuery: if their columns do not fit, or they are too many for one budget.
    """
    first, *others = questions
    for other, tree in zip(others, trees[1:], strict=True):
        if len(other.outputs) != len(first.outputs):
            reason = f"The first SELECT of a UNION ALL has {len(first.outputs)} columns, this one {len(other.outputs)}."
            source.refuse(reason, "Select as many columns in each; or ask for one of them: {grouped}.", tree)
        if other.beside:
            hint = "Ask them one by one: {count}."
            source.refuse("A question inside a further SELECT of a UNION ALL has no place there.", hint, tree)
    if len(first.beside) + len(questions) > MOST_BLOCKS:
        hint = "Ask them one by one: {count}."
        source.refuse(f"More than {MOST_BLOCKS} questions would share one budget.", hint, trees[-1])
    columns = [_one_type(parts, trees, source) for parts in zip(*(q.outputs for q in questions), strict=True)]
    own, *rest = (tuple(part) for part in zip(*columns, strict=True))
    typed = [replace(q, outputs=_replace_expressions(q.outputs, parts)) for q, parts in zip(others, rest, strict=True)]
    places = [(len(first.beside) + i, tuple(o.name for o in q.outputs)) for i, q in enumerate(typed)]
    made = tuple(Output(f"#u{i}", part) for i, part in enumerate(own))
    shown = tuple(
        Output(output.name, ColumnRef(column.name, column.expression.type))
        for output, column in zip(first.outputs, made, strict=True)
    )
    steps = (*first.steps, UnionAll(made, tuple(places)))
    whole = replace(first, outputs=shown, steps=steps, beside=(*first.beside, *typed))
    return tidy(whole, QueryFragment(trees[0], source))


def _replace_expressions(outputs: Sequence[Output], parts: Sequence[Expression]) -> tuple[Output, ...]:
    return tuple(replace(output, expression=part) for output, part in zip(outputs, parts, strict=True))


def _one_type(outputs: Sequence[Output], trees: Sequence[exp.Expr], source: SqlSource) -> list[Expression]:
    """Returns the same column of all questions, as values of one type."""
    try:
        found = alike([output.expression for output in outputs])
    except Mismatch as mismatch:
        source.refuse(mismatch.reason, mismatch.hint, trees[-1])
    for part, tree in zip(found, trees, strict=True):
        if part.type is not found[0].type:
            kinds = f"{found[0].type.value} and {part.type.value}"
            reason = f"The column '{outputs[0].name[:60]}' of a UNION ALL has two types: {kinds}."
            source.refuse(reason, "Convert one with CAST; or ask for one of them: {grouped}.", tree)
    return found
