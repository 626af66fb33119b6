"""All engines in one `bench`: every test body that takes it runs on each of them, side by side."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.tables import ENGINES, Bench, bench_of


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = bench_of(getattr(request, "param", ENGINES), tmp_path)
    yield made
    for engine, _ in made.engines.values():
        engine.close()
