"""Every mutant is caught by the check in its row, and the correct code passes the same check."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.audit.mutants.registry import Mutant
from tests.audit.mutants.table import MUTANTS, rendered

DOCUMENT = Path(__file__).parents[2] / "docs" / "mutants.md"
CATCHERS = list({mutant.caught_by.name: mutant.caught_by for mutant in MUTANTS}.values())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("catcher", CATCHERS, ids=lambda catcher: catcher.name)
def test_the_honest_code_passes(catcher: object) -> None:
    catcher.run()  # type: ignore[attr-defined]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_mutant_is_caught(mutant: Mutant) -> None:
    with mutant.applied(), pytest.raises(AssertionError):
        mutant.caught_by.run()


def test_there_are_enough_and_no_two_are_the_same() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 26


def test_the_table_in_the_documentation_is_this_one() -> None:
    if os.environ.get("DISCREET_WRITE_TABLES"):
        DOCUMENT.write_text(rendered(), encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == rendered(), "stale: run this test with DISCREET_WRITE_TABLES=1"
