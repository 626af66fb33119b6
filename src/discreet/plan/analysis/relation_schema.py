"""The schema of a relation: types, bounds and keys of its columns, and whose rows they are, from declarations alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, singledispatch

from discreet.errors import InternalError, UnsupportedQuery
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.analysis.value_sets import ValueSet, possible
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, Output, Question, Relation, Value
from discreet.plan.model.nodes import columns as columns_of
from discreet.plan.model.relations import (
    BaseTable,
    Cut,
    Fold,
    Join,
    LinkedTable,
    MarkJoin,
    RelationUnion,
    Select,
    SemiJoin,
    UnitAggregation,
    Window,
    WindowedRelation,
    children,
)
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, Lookup, TableSchema
from discreet.plan.model.types import Type

Schemas = Mapping[str, TableSchema]


def own_rows(name: str, schemas: Schemas) -> Relation:
    """Returns the relation that reads a declared table."""
    schema = schemas[name]
    if schema.reach is not None:
        return LinkedTable(name, schema.reach.column, own_rows(schema.reach.table, schemas), schema.reach.key)
    if schema.period is not None:
        return BaseTable(name, schema.person, schema.period)
    return BaseTable(name, schema.parts or schema.unit)


def describe_own_rows(name: str, schemas: Schemas) -> tuple[Relation, TableSchema]:
    """Returns the relation that reads a declared table, and what is public about its rows."""
    return own_rows(name, schemas), describe_table(schemas[name], schemas)


def told_rows(name: str, schemas: Schemas) -> Relation | None:
    """Returns the relation that reads a declared table, if no column of its own is the id of its rows."""
    return own_rows(name, schemas) if schemas[name].unit == UNIT else None


def add_source(question: Question, schemas: Schemas) -> Question:
    """Returns the question with the rows it is about, if the table's own columns do not tell whose they are."""
    if question.source is not None:
        return question
    return replace(question, source=told_rows(question.table, schemas))


def describe_table(schema: TableSchema, schemas: Schemas) -> TableSchema:
    """Returns the schema of a declared table as rows that have a column `UNIT`."""
    keys = {other.reach.link for other in schemas.values() if other.reach is not None}
    columns = {
        name: replace(column, link=f"{schema.name}.{name}")
        if not column.link and f"{schema.name}.{name}" in keys
        else column
        for name, column in schema.stored_columns.items()
    }
    if schema.unit is None:
        return replace(schema, columns=columns)
    dated = () if schema.period is None else (schema.person, schema.period.column)
    for name in {*schema.parts, *dated, schema.unit} & columns.keys():  # rows without an id do not count
        columns[name] = replace(columns[name], present=True)
    unit = replace(schema.columns[schema.unit], name=UNIT, bounds=None, keys=None, link="", present=True)
    owners = schema.ids - {UNIT}
    return replace(schema, columns={**columns, UNIT: unit}, unit=UNIT, owners=owners, people=name_units(schema))


def name_units(schema: TableSchema) -> str:
    """Returns what the units of a declared table are called."""
    if schema.unit is None:
        return "row"
    own = " and ".join(schema.parts) if schema.parts else schema.unit
    return schema.people or own


def unit_column(schema: TableSchema) -> ColumnSchema:
    """Returns the id of the units of a table, as a column `UNIT` of tables that reach them."""
    kind = Type.TEXT if schema.parts or schema.unit is None else schema.columns[schema.unit].type
    return ColumnSchema(name=UNIT, type=kind)


def same_id(pairs: Sequence[tuple[Expression, Expression]], one: TableSchema, other: TableSchema) -> bool:
    """Returns whether pairs of equal expressions say that two rows are of one unit.

    They do if they compare ids, all parts of an id, or the two ends of a declared step on the way to the unit.
    """
    links = [_link(a, one) for a, b in pairs if _link(a, one) and _link(a, one) == _link(b, other)]
    if any(_is_id(a, one) and _is_id(b, other) for a, b in pairs) or any(not _is_part(link) for link in links):
        return True
    return bool(one.parts) and set(part_links(one)) <= set(links)


def part_links(schema: TableSchema) -> tuple[str, ...]:
    """Returns the links of all parts of a unit's id."""
    return tuple(part_link(place) for place in range(len(schema.parts)))


def part_link(place: int) -> str:
    """Returns the link of one part."""
    return f"#{place}"


def is_part_of_id(expression: Expression, schema: TableSchema) -> bool:
    """Returns whether an expression is one of several columns that make the id of whose row it is."""
    return _is_part(_link(expression, schema))


def leads_to_id(expression: Expression, schema: TableSchema) -> bool:
    """Returns whether an expression is a key on the declared way to the unit: its rows are those of its one unit."""
    link = _link(expression, schema)
    return schema.unit is not None and bool(link) and not _is_part(link)


def follows_from_id(expression: Expression, schema: TableSchema) -> bool:
    """Returns whether an expression has one value in all rows of a unit, because the unit's id decides it.

    It reads columns of the id alone, by where they come from and not by what they are called: other columns can be
    called like a part of the id. None of them is a text: ids are compared in their normal form, so that one part of one
    unit may be written in several ways, and a function of what is written differs from row to row. Values of all other
    types are compared as they are.
    """
    read = list(columns_of(expression))
    return schema.unit is not None and bool(read) and all(_is_one_value(column, schema) for column in read)


def _is_one_value(column: ColumnRef, schema: TableSchema) -> bool:
    if Type.TEXT in (column.type, schema.columns[column.name].type):
        return False
    return _is_id(column, schema) or _is_part(_link(column, schema))


def _is_part(link: str) -> bool:
    return link.startswith("#") and link[1:].isdecimal()  # a table may be called #1, and no link to it is like this


def is_whole_id(expressions: Sequence[Expression], schema: TableSchema) -> bool:
    """Returns whether expressions are the id of whose row it is: one column, or all parts."""
    if len(expressions) == 1 and _is_id(expressions[0], schema):
        return True
    return bool(schema.parts) and set(part_links(schema)) == {_link(part, schema) for part in expressions}


def _is_id(expression: Expression, schema: TableSchema) -> bool:
    return isinstance(expression, ColumnRef) and expression.name in schema.ids


def _link(expression: Expression, schema: TableSchema) -> str:
    known = schema.columns.get(expression.name) if isinstance(expression, ColumnRef) else None
    return "" if known is None else known.link


def public_origin(relation: Relation, name: str, schemas: Schemas) -> tuple[tuple[int, ...], str, str] | None:
    """Returns where a column of a relation comes from as it is, if that is a public table.

    Returns:
        The way to the table through the relation, by which two readings of one table differ, its name, and the
        column's name there; None if the column is computed, or private.
    """
    found = _origin(relation, name, schemas)
    if found is None or not schemas[found[1].name].public:
        return None
    way, table, column = found
    return way, table.name, column


def is_present(expression: Expression, relation: Relation, schemas: Schemas) -> bool:
    """Returns whether an expression is NULL in no row with an id: the id itself, or what leads from a row to one."""
    schema = describe(relation, schemas)
    if schema.unit is None or not isinstance(expression, ColumnRef):
        return False
    if _is_id(expression, schema) or is_part_of_id(expression, schema):
        return True
    found = _origin(relation, expression.name, schemas) if leads_to_id(expression, schema) else None
    return found is not None and isinstance(found[1], LinkedTable) and found[1].column == found[2]


def _origin(
    relation: Relation, name: str, schemas: Schemas
) -> tuple[tuple[int, ...], BaseTable | LinkedTable, str] | None:
    """Returns the way to the declared rows that a column comes from unchanged, those rows, and its name there."""
    if isinstance(relation, BaseTable | LinkedTable):
        return (), relation, name
    if isinstance(relation, Select):
        known = {column.name: column.expression for column in relation.columns}
        inner = known.get(name)
        return _step(0, relation.source, inner.name, schemas) if isinstance(inner, ColumnRef) else None
    if isinstance(relation, Join):
        sides = (relation.left, relation.right)
        place = next((i for i, side in enumerate(sides) if name in describe(side, schemas).columns), None)
        return None if place is None else _step(place, sides[place], name, schemas)
    if isinstance(relation, WindowedRelation | SemiJoin | MarkJoin | Cut):
        return _step(0, relation.source, name, schemas)
    return None


def _step(
    place: int, inner: Relation, name: str, schemas: Schemas
) -> tuple[tuple[int, ...], BaseTable | LinkedTable, str] | None:
    found = _origin(inner, name, schemas)
    return None if found is None else ((place, *found[0]), *found[1:])


def is_unique(relation: Relation, names: AbstractSet[str], schemas: Schemas) -> bool:
    """Returns whether a declaration says that no two rows of a public relation agree in columns.

    Nothing about privacy rests on it: see `Join.single`.
    """
    if isinstance(relation, BaseTable):
        return any(set(one) <= names for one in schemas[relation.name].unique)
    if isinstance(relation, SemiJoin | MarkJoin):
        return is_unique(relation.source, names, schemas)
    if not isinstance(relation, Select):
        return False
    inner = {o.expression.name for o in relation.columns if o.name in names and isinstance(o.expression, ColumnRef)}
    return is_unique(relation.source, inner, schemas)


@singledispatch
def describe(relation: Relation, schemas: Schemas) -> TableSchema:
    """Returns the schema of a relation's rows, as if it were a declared table.

    Args:
        relation: what is read.
        schemas: the declared tables by name.

    Raises:
        UnsupportedQuery: if it is not local: the parser refuses such a relation at its place in the text, this refuses
            it however it was made.
    """
    del schemas
    raise InternalError(f"A {type(relation).__name__} has no description.")


@describe.register
def _(relation: BaseTable, schemas: Schemas) -> TableSchema:
    _require(relation == own_rows(relation.name, schemas), "A table is read with its own column of ids.")
    return describe_table(schemas[relation.name], schemas)


@describe.register
def _(relation: LinkedTable, schemas: Schemas) -> TableSchema:
    _require(relation == own_rows(relation.name, schemas), "A table is read along its own way to the unit.")
    return describe_table(schemas[relation.name], schemas)


@describe.register
def _(relation: Select, schemas: Schemas) -> TableSchema:
    inner = describe(relation.source, schemas)
    columns = {column.name: derive_column(column, inner) for column in relation.columns}
    owners = {column.name for column in relation.columns if owns(column.expression, inner)}
    return _with(inner, columns, owners)


@describe.register
def _(relation: WindowedRelation, schemas: Schemas) -> TableSchema:
    inner = describe(relation.source, schemas)
    _require(inner.unit is not None, "Rows are ranked person by person, and here no person has several.")
    made = {window.name: _describe_window(window, inner) for window in relation.windows}
    return replace(inner, columns={**inner.columns, **made})


@describe.register
def _(relation: Cut, schemas: Schemas) -> TableSchema:
    inner = describe(relation.source, schemas)
    _require(inner.unit is not None, "Rows are cut person by person, and here no person has several.")
    return inner


@describe.register
def _(relation: UnitAggregation, schemas: Schemas) -> TableSchema:
    inner = describe(relation.source, schemas)
    _require(inner.unit is not None, "Rows are folded person by person, and here no person has several.")
    columns = {key.name: derive_column(key, inner) for key in relation.keys}
    columns |= {fold.name: _describe_fold(fold, inner) for fold in relation.folds}
    described = _with(inner, columns, set())
    return described if relation.keys else replace(described, limits=Limits())


@describe.register
def _(relation: Join, schemas: Schemas) -> TableSchema:
    left, right = describe(relation.left, schemas), describe(relation.right, schemas)
    alone = not left.public and left.unit is None
    _require(not alone or relation.single, "A join could repeat rows that are people of their own.")
    _require(not relation.single or right.public, "One row of several is taken of public tables only.")
    _require(right.public or _same_people(left, right), _TOGETHER)
    others = right.columns
    if relation.outer:
        found = _finds_all(relation, left, schemas)
        others = {
            name: replace(column, link="", present=column.has_values and found) for name, column in others.items()
        }
    columns = {**others, **left.columns}
    equal = [part.name for pair in relation.on for part in pair if isinstance(part, ColumnRef)]
    for name in () if relation.outer else equal:  # NULL equals nothing
        columns[name] = replace(columns[name], present=True)
    owners = left.owners if relation.outer else left.owners | right.owners  # NULL is no id
    return replace(left, columns=columns, owners=owners)


def _finds_all(relation: Join, left: TableSchema, schemas: Schemas) -> bool:
    """Returns whether a public table has a row for each declared key of the column by which it is joined."""
    if len(relation.on) != 1:
        return False
    ((own, other),) = relation.on
    origin = public_origin(relation.right, other.name, schemas) if isinstance(other, ColumnRef) else None
    known = left.columns.get(own.name) if isinstance(own, ColumnRef) else None
    look_up = None if origin is None or not _is_whole_table(relation.right) else schemas[origin[1]].lookup
    if origin is None or look_up is None or known is None or known.keys is None:
        return False
    return set(known.keys) <= _read_values(look_up, origin[2])


def _is_whole_table(relation: Relation) -> bool:
    """Returns whether a relation has all rows of a table, each once."""
    if isinstance(relation, Select):
        return relation.where is None and _is_whole_table(relation.source)
    return isinstance(relation, BaseTable)


@lru_cache(maxsize=64)  # a relation is described many times; the table is read once as long as it is registered
def _read_values(look_up: Lookup, column: str) -> frozenset[Value]:
    """Returns the values of a column of a public table; none if they are many."""
    return frozenset(value for _, value in look_up((), column) or ())


@describe.register
def _(relation: RelationUnion, schemas: Schemas) -> TableSchema:
    parts = [describe(source, schemas) for source in relation.sources]
    public = all(part.public for part in parts)
    _require(public or all(_same_people(parts[0], part) for part in parts), _TOGETHER)
    columns = {name: _hull([part.columns[name] for part in parts]) for name in parts[0].columns}
    return replace(parts[0], columns=columns, owners=frozenset.intersection(*(part.owners for part in parts)))


@describe.register
def _(relation: SemiJoin, schemas: Schemas) -> TableSchema:
    source, other = describe(relation.source, schemas), describe(relation.other, schemas)
    _require(other.public or _same_people(source, other), _TOGETHER)
    return source


@describe.register
def _(relation: MarkJoin, schemas: Schemas) -> TableSchema:
    source, other = describe(relation.source, schemas), describe(relation.other, schemas)
    _require(other.public or _same_people(source, other), _TOGETHER)
    mark = ColumnSchema(name=relation.name, type=Type.BOOL)
    return replace(source, columns={**source.columns, relation.name: mark})


_TOGETHER = "Protected tables are read together only about the same people, person by person."


def _same_people(one: TableSchema, other: TableSchema) -> bool:
    known = one.unit is not None and other.unit is not None and not one.public and not other.public
    return known and one.account == other.account


def _require(is_local: bool, reason: str) -> None:
    if not is_local:
        raise UnsupportedQuery(reason, "Ask about the tables one by one.")


def owns(expression: Expression, schema: TableSchema) -> bool:
    """Returns whether an expression is the id of whose row it is."""
    return isinstance(expression, ColumnRef) and expression.name in schema.ids


def derive_column(column: Output, schema: TableSchema) -> ColumnSchema:
    """Returns the schema of a computed column; what is only renamed keeps its public keys."""
    expression = column.expression
    known = schema.columns.get(expression.name) if isinstance(expression, ColumnRef) else None
    if known is not None:
        return replace(known, name=column.name)
    limits, held = bounds(expression, schema), bounds(expression, schema, floored=False)
    limited = limits != held or any(schema.columns[part.name].limited for part in columns_of(expression))
    return ColumnSchema(
        name=column.name, type=expression.type, bounds=limits, limited=limited, present=_has_value(expression, schema)
    )


def _has_value(expression: Expression, schema: TableSchema) -> bool:
    """Returns whether an expression is NULL in no row whose columns are what they are known to be."""
    known = {part.name: schema.columns[part.name] for part in columns_of(expression)}
    sets = {name: replace(ValueSet.any_of(c.type), nullable=False) for name, c in known.items() if c.present}
    return not possible(expression, sets).nullable


def _with(inner: TableSchema, columns: dict[str, ColumnSchema], owners: set[str]) -> TableSchema:
    if inner.unit is not None:
        columns[UNIT] = replace(inner.columns[inner.unit], name=UNIT, bounds=None, keys=None)
    unit = None if inner.unit is None else UNIT
    return replace(inner, columns=columns, unit=unit, owners=frozenset(owners))


def _describe_fold(fold: Fold, inner: TableSchema) -> ColumnSchema:
    """Describes a fold: a unit counts with at most as many rows as its limits allow; one of its values keeps bounds.

    But it says no longer what it has in common with other tables: of several links it is one.
    """
    if fold.argument is not None and fold.kind in _ONE_OF_ITS_VALUES:
        made = derive_column(Output(fold.name, fold.argument), inner)
        return replace(made, link="", present=made.present and fold.by is None)
    counts = fold.kind.startswith("count")
    return ColumnSchema(name=fold.name, type=fold.type, bounds=_total(fold, inner), limited=True, present=counts)


_ONE_OF_ITS_VALUES = ("min", "max", "arg_min", "arg_max", "first", "last")


def _describe_window(window: Window, inner: TableSchema) -> ColumnSchema:
    """Bounds a window: places are counted up to the same limit; values of other rows keep to their own bounds."""
    limited = window.kind not in ("lag", "lead", "first", "last", "min", "max", "mean")
    counts = window.kind in ("row_number", "rank", "dense_rank", "count", "count_values")
    return ColumnSchema(
        name=window.name, type=window.type, bounds=_total(window, inner), limited=limited, present=counts
    )


def _total(made: Fold | Window, inner: TableSchema) -> ColumnBounds | None:
    most = inner.limits.most_rows
    if made.argument is None or made.kind.startswith("count"):
        return ColumnBounds(Fraction(0), Fraction(most))
    limits = bounds(made.argument, inner)
    if made.kind != "sum" or limits is None:
        return limits
    return ColumnBounds(min(limits.low * most, limits.low), max(limits.high * most, limits.high))


def _hull(columns: list[ColumnSchema]) -> ColumnSchema:
    limits = [column.bounds for column in columns]
    known = [limit for limit in limits if limit is not None]
    around = ColumnBounds(min(b.low for b in known), max(b.high for b in known)) if len(known) == len(limits) else None
    same = all(column.keys == columns[0].keys for column in columns)
    limited = any(column.limited for column in columns)
    link = columns[0].link if len({column.link for column in columns}) == 1 else ""
    digits = [column.decimals for column in columns if column.decimals is not None]
    return replace(
        columns[0],
        bounds=around,
        keys=columns[0].keys if same else None,
        decimals=max(digits) if len(digits) == len(columns) else None,
        limited=limited,
        link=link,
        present=all(column.present for column in columns),
        files=columns[0].files if len({column.files for column in columns}) == 1 else None,
    )


def folds_in(relation: Relation) -> Iterator[UnitAggregation | WindowedRelation]:
    """Yields what computes something of one person's rows, in a relation."""
    if isinstance(relation, UnitAggregation | WindowedRelation):
        yield relation
    for child in children(relation):
        yield from folds_in(child)


def lacks_bounds(folded: UnitAggregation | WindowedRelation, schemas: Mapping[str, TableSchema]) -> bool:
    """Returns whether it adds up a column that has no bounds."""
    rows = describe(folded.source, schemas)
    made = folded.folds if isinstance(folded, UnitAggregation) else folded.windows
    added = [fold.argument for fold in made if fold.kind in ("sum", "mean")]
    return any(x is not None and bounds(x, rows) is None for x in added)
