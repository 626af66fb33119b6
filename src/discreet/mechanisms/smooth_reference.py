"""Laplace and Gaussian noise scaled to a smooth sensitivity: kept for comparison, `Lomax` is better and has no delta.

Let Q have scale 1 and centre m = 1/c, P the scale R >= 1 and centre 0, or the other way round. F = sup_S P(S) -
e^epsilon Q(S) is 1 minus the integral over x of min(p(x), e^epsilon q(x - m)), which is log-concave in (x, m) jointly,
hence in m (Prekopa 1973), and even: F grows with |m|, so that the largest shift is the worst. For the scales:

* P wider (R from 1 to e^beta): if 0 is not in S, which m <= epsilon (Laplace) or m^2 <= 2 epsilon (Gaussian) ensures,
  S is what lies outside an interval around 0, P(S) grows with R for every such S, and so does F: the worst case is R =
  e^beta.
* Q wider, Laplace: the loss is at most x + m e^-x, x = ln R, convex in x; if it is at most epsilon at x = 0 and x =
  beta, F = 0.
* Q wider, Gaussian: S lies on one side of m at a distance of at least one deviation of Q if m e^beta <= epsilon -
  beta; from there on Q(S) grows with R, F falls, and R = 1 is the worst case, which is no worse than the first one.

So one corner decides (shift 1/c, P wider by e^beta) once c is large enough for these conditions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure, Grid, Real, root_above, upper
from discreet.mechanisms.smooth import Smooth, below_epsilon, rounded_up
from discreet.mechanisms.tails import at_most, normal_reach, normal_tail, smallest_whole
from discreet.noise import Bits, exponential_deviate, normal_deviate
from discreet.privacy import Neighbours, events
from discreet.privacy.frozen import assign

_PARTS = 1 << 27  # resolution of 1 / c, relative to the largest shift
_DIGITS = 28  # of a search that stops at eight
_HALF = Fraction(1, 2)

Corner = Callable[[Fraction, Fraction, Fraction], Real]
"""The hockey-stick of the worst corner, from the shift 1/c, epsilon and beta."""


@dataclass(frozen=True, slots=True, init=False)
class Reference(Smooth):
    """What the two references share: their parameters, and a factor found by one hockey-stick."""

    epsilon: Fraction
    delta: Fraction
    beta: Fraction
    floor: Fraction
    ceiling: Fraction | None
    inflation: Fraction
    grid: Grid
    factor: Fraction

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        beta: Number,
        floor: Number,
        ceiling: Number | None = None,
        inflation: Number = 0,
        grid: Grid | Number | None = None,
        neighbours: Neighbours | str = Neighbours.REPLACE,
    ) -> None:
        self._common(beta, floor, ceiling, inflation, neighbours)
        budget, slack = check.positive(epsilon=epsilon), check.probability(delta=delta)
        ratio = below_epsilon(self, budget)
        assign(self, epsilon=budget, delta=slack)
        self._finish(self._smallest_factor(budget, slack, ratio), grid)

    @staticmethod
    @abstractmethod
    def _smallest_factor(epsilon: Fraction, delta: Fraction, beta: Fraction) -> Fraction:
        """The least c that the worst pair of laws allows."""

    @property
    def event(self) -> events.Approx:
        """What one release costs, for accounting."""
        return events.Approx(self.epsilon, self.delta)


class SmoothLaplace(Reference):
    """Adds Laplace noise to a number, scaled to its smooth sensitivity, rounded to a public grid, correctly.

    Formal guarantee: (epsilon, delta)-DP under REPLACE, with the smallest factor that the worst pair of laws allows
    (the proof stands at the top of the module); the setting is that of Nissim, Raskhodnikova, Smith 2007.

    Args:
        epsilon: above 0.
        delta: strictly between 0 and 1.
        beta: above 0; refused if no factor would do, e.g. far above epsilon / (2 ln(1 / delta)).
        floor: above 0, public: smaller sensitivities are raised to it.
        ceiling: public, what no smooth sensitivity exceeds; needed for intervals only, and never lowers the noise.
        inflation: by which share the sensitivities passed may exceed the smooth function they approximate.
        grid: a `Grid`, or its step; None is the coarsest with at least 1024 steps to the smallest scale.
        neighbours: "replace".

    Raises:
        InvalidParameter: outside these domains.

    >>> round(float(SmoothLaplace(epsilon=1, delta=1e-6, beta=0.02, floor=1).factor), 6)
    1.198839
    """

    __slots__ = ()

    @staticmethod
    def _smallest_factor(epsilon: Fraction, delta: Fraction, beta: Fraction) -> Fraction:
        """1/c at most epsilon, and beta + e^-beta / c at most epsilon, so that a wider neighbour costs nothing."""
        second = rounded_up(upper(lambda digits: Enclosure.of(-beta, digits).exp() / (epsilon - beta)))
        return _search(laplace_corner, epsilon, delta, beta, max(1 / epsilon, second))

    def _draw(self, bits: Bits) -> Real:
        """The difference of two exponential variables."""
        first, second = exponential_deviate(bits), exponential_deviate(bits)
        return lambda digits: first(digits) - second(digits)

    def _reach(self, outside: Fraction) -> Fraction:
        return upper(lambda digits: -Enclosure.of(outside, digits).log())


class SmoothGaussian(Reference):
    """Adds normal noise to a number, scaled to its smooth sensitivity, rounded to a public grid, correctly.

    Formal guarantee: (epsilon, delta)-DP under REPLACE, with the smallest factor that the worst pair of laws allows
    (the proof stands at the top of the module). Arguments and refusals are those of `SmoothLaplace`.

    >>> round(float(SmoothGaussian(epsilon=1, delta=1e-6, beta=0.0083285, floor=1).factor), 4)
    4.9451
    """

    __slots__ = ()

    @staticmethod
    def _smallest_factor(epsilon: Fraction, delta: Fraction, beta: Fraction) -> Fraction:
        """1/c^2 at most 2 epsilon, and e^beta / c at most epsilon - beta, so that a wider neighbour is no worse."""
        second = rounded_up(upper(lambda digits: Enclosure.of(beta, digits).exp() / (epsilon - beta)))
        return _search(gaussian_corner, epsilon, delta, beta, max(root_above(1 / (2 * epsilon)), second))

    def _draw(self, bits: Bits) -> Real:
        return normal_deviate(bits)

    def _reach(self, outside: Fraction) -> Fraction:
        return normal_reach(outside)


@lru_cache(maxsize=256)
def _search(corner: Corner, epsilon: Fraction, delta: Fraction, beta: Fraction, least: Fraction) -> Fraction:
    """The smallest factor from `least` on with a hockey-stick of at most delta, which falls as the factor grows."""
    largest = 1 / least

    def private(n: int) -> bool:
        return at_most(corner(largest * (_PARTS - n) / _PARTS, epsilon, beta), delta, _DIGITS)

    if not private(_PARTS - 1):
        hint = "Try epsilon / (2 ln(2 / delta)), or Lomax."
        raise InvalidParameter("beta", beta, "small enough for this delta", hint)
    return least * _PARTS / (_PARTS - smallest_whole(private, known=_PARTS - 1))


def laplace_corner(m: Fraction, epsilon: Fraction, beta: Fraction) -> Real:
    """F for P = Lap(0, R), Q = Lap(m, 1), R = e^beta, m <= epsilon.

    The loss -beta - |x| / R + |x - m| exceeds epsilon below -u and above v, u, v = (epsilon + beta -+ m) / (1 - 1/R).
    """

    def value(digits: int) -> Enclosure:
        inverse = Enclosure.of(-beta, digits).exp()
        total = Enclosure.of(0, digits)
        for side in (-m, m):
            cut = (epsilon + beta + side) / (1 - inverse)
            total = total + (-(cut * inverse)).exp() - (-(cut - side) + epsilon).exp()
        return total * _HALF

    return value


def gaussian_corner(m: Fraction, epsilon: Fraction, beta: Fraction) -> Real:
    """F for P = N(0, R^2), Q = N(m, 1), R = e^beta, m^2 <= 2 epsilon.

    The loss -beta - x^2 / (2 R^2) + (x - m)^2 / 2 exceeds epsilon outside the roots of a quadratic.
    """

    def value(digits: int) -> Enclosure:
        ratio = Enclosure.of(beta, digits).exp()
        bend = 1 - 1 / (ratio * ratio)  # bend x^2 - 2 m x + m^2 - 2 (epsilon + beta) > 0
        root = (bend * (2 * (epsilon + beta) - m * m) + m * m).sqrt()
        left, right = (root - m) / bend, (root + m) / bend  # distances of the two roots from 0
        wide = normal_tail(left / ratio) + normal_tail(right / ratio)
        narrow = normal_tail(left + m) + normal_tail(right - m)
        return wide - narrow * Enclosure.of(epsilon, digits).exp()

    return value
