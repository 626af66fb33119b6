"""Weights of classes and of rows, as shares of the largest that was declared: no row counts more than once.

A sensitivity is that of a row of weight 1. With weights w between 0 and a public W, what a row adds is multiplied by
w / W <= 1 and cut towards zero, so that it only shrinks: every bound that holds without weights holds with them, and
the noise is that of the largest weight. Weights of classes are public. The weight of a row is as private as the row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InvalidParameter, InvalidValue

Integers = NDArray[np.int64]

ONE = 1 << 10  # the largest weight
_HINT = "Pass e.g. class_weight={0: 1, 1: 3}, weights that are chosen without looking at the rows."
_REASON = (
    "A weight is as private as its row, and this learner counts each row once. For public weights of classes, pass "
    "class_weight=... if the learner has it. LinearRegression and Ridge take sample_weight with weight_bound=..."
)


def class_shares(class_weight: Any, classes: Sequence[Any] | NDArray[Any]) -> Integers:
    """Returns the weight of each class in units of 1 / ONE of the largest; classes that are not named weigh 1.

    Raises:
        InvalidParameter: if weights are no public numbers, or name something that is no class.

    >>> class_shares({1: 4}, [0, 1]).tolist(), class_shares(None, [0, 1]).tolist()
    ([256, 1024], [1024, 1024])
    """
    labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
    if class_weight is None:
        return np.full(len(labels), ONE, dtype=np.int64)
    if not isinstance(class_weight, Mapping):
        hint = f"'balanced' would count the rows of each class without paying for it. {_HINT}"
        raise InvalidParameter("class_weight", class_weight, "to be a dict of public weights", hint)
    return _shares([float(check.not_negative(class_weight=class_weight.get(label, 1))) for label in labels])


def check_class_weight(class_weight: Any, declared: NDArray[Any] | None) -> None:
    """Refuses weights that could not be used, before anything is paid.

    Raises:
        InvalidParameter: as `class_shares`, and if a weight is for no declared class.
    """
    if class_weight is None:
        return
    class_shares(class_weight, list(class_weight) if isinstance(class_weight, Mapping) else [])
    known = None if declared is None else declared.tolist()
    unknown = [] if known is None else [label for label in class_weight if label not in known]
    if unknown:
        raise InvalidParameter("class_weight", unknown, f"to be among the classes {known}", _HINT)
    if known is not None:
        class_shares(class_weight, known)


def _shares(weights: list[float]) -> Integers:
    largest = max(weights, default=0.0)
    if largest <= 0:
        raise InvalidParameter("class_weight", weights, "to have a weight above 0", _HINT)
    return np.array([math.floor(ONE * (weight / largest) + 0.5) for weight in weights], dtype=np.int64)


def shrink_values(values: Integers, shares: Integers, one: int = ONE) -> Integers:
    """Returns whole numbers, or rows of them, times shares / one, cut towards zero: never further from zero.

    >>> shrink_values(np.array([[-7, 7], [5, 0]]), np.array([512, 1024])).tolist()
    [[-3, 3], [5, 0]]
    """
    factors = shares if values.ndim == 1 else shares[:, None]
    return np.asarray(np.sign(values) * (np.abs(values) * factors // one), dtype=np.int64)


ROOT_ONE = 1 << 12  # a row of the largest weight, in `root_shares`


def root_shares(sample_weight: Any, count: int, weight_bound: Any) -> Integers:
    """Returns the roots of rows' weights in units of 1 / ROOT_ONE: rows times them have moments times their weights.

    A weight is clipped to [0, weight_bound], and 0 if it is missing; each is a function of itself alone.

    Raises:
        InvalidParameter: if the bound is none.
        InvalidValue: if there is no number for each row.
    """
    largest = float(check.positive(weight_bound=1 if weight_bound is None else weight_bound))
    try:
        given = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.zeros((0, 0))
    if given.shape != (count,):
        raise InvalidValue(
            "to have sample_weight, one number for each row", "sample_weight.shape must be (n_samples,)."
        )
    parts = np.clip(np.nan_to_num(given, nan=0.0, posinf=largest, neginf=0.0), 0, largest) / largest
    return np.asarray(np.floor(np.sqrt(parts) * ROOT_ONE), dtype=np.int64)


def no_weights(given: Mapping[str, Any]) -> None:
    """Refuses weights of rows, and anything else that `fit` does not know.

    Raises:
        InvalidParameter: if something was given.
    """
    for name, value in given.items():
        if value is not None:
            raise InvalidParameter(name, type(value).__name__, "to be left out", _REASON)
