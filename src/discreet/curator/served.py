"""A curator inside a service: its ledger is kept elsewhere, and some callers see only a part of its tables."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Container
from copy import copy
from fractions import Fraction
from typing import Any

from discreet.curator.config.enrolment import declared_in, enrol
from discreet.curator.config.toml_file import File
from discreet.curator.curator import Curator
from discreet.engines.abstract_engine import Engine
from discreet.engines.by_source import engine_at
from discreet.ledger import Ledger
from discreet.measurement.probes.probes import read_by
from discreet.plan.model.schema import ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours

_RELATIONS = {
    Neighbours.ADD_REMOVE: "added or removed",
    Neighbours.REPLACE: "replaced by another person",
}


def open_curator(path: File, ledger: Ledger, *, engine: Engine) -> Curator:
    """Returns a curator of what a discreet.toml declares, with a ledger and an engine of the caller's own.

    Budgets and caps are those of the ledger, where it has any. Of buckets and web servers it reads those that the file
    lists, also for tables that are declared later.

    Raises:
        InvalidParameter: if something in the file does not fit.
    """
    declared = declared_in(path, opening=True)
    engine.allow_objects(declared.objects or ())
    curator = Curator(ledger, engine=engine_at(declared.engine) or engine, today=declared.today)
    enrol(declared, curator._catalog, ledger, ledger_decides=True)
    return curator


def restrict_curator(curator: Curator, tables: Container[str]) -> Curator:
    """Returns a curator of the same ledger in which only some tables are found; the others do not exist for it."""
    part = copy(curator)
    part._catalog = curator._catalog.showing(tables)
    part._measure_with(curator._engine, curator._releaser, salt=None)
    return part


def tables_of(curator: Curator, question: str) -> set[str]:
    """Returns the names of the tables that a question reads.

    Raises:
        UnsupportedQuery: if the question is refused.
    """
    catalog = curator._catalog
    return {schema.name for schema in read_by(catalog.parse(question), catalog.schemas)}


def source_of(curator: Curator, table: str) -> Any:
    """Returns where the rows of a protected table are: for the steward's own eyes.

    Raises:
        UnknownTable: if there is no such table.
    """
    return curator._catalog.source(table)


def table_facts(curator: Curator) -> list[dict[str, Any]]:
    """Returns the public facts about the tables: what was declared, and nothing that was read."""
    return [_facts(schema) for _, schema in sorted(curator._catalog.schemas.items())]


def _facts(schema: TableSchema) -> dict[str, Any]:
    return {
        "name": schema.name,
        "protected": not schema.public,
        "account": schema.account,
        "unit": _unit(schema),
        "unit_columns": sorted(schema.ids & schema.stored_columns.keys()),
        "neighbours": None if schema.public else schema.neighbours.value,
        "version": schema.version,
        "limits": _limits(schema),
        "max_groups": schema.limits.groups,
        "max_rows": schema.limits.rows,
        "private_groups": schema.private_groups,
        "columns": [_column(column) for column in schema.stored_columns.values()],
    }


def _unit(schema: TableSchema) -> str:
    """Returns a sentence that says who is protected."""
    if schema.public:
        return "No one: the table is public."
    relation = _RELATIONS[schema.neighbours]
    if schema.unit is None:
        return f"One person (one row), {relation}."
    columns = ", ".join(schema.parts or sorted(schema.ids & schema.stored_columns.keys())) or schema.people
    return f"One person (all rows with the same {columns}), {relation}."


def _limits(schema: TableSchema) -> str:
    """Returns how many rows of one person count, in words."""
    held, searched = schema.limits, schema.private_limits
    if searched is not None and not searched.found:
        return "found privately, before the first query"
    if held.total is not None:
        return f"up to {held.total:,} rows per unit"
    return f"up to {held.groups:,} groups per unit, up to {held.rows:,} rows in each group"


def _column(column: ColumnSchema) -> dict[str, Any]:
    ends = None if column.bounds is None or column.limited else (column.bounds.low, column.bounds.high)
    bounds = None if ends is None else [_end(end, column.type) for end in ends]
    keys = None if column.keys is None else [_value(key) for key in column.keys]
    return {"name": column.name, "type": column.type.value, "bounds": bounds, "keys": keys}


def _end(end: Fraction, kind: Type) -> Any:
    """Returns an end of declared bounds; those of days and moments are numbers of days, 1 for 0001-01-01."""
    if kind.is_number:
        return int(end) if end.denominator == 1 else float(end)
    moment = dt.datetime.fromordinal(math.floor(end)) + dt.timedelta(days=float(end - math.floor(end)))
    return moment.date().isoformat() if kind is Type.DATE else moment.isoformat()


def _value(key: Any) -> Any:
    return key.isoformat() if isinstance(key, dt.date) else key
