"""Engines that watch, wait or fail, and a clinic under a curator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.curator import Curator
from discreet.curator.asking.planner import RequestedLimits
from discreet.curator.measurement_plan import MeasurementPlan
from discreet.engines import Memory
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.readings import Reading
from discreet.privacy import Budget, Loss
from tests.curator.clinic import DECLARED, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(charge) AS cost FROM visits GROUP BY ward"
OPTIONS: dict[str, Any] = {"unit": "patient", "max_groups": 3, "max_rows": 2, "version": "1", **DECLARED}


class Spy(Memory):
    """Counts reads, and does something before each."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.before: Callable[[], object] = lambda: None

    def read(self, reading: Reading) -> ExactGroups:
        self.reads += 1
        self.before()
        return super().read(reading)


class Broken(Spy):
    """Fails in the middle of every read."""

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        return lambda: GroupColumns(1 // len(reading.statistics[:0]), ())


def clinic(
    budget: Loss | None = None, *, ledger: str = ":memory:", engine: Memory | None = None, **declared: Any
) -> Curator:
    """Two hundred patients, seeded noise."""
    curator = Curator.for_tests(ledger, engine=engine or Memory(), bits=SeededBits(11))
    options = OPTIONS | declared
    curator.protect(visits(3, patients=200), name="visits", budget=budget or Budget(epsilon=2, delta=1e-6), **options)
    return curator


def planned(curator: Curator, sql: str, limits: RequestedLimits = None) -> MeasurementPlan:
    """A question before its charge."""
    bound = curator._catalog.bind(curator._catalog.parse(sql))
    return curator._planner.plan(bound, limits=limits)


def filtered(age: int) -> str:
    """A question that nobody asked before."""
    return f"{COUNT} WHERE age > {age}"
