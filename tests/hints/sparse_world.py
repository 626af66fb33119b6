"""Tables with NULL in every column that can have it: what a hint proposes must mean the same on them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from discreet.curator import Curator
from discreet.privacy import Budget
from tests.corpus.world import LARGE, Chance, Row, Table, World
from tests.plan.tables import VISITS

PEOPLE, EACH, WARDS = 60, 3, ("Bones", "Eyes", "Heart")
DAYS = dt.date(2025, 11, 1), dt.date(2026, 3, 31)


def world() -> World:
    """60 patients with three visits each, in two tables; a sixth of the values are NULL."""
    chance = Chance(20)
    visits = [_visit(chance, person) for person in range(PEOPLE) for _ in range(EACH)]
    more = [_visit(chance, person) for person in range(PEOPLE) for _ in range(EACH)]
    staff = [{"clerk": clerk, "ward": _maybe(chance, chance.one(WARDS)), "pay": clerk % 40} for clerk in range(90)]
    wards = [{"ward": ward, "floor": floor, "beds": 10 * floor} for floor, ward in enumerate(WARDS, start=1)]
    beds = [{"ward": ward, "place": place} for ward in WARDS for place in range(1_100)]
    own: Mapping[str, Any] = {"unit": "patient_id", "account": "patients", "types": _TYPES, "bounds": _BOUNDS}
    tables = [
        Table(name="visits", rows=visits, **own),
        Table(name="more", rows=more, **own),
        Table(name="staff", rows=staff, unit="clerk", types=_STAFF, bounds={"pay": (0, 50)}),
        Table(name="wards", rows=wards, types={"ward": "text", "floor": "int", "beds": "int"}),
        Table(name="beds", rows=beds, types={"ward": "text", "place": "int"}),
    ]
    return World(name="sparse", tables=tables, max_groups=40, max_rows=40)


_TYPES = {column.name: column.type.value for column in VISITS.columns.values()}
_BOUNDS = {c.name: (c.bounds.low, c.bounds.high) for c in VISITS.columns.values() if c.bounds}
_STAFF = {"clerk": "int", "ward": "text", "pay": "int"}


def _maybe(chance: Chance, value: Any) -> Any:
    return None if chance.below(6) == 0 else value


def _visit(chance: Chance, person: int) -> Row:
    made = {name: _maybe(chance, value(chance)) for name, value in _VALUES.items()}
    return {"patient_id": person, **made}


def _moment(chance: Chance) -> dt.datetime:
    return chance.moment(chance.day(*DAYS))


_VALUES: dict[str, Callable[[Chance], Any]] = {
    "ward": lambda chance: chance.one(WARDS),
    "age": lambda chance: chance.between(1, 99),
    "charge": lambda chance: float(chance.between(0, 400)),
    "weight": lambda chance: chance.between(0, 400) / 4,
    "visits_before": lambda chance: chance.between(0, 20),
    "day": lambda chance: chance.day(*DAYS),
    "seen": _moment,
    "smoker": lambda chance: chance.happens(30),
    "note": lambda chance: f"{chance.one(('Ab', 'b-c', 'C d'))}",
    "index": lambda chance: chance.between(1, 5),
    "Heart rate": lambda chance: chance.between(40, 180),
    "debt": lambda chance: chance.between(-40, 40) / 4,
}


def curator(made: World) -> Curator:
    """The world's curator, with a table of which each row is a person of its own."""
    found = made.curator()
    rows = pa.Table.from_pylist(_single())
    found.protect(rows, name="single", types={"ward": "text", "age": "int"}, bounds={"age": (0, 120)}, budget=LARGE)
    listed: dict[str, Any] = {"code": _CODES, "other": _CODES, "kind": WARDS}
    coded = pa.table({name: pa.array(WARDS, pa.string()) for name in listed})
    found.protect(coded, name="coded", types=dict.fromkeys(listed, "text"), keys=listed, budget=Budget(epsilon=10**30))
    return found


_CODES = [f"{code:04}" for code in range(4_000)]


def _single() -> list[Row]:
    chance = Chance(21)
    return [
        {"ward": _maybe(chance, chance.one(WARDS)), "age": _maybe(chance, chance.between(1, 99))} for _ in range(90)
    ]


def plain(made: World) -> duckdb.DuckDBPyConnection:
    """The tables in plain DuckDB, with the function that it does not have, as PostgreSQL defines it."""
    connection = made.plain()
    connection.register("single", pa.Table.from_pylist(_single()))
    inside = "CAST(floor((x - low) * n / (high - low)) AS INT) + 1"
    bucket = f"CASE WHEN x < low THEN 0 WHEN x >= high THEN n + 1 ELSE {inside} END"
    connection.execute("SET enable_external_access = false")
    connection.execute(f"CREATE MACRO width_bucket(x, low, high, n) AS {bucket}")
    return connection
