"""Rows inside a SELECT that belong to single rows outside of it: what a correlated subquery reads.

A row inside belongs to a row outside if both are one person's and the conditions that name both are true. Equalities
are what a join compares. For other conditions the rows outside are numbered person by person, the rows inside are
joined with a second reading of the numbered ones, and each pair that satisfies the conditions keeps the number. Rows
are numbered in the order of what the conditions read of them, so that a number means the same values in both readings,
whatever else a row holds. All of this is made of relations that keep one person's rows together.

Pairs of rows are joined rows, and cut as such. EXISTS with one comparison such as b.day < a.day needs none: there is
such a row if the smallest value inside is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import (
    UNIT,
    ColumnRef,
    Expression,
    Literal,
    Output,
    Relation,
    SortKey,
    columns,
    substitute,
)
from discreet.plan.model.relations import Fold, Join, Select, UnitAggregation, Window, WindowedRelation, besides_units
from discreet.plan.model.types import Type
from discreet.sql.clauses.from_clause import FromClause, FromRows
from discreet.sql.clauses.row_columns import FoldScope, name_columns, read_output
from discreet.sql.clauses.select_parts import QueryFragment, conjunction, distinct, kept_rows, puts_together, truth
from discreet.sql.clauses.window_clause import WindowScope
from discreet.sql.functions import read
from discreet.sql.functions.operators import MARK
from discreet.sql.scope import Scope

Pairs = tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatedRows:
    """Rows outside, and rows inside that belong to those of the same person that are equal in all pairs.

    Args:
        rows: those outside, as they were.
        outside: the same, with a number for each row where pairs compare it.
        inside: after the conditions of their SELECT.
        pairs: expressions of a row outside and of a row inside; without what only says whose rows they are.
        beyond: a comparison that holds for a row inside as well, where nothing but this is asked for.
    """

    rows: FromRows
    outside: FromRows
    inside: FromRows
    pairs: Pairs
    beyond: CorrelatedComparison | None = None


@dataclass(frozen=True, slots=True)
class CorrelatedComparison:
    """That an expression of a row inside is less than one of a row outside, or more, or equal as well."""

    function: str
    inside: Expression
    outside: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterRows:
    """The rows outside, and what to read for them a second time.

    Args:
        rows: as they are so far.
        again: the same rows, perhaps before columns were added to them.
    """

    rows: FromRows
    again: FromRows


def correlate_rows(
    reader: FromClause,
    outside: OuterRows,
    inside: FromRows,
    conditions: Sequence[exp.Expr],
    node: exp.Expr,
    *,
    numbered: bool = False,
    existence: bool = False,
) -> CorrelatedRows:
    """Returns which rows inside belong to which rows outside.

    Args:
        reader: reads what is inside.
        outside: the rows outside.
        inside: the rows of the SELECT before its own filter.
        conditions: that filter, which may name columns of both.
        node: the subquery.
        numbered: whether rows outside get numbers, even if equalities are all there is.
        existence: whether all that counts is if there is a row inside.

    Raises:
        UnsupportedQuery: if the conditions do not say that both rows are of one person.
    """
    rows, scope = outside.rows, inside.scope(reader.source)
    local = [part for part in conditions if not any(_outer(part, scope))]
    across = [part for part in conditions if any(_outer(part, scope))]
    equal = [(part, reader.equality(rows, inside, part)) for part in across]
    pairs = [pair for _, pair in equal if pair is not None]
    _check(reader, rows, inside, pairs, node)
    kept = reader.apply_conditions(inside, local)
    told = besides_units(rows.relation, kept.relation, tuple(pairs), _declared_types(reader))
    others = [part for part, pair in equal if pair is None]
    if not others and not numbered and not inside.schema.public:
        return CorrelatedRows(rows=rows, outside=rows, inside=kept, pairs=told)
    beyond = _comparison(reader, rows, inside, others[0]) if existence and len(others) == 1 else None
    if beyond is not None and not inside.schema.public:
        return CorrelatedRows(rows=rows, outside=rows, inside=kept, pairs=told, beyond=beyond)
    return _correlate_by_number(reader, outside, kept, told, others)


def _outer(node: exp.Expr, scope: Scope) -> Iterator[exp.Column]:
    """Returns columns of a condition that are not those of rows inside."""
    return (
        column
        for column in node.find_all(exp.Column)
        if isinstance(column.this, exp.Identifier) and MARK not in column.meta and not scope.knows(column)
    )


_FLIPPED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_COMPARED: dict[type[exp.Expr], str] = {
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
}


def _comparison(reader: FromClause, rows: FromRows, inside: FromRows, part: exp.Expr) -> CorrelatedComparison | None:
    """Returns what a condition compares of a row inside and one outside; None if it is no plain comparison of both."""
    function = _COMPARED.get(type(part))
    if function is None or part.find(exp.Query) is not None:
        return None
    scope, own = inside.scope(reader.source), rows.scope(reader.source)
    sides = ((part.this, part.expression, function), (part.expression, part.this, _FLIPPED[function]))
    for one, other, meant in sides:
        there = [column for column in other.find_all(exp.Column) if isinstance(column.this, exp.Identifier)]
        if not any(_outer(one, scope)) and there and len(there) == len(list(_outer(other, scope))):
            first, second = reader.alike((read(one, scope), read(other, own)), part)
            return CorrelatedComparison(meant, first, second) if first.type in _ORDERED else None
    return None


_ORDERED = (Type.INT, Type.FLOAT, Type.DATE, Type.TIMESTAMP)


def _declared_types(reader: FromClause) -> dict[str, dict[str, Type]]:
    return {
        name: {column: found.type for column, found in schema.stored_columns.items()}
        for name, schema in reader.schemas.items()
    }


def _check(
    reader: FromClause,
    rows: FromRows,
    inside: FromRows,
    pairs: Sequence[tuple[Expression, Expression]],
    node: exp.Expr,
) -> None:
    if not inside.schema.public:
        reader.same_people(rows, inside, pairs, node, "WHERE")
    elif rows.schema.unit is None or not pairs:
        reason = "A SELECT for each row reads only rows of the same person, or matching rows of a public table."
        reader.source.refuse(reason, "Join the public table: JOIN ... ON a.key = b.key; or ask {count}.", node)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PairScope(Scope):
    """Columns of a row inside, and of its row outside under other names."""

    outside: Scope
    renamed: dict[Expression, Expression]

    def column(self, node: exp.Column) -> Expression:
        """Returns what a name means: inside first."""
        if self.knows(node) or not self.outside.knows(node):
            return Scope.column(self, node)
        return self.renamed[self.outside.column(node)]


def _correlate_by_number(
    reader: FromClause, outside: OuterRows, inside: FromRows, pairs: Pairs, others: Sequence[exp.Expr]
) -> CorrelatedRows:
    rows, source = outside.rows, reader.source
    scope, own = inside.scope(source), rows.scope(source)
    named_ones = [own.column(column) for part in others for column in _outer(part, scope)]
    used = list(dict.fromkeys([*(column for a, _ in pairs for column in columns(a)), *named_ones]))
    taken = [*rows.schema.columns, *inside.schema.columns]
    place, copy = (distinct(name, taken) for name in ("place of row", "place outside"))
    renamed: dict[Expression, Expression] = {c: ColumnRef(f"{copy} {i}", c.type) for i, c in enumerate(used)}
    window = Window(name=place, kind="row_number", type=Type.INT, order=tuple(SortKey(column) for column in used))
    seen = [Output(copy, ColumnRef(place, Type.INT)), *(Output(f"{copy} {i}", c) for i, c in enumerate(used))]
    again = Select(WindowedRelation(reader.again(outside.again).relation, (window,)), tuple(seen))
    on = tuple((b, substitute(a, renamed, lambda column: column)) for a, b in pairs)
    found = reader.build_origin(_beside(inside, again, on), inside.names)
    if others:
        both = _PairScope(
            source=source, schema=found.schema, alias=scope.alias, names=scope.names, outside=own, renamed=renamed
        )
        kept = conjunction([truth(read(part, both), "WHERE", QueryFragment(part, source)) for part in others])
        found = found if kept is None else reader.filter_rows(found, kept)
    return CorrelatedRows(
        rows=rows,
        outside=reader.build_origin(WindowedRelation(rows.relation, (window,)), rows.names),
        inside=found,
        pairs=((ColumnRef(place, Type.INT), ColumnRef(copy, Type.INT)),),
    )


def _beside(inside: FromRows, again: Relation, on: Pairs) -> Relation:
    """Returns rows inside with the rows outside that they belong to; people's own limits are those of the left side."""
    if inside.schema.public:
        return Join(left=again, right=inside.relation, on=tuple((b, a) for a, b in on))
    return Join(left=inside.relation, right=again, on=on)


# ----------------------------------------------------------------------------------------------------- what they become


def attach_select(reader: FromClause, found: CorrelatedRows, tree: exp.Select, prefix: str, *, outer: bool) -> FromRows:
    """Returns the rows outside with what a SELECT gives for each of them, under a prefix and the names of its outputs.

    Args:
        reader: reads what is inside.
        found: which rows inside belong to which rows outside.
        tree: the SELECT.
        prefix: of the new columns; with it, no name is one of the rows outside.
        outer: whether a row stays for which the SELECT gives nothing. Aggregates always give something.
    """
    if any(puts_together(node) for node in tree.expressions):
        right, outputs = _fold_rows(reader, found, tree, prefix)
        outer = True
    else:
        right, outputs = _first(reader, found, tree, prefix)
    join = Join(left=found.outside.relation, right=right, on=_on(found, prefix), outer=outer)
    return reader.build_origin(Select(join, (*own_columns(found.rows), *outputs)), found.rows.names)


def attach_extreme(reader: FromClause, found: CorrelatedRows, compared: CorrelatedComparison, name: str) -> FromRows:
    """Returns the rows outside with a column that says which of them a value inside is beyond.

    The smallest or largest value inside is, if any is.
    """
    smallest = compared.function.startswith("less")
    fold = Fold(name="#most", kind="min" if smallest else "max", type=compared.inside.type, argument=compared.inside)
    keys = tuple(Output(f"#k{i}", b) for i, (_, b) in enumerate(found.pairs))
    most = ColumnRef(f"{name}#most", fold.type)
    columns = [Output(_key(name, i), ColumnRef(key.name, key.expression.type)) for i, key in enumerate(keys)]
    right = Select(
        UnitAggregation(found.inside.relation, keys, (fold,)),
        (*columns, Output(most.name, ColumnRef(fold.name, fold.type))),
    )
    join = Join(left=found.outside.relation, right=right, on=_on(found, name), outer=True)
    is_there = call("coalesce", call(compared.function, most, compared.outside), Literal(False, Type.BOOL))
    return reader.build_origin(Select(join, (*own_columns(found.rows), Output(name, is_there))), found.rows.names)


def _on(found: CorrelatedRows, prefix: str) -> Pairs:
    """Returns what rows outside and what was made of rows inside are equal in, and that they are one person's."""
    whose = ColumnRef(UNIT, found.outside.schema.columns[UNIT].type)
    on = [(a, ColumnRef(_key(prefix, i), a.type)) for i, (a, _) in enumerate(found.pairs)]
    return (*on, (whose, whose))


def own_columns(found: FromRows) -> list[Output]:
    """Returns all columns of some rows, as they are."""
    return [Output(name, ColumnRef(name, column.type)) for name, column in found.schema.columns.items() if name != UNIT]


def _key(prefix: str, place: int) -> str:
    """Returns the name of what is compared; no output is called so."""
    return f"{prefix}#{place}"


def _fold_rows(
    reader: FromClause, found: CorrelatedRows, tree: exp.Select, prefix: str
) -> tuple[Relation, list[Output]]:
    """Returns one row for each person and compared value, and the outputs over its folds; a count of no rows is 0."""
    row = found.inside.scope(reader.source)
    scope = FoldScope(source=row.source, schema=row.schema, alias=row.alias, names=row.names)
    outputs = _outputs(reader, found, tree, scope)
    keys = tuple(Output(f"#k{i}", b) for i, (_, b) in enumerate(found.pairs))
    names = [Output(_key(prefix, i), ColumnRef(key.name, key.expression.type)) for i, key in enumerate(keys)]
    made = [Output(f"{prefix}{fold.name}", ColumnRef(fold.name, fold.type)) for fold in scope.folds]
    right = Select(UnitAggregation(found.inside.relation, keys, tuple(scope.folds)), (*names, *made))
    known: dict[Expression, Expression] = {
        column.expression: _or_zero(fold, ColumnRef(column.name, fold.type))
        for fold, column in zip(scope.folds, made, strict=True)
    }

    def other(column: ColumnRef) -> Expression:
        reason = f"'{column.name[:60]}' is not inside an aggregate, and there may be several rows."
        return reader.source.refuse(reason, "Put it into MIN or MAX, or ask {count}.", tree)

    return right, [Output(prefix + o.name, substitute(o.expression, known, other)) for o in outputs]


def _or_zero(fold: Fold, column: ColumnRef) -> Expression:
    return call("coalesce", column, Literal(0, Type.INT)) if fold.kind.startswith("count") else column


def _first(reader: FromClause, found: CorrelatedRows, tree: exp.Select, prefix: str) -> tuple[Relation, list[Output]]:
    """Returns the rows themselves, or of each row outside the first ones in an order."""
    row = found.inside.scope(reader.source)
    scope = WindowScope(source=row.source, schema=row.schema, alias=row.alias, names=row.names)
    outputs = _outputs(reader, found, tree, scope)
    if scope.windows:
        reason = "OVER is not allowed in a SELECT for each row."
        reader.source.refuse(reason, "Write the window in a SELECT in FROM, and join it: {count}.", tree)
    inside = _limit_rows(reader, found, tree, scope)
    keys = [Output(_key(prefix, i), b) for i, (_, b) in enumerate(found.pairs)]
    made = [Output(prefix + o.name, o.expression) for o in outputs]
    shown = [Output(o.name, ColumnRef(o.name, o.expression.type)) for o in made]
    return Select(inside.relation, (*keys, *made)), shown


def _limit_rows(reader: FromClause, found: CorrelatedRows, tree: exp.Select, scope: WindowScope) -> FromRows:
    limit, offset = kept_rows(tree, reader.source)
    if limit is None and not offset and tree.args.get("order") is None:
        return found.inside
    order = scope.read_order(tree)
    if limit is None or offset or not order:
        reason = "Which rows come first depends on an order, and how many are kept depends on LIMIT."
        reader.source.refuse(reason, "Write ORDER BY and LIMIT 1, or leave both out and ask {count}.", tree)
    name = distinct("place inside", found.inside.schema.columns)
    window = Window(
        name=name, kind="row_number", type=Type.INT, partition=tuple(b for _, b in found.pairs), order=order
    )
    windowed = reader.build_origin(WindowedRelation(found.inside.relation, (window,)), found.inside.names)
    return reader.filter_rows(windowed, call("less_equal", ColumnRef(name, Type.INT), Literal(limit, Type.INT)))


def _outputs(reader: FromClause, found: CorrelatedRows, tree: exp.Select, scope: Scope) -> list[Output]:
    outputs: list[Output] = []
    outside = found.outside.scope(reader.source)
    for node in tree.expressions:
        for column in _outer(node, scope):
            if outside.knows(column):
                reason = "Here, a column of the outer query can be compared in WHERE, but not used in a computation."
                reader.source.refuse(reason, "Compute with it outside the brackets: {count}.", column)
        outputs.append(read_output(node, scope, outputs, found.inside.names))
    name_columns(outputs, tree, reader)
    return outputs
