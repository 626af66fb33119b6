"""Linear and ridge regression from one noisy matrix of second moments, with intervals of the coefficients.

How far each direction is trusted, and how far off the result may be, is post-processing: it reads released numbers and
public ones only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.lazy import stats
from discreet.learn.features import Features, ends, features
from discreet.learn.learner import Learner
from discreet.learn.noisy_moments import (
    NumericLabels,
    SecondMoments,
    constant_of,
    joint_rows,
    label_radius,
    release_moments,
)
from discreet.learn.row_inputs import rows_to_fit, rows_to_predict
from discreet.learn.weights import ROOT_ONE, root_shares, shrink_values
from discreet.privacy.events import Event, Gaussian
from discreet.statistics.inputs import RADIUS

Floats = NDArray[np.float64]

_SCALES = np.geomspace(1e-8, 1e8, 81)  # of the variance of a coefficient of normalised rows
_TRUSTED = 0.5  # of the smallest eigenvalue may be noise, for an interval to be finite

_HINT = "Labels are clipped to public bounds, never read from the data: pass e.g. label_bounds=(0.0, 100.0)."


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionSolution:
    """Coefficients of normalised rows for one label in [-1, 1].

    Attributes:
        theta: the coefficients, shrunk where noise is all there is.
        centre: the same without shrinking: the middle of intervals.
        error: the standard error of `centre`; infinite where noise could have decided.
        freedom: degrees of freedom of the residual variance.
    """

    theta: Floats
    centre: Floats
    error: Floats
    freedom: float


def solve(moments: SecondMoments, label: int, *, penalty: Floats, intercept: bool) -> RegressionSolution:
    """Returns the coefficients of one label, from moments with noise.

    With A, v the noisy moments and P the penalty, H = A + P, the coefficients theta that the exact moments give
    satisfy v = H theta + e - E theta, where e and E are the noise of v and A. The entries of e - E theta have variance
    s^2 = cross_sigma^2 + sigma^2 ||theta||^2 / 2 (a little more along theta), which is known. So theta is
    estimated as from a linear model with known noise: the posterior mean for theta ~ N(0, tau^2 I), that minimises
    ||v - H theta||^2 / s^2 + ||theta||^2 / tau^2, tau chosen by maximal likelihood of v. It exists whatever the noise
    did to H, is close to H^-1 v where that is reliable, and close to 0 where it is not: an adaptive ridge, as in Wang
    (2018, AdaSSP), that needs no release of the smallest eigenvalue.

    Args:
        moments: released.
        label: which one.
        penalty: P, the diagonal.
        intercept: whether the constant takes part.
    """
    used = len(moments.rows) - (0 if intercept else 1)
    H = moments.rows[:used, :used] + np.diag(penalty[:used])
    v = moments.cross[:used, label]
    values, vectors = np.linalg.eigh(H)
    known = 1 / moments.constant**2 if intercept else None  # a label of constant rows lies in [-1, 1]
    variance = _likeliest(values, vectors, v, moments, known)
    noise = moments.cross_sigma**2 + moments.sigma**2 * used * variance / 2
    roots = np.full(used, np.sqrt(noise / variance))
    if known is not None:
        roots[-1] = np.sqrt(noise / known)
    theta = np.linalg.lstsq(np.vstack([H, np.diag(roots)]), np.concatenate([v, np.zeros(used)]), rcond=None)[0]
    centre, error = _errors((values, vectors), theta, v, moments, label)
    return RegressionSolution(theta=theta, centre=centre, error=error, freedom=max(1.0, moments.weight - used))


def _likeliest(values: Floats, vectors: Floats, v: Floats, moments: SecondMoments, known: float | None) -> float:
    """Returns tau^2 under which v is likeliest; the last coefficient has the variance `known`, if there is one.

    The covariance of v is tau^2 H^2 + s^2 I + (known - tau^2) h h', h the last column of H: in the eigenvectors of H a
    diagonal matrix and one of rank 1, so that its determinant and its inverse follow from sums (Sherman and Morrison).
    """
    seen, last = vectors.T @ v, values * vectors[-1]
    noise = moments.cross_sigma**2 + moments.sigma**2 * len(v) * _SCALES / 2
    spread = _SCALES[:, None] * values**2 + noise[:, None]
    scores = -np.sum(np.log(spread) + seen**2 / spread, axis=1)
    if known is not None:
        more = known - _SCALES
        size = 1 + more * np.sum(last**2 / spread, axis=1)
        scores += more * np.sum(last * seen / spread, axis=1) ** 2 / size - np.log(size)
    return float(_SCALES[np.argmax(scores)])


def _errors(
    spectrum: tuple[Floats, Floats], theta: Floats, v: Floats, moments: SecondMoments, label: int
) -> tuple[Floats, Floats]:
    """Returns H^-1 v and its standard errors: noise of both moments, and sampling.

    H^-1 v - theta = H^-1 (r + e - E theta) exactly, r the cross moments of residuals, whose covariance is the residual
    variance times A; that of E theta is sigma^2 (||theta||^2 I + theta theta') / 2 (entries off the diagonal have half
    the variance). H^-1 has met that noise as well: errors grow by 1 / (1 - f), f the share of its smallest eigenvalue
    that noise may be (its norm is about sigma sqrt(2 size)); beyond a half no finite error is given.
    """
    (values, vectors), used, sigma = spectrum, len(v), moments.sigma
    share = sigma * np.sqrt(2.0 * used) / max(float(values.min()), 1e-300)
    if values.min() <= 0 or share > _TRUSTED:
        return theta, np.full(used, np.inf)
    inverse = (vectors / values) @ vectors.T
    centre = inverse @ v
    sampling = residual_variance(moments, label, centre) * moments.rows[:used, :used]
    noise = moments.cross_sigma**2 * np.eye(used)
    noise += sigma**2 / 2 * (np.sum(centre**2) * np.eye(used) + np.outer(centre, centre))
    variances = np.diag(inverse @ (sampling + noise) @ inverse)
    return centre, np.sqrt(np.maximum(variances, 0)) / (1 - share)


def residual_variance(moments: SecondMoments, label: int, theta: Floats) -> float:
    """Returns the variance of residuals in the units of normalised labels, one deviation of its noise on the safe side.

    It is (sum u^2 - 2 theta'v + theta'A theta) / weight; in the exact moments the noise of theta'A theta has the
    deviation sigma ||theta||^2, as theta theta' has that Frobenius norm.
    """
    used, size = len(theta), float(np.sum(theta**2))
    squares = moments.labels[label, label] - 2 * theta @ moments.cross[:used, label]
    squares += theta @ moments.rows[:used, :used] @ theta
    slack = np.sqrt(moments.label_sigma**2 + 4 * size * moments.cross_sigma**2 + size**2 * moments.sigma**2)
    return float(max(squares, 0.0) + slack) / max(1.0, moments.weight - used)


def reach(confidence: float, freedom: float) -> float:
    """Returns how many standard errors an interval of this confidence goes to either side."""
    return float(stats.t.ppf((1 + confidence) / 2, freedom))


class LinearRegression(RegressorMixin, MultiOutputMixin, Learner):  # type: ignore[misc]  # no annotations
    """Least squares with differential privacy: coefficients, an intercept, and intervals that include the noise.

    Formal guarantee: one `fit` is the event Gaussian(noise_multiplier), with the multiplier that (epsilon, delta) asks
    for by the exact curve (Balle, Wang 2018); all attributes are functions of one noisy matrix of second moments of
    (row, constant, labels), see `release_moments`. Rows longer than `norm_bound` are shrunk together with their labels,
    labels are clipped, both with integer arithmetic, with or without an intercept. Adaptive ridge in the manner of Wang
    (2018, "Revisiting differentially private linear regression"), by `solve`.

    Intervals cover the coefficients of the linear model that the rows come from (not clipped labels), if residuals
    have one variance and the clipping of labels is rare.

    Args:
        epsilon: what a fit may cost.
        delta: strictly between 0 and 1; Gaussian noise has no pure guarantee.
        bounds: public limits (low, high) of the features, numbers or arrays; or
        norm_bound: the length that a row may have, public. For d features of deviation 1 around 0, 1.3 sqrt(d) is a
            good choice.
        label_bounds: public limits (low, high) of the labels; four deviations to each side is a good choice.
        weight_bound: the largest that `sample_weight` of a row may be, public, 1 by default. Weights are clipped to it
            and divided by it, and a row's moments are multiplied by the result: its sensitivity is that of weight 1.
            Intervals take a weight for that part of a row.
        fit_intercept: whether there is an intercept.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes after `fit`, in addition to those of `Learner`:
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
        weight_bound: Any = None,
        fit_intercept: bool = True,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm_bound = norm_bound
        self.label_bounds = label_bounds
        self.weight_bound = weight_bound
        self.fit_intercept = fit_intercept
        self.neighbours = neighbours
        self.random_state = random_state

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features: one Gaussian release, whatever the number of labels."""
        self._penalty(self._public(n_features))
        check.positive(weight_bound=1 if self.weight_bound is None else self.weight_bound)
        self._check_label_bounds()
        return Gaussian(noise_multiplier=self._spending().noise_multiplier)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegression:
        """Fits the model; rows with missing labels count nowhere, missing features are the middle of their bounds.

        Raises:
            InvalidParameter: if bounds are missing or wrong, before anything is read.
        """
        X = rows_to_fit(self, X)
        targets = _targets(y)
        check_consistent_length(X, targets)
        public, event, bits = self._public(self.n_features_in_), self.plan_event(self.n_features_in_), self._bits()
        labels = self._labels(targets.shape[1])
        rows = joint_rows(public, X, labels, targets)
        if sample_weight is not None:
            rows = shrink_values(rows, root_shares(sample_weight, len(rows), self.weight_bound), ROOT_ONE)
        moments = release_moments(
            rows,
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
        """Predicts what the model expects for rows."""
        check_is_fitted(self)
        X = rows_to_predict(self, X)
        return np.asarray(np.nan_to_num(X, nan=0.0) @ self.coef_.T + self.intercept_)

    def conf_int(self, confidence: Any = 0.95) -> tuple[Floats, Floats]:
        """Returns the ends of intervals of each coefficient: sampling error and noise; infinite where noise decided.

        A function of released values: asking costs nothing. Each interval alone holds with this confidence.
        """
        check_is_fitted(self)
        half = self.coef_error_ * reach(float(check.probability(confidence=confidence)), self.freedom_)
        return self.coef_centre_ - half, self.coef_centre_ + half

    def _public(self, count: int) -> Features:
        """Returns public facts of rows; without an intercept nothing may move, so bounds become symmetric around 0."""
        bounds = self._bounds
        if bounds is not None and not self.fit_intercept:
            low, high = ends(bounds, count)
            widest = np.maximum(np.abs(low), np.abs(high))
            bounds = (-widest, widest)
        return features(count, bounds=bounds, norm_bound=self.norm_bound, constant=1 / np.sqrt(count))

    def _check_label_bounds(self) -> None:
        """Refuses bounds that are wrong for any number of labels, before anything is paid."""
        if self.label_bounds is None:
            raise InvalidParameter("label_bounds", None, "to be given", _HINT)
        sizes = [np.size(end) for end in self.label_bounds] if isinstance(self.label_bounds, tuple | list) else [1]
        ends(self.label_bounds, max(sizes, default=1), "label_bounds", _HINT)

    def _labels(self, count: int) -> NumericLabels:
        low, high = ends(self.label_bounds, count, "label_bounds", _HINT)
        radius = label_radius(self.n_features_in_, count)
        if self.fit_intercept:
            return NumericLabels(centre=(low + high) / 2, spread=(high - low) / 2, radius=radius)
        return NumericLabels(centre=np.zeros(count), spread=np.maximum(np.abs(low), np.abs(high)), radius=radius)

    def _penalty(self, public: Features) -> Floats:
        """Returns what is added to the diagonal of the moments of normalised rows: nothing."""
        return np.zeros(public.count + 1)

    def _keep(self, moments: SecondMoments, public: Features, labels: NumericLabels, *, flat: bool) -> None:
        """Returns coefficients in the units of the data, from those of normalised rows and labels."""
        penalty, wide = self._penalty(public), bool(self.fit_intercept)
        found = [solve(moments, label, penalty=penalty, intercept=wide) for label in range(labels.count)]
        scale = labels.spread[:, None] / (RADIUS * public.unit * public.spread)
        coef = scale * _stack_solutions(found, "theta", public.count)
        intercept = np.zeros(labels.count)
        if wide:
            ones = np.array([solution.theta[-1] for solution in found]) * constant_of(public) / RADIUS
            intercept = labels.centre + labels.spread * ones - coef @ public.centre
        self.coef_, self.intercept_ = (coef[0], float(intercept[0])) if flat else (coef, intercept)
        centre, error = (scale * _stack_solutions(found, name, public.count) for name in ("centre", "error"))
        self.coef_centre_, self.coef_error_ = (centre[0], error[0]) if flat else (centre, error)
        self.freedom_ = found[0].freedom
        self.coef_interval_ = self.conf_int()


class Ridge(LinearRegression):
    """Least squares with the penalty alpha ||coef||^2 and differential privacy; the intercept has no penalty.

    Formal guarantee: that of `LinearRegression`. Intervals are about the coefficients that ridge regression has on the
    whole population with as many rows.

    Args:
        alpha: the penalty, at least 0, in the units of the features as in scikit-learn.
        epsilon, delta, bounds, norm_bound, label_bounds, weight_bound, fit_intercept, neighbours, random_state: as for
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
        weight_bound: Any = None,
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
            weight_bound=weight_bound,
            fit_intercept=fit_intercept,
            neighbours=neighbours,
            random_state=random_state,
        )
        self.alpha = alpha

    def _penalty(self, public: Features) -> Floats:
        """Returns alpha in the units of normalised rows; the constant has none."""
        alpha = float(check.not_negative(alpha=self.alpha))
        return np.append(alpha / (RADIUS * public.unit * public.spread) ** 2, 0.0)


def _targets(y: Any) -> Floats:
    """Returns labels as a table of floats; nothing is said about their values."""
    if y is None:
        raise InvalidValue("to be labels; this estimator requires y to be passed, but the target y is None", "Pass y.")
    given = np.asarray(y)
    if given.ndim not in (1, 2) or given.dtype.kind not in "biufO":
        raise InvalidValue("to be numeric labels", "Pass one number for each row, or a row of numbers.")
    try:
        return (given if given.ndim == 2 else given[:, None]).astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidValue("to be numeric labels", "Pass one number for each row, or a row of numbers.") from None


def _stack_solutions(found: list[RegressionSolution], name: str, count: int) -> Floats:
    return np.stack([np.asarray(getattr(solution, name))[:count] for solution in found])
