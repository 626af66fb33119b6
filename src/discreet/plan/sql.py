"""Text to plan: the parser reads, our gates decide.

A question is one SELECT from one declared table, with WHERE, GROUP BY, HAVING, ORDER BY and LIMIT, or a SELECT over one
such SELECT, which only works on its released columns.

*Names.* Letter case and quotes do not matter where a name is clear without them. In WHERE, in GROUP BY and inside
aggregates a name is a column of the table; GROUP BY also takes the name or the place of an output. In HAVING and ORDER
BY a name is a column of the answer first. *Numbers.* `/` is division of doubles, `//` of whole numbers; FLOOR, CEIL and
ROUND give doubles, and ROUND(x, n) is ROUND(x * 10^n) / 10^n in doubles. *NULL.* It sorts last, in both directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.errors import ParseError

from discreet import check
from discreet.errors import UnknownTable
from discreet.plan.assemble import Asked, Piece, conjunction, named, number, question, tidy, truth, typed
from discreet.plan.examples import DIALECT
from discreet.plan.nodes import Expression, Order, Output, Question
from discreet.plan.reader import only, read
from discreet.plan.schema import TableSchema
from discreet.plan.scope import Scope, lookup, near
from discreet.plan.source import Source
from discreet.plan.tokens import tokens

DEEPEST_TREE = 120
CLAUSES = ("expressions", "from_", "where", "group", "having", "order", "limit")


def parse(text: str, schemas: Mapping[str, TableSchema]) -> Question:
    """The plan of a question.

    Args:
        text: one SELECT.
        schemas: the declared tables by name.

    Raises:
        UnsupportedQuery: with reason, hint and position, if anything in the text is not understood.
        UnknownTable: if its table is not declared.

    *Formal guarantee.* The result is a function of the text and the declarations alone, and every part of it has a
    value for every row.

    >>> from discreet.plan.schema import ColumnSchema
    >>> from discreet.plan.types import Type
    >>> visits = TableSchema(name="visits", columns={"ward": ColumnSchema(name="ward", type=Type.TEXT)})
    >>> asked = parse("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", {"visits": visits})
    >>> [output.name for output in asked.outputs], asked.aggregates[0].kind
    (['ward', 'n'], 'count')
    """
    source = Source(check.instance(str, text=text), schemas)
    return _question(select(source), source, outer=True)


def select(source: Source) -> exp.Select:
    """The tree of a text that passed the first gate, if it is one SELECT of bearable depth."""
    found = tokens(source)
    try:
        trees = DIALECT.parser().parse(found, source.text)
    except ParseError as error:
        spot = error.errors[0] if error.errors else {}
        at = next((t.start for t in found if (t.line, t.col) == (spot.get("line"), spot.get("col"))), 0)
        source.refuse("This is not SQL that can be read.", "Check the spelling near here; for example {grouped}.", at)
    except Exception:  # noqa: BLE001 - the parser is not ours, and whatever it raises on odd text is a refusal
        source.refuse("This is not SQL that can be read.", "Write it like {grouped}.")
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Select):
        source.refuse("A question is one SELECT.", "Ask, for example, {count}.")
    _shallow(tree, source)
    return tree


def _shallow(tree: exp.Select, source: Source) -> None:
    level: list[exp.Expr] = [tree]
    for _ in range(DEEPEST_TREE):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    source.refuse("The question is nested too deeply.", "Shorten chains, for example with IN: {filtered}.", level[0])


def _question(tree: exp.Select, source: Source, *, outer: bool) -> Question:
    unclear = Scope(source=source, schema=TableSchema(name=""), alias="")
    only(tree, unclear, *CLAUSES)
    origin = tree.args.get("from_")
    if origin is None or not tree.expressions:
        source.refuse("A question selects something from a table.", "For example {count}.")
    only(origin, unclear, "this")
    if isinstance(origin.this, exp.Subquery) and outer:
        return _over(tree, origin.this, source)
    schema, alias = _table(origin.this, source, unclear)
    return question(_asked(tree, schema, alias, source))


def _table(node: exp.Expr, source: Source, scope: Scope) -> tuple[TableSchema, str]:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        source.refuse("A question reads a declared table.", "For example {count}.", node)
    if node.args.get("db") or node.args.get("catalog"):
        source.refuse("A table is named without schema or catalog.", "For example {count}.", node)
    only(node, scope, "this", "alias")
    schema = lookup(node.name, source.schemas)
    if schema is None:
        raise UnknownTable(node.name, source.schemas)
    return schema, _alias(node, scope) or schema.name


def _alias(node: exp.Expr, scope: Scope) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    only(alias, scope, "this")
    return str(alias.name)


def _asked(tree: exp.Select, schema: TableSchema, alias: str, source: Source) -> Asked:
    scope = Scope(source=source, schema=schema, alias=alias)
    group = tree.args.get("group")
    if group is not None:
        only(group, scope, "expressions")
    return Asked(
        schema=schema,
        alias=alias,
        outputs=[piece(node, source, scope) for node in tree.expressions],
        where=_clause(tree, "where", source),
        keys=[Piece(node, source) for node in (group.expressions if group is not None else [])],
        having=_clause(tree, "having", source),
        order=ordering(tree, source, scope),
        limit=_limit(tree, source, scope),
    )


def piece(node: exp.Expr, source: Source, scope: Scope) -> Piece:
    """An output and its name."""
    if not isinstance(node, exp.Alias):
        return Piece(node, source)
    only(node, scope, "this", "alias")
    return Piece(node.this, source, node.alias)


def _clause(tree: exp.Select, name: str, source: Source) -> list[Piece]:
    clause = tree.args.get(name)
    return [] if clause is None else [Piece(clause.this, source)]


def ordering(tree: exp.Select, source: Source, scope: Scope) -> list[tuple[Piece, bool]]:
    """What to sort by, and whether downwards."""
    order = tree.args.get("order")
    if order is None:
        return []
    only(order, scope, "expressions")
    for term in order.expressions:
        only(term, scope, "this", "desc", "nulls_first")
        if term.args.get("nulls_first"):
            source.refuse("NULL always sorts last.", "Leave NULLS FIRST out: {top}.", term)
    return [(Piece(term.this, source), bool(term.args.get("desc"))) for term in order.expressions]


def _limit(tree: exp.Select, source: Source, scope: Scope) -> int | None:
    limit = tree.args.get("limit")
    if limit is None:
        return None
    only(limit, scope, "expression")
    count = limit.args.get("expression")
    if not isinstance(count, exp.Literal) or count.is_string or not count.name.isdecimal() or len(count.name) > 9:
        source.refuse("LIMIT takes a whole number.", "For example {top}.", limit)
    return int(count.name)


# --------------------------------------------------------------------------------------- a SELECT over released columns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Released(Scope):
    """The columns of an answer: the scope of a SELECT over another."""

    released: Mapping[str, Expression] = field(default_factory=dict)

    @property
    def row(self) -> Scope:
        return self

    def column(self, node: exp.Column) -> Expression:
        self._prefix(node)
        found = lookup(node.name, self.released)
        if found is None:
            self.refuse(f"The inner SELECT has no column '{node.name[:60]}'.", near(node.name, self.released), node)
        return found

    def aggregate(self, kind: object, argument: Expression | None, node: exp.Expr) -> Expression:
        del kind, argument
        reason = "Aggregates of aggregates are not answered yet."
        self.refuse(reason, "Take the groups, and add them up in the answer: {grouped}.", node)


def _over(tree: exp.Select, inner: exp.Subquery, source: Source) -> Question:
    blank = TableSchema(name="")
    scope = Scope(source=source, schema=blank, alias="")
    only(inner, scope, "this", "alias")
    only(tree, scope, "expressions", "from_", "where", "order", "limit")
    if not isinstance(inner.this, exp.Select):
        source.refuse("FROM takes a table or one SELECT.", "For example {grouped}.", inner)
    for clause in ("order", "limit"):
        if inner.this.args.get(clause) is not None:
            reason = "ORDER BY and LIMIT belong to the outer SELECT."
            source.refuse(reason, "Write them at the end: {top}.", inner.this.args[clause])
    asking = _question(inner.this, source, outer=False)
    columns = {output.name: output.expression for output in asking.outputs}
    return _wrapped(asking, tree, _Released(source=source, schema=blank, alias=_alias(inner, scope), released=columns))


def _shown(part: Piece, scope: _Released) -> Piece:
    """A column of the inner SELECT keeps its name."""
    if part.name or not isinstance(part.node, exp.Column):
        return part
    return replace(part, name=lookup(part.node.name, {name: name for name in scope.released}))


def _wrapped(asking: Question, tree: exp.Select, scope: _Released) -> Question:
    pieces = [_shown(piece(node, scope.source, scope), scope) for node in tree.expressions]
    found = [typed(read(part.node, scope), part) for part in pieces]
    names = named(pieces, found, asking.aggregates)
    shown = replace(scope, released={**scope.released, **dict(zip(names, found, strict=True))})
    kept = [truth(read(part.node, scope), "WHERE", part) for part in _clause(tree, "where", scope.source)]
    having = conjunction([asking.having, *kept] if asking.having is not None else kept)
    order = [
        Order(found[place] if place is not None else typed(read(part.node, shown), part), down)
        for part, down in ordering(tree, scope.source, scope)
        for place in [number(part, len(found))]
    ]
    outputs = tuple(map(Output, names, found))
    limit = _limit(tree, scope.source, scope)
    return tidy(replace(asking, outputs=outputs, having=having, order=tuple(order), limit=limit), pieces[0])
