"""Shadow models: copies of an estimator trained on random halves, which show how members look to a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.noise import Bits
from discreet.noise.experiment import shuffled

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST = 1e-6  # confidences are held to [LEAST, 1 - LEAST] before the logarithm
LEAST_SPREAD = 1e-3  # of confidences about their mean


@dataclass(frozen=True, slots=True)
class Pool:
    """Rows with labels."""

    features: NDArray[Any]
    labels: NDArray[Any]

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, places: NDArray[Any]) -> Pool:
        """Some of the rows."""
        return Pool(self.features[places], self.labels[places])


@dataclass(frozen=True, slots=True)
class Shadows:
    """How sure shadow models are of the right label: a row for each model, a column for each row of the pool.

    Attributes:
        sure: logits of confidences.
        inside: which rows each model was trained on; every row by half of the models.
    """

    sure: Floats
    inside: Mask


def clone(model: Any, bits: Bits) -> Any:
    """An untrained copy, with a seed of its own if it takes one: experiments repeat, and protect nobody.

    Raises:
        InvalidParameter: without scikit-learn, or if it is no estimator.
    """
    try:
        from sklearn.base import clone as copy  # noqa: PLC0415 - an extra
    except ImportError:
        hint = "Install the extra: pip install 'discreet[learn]'."
        raise InvalidParameter("model", type(model).__name__, "to be cloned by scikit-learn", hint) from None
    if not (hasattr(model, "get_params") and hasattr(model, "fit") and hasattr(model, "predict")):
        raise InvalidParameter("model", type(model).__name__, "to be a classifier", "Pass one of scikit-learn's kind.")
    fresh = copy(model)
    if "random_state" in fresh.get_params():
        fresh.set_params(random_state=bits.integer(31))
    return fresh


def trained(model: Any, pool: Pool, bits: Bits) -> Any:
    """A fresh copy, trained on these rows."""
    return clone(model, bits).fit(pool.features, pool.labels)


def shadow_models(model: Any, pool: Pool, count: int, bits: Bits) -> Shadows:
    """Models trained on random halves of a pool and on their complements, so that each row is in half of them."""
    inside = np.zeros((count, len(pool)), dtype=bool)
    for pair in range(0, count, 2):
        half = shuffled(len(pool), bits=bits)[: len(pool) // 2]
        inside[pair, half] = True
        inside[pair + 1] = ~inside[pair]
    sure = [certainty(trained(model, pool.at(chosen), bits), pool) for chosen in inside]
    return Shadows(np.array(sure), inside)


def certainty(model: Any, pool: Pool) -> Floats:
    """The logit of the probability that a model gives to the right label; of a model without probabilities, +-logit."""
    if not hasattr(model, "predict_proba"):
        right = np.asarray(model.predict(pool.features)) == pool.labels
        shares = right.astype(np.float64)
    else:
        found, classes = np.asarray(model.predict_proba(pool.features), dtype=np.float64), np.asarray(model.classes_)
        shares = np.where(pool.labels[:, None] == classes, found, 0.0).sum(axis=1)
    held = np.clip(shares, LEAST, 1 - LEAST)
    return np.asarray(np.log(held / (1 - held)))


def accuracy(model: Any, pool: Pool) -> float:
    """The share of rows that a model labels rightly."""
    return float(np.mean(np.asarray(model.predict(pool.features)) == pool.labels))


Score = Callable[[Floats, int | None], Floats]
"""Scores of the pool from how sure a model is of each row; the number of a shadow model leaves that one out."""


def by_loss(seen: Shadows) -> Score:  # noqa: ARG001 - shadows only set the threshold
    """The surer a model is of a row, that is the smaller its loss, the likelier the row was trained on."""
    return lambda sure, _: sure


def by_likelihood_ratio(seen: Shadows) -> Score:
    """log N(sure; in) - log N(sure; out), a mean in and out for each row, one variance each (Carlini et al. 2022).

    The paper takes common variances where there are few shadow models, as here.
    """
    sure, inside = seen.sure, seen.inside
    sums = [(sure * kind).sum(axis=0) for kind in (inside, ~inside)]
    counts = [kind.sum(axis=0) for kind in (inside, ~inside)]
    spreads = [
        max(LEAST_SPREAD, float(np.sqrt(np.mean((sure - total / count)[kind] ** 2))))
        for total, count, kind in zip(sums, counts, (inside, ~inside), strict=True)
    ]

    def score(observed: Floats, left_out: int | None) -> Floats:
        densities = []
        for total, count, kind, spread in zip(sums, counts, (inside, ~inside), spreads, strict=True):
            less = 0 if left_out is None else kind[left_out]
            own = 0.0 if left_out is None else sure[left_out] * kind[left_out]
            mean = (total - own) / (count - less)
            densities.append(-(((observed - mean) / spread) ** 2) / 2 - np.log(spread))
        return np.asarray(densities[0] - densities[1])

    return score
