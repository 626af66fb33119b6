"""How far noise reaches, on the safe side: tail probabilities as enclosures, and the distances they give.

Every distance found here is certain: its tail was proven, in enclosures, to be at most what was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from discreet.exact import Enclosure, Real, UndecidedComparison
from discreet.lazy import special

DIGITS = 50
_PARTS = 1 << 20  # real distances are found to this resolution
_ROUNDS = 12  # by which an estimate of a distance has settled
_SUMMED = 32  # the largest sigma of a discrete Gaussian whose tail is summed term by term
_SERIES = 7  # up to here the normal tail by its series, beyond by its continued fraction


def at_most(real: Real, bound: Fraction, digits: int = DIGITS) -> bool:
    """Returns whether a number is certainly at most the bound.

    A comparison that so many digits leave open counts as no.
    """
    try:
        return real(digits).fractions()[1] <= bound
    except UndecidedComparison:
        return False


def smallest_whole(good: Callable[[int], bool], near: int = 1) -> int:
    """Returns the smallest whole number with a property that goes on to hold once it holds.

    Args:
        good: the property.
        near: where to look first; it changes how often the property is looked at, and nothing else.
    """
    if good(0):
        return 0
    bad, found, step = 0, max(near, 1), 1
    if good(found):
        while found - bad > step and good(found - step):
            found, step = found - step, 2 * step
        bad = max(bad, found - step)
    else:
        while not good(found + step):
            found, step = found + step, 2 * step
        bad, found = found, found + step
    while found - bad > 1:
        middle = (bad + found) // 2
        bad, found = (bad, middle) if good(middle) else (middle, found)
    return found


@lru_cache(maxsize=4096)
def laplace_reach(scale: Fraction, outside: Fraction) -> int:
    """Returns the smallest t with P(|Z| > t) = 2 a^(t + 1) / (1 + a) <= outside, a = exp(-1 / scale).

    It is the reach of discrete Laplace noise.
    """

    def tail(t: int) -> Real:
        return lambda digits: (
            Enclosure.of(-(t + 1) / scale, digits).exp() * 2 / (Enclosure.of(-1 / scale, digits).exp() + 1)
        )

    return smallest_whole(lambda t: at_most(tail(t), outside), near=_laplace_estimate(scale, outside))


def _laplace_estimate(scale: Fraction, outside: Fraction) -> int:
    """Returns the same in doubles, nearly; 1 where they do not reach so far."""
    try:
        rate = float(1 / scale)
        return math.ceil(math.log(2 / (float(outside) * (1 + math.exp(-rate)))) / rate) - 1
    except (ArithmeticError, ValueError):
        return 1


@lru_cache(maxsize=4096)
def laplace_cut(scale: Fraction, move: int, outside: Fraction) -> int:
    """Returns the smallest k >= move with P(Z > k - move) <= outside for discrete Laplace noise that stays within k.

    With a = exp(-1 / scale), P(k - move < Z <= k) = (a^(k - move + 1) - a^(k + 1)) / (1 + a) for the whole law, and
    P(|Z| <= k) = 1 - 2 a^(k + 1) / (1 + a). Their quotient, (a^-move - 1) / ((1 + a) a^-(k + 1) - 2), falls with k.
    """

    def tail(k: int) -> Real:
        def recipe(digits: int) -> Enclosure:
            a, far = (Enclosure.of(-n / scale, digits).exp() for n in (1, k + 1))
            return (Enclosure.of(-(k - move + 1) / scale, digits).exp() - far) / (a + 1 - far * 2)

        return recipe

    near = _laplace_estimate(scale, outside)
    return move + smallest_whole(lambda more: at_most(tail(move + more), outside), near=near)


def polynomial_reach(weights: Sequence[Enclosure], outside: Fraction) -> Fraction:
    """Returns a distance x with e^(-x) sum_j w_j x^j / j! <= outside, for w_j >= 0 that do not increase in j.

    The sum is then a tail probability: its derivative is e^(-x) sum_j (w_(j+1) - w_j) x^j / j! <= 0.
    """

    def tail(x: Fraction) -> Real:
        return lambda digits: _horner(weights, x, digits) * Enclosure.of(-x, digits).exp()

    near = math.ceil(_polynomial_estimate(weights, outside) * _PARTS)
    return Fraction(smallest_whole(lambda n: at_most(tail(Fraction(n, _PARTS)), outside), near=near), _PARTS)


def _polynomial_estimate(weights: Sequence[Enclosure], outside: Fraction) -> float:
    """Returns the same in doubles, nearly; 0 where they do not reach so far.

    It is where x = log(p(x) / outside) for the polynomial p, by Newton's method: 1 - p'(x) / p(x) is the slope.
    """
    try:
        parts = [float(weight.fractions()[1]) / math.factorial(j) for j, weight in enumerate(weights)]
        x = least = -math.log(outside)
        for _ in range(_ROUNDS):
            whole = sum(part * x**j for j, part in enumerate(parts))
            slope = 1 - sum(j * part * x ** (j - 1) for j, part in enumerate(parts) if j) / whole
            x -= (x - least - math.log(whole)) / slope
    except (ArithmeticError, ValueError):
        return 0.0
    return x if 0 < x < math.inf else 0.0


def _horner(weights: Sequence[Enclosure], x: Fraction, digits: int) -> Enclosure:
    total = Enclosure.of(0, digits)
    for j in range(len(weights) - 1, -1, -1):
        total = total * (x / (j + 1)) + weights[j]
    return total


@lru_cache(maxsize=4096)
def normal_reach(outside: Fraction) -> Fraction:
    """Returns a distance x, hardly above the smallest, with P(|N(0, 1)| > x) <= outside."""

    def good(x: Fraction) -> bool:  # tails fall, so the largest is at the lower end
        return at_most(lambda digits: _tail_at(Fraction(Enclosure.of(x, digits).low), digits), outside / 2)

    found = Fraction(max(0.0, -float(special.ndtri(float(outside / 2)))))
    while not good(found):
        found += Fraction(max(1, math.ceil(found)), 1 << 34)
    return found


def normal_tail(x: Enclosure) -> Enclosure:
    """Returns P(N(0, 1) > x) for every x in the enclosure."""
    low, high = _tail_at(Fraction(x.high), x.digits), _tail_at(Fraction(x.low), x.digits)
    return Enclosure(low.low, high.high, x.digits)


def _tail_at(x: Fraction, digits: int) -> Enclosure:
    if x < 0:
        return 1 - _tail_at(-x, digits)
    return _by_series(x, digits) if x <= _SERIES else _by_fraction(x, digits)


def _by_series(x: Fraction, digits: int) -> Enclosure:
    """1/2 - density(x) sum_n x^(2n + 1) / (1 3 5 ... (2n + 1)); the rest is at most the last term kept.

    Terms are whole numbers of a tiny unit, one rounded down and one rounded up.
    """
    extra = digits + 13  # the difference loses up to 12 digits where x <= 7
    unit = 10 ** (extra + 4)
    (low, high), (least, most) = _ends(x, unit), _ends(x * x, unit)
    n, total, upper = 0, low, high
    while 2 * n + 3 < 2 * x * x or high > 10**4:
        n += 1
        low, high = low * least // (unit * (2 * n + 1)), -(-high * most // (unit * (2 * n + 1)))
        total, upper = total + low, upper + high
    series = Enclosure.between(Fraction(total, unit), Fraction(upper + high, unit), extra)
    tail = Fraction(1, 2) - _density(x, extra) * series
    return Enclosure(max(tail.low, Decimal(0)), tail.high, digits)


def _ends(x: Fraction, unit: int) -> tuple[int, int]:
    return math.floor(x * unit), math.ceil(x * unit)


def _by_fraction(x: Fraction, digits: int) -> Enclosure:
    """density(x) / (x + 1 / (x + 2 / (x + 3 / ...))); two successive truncations enclose the value (Laplace 1805)."""
    depth = 8 + int(
        (2.35 * digits / float(min(x, Fraction(digits)))) ** 2 / 2
    )  # the error falls as e^(-x sqrt(2 depth))
    ends = []
    for levels in (depth, depth + 1):
        bottom = Enclosure.of(x, digits)
        for k in range(levels, 0, -1):
            bottom = x + k / bottom
        ends.append(_density(x, digits) / bottom)
    return Enclosure(min(end.low for end in ends), max(end.high for end in ends), digits)


def _density(x: Fraction, digits: int) -> Enclosure:
    return Enclosure.of(-x * x / 2, digits).exp() / (_pi(digits) * 2).sqrt()


@lru_cache(maxsize=64)
def _pi(digits: int) -> Enclosure:
    """Returns 16 arctan(1/5) - 4 arctan(1/239) (Machin 1706), each by its alternating series."""

    def arctan(inverse: int) -> tuple[Fraction, Fraction]:
        total, k = Fraction(0), 0
        while True:
            term = Fraction((-1) ** k, (2 * k + 1) * inverse ** (2 * k + 1))
            if abs(term) < Fraction(1, 10 ** (digits + 5)):
                return (total, total + term) if term > 0 else (total + term, total)
            total, k = total + term, k + 1

    (low5, high5), (low239, high239) = arctan(5), arctan(239)
    return Enclosure.between(16 * low5 - 4 * high239, 16 * high5 - 4 * low239, digits)


@lru_cache(maxsize=4096)
def discrete_gaussian_reach(sigma: Fraction, outside: Fraction) -> int:
    """Returns a whole t with P(|Z| > t) <= outside for P(z) ~ exp(-z^2 / (2 sigma^2)); the smallest one if sigma <= 32.

    Beyond, P(|Z| > t) <= P(|N(0, sigma^2)| > t): term z of the tail is below the integral from z - 1 to z, and the sum
    over all integers is at least sqrt(2 pi) sigma by Poisson's summation formula (Canonne, Kamath, Steinke 2020).
    """
    if sigma > _SUMMED:
        return math.ceil(sigma * normal_reach(outside))
    last = math.ceil(float(sigma) * math.sqrt(2 * (math.log(1 / outside) + 60))) + 2
    terms = [Enclosure.of(-z * z / (2 * sigma * sigma), DIGITS).exp() for z in range(last + 1)]
    everything = sum(terms[1:], start=Enclosure.of(0, DIGITS)) * 2 + terms[0]  # a little less: the safe side
    ratio = Enclosure.of(-last / (sigma * sigma), DIGITS).exp()
    tail, t = terms[last] / (1 - ratio), last - 1  # the terms from `last` on, below a geometric series
    while t > 0 and ((tail + terms[t]) * 2 / everything).fractions()[1] <= outside:
        tail, t = tail + terms[t], t - 1
    return t
