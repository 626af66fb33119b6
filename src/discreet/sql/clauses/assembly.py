"""From the parts of a question, however they were written, to the plan: keys, aggregates, outputs and their names.

SQL and the fluent front both end here, so equal questions are equal objects.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import NoReturn

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.errors import UnsupportedQuery
from discreet.plan.analysis.group_keys import from_whole, whole_key
from discreet.plan.analysis.key_dependencies import told_by_public
from discreet.plan.model.nodes import (
    Aggregate,
    ColumnRef,
    Expression,
    Key,
    Output,
    PostProcessingStep,
    Question,
    Relation,
    SortKey,
    columns,
    fits,
    substitute,
)
from discreet.plan.model.relations import BaseTable
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.plan.post.steps import (
    AttachQuestion,
    FilterGroups,
    GroupWindow,
    GroupWindows,
    columns_as_aggregates,
    find_needed_steps,
    map_expressions,
    with_parts,
)
from discreet.plan.post.steps import parts as parts_of_step
from discreet.sql.clauses.select_parts import (
    RESERVED_ENDS,
    QueryFragment,
    Subqueries,
    conjunction,
    distinct,
    each,
    may_be_shown,
    puts_together,
    readable,
    require_type,
    truth,
)
from discreet.sql.clauses.window_clause import GroupScope
from discreet.sql.examples import Examples, band, different, quote_name
from discreet.sql.functions import read
from discreet.sql.refusals import SqlSource
from discreet.sql.scope import Names, Scope, lookup, same


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionParts:
    """A question as its author wrote it, in trees of the parser.

    Args:
        schema: the table.
        alias: what the question calls it.
        names: what columns are called, where there are several tables.
        relation: the rows, if they are not simply the table's.
        blocks: reads its side questions.
        outputs: what is selected, with names where given.
        where: the conditions on rows; all must hold.
        keys: what is grouped by; a number means an output, a name may be an output's.
        having: the conditions on groups.
        qualify: the conditions on groups with their windows.
        order: what to sort by, and whether downwards.
        limit: how many rows to keep.
        offset: how many rows to pass over before.
        sets: for each grouping the places of its keys, if there are several.
    """

    schema: TableSchema
    alias: str
    outputs: Sequence[QueryFragment]
    where: Sequence[QueryFragment] = ()
    keys: Sequence[QueryFragment] = ()
    having: Sequence[QueryFragment] = ()
    qualify: Sequence[QueryFragment] = ()
    order: Sequence[tuple[QueryFragment, bool]] = ()
    limit: int | None = None
    offset: int = 0
    names: Names | None = None
    relation: Relation | None = None
    blocks: Subqueries | None = None
    sets: Sequence[Sequence[int]] = ()

    @property
    def is_plain(self) -> bool:
        """Returns whether the rows are simply those of the table."""
        return self.relation is None or isinstance(self.relation, BaseTable)

    def rename_columns(self, expression: Expression) -> Expression:
        """Rewrites an expression with the names that the question has for its columns."""
        names = {inner: name for known in (self.names or {}).values() for name, inner in known.items()}
        return substitute(expression, {}, lambda column: replace(column, name=names.get(column.name, column.name)))

    def rename_aggregate(self, aggregate: Aggregate) -> Aggregate:
        """Writes an aggregate in the question's own words."""
        own = [part and self.rename_columns(part) for part in (aggregate.argument, aggregate.other)]
        return replace(aggregate, argument=own[0], other=own[1])

    def scope(self, source: SqlSource) -> Scope:
        """Returns the scope of one row."""
        return Scope(source=source, schema=self.schema, alias=self.alias, names=self.names)


def question(asked: QuestionParts) -> Question:
    """Builds the plan of a question.

    Raises:
        UnsupportedQuery: if a part is not understood, or an output is neither key nor aggregate.
    """
    asked = _spread(asked)
    builder = _Builder(asked)
    meant = [builder.key(piece) for piece in asked.keys]
    builder.keys = expressions = list(dict.fromkeys(meant))
    sets = [tuple(sorted({expressions.index(meant[place]) for place in one})) for one in asked.sets]
    raw = [builder.answer(piece) for piece in asked.outputs]
    keys = _keys(expressions, [builder.whole[found][0] if found in builder.whole else found for found in raw], asked)
    builder.known = {key.expression: ColumnRef(key.name, key.expression.type) for key in keys}
    builder.known |= {d: from_whole(builder.known[whole], scale) for d, (whole, scale) in builder.whole.items()}
    outputs = [builder.require_released(piece, found) for piece, found in zip(asked.outputs, raw, strict=True)]
    shown = [asked.rename_aggregate(aggregate) for aggregate in builder.aggregates]
    if builder.windows:
        shown += columns_as_aggregates([GroupWindows(tuple(builder.windows))])
    names = name_outputs(asked.outputs, outputs, shown)
    builder.named |= dict(zip(names, raw, strict=True))
    order = tuple(SortKey(builder.resolve_order_key(piece, raw), down) for piece, down in asked.order)
    having, qualify = builder.having(), builder.qualify()
    asking = Question(
        table=asked.schema.name,
        source=None if _is_read_by_name(asked.relation) else asked.relation,
        where=builder.where(),
        keys=tuple(keys),
        outputs=tuple(map(Output, names, outputs)),
        having=None if builder.attachment_steps else having,
        order=order,
        limit=asked.limit,
        offset=asked.offset,
        steps=builder.steps(having, qualify),
        beside=() if asked.blocks is None else tuple(asked.blocks.found),
        aggregates=tuple(builder.aggregates),
        sets=tuple(dict.fromkeys(sets)),
    )
    return tidy(asking, asked.outputs[0])


def _spread(asked: QuestionParts) -> QuestionParts:
    """Returns the question with an output for each quantile of a list; its numbers and names mean all of them."""
    made = [
        [
            piece if node is piece.node else replace(piece, node=node, name=name)
            for node, name in each(piece.node, piece.name)
        ]
        for piece in asked.outputs
    ]
    listed = [i for i, piece in enumerate(asked.outputs) if made[i][0].node is not piece.node]
    if not listed:
        return asked
    starts = list(accumulate(map(len, made), initial=0))
    lists = {asked.outputs[i].name or "": i for i in listed}

    def renumber_piece(piece: QueryFragment) -> list[QueryFragment]:
        named = isinstance(piece.node, exp.Column) and not piece.node.table
        place = lookup(piece.node.name, lists) if named else number(piece, len(made))
        if place is None:
            return [piece]
        return [replace(piece, node=exp.Literal.number(i + 1)) for i in range(starts[place], starts[place + 1])]

    return replace(
        asked,
        outputs=[piece for parts in made for piece in parts],
        keys=[meant for piece in asked.keys for meant in renumber_piece(piece)],
        order=[(meant, down) for piece, down in asked.order for meant in renumber_piece(piece)],
    )


class _Builder:
    """Reads the pieces of one question; aggregates, keys and names collect here."""

    def __init__(self, asked: QuestionParts) -> None:
        self.asked = asked
        self.aggregates: list[Aggregate] = []
        self.known: dict[Expression, Expression] = {}
        self.whole: dict[Expression, tuple[Expression, float]] = {}  # keys of doubles, as whole numbers
        self.named: dict[str, Expression] = {}
        self.keys: list[Expression] = []
        self.key_names: dict[str, Expression] = {}
        self.windows: list[GroupWindow] = []
        nodes = [*asked.outputs, *asked.having, *asked.qualify, *(piece for piece, _ in asked.order)]
        self.is_grouped = bool(asked.keys) or any(puts_together(piece.node) for piece in nodes)

    def row(self, piece: QueryFragment) -> Expression:
        """Returns an expression over columns of a row."""
        return require_type(read(piece.node, self.asked.scope(piece.source)), piece)

    def answer(self, piece: QueryFragment, *, windows: bool = True) -> Expression:
        """Returns an expression over aggregates, columns of the answer, windows, and keys as they are computed."""
        scope = GroupScope(
            source=piece.source,
            schema=self.asked.schema,
            alias=self.asked.alias,
            names=self.asked.names,
            aggregates=self.aggregates,
            named=self.named,
            grouped=self.keys if self.asked.sets else (),
            key_names=self.key_names,
            windows=self.windows,
            over_groups=self.is_grouped and windows,
            keys=[*self.keys, *self.whole],
            public=partial(told_by_public, self.asked.relation, schemas=piece.source.schemas),
            blocks=self.asked.blocks,
        )
        return require_type(read(piece.node, scope), piece)

    def key(self, piece: QueryFragment) -> Expression:
        """Returns the expression of a key, which may be written as the place or the name of an output."""
        meant = _resolve_output(piece, self.asked)
        expression = self.row(meant)
        whole = whole_key(expression, self.asked.schema)
        if whole is not None:
            self.whole[expression] = whole
            expression = whole[0]
        _may_be_key(expression, meant, self.asked)
        self.key_names |= {meant.name: expression} if meant.name else {}
        return expression

    def require_released(self, piece: QueryFragment, found: Expression) -> Expression:
        """Returns the expression over released columns alone: what is no key and no aggregate is refused."""

        def other(column: ColumnRef) -> Expression:
            return column if column.name.startswith("#") else _not_released(column, piece, self.asked)

        return substitute(found, self.known, other)

    def where(self) -> Expression | None:
        return conjunction([truth(self.row(piece), "WHERE", piece) for piece in self.asked.where])

    def having(self) -> Expression | None:
        return conjunction(
            [
                self.require_released(piece, truth(self.answer(piece, windows=False), "HAVING", piece))
                for piece in self.asked.having
            ]
        )

    def qualify(self) -> Expression | None:
        return conjunction(
            [self.require_released(piece, truth(self.answer(piece), "QUALIFY", piece)) for piece in self.asked.qualify]
        )

    def steps(self, having: Expression | None, qualify: Expression | None) -> tuple[PostProcessingStep, ...]:
        """Returns the steps: numbers of side questions, HAVING if it may read them, windows, and QUALIFY."""
        piece = self.asked.outputs[0]
        windows = [with_parts(window, lambda part: self.require_released(piece, part)) for window in self.windows]
        kept = (FilterGroups(having),) if having is not None and self.attachment_steps else ()
        beside = (GroupWindows(tuple(windows)),) if windows else ()
        return (*self.attachment_steps, *kept, *beside, *(() if qualify is None else (FilterGroups(qualify),)))

    @property
    def attachment_steps(self) -> list[AttachQuestion]:
        """Returns what brings the numbers of side questions to each group, before anything is done with them."""
        return [] if self.asked.blocks is None else self.asked.blocks.attachment_steps()

    def resolve_order_key(self, piece: QueryFragment, raw: Sequence[Expression]) -> Expression:
        place = number(piece, len(raw))
        return self.require_released(piece, self.answer(piece) if place is None else raw[place])


def _is_read_by_name(relation: Relation | None) -> bool:
    """Returns whether a reading of the table by its name alone reads the same rows: its unit is a column, or none."""
    return isinstance(relation, BaseTable) and not isinstance(relation.unit, tuple) and relation.period is None


def number(piece: QueryFragment, outputs: int) -> int | None:
    """Returns which output a number written alone means; None if the piece is no number."""
    node = piece.node
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    if not node.name.isdecimal() or not 1 <= int(node.name[:9]) <= outputs:
        piece.source.refuse(f"There is no output number {node.name[:40]}.", "Name the column: {top}.", node)
    return int(node.name[:9]) - 1


def _resolve_output(piece: QueryFragment, asked: QuestionParts) -> QueryFragment:
    place = number(piece, len(asked.outputs))
    if place is not None:
        return asked.outputs[place]
    node = piece.node
    if isinstance(node, exp.Column) and not node.table and not asked.scope(piece.source).knows(node):
        return lookup(node.name, {output.name: output for output in asked.outputs if output.name}) or piece
    return piece


def _may_be_key(expression: Expression, piece: QueryFragment, asked: QuestionParts) -> None:
    examples, source = Examples(asked.schema), piece.source
    read_columns = {column.name for column in columns(expression)}
    if owner := next((name for name in asked.schema.ids if name in read_columns), None):
        reason = f"{quote_name(owner)} says whose row it is: each of its groups would be a single person."
        source.refuse(reason, "You can count it and filter on it: {units}.", piece.node)
    if not read_columns:
        source.refuse("A key depends on the row; this one is constant.", "Group by a column: {grouped}.", piece.node)
    if expression.type is Type.FLOAT:  # what is not even whole
        _divided_to_a_key(piece, asked)
        text = piece.node.sql(dialect="duckdb")
        whole = text if isinstance(piece.node, exp.Floor | exp.Ceil | exp.Round) else f"FLOOR(({text}) / 10)"
        banded = different(examples.grouped_by(f"CAST({whole} AS INT)", "band"))
        simple = asked.alias == asked.schema.name and "`" not in text and len(text) <= 200
        simple = simple and asked.is_plain and examples.shows(band(expression))
        reason = "A key of type float would make groups out of rounding errors."
        source.refuse(reason, f"Group by whole numbers, texts or dates: {banded if simple else '{bands}'}.", piece.node)


def _divided_to_a_key(piece: QueryFragment, asked: QuestionParts) -> None:
    """Refuses a key that is whole if whole numbers are divided as PostgreSQL does, and proposes it with //."""
    whole = piece.node.transform(
        lambda node: exp.IntDiv(this=node.this, expression=node.expression) if isinstance(node, exp.Div) else node
    )
    text = whole.sql(dialect="duckdb")
    try:
        key = read(whole, asked.scope(piece.source))
    except UnsupportedQuery:
        return
    examples = Examples(asked.schema)
    simple = asked.alias == asked.schema.name and "`" not in text and len(text) <= 200 and asked.is_plain
    if key.type is Type.INT and simple and examples.shows(key):
        hint = f"// divides whole numbers: {different(examples.grouped_by(text, 'band'))}."
        piece.source.refuse("/ divides to a double, which would make groups out of rounding errors.", hint, piece.node)


def _not_released(column: ColumnRef, piece: QueryFragment, asked: QuestionParts) -> NoReturn:
    node = next((n for n in piece.node.find_all(exp.Column) if _outside(n, column.name)), piece.node)
    name, declared = _shown_name(column, asked), piece.source.schemas.get(asked.schema.name)
    stored = declared.stored_columns.get(column.name) if declared is not None and asked.is_plain else None
    own = stored is not None and Examples(asked.schema).shows(column)
    if column.name in asked.schema.ids:
        reason, hint = f"{name} says whose row it is; it is never shown.", "Count people instead: {units}."
    elif column.type is Type.FLOAT:
        reason, hint = f"{name} is not inside an aggregate: it would publish people's values.", "Ask {mean}."
        hint = hint if stored is None else f"Ask {different(Examples(asked.schema).mean_of(stored))}."
    else:
        reason = f"{name} is neither a key nor inside an aggregate: it would publish people's values."
        grouped = different(Examples(asked.schema).grouped_by(name))
        hint = f"Group by it: {grouped}." if own else "Group by it, as in {grouped}."
    piece.source.refuse(reason, hint, node)


def _shown_name(column: ColumnRef, asked: QuestionParts) -> str:
    """Returns what the question calls a column; one of ours replaces IN or EXISTS."""
    tables = asked.scope(SqlSource("", {})).visible
    known = ((table, name) for table, names in tables.items() for name, inner in names.items() if inner == column.name)
    table, name = next(known, ("", ""))
    if not name:
        return "This condition"
    return f"{quote_name(table)}.{quote_name(name)}" if len(tables) > 1 else quote_name(name)


def _outside(node: exp.Column, name: str) -> bool:
    """Returns whether a name is outside of every aggregate."""
    return same(node.name, name) and node.find_ancestor(exp.AggFunc) is None


def _keys(expressions: Sequence[Expression], raw: Sequence[Expression], asked: QuestionParts) -> list[Key]:
    """Returns keys with the names that their columns have in the answer."""
    keys: list[Key] = []
    for expression in expressions:
        shown = [piece.name for piece, found in zip(asked.outputs, raw, strict=True) if found == expression]
        name = next((name for name in shown if name), None) or readable(asked.rename_columns(expression), {})
        keys.append(Key(distinct(name, [key.name for key in keys]), expression))
    return keys


def name_outputs(
    pieces: Sequence[QueryFragment], found: Sequence[Expression], aggregates: Sequence[Aggregate]
) -> list[str]:
    """Returns a name for each output, none of them twice."""
    given = [piece.name for piece in pieces if piece.name]
    made = {aggregate.name: aggregate for aggregate in aggregates}
    names: list[str] = []
    taken: set[str] = set()
    for piece, expression in zip(pieces, found, strict=True):
        name = piece.name or readable(expression, made)
        if not piece.name and not isinstance(piece.node, exp.Column):
            name = distinct(name, [*given, *names])
        _may_be_name(name, piece, taken)
        names.append(name)
        taken.add(name.casefold())
    return names


def _may_be_name(name: str, piece: QueryFragment, taken: Collection[str]) -> None:
    """Refuses a name that cannot be shown, or that another column has; the names taken are in lower case."""
    source = piece.source
    if not may_be_shown(name) or len(name) > 200:
        ends = " or ".join(RESERVED_ENDS)
        source.refuse(
            f"A column of the answer cannot be called {quote_name(name[:40])}.",
            f"A name must not end in {ends}, start with # or have control characters. Choose another with AS: "
            "{grouped}.",
            piece.node,
        )
    if name.casefold() in taken:
        source.refuse(f"Two columns are called {quote_name(name[:40])}.", "Rename one with AS: {grouped}.", piece.node)


def tidy(asking: Question, piece: QueryFragment) -> Question:
    """Returns the question with the aggregates it uses, numbered in the order in which they are used.

    Raises:
        UnsupportedQuery: if it uses none, and has no keys either.
    """
    parts = [*(output.expression for output in asking.outputs), *([asking.having] if asking.having else [])]
    parts += [order.expression for order in asking.order]
    asking = replace(asking, steps=find_needed_steps(asking)) if asking.steps else asking
    parts += [part for step in asking.steps for part in parts_of_step(step)]
    if not all(fits(part) for part in parts):
        piece.source.refuse("The question is too large.", "Ask a simpler one: {count}.", piece.node)
    made = {aggregate.name: aggregate for aggregate in asking.aggregates}
    used = dict.fromkeys(column.name for part in parts for column in columns(part) if column.name in made)
    if not used and not asking.keys:
        piece.source.refuse("Nothing is counted or summed.", "Ask for an aggregate: {grouped}.", piece.node)
    numbers = {name: f"#{i}" for i, name in enumerate(used, start=1)}
    if list(numbers.values()) == [aggregate.name for aggregate in asking.aggregates] == list(numbers):
        return asking  # as most are written

    def rename_columns(part: Expression) -> Expression:
        return substitute(part, {}, lambda column: replace(column, name=numbers.get(column.name, column.name)))

    return replace(
        asking,
        aggregates=tuple(replace(made[name], name=number) for name, number in numbers.items()),
        outputs=tuple(replace(output, expression=rename_columns(output.expression)) for output in asking.outputs),
        having=None if asking.having is None else rename_columns(asking.having),
        order=tuple(replace(order, expression=rename_columns(order.expression)) for order in asking.order),
        steps=tuple(map_expressions(step, rename_columns) for step in asking.steps),
    )
