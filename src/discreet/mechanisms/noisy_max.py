"""Report-noisy-max: the index of the largest score after discrete Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.private_selection import Selection
from discreet.mechanisms.values import add
from discreet.noise import Bits, discrete_laplace
from discreet.privacy import events


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
        """What one choice costs."""
        return events.Pure(self.epsilon)

    @property
    def _regret(self) -> int:
        """Twice that of the exponential mechanism.

        A gap of w steps is lost only if the best option's noise is at most -w/2 or some other's at least w/2: options
        events of probability below e^(-rate w / 2) each.
        """
        return 2

    def _pick(self, rows: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        noisy = add(rows, discrete_laplace(1 / self.rate, rows.shape, bits=bits))
        return np.asarray(noisy.argmax(axis=1), dtype=np.int64)  # the first of equal ones
