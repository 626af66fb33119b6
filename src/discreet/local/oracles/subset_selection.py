"""Subset selection: a random set of values of a fixed size, with the true one in it more often than not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.exact import Enclosure
from discreet.local.oracles.bit_rows import chunks, column_sums, ones, pack_bits, row_bytes, well_formed
from discreet.local.oracles.domain import Ints, Value, ValueDomain
from discreet.local.oracles.oracle import FrequencyOracle, checked_epsilon, odds, odds_coin
from discreet.noise import Bits, uniform_below
from discreet.noise.rng import TURNS, endless
from discreet.privacy.events import Event, Pure

_BYTE = 256


@dataclass(frozen=True, slots=True, init=False)
class SubsetSelection(FrequencyOracle):
    """Sends a set of k of the d values, drawn evenly among those with the true value or among those without it.

    No epsilon-DP oracle has a smaller variance (Ye, Barg 2018); a report has d bits.

    Args:
        epsilon: above 0.
        domain: how many values there are, or the list of them.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports. The true value is in the set with probability
    k e^epsilon / (k e^epsilon + d - k); divided by the numbers of sets of both kinds, a set with it is e^epsilon times
    as likely as one without it, exactly (Wang et al. 2016; Ye, Barg 2018).

    >>> oracle = SubsetSelection(epsilon=1, domain=1024)
    >>> oracle.size, round(oracle.variance(n=1), 3)
    (275, 3.674)
    """

    epsilon: Fraction
    domain: ValueDomain
    size: int

    def __init__(self, *, epsilon: check.Number, domain: ValueDomain | int | Iterable[Value]) -> None:
        level, values = checked_epsilon(epsilon), ValueDomain.of(domain)
        assign(self, epsilon=level, domain=values, size=_best_size(float(level), values.size))

    @property
    def event(self) -> Event:
        """Returns what one report costs its sender."""
        return Pure(self.epsilon)

    @property
    def bits_per_report(self) -> int:
        """Returns how many bits a report has: one for each value, or the numbers of the values in the set."""
        return min(self.domain.size, self.size * (self.domain.size - 1).bit_length())

    def support(self, digits: int = 60) -> tuple[Enclosure, Enclosure]:
        """Returns the probabilities that the true value, and any other, is in the set."""
        others = self.domain.size - 1
        p = odds(self.epsilon, self.size, self.domain.size - self.size, digits)
        return p, (self.size - p) / others  # the set has `size` members, whichever they are

    def _randomize_codes(self, codes: Ints, bits: Bits) -> NDArray[Any]:
        own = odds_coin(self.epsilon, self.size, self.domain.size - self.size).toss_many(codes.size, bits)
        rows = np.empty((codes.size, row_bytes(self.domain.size)), dtype=np.uint8)
        for some in chunks(codes.size, self.domain.size):
            start = _coins(self.domain.size, self.size, codes[some].size, bits)
            members = _even_sets(start, codes[some], self.size - own[some], bits)
            members[np.arange(len(members)), codes[some]] = own[some]
            rows[some] = pack_bits(members)
        return rows

    def _count_supports(self, rows: NDArray[Any]) -> Ints:
        return column_sums(rows, self.domain.size)

    def _valid(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(well_formed(rows, self.domain.size) & (ones(rows) == self.size))

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Returns the shape of one row."""
        return (row_bytes(self.domain.size),)


def _best_size(epsilon: float, values: int) -> int:
    """Returns the size of least variance: d / (e^epsilon + 1), rounded to either side. It decides no privacy."""
    ideal = values / (math.exp(epsilon) + 1)
    sizes = {max(1, math.floor(ideal)), min(max(1, math.ceil(ideal)), values - 1)}
    return min(sorted(sizes), key=lambda size: _variance(epsilon, values, size))


def _variance(epsilon: float, values: int, size: int) -> float:
    p = size / (size + (values - size) * math.exp(-epsilon))
    q = (size - p) / (values - 1)
    return q * (1 - q) / (p - q) ** 2


def _even_sets(members: NDArray[np.bool_], without: Ints, sizes: Ints, bits: Bits) -> NDArray[np.bool_]:
    """Sets of these sizes of the other values, each set of a row's size equally likely.

    Every value entered by a coin of one public probability, whatever it is, so that all sets of one size are equally
    likely; then single values, drawn evenly among those in the set or not in it, are taken out or put in until the size
    is right. An even choice out of an even set leaves an even set.
    """
    values = members.shape[1]
    members[np.arange(without.size), without] = False
    surplus = np.count_nonzero(members, axis=1) - sizes
    active = np.flatnonzero(surplus)
    for _ in range(TURNS * values):
        if not active.size:
            return members
        picked = uniform_below(values, active.size, bits=bits)
        fits = (members[active, picked] == (surplus[active] > 0)) & (picked != without[active])
        chosen = active[fits]
        members[chosen, picked[fits]] ^= True
        surplus[chosen] -= np.sign(surplus[chosen])
        active = active[surplus[active] != 0]
    raise endless()


def _coins(values: int, size: int, count: int, bits: Bits) -> NDArray[np.bool_]:
    """Returns rows of coins of a probability in whole 256ths, near size / values, and below it for small sets."""
    share = size / values
    low = share if share > 1 / 8 else max(0.0, share - 3 * math.sqrt(share / values))  # few are to be taken out
    drawn = np.empty((count, values), dtype=np.uint8)
    bits.fill(drawn)
    return np.asarray(drawn < math.floor(low * _BYTE))
