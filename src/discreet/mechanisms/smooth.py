"""Noise scaled to a smooth sensitivity, which is private itself: the two-sided Lomax law, with no delta.

A function S of the data is beta-smooth if it bounds how far one replaced unit can move the value, and if no replaced
unit changes it by more than the factor e^beta (Nissim, Raskhodnikova, Smith 2007). Neighbours then have noise of
scales s, s' with |ln(s' / s)| <= beta around centres at most min(S, S') apart. The relation is REPLACE throughout.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Grid, Interval, Real, exact_value, settle, upper
from discreet.mechanisms.mechanism import CONFIDENCE, HALF, Mechanism, around, numeric, public_grid, reasonable_noise
from discreet.mechanisms.tails import at_most
from discreet.noise import Bits, LazyUniform, source_of
from discreet.privacy import Estimate, Neighbours, events

STEPS = 1024  # of the default grid, per smallest scale of the noise
_PLACES = 30  # digits kept of a factor that is rounded up


class SmoothSensitivityMechanism(Mechanism):
    """A mechanism that adds factor * S * Z to one number, where S is private and Z has a public law."""

    __slots__ = ()

    beta: Fraction
    floor: Fraction
    ceiling: Fraction | None
    inflation: Fraction
    grid: Grid
    factor: Fraction

    @abstractmethod
    def _draw(self, bits: Bits) -> Real:
        """Draws a variable of the public law."""

    @abstractmethod
    def _reach(self, outside: Fraction) -> Fraction:
        """Returns a distance that the variable exceeds with at most this probability."""

    def _common(
        self, beta: Number, floor: Number, ceiling: Number | None, inflation: Number, neighbours: Neighbours | str
    ) -> None:
        """Checks and keeps what all smooth mechanisms take."""
        if Neighbours(neighbours) is not Neighbours.REPLACE:
            hint = "Smooth sensitivity is defined for replaced units; fix their number publicly, or use a quantile."
            raise InvalidParameter("neighbours", neighbours, "to be 'replace'", hint)
        smallest = check.positive(floor=floor)
        largest = None if ceiling is None else check.positive(ceiling=ceiling)
        if largest is not None and largest < smallest:
            raise InvalidParameter("ceiling", ceiling, f">= floor={smallest}")
        assign(
            self,
            beta=check.positive(beta=beta),
            floor=smallest,
            ceiling=largest,
            inflation=check.not_negative(inflation=inflation),
        )

    def _finish(self, factor: Fraction, grid: Grid | Number | None) -> None:
        """Keeps the factor, on the safe side, and the grid that belongs to it."""
        reasonable_noise(factor * self.floor, "floor")
        reasonable_noise(factor * (self.ceiling or self.floor), "ceiling")
        found = Grid.finer_than(factor * self.floor / STEPS) if grid is None else grid
        assign(self, factor=factor, grid=public_grid(found))

    @property
    def ratio(self) -> Fraction:
        """Returns the logarithm of the largest ratio of two neighbours' scales.

        It is beta + ln(1 + inflation), rounded up.
        """
        return widen_beta(self.beta, self.inflation)

    def scale(self, smooth_sensitivity: Any) -> Fraction:
        """Returns the scale of the noise: private, for it depends on the data."""
        if smooth_sensitivity is None:
            raise InvalidValue("to come with its smooth sensitivity", "Pass release(value, smooth_sensitivity).")
        number = numeric(smooth_sensitivity)
        found = Fraction(-1) if isinstance(number, np.ndarray) else exact_value(number)
        if found < 0:
            raise InvalidValue("to come with a smooth sensitivity, one number from 0", "Check how it was computed.")
        return self.factor * max(found, self.floor)

    def release(self, value: Any, smooth_sensitivity: Any = None, *, bits: Bits | None = None) -> Any:
        """Releases the grid point nearest to the value plus noise.

        Args:
            value: one number.
            smooth_sensitivity: S of the same data: at least the exact one and at most 1 + `inflation` times as large.
                It is raised to `floor`, because at S = 0 the value would be released as it is.
            bits: the source of randomness; None is the secure one of the system.

        Raises:
            InvalidValue: if one of the two is no finite number, or the second is missing or negative.
        """
        found = numeric(value)
        if isinstance(found, np.ndarray):
            raise InvalidValue("to be a single number", "Release entries one by one; each is an event of its own.")
        place = exact_value(found) / self.grid.step + HALF
        scale = self.scale(smooth_sensitivity) / self.grid.step
        noise = self._draw(source_of(bits))
        return self.grid.value(settle(lambda digits: (noise(digits) * scale + place).floor()))

    def error(self, smooth_sensitivity: Any, *, confidence: Number = CONFIDENCE) -> Fraction:
        """Returns the distance kept with at least this probability; as private as the smooth sensitivity itself."""
        reach = self._reach(1 - check.probability(confidence=confidence))
        return math.ceil(reach * self.scale(smooth_sensitivity) / self.grid.step + HALF) * self.grid.step

    def interval(self, released: Any, *, confidence: Number = CONFIDENCE) -> Interval:
        """Returns where the exact value lies, whatever the smooth sensitivity was.

        The interval is wide, because that one stays private.

        Raises:
            InvalidParameter: if there is no public `ceiling` of the smooth sensitivity.
        """
        if self.ceiling is None:
            hint = "The scale of the noise is private; give a public bound of it, e.g. the width of the data's range."
            raise InvalidParameter("ceiling", None, "to be given for an interval", hint)
        return around(released, self.error(self.ceiling, confidence=confidence), self.grid)

    def estimate(
        self, value: Any, smooth_sensitivity: Any = None, *, confidence: Number = CONFIDENCE, bits: Bits | None = None
    ) -> Estimate:
        """Returns a release together with its interval, its event, and a mark if the randomness was seeded."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        self.interval(0, confidence=chance)  # refuses before anything is drawn
        released = self.release(value, smooth_sensitivity, bits=source)
        low, high = self.interval(released, confidence=chance)
        return Estimate(released, low, high, self.event, confidence=chance, private=source.private)


@dataclass(frozen=True, slots=True, init=False)
class Lomax(SmoothSensitivityMechanism):
    """Adds two-sided Lomax noise to a number, scaled to its smooth sensitivity, rounded to a public grid, correctly.

    Formal guarantee: pure epsilon-DP under REPLACE. The density is (a - 1) / (2 s) (1 + |z| / s)^-a with s = c S. For
    centres d apart and scales s, s' = s e^x the log ratio of densities is x + a ln((1 + |z - d| / s') / (1 + |z| /
    s)), largest at z = 0 or far from the centres on either side: at most x + a max(ln(1 + d / s'), -x). With d / s' <=
    min(1, e^-x) / c it is convex in x >= 0, and the ends x = 0, x = beta and x = -beta give the conditions

        (i) a ln(1 + 1/c) <= epsilon,  (ii) beta + a ln(1 + e^-beta / c) <= epsilon,  (iii) (a - 1) beta <= epsilon.

    `factor` is c, the smallest that they allow, rounded up; beta is first widened to beta + ln(1 + inflation).
    Rounding to the grid is post-processing. This is the family of PolyPlace with exact constants.

    Args:
        epsilon: above 0.
        beta: above 0, below epsilon, fixed in advance; the smoothness of the sensitivities that will be passed.
        floor: above 0, public: smaller sensitivities are raised to it, which keeps them smooth.
        ceiling: public, what no smooth sensitivity exceeds, e.g. the largest move that one unit can cause at all.
            Needed for intervals only: a larger sensitivity is never lowered, since that would break the guarantee.
        inflation: by which share the sensitivities passed may exceed the smooth function they approximate.
        exponent: a, above 2 and at most 1 + epsilon / beta, which is the default and has the lightest tails.
        grid: a `Grid`, or its step; None is the coarsest with at least 1024 steps to the smallest scale.
        neighbours: "replace", the only relation for which the sensitivity is defined.

    Raises:
        InvalidParameter: outside these domains.

    >>> mechanism = Lomax(epsilon=1, beta=0.1, floor=0.01, ceiling=10)
    >>> mechanism.exponent, round(float(mechanism.factor), 6)
    (Fraction(11, 1), 10.612874)
    >>> mechanism.event
    Pure(epsilon=Fraction(1, 1))
    """

    epsilon: Fraction
    beta: Fraction
    floor: Fraction
    ceiling: Fraction | None
    inflation: Fraction
    exponent: Fraction
    grid: Grid
    factor: Fraction

    def __init__(
        self,
        *,
        epsilon: Number,
        beta: Number,
        floor: Number,
        ceiling: Number | None = None,
        inflation: Number = 0,
        exponent: Number | None = None,
        grid: Grid | Number | None = None,
        neighbours: Neighbours | str = Neighbours.REPLACE,
    ) -> None:
        budget = check.positive(epsilon=epsilon)
        self._common(beta, floor, ceiling, inflation, neighbours)
        ratio = below_epsilon(self, budget)
        largest = 1 + budget / ratio
        a = largest if exponent is None else check.positive(exponent=exponent)
        if not 2 < a <= largest:
            raise InvalidParameter("exponent", exponent, "above 2 and at most 1 + epsilon / beta")
        assign(self, epsilon=budget, exponent=a)
        self._finish(lomax_factor(budget, ratio, a), grid)

    @property
    def event(self) -> events.Pure:
        """Returns what one release costs, for accounting."""
        return events.Pure(self.epsilon)

    @property
    def deviation(self) -> float:
        """Returns the standard deviation of the noise per unit of smooth sensitivity.

        It is infinite if the exponent is at most 3.

        >>> round(Lomax(epsilon=1, beta=0.1, floor=1).deviation, 6)
        1.768812
        """
        a = self.exponent
        return float(self.factor) * math.sqrt(2 / ((a - 2) * (a - 3))) if a > 3 else math.inf

    def _draw(self, bits: Bits) -> Real:
        """Draws U^(-1 / (a - 1)) - 1 with a random sign."""
        uniform, sign = LazyUniform(bits), 1 - 2 * bits.integer(1)
        power = -1 / (self.exponent - 1)
        return lambda digits: ((uniform(digits).log() * power).exp() - 1) * sign

    def _reach(self, outside: Fraction) -> Fraction:
        """Solves P(|Z| > t) = (1 + t)^-(a - 1) for t."""
        power = -1 / (self.exponent - 1)
        return upper(lambda digits: (Enclosure.of(outside, digits).log() * power).exp() - 1)


def widen_beta(beta: Fraction, inflation: Fraction) -> Fraction:
    """Returns beta + ln(1 + inflation), rounded up: if S <= S* <= (1 + inflation) S, S* is that smooth."""
    if inflation == 0:
        return beta
    return beta + rounded_up(upper(lambda digits: Enclosure.of(1 + inflation, digits).log()))


def below_epsilon(mechanism: SmoothSensitivityMechanism, epsilon: Fraction) -> Fraction:
    """Returns the widened beta, which epsilon has to pay for before it pays for anything else."""
    ratio = mechanism.ratio
    if ratio >= epsilon:
        hint = "Choose a beta of about a tenth of epsilon."
        raise InvalidParameter("beta", mechanism.beta, f"+ ln(1 + inflation) < epsilon={epsilon}", hint)
    return ratio


def rounded_up(value: Fraction) -> Fraction:
    """Returns the next rational with a short denominator.

    Digits that cannot matter would make every later number long.
    """
    shift = _PLACES * 10 // 3 - (value.numerator.bit_length() - value.denominator.bit_length())
    scale = Fraction(2) ** shift
    return math.ceil(value * scale) / scale


def lomax_factor(epsilon: Fraction, beta: Fraction, a: Fraction) -> Fraction:
    """Returns the smallest c that satisfies (i) and (ii), rounded up, with all three conditions checked again."""

    def second(digits: int) -> Enclosure:
        return Enclosure.of(-beta, digits).exp() / (Enclosure.of((epsilon - beta) / a, digits).exp() - 1)

    first = upper(lambda digits: 1 / (Enclosure.of(epsilon / a, digits).exp() - 1))
    c = rounded_up(max(first, upper(second)))
    if not lomax_is_private(c, epsilon, beta, a):
        raise InternalError("The factor of the Lomax noise fails its own conditions.")
    return c


def lomax_is_private(c: Fraction, epsilon: Fraction, beta: Fraction, a: Fraction) -> bool:
    """Returns whether (i), (ii) and (iii) certainly hold."""
    first = at_most(lambda digits: Enclosure.of(1 + 1 / c, digits).log() * a, epsilon)
    second = at_most(lambda digits: (Enclosure.of(-beta, digits).exp() / c + 1).log() * a + beta, epsilon)
    return first and second and (a - 1) * beta <= epsilon
