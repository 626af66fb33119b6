"""Neighbours differ in one unit and in nothing else, and strangers are as troublesome as they should be."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from discreet.audit.neighbours import Change, People, neighbourings
from discreet.audit.strangers import fresh_ids, strangers
from discreet.curator.watching import schema_of
from discreet.engines.copies import copy_of
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.plan.schema import TableSchema
from discreet.privacy import Neighbours
from tests.audit.held import clinic
from tests.curator.clinic import visits

Row = dict[str, Any]
ROWS = [*visits(5, patients=9), *({**row, "patient": None} for row in visits(6, patients=2))]
TYPES = {"patient": "text", "ward": "text", "age": "int", "charge": "float", "kind": "text"}


def schema(relation: Neighbours = Neighbours.ADD_REMOVE, **declared: Any) -> TableSchema:
    return schema_of(clinic(neighbours=relation, **declared)([]), "visits")


def by_unit(rows: list[Row], people: People) -> dict[Any, Counter[str]]:
    found: dict[Any, Counter[str]] = {}
    for row in rows:
        found.setdefault(people.unit_of(row), Counter())[repr(sorted(row.items(), key=str))] += 1
    return found


@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
@pytest.mark.parametrize("declared", [{}, {"types": TYPES}, {"unit": ("patient", "kind")}], ids=["int", "text", "two"])
def test_only_one_unit_differs(relation: Neighbours, declared: dict[str, Any]) -> None:
    """Under REPLACE one id may leave and another come; under ADD_REMOVE one is there on one side alone."""
    described = schema(relation, **declared)
    copy = copy_of(ROWS)
    people = People(copy, described)
    kinds = set()
    for pair in neighbourings(copy, described, 40, SeededBits(1)):
        one, other = (by_unit(copy.changed(c.without, c.more), people) for c in (pair.one, pair.other))
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
    described, copy = schema(relation, unit=None), copy_of(ROWS)
    for pair in neighbourings(copy, described, 30, SeededBits(2)):
        one, other = (Counter(map(repr, copy.changed(c.without, c.more))) for c in (pair.one, pair.other))
        gone, come = (one - other).total(), (other - one).total()
        assert (gone, come) in ({(1, 0), (0, 1)} if relation is Neighbours.ADD_REMOVE else {(1, 1), (0, 0)})


def test_names_of_neighbours_hold_no_values() -> None:
    rows = [{"patient": 424242, "ward": "Q", "age": 77, "charge": 13.25, "kind": "secret"}]
    for relation in Neighbours:
        names = {pair.name for pair in neighbourings(copy_of(rows), schema(relation), 20, SeededBits(3))}
        assert not [name for name in names if any(word in name for word in ("424242", "Q", "77", "13", "secret"))]


def test_strangers_reach_the_ends_and_go_beyond() -> None:
    described = schema()
    made = {kind: rows() for kind, rows in strangers(described, SeededBits(4)).items()}
    every = [row for rows in made.values() for row in rows]
    assert all(set(row) == set(described.stored) - {"patient"} for row in every)
    ages, charges = ({row[name] for row in every} for name in ("age", "charge"))
    assert {0, 120, None} <= ages
    assert {-1, 121} & ages
    assert {0.0, 1000.0, math.inf} <= charges
    assert {"A", "B", "C", "nobody declared this", None} <= {row["ward"] for row in every}
    assert max(map(len, made.values())) >= 60
    assert any(len({row["kind"] for row in rows}) >= 20 for rows in made.values())


@pytest.mark.parametrize("kind", ["int", "text", "date", "timestamp", "bool"])
def test_ids_are_new_and_run_out(kind: str) -> None:
    described = schema(types=TYPES | {"patient": kind})
    taken = [{"patient": "stranger 0"}] if kind == "text" else []
    people = People(copy_of(taken), described)
    found = []
    for who in fresh_ids(described, lambda row: people.unit_of(row) in people.places):
        found.append(who["patient"])
        if len(found) == 3:
            break
    assert len(set(found)) == len(found) == (2 if kind == "bool" else 3)
    assert "stranger 0" not in found or kind != "text"


def test_large_tables_are_sampled_by_whole_units() -> None:
    described, rows = schema(), visits(7, patients=300)
    people = People(copy_of(rows), described)
    kept = people.sample(100, SeededBits(5))
    whole = Counter(row["patient"] for row in rows)
    assert 90 <= len(kept) <= 100
    assert all(count == whole[who] for who, count in Counter(rows[place]["patient"] for place in kept).items())


def test_somebody_with_more_rows_than_the_sample_is_kept_alone() -> None:
    rows = [{"patient": 1, "ward": "A"}] * 50
    assert len(People(copy_of(rows), schema()).sample(10, SeededBits(6))) == 50


def test_a_table_on_a_way_is_refused() -> None:
    with clinic()([]) as curator:
        curator.protect(
            [],
            name="tests",
            unit="visit -> visits.age",
            types={"visit": "int", "value": "int"},
            bounds={"value": (0, 9)},
        )
        described = schema_of(curator, "tests")
        with pytest.raises(InvalidParameter) as refused:
            People(copy_of([]), described)
    assert "way" in refused.value.hint


def test_changes_are_nothing_unless_they_are_given() -> None:
    assert Change() == Change((), ())
