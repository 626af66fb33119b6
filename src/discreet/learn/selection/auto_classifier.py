"""Chooses the learner that works at a budget and a size, by public facts and one private count of the rows."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discreet import accounting
from discreet.learn.features import Integers, features
from discreet.learn.learner import ClassPlan, ProbabilityClassifier, codes, read_labelled, read_rows
from discreet.learn.linear.classifiers import LogisticRegression
from discreet.learn.privacy_warnings import in_an_account
from discreet.learn.trees.decision_trees import DecisionTreeClassifier
from discreet.learn.trees.random_splits import ExtraTreesClassifier
from discreet.learn.weights import no_weights
from discreet.mechanisms import Laplace
from discreet.noise import Bits
from discreet.privacy import ApproxDP, Neighbours, events
from discreet.privacy.events import Event

Floats = NDArray[np.float64]

COUNT_SHARE = Fraction(1, 20)  # of epsilon, for the number of rows
# Below these, noisy gradients lose against trees. Chosen on eight tables of bench/peers/learn_tables.py.
GRADIENT = 9.0  # of n mu / sqrt(weights), with a delta
PURE_GRADIENT = 12.0  # of n epsilon / weights, without one
PLENTY = 10.0  # times as much: a tree is fitted as well, for what may not be linear, and the better one is kept
TREE_SHARE = Fraction(1, 10)  # of the remaining budget, for that tree
VERDICT_SHARE = Fraction(1, 20)  # and for the comparison
_FINE = 1 << 20


class AutoClassifier(ProbabilityClassifier):
    """A classifier of the kind that works best for the budget, the number of rows and of features.

    Logistic regression wherever its gradients hold more than noise, which is earlier with a delta than without one;
    trees with random splits for smaller budgets, fewer rows or more classes. Both fall back to the class that most rows
    have where they hold nothing but noise. Where rows are plenty, a decision tree is fitted besides, for a tenth of the
    budget, and the model that is right about more of the rows is kept.

    Args:
        epsilon: what one fit may cost.
        delta: 0 or None for a pure guarantee.
        bounds: public limits (low, high), one pair or one for each feature.
        norm_bound: the length that a row may have once its features are moved to [-1, 1], if that is known to be
            less than the square root of their number; public.
        classes: the public labels; None to find them for a part of the budget.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes:
        classes_: the labels.
        model_: the learner that was kept, a `LogisticRegression`, `ExtraTreesClassifier` or `DecisionTreeClassifier`.
        count_: how many rows there are, about: the released number by which it was chosen.

    Formal guarantee: (epsilon, delta)-DP, pure if delta = 0. A twentieth of epsilon pays for the count, with Laplace
    noise (under "replace" the number of rows is public, and nothing is paid). Which learners are fitted follows from
    the count and from public facts; they cost at most the rest of epsilon and delta, whichever they are, and basic
    composition adds up to the whole. Two are compared by one number with Laplace noise: on how many more rows the
    first is right. A row adds -1, 0 or 1 to it, by integers of its own, so it moves by 1, by 2 if the row is replaced.

    >>> X = np.linspace(0, 1, 1000)[:, None]
    >>> model = AutoClassifier(epsilon=1, delta=0, bounds=(0, 1), classes=[0, 1], random_state=0)
    >>> model.fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5) > 0.95, type(model.model_).__name__
    (True, 'DecisionTreeClassifier')
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
        return plan.compose_event(self._event(plan))

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
        event, bits = self._affordable(plan.compose_event(self._event(plan))), self._bits()
        self.classes_ = plan.read(y, bits)
        counter = self._counter(plan)
        self.count_ = float(len(y) if counter is None else counter.release(len(y), bits=bits))
        models = self._choose_learners(plan, X.shape[1])
        if not self.constant_:
            with in_an_account():  # these rows are paid for here
                models = [model.fit(X, y) for model in models]
        self.model_ = models[0] if self.constant_ or len(models) == 1 else self._better(models, plan, X, y, bits)
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

    def _choose_learners(self, plan: ClassPlan, width: int) -> list[Any]:
        """Returns the learners for the released count, with all that is left to spend."""
        epsilon, delta = self._rest(plan)
        common = {
            "bounds": self._bounds,
            "classes": self.classes_.tolist(),
            "neighbours": self.neighbours,
            "random_state": self.random_state,
        }
        heard = loudness(self.count_, width, len(self.classes_), float(epsilon), float(delta))
        if heard < 1:
            return [ExtraTreesClassifier(epsilon=epsilon, rows=max(self.count_, 1.0), **common)]
        linear = partial(LogisticRegression, delta=delta, norm_bound=self.norm_bound, **common)
        if heard < PLENTY:
            return [linear(epsilon=epsilon)]
        tree = DecisionTreeClassifier(epsilon=epsilon * TREE_SHARE, **common)
        return [linear(epsilon=epsilon * (1 - TREE_SHARE - VERDICT_SHARE)), tree]

    def _better(self, models: list[Any], plan: ClassPlan, X: Floats, y: NDArray[Any], bits: Bits) -> Any:
        """Returns the linear model or the tree, whichever seems to be right about more rows."""
        linear, tree = models
        labels = codes(y, self.classes_)
        gain = int(np.sum(self._places(linear, X) == labels) - np.sum(codes(tree.predict(X), self.classes_) == labels))
        moved = 1 if self._relation is Neighbours.ADD_REMOVE else 2
        verdict = Laplace(epsilon=self._rest(plan)[0] * VERDICT_SHARE, sensitivity=moved)
        return linear if verdict.release(gain, bits=bits) >= 0 else tree

    def _places(self, linear: LogisticRegression, X: Floats) -> Integers:
        """Returns what a linear model predicts, by integer margins: a row's own, whatever other rows there are."""
        public = features(X.shape[1], bounds=self._bounds, norm_bound=self.norm_bound)
        moved = np.nan_to_num((X - public.centre) / public.spread, nan=0.0)
        steps = np.rint(np.clip(moved, -1, 1) * _FINE).astype(np.int64)
        weights = linear.coef_ * public.spread
        shifts = linear.intercept_ + linear.coef_ @ public.centre
        unit = _FINE / max(float(np.max(np.abs(weights))), float(np.max(np.abs(shifts))), 1e-300)
        margins = steps @ np.rint(weights.T * unit).astype(np.int64) + np.rint(shifts * unit * _FINE).astype(np.int64)
        return np.asarray(np.argmax(margins, axis=1) if margins.shape[1] > 1 else (margins[:, 0] > 0).astype(np.int64))


def loudness(count: float, width: int, classes: int, epsilon: float, delta: float) -> float:
    """Returns how much noisy gradients hold, in units of what makes them better than trees; from public numbers.

    >>> loudness(200, 13, 2, 0.1, 1e-6) < 1 < loudness(200, 13, 2, 3.0, 1e-6)
    True
    >>> loudness(200, 13, 2, 0.5, 0) < 1 < loudness(200, 13, 2, 3.0, 0)
    True
    """
    size = (width + 1) * (1 if classes == 2 else classes)
    if delta:
        return count / float(accounting.gaussian_sigma(epsilon, delta)) / math.sqrt(size) / GRADIENT
    return count * epsilon / size / PURE_GRADIENT


def _amounts(plan: ClassPlan) -> tuple[Fraction, Fraction]:
    loss = plan.rest.loss
    return getattr(loss, "epsilon", Fraction(0)), loss.delta if isinstance(loss, ApproxDP) else Fraction(0)
