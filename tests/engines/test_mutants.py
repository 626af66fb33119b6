"""Statements with a mistake in them: the tests of contributions would notice each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.row_choice import BUCKET, P, Salt, digest
from discreet.engines.sql import group_ranks as module
from discreet.engines.sql.bounded_rows import ALIKE, BoundedRows, PlacedTable
from discreet.engines.sql.contribution_bounds import BoundedQuery
from discreet.engines.sql.dialect import Strategy
from discreet.engines.sql.one_sort import OneSort
from discreet.plan.model.readings import Groups
from tests.engines.tables import ACCESSES, N, accessed, arrow, bounding, col, otherwise_bounded
from tests.engines.test_bounding import COLUMNS, assert_moved, crowd, reading
from tests.open_groups import unsealed

ASKED = reading(bounding(3, 2), keys=(col("a", N),))
UNCOUNTED = replace(ASKED, statistics=tuple(asked for asked in ASKED.statistics if asked.kind != "units"))


def a_ceiling_one_bucket_too_low(patch: pytest.MonkeyPatch) -> None:
    honest = BoundedQuery._ceiling
    patch.setattr(BoundedQuery, "_ceiling", lambda self: f"({honest(self)}) - {BUCKET}")


def everybody_innocent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BoundedQuery, "_innocent", lambda _: "TRUE")


def buckets_taken_for_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BoundedQuery, "_apart", lambda _: "TRUE")


def odd_buckets_taken_for_single_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BoundedQuery, "_apart", lambda _: "(m1 - o) & (m1 - m4) = 0")


def low_buckets_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    honest = BoundedQuery._apart
    patch.setattr(BoundedQuery, "_apart", lambda self: honest(self).partition(" AND ")[0])


def one_low_bucket_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    honest = BoundedQuery._apart
    patch.setattr(BoundedQuery, "_apart", lambda self: honest(self).replace("m4", "m3"))


def another_prime(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "P", P - 2)


def nothing_removed(patch: pytest.MonkeyPatch) -> None:
    honest = BoundedQuery._print_placed_rows
    patch.setattr(BoundedQuery, "_print_placed_rows", lambda self: honest(self).replace("d <= 3", "TRUE"))


def rows_unordered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BoundedRows, "order", lambda _: "t1 DESC")


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
    """However the table is read."""
    right = confirmed()
    mutate(monkeypatch)
    for engine in (without(None), *(accessed(without(None), access) for access in ACCESSES)):
        assert unsealed(engine.read(ASKED)) != right


APART = [
    buckets_taken_for_groups,
    odd_buckets_taken_for_single_rows,
    low_buckets_not_looked_at,
    one_low_bucket_not_looked_at,
]


@pytest.mark.ci
@pytest.mark.parametrize("mutate", [None, *APART], ids=lambda mutate: mutate.__name__ if mutate else "none")
def test_rows_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None] | None
) -> None:
    """Units with 3 to 8 rows in 12 groups: one, two or three of them in a bucket, which is a low one or a high one."""
    rows = [
        {"u": f"{unit}", "a": int(digest(f"{unit} {i}"), 16) % 12, "x": float(i)}
        for unit in range(300)
        for i in range(3 + unit % 6)
    ]
    memory, engine = Memory(), DuckDB(threads=1)
    memory.register("t", rows, COLUMNS)
    engine.register("t", arrow(rows, COLUMNS), COLUMNS)
    if mutate is not None:
        mutate(monkeypatch)
    right = unsealed(memory.read(ASKED))
    for one in (engine, *(accessed(engine, access) for access in ACCESSES)):
        assert (unsealed(one.read(ASKED)) == right) is (mutate is None)
    engine.close()


@cache
def confirmed() -> Groups:
    """What the referee says, and the honest statement, too."""
    memory = Memory()
    memory.register("t", crowd(), COLUMNS)
    right = unsealed(memory.read(ASKED))
    for engine in (without(None), *(accessed(without(None), access) for access in ACCESSES)):
        assert unsealed(engine.read(ASKED)) == right
    return right


def somebody_moves_too_far() -> bool:
    """Whether one of those with most rows, there or not, changes more than the limits."""
    everybody = unsealed(without(None).read(ASKED))
    try:
        for unit in range(30, 40):
            assert_moved(unsealed(without(unit).read(ASKED)), everybody, groups=3, rows=2)
    except AssertionError:
        return True
    return False


@cache
def without(unit: int | None) -> DuckDB:
    """The crowd but for one unit; mistakes are made in statements, never in what is stored."""
    engine = DuckDB(threads=1)
    engine.register("t", arrow([row for row in crowd() if row["u"] != f"{unit}"], COLUMNS), COLUMNS)
    return engine


@pytest.mark.ci
def test_nobody_moves_too_far() -> None:
    assert not somebody_moves_too_far()


@pytest.mark.parametrize("mutate", [everybody_innocent, nothing_removed], ids=lambda mutate: mutate.__name__)
def test_brute_force_notices(monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None]) -> None:
    mutate(monkeypatch)
    assert somebody_moves_too_far()


def groups_of_equal_rank_in_no_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BoundedRows, "ordered_keys", lambda _: iter(()))


def written(
    method: str, old: str, new: str, by: type[OneSort | PlacedTable] = OneSort
) -> Callable[[pytest.MonkeyPatch], None]:
    """A mistake in what a strategy prints."""
    honest: Callable[..., str] = getattr(by, method)

    def mutate(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(by, method, lambda self, *given, **options: honest(self, *given, **options).replace(old, new))

    return mutate


SORTED = {
    "groups of equal rank in no order": groups_of_equal_rank_in_no_order,
    "rows unordered": rows_unordered,
    "rank, not dense": written("_print_placed_rows", "DENSE_RANK()", "RANK()"),
    "rows before the group counted as its own": written("_print_placed_rows", " RANK() OVER", " DENSE_RANK() OVER"),
    "NULL after all terms": written("_print_placed_rows", "NULL THEN 0 ELSE 1", "NULL THEN 1 ELSE 0"),
    "NULL after all keys": written("_print_placed_rows", "k0 NULLS FIRST", "k0 NULLS LAST"),
    "one group too many": written("_print_placed_rows", "d <= 3", "d <= 4"),
    "one group too few": written("_print_placed_rows", "d <= 3", "d < 3"),
    "one row too many": written("_print_rows_within", "n - 2", "n - 3"),
    "one row too few": written("_print_rows_within", "n - 2", "n - 1"),
    "each row a unit": written("sql", "CASE WHEN moved < n THEN 1 END", "1"),
}

PLACED = {
    "groups of equal rank in no order": groups_of_equal_rank_in_no_order,
    "rows unordered": rows_unordered,
    "rank, not dense": written("table", "DENSE_RANK()", "RANK()", PlacedTable),
    "rows counted up to their own": written("table", ALIKE, "ROWS UNBOUNDED PRECEDING", PlacedTable),
    "NULL after all terms": written("_print_picked_rows", "NULL THEN 0 ELSE 1", "NULL THEN 1 ELSE 0", PlacedTable),
    "NULL after all keys": written("table", "k0 NULLS FIRST", "k0 NULLS LAST", PlacedTable),
    "one group too many": written("table", "d <= 3", "d <= 4", PlacedTable),
    "one group too few": written("table", "d <= 3", "d < 3", PlacedTable),
    "one row too many": written("_print_picked_rows", "n - 2", "n - 3", PlacedTable),
    "one row too few": written("_print_picked_rows", "n - 2", "n - 1", PlacedTable),
    "groups of few rows left out": written("_print_rows_within", "n <= 2", "n < 2", PlacedTable),
    "groups of few rows twice": written("_print_rows_within", "n > 2", "n >= 2", PlacedTable),
    "each row a unit": written("_print_rows_within", "CASE WHEN moved < n THEN 1 END", "1", PlacedTable),
}


@pytest.mark.parametrize("mistake", SORTED)
def test_the_referee_notices_in_one_sort(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    (_, right), engine = sorted_rightly("one_sort")
    SORTED[mistake](monkeypatch)
    assert unsealed(engine.read(ASKED)) != right


@pytest.mark.parametrize("mistake", PLACED)
def test_the_referee_notices_in_a_sort_of_groups(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    """Where units are counted, and where they are not: then few rows are passed on as they are."""
    rights, engine = sorted_rightly("group_sort")
    PLACED[mistake](monkeypatch)
    assert [unsealed(engine.read(asked)) for asked in (UNCOUNTED, ASKED)] != rights


def of_equal_rank() -> list[dict[str, Any]]:
    """Rows of groups whose ranks are equal, one of them of NULL, and values that are missing."""
    keys = (None, 0, P, -P, 2 * P, 1, 2, 3)
    values = [None if i % 4 == 0 else i % 9 - 2.0 for i in range(150)]
    rows = [{"u": f"{i % 6}", "a": keys[i * i % 7 % (2 + i % 6)], "x": x} for i, x in enumerate(values)]
    like_null = Salt(bounding().salt).null
    rows += [{"u": f"{unit}", "a": a, "x": unit / 2} for unit in range(6, 40) for a in (None, like_null, 7, unit)]
    return rows


@cache
def sorted_rightly(strategy: Strategy) -> tuple[list[Groups], DuckDB]:
    """What is right of them; the honest statement is."""
    rows = of_equal_rank()
    memory, engine = Memory(), DuckDB(threads=1)
    memory.register("t", rows, COLUMNS)
    engine.register("t", arrow(rows, COLUMNS), COLUMNS)
    rights = [unsealed(memory.read(asked)) for asked in (UNCOUNTED, ASKED)]
    assert unsealed(engine.read(ASKED)) == rights[1]
    (other,) = (other for other in otherwise_bounded(engine) if other.dialect.strategy == strategy)
    assert [unsealed(other.read(asked)) for asked in (UNCOUNTED, ASKED)] == rights
    return rights, other
