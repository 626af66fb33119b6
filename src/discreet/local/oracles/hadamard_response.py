"""Hadamard response: one number whose parity with the value's row of a Hadamard matrix is right more often than not."""

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
from discreet.local.oracles.domain import Ints, Value, ValueDomain
from discreet.local.oracles.oracle import FrequencyOracle, checked_epsilon, odds, odds_coin
from discreet.local.oracles.walsh_hadamard import parity, transform_table
from discreet.noise import Bits, uniform_below
from discreet.privacy.events import Event, Pure


@dataclass(frozen=True, slots=True, init=False)
class HadamardResponse(FrequencyOracle):
    """Sends a number r below K, the power of two above d, whose parity with the value's number is even more often.

    Value x has the row x + 1 of the Hadamard matrix of order K; r is drawn evenly from the half of columns where that
    row is 1, with probability e^epsilon / (e^epsilon + 1), else from the other half. Rows of other values agree with
    it on half of either half. Least communication, log2(K) bits, and a variance near the best for a small epsilon:
    (e^epsilon + 1)^2 / (e^epsilon - 1)^2 / n.

    Args:
        epsilon: above 0.
        domain: how many values there are, or the list of them.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports, exactly: every r has one of two probabilities whose ratio
    is e^epsilon (Acharya, Sun, Zhang 2019).

    >>> oracle = HadamardResponse(epsilon=0.1, domain=1000)
    >>> oracle.bits_per_report, round(oracle.variance(n=1), 1)
    (10, 400.7)
    """

    epsilon: Fraction
    domain: ValueDomain

    def __init__(self, *, epsilon: check.Number, domain: ValueDomain | int | Iterable[Value]) -> None:
        assign(self, epsilon=checked_epsilon(epsilon), domain=ValueDomain.of(domain))

    @property
    def event(self) -> Event:
        """Returns what one report costs its sender; not that of one randomized response, as for `LocalHashing`."""
        return Pure(self.epsilon)

    @property
    def bits_per_report(self) -> int:
        """Returns how many bits a report has."""
        return self.domain.size.bit_length()

    def support(self, digits: int = 60) -> tuple[Enclosure, Enclosure]:
        """Returns p = e^epsilon / (e^epsilon + 1) and q = 1/2."""
        return odds(self.epsilon, 1, 1, digits), Enclosure.of(Fraction(1, 2), digits)

    def _randomize_codes(self, codes: Ints, bits: Bits) -> NDArray[Any]:
        row = codes + 1
        drawn = uniform_below(1 << self.bits_per_report, codes.size, bits=bits)
        even = odds_coin(self.epsilon, 1, 1).toss_many(codes.size, bits)
        wrong = parity(drawn & row) == even  # odd where it should be even, or even where it should be odd
        return drawn ^ np.where(wrong, row & -row, 0)  # one bit of the row maps one half on the other

    def _count_supports(self, rows: NDArray[Any]) -> Ints:
        table = np.bincount(rows.astype(np.int64), minlength=1 << self.bits_per_report)
        sums = transform_table(table.astype(np.float64))[1 : self.domain.size + 1]
        return (np.rint(sums).astype(np.int64) + len(rows)) // 2

    def _valid(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray((rows >= 0) & (rows < 1 << self.bits_per_report))

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Returns the shape of one row."""
        return ()
