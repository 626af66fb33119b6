"""One person's raw value, there or not: the same charge, the same shape, never a failure, on every way to a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.engines import DuckDB, Engine, Memory
from discreet.learn.persistence import store
from discreet.noise import SeededBits
from discreet.plan.model.types import Type
from discreet.privacy import Budget
from tests.engines.raw import Specimen
from tests.engines.raw_objects import OBJECTS
from tests.engines.test_raw import SPECIMENS, chosen
from tests.learn.tiny import TINY, TinyRegressor

ALWAYS = (
    "SELECT COUNT(*) AS k FROM t",
    "SELECT n, COUNT(x) AS k, SUM(n) AS s FROM t GROUP BY n",
    "SELECT COUNT(DISTINCT n) AS k FROM t WHERE x IS NOT NULL",
)
BY_TYPE: dict[Type, tuple[str, ...]] = {
    Type.INT: ("SELECT AVG(x) AS m, MEDIAN(x) AS q FROM t", "SELECT COUNT(*) AS k FROM t WHERE x * x > 4"),
    Type.FLOAT: ("SELECT AVG(x) AS m, MEDIAN(x) AS q FROM t", "SELECT COUNT(*) AS k FROM t WHERE x / 2 < 4"),
    Type.BOOL: ("SELECT x, COUNT(*) AS k FROM t GROUP BY x",),
    Type.TEXT: ("SELECT COUNT(*) AS k FROM t WHERE UPPER(x) LIKE 'A%'", "SELECT COUNT(CAST(x AS INT)) AS k FROM t"),
    Type.DATE: (
        "SELECT MONTH(x) AS m, COUNT(*) AS k FROM t GROUP BY m",
        "SELECT COUNT(*) AS k FROM t WHERE x + 30 > DATE '2024-01-01'",
    ),
    Type.TIMESTAMP: (
        "SELECT MONTH(x) AS m, COUNT(*) AS k FROM t GROUP BY m",
        "SELECT COUNT(*) AS k FROM t WHERE YEAR(x) > 2000",
    ),
}
RAW = ["parquet ms utc=True statistics=True", "parquet utf8 statistics=False", "pandas objects"]


def opened(source: Any, kind: Type, engine: Callable[[], Engine] = lambda: DuckDB(threads=1)) -> Curator:
    """A curator of a table of people; numbers have bounds."""
    curator = Curator.for_tests(engine=engine(), bits=SeededBits(3))
    types = {"id": "int", "n": "int", "x": kind.value}
    bounds: dict[str, Any] = {"n": (0, 4)} | ({"x": (0, 100)} if kind.is_number else {})
    options: dict[str, Any] = {"types": types, "bounds": bounds, "keys": {"n": list(range(5))}}
    curator.protect(source, name="t", unit="id", budget=Budget(epsilon=10**6), **{"max_rows": 1, **options})
    return curator


def told(source: Any, kind: Type, engine: Callable[[], Engine] = lambda: DuckDB(threads=1)) -> list[Any]:
    """All that is seen of the answers but noise: what they cost, their columns and how many rows they have."""
    with opened(source, kind, engine) as curator:
        answers = [curator.ask(sql, epsilon=1) for sql in (*ALWAYS, *BY_TYPE[kind])]
        kinds = [entry.kind for entry in curator.history("t")]
    return [*kinds, *((str(answer.cost), answer.columns, len(answer)) for answer in answers)]


def neighbours(specimen: Specimen, cells: Sequence[Any], folder: Path) -> None:
    ordinary = list(specimen.cells[:3])
    expected = told(specimen.build(ordinary, folder), specimen.type)
    for cell in cells:
        assert told(specimen.build([*ordinary, cell], folder), specimen.type) == expected, (specimen.name, cell)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", RAW)
def test_a_person_with_every_raw_value_changes_nothing_but_noise(name: str, tmp_path: Path) -> None:
    (specimen,) = chosen(name)
    expected = told(specimen.build(specimen.cells[:3], tmp_path), specimen.type)
    assert told(specimen.build(specimen.cells, tmp_path), specimen.type) == expected


@pytest.mark.slow
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_neighbours_with_one_raw_value_cannot_be_told_apart(specimen: Specimen, tmp_path: Path) -> None:
    neighbours(specimen, specimen.cells[4:6], tmp_path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", list(Type), ids=lambda kind: kind.value)
def test_any_object_in_a_row_changes_nothing_but_noise(kind: Type) -> None:
    rows = [{"id": place, "n": place % 5, "x": cell} for place, cell in enumerate(OBJECTS)]
    assert told(rows, kind, Memory) == told(rows[:3], kind, Memory)


def test_public_tables_give_keys_whatever_they_hold(tmp_path: Path) -> None:
    (texts,) = chosen("parquet utf8 statistics=True")
    (tmp_path / "public").mkdir()
    with Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(3)) as curator:
        curator.public(texts.build(texts.cells, tmp_path / "public"), name="known")
        source = texts.build(texts.cells, tmp_path)
        curator.protect(source, name="t", unit="id", max_rows=1, keys={"x": "known.x"}, budget=Budget(epsilon=10))
        answer = curator.ask("SELECT x, COUNT(*) AS k FROM t GROUP BY x", epsilon=1)
    meant = {texts.meaning(cell) for cell in texts.cells} - {None}
    assert {row["x"] for row in answer} == meant


@pytest.mark.ci
@pytest.mark.parametrize(
    "name", ["parquet ms utc=False statistics=False", pytest.param("pandas objects", marks=pytest.mark.slow)]
)
def test_learners_and_audits_read_them_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "kinds", lambda: dict(TINY))
    (specimen,) = chosen(name)
    source = specimen.build(specimen.cells, tmp_path)
    with opened(source, specimen.type) as curator:
        curator.fit(TinyRegressor(epsilon=1), "SELECT id % 3 AS a, n FROM t WHERE x IS NULL OR n >= 0", target="n")
    found = audit.query(
        lambda rows: opened(rows, specimen.type), [ALWAYS[1], *BY_TYPE[specimen.type]], source, neighbours=2
    )
    assert found.passed
