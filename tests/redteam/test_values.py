"""Class C: values that are none. NaN, infinity, NULL, texts that are no numbers, numbers that fit nowhere."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.plan.model.schema import Limits
from discreet.privacy import Neighbours
from tests.engines.tables import EDGES, T
from tests.redteam.clinics import APPROXIMATE, CROWD, Row, Untouchable, asking, clinic, neighbours, noises, row, spent

BOTH: list[Callable[[], Engine]] = [Memory, lambda: DuckDB(threads=1)]
engines = pytest.mark.parametrize("engine", BOTH, ids=["memory", "duckdb"])

QUESTIONS = (
    "SELECT COUNT(*) AS n, COUNT(charge) AS k, SUM(charge) AS s, AVG(charge) AS m FROM visits",
    "SELECT ward, SUM(GREATEST(LEAST(weight, 10), -10)) AS s FROM visits GROUP BY ward",
    "SELECT AVG(GREATEST(0, LEAST(weight * weight, 5))) AS m FROM visits WHERE weight > 1 OR NOT (weight > 1)",
    "SELECT SUM(CASE WHEN weight = weight THEN 1 ELSE 7 END) AS s FROM visits",
    "SELECT SUM(ROUND(GREATEST(LEAST(weight, 1e15), -1e15) / 1e15)) AS s FROM visits",
)
ABSURD: list[Row] = [
    *({"weight": x, "charge": x} for x in (math.nan, math.inf, -math.inf, None, 1e308, -1e308, 5e-324, -0.0)),
    {"weight": 1e200, "charge": 1e200, "age": (1 << 63) - 1, "ward": None, "kind": None, "note": None},
]


@pytest.mark.parametrize(
    ("engine", "absurd"),
    [*((Memory, [values]) for values in ABSURD), (BOTH[1], ABSURD)],
    ids=[*map(str, ABSURD), "all of them on duckdb"],
)
def test_one_absurd_person_changes_nothing_but_noise(engine: Callable[[], Engine], absurd: list[Row]) -> None:
    """RT-027, RT-028, RT-029: NaN, infinities and NULL: the same status and shape, finite answers, inputs near."""
    pair = neighbours([*CROWD, *(row(99, **values) for values in absurd * 2)], CROWD, engine)
    for sql in QUESTIONS:
        seen = pair.judge(asking(sql, 1, 0, Limits(2, 20)))
        assert seen.answer is not None
        numbers = [value for record in seen.answer for value in record.values() if isinstance(value, float)]
        assert all(math.isfinite(number) for number in numbers)


TEXTS = [text for text in EDGES[T] if text is not None]


@pytest.mark.sampled(3)
@engines
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(CAST(note AS INT)) AS n FROM visits",
        "SELECT COUNT(TRY_CAST(note AS DOUBLE)) AS n, COUNT(*) AS k FROM visits",
        "SELECT COUNT(note::DATE) AS n FROM visits",
        "SELECT COUNT(*) AS n FROM visits WHERE CAST(note AS INT) > 3 OR CAST(note AS DOUBLE) < 1",
        "SELECT CAST(note AS INT) AS k, COUNT(*) AS n FROM visits GROUP BY k",
        "SELECT SUM(LEAST(GREATEST(CAST(note AS INT), 0), 5)) AS s FROM visits",
    ],
)
def test_texts_that_are_no_numbers_are_null_and_never_free(sql: str, engine: Callable[[], Engine]) -> None:
    """RT-030, RT-036: no cast fails, and counting what a cast made NULL meets noise and is charged in full."""
    mine = [row(99, note=text) for text in TEXTS]
    pair = neighbours(CROWD + mine, CROWD, engine, budget=APPROXIMATE)
    seen = pair.judge(asking(sql, "1/2", "1/100", Limits(3, 60), private="GROUP BY" in sql))
    assert seen.answer is not None
    assert not seen.answer.replayed
    assert len(seen.noises) >= 1
    curator, _ = pair.one
    assert [entry.kind for entry in curator.history("visits")].count("charge") == 1


FILLED = (
    "SUM(COALESCE(charge, 1000000))",
    "AVG(COALESCE(charge, -5e9))",
    "SUM(IFNULL(NULLIF(charge, 12.5), 1e15))",
    "SUM(CASE WHEN charge IS NULL THEN 1e12 ELSE charge END)",
    "AVG(COALESCE(NULLIF(charge, charge), 12345678))",
    "SUM(GREATEST(COALESCE(charge, 0), 99999))",
    "SUM(IF(charge > 3, 7e11, charge))",
)


@pytest.mark.sampled(3)
@engines
@pytest.mark.parametrize("aggregate", FILLED)
def test_filling_missing_values_is_paid_in_noise(aggregate: str, engine: Callable[[], Engine]) -> None:
    """The peers' fill_null: what stands in for NULL widens the bounds, and with them the noise."""
    mine = [row(99, charge=value) for value in (None, math.nan, math.inf, 12.5, 1e300)]
    for relation in Neighbours if engine is Memory else (Neighbours.REPLACE,):
        other = CROWD if relation is Neighbours.ADD_REMOVE else [*CROWD, row(99, charge=0.0)]
        pair = neighbours(CROWD + mine, other, engine, neighbours=relation)
        assert pair.judge(asking(f"SELECT {aggregate} AS x FROM visits", 1, 0, Limits(1, 5))).status == "answered"


@engines
@pytest.mark.parametrize(
    "aggregate",
    [
        "SUM(LEAST(GREATEST(CAST(weight AS INT), -3), 3))",
        "SUM(LEAST(GREATEST(CAST(weight AS FLOAT), -3), 3))",
        "SUM(LEAST(GREATEST(CAST(weight AS DECIMAL(4, 1)), -3), 3))",
        "SUM(CAST(CAST(charge AS FLOAT) AS INT))",
        "AVG(CAST(charge AS INT) % 7)",
    ],
)
def test_narrower_types_do_not_overflow(aggregate: str, engine: Callable[[], Engine]) -> None:
    """The peers' cast to Float32: too large is NULL, and no type is narrower than 64 bits."""
    mine = [row(99, weight=x, charge=x) for x in (3.5e38, -3.5e38, 1e19, -1e19, 2.0**63, -(2.0**63), math.inf)]
    pair = neighbours(CROWD + mine, CROWD, engine)
    assert pair.judge(asking(f"SELECT {aggregate} AS x FROM visits", 1, 0, Limits(1, 9))).status == "answered"


@pytest.mark.parametrize(
    "kind", ["SMALLINT", "TINYINT", "UTINYINT", "BOOLEAN", "JSON", "UUID", "BLOB", "INTERVAL", "TIME"]
)
def test_other_types_are_refused(kind: str) -> None:
    """RT-036: a cast that could fail or wrap is refused while nothing is read or charged."""
    curator = clinic(engine=Untouchable())
    before = spent(curator)
    with pytest.raises(UnsupportedQuery):
        curator.ask(f"SELECT COUNT(CAST(age AS {kind})) AS n FROM visits", epsilon=1)
    assert spent(curator) == before


KEYS = ("charge", "weight", "-weight", "FLOOR(charge) / 2", "CAST(note AS DOUBLE)", "charge / 1", "GREATEST(charge, 0)")


@pytest.mark.parametrize("key", KEYS)
def test_doubles_are_no_keys(key: str) -> None:
    """RT-032: NaN, minus zero and rounding errors make no groups."""
    curator = clinic(engine=Untouchable(), budget=APPROXIMATE)
    with pytest.raises(UnsupportedQuery) as refused:
        curator.ask(f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=1, delta=1e-6)
    assert "float" in refused.value.reason
    with pytest.raises(InvalidParameter):
        clinic(keys={"charge": [0.0, -0.0]})


@engines
def test_odd_texts_are_keys_like_any_other(engine: Callable[[], Engine]) -> None:
    """RT-032: empty, with NUL, a megabyte long, or not in normal form: each a group of its own on every engine."""
    odd = ["", " ", "\0", "x" * (1 << 18), "e\u0301", "\u00e9", "A", "a", None, "\u202e", "'; DROP TABLE visits; --"]
    rows = [row(100 * i + j, kind=text) for i, text in enumerate(odd) for j in range(20)]
    sql = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
    pair = neighbours(rows + [row(9999, kind=text) for text in odd], rows, engine, budget=APPROXIMATE)
    seen = pair.judge(asking(sql, 8, "1/100", Limits(3, 1), private=True))
    assert seen.answer is not None
    assert {record["kind"] for record in seen.answer} == set(odd)


def test_public_keys_are_shown_all_of_them_and_no_other() -> None:
    """RT-044: declared keys and nothing else, people or not, in the declared order."""
    rows = [row(i, ward="D") for i in range(500)]
    for table in (rows, rows[:-1], []):
        answer = clinic(table).ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
        assert [record["ward"] for record in answer] == ["A", "B", "C"]


@pytest.mark.ci
@engines
def test_absurd_days_are_missing(engine: Callable[[], Engine]) -> None:
    """Days at the ends of the calendar make no function of dates fail."""
    days = [dt.date(1, 1, 1), dt.date(1, 1, 2), dt.date(9999, 12, 31), dt.date(1582, 10, 10), None]
    pair = neighbours(CROWD + [row(99, day=day) for day in days], CROWD, engine, budget=APPROXIMATE)
    for part in ("DATE_TRUNC('week', day)", "DATE_TRUNC('quarter', day)", "CAST(day AS TEXT)"):
        sql = f"SELECT {part} AS k, COUNT(*) AS n, SUM(MONTH(day)) AS s FROM visits GROUP BY k"
        assert pair.judge(asking(sql, 1, "1/100", Limits(3, 2), private=True)).status == "answered"


# ---------------------------------------------------------------------------------------------- the engine in Python


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_decimals_that_are_no_numbers(value: str) -> None:
    """RT-027, RT-028: a Decimal in one person's row must not make a question fail."""
    pair = neighbours([*CROWD, row(99, charge=Decimal(value))], CROWD)
    assert pair.judge(asking("SELECT SUM(charge) AS s FROM visits WHERE FLOOR(charge) < 7")).status == "answered"


def test_texts_that_are_no_unicode() -> None:
    """RT-029: half of a surrogate pair, as JSON can bring it, in one person's row must not make a question fail."""
    pair = neighbours([*CROWD, row(99, kind="\ud800", note="\udfff"), row(99, note="b")], CROWD, budget=APPROXIMATE)
    for sql in ("SELECT COUNT(*) AS n FROM visits", "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"):
        assert pair.judge(asking(sql, 1, "1/100", private="kind" in sql)).status == "answered"


def test_booleans_and_whole_numbers_are_not_confused() -> None:
    """Python's True is 1: in a public key, an id or a condition it must be neither more nor less."""
    rows = [row(i, age=1, smoker=True) for i in range(4)]
    for key, kind, shown in (("age", 1, [1, 0]), ("smoker", True, [True, False])):
        found = noises(f"SELECT {key}, COUNT(*) AS n FROM visits GROUP BY {key}", rows, keys={key: shown})
        assert found[0].keys[0] == (kind,)
        assert type(found[0].keys[0][0]) is type(kind)
    with pytest.raises(InvalidParameter):
        clinic(keys={"age": [True, False]})
    values: list[Any] = [1.0, "1", None]
    for value in values:
        with pytest.raises(InvalidParameter):
            clinic(keys={"age": [value]})
