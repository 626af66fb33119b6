"""Mechanisms that are watched: what they were given is kept, and what they answer is decided by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from discreet.mechanisms import Gaussian, KNorm, Laplace, Quantile
from discreet.mechanisms.laplace import DiscreteLaplace
from discreet.privacy import Neighbours, events
from discreet.statistics.row_sums import SymmetricNoise

WATCHED = (Laplace, DiscreteLaplace, Gaussian, KNorm, Quantile)
Given = list[tuple[Fraction, Any]]
BOTH = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]


@dataclass
class Seen:
    """The releases of one run, in order: the mechanism and the exact value it was given."""

    mechanisms: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


@contextmanager
def watched(answers: Callable[[int], Any]) -> Iterator[Seen]:
    """Within it, release number i of a mechanism returns `answers(i)` instead of anything private."""
    seen = Seen()

    def release(self: Any, value: Any, *, bits: Any = None) -> Any:  # noqa: ARG001 - called with it
        seen.mechanisms.append(self)
        seen.values.append(value)
        given = answers(len(seen.values) - 1)
        if isinstance(self, Quantile):
            return int(given)
        return np.full(np.shape(value), given) if np.shape(value) else given

    def release_matrix(self: Any, sums: Any, bits: Any) -> Any:  # noqa: ARG001 - called with it
        seen.mechanisms.append(self)
        seen.values.append(sums)
        return answers(len(seen.values) - 1) * np.eye(len(sums)) * 1e6

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SymmetricNoise, "release", release_matrix)
        for kind in WATCHED:
            patch.setattr(kind, "release", release)
        yield seen


def overruns(first: Seen, second: Seen) -> list[float]:
    """For each release, by how much the values of neighbours differ, over what the mechanism was told: 1 at most."""
    assert len(first.values) == len(second.values)
    found = []
    for mechanism, one, other in zip(first.mechanisms, first.values, second.values, strict=True):
        if isinstance(mechanism, Quantile):
            continue  # takes the values themselves, and knows the relation
        order = 1 if isinstance(mechanism, Laplace | DiscreteLaplace) else 2
        moved = np.asarray(one, dtype=object) - np.asarray(other, dtype=object)
        distance = float(np.linalg.norm(np.atleast_1d(moved).astype(float).ravel(), order))
        found.append(distance / float(mechanism.sensitivity))
    return found


def flat(event: events.Event) -> list[events.Event]:
    """The single releases of an event, in order."""
    if isinstance(event, events.Composed):
        return [single for part in event.events for single in flat(part)]
    if isinstance(event, events.Repeated):
        return flat(event.event) * event.count
    return [event]


def given_to_noise(monkeypatch: pytest.MonkeyPatch, statistic: Callable[[], object]) -> Given:
    """Pairs of noise scale and exact value, in the order of the draws; every draw returns 0, whatever the value."""
    found: Given = []

    def laplace(self: Laplace, value: Any, **_: object) -> Any:
        found.append((self.event.scale * self.grid.step, value))
        return np.zeros(np.shape(value)) if np.ndim(value) else 0

    def gaussian(self: Gaussian, value: Any, **_: object) -> Any:
        found.append((self.sigma, value))
        return np.zeros(np.shape(value)) if np.ndim(value) else 0

    with monkeypatch.context() as patch:
        patch.setattr(Laplace, "release", laplace)
        patch.setattr(Gaussian, "release", gaussian)
        statistic()
    return found


def remembered(ask: Callable[[list[Any]], Given]) -> Callable[[list[Any]], Given]:
    """Asks about each table once: most of them have several neighbours."""
    answers: dict[str, Given] = {}

    def answer(table: list[Any]) -> Given:
        key = repr(table)
        if key not in answers:
            answers[key] = ask(table)
        return answers[key]

    return answer


def pure_loss(one: Given, other: Given) -> Fraction:
    """Sum of |move| / scale: the epsilon that Laplace noise costs between the two."""
    assert [scale for scale, _ in one] == [scale for scale, _ in other]
    return sum((_moves(a, b, 1) / scale for (scale, a), (_, b) in zip(one, other, strict=True)), Fraction(0))


def squared_mu(one: Given, other: Given) -> Fraction:
    """Sum of (move / sigma)^2: the mu^2 that normal noise costs between the two."""
    assert [scale for scale, _ in one] == [scale for scale, _ in other]
    return sum((_moves(a, b, 2) / scale**2 for (scale, a), (_, b) in zip(one, other, strict=True)), Fraction(0))


def _moves(one: Any, other: Any, power: int) -> Fraction:
    pairs = zip(np.ravel(np.asarray(one, dtype=object)), np.ravel(np.asarray(other, dtype=object)), strict=True)
    return sum((abs(Fraction(int(a)) - Fraction(int(b))) ** power for a, b in pairs), Fraction(0))


def neighbouring(values: Sequence[Any], neighbours: Neighbours, size: int = 2) -> Iterator[tuple[list[Any], list[Any]]]:
    """All pairs of neighbouring tables of at most so many values besides the one that differs."""
    for count in range(size + 1):
        for rest in combinations_with_replacement(values, count):
            for mine in values:
                if neighbours is Neighbours.ADD_REMOVE:
                    yield [*rest, mine], list(rest)
                else:
                    yield from (([*rest, mine], [*rest, other]) for other in values)
