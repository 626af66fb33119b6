"""Tables as attackers hold them: columns by name, whatever they came in.

A path to a CSV or Parquet file, a frame of pandas, polars or Arrow, a mapping of columns, or a list of rows as
mappings. A CSV cell stays the text it is; a missing one is None.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.lazy import nw

Column = NDArray[Any]
Columns = dict[str, Column]


def columns_of(table: Any) -> Columns:
    """Returns the columns of a table, all of one length.

    Raises:
        InvalidParameter: if it is no table, or its columns differ in length.

    >>> {name: list(column) for name, column in columns_of([{"zip": "02139", "sex": "F"}]).items()}
    {'zip': ['02139'], 'sex': ['F']}
    """
    if isinstance(table, str | Path):
        found = _file(Path(table))
    elif isinstance(table, Mapping):
        found = {str(name): _column(values) for name, values in table.items()}
    elif isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        found = _rows(table)
    else:
        found = _frame(table)
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) != 1:
        raise InvalidParameter("table", lengths, "to have columns of one length, at least one", "Repair the table.")
    return found


def chosen(columns: Columns, names: Iterable[str], *, parameter: str) -> list[Column]:
    """Returns some columns, in order.

    Raises:
        InvalidParameter: if there is no such column, or none is named.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    missing = [name for name in wanted if name not in columns]
    if missing or not wanted:
        hint = f"The table has: {', '.join(columns)}."
        raise InvalidParameter(parameter, missing or wanted, "to name columns of the table", hint)
    return [columns[name] for name in wanted]


def codes(columns: Sequence[Column]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Returns for each row the number of its class (rows equal in all columns), and the size of each class.

    None equals None; NaN equals NaN. Classes are numbered in an order of their own.
    """
    number = np.zeros(len(columns[0]), dtype=np.intp)
    for column in columns:
        values: dict[Any, int] = {}
        part = np.fromiter((values.setdefault(_same(value), len(values)) for value in column), np.intp, len(column))
        _, number = np.unique(number * len(values) + part, return_inverse=True)
    return number, np.bincount(number)


def _same(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124 - NaN is not itself


def _column(values: Any) -> Column:
    if isinstance(values, np.ndarray):
        return values
    listed = list(values)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column


def _rows(table: Sequence[Mapping[str, Any]]) -> Columns:
    names = dict.fromkeys(name for row in table for name in row)
    return {name: _column([row.get(name) for row in table]) for name in names}


def _file(path: Path) -> Columns:
    if not path.is_file():
        raise InvalidParameter("table", str(path), "to be an existing file", "Name a CSV or a Parquet file.")
    if path.suffix.lower() in (".parquet", ".pq"):
        return _parquet(path)
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter="\t" if ".tsv" in path.suffixes else ",")
        names = next(reader, [])
        rows = [[cell or None for cell in row] for row in reader if len(row) == len(names)]
    return {name: _column([row[place] for row in rows]) for place, name in enumerate(names)}


def _parquet(path: Path) -> Columns:
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(path))
        rows = relation.fetchall()
        return {name: _column([row[place] for row in rows]) for place, name in enumerate(relation.columns)}


def _frame(table: Any) -> Columns:
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError as error:
        raise InvalidParameter(
            "table",
            type(table).__name__,
            "to be a path, a frame, a mapping of columns or a list of rows",
        ) from error
    return {name: _column(frame[name].to_list()) for name in frame.columns}
