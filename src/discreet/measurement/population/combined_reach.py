"""How far the sum of noise and of a normal sampling error is from zero.

Theorem. Let A be noise and B normal with mean 0 and standard deviation s, independent. Let r_1 <= ... <= r_k be reaches
of A at risks c_1 >= ... >= c_k, so that P(|A| > r_j) <= c_j, and c_0 = 1. Then for every t

    P(|A + B| > t)  <=  c_k + sum_j (c_(j-1) - c_j) P(|r_j + B| > t).

Proof. P(|a + B| > t) grows with |a|, since the law of B is symmetric and has one peak (Anderson 1955). And |A| is, in
the usual order of laws, at most the variable that is r_j with probability c_(j-1) - c_j and infinite with probability
c_k, because each of its tails is at least that of |A|.

So the law of the noise matters only through its reaches, whichever it is. Where one of the two errors is much larger
than the other, the combined reach is hardly more than that of the larger one. A sum of the two reaches would be up to
1.4 times as far where they are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.lazy import special
from discreet.measurement.intervals.arithmetic import Floats

_PARTS = tuple(Fraction(text) for text in ("16", "8", "5", "3", "2", "1.3", "0.9", "0.6", "0.35", "0.15", "0.03"))
"""Of the risk, at which reaches of noise are taken: dense around the risk itself, where they matter if noise does."""

_MOST = Fraction(4, 5)
_HALVINGS = 26  # of a bracket whose upper end is taken
_TINY = 1e-300
_LOST = 1e-12  # what doubles lose in sums of a few probabilities
_SAFE = 1 + 1e-9


def noise_risks(outside: Fraction) -> tuple[Fraction, ...]:
    """Returns the risks at which reaches of noise are needed, the largest first.

    >>> [str(risk) for risk in noise_risks(Fraction(1, 10))]
    ['1/2', '3/10', '1/5', '13/100', '9/100', '3/50', '7/200', '3/200', '3/1000']
    """
    return tuple(outside * part for part in _PARTS if outside * part < _MOST)


def combined_reaches(reaches: Floats, risks: Sequence[Fraction], deviations: Floats, outside: Fraction) -> Floats:
    """Returns distances that noise and sampling errors together exceed with at most a given probability.

    Args:
        reaches: of noise, a row for each risk and a column for each number.
        risks: as `noise_risks` returns them.
        deviations: the standard deviation of the sampling error of each number.
        outside: the probability.
    """
    levels = np.array([1.0, *map(float, risks)])
    atoms, masses, left = np.maximum.accumulate(reaches, axis=0), levels[:-1] - levels[1:], float(outside) - levels[-1]
    spread = np.maximum(deviations, _TINY)
    low, high = np.zeros_like(spread), atoms[-1] + spread * float(-special.ndtri(left / 2)) * _SAFE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        tails = special.ndtr((atoms - middle) / spread) + special.ndtr((-atoms - middle) / spread)
        heavy = masses @ tails > left - _LOST
        np.copyto(low, middle, where=heavy)
        np.copyto(high, middle, where=~heavy)
    return np.asarray(high * _SAFE)
