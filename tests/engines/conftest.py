"""All engines in one `bench`: every test body that takes it runs on each of them, side by side."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.postgres_tables import PostgresTables
from tests.engines.tables import ENGINES, POSTGRES, Bench, bench_of


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path, postgres_if_any: PostgresTables | None) -> Iterator[Bench]:
    names = getattr(request, "param", ENGINES)
    made = bench_of(names, tmp_path, postgres_if_any if POSTGRES in names else None)
    yield made
    for engine, _ in made.engines.values():
        engine.close()
