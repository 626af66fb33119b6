"""Rows and labels as scikit-learn hands them over, checked in ways that depend on their shape and type only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from discreet.errors import InvalidValue


def read_labelled(model: Any, X: Any, y: Any) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Rows and labels as arrays; no value in them is a reason to refuse, for a refusal would tell that it occurs.

    Raises:
        ValueError: if their shapes or types do not fit.
    """
    X = validate_data(model, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0)
    if y is None:
        name = type(model).__name__
        raise InvalidValue(f"to be labels; {name} requires y to be passed, but the target y is None", "Pass y.")
    labels = np.asarray(column_or_1d(y, warn=True))
    check_consistent_length(X, labels)
    return X, labels


def read_rows(model: Any, X: Any) -> NDArray[np.float64]:
    """Rows to be predicted."""
    return np.asarray(validate_data(model, X, reset=False, dtype=np.float64, ensure_all_finite=False))
