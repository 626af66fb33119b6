"""Neighbours on which every mechanism of the conformance suite is audited: as far apart as its parameters allow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from discreet.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    KNorm,
    Laplace,
    Lomax,
    Mechanism,
    PartitionSelection,
    PermuteAndFlip,
    ProposeTestRelease,
    Quantile,
    RandomizedResponse,
    ReportNoisyMax,
    SparseVector,
    Staircase,
    WeightedSelection,
)
from discreet.noise import Bits


@dataclass(frozen=True)
class Neighbours:
    """Two values, and what an audit of them needs to know.

    Attributes:
        a: one.
        b: the other.
        speed: runs of the slow suite, by what a run costs.
        delta: at which the claim is looked at, where its own is not the best.
        relation: for which the event is priced.
    """

    a: Any
    b: Any
    speed: int = 20_000
    delta: float | None = None
    relation: str = "add_remove"


@singledispatch
def neighbours(mechanism: Mechanism) -> Neighbours:
    """The neighbours of a mechanism; a class without an entry here is not audited, and a test says so."""
    raise KeyError(type(mechanism).__name__)


@neighbours.register(Laplace)
@neighbours.register(Staircase)
def _(mechanism: Laplace | Staircase) -> Neighbours:
    start = Fraction(1, 2) * mechanism.grid.step  # rounds up: a move of the sensitivity takes all the steps it can
    return Neighbours(start, start + mechanism.sensitivity, speed=60_000)


@neighbours.register
def _(mechanism: DiscreteLaplace) -> Neighbours:
    return Neighbours(42, 42 + mechanism.sensitivity, speed=60_000)


@neighbours.register(Gaussian)
@neighbours.register(DiscreteGaussian)
def _(mechanism: Gaussian | DiscreteGaussian) -> Neighbours:
    return Neighbours(Fraction(0), mechanism.sensitivity)


@neighbours.register
def _(mechanism: KNorm) -> Neighbours:
    start = [0.0] * mechanism.dimension
    move = mechanism.sensitivity
    if mechanism.dimension == 1:
        return Neighbours(0.0, float(move), speed=8000)
    return Neighbours(start, [float(move), *start[1:]], speed=2000)


@neighbours.register
def _(mechanism: Lomax) -> Neighbours:
    """Centres as far apart as the smaller sensitivity, and the other as much larger as smoothness allows."""
    wide = math.floor(1000 * math.exp(mechanism.beta)) / 1000
    return Neighbours((0, 1), (1, wide), speed=4000, relation="replace")


@neighbours.register
def _(mechanism: ProposeTestRelease) -> Neighbours:
    far = mechanism.cut
    return Neighbours((Fraction(0), far), (mechanism.bound, far - 1), speed=10_000)


@neighbours.register
def _(mechanism: Exponential) -> Neighbours:
    move = mechanism.sensitivity
    return Neighbours([Fraction(0), 8 * move], [move, 7 * move], speed=10_000)


@neighbours.register
def _(mechanism: PermuteAndFlip) -> Neighbours:
    move = mechanism.sensitivity
    first = [Fraction(0), 2 * move, 2 * move]
    return Neighbours(first, [move, *first[1:]] if mechanism.monotone else [move, move, move], speed=10_000)


@neighbours.register
def _(mechanism: ReportNoisyMax) -> Neighbours:
    move = mechanism.sensitivity
    low = Fraction(1, 2) * mechanism.grid.step - move / 2  # rounded down, and up when it has moved
    return Neighbours([low, low + move + 8], [low + move, low + 8], speed=10_000)


@neighbours.register
def _(mechanism: RandomizedResponse) -> Neighbours:
    return Neighbours([0, 1, mechanism.options - 1], [0, 1, 0], speed=60_000)


@neighbours.register
def _(mechanism: Quantile) -> Neighbours:
    low, high = mechanism.bounds
    replace = mechanism.neighbours.value == "replace"
    crowd = [low] * 30  # far from all points but one, so that one rank more is felt by all others
    return Neighbours(
        [*crowd, low] if replace else crowd, [*crowd, high], speed=5000, relation=mechanism.neighbours.value
    )


@neighbours.register
def _(mechanism: SparseVector) -> Neighbours:
    move, level = mechanism.sensitivity, mechanism.threshold
    noes, yeses = [level] * 4, [level] * mechanism.max_positives
    return Neighbours(
        [*noes, *(y - move for y in yeses)], [*(n + move for n in noes), *(y - 2 * move for y in yeses)], speed=10_000
    )


@neighbours.register
def _(mechanism: PartitionSelection) -> Neighbours:
    common = mechanism.half_kept_count()
    alone = [0] * (mechanism.max_groups - 1)
    return Neighbours(
        [common, *alone, 40], [common + 1, *(n + 1 for n in alone), 40], speed=6000, delta=float(mechanism.delta)
    )


@neighbours.register
def _(mechanism: WeightedSelection) -> Neighbours:
    """A unit on the edge of being seen, with a key of its own."""
    common = [["a"]] * mechanism.half_kept_count(1)
    return Neighbours(common, [*common, ["a", "b"]], speed=3000, delta=float(mechanism.delta))


def runner(mechanism: Mechanism, bits: Bits) -> Callable[[Any], Any]:
    """A function that shows all that an analyst sees of one release."""
    if isinstance(mechanism, SparseVector):
        return lambda queries: _session(mechanism, queries, bits)
    if isinstance(mechanism, Lomax | ProposeTestRelease):
        release: Callable[..., Any] = mechanism.release
        return lambda given: release(*given, bits=bits)
    if isinstance(mechanism, PartitionSelection):
        return lambda counts: _shown(mechanism, counts, bits)
    return lambda value: mechanism.release(value, bits=bits)


def _session(mechanism: SparseVector, queries: list[Fraction], bits: Bits) -> Any:
    session = mechanism.start(bits=bits)
    for query in queries:
        if session.finished:
            break
        session.ask(query)
    return session.above, session.answers


def _shown(mechanism: PartitionSelection, counts: list[int], bits: Bits) -> dict[int, Any]:
    """The kept keys, with their noisy counts where there are any; what is dropped leaves no trace."""
    found = mechanism.release(counts, bits=bits)
    kept = np.flatnonzero(found.kept).tolist()
    return dict(zip(kept, [None] * len(kept) if found.counts is None else found.counts.tolist(), strict=True))
