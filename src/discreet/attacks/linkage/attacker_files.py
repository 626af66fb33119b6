"""Files that an attack on the command line is given: numbers under a header, and ratings with dates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.linkage.attacker_tables import Column, Columns, columns_of, select_columns
from discreet.errors import InvalidParameter


def read_numbers(file: Path) -> NDArray[np.float64]:
    """Returns a file of numbers under a header as a matrix; an empty cell is NaN."""
    return np.column_stack([numbers_in(cells, name) for name, cells in columns_of(file).items()])


def numbers_in(cells: Column, name: str) -> NDArray[np.float64]:
    """Returns the numbers of a column; an empty cell is NaN."""
    try:
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    except ValueError:
        raise InvalidParameter(name, "text", "to be a column of numbers", "Repair or drop the column.") from None


def read_ratings(file: Path, day: str, seconds: bool) -> Columns:
    """Returns a table of ratings with dates in days."""
    columns = columns_of(file)
    if seconds:
        (moments,) = select_columns(columns, [day], parameter="--day")
        columns[day] = moments.astype(float) / (24 * 60 * 60)
    return columns
