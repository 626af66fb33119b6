"""What a holdout is worth after it was used to choose: an experiment on labels that nothing can predict."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.check import Number
from discreet.learn.holdout import Holdout
from discreet.noise import Bits, source_of
from discreet.noise.experiment import coins

Signs = NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """Accuracies of a classifier whose features were chosen with the help of a holdout; the truth is one half.

    Attributes:
        train: on the training set.
        reported: on the holdout, as whoever chose would report it.
        fresh: on rows that nobody used.
        answered: how many queries the holdout answered itself.
    """

    train: float
    reported: float
    fresh: float
    answered: int


@dataclass(frozen=True, slots=True)
class _Sample:
    X: Signs
    y: Signs

    def agreement(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """1 where a vote of the features is right, -1 where it is wrong."""
        votes = self.X.astype(np.int64) @ weights
        return np.where(np.where(votes >= 0, 1, -1) == self.y, 1.0, -1.0)


def reuse(
    rows: int = 3000,
    features: int = 3000,
    *,
    chosen: int = 200,
    threshold: Number | None = None,
    sigma: Number = "0.01",
    bits: Bits | None = None,
) -> tuple[Reuse, Reuse]:
    """The same analyst with a plain holdout and with a `Holdout`, on features and labels that are fair coins.

    The analyst asks for the correlation of every feature with the label, keeps features on which training set and
    holdout agree, and lets the strongest vote. Nothing can be learned, so a report above one half is overfitting to the
    holdout.

    Args:
        rows: of the training set, the holdout and the fresh sample each.
        features: how many there are.
        chosen: how many may vote.
        threshold: of the `Holdout`; None for its smallest, four standard deviations of the difference.
        sigma: the scale of its noise.
        bits: the source of randomness of the samples and, if seeded, of a seed for the noise.

    Returns:
        What was reported with the plain holdout, and with `Holdout`.
    """
    source = source_of(bits)
    train, held, fresh = (_sample(rows, features, source) for _ in range(3))
    plain = _analyst(lambda values, _: float(np.mean(values)), train, held, fresh, chosen)
    seed = None if source.private else source.integer(32)
    smallest = 4 * math.sqrt(2 / rows) * (1 + 1e-9)
    guard = Holdout(
        rows,
        threshold=smallest if threshold is None else threshold,
        sigma=sigma,
        budget=features + 1,
        range=(-1, 1),
        random_state=seed,
    )
    guarded = _analyst(guard.query, train, held, fresh, chosen)
    answered = guard.budget - guard.remaining
    return (
        Reuse(train=plain[0], reported=plain[1], fresh=plain[2], answered=features + 1),
        Reuse(train=guarded[0], reported=guarded[1], fresh=guarded[2], answered=answered),
    )


def _sample(rows: int, features: int, bits: Bits) -> _Sample:
    signs = 2 * coins((rows, features + 1), bits=bits) - 1
    return _Sample(signs[:, :-1], signs[:, -1])


def _analyst(
    ask: Callable[[NDArray[np.float64], float], float], train: _Sample, held: _Sample, fresh: _Sample, chosen: int
) -> tuple[float, float, float]:
    """The accuracies on the training set, as reported by the holdout, and on fresh rows."""
    rows, features = train.X.shape
    known = np.array([float(np.mean(train.X[:, j] * train.y)) for j in range(features)])
    told = np.array([ask((held.X[:, j] * held.y).astype(np.float64), known[j]) for j in range(features)])
    kept = (np.sign(known) == np.sign(told)) & (np.minimum(abs(known), abs(told)) > 1 / math.sqrt(rows))
    strongest = np.argsort(np.where(kept, -abs(known + told), 0.0), kind="stable")[:chosen]
    weights = np.zeros(features, dtype=np.int64)
    weights[strongest] = np.sign(known[strongest]) * kept[strongest]
    on_train = float(np.mean(train.agreement(weights)))
    reported = ask(held.agreement(weights), on_train)
    return tuple((1 + mean) / 2 for mean in (on_train, reported, float(np.mean(fresh.agreement(weights)))))  # type: ignore[return-value]
