"""Privacy losses computed a second way: slowly, with 60 digits, and sharing no code with the accountants.

A law is a map from a loss to its mass under P. All hockey-stick divergences follow from it, because Q has the mass
times e^-loss. Infinite losses are kept apart by the callers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any

import mpmath  # type: ignore[import-untyped]  # it publishes no annotations

mp: Any = mpmath.mp
mpf: Any = mp.mpf

DIGITS = 60
mp.dps = DIGITS

Law = Mapping[Any, Any]


def real(value: Fraction | float) -> Any:
    """The number with 60 digits."""
    exact = Fraction(value)
    return mpf(exact.numerator) / exact.denominator


def randomized_response(epsilon: Fraction, options: int = 2) -> Law:
    """Truth, one of the options - 2 indifferent lies, or the neighbour's truth."""
    odds = mp.exp(real(epsilon))
    total = odds + options - 1
    law = {real(epsilon): odds / total, -real(epsilon): 1 / total}
    return law | ({mpf(0): (options - 2) / total} if options > 2 else {})


def discrete_laplace(scale: Fraction, shift: int) -> Law:
    """P(z) = (1-a)/(1+a) a^|z| against P(z - shift): all z <= 0 share one loss, all z >= shift another."""
    a = mp.exp(-1 / real(scale))
    law: dict[Any, Any] = {shift / real(scale): 1 / (1 + a), -shift / real(scale): a**shift / (1 + a)}
    for z in range(1, shift):
        law[(shift - 2 * z) / real(scale)] = (1 - a) / (1 + a) * a**z
    return law


def discrete_gaussian(sigma: Fraction, shift: int) -> Law:
    """P(z) ~ e^(-z^2 / 2 sigma^2) against P(z - shift), out to 45 standard deviations (a share of 1e-440)."""
    variance = real(sigma) ** 2
    reach = int(45 * sigma) + 2
    masses = {z: mp.exp(-z * z / (2 * variance)) for z in range(-reach, reach + 1)}
    total = sum(masses.values())
    return {shift * (mpf(shift) / 2 - z) / variance: mass / total for z, mass in masses.items()}


def sampled(law: Law, rate: Fraction, *, removal: bool) -> Law:
    """On a Poisson sample: (1-q) Q + q P against Q for a removed unit, P against (1-q) P + q Q for an added one."""
    q = real(rate)
    mixed = {}
    for loss, mass in law.items():
        if removal:
            mixed[mp.log(1 - q + q * mp.exp(loss))] = mass * ((1 - q) * mp.exp(-loss) + q)
        else:
            mixed[-mp.log(1 - q + q * mp.exp(-loss))] = mass
    return mixed


def convolve(one: Law, other: Law) -> Law:
    """The law of the sum of two independent losses; sums equal to 40 digits are one."""
    total: dict[Any, Any] = defaultdict(mpf)
    keys: dict[str, Any] = {}
    for a, mass_a in one.items():
        for b, mass_b in other.items():
            key = keys.setdefault(mp.nstr(a + b, 40), a + b)
            total[key] += mass_a * mass_b
    return total


def composed(laws: Iterable[Law]) -> Law:
    """The law of the sum of all losses."""
    start: Law = {mpf(0): mpf(1)}
    return reduce(convolve, laws, start)


def hockey_stick(law: Law, epsilon: float) -> Any:
    """E_P[(1 - e^(epsilon - L))+]."""
    at = real(epsilon)
    return sum((mass * -mp.expm1(at - loss) for loss, mass in law.items() if loss > at), mpf(0))


def gaussian_delta(mu: Any, epsilon: Any) -> Any:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), with enough digits for the cancellation."""
    with mp.workdps(DIGITS + 40):
        return _normal(mu / 2 - epsilon / mu) - mp.exp(epsilon) * _normal(-mu / 2 - epsilon / mu)


def _normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def continuous_sampled_delta(density: Any, rate: Fraction, epsilon: float, kinks: list[float], *, removal: bool) -> Any:
    """The hockey-stick divergence of noise on a Poisson sample, shifted by 1, as an integral over the real line."""
    q, factor = real(rate), mp.exp(real(epsilon))

    def excess(x: Any) -> Any:
        here, there = density(x), density(x - 1)
        mixed = (1 - q) * here + q * there
        return max(mpf(0), mixed - factor * here) if removal else max(mpf(0), here - factor * mixed)

    return mp.quad(excess, [-mp.inf, *sorted(kinks), mp.inf])
