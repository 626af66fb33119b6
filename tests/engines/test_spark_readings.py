"""Spark on whole readings: every kind of relation, fold, window and statistic, and neighbours under random questions.

A statement costs Spark half a second, whatever it reads: the quick suite asks few questions, chosen so that every kind
of thing is asked for at least once. `make test-slow` runs every test body of the engines on Spark, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from discreet.audit.queries.recorder import RecordingEngine, ask
from discreet.engines import Memory
from discreet.plan.model import relations
from discreet.plan.model.nodes import UNIT, Expression, ExtremeKind, FoldKind, Output, Relation, SortKey, WindowKind
from discreet.plan.model.readings import CellSelection, Reading, Split, Spread, Statistic, StatisticKind
from discreet.plan.model.relations import (
    BaseTable,
    Cut,
    Fold,
    Join,
    LinkedTable,
    MarkJoin,
    RelationUnion,
    Select,
    SemiJoin,
    UnitAggregation,
    Window,
    WindowedRelation,
)
from discreet.plan.model.types import Type
from tests.cases import try_all
from tests.curator import test_fuzz as one_table
from tests.curator import test_joined_fuzz as several_tables
from tests.curator.joined import question
from tests.curator.states import joined
from tests.engines.spark_tables import SparkOfRows
from tests.engines.tables import F, N, T, bounding, call, col, lit
from tests.engines.test_bounding import COLUMNS, X, crowd, table
from tests.open_groups import unsealed
from tests.redteam.salts import same_salt


@pytest.fixture
def spark(spark_session: Any, tmp_path: Path) -> Iterator[SparkOfRows]:
    with SparkOfRows(spark_session, tmp_path) as engine:
        yield engine


@pytest.fixture(autouse=True)
def salted() -> Iterator[None]:
    """Neighbours keep the same rows."""
    with same_salt():
        yield


def parts(node: Any) -> Iterator[Any]:
    """A reading and all that it is made of."""
    if isinstance(node, tuple):
        for part in node:
            yield from parts(part)
    elif is_dataclass(node):
        yield node
        for field in fields(node):
            yield from parts(getattr(node, field.name))


FLAGS = ("outer", "single", "negated", "only", "without", "public_keys")


def kinds(reading: Reading) -> set[str]:
    """What a reading asks for, such as "Fold max" and "Join outer"."""
    found = set()
    for node in parts(reading):
        name = type(node).__name__
        found |= {name, *(f"{name} {flag}" for flag in FLAGS if getattr(node, flag, None))}
        if hasattr(node, "kind"):
            found.add(f"{name} {node.kind}")
    return found


def all_kinds() -> set[str]:
    made = {kind.__name__ for kind in vars(relations).values() if isinstance(kind, type) and issubclass(kind, Relation)}
    made -= {"Relation"}
    made |= {f"Statistic {kind}" for kind in get_args(StatisticKind)}
    made |= {f"Fold {kind}" for kind in (*get_args(FoldKind), *get_args(ExtremeKind))}
    made |= {f"Window {kind}" for kind in get_args(WindowKind)}
    made |= {"Join outer", "Join single", "SemiJoin negated", "Reading public_keys", "Spread without", "Split only"}
    return made | {"ContributionBounding", "Spread", "Split"}


# ---------------------------------------------------------------------------------------------------- kinds of readings

GRID: dict[str, Any] = {"exponent": -2, "low": -10, "high": 41}
A, B = col("a", N), col("b", T)
WHOLE = {"row_number", "rank", "dense_rank", "count", "count_values", "count_distinct"}
PEOPLE = BaseTable("t", "u")


def typed(kind: str) -> Type:
    return N if kind in WHOLE else F


def told(source: Relation, names: Mapping[str, Type]) -> Reading:
    """A reading from which the columns of rows of people can be told apart, those of numbers one by one."""
    numbers = [Statistic(kind="values", argument=col(name, kind)) for name, kind in names.items()]
    numbers += [
        Statistic(kind="sum", argument=col(name, kind), exponent=-4, low=-(1 << 40), high=1 << 40)
        for name, kind in names.items()
    ]
    return Reading(
        table="t", source=source, keys=(col(UNIT, T),), bounding=bounding(1, 99, unit=UNIT), statistics=tuple(numbers)
    )


def windows() -> Reading:
    """Every window, in an order with ties and NULL."""
    made = [
        Window(
            name=f"w_{kind}",
            kind=kind,
            type=typed(kind),
            argument=None if kind in WHOLE - {"count_values"} else X,
            partition=(B,) if place % 3 == 0 else (),
            order=(SortKey(A, descending=place % 2 == 0),),
            offset=1 + place % 2,
            **GRID,
        )
        for place, kind in enumerate(get_args(WindowKind))
    ]
    return told(WindowedRelation(PEOPLE, tuple(made)), {window.name: window.type for window in made})


def folds() -> Reading:
    """Every fold, and those of extremes, by a column with ties and NULL."""
    made = [
        Fold(
            name=f"f_{kind}",
            kind=kind,
            type=typed(kind),
            argument=None if kind == "count" else X,
            by=A if kind in get_args(ExtremeKind) else None,
            **GRID,
        )
        for kind in (*get_args(FoldKind), *get_args(ExtremeKind))
    ]
    return told(UnitAggregation(PEOPLE, (Output("b", B),), tuple(made)), {fold.name: fold.type for fold in made})


def renamed(letter: str, **others: Expression) -> Select:
    """The rows of people, with columns of other names."""
    made = {name: others.get(name, col(name, COLUMNS[name])) for name in "abx"}
    made["c"] = others.get("c", call("add", N, A, lit(7, N)))
    return Select(PEOPLE, tuple(Output(f"{letter}{name}", value) for name, value in made.items()), None)


def joins() -> list[Reading]:
    """People's rows joined, matched, marked and put together; public rows; rows that are units of their own."""
    here, there = renamed("l"), renamed("r")
    fewer = [Cut(source=side, by=(col(name, N),), rows=2) for side, name in ((here, "la"), (there, "rc"))]
    outer = Join(left=fewer[0], right=fewer[1], on=((col("la", N), col("rc", N)),), outer=True)
    public = Join(left=outer, right=BaseTable("p", None), on=((col("lb", T), col("c", T)),))
    matched = SemiJoin(source=here, other=there, on=((col("lb", T), col("rb", T)),))
    missing = SemiJoin(source=matched, other=there, on=((col("la", N), col("rc", N)),), negated=True)
    marked = MarkJoin(source=missing, other=there, on=((col("lx", F), col("rx", F)),), name="m")
    twice = RelationUnion((renamed("l", c=A), here))  # one column under two names
    reached = LinkedTable("p", "c", here, "lb")
    rows, units = Statistic(kind="rows"), Statistic(kind="units")
    total = Statistic(kind="sum", argument=col("lx", F), **GRID)
    bound = bounding(2, 3, unit=UNIT)
    single = Join(
        left=BaseTable("t", None), right=BaseTable("p", None), on=((B, col("c", T)),), outer=True, single=True
    )
    return [
        Reading(table="t", source=public, keys=(col("d", N),), bounding=bound, statistics=(rows, units, total)),
        Reading(table="t", source=marked, keys=(col("m", Type.BOOL),), bounding=bound, statistics=(rows, total)),
        Reading(table="t", source=twice, keys=(col("la", N), col("lc", N)), bounding=bound, statistics=(rows, units)),
        Reading(table="p", source=reached, keys=(col("d", N),), bounding=bound, statistics=(rows, units)),
        Reading(table="t", source=single, keys=(col("d", N),), statistics=(rows,)),
    ]


def others() -> list[Reading]:
    """Cells, numbers of groups, products and different values, within limits; public keys."""
    limits, split = bounding(3, 2), Split(argument=X, **GRID)
    places = tuple(((a, b), 1, 2) for a in range(4) for b in "01")
    term = Statistic(kind="sum", argument=X, **GRID)
    statistics = (
        replace(term, kind="product", factor=replace(term, argument=A, exponent=0), less=3),
        replace(term, kind="distinct_sum"),
        Statistic(kind="distinct", argument=A),
        Statistic(kind="nulls", argument=X),
    )
    return [
        Reading(table="t", keys=(A, B), bounding=limits, split=replace(split, only=CellSelection(3, places))),
        Reading(table="t", keys=(A, B), bounding=limits, split=replace(split, shift=2)),
        Reading(table="t", keys=(A, B), bounding=limits, spread=Spread(((1, "1"), (2, None), (99, "nobody's")))),
        Reading(
            table="t",
            keys=(B,),
            public_keys=(("1",), ("0",), (None,), ("absent",)),
            bounding=bounding(2, 7),
            statistics=statistics,
        ),
    ]


@pytest.mark.slow
def test_every_kind_of_reading(spark: SparkOfRows) -> None:
    rows, public = [*table(13, 150, 11), *crowd()[:60]], [{"c": c, "d": d} for c, d in (("1", 7), ("1", 5), (None, 1))]
    referee, found = Memory(), set()
    for engine in (referee, spark):
        engine.register("t", rows, COLUMNS)
        engine.register("p", public, {"c": T, "d": N})

    def check(reading: Reading) -> None:
        found.update(kinds(reading))
        right = unsealed(referee.read(reading))
        assert right
        assert unsealed(spark.read(reading)) == right

    try_all([windows(), folds(), *joins(), *others()], check)
    assert all_kinds() - found == set()


BROKEN = 350  # an EXISTS in an expression, over columns of the same origin as its own row's


@pytest.mark.slow
def test_a_plan_that_spark_would_spoil(spark: SparkOfRows) -> None:
    world, referee = joined(BROKEN), RecordingEngine(Memory())
    with world.curator(referee, world.one) as curator:
        assert ask(curator, referee, question(BROKEN, world)).status == "answered"
    world.filled(spark, {name: rows[::-1] for name, rows in world.one.items()})
    (reading, right), *_ = [seen for seen in referee.seen if seen[0].source is not None]
    assert unsealed(spark.read(reading)) == right


# ----------------------------------------------------------------------------------------------------------- neighbours


@pytest.mark.ci
def test_neighbours_differ_by_noise_alone(spark_session: Any, tmp_path: Path) -> None:
    seen = one_table.judged(range(3), lambda: RecordingEngine(SparkOfRows(spark_session, tmp_path)))
    assert not [one for one in seen if one.status == "failed"]


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 100, one_table.BATCH))
def test_neighbours_differ_by_noise_alone_in_many_questions(start: int, spark_session: Any, tmp_path: Path) -> None:
    seeds = range(start, start + one_table.BATCH)
    seen = one_table.judged(seeds, lambda: RecordingEngine(SparkOfRows(spark_session, tmp_path)))
    assert not [one for one in seen if one.status == "failed"]


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 100, several_tables.BATCH))
def test_neighbours_of_several_tables_differ_by_noise_alone(start: int, spark_session: Any, tmp_path: Path) -> None:
    """In one world of each batch: Spark takes ten seconds to plan such a question."""
    world, questions = several_tables.place(start, start + several_tables.SAME_WORLD)
    several_tables.judged(world, questions, lambda: RecordingEngine(SparkOfRows(spark_session, tmp_path)))
