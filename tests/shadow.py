"""Every reading of the referee once more, on another engine: question tests on all engines without a change to them.

With DISCREET_SHADOW=postgres (or spark, or any other engine of `tests.engines.tables`) in the environment, whatever a
test has the referee read is read by that engine, too, from the same rows, and a difference fails the test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow.parquet as pq
import pytest

from discreet.engines import Engine, Memory
from discreet.engines.spark import Spark
from discreet.plan.model.readings import Groups, Reading
from discreet.plan.model.relations import tables
from tests.engines.tables import POSTGRES, Give, arrow, bench_of

NAME = os.environ.get("DISCREET_SHADOW", "")
SPARK = "spark"

Make = Callable[[], tuple[Engine, Give]]
"""Makes an engine, and says how tables are given to it."""


class Shadow:
    """Engines beside referees, one for each, with the tables that were asked for.

    Args:
        make: makes an engine.
    """

    def __init__(self, make: Make) -> None:
        self._make = make
        self._engines: WeakKeyDictionary[Memory, tuple[Engine, Give, dict[str, Any]]] = WeakKeyDictionary()
        self.read = 0

    def check(self, memory: Memory, reading: Reading, right: Groups) -> None:
        """Fails unless the other engine finds the same."""
        if memory not in self._engines:
            self._engines[memory] = *self._make(), {}
        engine, give, held = self._engines[memory]
        for table in {reading.table, *(tables(reading.source) if reading.source is not None else ())}:
            rows, columns = memory._rows[table], memory._columns[table]
            if any(isinstance(value, str) and "\0" in value for row in rows for value in row.values()):
                return  # which not every database can hold
            if held.get(table) is not rows:
                engine.register(table, give(rows, columns), columns)
                held[table] = rows
        found = engine.read(reading)
        self.read += 1
        assert found == right, f"{type(engine).__name__} reads {reading} in another way."


@contextmanager
def shadowed(make: Make) -> Iterator[Shadow]:
    """What a referee reads here, another engine reads, too."""
    shadow, plain = Shadow(make), Memory.read

    def read(memory: Memory, reading: Reading) -> Groups:
        right = plain(memory, reading)
        if type(memory) is Memory:  # a spy or a mutant of a test's own means something else
            shadow.check(memory, reading, right)
        return right

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "read", read)
        yield shadow


def on_spark(session: Any, folder: Path) -> Make:
    """Makes engines of one session, which read Parquet files."""
    places = count()

    def give(rows: Any, columns: Any) -> Path:
        path = folder / f"{next(places)}.parquet"
        pq.write_table(arrow(rows, columns), path)
        return path

    return lambda: (Spark(session), give)


@pytest.fixture(autouse=bool(NAME))
def shadow_of_the_referee(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The other engine, if one is asked for."""
    folder = tmp_path_factory.mktemp("shadow")
    if NAME == SPARK:
        make = on_spark(request.getfixturevalue("spark_session"), folder)
    else:
        postgres = request.getfixturevalue("postgres_if_any") if NAME == POSTGRES else None
        make = lambda: bench_of([NAME], folder, postgres).engines[NAME]  # noqa: E731 - one of two
    with shadowed(make):
        yield
