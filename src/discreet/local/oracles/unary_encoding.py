"""Unary encoding: a bit for each value of the domain, every one of them randomized."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.exact import Enclosure
from discreet.local.oracles.bit_rows import chunks, column_sums, pack_bits, row_bytes, well_formed
from discreet.local.oracles.domain import Ints, Value, ValueDomain
from discreet.local.oracles.oracle import FrequencyOracle, checked_epsilon, odds, odds_coin
from discreet.noise import Bits, bernoulli
from discreet.privacy.events import Event, Pure

_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, init=False)
class UnaryEncoding(FrequencyOracle):
    """Sends a bit for each value: 1 for the true one and 0 for all others, each flipped or not by a coin of its own.

    Args:
        epsilon: above 0.
        domain: how many values there are, or the list of them.
        symmetric: False for the optimised form, in which the true value's bit is a fair coin and every other is 1 with
            probability 1 / (e^epsilon + 1); True for the form of RAPPOR, in which every bit is kept with probability
            e^(epsilon / 2) / (e^(epsilon / 2) + 1).

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports. Two values differ in two bits, and the odds of these
    multiply to p (1 - q) / (q (1 - p)) = e^epsilon in both forms, exactly (Erlingsson, Pihur, Korolova 2014; Wang,
    Blocki, Li, Jha 2017).

    >>> round(UnaryEncoding(epsilon=1, domain=100).variance(n=1), 4)
    3.6827
    """

    epsilon: Fraction
    domain: ValueDomain
    symmetric: bool

    def __init__(
        self, *, epsilon: check.Number, domain: ValueDomain | int | Iterable[Value], symmetric: bool = False
    ) -> None:
        assign(
            self,
            epsilon=checked_epsilon(epsilon),
            domain=ValueDomain.of(domain),
            symmetric=check.instance(bool, symmetric=symmetric),
        )

    @property
    def event(self) -> Event:
        """Returns what one report costs its sender."""
        return Pure(self.epsilon)

    @property
    def bits_per_report(self) -> int:
        """Returns how many bits a report has."""
        return self.domain.size

    def _options(self) -> dict[str, Any]:
        return {"symmetric": self.symmetric}

    def support(self, digits: int = 60) -> tuple[Enclosure, Enclosure]:
        """Returns the probabilities that the bit of the true value, and of any other, is 1."""
        kept = odds(self._exponent, 1, 1, digits)
        return (kept if self.symmetric else Enclosure.of(_HALF, digits)), 1 - kept

    @property
    def _exponent(self) -> Fraction:
        """Returns the exponent of the odds against a 1 for a value that is not the true one."""
        return self.epsilon / 2 if self.symmetric else self.epsilon

    def _randomize_codes(self, codes: Ints, bits: Bits) -> NDArray[Any]:
        rows = np.empty((codes.size, row_bytes(self.domain.size)), dtype=np.uint8)
        for some in chunks(codes.size, self.domain.size):
            rows[some] = pack_bits(self._members(codes[some], bits))
        return rows

    def _members(self, codes: Ints, bits: Bits) -> NDArray[np.bool_]:
        zero = odds_coin(self._exponent, 1, 1)
        members = ~zero.toss_many(codes.size * self.domain.size, bits).reshape(codes.size, self.domain.size)
        own = zero.toss_many(codes.size, bits) if self.symmetric else bernoulli(_HALF, codes.size, bits=bits)
        members[np.arange(codes.size), codes] = own
        return members

    def _count_supports(self, rows: NDArray[Any]) -> Ints:
        return column_sums(rows, self.domain.size)

    def _valid(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        return well_formed(rows, self.domain.size)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Returns the shape of one row."""
        return (row_bytes(self.domain.size),)
