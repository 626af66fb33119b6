"""Rows of tables and arrays by their places."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.lazy import nw
from discreet.learn.row_inputs import is_table


def count_rows(X: Any) -> int:
    """Returns how many rows there are."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, places: Any) -> Any:
    """Returns some rows, by a list of places or by truth values, as the kind of table that was given.

    >>> take_rows([[1, "a"], [2, "b"]], np.array([False, True])).tolist()
    [[2, 'b']]
    """
    if not is_table(X):
        return (X if hasattr(X, "shape") else np.asarray(X, dtype=object))[places]
    chosen = np.flatnonzero(places) if np.asarray(places).dtype == np.bool_ else np.asarray(places)
    return nw.from_native(X, eager_only=True)[chosen.tolist(), :].to_native()
