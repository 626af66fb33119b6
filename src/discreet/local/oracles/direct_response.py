"""Randomized response over the values themselves: Warner's for two of them, generalized for more."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check, mechanisms
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure
from discreet.local.oracles.domain import Ints, Value, ValueDomain
from discreet.local.oracles.oracle import FrequencyOracle, checked_epsilon
from discreet.noise import Bits
from discreet.privacy.events import Event


class _DirectResponse(FrequencyOracle):
    """A report is one of the values, the true one with odds e^epsilon against each single other."""

    __slots__ = ()

    @property
    def _mechanism(self) -> mechanisms.RandomizedResponse:
        return mechanisms.RandomizedResponse(epsilon=self.epsilon, options=self.domain.size)

    @property
    def event(self) -> Event:
        """Returns what one report costs its sender."""
        return self._mechanism.event

    @property
    def bits_per_report(self) -> int:
        """Returns how many bits the number of a value needs."""
        return (self.domain.size - 1).bit_length()

    def support(self, digits: int = 60) -> tuple[Enclosure, Enclosure]:
        """Returns p = e^epsilon / (e^epsilon + d - 1) and q = 1 / (e^epsilon + d - 1), d values being in the domain."""
        return self._mechanism.probability(digits), self._mechanism.lie(digits) / (self.domain.size - 1)

    def _randomize_codes(self, codes: Ints, bits: Bits) -> NDArray[Any]:
        return np.asarray(self._mechanism.release(codes, bits=bits))

    def _count_supports(self, rows: NDArray[Any]) -> Ints:
        return np.bincount(rows.astype(np.int64), minlength=self.domain.size)

    def _valid(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray((rows >= 0) & (rows < self.domain.size))

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Returns the shape of one row."""
        return ()


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse(_DirectResponse):
    """Warner's randomized response: one of two values, the true one with probability e^epsilon / (e^epsilon + 1).

    Args:
        epsilon: above 0.
        domain: two values, False and True unless others are given.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports, exactly (Warner 1965).

    >>> oracle = RandomizedResponse(epsilon=40)
    >>> oracle.estimate(oracle.privatize([True, False, False, False])).of(True).value
    0.25
    """

    epsilon: Fraction
    domain: ValueDomain

    def __init__(self, *, epsilon: check.Number, domain: ValueDomain | int | Iterable[Value] = (False, True)) -> None:
        found = ValueDomain.of(domain)
        if found.size != 2:
            hint = "Use GeneralizedRandomizedResponse for more values."
            raise InvalidParameter("domain", f"{found.size} values", "to hold two", hint)
        assign(self, epsilon=checked_epsilon(epsilon), domain=found)


@dataclass(frozen=True, slots=True, init=False)
class GeneralizedRandomizedResponse(_DirectResponse):
    """Randomized response over d values: the true one with odds e^epsilon against each single other.

    The best oracle for few values, up to about 3 e^epsilon + 2; its variance grows with d.

    Args:
        epsilon: above 0.
        domain: how many values there are, or the list of them.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports, exactly (Kairouz, Oh, Viswanath 2014).

    >>> oracle = GeneralizedRandomizedResponse(epsilon=1, domain=["bus", "car", "bike", "none"])
    >>> round(oracle.variance(n=1), 4)
    1.5981
    """

    epsilon: Fraction
    domain: ValueDomain

    def __init__(self, *, epsilon: check.Number, domain: ValueDomain | int | Iterable[Value]) -> None:
        assign(self, epsilon=checked_epsilon(epsilon), domain=ValueDomain.of(domain))
