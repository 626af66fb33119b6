"""Text to rows for a learner: one SELECT of columns, a row for each person, through the gates that questions pass.

Nothing is counted or added here, and nothing is sorted: rows go to a learner, which has a guarantee of its own for sets
of rows with one of each person.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import NoReturn

from sqlglot import exp

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import UnknownTable, UnsupportedQuery
from discreet.plan.analysis.relation_schema import is_part_of_id, owns
from discreet.plan.model.nodes import ColumnRef, Relation
from discreet.plan.model.schema import ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.sql.clauses.from_clause import FromClause
from discreet.sql.clauses.row_selects import read_nested_rows
from discreet.sql.clauses.subqueries import lateral
from discreet.sql.examples import quote_name
from discreet.sql.functions import only
from discreet.sql.refusals import SqlSource
from discreet.sql.select import select

_ROWS = ("with_", "expressions", "from_", "joins", "where")
_REFUSED = {
    "distinct": "DISTINCT chooses among rows.",
    "group": "GROUP BY makes groups, but a learner takes rows.",
    "having": "HAVING chooses among groups, but a learner takes rows.",
    "order": "A learner takes rows in no order.",
    "limit": "LIMIT would keep rows by their order.",
}
_PROPOSED = re.compile(r"`[^`]*`")


@dataclass(frozen=True, slots=True)
class RowSource(SqlSource):
    """The text of rows for a learner: what is proposed instead of something refused is such a text, too."""

    def refuse(self, reason: str, hint: str, at: exp.Expr | int = 0) -> NoReturn:
        """Ends the reading; see `SqlSource.refuse`."""
        try:
            SqlSource.refuse(self, reason, hint, at)
        except UnsupportedQuery as refused:
            proposed = _PROPOSED.sub(lambda _: f"`{self.example}`", refused.hint)
            raise UnsupportedQuery(refused.reason, proposed, refused.position, text=refused.text) from None

    @property
    def example(self) -> str:
        """Returns rows that a learner may have, of the table that the text mentions."""
        spoken = [schema for schema in self.schemas.values() if schema.name.casefold() in self.text.casefold()]
        schema = next((one for one in (*spoken, *self.schemas.values()) if not one.public), None)
        known = (
            []
            if schema is None
            else [name for name, column in schema.stored_columns.items() if _is_plain(schema, column)]
        )
        if schema is None or not known:
            return f"SELECT CAST(TRUE AS INT) AS one FROM {quote_name(schema.name if schema else 'visits')}"
        return f"SELECT {', '.join(quote_name(name) for name in known[:2])} FROM {quote_name(schema.name)}"


def _is_plain(schema: TableSchema, column: ColumnSchema) -> bool:
    """Returns whether a column may be a feature as it is declared."""
    known = column.bounds is not None or column.keys is not None or column.type is Type.BOOL
    return known and column.name not in schema.ids and not column.link and column.type is not Type.TIMESTAMP


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of rows for a learner.

    Args:
        name: that the text gives it.
        column: the same, as an expression.
        schema: what is public about it.
        at: where it is in the text.
    """

    name: str
    column: ColumnRef
    schema: ColumnSchema
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """Rows for a learner.

    Args:
        relation: what is read.
        schema: what is public about it; its name is that of the first protected table.
        columns: in the order of the text.
        source: the text.
        whole: whether it has exactly the rows of one declared table.
        periods: whose rows it has, where rows have budgets by period.
    """

    relation: Relation
    schema: TableSchema
    columns: tuple[RowColumn, ...]
    source: RowSource
    whole: bool
    periods: tuple[str, ...] = ()


def training_rows(text: str, schemas: Mapping[str, TableSchema], today: dt.date | None = None) -> TrainingRows:
    """Parses a text into the rows that it selects.

    Args:
        text: one SELECT of columns and expressions over rows of a protected table.
        schemas: the declared tables by name.
        today: the public day that CURRENT_DATE means.

    Raises:
        UnsupportedQuery: with reason, hint and position, if anything in the text is not understood.
        UnknownTable: if its table is not declared, or public.

    *Formal guarantee.* The result is a function of the text and the declarations alone, and every column has a value
    for every row.

    >>> from discreet.plan.model.schema import ColumnBounds, ColumnSchema
    >>> age = ColumnSchema(name="age", type=Type.INT, bounds=ColumnBounds(0, 120))
    >>> visits = TableSchema(name="visits", columns={"age": age}, account="visits")
    >>> [
    ...     column.name
    ...     for column in training_rows("SELECT age, age + 1 AS older FROM visits", {"visits": visits}).columns
    ... ]
    ['age', 'older']
    """
    source = RowSource(check.instance(str, text=text), schemas, today=today)
    tree = select(source)
    reader = FromClause(source, read_nested_rows, lateral)
    for clause, reason in _REFUSED.items():
        if tree.args.get(clause) is not None:
            source.refuse(reason, "Leave it out: {count}.", tree.args[clause] if clause != "distinct" else tree)
    only(tree, reader.blank, *_ROWS)
    if tree.args.get("from_") is None:
        source.refuse("Rows are selected from a table.", "For example {count}.")
    for node in tree.expressions:
        _check_row_by_row(node, source)
    found = read_nested_rows(reader, tree)
    if found.schema.public:
        raise UnknownTable(found.schema.name, {})
    names = list(next(iter(found.names.values())))
    columns = tuple(
        RowColumn(
            name, ColumnRef(name, found.schema.columns[name].type), found.schema.columns[name], source.start(node)
        )
        for name, node in zip(names, tree.expressions, strict=True)
    )
    for column in columns:
        if owns(column.column, found.schema) or is_part_of_id(column.column, found.schema):
            reason = f"{quote_name(column.name)} says whose row it is: a learner would memorize people."
            source.refuse(reason, "Leave it out: {count}.", column.at)
    whole = tree.args.get("where") is None and isinstance(tree.args["from_"].this, exp.Table)
    whole = whole and not tree.args.get("joins") and tree.args.get("with_") is None
    return TrainingRows(relation=found.relation, schema=found.schema, columns=columns, source=source, whole=whole)


def _check_row_by_row(node: exp.Expr, source: RowSource) -> None:
    for call in node.find_all(exp.AggFunc):
        if not isinstance(call.parent, exp.Window):
            source.refuse("An aggregate combines people, but a learner takes rows.", "Leave it out: {count}.", call)
    if next(node.find_all(exp.Star), None) is not None:
        source.refuse("A learner's columns are named one by one.", "For example {count}.", node)
