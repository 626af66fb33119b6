"""Linear and ridge regression from one noisy matrix of second moments, with intervals of the coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from discreet import check
from discreet.errors import InvalidParameter, InvalidValue
from discreet.learn.base import Learner
from discreet.learn.features import Features, ends, features
from discreet.learn.least_squares import Solution, reach, solve
from discreet.learn.moments import Labels, Moments, constant_of, joint_rows, label_radius, release_moments
from discreet.privacy.events import Event, Gaussian
from discreet.statistics.inputs import RADIUS

Floats = NDArray[np.float64]

_HINT = "Labels are clipped to public bounds, never read from the data: pass e.g. label_bounds=(0.0, 100.0)."


class LinearRegression(RegressorMixin, MultiOutputMixin, Learner):  # type: ignore[misc]  # no annotations
    """Least squares with differential privacy: coefficients, an intercept, and intervals that include the noise.

    Formal guarantee: one `fit` is the event Gaussian(noise_multiplier), with the multiplier that (epsilon, delta) asks
    for by the exact curve (Balle, Wang 2018); all attributes are functions of one noisy matrix of second moments of
    (row, constant, labels), see `release_moments`. Rows longer than `norm_bound` are shrunk together with their labels,
    labels are clipped, both with integer arithmetic, with or without an intercept. Adaptive ridge in the manner of Wang
    (2018, "Revisiting differentially private linear regression"), by `least_squares.solve`.

    Intervals cover the coefficients of the linear model that the rows come from (not clipped labels), if residuals
    have one variance and the clipping of labels is rare.

    Args:
        epsilon: what a fit may cost.
        delta: strictly between 0 and 1; Gaussian noise has no pure guarantee.
        bounds: public limits (low, high) of the features, numbers or arrays; or
        norm_bound: the length that a row may have, public. For d features of deviation 1 around 0, 1.3 sqrt(d) is a
            good choice.
        label_bounds: public limits (low, high) of the labels; four deviations to each side is a good choice.
        fit_intercept: whether there is an intercept.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed that protects nobody.

    Attributes after `fit`, beside those of `Learner`:
        coef_, intercept_: as in scikit-learn.
        coef_interval_: two arrays like `coef_`, the ends of 95 % intervals; see `conf_int`.

    >>> X = np.arange(2000).reshape(1000, 2) % 7 - 3.0
    >>> model = LinearRegression(epsilon=8, norm_bound=4.5, label_bounds=(-15, 15), random_state=1)
    >>> model.fit(X, X @ [2.0, -1.0] + 1).coef_.round(1)
    array([ 2., -1.])
    """

    coef_: Floats
    intercept_: Any
    coef_centre_: Floats
    coef_error_: Floats
    coef_interval_: tuple[Floats, Floats]
    freedom_: float

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        norm_bound: Any = None,
        label_bounds: Any = None,
        fit_intercept: bool = True,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm_bound = norm_bound
        self.label_bounds = label_bounds
        self.fit_intercept = fit_intercept
        self.neighbours = neighbours
        self.random_state = random_state

    def plan_event(self, n_features: int) -> Event:
        """The event of a fit on so many features: one Gaussian release, whatever the number of labels."""
        self._penalty(self._public(n_features))
        self._check_label_bounds()
        return Gaussian(noise_multiplier=self._spending().noise_multiplier)

    def fit(self, X: Any, y: Any) -> LinearRegression:
        """Fits the model; rows with missing labels count nowhere, missing features are the middle of their bounds.

        Raises:
            InvalidParameter: if bounds are missing or wrong, before anything is read.
        """
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0)
        targets = _targets(y)
        check_consistent_length(X, targets)
        public, event, bits = self._public(self.n_features_in_), self.plan_event(self.n_features_in_), self._bits()
        labels = self._labels(targets.shape[1])
        moments = release_moments(
            joint_rows(public, X, labels, targets),
            public=public,
            labels=labels,
            spending=self._spending(),
            neighbours=self._relation,
            bits=bits,
        )
        self._keep(moments, public, labels, flat=np.asarray(y).ndim == 1)
        self._account(event, bits)
        return self

    def predict(self, X: Any) -> Floats:
        """What the model expects for rows."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=False)
        return np.asarray(np.nan_to_num(X, nan=0.0) @ self.coef_.T + self.intercept_)

    def conf_int(self, confidence: Any = 0.95) -> tuple[Floats, Floats]:
        """The ends of intervals of each coefficient: sampling error and noise; infinite where noise decided.

        A function of released values: asking costs nothing. Each interval holds with this confidence by itself.
        """
        check_is_fitted(self)
        half = self.coef_error_ * reach(float(check.probability(confidence=confidence)), self.freedom_)
        return self.coef_centre_ - half, self.coef_centre_ + half

    def _public(self, count: int) -> Features:
        """What is known of rows; without an intercept nothing may be moved, so bounds become symmetric around 0."""
        bounds = self.bounds
        if bounds is not None and not self.fit_intercept:
            low, high = ends(bounds, count)
            widest = np.maximum(np.abs(low), np.abs(high))
            bounds = (-widest, widest)
        return features(count, bounds=bounds, norm_bound=self.norm_bound, constant=1 / np.sqrt(count))

    def _check_label_bounds(self) -> None:
        """Whatever is wrong with them for any number of labels is said before anything is paid."""
        if self.label_bounds is None:
            raise InvalidParameter("label_bounds", None, "to be given", _HINT)
        sizes = [np.size(end) for end in self.label_bounds] if isinstance(self.label_bounds, tuple | list) else [1]
        ends(self.label_bounds, max(sizes, default=1), "label_bounds", _HINT)

    def _labels(self, count: int) -> Labels:
        low, high = ends(self.label_bounds, count, "label_bounds", _HINT)
        radius = label_radius(self.n_features_in_, count)
        if self.fit_intercept:
            return Labels(centre=(low + high) / 2, spread=(high - low) / 2, radius=radius)
        return Labels(centre=np.zeros(count), spread=np.maximum(np.abs(low), np.abs(high)), radius=radius)

    def _penalty(self, public: Features) -> Floats:
        """What is added to the diagonal of the moments of normalised rows: nothing."""
        return np.zeros(public.count + 1)

    def _keep(self, moments: Moments, public: Features, labels: Labels, *, flat: bool) -> None:
        """Coefficients in the units of the data, from those of normalised rows and labels."""
        penalty, wide = self._penalty(public), bool(self.fit_intercept)
        found = [solve(moments, label, penalty=penalty, intercept=wide) for label in range(labels.count)]
        scale = labels.spread[:, None] / (RADIUS * public.unit * public.spread)
        coef = scale * _stacked(found, "theta", public.count)
        intercept = np.zeros(labels.count)
        if wide:
            ones = np.array([solution.theta[-1] for solution in found]) * constant_of(public) / RADIUS
            intercept = labels.centre + labels.spread * ones - coef @ public.centre
        self.coef_, self.intercept_ = (coef[0], float(intercept[0])) if flat else (coef, intercept)
        centre, error = (scale * _stacked(found, name, public.count) for name in ("centre", "error"))
        self.coef_centre_, self.coef_error_ = (centre[0], error[0]) if flat else (centre, error)
        self.freedom_ = found[0].freedom
        self.coef_interval_ = self.conf_int()


class Ridge(LinearRegression):
    """Least squares with the penalty alpha ||coef||^2 and differential privacy; the intercept has no penalty.

    Formal guarantee: that of `LinearRegression`. Intervals are about the coefficients that ridge regression has on the
    whole population with as many rows.

    Args:
        alpha: the penalty, at least 0, in the units of the features as in scikit-learn.
        epsilon, delta, bounds, norm_bound, label_bounds, fit_intercept, neighbours, random_state: as for
            `LinearRegression`.

    >>> X = np.arange(2000).reshape(1000, 2) % 7 - 3.0
    >>> model = Ridge(alpha=4000.0, epsilon=8, norm_bound=4.5, label_bounds=(-15, 15), random_state=1)
    >>> model.fit(X, X @ [2.0, -1.0] + 1).coef_.round(1)
    array([ 0.9, -0.4])
    """

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        norm_bound: Any = None,
        label_bounds: Any = None,
        fit_intercept: bool = True,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            norm_bound=norm_bound,
            label_bounds=label_bounds,
            fit_intercept=fit_intercept,
            neighbours=neighbours,
            random_state=random_state,
        )
        self.alpha = alpha

    def _penalty(self, public: Features) -> Floats:
        """alpha in the units of normalised rows; the constant has none."""
        alpha = float(check.not_negative(alpha=self.alpha))
        return np.append(alpha / (RADIUS * public.unit * public.spread) ** 2, 0.0)


def _targets(y: Any) -> Floats:
    """Labels as a table of floats; nothing is said about their values."""
    if y is None:
        raise InvalidValue("to be labels; this estimator requires y to be passed, but the target y is None", "Pass y.")
    given = np.asarray(y)
    if given.ndim not in (1, 2) or given.dtype.kind not in "biufO":
        raise InvalidValue("to be numeric labels", "Pass one number for each row, or a row of numbers.")
    try:
        return (given if given.ndim == 2 else given[:, None]).astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidValue("to be numeric labels", "Pass one number for each row, or a row of numbers.") from None


def _stacked(found: list[Solution], name: str, count: int) -> Floats:
    return np.stack([np.asarray(getattr(solution, name))[:count] for solution in found])
