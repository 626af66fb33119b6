"""No number of rows of one person changes whether a join is answered, what it costs and what is said of it.

Each side of a join is cut before rows multiply. Random joins on neighbours are answered alike, and differ by no more
than was paid, on several engines; a cut that is left out, that looks at other people, or at sides that only answer
whether there is a row, is noticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet import Budget, Curator
from discreet.audit.queries.recorder import QueryRecord, RecordingEngine
from discreet.curator import Answer
from discreet.curator.catalog import catalog
from discreet.engines import DuckDB, Engine, Memory
from discreet.engines.memory import relation_rows as memory_relations
from discreet.engines.memory.relation_rows import gather
from discreet.errors import UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.analysis import join_rows
from discreet.plan.model.nodes import UNIT, Relation
from discreet.plan.model.relations import Cut, Join, SemiJoin, children, with_children
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from tests.curator.many_rows import question, world
from tests.curator.test_joined_fuzz import judged, replaced
from tests.engines.postgres_tables import PostgresOfRows, PostgresTables
from tests.engines.spark_tables import SparkOfRows
from tests.engines.tables import arrow
from tests.open_groups import unsealed
from tests.redteam.salts import same_salt

Engines = Callable[[], RecordingEngine]

QUICK, PAIRS, BATCH, SAME_WORLD = 5, 500, 50, 5
MOST = 64


@pytest.fixture(autouse=True)
def salted() -> Iterator[None]:
    """Neighbours keep the same rows."""
    with same_salt():
        yield


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuts that a few rows reach."""
    monkeypatch.setattr(join_rows, "ROWS", (3, 2))
    monkeypatch.setattr(join_rows, "MOST_PAIRS", MOST)


def memory() -> RecordingEngine:
    return RecordingEngine(Memory())


def duckdb() -> RecordingEngine:
    return RecordingEngine(DuckDB(threads=1))


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Joins that the referee makes have no more rows of a person than they may; how many cuts left rows out."""
    seen: Counter[str] = Counter()
    cut, join = gather.dispatch(Cut), gather.dispatch(Join)

    def cutting(relation: Cut, tables: Any, declared: Any) -> list[Any]:
        before = Counter(row[UNIT] for row in gather(relation.source, tables, declared) if row[UNIT] is not None)
        seen["bound"] += max(before.values(), default=0) > relation.rows
        return cut(relation, tables, declared)

    def joining(relation: Join, tables: Any, declared: Any) -> list[Any]:
        found = join(relation, tables, declared)
        sides = [_rows_by_unit(gather(side, tables, declared)) for side in children(relation)]
        for who, rows in _rows_by_unit(found).items():
            assert rows <= max(MOST, *(side[who] for side in sides)), relation
        return found

    gather.register(Cut, cutting)
    gather.register(Join, joining)
    try:
        yield seen
    finally:
        gather.register(Cut, cut)
        gather.register(Join, join)


def _rows_by_unit(rows: list[Any]) -> Counter[Any]:
    return Counter(row[UNIT] for row in rows if row.get(UNIT) is not None)


def judge(seeds: range, engine: Engines = memory) -> list[QueryRecord]:
    """Asks on neighbouring worlds: status, charge, notes, and how far the inputs of noise move."""
    found: list[QueryRecord] = []
    for start in range(seeds.start, seeds.stop, SAME_WORLD):
        made: list[RecordingEngine] = []

        def kept(made: list[RecordingEngine] = made) -> RecordingEngine:
            made.append(engine())
            return made[-1]

        stop = min(start + SAME_WORLD, seeds.stop)
        found += judged(world(start), [question(seed) for seed in range(start, stop)], kept)
        for one in made:
            one.close()
    return found


def check_answered(found: list[QueryRecord]) -> None:
    assert sum(seen.status == "answered" for seen in found) >= 0.9 * len(found)
    assert any(seen.answer is not None and "of each joined table" in " ".join(seen.answer.notes) for seen in found)


@pytest.mark.ci
@pytest.mark.usefixtures("small")
def test_neighbours_differ_by_noise_alone() -> None:
    with counted() as seen:
        check_answered(judge(range(QUICK)))
    assert seen["bound"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("start", range(QUICK, QUICK + PAIRS, BATCH))
def test_neighbours_differ_by_noise_alone_at_length(start: int) -> None:
    with counted() as seen:
        check_answered(judge(range(start, start + BATCH)))
    assert seen["bound"] > BATCH


@pytest.mark.ci
@pytest.mark.usefixtures("small")
def test_neighbours_on_duckdb_differ_by_noise_alone() -> None:
    check_answered(judge(range(2), duckdb))


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("start", range(QUICK, QUICK + PAIRS, BATCH))
def test_neighbours_on_duckdb_differ_by_noise_alone_at_length(start: int) -> None:
    check_answered(judge(range(start, start + BATCH), duckdb))


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("start", range(QUICK, QUICK + PAIRS, BATCH))
def test_neighbours_on_postgres_differ_by_noise_alone(start: int, postgres_tables: PostgresTables) -> None:
    check_answered(judge(range(start, start + BATCH), lambda: RecordingEngine(PostgresOfRows(postgres_tables))))


@pytest.mark.ci
@pytest.mark.usefixtures("small")
def test_engines_keep_the_same_rows(postgres_tables: PostgresTables) -> None:
    check_engines(range(SAME_WORLD), postgres_tables)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_engines_keep_the_same_rows_at_length(postgres_tables: PostgresTables) -> None:
    check_engines(range(100, 200), postgres_tables)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_spark_keeps_the_same_rows(spark_session: Any, tmp_path: Path) -> None:
    check_engines(range(200, 210), lambda: SparkOfRows(spark_session, tmp_path))


def check_engines(seeds: range, other: PostgresTables | Callable[[], Engine]) -> None:
    """What the referee read of one neighbour is what others read of the same rows in another order."""
    for start in range(seeds.start, seeds.stop, SAME_WORLD):
        state, referee = world(start), memory()
        turned = {name: rows[::-1] for name, rows in state.one.items()}
        third = PostgresOfRows(other) if isinstance(other, PostgresTables) else other()
        with (
            state.curator(referee, state.one) as curator,
            state.filled(DuckDB(threads=1), turned) as duckdb,
            state.filled(third, turned) as database,
        ):
            referee.seen.clear()
            for seed in range(start, start + SAME_WORLD):
                curator.ask(question(seed).sql, epsilon=1)
            for reading, groups in referee.seen:
                assert unsealed(duckdb.read(reading)) == groups
                assert unsealed(database.read(reading)) == groups


# ------------------------------------------------------------------------------------- the constants and very many rows

TYPES = {"patient": Type.INT, "day": Type.INT, "x": Type.FLOAT}
WIDE = Limits(rows=10**6)


def curator_of(engine: Engine, rows: int) -> Curator:
    """A table of ten people with one row each, and of one with so many."""
    made = Curator.for_tests(engine=engine, bits=SeededBits(1))
    table = [{"patient": who, "day": 1, "x": 1.0} for who in range(10)]
    table += [{"patient": 10, "day": day, "x": 2.0} for day in range(rows)]
    source = arrow(table, TYPES) if isinstance(engine, DuckDB) else table
    types = {name: kind.value for name, kind in TYPES.items()}
    made.protect(
        source, name="v", unit="patient", max_rows=1, types=types, bounds={"x": (0, 5)}, budget=Budget(epsilon=100)
    )
    return made


def chain(count: int) -> str:
    joins = (f"JOIN v AS a{i} ON a{i}.patient = a{i - 1}.patient" for i in range(1, count))
    return f"SELECT COUNT(*) AS n FROM v AS a0 {' '.join(joins)} WHERE a0.patient = 10"


ASKED = {
    "two copies": chain(2),
    "five copies": chain(5),
    "by day": "SELECT COUNT(*) AS n FROM v AS a JOIN v AS b ON a.patient = b.patient AND a.day = b.day",
    "outer": "SELECT COUNT(*) AS n FROM v AS a LEFT JOIN v AS b ON a.patient = b.patient",
    "lateral": (
        "SELECT COUNT(*) AS n FROM v AS a JOIN LATERAL (SELECT b.x AS x FROM v AS b WHERE b.patient = a.patient "
        "AND b.day < a.day) AS c ON TRUE"
    ),
    "correlated": (
        "SELECT COUNT(*) AS n FROM v AS a WHERE (SELECT COUNT(*) FROM v AS b WHERE b.patient = a.patient "
        "AND b.day < a.day) > 2"
    ),
    "exists": (
        "SELECT COUNT(*) AS n FROM v AS a WHERE EXISTS (SELECT 1 FROM v AS b WHERE b.patient = a.patient "
        "AND b.day <> a.day)"
    ),
    "exists before": (
        "SELECT COUNT(*) AS n FROM v AS a WHERE EXISTS (SELECT 1 FROM v AS b WHERE b.patient = a.patient "
        "AND b.day < a.day)"
    ),
    "union": (
        "WITH u AS (SELECT patient, day FROM v UNION ALL SELECT patient, day FROM v) "
        "SELECT COUNT(*) AS n FROM u AS a JOIN u AS b ON a.patient = b.patient"
    ),
    "window": (
        "WITH u AS (SELECT patient, SUM(x) OVER (PARTITION BY patient ORDER BY day) AS s FROM v) "
        "SELECT COUNT(*) AS n FROM u AS a JOIN u AS b ON a.patient = b.patient"
    ),
    "window alone": (
        "SELECT COUNT(*) AS n FROM (SELECT patient, RANK() OVER (PARTITION BY patient ORDER BY day) AS r, "
        "SUM(x) OVER (PARTITION BY patient ORDER BY day) AS s FROM v) AS u WHERE r > 1"
    ),
}


def told(engine: Engine, rows: int, sql: str) -> tuple[str, tuple[str, ...], str]:
    """Status, notes and charge of a question."""
    with curator_of(engine, rows) as curator:
        try:
            answer = curator.ask(sql, epsilon=0.5)
        except UnsupportedQuery as refused:
            return str(refused), (), str(curator.balance("v").spent)
        return "answered", answer.notes, str(curator.balance("v").spent)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["two copies", "by day", "lateral", "window"])
def test_many_rows_are_answered_as_one_is(name: str) -> None:
    one, many = (told(DuckDB(threads=1), rows, ASKED[name]) for rows in (1, 5000))
    assert one == many
    assert one[0] == "answered"
    assert "Up to 1,000 rows per patient of each joined table are used." in one[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_very_many_rows_are_answered_as_one_is(name: str) -> None:
    found = {told(DuckDB(threads=1), rows, ASKED[name]) for rows in (0, 1, 2, 20_000, 10**5)}
    assert {status for status, _, _ in found} == {"answered"}
    assert len(found) == 1


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, 13, 20, 21, 32])
def test_long_chains_are_answered_or_refused_whoever_is_there(count: int) -> None:
    found = {told(DuckDB(threads=1), rows, chain(count)) for rows in (0, 1, 2, 3000)}
    assert len(found) == 1
    assert (next(iter(found))[0] == "answered") is (count <= 20)


def test_chains_that_are_too_long_are_refused_for_nothing() -> None:
    found = {told(DuckDB(threads=1), rows, chain(32)) for rows in (1, 2)}
    ((status, _, spent),) = found
    assert "32 tables" in status
    with curator_of(DuckDB(threads=1), 1) as untouched:
        assert spent == str(untouched.balance("v").spent)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_very_many_rows_on_postgres(name: str, postgres_tables: PostgresTables) -> None:
    found = {told(PostgresOfRows(postgres_tables), rows, ASKED[name]) for rows in (1, 10**5)}
    assert len(found) == 1
    assert next(iter(found))[0] == "answered"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two copies", "lateral", "window"])
def test_very_many_rows_on_spark(name: str, spark_session: Any, tmp_path: Path) -> None:
    found = {told(SparkOfRows(spark_session, tmp_path), rows, ASKED[name]) for rows in (1, 10**5)}
    assert len(found) == 1
    assert next(iter(found))[0] == "answered"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["five copies", "by day", "window alone"])
def test_very_many_rows_in_memory(name: str) -> None:
    found = {told(Memory(), rows, ASKED[name]) for rows in (1, 10**5)}
    assert len(found) == 1
    assert next(iter(found))[0] == "answered"


def test_a_cut_is_counted_as_it_says() -> None:
    """1,000 of 5,000 rows on both sides, each beside itself and beside all."""
    with curator_of(DuckDB(threads=1), 5000) as curator:
        by_day = curator.ask(ASKED["by day"], epsilon=20, limits=WIDE)
        every = curator.ask(chain(2), epsilon=20, limits=WIDE)
    assert by_day[0]["n_low"] - 1 <= 1010 <= by_day[0]["n_high"] + 1
    assert every[0]["n_low"] - 1 <= 10**6 <= every[0]["n_high"] + 1


# ------------------------------------------------------------------------------------------------- sides that are whole


def test_sides_that_answer_whether_there_is_a_row_are_whole() -> None:
    """Of 5,000 days, each is found among all, and what is counted of them is counted of all."""
    with curator_of(DuckDB(threads=1), 5000) as curator:

        def counts(sql: str) -> Answer:
            return curator.ask(sql, epsilon=20, limits=WIDE)

        there = "SELECT 1 FROM v AS b WHERE b.patient = a.patient AND b.day = a.day"
        same = f"SELECT COUNT(*) AS n FROM v AS a WHERE EXISTS ({there})"
        folded = "(SELECT patient, COUNT(*) AS k FROM v GROUP BY patient) AS f"
        most = f"SELECT COUNT(*) AS n FROM v AS a JOIN {folded} ON f.patient = a.patient WHERE f.k = 5000"
        earlier = same.replace("b.day = a.day", "b.day < a.day")
        for sql, expected in ((same, 5010), (earlier, 4999), (most, 5000)):
            found = counts(sql)
            assert abs(found[0]["n"] - expected) <= (found[0]["n_high"] - found[0]["n_low"])
            assert not any("joined table" in note for note in found.notes)


# ------------------------------------------------------------------------------------------------------------ replay


def test_answers_of_joins_from_before_are_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with curator_of(DuckDB(threads=1), 3) as curator:
        with monkeypatch.context() as before:
            before.setattr(catalog, "with_cuts", lambda plan, _: plan)
            old = curator.ask(ASKED["by day"], epsilon=1)
            alone = curator.ask("SELECT COUNT(*) AS n FROM v", epsilon=1)
        spent = curator.balance("v").spent
        again = curator.ask("SELECT COUNT(*) AS n FROM v", epsilon=1)
        assert again.replayed
        assert again[0] == alone[0]
        assert curator.balance("v").spent == spent
        new = curator.ask(ASKED["by day"], epsilon=1)
        assert not old.replayed
        assert not new.replayed
        assert curator.balance("v").spent != spent
        assert curator.ask(ASKED["by day"], epsilon=1).replayed


# ----------------------------------------------------------------------------------------------------------- mutants


@pytest.mark.usefixtures("small")
def test_mutant_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "with_cuts", lambda plan, _: plan)
    with counted(), pytest.raises(AssertionError):
        judge(range(4 * QUICK))


@pytest.mark.ci
@pytest.mark.usefixtures("small")
def test_mutant_a_cut_of_everybody_together() -> None:
    """Whoever comes takes others' places."""

    def mutant(right: Any) -> Any:
        def together(relation: Cut, tables: Any, declared: Any) -> list[Any]:
            rows = [row for row in gather(relation.source, tables, declared) if row[UNIT] is not None]
            kept = sorted(rows, key=lambda row: str(row[UNIT]), reverse=True)[: relation.rows]
            return right(relation, tables, declared) if len(rows) < relation.rows else kept

        return together

    with replaced(Cut, mutant), pytest.raises(AssertionError):
        judge(range(8 * QUICK))


@pytest.mark.ci
@pytest.mark.usefixtures("small")
def test_mutant_a_cut_by_the_order_of_rows(monkeypatch: pytest.MonkeyPatch, postgres_tables: PostgresTables) -> None:
    monkeypatch.setattr(memory_relations, "_cut_order", lambda *_: [])
    with pytest.raises(AssertionError):
        check_engines(range(4 * SAME_WORLD), postgres_tables)


def test_mutant_a_cut_of_rows_that_are_only_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    right = join_rows.with_cuts

    def everything(relation: Relation) -> Relation:
        made = with_children(relation, [everything(child) for child in children(relation)])
        return replace(made, other=Cut(source=made.other, by=(), rows=1000)) if isinstance(made, SemiJoin) else made

    def mutant(plan: Any, schemas: Any) -> Any:
        found = right(plan, schemas)
        return replace(found, source=everything(found.source)) if found.source is not None else found

    monkeypatch.setattr(catalog, "with_cuts", mutant)
    with pytest.raises(AssertionError):
        test_sides_that_answer_whether_there_is_a_row_are_whole()


@pytest.mark.ci
def test_mutant_sides_that_choose_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    right = join_rows.with_cuts

    def alone(relation: Relation) -> Relation:
        made = with_children(relation, [alone(child) for child in children(relation)])
        return replace(made, by=()) if isinstance(made, Cut) else made

    def mutant(plan: Any, schemas: Any) -> Any:
        found = right(plan, schemas)
        return replace(found, source=alone(found.source)) if found.source is not None else found

    assert matches() >= 5
    monkeypatch.setattr(catalog, "with_cuts", mutant)
    assert matches() <= 4


def matches() -> int:
    """Of 100 days that 10,000 rows of one person have on both sides of a join: 10 stay on average, or 1."""
    declared = {"patient": "int", "day": "int", "x": "int"}
    with Curator.for_tests(engine=(engine := RecordingEngine(Memory())), bits=SeededBits(1)) as curator:
        for name, first in (("v", 0), ("w", 9900)):
            table = [{"patient": 1, "day": first + place, "x": first} for place in range(10_000)]
            budget = Budget(epsilon=100) if name == "v" else None
            curator.protect(table, name=name, unit="patient", max_rows=1, account="a", types=declared, budget=budget)
        both = "v JOIN w ON v.patient = w.patient AND v.day = w.day"
        curator.ask(f"SELECT COUNT(*) AS n FROM {both}", epsilon=1, limits=WIDE)
        return engine.seen[-1][1].get((), (0,))[0]
