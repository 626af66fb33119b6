"""Probes where other tables tell whose rows they are, and where people are several columns: each person counts once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import Curator
from discreet.curator.asking.planner import limits_probes
from discreet.engines import DuckDB, Engine, Memory
from discreet.measurement.probes.probes import BoundsProbe, describe_counted_rows
from discreet.measurement.program.program import Program
from discreet.noise import SeededBits
from discreet.plan.model.readings import Groups
from discreet.plan.model.schema import Limits, TableSchema
from discreet.privacy import Budget, PureDP
from discreet.sql.select import parse
from tests.curator.shop import DAYS, TYPES, UNITS, Data, data, frame, loaded, schemas, without
from tests.effort import rounds, some, tried
from tests.open_groups import unsealed

SPOTS = [("orders", "total"), ("items", "price"), ("notes", "stars"), ("steps", "count"), ("meals", "kcal")]
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM items",
    "SELECT kind, COUNT(*) AS n FROM items GROUP BY kind",
    "SELECT c.city, COUNT(*) AS n FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY c.city",
    "SELECT kind, COUNT(*) AS n FROM meals GROUP BY kind",
]


def bare() -> dict[str, TableSchema]:
    """The shop without any bounds."""
    return {
        name: replace(schema, columns={c.name: replace(c, bounds=None) for c in schema.columns.values()})
        for name, schema in schemas(Limits(2, 2)).items()
    }


def probes() -> list[Program]:
    known = bare()
    found = [BoundsProbe(known, table, column, "salt").program(PureDP(1).epsilon) for table, column in SPOTS]
    for sql in QUESTIONS:
        plan = parse(sql, known)
        made = limits_probes(plan, describe_counted_rows(plan, known), known, "salt")
        assert made
        found += [probe.program(PureDP(1).epsilon) for probe in made]
    return found


PROGRAMS = probes()


def distance(one: Groups, other: Groups) -> int:
    return sum(abs(one.get(key, (0,))[0] - other.get(key, (0,))[0]) for key in {**one, **other})


def neighbours(seed: int) -> list[tuple[Data, Data]]:
    """With and without a customer; with and without one person's day."""
    found, names = data(seed), [f"c{place}" for place in range(5)]
    day = DAYS[seed % len(DAYS)]
    kept = {
        "steps": [row for row in found["steps"] if ((row["person"] or "").strip(), row["day"]) != ("x", day)],
        "meals": [row for row in found["meals"] if (row["who"], row["date"]) != ("x", day)],
    }
    return [(found, without(found, names[seed % 5], names)), (found, {**found, **kept})]


def engines(seed: int) -> list[tuple[Engine, Engine]]:
    """The neighbours of a seed, ready to be read by all programs."""
    return [(loaded(Memory(), one), loaded(Memory(), other)) for one, other in neighbours(seed)]


@tried(25)
@given(seed=st.integers(0, 10**6))
def test_a_person_counts_once(seed: int) -> None:
    for one, other in engines(seed):
        for place, program in enumerate(PROGRAMS):
            assert distance(unsealed(one.read(program.reading)), unsealed(other.read(program.reading))) <= 1, place


@pytest.mark.ci
def test_the_check_notices_people_who_count_often() -> None:
    loose = [
        replace(p.reading, bounding=replace(p.reading.bounding, groups=9, rows=9))
        for p in PROGRAMS[:5]
        if p.reading.bounding
    ]
    pairs = [pair for seed in range(20) for pair in engines(seed)]
    assert (
        max(
            distance(unsealed(one.read(reading)), unsealed(other.read(reading)))
            for reading in loose
            for one, other in pairs
        )
        > 1
    )


def test_engines_agree() -> None:
    for seed in range(rounds(3, 1)):
        found = data(seed)
        memory, duckdb = loaded(Memory(), found), loaded(DuckDB(threads=1), found)
        for program in some(PROGRAMS, 2):
            assert unsealed(memory.read(program.reading)) == unsealed(duckdb.read(program.reading))


@pytest.mark.ci
def test_a_shop_without_bounds_is_asked_in_one_call() -> None:
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(3))
    found = data(5, customers=400)
    for table in ("customers", "orders", "items"):
        types = {name: kind.value for name, kind in TYPES[table].items()}
        made.protect(
            frame(table, found[table]),
            name=table,
            unit=UNITS[table],
            account="shop",
            types=types,
            budget=Budget(epsilon=500),
            max_rows=3,
        )
    for sql in ("SELECT AVG(price) AS m FROM items", "SELECT SUM(total) AS s FROM orders"):
        answer = made.ask(sql, epsilon=50, limits="choose")
        assert answer.cost.details == PureDP(50)
        assert "chosen privately" in " ".join(answer.notes)
    assert made.ask("SELECT AVG(price + 1) AS m FROM items", epsilon=1).cost.details == PureDP(1)
