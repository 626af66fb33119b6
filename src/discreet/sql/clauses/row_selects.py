"""A SELECT inside a question: rows that are computed, filtered, put together, or folded person by person."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.plan.analysis.relation_schema import is_part_of_id, is_whole_id, leads_to_id, owns
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, Output, substitute
from discreet.plan.model.relations import RelationUnion, Select, UnitAggregation, WindowedRelation
from discreet.sql.clauses.assembly import number
from discreet.sql.clauses.from_clause import FromClause, FromRows
from discreet.sql.clauses.pivot_clause import as_rows
from discreet.sql.clauses.row_columns import FoldScope, everything, name_columns, read_output
from discreet.sql.clauses.select_parts import QueryFragment, conjunction, keys_of, puts_together, truth
from discreet.sql.clauses.subqueries import extract_subqueries
from discreet.sql.clauses.window_clause import WindowScope
from discreet.sql.functions import only, read
from discreet.sql.scope import Scope, lookup

_PARTS = ("with_", "expressions", "from_", "joins", "where", "group", "having", "distinct", "qualify")


def read_nested_rows(reader: FromClause, tree: exp.Expr) -> FromRows:
    """Reads the rows of a SELECT inside a question.

    Raises:
        UnsupportedQuery: if it counts or adds across people: that is a release, and must be alone in FROM.
    """
    tree = as_rows(tree, reader)
    if isinstance(tree, exp.Union):
        return _union(reader, tree)
    if isinstance(tree, exp.Intersect | exp.Except):
        return _in_both(reader, tree)
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        reader.source.refuse("FROM takes tables and SELECTs.", "For example {grouped}.", tree)
    inside = reader.within(tree)
    only(tree, reader.blank, *_PARTS, *(["order"] if _chosen_by(tree) else []))
    found, conditions = inside.read(tree)
    tree, found, conditions = extract_subqueries(inside, tree, found, conditions)
    found = inside.apply_conditions(found, conditions)
    if tree.args.get("group") is None and not _adds(tree):
        return _rows(inside, tree, found)
    if tree.args.get("qualify") is not None:
        only(tree, reader.blank, *(part for part in _PARTS if part != "qualify"))
    if _chosen_by(tree):
        reason = "DISTINCT ON chooses among rows, but here rows are combined."
        reader.source.refuse(reason, "Choose in a separate SELECT in FROM, then count: {count}.", tree)
    return _fold_rows(inside, tree, found)


def releases(reader: FromClause, tree: exp.Expr) -> bool:
    """Returns whether a SELECT counts or adds across people, so that only its released columns can be worked on."""
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        return False
    group = tree.args.get("group")
    if group is None:
        return _adds(tree)
    inside = reader.within(tree)
    found, _ = inside.read(tree)
    return not _by_unit(_keys(tree, found, inside), found, inside)


def _keys(tree: exp.Select, found: FromRows, reader: FromClause) -> list[exp.Expr]:
    """Returns what GROUP BY lists, with outputs in the place of their numbers and names."""
    scope, source = found.scope(reader.source), reader.source
    names = {output.alias: output.this for output in tree.expressions if isinstance(output, exp.Alias)}
    nodes: list[exp.Expr] = []
    for node in keys_of(tree):
        place = number(QueryFragment(node, source), len(tree.expressions))
        named = isinstance(node, exp.Column) and not node.table and not scope.knows(node)
        meant = lookup(node.name, names) if named else None
        nodes.append(tree.expressions[place].unalias() if place is not None else meant or node)
    return nodes


def _by_unit(nodes: Sequence[exp.Expr], found: FromRows, reader: FromClause) -> bool:
    """Returns whether rows are grouped by whose they are: by a column of ids, or by all columns that make an id.

    Or by a key that decides whose they are, on the declared way to the unit: an order is one customer's. Each unit's
    rows are folded separately then, so that nothing rests on it: a key that two units have is folded once for each.
    """
    if any(_is_unit(node, found, reader) for node in nodes):
        return True
    scope = found.scope(reader.source)
    plain = [node for node in nodes if isinstance(node, exp.Column) and scope.knows(node)]
    columns = [scope.column(node) for node in plain]
    if any(leads_to_id(column, found.schema) for column in columns):
        return True
    return is_whole_id([column for column in columns if is_part_of_id(column, found.schema)], found.schema)


def _is_unit(node: exp.Expr, found: FromRows, reader: FromClause) -> bool:
    scope = found.scope(reader.source)
    return isinstance(node, exp.Column) and scope.knows(node) and owns(scope.column(node), found.schema)


def _adds(tree: exp.Select) -> bool:
    """Returns whether it adds up rows; a window for each row does not, nor a SELECT for each row."""
    return any(puts_together(output) for output in tree.expressions)


# ---------------------------------------------------------------------------------------------------------------- rows


def _rows(reader: FromClause, tree: exp.Select, found: FromRows) -> FromRows:
    """Returns computed columns; DISTINCT keeps one of equal rows of each person."""
    row = found.scope(reader.source)
    scope = WindowScope(source=row.source, schema=row.schema, alias=row.alias, names=row.names)
    if _chosen_by(tree):
        tree = _first_of_each(tree, scope)
    outputs: list[Output] = []
    for node in tree.expressions:
        outputs += everything(node, found) or [read_output(node, scope, outputs, found.names)]
    qualify = tree.args.get("qualify")
    kept = _read_qualify(tree, qualify.this, scope) if qualify is not None else None
    if scope.windows:
        found = reader.build_origin(WindowedRelation(found.relation, tuple(scope.windows)), found.names)
    if kept is not None:
        found = reader.filter_rows(found, kept)
    names = name_columns(outputs, tree, reader)
    columns = tuple(outputs)
    if tree.args.get("distinct") is None:
        return reader.build_origin(Select(found.relation, columns), names)
    if found.schema.unit is None:
        reader.source.refuse("DISTINCT would merge rows of several people.", "Leave it out: {count}.", tree)
    others = tuple(column for column in columns if not owns(column.expression, found.schema))
    parts = [column.expression for column in columns if is_part_of_id(column.expression, found.schema)]
    if len(others) == len(columns) and not is_whole_id(parts, found.schema):
        reason = "DISTINCT without the column of ids would merge rows of several people."
        reader.source.refuse(reason, "Select the column of ids as well, or group and count: {grouped}.", tree)
    return _with_ids(reader, UnitAggregation(found.relation, others, ()), columns, found)


def _chosen_by(tree: exp.Select) -> list[exp.Expr]:
    """Returns what DISTINCT ON lists."""
    distinct = tree.args.get("distinct")
    on = None if distinct is None else distinct.args.get("on")
    return [] if on is None else list(on.expressions)


def _first_of_each(tree: exp.Select, scope: WindowScope) -> exp.Select:
    """Writes DISTINCT ON (a) ... ORDER BY b as QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1."""
    chosen = [_resolve_names(tree, node, scope) for node in _chosen_by(tree)]
    if not scope.ids([read(node, scope.row) for node in chosen]):
        reason = "DISTINCT ON without the id column would choose among the rows of several people."
        scope.refuse(reason, "Put the id column into its brackets, or group and count: {grouped}.", tree)
    order = tree.args.get("order")
    if order is None or tree.args.get("qualify") is not None:
        reason = "DISTINCT ON keeps the first row in the order of ORDER BY, and does not work with QUALIFY."
        scope.refuse(reason, "Add ORDER BY, or write QUALIFY ROW_NUMBER() OVER (...) = 1 alone; or ask {count}.", tree)
    place = exp.Window(this=exp.RowNumber(), partition_by=chosen, order=_resolve_names(tree, order, scope))
    made = tree.copy()
    made.set("distinct", None)
    made.set("qualify", exp.Qualify(this=exp.EQ(this=place, expression=exp.Literal.number(1))))
    return made


def _read_qualify(tree: exp.Select, node: exp.Expr, scope: WindowScope) -> Expression:
    """Returns the condition of QUALIFY, in which a name may be that of an output."""
    return truth(read(_resolve_names(tree, node, scope), scope), "QUALIFY", QueryFragment(node, scope.source))


def _resolve_names(tree: exp.Select, node: exp.Expr, scope: Scope) -> exp.Expr:
    """Returns a part of a SELECT with outputs in the place of their names, where these are not names of columns."""
    names = {output.alias: output.this for output in tree.expressions if isinstance(output, exp.Alias)}

    def resolve_name(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.table or scope.knows(part):
            return part
        found = lookup(part.name, names)
        return part if found is None else exp.Paren(this=found.copy())

    made: exp.Expr = node.transform(resolve_name)
    return made


def _with_ids(reader: FromClause, relation: UnitAggregation, columns: Sequence[Output], found: FromRows) -> FromRows:
    """Returns the folded rows, with the id under the names that the SELECT gives it."""
    kept = [
        Output(c.name, _id(found) if owns(c.expression, found.schema) else ColumnRef(c.name, c.expression.type))
        for c in columns
    ]
    return reader.build_origin(Select(relation, tuple(kept)), {"": {column.name: column.name for column in kept}})


def _id(found: FromRows) -> ColumnRef:
    return ColumnRef(UNIT, found.schema.columns[UNIT].type)


# ------------------------------------------------------------------------------------------------------------ UNION ALL


def _union(reader: FromClause, tree: exp.Union) -> FromRows:
    only(tree, reader.blank, "with_", "this", "expression", "distinct")
    if tree.args.get("distinct"):
        reader.source.refuse(
            "UNION drops rows that several people share.", "Write UNION ALL, which keeps equal rows: {count}.", tree
        )
    inside = reader.within(tree)
    first, second = (read_nested_rows(inside, side) for side in (tree.this, tree.expression))
    if not _same_people(first, second):
        reader.source.refuse(
            "UNION ALL takes tables about the same people.", "Ask about them one by one: {count}.", tree
        )
    columns = [[*names.items()] for origin in (first, second) for names in [_flat(origin)]]
    if len(columns[0]) != len(columns[1]):
        reader.source.refuse(
            "UNION ALL takes as many columns on both sides.", "Select the same columns: {count}.", tree
        )
    sides: list[list[Output]] = [[], []]
    for (name, one), (_, other) in zip(*columns, strict=True):
        pair = ColumnRef(one, first.schema.columns[one].type), ColumnRef(other, second.schema.columns[other].type)
        a, b = inside.alike(pair, tree)
        sides[0].append(Output(name, a))
        sides[1].append(Output(name, b))
    parts = tuple(Select(o.relation, tuple(side)) for o, side in zip((first, second), sides, strict=True))
    return inside.build_origin(RelationUnion(parts), {"": {output.name: output.name for output in sides[0]}})


def _in_both(reader: FromClause, tree: exp.Intersect | exp.Except) -> FromRows:
    """Returns people who are on both sides, or on the first alone: columns of ids, which are never NULL."""
    only(tree, reader.blank, "with_", "this", "expression", "distinct")
    word = tree.key.upper()
    inside = reader.within(tree)
    first, second = (read_nested_rows(inside, side) for side in (tree.this, tree.expression))
    ids = [list(_flat(side).values()) for side in (first, second)]
    whole = all(
        len(names) == 1 and names[0] in side.schema.ids for names, side in zip(ids, (first, second), strict=True)
    )
    if not whole or not tree.args.get("distinct"):
        reader.source.refuse(
            f"{word} takes two SELECTs of one column, the people's ids.",
            "Filter with IN or EXISTS, which compare any columns: {count}.",
            tree,
        )
    ((name, inner),) = _flat(first).items()
    own = ColumnRef(inner, first.schema.columns[inner].type)
    people = _with_ids(inside, UnitAggregation(first.relation, (), ()), (Output(name, own),), first)
    other = ColumnRef(ids[1][0], second.schema.columns[ids[1][0]].type)
    pair = inside.alike((ColumnRef(name, own.type), other), tree)
    return inside.match_rows(people, second, [pair], tree, negated=isinstance(tree, exp.Except))


def _flat(origin: FromRows) -> dict[str, str]:
    return {name: inner for names in origin.names.values() for name, inner in names.items()}


def _same_people(one: FromRows, other: FromRows) -> bool:
    """Returns whether two relations are public, or about the same people under ids of one type.

    Rows that are units of their own do not qualify: one of them could stand on both sides.
    """
    a, b = one.schema, other.schema
    if a.public or b.public:
        return a.public and b.public
    return (
        a.account == b.account
        and UNIT in a.columns
        and UNIT in b.columns
        and a.columns[UNIT].type is b.columns[UNIT].type
    )


# ----------------------------------------------------------------------------------------------------- person by person


def _fold_rows(reader: FromClause, tree: exp.Select, found: FromRows) -> FromRows:
    """Returns one row for each person, or for each person and key."""
    group = tree.args.get("group")
    nodes = _keys(tree, found, reader)
    row = found.scope(reader.source)
    if found.schema.unit is None or not _by_unit(nodes, found, reader):
        reason = "A SELECT that counts across people is released, and must be alone in FROM."
        reader.source.refuse(reason, "Group by the column of ids first, or ask it separately: {grouped}.", tree)
    if group is not None:
        only(group, row, "expressions", "all")
    keys = [read(node, row) for node in nodes if not _is_unit(node, found, reader)]
    scope = FoldScope(source=row.source, schema=row.schema, alias=row.alias, names=row.names)
    outputs: list[Output] = []
    for node in tree.expressions:
        outputs.append(read_output(node, scope, outputs, found.names))
    names = name_columns(outputs, tree, reader)
    known: dict[Expression, Expression] = {key: ColumnRef(f"#k{i}", key.type) for i, key in enumerate(keys)}

    def other(column: ColumnRef) -> Expression:
        if column.name.startswith("#"):
            return column
        if owns(column, found.schema):
            return _id(found)
        return reader.source.refuse(
            "A column is neither a key nor inside an aggregate.", "Group by it as well: {count}.", tree
        )

    having = tree.args.get("having")
    kept = [truth(read(having.this, scope), "HAVING", QueryFragment(having.this, reader.source))] if having else []
    relation = UnitAggregation(
        found.relation, tuple(Output(f"#k{i}", key) for i, key in enumerate(keys)), tuple(scope.folds)
    )
    columns = tuple(Output(o.name, substitute(o.expression, known, other)) for o in outputs)
    condition = conjunction([substitute(part, known, other) for part in kept])
    return reader.build_origin(Select(relation, columns, condition), names)
