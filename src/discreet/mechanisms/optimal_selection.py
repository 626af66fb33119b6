"""The optimal rule for releasing keys: the largest probabilities of keeping a key that (epsilon, delta)-DP allows."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import Enclosure, Real, settle
from discreet.mechanisms.tails import smallest_whole
from discreet.noise import Bits, Coin, bernoulli

_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class OptimalRule:
    """Keeps a key of n units with probability p(n), the largest that (epsilon, delta)-DP allows.

    p(0) = 0 and p(n) = min(e^epsilon p(n-1) + delta, 1 - e^-epsilon (1 - p(n-1) - delta), 1). The two inequalities of
    (epsilon, delta)-DP for the answers "kept" and "dropped", on n - 1 and n units, bound p(n) from above by exactly
    these three numbers, so p is the largest there is (Desfontaines, Voss, Gipson, Mandayam 2022). With x = e^epsilon
    the first number is the smallest up to n = `turn`, then the second, and p(n) = 1 from n = `full` on.

    For n from 2 to full - 1, p(n) is a polynomial in x and 1/x with rational coefficients that is not constant, hence
    transcendental, because x is: comparisons and tosses always come to an end. Where p(n - 1) + delta = 1 could hold,
    for n = 2 and delta = 1/2, the comparison is one of rationals.

    Args:
        epsilon: for one key.
        delta: for one key.
    """

    epsilon: Fraction
    delta: Fraction
    turn: int
    full: int

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, epsilon: Fraction, delta: Fraction) -> OptimalRule:
        """Returns the rule with its two turning points."""
        turn = settle(lambda digits: 1 + _turning(epsilon, delta, digits).floor())
        if delta >= _HALF:
            return cls(epsilon, delta, turn, 2)
        start = cls(epsilon, delta, turn, 0)
        more = smallest_whole(
            lambda m: m > 0 and not settle(lambda digits: start._uncapped_probability(turn + m, digits).below(1))
        )
        return cls(epsilon, delta, turn, turn + more)

    def probability(self, count: int, digits: int = 40) -> Enclosure:
        """Returns the probability of keeping a key of so many units, between two decimals."""
        if count <= 1 or count >= self.full:
            return Enclosure.of(min(count, 1) if count != 1 else self.delta, digits)
        return self._uncapped_probability(count, digits)

    def _uncapped_probability(self, count: int, digits: int) -> Enclosure:
        """Returns closed forms of the recursion, without the cap at 1."""
        y = Enclosure.of(-self.epsilon, digits).exp()
        rise = y * self.delta / (1 - y)  # delta / (x - 1); `Undecided` while the digits do not tell x from 1
        early = (Enclosure.of(min(count, self.turn) * self.epsilon, digits).exp() - 1) * rise
        if count <= self.turn:
            return early
        fade = Enclosure.of((self.turn - count) * self.epsilon, digits).exp()
        return (1 - fade) * (rise + 1) + fade * early

    def reaching(self, probability: Fraction) -> int:
        """Returns the smallest number of units that is kept with at least the probability, above 0 and at most 1."""
        return smallest_whole(lambda n: n > 0 and (n >= self.full or self._reaches(n, probability)))

    def _reaches(self, count: int, probability: Fraction) -> bool:
        if count == 1:
            return self.delta >= probability
        return not settle(lambda digits: self.probability(count, digits).below(probability))

    def select(self, counts: NDArray[np.int64], bits: Bits) -> NDArray[np.bool_]:
        """Returns which keys are kept; keys of equal counts share a coin."""
        kept = np.asarray(counts >= self.full)
        open_ = np.flatnonzero((counts > 0) & ~kept)
        order = open_[np.argsort(counts[open_], kind="stable")]
        sizes, firsts = np.unique(counts[order], return_index=True)
        for size, group in zip(sizes.tolist(), np.split(order, firsts[1:]), strict=False):
            kept[group] = self._toss(size, group.size, bits)
        return kept

    def _toss(self, count: int, size: int, bits: Bits) -> NDArray[np.bool_]:
        if count == 1:
            return bernoulli(self.delta, size, bits=bits)
        return _coin(self, count).toss_many(size, bits)


@lru_cache(maxsize=4096)
def _coin(rule: OptimalRule, count: int) -> Coin:
    recipe: Real = lambda digits: rule.probability(count, digits)  # noqa: E731 - a recipe, by its type
    return Coin(recipe)


def _turning(epsilon: Fraction, delta: Fraction, digits: int) -> Enclosure:
    """ln((x + 2 delta - 1) / ((x + 1) delta)) / epsilon, never a whole number."""
    y = Enclosure.of(-epsilon, digits).exp()
    return ((1 - y * (1 - 2 * delta)) / ((y + 1) * delta)).log() / epsilon
