"""Broken mechanisms, each caught by the check that is named beside it: proof that the checks have power."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.check import assign
from discreet.exact import Enclosure, Grid, upper
from discreet.mechanisms import DiscreteGaussian, KNorm, Laplace, Lomax, ProposeTestRelease, Staircase
from discreet.mechanisms.staircase import Stairs
from discreet.noise import Bits, SeededBits, discrete_laplace
from tests.cases import every
from tests.mechanisms import judges

ONE = Fraction(1)


class HalfScale(Laplace):
    """Noise of half the scale."""

    @property
    def _scale(self) -> Fraction:
        return self._steps / self.epsilon / 2


class NoRounding(Laplace):
    """The sensitivity in steps, without what rounding adds."""

    @property
    def _steps(self) -> int:
        return max(1, int(self.sensitivity / self.grid.step))


class NoDimension(Laplace):
    """The rounding of one entry only."""

    @property
    def _steps(self) -> int:
        return self.grid.l1_steps(self.sensitivity, 1)


class HalfToEven(Laplace):
    """Rounds halves to even numbers, which does not commute with shifts."""

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        noise = super().release(0, bits=bits)
        return round(Fraction(value) / self.grid.step) * self.grid.step + noise


class OtherEvent(Laplace):
    """Charges for half of what it releases."""

    @property
    def event(self) -> Any:
        return Laplace(epsilon=self.epsilon / 2, sensitivity=self.sensitivity, grid=self.grid).event


class SmallSigma(DiscreteGaussian):
    """The sigma of the normal law, which is slightly too small on the integers."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        assign(self, sigma=self.sigma * Fraction(997, 1000))


class HalfFactor(Lomax):
    """Half the factor."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        assign(self, factor=self.factor / 2)


class FirstConditionOnly(Lomax):
    """The factor of condition (i) alone."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        first = upper(lambda digits: 1 / (Enclosure.of(self.epsilon / self.exponent, digits).exp() - 1))
        assign(self, factor=first)


class LightTail(Lomax):
    """An exponent above 1 + epsilon / beta, which breaks condition (iii) far out."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        assign(self, exponent=self.exponent + 1, factor=self.factor * 2)


class EarlyCut(ProposeTestRelease):
    """A threshold one too low."""

    @property
    def cut(self) -> int:
        return max(0, super().cut - 1)


class LouderTest(ProposeTestRelease):
    """A test with half the noise."""

    def passes(self, distance: int, *, bits: Bits | None = None) -> bool:
        louder = ProposeTestRelease(epsilon=2 * self.epsilon, delta=self.delta, bound=self.bound)
        return louder.passes(distance - self.cut + louder.cut, bits=bits)


@dataclass(frozen=True, slots=True)
class WrongHigh(Stairs):
    """Draws with one high step too many."""

    def draw(self, count: int, bits: Bits) -> Any:
        return Stairs(self.epsilon, self.steps, self.high + 1).draw(count, bits)


@dataclass(frozen=True, slots=True)
class DoubleZero(Stairs):
    """Forgets to draw minus zero again."""

    def draw(self, count: int, bits: Bits) -> Any:
        drawn = discrete_laplace(1 / self.epsilon, count, bits=bits)
        return np.where(drawn == 0, Stairs(self.epsilon, self.steps, self.high).draw(count, bits), drawn)


def _lomax(kind: Any) -> Callable[[], None]:
    return lambda: judges.lomax_keeps_its_promise(kind, 1, 0.25)


def _test(kind: Any) -> Callable[[], None]:
    return lambda: judges.trial_keeps_its_promise(kind(epsilon=1, delta="1e-5", bound=1))


def _drawn(kind: Any) -> Callable[[], None]:
    stairs = kind(ONE, 8, 3)
    return lambda: judges.stairs_are_drawn(stairs, stairs.draw(100_000, SeededBits(5)))


def _laplace(kind: Any, sensitivity: Fraction = ONE) -> Callable[[], None]:
    return lambda: judges.laplace_keeps_its_promise(kind, ONE, sensitivity, ONE)


def _short_stairs() -> None:
    mechanism = Staircase(epsilon=1, sensitivity=1, grid=Fraction(1, 8))
    judges.stairs_are_private(Stairs(ONE, mechanism.stairs.steps - 1, 2), move=mechanism.stairs.steps)


def _half_radius() -> None:
    mechanism = KNorm(epsilon=2, sensitivity=1, dimension=1)
    judges.has_scale(judges.released(mechanism, 0.0, count=1700), judges.laplace_cdf, 1.0)


MUTANTS: dict[str, tuple[Callable[[], None], str]] = {
    "half the scale": (_laplace(HalfScale), "further away"),
    "no rounding in the sensitivity": (_laplace(NoRounding, Fraction(5, 2)), "further away"),
    "no dimension in the sensitivity": (lambda: judges.arrays_keep_their_promise(NoDimension, ONE, 4), "rounding"),
    "half to even": (_laplace(HalfToEven), "further away"),
    "another event": (_laplace(OtherEvent), "event"),
    "sigma 0.3 % too small": (
        lambda: judges.discrete_gaussian_keeps_its_promise(SmallSigma, 1, 1e-5, 1),
        "delta is larger",
    ),
    "half the Lomax factor": (_lomax(HalfFactor), "exceeds epsilon"),
    "condition (i) only": (_lomax(FirstConditionOnly), "exceeds epsilon"),
    "tails too light": (_lomax(LightTail), "exceeds epsilon"),
    "threshold one too low": (_test(EarlyCut), "too often"),
    "half the noise in the test": (_test(LouderTest), "noise of the test"),
    "one high step too many": (_drawn(WrongHigh), "another law"),
    "zero counted twice": (_drawn(DoubleZero), "another law"),
    "stairs shorter than the sensitivity": (_short_stairs, "two stairs"),
    "half the radius": (_half_radius, "another law"),
}


@pytest.mark.ci
@every("name", MUTANTS)
def test_the_mutant_is_caught_by_its_check(name: str) -> None:
    check, reason = MUTANTS[name]
    with pytest.raises(AssertionError, match=reason):
        check()


def test_the_unbroken_mechanisms_pass_the_same_checks() -> None:
    _laplace(Laplace)()
    _laplace(Laplace, Fraction(5, 2))()
    judges.arrays_keep_their_promise(Laplace, ONE, 4)
    judges.discrete_gaussian_keeps_its_promise(DiscreteGaussian, 1, 1e-5, 1)
    _lomax(Lomax)()
    _test(ProposeTestRelease)()
    _drawn(Stairs)()
    assert Grid.integers().l1_steps(Fraction(5, 2)) == 3
