"""Joined rows: people who are surely within their limits are left alone, and nobody else is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl
import pytest
from duckdb import DuckDBPyConnection, connect

from discreet.engines import DuckDB, Memory
from discreet.engines.sql import join_bounds, statement
from discreet.engines.sql.relation_printer import RelationPrinter, StoredTable
from discreet.noise import SeededBits, uniform_below
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, Output, Relation
from discreet.plan.model.readings import ContributionBounding, Groups, Reading, Statistic
from discreet.plan.model.relations import BaseTable, Join, RelationUnion, Select, SemiJoin, UnitAggregation
from discreet.plan.model.types import Type
from tests.effort import rounds
from tests.engines.tables import B, F, N, T, call, col, lit, otherwise_bounded
from tests.open_groups import unsealed

TYPES: dict[str, dict[str, Type]] = {"v": {"u": N, "a": N, "x": F}, "p": {"w": N, "b": T}, "l": {"c": N, "d": N}}
POLARS = {N: pl.Int64, F: pl.Float64, T: pl.String}
Data = dict[str, list[dict[str, Any]]]

V, P, PRICES = BaseTable("v", "u"), BaseTable("p", "w"), BaseTable("l", None)
SAME = ((col("u", N), col("w", N)),)
BOTH = Join(left=V, right=P, on=SAME)
OUTER = Join(left=V, right=P, on=SAME, outer=True)
PUBLIC = Join(left=V, right=PRICES, on=((col("a", N), col("c", N)),))
CHOSEN = Select(V, (Output("u", col("u", N)), Output("a", col("a", N)), Output("x", col("x", F))))
COMPUTED = Select(
    Join(left=CHOSEN, right=P, on=SAME),
    (Output("k", call("add", N, col("a", N), lit(1, N))), Output("b", col("b", T)), Output("x", col("x", F))),
    call("less", B, col("a", N), lit(4, N)),
)
THREE = Join(left=BOTH, right=PRICES, on=((col("a", N), col("c", N)),), outer=True)
TWICE = Join(left=RelationUnion((V, V)), right=P, on=SAME)
EVERYBODY = Join(left=V, right=P, on=())
SHAPES: dict[str, tuple[Relation, tuple[Expression, ...]]] = {
    "keys of the right": (BOTH, (col("b", T),)),
    "keys of both": (BOTH, (col("a", N), col("b", T))),
    "a key that mixes": (BOTH, (call("equal", B, col("a", N), col("w", N)),)),
    "no key": (BOTH, ()),
    "a constant": (BOTH, (lit(1, N), col("b", T))),
    "outer": (OUTER, (col("b", T),)),
    "outer, keys of the left": (OUTER, (col("a", N),)),
    "public": (PUBLIC, (col("d", N),)),
    "public, keys of the left": (PUBLIC, (col("a", N),)),
    "computed": (COMPUTED, (col("k", N), col("b", T))),
    "three tables": (THREE, (col("a", N), col("d", N))),
    "put together": (TWICE, (col("a", N),)),
    "by the person alone": (EVERYBODY, (col("b", T),)),
}
LIMITS = ((1, 4), (2, 3), (3, 12))


def data(seed: int) -> Data:
    """Most people have few rows; ids may be missing, and people unknown to the other table."""
    bits = SeededBits(seed)

    def one_of(*values: Any) -> Any:
        return values[uniform_below(len(values), bits=bits)]

    def persons(most: int) -> list[int | None]:
        return [person for person in (None, *range(12)) for _ in range(one_of(0, 1, 1, 2, most))]

    return {
        "v": [{"u": u, "a": one_of(None, 0, 1, 2, 3), "x": one_of(-3.0, -0.1, 0.2, 2.5, 9.0)} for u in persons(9)],
        "p": [{"w": w, "b": one_of("s", "t", None)} for w in persons(3)],
        "l": [{"c": one_of(0, 1, 2, 3), "d": one_of(0, 1, 2)} for _ in range(one_of(0, 3, 5))],
    }


@cache
def engines(seed: int) -> tuple[Memory, DuckDB]:
    memory, engine, found = Memory(), DuckDB(threads=1), data(seed)
    for name, types in TYPES.items():
        memory.register(name, found[name], types)
        engine.register(name, framed(found, name), types)
    return memory, engine


def framed(found: Data, name: str) -> pl.DataFrame:
    return pl.DataFrame(found[name], schema={column: POLARS[kind] for column, kind in TYPES[name].items()})


def reading(relation: Relation, keys: tuple[Expression, ...], limits: tuple[int, int], **more: Any) -> Reading:
    x = col("x", F)
    statistics = (
        Statistic(kind="rows"),
        Statistic(kind="values", argument=x),
        Statistic(kind="sum", argument=x, exponent=-2, low=-8, high=20, shift=3),
    )
    bounding = ContributionBounding(unit=UNIT, groups=limits[0], rows=limits[1], salt="s")
    return Reading(table="v", source=relation, keys=keys, bounding=bounding, statistics=statistics, **more)


def read(seed: int, asked: Reading) -> Groups:
    """What the referee and DuckDB, with each strategy of bounding, say."""
    memory, engine = engines(seed)
    expected = unsealed(memory.read(asked))
    for one in (engine, *otherwise_bounded(engine)):
        assert unsealed(one.read(asked)) == expected
    return expected


def heavy_of(seed: int, asked: Reading) -> set[int]:
    rows = rows_of()
    likely = join_bounds.heavy(rows, asked)
    assert likely is not None
    return {unit for (unit,) in plain(seed).execute(likely, rows.parameters).fetchall()}


@cache
def plain(seed: int) -> DuckDBPyConnection:
    connection = connect()
    for name in TYPES:
        connection.register(name, framed(data(seed), name))
    return connection


def rows_of() -> RelationPrinter:
    stands = {n: StoredTable(n, {c: (k, f'"{c}"') for c, k in types.items()}, types) for n, types in TYPES.items()}
    return RelationPrinter(DuckDB.dialect, stands)


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Tables are made, and what a first reading loads and compiles is there, before a test is measured."""
    relation, keys = next(iter(SHAPES.values()))
    for seed in range(2):
        read(seed, reading(relation, keys, LIMITS[0]))


@pytest.mark.sampled(9)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limits", LIMITS)
def test_engines_agree_whoever_is_left_alone(shape: str, limits: tuple[int, int]) -> None:
    relation, keys = SHAPES[shape]
    for seed in range(rounds(2, quick=1)):
        read(seed, reading(relation, keys, limits))
        if shape != "computed":
            read(seed, reading(relation, keys, limits, where=call("less", B, col("a", N), lit(2, N))))
        if shape == "keys of both":
            read(seed, reading(relation, keys, limits, public_keys=((1, "s"), (2, None), (0, "t"))))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_who_is_left_out_is_within_the_limits(shape: str) -> None:
    """Brute force: rows and groups of each unit, from a reading by the unit and the keys."""
    relation, keys = SHAPES[shape]
    for seed in range(4):
        pairs = unsealed(engines(seed)[0].read(reading(relation, (ColumnRef(UNIT, N), *keys), (10**6, 10**6))))
        own: Counter[Any] = Counter()
        for (person, *_), (count, *_) in pairs.items():
            own[person] += count
        groups = Counter(person for person, *_ in pairs)
        for limits in LIMITS:
            exceeding = {person for person in own if own[person] > limits[1] or groups[person] > limits[0]}
            assert exceeding <= heavy_of(seed, reading(relation, keys, limits))


def test_most_people_are_left_alone_where_limits_fit() -> None:
    """One row on the right makes one group of its keys, whatever the left has; public keys make few."""
    single = {person for person, n in Counter(row["w"] for row in data(1)["p"]).items() if n == 1}
    assert single
    assert not single & heavy_of(1, reading(BOTH, (col("b", T),), (1, 30)))
    assert not heavy_of(1, reading(PUBLIC, (col("d", N),), (2, 300), public_keys=((1,), (2,))))


@pytest.mark.parametrize("negated", [False, True])
def test_who_is_in_another_table(negated: bool) -> None:
    for seed in range(2):
        read(seed, reading(SemiJoin(source=V, other=P, on=SAME, negated=negated), (col("a", N),), (2, 3)))


def test_what_no_count_of_sides_can_tell_is_looked_at_as_a_whole() -> None:
    per_unit = UnitAggregation(BOTH, (Output("b", col("b", T)),), ())
    asked = reading(BOTH, (col("b", T),), (1, 4))
    units = Reading(table="v", source=BOTH, bounding=asked.bounding, statistics=(Statistic(kind="units"),))
    for none in (reading(per_unit, (col("b", T),), (1, 1)), reading(V, (), (1, 1)), units):
        assert join_bounds.heavy(rows_of(), none) is None
    assert join_bounds.heavy(rows_of(), reading(BOTH, (), (1, 1 << 40))) is None
    others = ContributionBounding(unit="a", groups=1, rows=1, salt="s")  # units of which the sides know nothing
    assert join_bounds.heavy(rows_of(), replace(asked, bounding=others)) is None
    read(0, replace(asked, bounding=others))


@pytest.mark.ci
def test_conditions_that_double_are_left_out_of_the_count() -> None:
    doubled: Relation = BOTH
    for _ in range(40):
        twice = Output("a", call("add", N, col("a", N), col("a", N)))
        doubled = Select(doubled, (twice, Output("b", col("b", T)), Output("x", col("x", F))))
    asked = reading(doubled, (col("a", N),), (2, 3), where=call("less", B, col("a", N), lit(2, N)))
    assert join_bounds.heavy(rows_of(), asked) is not None
    read(2, asked)


def test_mutant_nobody_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    relation, keys = SHAPES["keys of both"]
    monkeypatch.setattr(statement, "heavy", lambda *_: "SELECT CAST(NULL AS BIGINT) AS u WHERE FALSE")
    with pytest.raises(AssertionError):
        read(1, reading(relation, keys, (2, 3)))


def test_mutant_a_side_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    relation, keys = SHAPES["keys of the right"]
    once = join_bounds._JoinBounds._pairs
    monkeypatch.setattr(
        join_bounds._JoinBounds,
        "_pairs",
        lambda *given: once(*given).replace("a.n * b.n", "a.n").replace("a.g * (b.g)", "1"),
    )
    with pytest.raises(AssertionError):
        read(0, reading(relation, keys, (1, 4)))
