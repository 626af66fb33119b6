"""Centres released with noise of a private scale, and intervals around them whose every ingredient is paid for.

A centre f (a median, a trimmed mean) gets Lomax noise c S Z scaled to its smooth sensitivity S. How large that noise is
depends on the data, so an interval needs two more releases, each of the logarithm of a beta-smooth function G of the
data: |ln G(x) - ln G(x')| <= beta for neighbours by definition, so ln G plus Laplace noise of scale beta / epsilon is
epsilon-DP.

* G = S: (released centre - f) / e^(ln S + Y) = c Z e^(-Y), with Y the Laplace noise, has a known law, whatever S is.
* G at least the deviation of the sampling error, which is normal: that error over e^(ln G + Y) is at most N e^(-Y).

Two half-widths that each hold with the same probability are added like deviations, as the root of the sum of squares:
exact for normal errors, and more than enough for tails as heavy as these at 90 % and more (below that, at most 9 % more
often wrong, which is taken off first; `tests/statistics/test_centre.py` tries the laws).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Grid, Interval, upper
from discreet.lazy import optimize, special
from discreet.mechanisms import Laplace, Lomax
from discreet.mechanisms.smooth import widen_beta
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.robust.smooth_sensitivity import INFLATION

FINE = 1 << 32  # steps between the bounds, which may be wide; sums of 2^30 values stay exact
SLOWER = 8  # the default beta is epsilon over this: little noise, and little doubt about its size
CENTRE, SCALE, SPREAD = 4, 1, 2  # how epsilon is shared
_FINE = 1024  # steps of a logarithm's grid to its sensitivity
_NODES = 1000

TARGETS = ("population", "sample")


def only_replace(neighbours: Neighbours | str) -> None:
    """Refuses a relation in which the number of values is private: the rank of a centre would move with it."""
    if Neighbours(neighbours) is not Neighbours.REPLACE:
        hint = "Pass neighbours='replace' if the number of values is public, else use median."
        raise InvalidParameter("neighbours", neighbours, "to be 'replace' for smooth sensitivity", hint)


def known_target(target: str) -> bool:
    """Returns whether the interval is to cover the population's value."""
    if target not in TARGETS:
        raise InvalidParameter("target", target, f"to be one of {', '.join(TARGETS)}")
    return target == "population"


def some_values(size: int) -> int:
    """Returns the public number of values, at least one."""
    if size < 1:
        raise InvalidValue("to hold at least one number", "An empty list has no centre.")
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothLogarithm:
    """Releases the logarithm of a beta-smooth function that is known up to the factor 1 + INFLATION.

    Formal guarantee: epsilon-DP under REPLACE; two neighbours' logarithms differ by at most beta + ln(1 + INFLATION),
    and the digits that are cut off are far fewer than the second INFLATION that is added.
    """

    mechanism: Laplace

    @classmethod
    def of(cls, *, beta: Fraction, epsilon: Fraction) -> SmoothLogarithm:
        """Returns the release of a budget."""
        move = widen_beta(beta, 2 * INFLATION)
        return cls(mechanism=Laplace(epsilon=epsilon, sensitivity=move, grid=Grid.finer_than(move / _FINE)))

    @property
    def scale(self) -> float:
        """Returns the scale of the noise."""
        return float(self.mechanism.event.scale * self.mechanism.grid.step)

    def release(self, value: Fraction, bits: Bits) -> float:
        """Releases ln(value) with noise."""
        return float(self.mechanism.release(upper(lambda digits: Enclosure.of(value, digits).log()), bits=bits))


@dataclass(frozen=True, slots=True, kw_only=True)
class CentrePlan:
    """The releases around one centre, all of them fixed by public facts; everything is measured in steps.

    Attributes:
        noise: of the centre.
        scale: of the logarithm of its smooth sensitivity.
        spread: of the logarithm of the bound of its sampling error's deviation; None if the interval is about the
            sample.
        spread_beta: how smooth that bound is.
        outside: 1 - confidence.
    """

    noise: Lomax
    scale: SmoothLogarithm
    spread: SmoothLogarithm | None
    spread_beta: Fraction
    outside: Fraction

    @classmethod
    def of(
        cls,
        *,
        epsilon: Fraction,
        beta: Number | None,
        floor: Fraction,
        ranks: tuple[int, int],
        outside: Fraction,
        population: bool,
    ) -> CentrePlan:
        """Returns the plan of a budget.

        Args:
            epsilon: of all releases together.
            beta: of the centre's smooth sensitivity; None is an eighth of the centre's epsilon.
            floor: what smooth sensitivities are raised to.
            ranks: how many ranks the bound of the sampling error spans, and how many lie beyond on each side.
            outside: 1 - confidence.
            population: whether the interval covers the population's value.
        """
        whole = CENTRE + SCALE + (SPREAD if population else 0)
        centre, part, rest = (epsilon * share / whole for share in (CENTRE, SCALE, SPREAD))
        smooth = centre / SLOWER if beta is None else check.positive(beta=beta)
        wide = _spread_beta(rest, *ranks)
        return cls(
            noise=_lomax(centre, smooth, floor),
            scale=_logarithm(smooth, part),
            spread=_logarithm(wide, rest) if population else None,
            spread_beta=wide,
            outside=outside,
        )

    @property
    def event(self) -> Event:
        """Returns the event of all releases."""
        parts: list[Event] = [self.noise.event, self.scale.mechanism.event]
        return events.Composed([*parts, self.spread.mechanism.event] if self.spread else parts)

    def release_interval(
        self, centre: Fraction, sensitivity: Fraction, bound: Callable[[], Fraction], freedom: int, bits: Bits
    ) -> Interval:
        """Releases the ends of the interval around the noisy centre, in steps.

        Args:
            centre: exact.
            sensitivity: its smooth sensitivity, from `smooth_sensitivity`, raised to the floor of the noise.
            bound: gives what the deviation of the sampling error does not exceed; `spread_beta`-smooth.
            freedom: of Student's law for that error.
            bits: the source of randomness.
        """
        value = float(self.noise.release(centre, sensitivity, bits=bits))
        scale = math.exp(self.scale.release(sensitivity, bits)) * float(self.noise.factor)
        power = -float(self.noise.exponent - 1)
        missed = missed_by_each(self.outside) if self.spread is not None else float(self.outside)
        half = scale * lomax_pivot(power, self.scale.scale, missed)
        if self.spread is not None:
            spread = math.exp(self.spread.release(bound(), bits))
            half = math.hypot(half, spread * student_pivot(freedom, self.spread.scale, missed))
        half += float(self.noise.grid.step)
        return Interval(value - half, value + half)


@lru_cache(maxsize=256)
def _lomax(epsilon: Fraction, beta: Fraction, floor: Fraction) -> Lomax:
    return Lomax(epsilon=epsilon, beta=beta, floor=floor, inflation=INFLATION)


@lru_cache(maxsize=256)
def _logarithm(beta: Fraction, epsilon: Fraction) -> SmoothLogarithm:
    return SmoothLogarithm.of(beta=beta, epsilon=epsilon)


def _spread_beta(epsilon: Fraction, inside: int, beyond: int) -> Fraction:
    """Returns a public beta for the bound of a gap.

    Bounds e^10 times as far away as the gap is wide should not matter from `beyond` ranks away: beta = 10 / beyond. If
    gaps grow like ranks, a beta above 1 / inside adds nothing. Noise of scale beta / epsilon should be well below 1,
    and a thirtieth of that is as good as nothing.
    """
    return min(max(Fraction(10, max(beyond, 1)), Fraction(1, max(inside, 1)), epsilon / 60), epsilon / 2)


def missed_by_each(outside: Fraction) -> float:
    """Returns how often each of two errors may exceed its half-width."""
    return float(outside) if outside <= Fraction(1, 10) else float(outside) * 0.9


@lru_cache(maxsize=256)
def lomax_pivot(power: float, scale: float, outside: float) -> float:
    """Returns the t with P(|Z| e^(-Y) > t) = outside for P(|Z| > t) = (1 + t)^power and Y of the Laplace law."""
    return _pivot(lambda t: (1 + t) ** power, scale, outside)


@lru_cache(maxsize=256)
def student_pivot(freedom: int, scale: float, outside: float) -> float:
    """Returns the same for Z of Student's law."""
    return _pivot(lambda t: 2 * special.stdtr(freedom, -t), scale, outside)


def _pivot(tail: Callable[[Any], Any], scale: float, outside: float) -> float:
    places = (np.arange(_NODES) + 0.5) / _NODES - 0.5
    noise = np.exp(-np.sign(places) * np.log1p(-2 * np.abs(places)) * scale)

    def excess(logarithm: float) -> float:
        return float(np.mean(tail(math.exp(logarithm) * noise))) - outside

    return math.exp(float(optimize.brentq(excess, -60.0, 200.0)))
