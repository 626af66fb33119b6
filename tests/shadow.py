"""Every reading of the referee once more, on another engine: question tests on all engines without a change to them.

With DISCREET_SHADOW=duckdb-frame (or any other engine of `tests.engines.tables`) in the environment, whatever a test
has the referee read is read by that engine, too, from the same rows, and a difference fails the test.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from discreet.engines import Engine, Memory
from discreet.plan.model.readings import Groups, Reading
from discreet.plan.model.relations import tables
from tests.engines.postgres_tables import PostgresTables
from tests.engines.tables import POSTGRES, Give, bench_of, is_absent

NAME = os.environ.get("DISCREET_SHADOW", "")


class Shadow:
    """Engines beside referees, one for each, with the tables that were asked for.

    Args:
        name: of the engine, as in `tests.engines.tables`.
        folder: for its files.
        postgres: the server's tables, if that is the engine.
    """

    def __init__(self, name: str, folder: Path, postgres: PostgresTables | None = None) -> None:
        self._name, self._folder, self._postgres = name, folder, postgres
        self._engines: WeakKeyDictionary[Memory, tuple[Engine, Give, dict[str, Any]]] = WeakKeyDictionary()
        self.read = 0

    def check(self, memory: Memory, reading: Reading, right: Groups) -> None:
        """Fails unless the other engine finds the same."""
        if self._postgres is not None and is_absent(reading):
            return
        engine, give, held = self._beside(memory)
        for table in {reading.table, *(tables(reading.source) if reading.source is not None else ())}:
            rows, columns = memory._rows[table], memory._columns[table]
            if any(isinstance(value, str) and "\0" in value for row in rows for value in row.values()):
                return  # which not every database can hold
            if held.get(table) is not rows:
                engine.register(table, give(rows, columns), columns)
                held[table] = rows
        found = engine.read(reading)
        self.read += 1
        assert found == right, f"{self._name} reads {reading} in another way."

    def _beside(self, memory: Memory) -> tuple[Engine, Give, dict[str, Any]]:
        if memory not in self._engines:
            engine, give = bench_of([self._name], self._folder, self._postgres).engines[self._name]
            self._engines[memory] = engine, give, {}
        return self._engines[memory]


@contextmanager
def shadowed(name: str, folder: Path, postgres: PostgresTables | None = None) -> Iterator[Shadow]:
    """What a referee reads here, the named engine reads, too."""
    shadow, plain = Shadow(name, folder, postgres), Memory.read

    def read(memory: Memory, reading: Reading) -> Groups:
        right = plain(memory, reading)
        if type(memory) is Memory:  # a spy or a mutant of a test's own means something else
            shadow.check(memory, reading, right)
        return right

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "read", read)
        yield shadow


@pytest.fixture(autouse=bool(NAME))
def shadow_of_the_referee(request: pytest.FixtureRequest) -> Iterator[None]:
    """The other engine, if one is asked for."""
    postgres: PostgresTables | None = request.getfixturevalue("postgres_tables") if NAME == POSTGRES else None
    with tempfile.TemporaryDirectory() as folder, shadowed(NAME, Path(folder), postgres):
        yield
