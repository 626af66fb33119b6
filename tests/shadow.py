"""Every reading of the referee once more, on another engine: question tests on all engines without a change to them.

With DISCREET_SHADOW=postgres (or spark, or any other name of `tests.engines.tables`) in the environment, whatever a
test has the referee read is read by that engine, too, from the same rows, and a difference fails the test. Tests of
mutants are skipped: most of them are of the referee, with which no other engine is to agree then. Engines that take
their time over each statement are asked for the first readings of each test.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any

import pytest

from discreet.engines import Engine, Memory
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.plan.model.readings import Reading
from discreet.plan.model.relations import tables
from tests.engines.tables import MARIADB, POSTGRES, SPARK, Give, bench_of
from tests.open_groups import unsealed

NAME = os.environ.get("DISCREET_SHADOW", "")
MOST = {SPARK: 8, POSTGRES: 100, MARIADB: 100}  # readings of one test; those of brute force are thousands


class Shadow:
    """An engine beside the referees of a test, with the tables that were asked for last.

    Args:
        engine: the other engine.
        give: how tables are given to it.
        most: how many readings it is asked for.
    """

    def __init__(self, engine: Engine, give: Give, most: float = math.inf) -> None:
        self._engine, self._give, self._most = engine, give, most
        self._held: dict[str, Any] = {}
        self.read = 0

    def check(self, memory: Memory, reading: Reading, right: ExactGroups) -> None:
        """Fails unless the other engine finds the same."""
        if self.read >= self._most:
            return
        for table in {reading.table, *(tables(reading.source) if reading.source is not None else ())}:
            rows, columns = memory._rows[table], memory._columns[table]
            if any(isinstance(value, str) and "\0" in value for row in rows for value in row.values()):
                return  # which not every database can hold
            if self._held.get(table) is not rows:
                self._engine.register(table, self._give(rows, columns), columns)
                self._held[table] = rows
        found = unsealed(Context().run(self._engine.read, reading))  # a view of its own: the table may be younger
        self.read += 1
        assert found == unsealed(right), f"{type(self._engine).__name__} reads {reading} in another way."


@contextmanager
def shadowed(engine: Engine, give: Give, most: float = math.inf) -> Iterator[Shadow]:
    """What a referee reads here, another engine reads, too."""
    shadow, plain = Shadow(engine, give, most), Memory.read

    def read(memory: Memory, reading: Reading) -> ExactGroups:
        right = plain(memory, reading)
        if type(memory) is Memory:  # a spy or a mutant of a test's own means something else
            shadow.check(memory, reading, right)
        return right

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "read", read)
        yield shadow


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips tests of mutants, if another engine is asked for."""
    for item in items:
        if NAME and "mutant" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason="no engine agrees with a mutant of the referee"))


@pytest.fixture(scope="session")
def other_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The engine that is asked for, and how tables are given to it."""
    postgres = request.getfixturevalue("postgres_if_any") if NAME == POSTGRES else None
    session = request.getfixturevalue("spark_session") if NAME == SPARK else None
    mariadb = request.getfixturevalue("mariadb_if_any") if NAME == MARIADB else None
    folder = tmp_path_factory.mktemp("shadow")
    engine, give = bench_of([NAME], folder, postgres, session, mariadb).engines[NAME]
    with engine:
        yield engine, give


@pytest.fixture(autouse=bool(NAME))
def shadow_of_the_referee(request: pytest.FixtureRequest) -> Iterator[None]:
    """The other engine beside the referees of each test, if one is asked for."""
    engine, give = request.getfixturevalue("other_engine")
    with shadowed(engine, give, MOST.get(NAME, math.inf)):
        yield
