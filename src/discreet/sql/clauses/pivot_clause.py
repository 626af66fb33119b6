"""PIVOT: groups of rows whose values of some columns become columns of the answer.

It is read as two SELECTs. The inner one groups by the keys and the columns that are spread, so that a row is counted in
one cell, and columns share no budget, as aggregates with FILTER would. The outer one puts the cells of a key side by
side. Which columns there are is public: the values are listed, or they are declared keys.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from itertools import product

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.plan.analysis.group_keys import values
from discreet.plan.model.nodes import Value
from discreet.sql.clauses.from_clause import FromClause
from discreet.sql.clauses.select_parts import distinct, puts_together
from discreet.sql.functions import only, read

MOST_COLUMNS = 200
"""Columns that a PIVOT makes."""

_OF_STATEMENT = ("this", "expressions", "using", "group", "with_")
_OF_TABLE = (
    *("expressions", "fields", "group", "alias", "columns", "unpivot", "default_on_null", "identify_pivot_strings"),
    *("prefixed_pivot_columns", "pivot_column_naming"),
)


def as_rows(node: exp.Expr, reader: FromClause) -> exp.Expr:
    """Returns the SELECT that a PIVOT means if it is of one person's rows: an aggregate with FILTER for each column.

    Args:
        node: a PIVOT, or a table with one; everything else is returned as it is.
        reader: of the query around it.

    Raises:
        UnsupportedQuery: if columns or groups of the PIVOT do not follow from its text and the declarations.
    """
    pivot = _read(node, reader)
    if pivot is None:
        return node
    columns = [_alias_column(_of_some(cell, where), name) for cell, _, where, name in pivot.columns(pivot.on)]
    return _group_by_keys(pivot, exp.From(this=pivot.table.copy()), columns)


def as_cells(node: exp.Expr, reader: FromClause) -> exp.Expr:
    """Returns the SELECT that a PIVOT means if it is released: the groups of keys and values, side by side."""
    pivot = _read(node, reader)
    if pivot is None:
        return node
    shown = [*((key.copy(), key.name) for key in pivot.keys), *zip(pivot.spread, pivot.places, strict=True)]
    count = len(shown)
    shown += [(cell.unalias().copy(), name) for cell, name in zip(pivot.cells, pivot.amounts, strict=True)]
    inner = exp.Select(
        expressions=[_alias_column(shown_node, name) for shown_node, name in shown],
        from_=exp.From(this=pivot.table.copy()),
        where=exp.Where(this=exp.and_(*(field.holds for field in pivot.fields))),
        group=exp.Group(expressions=[exp.Literal.number(i + 1) for i in range(count)]),
    )
    places = [exp.column(place, quoted=True) for place in pivot.places]
    columns = [
        _alias_column(_of_some(exp.AnyValue(this=exp.column(amount, quoted=True)), where), name)
        for _, amount, where, name in pivot.columns(places)
    ]
    return _group_by_keys(pivot, exp.From(this=exp.Subquery(this=inner)), columns)


def alias_of(node: exp.Expr) -> str:
    """Returns what a table with a PIVOT is called."""
    return str(node.args["pivots"][0].alias)


@dataclass(frozen=True, slots=True)
class _Field:
    """What is spread, and its values with the names that they give to columns."""

    node: exp.Expr
    values: Sequence[tuple[exp.Expr, str]]

    @property
    def holds(self) -> exp.In:
        """Returns the condition that a row has one of the values."""
        return exp.In(this=self.node.copy(), expressions=[value.copy() for value, _ in self.values])

    @property
    def key(self) -> exp.Case:
        """Returns the values as a key, NULL of all other rows: listed values are public, whatever the column is."""
        return exp.Case(ifs=[exp.If(this=self.holds, true=self.node.copy())])


@dataclass(frozen=True, slots=True)
class _Pivot:
    """A PIVOT, in whichever way it was written."""

    table: exp.Expr
    keys: Sequence[exp.Column]
    fields: Sequence[_Field]
    cells: Sequence[exp.Expr]
    definitions: exp.Expr | None

    @property
    def on(self) -> list[exp.Expr]:
        """Returns the expressions whose values become columns."""
        return [field.node for field in self.fields]

    @property
    def spread(self) -> list[exp.Expr]:
        """Returns the same expressions as keys."""
        return [field.key for field in self.fields]

    @property
    def places(self) -> list[str]:
        """Returns names for the keys that are spread, different from those of the others."""
        return self._apart("place", len(self.fields))

    @property
    def amounts(self) -> list[str]:
        """Returns names for the aggregates."""
        return self._apart("cell", len(self.cells))

    def _apart(self, word: str, count: int) -> list[str]:
        return [distinct(f"{word}_{i + 1}", [key.name for key in self.keys]) for i in range(count)]

    def columns(self, on: Sequence[exp.Expr]) -> Iterator[tuple[exp.Expr, str, exp.Expr, str]]:
        """Yields for each column its aggregate, the name of that, what equals its values, and the column's own name.

        The name is that of the values, and of the aggregate if it has one or there are several.
        """
        for chosen in product(*(field.values for field in self.fields)):
            equal = [
                exp.EQ(this=part.copy(), expression=value.copy()) for part, (value, _) in zip(on, chosen, strict=True)
            ]
            for cell, amount in zip(self.cells, self.amounts, strict=True):
                own = cell.alias or (cell.sql(dialect="duckdb").lower() if len(self.cells) > 1 else "")
                parts = [*(name for _, name in chosen), *([own] if own else [])]
                yield cell.unalias(), amount, exp.and_(*equal), "_".join(parts)


def _group_by_keys(pivot: _Pivot, origin: exp.From, columns: Sequence[exp.Expr]) -> exp.Select:
    named = [exp.column(key.name, quoted=True) for key in pivot.keys]
    group = exp.Group(expressions=[node.copy() for node in named])
    return exp.Select(expressions=[*named, *columns], from_=origin, group=group, with_=pivot.definitions)


def _of_some(cell: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """Returns what is computed of aggregates, each of them of the rows that satisfy a condition as well."""

    def some(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Filter):
            both = exp.and_(node.expression.this.copy(), condition.copy())
            return exp.Filter(this=node.this.copy(), expression=exp.Where(this=both))
        if isinstance(node, exp.AggFunc | exp.WithinGroup):
            return exp.Filter(this=node.copy(), expression=exp.Where(this=condition.copy()))
        return node

    return cell.transform(some)


def _alias_column(node: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))


def _read(node: exp.Expr, reader: FromClause) -> _Pivot | None:
    if isinstance(node, exp.Pivot):
        only(node, reader.blank, *_OF_STATEMENT)
        pivot, table, on, using, inside = node, node.this, node.expressions, node.args.get("using"), reader.within(node)
    elif node.args.get("pivots"):
        pivot, *others = node.args["pivots"]
        if others:
            reader.source.refuse("A table has one PIVOT.", "Ask for one of them: {grouped}.", others[0])
        only(pivot, reader.blank, *_OF_TABLE)
        table, on, using, inside = node.copy(), pivot.args["fields"], pivot.expressions, reader
        table.set("pivots", None)
    else:
        return None
    keys, fields = _keys(pivot, reader), [_field(part, table, inside) for part in on]
    cells = using or [exp.Count(this=exp.Star(), big_int=True)]
    for cell in cells:
        if not puts_together(cell):
            reader.source.refuse("USING takes aggregates.", "For example USING COUNT(*); or group: {grouped}.", cell)
    if math.prod(len(field.values) for field in fields) * len(cells) > MOST_COLUMNS:
        hint = "List fewer values with IN, or group by the column: {grouped}."
        reader.source.refuse(f"A PIVOT makes at most {MOST_COLUMNS} columns.", hint, on[0])
    return _Pivot(table, keys, fields, cells, pivot.args.get("with_"))


def _keys(pivot: exp.Pivot, reader: FromClause) -> list[exp.Column]:
    """Returns what a PIVOT is grouped by. SQL's default is all other columns, even if they single people out."""
    group = pivot.args.get("group")
    if group is None:
        reason = "A PIVOT says what it groups by. Without GROUP BY it would group by all other columns, including ids."
        reader.source.refuse(reason, "Write GROUP BY and columns at its end; or group: {grouped}.", pivot)
    only(group, reader.blank, "expressions")
    for node in group.expressions:
        if not isinstance(node, exp.Column):
            hint = "Compute it before, in a SELECT in brackets; or group: {grouped}."
            reader.source.refuse("A PIVOT is grouped by columns.", hint, node)
    return list(group.expressions)


def _field(node: exp.Expr, table: exp.Expr, reader: FromClause) -> _Field:
    if not isinstance(node, exp.In):
        return _Field(
            node, [(_build_literal(value), _text(value)) for value in _find_public_values(node, table, reader)]
        )
    only(node, reader.blank, "this", "expressions")
    if not node.expressions:
        reader.source.refuse("IN lists the values that become columns.", "For example {grouped}.", node)
    return _Field(node.this, [_read_list_item(part, reader) for part in node.expressions])


def _read_list_item(part: exp.Expr, reader: FromClause) -> tuple[exp.Expr, str]:
    """Returns a value of the list and the name that it gives: its own text, or the name after AS."""
    if isinstance(part, exp.PivotAlias):
        only(part, reader.blank, "this", "alias")
        return _read_list_item(part.this, reader)[0], str(part.args["alias"].name)
    number = part.this if isinstance(part, exp.Neg) else part
    day = isinstance(part, exp.Cast) and isinstance(part.this, exp.Literal)
    if not isinstance(number, exp.Literal | exp.Boolean) and not day:
        hint = "Write them out: IN ('a', 'b'); or group: {grouped}."
        reader.source.refuse("The values that become columns are texts, numbers or days.", hint, part)
    return part, part.name if day or isinstance(part, exp.Literal) else part.sql(dialect="duckdb").lower()


def _find_public_values(node: exp.Expr, table: exp.Expr, reader: FromClause) -> list[Value]:
    """Returns the public values of what is spread; NULL becomes no column."""
    found = reader.item(table)
    known = values(read(node, found.scope(reader.source)), found.schema)
    if known is None:
        reason = "Which columns this PIVOT makes would depend on the rows: the values are not public."
        hint = "List them: ON x IN ('a', 'b'); or ask the steward to declare them as keys; or group: {grouped}."
        reader.source.refuse(reason, hint, node)
    return [value for value in known if value is not None]


def _build_literal(value: Value) -> exp.Expr:
    """Returns a value as a question writes it."""
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float):
        return exp.Literal.number(value)
    if isinstance(value, dt.date):
        kind = exp.DataType.Type.TIMESTAMP if isinstance(value, dt.datetime) else exp.DataType.Type.DATE
        return exp.Cast(this=exp.Literal.string(str(value)), to=exp.DataType(this=kind))
    return exp.Literal.string(str(value))


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
