"""Rows as callers hand them over, as arrays of floats: tables with names, sparse matrices, arrays.

What is refused is refused for shape, type or names; no value in a row to be fitted is a reason, because a refusal would
reveal that it occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from discreet.errors import InvalidParameter
from discreet.lazy import load, nw, sparse
from discreet.learn.privacy_warnings import check_preparation, note_rows
from discreet.statistics.inputs import MOST_FEATURES

Floats = NDArray[np.float64]

MOST_DENSE = 1 << 27
"""Values of a sparse matrix that may be written out: a GiB of them."""

_NAMES = "Pass bounds={'age': (0, 120), ...} with a pair for each column of a table, by its name."


def rows_to_fit(model: Any, X: Any) -> Floats:
    """Returns rows to be fitted; the model remembers how many features they have and, of a table, their names.

    Raises:
        InvalidParameter: if a sparse matrix would be too large when written out.
        ValueError: if shape or type do not fit.
    """
    found = validate_data(
        model, convert_table(X), dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0, accept_sparse="csr"
    )
    rows = dense(found)
    check_preparation(rows)
    if getattr(model, "random_state", None) is None:  # a seed gives no privacy, and costs nothing
        note_rows(rows)
    return rows


def rows_to_predict(model: Any, X: Any, *, finite: Any = False) -> Floats:
    """Returns rows for a fitted model, whose features and names they must have, in the same order.

    Args:
        model: which was fitted.
        X: the rows.
        finite: what scikit-learn calls `ensure_all_finite`: whether a value may be missing or infinite.
    """
    options: dict[str, Any] = {"reset": False, "dtype": np.float64, "accept_sparse": "csr"}
    return dense(validate_data(model, convert_table(X), ensure_all_finite=finite, **options))


def dense(X: Any) -> Floats:
    """Returns a sparse matrix written out; what is no sparse matrix is returned as it is.

    Every learner works on whole numbers, a few of each value, so that a sparse row has no advantage once it is read.

    Raises:
        InvalidParameter: if it has too many columns, or would take too much memory.

    >>> dense(sparse.csr_array([[0, 2.0], [0, 0]])).tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    if not _is_sparse(X):
        return np.asarray(X, dtype=np.float64)
    rows, columns = X.shape
    if columns > MOST_FEATURES:
        hint = "Choose columns by a public rule, or project them with public weights."
        raise InvalidParameter("features", columns, f"<= {MOST_FEATURES}", hint)
    if rows * columns > MOST_DENSE:
        hint = f"Pass fewer columns, or at most {MOST_DENSE // columns} rows at once: drawn at random for a fit."
        raise InvalidParameter("X", f"{rows} x {columns} values", f"<= {MOST_DENSE} values when written out", hint)
    return np.asarray(X.toarray(), dtype=np.float64)


def is_table(X: Any) -> bool:
    """Returns whether rows are a table with names: of pandas, polars, PyArrow or whatever narwhals knows."""
    return not isinstance(X, np.ndarray | list | tuple) and bool(nw.dependencies.is_into_dataframe(X))


def convert_table(X: Any) -> Any:
    """Returns a table as one whose names every version of scikit-learn sees; anything else as it is."""
    if not is_table(X) or nw.dependencies.is_pandas_dataframe(X):
        return X
    load("pandas", "A table of another library")
    return nw.from_native(X, eager_only=True).to_pandas()


def bounds_by_place(bounds: Any, names: Sequence[str] | None, *, known: bool) -> Any:
    """Returns bounds by name as a pair of lists in the order of the columns; any other bounds as they are.

    Args:
        bounds: a pair, or a dict of pairs by name.
        names: of the columns; None if they are unknown.
        known: whether rows were seen. Before that the order of the dict will do, since no price depends on it.

    Raises:
        InvalidParameter: if names are missing in the bounds or in the rows.

    >>> bounds_by_place({"a": (0, 1), "b": (2, 3)}, ["b", "a"], known=True)
    ([2, 0], [3, 1])
    """
    if not isinstance(bounds, Mapping):
        return bounds
    if names is None and known:
        raise InvalidParameter("bounds", sorted(map(str, bounds)), "to be numbers for rows without names", _NAMES)
    order = list(bounds) if names is None else list(names)
    missing, unknown = [one for one in order if one not in bounds], [one for one in bounds if one not in order]
    if missing or unknown:
        told = f"to have a pair for every column and no other: missing {missing}, unknown {unknown}"
        raise InvalidParameter("bounds", sorted(map(str, bounds)), told, _NAMES)
    pairs = [bounds[one] for one in order]
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise InvalidParameter("bounds", dict(bounds), "to be pairs (low, high)", _NAMES)
    return [low for low, _ in pairs], [high for _, high in pairs]


def _is_sparse(X: Any) -> bool:
    return bool(sparse.issparse(X))
