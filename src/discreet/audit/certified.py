"""A lower bound on the epsilon of a question that needs no statistics: it follows from two exact inputs of noise.

Let independent discrete Laplace noise X_i of scale b_i meet numbers that neighbours move by d_i > 0. With
q_i = e^(-1/b_i), P(X_i >= 0) = 1 / (1 + q_i) and P(X_i >= d_i) = e^(-d_i/b_i) / (1 + q_i). So the event that all noisy
numbers lie at or beyond the exact ones of the first table, away from the second, has a probability of
P = prod 1 / (1 + q_i) on the first and of P e^-s on the second, with s = sum d_i / b_i. A mechanism that is
(epsilon, delta)-DP has P <= e^epsilon P e^-s + delta, that is

    epsilon >= s + log(1 - delta / P),

for all coordinates together or for any part of them. With delta = 0 that is s itself, and it is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet.audit.recording import Noise
from discreet.curator.measure import Measure
from discreet.exact import float_below


def epsilon_below(one: Sequence[Noise], other: Sequence[Noise], delta: Fraction) -> float:
    """The largest such bound on the epsilon of these releases; 0 if there is none, as for Gaussian noise alone.

    Groups must be public: what is released of private ones depends on what is selected.

    Args:
        one: what entered every noise of a question on a table.
        other: the same on its neighbour.
        delta: that the question claims.
    """
    moves = sorted((move for a, b in zip(one, other, strict=True) for move in _moves(a, b)), key=lambda move: -move[0])
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


def _moves(one: Noise, other: Noise) -> list[tuple[Fraction, float]]:
    """How far each number moved in units of its noise, with its scale, where it moved and its noise is Laplace."""
    release = one.release
    if not isinstance(release, Measure) or release.law != "laplace":
        return []
    a, b = one.inputs(), other.inputs()
    nothing = (0,) * len(release.scales)
    return [
        (abs(Fraction(x - y)) / scale, float(scale))
        for key in {**a, **b}
        for x, y, scale in zip(a.get(key, nothing), b.get(key, nothing), release.scales, strict=True)
        if x != y
    ]
