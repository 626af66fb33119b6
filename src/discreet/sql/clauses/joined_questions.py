"""Several released questions in one: their numbers side by side, or their groups joined on equal keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from discreet.plan.model.nodes import Column, Expression, Output, Question, columns, substitute
from discreet.plan.post.steps import Attach, noisy_columns
from discreet.sql.clauses.assembly import Piece, named, tidy
from discreet.sql.clauses.outer_select import Columns
from discreet.sql.clauses.subqueries import Blocks, attached, columns_of, joined
from discreet.sql.functions.reader import only, read
from discreet.sql.scope import lookup, near, same


def of_numbers(blocks: Sequence[Question], pieces: Sequence[Piece], found: Sequence[Expression]) -> Question:
    """What is computed from the numbers of several questions: the first of them, with the others beside it.

    Args:
        blocks: the questions, of one number each.
        pieces: the outputs.
        found: what they are, the numbers as columns #b0, #b1 and so on.
    """
    main, *others = blocks
    known: dict[Expression, Expression] = {}
    for place, block in enumerate(blocks):
        kind = block.outputs[0].expression.type
        known[Column(f"#b{place}", kind)] = main.outputs[0].expression if place == 0 else Column(f"#b{place - 1}", kind)
    outputs = [substitute(part, known, lambda column: column) for part in found]
    steps = tuple(attached(place, block) for place, block in enumerate(others))
    names = named(pieces, outputs, main.aggregates)
    asked = replace(main, outputs=tuple(map(Output, names, outputs)), steps=steps, beside=tuple(others))
    return tidy(asked, pieces[0])


def join_blocks(join: exp.Join, scope: Columns, blocks: Blocks, alias: str, block: Question) -> tuple[Columns, Attach]:
    """A released SELECT joined to another on all its keys.

    Raises:
        UnsupportedQuery: if the join is of another kind, or could find several rows for one.
    """
    only(join, scope, "this", "kind", "side", "on", "using")
    if (join.kind or "INNER").upper() not in ("INNER", "OUTER") or (join.side or "LEFT").upper() != "LEFT":
        scope.refuse("Released groups are joined by JOIN or LEFT JOIN.", "Write one of them: {grouped}.", join)
    if lookup(alias, scope.tables) is not None:
        scope.refuse(f"Two SELECTs are called '{alias[:60]}'.", "Name them apart with AS: {grouped}.", join)
    place = blocks.place(block, join)
    pairs = [_pair(part, scope, alias, block) for part in _equalities(join, scope)]
    _check_keys(pairs, block, scope, join)
    made = columns_of(place, block)
    using = {str(part.name).casefold() for part in join.args.get("using") or []}
    released = {name: part for name, part in scope.released.items() if name.casefold() in using or name not in made}
    released |= {name: part for name, part in made.items() if name not in scope.released}
    wider = replace(scope, released=released, tables={**scope.tables, alias: made})
    return wider, joined(place, block, pairs, outer=(join.side or "").upper() == "LEFT")


def _check_keys(pairs: Sequence[tuple[Expression, str]], block: Question, scope: Columns, join: exp.Join) -> None:
    """All keys are told, so that one row at most is found, and nothing that depends on noise."""
    outputs = {output.name: output.expression for output in block.outputs}
    told, noisy = {outputs[name] for _, name in pairs}, noisy_columns(block)
    keys = {Column(key.name, key.expression.type) for key in block.keys}
    known = not any(c.name in noisy for part in told for c in columns(part))
    known &= not any(c.name in scope.noisy for part, _ in pairs for c in columns(part))
    alike = all(part.type is outputs[name].type for part, name in pairs)
    if not keys or not keys <= told or not known or not alike:
        hint = "Say in USING or ON that all its keys are equal: {grouped}."
        scope.refuse("A released SELECT is joined on all its keys, and on nothing else.", hint, join)


def _equalities(join: exp.Join, scope: Columns) -> list[exp.Expr]:
    """What must be equal: names of USING, or the parts of ON."""
    if join.args.get("using"):
        return list(join.args["using"])
    waiting: list[exp.Expr | None] = [join.args.get("on")]
    found: list[exp.Expr] = []
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.And | exp.Paren):
            waiting += [part.this, *([part.expression] if isinstance(part, exp.And) else [])]
        elif isinstance(part, exp.EQ):
            found.append(part)
        else:
            scope.refuse("Released groups are joined on equal keys.", "Write USING (key): {grouped}.", join)
    return found


def _pair(part: exp.Expr, scope: Columns, alias: str, block: Question) -> tuple[Expression, str]:
    """What equals an output of the joined SELECT among the columns at hand, and that output."""
    names = {output.name: output.name for output in block.outputs}
    if not isinstance(part, exp.EQ):
        found = lookup(str(part.name), names)
        if found is None:
            scope.refuse(f"The joined SELECT has no column '{part.name[:60]}'.", near(part.name, names), part)
        return scope.column(exp.column(part.name)), found
    for one, other in ((part.this, part.expression), (part.expression, part.this)):
        if isinstance(one, exp.Column) and same(one.table, alias) and (found := lookup(one.name, names)) is not None:
            return read(other, replace(scope, blocks=None)), found
    return scope.refuse("Released groups are joined on equal keys.", "Write USING (key): {grouped}.", part)
