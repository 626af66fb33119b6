"""Random questions over several tables on neighbouring data: nothing differs but what noise covers, as with one table.

A join, a fold, a window or an IN that looks at other people's rows, rows bounded too early, ranks that cost too little:
the same check must notice each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from discreet.audit.queries.recorder import QueryRecord, RecordingEngine, ask
from discreet.engines import DuckDB, Memory
from discreet.engines.memory import relation_rows as gather_module
from discreet.engines.memory import relation_rows as places_module
from discreet.engines.memory.relation_rows import fold_rows, gather
from discreet.engines.row_choice import normalize_id
from discreet.measurement.program import program as program_module
from discreet.mechanisms.ranks import RankTarget
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.nodes import UNIT, Relation
from discreet.plan.model.readings import Groups, Reading
from discreet.plan.model.relations import (
    BaseTable,
    Join,
    LinkedTable,
    MarkJoin,
    SemiJoin,
    UnitAggregation,
    Window,
    children,
    tables,
)
from discreet.plan.model.schema import Limits
from discreet.sql.clauses import from_clause as origin_module
from tests.curator.families import CALLS, DAYS, HOSPITAL, SHOP
from tests.curator.fuzz import Question
from tests.curator.joined import question
from tests.curator.states import Joined, joined
from tests.effort import rounds, shadowed
from tests.engines.postgres_tables import PostgresOfRows, PostgresTables
from tests.engines.tables import POSTGRES, is_absent
from tests.open_groups import unsealed
from tests.redteam.changed import changed
from tests.redteam.judge import Pair
from tests.redteam.locality import without_own
from tests.redteam.salts import same_salt

QUICK, ALL = 100, 5000
BATCH, LONG = 25, 100  # questions of one test
SAME_WORLD = 5  # questions of one pair of states
ACCEPTED = Fraction(90, 100)
FIRST = 600  # questions in which mutants are looked for
FAMILIES = (HOSPITAL, SHOP, DAYS, CALLS)


@pytest.fixture(autouse=True)
def salted() -> Iterator[None]:
    """Neighbours keep the same rows."""
    with same_salt():
        yield


Engines = Callable[[], RecordingEngine]


def memory() -> RecordingEngine:
    return RecordingEngine(Memory())


def pair(world: Joined, engine: Engines = memory) -> Pair:
    one, other = engine(), engine()
    return Pair((world.curator(one, world.one), one), (world.curator(other, world.other), other))


def places(seeds: range) -> Iterator[tuple[Joined, list[Question]]]:
    """Worlds, each with the questions that share it."""
    for start in range(seeds.start, seeds.stop, SAME_WORLD):
        yield place(start, min(start + SAME_WORLD, seeds.stop))


@cache
def place(start: int, stop: int) -> tuple[Joined, list[Question]]:
    """The world of the first seed, and questions about it; many mutants are looked for in the same ones."""
    world = joined(start)
    return world, [question(seed, world) for seed in range(start, stop)]


def judged(world: Joined, questions: Sequence[Question], engine: Engines = memory) -> list[QueryRecord]:
    curators = pair(world, engine)
    alone = [world.filled(engine(), data) for data in world.alone]
    found = []
    for asked in questions:
        seen, reads = watched(curators, asked)
        assert seen.status in (("refused",) if asked.refused else ("answered", "refused")), asked.sql
        for reading, *whole in reads:
            theirs = [unsealed(own.read(reading)) for own in alone]
            left = [without_own(reading, groups, own) for groups, own in zip(whole, theirs, strict=True)]
            assert left[0] == left[1], asked.sql
        found.append(seen)
    return found


def watched(curators: Pair, asked: Question) -> tuple[QueryRecord, list[tuple[Reading, Groups, Groups]]]:
    """What a question did, and what was read for it of both neighbours, but for second looks at the same rows."""
    engines = [engine for _, engine in (curators.one, curators.other)]
    before = [len(engine.seen) for engine in engines]
    seen = curators.judge(asked)
    first, second = (engine.seen[start:] for engine, start in zip(engines, before, strict=True))
    reads = [(reading, a, b) for (reading, a), (_, b) in zip(first, second, strict=True)]
    return seen, [read for read in reads if read[0].split is None or read[0].split.only is None]


def batches(start: int, stop: int, size: int) -> list[range]:
    return [range(first, first + size) for first in range(start, stop, size)]


LATER = [pytest.param(seeds, marks=pytest.mark.slow) for seeds in batches(QUICK, ALL, LONG)]


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("seeds", [*batches(0, QUICK, BATCH), *LATER], ids=lambda seeds: str(seeds.start))
def test_neighbours_differ_by_noise_alone(seeds: range) -> None:
    tried = seeds[: rounds(len(seeds), SAME_WORLD)]
    found = [seen for world, questions in places(tried) for seen in judged(world, questions)]
    accepted = sum(seen.status == "answered" for seen in found)
    assert accepted >= ACCEPTED * len(found) - 3 * (len(found) * ACCEPTED * (1 - ACCEPTED)) ** 0.5  # of all together


WORDS = (
    *(" JOIN ", "LEFT JOIN", "WITH ", "UNION ALL", " IN (SELECT", "NOT IN (SELECT", "NOT EXISTS", " OVER (PARTITION"),
    *("SELECT DISTINCT", "COUNT(DISTINCT", "WIDTH_BUCKET", "QUARTER", "FILTER", "HAVING", "ARG_MAX", "MEDIAN", "MAX("),
    *("QUANTILE", "VARIANCE", "CORR", "REGR_SLOPE", "AVG(", "SUM(", "COUNT(*)", "whole", "LAG(", "FIRST_VALUE"),
    *(
        "FIRST(",
        "LAST(",
        "QUALIFY",
        "INTERSECT",
        "EXCEPT",
        "RANK() OVER (ORDER BY",
        ") OVER ()",
        "PRECEDING",
        "/ (SELECT",
    ),
    *("MODE(", "CASE WHEN EXISTS", ")) IS NOT TRUE)", "DISTINCT ON", "(SELECT COUNT(", "JOIN LATERAL", " LIMIT 1) AS"),
)


@pytest.mark.ci
def test_every_kind_of_question_is_asked() -> None:
    asked = [(world, one) for world, questions in places(range(FIRST)) for one in questions]
    for word in WORDS:
        assert sum(word in one.sql for _, one in asked) >= 2, word
    for family in (HOSPITAL, SHOP, DAYS):
        free = {world.undeclared for world, _ in asked if world.family is family} - {""}
        assert any(f".{column}" in one.sql for world, one in asked for column in free if world.undeclared == column)
    assert any(re.search(r"GROUP BY \w+\.(order_id|item|code)\)", one.sql) for _, one in asked)
    assert {world.family.account for world, _ in asked} == {family.account for family in FAMILIES}
    assert len({(world.neighbours, world.limits) for world, _ in asked}) == 2 * 4 * 3
    assert {sql for family in FAMILIES for sql in family.refused} >= {one.sql for _, one in asked if one.refused}


# ------------------------------------------------------------------------------------------------------- both engines


@pytest.mark.ci
@pytest.mark.parametrize(
    "start", [0, 10, *(pytest.param(batch, marks=pytest.mark.slow) for batch in range(20, 300, 10))]
)
def test_engines_agree_whatever_the_order_of_rows(start: int) -> None:
    for first in range(20_000 + start, 20_000 + start + rounds(10, SAME_WORLD), SAME_WORLD):
        world = joined(first)
        turned = {name: rows[::-1] for name, rows in world.one.items()}
        referee = memory()
        with world.curator(referee, world.one) as curator, world.filled(DuckDB(threads=1), turned) as duckdb:
            for seed in range(first, first + SAME_WORLD):
                asked = question(seed, world)
                assert ask(curator, referee, asked).status != "failed"
            assert referee.seen
            for reading, groups in referee.seen:
                assert unsealed(duckdb.read(reading)) == groups


@shadowed(POSTGRES)
@pytest.mark.parametrize("start", [0, *(pytest.param(batch, marks=pytest.mark.slow) for batch in range(10, 300, 10))])
def test_postgres_agrees_whatever_the_order_of_rows(start: int, postgres_tables: PostgresTables) -> None:
    for first in range(20_000 + start, 20_010 + start, SAME_WORLD):
        world = joined(first)
        turned = {name: rows[::-1] for name, rows in world.one.items()}
        referee = memory()
        with (
            world.curator(referee, world.one) as curator,
            world.filled(PostgresOfRows(postgres_tables), turned) as postgres,
        ):
            for seed in range(first, first + SAME_WORLD):
                ask(curator, referee, question(seed, world))
            assert referee.seen
            for reading, groups in referee.seen:
                assert is_absent(reading) or unsealed(postgres.read(reading)) == groups


@pytest.mark.slow
def test_neighbours_on_postgres_differ_by_noise_alone(postgres_tables: PostgresTables) -> None:
    """Whole questions, as on the referee: status, charge, shape, and how far one person moves each input of noise."""
    made: list[RecordingEngine] = []

    def engine() -> RecordingEngine:
        made.append(RecordingEngine(PostgresOfRows(postgres_tables)))
        return made[-1]

    found: list[QueryRecord] = []
    for world, questions in places(range(30_000, 30_060)):
        found += judged(world, questions, engine)
        while made:
            made.pop().close()
    assert sum(seen.status == "answered" for seen in found) > len(found) // 2


# ------------------------------------------------------------------------------------------------------------- mutants


def noticed(wanted: Callable[[Joined, str], bool], engine: Engines = memory, first: int = FIRST) -> None:
    """A few questions of the kind that a mutant spoils bring it to light."""
    with pytest.raises(AssertionError):
        judge_all(wanted, engine, first)


def judge_all(wanted: Callable[[Joined, str], bool], engine: Engines, first: int) -> None:
    for world, questions in places(range(first)):
        spoilt = [asked for asked in questions if wanted(world, asked.sql)]
        if spoilt:
            judged(world, spoilt, engine)


Gather = Callable[[Any, Any, Any], list[Any]]


@contextmanager
def replaced(kind: type[Relation], mutant: Callable[[Gather], Gather]) -> Iterator[None]:
    """The rows of one kind of relation are gathered in another way."""
    right = gather.dispatch(kind)
    gather.register(kind, mutant(right))
    try:
        yield
    finally:
        gather.register(kind, right)


def across_people(applies: Callable[[Any], bool]) -> Callable[[Gather], Gather]:
    """Rows are matched whoever they belong to."""

    def mutant(right: Gather) -> Gather:
        def matched(relation: Any, stored: Any, declared: Any) -> list[Any]:
            with pytest.MonkeyPatch.context() as patch:
                if applies(relation):
                    patch.setattr(gather_module, "_find_join_pairs", lambda _left, _right, on, _declared: on)
                return right(relation, stored, declared)

        return matched

    return mutant


@pytest.mark.ci
def test_mutant_a_join_without_the_unit() -> None:
    with replaced(Join, across_people(lambda _: True)):
        noticed(lambda world, sql: world.family is SHOP and " JOIN " in sql)


LINKS = r"\w+\.(order_id|id|code|item)"


def along_links(word: str) -> Callable[[Joined, str], bool]:
    """Whether a question asks for a key that several people may have."""
    found = re.compile(rf"{word} \(SELECT ({LINKS}|1) FROM (items|orders|notes)")
    return lambda world, sql: world.family is SHOP and found.search(sql) is not None


@pytest.mark.slow
def test_mutant_exists_over_other_peoples_rows() -> None:
    with replaced(SemiJoin, across_people(lambda relation: not relation.negated)):
        noticed(along_links("(?<!NOT )(EXISTS|IN)"), first=4 * FIRST)


@pytest.mark.slow
def test_mutant_not_in_over_other_peoples_rows() -> None:
    with replaced(SemiJoin, across_people(lambda relation: relation.negated)):
        noticed(along_links("NOT (EXISTS|IN)"), first=4 * FIRST)


@pytest.mark.ci
def test_mutant_in_inside_an_expression_over_other_peoples_rows() -> None:
    with replaced(MarkJoin, across_people(lambda _: True)):
        linked = along_links("(EXISTS|IN)")
        noticed(lambda world, sql: linked(world, sql) and _MARKED.search(sql) is not None, first=5 * FIRST)


_MARKED = re.compile(r" OR (NOT )?EXISTS \(| OR \w+\.\w+ (NOT )?IN \(SELECT|IS NOT TRUE\)|ELSE TRUE END")


def test_mutant_a_join_that_need_not_be_on_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin_module, "same_id", lambda *_: True)
    hostile = {sql for family in FAMILIES for sql in family.refused}
    noticed(lambda _, sql: sql in hostile)


@pytest.mark.slow
def test_mutant_a_fold_over_everybody() -> None:
    def mutant(right: Gather) -> Gather:
        def together(relation: UnitAggregation, stored: Any, declared: Any) -> list[Any]:
            rows = gather(relation.source, stored, declared)

            def alike(made: Any) -> list[Any]:
                keys = [(key.name, key.expression) for key in relation.keys]
                return [row for row in rows if all(evaluate(key, row) == made[name] for name, key in keys)]

            return [
                made | {fold.name: fold_rows(fold, alike(made)) for fold in relation.folds}
                for made in right(relation, stored, declared)
            ]

        return together

    with replaced(UnitAggregation, mutant):
        noticed(lambda _, sql: "AS c0 FROM" in sql and ("MAX(a" in sql or "MIN(a" in sql or "COUNT(a" in sql))


@pytest.mark.ci
def test_mutant_a_window_over_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    right = places_module.places

    def everybody(window: Window, rows: Any, *rest: Any) -> Any:
        return right(window, [{**row, UNIT: 0} for row in rows], *rest)

    monkeypatch.setattr(gather_module, "places", everybody)
    noticed(lambda _, sql: " OVER (" in sql)


def test_mutant_a_row_belongs_to_the_last_who_claims_it() -> None:
    """Whoever claims an order takes its items from those who claimed it before."""

    def mutant(right: Gather) -> Gather:
        def claimed(relation: LinkedTable, stored: Any, declared: Any) -> list[Any]:
            last: dict[Any, Any] = {}
            for row in right(relation, stored, declared):
                own = tuple(value for name, value in row.items() if name != UNIT)
                last[own] = max(last.get(own, row), row, key=lambda one: one[UNIT])
            return list(last.values())

        return claimed

    with replaced(LinkedTable, mutant):
        noticed(lambda world, sql: world.family is SHOP and "items" in sql)


class Early(Memory):
    """Bounds the rows of each table, and not what is made of them."""

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        bounding = reading.bounding
        if reading.source is None or bounding is None:
            return super()._prepare(reading)
        stored, self._rows = self._rows, dict(self._rows)
        for name, unit in owned(reading.source):
            seen: dict[Any, int] = {}
            self._rows[name] = [row for row in stored[name] if count(seen, normalize_id(row[unit])) <= bounding.rows]
        found = super()._prepare(replace(reading, bounding=replace(bounding, groups=10**6, rows=10**6)))()
        self._rows = stored
        return lambda: found


def count(seen: dict[Any, int], who: Any) -> int:
    seen[who] = seen.get(who, 0) + 1
    return seen[who]


def owned(relation: Relation) -> Iterator[tuple[str, str]]:
    if isinstance(relation, BaseTable) and isinstance(relation.unit, str):
        yield relation.name, relation.unit
    for child in children(relation):
        yield from owned(child)


@pytest.mark.slow
def test_mutant_rows_are_bounded_before_the_join() -> None:
    noticed(lambda world, sql: world.family is HOSPITAL and " JOIN " in sql, lambda: RecordingEngine(Early()))


@pytest.mark.ci
def test_mutant_a_row_counts_as_often_as_a_public_table_repeats_it() -> None:
    public = {name for family in FAMILIES for name in family.public}

    def repeats(relation: Relation) -> bool:
        here = isinstance(relation, Join) and set(tables(relation.right)) <= public
        return here or any(repeats(child) for child in children(relation))

    def unbounded(reading: Reading) -> Reading:
        if reading.bounding is None or reading.source is None or not repeats(reading.source):
            return reading
        return replace(reading, bounding=replace(reading.bounding, rows=2 * reading.bounding.rows))

    noticed(lambda _, sql: any(f"JOIN {name}" in sql for name in public), lambda: changed(unbounded))


def test_mutant_nothing_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_module, "_bounding", lambda *_: None)
    noticed(lambda world, _: world.family is HOSPITAL)


RANKED = ("MEDIAN", "QUANTILE", "MIN(", "MAX(")


@pytest.mark.ci
@pytest.mark.parametrize("law", ["l1", "l2_squared"])
def test_mutant_ranks_are_paid_for_one_row(monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    right = getattr(RankTarget, law)

    def one_row(target: RankTarget, contribution: QueryContribution) -> Fraction:
        limits = Limits(contribution.limits.groups, 1)
        found: Fraction = right(target, replace(contribution, limits=limits))
        return found

    monkeypatch.setattr(RankTarget, law, one_row)
    noticed(lambda world, sql: world.setting.unit and any(word in sql for word in RANKED))
