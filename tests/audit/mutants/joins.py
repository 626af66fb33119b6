"""Mistakes in joins: rows that multiply without a limit, and cuts before a join that keep the wrong rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from discreet.curator.catalog import catalog
from discreet.engines import DuckDB
from discreet.engines.memory import relation_rows
from discreet.plan.analysis import join_rows
from discreet.plan.model.nodes import Question, Relation
from discreet.plan.model.relations import Cut, SemiJoin, children, with_children
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.redteam.clinics import CROWD, noises, row

TWICE = "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.patient = b.patient"
SHARED = f"{TWICE} AND a.age = b.age WHERE a.kind = 'l' AND b.kind = 'r'"
THERE = (
    "SELECT COUNT(*) AS n FROM visits AS a WHERE EXISTS "
    "(SELECT 1 FROM visits AS b WHERE b.patient = a.patient AND b.age = a.age)"
)
GROUPS = f"{TWICE.replace('COUNT', 'a.ward, COUNT')} GROUP BY a.ward"
MANY = 1100


def _counted(sql: str, rows: list[dict[str, Any]]) -> int:
    """The exact count that meets noise, where limits leave nothing out."""
    return int(noises(sql, rows, engine=DuckDB(threads=1), max_rows=10**9)[0].exact[0][0])


@catcher("recorded reads")
def joined_rows_of_a_person_are_limited() -> None:
    assert _counted(TWICE, [row(1, age=age) for age in range(MANY)]) <= join_rows.MOST_PAIRS


@catcher("recorded reads")
def rows_that_match_stay_together() -> None:
    """10,000 ages on each side, 100 of them on both: about ten stay."""
    sides = (("l", 0), ("r", 9900))
    assert _counted(SHARED, [row(1, age=first + i, kind=kind) for kind, first in sides for i in range(10_000)]) >= 5


@catcher("recorded reads")
def exists_reads_all_rows() -> None:
    assert _counted(THERE, [row(1, age=age) for age in range(MANY)]) == MANY


@catcher("recorded reads")
def no_person_displaces_another_in_a_join() -> None:
    """Removes each person in turn: one group loses one row."""
    all_people = _by_ward(CROWD)
    for place in range(len(CROWD)):
        others = _by_ward([*CROWD[:place], *CROWD[place + 1 :]])
        assert sum(abs(all_people[ward] - others[ward]) for ward in all_people) == 1


def _by_ward(rows: list[dict[str, Any]]) -> dict[Any, int]:
    found = noises(GROUPS, rows, max_groups=1, max_rows=1)[0]
    return {key: int(exact[0]) for key, exact in zip(found.keys, found.exact, strict=True)}


def _everywhere(change: Callable[[Relation], Relation]) -> Callable[[pytest.MonkeyPatch], None]:
    """Plans whose relations are changed after they were cut."""

    def changed(relation: Relation) -> Relation:
        return change(with_children(relation, [changed(child) for child in children(relation)]))

    def planned(plan: Question, schemas: Any) -> Question:
        found = join_rows.with_cuts(plan, schemas)
        return found if found.source is None else replace(found, source=changed(found.source))

    return setting(catalog, "with_cuts", planned)


def _apart(relation: Relation) -> Relation:
    return replace(relation, by=()) if isinstance(relation, Cut) else relation


def _looked_for(relation: Relation) -> Relation:
    if not isinstance(relation, SemiJoin):
        return relation
    return replace(relation, other=Cut(source=relation.other, by=(), rows=1000))


def _together(patch: pytest.MonkeyPatch) -> None:
    """Cuts the rows of all people together, and keeps few."""
    patch.setattr(join_rows, "ROWS", (3, 2))
    patch.setattr(relation_rows, "first_rows", lambda cut, _, rows: sorted(rows, key=repr)[: cut.rows])


MUTANTS = [
    Mutant(
        "joins not cut",
        "Rows of a person multiply in a join without a limit, until the database gives up.",
        setting(catalog, "with_cuts", lambda plan, _: plan),
        joined_rows_of_a_person_are_limited,
    ),
    Mutant(
        "sides of a join cut independently",
        "Each side chooses which rows to keep without the other, so that hardly any rows match.",
        _everywhere(_apart),
        rows_that_match_stay_together,
    ),
    Mutant(
        "rows in EXISTS cut",
        "EXISTS reads only the first rows of a person, although it cannot multiply rows.",
        _everywhere(_looked_for),
        exists_reads_all_rows,
    ),
    Mutant(
        "a cut across people",
        "A join keeps the first rows of all people together, so that one person can displace another.",
        _together,
        no_person_displaces_another_in_a_join,
    ),
]
