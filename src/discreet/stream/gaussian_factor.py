"""Streams with Gaussian noise: a factor, the sensitivity of its measurements, and normal noise on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import singledispatch

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Grid, float_above
from discreet.mechanisms import Gaussian
from discreet.mechanisms.tails import normal_reach
from discreet.noise import Bits
from discreet.noise.draw_buffer import RoundedNormals
from discreet.privacy import ZCDP, ApproxDP, Loss
from discreet.privacy.events import Event
from discreet.stream.factor import (
    Decoder,
    Encoder,
    EstimateError,
    Participation,
    StreamLine,
    StreamMechanism,
    SumFactorization,
)

_STEPS = 1 << 19  # of the grid of measurements, per sigma: rounding adds 2^-41 to the variance
_SAFE = 1 + 1e-9  # covers what doubles lose here


@dataclass(frozen=True, eq=False)
class GaussianFactor(StreamMechanism):
    """Measures C x with normal noise, correctly rounded to a public grid.

    Formal guarantee: mu-GDP with mu = sensitivity / sigma for all periods together, hence (mu^2 / 2)-zCDP and the
    epsilon of its exact curve for every delta; also if values depend on earlier releases. What is released in period t
    is a function of v_t + sigma Z_t with v_t exact and Z_t normal. Given what was released before, one unit moves v_t
    by some m_t, a function of that past, and along every past the squares of the m_t add up to at most the squared
    sensitivity, because C is lower-triangular and public. A sequence of Gaussian releases under such a bound is
    mu-GDP, however the m_t are chosen (Denisov, McMahan, Rush, Smith, Thakurta 2022, Theorem 2.1; Smith, Thakurta
    2022). For zCDP it takes a line: exp((a - 1) loss_t - a (a - 1) (m_1^2 + ... + m_t^2) / (2 sigma^2)) is a
    martingale that begins at 1.
    """

    method: str
    factor: SumFactorization
    mechanism: Gaussian

    @classmethod
    def of(
        cls, method: str, factor: SumFactorization, participation: Participation, steps: Fraction, budget: Loss
    ) -> GaussianFactor:
        """Returns the mechanism for a budget, if each period of one unit moves its values by so many steps."""
        return cls(method, factor, _calibrate_noise(budget, factor.sensitivity(participation) * steps))

    @property
    def event(self) -> Event:
        """Returns what all periods together cost, for accounting."""
        return self.mechanism.event

    def line(self) -> StreamLine:
        """Returns a new line, before the first period."""
        return _FactorLine(self.factor.encoder(), self.factor.decoder(), float(self.mechanism.grid.step))

    def noise(self, bits: Bits) -> Callable[[list[int]], list[int]]:
        """Returns the function that adds noise to an entry of C x and rounds to the grid of measurements."""
        grid = self.mechanism.grid
        normals = RoundedNormals(self.mechanism.sigma / grid.step, bits)
        exponent = self.factor.bits + grid.exponent
        if exponent >= 0:
            return lambda values: [normals.around(value, exponent) for value in values]
        return lambda values: [normals.around(value << -exponent, 0) for value in values]

    def errors(self, confidence: Fraction) -> Iterator[EstimateError]:
        """Yields the error of each period: normal noise, and half a step of rounding for each measurement."""
        sigma, step = float(self.mechanism.sigma), float(self.mechanism.grid.step)
        far = float_above(normal_reach(1 - confidence)) * sigma
        variance = sigma * sigma + step * step / 12
        for gain in self.factor.gains():
            yield EstimateError(
                gain.squared * variance, (math.sqrt(gain.squared) * far + gain.total * step / 2) * _SAFE
            )


class _FactorLine(StreamLine):
    __slots__ = ("_decoder", "_encoder", "_step")

    def __init__(self, encoder: Encoder, decoder: Decoder, step: float) -> None:
        self._encoder, self._decoder, self._step = encoder, decoder, step

    def measure(self, value: int) -> list[int]:
        """Takes the next value, and returns the next entry of C x."""
        return [self._encoder.step(value)]

    def absorb(self, noisy: list[int]) -> float:
        """Takes it with its noise, and returns the next entry of B y."""
        return self._decoder.step(noisy[0] * self._step)


class ChargedBudget(ApproxDP):
    """An epsilon and a delta that were charged before, as a certain noise multiplier.

    A stream goes on with the noise that was charged: searched for again, the last digits of the multiplier depend on
    how a processor rounds logarithms.
    """

    __slots__ = ("noise_multiplier",)
    noise_multiplier: Fraction

    def __init__(self, budget: ApproxDP, noise_multiplier: Fraction) -> None:
        super().__init__(budget.epsilon, budget.delta)
        object.__setattr__(self, "noise_multiplier", noise_multiplier)


@singledispatch
def _calibrate_noise(budget: Loss, sensitivity: Fraction) -> Gaussian:  # noqa: ARG001 - for every kind of budget
    """Returns the Gaussian mechanism of a budget, on a grid far finer than its noise."""
    raise InvalidParameter(
        "budget", budget, "to allow Gaussian noise", "Pass Budget(rho=0.5), or an epsilon and a delta."
    )


@_calibrate_noise.register
def _(budget: ZCDP, sensitivity: Fraction) -> Gaussian:
    return _fine(Gaussian.for_rho(rho=budget.rho, sensitivity=sensitivity))


@_calibrate_noise.register
def _(budget: ApproxDP, sensitivity: Fraction) -> Gaussian:
    return _fine(Gaussian(epsilon=budget.epsilon, delta=budget.delta, sensitivity=sensitivity))


@_calibrate_noise.register
def _(budget: ChargedBudget, sensitivity: Fraction) -> Gaussian:
    return _fine(Gaussian.with_multiplier(noise_multiplier=budget.noise_multiplier, sensitivity=sensitivity))


def _fine(mechanism: Gaussian) -> Gaussian:
    multiplier = mechanism.sigma / mechanism.sensitivity
    grid = Grid.finer_than(mechanism.sigma / _STEPS)
    return Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=mechanism.sensitivity, grid=grid)
