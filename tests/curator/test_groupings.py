"""ROLLUP, CUBE and GROUPING SETS: one question, one charge, noise for all groupings at once."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import Curator
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import UnsupportedQuery
from discreet.measurement.program.program import Program, ReleaseFormat, choose
from discreet.noise import SeededBits
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.canonical import canonical, recall, replay
from discreet.plan.model.schema import Limits, TableSchema
from discreet.privacy import Budget, Neighbours, events
from discreet.sql.select import parse
from tests.cases import every, try_all
from tests.curator.hospital import TYPES, Data, data, schemas
from tests.curator.nearness import check_alone, check_moves
from tests.curator.test_shapes import engines, frame, loaded, memory, neighbour
from tests.effort import some, tried
from tests.open_groups import unsealed

AGGREGATES = "COUNT(*) AS n, SUM(charge) AS s, GROUPING(ward) AS g"
PUBLIC = (
    f"SELECT ward, {AGGREGATES} FROM visits GROUP BY ROLLUP (ward)",
    f"SELECT ward, month(day) AS m, {AGGREGATES} FROM visits GROUP BY CUBE (ward, 2)",
    f"SELECT ward, month(day) AS m, {AGGREGATES} FROM visits GROUP BY GROUPING SETS ((ward, m), (m), ())",
    f"SELECT ward, age > 40 AS old, SUM(age) AS a, {AGGREGATES} FROM visits GROUP BY ward, ROLLUP (old, month(day))",
)
PRIVATE = (
    f"SELECT ward, day, {AGGREGATES} FROM visits GROUP BY ROLLUP (ward, day)",
    f"SELECT ward, day, {AGGREGATES}, COUNT(DISTINCT patient) AS p FROM visits GROUP BY GROUPING SETS (ward, day)",
)


def plan(
    sql: str, declared: dict[str, TableSchema], delta: str = "1e-3", edition: ReleaseFormat = ReleaseFormat.UNCUT
) -> Program:
    """Groupings that are counted each by itself, unless an edition is given."""
    asked = parse(sql, declared)
    return choose(asked, declared["visits"], epsilon=Fraction(1), delta=Fraction(delta), salt="pepper", edition=edition)


@pytest.mark.parametrize(
    ("clause", "sets"),
    [
        ("ROLLUP (ward, age)", ((0, 1), (0,), ())),
        ("ROLLUP ((ward, age), day)", ((0, 1, 2), (0, 1), ())),
        ("CUBE (ward, age)", ((0, 1), (0,), (1,), ())),
        ("GROUPING SETS ((ward, age), ward, ())", ((0, 1), (0,), ())),
        ("GROUPING SETS (ROLLUP (ward), CUBE (age))", ((0,), (), (1,))),
        ("ward, ROLLUP (age)", ((0, 1), (0,))),
        ("ROLLUP (ward), ROLLUP (age)", ((0, 1), (0,), (1,), ())),
        ("ROLLUP (ward, WARD)", ((0,), ())),
        ("GROUPING SETS ((ward, age))", ()),
        ("GROUPING SETS (ward, ward)", ()),
    ],
)
def test_the_groupings_of_a_clause(clause: str, sets: tuple[tuple[int, ...], ...]) -> None:
    assert parse(f"SELECT COUNT(*) AS n FROM visits GROUP BY {clause}", schemas(Limits(1, 1))).sets == sets


@cache
def planned(sql: str, delta: str, limits: Limits, neighbours: Neighbours) -> Program:
    """The plan, once for each declaration. For honest code only."""
    return plan(sql, schemas(limits, neighbours), delta)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", [*PUBLIC, *PRIVATE])
def test_engines_agree(sql: str) -> None:
    for seed in range(3):
        program = plan(sql, schemas(Limits(1 + seed, 1 + seed % 2)))
        memory, duck = engines(seed)
        assert len(program.readings) == (len(program.question.sets) if program.tables is None else 1)
        for reading in program.readings:
            assert unsealed(duck.read(reading)) == unsealed(memory.read(reading))


def read(program: Program, engine: Engine) -> dict[Any, tuple[int, ...]]:
    """The statistics of all groups of all groupings that meet noise."""
    width = len(program.noise.scales)
    return {
        (i, *key): row[:width] for i, r in enumerate(program.readings) for key, row in unsealed(engine.read(r)).items()
    }


def check(program: Program, one: Data, other: Data) -> None:
    """All inputs of noise together are as near as their event says; private groups of one person are few."""
    check_read(program, *(read(program, loaded(Memory(), found)) for found in (one, other)))


def check_read(program: Program, a: dict[Any, tuple[int, ...]], b: dict[Any, tuple[int, ...]]) -> None:
    """The same of what was read."""
    check_moves(program, a, b)
    private = {i for i, each in enumerate(program.groupings) if each.selection is not None}
    check_alone(program, {key: row for key, row in a.items() if key[0] in private}, b)


CASES = [(sql, delta) for sql in (*PUBLIC, *PRIVATE) for delta in ("0", "1e-3") if sql in PUBLIC or delta != "0"]


@tried(12)
@given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    who=st.integers(0, 5),
)
def test_one_person_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    def check_case(case: tuple[str, str]) -> None:
        program = planned(*case, limits, neighbours)
        one, other = (read(program, engine) for engine in (memory(seed), neighbour(seed, neighbours, who, False)))
        check_read(program, one, other)
        check_read(program, other, one)

    try_all(CASES, check_case)


def greedy() -> tuple[Data, Data]:
    """A patient who is in one more group of each grouping, at the top of all bounds."""
    found = data(4)
    row = {"patient": "zz", "ward": "A", "age": 120, "charge": 1000.0, "day": None}
    return {**found, "visits": [*found["visits"], row]}, found


def test_mutant_groupings_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each grouping counts the same people once more: noise for one of them is too little for all."""
    check(plan(PUBLIC[1], schemas(Limits(1, 1)), "0"), *greedy())
    right = QueryContribution.of
    monkeypatch.setattr(QueryContribution, "of", lambda *, shown, **options: right(shown=shown[:1], **options))
    with pytest.raises(AssertionError):
        check(plan(PUBLIC[1], schemas(Limits(1, 1)), "0"), *greedy())


def test_the_selection_is_paid_wherever_a_grouping_is_private() -> None:
    """Also if the first one is public."""
    for sql in PRIVATE:
        program = plan(sql, schemas(Limits(1, 1)))
        assert program.selection is not None
        assert isinstance(program.event, events.Composed)
        assert program.selection.event in program.event.events
        with pytest.raises(UnsupportedQuery):
            plan(sql, schemas(Limits(1, 1)), "0")
    assert plan(PRIVATE[1], schemas(Limits(1, 1))).groupings[0].selection is None


def visits(found: Data) -> Any:
    for row in found["visits"]:
        row["patient"] = row["patient"].strip()
        row["charge"] = None if row["charge"] is None or not 0 <= row["charge"] <= 1000 else row["charge"]
        row["age"] = None if row["age"] == 300 else row["age"]
        row["ward"] = row["ward"] if row["ward"] in ("A", "B", "C") else "A"
    return frame(found["visits"], TYPES["visits"])


def curator(rows: Any, **options: Any) -> Curator:
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(4))
    bounds = {"age": (0, 120), "charge": (0, 1000)}
    declared = {"unit": "patient", "bounds": bounds, "keys": {"ward": ["A", "B", "C"]}, **options}
    made.protect(rows, name="visits", **{"max_rows": 1, **declared})
    return made


@pytest.mark.ci
def test_with_much_budget_and_wide_limits_answers_are_those_of_plain_sql() -> None:
    rows = visits(data(3, patients=60))
    made = curator(rows, max_groups=40, max_rows=40, budget=Budget(epsilon=10**15, delta="0.1"))
    plain = duckdb.connect()
    plain.register("visits", rows)

    def check_values(sql: str) -> None:
        answer = made.ask(sql, epsilon=10**12, delta="1e-3")
        assert not answer.replayed
        names = [column for column in answer.columns if not column.endswith(("_low", "_high"))]
        ours = sorted((rounded(row, names) for row in answer if row["n"]), key=repr)
        theirs = [dict(zip(names, row, strict=True)) for row in plain.execute(sql).fetchall()]
        assert ours == sorted((rounded(row, names) for row in theirs), key=repr)

    try_all(some([*PUBLIC, *PRIVATE], 4), check_values)


def rounded(row: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    """A row whose charges and ages are rounded to what noise and grid leave alone."""
    return tuple(round(float(row[name] or 0), 1) if name in ("s", "a") else row[name] for name in names)


def test_one_charge_replayed_explained_and_rehearsed() -> None:
    made = curator(visits(data(3)), budget=Budget(epsilon=1))
    first = made.ask(PUBLIC[0], epsilon="0.25")
    assert str(first.remaining.loss) == "epsilon=0.75"
    assert [(row["ward"], row["g"]) for row in first] == [("A", 0), ("B", 0), ("C", 0), (None, 1)]
    again = made.ask(f"{PUBLIC[0]} HAVING GROUPING(ward) = 0 ORDER BY g DESC, n LIMIT 2", epsilon="0.25")
    assert again.replayed
    assert len(again) == 2
    assert not made.ask(
        PUBLIC[0].replace("ROLLUP (ward)", "ward").replace(", GROUPING(ward) AS g", ""), epsilon="0.25"
    ).replayed
    assert sum(entry.kind == "charge" for entry in made.history("visits")) == 2
    assert made.rehearse(PUBLIC[0]).columns == made.ask(PUBLIC[0], epsilon="0.25").columns
    assert any("Totals are the sums of their parts" in note for note in made.explain(PUBLIC[0], epsilon="0.25").notes)
    people = f"{PUBLIC[0].replace('COUNT(*)', 'COUNT(DISTINCT patient)')}"
    assert "of each grouping" in made.explain(people, epsilon="0.25").notes[0]


def test_totals_are_told_from_groups_of_null() -> None:
    """Both are None; what is printed differs, and a note names GROUPING unless it was asked for."""
    rows = [{"g": g, "h": h} for g in (1, 2, None) for h in ("(all)", None)] * 9
    made = Curator.for_tests(bits=SeededBits(1), engine=Memory())
    made.protect(rows, name="t", types={"g": "int", "h": "text"}, budget=Budget(epsilon=10**8, delta="1e-3"))
    asked = "SELECT h AS part, g, COUNT(*) AS n FROM t GROUP BY CUBE (g, h)"
    answer = made.ask(f"{asked} HAVING n > 0 ORDER BY n DESC, part, g", epsilon=10**6, delta="1e-6")
    assert [sorted(left) for left in answer.totals[:4]] == [["g", "part"], ["g"], ["g"], ["part"]]
    assert [(row["part"], row["g"]) for row in answer.records[:4]] == [
        (None, None),
        ("(all)", None),
        (None, None),
        (None, 1),
    ]
    assert [line.split()[:2] for line in str(answer).splitlines()[3:6]] == [
        ["(all)", "(all)"],
        ["(all)", "(all)"],
        ["NULL", "(all)"],
    ]
    assert answer._repr_html_().count("(all)") > 6
    assert "NULL · (all)" in str(answer.chart().to_dict() if hasattr(answer.chart(), "to_dict") else answer.chart())
    assert [row["g"] for row in answer.to_arrow().to_pylist()[:2]] == [None, None]
    (note,) = [note for note in answer.notes if "GROUPING" in note]
    assert note in made.explain(asked, epsilon=1).notes
    told = made.ask(asked.replace(", COUNT", ", GROUPING(g) AS t, COUNT"), epsilon=10**6, delta="1e-6")
    assert not any("GROUPING" in note for note in told.notes)
    assert [("g" in left) == row["t"] for left, row in zip(told.totals, told, strict=True)]
    assert made.ask("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=1, delta="1e-6").totals == ()
    keys = made.ask("SELECT g, GROUPING(g) AS t FROM t GROUP BY ROLLUP (g)", epsilon=10**6, delta="1e-6")
    assert [(row["g"], row["t"]) for row in keys] == [(1, 0), (2, 0), (None, 0), (None, 1)]


def test_private_groups_come_in_the_order_of_their_type() -> None:
    days = [dt.date(2026, 2, 3), dt.date(2026, 10, 1), dt.date(2025, 12, 31)]
    keys: dict[str, list[Any]] = {
        "i": [10, 2, 1, -5, None],
        "d": [*days, None],
        "s": ["b", "B", "a b", "a", "é", "it's", None],
    }
    for name, values in keys.items():
        rows = [{"i": None, "d": None, "s": None} | {name: value} for value in values for _ in range(20)]
        for made in (Curator.for_tests(bits=SeededBits(1), engine=engine()) for engine in (Memory, DuckDB)):
            source = (
                rows
                if isinstance(made._engine, Memory)
                else pl.DataFrame(rows, schema={"i": pl.Int64, "d": pl.Date, "s": pl.Utf8})
            )
            types = {"i": "int", "d": "date", "s": "text"}
            made.protect(source, name="t", types=types, budget=Budget(epsilon=10**8, delta="1e-3"))
            answer = made.ask(f"SELECT {name} AS k, COUNT(*) AS n FROM t GROUP BY ALL", epsilon=10**6, delta="1e-6")
            present = sorted(value for value in values if value is not None)
            assert [row["k"] for row in answer] == [*present, None]
            assert answer.to_pandas()["k"].tolist()[:3] == present[:3]
            made.close()


def test_several_groupings_are_not_recalled_as_one() -> None:
    declared = schemas(Limits(1, 1))
    plain = parse("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", declared)
    assert recall(canonical(plain), plain) is not None
    several = recall(canonical(parse(PUBLIC[0], declared)), plain)
    assert several is not None
    assert several.sets == ((0,), ())


def test_other_groupings_are_other_questions() -> None:
    clauses = ("ward, age", "ROLLUP (ward, age)", "CUBE (ward, age)", "GROUPING SETS ((ward, age), (ward))")
    declared = schemas(Limits(1, 1))
    assert len({replay(parse(f"SELECT COUNT(*) AS n FROM visits GROUP BY {c}", declared)) for c in clauses}) == 4


@every(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM visits GROUP BY CUBE (ward, age, day, age + 1, age + 2, age + 3)",
        f"SELECT COUNT(*) AS n FROM visits GROUP BY CUBE ({', '.join(f'age + {i}' for i in range(200))})",
        f"SELECT COUNT(*) AS n FROM visits GROUP BY {', '.join(['ROLLUP (ward, age, day)'] * 9)}",
        f"SELECT COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ({', '.join(f'(age + {i})' for i in range(40))})",
        "SELECT COUNT(*) AS n FROM visits GROUP BY GROUPING SETS (())",
        "SELECT COUNT(*) AS n FROM visits GROUP BY ROLLUP (patient)",
        "SELECT COUNT(*) AS n FROM visits GROUP BY ROLLUP (charge)",
        "SELECT COUNT(*) AS n FROM visits GROUP BY ROLLUP (COUNT(*))",
        "SELECT age, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)",
        "SELECT COUNT(*) AS n, GROUPING(age) AS g FROM visits GROUP BY ROLLUP (ward)",
        "SELECT COUNT(*) AS n, GROUPING(patient) AS g FROM visits GROUP BY ROLLUP (ward)",
        "SELECT COUNT(*) AS n, GROUPING(ward) AS g FROM visits GROUP BY ward",
        "SELECT COUNT(*) AS n FROM visits WHERE GROUPING(ward) = 0 GROUP BY ROLLUP (ward)",
        "SELECT SUM(GROUPING(ward)) AS n FROM visits GROUP BY ROLLUP (ward)",
        "SELECT COUNT(*) AS n FROM (SELECT patient, COUNT(*) AS k FROM visits GROUP BY ROLLUP (patient)) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT patient, COUNT(*) AS k FROM visits GROUP BY patient, ROLLUP (ward)) AS t",
        'SELECT "#grouping0" AS g, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)',
        "SELECT COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward) WITH TOTALS",
    ],
)
def test_what_is_refused(sql: str) -> None:
    with pytest.raises(UnsupportedQuery):
        parse(sql, schemas(Limits(1, 1)))
