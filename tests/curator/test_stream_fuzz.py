"""Random streams on neighbouring tables: over all periods, no unit moves what meets noise farther than was paid for.

Columns are renamed, derived, joined and oddly written; units have one to three columns. `tests/audit/mutants` has the
mistakes that the same check must notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from discreet.engines import DuckDB
from discreet.plan.model.types import Type
from tests.curator.stream_worlds import check_paid, measured, same_text, unit_of, world
from tests.engines.tables import arrow
from tests.redteam.salts import same_salt

ALL, PAIRS = 400, 1000


@pytest.mark.ci
def test_no_unit_moves_a_stream_farther_than_was_paid() -> None:
    found = check_paid(range(5))
    assert len(found) > 10
    assert any(pair.told and pair.share for pair in found)
    assert any(pair.remembers and pair.share for pair in found)


@pytest.mark.slow
def test_no_unit_of_many_moves_a_stream_farther_than_was_paid() -> None:
    """Seven in ten pairs differ where noise is added, one in ten by nearly all that was paid for."""
    found = check_paid(range(ALL))
    assert len(found) >= PAIRS
    assert sum(pair.share > 0 for pair in found) >= len(found) * 7 // 10
    assert sum(pair.share > 0.9 for pair in found) >= len(found) // 10
    assert sum(pair.told for pair in found) >= len(found) // 10
    assert sum(pair.remembers for pair in found) >= len(found) // 3
    assert len({pair.seed for pair in found}) >= ALL * 8 // 10  # others ask for groups of single people


def test_worlds_have_what_misleads() -> None:
    """Units of one to three columns, ids in several spellings, columns called like parts in every kind of rows."""
    made = [world(seed) for seed in range(60)]
    assert {len(one.parts) for one in made} == {1, 2, 3}
    assert 0 < sum(one.how["horizon"] is None for one in made) < 20
    for word in (
        "WITH",
        "JOIN pub",
        "LEFT JOIN pub",
        "JOIN stays",
        "UNION ALL",
        "CASE",
        "COALESCE",
        "OVER",
        "GROUP BY",
    ):
        assert any(word in one.sql for one in made), word
    spelled: dict[Any, set[Any]] = {}
    for seed, one in enumerate(made):
        for row in one.versions[0]["visits"]:
            written = tuple(row[part] for part in one.parts)
            spelled.setdefault((seed, unit_of(row, one.parts)), set()).add(written)
    assert sum(len(ways) > 3 for ways in spelled.values()) > 20
    assert same_text("e\u0301\u3000") == same_text("\u00a0\u00e9") != same_text("E\u0301")


@pytest.mark.slow
def test_a_database_measures_what_the_referee_measures() -> None:
    def give(rows: list[dict[str, Any]], types: Mapping[str, str]) -> Any:
        return arrow(rows, {name: Type(kind) for name, kind in types.items()})

    with same_salt():
        for seed in (2, 12, 36, 67, 71, 76):
            made = world(seed)
            for one in (made, made.neighbour(made.units[0])):
                assert measured(one, DuckDB(), give)[1] == measured(one)[1], seed
