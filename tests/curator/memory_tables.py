"""The same rows as every kind of table that lies in memory, and those that can be changed in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import arro3.core as arro3
import nanoarrow
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from tests.engines.lakes import table

Row = Mapping[str, Any]

STORED = {"patient": "i8", "ward": object, "age": "f8", "charge": "f8", "kind": object}
"""Elements of numpy's arrays; NaN stands for NULL, since arrays of whole numbers have none."""


class Reread:
    """An object of a library that nobody knows: it has the Arrow PyCapsule interface, and nothing else."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


class Once(Reread):
    """One that has rows only the first time it is read, as a wrapped generator has."""

    def __init__(self, rows: pa.Table) -> None:
        super().__init__(rows)
        self._reader = rows.to_reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.RecordBatchReader.from_batches(self.rows.schema, self._reader).__arrow_c_stream__(requested_schema)


def columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in STORED}


def arrays(rows: Sequence[Row]) -> dict[str, Any]:
    return {name: _array(cells, STORED[name]) for name, cells in columns(rows).items()}


def _array(cells: list[Any], kind: Any) -> Any:
    found = np.empty(len(cells), dtype=kind)
    for place, cell in enumerate(cells):
        found[place] = np.nan if cell is None and kind == "f8" else cell
    return found


def structured(rows: Sequence[Row]) -> Any:
    kinds: list[Any] = [*STORED.items()]
    found = np.empty(len(rows), dtype=kinds)
    for name, cells in arrays(rows).items():
        found[name] = cells
    return found


def _of_columns(make: Callable[[dict[str, list[Any]]], Any]) -> Callable[[Sequence[Row]], Any]:
    return lambda rows: make(columns(rows))


IN_MEMORY: Mapping[str, Callable[[Sequence[Row]], Any]] = {
    "pandas": _of_columns(pd.DataFrame),
    "pandas with objects": _of_columns(lambda cells: pd.DataFrame(cells, dtype=object)),
    "polars": lambda rows: pl.DataFrame(pl.from_arrow(table(rows))),
    "arrow table": table,
    "arrow batch": lambda rows: table(rows).combine_chunks().to_batches()[0],
    "any stream": lambda rows: Reread(table(rows)),
    "arro3": lambda rows: arro3.Table.from_arrow(table(rows)),
    "nanoarrow": lambda rows: nanoarrow.Array(table(rows).combine_chunks().to_batches()[0]),
    "a dictionary of lists": columns,
    "a dictionary of tuples": lambda rows: {name: tuple(cells) for name, cells in columns(rows).items()},
    "a dictionary of arrays": arrays,
    "a list of dictionaries": list,
    "a tuple of dictionaries": tuple,
    "a structured array": structured,
    "a record array": lambda rows: structured(rows).view(np.recarray),
}
"""Kinds of tables in memory, as they are made of rows."""


def forget(found: Any) -> None:
    """Overwrites or removes all that can be changed in place."""
    if isinstance(found, pd.DataFrame):
        found["age"] = 0
        found.loc[:, "ward"] = "A"
        found["patient"] = 1
    elif isinstance(found, dict):
        for cells in found.values():
            if isinstance(cells, np.ndarray):
                cells[:] = cells[0]
            else:
                cells.clear()
        found.clear()
    elif isinstance(found, list):
        for row in found:
            row.clear()
        found.clear()
    else:
        found[:] = found[0]


CHANGEABLE = (
    "pandas",
    "pandas with objects",
    "a dictionary of lists",
    "a dictionary of arrays",
    "a list of dictionaries",
    "a structured array",
    "a record array",
)
