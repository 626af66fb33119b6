"""Mistakes in added noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting, audit
from discreet.audit.mechanisms.goodness_of_fit import DiscreteLaplaceLaw as LaplaceLaw
from discreet.exact import Grid
from discreet.mechanisms import DiscreteGaussian, Laplace, ProposeTestRelease, RandomizedResponse, Staircase
from discreet.mechanisms import laplace as laplace_module
from discreet.mechanisms.staircase import Stairs
from discreet.noise import SeededBits, bernoulli, discrete_laplace
from tests.audit import leaks
from tests.audit.mutants.registry import Mutant, catcher, setting

SURE = 1 - 1e-6
RUNS = 800
DRAWS = 2000


@catcher("audit.exact")
def laplace_costs_the_requested_epsilon() -> None:
    """On the grid, between its points, and in arrays of values between its points."""
    assert audit.exact(Laplace(epsilon=1, sensitivity=1), 0, 1, epsilon=1).passed
    assert audit.exact(Laplace(epsilon=1, sensitivity=1), Fraction(1, 2), Fraction(3, 2), epsilon=1).passed
    wide = Laplace(epsilon=1, sensitivity=Fraction(5, 2))
    assert audit.exact(wide, 0, Fraction(5, 2), epsilon=1).passed
    almost = Fraction(1, 2) - Fraction(1, 1000)
    below, above = [almost] * 4, [Fraction(3, 2) - Fraction(4, 1000), *[Fraction(1, 2)] * 3]
    assert audit.exact(Laplace(epsilon=1, sensitivity=1, dimension=4), below, above, epsilon=1).passed


@catcher("audit.fits")
def laplace_noise_has_its_distribution() -> None:
    mechanism, bits = Laplace(epsilon=Fraction(1, 4), sensitivity=1), SeededBits(11)
    draws = [mechanism.release(0, bits=bits) for _ in range(DRAWS)]
    assert audit.fits(draws, LaplaceLaw(Fraction(4)), level=1e-9).passed


@catcher("audit.distinguish")
def laplace_hides_one_unit() -> None:
    mechanism = Laplace(epsilon=1, sensitivity=1)
    assert audit.distinguish(mechanism, 0, 1, runs=2 * RUNS, epsilon=1, confidence=SURE, bits=SeededBits(12)).passed


@catcher("audit.distinguish")
def laplace_hides_one_unit_in_an_array() -> None:
    mechanism = Laplace(epsilon=1, sensitivity=1)
    found = audit.distinguish(mechanism, [5, 5], [5, 6], runs=RUNS, confidence=SURE, bits=SeededBits(13))
    assert found.passed


@catcher("audit.exact")
def discrete_gaussian_keeps_its_delta() -> None:
    assert audit.exact(DiscreteGaussian(epsilon=1, delta=1e-5, sensitivity=1), 0, 1, epsilon=1, delta=1e-5).passed


@catcher("audit.exact")
def discrete_gaussian_keeps_its_delta_at_a_large_epsilon() -> None:
    mechanism = DiscreteGaussian(epsilon=100, delta=1e-6, sensitivity=30)
    assert audit.exact(mechanism, 0, 30, epsilon=100, delta=1e-6).passed


@catcher("audit.exact")
def stairs_are_as_long_as_the_sensitivity() -> None:
    assert audit.exact(Staircase(epsilon=4, sensitivity=1, grid=Fraction(1, 8)), 0, 1).passed


@catcher("audit.exact")
def unstable_values_are_hardly_ever_released() -> None:
    assert audit.exact(ProposeTestRelease(epsilon=1, delta=1e-5, bound=1), (0, 0), (50, 0)).passed


@catcher("audit.distinguish")
def reports_hide_the_true_answer() -> None:
    mechanism = RandomizedResponse(epsilon=1)
    assert audit.distinguish(mechanism, 0, 1, runs=RUNS, confidence=SURE, bits=SeededBits(14)).passed


def _half(mechanism: Laplace) -> Fraction:
    return mechanism._steps / mechanism.epsilon / 2


def _sharper(scale: Any, *arguments: Any, **options: Any) -> Any:
    return discrete_laplace(Fraction(scale) / 2, *arguments, **options)


def _in_floats(_: Laplace, value: Any, *, bits: Any = None) -> float:
    return leaks.float_noise(bits)(float(value))


def _seeded(mechanism: Laplace, value: Any, *, bits: Any = None) -> Any:
    del bits
    return value + discrete_laplace(mechanism._scale, bits=SeededBits(7))


def _first_only(mechanism: Laplace, value: Any, *, bits: Any = None) -> Any:
    noise = np.zeros(np.shape(value), dtype=np.int64)
    noise[0] = discrete_laplace(mechanism._scale, bits=bits)
    return np.asarray(value) + noise


def _shared(mechanism: Laplace, value: Any, *, bits: Any = None) -> Any:
    return np.asarray(value) + discrete_laplace(mechanism._scale, bits=bits)


def _truthful(mechanism: RandomizedResponse, truth: Any, bits: Any) -> Any:
    """Lies with the probability 1/8 instead of 0.27."""
    del mechanism
    return np.where(bernoulli(Fraction(1, 8), truth.size, bits=bits), 1 - truth, truth)


def _short(cls: Any, epsilon: Fraction, steps: int, criterion: Any) -> Stairs:
    del criterion
    found: Stairs = cls(epsilon, steps - 1, max(1, (steps - 1) // 4))
    return found


def _early_cut(patch: pytest.MonkeyPatch) -> None:
    right = ProposeTestRelease.cut.fget  # type: ignore[attr-defined]
    patch.setattr(ProposeTestRelease, "cut", property(lambda m: right(m) - 1))


MUTANTS = [
    Mutant(
        "half the scale",
        "The scale of Laplace noise is half of sensitivity / epsilon.",
        setting(Laplace, "_scale", property(_half)),
        laplace_costs_the_requested_epsilon,
    ),
    Mutant(
        "a sampler that draws too little",
        "The mechanism asks for the right scale, but the sampler draws with half of it.",
        setting(laplace_module, "discrete_laplace", _sharper),
        laplace_noise_has_its_distribution,
    ),
    Mutant(
        "rounding left out of the sensitivity",
        "A sensitivity of 2.5 steps counts as 2, because rounding to the grid is forgotten.",
        setting(Grid, "l1_steps", lambda grid, s, dimension=1: max(1, int(s / grid.step)) + dimension - 1),
        laplace_costs_the_requested_epsilon,
    ),
    Mutant(
        "dimension left out of the sensitivity",
        "Each entry of an array may round by one step, but the rounding of only one entry is counted.",
        setting(Grid, "l1_steps", lambda grid, s, dimension=1: -int(-s // grid.step) + 0 * dimension),
        laplace_costs_the_requested_epsilon,
    ),
    Mutant(
        "half to even",
        "Values are rounded half to even, so that some neighbours end up two steps apart.",
        setting(Grid, "_scalar", lambda grid, value: round(Fraction(value) / grid.step)),
        laplace_costs_the_requested_epsilon,
    ),
    Mutant(
        "float noise off the grid",
        "Textbook Laplace noise is computed and added in floats, whose low bits reveal the exact value.",
        setting(Laplace, "release", _in_floats),
        laplace_hides_one_unit,
    ),
    Mutant(
        "seeded generator",
        "Noise comes from a generator with a fixed seed, so it is the same for every release.",
        setting(Laplace, "release", _seeded),
        laplace_hides_one_unit,
    ),
    Mutant(
        "noise on one entry only",
        "Only the first entry of an array gets noise; the others are exact.",
        setting(Laplace, "release", _first_only),
        laplace_hides_one_unit_in_an_array,
    ),
    Mutant(
        "one draw for all entries",
        "All entries of an array share one draw, so their differences are exact.",
        setting(Laplace, "release", _shared),
        laplace_hides_one_unit_in_an_array,
    ),
    Mutant(
        "sigma of the continuous Gaussian",
        "The discrete Gaussian is calibrated with the privacy curve of the continuous one.",
        setting(
            accounting,
            "discrete_gaussian_sigma",
            lambda epsilon, delta, sensitivity, _dimension: accounting.gaussian_sigma(
                epsilon, delta, sensitivity=sensitivity
            ),
        ),
        discrete_gaussian_keeps_its_delta,
    ),
    Mutant(
        "sigma where the search began",
        "The search accepts its first sigma: its privacy profile leaves out the middle of the distribution.",
        setting(
            accounting,
            "discrete_gaussian_sigma",
            lambda epsilon, _delta, sensitivity, _dimension: sensitivity / epsilon,
        ),
        discrete_gaussian_keeps_its_delta_at_a_large_epsilon,
    ),
    Mutant(
        "stairs shorter than the sensitivity",
        "A stair is one step shorter than the sensitivity, so that one unit can move a value by two stairs.",
        setting(Stairs, "best", classmethod(_short)),
        stairs_are_as_long_as_the_sensitivity,
    ),
    Mutant(
        "test passed one step early",
        "Propose-test-release uses a cut that is one below the cut that its delta requires.",
        _early_cut,
        unstable_values_are_hardly_ever_released,
    ),
    Mutant(
        "too much truth",
        "Randomized response lies about half as often as it claims.",
        setting(RandomizedResponse, "_randomize", _truthful),
        reports_hide_the_true_answer,
    ),
]
