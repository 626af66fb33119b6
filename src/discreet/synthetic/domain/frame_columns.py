"""Columns of frames of several libraries, and frames made of columns.

What is refused is refused for types, names and lengths; no value is a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.lazy import load, nw, pa

Column = Sequence[Any] | NDArray[Any]

_FRAMES = "Pass a frame of pandas, polars or PyArrow, or a dict of lists."


class FrameKind(Enum):
    """The library of a frame."""

    DICT = "dict"
    PANDAS = "pandas"
    POLARS = "polars"
    PYARROW = "pyarrow"


def kind_of(frame: Any) -> FrameKind:
    """Returns the library of a frame; one that is not among them is given back as a PyArrow table.

    Raises:
        InvalidParameter: if it is no frame.

    >>> kind_of({"a": [1, 2]})
    <FrameKind.DICT: 'dict'>
    """
    if isinstance(frame, Mapping):
        return FrameKind.DICT
    if isinstance(frame, np.ndarray | list | tuple | str) or not nw.dependencies.is_into_dataframe(frame):
        raise InvalidParameter("frame", type(frame).__name__, "to be a table with named columns", _FRAMES)
    if nw.dependencies.is_pandas_dataframe(frame):
        return FrameKind.PANDAS
    return FrameKind.POLARS if nw.dependencies.is_polars_dataframe(frame) else FrameKind.PYARROW


def columns_of(frame: Any) -> dict[str, Column]:
    """Returns the columns of a frame: arrays of plain numbers where the type says so, lists of objects elsewhere.

    Raises:
        InvalidParameter: if it is no frame, a name is no text, or columns differ in length.
    """
    if kind_of(frame) is FrameKind.DICT:
        found = {name: _sequence(name, column) for name, column in frame.items()}
    else:
        table = nw.from_native(frame, eager_only=True)
        found = {name: _values(table[name]) for name in table.columns}
    wrong = [name for name in found if not isinstance(name, str)]
    if wrong:
        raise InvalidParameter("columns", wrong, "to have texts as names", _FRAMES)
    if len({len(column) for column in found.values()}) > 1:
        raise InvalidParameter("columns", list(found), "to have one length", _FRAMES)
    return found


def _sequence(name: Any, column: Any) -> Column:
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return column
    if isinstance(column, list | tuple):
        return column
    if hasattr(column, "to_list") or hasattr(column, "to_pylist"):
        return _list_values(column, "to_list" if hasattr(column, "to_list") else "to_pylist")
    raise InvalidParameter("columns", name, "to be lists or one-dimensional arrays", _FRAMES)


def _values(series: Any) -> Column:
    if series.dtype.is_integer() or series.dtype.is_float():
        array = np.asarray(series.to_numpy())
        if array.dtype.kind in "iuf":
            return array
    return _list_values(series, "to_list")


def _list_values(series: Any, method: str) -> list[Any]:
    """Returns the values of a series as objects, None for one that has none, such as a day of the year 12000."""
    try:
        return list(getattr(series, method)())
    except Exception:  # noqa: BLE001 - one value that no object can hold is no reason to refuse a table
        return [_single(series, place) for place in range(len(series))]


def _single(series: Any, place: int) -> Any:
    try:
        value = series[place]
        return value.as_py() if hasattr(value, "as_py") else value
    except Exception:  # noqa: BLE001 - such a value is missing
        return None


def frame_of(kind: FrameKind, columns: Mapping[str, list[Any]]) -> Any:
    """Returns columns as a frame of a library.

    Raises:
        MissingExtra: if the library is not installed.
    """
    if kind is FrameKind.DICT:
        return dict(columns)
    if kind is FrameKind.PANDAS:
        return load("pandas", "A frame of pandas").DataFrame(dict(columns))
    if kind is FrameKind.POLARS:
        return load("polars", "A frame of polars").DataFrame(dict(columns), strict=False)
    return pa.table(dict(columns))
