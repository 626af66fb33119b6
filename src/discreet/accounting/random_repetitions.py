"""What it costs to try often and to show only the best: a random number of tries.

Papernot and Steinke 2022 (Theorems 2 and 3), after Liu and Talwar 2019. The proof, in full, because every constant
matters. Let Q be the law of one try, whose outputs carry their own private score, so that they have a fixed total
order; let K be the number of tries, drawn without looking at data, and f(x) = E[x^K]. The best of K tries is at most y
with probability f(Q(<= y)), so it equals y with probability

    A(y) = Q(y) * integral over u in [0, 1] of f'(q_u) du,    q_u = Q(< y) + u Q(y).

For a neighbour, A' and q'_u are the same with Q'. As (a, b) -> a^l b^(1-l) is jointly convex,

    sum A^l A'^(1-l) <= sum Q^l Q'^(1-l) * max over u, y of f'(q) (f'(q) / f'(q'))^(l-1).

K has the truncated negative binomial law with f'(x) = E[K] (gamma / (1 - (1-gamma) x))^(1+eta). So f'(q) <= E[K], and
with w = gamma + (1-gamma)(1-q), w' likewise, the quotient of both is (w' / w)^(1+eta). Here 1 - q and 1 - q' are the
probabilities of one randomised test of a try's output. If D_h(Q' || Q) <= c for an order h, then 1 - q' <= (e^c
(1-q))^a with a = 1 - 1/h; concavity of t^a gives w' <= e^(a c) (gamma + (1-gamma)(1-q)^a) <= e^(a c) w^a; and since
w >= gamma, w' / w <= e^(a c) gamma^(-1/h). Taking logarithms and dividing by l - 1:

    D_l(A || A') <= D_l(Q || Q') + (1+eta) ((1 - 1/h) D_h(Q' || Q) + ln(1/gamma) / h) + ln E[K] / (l - 1)

for every h > 1. If tries are epsilon-DP, w' <= e^epsilon w, and A / A' <= e^((2+eta) epsilon). If a try keeps to this
only with probability 1 - d, tries that all do are K' of them with gamma' = 1 - (1-gamma)(1-d) >= gamma, for which the
bound is no larger, and some try does not with probability 1 - f(1 - d) <= E[K] d.

K, the tries that lost, and how long all of it took are not part of the output, and stay secret.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.accounting.bounds import epsilon as epsilon_of
from discreet.accounting.composition import Events, terms
from discreet.accounting.numerics import safe, smallest
from discreet.accounting.rdp import ORDERS, Renyi, compose
from discreet.dataclass import dataclass
from discreet.exact import float_above, float_below
from discreet.privacy import Neighbours


@dataclass(frozen=True, slots=True)
class Tries:
    """The law of the number of tries: P(K = k) ~ (1-gamma)^k * product over l < k of (l+eta) / (l+1), k >= 1.

    eta = 1 is the geometric law, P(k) = gamma (1-gamma)^(k-1); eta = 0 the logarithmic one, P(k) ~ (1-gamma)^k / k.

    Args:
        eta: 0 or more; what tries cost beyond twice one of them.
        gamma: strictly between 0 and 1; a smaller one means more tries.
    """

    eta: Fraction
    gamma: Fraction

    def __post_init__(self) -> None:
        check.not_negative(eta=self.eta)
        check.probability(gamma=self.gamma)

    @classmethod
    def of_mean(cls, mean: check.Number, eta: check.Number = 1) -> Tries:
        """Returns the law with about this many tries in the mean, never fewer.

        >>> Tries.of_mean(10)
        Tries(eta=Fraction(1, 1), gamma=Fraction(1, 10))
        """
        target, shape = check.rational(mean=mean), check.not_negative(eta=eta)
        if target <= 1:
            return cls(shape, Fraction(1) - Fraction(1, 1 << 20))
        if shape == 1:
            return cls(shape, 1 / target)
        inverse = smallest(lambda inverse: inverse > 1 and _mean(shape, 1 / inverse) >= target, start=2.0)
        return cls(shape, Fraction(float_below(1 / Fraction(inverse))))

    @property
    def mean(self) -> float:
        """Returns E[K] = eta (1-gamma) / (gamma (1 - gamma^eta)); (1/gamma - 1) / ln(1/gamma) at eta = 0."""
        return safe(_mean(self.eta, float(self.gamma)))


def _mean(eta: Fraction, gamma: float) -> float:
    if eta == 0:
        return (1 / gamma - 1) / -math.log(gamma)
    return float(eta) * (1 - gamma) / (gamma * -math.expm1(float(eta) * math.log(gamma)))


def best_of(divergences: NDArray[np.float64], tries: Tries) -> NDArray[np.float64]:
    """Returns the curve over ORDERS of the best of some tries, from the curve of one.

    >>> curve = best_of(0.05 * ORDERS, Tries(Fraction(1), Fraction(1, 10)))
    >>> round(float(curve[ORDERS == 8][0]), 5)
    1.98617
    """
    spread = 1 + float(tries.eta)
    extra = np.min((1 - 1 / ORDERS) * divergences - math.log(float_below(tries.gamma)) / ORDERS)
    return np.asarray(divergences + spread * extra + math.log(tries.mean) / (ORDERS - 1))


def tuned_epsilon(
    tries_of: Sequence[Events], tries: Tries, delta: check.Number, *, neighbours: Neighbours = Neighbours.ADD_REMOVE
) -> float:
    """Returns the epsilon, at a delta, of showing the best of some tries, each any of these lists of events.

    Args:
        tries_of: what a try may release; which of them it is may be shown.
        tries: the law of their number.
        delta: 0 for a pure guarantee.
        neighbours: the relation of the events.
    """
    slack = check.not_negative(delta=delta)
    if slack == 0:
        worst = max(epsilon_of(one, 0, neighbours=neighbours) for one in tries_of)
        return safe(float_above(2 + tries.eta) * worst)
    curves = [compose(terms(one, neighbours)) for one in tries_of]
    worst_curve = Renyi(np.max([one.cumulants for one in curves], axis=0), max(one.delta for one in curves))
    left = float_below(slack) - tries.mean * float_above(worst_curve.delta)
    if left <= 0:
        return math.inf
    best = best_of(worst_curve.divergences, tries)
    bounds = best + np.log1p(-1 / ORDERS) - (math.log(left) + np.log(ORDERS)) / (ORDERS - 1)
    return safe(max(0.0, float(np.min(bounds))))
