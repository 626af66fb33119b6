"""The FROM clause: tables, joins, SELECTs and WITH, as relations that keep one person's rows together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.errors import UnknownTable
from discreet.plan.analysis.relation_schema import Schemas, describe, describe_own_rows, is_present, is_unique, same_id
from discreet.plan.expressions.calls import Mismatch, alike
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, Output, Relation
from discreet.plan.model.relations import Join, MarkJoin, Select, SemiJoin, tables
from discreet.plan.model.schema import TableSchema
from discreet.sql.clauses.select_parts import QueryFragment, conjunction, puts_together, truth, with_repeats
from discreet.sql.functions import only, read
from discreet.sql.refusals import SqlSource
from discreet.sql.scope import Names, Scope, lookup, same

MOST_READS = 64
"""Tables and names of WITH that a question reads, each as often as it is read: names that double end here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromRows:
    """A relation, what is public about it, and what its columns are called."""

    relation: Relation
    schema: TableSchema
    names: Names

    def scope(self, source: SqlSource) -> Scope:
        """Returns the scope of one of its rows."""
        return Scope(source=source, schema=self.schema, alias=next(iter(self.names)), names=self.names)


Pairs = Sequence[tuple[Expression, Expression]]
"""Expressions that are compared: one of these rows, one of others."""

Nested = Callable[["FromClause", exp.Expr], FromRows]
"""Reads a SELECT inside a question."""

Lateral = Callable[["FromClause", FromRows, exp.Join], tuple[FromRows, list[exp.Expr]]]
"""Reads a SELECT that is joined to the rows before it, and the conditions that are left."""

_NO_TABLE = TableSchema(name="")


@dataclass(frozen=True, slots=True)
class CommonTableExpression:
    """A name that WITH gives to a SELECT, and what was known before it."""

    tree: exp.Expr
    reader: FromClause


@dataclass(frozen=True, slots=True)
class FromClause:
    """Reads what a question is about."""

    source: SqlSource
    nested: Nested
    lateral: Lateral
    defined: Mapping[str, CommonTableExpression] = field(default_factory=dict)
    reads: Iterator[int] = field(default_factory=count)

    @property
    def schemas(self) -> Schemas:
        """Returns the declared tables by name."""
        return self.source.schemas

    @property
    def blank(self) -> Scope:
        """Returns a scope without columns, for refusals."""
        return Scope(source=self.source, schema=_NO_TABLE, alias="")

    def within(self, tree: exp.Expr) -> FromClause:
        """Returns the reader inside a tree, which knows the names that its WITH defines."""
        clause = tree.args.get("with_")
        if clause is None:
            return self
        only(clause, self.blank, "expressions")
        reader, used = self, {table.name.casefold() for table in tree.find_all(exp.Table)}
        for cte in clause.expressions:
            only(cte, self.blank, "this", "alias")
            only(cte.args["alias"], self.blank, "this")
            if cte.alias.casefold() not in used:
                self.source.refuse(f"Nothing reads '{cte.alias[:60]}'.", "Leave it out: {count}.", cte)
            reader = replace(reader, defined={**reader.defined, cte.alias: CommonTableExpression(cte.this, reader)})
        return reader

    def read(self, tree: exp.Select) -> tuple[FromRows, list[exp.Expr]]:
        """Reads the rows of a SELECT before its own filter, and the conditions that are left to it."""
        joins = tree.args.get("joins") or []
        found = self.item(tree.args["from_"].this, prefixed=bool(joins))
        conditions: list[exp.Expr] = []
        parts = [] if (where := tree.args.get("where")) is None else list(conjuncts(where.this))
        listed: list[tuple[FromRows, exp.Join]] = []  # tables after a comma that nothing is equal to yet
        for join in joins:
            if isinstance(join.this, exp.Lateral):
                found, more = self.lateral(self, found, join)
                conditions += more
            elif _is_comma(join):
                listed.append((self._right(found, listed, join), join))
            else:
                found, more = self._read_join(found, join)
                conditions += more
            found, listed, parts = self._join_listed_tables(found, listed, parts)
        if listed:
            reason = "A list of tables is a join, but WHERE does not say which columns are equal."
            self.source.refuse(reason, "Write WHERE a.id = b.id, or JOIN ... ON a.id = b.id: {count}.", listed[0][1])
        for part in parts:
            matched = self._read_match(found, part)
            if matched is None:
                conditions.append(part)
            else:
                found = matched
        return found, conditions

    # ------------------------------------------------------------------------------------------------------------ items

    def item(self, node: exp.Expr, *, prefixed: bool = False) -> FromRows:
        """Reads a table, or a SELECT in brackets or under a name of WITH."""
        self._count_read(node)
        if node.args.get("pivots"):
            found, alias = self.nested(self, node), str(node.args["pivots"][0].alias)
        elif isinstance(node, exp.Subquery):
            only(node, self.blank, "this", "alias")
            found, alias = self.nested(self, node.this), self._alias(node) or ""
        else:
            name = self._name(node)
            given = lookup(name, self.defined)
            found = self._table(name) if given is None else self.nested(given.reader, given.tree)
            alias = self._alias(node) or name
        visible = {name: inner for names in found.names.values() for name, inner in names.items()}
        named = replace(found, names={alias: visible})
        return self._prefix_columns(named) if prefixed else named

    def _count_read(self, node: exp.Expr | int = 0) -> None:
        if next(self.reads) >= MOST_READS:
            self.source.refuse(
                f"The question reads more than {MOST_READS} tables.", "Ask a shorter one: {count}.", node
            )

    def again(self, found: FromRows) -> FromRows:
        """Returns rows that are read a second time, each of their tables once more."""
        for _ in tables(found.relation):
            self._count_read()
        return found

    def _name(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            self.source.refuse("A question reads declared tables.", "For example {count}.", node)
        if node.args.get("db") or node.args.get("catalog"):
            self.source.refuse("Name a table without schema or catalog.", "For example {count}.", node)
        only(node, self.blank, "this", "alias")
        return str(node.name)

    def _alias(self, node: exp.Expr) -> str:
        alias = node.args.get("alias")
        if alias is None:
            return ""
        only(alias, self.blank, "this")
        return str(alias.name)

    def _table(self, name: str) -> FromRows:
        schema = lookup(name, self.schemas)
        if schema is None:
            raise UnknownTable(name, self.schemas)
        names = {schema.name: {column: column for column in schema.stored_columns}}
        relation, described = describe_own_rows(schema.name, self.schemas)
        return FromRows(relation=relation, schema=described, names=names)

    def _prefix_columns(self, found: FromRows) -> FromRows:
        """Returns columns under names that no other table's columns have."""
        ((alias, names),) = found.names.items()
        if not alias:
            self.source.refuse("A SELECT that is joined needs a name.", "Write AS and a name after it: {count}.")
        inner = {name: f"{alias}.{name}" for name in names}
        columns = tuple(
            Output(inner[name], ColumnRef(column, found.schema.columns[column].type)) for name, column in names.items()
        )
        return self.build_origin(Select(found.relation, columns), {alias: inner})

    def build_origin(self, relation: Relation, names: Names) -> FromRows:
        """Returns a relation with its description."""
        return FromRows(relation=relation, schema=describe(relation, self.schemas), names=names)

    # ------------------------------------------------------------------------------------------------------------ joins

    def _join_listed_tables(
        self, found: FromRows, listed: list[tuple[FromRows, exp.Join]], parts: list[exp.Expr]
    ) -> tuple[FromRows, list[tuple[FromRows, exp.Join]], list[exp.Expr]]:
        """Joins tables after commas as soon as a condition of WHERE says what is equal in them."""
        for place, (right, node) in enumerate(listed):
            pairs = {i: pair for i, part in enumerate(parts) if (pair := self.equality(found, right, part))}
            if pairs:
                found = self._join_on_pairs(found, right, list(pairs.values()), node, outer=False)
                others = [part for i, part in enumerate(parts) if i not in pairs]
                return self._join_listed_tables(found, [*listed[:place], *listed[place + 1 :]], others)
        return found, listed, parts

    def _right(self, left: FromRows, listed: Sequence[tuple[FromRows, exp.Join]], node: exp.Join) -> FromRows:
        """Returns the table of a join, under a name that no other has."""
        right = self.item(node.this, prefixed=True)
        taken = [*left.names, *(alias for origin, _ in listed for alias in origin.names)]
        for alias in right.names:
            self._check_alias(alias, taken, node)
        return right

    def _check_alias(self, alias: str, taken: Sequence[str], node: exp.Expr) -> None:
        if any(same(alias, other) for other in taken):
            self.source.refuse(f"Two tables are called '{alias}'.", "Rename one with AS: {count}.", node)

    def free_alias(self, node: exp.Expr, left: FromRows) -> str:
        """Returns the name of a SELECT that is joined, if no table before it has it."""
        alias = self._alias(node)
        if not alias:
            self.source.refuse("A SELECT that is joined needs a name.", "Write AS and a name after it: {count}.", node)
        self._check_alias(alias, [*left.names], node)
        return alias

    def _read_join(self, left: FromRows, node: exp.Join) -> tuple[FromRows, list[exp.Expr]]:
        only(node, self.blank, "this", "on", "using", "side", "kind")
        outer = (node.side or "").upper() == "LEFT"
        if (node.side or "").upper() not in ("", "LEFT") or (node.kind or "").upper() not in ("", "INNER", "OUTER"):
            self.source.refuse(
                "Tables are joined by JOIN or LEFT JOIN.", "Write JOIN ... ON a.id = b.id: {count}.", node
            )
        right = self._right(left, (), node)
        pairs, conditions = self._pairs(left, right, node)
        if conditions and outer:
            self.source.refuse(
                "LEFT JOIN takes only equalities.", "Filter the right table in a SELECT in brackets: {count}.", node
            )
        return self._join_on_pairs(left, right, pairs, node, outer=outer), conditions

    def _pairs(self, left: FromRows, right: FromRows, node: exp.Join) -> tuple[Pairs, list[exp.Expr]]:
        if node.args.get("using"):
            columns = [exp.column(name.name, quoted=True) for name in node.args["using"]]
            return [self._pair(left, right, column, column) for column in columns], []
        on = node.args.get("on")
        if on is None:
            self.source.refuse(
                "A join says which columns are equal.", "Write JOIN ... ON a.id = b.id, or USING (id): {count}.", node
            )
        pairs, others = [], []
        for part in conjuncts(on):
            found = self.equality(left, right, part)
            if found is None:
                others.append(part)
            else:
                pairs.append(found)
        if not pairs:
            self.source.refuse(
                "A join says which columns are equal.", "Write JOIN ... ON a.id = b.id, or USING (id): {count}.", node
            )
        return pairs, others

    def equality(self, left: FromRows, right: FromRows, part: exp.Expr) -> tuple[Expression, Expression] | None:
        """Returns what an equation of columns of two rows compares; None for other conditions."""
        if not isinstance(part, exp.EQ):
            return None
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            if self._readable(one, left) and self._readable(other, right):
                return self._pair(left, right, one, other)
        return None

    def _readable(self, node: exp.Expr, origin: FromRows) -> bool:
        columns = list(node.find_all(exp.Column))
        scope = origin.scope(self.source)
        return bool(columns) and all(scope.knows(column) for column in columns)

    def _pair(self, left: FromRows, right: FromRows, one: exp.Expr, other: exp.Expr) -> tuple[Expression, Expression]:
        pair = read(one, left.scope(self.source)), read(other, right.scope(self.source))
        return self.alike(pair, one)

    def alike(self, pair: tuple[Expression, Expression], node: exp.Expr) -> tuple[Expression, Expression]:
        """Returns two expressions as values of one type."""
        try:
            one, other = alike(list(pair))
        except Mismatch as mismatch:
            self.source.refuse(mismatch.reason, mismatch.hint, node)
        if one.type is not other.type:
            kinds = f"{one.type.value} and {other.type.value}"
            self.source.refuse(f"These are of two types: {kinds}.", "Convert one with CAST: {count}.", node)
        return one, other

    def _join_on_pairs(self, left: FromRows, right: FromRows, pairs: Pairs, node: exp.Expr, *, outer: bool) -> FromRows:
        names = {**left.names, **right.names}
        if left.schema.public and not right.schema.public:
            if outer:
                self.source.refuse(
                    "LEFT JOIN must begin with the protected table.",
                    "Put it first: {grouped}. Public keys show empty groups anyway.",
                    node,
                )
            left, right, pairs = right, left, [(b, a) for a, b in pairs]
        if not right.schema.public:
            self.same_people(left, right, pairs, node, "ON")
        alone = not left.schema.public and left.schema.unit is None
        if alone:
            self._check_single(right, [other for _, other in pairs], node)
        join = Join(left=left.relation, right=right.relation, on=tuple(pairs), outer=outer, single=alone)
        return self.build_origin(join, names)

    def _check_single(self, right: FromRows, on: Sequence[Expression], node: exp.Expr) -> None:
        """Checks that rows that are people of their own take one public row each: by columns in which no two agree."""
        names = {part.name for part in on if isinstance(part, ColumnRef)}
        if is_unique(right.relation, names, self.schemas):
            return
        table = self.schemas[next(iter(tables(right.relation)))]
        columns = [name for each in right.names.values() for name, inner in each.items() if inner in names]
        supposed = {**self.schemas, table.name: replace(table, unique=(tuple(columns),))}
        unique = columns if len(columns) == 1 else [tuple(columns)]
        hint = "Join on columns of one public table that are unique in it"
        if columns and is_unique(right.relation, names, supposed):
            declared = f"public(..., name={table.name!r}, unique={unique})"
            hint = f"If that is unique in {table.name}, ask the steward to declare it: {declared}"
        reason = "A join could repeat rows, and here each row is a separate person."
        self.source.refuse(reason, f"{hint}; or count without it: {{grouped}}.", node)

    def same_people(self, left: FromRows, right: FromRows, pairs: Pairs, node: exp.Expr, clause: str) -> None:
        """Refuses what does not say that two rows are of the same person."""
        one, other = left.schema, right.schema
        if one.account != other.account or one.unit is None or other.unit is None:
            self.source.refuse(
                "Two protected tables can be joined only if they are about the same people.",
                "Ask about them one by one: {count}.",
                node,
            )
        if not same_id(pairs, one, other):
            self.source.refuse(
                "A join of protected tables must require that both rows belong to the same person.",
                f"Require in {clause} that the id columns are equal. Or count by a column: {{grouped}}.",
                node,
            )

    # ---------------------------------------------------------------------------------------------------- IN and EXISTS

    def _read_match(self, found: FromRows, part: exp.Expr) -> FromRows | None:
        node, negated = part, False
        while isinstance(node, exp.Not | exp.Paren):
            negated, node = negated ^ isinstance(node, exp.Not), node.this
        compared = self.read_equality(found, node)
        if compared is None or (negated and not self._is_known(found, *compared, node)):
            return None
        return self.match_rows(found, *compared, node, negated=negated)

    def _is_known(self, found: FromRows, other: FromRows, pairs: Pairs, node: exp.Expr) -> bool:
        """Returns whether nothing that is compared is NULL, which NOT IN and NOT EXISTS take for different things.

        IN compares with a protected table's ids; rows without one count nowhere.
        """
        if isinstance(node, exp.In):
            return not other.schema.public
        return all(is_present(one, found.relation, self.schemas) for one, _ in pairs)

    def read_equality(self, found: FromRows, node: exp.Expr) -> tuple[FromRows, Pairs] | None:
        """Reads the rows inside IN or EXISTS, and what is equal in rows outside and inside.

        Returns:
            None for other nodes, and for subqueries that compare more than that.
        """
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            only(node, self.blank, "this", "query")
            return None if is_correlated(self, node.args["query"], found) else self._in(found, node)
        if isinstance(node, exp.Exists):
            only(node, self.blank, "this")
            return self._exists(found, node)
        return None

    def _in(self, found: FromRows, node: exp.In) -> tuple[FromRows, Pairs]:
        query = node.args["query"]
        other = self.nested(self, query.this if isinstance(query, exp.Subquery) else query)
        columns = [inner for names in other.names.values() for inner in names.values()]
        if len(columns) != 1:
            self.source.refuse("IN takes a SELECT of one column.", "Name one column: {filtered}.", node)
        (name,) = columns
        inner = ColumnRef(name, other.schema.columns[name].type)
        return other, [self.alike((read(node.this, found.scope(self.source)), inner), node)]

    def _exists(self, found: FromRows, node: exp.Exists) -> tuple[FromRows, Pairs] | None:
        tree = node.this
        if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
            self.source.refuse("EXISTS takes a SELECT from a table.", "For example {filtered}.", node)
        if any(puts_together(output) for output in tree.expressions):
            reason = "EXISTS looks for rows, but an aggregate always returns one row, so this is always TRUE."
            hint = "Write SELECT 1 in its place, or compare the aggregate, WHERE (SELECT COUNT(*) ...) > 0: {count}."
            self.source.refuse(reason, hint, node)
        if tree.args.get("joins") or tree.args.get("with_"):
            return None
        tree = with_repeats(tree)
        only(tree, self.blank, "expressions", "from_", "where")
        other = self.item(tree.args["from_"].this)
        parts = [] if (where := tree.args.get("where")) is None else list(conjuncts(where.this))
        local = [part for part in parts if self._readable(part, other)]
        pairs = [self.equality(found, other, part) for part in parts if part not in local]
        if not pairs:
            reason = "EXISTS compares columns of the rows outside and inside."
            self.source.refuse(reason, "Write WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id): {count}.", node)
        if None in pairs or any(part.find(exp.Query) for part in local):
            return None
        return self.apply_conditions(other, local), [pair for pair in pairs if pair is not None]

    def match_rows(self, found: FromRows, other: FromRows, pairs: Pairs, node: exp.Expr, *, negated: bool) -> FromRows:
        """Returns the rows with a matching row of the other relation, or those without."""
        self._of_same_people(found, other, pairs, node)
        relation = SemiJoin(source=found.relation, other=other.relation, on=tuple(pairs), negated=negated)
        return self.build_origin(relation, found.names)

    def mark_rows(self, found: FromRows, other: FromRows, pairs: Pairs, node: exp.Expr, name: str) -> FromRows:
        """Adds a column, under no name that a question could write, that says which rows have such a row."""
        self._of_same_people(found, other, pairs, node)
        marked = MarkJoin(source=found.relation, other=other.relation, on=tuple(pairs), name=name)
        return self.build_origin(marked, found.names)

    def _of_same_people(self, found: FromRows, other: FromRows, pairs: Pairs, node: exp.Expr) -> None:
        if not other.schema.public:
            self.same_people(found, other, pairs, node, "WHERE")

    def apply_conditions(self, found: FromRows, conditions: Sequence[exp.Expr]) -> FromRows:
        """Returns the rows for which all conditions are true."""
        if not conditions:
            return found
        scope = found.scope(self.source)
        kept = conjunction([truth(read(part, scope), "WHERE", QueryFragment(part, self.source)) for part in conditions])
        return found if kept is None else self.filter_rows(found, kept)

    def filter_rows(self, found: FromRows, condition: Expression) -> FromRows:
        """Returns the rows for which a condition is true."""
        types = {name: column.type for name, column in found.schema.columns.items() if name != UNIT}
        columns = tuple(Output(name, ColumnRef(name, kind)) for name, kind in types.items())
        return self.build_origin(Select(found.relation, columns, condition), found.names)


def _is_comma(join: exp.Join) -> bool:
    """Returns whether a table comes after a comma: a join without a word and without a condition."""
    return not any(part for name, part in join.args.items() if name != "this")


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Returns the conditions that AND joins, from left to right."""
    if isinstance(node, exp.And):
        yield from conjuncts(node.this)
        yield from conjuncts(node.expression)
    elif isinstance(node, exp.Paren) and isinstance(node.this, exp.And):
        yield from conjuncts(node.this)
    else:
        yield node


def is_correlated(reader: FromClause, tree: exp.Expr, found: FromRows) -> bool:
    """Returns whether a SELECT names columns of the rows outside of it, as it does if it has no such names itself."""
    inner = [table for table in tree.find_all(exp.Table, exp.Subquery) if table.alias_or_name]
    aliases = [table.alias_or_name for table in inner]
    known = [lookup(table.name, reader.schemas) for table in inner if isinstance(table, exp.Table)]
    sure = len(known) == len(inner) and None not in known
    own = [name for schema in known if schema for name in schema.stored_columns] if sure else None
    named = {output.alias for output in tree.find_all(exp.Alias)}
    scope = found.scope(reader.source)

    def is_outer(column: exp.Column) -> bool:
        if column.table:
            outside = any(same(column.table, alias) for alias in found.names)
            return outside and not any(same(column.table, alias) for alias in aliases)
        written = [*(own or ()), *named]
        return own is not None and scope.knows(column) and not any(same(column.name, name) for name in written)

    return any(is_outer(column) for column in tree.find_all(exp.Column) if isinstance(column.this, exp.Identifier))
