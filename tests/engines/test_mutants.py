"""Statements with a mistake in them: the tests of contributions would notice each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.row_choice import BUCKET, P
from discreet.engines.sql import contribution_bounds as module
from discreet.engines.sql.contribution_bounds import Bounded
from discreet.plan.model.readings import Groups
from tests.engines.tables import N, arrow, bounding, col
from tests.engines.test_bounding import COLUMNS, assert_moved, crowd, reading

ASKED = reading(bounding(3, 2), keys=(col("a", N),))


def a_ceiling_one_bucket_too_low(patch: pytest.MonkeyPatch) -> None:
    honest = Bounded._ceiling
    patch.setattr(Bounded, "_ceiling", lambda self: f"({honest(self)}) - {BUCKET}")


def everybody_innocent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bounded, "_innocent", lambda _: "TRUE")


def buckets_taken_for_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bounded, "_apart", lambda _: "TRUE")


def another_prime(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "P", P - 2)


def nothing_removed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bounded, "_removed", lambda _: "SELECT * FROM pairs WHERE FALSE")


def rows_unordered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bounded, "_order", lambda _: "t1 DESC")


MUTANTS = [
    a_ceiling_one_bucket_too_low,
    everybody_innocent,
    buckets_taken_for_groups,
    another_prime,
    nothing_removed,
    rows_unordered,
]


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_the_referee_notices(monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None]) -> None:
    right = confirmed()
    mutate(monkeypatch)
    assert without(None).read(ASKED) != right


@cache
def confirmed() -> Groups:
    """What the referee says, and the honest statement, too."""
    memory = Memory()
    memory.register("t", crowd(), COLUMNS)
    right = memory.read(ASKED)
    assert without(None).read(ASKED) == right
    return right


def somebody_moves_too_far() -> bool:
    """Whether one of those with most rows, there or not, changes more than the limits."""
    everybody = without(None).read(ASKED)
    try:
        for unit in range(30, 40):
            assert_moved(without(unit).read(ASKED), everybody, groups=3, rows=2)
    except AssertionError:
        return True
    return False


@cache
def without(unit: int | None) -> DuckDB:
    """The crowd but for one unit; mistakes are made in statements, never in what is stored."""
    engine = DuckDB(threads=1)
    engine.register("t", arrow([row for row in crowd() if row["u"] != f"{unit}"], COLUMNS), COLUMNS)
    return engine


def test_nobody_moves_too_far() -> None:
    assert not somebody_moves_too_far()


@pytest.mark.parametrize("mutate", [everybody_innocent, nothing_removed], ids=lambda mutate: mutate.__name__)
def test_brute_force_notices(monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None]) -> None:
    mutate(monkeypatch)
    assert somebody_moves_too_far()
