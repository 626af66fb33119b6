"""What other libraries call lazy: tables that are read when they are asked for, each as files or as a frame of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.curator.catalog import duckdb_relations
from discreet.engines.sources import arrow_datasets, ibis_tables, polars_scans

LIBRARIES: Mapping[str, Callable[[Any], Any]] = {
    "duckdb": duckdb_relations.table_of,
    "ibis": ibis_tables.table_of,
    "polars": polars_scans.table_of,
    "pyarrow": arrow_datasets.table_of,
}
"""Who reads a table, by the library that it is of."""


def stored_table(given: Any) -> Any:
    """Returns the files or the frame that a lazy table stands for; everything else as it is.

    Raises:
        InvalidParameter: if it computes anything.
    """
    read = LIBRARIES.get(type(given).__module__.partition(".")[0].lstrip("_"))
    return given if read is None else read(given)


class LazyTables:
    """The lazy tables that a steward gave, each with what it stands for: the same one is the same data."""

    def __init__(self) -> None:
        self._known: list[tuple[Any, Any]] = []

    def resolve(self, given: Any) -> Any:
        """Returns the files or the frame that a lazy table stands for; everything else as it is."""
        for known, stored in self._known:
            if known is given:
                return stored
        found = stored_table(given)
        if found is not given:
            self._known.append((given, found))
        return found
