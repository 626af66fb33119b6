"""Features moved to mean 0 and variance 1 by private means and variances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.errors import InvalidParameter
from discreet.learn.base import Learner
from discreet.learn.column_moments import column_steps, release_columns
from discreet.learn.features import ends
from discreet.privacy.events import Event, Gaussian

Floats = NDArray[np.float64]

HINT = "Bounds are public and never read from the data: pass bounds=(low, high), numbers or one for each feature."


def limits_of(bounds: Any, count: int) -> tuple[Floats, Floats]:
    """The public limits of so many features.

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
        random_state: None for secure noise, an int for a seed that protects nobody.

    Attributes after `fit`, beside those of `Learner`:
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
        """The event of a fit on so many features: one Gaussian release."""
        limits_of(self.bounds, n_features)
        return Gaussian(noise_multiplier=self._spending().noise_multiplier)

    def fit(self, X: Any, y: Any = None) -> StandardScaler:  # noqa: ARG002  # scikit-learn's interface
        """Learns means and variances; missing values are the middle of their bounds."""
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0)
        event, bits = self.plan_event(self.n_features_in_), self._bits()
        low, high = limits_of(self.bounds, self.n_features_in_)
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
        """Rows moved and scaled."""
        shift, scale = self._map()
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        return np.asarray((X - shift) / scale)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows moved and scaled back."""
        shift, scale = self._map()
        return np.asarray(np.asarray(X, dtype=np.float64) * scale + shift)

    def _map(self) -> tuple[Any, Any]:
        check_is_fitted(self)
        return self.mean_ if self.with_mean else 0.0, self.scale_ if self.with_std else 1.0
