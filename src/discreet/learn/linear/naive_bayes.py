"""Naive Bayes for numbers: private counts, means and variances of each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from discreet import check
from discreet.errors import InvalidParameter, InvalidValue
from discreet.lazy import special
from discreet.learn.base import Classifier, ClassPlan, codes
from discreet.learn.linear.transformers import limits_of
from discreet.learn.moments import ColumnMoments, column_steps, release_columns
from discreet.learn.row_inputs import rows_to_fit, rows_to_predict
from discreet.learn.weights import no_weights
from discreet.privacy.events import Event, Gaussian

Floats = NDArray[np.float64]

_LEAST = 0.05  # of the variance of noise is granted to what it hides


class GaussianNB(Classifier):
    """Naive Bayes with normal features and differential privacy.

    Formal guarantee: counts, sums and centred squares of clipped integer features of each class are one Gaussian
    release; a row is in one class, and a replaced row may move to another, see `moments.shares`. Classes are
    public, or found for a part of the budget, see `ClassPlan`. All else is post-processing: means and variances are
    drawn towards those of all classes as far as noise explains that they differ (James and Stein 1961), and the noise
    of a mean is added to its variance.

    Args:
        epsilon: what a fit may cost.
        delta: strictly between 0 and 1.
        bounds: public limits (low, high) of the features, numbers or arrays.
        classes: the public classes; None to find them privately.
        priors: public probabilities of public classes, in their sorted order; None to use private counts.
        var_smoothing: this part of the largest variance is added to all.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed that protects nobody.

    Attributes after `fit`, beside those of `Learner`:
        classes_, class_count_, class_prior_: classes, their noisy counts (at least 1) and probabilities.
        theta_, var_: means and variances, a row for each class.

    >>> X = np.arange(4000.0).reshape(-1, 2) % 10
    >>> y = (X[:, 0] > 4).astype(int)
    >>> model = GaussianNB(epsilon=1, bounds=(0, 10), classes=[0, 1], random_state=1).fit(X, y)
    >>> model.predict([[1.0, 2.0], [8.0, 9.0]])
    array([0, 1])
    """

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        classes: Any = None,
        priors: Any = None,
        var_smoothing: Any = 1e-9,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.neighbours = neighbours
        self.random_state = random_state

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features.

        It is one Gaussian release, after finding the classes if need be.
        """
        limits_of(self._bounds, n_features)
        check.not_negative(var_smoothing=self.var_smoothing)
        plan = self._class_plan()
        self._priors(plan)
        return plan.composed(Gaussian(noise_multiplier=plan.rest.noise_multiplier))

    def fit(self, X: Any, y: Any, **weights: Any) -> GaussianNB:
        """Fits the model; rows of other classes count nowhere, missing values are the middle of their bounds."""
        no_weights(weights)
        X = rows_to_fit(self, X)
        if y is None:
            raise InvalidValue("to be labels; GaussianNB requires y to be passed, but the target y is None", "Pass y.")
        labels = column_or_1d(y, warn=True)
        check_consistent_length(X, labels)
        event, bits, plan = self._affordable(self.plan_event(self.n_features_in_)), self._bits(), self._class_plan()
        low, high = limits_of(self._bounds, self.n_features_in_)
        smoothing = float(check.not_negative(var_smoothing=self.var_smoothing))
        self.classes_ = plan.read(labels, bits)
        priors = self._priors(plan)
        found = release_columns(
            column_steps(X, low, high),
            codes(labels, self.classes_),
            len(self.classes_),
            spending=plan.rest,
            neighbours=self._relation,
            bits=bits,
        )
        self._keep(found, low, high, smoothing)
        self.class_prior_ = found.count / found.count.sum() if priors is None else priors
        self._account(event, bits)
        return self

    def predict(self, X: Any) -> Any:
        """Predicts the likeliest class of each row."""
        joint = self.predict_joint_log_proba(X)
        return self.classes_[np.argmax(joint, axis=1)]

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Returns log P(class) + log density of the row in it, a column for each class."""
        check_is_fitted(self)
        X = rows_to_predict(self, X, finite="allow-nan")
        columns = []
        for mean, variance in zip(self.theta_, self.var_, strict=True):
            away = (X - mean) ** 2 / variance + np.log(2 * np.pi * variance)
            columns.append(-0.5 * np.sum(np.where(np.isnan(X), 0.0, away), axis=1))
        return np.asarray(np.log(self.class_prior_) + np.stack(columns, axis=1))

    def predict_log_proba(self, X: Any) -> Floats:
        """Returns log probabilities of the classes."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(joint - special.logsumexp(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Floats:
        """Returns probabilities of the classes."""
        return np.exp(self.predict_log_proba(X))

    def _priors(self, plan: ClassPlan) -> Floats | None:
        """The public probabilities of the classes, if there are any."""
        if self.priors is None:
            return None
        if plan.declared is None:  # how many there are is known when all is paid for
            raise InvalidParameter("priors", self.priors, "to come with public classes", "Pass e.g. classes=[0, 1].")
        found = np.asarray(self.priors, dtype=np.float64)
        if found.shape != plan.declared.shape or not (found > 0).all() or not np.isclose(found.sum(), 1):
            hint = "Pass one positive number for each class, or None."
            raise InvalidParameter("priors", self.priors, "to be probabilities of the classes", hint)
        return found

    def _keep(self, found: ColumnMoments, low: Floats, high: Floats, smoothing: float) -> None:
        """The model in the units of the data."""
        half = (high - low) / 2
        errors = np.broadcast_to(found.mean_error[:, None], found.mean.shape)
        mean, left = _drawn(found.mean, found.count, errors)
        variance = np.maximum(_drawn(found.variance, found.count, found.variance_error)[0], 0.0) + left
        self.theta_ = (low + high) / 2 + half * mean
        self.var_ = half**2 * variance
        self.var_ = self.var_ + smoothing * self.var_.max()
        self.class_count_ = found.count


def _drawn(values: Floats, count: Floats, error: Floats) -> tuple[Floats, float]:
    """Values of classes drawn to their weighted mean, by the share of their distance that noise explains.

    Also the variance that noise leaves to them, on average: one number for all, as it says nothing about a class.

    Distances have the variance tau^2 + error^2, tau^2 the same for all classes and features; each is multiplied by
    tau^2 / (tau^2 + error^2). A little of it is kept even if noise explains all, because its direction still tells.
    """
    away = values - np.average(values, axis=0, weights=count)
    precision = 1 / np.maximum(error, 1e-12) ** 2
    excess = float(np.average(away**2 - error**2, weights=precision))
    spread = max(excess, _LEAST / float(np.mean(precision)))
    part = error**2 / (spread + error**2)
    return np.asarray(values - away * part), float(np.average(spread * part, weights=precision))
