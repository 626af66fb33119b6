"""Exact laws of the selection mechanisms, from their definitions, and judges that broken mechanisms must fail.

With b = e^-rate every law is a rational function of b, so for rational b the inequality P <= e^epsilon Q is one between
fractions: e^epsilon = b^-(epsilon / rate), a whole power. A few values of b stand for as many values of epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod

from discreet.mechanisms.private_selection import Selection

Scores = tuple[int, ...]
Chances = tuple[Fraction, ...]
BASES = (Fraction(1, 2), Fraction(2, 3))


def normalised(weights: Iterable[Fraction]) -> Chances:
    found = tuple(weights)
    return tuple(weight / sum(found) for weight in found)


@cache
def exponential_law(scores: Scores, b: Fraction) -> Chances:
    return normalised(b ** (max(scores) - score) for score in scores)


@cache
def permute_and_flip_law(scores: Scores, b: Fraction) -> Chances:
    """Over all outcomes of the coins, one of the heads uniformly."""
    coins = [b ** (max(scores) - score) for score in scores]
    law = [Fraction(0)] * len(scores)
    for heads in product((True, False), repeat=len(scores)):
        chance = prod(coin if head else 1 - coin for coin, head in zip(coins, heads, strict=True))
        for index, head in enumerate(heads):
            law[index] += Fraction(chance, sum(heads)) if head and chance else 0
    return tuple(law)


@cache
def noisy_max_law(scores: Scores, b: Fraction) -> Chances:
    """Summed over the winner's noise up to a reach beyond which less than 10^-12 is left; so a little too small."""
    reach = next(z for z in range(1000) if b**z < Fraction(1, 10**12))

    @cache
    def below(z: int) -> Fraction:  # P(Z <= z)
        return 1 - b ** (z + 1) / (1 + b) if z >= 0 else b**-z / (1 + b)

    def wins(i: int, z: int) -> Fraction:
        mine = scores[i] + z
        others = (below(mine - other - (j < i)) for j, other in enumerate(scores) if j != i)
        return (1 - b) / (1 + b) * b ** abs(z) * prod(others)

    return tuple(Fraction(sum(wins(i, z) for z in range(-reach, reach + 1))) for i in range(len(scores)))


LAWS: dict[str, Callable[[Scores, Fraction], Chances]] = {
    "Exponential": exponential_law,
    "PermuteAndFlip": permute_and_flip_law,
    "ReportNoisyMax": noisy_max_law,
}
SLACK = 1 + Fraction(1, 10**9)  # for the mass beyond the reach of the noisy maximum


def neighbours(*, monotone: bool, options: int = 3, levels: int = 3) -> Iterator[tuple[Scores, Scores]]:
    """All score vectors from 0 up, with all that differ from them by at most 1 in each entry: both directions occur."""
    moves = [(0, 1), (-1, 0)] if monotone else [(-1, 0, 1)]
    for scores in product(range(levels), repeat=options):
        for allowed in moves:
            for move in product(allowed, repeat=options):
                yield scores, tuple(score + step for score, step in zip(scores, move, strict=True))


def law_of(mechanism: Selection, scores: Scores, b: Fraction) -> Chances:
    """The law of the mechanism where e^-rate = b; only differences of scores matter."""
    lowest = min(scores)
    name = next(kind.__name__ for kind in type(mechanism).__mro__ if kind.__name__ in LAWS)
    return LAWS[name](tuple(score - lowest for score in scores), b)


def judge_ratio(mechanism: Selection, *, monotone: bool, options: int = 3, levels: int = 3) -> None:
    """P(i) <= e^epsilon Q(i) for every option and all neighbours whose scores move by one step."""
    power = mechanism.epsilon / mechanism.rate
    assert power.denominator == 1
    for b in BASES:
        limit = b ** -int(power) * SLACK
        for scores, others in neighbours(monotone=monotone, options=options, levels=levels):
            pairs = zip(law_of(mechanism, scores, b), law_of(mechanism, others, b), strict=True)
            assert all(p <= limit * q and q <= limit * p for p, q in pairs), (scores, others)


def judge_range(mechanism: Selection, *, monotone: bool, options: int = 3, levels: int = 3) -> None:
    """The largest ratio P(i) / Q(i) is at most e^epsilon times the smallest: bounded range."""
    power = mechanism.epsilon / mechanism.rate
    assert power.denominator == 1
    for b in BASES:
        for scores, others in neighbours(monotone=monotone, options=options, levels=levels):
            pairs = zip(law_of(mechanism, scores, b), law_of(mechanism, others, b), strict=True)
            ratios = [p / q for p, q in pairs]
            assert max(ratios) <= b ** -int(power) * min(ratios), (scores, others)
