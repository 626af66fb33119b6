"""A lower bound on the epsilon of a question that needs no statistics: it follows from two exact inputs of noise.

Let independent discrete Laplace noise X_i of scale b_i meet numbers that neighbours move by d_i > 0. With
q_i = e^(-1/b_i), P(X_i >= 0) = 1 / (1 + q_i) and P(X_i >= d_i) = e^(-d_i/b_i) / (1 + q_i). So the event that all noisy
numbers lie at or beyond the exact ones of the first table, away from the second, has a probability of
P = prod 1 / (1 + q_i) on the first and of P e^-s on the second, with s = sum d_i / b_i. A mechanism that is
(epsilon, delta)-DP has P <= e^epsilon P e^-s + delta, that is

    epsilon >= s + log(1 - delta / P),

for all coordinates together or for any part of them. With delta = 0 that is s itself, and it is exact.

For discrete Gaussian noise one number is looked at by itself, the one that moved farthest in units of its sigma: the
event that it is at least t has a probability of P on one table and P' on the other, both sums of the law's own terms,
and epsilon >= log((P - delta) / P') for every t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.audit.queries.recorder import Noise
from discreet.exact import float_below
from discreet.measurement.releases.additive import Law, Measure

LARGEST_SIGMA, REACH = 20_000, 20


def epsilon_below(one: Sequence[Noise], other: Sequence[Noise], delta: Fraction) -> float:
    """The largest such bound on the epsilon of these releases; 0 if there is none, as for drawn points alone.

    Groups must be public: what is released of private ones depends on what is selected.

    Args:
        one: what entered every noise of a question on a table.
        other: the same on its neighbour.
        delta: that the question claims.
    """
    pairs = list(zip(one, other, strict=True))
    return max(_laplace(pairs, delta), _gaussian(pairs, delta))


def _laplace(pairs: Sequence[tuple[Noise, Noise]], delta: Fraction) -> float:
    """Of all numbers together, or of those that moved farthest."""
    moves = sorted((move for pair in pairs for move in _moves(*pair, "laplace")), key=lambda move: -move[0])
    if not delta:
        return max(0.0, float_below(sum((ratio for ratio, _ in moves), Fraction(0))))
    best, total, chance = 0.0, 0.0, 1.0
    for ratio, scale in moves:
        total += float_below(ratio)
        chance /= 1 + math.exp(-1 / scale)
        if chance * (1 - 1e-9) <= delta:  # rounded to the safe side
            break
        best = max(best, (total + math.log1p(-float(delta) / (chance * (1 - 1e-9)))) * (1 - 1e-9))
    return best


def _gaussian(pairs: Sequence[tuple[Noise, Noise]], delta: Fraction) -> float:
    """Of the number that moved farthest; 0 where sigma is too large to add up its law term by term."""
    moves = [move for pair in pairs for move in _moves(*pair, "gaussian")]
    ratio, sigma = max(moves, default=(Fraction(0), math.inf))
    if not delta or sigma > LARGEST_SIGMA:
        return 0.0
    moved, reach = round(float(ratio) * sigma), math.ceil(REACH * sigma)
    places = np.arange(-reach, reach + moved + 1)
    tails = [np.cumsum(np.exp(-0.5 * (places - d) ** 2 / sigma**2)[::-1])[::-1] for d in (moved, 0)]
    likely, rare = tails[0] / tails[0][0], tails[1] / tails[1][0]
    above = likely * (1 - 1e-9) - float(delta)  # the sums are exact to a few units in the last of 16 digits
    best = np.log(above[above > 0] / (rare[above > 0] * (1 + 1e-9))).max(initial=0.0)
    return max(0.0, float(best) * (1 - 1e-9))


def _moves(one: Noise, other: Noise, law: Law) -> list[tuple[Fraction, float]]:
    """How far each number moved in units of its noise, with its scale, where it moved and its noise has this law."""
    release = one.release
    if not isinstance(release, Measure) or release.law != law:
        return []
    a, b = one.inputs(), other.inputs()
    nothing = (0,) * len(release.scales)
    return [
        (abs(Fraction(x - y)) / scale, float(scale))
        for key in {**a, **b}
        for x, y, scale in zip(a.get(key, nothing), b.get(key, nothing), release.scales, strict=True)
        if x != y
    ]
