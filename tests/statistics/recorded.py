"""Mechanisms that are watched: what they were given is kept, and what they answer is decided by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from discreet.mechanisms import Gaussian, KNorm, Laplace, Quantile
from discreet.mechanisms.laplace import DiscreteLaplace
from discreet.privacy import events
from discreet.statistics.symmetric_noise import SymmetricNoise

WATCHED = (Laplace, DiscreteLaplace, Gaussian, KNorm, Quantile)


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
