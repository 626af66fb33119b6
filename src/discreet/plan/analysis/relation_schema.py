"""What is public about the columns of a relation: types, bounds, keys, whose rows they are; from declarations alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import singledispatch

from discreet.errors import InternalError, UnsupportedQuery
from discreet.plan.analysis.owned_rows import Schemas, described, own_rows
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.expressions.size import columns as columns_of
from discreet.plan.model.nodes import UNIT, Column, Expression, Output, Relation
from discreet.plan.model.relations import (
    Fold,
    Join,
    Marked,
    Matched,
    PerUnit,
    Reached,
    Select,
    Table,
    Union,
    Window,
    Windowed,
)
from discreet.plan.model.schema import Bounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type


@singledispatch
def describe(relation: Relation, schemas: Schemas) -> TableSchema:
    """The schema of a relation's rows, as if it were a declared table.

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
def _(relation: Table, schemas: Schemas) -> TableSchema:
    _require(relation == own_rows(relation.name, schemas), "A table is read with its own column of ids.")
    return described(schemas[relation.name], schemas)


@describe.register
def _(relation: Reached, schemas: Schemas) -> TableSchema:
    _require(relation == own_rows(relation.name, schemas), "A table is read along its own way to the unit.")
    return described(schemas[relation.name], schemas)


@describe.register
def _(relation: Select, schemas: Schemas) -> TableSchema:
    inner = describe(relation.source, schemas)
    columns = {column.name: derived(column, inner) for column in relation.columns}
    owners = {column.name for column in relation.columns if owns(column.expression, inner)}
    return _with(inner, columns, owners)


@describe.register
def _(relation: Windowed, schemas: Schemas) -> TableSchema:
    inner = describe(relation.source, schemas)
    _require(inner.unit is not None, "Rows are ranked person by person, and here nobody has several.")
    made = {window.name: _windowed(window, inner) for window in relation.windows}
    return replace(inner, columns={**inner.columns, **made})


@describe.register
def _(relation: PerUnit, schemas: Schemas) -> TableSchema:
    inner = describe(relation.source, schemas)
    _require(inner.unit is not None, "Rows are folded person by person, and here nobody has several.")
    columns = {key.name: derived(key, inner) for key in relation.keys}
    columns |= {fold.name: _folded(fold, inner) for fold in relation.folds}
    described = _with(inner, columns, set())
    return described if relation.keys else replace(described, limits=Limits())


@describe.register
def _(relation: Join, schemas: Schemas) -> TableSchema:
    left, right = describe(relation.left, schemas), describe(relation.right, schemas)
    _require(left.public or left.unit is not None, "A join could repeat rows that are people of their own.")
    _require(right.public or _same_people(left, right), _TOGETHER)
    others = right.columns
    if relation.outer:
        others = {name: replace(column, link="") for name, column in others.items()}
    columns = {**others, **left.columns}
    owners = left.owners if relation.outer else left.owners | right.owners  # NULL is nobody's id
    return replace(left, columns=columns, owners=owners)


@describe.register
def _(relation: Union, schemas: Schemas) -> TableSchema:
    parts = [describe(source, schemas) for source in relation.sources]
    public = all(part.public for part in parts)
    _require(public or all(_same_people(parts[0], part) for part in parts), _TOGETHER)
    columns = {name: _hull([part.columns[name] for part in parts]) for name in parts[0].columns}
    return replace(parts[0], columns=columns, owners=frozenset.intersection(*(part.owners for part in parts)))


@describe.register
def _(relation: Matched, schemas: Schemas) -> TableSchema:
    source, other = describe(relation.source, schemas), describe(relation.other, schemas)
    _require(other.public or _same_people(source, other), _TOGETHER)
    return source


@describe.register
def _(relation: Marked, schemas: Schemas) -> TableSchema:
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
    """Whether an expression is the id of whose row it is."""
    return isinstance(expression, Column) and expression.name in schema.ids


def derived(column: Output, schema: TableSchema) -> ColumnSchema:
    """A computed column; what is only renamed keeps its public keys."""
    expression = column.expression
    known = schema.columns.get(expression.name) if isinstance(expression, Column) else None
    if known is not None:
        return replace(known, name=column.name)
    limited = any(schema.columns[part.name].limited for part in columns_of(expression))
    return ColumnSchema(name=column.name, type=expression.type, bounds=bounds(expression, schema), limited=limited)


def _with(inner: TableSchema, columns: dict[str, ColumnSchema], owners: set[str]) -> TableSchema:
    if inner.unit is not None:
        columns[UNIT] = replace(inner.columns[inner.unit], name=UNIT, bounds=None, keys=None)
    unit = None if inner.unit is None else UNIT
    return replace(inner, columns=columns, unit=unit, owners=frozenset(owners))


def _folded(fold: Fold, inner: TableSchema) -> ColumnSchema:
    """A unit counts with at most as many rows as its limits allow; one of its values is what that is in any row.

    But it says no longer what it has in common with other tables: of several links it is one.
    """
    if fold.argument is not None and fold.kind in _ONE_OF_ITS_VALUES:
        return replace(derived(Output(fold.name, fold.argument), inner), link="")
    return ColumnSchema(name=fold.name, type=fold.type, bounds=_total(fold, inner), limited=True)


_ONE_OF_ITS_VALUES = ("min", "max", "arg_min", "arg_max", "first", "last")


def _windowed(window: Window, inner: TableSchema) -> ColumnSchema:
    """Places are counted up to the same limit; values of other rows keep to the bounds of their own."""
    limited = window.kind not in ("lag", "lead", "first", "last", "min", "max", "mean")
    return ColumnSchema(name=window.name, type=window.type, bounds=_total(window, inner), limited=limited)


def _total(made: Fold | Window, inner: TableSchema) -> Bounds | None:
    most = inner.limits.groups * inner.limits.rows
    if made.argument is None or made.kind.startswith("count"):
        return Bounds(Fraction(0), Fraction(most))
    limits = bounds(made.argument, inner)
    if made.kind != "sum" or limits is None:
        return limits
    return Bounds(min(limits.low * most, limits.low), max(limits.high * most, limits.high))


def _hull(columns: list[ColumnSchema]) -> ColumnSchema:
    limits = [column.bounds for column in columns]
    known = [limit for limit in limits if limit is not None]
    around = Bounds(min(b.low for b in known), max(b.high for b in known)) if len(known) == len(limits) else None
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
    )
