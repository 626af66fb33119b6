"""Texts that many units have, found letter by letter: only prefixes that were found are looked at more closely."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
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
from discreet.mechanisms.tails import normal_reach
from discreet.noise import Bits, rounded_gaussians, source_of
from discreet.privacy import Estimate, Neighbours, events

Node = tuple[str, bool]
"""A prefix, and whether it is the whole text."""

_LONGEST, _MOST_LEVELS = 1 << 16, 256


@dataclass(frozen=True, slots=True, eq=False)
class PrefixCounts:
    """Holds what a tree found, level by level and in the order of the alphabet."""

    texts: tuple[str, ...]
    """Prefixes and whole texts; a prefix comes before what it goes on with."""

    whole: NDArray[np.bool_]
    """For each, whether it is a whole text; others go on."""

    counts: NDArray[np.int64]
    """For each, its noisy count."""

    def __iter__(self) -> Iterator[tuple[str, bool, int]]:
        return zip(self.texts, self.whole.tolist(), self.counts.tolist(), strict=True)


@dataclass(frozen=True, slots=True, init=False)
class PrefixTree(Mechanism):
    """Finds texts, and beginnings of texts, that enough units have; each unit has one text.

    First the texts are counted by their first few letters, with noise, and prefixes whose noisy count reaches a
    threshold are shown. Then those that go on are counted by more letters, level by level. A text that ends is shown as
    a whole, and is not looked at again.

    Args:
        epsilon: above 0.
        delta: strictly between 0 and 1.
        lengths: how many letters (code points) the prefixes of each level have, ascending. More levels cost more noise
            each; longer steps make more prefixes to count at once, which costs memory and not privacy.
        neighbours: the relation.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: (epsilon, delta)-DP, and the event says more. On each level one unit adds 1 to the count of one
    prefix at most, given what was found before: it moves the counts by 1 in the L2 norm, sqrt(2) if it is replaced.
    Normal noise, rounded to whole numbers, is a function of the Gaussian mechanism (Dong, Roth, Su 2022) on prefixes
    that both neighbours have. One that a unit has alone is shown if 1 plus noise reaches the threshold T >= 3/2 + sigma
    x, P(N > x) <= d: total variation d in addition to the noise, for both relations. Each of the levels has an equal
    share of the squared mu and of delta / 2, which their d add up to; levels compose adaptively.

    >>> from discreet.noise import SeededBits
    >>> tree = PrefixTree(epsilon=1, delta=1e-5, lengths=[1, 3])
    >>> found = tree.release(["ant"] * 200 + ["antelope"] * 90 + ["bee"] * 3, bits=SeededBits(1))
    >>> [(text, whole) for text, whole, _ in found]
    [('a', False), ('ant', False), ('ant', True)]
    """

    epsilon: Fraction
    delta: Fraction
    lengths: tuple[int, ...]
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: check.Number,
        delta: check.Number,
        lengths: Iterable[int],
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        amount, chance = check.positive(epsilon=epsilon), check.probability(delta=delta)
        if not Fraction(1, 10**6) <= amount <= 1000:
            hint = "A smaller epsilon finds no text, and a larger one gives no privacy."
            raise InvalidParameter("epsilon", epsilon, "between 1e-6 and 1000", hint)
        if chance < Fraction(1, 10**100):
            raise InvalidParameter("delta", delta, ">= 1e-100", "A smaller delta keeps no text.")
        assign(
            self,
            epsilon=amount,
            delta=chance,
            lengths=_lengths(lengths),
            neighbours=_relation(neighbours),
        )

    @property
    def sigma(self) -> Fraction:
        """Returns the standard deviation of the noise of every count."""
        sides = 1 if self.neighbours is Neighbours.ADD_REMOVE else 2
        return self._multiplier * root_above(Fraction(sides))

    @property
    def _multiplier(self) -> Fraction:
        return _multiplier(self.epsilon, self.delta, len(self.lengths))

    @property
    def threshold(self) -> int:
        """Returns the smallest noisy count that is shown."""
        share = self.delta / (2 * len(self.lengths))
        return math.ceil(Fraction(3, 2) + self.sigma * normal_reach(2 * share))

    @property
    def event(self) -> events.Composed:
        """Returns what all levels cost."""
        return _event(self._multiplier, len(self.lengths), self.delta)

    def release(self, value: Any, *, bits: Bits | None = None) -> PrefixCounts:
        """Releases prefixes and whole texts that many units have, with their noisy counts.

        Args:
            value: one text for each unit; None counts nowhere.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidValue: for anything else.
        """
        source = source_of(bits)
        left = Counter(texts_of(value))
        found: list[tuple[Node, int]] = []
        for length in self.lengths:
            counts: Counter[Node] = Counter()
            for text, count in left.items():
                counts[_node(text, length)] += count
            level = self._release_level(counts, source)
            found += level.items()
            left = Counter({text: count for text, count in left.items() if _goes_on(text, length, level)})
        nodes = [node for node, _ in found]
        return PrefixCounts(
            tuple(text for text, _ in nodes),
            np.array([whole for _, whole in nodes], dtype=bool),
            np.array([count for _, count in found], dtype=np.int64),
        )

    def _release_level(self, counts: Counter[Node], bits: Bits) -> dict[Node, int]:
        nodes = sorted(counts)
        noise = rounded_gaussians(self.sigma, np.zeros(len(nodes)), bits).tolist()
        noisy = {node: counts[node] + drawn for node, drawn in zip(nodes, noise, strict=True)}
        return {node: count for node, count in noisy.items() if count >= self.threshold}

    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns where the exact counts lie, each with this probability over the noise; at least 1.

        Args:
            released: what `release` gave, or its counts.
            confidence: the probability of each statement; see `PartitionSelection.interval` on what it is about.
        """
        outside = 1 - check.probability(confidence=confidence)
        counts = np.asarray(released.counts if isinstance(released, PrefixCounts) else released)
        half = math.floor(self.sigma * normal_reach(outside) + Fraction(1, 2))
        return Interval(np.maximum(counts - half, 1)[()], np.maximum(counts + half, 1)[()])

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """Releases the noisy counts of what is found, with intervals."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        counts = self.release(value, bits=source).counts
        low, high = self.interval(counts, confidence=chance)
        return Estimate(counts, low, high, self.event, confidence=chance, private=source.private)


def _node(text: str, length: int) -> Node:
    return text[:length], len(text) <= length


def _goes_on(text: str, length: int, shown: dict[Node, int]) -> bool:
    node = _node(text, length)
    return not node[1] and node in shown


@lru_cache(maxsize=256)
def _multiplier(epsilon: Fraction, delta: Fraction, levels: int) -> Fraction:
    """Returns the noise multiplier of one level."""
    start = root_above(accounting.gaussian_sigma(epsilon, delta / 2) ** 2 * levels)
    return increase_noise(start, partial(_event, levels=levels, delta=delta), epsilon=epsilon, delta=delta)


def _event(multiplier: Fraction, levels: int, delta: Fraction) -> events.Composed:
    each = events.Composed([events.Gaussian(multiplier), events.Approx(0, delta / (2 * levels))])
    return events.Composed([events.Repeated(each, levels)])


def _lengths(lengths: Iterable[int]) -> tuple[int, ...]:
    hint = "Pass ascending numbers of letters, e.g. lengths=[2, 4, 8]."
    if isinstance(lengths, str | bytes) or not isinstance(lengths, Iterable):
        raise InvalidParameter("lengths", lengths, "to be several whole numbers", hint)
    found = tuple(check.integer(lengths=length, at_least=1, at_most=_LONGEST) for length in lengths)
    if not 1 <= len(found) <= _MOST_LEVELS or any(a >= b for a, b in pairwise(found)):
        raise InvalidParameter("lengths", found, f"to be 1 to {_MOST_LEVELS} ascending numbers", hint)
    return found


def _relation(neighbours: Neighbours | str) -> Neighbours:
    try:
        return Neighbours(neighbours)
    except ValueError:
        raise InvalidParameter("neighbours", neighbours, "to be ADD_REMOVE or REPLACE") from None


def texts_of(value: Any) -> list[str]:
    """Returns the texts of units that have one.

    Raises:
        InvalidValue: if there is anything else.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidValue("to hold one text for each unit", "Pass a list of texts.")
    texts = [text for text in value if text is not None]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidValue("to hold one text for each unit", "Convert values with str(); None counts nowhere.")
    return [str(text) for text in texts]
