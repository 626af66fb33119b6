"""One `bench` per engine: every test body that takes it runs on all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.tables import ENGINES, Bench, benches


@pytest.fixture(params=ENGINES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = benches(tmp_path)[request.param]()
    yield made
    made.engine.close()
