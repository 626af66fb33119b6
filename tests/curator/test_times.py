"""Quantiles of days and moments, MIN and MAX: drawn, typed, with intervals that hold, and bounds found privately."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from discreet import maximum, median
from discreet.curator import Answer, Curator
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import UnsupportedQuery
from discreet.measurement.releases.rank_draws import RISK
from discreet.noise import SeededBits
from discreet.plan.post import steps as steps_module
from discreet.privacy import Budget
from discreet.report import answers
from tests.cases import try_all
from tests.effort import some

START = dt.datetime(2024, 2, 28)
DECLARED: dict[str, Any] = {
    "types": {"g": "text", "d": "date", "t": "timestamp", "e": "date", "s": "timestamp"},
    "bounds": {"d": ("2020-01-01", "2026-12-31"), "t": ("2020-01-01", "2026-12-31")},
    "keys": {"g": ["A", "B"]},
}
COUNT = 2001


def rows() -> list[dict[str, Any]]:
    """Days of two years in an order of their own, and moments on them; every hundredth is missing."""
    made = []
    for i in range(COUNT):
        moment = START + dt.timedelta(days=(i * i) % 731, seconds=(37 * i) % 86_400)
        shown = None if i % 100 == 7 else moment
        day = None if shown is None else shown.date()
        made.append({"g": "AB"[i % 2], "d": day, "t": shown, "e": day, "s": shown})
    return made


def curator(engine: Engine | None = None, ledger: str | Path = ":memory:", **declared: Any) -> Curator:
    made = Curator.for_tests(ledger, engine=engine or DuckDB(threads=1), bits=SeededBits(5))
    source: Any = rows() if isinstance(engine, Memory) else pa.Table.from_pylist(rows())
    options = DECLARED | {"budget": Budget(epsilon=10**9, delta="1e-2")} | declared
    made.protect(source, name="v", **options)
    return made


@pytest.fixture(scope="module")
def asked() -> Iterator[Curator]:
    with curator() as made:
        yield made


def true(column: str, group: str) -> list[Any]:
    return sorted(row[column] for row in rows() if row["g"] == group and row[column] is not None)


def test_with_much_budget_they_are_order_statistics() -> None:
    sql = "SELECT g, MIN({0}) AS lo, MEDIAN({0}) AS m, quantile_disc({0}, 0.9) AS q, MAX({0}) AS hi FROM v GROUP BY g"
    for engine in (Memory(), DuckDB(threads=1)):
        with curator(engine) as made:
            for column, near in (("d", dt.timedelta()), ("t", dt.timedelta(seconds=30))):
                for row in made.ask(sql.format(column), epsilon=10**6, delta=0):
                    values = true(column, row["g"])
                    n = len(values)
                    half = n // 2
                    for name, low, own, high in (("lo", 0, 0, 2), ("m", half - 1, half, half + 1), ("hi", -3, -1, -1)):
                        assert values[low] - near <= row[name] <= values[high] + near
                        assert row[f"{name}_low"] <= values[own] <= row[f"{name}_high"]
                    assert values[int(0.9 * n) - 1] - near <= row["q"] <= values[int(0.9 * n) + 1] + near


GROUPS = 400
MOST = float(RISK) + 4 * math.sqrt(float(RISK) / GROUPS)


@pytest.mark.ci
def test_intervals_hold_the_truth() -> None:
    """Many equal groups of few people: each is drawn by itself."""
    moments = [START + dt.timedelta(hours=61 * i, seconds=i) for i in range(40)]
    source = pa.table({"g": [g for g in range(GROUPS) for _ in moments], "t": moments * GROUPS})
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(11))
    made.protect(
        source,
        name="v",
        bounds={"t": ("2023-01-01", "2025-12-31")},
        keys={"g": list(range(GROUPS))},
        budget=Budget(epsilon=10**6),
    )
    sql = "SELECT g, MIN(t) AS lo, MEDIAN(t) AS m, MAX(CAST(t AS DATE)) AS hi FROM v GROUP BY g"
    answer = made.ask(sql, epsilon=9)
    for name, value in {"lo": moments[0], "m": moments[19], "hi": moments[-1].date()}.items():
        missed = sum(not row[f"{name}_low"] <= value <= row[f"{name}_high"] for row in answer)
        assert missed / GROUPS <= MOST
        assert all(row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for row in answer)


# -------------------------------------------------------------------------------------------------------------- shapes

SHAPES = {
    "SELECT MIN(d) AS x FROM v": ("x", dt.date),
    "SELECT MIN(t) AS x FROM v": ("x", dt.datetime),
    "SELECT MAX(t)::date AS x FROM v": ("x", dt.date),
    "SELECT MAX(d) + 7 AS x FROM v": ("x", dt.date),
    "SELECT MAX(t) + INTERVAL 2 MONTH AS x FROM v": ("x", dt.datetime),
    "SELECT date_trunc('month', MEDIAN(t)) AS x FROM v": ("x", dt.date),
    "SELECT COALESCE(MIN(d), DATE '2024-01-01') AS x FROM v": ("x", dt.date),
    "SELECT LEAST(MIN(d), DATE '2024-01-01') AS x FROM v": ("x", dt.date),
    "SELECT MAX(d) - MIN(d) AS x FROM v": ("x", int),
    "SELECT YEAR(MEDIAN(d)) AS x FROM v": ("x", int),
    "SELECT COUNT(d) + COUNT(DISTINCT t) AS x FROM v": ("x", int),
    "SELECT g, MIN(d) AS x FROM v GROUP BY ROLLUP (g)": ("x", dt.date),
    "SELECT MAX(m) AS x FROM (SELECT g, MIN(d) AS m FROM v GROUP BY g)": ("x", dt.date),
    "SELECT MIN(m) AS x FROM (SELECT g, MIN(t) AS m, COUNT(*) AS n FROM v GROUP BY g) WHERE n > 9": ("x", dt.datetime),
    "SELECT g, LAG(MIN(d)) OVER (ORDER BY COUNT(*)) AS x FROM v GROUP BY g": ("x", dt.date),
    "SELECT g, MAX(MIN(d)) OVER () AS x FROM v GROUP BY g": ("x", dt.date),
    "SELECT g, RANK() OVER (ORDER BY MIN(d) DESC) AS x FROM v GROUP BY g": ("x", int),
    "SELECT g, COUNT(*) AS n, (SELECT MIN(t) FROM v) AS x FROM v GROUP BY g": ("x", dt.datetime),
    "SELECT g, MIN(d) AS x FROM v GROUP BY g HAVING MIN(d) < DATE '2026-01-01' ORDER BY x DESC LIMIT 1": ("x", dt.date),
}


def check_shape(answer: Answer, name: str, kind: type) -> None:
    """Every row has all columns, values within their intervals, of one type."""
    assert {name, f"{name}_low", f"{name}_high"} <= set(answer.columns)
    for record in answer:
        assert tuple(record) == answer.columns
        parts = [record[f"{name}{end}"] for end in ("_low", "", "_high") if record[name] is not None or end]
        assert all(type(part) is kind for part in parts)
        assert parts == sorted(parts)
    table = answer.to_arrow()
    kinds = {dt.date: pa.date32(), dt.datetime: pa.timestamp("us"), int: pa.int64()}
    assert table.schema.field(f"{name}_low").type == kinds[kind]
    assert answer.to_polars().schema[f"{name}_high"] == pl.DataFrame(table).schema[f"{name}_high"]
    assert len(answer.to_pandas()) == len(answer)
    assert str(answer)
    assert answer._repr_html_()
    assert answers.spec(answer.records)


def test_shapes(asked: Curator) -> None:
    def check(sql: str) -> None:
        name, kind = SHAPES[sql]
        for answer in (asked.ask(sql, epsilon=50), asked.rehearse(sql, rows=40)):
            check_shape(answer, name, kind)
        told = asked.explain(sql, epsilon=1)
        assert name in told.errors
        assert ("days" in str(told).splitlines()[2 if "COUNT(*)" not in sql else 3]) <= (kind is not int)

    try_all(some(SHAPES, 3), check)


def test_days_that_a_number_chooses_have_no_interval(asked: Curator) -> None:
    """As it was before days could be drawn."""
    plain = (
        "SELECT CASE WHEN COUNT(*) > 5 THEN DATE '2024-01-01' END AS x FROM v",
        "SELECT MAX(d) AS x FROM (SELECT d, COUNT(*) AS n FROM v GROUP BY d) WHERE n > 1",
        "SELECT MODE(d) AS x FROM (SELECT * FROM v WHERE d BETWEEN DATE '2024-01-01' AND DATE '2026-12-31') AS w",
    )
    asked.ask("SELECT d, COUNT(*) AS n FROM v GROUP BY d", epsilon=50)  # the days shown, of which the last is free
    for sql in plain:
        assert asked.ask(sql, epsilon=50).columns == ("x",)


def test_mutant_days_are_measured_like_numbers(asked: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_module, "has_interval", lambda *_: False)
    answer = asked.ask("SELECT MAX(m) AS x FROM (SELECT g, MIN(d) AS m FROM v GROUP BY g)", epsilon=50)
    with pytest.raises(AssertionError):
        check_shape(answer, "x", dt.date)


def test_the_fluent_front_asks_the_same(asked: Curator) -> None:
    one = asked.table("v").group_by("g").agg(m=median("d"), hi=maximum("t"))
    assert one.ask(epsilon=40).columns == ("g", "m", "m_low", "m_high", "hi", "hi_low", "hi_high")
    assert asked.ask("SELECT g, MEDIAN(d) AS m, MAX(t) AS hi FROM v GROUP BY g", epsilon=40).replayed


# ------------------------------------------------------------------------------------------------------ private bounds


def test_bounds_of_days_are_found_by_years_and_remembered(tmp_path: Path) -> None:
    sql = "SELECT MEDIAN(e) AS m, MAX(s) AS hi, AVG(e - d) AS a FROM v"
    found = "Values of e are clipped to 2024-01-01 to 2026-12-31, bounds that were chosen privately and are remembered."
    with curator(ledger=tmp_path / "book") as made:
        assert "Bounds of e will be chosen privately" in str(made.explain(sql, epsilon=100))
        answer = made.ask(sql, epsilon=100)
        assert found in answer.notes
        (row,) = answer
        assert abs(row["m"] - sorted(true("e", "A") + true("e", "B"))[COUNT // 2]) < dt.timedelta(days=9)
        assert row["hi_high"] <= dt.datetime(2027, 1, 1)
        assert row["a_low"] <= 0 <= row["a_high"]
        assert made.ask("SELECT MIN(e) AS m FROM v", epsilon=1).cost.details == Budget(epsilon=1)
    with curator(ledger=tmp_path / "book") as again:
        replayed = again.ask(sql, epsilon=100)
        assert replayed.replayed
        assert replayed.records == answer.records
        assert found in replayed.notes


def test_few_people_get_a_range_that_does_not_depend_on_them() -> None:
    made = Curator.for_tests(engine=Memory(), bits=SeededBits(5))
    made.protect(rows()[:3], name="v", **(DECLARED | {"budget": Budget(epsilon=9)}))
    answer = made.ask("SELECT MAX(e) AS m FROM v", epsilon=1)
    (note,) = (note for note in answer.notes if "Too few people" in note)
    assert "1970-01-01 to 2069-12-31" in note


def test_what_has_no_bounds_even_so_is_refused_with_a_remedy(asked: Curator) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        asked.ask("SELECT MIN(CAST(g AS DATE)) AS m FROM v", epsilon=1)
    (remedy,) = refused.value.hint.split("`")[1::2]
    assert asked.ask(remedy, epsilon=1).columns == ("m", "m_low", "m_high")


def test_a_chart_of_days_has_an_axis_of_time(asked: Curator) -> None:
    chart = answers.spec(asked.ask("SELECT g, MIN(d) AS x, COUNT(*) AS n FROM v GROUP BY g", epsilon=50).records)
    along = [panel["layer"][0]["encoding"]["x"]["type"] for panel in chart["vconcat"]]
    assert along == ["temporal", "quantitative"]
    assert asked.ask("SELECT MIN(d) AS x FROM v", epsilon=50).chart() is not None
