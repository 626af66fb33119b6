"""Text to plan: the parser reads, our gates decide.

A question is one SELECT, with WHERE, GROUP BY, HAVING, ORDER BY and LIMIT, over rows that belong to people one by one:
a declared table, tables joined, SELECTs that compute, filter or fold one person's rows, in brackets or under names of
WITH (`origin`, `read_nested_rows`). A SELECT over one that counts across people only works on its released columns
(`outer`).

*Names.* Letter case and quotes do not matter where a name is clear without them. In WHERE, in GROUP BY and inside
aggregates a name is a column of the table; GROUP BY also takes the name or the place of an output. In HAVING and ORDER
BY a name is a column of the answer first. *Numbers.* `/` is division of doubles, `//` of whole numbers; FLOOR, CEIL and
ROUND give doubles, and ROUND(x, n) is ROUND(x * 10^n) / 10^n in doubles. A double that is cast to INT becomes the
nearest whole number, of two the even one, as in PostgreSQL. *NULL.* It sorts last, in both directions; in
the list of IN and NOT IN it counts for nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import ParseError

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, UnknownTable, UnsupportedQuery
from discreet.plan.model.nodes import ColumnRef, Question
from discreet.plan.model.schema import TableSchema
from discreet.plan.post.steps import AttachQuestion, noisy_columns
from discreet.sql.clauses.assembly import QuestionParts, question
from discreet.sql.clauses.from_clause import FromClause, FromRows
from discreet.sql.clauses.histograms import replace_with_count, split_into_bands
from discreet.sql.clauses.outer_select import OuterScope, OuterSelectParts, everything, join_blocks, of_numbers, over
from discreet.sql.clauses.pivot_clause import alias_of, as_cells, as_rows
from discreet.sql.clauses.private_modes import largest_groups
from discreet.sql.clauses.row_selects import read_nested_rows, releases
from discreet.sql.clauses.select_parts import (
    QueryFragment,
    Subqueries,
    groupings,
    histogram,
    kept_rows,
    keys_of,
    puts_together,
    require_type,
)
from discreet.sql.clauses.subqueries import extract_subqueries, lateral
from discreet.sql.clauses.union_clause import ENDS, branches, stack_queries
from discreet.sql.examples import DIALECT, Examples, same_question
from discreet.sql.functions import only, read
from discreet.sql.parameters import Parameters
from discreet.sql.refusals import REFUSALS, Refusal, SqlSource
from discreet.sql.scope import Scope, lookup
from discreet.sql.sql_tokens import tokens

DEEPEST_TREE = 120
MOST_REWRITES = 6
"""How many pieces of one question a refusal rewrites; each is read anew."""
CLAUSES = (
    *("with_", "expressions", "from_", "joins", "where", "group", "having", "qualify", "order", "limit", "offset"),
)


def parse(
    text: str, schemas: Mapping[str, TableSchema], parameters: Parameters = None, today: dt.date | None = None
) -> Question:
    """Parses a question into its plan.

    Args:
        text: one SELECT.
        schemas: the declared tables by name.
        parameters: the values of `?` and `$1` as a list, those of `:name` and `$name` as a dictionary.
        today: the public day that CURRENT_DATE means.

    Raises:
        UnsupportedQuery: with reason, hint and position, if anything in the text is not understood.
        InvalidParameter: if the value of a parameter is missing, superfluous or of no type of ours.
        UnknownTable: if its table is not declared.

    *Formal guarantee.* The result is a function of the text and the declarations alone, and every part of it has a
    value for every row.

    >>> from discreet.plan.model.schema import ColumnSchema
    >>> from discreet.plan.model.types import Type
    >>> visits = TableSchema(name="visits", columns={"ward": ColumnSchema(name="ward", type=Type.TEXT)})
    >>> asked = parse("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", {"visits": visits})
    >>> [output.name for output in asked.outputs], asked.aggregates[0].kind
    (['ward', 'n'], 'count')
    """
    source = SqlSource(check.instance(str, text=text), schemas, parameters=parameters, today=today)
    return _read(_proposing(source, MOST_REWRITES))


def _read(source: SqlSource) -> Question:
    return _whole(parse_select(source), FromClause(source, read_nested_rows, lateral))


def _proposing(source: SqlSource, times: int) -> SqlSource:
    """Returns the text with refusals that propose it rewritten; what is refused once more is rewritten once more."""
    return replace(source, propose=lambda text: _proposal(replace(source, text=text), times - 1)) if times else source


def _proposal(source: SqlSource, times: int) -> str | None:
    try:
        found = _read(_proposing(source, times))
    except UnsupportedQuery as refused:
        return same_question(refused.hint)
    except DiscreetError:
        return None
    return source.text if _can_be_shown(found, source) else None


def _can_be_shown(found: Question, source: SqlSource) -> bool:
    """Returns whether the groups of a question can be shown, for accounts without a delta too."""
    if all(schema.private_groups or schema.public for schema in source.schemas.values()):
        return True
    if found.source is not None or found.beside or found.steps:
        return not any(question.keys for question in (found, *found.beside))
    return all(Examples(source.schemas[found.table]).shows(key.expression) for key in found.keys)


def _whole(tree: exp.Select | exp.Union, reader: FromClause) -> Question:
    return _union(tree, reader) if isinstance(tree, exp.Union) else _question(tree, reader)


def select(source: SqlSource) -> exp.Select:
    """Parses a text that passed the first gate, if it is one SELECT of bearable depth."""
    tree = parse_select(source)
    if not isinstance(tree, exp.Select):
        source.refuse("A question is one SELECT.", "Ask, for example, {count}.")
    return tree


def parse_select(source: SqlSource) -> exp.Select | exp.Union:
    """Parses a text that passed the first gate, if it is SELECTs of bearable depth, joined by UNION if several."""
    found = tokens(source)
    try:
        trees = DIALECT.parser().parse(found, source.text)
    except ParseError as error:
        spot = error.errors[0] if error.errors else {}
        at = next((t.start for t in found if (t.line, t.col) == (spot.get("line"), spot.get("col"))), 0)
        source.refuse("This SQL cannot be parsed.", "Check the spelling near here; for example {grouped}.", at)
    except Exception:  # noqa: BLE001 - the parser is not ours, and whatever it raises on odd text is a refusal
        source.refuse("This SQL cannot be parsed.", "Write it like {grouped}.")
    tree = trees[0] if len(trees) == 1 else None
    while isinstance(tree, exp.Subquery) and not any(part for name, part in tree.args.items() if name != "this"):
        tree = tree.this
    if not isinstance(tree, exp.Select | exp.Union):
        word = "" if tree is None else tree.key.upper()
        refusal = REFUSALS.get(word, Refusal("A question is one SELECT.", "Ask, for example, {count}."))
        source.refuse(refusal.reason.replace("{word}", word), refusal.hint)
    _shallow(tree, source)
    return tree


def _shallow(tree: exp.Expr, source: SqlSource) -> None:
    level: list[exp.Expr] = [tree]
    for _ in range(DEEPEST_TREE):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    source.refuse("The question is nested too deeply.", "Shorten chains, for example with IN: {filtered}.", level[0])


def _question(tree: exp.Select, reader: FromClause) -> Question:
    source = reader.source
    if tree.args.get("distinct") is not None:
        return _distinct(tree, reader)
    only(tree, reader.blank, *CLAUSES)
    origin = tree.args.get("from_")
    if origin is None and tree.find(exp.Subquery) is not None:
        return _of_numbers(tree, reader.within(tree))
    if origin is None or not tree.expressions:
        source.refuse("A question selects something from a table.", "For example {count}.")
    only(origin, reader.blank, "this")
    inside = reader.within(tree)
    inner = _find_released_select(tree, inside)
    if inner is not None:
        return _over(tree, inner)
    found, conditions = inside.read(tree)
    if found.schema.public:
        raise UnknownTable(found.schema.name, {})
    if tree.find(exp.In, exp.Exists, exp.Subquery) is not None:
        tree, found, conditions = extract_subqueries(inside, tree, found, conditions)
    if (bands := histogram(tree)) is not None:
        asking = question(_read_parts(replace_with_count(tree), found, conditions, source, _blocks(inside)))
        return split_into_bands(asking, bands, found.scope(source))
    if tree.find(exp.Mode) is not None:
        tree, conditions = largest_groups(tree, conditions, found.scope(source))
    return question(_read_parts(tree, found, conditions, source, _blocks(inside)))


def _distinct(tree: exp.Select, reader: FromClause) -> Question:
    """Reads SELECT DISTINCT: the groups of all that it shows; of rows put together, those that differ anyway."""
    source, plain = reader.source, tree.copy()
    if tree.args["distinct"].args.get("on") is not None:
        hint = "Choose one row of each person in a SELECT in FROM, and count those; or group instead: {grouped}."
        source.refuse("DISTINCT ON chooses single rows of the answer.", hint, tree)
    plain.set("distinct", None)
    if tree.args.get("group") is None and not any(puts_together(node) for node in tree.expressions):
        places = [exp.Literal.number(place + 1) for place in range(len(tree.expressions))]
        plain.set("group", exp.Group(expressions=places))
    asking = _question(plain, reader)
    shown = {output.expression for output in asking.outputs}
    hidden = [key for key in asking.keys if ColumnRef(key.name, key.expression.type) not in shown]
    if asking.sets or asking.steps or hidden:
        reason = "DISTINCT drops equal rows of the answer, and with noise, chance decides which rows are equal."
        source.refuse(reason, "Leave it out, or select all keys: {grouped}.", tree)
    return asking


@dataclass(frozen=True, slots=True)
class _Inner:
    """A SELECT in FROM that is a release on its own, and the readers inside and outside of it."""

    tree: exp.Select | exp.Union
    alias: str
    reader: FromClause
    outside: FromClause


def _find_released_select(tree: exp.Select, reader: FromClause) -> _Inner | None:
    """Returns the SELECT that a question only works on; None if it reads rows."""
    return _select_of(tree.args["from_"].this, reader)


def _select_of(node: exp.Expr, reader: FromClause) -> _Inner | None:
    alias = node.alias_or_name
    given = reader
    if node.args.get("pivots"):
        alias = alias_of(node)
    elif isinstance(node, exp.Subquery):
        only(node, reader.blank, "this", "alias")
        node = node.this
    elif isinstance(node, exp.Table) and (defined := lookup(node.name, reader.defined)) is not None:
        only(node, reader.blank, "this", "alias")
        node, given = defined.tree, defined.reader
    if isinstance(node, exp.Pivot) or node.args.get("pivots"):
        rows = as_rows(node, given)
        node = as_cells(node, given) if releases(given, rows) else rows
    if not isinstance(node, exp.Select | exp.Union) or not _is_released(node, given):
        return None
    return _Inner(node, alias, given, reader)


def _is_released(node: exp.Expr, reader: FromClause) -> bool:
    """Returns whether a SELECT, or each of a UNION, is a release on its own."""
    if isinstance(node, exp.Union):
        return all(_is_released(side, reader.within(node)) for side in (node.this, node.expression))
    if isinstance(node, exp.Subquery):
        return _is_released(node.this, reader)
    if not isinstance(node, exp.Select) or node.args.get("from_") is None:
        return False
    return _find_released_select(node, reader.within(node)) is not None or releases(reader, node)


def _blocks(reader: FromClause, before: int = 0) -> Subqueries:
    """Reads questions inside a question."""

    def read(node: exp.Expr) -> Question:
        if not isinstance(node, exp.Select):
            reader.source.refuse("A SELECT inside an expression must return one number.", "For example {count}.", node)
        return _question(node, reader)

    return Subqueries(reader.source, read, before=before)


def _read_parts(
    tree: exp.Select, found: FromRows, conditions: Sequence[exp.Expr], source: SqlSource, blocks: Subqueries
) -> QuestionParts:
    scope = found.scope(source)
    group = tree.args.get("group")
    if group is not None:
        only(group, scope, "expressions", "all")
    keys, sets = groupings(keys_of(tree), source)
    limit, offset = kept_rows(tree, source)
    return QuestionParts(
        schema=found.schema,
        alias=scope.alias,
        names=found.names,
        relation=found.relation,
        blocks=blocks,
        outputs=[piece(node, source, scope) for node in tree.expressions],
        where=[QueryFragment(part, source) for part in conditions],
        keys=[QueryFragment(node, source) for node in keys],
        sets=sets,
        having=_clause(tree, "having", source),
        qualify=_clause(tree, "qualify", source),
        order=ordering(tree, source, scope, len(tree.expressions)),
        limit=limit,
        offset=offset,
    )


def piece(node: exp.Expr, source: SqlSource, scope: Scope) -> QueryFragment:
    """Returns an output and its name."""
    if not isinstance(node, exp.Alias):
        return QueryFragment(node, source)
    only(node, scope, "this", "alias")
    return QueryFragment(node.this, source, node.alias)


def _clause(tree: exp.Select, name: str, source: SqlSource) -> list[QueryFragment]:
    clause = tree.args.get(name)
    return [] if clause is None else [QueryFragment(clause.this, source)]


def ordering(tree: exp.Expr, source: SqlSource, scope: Scope, outputs: int) -> list[tuple[QueryFragment, bool]]:
    """Returns what to sort by, and whether downwards."""
    order = tree.args.get("order")
    if order is None:
        return []
    only(order, scope, "expressions")
    for term in order.expressions:
        only(term, scope, "this", "desc", "nulls_first")
        if term.args.get("nulls_first"):
            source.refuse("NULL always sorts last.", "Leave NULLS FIRST out: {top}.", term)
    return [
        (QueryFragment(node, source), bool(term.args.get("desc")))
        for term in order.expressions
        for node in (_everything(outputs) if _is_all(term.this) else [term.this])
    ]


def _is_all(node: exp.Expr) -> bool:
    return isinstance(node, exp.Var) and node.name.upper() == "ALL"


def _everything(outputs: int) -> list[exp.Expr]:
    """Returns the places of all outputs: what ORDER BY ALL sorts by, from left to right."""
    return [exp.Literal.number(place + 1) for place in range(outputs)]


# --------------------------------------------------------------------------------------- a SELECT over released columns


def _over(tree: exp.Select, inner: _Inner) -> Question:
    source = inner.reader.source
    asking = _inner_question(inner)
    if isinstance(inner.tree, exp.Union):
        _check_rows(tree, source)
    blocks = _blocks(inner.outside, len(asking.beside))
    released = {output.name: output.expression for output in asking.outputs}
    scope = OuterScope(
        source=source,
        schema=TableSchema(name=""),
        alias=inner.alias,
        released=released,
        tables={inner.alias: released},
        blocks=blocks,
    )
    others: list[AttachQuestion] = []
    for join in tree.args.get("joins") or []:
        right = _select_of(join.this, inner.outside)
        if right is None:
            hint = "Join the tables first, then group: {grouped}."
            source.refuse("Released groups can be joined only with released groups.", hint, join)
        wider = replace(asking, steps=(*asking.steps, *others), beside=(*asking.beside, *blocks.found))
        scope = replace(scope, noisy=noisy_columns(wider))
        scope, attached = join_blocks(join, scope, blocks, right.alias, _inner_question(right))
        others.append(attached)
    group = tree.args.get("group")
    if group is not None:
        only(group, scope, "expressions")
    limit, offset = kept_rows(tree, source)
    shown = everything(tree.expressions, scope)
    parts = OuterSelectParts(
        outputs=[piece(node, source, scope) for node in shown],
        where=_clause(tree, "where", source),
        keys=None if group is None else [QueryFragment(node, source) for node in group.expressions],
        having=_clause(tree, "having", source),
        qualify=_clause(tree, "qualify", source),
        order=ordering(tree, source, scope, len(shown)),
        limit=limit,
        offset=offset,
    )
    return over(asking, parts, scope, others)


def _inner_question(inner: _Inner) -> Question:
    for clause in ("order", "limit", "offset"):
        if inner.tree.args.get(clause) is not None:
            reason = "ORDER BY, LIMIT and OFFSET belong in the outer SELECT."
            inner.reader.source.refuse(reason, "Write them at the end: {top}.", inner.tree.args[clause])
    return _whole(inner.tree, inner.reader)


def _check_rows(tree: exp.Select, source: SqlSource) -> None:
    """Checks that rows of several questions are only selected, filtered and sorted: their groups differ in kind."""
    clauses = [tree.args.get(name) for name in ("joins", "group", "having", "qualify")]
    shown = [*tree.expressions, *([tree.args["order"]] if tree.args.get("order") else [])]
    together = [node for node in shown if puts_together(node) or node.find(exp.Window)]
    if any(clauses) or together:
        reason = "Rows of a UNION ALL of answers can be selected, filtered and sorted, but not combined."
        source.refuse(reason, "Ask for one of them, and combine its rows in an outer SELECT: {grouped}.", tree)


def _union(tree: exp.Union, reader: FromClause) -> Question:
    """Reads UNION ALL of whole questions; ORDER BY, LIMIT and OFFSET work on all their rows."""
    source, inside = reader.source, reader.within(tree)
    trees = list(branches(tree, source))
    asking = stack_queries([_branch(each, inside) for each in trees], trees, source)
    if not any(tree.args.get(end) for end in ENDS):
        return asking
    released = {output.name: output.expression for output in asking.outputs}
    scope = OuterScope(source=source, schema=TableSchema(name=""), alias="", released=released, tables={"": released})
    limit, offset = kept_rows(tree, source)
    names = [exp.column(name, quoted=True) for name in released]
    return over(
        asking,
        OuterSelectParts(
            outputs=[QueryFragment(node, source) for node in names],
            order=ordering(tree, source, scope, len(released)),
            limit=limit,
            offset=offset,
        ),
        scope,
    )


def _branch(tree: exp.Expr, reader: FromClause) -> Question:
    if not isinstance(tree, exp.Select):
        reader.source.refuse("UNION ALL takes SELECTs.", "For example {grouped}.", tree)
    return _question(tree, reader)


def _of_numbers(tree: exp.Select, reader: FromClause) -> Question:
    """Reads SELECTs in brackets and what is computed from them."""
    source, blocks = reader.source, _blocks(reader)
    only(tree, reader.blank, "with_", "expressions")
    scope = OuterScope(source=source, schema=TableSchema(name=""), alias="", blocks=blocks)
    pieces = [piece(node, source, scope) for node in tree.expressions]
    found = [require_type(read(part.node, scope), part) for part in pieces]
    if not blocks.found:
        source.refuse("A question selects something from a table.", "For example {count}.")
    return of_numbers(blocks.found, pieces, found)
