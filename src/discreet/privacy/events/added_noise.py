"""Events of added noise: the law of the output is known exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet import check
from discreet.check import Number, assign
from discreet.errors import InvalidParameter
from discreet.privacy.events.base import Event


@dataclass(frozen=True, slots=True, init=False)
class Laplace(Event):
    """Release of v + Z, Z of independent Lap(b); one unit moves v by at most b / noise_multiplier in the L1 norm.

    Lap(b) has the density e^(-|z| / b) / (2 b). In any dimension the hardest case is one entry that carries the whole
    move: a move in steps is a path of neighbours, group privacy bounds it by the composed trade-off functions (Dong,
    Roth, Su 2022, Theorem 2.14), and for a log-concave shift family these compose to the trade-off of one shift by
    the sum. Pure epsilon-DP with epsilon = 1 / noise_multiplier (Dwork, McSherry, Nissim, Smith 2006).

    Args:
        noise_multiplier: above 0; a float is taken as the binary number it is.

    Raises:
        InvalidParameter: outside that domain.

    >>> Laplace(2)
    Laplace(noise_multiplier=Fraction(2, 1))
    """

    noise_multiplier: Fraction

    def __init__(self, noise_multiplier: Number) -> None:
        assign(self, noise_multiplier=check.positive(noise_multiplier=noise_multiplier, floats="exact"))


@dataclass(frozen=True, slots=True, init=False)
class Gaussian(Event):
    """Release of v + N(0, sigma^2 I); one unit moves v by at most sigma / noise_multiplier in the L2 norm.

    With mu = 1 / noise_multiplier the privacy loss has the law N(mu^2 / 2, mu^2) in any dimension when the move is as
    long as it may be, and mu-GDP is exact (Dong, Roth, Su 2022, Theorem 2.7).

    Args:
        noise_multiplier: above 0; a float is taken as the binary number it is.

    Raises:
        InvalidParameter: outside that domain.

    >>> Gaussian(noise_multiplier=1.5)
    Gaussian(noise_multiplier=Fraction(3, 2))
    """

    noise_multiplier: Fraction

    def __init__(self, noise_multiplier: Number) -> None:
        assign(self, noise_multiplier=check.positive(noise_multiplier=noise_multiplier, floats="exact"))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(Event):
    """Release of v + Z, v an integer vector, Z of independent integers with P(z) ~ e^(-|z| / scale).

    One unit moves v by an integer vector whose L1 norm is at most `sensitivity`. As for `Laplace`, one entry that
    carries the whole move is the hardest case, since this law is log-concave on the integers. Pure epsilon-DP with
    epsilon = sensitivity / scale (Ghosh, Roughgarden, Sundararajan 2009).

    Args:
        scale: above 0; a float is taken as the binary number it is.
        sensitivity: a whole number from 1.

    Raises:
        InvalidParameter: outside these domains.

    >>> DiscreteLaplace(scale=10, sensitivity=1)
    DiscreteLaplace(scale=Fraction(10, 1), sensitivity=1)
    """

    scale: Fraction
    sensitivity: int

    def __init__(self, scale: Number, sensitivity: int) -> None:
        assign(
            self,
            scale=check.positive(scale=scale, floats="exact"),
            sensitivity=check.integer(sensitivity=sensitivity, at_least=1, at_most=10**check.LARGEST_EXPONENT),
        )


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian(Event):
    """Release of v + Z, v an integer vector, Z of independent integers with P(z) ~ e^(-z^2 / (2 sigma^2)).

    v has `dimension` entries, and one unit moves it by an integer vector whose L2 norm is at most `sensitivity`. It
    satisfies zCDP with rho = sensitivity^2 / (2 sigma^2) in any dimension (Canonne, Kamath, Steinke 2020). It is not
    Gaussian DP, and in several dimensions no single shift is the hardest case: that is why the dimension is recorded.

    Args:
        sigma: above 0, the parameter of the law (its standard deviation is slightly smaller); a float is taken exactly.
        sensitivity: above 0, and whole if there is one dimension, where integers move by whole numbers.
        dimension: a whole number from 1.

    Raises:
        InvalidParameter: outside these domains.

    >>> DiscreteGaussian(sigma=5, sensitivity=1)
    DiscreteGaussian(sigma=Fraction(5, 1), sensitivity=Fraction(1, 1), dimension=1)
    """

    sigma: Fraction
    sensitivity: Fraction
    dimension: int

    def __init__(self, sigma: Number, sensitivity: Number, dimension: int = 1) -> None:
        move = check.positive(sensitivity=sensitivity, floats="exact")
        entries = check.integer(dimension=dimension, at_least=1, at_most=10**18)
        if entries == 1 and move.denominator != 1:
            raise InvalidParameter(
                "sensitivity", sensitivity, "to be whole in one dimension", "Integers move by whole steps."
            )
        assign(self, sigma=check.positive(sigma=sigma, floats="exact"), sensitivity=move, dimension=entries)
