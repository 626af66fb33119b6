"""Doubles as group keys: of public tables with few decimals, and rounded ones; shown as plain SQL shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import Curator
from discreet.curator.catalog.public_tables import written_with
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Neighbours
from tests.curator.hospital import TYPES, Data, add_patient, data, without
from tests.curator.hospital import schemas as hospital
from tests.curator.nearness import check_alone, check_moves
from tests.curator.test_shapes import frame, loaded, plan
from tests.effort import tried
from tests.open_groups import unsealed

BY_RATE = "SELECT w.rate, COUNT(*) AS n FROM visits AS v JOIN rates AS w ON w.ward = v.ward GROUP BY w.rate"
BY_ROUND = "SELECT ROUND(charge, 1) AS r, COUNT(*) AS n FROM (SELECT patient, charge FROM visits) AS v GROUP BY 1"
QUESTIONS = {
    "public": BY_RATE,
    "twice": BY_RATE.replace("w.rate,", "w.rate, w.rate * 2 AS twice,"),
    "last": "SELECT r, COUNT(*) AS n FROM (SELECT v.patient, LAST(w.rate ORDER BY v.day) AS r FROM visits AS v JOIN"
    " rates AS w ON w.ward = v.ward WHERE v.day IS NOT NULL GROUP BY v.patient) AS t GROUP BY r",
    "rounded": BY_ROUND,
    "quarters": BY_ROUND.replace("ROUND(charge, 1)", "FLOOR(charge * 4) / 4"),
}
RATES = [("A", 0.1), ("B", 12.75), ("C", -3.0), ("D", None), (None, 7.0)]


def schemas(
    limits: Limits, neighbours: Neighbours = Neighbours.ADD_REMOVE, decimals: int = 2
) -> dict[str, TableSchema]:
    """The hospital, and rates of wards: the public table of wards under another name and with doubles."""
    found = hospital(limits, neighbours)
    ward, floor = found["wards"].columns["ward"], found["wards"].columns["floor"]
    rate = replace(floor, name="rate", type=Type.FLOAT, decimals=decimals)
    return {**found, "rates": replace(found["wards"], name="rates", columns={"ward": ward, "rate": rate})}


def with_rates(engine: Engine, found: Data) -> Engine:
    types = {"ward": Type.TEXT, "rate": Type.FLOAT}
    rows: list[dict[str, Any]] = [{"ward": ward, "rate": rate} for ward, rate in RATES]
    engine.register("rates", rows if isinstance(engine, Memory) else frame(rows, types), types, public=True)
    return loaded(engine, found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", QUESTIONS)
def test_engines_agree(name: str) -> None:
    for seed in range(3):
        program, found = plan(QUESTIONS[name], schemas(Limits(1 + seed, 1))), data(seed)
        with DuckDB(threads=1) as engine:
            read = unsealed(with_rates(engine, found).read(program.reading))
        assert read == unsealed(with_rates(Memory(), found).read(program.reading)), seed


@pytest.mark.parametrize("name", QUESTIONS)
@tried(12)
@given(
    seed=st.integers(0, 10**6),
    neighbours=st.sampled_from(list(Neighbours)),
    decimals=st.integers(0, 3),
    who=st.integers(0, 5),
)
def test_one_person_moves_no_input_farther_than_charged(
    name: str, seed: int, neighbours: Neighbours, decimals: int, who: int
) -> None:
    """Whether or not the decimals that were found are still enough."""
    program, found = plan(QUESTIONS[name], schemas(Limits(1 + seed % 3, 1), neighbours, decimals)), data(seed)
    other = without(found, f"p{who}")
    if neighbours is Neighbours.REPLACE:
        other = {**other, "visits": [*other["visits"]], "labs": [*other["labs"]]}
        add_patient(other, f"p{who}", SeededBits(seed + 1))
    read = [unsealed(with_rates(Memory(), state).read(program.reading)) for state in (found, other)]
    check_both(program, *read)


def check_both(program: Any, one: Any, other: Any) -> None:
    check_moves(program, one, other)
    check_alone(program, one, other)
    check_alone(program, other, one)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", QUESTIONS)
def test_with_much_budget_and_wide_limits_answers_are_those_of_plain_sql(name: str) -> None:
    found = data(3, patients=60)
    for place, row in enumerate(found["visits"]):
        row["patient"] = row["patient"].strip()
        row["charge"] = None if row["charge"] is None or not 0 <= row["charge"] <= 1000 else row["charge"] / 3 // 0.07
        row["charge"] = None if row["charge"] is None else min(row["charge"], 2) / 7
        row["day"] = None if row["day"] is None else row["day"].replace(day=1 + place % 28)
    visits = frame([*found["visits"]], TYPES["visits"]).unique(["patient", "day"], keep="first")
    rates = pl.DataFrame(RATES, schema={"ward": pl.String, "rate": pl.Float64}, orient="row")
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(4))
    curator.public(rates, name="rates")
    budget = Budget(epsilon=10**15, delta="1e-2")
    bounds: Any = {"charge": (0, 1000)}
    curator.protect(visits, name="visits", unit="patient", max_groups=40, max_rows=40, budget=budget, bounds=bounds)
    answer = curator.ask(QUESTIONS[name], epsilon=10**12, delta="1e-3")
    plain = duckdb.connect()
    plain.register("visits", visits)
    plain.register("rates", rates)
    (key, *_) = answer.columns
    ours = {row[key]: row["n"] for row in answer}
    theirs = {row[0]: row[-1] for row in plain.execute(QUESTIONS[name]).fetchall()}
    assert {value: n for value, n in ours.items() if n} == {
        value: n for value, n in theirs.items() if n > 1 or value in ours
    }
    if name == "twice":
        assert all(row["twice"] is None or row["twice"] == 2 * row[key] for row in answer)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([1.0, -2.0, None], 0),
        ([1.0, 0.1], 1),
        ([0.1, 0.2, 0.1 + 0.2], None),  # the double beside 0.3
        ([12.345678], 6),
        ([12.3456789], None),
        ([1e300], None),
        ([2.0**53, float("nan"), float("inf")], 0),
        ([], 0),
        ([-0.0], 0),
    ],
)
def test_decimals_of_a_public_column(values: list[float | None], decimals: int | None) -> None:
    types = {"rate": Type.FLOAT}
    for engine in (Memory(), DuckDB(threads=1)):
        with engine:
            rows: Any = [{"rate": value} for value in values]
            engine.register("rates", rows if isinstance(engine, Memory) else frame(rows, types), types, public=True)
            assert written_with("rates", "rate", Type.FLOAT, engine) == decimals


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT charge, COUNT(*) AS n FROM visits GROUP BY charge",
        "SELECT charge / 10 AS c, COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT age / 10 AS c, COUNT(*) AS n FROM visits GROUP BY 1",
        BY_RATE.replace("w.rate", "w.rate / 3"),
        "SELECT ROUND(charge * 0) / 0 AS c, COUNT(*) AS n FROM (SELECT patient, charge FROM visits) AS v GROUP BY 1",
        "SELECT FLOOR(charge) / 2 AS c, COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT FLOOR(charge * 3) / 2 AS c, COUNT(*) AS n FROM visits GROUP BY 1",
    ],
)
def test_what_would_be_rounding_errors_is_refused(sql: str) -> None:
    with pytest.raises(UnsupportedQuery, match="rounding errors"):
        plan(sql, schemas(Limits(1, 1)))
