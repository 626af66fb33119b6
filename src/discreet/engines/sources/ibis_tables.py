"""Tables of ibis: those in memory with chosen and renamed columns; what a backend computes is refused, as a view is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from discreet.engines.sources.stored_frames import StoredFrame, computes
from discreet.lazy import load

_PLAIN = "to be a table in memory with chosen and renamed columns"


def table_of(given: Any) -> Any:
    """Returns the rows of a table in memory; what is no table is returned as it is.

    Raises:
        InvalidParameter: if it computes anything, or its rows are in a backend, where a table may be a view.
    """
    ibis = load("ibis", "A table of ibis")
    if not isinstance(given, ibis.Table):
        return given
    operations = load("ibis.expr.operations", "A table of ibis")
    node, chosen = given.op(), {name: name for name in given.columns}
    while type(node) in (operations.Project, operations.DropColumns):
        below = _names_below(node, operations)
        if below is None:
            raise computes(given, _PLAIN)
        chosen = {name: below[stored] for name, stored in chosen.items()}
        node = node.parent
    if type(node) is not operations.InMemoryTable:
        raise computes(given, _PLAIN)
    return StoredFrame(given.schema().to_pyarrow(), partial(_rows, node, chosen))


def _names_below(node: Any, operations: Any) -> Mapping[str, str] | None:
    """Returns for each column of a node its name below; None if one is computed."""
    if type(node) is operations.DropColumns:
        return {name: name for name in node.schema.names}
    fields = node.values.items()
    if not all(type(field) is operations.Field and field.rel == node.parent for _, field in fields):
        return None
    return {name: field.name for name, field in fields}


def _rows(node: Any, chosen: Mapping[str, str]) -> Any:
    return node.data.to_pyarrow(node.schema).select(list(chosen.values())).rename_columns(list(chosen))
