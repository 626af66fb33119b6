"""The base of all frequency oracles: clients randomize, an aggregator counts which values a report supports.

Each report *supports* some values of the domain: the true one with probability p, any other with probability q,
whatever the true value is. The count of a value among n reports is thus a sum of independent coins,
(count / n - q) / (p - q) is its frequency without bias, and m (1 - m) / (n (p - q)^2) with m = q + frequency (p - q)
its variance (Wang, Blocki, Li, Jha 2017, "pure" protocols). Everything that decides privacy is an exact coin or
an exact uniform number; p and q are floats only where counts are turned into estimates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure
from discreet.local.oracles.domain import Ints, ValueDomain
from discreet.local.oracles.frequencies import Floats, Frequencies, onto_simplex
from discreet.local.oracles.reports import Reports, accept_reports, canonical
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.randomized_response import clopper_pearson
from discreet.noise import Bits, Coin, source_of
from discreet.privacy.events import Event

SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**6), Fraction(64)
_DIGITS = 60


class FrequencyOracle(ABC):
    """A client's randomizer and an aggregator's estimator of how many people hold each value of a domain.

    Both sides need public parameters only. Formal guarantee: one report is epsilon-DP for its sender, against every
    reader, the aggregator included; who sends reports is not hidden.
    """

    __slots__ = ()

    epsilon: Fraction
    domain: ValueDomain

    @property
    @abstractmethod
    def event(self) -> Event:
        """Returns what one report costs its sender."""

    @property
    @abstractmethod
    def bits_per_report(self) -> int:
        """Returns how many bits one report needs, packed."""

    @abstractmethod
    def support(self, digits: int = _DIGITS) -> tuple[Enclosure, Enclosure]:
        """Returns the probabilities p and q that a report supports the true value, and any other."""

    @abstractmethod
    def _randomize_codes(self, codes: Ints, bits: Bits) -> NDArray[Any]:
        """Returns randomized rows for values given by their numbers."""

    @abstractmethod
    def _count_supports(self, rows: NDArray[Any]) -> Ints:
        """Returns how many of the rows support each value."""

    @abstractmethod
    def _valid(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns which rows a client can have made."""

    @property
    @abstractmethod
    def row_shape(self) -> tuple[int, ...]:
        """Returns the shape of one row; () is a single number."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Returns the public parameters that a client needs, as JSON holds them; reports carry them as their tag."""
        shared = {"domain": self.domain.public(), "epsilon": str(self.epsilon), "oracle": type(self).__name__}
        return {**shared, **self._options()}

    def _options(self) -> dict[str, Any]:
        """Returns what a client needs to know in addition to the domain and epsilon."""
        return {}

    def privatize(self, values: Any, *, bits: Bits | None = None) -> Reports:
        """Returns one report for each value, or for the one value that is given: the client's side.

        Args:
            values: of the domain; a list or an array are the values of as many people.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidValue: if a value is not in the domain; nothing was drawn then.
        """
        source = source_of(bits)
        rows = self._randomize_codes(self.domain.codes(values), source)
        return Reports(canonical(self.parameters), rows, private=source.private)

    def estimate(
        self, reports: Any, *, confidence: check.Number = CONFIDENCE, project: bool = False, drop: bool = False
    ) -> Frequencies:
        """Returns the share of people who hold each value, without bias: the aggregator's side.

        The intervals are those of Clopper and Pearson for the share of reports that support a value, carried over:
        exact for any number of reports, each with the stated confidence, for the population that the people come
        from and for the people themselves, whose counts vary less around the same mean (Hoeffding 1956).

        Args:
            reports: from `privatize` of an oracle with the same parameters, or an array of their rows.
            confidence: of each interval.
            project: whether values are moved to the nearest that are not negative and sum to 1. They have a bias
                then; `raw` keeps those without. Intervals are cut to [0, 1].
            drop: whether rows that no client makes are left out; they are refused otherwise.

        Raises:
            InvalidParameter: for reports of another oracle or domain, for none, and for rows that no client makes.
        """
        chance = check.probability(confidence=confidence)
        rows, dropped, private = accept_reports(
            reports, canonical(self.parameters), self.row_shape, self._valid, drop=drop
        )
        counts = self._count_supports(rows)
        shares = (counts / len(rows), *clopper_pearson(counts, len(rows), float(1 - chance)))
        raw, low, high = (self._remove_bias(share) for share in shares)
        value = onto_simplex(raw) if project else raw
        if project:  # a frequency is in [0, 1] anyway, so coverage stays
            low, high = np.minimum(np.clip(low, 0, 1), value), np.maximum(np.clip(high, 0, 1), value)
        return Frequencies(
            domain=self.domain,
            value=value,
            low=low,
            high=high,
            raw=raw,
            event=self.event,
            confidence=chance,
            reports=len(rows),
            dropped=dropped,
            private=private,
        )

    def variance(self, n: int, frequency: check.Number = 0) -> float:
        """Returns the variance of the estimated frequency of a value that such a share of n people hold.

        The choice of the people is included. With frequency = 0 it is that of a rare value.
        """
        share, count = check.share(frequency=frequency), check.integer(n=n, at_least=1)
        q, spread = _floats(self)
        supported = q + float(share) * spread
        return supported * (1 - supported) / (count * spread**2)

    def influence(self, n: int) -> float:
        """Returns the most that one report among n can move the estimate of one value, even one that no client makes.

        A report supports a value or does not: sending another one moves each estimate by at most 1 / (n (p - q)).
        """
        return 1 / (check.integer(n=n, at_least=1) * _floats(self)[1])

    def _remove_bias(self, share: Floats) -> Floats:
        q, spread = _floats(self)
        return np.asarray((share - q) / spread)


def checked_epsilon(epsilon: check.Number) -> Fraction:
    """Returns the epsilon of an oracle, within limits where its estimates are of use."""
    found = check.positive(epsilon=epsilon)
    if not SMALLEST_EPSILON <= found <= LARGEST_EPSILON:
        raise InvalidParameter("epsilon", epsilon, f"between 1e-6 and {LARGEST_EPSILON}")
    return found


@lru_cache(maxsize=1024)
def _floats(oracle: FrequencyOracle) -> tuple[float, float]:
    """Returns q and p - q; the difference is taken before it is rounded."""
    p, q = oracle.support()
    return float(q.low), float((p - q).low)


@lru_cache(maxsize=1024)
def odds_coin(epsilon: Fraction, truth: int, lie: int) -> Coin:
    """Returns the coin of probability truth e^epsilon / (truth e^epsilon + lie), exact to the last bit.

    e^epsilon is transcendental for a rational epsilon above 0, hence so is the probability, and every tie ends.
    """
    return Coin(lambda digits: odds(epsilon, truth, lie, digits))


def odds(epsilon: Fraction, truth: int, lie: int, digits: int = _DIGITS) -> Enclosure:
    """Returns the probability of that coin."""
    against = Enclosure.of(-epsilon, digits).exp() * lie / truth
    return 1 / (against + 1)
