"""Keys whose values follow from the question and the declarations: public, complete, and never read from data."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import Curator
from discreet.curator.catalog.declarations import declare
from discreet.engines import DuckDB, Memory
from discreet.errors import UnsupportedQuery
from discreet.measurement.program.program import Program, choose, public_keys
from discreet.noise import SeededBits, uniform_below
from discreet.plan.analysis.group_keys import MOST_VALUES, values
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Neighbours
from discreet.sql.select import parse
from tests.cases import every, try_all
from tests.curator.test_neighbours import check_within
from tests.effort import tried
from tests.open_groups import unsealed

TYPES = {
    "patient": Type.INT,
    "ward": Type.TEXT,
    "age": Type.INT,
    "charge": Type.FLOAT,
    "kind": Type.TEXT,
    "day": Type.DATE,
    "moment": Type.TIMESTAMP,
    "flag": Type.BOOL,
}
Row = dict[str, Any]

BANDS = "CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END"
EXPECTED: dict[str, tuple[Any, ...]] = {
    "WIDTH_BUCKET(charge, 0, 100, 4)": (0, 1, 2, 3, 4, 5, None),
    "WIDTH_BUCKET(age, -1.5, 100, 2)": (0, 1, 2, 3, None),
    BANDS: ("child", "adult", "old"),
    "CASE WHEN charge > 3 THEN 'a' WHEN kind = 'b' THEN 'a' END": ("a", None),
    "EXTRACT(MONTH FROM day)": (*range(1, 13), None),
    "QUARTER(day)": (1, 2, 3, 4, None),
    "ISODOW(moment)": (*range(1, 8), None),
    "HOUR(moment)": (*range(24), None),
    "COALESCE(MONTH(day), 0)": tuple(range(13)),
    "flag": (False, True, None),
    "charge > 3": (False, True, None),
    "charge IS NULL": (False, True),
    "COALESCE(flag, FALSE)": (False, True),
    "CAST(FLOOR(age / 10) AS INT)": (*range(13), None),
    "age // 50": (0, 1, 2, None),
    "LOWER(ward)": ("a", "b", "c"),
    "CASE WHEN ward IN ('A', 'B') THEN ward ELSE 'other' END": ("A", "B", "other"),
    "COALESCE(ward, 'none')": ("A", "B", "C", "none"),
    "CASE WHEN ward = 'A' THEN NULL ELSE ward END": ("B", "C", None),
    "age": (*range(121), None),
    "CAST(age // 40 AS TEXT)": ("0", "1", "2", "3", None),
}
PRIVATE = ("kind", "UPPER(kind)", "YEAR(day)", "age * 1000 + YEAR(day)", "DATE_TRUNC('month', day)", "LENGTH(kind)")


TWO = Limits(2, 1)


def schema(limits: Limits = TWO, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> TableSchema:
    return declare(
        "visits",
        TYPES,
        unit="patient",
        bounds={"age": (0, 120), "charge": (0, 1000)},
        keys={"ward": ["A", "B", "C"]},
        limits=limits,
        neighbours=neighbours,
        version="1",
    )


@lru_cache(maxsize=1024)
def rows(seed: int, patients: int = 10) -> list[Row]:
    """Of which nobody changes any."""
    bits = SeededBits(seed)

    def pick(*few: Any) -> Any:
        return few[uniform_below(len(few), bits=bits)]

    return [
        {
            "patient": patient,
            "ward": pick("A", "B", "C", "D", None),
            "age": pick(None, 5, 44, 67, 120, 300, -4),
            "charge": pick(None, 0.0, 99.99999999999999, 100.0, 25.0, -3.0, 1e308, float("nan")),
            "kind": pick("b", "c", None),
            "day": pick(None, dt.date(2026, 2, 28), dt.date(1, 12, 31)),
            "moment": pick(None, dt.datetime(2026, 2, 28, 23, 59), dt.datetime(1970, 1, 1)),
            "flag": pick(None, True, False),
        }
        for patient in range(patients)
        for _ in range(1 + uniform_below(3, bits=bits))
    ]


def sql(key: str) -> str:
    return f"SELECT {key} AS k, COUNT(*) AS n, SUM(charge) AS s FROM visits GROUP BY 1"


def program(key: str, declared: TableSchema, delta: str = "0") -> Program:
    asked = parse(sql(key), {"visits": declared})
    return choose(asked, declared, epsilon=Fraction(1), delta=Fraction(delta), salt="pepper")


@cache
def planned(key: str, limits: Limits, neighbours: Neighbours) -> Program:
    """The plan, once for each declaration. For honest code only."""
    return program(key, schema(limits, neighbours))


@every("key", EXPECTED)
def test_the_values_of_an_expression(key: str) -> None:
    question = parse(sql(key), {"visits": schema()})
    assert values(question.keys[0].expression, schema()) == EXPECTED[key]
    assert public_keys(question, schema()) == tuple((value,) for value in EXPECTED[key])


@pytest.mark.parametrize("key", PRIVATE)
def test_what_has_no_known_end_stays_private(key: str) -> None:
    assert public_keys(parse(sql(key), {"visits": schema()}), schema()) is None
    with pytest.raises(UnsupportedQuery):
        program(key, schema())
    assert program(key, schema(), "1e-6").selection is not None


@every("key", EXPECTED)
def test_every_row_within_its_declarations_has_one_of_the_values(key: str) -> None:
    expression = parse(sql(key), {"visits": schema()}).keys[0].expression
    listed = set(EXPECTED[key])
    for row in rows(3, 200):
        clean = row["charge"] == row["charge"] and row["ward"] in ("A", "B", "C")
        if clean and (row["age"] is None or 0 <= row["age"] <= 120):
            assert evaluate(expression, row) in listed


@pytest.mark.ci
def test_engines_agree() -> None:
    memory, found = Memory(), rows(5, 60)
    memory.register("visits", found, TYPES)
    kinds = {Type.TEXT: pl.String, Type.INT: pl.Int64, Type.FLOAT: pl.Float64, Type.DATE: pl.Date}
    kinds[Type.BOOL] = pl.Boolean
    frame = pl.DataFrame(found, schema={n: kinds.get(k, pl.Datetime("us")) for n, k in TYPES.items()})
    with DuckDB(threads=1) as engine:
        engine.register("visits", frame, TYPES)
        for key in EXPECTED:
            reading = program(key, schema()).reading
            assert unsealed(engine.read(reading)) == unsealed(memory.read(reading)), key


@tried(15)
@given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    who=st.integers(0, 9),
)
def test_one_person_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    found = rows(seed)
    other = [row for row in found if row["patient"] != who]
    if neighbours is Neighbours.REPLACE:
        other += [{**row, "patient": who} for row in rows(seed + 1) if row["patient"] == 0]
    engines = _loaded(found), _loaded(other)

    def check(key: str) -> None:
        made = planned(key, limits, neighbours)
        one, two = (unsealed(engine.read(made.reading)) for engine in engines)
        assert one.keys() | two.keys() <= set(made.reading.public_keys or ())
        check_within(made, one, two)

    try_all(EXPECTED, check)


def _loaded(found: list[Row]) -> Memory:
    engine = Memory()
    engine.register("visits", found, TYPES)
    return engine


def test_the_groups_of_an_answer_do_not_depend_on_the_data() -> None:
    """A mutant list, made of what is there, would show it: here nobody is there at all."""
    for found in ([], rows(7)):
        curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
        types = {name: kind.value for name, kind in TYPES.items()}
        curator.protect(found, name="visits", types=types, unit="patient", max_rows=1, budget=Budget(epsilon=1))
        answer = curator.ask(f"SELECT {BANDS} AS band, COUNT(*) AS n FROM visits GROUP BY 1", epsilon="0.5")
        assert [row["band"] for row in answer] == ["child", "adult", "old"]
        assert curator.ask(f"SELECT COUNT(*) AS m, {BANDS} AS b FROM visits GROUP BY 2", epsilon="0.5").replayed


def test_a_number_of_groups_beyond_reason_stays_private() -> None:
    asked = parse("SELECT COUNT(*) AS n FROM visits GROUP BY age, HOUR(moment)", {"visits": schema()})
    assert MOST_VALUES < 122 * 25
    assert public_keys(asked, schema()) is None
    few = parse("SELECT COUNT(*) AS n FROM visits GROUP BY ward, HOUR(moment)", {"visits": schema()})
    assert len(public_keys(few, schema()) or ()) == 75


def test_a_limit_on_a_persons_rows_makes_no_public_keys() -> None:
    """The bounds of a count of one person's rows are limits: more rows are not unheard of, and stay a group."""
    inner = "SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient"
    text = f"SELECT n, COUNT(*) AS people FROM ({inner}) AS t GROUP BY n"
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    found = [{"patient": i // 3, "age": 1} for i in range(3000)]
    types = {"patient": "int", "age": "int"}
    curator.protect(found, name="visits", types=types, unit="patient", max_rows=1, budget=Budget(epsilon=9, delta=0.1))
    answer = curator.ask(text, epsilon=1)
    assert [row["n"] for row in answer] == [3]
    assert curator.ask(text.replace("COUNT(*) AS n", "COUNT(*) // 2 AS n"), epsilon=1)[0]["n"] == 1


@every(
    "call",
    [
        "WIDTH_BUCKET(age, 0, 100, 0)",
        "WIDTH_BUCKET(age, 0, 100, -3)",
        "WIDTH_BUCKET(age, 0, 100, 1001)",
        "WIDTH_BUCKET(age, 0, 100, 9223372036854775807)",
        "WIDTH_BUCKET(age, 0, 100, 2.5)",
        "WIDTH_BUCKET(age, 5, 5, 3)",
        "WIDTH_BUCKET(age, 9, 5, 3)",
        "WIDTH_BUCKET(age, -1.5e308, 1.5e308, 3)",
        "WIDTH_BUCKET(age, charge, 100, 3)",
        "WIDTH_BUCKET(age, 0, charge, 3)",
        "WIDTH_BUCKET(age, 0, 100, age)",
        "WIDTH_BUCKET(age, 0, NULL, 3)",
        "WIDTH_BUCKET(kind, 0, 100, 3)",
        "WIDTH_BUCKET(age, 0, 100)",
    ],
)
def test_buckets_that_are_refused(call: str) -> None:
    with pytest.raises(UnsupportedQuery):
        parse(sql(call), {"visits": schema()})


def test_buckets_are_those_of_the_standard() -> None:
    """Against exact fractions; for whole numbers every edge is where it should be."""
    for low, high, count in ((0, 100, 100), (0, 100, 7), (-3, 17, 10), (1, 1000, 999)):
        asked = parse(sql(f"WIDTH_BUCKET(age, {low}, {high}, {count})"), {"visits": schema()})
        for age in (*range(low - 2, min(high, 200) + 3), high - 1, high):
            exact = (Fraction(age - low) * count / (high - low)).__floor__() + 1
            found = evaluate(asked.keys[0].expression, {"age": age})
            assert found == max(0, min(count + 1, exact)), (low, high, count, age)
