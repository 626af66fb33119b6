"""Subqueries about rows: each IN, EXISTS or SELECT inside an expression becomes a column of the rows.

A SELECT in brackets that names columns of the rows outside gives a value for each of them, of rows of the same person;
LATERAL gives several, or several rows. One that names none is a question of its own, and is left to who can ask it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from sqlglot import exp

from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import ColumnRef, Expression, Literal, Output
from discreet.plan.model.relations import MarkJoin, Select
from discreet.plan.model.types import Type
from discreet.sql.clauses.correlation import (
    CorrelatedRows,
    OuterRows,
    attach_extreme,
    attach_select,
    correlate_rows,
    own_columns,
)
from discreet.sql.clauses.from_clause import FromClause, FromRows, conjuncts, is_correlated
from discreet.sql.clauses.select_parts import distinct, kept_rows, puts_together, with_repeats
from discreet.sql.functions import only, read
from discreet.sql.functions.operators import MARK

_CLAUSES = ("group", "having", "qualify", "order")
_KINDS = (exp.In, exp.Exists, exp.Subquery)


def extract_subqueries(
    reader: FromClause, tree: exp.Select, found: FromRows, conditions: Sequence[exp.Expr]
) -> tuple[exp.Select, FromRows, list[exp.Expr]]:
    """Takes subqueries out of the expressions of a SELECT, and gives the rows a column for each of them.

    Args:
        reader: reads what is inside.
        tree: the SELECT, which is left as it is.
        found: the rows before its own filter.
        conditions: that filter.
    """
    parts = [*tree.expressions, *(tree.args.get(name) for name in _CLAUSES), *conditions]
    if not any(part.find(*_KINDS) for part in parts if part is not None):
        return tree, found, list(conditions)
    marks = _Marks(reader, found)
    made = tree.copy()
    made.set("expressions", [marks.without(node) for node in tree.expressions])
    for name in _CLAUSES:
        if tree.args.get(name) is not None:
            made.set(name, marks.without(tree.args[name]))
    others = [marks.without(node, condition=True) for node in conditions]
    return made, marks.found, others


class _Marks:
    """Rows to which columns are added as they are asked for; what is asked for twice is one column."""

    def __init__(self, reader: FromClause, found: FromRows) -> None:
        self.reader, self.found, self._first = reader, found, found
        self._known: dict[tuple[exp.Expr, bool], exp.Expr] = {}

    def without(self, node: exp.Expr, *, condition: bool = False) -> exp.Expr:
        """Returns the node with columns in the place of subqueries; those of SELECTs inside it stay theirs.

        Args:
            node: an expression, or a clause.
            condition: whether rows count for which it is TRUE, so that FALSE and NULL are one.
        """
        found: exp.Expr = node.transform(lambda part: self._column(part, condition) if _is_own(part) else part)
        return found

    def _column(self, node: exp.Expr, condition: bool) -> exp.Expr:
        if not isinstance(node, _KINDS):
            return node
        exact = isinstance(node, exp.In) and not _is_tested(node, condition)
        if (node, exact) not in self._known:
            made = self._equal(node) or self._rewrite_node(node, exact=exact)
            if made is None:
                return node
            self._known[node, exact] = made
        return self._known[node, exact].copy()

    def _equal(self, node: exp.Expr) -> exp.Expr | None:
        """Reads IN an aggregate for each row, which is one value, as equality; None for everything else."""
        tree = _select(node) if isinstance(node, exp.In) else None
        if tree is None or not any(puts_together(output) for output in tree.expressions):
            return None
        if not is_correlated(self.reader, tree, self.found):
            return None
        value = self.without(exp.Subquery(this=tree.copy()))
        return exp.Paren(this=exp.EQ(this=self.without(node.this), expression=value))

    def _rewrite_node(self, node: exp.Expr, *, exact: bool) -> exp.Expr | None:
        made = self._value(node) if isinstance(node, exp.Subquery) else self._mark(node, exact=exact)
        return None if made is None else self._build_column(made, node)

    def _build_column(self, made: ColumnRef, node: exp.Expr) -> exp.Expr:
        column = exp.Column(this=exp.to_identifier(f"#{made.name}", quoted=True))
        column.meta.update({MARK: made, "start": self.reader.source.start(node)})
        return exp.Coalesce(this=column, expressions=[exp.false()]) if isinstance(node, exp.Exists) else column

    def _mark(self, node: exp.Expr, *, exact: bool) -> ColumnRef | None:
        """Returns the column that says whether a row has matching rows.

        Args:
            node: IN or EXISTS.
            exact: whether it is NULL where SQL says so; else it may be NULL in the place of FALSE, or the reverse.
        """
        compared = self.reader.read_equality(self.found, node)
        name = distinct("is in", self.found.schema.columns)
        if compared is not None:
            other, pairs = compared
            if exact and other.schema.public:  # of other tables, ids are compared
                self._membership(_everywhere(self.found, other), pairs[0], name)
            else:
                self.found = self.reader.mark_rows(self.found, other, pairs, node, name)
            return ColumnRef(name, Type.BOOL)
        tree = _select(node)
        if tree is None:
            return None
        found, own = self._rows(tree, node, numbered=isinstance(node, exp.In))
        if exact and own is not None:
            self._membership(found, own, name)
            return ColumnRef(name, Type.BOOL)
        if found.beyond is not None:
            self.found = attach_extreme(self.reader, found, found.beyond, name)
            return ColumnRef(name, Type.BOOL)
        pairs = [*found.pairs, *([] if own is None else [own])]
        mark = MarkJoin(source=found.outside.relation, other=found.inside.relation, on=tuple(pairs), name=name)
        columns = (*own_columns(found.rows), Output(name, ColumnRef(name, Type.BOOL)))
        self.found = self.reader.build_origin(Select(mark, columns), found.rows.names)
        return ColumnRef(name, Type.BOOL)

    def _membership(self, found: CorrelatedRows, own: tuple[Expression, Expression], name: str) -> None:
        """Adds what IN is in SQL.

        That is TRUE if a value inside is equal, else NULL if one of them is NULL or the value outside is, and FALSE if
        not, or if there are none.
        """
        inside, taken = found.inside, [*found.outside.schema.columns, name]
        again = self.reader.again
        unknown = self.reader.filter_rows(again(inside), call("is_null", own[1]))
        relation, marks = found.outside.relation, []
        for label, other, more in (("equal", inside, (own,)), ("unknown", unknown, ()), ("any", again(inside), ())):
            mark = ColumnRef(distinct(label, taken), Type.BOOL)
            relation = MarkJoin(source=relation, other=other.relation, on=(*found.pairs, *more), name=mark.name)
            marks.append(mark)
        equal, missing, some = marks
        unsure = call("or", missing, call("and", call("is_null", own[0]), some))
        false, true = Literal(False, Type.BOOL), Literal(True, Type.BOOL)
        value = call("if", equal, true, call("if", unsure, Literal(None, Type.BOOL), false))
        columns = (*own_columns(found.rows), Output(name, value))
        self.found = self.reader.build_origin(Select(relation, columns), found.rows.names)

    def _rows(
        self, tree: exp.Select, node: exp.Expr, *, numbered: bool
    ) -> tuple[CorrelatedRows, tuple[Expression, Expression] | None]:
        """Returns what belongs to each row; for IN also what is compared."""
        tree = with_repeats(tree)
        only(tree, self.reader.blank, "with_", "expressions", "from_", "joins", "where")
        outside = OuterRows(rows=self.found, again=self._first)
        existence = isinstance(node, exp.Exists)
        tree, found = rows_for_each(self.reader, outside, tree, node, numbered=numbered, existence=existence)
        if not isinstance(node, exp.In):
            return found, None
        if len(tree.expressions) != 1:
            self.reader.source.refuse("IN takes a SELECT of one column.", "Name one column: {filtered}.", node)
        source = self.reader.source
        pair = (
            read(node.this, found.outside.scope(source)),
            read(tree.expressions[0].unalias(), found.inside.scope(source)),
        )
        return found, self.reader.alike(pair, node)

    def _value(self, node: exp.Subquery) -> ColumnRef | None:
        """Returns the column of a SELECT that gives one value for each row; None if it names no column of theirs."""
        tree = node.this
        if not isinstance(tree, exp.Select) or not is_correlated(self.reader, tree, self.found):
            return None
        _check_value(self.reader, tree, node)
        tree = tree.copy()
        tree.set("expressions", [exp.alias_(tree.expressions[0].unalias(), "value", quoted=True)])
        tree, found = rows_for_each(self.reader, OuterRows(rows=self.found, again=self._first), tree, node)
        before = self.found.schema.columns
        prefixes = (f"subquery {number}." for number in count(1))
        prefix = next(prefix for prefix in prefixes if not any(name.startswith(prefix) for name in before))
        self.found = attach_select(self.reader, found, tree, prefix, outer=True)
        name = f"{prefix}value"
        return ColumnRef(name, self.found.schema.columns[name].type)


def _everywhere(found: FromRows, other: FromRows) -> CorrelatedRows:
    """Returns rows of a public table; all of them belong to each row outside."""
    one = Literal(1, Type.INT)
    return CorrelatedRows(rows=found, outside=found, inside=other, pairs=((one, one),))


def _is_tested(node: exp.Expr, condition: bool) -> bool:
    """Returns whether only TRUE counts of a node: it is in a condition, below nothing but AND and OR."""
    part, above = node, node.parent
    while isinstance(above, exp.And | exp.Or | exp.Paren):
        part, above = above, above.parent
    if isinstance(above, exp.If):  # IF, or a branch of CASE; CASE x WHEN compares
        return above.this is part and not (isinstance(above.parent, exp.Case) and above.parent.this)
    return condition if above is None else isinstance(above, exp.Where | exp.Having | exp.Qualify | exp.CountIf)


def _select(node: exp.Expr) -> exp.Select | None:
    """Returns the SELECT inside IN or EXISTS."""
    inner = node.args.get("query") if isinstance(node, exp.In) else node.this
    inner = inner.this if isinstance(inner, exp.Subquery) else inner
    return inner if isinstance(inner, exp.Select) and inner.args.get("from_") is not None else None


def _check_value(reader: FromClause, tree: exp.Select, node: exp.Expr) -> None:
    """Checks that there is one value whatever the rows are: an error that depends on them would reveal them."""
    source = reader.source
    if len(tree.expressions) != 1 or tree.args.get("from_") is None:
        source.refuse("A SELECT inside an expression must return one value.", "Name one column: {count}.", node)
    parts = ["with_", "expressions", "from_", "joins", "where"]
    if puts_together(tree.expressions[0]):
        only(tree, reader.blank, *parts)
        return
    only(tree, reader.blank, *parts, "order", "limit")
    if kept_rows(tree, source) != (1, 0) or tree.args.get("order") is None:
        reason = "A SELECT inside an expression must return one value, but this one could return several rows."
        hint = "Take COUNT, SUM, AVG, MIN or MAX of it, or add ORDER BY and LIMIT 1; or ask {count}."
        source.refuse(reason, hint, node)


def rows_for_each(
    reader: FromClause,
    outside: OuterRows,
    tree: exp.Select,
    node: exp.Expr,
    *,
    numbered: bool = False,
    existence: bool = False,
) -> tuple[exp.Select, CorrelatedRows]:
    """Reads the rows of a SELECT that belong to each row outside; its own subqueries are columns then."""
    inside = reader.within(tree)
    found, conditions = inside.read(tree)
    tree, found, conditions = extract_subqueries(inside, tree, found, conditions)
    return tree, correlate_rows(inside, outside, found, conditions, node, numbered=numbered, existence=existence)


def lateral(reader: FromClause, left: FromRows, join: exp.Join) -> tuple[FromRows, list[exp.Expr]]:
    """Reads JOIN LATERAL, LEFT JOIN LATERAL and CROSS JOIN LATERAL (SELECT ...) AS name ON ...

    Returns:
        The rows with the columns of the SELECT, and the conditions of ON that are left.
    """
    only(join, reader.blank, "this", "on", "side", "kind")
    outer, kind = (join.side or "").upper() == "LEFT", (join.kind or "").upper()
    if (join.side or "").upper() not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
        reader.source.refuse(
            "Tables are joined by JOIN or LEFT JOIN.", "Write JOIN LATERAL ... ON TRUE: {count}.", join
        )
    node = join.this
    only(node, reader.blank, "this", "alias")
    tree = node.this.this if isinstance(node.this, exp.Subquery) else None
    alias = reader.free_alias(node, left)
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        reader.source.refuse("LATERAL takes a SELECT from a table.", "For example {count}.", node)
    only(tree, reader.blank, "with_", "expressions", "from_", "joins", "where", "order", "limit")
    on = join.args.get("on")
    conditions = [] if on is None else [part for part in conjuncts(on) if part != exp.true()]
    if conditions and outer:
        reader.source.refuse(
            "LEFT JOIN LATERAL takes ON TRUE.", "Put the condition inside, after WHERE: {count}.", join
        )
    prefix = f"{alias}."
    if any(name.startswith(prefix) for name in left.schema.columns):  # of a table whose own name has a point
        reader.source.refuse(
            "The names of two tables begin in the same way.", "Choose names without a dot with AS: {count}.", node
        )
    tree, found = rows_for_each(reader, OuterRows(rows=left, again=left), tree, node)
    made = attach_select(reader, found, tree, prefix, outer=outer)
    added = [name for name in made.schema.columns if name.startswith(prefix)]
    return replace(made, names={**left.names, alias: {name.removeprefix(prefix): name for name in added}}), conditions


def _is_own(node: exp.Expr) -> bool:
    """Returns whether a node belongs to no SELECT inside."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Query):
        above = above.parent
    return above is None
