"""All engines in one `bench`: every test body that takes it runs on each of them, side by side."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.tables import ENGINES, MARIADB, POSTGRES, SPARK, Bench, bench_of, sides


@pytest.fixture(params=sides(ENGINES))
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    names = request.param
    postgres = request.getfixturevalue("postgres_if_any") if POSTGRES in names else None
    session = request.getfixturevalue("spark_session") if SPARK in names else None
    mariadb = request.getfixturevalue("mariadb_if_any") if MARIADB in names else None
    made = bench_of(names, tmp_path, postgres, session, mariadb)
    yield made
    for engine, _ in made.engines.values():
        engine.close()
