"""Contributions: how much one unit can move (RT-023), by brute force, and that every engine keeps the same rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engines import DuckDB, Memory
from discreet.engines.choosing import P, Salt, canonical, fifth
from discreet.errors import InvalidParameter
from discreet.plan.reading import Bounding, Groups, Reading, Statistic
from discreet.plan.types import Type
from tests.engines.tables import EDGES, B, Bench, D, F, N, S, T, arrow, bounding, call, col, lit

HIGH = 10
COLUMNS = {"u": T, "a": N, "b": T, "x": F}
X = col("x", F)
STATISTICS = (
    Statistic(kind="rows"),
    Statistic(kind="units"),
    Statistic(kind="values", argument=X),
    Statistic(kind="sum", argument=X, exponent=-2, low=-HIGH, high=HIGH, shift=3),
)


def reading(limits: Bounding, *, keys: tuple[Any, ...] = (col("a", N), col("b", T)), **more: Any) -> Reading:
    return Reading(table="t", keys=keys, bounding=limits, statistics=STATISTICS, **more)


def table(units: int, rows: int, groups: int) -> list[dict[str, Any]]:
    """Everybody's number of rows and groups differs; some ids are missing or only blanks."""
    made = []
    for i in range(rows):
        unit = (i * i + 3 * i) % units
        name = None if unit == 0 else "  " if unit == 1 else f" id {unit} " if i % 2 else f"id {unit}"
        made.append({"u": name, "a": (i * 7) % groups, "b": None if i % 5 == 0 else str(i % 3), "x": EDGES[F][i % 21]})
    return made


@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (1, 3), (3, 1), (2, 2), (150, 1), (10**9, 10**9)])
@pytest.mark.parametrize("salt", ["", "salt", "'; DROP TABLE t;--\0é"])
def test_every_engine_keeps_the_same_rows(bench: Bench, groups: int, rows: int, salt: str) -> None:
    bench.load(table(13, 300, 11), COLUMNS)
    limits = bounding(groups, rows, salt=salt)
    answer = bench.agreed(reading(limits))
    assert sum(numbers[1] for numbers in answer.values()) <= 11 * groups
    bench.agreed(reading(limits, keys=()))
    bench.agreed(reading(limits, where=call("less", B, col("a", N), lit(6, N))))
    bench.agreed(reading(limits, public_keys=((1, "1"), (2, None), (5, "0"))))
    bench.agreed(Reading(table="t", keys=(col("b", T),), bounding=limits, statistics=STATISTICS[:2]))


@pytest.mark.parametrize("kind", [N, B, T, D, S], ids=lambda kind: kind.value)
def test_units_and_keys_of_every_type(bench: Bench, kind: Type) -> None:
    values = EDGES[kind]
    rows = [{"u": u, "k": k, "x": x} for u in values for k in values for x in EDGES[F][1:5]]
    bench.load(rows, {"u": kind, "k": kind, "x": F})
    answer = bench.agreed(reading(bounding(2, 3), keys=(col("k", kind),)))
    units = len({u.strip(" ") if isinstance(u, str) else u for u in values} - {None, ""})
    assert 0 < sum(numbers[1] for numbers in answer.values()) <= units * min(2, len(values))


def test_rows_that_differ_in_any_column_are_told_apart(bench: Bench) -> None:
    columns = {"u": N, "n": N, "x": F, "b": B, "s": T, "d": D, "z": S}
    rows = []
    for name, kind in columns.items():
        plain = {"u": 1, "n": 1, "x": 1.0, "b": True, "s": "", "d": dt.date(2024, 1, 1), "z": dt.datetime(2024, 1, 1)}
        rows += [{**plain, name: value} for value in (EDGES[kind] if name != "u" else [1])]
    bench.load(rows, columns)
    for kept in range(1, 12):
        bench.agreed(reading(bounding(1, kept), keys=()))


def test_missing_ids_are_dropped_and_blanks_at_the_ends_do_not_make_another_person(bench: Bench) -> None:
    bench.load([{"u": u} for u in (None, "", "   ", "a", " a", "a  ", "A")], {"u": T})
    rows = (Statistic(kind="rows"), Statistic(kind="units"))
    assert bench.agreed(Reading(table="t", bounding=bounding(1, 2), statistics=rows)) == {(): (3, 2)}


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
        moved = [abs(a - b) for a, b in zip(before.get(key, (0,) * 4), after.get(key, (0,) * 4), strict=True)]
        assert moved[0] <= rows
        assert moved[1] <= 1
        assert moved[2] <= rows
        assert moved[3] <= rows * (HIGH + 3)


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
    for some in (rows, others):
        engine = Memory()
        engine.register("t", some, COLUMNS)
        answers.append(engine.read(asked))
    assert_moved(answers[1], answers[0], groups=groups, rows=rows_each)


@settings(max_examples=25)
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
                assert engine.read(asked) == memory.read(asked)


def test_groups_are_chosen_evenly() -> None:
    """10,000 units choose 1 of 10 groups: each is chosen 1,000 times, give or take 6 standard deviations of 30."""
    salt, chosen = Salt("salt"), [0] * 10
    for unit in range(10_000):
        chosen[min(range(10), key=lambda key: salt.rank(unit, (key,)))] += 1
    assert all(abs(count - 1000) < 180 for count in chosen)


def test_the_mixing_step_is_a_permutation_and_texts_are_no_beginnings_of_each_other() -> None:
    assert (P - 1) % 5
    assert len({fifth(z) for z in range(100_000)}) == 100_000
    texts = {canonical(value) for kind in (T, N) for value in EDGES[kind]}
    assert not any(a != b and b.startswith(a) for a in texts for b in texts)


def test_units_without_meaning_are_refused(bench: Bench) -> None:
    bench.load([{"u": "a", "a": 1, "b": "b", "x": 1.0}], COLUMNS)
    for wrong in (
        bounding(unit="x"),
        bounding(unit="absent"),
        bounding(groups=0),
        bounding(rows=0),
        bounding(salt="\ud800"),
    ):
        with pytest.raises(InvalidParameter):
            bench.engine.read(reading(wrong))


def test_a_unit_whose_groups_share_ranks_never_has_more_than_its_limit(bench: Bench) -> None:
    """Keys that differ by multiples of P have the same rank for everybody: the worst that a key can do."""
    rows = [{"u": str(i % 3), "a": P * (i % 7), "b": "", "x": 1.0} for i in range(60)]
    bench.load(rows + [{"u": "9", "a": i, "b": "", "x": 1.0} for i in (0, 1, 2, P)], COLUMNS)
    for groups in (1, 2, 6, 7):
        answer = bench.agreed(reading(bounding(groups, 5), keys=(col("a", N),)))
        assert sum(numbers[1] for numbers in answer.values()) <= 4 * groups
