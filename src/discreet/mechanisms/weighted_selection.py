"""Which keys may be shown when units have many: each spreads one unit of weight over its keys, in several rounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, check
from discreet.accounting.calibration import increase_noise
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Interval, root_above
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.mechanisms.partition_selection import share_of_delta
from discreet.mechanisms.tails import normal_reach
from discreet.noise import Bits, rounded_gaussians, source_of
from discreet.privacy import Estimate, Neighbours, events

ROUNDS = 2
GROWTH = 3  # of the squared mu of a round, relative to the round before
_FINE = 10  # steps of the smallest weight, as a power of two
_EXACT = 8  # numbers of keys that are looked at one by one
_ABOVE_ALL = 1 + Fraction(1, 1 << 24)  # a distance is found to 2^-34 of itself, so a smaller one may come out above it
_MOST_KEYS, _MOST_ROUNDS = 10**6, 8

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, init=False)
class WeightedSelection(Mechanism):
    """Finds keys that enough units have, when each unit has several: more of them than equal counts would.

    A unit with k keys gives each the weight 1 / sqrt(k); keys whose noisy weight reaches a threshold are shown. Then
    the next round begins: keys that were found leave, and units spread their weight over the remaining ones.

    Args:
        epsilon: above 0.
        delta: strictly between 0 and 1.
        max_groups: how many keys of a unit count in one round; which of them is drawn at random.
        rounds: how often; the later ones get more of the budget, 3 times the squared mu each.
        neighbours: the relation; a unit that is replaced takes its weight from some keys and gives it to others.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: (epsilon, delta)-DP, and the event says more. Weights are whole numbers of steps: a unit with t
    keys, t <= max_groups, gives w_t = floor(s / sqrt(t)) steps to each, s = 2^`exponent` being one unit of weight. So
    its weights a have the squared length t w_t^2 <= s^2; if it is replaced by one with weights b, |a - b|^2 <= |a|^2 +
    |b|^2 <= 2 s^2, as none is negative. Let m be s, or sqrt(2) s for REPLACE. Each round adds independent normal noise
    of `sigmas[r]` steps to the weights of all keys and rounds to whole steps: for keys that both neighbours have, this
    is a function of the Gaussian mechanism with mu = m / sigma (Dong, Roth, Su 2022). Of keys that one unit has alone,
    t' <= t of its t, each is shown if w_t plus noise reaches the threshold T. With T >= w_t + 1/2 + sigma x and
    P(N > x) <= d_t = 1 - (1 - d)^(1/t) this has a probability of at most d_t, and for all of them together of at most
    1 - (1 - d_t)^t' <= d. If none is shown, both neighbours show the same law: total variation d in addition to the
    noise, for REPLACE as well, as the proof of a curator's threshold has it (`measurement.selection.Threshold`). The
    threshold is the largest over all t, from the right tail, rounded up. Rounds compose adaptively: given what was
    found, neighbours still differ in one unit, whose keys are fewer; which keys of a unit count is drawn for each unit
    alone (Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020; Swanberg, Desfontaines, Haney 2023).

    >>> found = WeightedSelection(epsilon=1, delta=1e-5, max_groups=2).release([["ant", "bee"]] * 90 + [["cat"]])
    >>> found
    ('ant', 'bee')
    """

    epsilon: Fraction
    delta: Fraction
    max_groups: int
    rounds: int
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: check.Number,
        delta: check.Number,
        max_groups: int,
        rounds: int = ROUNDS,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        chance = check.probability(delta=delta)
        if chance < Fraction(1, 10**100):
            raise InvalidParameter("delta", delta, ">= 1e-100", "A smaller delta keeps no key.")
        amount = check.positive(epsilon=epsilon)
        if not Fraction(1, 10**6) <= amount <= 1000:
            raise InvalidParameter(
                "epsilon", epsilon, "between 1e-6 and 1000", "Less finds no key, and more gives no protection."
            )
        assign(
            self,
            epsilon=amount,
            delta=chance,
            max_groups=check.integer(max_groups=max_groups, at_least=1, at_most=_MOST_KEYS),
            rounds=check.integer(rounds=rounds, at_least=1, at_most=_MOST_ROUNDS),
            neighbours=_relation(neighbours),
        )

    # ------------------------------------------------------------------------------------------------------ parameters

    @property
    def exponent(self) -> int:
        """Returns the power of two that is one unit of weight: the smallest weights still have a thousand steps."""
        return _FINE + (self.max_groups.bit_length() + 1) // 2

    def weight(self, keys: int) -> int:
        """Returns what a unit gives to each of so many keys, in steps: rounded down.

        >>> [WeightedSelection(epsilon=1, delta=1e-5, max_groups=4).weight(k) for k in (1, 2, 3, 4)]
        [4096, 2896, 2364, 2048]
        """
        return math.isqrt((1 << 2 * self.exponent) // keys)

    @property
    def sigmas(self) -> tuple[Fraction, ...]:
        """Returns the standard deviation of the noise of each round, in steps."""
        return _sigmas(_multiplier(self.epsilon, self.delta, self.rounds), self.rounds, self._move)

    @property
    def _move(self) -> Fraction:
        sides = 1 if self.neighbours is Neighbours.ADD_REMOVE else 2
        return (1 << self.exponent) * root_above(Fraction(sides))

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Returns the smallest noisy weight that is shown, in each round, in steps."""
        return tuple(_threshold(self, sigma) for sigma in self.sigmas)

    @property
    def event(self) -> events.Composed:
        """Returns what all rounds cost."""
        return _event(_multiplier(self.epsilon, self.delta, self.rounds), self.rounds, self.delta)

    def half_kept_count(self, keys: int | None = None) -> int:
        """Returns how many units, of so many keys each, make the last round show a key with a probability of one half.

        Args:
            keys: how many each of them has; `max_groups` unless it is given.

        >>> mechanism = WeightedSelection(epsilon=1, delta=1e-5, max_groups=10, rounds=1)
        >>> mechanism.half_kept_count(), mechanism.half_kept_count(1)
        (62, 20)
        """
        return -(-self.thresholds[-1] // self.weight(self.max_groups if keys is None else keys))

    # --------------------------------------------------------------------------------------------------------- release

    def release(self, value: Any, *, bits: Bits | None = None) -> tuple[Any, ...]:
        """Releases keys that many units have, in ascending order.

        Args:
            value: for each unit its keys: texts, or whole numbers; a key that is there twice counts once.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidValue: for anything else.
        """
        source = source_of(bits)
        names, units, keys = _pairs(value)
        found = np.zeros(len(names), dtype=bool)
        for turn in range(self.rounds):
            left = ~found[keys]
            found |= self.select(turn, self.weights(units[left], keys[left], len(names), source), bits=source)
        return tuple(name for name, kept in zip(names, found.tolist(), strict=True) if kept)

    def select(self, turn: int, weights: Ints, *, bits: Bits | None = None) -> NDArray[np.bool_]:
        """Returns which keys one of the rounds shows, given their weights in steps; never one of weight 0.

        Args:
            turn: which round, from 0.
            weights: of keys that no round has shown yet.
            bits: the source of randomness; None is the secure one.
        """
        noise = rounded_gaussians(self.sigmas[turn], np.zeros(weights.size), source_of(bits))
        return np.asarray((weights > 0) & (weights + noise >= self.thresholds[turn]), dtype=bool)

    def weights(self, units: Ints, keys: Ints, size: int, bits: Bits) -> Ints:
        """Returns the weight of each key, in steps, given pairs of a unit and a key, each of them once."""
        order = np.lexsort((bits.words(units.size), units))
        units, keys = units[order], keys[order]
        starts = np.flatnonzero(np.r_[True, units[1:] != units[:-1]][: units.size])
        counts = np.diff(np.r_[starts, units.size])
        place = np.arange(units.size) - np.repeat(starts, counts)
        kept, numbers = place < self.max_groups, np.minimum(np.repeat(counts, counts), self.max_groups)
        table = np.array([0, *map(self.weight, range(1, int(numbers.max(initial=0)) + 1))], dtype=np.int64)
        weights = np.zeros(size, dtype=np.int64)
        np.add.at(weights, keys[kept], table[numbers[kept]])
        return weights

    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns how many units have each key that is shown: at least so many, since one adds one unit of weight."""
        outside = 2 * (1 - check.probability(confidence=confidence))
        reach = normal_reach(min(outside, Fraction(1)))
        least = min(t - sigma * reach for t, sigma in zip(self.thresholds, self.sigmas, strict=True))
        low = max(1, math.ceil((least - Fraction(1, 2)) / (1 << self.exponent)))
        return Interval(np.full(len(released), low), np.full(len(released), math.inf))

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """Releases the keys, with how many units each has at least."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        shown = self.release(value, bits=source)
        low, high = self.interval(shown, confidence=chance)
        return Estimate(np.array(shown, dtype=object), low, high, self.event, confidence=chance, private=source.private)


# ---------------------------------------------------------------------------------------------------------- calibration


@lru_cache(maxsize=256)
def _multiplier(epsilon: Fraction, delta: Fraction, rounds: int) -> Fraction:
    """Returns the noise multiplier of all rounds together; half of delta is for thresholds."""
    start = accounting.gaussian_sigma(epsilon, delta / 2)
    return increase_noise(start, partial(_event, rounds=rounds, delta=delta), epsilon=epsilon, delta=delta)


def _sigmas(multiplier: Fraction, rounds: int, move: Fraction | int) -> tuple[Fraction, ...]:
    """Squares of mu in the proportion 1 : 3 : 9 ..., which add up to that of the whole, each rounded down."""
    whole = sum(GROWTH**r for r in range(rounds))
    return tuple(move * root_above(multiplier**2 * whole / GROWTH**r) for r in range(rounds))


def _event(multiplier: Fraction, rounds: int, delta: Fraction) -> events.Composed:
    noise = [events.Gaussian(sigma) for sigma in _sigmas(multiplier, rounds, 1)]
    each = events.Approx(0, delta / (2 * rounds))
    return events.Composed([event for one in noise for event in (one, each)])


@lru_cache(maxsize=256)
def _threshold(mechanism: WeightedSelection, sigma: Fraction) -> int:
    """Returns the largest ceil(w_t + 1/2 + sigma x_t): one by one for few keys, then by the ends of runs of t.

    Weights fall and distances rise with t. So w of the first run and x of the last bound all runs between them, and
    where this is no more than what was found, none of them is looked at.
    """
    share, runs = mechanism.delta / (2 * mechanism.rounds), list(_runs(mechanism.max_groups))

    def search(first: int, end: int, found: int) -> int:
        """Returns the largest of what was found and of the runs from the first up to below the end."""
        if first == end:
            return found
        reach = sigma * normal_reach(2 * share_of_delta(share, runs[end - 1][1]))
        found = max(found, math.ceil(mechanism.weight(runs[end - 1][0]) + Fraction(1, 2) + reach))
        bound = mechanism.weight(runs[first][0]) + Fraction(1, 2) + reach * _ABOVE_ALL
        if bound <= found:
            return found
        middle = (first + end) // 2
        return search(first, middle, search(middle, end - 1, found))

    return search(1, len(runs), search(0, 1, 0))  # with little noise a single key decides, with much the most of them


def _runs(most: int) -> Iterator[tuple[int, int]]:
    first = 1
    while first <= most:
        last = first if first <= _EXACT else min(most, first + first // 4)
        yield first, last
        first = last + 1


# ---------------------------------------------------------------------------------------------------------------- input


def _relation(neighbours: Neighbours | str) -> Neighbours:
    try:
        return Neighbours(neighbours)
    except ValueError:
        raise InvalidParameter("neighbours", neighbours, "to be ADD_REMOVE or REPLACE") from None


def _pairs(value: Any) -> tuple[list[Any], Ints, Ints]:
    """Returns the different keys in ascending order, and all pairs of a unit and the place of one of its keys."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidValue("to hold the keys of each unit", "Pass a list of lists, one for each unit.")
    owned = [_keys(one) for one in value]
    kinds = {type(key) for one in owned for key in one}
    if len(kinds) > 1 or not kinds <= {str, int}:
        raise InvalidValue("to have keys that are all texts or all whole numbers", "Convert keys with str().")
    names = sorted({key for one in owned for key in one})
    places = {name: place for place, name in enumerate(names)}
    units = np.repeat(np.arange(len(owned), dtype=np.int64), [len(one) for one in owned])
    return names, units, np.array([places[key] for one in owned for key in one], dtype=np.int64)


def _keys(one: Any) -> Sequence[Any]:
    if isinstance(one, str | bytes) or not isinstance(one, Iterable):
        raise InvalidValue(
            "to hold the keys of each unit", "Pass a list of keys for each unit, e.g. [['a'], ['a', 'b']]."
        )
    plain = [key.item() if isinstance(key, np.generic) else key for key in one]
    return list(dict.fromkeys(plain))
