"""Objective perturbation, noise inside the objective of a linear model (Chaudhuri, Monteleoni, Sarwate 2011).

The release is w = argmin sum_i l(w; z_i) + (Lambda / 2) ||w||^2 + <b, w> with normal b. At a given w it is a smooth
bijection of b; a row moves b by its gradient, of length at most G in a fixed direction, and the Jacobian by a factor of
at most 1 + s / Lambda, s the largest curvature of a row's loss. Hence the privacy loss is at most that of a Gaussian
release of sensitivity G plus ln(1 + s / Lambda) (Kifer, Smith, Thakurta 2012; here with the exact normal tail).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet import check
from discreet.accounting.gdp import gaussian_delta
from discreet.accounting.numerics import smallest
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure, float_below, lower, upper
from discreet.privacy import Neighbours

_MARGIN = 2.0**-34
_HINT = "Regularise more, or raise epsilon."


def objective_sigma(
    epsilon: check.Number,
    delta: check.Number,
    *,
    gradient: check.Number,
    curvature: check.Number,
    regularisation: check.Number,
    one_signed: bool = False,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Fraction:
    """Returns the standard deviation of b for (epsilon, delta)-DP of the exact minimiser.

    At a release w the privacy loss is <b, v> / sigma^2 + ||v||^2 / (2 sigma^2) plus at most ln(1 + s / Lambda), where v
    is what the row adds to the gradient: g x with |g| ||x|| <= G, g >= 0 up to the row's sign if `one_signed`. That is
    convex in g, so the ends of its range bound it, and with e' = epsilon - ln(1 + s / Lambda) and the Gaussian profile
    D(mu) = Phi(mu / 2 - e' / mu) - e^e' Phi(-mu / 2 - e' / mu) a sum over the ends bounds delta: D(G / sigma), twice
    that for both signs. A replaced row has v = g x - g' x': the ends are D(2 G / sigma) + 2 D(G / sigma) for one sign,
    and for both signs 2 D(a) + 2 D(b) with a^2 + b^2 = 4 G^2 / sigma^2, at most 2 D(2 G / sigma) where D is convex in
    mu^2, that is for e' >= mu sqrt(1 + mu^2 / 4). The curvature of the row that comes only lowers the Jacobian's share.

    Args:
        epsilon: above 0.
        delta: strictly between 0 and 1.
        gradient: G, the largest length of a row's gradient.
        curvature: s, the largest second derivative of a row's loss, in any direction.
        regularisation: Lambda, in the sum of losses.
        one_signed: whether a row's gradient keeps its sign whatever w is.
        neighbours: the relation to protect.

    Raises:
        InvalidParameter: if ln(1 + s / Lambda) alone reaches epsilon.

    >>> sigma = objective_sigma(1, 1e-6, gradient=1, curvature=0.25, regularisation=1)
    >>> round(float(sigma), 6)
    5.525226
    """
    left = float_below(left_over(epsilon, curvature=curvature, regularisation=regularisation)) * (1 - _MARGIN)
    target = float_below(check.probability(delta=delta))
    length = check.positive(gradient=gradient)
    profile = _PROFILES[neighbours, bool(one_signed)]
    return Fraction(smallest(lambda noise: profile(1 / noise, left) <= target, start=1 / left)) * length


def _replaced_row_delta(mu: float, epsilon: float) -> float:
    convex = epsilon >= 2 * mu * math.sqrt(1 + mu * mu) * (1 + _MARGIN)
    return 2 * gaussian_delta(2 * mu, epsilon) if convex else 1.0


_PROFILES: dict[tuple[Neighbours, bool], Callable[[float, float], float]] = {
    (Neighbours.ADD_REMOVE, True): gaussian_delta,
    (Neighbours.ADD_REMOVE, False): lambda mu, epsilon: 2 * gaussian_delta(mu, epsilon),
    (Neighbours.REPLACE, True): lambda mu, epsilon: gaussian_delta(2 * mu, epsilon) + 2 * gaussian_delta(mu, epsilon),
    (Neighbours.REPLACE, False): _replaced_row_delta,
}


def left_over(epsilon: check.Number, *, curvature: check.Number, regularisation: check.Number) -> Fraction:
    """Returns epsilon - ln(1 + s / Lambda), rounded down: what the Jacobian leaves for the noise.

    Raises:
        InvalidParameter: if nothing is left.
    """
    budget = check.positive(epsilon=epsilon)
    ratio = check.positive(curvature=curvature) / check.positive(regularisation=regularisation)
    left = budget - Fraction(upper(lambda digits: (Enclosure.of(1 + ratio, digits)).log()))
    if left <= 0:
        raise InvalidParameter("epsilon", epsilon, f"> ln(1 + {float(ratio)})", _HINT)
    return left


def pure_regularisation(
    epsilon: check.Number, *, curvature: check.Number, part: check.Number = Fraction(1, 2)
) -> Fraction:
    """Returns the least Lambda at which the Jacobian takes no more than a part of epsilon, half of it unless given.

    It is s / (e^(part epsilon) - 1), rounded up.

    >>> round(float(pure_regularisation(1, curvature=0.25)), 6)
    0.385374
    """
    budget = check.positive(epsilon=epsilon) * check.share(part=part)
    growth = Fraction(lower(lambda digits: Enclosure.of(budget, digits).exp() - 1))
    return check.positive(curvature=curvature) / growth


def logistic_spread(norm: check.Number) -> float:
    """Returns g(W) = max over a in [0, 1] of 2 sqrt(1 - a^2) / (1 + e^(-W a)), rounded up.

    How far two replaced rows of length 1 can pull the minimiser of a regularised logistic loss apart, in units of 1 /
    Lambda, if its length is at most W: the general bound is 2. With margins a W and a' W two gradients sigma(a W) x and
    sigma(a' W) x' differ most if they are mirror images at their common angle to w.

    >>> round(logistic_spread(1), 4)
    1.0991
    """
    length = float(check.not_negative(norm=norm))
    ends = np.arange((1 << 18) + 1) / (1 << 18)
    # In a cell of a the root is largest at its left end and the rest at its right end.
    cells = 2 * np.sqrt(1 - ends[:-1] ** 2) / (1 + np.exp(-length * ends[1:]))
    return min(2.0, float(np.max(cells)) * (1 + 1e-9))
