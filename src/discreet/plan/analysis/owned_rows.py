"""The rows of a declared table with whose they are: one way for each table, told by its declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from discreet.plan.model.nodes import UNIT, Column, Expression, Question, Relation
from discreet.plan.model.relations import Reached, Table
from discreet.plan.model.schema import ColumnSchema, TableSchema
from discreet.plan.model.types import Type

Schemas = Mapping[str, TableSchema]


def own_rows(name: str, schemas: Schemas) -> Relation:
    """The relation that reads a declared table."""
    schema = schemas[name]
    if schema.reach is not None:
        return Reached(name, schema.reach.column, own_rows(schema.reach.table, schemas), schema.reach.key)
    return Table(name, schema.parts or schema.unit)


def told_rows(name: str, schemas: Schemas) -> Relation | None:
    """The relation that reads a declared table, if no column of its own tells whose rows they are."""
    return own_rows(name, schemas) if schemas[name].unit == UNIT else None


def owned(question: Question, schemas: Schemas) -> Question:
    """The question with the rows it is about, if the table's own columns do not tell whose they are."""
    if question.source is not None:
        return question
    return replace(question, source=told_rows(question.table, schemas))


def described(schema: TableSchema, schemas: Schemas) -> TableSchema:
    """A declared table as rows that have a column `UNIT`."""
    keys = {other.reach.link for other in schemas.values() if other.reach is not None}
    columns = {
        name: replace(column, link=f"{schema.name}.{name}")
        if not column.link and f"{schema.name}.{name}" in keys
        else column
        for name, column in schema.stored.items()
    }
    if schema.unit is None:
        return replace(schema, columns=columns)
    unit = replace(schema.columns[schema.unit], name=UNIT, bounds=None, keys=None, link="")
    owners = schema.ids - {UNIT}
    return replace(schema, columns={**columns, UNIT: unit}, unit=UNIT, owners=owners, people=called(schema))


def called(schema: TableSchema) -> str:
    """What the units of a declared table are called."""
    if schema.unit is None:
        return "row"
    own = " and ".join(schema.parts) if schema.parts else schema.unit
    return schema.people or own


def unit_column(schema: TableSchema) -> ColumnSchema:
    """The id of the units of a table, as a column `UNIT` of tables that reach them."""
    kind = Type.TEXT if schema.parts or schema.unit is None else schema.columns[schema.unit].type
    return ColumnSchema(name=UNIT, type=kind)


def same_id(pairs: Sequence[tuple[Expression, Expression]], one: TableSchema, other: TableSchema) -> bool:
    """Whether pairs of equal expressions say that two rows are of one unit.

    They do if they compare ids, all parts of an id, or the two ends of a declared step on the way to the unit.
    """
    links = [_link(a, one) for a, b in pairs if _link(a, one) and _link(a, one) == _link(b, other)]
    if any(_is_id(a, one) and _is_id(b, other) for a, b in pairs) or any(not _is_part(link) for link in links):
        return True
    return bool(one.parts) and set(part_links(one)) <= set(links)


def part_links(schema: TableSchema) -> tuple[str, ...]:
    """The links of all parts of a unit's id."""
    return tuple(part_link(place) for place in range(len(schema.parts)))


def part_link(place: int) -> str:
    """The link of one part."""
    return f"#{place}"


def is_part_of_id(expression: Expression, schema: TableSchema) -> bool:
    """Whether an expression is one of several columns that make the id of whose row it is."""
    return _is_part(_link(expression, schema))


def leads_to_id(expression: Expression, schema: TableSchema) -> bool:
    """Whether an expression is a key on the declared way to the unit: its rows are those of whoever has it."""
    link = _link(expression, schema)
    return schema.unit is not None and bool(link) and not _is_part(link)


def _is_part(link: str) -> bool:
    return link.startswith("#")


def is_whole_id(expressions: Sequence[Expression], schema: TableSchema) -> bool:
    """Whether expressions are the id of whose row it is: one column, or all parts."""
    if len(expressions) == 1 and _is_id(expressions[0], schema):
        return True
    return bool(schema.parts) and set(part_links(schema)) == {_link(part, schema) for part in expressions}


def _is_id(expression: Expression, schema: TableSchema) -> bool:
    return isinstance(expression, Column) and expression.name in schema.ids


def _link(expression: Expression, schema: TableSchema) -> str:
    known = schema.columns.get(expression.name) if isinstance(expression, Column) else None
    return "" if known is None else known.link
