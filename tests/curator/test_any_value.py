"""ANY_VALUE of what keys decide: free, exact, and refused where it would show somebody's value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import UnsupportedQuery
from discreet.noise import SeededBits
from discreet.privacy import Budget
from tests.cases import try_all

WARDS = [
    {"ward": "A", "floor": 1, "area": 12.5, "head": "Ada", "wing": "n"},
    {"ward": "B", "floor": 2, "area": 8.25, "head": "Bo", "wing": "n"},
    {"ward": "C", "floor": 2, "area": 30.0, "head": None, "wing": "s"},
]
TYPES = {"ward": "text", "floor": "int", "area": "float", "head": "text", "wing": "text"}
VISITS: list[dict[str, Any]] = [{"p": i % 300, "ward": "ABC"[i % 3], "age": i % 90} for i in range(900)]


def clinic(engine: Engine) -> Curator:
    made = Curator.for_tests(engine=engine, bits=SeededBits(3))
    frame: Any = WARDS if isinstance(engine, Memory) else _arrow(WARDS)
    rows: Any = VISITS if isinstance(engine, Memory) else _arrow(VISITS)
    made.public(frame, name="wards", types=TYPES)
    made.protect(
        rows,
        name="visits",
        unit="p",
        types={"p": "int", "ward": "text", "age": "int"},
        bounds={"age": (0, 90)},
        max_groups=3,
        max_rows=9,
        budget=Budget(epsilon=10**9, delta="1e-2"),
    )
    return made


def _arrow(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - it is slow to load

    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module", params=[Memory, DuckDB])
def asked(request: pytest.FixtureRequest) -> Iterator[Curator]:
    with clinic(request.param()) as made:
        yield made


JOINED = "FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.ward"


def test_columns_of_a_public_table(asked: Curator) -> None:
    told = "ANY_VALUE(w.area) AS area, ANY_VALUE(w.head) AS head, COUNT(*) / ANY_VALUE(w.area) AS per"
    sql = f"SELECT w.ward, {told} {JOINED}"
    answer = asked.ask(sql, epsilon=1000)
    assert answer.columns == ("ward", "area", "head", "per", "per_low", "per_high")
    shown = {row["ward"]: (row["area"], row["head"]) for row in answer}
    assert shown == {row["ward"]: (row["area"], row["head"]) for row in WARDS}
    for row in answer:
        assert row["per_low"] <= 300 / row["area"] <= row["per_high"]
        assert row["per_high"] - row["per_low"] < 3  # by the own area, and not by any
    assert asked.rehearse(sql, rows=20).columns == answer.columns
    assert asked.ask(f"SELECT w.ward, COUNT(*) AS n {JOINED}", epsilon=1000).replayed  # it costs nothing more


ANSWERED = {
    f"SELECT w.ward, ANY_VALUE(w.floor + 1) AS x, COUNT(*) AS n {JOINED}": {"A": 2, "B": 3, "C": 3},
    f"SELECT w.ward, ARBITRARY(UPPER(w.head)) AS x, COUNT(*) AS n {JOINED}": {"A": "ADA", "B": "BO", "C": None},
    f"SELECT w.ward, ANY_VALUE(w.wing || w.ward) AS x, COUNT(*) AS n {JOINED}": {"A": "nA", "B": "nB", "C": "sC"},
    "SELECT ward, ANY_VALUE(LOWER(ward)) AS x, COUNT(*) AS n FROM visits GROUP BY ward": {"A": "a", "B": "b", "C": "c"},
}
REFUSED = (
    "SELECT ¦ANY_VALUE(age) AS x, COUNT(*) AS n FROM visits",
    "SELECT ward, ¦ANY_VALUE(age) AS x, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT ward, ¦ANY_VALUE(p) AS x, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT w.floor, ¦ANY_VALUE(w.head) AS x, COUNT(*) AS n FROM visits v JOIN wards w USING (ward) GROUP BY w.floor",
    f"SELECT w.ward, ¦ANY_VALUE(v.age) AS x, COUNT(*) AS n {JOINED}",
    (
        "SELECT w.ward, ¦ANY_VALUE(o.area) AS x, COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward"
        " JOIN wards o ON o.floor = w.floor GROUP BY w.ward"
    ),
    "SELECT COUNT(*) AS n FROM visits WHERE ¦ANY_VALUE(age) = 3",
)


def test_what_keys_decide_is_told(asked: Curator) -> None:
    def check(sql: str) -> None:
        answer = asked.ask(sql, epsilon=1000)
        assert {row["ward"]: row["x"] for row in answer} == ANSWERED[sql]

    try_all(ANSWERED, check)


def test_what_they_do_not_decide_is_refused(asked: Curator) -> None:
    def check(marked: str) -> None:
        with pytest.raises(UnsupportedQuery, match="keys decide it") as refused:
            asked.ask(marked.replace("¦", ""), epsilon=1)
        assert refused.value.position == (1, marked.index("¦") + 1)

    try_all(REFUSED, check)


def test_of_one_persons_rows_it_is_one_of_them(asked: Curator) -> None:
    sql = "SELECT COUNT(*) AS n, AVG(x) AS m FROM (SELECT p, ANY_VALUE(age) AS x FROM visits GROUP BY p) AS t"
    (row,) = asked.ask(sql, epsilon=10**6)
    first = {p: min(v["age"] for v in VISITS if v["p"] == p) for p in range(300)}
    assert row["n"] == 300
    assert row["m"] == pytest.approx(sum(first.values()) / 300, abs=0.01)
