"""Neighbours differ in one unit and in nothing else, and strangers are as troublesome as they should be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from discreet.audit.queries.neighbours import Change, Changes, NeighbouringTables, neighbourings
from discreet.audit.queries.units import UnitRows, fresh_ids, invented_units
from discreet.curator.observation import schemas_of
from discreet.engines import Memory
from discreet.engines.duckdb.copies import Copy, copy_of
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.plan.analysis.relation_schema import own_rows
from discreet.plan.model.nodes import UNIT
from discreet.plan.model.readings import ContributionBounding, Reading, Statistic
from discreet.plan.model.schema import Limits, TableSchema
from discreet.privacy import Neighbours
from tests.audit.held import clinic
from tests.curator import shop
from tests.curator.clinic import visits
from tests.open_groups import unsealed

Row = dict[str, Any]
ROWS = [*visits(5, patients=9), *({**row, "patient": None} for row in visits(6, patients=2))]
TYPES = {"patient": "text", "ward": "text", "age": "int", "charge": "float", "kind": "text"}


def schema(relation: Neighbours = Neighbours.ADD_REMOVE, **declared: Any) -> TableSchema:
    return schemas_of(clinic(neighbours=relation, **declared)([]))["visits"]


def of_visits(rows: list[Row], described: TableSchema) -> UnitRows:
    return UnitRows({"visits": copy_of(rows)}, {"visits": described})


def pairs(rows: list[Row], described: TableSchema, wanted: int, seed: int) -> Iterator[NeighbouringTables]:
    return neighbourings({"visits": copy_of(rows)}, {"visits": described}, wanted, SeededBits(seed))


def changed(rows: list[Row], changes: Changes) -> list[Row]:
    change = changes.get("visits", Change())
    found: list[Row] = copy_of(rows).with_changes(change.without, change.more)
    return found


def by_unit(rows: list[Row], people: UnitRows) -> dict[Any, Counter[str]]:
    found: dict[Any, Counter[str]] = {}
    for row in rows:
        found.setdefault(people.unit_of(row, "visits"), Counter())[repr(sorted(row.items(), key=str))] += 1
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
@pytest.mark.parametrize("declared", [{}, {"types": TYPES}, {"unit": ("patient", "kind")}], ids=["int", "text", "two"])
def test_only_one_unit_differs(relation: Neighbours, declared: dict[str, Any]) -> None:
    """Under REPLACE one id may leave and another come; under ADD_REMOVE one is there on one side alone."""
    described = schema(relation, **declared)
    people = of_visits(ROWS, described)
    kinds = set()
    for pair in pairs(ROWS, described, 40, 1):
        one, other = (by_unit(changed(ROWS, changes), people) for changes in (pair.one, pair.other))
        differ = [who for who in {**one, **other} if one.get(who) != other.get(who)]
        kinds.add(pair.name)
        assert None not in differ
        if relation is Neighbours.ADD_REMOVE:
            assert len(differ) == 1
            assert (differ[0] in one) != (differ[0] in other)
        else:
            assert 1 <= len(differ) <= 2
            assert len(one) - len(other) in (0, 1, -1)  # somebody without any row is not seen
    assert len(kinds) >= 8


@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_only_one_row_differs_where_each_is_a_unit(relation: Neighbours) -> None:
    for pair in pairs(ROWS, schema(relation, unit=None), 30, 2):
        one, other = (Counter(map(repr, changed(ROWS, changes))) for changes in (pair.one, pair.other))
        gone, come = (one - other).total(), (other - one).total()
        assert (gone, come) in ({(1, 0), (0, 1)} if relation is Neighbours.ADD_REMOVE else {(1, 1), (0, 0)})


def test_names_of_neighbours_hold_no_values() -> None:
    rows = [{"patient": 424242, "ward": "Q", "age": 77, "charge": 13.25, "kind": "secret"}]
    for relation in Neighbours:
        names = {pair.name for pair in pairs(rows, schema(relation), 20, 3)}
        assert not [name for name in names if any(word in name for word in ("424242", "Q", "77", "13", "secret"))]


def test_strangers_reach_the_ends_and_go_beyond() -> None:
    described = schema()
    made = {kind: rows() for kind, rows in invented_units(described, SeededBits(4)).items()}
    every = [row for rows in made.values() for row in rows]
    assert all(set(row) == set(described.stored_columns) - {"patient"} for row in every)
    ages, charges = ({row[name] for row in every} for name in ("age", "charge"))
    assert {0, 120, None} <= ages
    assert {-1, 121} & ages
    assert {0.0, 1000.0, math.inf} <= charges
    assert {"A", "B", "C", "an undeclared group", None} <= {row["ward"] for row in every}
    assert max(map(len, made.values())) >= 60
    assert any(len({row["kind"] for row in rows}) >= 20 for rows in made.values())


@pytest.mark.parametrize("kind", ["int", "text", "date", "timestamp", "bool"])
def test_ids_are_new_and_run_out(kind: str) -> None:
    described = schema(types=TYPES | {"patient": kind})
    taken = [{"patient": "stranger 0"}] if kind == "text" else []
    people = of_visits(taken, described)
    found = []
    for who in fresh_ids(described, lambda row: people.unit_of(row, "visits") in people.rows):
        found.append(who["patient"])
        if len(found) == 3:
            break
    assert len(set(found)) == len(found) == (2 if kind == "bool" else 3)
    assert "stranger 0" not in found or kind != "text"


def test_large_tables_are_sampled_by_whole_units() -> None:
    rows = visits(7, patients=300)
    kept = of_visits(rows, schema()).sample(100, SeededBits(5))["visits"]
    whole = Counter(row["patient"] for row in rows)
    assert 90 <= len(kept) <= 100
    assert all(count == whole[who] for who, count in Counter(rows[place]["patient"] for place in kept).items())


def test_somebody_with_more_rows_than_the_sample_is_kept_alone() -> None:
    rows = [{"patient": 1, "ward": "A"}] * 50
    assert len(of_visits(rows, schema()).sample(10, SeededBits(6))["visits"]) == 50


def test_a_table_on_a_way_needs_the_table_that_tells() -> None:
    described = shop.schemas(Limits(1, 1))
    with pytest.raises(InvalidParameter) as refused:
        UnitRows({"items": copy_of([])}, {"items": described["items"]})
    assert "'orders'" in refused.value.hint


SHOP = ("customers", "orders", "items", "notes")


def shopping(seed: int) -> tuple[dict[str, list[Row]], dict[str, TableSchema]]:
    """A shop in which keys collide; tables that lead to others come first, so that their order must not matter."""
    described = shop.schemas(Limits(1, 1))
    found = shop.data(seed)
    return {name: found[name] for name in SHOP[::-1]}, {name: described[name] for name in SHOP[::-1]}


@pytest.mark.parametrize("seed", range(4))
def test_rows_on_a_way_are_those_of_whoever_has_their_key(seed: int) -> None:
    rows, described = shopping(seed)
    people = UnitRows({name: copy_of(listed) for name, listed in rows.items()}, described)
    engine = shop.loaded(Memory(), {**shop.data(seed), **rows})
    for name in SHOP:
        read = Reading(
            table=name,
            source=own_rows(name, described),
            keys=(),
            bounding=ContributionBounding(unit=UNIT, groups=10**6, rows=10**6, salt=""),
            statistics=(Statistic(kind="rows"),),
        )
        counted = sum(len(own) for own in people.owners[name])
        assert unsealed(engine.read(read)).get((), (0,)) == (counted,)


@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_of_several_tables_only_one_unit_differs(relation: Neighbours) -> None:
    """Rows of one person change in all tables; what others have, by keys of their own, stays as it was."""
    rows, described = shopping(2)
    described = {name: replace(schema, neighbours=relation) for name, schema in described.items()}
    copies = {name: copy_of(listed) for name, listed in rows.items()}
    several = 0
    for pair in neighbourings(copies, described, 30, SeededBits(3)):
        states = [_state(copies, changes) for changes in (pair.one, pair.other)]
        one, other = (_owned(state, described) for state in states)
        differ = [who for who in {**one, **other} if one.get(who) != other.get(who)]
        assert 1 <= len(differ) <= (1 if relation is Neighbours.ADD_REMOVE else 2), pair.name
        touched = {name for changes in (pair.one, pair.other) for name, change in changes.items() if change != Change()}
        several += touched >= {"customers", "orders", "items", "notes"}
    assert several >= 5


def _state(copies: dict[str, Copy], changes: Changes) -> dict[str, list[Row]]:
    nothing = Change()
    return {
        name: copy.with_changes(changes.get(name, nothing).without, changes.get(name, nothing).more)
        for name, copy in copies.items()
    }


def _owned(state: dict[str, list[Row]], described: dict[str, TableSchema]) -> dict[Any, Counter[str]]:
    """What each person has, in all tables."""
    people = UnitRows({name: copy_of(rows) for name, rows in state.items()}, described)
    found: dict[Any, Counter[str]] = {}
    for name, owners in people.owners.items():
        for row, own in zip(state[name], owners, strict=True):
            for who in own:
                found.setdefault(who, Counter())[f"{name} {sorted(row.items(), key=str)}"] += 1
    return found


def test_a_sample_of_several_tables_is_of_whole_people() -> None:
    rows, described = shopping(5)
    people = UnitRows({name: copy_of(listed) for name, listed in rows.items()}, described)
    kept = people.sample(20, SeededBits(5))
    assert 1 <= sum(map(len, kept.values())) <= 20
    chosen = {who for place in kept["customers"] for who in people.owners["customers"][place]}
    assert chosen
    for name, owners in people.owners.items():
        assert {place for place, own in enumerate(owners) if own & chosen} <= set(kept[name])


def test_changes_are_nothing_unless_they_are_given() -> None:
    assert Change() == Change((), ())
