"""Rows that an engine sorts by itself: it decides as the referee does, whatever ids, ranks and keys are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import DuckDB, Memory, unit_sort
from discreet.engines.duckdb import engine as module
from discreet.engines.row_choice import P
from discreet.engines.sql.printer import Access
from discreet.engines.unit_sort import KEPT, LEFT_OUT, UNDECIDED, decide_rows
from discreet.plan.model.readings import ContributionBounding, Reading, Split
from tests.engines.tables import EDGES, F, T, accessed, arrow, bounding, col
from tests.engines.test_bounding import STATISTICS
from tests.engines.test_single_rows import COLUMNS, CROWDS, KEYS, PUBLIC, rows
from tests.open_groups import unsealed

LAST = (1 << 63) - 1
SORTED = Access(is_kept=True, is_sorted=True)

# ------------------------------------------------------------------------------------------------------------ decisions

Row = tuple[int, int, int]
"""A unit, the rank of a group, and the group's number, which decides between groups of one rank."""


def kept_groups(some: Sequence[Row], groups: int) -> set[Row]:
    """The groups of each unit that are kept, as `row_choice` defines them."""
    by_unit: dict[int, set[tuple[int, int]]] = {}
    for unit, rank, number in some:
        by_unit.setdefault(unit, set()).add((rank, number))
    return {(unit, *each) for unit, found in by_unit.items() for each in sorted(found)[:groups]}


def is_right(some: Sequence[Row], groups: int, *, numbered: bool) -> bool:
    """Whether rows that are kept are alone in groups that are kept, and undecided ones show which groups are."""
    units, ranks, numbers = (np.array(column, np.int64) for column in zip(*some, strict=True))
    states = decide_rows(units, ranks, groups, numbers if numbered else None).tolist()
    right = kept_groups(some, groups)
    alone = {row for row in some if some.count(row) == 1}
    kept, undecided = (
        [row for row, state in zip(some, states, strict=True) if state == each] for each in (KEPT, UNDECIDED)
    )
    chosen = kept_groups(undecided, groups)
    return (
        all(row in right and row in alone for row in kept)
        and len({*kept} | chosen) == len(right) == len({*kept, *chosen} & right)
        and all(undecided.count(row) == some.count(row) for row in chosen)
        and set(states) <= {KEPT, LEFT_OUT, UNDECIDED}
    )


UNITS = {
    "close together": st.integers(-3, 6),
    "at the ends of all numbers": st.sampled_from([-LAST - 1, -LAST, -1, 0, 1, LAST - 1, LAST]),
    "far apart": st.integers(-LAST - 1, LAST),
}
RANKS = st.one_of(st.integers(0, 5), st.sampled_from([0, 1 << 18, (1 << 18) + 1, 1 << 29, P - 2, P - 1]))


@pytest.mark.ci
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("numbered", [True, False])
def test_decisions_are_those_of_the_definition(units: str, *, numbered: bool) -> None:
    row = st.tuples(UNITS[units], RANKS, st.integers(0, 2))

    @given(st.lists(row, min_size=1, max_size=40), st.integers(1, 5))
    def check(some: list[Row], groups: int) -> None:
        ranks = {(unit, number): rank for unit, rank, number in some}  # all rows of a unit's group have one rank
        alike = [(unit, ranks[unit, number], number) for unit, _, number in some]
        assert is_right(alike, groups, numbered=numbered)

    check()


def test_no_rows_need_no_decision() -> None:
    nothing = np.empty(0, np.int64)
    assert decide_rows(nothing, nothing, 3).tolist() == []


def test_units_with_one_hash_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """An odd factor of 1 leaves the highest bits of numbers alone, so that many numbers have the same ones."""
    monkeypatch.setattr(unit_sort, "_ODD", np.uint64(1))
    units = np.array([LAST, -LAST, 1, 2, 3, 3], np.int64)
    ranks = np.array([5, 6, 1, 2, 3, 4], np.int64)
    assert decide_rows(units, ranks, 1).tolist()[2:] == [UNDECIDED] * 4
    some = [(int(unit), int(rank), 0) for unit, rank in zip(units, ranks, strict=True)]
    assert is_right(some, 1, numbered=True)


def test_ranks_with_the_same_highest_bits_are_undecided_where_groups_differ() -> None:
    """Units at both ends of all numbers leave few bits for ranks."""
    units = np.array([LAST, -LAST - 1, 7, 7], np.int64)
    ranks = np.array([1, 1, 8, 9], np.int64)
    assert decide_rows(units, ranks, 1, np.array([0, 0, 1, 2])).tolist() == [KEPT, KEPT, UNDECIDED, UNDECIDED]
    assert decide_rows(units[2:], ranks[2:], 1, np.array([1, 2])).tolist() == [KEPT, LEFT_OUT]


# -------------------------------------------------------------------------------------------------------------- engines


def ask(limits: ContributionBounding, **more: Any) -> Reading:
    given: dict[str, Any] = {"table": "t", "keys": KEYS, "bounding": limits, "statistics": STATISTICS}
    return Reading(**given | more)


SPLIT = Split(argument=col("x", F), exponent=-2, low=-40, high=40)
LIMITS = bounding(3, 2)
READINGS = [
    ask(bounding(1, 1), public_keys=PUBLIC),
    ask(LIMITS),
    ask(LIMITS, statistics=STATISTICS[:1]),
    ask(LIMITS, keys=()),
    ask(LIMITS, keys=(col("b", T),), public_keys=(("p",), (None,))),
    *(ask(LIMITS, public_keys=PUBLIC, statistics=asked) for asked in (STATISTICS[:2], STATISTICS[2:4])),
    ask(LIMITS, public_keys=PUBLIC, statistics=(), split=SPLIT),
]
"""With private keys and public ones, of different types, and with statistics of all kinds."""


def differences(units: list[int | None], *, most_sorted: int | None = None) -> list[Reading]:
    """The readings that come out otherwise than the referee says, where rows are sorted."""
    memory, engine = Memory(), DuckDB(threads=1)
    memory.register("t", rows(units), COLUMNS)
    engine.register("t", arrow(rows(units), COLUMNS), COLUMNS)
    other = accessed(engine, SORTED)
    if most_sorted is not None:
        vars(other)["_most_sorted"] = most_sorted
    found = [reading for reading in READINGS if unsealed(other.read(reading)) != unsealed(memory.read(reading))]
    engine.close()
    return found


@pytest.mark.parametrize("crowd", CROWDS)
def test_the_same_rows_count(crowd: str) -> None:
    assert not differences(CROWDS[crowd])


def test_too_many_rows_are_bounded_by_the_database() -> None:
    assert not differences(CROWDS["most several times"], most_sorted=59)


Decide = Callable[..., np.ndarray[Any, Any]]


def one_group_more(honest: Decide) -> Decide:
    return lambda units, ranks, groups, *numbers: honest(units, ranks, groups + 1, *numbers)


def one_group_less(honest: Decide) -> Decide:
    return lambda units, ranks, groups, *numbers: honest(units, ranks, groups - 1, *numbers)


def several_rows_taken_for_one(honest: Decide) -> Decide:
    def mistaken(*given: Any) -> np.ndarray[Any, Any]:
        states = honest(*given)
        states[states == UNDECIDED] = KEPT
        return states

    return mistaken


def undecided_rows_left_out(honest: Decide) -> Decide:
    def mistaken(*given: Any) -> np.ndarray[Any, Any]:
        states = honest(*given)
        states[states == UNDECIDED] = LEFT_OUT
        return states

    return mistaken


def groups_of_one_rank_taken_for_one(honest: Decide) -> Decide:
    return lambda units, ranks, groups, *_: honest(units, ranks >> 27 << 27, groups, np.zeros_like(ranks))


MUTANTS = (
    one_group_more,
    one_group_less,
    several_rows_taken_for_one,
    undecided_rows_left_out,
    groups_of_one_rank_taken_for_one,
)


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_the_referee_notices(monkeypatch: pytest.MonkeyPatch, mutate: Callable[[Decide], Decide]) -> None:
    monkeypatch.setattr(unit_sort, "decide_rows", mutate(decide_rows))
    assert differences(CROWDS["most several times"])


ROWS = 60_000


@pytest.mark.ci
@pytest.mark.parametrize("ids", ["few rows each", "far apart", "missing"])
def test_long_tables_are_sorted(tmp_path: Path, ids: str) -> None:
    """A long file is read in batches by several threads; the other way of bounding is the judge of it."""
    units = {
        "few rows each": [i * 7919 % 25_000 for i in range(ROWS)],
        "far apart": [(i * 7919 % 9_000) * 1_000_000_007 - LAST // 2 for i in range(ROWS)],
        "missing": [None if i % 3 else i % 500 for i in range(ROWS)],
    }[ids]
    table = pa.table(
        {
            "u": pa.array(units, pa.int64()),
            "a": [i * i % 40 for i in range(ROWS)],
            "b": [str(i % 3) for i in range(ROWS)],
            "x": [(i * 2654435761 % 1_000_003) / 7 for i in range(ROWS)],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=7_000)
    with DuckDB(threads=2) as engine:
        engine.register("t", tmp_path / "t.parquet", COLUMNS)
        asked = Reading(table="t", keys=KEYS, public_keys=PUBLIC, bounding=bounding(3, 1), statistics=STATISTICS[:4])
        assert engine._access(asked, engine._cursor()).is_sorted
        other = accessed(engine, Access(is_kept=True))
        for reading in (asked, ask(bounding(2, 2))):
            assert unsealed(engine.read(reading)) == unsealed(other.read(reading))


@pytest.mark.ci
def test_a_folder_is_read_as_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is measured and sorted like one, whatever files its rows are in."""
    table = pa.table(
        {
            "u": [i * 7919 % 5_003 for i in range(ROWS)],
            "a": [i * i % 40 for i in range(ROWS)],
            "b": [str(i % 3) for i in range(ROWS)],
            "x": [(i * 2654435761 % 1_000_003) / 7 for i in range(ROWS)],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "many").mkdir()
    for place, first in enumerate(range(0, ROWS, 17_000)):
        pq.write_table(table.slice(first, 17_000), tmp_path / "many" / f"{place}.parquet")
    asked = Reading(table="t", keys=KEYS, public_keys=PUBLIC, bounding=bounding(3, 1), statistics=STATISTICS[:4])
    chosen, honest = list[Access](), DuckDB._access

    def access(self: DuckDB, *told: Any) -> Access:
        chosen.append(honest(self, *told))
        return chosen[-1]

    monkeypatch.setattr(DuckDB, "_access", access)
    answers = []
    for source in (tmp_path / "t.parquet", tmp_path / "many"):
        with DuckDB(threads=1) as engine:
            engine.register("t", source, COLUMNS)
            answers.append(unsealed(engine.read(asked)))
    assert answers[0] == answers[1]
    one, many = chosen
    assert one == many
    assert many.is_sorted


CELLS = [
    *(cell for cell in EDGES[T] if cell is not None and "\0" not in cell),
    *("1", " 1", "1 ", "+1", "01", "1.0", "1e0", "1_0", "-1", "--1", "9" * 40, "\t1", "1\t", "\ufeff1", "0x1", "1,5"),
]


def test_ids_in_text_files_count_as_they_did(tmp_path: Path) -> None:
    """Cells that are no numbers are ids of nobody, and numbers written in different ways are one id."""
    some = [
        {
            "u": CELLS[i * 7 % len(CELLS)],
            "a": CELLS[i * 5 % len(CELLS)],
            "x": CELLS[i * 3 % len(CELLS)],
            "b": f"{i % 3}",
        }
        for i in range(400)
    ]
    path = tmp_path / "t.csv"
    quoted = (",".join('"' + row[name].replace('"', '""') + '"' for name in ("u", "a", "b", "x")) for row in some)
    path.write_text("u,a,b,x\n" + "".join(f"{line}\n" for line in quoted), encoding="utf-8", newline="")
    memory, engine = Memory(), DuckDB(threads=1)
    memory.register("t", [{name: cell or None for name, cell in row.items()} for row in some], COLUMNS)
    engine.register("t", path, COLUMNS)
    other = accessed(engine, Access(is_slow=True, is_kept=True, is_sorted=True))
    assert all(unsealed(other.read(reading)) == unsealed(memory.read(reading)) for reading in READINGS[:5])
    engine.close()


def test_a_limit_of_memory_allows_for_fewer_rows() -> None:
    with DuckDB(memory_limit="1GB") as limited, DuckDB() as free:
        assert limited._most_sorted == 10**9 // module._BYTES_A_ROW < free._most_sorted == unit_sort.MOST_ROWS
