"""Checks that mechanisms must pass and that broken ones (see test_mutants) must fail. Each raises AssertionError."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet.audit import fits
from discreet.audit.mechanisms.additive_laws import upper_tail
from discreet.exact import Enclosure
from discreet.mechanisms import Lomax, ProposeTestRelease
from discreet.mechanisms import gaussian as gaussian_module
from discreet.mechanisms import laplace as laplace_module
from discreet.mechanisms import propose_test_release as test_module
from discreet.mechanisms.staircase import Stairs
from discreet.noise import SeededBits
from tests.statistical.laws import FALSE_ALARM

Floats = NDArray[np.float64]
Build = Callable[..., Any]


# ----------------------------------------------------------------------------------------- what was drawn, and for what
@contextmanager
def recorded(module: Any, sampler: str) -> Iterator[list[Fraction]]:
    """Replaces a sampler by silence and keeps the scales that it was asked for."""
    scales: list[Fraction] = []

    def silent(scale: Any, size: Any = None, *, bits: Any = None) -> Any:
        del bits
        scales.append(Fraction(scale))
        return 0 if size is None else np.zeros(size, dtype=np.int64)

    with mock.patch.object(module, sampler, silent):
        yield scales


def laplace_keeps_its_promise(build: Build, epsilon: Fraction, sensitivity: Fraction, step: Fraction) -> None:
    """For all values on a lattice finer than the grid, in both orders: the loss is at most epsilon, exactly.

    The loss of integer Laplace noise is largest outside both centres, where it is their distance over the scale.
    """
    fine = step / 8
    mechanism = build(epsilon=epsilon, sensitivity=sensitivity, grid=step)
    reach = math.floor(sensitivity / fine)
    with recorded(laplace_module, "discrete_laplace") as scales:
        centres = [Fraction(mechanism.release(fine * i)) / step for i in range(-16, 17 + reach)]
    assert len(set(scales)) == 1, "the noise depends on the value"
    moves = {abs(a - b) for i, a in enumerate(centres) for b in centres[max(0, i - reach) : i + reach + 1]}
    assert max(moves) / scales[0] <= epsilon, "a neighbour is further away than the noise hides"
    event = mechanism.event
    assert (event.scale, Fraction(event.sensitivity) / event.scale) == (scales[0], epsilon), "the event is another one"


def arrays_keep_their_promise(build: Build, sensitivity: Fraction, dimension: int) -> None:
    """The worst real arrays: every entry just below a half, and just at it."""
    mechanism = build(epsilon=1, sensitivity=sensitivity, dimension=dimension)
    tiny = Fraction(1, 10**6)
    below = np.array([Fraction(1, 2) - tiny] * dimension, dtype=object)
    above = np.array([Fraction(1, 2)] * dimension, dtype=object)
    above[0] += sensitivity - dimension * tiny
    assert sum(abs(above - below)) <= sensitivity
    with recorded(laplace_module, "discrete_laplace") as scales:
        moved = np.abs(mechanism.release(above) - mechanism.release(below)).sum()
    assert int(moved) / scales[0] <= 1, "the rounding of the entries was forgotten"


def discrete_gaussian_keeps_its_promise(build: Build, epsilon: float, delta: float, sensitivity: int) -> None:
    """The hockey-stick of two shifted laws, summed from the definition, for every shift up to the sensitivity."""
    mechanism = build(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    with recorded(gaussian_module, "discrete_gaussian") as scales:
        centres = [mechanism.release(value) for value in range(sensitivity + 1)]
    sigma = float(scales[0])
    z = np.arange(-math.ceil(40 * sigma), math.ceil(40 * sigma) + 1, dtype=np.float64)
    weight = np.exp(-(z**2) / (2 * sigma**2))
    for shift in centres[1:]:
        other = np.exp(-((z - shift) ** 2) / (2 * sigma**2))
        loss = np.maximum(weight - math.exp(epsilon) * other, 0).sum() / weight.sum()
        assert loss <= delta * (1 + 1e-9), "delta is larger than claimed"


# -------------------------------------------------------------------------------------------------------------- stairs
def exponent(stairs: Stairs, z: int) -> int:
    """The power of exp(-epsilon) in P(z), from the definition."""
    k, j = divmod(abs(z), stairs.steps)
    return k + (j >= stairs.high)


def stairs_are_private(stairs: Stairs, move: int) -> None:
    """No move of at most `move` steps, in either direction, changes the exponent by more than one."""
    z = range(-4 * stairs.steps, 4 * stairs.steps + 1)
    powers = {y: exponent(stairs, y) for y in range(z.start - move, z.stop + move)}
    worst = max(abs(powers[y] - powers[y + i]) for y in z for i in range(-move, move + 1))
    assert worst <= 1, "a neighbour is two stairs away"


def stairs_are_drawn(stairs: Stairs, draws: NDArray[np.int64]) -> None:
    """The law from its definition: weights exp(-epsilon * exponent), summed until nothing is left."""
    reach = stairs.steps * (math.ceil(40 / stairs.epsilon) + 2)
    z = np.arange(-reach, reach + 1)
    block, place = np.divmod(np.abs(z), stairs.steps)
    weights = np.exp(-float(stairs.epsilon) * (block + (place >= stairs.high)))
    cdf = np.cumsum(weights) / weights.sum()
    empirical = np.searchsorted(np.sort(draws), z, side="right") / draws.size
    gap = float(np.abs(empirical - cdf).max())
    assert 2 * math.exp(-2 * draws.size * gap**2) > FALSE_ALARM, "another law"  # Dvoretzky, Kiefer, Wolfowitz; Massart


# ------------------------------------------------------------------------------------------------------- real laws
def lomax_loss(z: Floats, a: float, first: float, second: float, shift: float) -> Floats:
    """ln of the ratio of two Lomax densities with centres 0 and `shift`."""
    ratio: Floats = math.log(second / first) + a * (np.log1p(np.abs(z - shift) / second) - np.log1p(np.abs(z) / first))
    return ratio


def places(kinks: list[float], scale: float) -> Floats:
    """Where a loss is looked at: its kinks and their surroundings, a dense middle, and tails up to a billion scales."""
    far = scale * np.logspace(-6, 9, 600)
    middle = np.linspace(-20 * scale, 20 * scale, 4001)
    near = [kink + side * far for kink in kinks for side in (-1, 1)]
    return np.concatenate([middle, np.array(kinks), *near])


def lomax_keeps_its_promise(build: Build, epsilon: float, beta: float) -> None:
    """The loss under all scales and shifts that neighbours can have."""
    mechanism: Lomax = build(epsilon=epsilon, beta=beta, floor=1)
    a, c = float(mechanism.exponent), float(mechanism.factor)
    for exponent_ in np.linspace(-beta, beta, 41):
        first, second = c, c * math.exp(exponent_)
        for share in (0.0, 0.5, 1.0):
            shift = share * min(first, second) / c
            z = places([0.0, shift], c)
            assert lomax_loss(z, a, first, second, shift).max() <= epsilon + 1e-12, "the loss exceeds epsilon"
            assert lomax_loss(-z, a, first, second, shift).max() <= epsilon + 1e-12, "the loss exceeds epsilon"


def trial_keeps_its_promise(mechanism: ProposeTestRelease) -> None:
    """Exactly, in enclosures: at distance 0 it passes with at most delta, and one step changes odds by e^epsilon."""
    epsilon = mechanism.epsilon
    with recorded(test_module, "discrete_laplace") as scales:
        passed = [mechanism.passes(distance) for distance in range(mechanism.cut + 2)]
    assert passed == [distance >= mechanism.cut for distance in range(mechanism.cut + 2)]
    assert set(scales) == {1 / epsilon}, "the noise of the test is another one"
    a = Enclosure.of(-epsilon, 60).exp()
    assert upper_tail(1 / epsilon, mechanism.cut, 60).fractions()[1] <= mechanism.delta, "trouble is released too often"
    for k in range(-3, mechanism.cut + 4):
        here, there = upper_tail(1 / epsilon, k, 60), upper_tail(1 / epsilon, k - 1, 60)
        for p, q in ((here, there), (there, here), (1 - here, 1 - there), (1 - there, 1 - here)):
            assert p.fractions()[0] <= (q / a).fractions()[1], "the test costs more than epsilon"


# ---------------------------------------------------------------------------------------------------- samples of laws
def follows(sample: Floats, cdf: Callable[[Floats], Floats]) -> float:
    """The p-value of a sample against a continuous law, rounded to a grid so fine that it cannot be seen."""
    return fits(sample, cdf).p_value


def laplace_cdf(x: Floats) -> Floats:
    """Of density e^-|x| / 2."""
    tail = np.exp(-np.abs(x)) / 2
    result: Floats = np.where(x < 0, tail, 1 - tail)
    return result


def normal_cdf(x: Floats) -> Floats:
    """Of the standard normal law."""
    result: Floats = special.ndtr(x)
    return result


def lomax_cdf(a: float) -> Callable[[Floats], Floats]:
    """Of density (a - 1) / 2 (1 + |x|)^-a."""

    def cdf(x: Floats) -> Floats:
        tail = (1 + np.abs(x)) ** (1 - a) / 2
        result: Floats = np.where(x < 0, tail, 1 - tail)
        return result

    return cdf


def has_scale(sample: Floats, cdf: Callable[[Floats], Floats], scale: float, *, symmetric: bool = True) -> None:
    """Two sides: the sample has this scale, and the check would see one that is off by 30 %.

    A wrong scale shows twice as much in the sizes of a symmetric variable as in the variable itself.
    """
    assert follows(sample / scale, cdf) > FALSE_ALARM, "another law"
    sizes = np.abs(sample) if symmetric else sample

    def size_cdf(x: Floats) -> Floats:
        return 2 * cdf(x) - 1 if symmetric else cdf(x)

    assert follows(sizes / scale, size_cdf) > FALSE_ALARM, "another law"
    for wrong in (1.3, 0.7):
        assert follows(sizes / (scale * wrong), size_cdf) < FALSE_ALARM, "the check has no power"


def released(mechanism: Any, value: Any, *arguments: Any, count: int, seed: int = 7) -> Floats:
    """Many releases of one value."""
    bits = SeededBits(seed)
    return np.array([mechanism.release(value, *arguments, bits=bits) for _ in range(count)], dtype=np.float64)
