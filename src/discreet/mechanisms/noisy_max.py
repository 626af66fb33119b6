"""The index of the largest noisy score: report-noisy-max with discrete Laplace noise, and permute-and-flip.

Permute-and-flip has the law of report-noisy-max with exponential noise (Ding et al. 2021), and is never worse than the
exponential mechanism under pure differential privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.mechanisms.mechanism import add
from discreet.mechanisms.private_selection import Selection
from discreet.noise import Bits, discrete_laplace, uniform_below
from discreet.noise.coin import accept_many
from discreet.privacy import events

_STEEP = 128.0  # rates above it change no float decision: one step already gives e^-128, and ties are settled exactly


@dataclass(frozen=True, slots=True, init=False)
class PermuteAndFlip(Selection):
    """Visits the options in random order and takes the first whose coin of probability e^(-rate gap) shows heads.

    Here all coins are flipped first and one of those that show heads is taken uniformly. The law is the same: the
    coins do not depend on the order, and given which ones show heads, the first of them in a uniformly random order
    is uniform among them. The best option has a coin of probability 1, so there always is one.

    Formal guarantee: epsilon-DP (McKenna, Sheldon 2020). The same law is the argmax of q_i + E_i / rate with standard
    exponential E_i; given the others, option i wins when E_i exceeds a threshold, which neighbours shift by at most
    2 m rate = epsilon (m rate = epsilon if monotone), and P(E > t + s) >= e^-s P(E > t). The loss is *not* bounded in
    range: under zCDP this costs epsilon^2 / 2, and the exponential mechanism is the better choice there.

    Utility: an option with a gap of g steps wins only if its coin shows heads, so the bound of the exponential
    mechanism holds by the union bound; the expected score is never lower than there.

    >>> PermuteAndFlip(epsilon=200, sensitivity=1).choose([3, 2, 5, 0])
    2
    """

    @property
    def event(self) -> events.Event:
        """Returns what one choice costs."""
        return events.Pure(self.epsilon)

    def _pick(self, rows: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        rate = self.rate
        gaps = rows.max(axis=1, keepdims=True) - rows
        flat = gaps.ravel()
        # Three roundings of a product of at most 64 leave an error below 2^-45.
        exponents = flat.astype(np.float64) * min(float(rate), _STEEP)
        heads = accept_many(exponents, lambda index: rate * int(flat[index]), bits).reshape(gaps.shape)
        picks = [_one_of(np.flatnonzero(row), bits) for row in heads]
        return np.array(picks, dtype=np.int64)


def _one_of(indices: NDArray[np.intp], bits: Bits) -> int:
    return int(indices[uniform_below(indices.size, bits=bits)])


@dataclass(frozen=True, slots=True, init=False)
class ReportNoisyMax(Selection):
    """Adds discrete Laplace noise of scale 2 sensitivity / epsilon to each score and reports the index of the largest.

    Ties go to the lowest index. The noisy scores themselves are never shown.

    Formal guarantee: epsilon-DP (Dwork, Roth 2014, Claim 3.9, for continuous noise). On integers, with ties: fix the
    noise of all options but i. Option i is reported exactly when its noise Z is at least an integer t, the smallest
    that makes its score larger than every noisy score before it and at least as large as every one after it. For a
    neighbour each of the other scores rises by at most m steps and q_i falls by at most m, so t rises by at most 2 m;
    if all scores move in one direction, by at most m. Ties change which integer t is, but by a rule that is the same
    for both neighbours. For discrete Laplace noise of scale 1 / rate, P(Z >= t + k) >= e^(-k rate) P(Z >= t) for
    every integer t and k >= 0, and k rate is epsilon in both cases. Averaging over the other noise keeps the
    inequality.

    `PermuteAndFlip` has the same guarantee and a smaller error.

    >>> ReportNoisyMax(epsilon=200, sensitivity=1).choose([3, 2, 5, 0])
    2
    """

    @property
    def event(self) -> events.Event:
        """Returns what one choice costs."""
        return events.Pure(self.epsilon)

    @property
    def _regret(self) -> int:
        """Returns twice the regret of the exponential mechanism.

        A gap of w steps is lost only if the best option's noise is at most -w/2 or some other's at least w/2: options
        events of probability below e^(-rate w / 2) each.
        """
        return 2

    def _pick(self, rows: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        noisy = add(rows, discrete_laplace(1 / self.rate, rows.shape, bits=bits))
        return np.asarray(noisy.argmax(axis=1), dtype=np.int64)  # the first of equal ones
