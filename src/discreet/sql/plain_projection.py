"""Queries that do nothing but choose and rename the columns of one table or of Parquet files: whether a text is one.

Nothing else of such a text is ever run. What is not listed here is no plain projection, whatever it means.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from discreet.dataclass import dataclass

_SCANS = ("read_parquet", "parquet_scan")
_HARMLESS = ("binary_as_string", "file_row_number", "filename", "union_by_name")
"""Options of a scan that add or change no column if they are off."""

_HIVE = "hive_partitioning"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainProjection:
    """Columns of a table or of files.

    Args:
        columns: for each column, in order, the name that it has below; None for all, as they are.
        table: the parts of a table's name; empty if it is read from files.
        paths: of files.
        is_partitioned: whether folders name values; None if the text does not say it.
    """

    columns: Mapping[str, str] | None
    table: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    is_partitioned: bool | None = None


def plain_projection(text: str) -> PlainProjection | None:
    """Returns what a query of DuckDB reads, if it does nothing but choose and rename columns; None if it does more.

    >>> plain_projection("SELECT age, ward AS w FROM main.visits")
    PlainProjection(columns={'age': 'age', 'w': 'ward'}, table=('main', 'visits'), paths=(), is_partitioned=None)
    >>> plain_projection("SELECT age + 1 AS age FROM visits") is None
    True
    """
    try:
        found = sqlglot.parse(text, dialect="duckdb")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    return _select(found[0]) if len(found) == 1 else None


def _arguments_given(node: exp.Expression) -> dict[str, object]:
    """Returns the parts of a node that are there."""
    return {name: part for name, part in node.args.items() if part is not None and part is not False and part != []}


def _select(node: object) -> PlainProjection | None:
    if not isinstance(node, exp.Select) or _arguments_given(node).keys() != {"expressions", "from_"}:
        return None
    source = node.args["from_"]
    below = _source(source.this) if _arguments_given(source).keys() == {"this"} else None
    columns = _columns(node.expressions)
    if below is None or columns is None:
        return None
    return _on_top(columns, below)


def _on_top(columns: Mapping[str, str], below: PlainProjection) -> PlainProjection | None:
    """Returns columns of what is below; no columns stand for all of them."""
    found: Mapping[str, str] | None = columns
    if not columns:
        found = below.columns
    elif below.columns is not None:
        known = {name.casefold(): stored for name, stored in below.columns.items()}
        if not all(stored.casefold() in known for stored in columns.values()):
            return None
        found = {name: known[stored.casefold()] for name, stored in columns.items()}
    return PlainProjection(columns=found, table=below.table, paths=below.paths, is_partitioned=below.is_partitioned)


def _columns(shown: list[exp.Expression]) -> dict[str, str] | None:
    """Returns columns by their new names, none for a star; None if something else is shown."""
    if len(shown) == 1 and isinstance(shown[0], exp.Star) and not _arguments_given(shown[0]):
        return {}
    found = dict[str, str]()
    for one in shown:
        column, name = (one.this, one.alias) if isinstance(one, exp.Alias) else (one, None)
        if not isinstance(column, exp.Column) or _arguments_given(column).keys() != {"this"}:
            return None
        if not isinstance(column.this, exp.Identifier):
            return None
        found[name or column.name] = column.name
    return found if len({name.casefold() for name in found}) == len(shown) else None


def _source(node: object) -> PlainProjection | None:
    if isinstance(node, exp.Subquery):
        return _select(node.this) if _arguments_given(node).keys() <= {"this", "alias"} and _is_name(node) else None
    if not isinstance(node, exp.Table) or not _arguments_given(node).keys() <= {"this", "db", "catalog", "alias"}:
        return None
    if not _is_name(node):
        return None
    parts = [part for part in (node.args.get("catalog"), node.args.get("db"), node.this) if part]
    if all(isinstance(part, exp.Identifier) for part in parts):
        return PlainProjection(columns=None, table=tuple(part.name for part in parts))
    return _scan(node.this) if len(parts) == 1 else None


def _is_name(node: exp.Expression) -> bool:
    """Returns whether an alias is a name, and does not name columns."""
    alias = node.args.get("alias")
    return alias is None or _arguments_given(alias).keys() == {"this"}


def _scan(node: exp.Expression) -> PlainProjection | None:
    """Returns the files of a function that reads Parquet, if no option of its adds or changes a column."""
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else ""
    if name.lower() not in _SCANS or not node.expressions:
        return None
    place, *options = node.expressions
    paths = place.expressions if isinstance(place, exp.Array) else [place]
    if not paths or not all(isinstance(path, exp.Literal) and path.is_string for path in paths):
        return None
    values = dict[str, bool]()
    for option in options:
        if not isinstance(option, exp.PropertyEQ | exp.EQ) or not isinstance(option.expression, exp.Boolean):
            return None
        values[option.this.name.lower()] = option.expression.this
    hive = values.pop(_HIVE, None)
    if any(values.values()) or not values.keys() <= set(_HARMLESS):
        return None
    return PlainProjection(columns=None, paths=tuple(path.name for path in paths), is_partitioned=hive)
