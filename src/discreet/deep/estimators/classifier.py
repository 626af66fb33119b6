"""A classifier by a network, with scikit-learn's interface."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import cross_entropy

from discreet.deep.estimators.network_learner import PUBLIC, NetworkLearner
from discreet.deep.estimators.private_run import RunParameters
from discreet.errors import InvalidParameter
from discreet.learn.learner import ClassPlan, ProbabilityClassifier, codes, read_labelled
from discreet.learn.row_inputs import rows_to_predict
from discreet.privacy.events import Event


def _losses(outputs: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(outputs, labels, reduction="none")


class Classifier(ProbabilityClassifier, NetworkLearner):
    """A network for classes with scikit-learn's interface, trained with differential privacy.

    Formal guarantee: all fitted attributes together are described by `event_`, which is known before any row is seen,
    for neighbours that add or remove one row: DP-SGD (Abadi et al. 2016) as in `discreet.deep.Trainer`, after finding
    the classes where they are not public (`learn.base.ClassPlan`). Rows of other classes count nowhere.

    Args:
        model: None for full layers of widths `hidden`; "cnn" or another name of `register_model`; a module; or a
            function of the number of features (their shape, if `shape` is given) and of classes that makes one.
        hidden: widths of the hidden layers where there is no model.
        epsilon: what a fit may cost.
        delta: strictly between 0 and 1.
        bounds: public limits (low, high) of the features, numbers or arrays, or a dict of pairs by name.
        classes: the public classes; None to find them privately.
        size: a public number of rows, or a guess of it; each row enters a batch with probability batch_size / size.
        epochs: how often a row is used on average.
        batch_size: the expected number of rows in a batch.
        optimizer: "sgd", "momentum" or "adam".
        learning_rate: None for the optimizer's own: 0.5, 0.1 and 0.01.
        clip: the bound of a row's gradient.
        clipping: "flat", "per_layer" or "normalised", see `Flat`, `PerLayer`, `Normalised`.
        shape: of an example as the network takes it, such as (1, 28, 28); None for a vector.
        scaled: whether features are moved to [-1, 1]; else they are only clipped.
        physical_batch: how many rows go through the network at once; 1 excludes that a network of your own mixes them.
        rows_per_unit: how many rows one person has at most; more than 1 needs more noise, and public classes.
        neighbours: "add_remove".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes after `fit`, in addition to those of `Learner`:
        classes_: the labels, sorted.
        weights_: of the network, arrays by name; empty if the model is constant.

    >>> X = np.arange(4000.0).reshape(-1, 2) % 10
    >>> y = (X[:, 0] > 4).astype(int)
    >>> model = Classifier(epsilon=2, bounds=(0, 10), classes=[0, 1], size=2000, epochs=5, random_state=1)
    >>> model.fit(X, y).predict([[0.0, 1.0], [8.0, 9.0]])
    array([0, 1])
    """

    def __init__(
        self,
        model: Any = None,
        *,
        hidden: Any = (32,),
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        classes: Any = None,
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
        self.classes = classes
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
        plan = self._class_plan()
        run = self._planned_run(plan)
        if run.rows_per_unit > 1 and plan.declared is None:
            hint = "Finding them is priced for one row of each person: pass classes=[...]."
            raise InvalidParameter("classes", None, "to be given if rows_per_unit > 1", hint)
        return plan.compose_event(run.price.event)

    def _planned_run(self, plan: ClassPlan) -> RunParameters:
        budget: Any = plan.rest.loss
        return self._run(budget.epsilon, getattr(budget, "delta", 0))

    def _fit_rows(self, X: Any, y: Any, *, most_steps: int | None = None) -> Self:
        rows, labels = read_labelled(self, X, y)
        event, bits, plan = self._affordable(self.plan_event(self.n_features_in_)), self._bits(), self._class_plan()
        run = self._planned_run(plan)
        if plan.declared is not None:
            self._build(len(plan.declared))  # a network that cannot be made is refused before labels are read
        self.classes_ = plan.read(labels, bits)
        self.weights_ = {}
        if not self.constant_:
            places = codes(labels, self.classes_)
            kept, targets = rows[places >= 0], torch.from_numpy(places[places >= 0])
            examples = [torch.tensor((kind + kind // 3) % len(self.classes_)) for kind in range(PUBLIC)]
            self._train(run, _losses, kept, targets, examples=examples, bits=bits, most_steps=most_steps)
        self._account(event, bits)
        return self

    @property
    def _outputs(self) -> int:
        return len(self.classes_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Returns the probability of each class, as the network says it."""
        check_is_fitted(self)
        if self.constant_:
            return np.ones((len(rows_to_predict(self, X, finite="allow-nan")), 1))
        return np.asarray(torch.softmax(torch.from_numpy(self._predict_outputs(X)), dim=1).numpy())
