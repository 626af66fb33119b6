"""Sums that a person moves in every coordinate, with noise for all of them together: private sides of comparisons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InvalidParameter
from discreet.exact import root_above
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits
from discreet.privacy.events import Event, Pure

Law = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A mechanism for sums, with its guarantee as the bounds of attacks take it.

    Attributes:
        mechanism: adds the noise.
        event: what the release is for a person.
        noise: standard deviation of the noise of one sum.
    """

    mechanism: Laplace | Gaussian
    event: Event
    noise: float


@dataclass(frozen=True, slots=True)
class Sums:
    """Private sums, with the noise of each and what the whole release is for a person."""

    values: NDArray[np.float64]
    noise: float
    event: Event


def private_law(law: Law, epsilon: float, delta: check.Number, coordinates: int, largest: int = 1) -> Guarantee:
    """Noise for whole sums that one person moves by at most `largest` in every coordinate.

    Formal guarantee: epsilon-DP with Laplace noise, whose L1 sensitivity is largest * d; (epsilon, delta)-DP and the
    trade-off curve of the Gaussian mechanism with Gaussian noise, whose L2 sensitivity is largest * sqrt(d). If a
    person's values lie between 0 and `largest`, both hold when a person is added or removed and when one is replaced
    by another: in either case every sum moves by at most `largest`.
    """
    if law == "laplace":
        laplace = Laplace(epsilon=epsilon, sensitivity=coordinates * largest)
        return Guarantee(laplace, Pure(laplace.epsilon), math.sqrt(2) * float(laplace.event.scale))
    if law == "gaussian":
        move = largest * root_above(Fraction(coordinates))
        gaussian = Gaussian(epsilon=epsilon, delta=delta, sensitivity=move)
        return Guarantee(gaussian, gaussian.event, float(gaussian.sigma))
    raise InvalidParameter("law", law, "to be 'laplace' or 'gaussian'", "Laplace noise is pure, Gaussian has a delta.")


def noisy_sums(
    sums: NDArray[np.int64], largest: int, law: Law, *, epsilon: float, delta: check.Number, bits: Bits
) -> Sums:
    """Whole sums of values between 0 and `largest`, made private together."""
    guarantee = private_law(law, epsilon, delta, sums.size, largest)
    values = np.asarray(guarantee.mechanism.release(sums, bits=bits), dtype=np.float64)
    return Sums(values, guarantee.noise, guarantee.event)
