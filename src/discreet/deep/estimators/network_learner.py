"""What estimators of networks share: public inputs, a run that is priced before it reads, weights as plain arrays."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from discreet import check
from discreet.deep.clipping import ClipRule, Flat, Normalised, PerLayer
from discreet.deep.estimators.networks import network, with_weights
from discreet.deep.estimators.private_run import Loss, RunParameters
from discreet.errors import InvalidParameter
from discreet.learn.features import ends
from discreet.learn.learner import Learner
from discreet.learn.row_inputs import rows_to_predict
from discreet.learn.weights import no_weights
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Event

Floats = NDArray[np.float64]

MOST_INPUTS = 1 << 20
"""Numbers that one example may have."""

REHEARSED = 1  # steps of a rehearsal
_WAVES = ((0.5, 0.4), (0.1, 0.1), (0.9, 0.1), (0.4, 0.2), (0.6, 0.35), (0.25, 0.25), (0.75, 0.2), (0.5, 0.05))
PUBLIC = len(_WAVES)
"""How many public examples a network is checked on."""
_PREDICTED = 1 << 10  # examples that go through the network at once
_CLIPPING: dict[str, type[ClipRule]] = {"flat": Flat, "per_layer": PerLayer, "normalised": Normalised}
_BOUNDS = "Pass public bounds=(low, high), one pair or one for each feature; they are never read from the data."
_NAME = (
    "A model that is saved, or fitted by a curator, names its network, because a text holds no code. Call "
    "deep.register_model('mine', function), and pass model='mine'."
)
_RELATION = "Batches are drawn by a coin for each row, which is priced for a row that is added or removed."


class NetworkLearner(Learner):
    """A network that is trained with differential privacy (DP-SGD) on rows within public bounds.

    Formal guarantee: the weights, and all they were on the way, are described by `event_`, Gaussians on Poisson samples
    of the rows, for neighbours that add or remove one row, or `rows_per_unit` of them; see `discreet.deep.Trainer` and
    `private_run`. An example is a function of its own row: values are clipped to public bounds, and missing ones are
    their middle.
    """

    accounts_rows_per_unit: ClassVar[bool] = True
    most_features: ClassVar[int] = MOST_INPUTS

    hints_of_plain_data: ClassVar[dict[str, str]] = {"model": _NAME}

    model: Any
    hidden: Any
    bounds: Any
    shape: Any
    scaled: Any
    size: Any
    epochs: Any
    batch_size: Any
    learning_rate: Any
    optimizer: Any
    clip: Any
    clipping: Any
    physical_batch: Any
    rows_per_unit: Any
    weights_: dict[str, NDArray[Any]]

    def network(self) -> nn.Module:
        """Returns the trained network, in 64 bits and made for prediction; it takes what `bounds` and `shape` say."""
        check_is_fitted(self)
        return with_weights(self._build(self._outputs), self.weights_)

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit, known before any row: Gaussians on Poisson samples, and what finds classes."""
        self._limits(n_features)
        self._shape(n_features)
        return self._planned_event()

    def fit(self, X: Any, y: Any, **weights: Any) -> Self:
        """Fits the model; rows of no class or label count nowhere, missing features are the middle of their bounds."""
        no_weights(weights)
        return self._fit_rows(X, y)

    def rehearse(self, X: Any, y: Any) -> Self:
        """Returns a model after one step, to show that a fit will work before it is paid."""
        return self._fit_rows(X, y, most_steps=REHEARSED)

    @abstractmethod
    def _planned_event(self) -> Event:
        """Returns the event of a fit on inputs that fit."""

    @abstractmethod
    def _fit_rows(self, X: Any, y: Any, *, most_steps: int | None = None) -> Self:
        """Fits rows, or ends after so many steps."""

    @property
    def _outputs(self) -> int:
        """Returns how many numbers the network gives for an example."""
        return 1

    def _run(self, epsilon: Any, delta: Any) -> RunParameters:
        """Returns the run for a budget; refuses what is outside its domain, before anything is read."""
        if self._relation is not Neighbours.ADD_REMOVE:
            raise InvalidParameter("neighbours", self._relation.value, "to be 'add_remove'", _RELATION)
        if not isinstance(self.clipping, str) or self.clipping not in _CLIPPING:
            raise InvalidParameter("clipping", self.clipping, f"to be one of {', '.join(_CLIPPING)}")
        return RunParameters.of(
            epsilon=epsilon,
            delta=delta,
            size=self.size,
            epochs=self.epochs,
            batch_size=self.batch_size,
            clip=_CLIPPING[self.clipping](self.clip),
            physical_batch=self.physical_batch,
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            rows_per_unit=self.rows_per_unit,
        )

    def _build(self, outputs: int) -> nn.Module:
        features = self._shape(self.n_features_in_) if self.shape is not None else self.n_features_in_
        return network(self.model, self.hidden, features, outputs)

    def _shape(self, count: int) -> tuple[int, ...]:
        """Returns the shape of an example of so many features."""
        most = check.integer(features=count, at_least=1, at_most=MOST_INPUTS)
        if self.shape is None:
            return (most,)
        sides = tuple(self.shape) if isinstance(self.shape, tuple | list) else (self.shape,)
        if math.prod(check.integer(shape=side, at_least=1) for side in sides) != count:
            raise InvalidParameter("shape", self.shape, f"to have {count} numbers, one for each feature")
        return sides

    def _limits(self, count: int) -> tuple[Floats, Floats]:
        if self.bounds is None:
            raise InvalidParameter("bounds", None, "to be given", _BOUNDS)
        return ends(self._bounds, count, hint=_BOUNDS)

    def _inputs(self, X: Floats) -> Tensor:
        """Returns rows as the network takes them, each alone clipped, and moved to [-1, 1] by default."""
        count = X.shape[1]
        low, high = self._limits(count)
        middle, half = (low + high) / 2, (high - low) / 2
        clipped = np.clip(np.where(np.isnan(X), middle, X), low, high)
        inputs = (clipped - middle) / half if self.scaled else clipped
        return torch.from_numpy(inputs.astype(np.float32)).reshape(len(X), *self._shape(count))

    def _examples(self, targets: list[Tensor]) -> list[Any]:
        """Returns public examples within the bounds, waves of several heights: near the lower and upper ends, too."""
        low, high = self._limits(self.n_features_in_)
        places = np.arange(1, self.n_features_in_ + 1)
        waves = [middle + width * np.cos(places * (1.3 + kind)) for kind, (middle, width) in enumerate(_WAVES)]
        return list(zip(self._inputs(low + (high - low) * np.array(waves)), targets, strict=True))

    def _train(
        self,
        run: RunParameters,
        loss: Loss,
        X: Floats,
        targets: Tensor,
        *,
        examples: list[Tensor],
        bits: Bits,
        most_steps: int | None,
    ) -> None:
        """Keeps the weights of a network after a run; `examples` are targets of public rows."""
        self.weights_ = run.train(
            lambda: self._build(self._outputs),
            loss,
            self._inputs(X),
            targets,
            examples=self._examples(examples),
            bits=bits,
            most_steps=most_steps,
        )

    def _predict_outputs(self, X: Any) -> Floats:
        """Returns what the network gives for rows, a row for each."""
        check_is_fitted(self)
        inputs = self._inputs(rows_to_predict(self, X, finite="allow-nan")).double()
        trained = self.network()
        with torch.no_grad():
            parts = [trained(part) for part in inputs.split(_PREDICTED)]
        return np.asarray(torch.cat(parts).numpy(), dtype=np.float64)
