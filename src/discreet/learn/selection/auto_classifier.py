"""The learner that works at a budget and a size: chosen by public facts and one private count of the rows."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discreet import accounting
from discreet.learn.base import Classifier, ClassPlan, ProbabilityClassifier, read_labelled, read_rows
from discreet.learn.features import features
from discreet.learn.linear.classifiers import LogisticRegression
from discreet.learn.privacy_warnings import in_an_account
from discreet.learn.trees.random_splits import ExtraTreesClassifier
from discreet.learn.weights import no_weights
from discreet.mechanisms import Laplace
from discreet.privacy import ApproxDP, Neighbours, events
from discreet.privacy.events import Event

Floats = NDArray[np.float64]

COUNT_SHARE = Fraction(1, 20)  # of epsilon, for the number of rows
# Below these, noisy gradients lose against trees; chosen on training folds of the tables of bench/learn.py.
GRADIENT = 9.0  # of n mu / sqrt(weights), with a delta
PURE_GRADIENT = 20.0  # of n epsilon / weights, without one


class AutoClassifier(ProbabilityClassifier):
    """A classifier of the kind that works best for the budget, the number of rows and of features.

    Logistic regression by noisy gradients wherever these hold more than noise, which is earlier with a delta than
    without one; trees with random splits for smaller budgets, fewer rows or more classes. Both fall back to the class
    that most rows have where they hold nothing but noise.

    Args:
        epsilon: what one fit may cost.
        delta: 0 or None for a pure guarantee.
        bounds: public limits (low, high), one pair or one for each feature.
        norm_bound: the length that a row may have once its features are moved to [-1, 1], if that is known to be
            less than the square root of their number; public.
        classes: the public labels; None to find them for a part of the budget.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed that protects nobody.

    Attributes:
        classes_: the labels.
        model_: the learner that was fitted, `LogisticRegression` or `ExtraTreesClassifier`.
        count_: how many rows there are, about: the released number by which it was chosen.

    Formal guarantee: (epsilon, delta)-DP, pure if delta = 0. A twentieth of epsilon pays for the count, with Laplace
    noise (under "replace" the number of rows is public, and nothing is paid). Which learner is fitted follows from the
    count and from public facts; each of them costs at most the rest of epsilon and delta, whichever it is, and basic
    composition adds up to the whole.

    >>> X = np.linspace(0, 1, 2000)[:, None]
    >>> model = AutoClassifier(epsilon=1, delta=0, bounds=(0, 1), classes=[0, 1], random_state=0)
    >>> model.fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5) > 0.95, type(model.model_).__name__
    (True, 'LogisticRegression')
    >>> print(model.privacy_spent_)
    epsilon=1
    """

    model_: Any
    count_: float

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        norm_bound: Any = None,
        classes: Any = None,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm_bound = norm_bound
        self.classes = classes
        self.neighbours = neighbours
        self.random_state = random_state

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features, whichever learner is chosen."""
        features(n_features, bounds=self._bounds, norm_bound=self.norm_bound)
        plan = self._class_plan()
        return plan.composed(self._event(plan))

    def fit(self, X: Any, y: Any, **weights: Any) -> Self:
        """Counts the rows, chooses a learner, and fits it.

        Args:
            X: rows of numbers; missing ones count as the middle of the bounds.
            y: labels; rows whose label is none of the classes count nowhere.
            **weights: none: the weight of a row is refused, with the reason.
        """
        no_weights(weights)
        plan = self._class_plan()
        X, y = read_labelled(self, X, y)
        features(X.shape[1], bounds=self._bounds, norm_bound=self.norm_bound)
        event, bits = self._affordable(plan.composed(self._event(plan))), self._bits()
        self.classes_ = plan.read(y, bits)
        counter = self._counter(plan)
        self.count_ = float(len(y) if counter is None else counter.release(len(y), bits=bits))
        self.model_ = self._chosen(plan, X.shape[1])
        if not self.constant_:
            with in_an_account():  # these rows are paid for here
                self.model_.fit(X, y)
        self._account(event, bits)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Returns the probability of each class."""
        check_is_fitted(self)
        rows = read_rows(self, X)
        return np.ones((len(rows), 1)) if self.constant_ else np.asarray(self.model_.predict_proba(rows))

    def _counter(self, plan: ClassPlan) -> Laplace | None:
        if self._relation is Neighbours.REPLACE:
            return None
        return Laplace(epsilon=_amounts(plan)[0] * COUNT_SHARE, sensitivity=1)

    def _rest(self, plan: ClassPlan) -> tuple[Fraction, Fraction]:
        epsilon, delta = _amounts(plan)
        return (epsilon if self._counter(plan) is None else epsilon * (1 - COUNT_SHARE)), delta

    def _event(self, plan: ClassPlan) -> Event:
        epsilon, delta = self._rest(plan)
        fitted = events.Approx(epsilon, delta) if delta else events.Pure(epsilon)
        counter = self._counter(plan)
        return fitted if counter is None else events.Composed([counter.event, fitted])

    def _chosen(self, plan: ClassPlan, width: int) -> Any:
        """The learner for the released count, with all that is left to spend."""
        epsilon, delta = self._rest(plan)
        common = {
            "epsilon": epsilon,
            "bounds": self._bounds,
            "classes": self.classes_.tolist(),
            "neighbours": self.neighbours,
            "random_state": self.random_state,
        }
        kind = chosen_kind(self.count_, width, len(self.classes_), float(epsilon), float(delta))
        if kind is LogisticRegression:
            return kind(delta=delta, norm_bound=self.norm_bound, **common)
        return kind(rows=max(self.count_, 1.0), **common)


def chosen_kind(count: float, width: int, classes: int, epsilon: float, delta: float) -> type[Classifier]:
    """Returns which learner is fitted, from public numbers.

    >>> chosen_kind(200, 13, 2, 0.1, 1e-6).__name__, chosen_kind(200, 13, 2, 3.0, 1e-6).__name__
    ('ExtraTreesClassifier', 'LogisticRegression')
    >>> chosen_kind(200, 13, 2, 1.0, 0).__name__, chosen_kind(200, 13, 2, 3.0, 0).__name__
    ('ExtraTreesClassifier', 'LogisticRegression')
    """
    size = (width + 1) * (1 if classes == 2 else classes)
    if delta:
        heard = count / float(accounting.gaussian_sigma(epsilon, delta)) / math.sqrt(size) / GRADIENT
    else:
        heard = count * epsilon / size / PURE_GRADIENT
    return LogisticRegression if heard >= 1 else ExtraTreesClassifier


def _amounts(plan: ClassPlan) -> tuple[Fraction, Fraction]:
    loss = plan.rest.loss
    return getattr(loss, "epsilon", Fraction(0)), loss.delta if isinstance(loss, ApproxDP) else Fraction(0)
