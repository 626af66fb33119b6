"""The best of some models, chosen privately by their errors on rows that none of them was trained on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.learn.pipelines.pipeline import Pipeline
from discreet.learn.pipelines.row_selection import count_rows, take_rows
from discreet.learn.row_inputs import is_table
from discreet.mechanisms import PermuteAndFlip
from discreet.noise import Bits, source_of
from discreet.privacy import Neighbours
from discreet.privacy.events import Event

FINE = 1 << 10  # steps of a distance between a label and its prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A model that was chosen, and what that released.

    Attributes:
        index: its place in the list.
        model: the model.
        event: the description of the release, for accounting.
        private: False if the choice was seeded.
    """

    index: int
    model: Any
    event: Event
    private: bool


def choose_model(
    models: Sequence[Any],
    X: Any,
    y: Any,
    *,
    epsilon: check.Number,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    bits: Bits | None = None,
) -> Choice:
    """Returns a classifier that errs rarely on private rows.

    Args:
        models: fitted classifiers with `predict`; none depends on these rows other than through releases that were paid
            for.
        X: private rows; one with a number that is missing or infinite counts as an error of every model.
        y: their labels.
        epsilon: what the choice may cost.
        neighbours: the relation to protect.
        bits: the source of randomness; None is the secure one.

    Formal guarantee: epsilon-DP. A row adds 0 or 1 to the number of errors of each model, so under ADD_REMOVE all
    scores move in one direction by at most 1, and permute-and-flip needs half of the noise; a replaced row moves each
    by at most 1 either way. Every row is predicted alone: a prediction made in a batch may depend, in its last
    bits, on the rest of the batch.

    >>> from sklearn.dummy import DummyClassifier
    >>> models = [DummyClassifier(strategy="constant", constant=c).fit([[0], [0]], [0, 1]) for c in (0, 1)]
    >>> choose_model(models, [[0.0]] * 200, [1] * 190 + [0] * 10, epsilon=1).index
    1
    """
    relation = Neighbours(neighbours)
    if not len(models):
        raise InvalidParameter("models", "no models", "to be at least one")
    mechanism = PermuteAndFlip(epsilon=epsilon, sensitivity=1, monotone=relation is Neighbours.ADD_REMOVE)
    source = source_of(bits)
    rows, labels = X if is_table(X) else np.asarray(X), np.asarray(column_or_1d(y))
    if count_rows(rows) != len(labels):
        raise InvalidParameter("y", f"{len(labels)} labels", f"to be one for each of the {count_rows(rows)} rows of X")
    scores = [-int(errors(model, rows, labels).sum()) for model in models]
    index = int(mechanism.choose(scores, bits=source))
    return Choice(index=index, model=models[index], event=mechanism.event, private=source.private)


def errors(model: Any, rows: Any, labels: NDArray[Any]) -> NDArray[np.int64]:
    """Returns 1 for each row on which a classifier is wrong, else 0; each a function of its row alone."""
    right = [bool(predicted == label) for predicted, label in zip(predictions(model, rows), labels, strict=True)]
    return 1 - np.array(right, dtype=np.int64)


def distances(model: Any, rows: Any, labels: NDArray[Any], bounds: tuple[float, float]) -> NDArray[np.int64]:
    """Returns how far a regressor is off at each row, from 0 to FINE, which means the whole width of the bounds.

    Labels and predictions are clipped to the public bounds; what is missing is as far off as can be. Each number is a
    function of its row alone.
    """
    low, high = bounds
    found = predictions(model, rows)
    given = np.array([np.nan if one is None else float(one) for one in found])
    with np.errstate(invalid="ignore"):
        gaps = abs(np.clip(given, low, high) - np.clip(labels.astype(np.float64), low, high)) / (high - low)
    steps = np.clip(np.floor(np.nan_to_num(gaps, nan=1.0) * FINE + 0.5), 0, FINE)
    return np.asarray(steps, dtype=np.int64)


def predictions(model: Any, rows: Any) -> list[Any]:
    """Returns what a model predicts for each row alone.

    A row with a number that is missing or infinite has no prediction. Public steps of a pipeline, which make the same
    of a row whatever other rows there are, are done for all rows at once.
    """
    if isinstance(model, Pipeline):
        rows, model = model.apply_public_steps(rows)
        far = np.zeros(count_rows(rows), dtype=bool) if is_table(rows) else np.isinf(rows).any(axis=1)
        return [None if far[i] else model.predict(take_rows(rows, [i]))[0] for i in range(len(far))]
    numbers = not is_table(rows) and rows.dtype.kind in "biuf"
    usable = np.isfinite(rows).all(axis=1) if numbers else np.ones(count_rows(rows), dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a row alone has no names
        return [model.predict(take_rows(rows, [i]))[0] if usable[i] else None for i in range(len(usable))]
