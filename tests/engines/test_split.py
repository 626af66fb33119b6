"""Splits: every engine counts the same kept rows in the same cells, coarse and fine, and one unit moves few of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import Memory
from discreet.engines.memory import engine as memory_module
from discreet.plan.model.readings import CellSelection, ContributionBounding, Groups, Reading, Split, Statistic
from tests.cases import try_all
from tests.effort import some, tried
from tests.engines.tables import ENGINES, PRINTERS, B, Bench, F, N, T, bounding, call, col, lit
from tests.engines.test_bounding import COLUMNS, X, crowd, table
from tests.open_groups import unsealed

SPLIT = Split(argument=X, exponent=-2, low=-10, high=41)
KEYS = (col("a", N), col("b", T))


def reading(split: Split, limits: ContributionBounding | None, keys: tuple[Any, ...] = KEYS, **more: Any) -> Reading:
    return Reading(table="t", keys=keys, bounding=limits, split=split, **more)


def counts(answer: Groups) -> dict[Any, Counter[int]]:
    """For each group the number of rows by cell; checks the form of the answer."""
    found = {}
    for key, numbers in answer.items():
        half = len(numbers) // 2
        cells, rows = numbers[:half], numbers[half:]
        assert cells == tuple(sorted(set(cells)))
        assert len(cells) == len(rows) > 0 < min(rows)
        found[key] = Counter(dict(zip(cells, rows, strict=True)))
    return found


LIMITS = [None, (1, 1), (1, 3), (3, 1), (2, 2), (17, 2), (10**9, 10**9)]


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [table(13, 150, 11), crowd()[:400], []], ids=["table", "crowd", "nothing"])
@pytest.mark.parametrize("shift", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_every_engine_counts_the_same(bench: Bench, rows: list[dict[str, Any]], shift: int) -> None:
    bench.load(rows, COLUMNS)
    split = dataclasses.replace(SPLIT, shift=shift)
    among = ENGINES if len(rows) == 150 else PRINTERS  # what is stored is read in one way, whatever is asked about it

    def check_cells(limits: tuple[int, int] | None) -> None:
        bound = None if limits is None else bounding(*limits)
        whole = reading(split, bound)
        counts(bench.agreed(whole))
        for other in (
            reading(split, bound, keys=()),
            reading(split, bound, keys=(col("b", T),)),
            dataclasses.replace(whole, where=call("less", B, col("a", N), lit(6, N))),
            dataclasses.replace(whole, public_keys=((1, "1"), (2, None), (5, "0"))),
        ):
            counts(bench.agreed(other, among=among))

    try_all(LIMITS, check_cells)


def test_a_constant_is_counted_without_keys(bench: Bench) -> None:
    """Rows have nothing to carry then, neither keys nor what the argument is computed from."""
    bench.load(table(13, 150, 11), COLUMNS)
    constant = dataclasses.replace(SPLIT, argument=lit(2.5, F))
    for limits in ((1, 1), (2, 2)):
        assert len(counts(bench.agreed(reading(constant, bounding(*limits), keys=()), among=PRINTERS))) == 1


@pytest.mark.ci
def test_coarse_and_fine_are_of_the_same_rows(bench: Bench) -> None:
    bench.load([*table(13, 150, 11), *crowd()[:400]], COLUMNS)
    try_all(some(LIMITS, 10), lambda limits: check_blocks(bench, limits))


def check_blocks(bench: Bench, limits: tuple[int, int] | None) -> None:
    bound = None if limits is None else bounding(*limits)
    fine = counts(bench.agreed(reading(SPLIT, bound)))
    coarse = counts(bench.agreed(reading(dataclasses.replace(SPLIT, shift=2), bound)))
    for key, cells in fine.items():
        blocks: Counter[int] = Counter()
        for cell, count in cells.items():
            blocks[cell >> 2] += count
        assert blocks == coarse[key]
    places = tuple((key, b, b + 1) for i, key in enumerate(coarse) for b in coarse[key] if (i + b) % 3 == 0)
    for chosen in (places, places[:1] * 2, ()):
        wanted = {(key, block) for key, first, last in chosen for block in range(first, last + 1)}
        some = counts(bench.agreed(reading(dataclasses.replace(SPLIT, only=CellSelection(2, chosen)), bound)))
        kept = {
            key: Counter({c: n for c, n in cells.items() if (key, c >> 2) in wanted}) for key, cells in fine.items()
        }
        assert some == {key: cells for key, cells in kept.items() if cells}


@pytest.mark.parametrize("kind", [N, F])
def test_cells_at_the_ends_of_what_fits(bench: Bench, kind: Any) -> None:
    edge = 1 << 61
    values = [None, -edge, edge, -edge - 1, edge + 1, 0, 7]
    bench.load([{"x": float(v) if kind is F and v is not None else v} for v in values], {"x": kind})
    split = Split(argument=col("x", kind), exponent=0, low=-edge, high=edge, shift=1)
    found = counts(bench.agreed(Reading(table="t", split=split)))[()]
    assert found == Counter({0: 2, edge: 2, edge >> 1: 1, (edge + 7) >> 1: 1})


def moved(rows: list[dict[str, Any]], without: list[dict[str, Any]], limits: ContributionBounding) -> Counter[Any]:
    """How many rows of each group one unit adds to the cells."""
    found = []
    for given_rows in (rows, without):
        engine = Memory()
        engine.register("t", given_rows, COLUMNS)
        found.append(counts(unsealed(engine.read(reading(SPLIT, limits)))))
    one, other = found
    result: Counter[Any] = Counter()
    for key in {**one, **other}:
        mine, theirs = one.get(key, Counter()), other.get(key, Counter())
        result[key] = sum(abs(mine[c] - theirs[c]) for c in mine | theirs)
    return +result


def check_moves(who: int, groups: int, rows: int, salt: str) -> None:
    limits, people = bounding(groups, rows, salt=salt), crowd()[-300:]
    change = moved(people, [row for row in people if row["u"] != f"{who}"], limits)
    assert len(change) <= groups
    assert max(change.values(), default=0) <= rows


@tried(30)
@given(who=st.integers(36, 39), groups=st.integers(1, 4), rows=st.integers(1, 3), salt=st.text("ab", max_size=2))
def test_one_unit_moves_few_rows_of_few_groups(who: int, groups: int, rows: int, salt: str) -> None:
    check_moves(who, groups, rows, salt)


def test_mutant_rows_are_not_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "_pick_rows", lambda rows, *_: rows)
    with pytest.raises(AssertionError):
        check_moves(39, 2, 1, "")


def test_what_no_engine_takes_is_refused_before_a_row_is_read(bench: Bench) -> None:
    bench.load([], COLUMNS)
    wrongs: list[dict[str, Any]] = [
        {"split": dataclasses.replace(SPLIT, argument=col("b", T))},
        {"split": dataclasses.replace(SPLIT, low=42)},
        {"split": dataclasses.replace(SPLIT, shift=-1)},
        {"split": dataclasses.replace(SPLIT, low=-(1 << 62), high=1 << 62)},
        {"split": dataclasses.replace(SPLIT, only=CellSelection(0, (((1,), 3, 3),)))},
        {"split": dataclasses.replace(SPLIT, only=CellSelection(0, (((1, "1"), 3, 2),)))},
        {"statistics": (Statistic(kind="rows"),)},
        {"split": None},
    ]
    bench.check_refused(*(dataclasses.replace(reading(SPLIT, bounding()), **wrong) for wrong in wrongs))
