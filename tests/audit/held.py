"""Factories of curators for audits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.curator import Curator
from discreet.engines import Engine, Memory
from discreet.noise import SeededBits
from discreet.privacy import Budget, Loss, Neighbours
from tests.curator.clinic import DECLARED

AMPLE, PURE = Budget(epsilon=10**6, delta="0.1"), Budget(epsilon=10**6)
OPTIONS: dict[str, Any] = {"unit": "patient", "max_groups": 2, "max_rows": 2, "version": "1", **DECLARED}
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, AVG(charge) AS m, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT SUM(age) AS s FROM visits WHERE ward = 'A'",
    "SELECT MEDIAN(age) AS m FROM visits",
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind",
    "SELECT COUNT(DISTINCT patient) AS p FROM visits",
)

Factory = Callable[[Any], Curator]


def clinic(
    engine: Callable[[], Engine] = Memory,
    *,
    budget: Loss = AMPLE,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    **declared: Any,
) -> Factory:
    """Makes curators of the clinic's visits."""

    def make(rows: Any) -> Curator:
        curator = Curator.for_tests(engine=engine(), bits=SeededBits(1))
        curator.protect(rows, name="visits", budget=budget, neighbours=neighbours, **(OPTIONS | declared))
        return curator

    return make
