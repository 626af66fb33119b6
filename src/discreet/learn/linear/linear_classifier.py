"""What linear classifiers share: public features, private classes, a method, and weights in the units of the data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import lru_cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
from threadpoolctl import ThreadpoolController

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.learn.features import Features, features
from discreet.learn.learner import ClassifierBase, ClassPlan, codes
from discreet.learn.linear.loss_functions import MarginLoss
from discreet.learn.linear.noisy_descent import Schedule
from discreet.learn.linear.perturbation import ObjectivePerturbation, OutputPerturbation, two_smooth_classes
from discreet.learn.linear.placed_rows import WeightsBudget
from discreet.learn.linear.surveyed_fit import SurveyedFit
from discreet.learn.linear.tilted_minimum import TiltedMinimum
from discreet.learn.linear.vector_noise import VectorNoise
from discreet.learn.row_inputs import rows_to_fit, rows_to_predict
from discreet.learn.weights import check_class_weight, class_shares, no_weights
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS


@lru_cache(maxsize=1)
def _pools() -> ThreadpoolController:
    """Returns the libraries of this process that multiply; looking for them takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Multiplies with one thread inside the block.

    A gradient of 50,000 rows and a few dozen features takes milliseconds, and threads that wait for each other spend
    ten times as much of the processors.
    """
    with _pools().limit(limits=1, user_api="blas"):
        yield


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_STEPS = 10_000
_WEIGHT = "Pass method='gradient', which weights gradients row by row. A minimiser cannot."
_CLASSES = "Pass e.g. classes=[0, 1], or use method='gradient' or method='output'."


class Method(Enum):
    """How weights are made private."""

    AUTO = "auto"
    GRADIENT = "gradient"
    OUTPUT = "output"
    OBJECTIVE = "objective"

    @classmethod
    def _missing_(cls, value: object) -> Method:
        raise InvalidParameter("method", value, "to be 'auto', 'gradient', 'output' or 'objective'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """A minimiser with noise in its output or in its objective, over rows as they were declared."""

    inner: OutputPerturbation | ObjectivePerturbation

    @property
    def event(self) -> Event:
        """Returns what all of it costs."""
        return self.inner.event

    def weights(
        self,
        X: Floats,
        targets: Integers,
        public: Features,
        loss: MarginLoss,
        bits: Bits,
        *,
        shares: Integers | None = None,
    ) -> tuple[Floats, Floats]:
        """Returns weights of normalised features and shifts, one row and one shift for each output."""
        del shares  # `LinearClassifier._recipe` refuses them
        theta = self.inner.run(public.rows(X), targets, loss, bits) / (RADIUS * public.unit)
        shifts = theta[:, -1] * public.constant if public.constant else np.zeros(len(theta))
        return theta[:, : public.count], shifts


class LinearClassifier(ClassifierBase):
    """A classifier by linear functions of the features; subclasses say with which loss."""

    methods = frozenset(Method)

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        norm_bound: Any = None,
        bounds: Any = None,
        classes: Any = None,
        method: Any = "auto",
        fit_intercept: bool = True,
        C: Any = None,
        steps: Any = None,
        class_weight: Any = None,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.norm_bound = norm_bound
        self.bounds = bounds
        self.classes = classes
        self.method = method
        self.fit_intercept = fit_intercept
        self.C = C
        self.steps = steps
        self.class_weight = class_weight
        self.neighbours = neighbours
        self.random_state = random_state

    @abstractmethod
    def _loss(self, classes: int) -> MarginLoss:
        """Returns the loss for so many classes."""

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features, whatever the classes turn out to be."""
        self._public(n_features)
        plan = self._class_plan()
        return plan.compose_event(self._recipe(plan, n_features).event)

    def fit(self, X: Any, y: Any, **weights: Any) -> Self:
        """Fits the weights; missing features are the middle of their bounds, labels of unknown classes count nowhere.

        Raises:
            InvalidParameter: if a parameter is missing or wrong, before anything is paid for.
        """
        no_weights(weights)
        plan, bits = self._class_plan(), self._bits()
        self._recipe(plan, 1)  # errors in parameters come before any error about the rows
        X = rows_to_fit(self, X)
        y = _labels(y)
        check_consistent_length(X, y)
        public = self._public(self.n_features_in_)
        recipe = self._recipe(plan, public.count)
        event = self._affordable(plan.compose_event(recipe.event))
        self.classes_ = plan.read(_present(y), bits)
        coefficients, shifts = np.zeros((1, public.count)), np.zeros(1)
        if not self.constant_:
            targets = codes(y, self.classes_)
            if self._relation is Neighbours.ADD_REMOVE:  # else their number is public, and they have no gradient
                X, targets = X[targets >= 0], targets[targets >= 0]
            shares = None if self.class_weight is None else class_shares(self.class_weight, self.classes_)
            loss = self._loss(len(self.classes_))
            with one_thread():
                coefficients, shifts = recipe.weights(X, targets, public, loss, bits, shares=shares)
        self.coef_ = coefficients / public.spread
        self.intercept_ = shifts - np.sum(self.coef_ * public.centre, axis=1)
        self.centre_ = public.centre
        self._account(event, bits)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Returns margins: of the second of two classes, or one column for each of more."""
        check_is_fitted(self)
        X = rows_to_predict(self, X)
        margins = np.where(np.isfinite(X), X, self.centre_) @ self.coef_.T + self.intercept_
        return np.asarray(margins[:, 0] if margins.shape[1] == 1 else margins)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the class with the largest margin."""
        margins = self.decision_function(X)
        places = (margins > 0).astype(np.int64) if margins.ndim == 1 else np.argmax(margins, axis=1)
        return np.asarray(self.classes_[places])

    def _public(self, count: int) -> Features:
        """Returns public facts of rows; without an intercept nothing may move, so bounds become symmetric around 0."""
        bounds = self._bounds
        if bounds is not None and not self.fit_intercept:
            moved = features(count, bounds=bounds)
            widest = np.abs(moved.centre) + moved.spread
            bounds = (-widest, widest)
        constant = 1 / np.sqrt(count) if self.fit_intercept else 0.0
        return features(count, bounds=bounds, norm_bound=self.norm_bound, constant=float(constant))

    def _recipe(self, plan: ClassPlan, count: int) -> SurveyedFit | Perturbation:
        """Returns how weights become private; refuses what could not be paid for or drawn, from public facts."""
        spending, method = plan.rest, self._method(plan)
        check_class_weight(self.class_weight, plan.declared)
        if self.class_weight is not None and method is not Method.GRADIENT:
            raise InvalidParameter(
                "class_weight", self.class_weight, f"to be None for method={method.value!r}", _WEIGHT
            )
        if spending.is_pure and plan.declared is not None:  # the longest vector that noise is drawn for
            classes = len(plan.declared)
            outputs = self._loss(classes).outputs
            VectorNoise(part=spending).mechanism(1, max(outputs * (count + 1), count + 1 + classes))
        ridge = None if self.C is None else float(1 / check.positive(C=self.C))
        if method is Method.GRADIENT:
            steps = self.steps
            if steps is not None:
                steps = check.integer(steps=steps, at_least=1, at_most=MOST_STEPS)
            return self._make_surveyed_fit(spending, partial(Schedule, steps=steps, ridge=ridge or 0.0))
        if ridge is not None and ridge < 1:
            hint = "C is in units of rows of length 1. Above 1, the noise would be larger than the weights."
            raise InvalidParameter("C", self.C, f"<= 1 for method={method.value!r}", hint)
        if method is Method.OUTPUT:
            return Perturbation(inner=OutputPerturbation(spending=spending, neighbours=self._relation, ridge=ridge))
        if plan.declared is None:  # there may turn out to be more than two, when all is paid for
            raise InvalidParameter("classes", None, "to be two public classes for method='objective'", _CLASSES)
        two_smooth_classes(self._loss(len(plan.declared)))
        if spending.is_pure:
            return self._make_surveyed_fit(spending, partial(TiltedMinimum, ridge=ridge))
        return Perturbation(inner=ObjectivePerturbation(spending=spending, neighbours=self._relation, ridge=ridge))

    def _make_surveyed_fit(self, spending: Spending, method: Callable[..., WeightsBudget]) -> SurveyedFit:
        return SurveyedFit.of(
            spending,
            self._relation,
            lambda part: method(part=part, neighbours=self._relation),
            intercept=self.fit_intercept,
        )

    def _method(self, plan: ClassPlan) -> Method:
        """Returns the method asked for, or the one with the least error.

        That is a tilted objective for two public classes without a delta, where it pays for one noise instead of many,
        and else gradients, which also take weights, steps, and a weak regularisation.
        """
        method = Method(self.method)
        if method not in self.methods:
            allowed = sorted(each.value for each in self.methods)
            raise InvalidParameter("method", self.method, f"to be one of {allowed}", "The loss is not smooth enough.")
        if method is not Method.AUTO:
            return method
        two = plan.declared is not None and len(plan.declared) == 2
        told = any(given is not None for given in (self.steps, self.C, self.class_weight))
        tilted = Method.OBJECTIVE in self.methods and plan.rest.is_pure and two and not told
        return Method.OBJECTIVE if tilted else Method.GRADIENT


def _present(y: NDArray[Any]) -> NDArray[Any]:
    """Returns the labels that are not missing: each is kept or left out for its own sake."""
    return y[~np.isnan(y)] if y.dtype.kind == "f" else y


def _labels(y: Any) -> NDArray[Any]:
    """Returns labels of any kind; one that is missing is of no class."""
    if y is None:
        raise InvalidValue("to have labels", "This estimator requires y to be passed, but the target y is None.")
    return np.asarray(column_or_1d(y, warn=True))
