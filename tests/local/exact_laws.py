"""The exact law of an oracle's reports: the code itself is run along every path of its draws, with its probability."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import RandomnessUnavailable
from discreet.exact import Enclosure
from discreet.local import heavy_hitters, means
from discreet.local.oracles import hadamard_response, local_hashing, subset_selection, unary_encoding
from discreet.local.oracles.oracle import FrequencyOracle
from discreet.mechanisms import randomized_response
from discreet.noise import Coin, SeededBits

DIGITS = 80
CLOSE = Fraction(1, 10**60)  # enclosures of 80 digits, through a few operations
Key = tuple[int, ...]
Law = dict[Key, Fraction]


class Pruned(Exception):
    """A path is left, because rejections could go on for ever."""


class Paths:
    """Walks through all outcomes of all draws, one path at a time, and knows how likely the path is."""

    def __init__(self, most_draws: int | None = None) -> None:
        self.chosen: list[int] = []
        self.options: list[int] = []
        self.most = most_draws
        self.depth, self.mass = 0, Fraction(1)

    def draw(self, weights: Sequence[Fraction]) -> int:
        if self.most is not None and self.depth == self.most:
            raise Pruned
        if self.depth == len(self.chosen):
            self.chosen.append(0)
            self.options.append(len(weights))
        index = self.chosen[self.depth]
        self.depth += 1
        self.mass *= weights[index]
        return index

    def below(self, bound: int, size: int | tuple[int, ...], *, bits: Any = None) -> Any:  # noqa: ARG002 - as in noise
        shape = size if isinstance(size, tuple) else (size,)
        even = [Fraction(1, bound)] * bound
        drawn = [self.draw(even) for _ in range(math.prod(shape))]
        return np.array(drawn, dtype=np.int64).reshape(shape)

    def bernoulli(self, probability: Any, size: int, *, bits: Any = None) -> Any:  # noqa: ARG002
        return np.array(
            [self.draw([Fraction(probability), 1 - Fraction(probability)]) == 0 for _ in range(size)], dtype=bool
        )

    def toss_many(self, coin: Coin, count: int) -> Any:
        p = Fraction(coin._real(DIGITS).low)
        return np.array([self.draw([p, 1 - p]) == 0 for _ in range(count)], dtype=bool)

    def restart(self) -> bool:
        """Goes to the next path; False after the last."""
        self.depth, self.mass = 0, Fraction(1)
        while self.chosen and self.chosen[-1] + 1 == self.options[-1]:
            self.chosen.pop()
            self.options.pop()
        if self.chosen:
            self.chosen[-1] += 1
        return bool(self.chosen)


def every_path(run: Callable[[SeededBits], Key], most_draws: int | None = None) -> Law:
    """The law of what a run returns, over the draws of all samplers that the local model uses."""
    paths, law = Paths(most_draws), defaultdict[Key, Fraction](Fraction)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Coin, "toss_many", lambda coin, count, _bits: paths.toss_many(coin, count))
        for module in (hadamard_response, heavy_hitters, local_hashing, means, randomized_response, subset_selection):
            patch.setattr(module, "uniform_below", paths.below)
        patch.setattr(unary_encoding, "bernoulli", paths.bernoulli)
        patch.setattr(
            subset_selection, "_coins", lambda values, _size, count, _bits: paths.below(2, (count, values)) == 1
        )
        while True:
            with contextlib.suppress(Pruned, RandomnessUnavailable):
                law[run(SeededBits(0))] += paths.mass
            if not paths.restart():
                return dict(law)


def report_law(oracle: Any, value: Any, most_draws: int | None = None) -> Law:
    """The law of one person's report."""
    return every_path(lambda bits: tuple(np.ravel(oracle.privatize([value], bits=bits).rows).tolist()), most_draws)


def judge_privacy(laws: Sequence[Law], epsilon: Fraction, *, tight: bool = True) -> None:
    """No report is more than e^epsilon times as likely under one value as under another, and one is that much more."""
    limit = Fraction(Enclosure.of(epsilon, DIGITS).exp().high)
    reports = {report for law in laws for report in law}
    largest = Fraction(0)
    for report in reports:
        masses = [law.get(report, Fraction(0)) for law in laws]
        assert min(masses) > 0, "a report that only some values can cause"
        largest = max(largest, max(masses) / min(masses))
    assert largest <= limit * (1 + CLOSE)
    assert largest >= limit * (1 - CLOSE) or not tight
    for law in laws:
        assert abs(sum(law.values(), Fraction(0)) - 1) < CLOSE


def supported(oracle: FrequencyOracle, report: Key) -> Any:
    """Which values a report supports, as the aggregator counts them."""
    rows = np.array(report).reshape(1, *oracle.row_shape)
    assert oracle._valid(rows).all()
    return oracle._count_supports(rows)


def judge_support(oracle: FrequencyOracle, laws: Sequence[Law]) -> None:
    """A report supports the true value with probability p and every other with q: estimates have no bias."""
    p, q = (Fraction(end.low) for end in oracle.support(DIGITS))
    for code, law in enumerate(laws):
        found = [Fraction(0)] * len(laws)
        for report, mass in law.items():
            for value in np.flatnonzero(supported(oracle, report)).tolist():
                found[value] += mass
        for value, share in enumerate(found):
            assert abs(share - (p if value == code else q)) < CLOSE
