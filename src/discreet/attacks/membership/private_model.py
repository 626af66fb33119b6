"""A classifier made of private counts, for comparisons: naive Bayes over binned features."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits

Floats = NDArray[np.float64]

SMALLEST = 0.5  # a noisy count is taken to be at least this


class PrivateBayes:
    """Naive Bayes from one private histogram for each feature and class, with the manners of scikit-learn.

    Formal guarantee: `fit` is epsilon-DP when one row is replaced by another, and when one is added or removed. Each
    feature is clipped to public bounds and binned; a row is counted once for each of d features, in the histogram of
    its class, so that replacing it moves all counts together by at most 2d in the L1 norm (adding it, by d), for which
    exact discrete Laplace noise is added. Everything else is computed from the noisy counts. Rows of other classes than
    the public ones are not counted.

    Args:
        epsilon: of the whole model.
        bounds: public, the same for all features.
        bins: of each feature, of equal width.
        classes: public.
        random_state: a seed for experiments; None is secure randomness, the only kind that protects anybody.

    >>> model = PrivateBayes(epsilon=100, bounds=(0, 1), bins=2, random_state=1)
    >>> model.fit([[0.1], [0.2], [0.8], [0.9]] * 20, [0, 0, 1, 1] * 20).predict([[0.15], [0.85]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        bounds: tuple[float, float] = (0.0, 1.0),
        bins: int = 8,
        classes: tuple[Any, ...] = (0, 1),
        random_state: int | None = None,
    ) -> None:
        self.epsilon, self.bounds, self.bins = epsilon, bounds, bins
        self.classes, self.random_state = classes, random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - the signature that cloning asks for
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in ("epsilon", "bounds", "bins", "classes", "random_state")}

    def set_params(self, **parameters: Any) -> Self:
        """Changes arguments of the constructor."""
        for name, value in parameters.items():
            if name not in self.get_params():
                raise InvalidParameter("parameters", name, "to be arguments of PrivateBayes", "See get_params().")
            setattr(self, name, value)
        return self

    def fit(self, features: Any, labels: Any) -> Self:
        """Counts, and adds the noise."""
        bins = check.integer(bins=self.bins, at_least=1)
        codes = self._codes(features)
        dimension = codes.shape[1]
        mechanism = Laplace(epsilon=self.epsilon, sensitivity=2 * dimension)
        counts = np.zeros((len(self.classes), dimension, bins), dtype=np.int64)
        given = np.asarray(labels)
        for place, name in enumerate(self.classes):
            chosen = codes[given == name]
            for feature in range(dimension):
                counts[place, feature] = np.bincount(chosen[:, feature], minlength=bins)
        bits = None if self.random_state is None else SeededBits(self.random_state)
        noisy = np.maximum(mechanism.release(counts, bits=bits), SMALLEST)
        self.classes_ = np.asarray(self.classes)
        self.log_prior_ = np.log(noisy.sum(axis=2).mean(axis=1))
        self.log_shares_ = np.log(noisy / noisy.sum(axis=2, keepdims=True))
        return self

    def predict_proba(self, features: Any) -> Floats:
        """The probability of each class, a row for each row."""
        codes = self._codes(features)
        places = np.arange(codes.shape[1])
        scores = self.log_prior_[:, None] + self.log_shares_[:, places, codes].sum(axis=2)
        return np.asarray(special.softmax(scores.T, axis=1))

    def predict(self, features: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        return np.asarray(self.classes_[self.predict_proba(features).argmax(axis=1)])

    def _codes(self, features: Any) -> NDArray[np.intp]:
        low, high = float(self.bounds[0]), float(self.bounds[1])
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidParameter(
                "bounds", self.bounds, "to be two finite numbers, the lower first", "They are public."
            )
        table = np.nan_to_num(np.asarray(features, dtype=np.float64), nan=low, posinf=high, neginf=low)
        if table.ndim != 2:
            raise InvalidParameter("features", table.shape, "to be a table", "One row for each person.")
        share = (np.clip(table, low, high) - low) / (high - low)
        return np.minimum((share * self.bins).astype(np.intp), self.bins - 1)
