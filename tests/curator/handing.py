"""What learners are given by a curator, looked at in the releaser."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator import Curator
from discreet.curator.observation import engine_of, observe_curator
from discreet.engines import Memory
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits
from discreet.privacy import Budget
from tests.curator.clinic import Row
from tests.curator.spies import OPTIONS

Given = tuple[NDArray[np.float64], NDArray[Any] | None]
Fit = tuple[Any, str, str | None]
"""A learner, its rows and its target."""


class Listening(Releaser):
    """Keeps what learners are given."""

    def __init__(self) -> None:
        super().__init__(SeededBits(1))
        self.given: list[Given] = []

    def fit_rows(self, learner: Any, X: NDArray[np.float64], y: NDArray[Any] | None) -> Any:
        self.given.append((X, y))
        return super().fit_rows(learner, X, y)


def curated(rows: Sequence[Row], engine: Any = None, **declared: Any) -> Curator:
    curator = Curator.for_tests(engine=engine or Memory(), bits=SeededBits(1))
    options = {**OPTIONS, **declared}
    curator.protect(rows, name="visits", budget=Budget(epsilon=100, delta=1e-3), **options)
    return curator


def handed(rows: Sequence[Row], fit: Fit, salt: str = "s", **declared: Any) -> Given:
    """The exact rows that a fit hands to its learner."""
    estimator, question, target = fit
    curator, releaser = curated(rows, **declared), Listening()
    observe_curator(curator, engine=engine_of(curator), releaser=releaser, salt=salt).fit(
        estimator, question, target=target
    )
    (given,) = releaser.given
    return given


def bag(given: Given) -> Counter[Any]:
    X, y = given
    labels = [None] * len(X) if y is None else y.tolist()
    return Counter((*("nan" if math.isnan(x) else x for x in row), label) for row, label in zip(X, labels, strict=True))


def apart(one: Given, other: Given) -> int:
    a, b = bag(one), bag(other)
    return sum(((a - b) + (b - a)).values())
