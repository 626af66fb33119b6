"""Fences around quantiles of a population: private points that lie outside of it but for a stated risk."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Event
from discreet.statistics.column import Column
from discreet.statistics.ranks import one_point, rank_error
from discreet.statistics.spending import Spending

POINT_SHARE, COUNT_SHARE = Fraction(2, 5), Fraction(1, 25)  # of the budget; the fences have the rest
_SAMPLE_RISK, _FENCE_RISK, _COUNT_RISK = 0.7, 0.2, 0.1  # of all that may go wrong
_FENCE_BITS = 11  # fences lie on a lattice of up to 2^12 blocks: fewer blocks are missed by fewer ranks
_SIZES = 65  # numbers of values that are tried between the ends of their interval
_ROUNDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Fences:
    """What all fences share: how many values there may be, the budget of each draw, and its risk.

    Attributes:
        sizes: numbers of values between the ends of what the count allows.
        spending: of one fence.
        shift: a block is 2^shift steps.
        risk: of one end of one interval, but for that of the count.
        events: what the count costs.
    """

    sizes: Any
    spending: Spending
    shift: int
    risk: float
    events: tuple[Event, ...]

    @classmethod
    def of(cls, values: Column, shares: list[Fraction], spending: Spending, risk: float, bits: Bits) -> Fences:
        """What is known before the first fence is drawn."""
        shift = max(values.width.bit_length() - 1 - _FENCE_BITS, 0)
        private = values.neighbours is Neighbours.ADD_REMOVE
        rest = 1 - POINT_SHARE - (COUNT_SHARE if private else 0)
        part = spending.share(rest / (2 * len(shares)))
        if not private:
            sizes = np.array([values.public_size])
            return cls(sizes=sizes, spending=part, shift=shift, risk=risk / 2, events=())
        released, far, event = _count(values, spending.share(COUNT_SHARE), _COUNT_RISK * risk, bits)
        ends = max(released - far, 0), max(released + far, 0)
        sizes = np.unique(np.linspace(*ends, _SIZES).astype(np.int64))
        return cls(sizes=sizes, spending=part, shift=shift, risk=risk / 2, events=(event,))

    def draw(self, values: Column, share: Fraction, bits: Bits) -> tuple[tuple[int, Event], tuple[int, Event]]:
        """The lowest and the highest step of the interval of a quantile, each with the price of its draw.

        A draw whose aim is out of reach is made, and paid for, all the same: whether it is needed is no matter.
        """
        below, above = self._aim(values, share), self._aim(values, 1 - share)
        low, cost = one_point(values, max(below, Fraction(0)), self.spending, bits, self.shift)
        high, price = one_point(values, 1 - max(above, Fraction(0)), self.spending, bits, self.shift)
        first = (low << self.shift) if below > 0 else 0
        last = min((high + 1 << self.shift) - 1, values.width) if above > 0 else values.width
        return (first, cost), (last, price)

    def _aim(self, values: Column, share: Fraction) -> Fraction:
        """The share p of the lower fence, rounded down to multiples of 2^-20; 0 if there is none."""
        if share == 0 or int(self.sizes[0]) == 0:
            return Fraction(0)
        fewest = _binomial_end(self.sizes, float(share), _SAMPLE_RISK * self.risk) - 1  # for numbers that are not tried
        aim = share
        for _ in range(_ROUNDS):  # the ranks that a draw may miss depend, a little, on its share
            ranks = rank_error(values, aim, self.spending, _FENCE_RISK * self.risk, self.shift)
            found = Fraction(int(np.floor(float(np.min((fewest - ranks) / self.sizes)) * 2**20)), 2**20)
            if found >= aim or found <= 0:
                return max(min(found, aim), Fraction(0))
            aim = found
        return Fraction(0)


def _binomial_end(tries: Any, share: float, risk: float) -> Any:
    """The largest numbers that Bin(tries, share) does not exceed with at most this probability, -1 if there is none."""
    found = np.floor(special.bdtrik(risk, tries, share))
    found = np.where(np.isfinite(found), found, 0.0) + 1
    for _ in range(3):  # the inverse is a float near the end
        found = np.where((found >= 0) & (special.bdtr(np.maximum(found, 0.0), tries, share) > risk), found - 1, found)
    return found


def _count(values: Column, spending: Spending, risk: float, bits: Bits) -> tuple[int, int, Event]:
    """The noisy number of values, the distance it keeps from the true one but for a risk, and its price."""
    mechanism: Laplace | Gaussian
    if spending.is_pure:
        mechanism = Laplace(epsilon=spending.pure_epsilon, sensitivity=1)
    else:
        mechanism = Gaussian.with_multiplier(noise_multiplier=spending.noise_multiplier, sensitivity=1, grid=1)
    far = int(mechanism.error(confidence=1 - Fraction(risk))) + 1
    return int(mechanism.release(values.size, bits=bits)), far, mechanism.event
