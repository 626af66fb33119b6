"""Randomized response: each person reports the truth or a lie, and a crowd of reports still shows the frequencies."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Interval
from discreet.lazy import special
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.noise import Bits, Coin, source_of, uniform_below
from discreet.privacy import Estimate, events
from discreet.privacy.events.event_kinds import MOST_OPTIONS

_MOST_COUNTED = 10**7  # options, up to which there is a table of frequencies
_SMALLEST_SPREAD = 1e-40  # what 60 digits tell from zero
_SLACK = 1e-9  # relative; far above the error of the incomplete beta function's inverse


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse(Mechanism):
    """Reports one of `options` values: the true one with odds e^epsilon against each single other.

    Args:
        epsilon: above 0.
        options: how many values there are, from 2; values are 0, 1, ..., options - 1 (or bools if there are two).

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports, whatever the true value (Warner 1965; Kairouz, Oh,
    Viswanath 2014). A lie is a coin of the probability (options - 1) e^-epsilon / (1 + (options - 1) e^-epsilon),
    exact to the last bit, followed by a uniform choice of one of the other values; every other value thus has
    e^-epsilon times the probability of the true one. The number of random bits does not depend on the value.

    >>> mechanism = RandomizedResponse(epsilon=100, options=5)
    >>> mechanism.release([0, 4, 2]).tolist()
    [0, 4, 2]
    >>> mechanism.event
    RandomizedResponse(epsilon=Fraction(100, 1), options=5)
    """

    epsilon: Fraction
    options: int

    def __init__(self, *, epsilon: check.Number, options: int = 2) -> None:
        assign(
            self,
            epsilon=check.positive(epsilon=epsilon),
            options=check.integer(options=options, at_least=2, at_most=MOST_OPTIONS),
        )

    @property
    def event(self) -> events.Event:
        """Returns what one report costs its sender."""
        return events.RandomizedResponse(self.epsilon, self.options)

    def probability(self, digits: int = 40) -> Enclosure:
        """Returns the probability of the truth, e^epsilon / (e^epsilon + options - 1), between two decimals."""
        return 1 / (self._odds(digits) + 1)

    def lie(self, digits: int = 40) -> Enclosure:
        """Returns the probability of a lie, of any kind."""
        odds = self._odds(digits)
        return odds / (odds + 1)

    def _odds(self, digits: int) -> Enclosure:
        """Returns the odds of a lie against the truth."""
        return Enclosure.of(-self.epsilon, digits).exp() * (self.options - 1)

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """Releases a report for the value, or for each entry of an array, which then are reports of as many people.

        Args:
            value: an int below `options`, a bool if there are two options, or an array of such.
            bits: the source of randomness; None is the secure one.

        Returns:
            A value of the same type.

        Raises:
            InvalidValue: if a value is not one of the options.
        """
        source = source_of(bits)
        truth = self._check_options(value)
        reports = self._randomize(truth.ravel().astype(np.int64), source).reshape(truth.shape).astype(truth.dtype)
        if np.ndim(value):
            return reports
        return bool(reports) if truth.dtype == bool else int(reports)

    def _randomize(self, truth: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        lies = _coin(self).toss_many(truth.size, bits)
        shift = np.zeros_like(truth) if self.options == 2 else uniform_below(self.options - 1, truth.size, bits=bits)
        other = (truth + 1 + shift) % self.options
        return np.where(lies, other, truth)

    def _check_options(self, value: Any) -> NDArray[Any]:
        array = _array(value)
        allowed = "iub" if self.options == 2 else "iu"
        if array.dtype.kind not in allowed and not (array.size == 0 and isinstance(value, list | tuple)):
            raise InvalidValue("to be whole numbers", f"Number the options from 0 to {self.options - 1}.")
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < self.options:
            raise InvalidValue("to be one of the options", f"Number the options from 0 to {self.options - 1}.")
        return array if array.dtype == bool else array.astype(np.int64)

    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns where the true value lies: exactly at the report if reports are true so often, else anywhere."""
        chance = check.probability(confidence=confidence)
        report = self._check_options(released).astype(np.int64)
        if self.probability().fractions()[0] >= chance:
            low = high = report
        else:
            low, high = np.zeros_like(report), np.full_like(report, self.options - 1)
        return Interval(low, high) if np.ndim(released) else Interval(int(low), int(high))

    def estimate_frequencies(
        self, reports: Any, *, confidence: check.Number = CONFIDENCE, private: bool = True
    ) -> Estimate:
        """Returns the share of people with each value, without bias: (share of reports - q) / (p - q).

        p and q are the probabilities of the truth and of one particular lie. Estimates may lie outside [0, 1];
        cutting them off would bias them. The intervals are those of Clopper and Pearson for the share of reports,
        carried over: they cover the frequency in the population the people come from, each with the stated
        confidence, and that among the people themselves, whose counts vary less around the same mean (Hoeffding
        1956).

        Args:
            reports: what the people sent.
            confidence: of each interval.
            private: False if the reports were made with seeded randomness.

        Returns:
            An estimate whose value is an array with one frequency for each option.

        Raises:
            InvalidParameter: if there are no reports, or too many options for a table.

        >>> RandomizedResponse(epsilon=100).estimate_frequencies([1, 0, 0, 0]).value.tolist()
        [0.75, 0.25]
        """
        chance = check.probability(confidence=confidence)
        check.integer(options=self.options, at_most=_MOST_COUNTED)
        found = self._check_options(reports).ravel()
        if not found.size:
            raise InvalidParameter("reports", "an empty array", "to hold at least one report")
        counts = np.bincount(found.astype(np.int64), minlength=self.options)
        low, high = clopper_pearson(counts, found.size, float(1 - chance))
        value, low, high = (self._remove_bias(share) for share in (counts / found.size, low, high))
        return Estimate(value, low, high, self.event, confidence=chance, private=private)

    def variance(self, frequency: float, reports: int) -> float:
        """Returns the variance of an estimated frequency.

        It is m (1 - m) / (reports (p - q)^2) with m = q + frequency (p - q).

        The choice of the people is included; for a rare value this is q (1 - q) / (reports (p - q)^2).

        >>> round(RandomizedResponse(epsilon=1, options=4).variance(0, reports=1), 4)
        1.5981
        """
        share = check.share(frequency=frequency)
        count = check.integer(reports=reports, at_least=1)
        lie, spread = _single_lie(self)
        reported = lie + float(share) * spread
        return reported * (1 - reported) / (count * spread**2)

    def _remove_bias(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        lie, spread = _single_lie(self)
        return (share - lie) / spread


def _array(value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:
        raise InvalidValue("to be a rectangular array", "Every row needs the same length.") from None


@lru_cache(maxsize=1024)
def _coin(mechanism: RandomizedResponse) -> Coin:
    """Returns the coin that decides to lie: its probability is transcendental, as e^-epsilon is, and every tie ends."""
    return Coin(mechanism.lie)


@lru_cache(maxsize=1024)
def _single_lie(mechanism: RandomizedResponse) -> tuple[float, float]:
    """Returns q and p - q, from enough digits that their difference is exact as a float unless epsilon is absurd."""
    truth = mechanism.probability(60)
    lie = mechanism.lie(60) / (mechanism.options - 1)
    return float(lie.low), max(float((truth - lie).low), _SMALLEST_SPREAD)


def clopper_pearson(
    counts: NDArray[np.int64], total: int, outside: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns ends within which the probability of a report lies, each missed with at most half of `outside`."""
    low = special.betaincinv(np.maximum(counts, 1), total - counts + 1, outside / 2) * (1 - _SLACK)
    high = 1 - special.betaincinv(np.maximum(total - counts, 1), counts + 1, outside / 2) * (1 - _SLACK)
    return np.where(counts == 0, 0.0, low), np.where(counts == total, 1.0, high)
