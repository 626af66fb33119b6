"""The realistic questions of the corpus under audit: nobody is accused who is honest, and everything is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.engines import Memory
from discreet.privacy import Neighbours
from tests.corpus.questions import PENDING, REALISTIC
from tests.corpus.worlds.every import WORLDS

PARTS = 4  # of the questions of a world, so that no test takes very long
PAIRS, ROWS = 8, 80


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", WORLDS)
def test_answers_to_realistic_questions_pass(name: str, part: int, relation: Neighbours) -> None:
    """All tables of a world at once, ways and public tables included; limits that bind, as they do in practice."""
    world = WORLDS[name]
    answered = [asked.sql for asked in REALISTIC if asked.world == name and not asked.refused]
    still = {asked.sql for asked in REALISTIC if asked.name in PENDING}

    def factory(tables: Mapping[str, Any]) -> Curator:
        state = replace(world, tables=[replace(table, rows=tables[table.name]) for table in world.tables])
        return state.curator(Memory(), max_groups=2, max_rows=2, neighbours=relation)

    tables = {table.name: list(table.rows) for table in world.tables}
    asked = [sql for sql in answered if sql not in still][part::PARTS]
    found = audit.query(factory, asked, tables, delta=Fraction(1, 10**4), neighbours=PAIRS, rows=ROWS)
    assert found.passed, found.summary()
    assert found.share > Fraction(9, 10)
