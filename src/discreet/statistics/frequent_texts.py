"""Texts that many units have: found among all that there are, with noisy counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms import PartitionSelection
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.statistics.prefix_tree import PrefixTree, texts_of

METHODS = ("selection", "tree")
_LENGTHS = (2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True, eq=False)
class FrequentTexts:
    """Texts in the order of their noisy counts, the largest first, and what is known of these counts."""

    texts: tuple[str, ...]
    """What was found."""

    counts: Estimate
    """How many units have each, with an interval; its event is that of all of it."""

    def __len__(self) -> int:
        return len(self.texts)

    def __str__(self) -> str:
        rows = zip(self.texts, self.counts.value, self.counts.low, self.counts.high, strict=True)
        lines = [f"{text}  {value} [{low}, {high}]" for text, value, low, high in rows]
        return "\n".join([*lines, *([] if self.counts.private else ["NOT PRIVATE (seeded randomness)"])])


def heavy_hitters(
    x: Any,
    *,
    epsilon: Number,
    delta: Number,
    method: Literal["selection", "tree"] = "selection",
    lengths: Sequence[int] = _LENGTHS,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    bits: Bits | None = None,
) -> FrequentTexts:
    """Finds the texts that many units have, and counts them.

    Args:
        x: one text for each unit; None counts nowhere.
        epsilon: the budget.
        delta: its chance of more, with which a text of one unit may be shown.
        method: "selection" counts all texts that there are, and finds the most. "tree" looks at beginnings first, and
            at more letters only of those that many have: for texts so many that even a list of the different ones is
            too long. What it costs is noise on every level.
        lengths: of the beginnings that a tree looks at, in letters. Longer texts are not found; `PrefixTree` shows the
            beginnings themselves.
        neighbours: the relation to protect.
        confidence: of each interval. The chance that a text is shown with an interval that misses its count is at most
            1 - confidence; among texts that happen to be shown, the share can be larger near the threshold.
        bits: the source of randomness; None is the secure one.

    Returns:
        The texts that are shown, with an `Estimate` of their counts.

    Raises:
        InvalidParameter: outside these domains, before any text is looked at.
        InvalidValue: if the values are no texts.

    Formal guarantee: the budget, under the relation, as `PartitionSelection` (truncated noise) and `PrefixTree` prove
    it. A unit that is replaced takes 1 from one count and adds 1 to another, as one with two texts could.

    >>> from discreet.noise import SeededBits
    >>> print(heavy_hitters(["ant"] * 500 + ["bee"] * 90 + ["cat"], epsilon=1, delta=1e-6, bits=SeededBits(2)))
    ant  499 [496, 502]
    bee  90 [87, 93]
    NOT PRIVATE (seeded randomness)
    """
    source, chance = source_of(bits), check.probability(confidence=confidence)
    if method not in METHODS:
        raise InvalidParameter("method", method, f"to be one of {', '.join(METHODS)}")
    try:
        relation = Neighbours(neighbours)
    except ValueError:
        raise InvalidParameter("neighbours", neighbours, "to be ADD_REMOVE or REPLACE") from None
    rule: PartitionSelection | PrefixTree
    if method == "tree":
        rule = PrefixTree(epsilon=epsilon, delta=delta, lengths=lengths, neighbours=relation)
        texts, counts = _by_tree(rule, texts_of(x), source)
    else:
        groups = 1 if relation is Neighbours.ADD_REMOVE else 2
        rule = PartitionSelection(epsilon=epsilon, delta=delta, max_groups=groups, method="truncated")
        texts, counts = _by_selection(rule, texts_of(x), source)
    order = sorted(range(len(texts)), key=lambda place: (-counts[place], texts[place]))
    numbers = np.array([counts[place] for place in order], dtype=np.int64)
    low, high = rule.interval(numbers, confidence=chance)
    estimate = Estimate(numbers, low, high, rule.event, confidence=chance, private=source.private)
    return FrequentTexts(tuple(texts[place] for place in order), estimate)


def _by_selection(rule: PartitionSelection, x: Sequence[str], bits: Bits) -> tuple[list[str], list[int]]:
    counted = Counter(x)
    names = sorted(counted)
    shown = rule.release(np.array([counted[name] for name in names], dtype=np.int64), bits=bits)
    noisy = [] if shown.counts is None else shown.counts.tolist()
    return [name for name, kept in zip(names, shown.kept.tolist(), strict=True) if kept], noisy


def _by_tree(rule: PrefixTree, x: Sequence[str], bits: Bits) -> tuple[list[str], list[int]]:
    found = rule.release(x, bits=bits)
    shown = [(text, count) for text, whole, count in found if whole]
    return [text for text, _ in shown], [count for _, count in shown]
