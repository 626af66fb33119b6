"""Means of bounded numbers in the local model: Duchi's two points, the piecewise law on a grid, and their mixture.

One law serves all three. A number is rounded at random, without bias, to one of `steps` + 1 points i of its bounds, and
a report is one of steps + w numbers: with probability w e^epsilon / (w e^epsilon + steps) one of the *window*
i, ..., i + w - 1, drawn evenly, else one of the `steps` others, drawn evenly. Every number of the window then is
e^epsilon times as likely as every other one, so a report is epsilon-DP, exactly. The mean of a report is

    E[J | i] = l (sum of all numbers) + (h - l) (w i + w (w - 1) / 2),   h = e^epsilon l,  l = 1 / (w e^epsilon + steps)

and linear in i: (2 J - steps - w + 1) / (steps w (h - l)) estimates the number on the scale from -1 to 1 without bias.
With steps = w = 1 this is the mechanism of Duchi, Jordan and Wainwright (2018). With many steps and
w = steps e^(-epsilon / 2) it is the piecewise mechanism of Wang et al. (2019), whose window covers the share
1 / (e^(epsilon / 2) + 1) of all outputs, on a grid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure
from discreet.lazy import special
from discreet.local.oracles.oracle import checked_epsilon, odds_coin
from discreet.local.oracles.reports import Reports, accept_reports, canonical
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.randomized_response import clopper_pearson
from discreet.noise import Bits, source_of, uniform_below
from discreet.privacy import Estimate
from discreet.privacy.events import Event, Pure, RandomizedResponse

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

STEPS = 1 << 12  # of the piecewise law; rounding to them adds less than 10^-7 to a variance of 0.01 or more
_PLACES = 40  # bits of a number's place between its bounds: what is finer is rounded off
_WEIGHTS = 1 << 16
_THRESHOLD = 0.61  # below this epsilon the mixture is Duchi's alone (Wang et al. 2019, Theorem 3)
_BERRY_ESSEEN = 0.56  # for independent summands of different laws (Shevtsova 2010)


@dataclass(frozen=True, slots=True)
class WindowLaw:
    """The law of a report, given the point to which a number was rounded."""

    epsilon: Fraction
    steps: int
    width: int

    @property
    def outputs(self) -> int:
        """Returns how many different reports there are."""
        return self.steps + self.width

    def scale(self, digits: int = 60) -> Enclosure:
        """Returns by how much two reports J and J + 1 differ, on the scale from -1 to 1."""
        return 2 / (self.slope(digits) * self.steps)

    def slope(self, digits: int = 60) -> Enclosure:
        """Returns w (h - l): by how much the mean of J grows from one point to the next."""
        odds = Enclosure.of(self.epsilon, digits).exp()
        return (odds - 1) * self.width / (odds * self.width + self.steps)

    def draw(self, points: Ints, bits: Bits) -> Ints:
        """Returns a report for each point; all draws are made whatever they decide."""
        inside = odds_coin(self.epsilon, self.width, self.steps).toss_many(points.size, bits)
        within = points + uniform_below(self.width, points.size, bits=bits)
        others = uniform_below(self.steps, points.size, bits=bits)
        return np.where(inside, within, others + np.where(others >= points, self.width, 0))

    def values(self) -> Floats:
        """Returns the number that each report means, on the scale from -1 to 1."""
        return (2 * np.arange(self.outputs) - self.outputs + 1) * float(self.scale().low) / 2

    def second_moment(self, place: float) -> float:
        """Returns the mean square of a report's value for a number at a place from -1 to 1."""
        point = (place + 1) / 2 * self.steps
        below = min(math.floor(point), self.steps - 1)
        return self._moment_at(below) * (below + 1 - point) + self._moment_at(below + 1) * (point - below)

    def _moment_at(self, point: int) -> float:
        """Returns the mean square for a point.

        Squares of distances from the middle sum to K (K^2 - 1) / 12 over all K numbers, and to
        w (distance^2 + (w^2 - 1) / 12) over a window whose middle is at a distance.
        """
        k, w = self.outputs, self.width
        window = w * ((point - self.steps / 2) ** 2 + (w * w - 1) / 12)
        against = math.exp(-float(self.epsilon))
        high = 1 / (w + against * self.steps)
        mean = high * (against * k * (k * k - 1) / 12 + (1 - against) * window)
        return float(self.scale().low) ** 2 * mean


class MeanOracle(ABC):
    """A client's randomizer of one bounded number, and an aggregator's estimator of the mean of all.

    Formal guarantee: one report is epsilon-DP for its sender, against every reader, the aggregator included.

    >>> from discreet.noise import SeededBits
    >>> kinds = DuchiMean, PiecewiseMean, HybridMean
    >>> oracle = min((kind(epsilon=1, bounds=(0, 10)) for kind in kinds), key=lambda each: each.variance(n=5000))
    >>> reports = oracle.privatize([2, 7] * 2500, bits=SeededBits(1))  # by 5,000 clients, each on its own machine
    >>> print(oracle.estimate(reports))
    4.50519 [4.01836, 4.99202] NOT PRIVATE (seeded randomness)
    """

    __slots__ = ()

    epsilon: Fraction
    bounds: tuple[Fraction, Fraction]

    @property
    @abstractmethod
    def windows(self) -> tuple[tuple[int, WindowLaw], ...]:
        """Returns the laws that are mixed, with weights of 2^16 in all; a report names its law."""

    @property
    def event(self) -> Event:
        """Returns what one report costs its sender."""
        return Pure(self.epsilon)

    @property
    def parameters(self) -> dict[str, Any]:
        """Returns the public parameters that a client needs, as JSON holds them; reports carry them as their tag."""
        low, high = map(str, self.bounds)
        laws = [[weight, law.steps, law.width] for weight, law in self.windows]
        return {"bounds": [low, high], "epsilon": str(self.epsilon), "laws": laws, "oracle": type(self).__name__}

    def privatize(self, values: Any, *, bits: Bits | None = None) -> Reports:
        """Returns one report for each number, or for the one that is given: the client's side.

        Args:
            values: numbers within the bounds.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidValue: if a number is outside the bounds or is none; nothing was drawn then.
        """
        source = source_of(bits)
        places = self._places(values)
        law = uniform_below(_WEIGHTS, places.size, bits=source) if len(self.windows) > 1 else np.zeros_like(places)
        result, weight, first = np.zeros_like(places), 0, 0
        for share, window in self.windows:
            drawn = first + window.draw(_round_randomly(places, window.steps, source), source)
            result = np.where((weight <= law) & (law < weight + share), drawn, result)
            weight, first = weight + share, first + window.outputs
        return Reports(canonical(self.parameters), result, private=source.private)

    def _places(self, values: Any) -> Ints:
        """Returns numbers as whole multiples of 2^-40 of the width of their bounds."""
        low, high = map(float, self.bounds)
        try:
            array = np.atleast_1d(np.asarray(values)).astype(np.float64)
        except (TypeError, ValueError):
            raise _foreign() from None
        if array.ndim != 1 or np.asarray(values).dtype.kind == "b" or not ((array >= low) & (array <= high)).all():
            raise _foreign()
        shares = np.clip((array - low) / (high - low), 0, 1)
        return np.rint(np.ldexp(shares, _PLACES)).astype(np.int64)

    def estimate(self, reports: Any, *, confidence: check.Number = CONFIDENCE, drop: bool = False) -> Estimate:
        """Returns the mean of all people's numbers, without bias: the aggregator's side.

        The interval holds for any number of reports, for the mean of the population that the people come from and for
        their own mean: Clopper and Pearson's for reports of two kinds; else, whichever is shortest for this many
        reports, Hoeffding's, Maurer and Pontil's with the reports' own variance (2009, Theorem 11), or the normal
        one with an upper bound on the variance (Theorem 10 there) and the error of the normal law (Shevtsova 2010).
        The choice follows from public parameters and the number of reports alone.

        Args:
            reports: from `privatize` of an oracle with the same parameters, or an array of them.
            confidence: of the interval.
            drop: whether reports that no client makes are left out; they are refused otherwise.

        Raises:
            InvalidParameter: for reports of another oracle or other bounds, for none, and for impossible ones.
        """
        chance = check.probability(confidence=confidence)
        rows, _, private = accept_reports(reports, canonical(self.parameters), (), self._valid, drop=drop)
        table = np.concatenate([window.values() for _, window in self.windows])
        ends = _ends(self, table, rows.astype(np.int64), float(1 - chance))
        low, high = map(float, self.bounds)
        value, below, above = (low + (end + 1) * (high - low) / 2 for end in ends)
        return Estimate(value, below, above, self.event, confidence=chance, private=private)

    def _valid(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray((rows >= 0) & (rows < sum(window.outputs for _, window in self.windows)))

    def variance(self, n: int, value: check.Number | None = None) -> float:
        """Returns the variance of the estimated mean of n people who all have one value; None is the worst one."""
        low, high = map(float, self.bounds)
        count = check.integer(n=n, at_least=1)
        places = [-1.0, 0.0] if value is None else [2 * (float(check.rational(value=value)) - low) / (high - low) - 1]
        return max(map(self._spread, places)) * ((high - low) / 2) ** 2 / count

    def _spread(self, place: float) -> float:
        """Returns the variance of one report for a number at a place from -1 to 1."""
        moments = (share * window.second_moment(place) for share, window in self.windows)
        return sum(moments) / _WEIGHTS - place**2

    def influence(self, n: int) -> float:
        """Returns the most that one report among n can move the estimate, even one that no client makes."""
        low, high = map(float, self.bounds)
        return _reach(self) * (high - low) / check.integer(n=n, at_least=1)


@dataclass(frozen=True, slots=True, init=False)
class DuchiMean(MeanOracle):
    """Sends one of two numbers beyond the bounds, whose mean is the true number; best for a small epsilon.

    Args:
        epsilon: above 0.
        bounds: public limits of a number.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports, exactly: the number is rounded at random to one of its
    bounds, and the bound is sent by randomized response (Duchi, Jordan, Wainwright 2018).

    >>> oracle = DuchiMean(epsilon=30, bounds=(0, 10))
    >>> round(oracle.estimate(oracle.privatize([0, 10, 10, 0])).value, 6)
    5.0
    """

    epsilon: Fraction
    bounds: tuple[Fraction, Fraction]

    def __init__(self, *, epsilon: check.Number, bounds: tuple[check.Number, check.Number] = (-1, 1)) -> None:
        assign(self, epsilon=checked_epsilon(epsilon), bounds=_limits(bounds))

    @property
    def windows(self) -> tuple[tuple[int, WindowLaw], ...]:
        """Returns the one law: two points, a window of one."""
        return ((_WEIGHTS, WindowLaw(self.epsilon, 1, 1)),)

    @property
    def event(self) -> Event:
        """Returns what one report costs its sender."""
        return RandomizedResponse(self.epsilon, 2)


@dataclass(frozen=True, slots=True, init=False)
class PiecewiseMean(MeanOracle):
    """Sends a number of a public grid, more often one near the true number; best for a large epsilon.

    Args:
        epsilon: above 0.
        bounds: public limits of a number.
        steps: how many steps of the grid lie between the bounds, a power of two.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports, exactly, and no bias: see this module for the law (Wang et
    al. 2019, put on a grid).

    >>> oracle = PiecewiseMean(epsilon=1, bounds=(-1, 1))
    >>> round(oracle.variance(n=1, value=0), 3)  # (e^(1/2) + 3) / (3 (e^(1/2) - 1)^2) without a grid
    3.682
    """

    epsilon: Fraction
    bounds: tuple[Fraction, Fraction]
    steps: int

    def __init__(
        self, *, epsilon: check.Number, bounds: tuple[check.Number, check.Number] = (-1, 1), steps: int = STEPS
    ) -> None:
        count = check.integer(steps=steps, at_least=1, at_most=1 << 20)
        if count & (count - 1):
            raise InvalidParameter("steps", steps, "to be a power of two", f"Pass steps={1 << count.bit_length()}.")
        assign(self, epsilon=checked_epsilon(epsilon), bounds=_limits(bounds), steps=count)

    @property
    def windows(self) -> tuple[tuple[int, WindowLaw], ...]:
        """Returns the one law."""
        return ((_WEIGHTS, _piecewise(self.epsilon, self.steps)),)


@dataclass(frozen=True, slots=True, init=False)
class HybridMean(MeanOracle):
    """Sends a report of `PiecewiseMean` or one of `DuchiMean`, by a public coin: the better of both in the worst case.

    Args:
        epsilon: above 0.
        bounds: public limits of a number.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports, exactly: the coin does not depend on the number (Wang et
    al. 2019). Its probability, 1 - e^(-epsilon / 2) in whole 2^-16ths, decides no privacy.

    >>> worst = [oracle(epsilon=1).variance(n=1) for oracle in (DuchiMean, PiecewiseMean, HybridMean)]
    >>> [round(variance, 2) for variance in worst]
    [4.68, 5.22, 4.29]
    """

    epsilon: Fraction
    bounds: tuple[Fraction, Fraction]

    def __init__(self, *, epsilon: check.Number, bounds: tuple[check.Number, check.Number] = (-1, 1)) -> None:
        assign(self, epsilon=checked_epsilon(epsilon), bounds=_limits(bounds))

    @property
    def windows(self) -> tuple[tuple[int, WindowLaw], ...]:
        """Returns both laws, or the one that has all the weight."""
        share = 1 - math.exp(-float(self.epsilon) / 2) if self.epsilon > _THRESHOLD else 0.0
        weight = min(round(share * _WEIGHTS), _WEIGHTS)
        both = (weight, _piecewise(self.epsilon, STEPS)), (_WEIGHTS - weight, WindowLaw(self.epsilon, 1, 1))
        return tuple(law for law in both if law[0])  # reports of a law that no client uses are refused


def _limits(bounds: tuple[check.Number, check.Number]) -> tuple[Fraction, Fraction]:
    low, high = check.limits(bounds=bounds)
    if float(low) == float(high):
        raise InvalidParameter("bounds", f"({low}, {high})", "to be different floats", "Shift the numbers first.")
    return low, high


def _piecewise(epsilon: Fraction, steps: int) -> WindowLaw:
    return WindowLaw(epsilon, steps, max(1, round(steps * math.exp(-float(epsilon) / 2))))


def _round_randomly(places: Ints, steps: int, bits: Bits) -> Ints:
    """Returns points below or above the places, at random, without bias: exact, in whole numbers."""
    finer = _PLACES - (steps.bit_length() - 1)
    up = uniform_below(1 << finer, places.size, bits=bits) < (places & ((1 << finer) - 1))
    return (places >> finer) + up


def _foreign() -> InvalidValue:
    return InvalidValue("to be a number within the bounds", "Clip it to the bounds first.")


@lru_cache(maxsize=256)
def _reach(oracle: MeanOracle) -> float:
    """Returns the largest value of a report, on the scale from -1 to 1."""
    return max(float(np.abs(window.values()).max()) for _, window in oracle.windows)


def _ends(oracle: MeanOracle, table: Floats, rows: Ints, outside: float) -> tuple[float, float, float]:
    """Returns the mean of the reports and the ends of its interval, on the scale from -1 to 1."""
    value, reach = float(table[rows].mean()), _reach(oracle)
    if len(table) == 2:
        low, high = clopper_pearson(np.array([np.count_nonzero(rows)]), rows.size, outside)
        return value, reach * (2 * float(low[0]) - 1), reach * (2 * float(high[0]) - 1)
    half = half_width(float(table[rows].std(ddof=1)) if rows.size > 1 else 0.0, rows.size, oracle, outside)
    return value, value - half, value + half


def half_width(deviation: float, n: int, oracle: MeanOracle, outside: float) -> float:
    """Returns how far the mean of n reports is from its expectation at most, but for a probability of `outside`.

    Args:
        deviation: the standard deviation of the reports.
        n: how many there are.
        oracle: their law; only its public facts are used.
        outside: the probability that it is farther.
    """
    expected = math.sqrt(min(map(oracle._spread, (0.0, 1.0))))
    kinds = (_hoeffding, _empirical_bernstein, _normal)
    chosen = min(kinds, key=lambda kind: kind(expected, n, oracle, outside))  # by public facts: no choice by data
    return chosen(deviation, n, oracle, outside)


def _hoeffding(_deviation: float, n: int, oracle: MeanOracle, outside: float) -> float:
    return 2 * _reach(oracle) * math.sqrt(math.log(2 / outside) / (2 * n))


def _empirical_bernstein(deviation: float, n: int, oracle: MeanOracle, outside: float) -> float:
    """Maurer, Pontil 2009, Theorem 11, for both sides; reports have a range of twice the reach."""
    if n < 2:
        return math.inf
    log = math.log(4 / outside)
    return deviation * math.sqrt(2 * log / n) + 7 * 2 * _reach(oracle) * log / (3 * (n - 1))


def _normal(deviation: float, n: int, oracle: MeanOracle, outside: float) -> float:
    """Returns a tenth of `outside` for the bound on the variance, the rest for the normal law and its error.

    The sum of third moments is at most the largest distance from a mean, reach + 1, times the sum of variances, of
    which each is at least the least variance of a report.
    """
    least = math.sqrt(min(map(oracle._spread, (0.0, 1.0))))
    tail = 0.45 * outside - _BERRY_ESSEEN * (_reach(oracle) + 1) / (least * math.sqrt(n))
    if tail <= 0 or n < 2:
        return math.inf
    above = deviation + 2 * _reach(oracle) * math.sqrt(2 * math.log(10 / outside) / (n - 1))
    return above * float(-special.ndtri(tail)) / math.sqrt(n)
