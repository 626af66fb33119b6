"""Contributions: how much one unit can move (RT-023), by brute force, and that every engine keeps the same rows."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import DuckDB, Memory
from discreet.engines.row_choice import BUCKET, BUCKETS, P, Salt, digest, stays
from discreet.plan.model.readings import ContributionBounding, Groups, Reading, Split, Spread, Statistic
from discreet.plan.model.types import Type
from tests.cases import try_all
from tests.effort import some, tried
from tests.engines.tables import (
    ACCESSES,
    EDGES,
    ENGINES,
    PRINTERS,
    REFEREE,
    B,
    Bench,
    D,
    F,
    N,
    S,
    T,
    accessed,
    arrow,
    bounding,
    call,
    col,
    lit,
    otherwise_bounded,
)
from tests.open_groups import unsealed

HIGH = 10
COLUMNS = {"u": T, "a": N, "b": T, "x": F}
X = col("x", F)
STATISTICS = (
    Statistic(kind="rows"),
    Statistic(kind="units"),
    Statistic(kind="values", argument=X),
    Statistic(kind="sum", argument=X, exponent=-2, low=-HIGH, high=HIGH, shift=3),
    Statistic(kind="distinct", argument=call("to_int", N, X)),
)


def reading(
    limits: ContributionBounding, *, keys: tuple[Any, ...] = (col("a", N), col("b", T)), **more: Any
) -> Reading:
    return Reading(table="t", keys=keys, bounding=limits, statistics=STATISTICS, **more)


def assert_same_by_public_keys(bench: Bench, asked: Reading, right: Groups) -> None:
    """Where all keys that there are are public, in whatever order, nothing else comes out."""
    memory, _ = bench.engines[REFEREE]
    found = [*unsealed(memory.read(Reading(table="t", keys=asked.keys, statistics=STATISTICS[:1])))]
    public = replace(asked, public_keys=(*found[1:], *found[:1], *found[-1:]))
    assert bench.agreed(public, among=PRINTERS) == right


def assert_agreed(engine: DuckDB, asked: Reading, right: Groups) -> None:
    """With each strategy of bounding, and however the table is read."""
    assert unsealed(engine.read(asked)) == right
    for other in (*otherwise_bounded(engine), accessed(engine, ACCESSES[0])):
        assert unsealed(other.read(asked)) == right


def table(units: int, rows: int, groups: int) -> list[dict[str, Any]]:
    """Everybody's number of rows and groups differs; some ids are missing or only blanks."""
    made = []
    for i in range(rows):
        unit = (i * i + 3 * i) % units
        name = None if unit == 0 else "  " if unit == 1 else f" id {unit} " if i % 2 else f"id {unit}"
        made.append({"u": name, "a": (i * 7) % groups, "b": None if i % 5 == 0 else str(i % 3), "x": EDGES[F][i % 21]})
    return made


@pytest.mark.ci
def test_every_engine_keeps_the_same_rows(bench: Bench) -> None:
    """A salt is a few numbers in the statement: for others, one way of storing tables is as good as another."""
    bench.load(table(13, 300, 11), COLUMNS)
    pairs = [(1, 1), (1, 3), (3, 1), (2, 2), (150, 1), (10**9, 10**9)]
    salts = {"salt": ENGINES, "": PRINTERS, "'; DROP TABLE t;--\0é": PRINTERS}

    def check_rows(case: tuple[int, int, str]) -> None:
        groups, rows, salt = case
        limits = bounding(groups, rows, salt=salt)
        answer = bench.agreed(reading(limits), among=salts[salt])
        assert sum(numbers[1] for numbers in answer.values()) <= 11 * groups
        for other in (
            reading(limits, keys=()),
            reading(limits, where=call("less", B, col("a", N), lit(6, N))),
            reading(limits, public_keys=((1, "1"), (2, None), (5, "0"))),
            Reading(table="t", keys=(col("b", T),), bounding=limits, statistics=STATISTICS[:2]),
        ):
            bench.agreed(other, among=salts[salt])

    try_all(some([(*pair, salt) for pair in pairs for salt in salts], 8), check_rows)


@pytest.mark.ci
def test_every_engine_keeps_the_same_rows_of_a_total(bench: Bench) -> None:
    """At most so many rows of one unit in all groups together, whatever they are grouped by."""
    bench.load(table(13, 300, 11), COLUMNS)
    referee, _ = bench.engines[REFEREE]
    of_units = unsealed(referee.read(Reading(table="t", keys=(col("u", T),), statistics=STATISTICS[:1])))
    by_unit: dict[str, int] = {}
    for (unit,), (rows,) in of_units.items():
        called = str(unit or "").strip()
        if called:
            by_unit[called] = by_unit.get(called, 0) + rows

    def check_total(total: int) -> None:
        limits = replace(bounding(total, total), total=total)
        kept = sum(min(total, rows) for rows in by_unit.values())
        several = (col("a", N), col("b", T))
        for keys in ((), several, (col("b", T),)):
            answer = bench.agreed(reading(limits, keys=keys))
            assert sum(numbers[0] for numbers in answer.values()) == kept
            if keys:
                assert_same_by_public_keys(bench, reading(limits, keys=keys), answer)
            for statistics in (STATISTICS[:1], STATISTICS[:2], STATISTICS[2:]):  # parts of the same statement
                bench.agreed(Reading(table="t", keys=keys, bounding=limits, statistics=statistics), among=PRINTERS)
        for other in (
            reading(limits, where=call("less", B, col("a", N), lit(6, N))),
            reading(limits, public_keys=((1, "1"), (2, None), (5, "0"))),
            Reading(table="t", keys=several, bounding=limits, spread=Spread()),
            Reading(table="t", keys=several, bounding=limits, split=Split(argument=X, exponent=-2, low=-40, high=40)),
        ):
            bench.agreed(other)

    try_all([1, 3, 20, 10**9], check_total)


@pytest.mark.ci
def test_a_total_keeps_rows_of_one_unit_by_its_own_rows(bench: Bench) -> None:
    """Another unit's rows change nothing about which rows are kept, and those that are kept are spread over groups."""
    own = [{"u": "me", "a": i % 3, "b": "x", "x": float(i)} for i in range(30)]
    others = [{"u": f"{i % 5}", "a": i % 4, "b": "x", "x": 1.0} for i in range(200)]
    limits = replace(bounding(6, 6), total=6)
    mine = replace(reading(limits, keys=(col("a", N),)), where=call("equal", B, col("u", T), lit("me", T)))
    found = []
    for rows in (own, [*others, *own], [*own[::-1], *others]):
        bench.load(rows, COLUMNS)
        found.append(bench.agreed(mine))
    assert found[0] == found[1] == found[2]
    assert [numbers[0] for numbers in found[0].values()] == [2, 2, 2]


@cache
def crowd() -> list[dict[str, Any]]:
    """Units with 1 to 120 rows in 1 to 40 groups: ceilings bind, buckets are shared, groups are crowded."""
    return [
        {"u": f"{unit}", "a": (i * i + unit) % (1 + unit), "b": str(i % 2), "x": float(i % 9)}
        for unit in range(40)
        for i in range(1 + 3 * unit)
    ]


@pytest.mark.slow
def test_limits_that_bind_for_most(bench: Bench) -> None:
    bench.load(crowd(), COLUMNS)
    of_units = [len({row["a"] for row in crowd() if row["u"] == f"{unit}"}) for unit in range(40)]

    def check_limits(case: tuple[int, int]) -> None:
        groups, rows = case
        by_a = bench.agreed(reading(bounding(groups, rows), keys=(col("a", N),)))
        assert sum(numbers[1] for numbers in by_a.values()) == sum(min(groups, own) for own in of_units)
        for keys in ((col("a", N), col("b", T)), (col("b", T),)):
            limits = bounding(groups, rows, salt=f"{keys}")
            assert_same_by_public_keys(bench, reading(limits, keys=keys), bench.agreed(reading(limits, keys=keys)))
            for statistics in (STATISTICS[:1], STATISTICS[2:]):  # parts of the same statement
                part = Reading(table="t", keys=keys, bounding=limits, statistics=statistics)
                bench.agreed(part, among=PRINTERS)

    try_all([(1, 1), (3, 1), (3, 4), (16, 2), (17, 1), (39, 2)], check_limits)


@pytest.mark.ci
def test_many_terms_are_added_up_row_by_row(bench: Bench) -> None:
    """More than are added up pair by pair, with groups and rows beyond the limits; the last one tells rows apart."""
    bench.load([{**row, "x": None if i % 4 == 0 else i / 2} for i, row in enumerate(crowd())], COLUMNS)
    finer = (Statistic(kind="sum", argument=X, exponent=-e, low=-5, high=9 << e, shift=e) for e in range(20))
    statistics = (*STATISTICS[:1], *STATISTICS[2:], *finer)
    for keys in some(((col("b", T), col("a", N)), (col("a", N),), ()), 3):
        asked = Reading(table="t", keys=keys, bounding=bounding(3, 2), statistics=statistics)
        right = bench.agreed(asked, among=PRINTERS)
        assert_same_by_public_keys(bench, asked, right)
        with_units = replace(asked, statistics=(*statistics, STATISTICS[1]))  # where pairs are added up
        found = bench.agreed(with_units, among=PRINTERS)
        assert {key: numbers[:-1] for key, numbers in found.items()} == right


@pytest.mark.ci
def test_texts_of_what_is_left_out_are_not_passed(bench: Bench) -> None:
    """Two arguments that are the same but for the names of what they compare with, of which one is computed."""
    bench.load(crowd(), COLUMNS)
    ones = [call("if", N, call("equal", B, col("b", T), lit("1", T)), lit(1, N), lit(0, N)) for _ in range(2)]
    first, second = ones
    statistics = (Statistic(kind="values", argument=first), Statistic(kind="sum", argument=second, high=1))
    for keys in ((), (col("a", N),)):
        for limits in (bounding(3, 2), None):
            bench.agreed(Reading(table="t", keys=keys, bounding=limits, statistics=statistics), among=PRINTERS)


@pytest.mark.ci
def test_a_text_file_is_read_once_and_the_same_rows_are_kept(tmp_path: Path) -> None:
    """Its rows are kept between one look and the next, those without an id, too."""
    path, columns = tmp_path / "t.csv", {"u": T, "n": N, "a": N, "b": T, "x": F}
    rows = [{**row, "n": None if i % 7 == 0 else i % 5} for i, row in enumerate(table(13, 200, 11))]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        writer.writerows(
            [{name: f" {cell} " if name in "nx" and cell else cell for name, cell in row.items()} for row in rows]
        )
    memory = Memory()
    memory.register("t", rows, columns)
    with DuckDB(threads=1) as engine:
        engine.register("t", path, columns)

        def check_file(case: tuple[str, int, int]) -> None:
            unit, groups, kept = case
            limits = bounding(groups, kept, unit=unit)
            for asked in (
                reading(limits),
                reading(limits, keys=()),
                Reading(table="t", keys=(col("a", N),), bounding=limits, spread=Spread()),
                reading(limits, public_keys=((1, "1"), (2, None), (5, "0")), where=call("less", B, X, lit(5.0, F))),
            ):
                assert_agreed(engine, asked, unsealed(memory.read(asked)))

        try_all(some([("u", 1, 1), ("u", 3, 2), ("n", 2, 1), ("n", 20, 1)], 4), check_file)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("groups", [1, 3, 16, 17, 40])
def test_one_group_too_many_for_each_of_many_units(bench: Bench, groups: int) -> None:
    """One row each: of 100 units some have all their groups in different buckets, and some do not."""
    rows = [{"u": unit, "a": group, "x": float(group)} for unit in range(100) for group in range(groups + 1)]
    bench.load(rows, {"u": N, "a": N, "x": F})
    answer = bench.agreed(reading(bounding(groups, 1), keys=(col("a", N),)))
    assert sum(numbers[0] for numbers in answer.values()) == 100 * groups


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [N, B, T, D, S], ids=lambda kind: kind.value)
def test_units_and_keys_of_every_type(bench: Bench, kind: Type) -> None:
    values = EDGES[kind]
    rows = [{"u": u, "k": k, "x": x} for u in values for k in values for x in EDGES[F][1:5]]
    bench.load(rows, {"u": kind, "k": kind, "x": F})
    answer = bench.agreed(asked := reading(bounding(2, 3), keys=(col("k", kind),)))
    assert_same_by_public_keys(bench, asked, answer)
    units = len({u.strip(" ") if isinstance(u, str) else u for u in values} - {None, ""})
    assert 0 < sum(numbers[1] for numbers in answer.values()) <= units * min(2, len(values))


@pytest.mark.ci
def test_rows_are_ordered_by_what_they_add(bench: Bench) -> None:
    columns = {"u": N, "n": N, "x": F, "s": T}
    values = [(n, x, s) for n in EDGES[N][:5] for x in EDGES[F][:4] for s in (None, "a", "b")]
    bench.load([{"u": 1, "n": n, "x": x, "s": s} for n, x, s in values], columns)
    statistics = (
        Statistic(kind="nulls", argument=col("s", T)),
        Statistic(kind="sum", argument=col("n", N), exponent=1, low=-2, high=2),
        Statistic(kind="sum", argument=X, exponent=-1, low=-HIGH, high=HIGH, shift=1),
        Statistic(kind="values", argument=col("n", N)),
    )
    salts = {"a": ENGINES, "b": PRINTERS, "c": PRINTERS}

    def check_order(case: tuple[int, str]) -> None:
        kept, salt = case
        limits = bounding(1, kept, salt=salt)
        bench.agreed(Reading(table="t", bounding=limits, statistics=statistics), among=salts[salt])
        bench.agreed(Reading(table="t", bounding=limits, statistics=statistics[::-1]), among=salts[salt])

    try_all(some([(kept, salt) for kept in range(1, 12) for salt in salts], 7), check_order)


def test_missing_ids_are_dropped_and_blanks_at_the_ends_do_not_make_another_person(bench: Bench) -> None:
    bench.load([{"u": u} for u in (None, "", "   ", "a", " a", "a  ", "A")], {"u": T})
    rows = (Statistic(kind="rows"), Statistic(kind="units"))
    assert bench.agreed(Reading(table="t", bounding=bounding(1, 2), statistics=rows)) == {(): (3, 2)}


@pytest.mark.ci
def test_one_user_with_many_rows_counts_as_one(bench: Bench) -> None:
    heavy = [{"u": "rich", "a": i % 1000, "b": str(i), "x": 1e9} for i in range(5000)]
    bench.load(heavy + table(5, 40, 3), COLUMNS)
    with_rich = bench.agreed(reading(bounding(3, 2), keys=(col("a", N),)))
    bench.load(table(5, 40, 3), COLUMNS)
    assert_moved(bench.agreed(reading(bounding(3, 2), keys=(col("a", N),))), with_rich, groups=3, rows=2)


def assert_moved(before: Groups, after: Groups, *, groups: int, rows: int) -> None:
    """At most `groups` groups differ, each by one unit, `rows` rows and their clipped and shifted values."""
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    assert len(changed) <= groups
    for key in changed:
        moved = [abs(a - b) for a, b in zip(before.get(key, (0,) * 5), after.get(key, (0,) * 5), strict=True)]
        assert moved[0] <= rows
        assert moved[1] <= 1
        assert moved[2] <= rows
        assert moved[3] <= rows * (HIGH + 3)
        assert moved[4] <= rows


cells = st.fixed_dictionaries(
    {
        "u": st.sampled_from(["a", "b", "c", " c", None]),
        "a": st.integers(0, 4),
        "b": st.sampled_from([None, "x"]),
        "x": st.none() | st.floats(width=16),
    }
)


@given(rows=st.lists(cells, max_size=30), groups=st.integers(1, 3), rows_each=st.integers(1, 3), grouped=st.booleans())
def test_one_unit_moves_no_more_than_its_limits(
    rows: list[dict[str, Any]], groups: int, rows_each: int, grouped: bool
) -> None:
    asked = reading(bounding(groups, rows_each), keys=(col("a", N), col("b", T)) if grouped else ())
    others = [row for row in rows if row["u"] is None or row["u"].strip() != "c"]
    answers = []
    for held in (rows, others):
        engine = Memory()
        engine.register("t", held, COLUMNS)
        answers.append(unsealed(engine.read(asked)))
    assert_moved(answers[1], answers[0], groups=groups, rows=rows_each)


@pytest.mark.ci
@tried(25)
@given(rows=st.lists(cells, max_size=30), groups=st.integers(1, 3), rows_each=st.integers(1, 3))
def test_engines_agree_on_random_tables(rows: list[dict[str, Any]], groups: int, rows_each: int) -> None:
    memory = Memory()
    memory.register("t", rows, COLUMNS)
    with DuckDB(threads=2) as engine:
        engine.register("t", arrow(rows[::-1], COLUMNS), COLUMNS)
        for keys in ((), (col("a", N),), (col("b", T), col("a", N))):
            for statistics in (STATISTICS, STATISTICS[:1], STATISTICS[2:]):
                limits = bounding(groups, rows_each)
                asked = Reading(table="t", keys=keys, bounding=limits, statistics=statistics)
                assert_agreed(engine, asked, unsealed(memory.read(asked)))
            public = replace(asked, public_keys=((None, 2)[-len(keys) :],) * 2 if keys else ((),))
            assert_agreed(engine, public, unsealed(memory.read(public)))


def test_groups_are_chosen_evenly() -> None:
    """10,000 units choose 1 of 10 groups: each is chosen 1,000 times, give or take 6 standard deviations of 30."""
    salt, chosen = Salt("salt"), [0] * 10
    for unit in range(10_000):
        chosen[min(range(10), key=lambda key: salt.rank(unit, (key,)))] += 1
    assert all(abs(count - 1000) < 180 for count in chosen)


def test_rows_are_chosen_evenly() -> None:
    """2,000 units choose 1 of 10 rows, of which one is 1: chosen 200 times, give or take 6 deviations of 13.4."""
    memory = Memory()
    memory.register("t", [{"u": u, "n": int(i == 3)} for u in range(2000) for i in range(10)], {"u": N, "n": N})
    ones = Statistic(kind="sum", argument=col("n", N), high=1)
    answer = unsealed(memory.read(Reading(table="t", bounding=bounding(1, 1), statistics=(ones,))))
    assert abs(answer[()][0] - 200) < 81


def test_of_n_rows_exactly_as_many_are_kept_as_allowed_and_each_as_often() -> None:
    for n in range(2, 15):
        for rows in range(1, n):
            kept = [[stays(place, rows, start, n) for place in range(n)] for start in range(n)]
            assert all(sum(places) == rows for places in kept)
            assert all(sum(starts) == rows for starts in zip(*kept, strict=True))


def test_ranks_fill_their_buckets() -> None:
    assert (BUCKETS - 1) * BUCKET < P < BUCKETS * BUCKET <= 1 << 30
    assert all(P % divisor for divisor in range(2, 32_511))  # 32,511^2 > P
    assert len({Salt("salt").rank(1, (key,)) // BUCKET for key in range(2000)}) == BUCKETS


def test_units_without_meaning_are_refused(bench: Bench) -> None:
    bench.load([{"u": "a", "a": 1, "b": "b", "x": 1.0}], COLUMNS)
    wrongs = (
        bounding(unit="x"),
        bounding(unit="absent"),
        bounding(groups=0),
        bounding(rows=0),
        bounding(salt="\ud800"),
    )
    bench.check_refused(*map(reading, wrongs))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("groups", [1, 2, 6, 7])
def test_groups_that_share_a_rank_are_told_apart_by_their_keys(bench: Bench, groups: int) -> None:
    """Keys that differ by multiples of P have the same rank for everybody: the worst that a key can do."""
    rows = [{"u": str(i % 3), "a": P * (i % 7 - 3), "b": "", "x": 1.0} for i in range(60)]
    bench.load(rows + [{"u": "9", "a": i, "b": "", "x": 1.0} for i in (0, 1, 2, P)], COLUMNS)
    answer = bench.agreed(asked := reading(bounding(groups, 5), keys=(col("a", N),)))
    assert_same_by_public_keys(bench, asked, answer)
    assert sum(numbers[1] for numbers in answer.values()) == 3 * groups + min(groups, 4)


@pytest.mark.ci
def test_texts_of_one_digest_are_told_apart_by_their_letters(bench: Bench) -> None:
    seen: dict[str, str] = {}
    pairs = [(seen.setdefault(digest(text)[:7], text), text) for text in map(str, range(60_000))]
    alike = [text for pair in pairs if pair[0] != pair[1] for text in pair]
    assert len(alike) >= 4
    bench.load([{"u": "a", "a": 1, "b": text, "x": 1.0} for text in [*alike, None, "\0", "ß"]][::-1], COLUMNS)
    for groups in some(range(1, len(alike)), 4):
        answer = bench.agreed(asked := reading(bounding(groups), keys=(col("b", T), col("a", N))))
        assert_same_by_public_keys(bench, asked, answer)
        assert sum(numbers[1] for numbers in answer.values()) == groups
