"""Features scaled to mean 0 and variance 1, and principal components, from private moments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet import check
from discreet.errors import InvalidParameter
from discreet.learn.features import Features, ends, features
from discreet.learn.learner import Learner
from discreet.learn.noisy_moments import SecondMoments, column_steps, release_columns, release_moments
from discreet.learn.row_inputs import rows_to_fit, rows_to_predict
from discreet.learn.weights import no_weights
from discreet.privacy import Neighbours
from discreet.privacy.events import Event, Gaussian
from discreet.statistics.inputs import RADIUS

Floats = NDArray[np.float64]

HINT = "Bounds are public and never read from the data: pass bounds=(low, high), numbers or one for each feature."


def limits_of(bounds: Any, count: int) -> tuple[Floats, Floats]:
    """Returns the public limits of so many features.

    Raises:
        InvalidParameter: if they are missing or wrong.
    """
    if bounds is None:
        raise InvalidParameter("bounds", None, "to be given", HINT)
    return ends(bounds, count, hint=HINT)


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, Learner):  # type: ignore[misc]  # no annotations
    """Moves features to mean 0 and variance 1, by means and variances that are differentially private.

    Formal guarantee: one `fit` is the event Gaussian(noise_multiplier): the number of rows (under "add_remove"), sums
    and centred squares of clipped integer features are calibrated together, see `release_columns`. A variance that
    noise could have made is set to the size of its noise, at most that of values spread evenly between the bounds.

    Args:
        epsilon: what a fit may cost.
        delta: strictly between 0 and 1.
        bounds: public limits (low, high) of the features, numbers or arrays.
        with_mean: whether to move to mean 0.
        with_std: whether to scale to variance 1.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes after `fit`, in addition to those of `Learner`:
        mean_, var_, scale_: of each feature.

    >>> X = np.arange(3000.0).reshape(-1, 1) % 11
    >>> scaler = StandardScaler(epsilon=1, bounds=(0, 20), random_state=1).fit(X)
    >>> scaler.mean_.round(1), scaler.scale_.round(1)
    (array([5.]), array([3.2]))
    """

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        with_mean: bool = True,
        with_std: bool = True,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.with_mean = with_mean
        self.with_std = with_std
        self.neighbours = neighbours
        self.random_state = random_state

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features: one Gaussian release."""
        limits_of(self._bounds, n_features)
        return Gaussian(noise_multiplier=self._spending().noise_multiplier)

    def fit(self, X: Any, y: Any = None, **weights: Any) -> StandardScaler:  # noqa: ARG002  # scikit-learn's interface
        """Learns means and variances; missing values are the middle of their bounds."""
        no_weights(weights)
        X = rows_to_fit(self, X)
        event, bits = self.plan_event(self.n_features_in_), self._bits()
        low, high = limits_of(self._bounds, self.n_features_in_)
        found = release_columns(
            column_steps(X, low, high), None, 1, spending=self._spending(), neighbours=self._relation, bits=bits
        )
        half = (high - low) / 2
        self.mean_ = (low + high) / 2 + half * found.mean[0]
        self.var_ = half**2 * found.variance[0]
        self.scale_ = np.sqrt(self.var_)
        self._account(event, bits)
        return self

    def transform(self, X: Any) -> Floats:
        """Moves and scales rows."""
        shift, scale = self._map()
        X = rows_to_predict(self, X, finite="allow-nan")
        return np.asarray((X - shift) / scale)

    def inverse_transform(self, X: Any) -> Floats:
        """Moves and scales rows back."""
        shift, scale = self._map()
        return np.asarray(np.asarray(X, dtype=np.float64) * scale + shift)

    def _map(self) -> tuple[Any, Any]:
        check_is_fitted(self)
        return self.mean_ if self.with_mean else 0.0, self.scale_ if self.with_std else 1.0


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner):  # type: ignore[misc]  # no annotations
    """Principal component analysis with differential privacy.

    Formal guarantee: one `fit` is the event Gaussian(noise_multiplier). Rows are clipped to a public norm, a constant
    is appended, and their matrix of second moments is released once, with half the variance off the diagonal, see
    `release_symmetric` (Dwork, Talwar, Thakurta, Zhang 2014, with noise fitted to the symmetry). It holds the mean too,
    so that centring is private; all attributes are functions of it.

    Args:
        n_components: how many components to keep; None for as many as there are features.
        epsilon: what a fit may cost.
        delta: strictly between 0 and 1.
        bounds: public limits (low, high) of the features, numbers or arrays; or
        norm_bound: the length that a row may have, public.
        whiten: whether `transform` scales components to variance 1.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes after `fit`, in addition to those of `Learner`:
        components_: a row for each component, those of large variance first.
        explained_variance_, explained_variance_ratio_: of each component; 0 where noise made it negative.
        mean_: of each feature.
        n_components_: how many components there are.

    >>> X = np.array([[1.0, 1.0], [-1.0, -1.0], [0.1, -0.1]] * 300)
    >>> PCA(n_components=1, epsilon=4, norm_bound=2.0, random_state=1).fit(X).components_.round(1)
    array([[0.7, 0.7]])
    """

    def __init__(
        self,
        *,
        n_components: Any = None,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        bounds: Any = None,
        norm_bound: Any = None,
        whiten: bool = False,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm_bound = norm_bound
        self.whiten = whiten
        self.neighbours = neighbours
        self.random_state = random_state

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features: one Gaussian release."""
        self._public(n_features)
        self._component_count(n_features)
        return Gaussian(noise_multiplier=self._spending().noise_multiplier)

    def fit(self, X: Any, y: Any = None, **weights: Any) -> PCA:  # noqa: ARG002  # scikit-learn's interface
        """Finds the components; missing values are the middle of their bounds.

        Raises:
            InvalidParameter: if bounds are missing, or more components are asked for than there are features.
        """
        no_weights(weights)
        X = rows_to_fit(self, X)
        public, event, bits = self._public(self.n_features_in_), self.plan_event(self.n_features_in_), self._bits()
        kept = self._component_count(self.n_features_in_)
        moments = release_moments(
            public.rows(X), public=public, labels=None, spending=self._spending(), neighbours=self._relation, bits=bits
        )
        count = float(max(1, len(X))) if self._relation is Neighbours.REPLACE else moments.weight
        self._keep(moments, public, count, kept)
        self._account(event, bits)
        return self

    def transform(self, X: Any) -> Floats:
        """Expresses rows in terms of the components."""
        check_is_fitted(self)
        X = rows_to_predict(self, X, finite="allow-nan")
        found = (np.where(np.isnan(X), self.mean_, X) - self.mean_) @ self.components_.T
        return np.asarray(found / self._scale())

    def inverse_transform(self, X: Any) -> Floats:
        """Rebuilds rows from their components."""
        check_is_fitted(self)
        return np.asarray((np.asarray(X, dtype=np.float64) * self._scale()) @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _scale(self) -> Any:
        """Returns deviations of components, if they are to be divided by; the largest where noise hides them."""
        if not self.whiten:
            return 1.0
        known = np.where(self.explained_variance_ > 0, self.explained_variance_, self.explained_variance_.max())
        return np.sqrt(np.where(known > 0, known, 1.0))

    def _public(self, count: int) -> Features:
        return features(count, bounds=self._bounds, norm_bound=self.norm_bound, constant=1 / np.sqrt(count))

    def _component_count(self, count: int) -> int:
        if self.n_components is None:
            return count
        kept = check.integer(n_components=self.n_components, at_least=1)
        if kept > count:
            hint = "Keep as many components as there are features, or fewer."
            raise InvalidParameter("n_components", kept, f"<= n_features={count}", hint)
        return kept

    def _keep(self, moments: SecondMoments, public: Features, count: float, kept: int) -> None:
        """Returns mean and components in the units of the data."""
        width, scale = public.count, public.spread * public.unit * RADIUS
        mean = moments.rows[:width, -1] / (moments.constant * count)
        mean = mean / max(1.0, float(np.linalg.norm(mean)))
        covariance = (moments.rows[:width, :width] / count - np.outer(mean, mean)) * np.outer(scale, scale)
        values, vectors = np.linalg.eigh(covariance * count / max(1.0, count - 1))
        values, vectors = values[::-1], vectors[:, ::-1].T
        signs = np.sign(vectors[np.arange(width), np.argmax(np.abs(vectors), axis=1)])
        positive = np.maximum(values, 0.0)
        self.mean_ = public.centre + scale * mean
        self.components_ = (signs[:, None] * vectors)[:kept]
        self.explained_variance_ = positive[:kept]
        self.explained_variance_ratio_ = positive[:kept] / max(float(positive.sum()), 1e-300)
        self.n_components_ = kept
