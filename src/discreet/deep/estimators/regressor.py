"""Regression by a network, with scikit-learn's interface."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from discreet.deep.estimators.network_learner import PUBLIC, NetworkLearner
from discreet.errors import InvalidParameter, InvalidValue
from discreet.learn.features import ends
from discreet.learn.learner import read_labelled
from discreet.privacy.events import Event

_HINT = "Labels are clipped to public bounds, never read from the data: pass e.g. label_bounds=(0.0, 100.0)."


def _losses(outputs: Tensor, labels: Tensor) -> Tensor:
    return (outputs[:, 0] - labels).square()


class Regressor(RegressorMixin, NetworkLearner):
    """A network for numbers with scikit-learn's interface, trained with differential privacy.

    Formal guarantee: that of `Classifier`. Labels are clipped to public bounds, and moved to [-1, 1] for the network;
    rows with missing labels count nowhere.

    Args:
        model: None for full layers of widths `hidden`; "cnn" or another name of `register_model`; a module; or a
            function of the number of features (their shape, if `shape` is given) and of outputs, 1, that makes one.
        label_bounds: public limits (low, high) of the labels.
        hidden, epsilon, delta, bounds, size, epochs, batch_size, optimizer, learning_rate, clip, clipping, shape,
            scaled, physical_batch, rows_per_unit, neighbours, random_state: as for `Classifier`.

    Attributes after `fit`, in addition to those of `Learner`:
        weights_: of the network, arrays by name.

    >>> X = np.arange(4000.0).reshape(-1, 2) % 10
    >>> model = Regressor(epsilon=2, bounds=(0, 10), label_bounds=(0, 20), size=2000, random_state=1)
    >>> model.fit(X, 2 * X[:, 0]).predict([[1.0, 1.0], [8.0, 9.0]]).round(-1)
    array([ 0., 20.])
    """

    def __init__(
        self,
        model: Any = None,
        *,
        hidden: Any = (32,),
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        label_bounds: Any = None,
        size: Any = None,
        epochs: Any = 10,
        batch_size: Any = 100,
        optimizer: Any = "sgd",
        learning_rate: Any = None,
        clip: Any = 1,
        clipping: Any = "flat",
        shape: Any = None,
        scaled: Any = True,
        physical_batch: Any = 256,
        rows_per_unit: Any = 1,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.hidden = hidden
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.size = size
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.clip = clip
        self.clipping = clipping
        self.shape = shape
        self.scaled = scaled
        self.physical_batch = physical_batch
        self.rows_per_unit = rows_per_unit
        self.neighbours = neighbours
        self.random_state = random_state

    def _planned_event(self) -> Event:
        self._label_limits()
        return self._run(self.epsilon, self.delta).price.event

    def _fit_rows(self, X: Any, y: Any, *, most_steps: int | None = None) -> Self:
        rows, labels = read_labelled(self, X, y)
        event, bits = self.plan_event(self.n_features_in_), self._bits()
        try:
            amounts = labels.astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidValue("of y to be numbers", "Texts are classes: use Classifier.") from None
        low, high = self._label_limits()
        known = ~np.isnan(amounts)
        targets = (np.clip(amounts[known], low, high) - (low + high) / 2) / ((high - low) / 2)
        examples = list(torch.linspace(-1, 1, PUBLIC)[torch.arange(PUBLIC) * 3 % PUBLIC])
        wanted = torch.from_numpy(targets.astype(np.float32))
        run = self._run(self.epsilon, self.delta)
        self._train(run, _losses, rows[known], wanted, examples=examples, bits=bits, most_steps=most_steps)
        self._account(event, bits)
        return self

    def _label_limits(self) -> tuple[float, float]:
        if self.label_bounds is None:
            raise InvalidParameter("label_bounds", None, "to be given", _HINT)
        (low,), (high,) = ends(self.label_bounds, 1, "label_bounds", _HINT)
        return float(low), float(high)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predicts a number for each row, within the bounds of the labels."""
        low, high = self._label_limits()
        found = np.clip(self._predict_outputs(X)[:, 0], -1.0, 1.0)
        return np.asarray((low + high) / 2 + found * (high - low) / 2)
