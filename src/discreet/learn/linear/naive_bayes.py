"""Naive Bayes for numbers: private counts, means and variances of each class."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import root_above
from discreet.lazy import special
from discreet.learn.learner import ClassifierBase, ClassPlan, codes
from discreet.learn.linear.transformers import limits_of
from discreet.learn.noisy_moments import STEPS, ColumnMoments, column_steps, release_columns
from discreet.learn.row_inputs import rows_to_fit, rows_to_predict
from discreet.learn.weights import no_weights
from discreet.mechanisms import Gaussian
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

COMPARED = Fraction(1, 10)  # of mu^2, for comparing the candidates below
_LARGEST = 2.0**61  # of an integer score, so that scores and the largest constants add up below 2^63
_NARROWEST = 2.0**-40  # of variances by which rows are compared, where bounds are -1 and 1
_LEAST = 0.05  # of the variance of noise is granted to what it hides


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """One way to use the same moments: P(class | row) ~ P(class) density^temperature.

    Attributes:
        pooled: whether all classes have the same variances, their weighted mean.
        temperature: less than 1 trusts the features less than if they were independent; 0 is the prior alone.
    """

    pooled: bool
    temperature: Fraction


# The textbook's model comes first: it wins ties. The last one predicts the most frequent class.
CANDIDATES = (
    _Candidate(pooled=False, temperature=Fraction(1)),
    _Candidate(pooled=True, temperature=Fraction(1)),
    _Candidate(pooled=False, temperature=Fraction(1, 8)),
    _Candidate(pooled=True, temperature=Fraction(1, 4)),
    _Candidate(pooled=False, temperature=Fraction(0)),
)


class GaussianNB(ClassifierBase):
    """Naive Bayes with normal features and differential privacy.

    Features that are not independent make naive Bayes too sure of itself, and noise makes it wrong: it may then be
    worse than the most frequent class. So the fitted moments are used in one of five ways, whichever is right about
    most rows by a noisy comparison: as they are, with variances that all classes share, with the densities of features
    to the power `temperature_` (1/8, or 1/4 with shared variances), and not at all, which leaves the prior. A model
    that is chosen over the prior is right about as many training rows but for the noise of the comparison.

    Formal guarantee: counts, sums and centred squares of clipped integer features of each class are one Gaussian
    release; a row is in one class, and a replaced row may move to another, see `moments.shares`. Classes are
    public, or found for a part of the budget, see `ClassPlan`. Means and variances are post-processing: they are
    drawn towards those of all classes as far as noise explains that they differ (James and Stein 1961), and the noise
    of a mean is added to its variance. A second Gaussian release, a tenth of mu^2, compares the five candidates: a row
    adds +1 or -1 to each, so that one row added moves them by sqrt(5), one replaced by 2 sqrt(5), in the L2 norm;
    whether a candidate is right is decided in integers, by the row and by what was released. mu-GDP adds up in squares
    (Dong, Roth, Su 2022, Corollary 3.3).

    Args:
        epsilon: what a fit may cost.
        delta: strictly between 0 and 1.
        bounds: public limits (low, high) of the features, numbers or arrays.
        classes: the public classes; None to find them privately.
        priors: public probabilities of public classes, in their sorted order; None to use private counts.
        var_smoothing: this part of the largest variance is added to all.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes after `fit`, in addition to those of `Learner`:
        classes_, class_count_, class_prior_: classes, their noisy counts (at least 1) and probabilities.
        theta_, var_: means and variances, a row for each class; equal rows of variances if they are shared.
        temperature_: the power of the densities, 1, 1/4, 1/8 or 0; at 0 the likeliest class of the prior is predicted.

    >>> X = np.arange(4000.0).reshape(-1, 2) % 10
    >>> y = (X[:, 0] > 4).astype(int)
    >>> model = GaussianNB(epsilon=1, bounds=(0, 10), classes=[0, 1], random_state=1).fit(X, y)
    >>> model.predict([[1.0, 2.0], [8.0, 9.0]])
    array([0, 1])
    """

    temperature_: float

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

        It is two Gaussian releases, moments and the comparison, after finding the classes if need be.
        """
        limits_of(self._bounds, n_features)
        check.not_negative(var_smoothing=self.var_smoothing)
        plan = self._class_plan()
        self._priors(plan)
        moments = events.Gaussian(plan.rest.share(1 - COMPARED).noise_multiplier)
        return plan.compose_event(events.Composed([moments, _comparison(plan.rest, self._relation).event]))

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
        steps, places = column_steps(X, low, high), codes(labels, self.classes_)
        found = release_columns(
            steps,
            places,
            len(self.classes_),
            spending=plan.rest.share(1 - COMPARED),
            neighbours=self._relation,
            bits=bits,
        )
        self._keep(found, low, high, smoothing)
        self.class_prior_ = found.count / found.count.sum() if priors is None else priors
        comparison = _comparison(plan.rest, self._relation)
        self._choose(_votes(steps, places, self._rules(low, high)), comparison, bits)
        self._account(event, bits)
        return self

    def predict(self, X: Any) -> Any:
        """Predicts the likeliest class of each row."""
        joint = self.predict_joint_log_proba(X)
        return self.classes_[np.argmax(joint, axis=1)]

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Returns log P(class) + `temperature_` log density of the row in it, a column for each class."""
        check_is_fitted(self)
        X = rows_to_predict(self, X, finite="allow-nan")
        temperature = getattr(self, "temperature_", 1.0)  # models that were saved before there was a choice have none
        if temperature == 0:  # also for rows whose density is 0 in floats
            return np.tile(np.log(self.class_prior_), (len(X), 1))
        columns = []
        for mean, variance in zip(self.theta_, self.var_, strict=True):
            away = (X - mean) ** 2 / variance + np.log(2 * np.pi * variance)
            columns.append(-0.5 * np.sum(np.where(np.isnan(X), 0.0, away), axis=1))
        return np.asarray(np.log(self.class_prior_) + temperature * np.stack(columns, axis=1))

    def predict_log_proba(self, X: Any) -> Floats:
        """Returns log probabilities of the classes."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(joint - special.logsumexp(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Floats:
        """Returns probabilities of the classes."""
        return np.exp(self.predict_log_proba(X))

    def _priors(self, plan: ClassPlan) -> Floats | None:
        """Returns the public probabilities of the classes, if there are any."""
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
        """Returns the model in the units of the data."""
        half = (high - low) / 2
        errors = np.broadcast_to(found.mean_error[:, None], found.mean.shape)
        mean, left = _shrink_to_mean(found.mean, found.count, errors)
        variance = np.maximum(_shrink_to_mean(found.variance, found.count, found.variance_error)[0], 0.0) + left
        self.theta_ = (low + high) / 2 + half * mean
        self.var_ = half**2 * variance
        self.var_ = self.var_ + smoothing * self.var_.max()
        self.class_count_ = found.count

    def _shared_variances(self) -> Floats:
        """Returns the variances that all classes share, if that is chosen."""
        mean = np.average(self.var_, axis=0, weights=self.class_count_)
        return np.repeat(mean[None], len(self.classes_), axis=0)

    def _rules(self, low: Floats, high: Floats) -> list[_Rule]:
        """Returns what each candidate would predict, as integers: of released values only."""
        half = (high - low) / 2
        mean, own, shared = (
            (self.theta_ - (low + high) / 2) / half,
            self.var_ / half**2,
            self._shared_variances() / half**2,
        )
        prior = np.log(self.class_prior_)
        return [_rule(mean, shared if one.pooled else own, prior, one.temperature) for one in CANDIDATES]

    def _choose(self, votes: Integers, comparison: Gaussian, bits: Bits) -> None:
        """Keeps the candidate that is right about most rows, by a noisy count."""
        best = CANDIDATES[int(np.argmax(comparison.release(votes, bits=bits)))]
        self.temperature_ = float(best.temperature)
        if best.pooled:
            self.var_ = self._shared_variances()


def _comparison(rest: Spending, neighbours: Neighbours) -> Gaussian:
    """Returns the comparison's noise: a row adds a vector of +1 and -1, sqrt(k) long; a replacement may flip all."""
    turned = 1 if neighbours is Neighbours.ADD_REMOVE else 4
    return Gaussian.with_multiplier(
        noise_multiplier=rest.share(COMPARED).noise_multiplier,
        sensitivity=root_above(Fraction(turned * len(CANDIDATES))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """Integer coefficients of scores, a column for each class: scores of the same row are the same in every table.

    Attributes:
        squares: of squared steps; None if classes have the same, so that they decide nothing.
        steps: of steps.
        constant: of each class.
    """

    squares: Integers | None
    steps: Integers
    constant: Integers

    def predict(self, steps: Integers, squared: Integers) -> Integers:
        """Returns the place of the highest score of each row, the first of several."""
        scores = steps @ self.steps + self.constant
        if self.squares is not None:
            scores += squared @ self.squares
        return np.asarray(np.argmax(scores, axis=1), dtype=np.int64)


def _rule(mean: Floats, variance: Floats, prior: Floats, temperature: Fraction) -> _Rule:
    """Returns scores log P(class) / temperature + log density, in the finest unit that cannot overflow.

    With a row u = steps / STEPS, |u| <= 1, the log density is the sum of u m / v - u^2 / 2 v and a constant. The most
    that a score can be, `most`, becomes _LARGEST; rounding of coefficients adds STEPS^2 for each feature, far less.
    """
    if temperature == 0:
        zeros = np.zeros((mean.shape[1], len(mean)), dtype=np.int64)
        return _Rule(squares=None, steps=zeros, constant=(np.arange(len(mean)) == np.argmax(prior)).astype(np.int64))
    spread = np.maximum(variance, _NARROWEST)
    squares = -0.5 / spread
    linear = mean / spread
    constant = prior / float(temperature) + np.sum(squares * mean**2 - np.log(spread) / 2, axis=1)
    most = float(np.max(np.sum(np.abs(squares) + np.abs(linear), axis=1) + np.abs(constant)))
    unit = _LARGEST / max(most, 1.0)
    same = bool((squares == squares[0]).all())
    return _Rule(
        squares=None if same else _whole(squares.T, unit / STEPS**2),
        steps=_whole(linear.T, unit / STEPS),
        constant=_whole(constant, unit),
    )


def _whole(values: Floats, unit: float) -> Integers:
    return np.asarray(np.rint(values * unit), dtype=np.int64)


def _votes(steps: Integers, places: Integers, rules: list[_Rule]) -> Integers:
    """Counts, for each rule, rows it predicts right less those it predicts wrong; rows of no class count nowhere."""
    known, labels = steps[places >= 0], places[places >= 0]
    squared = known * known
    right = [np.count_nonzero(rule.predict(known, squared) == labels) for rule in rules]
    return 2 * np.array(right, dtype=np.int64) - len(labels)


def _shrink_to_mean(values: Floats, count: Floats, error: Floats) -> tuple[Floats, float]:
    """Moves values of classes to their weighted mean, by the share of their distance that noise explains.

    Also the variance that noise leaves to them, on average: one number for all, as it says nothing about a class.

    Distances have the variance tau^2 + error^2, tau^2 the same for all classes and features; each is multiplied by
    tau^2 / (tau^2 + error^2). A little of it is kept even if noise explains all, because its direction still separates
    classes.
    """
    away = values - np.average(values, axis=0, weights=count)
    precision = 1 / np.maximum(error, 1e-12) ** 2
    excess = float(np.average(away**2 - error**2, weights=precision))
    spread = max(excess, _LEAST / float(np.mean(precision)))
    part = error**2 / (spread + error**2)
    return np.asarray(values - away * part), float(np.average(spread * part, weights=precision))
