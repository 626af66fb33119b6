"""MODE as a question: drawn by the exact law, charged for what one person can move, and replayed."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import mode
from discreet.accounting.basic import compose as basic
from discreet.accounting.terms import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.curator import Curator
from discreet.curator import modes as modes_module
from discreet.curator import program as program_module
from discreet.curator.modes import Modal
from discreet.curator.program import Program, choose
from discreet.curator.run import run
from discreet.engines import DuckDB, Memory
from discreet.errors import UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.aggregates import ballot_of, range_l1, range_l2_squared
from discreet.plan.aggregates.mode import MOST_CANDIDATES, MOST_LISTED
from discreet.plan.evaluate import evaluate
from discreet.plan.nodes import Column
from discreet.plan.reading import Groups
from discreet.plan.schema import Bounds, ColumnSchema, Limits, TableSchema
from discreet.plan.sql import parse
from discreet.plan.stability import Contribution
from discreet.plan.types import Type
from discreet.privacy import Budget, Neighbours
from tests.curator.clinic import TYPES, Row, visits
from tests.curator.nearness import check_modes
from tests.curator.spies import Spy, clinic
from tests.curator.test_neighbours import check_keys, check_within, greedy, schema

ADD, SWAP = Neighbours.ADD_REMOVE, Neighbours.REPLACE
QUESTIONS = (
    "SELECT MODE(ward) AS m FROM visits",
    "SELECT MODE(age) AS m, COUNT(*) AS n FROM visits WHERE ward = 'A'",
    "SELECT ward, MODE(age) AS m, MODE(age > 40) AS old, MEDIAN(age) AS h FROM visits GROUP BY ward",
    "SELECT ward, MODE(age // 10) FILTER (WHERE charge > 20) AS m, AVG(charge) AS c FROM visits GROUP BY ward",
    "SELECT kind, MODE(ward) AS m FROM visits GROUP BY kind",
    "SELECT ward, MODE(age) AS m FROM visits GROUP BY ROLLUP (ward)",
)
BY_WARD = "SELECT ward, MODE(age) AS m FROM visits GROUP BY ward"


def plan(sql: str, declared: TableSchema, delta: str, epsilon: str = "1") -> Program:
    asked = parse(sql, {"visits": declared})
    return choose(asked, declared, epsilon=Fraction(epsilon), delta=Fraction(delta), salt="pepper")


# ----------------------------------------------------------------------------------------------------------- neighbours


def polled(program: Program, rows: Sequence[Row]) -> list[Groups]:
    """For each list of candidates how often each stands in each group; groups of a grouping by its number."""
    engine = Memory()
    engine.register("visits", rows, TYPES)
    if not program.groupings:
        return [engine.read(reading) for reading in program.polls]
    parts = [[engine.read(reading) for reading in one.polls] for one in program.groupings]
    return [
        {(i, *key): numbers for i, groups in enumerate(of_one) for key, numbers in groups.items()}
        for of_one in zip(*parts, strict=True)
    ]


def check_near(program: Program, one: Sequence[Row], other: Sequence[Row]) -> None:
    check_modes(program, polled(program, one), polled(program, other))


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("sql", QUESTIONS)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    who=st.integers(0, 11),
)
def test_one_patient_moves_no_count_farther_than_charged(  # noqa: PLR0917 - hypothesis passes them by name
    sql: str, delta: str, seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    if "kind" in sql and delta == "0":
        return
    program = plan(sql, schema(unit="patient", limits=limits, neighbours=neighbours), delta)
    rows = visits(seed)
    other = [row for row in rows if row["patient"] != who]
    if neighbours is SWAP:
        other += [{**row, "patient": who} for row in visits(seed + 1) if row["patient"] == 0]
    check_near(program, rows, other)
    if program.measures and not program.groupings:
        check_within(program, rows, other)
        check_keys(program, rows, other)


@pytest.mark.parametrize("sql", QUESTIONS)
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), neighbours=st.sampled_from(list(Neighbours)))
def test_one_row_moves_no_count_farther_than_charged(sql: str, seed: int, neighbours: Neighbours) -> None:
    program = plan(sql, schema(unit=None, limits=Limits(), neighbours=neighbours), "1e-6")
    rows = visits(seed)
    check_near(program, rows, rows[1:] if neighbours is ADD else [*rows[1:], visits(seed + 7)[0]])


SMALL = {"unit": Type.INT, "g": Type.TEXT, "x": Type.BOOL}
KINDS = [(g, x) for g in ("a", "b") for x in (False, True, None)]


def moves(contribution: Contribution) -> tuple[int, int]:
    """The largest sum of ranges and of their squares, over all that one unit may have had and may have instead."""
    declared = TableSchema(
        name="t",
        columns={
            name: ColumnSchema(name=name, type=kind, keys=("a", "b") if name == "g" else None)
            for name, kind in SMALL.items()
        },
        unit="unit",
        limits=contribution.limits,
        neighbours=contribution.neighbours,
    )
    asked = parse(f"SELECT MODE(x) AS m FROM t{' GROUP BY g' if contribution.grouped else ''}", {"t": declared})
    program = choose(asked, declared, epsilon=Fraction(1), salt="pepper")
    found = []
    for count in range(4):
        for chosen in combinations_with_replacement(KINDS, count):
            engine = Memory()
            engine.register("t", [{"unit": 1, "g": g, "x": x} for g, x in chosen], SMALL)
            found.append(counts(engine.read(program.polls[0])))
    pairs = [(one, []) for one in found] if contribution.neighbours is ADD else [(a, b) for a in found for b in found]
    ranges = [[span(dict(one).get(key, (0, 0)), dict(other).get(key, (0, 0))) for key in KEYS] for one, other in pairs]
    return max(map(sum, ranges)), max(sum(r * r for r in each) for each in ranges)


KEYS = ((), ("a",), ("b",))


def counts(groups: Groups) -> list[tuple[Any, tuple[int, int]]]:
    halves = {key: (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]) for key, numbers in groups.items()}
    by_cell = {key: dict(zip(cells, of_cells, strict=True)) for key, (cells, of_cells) in halves.items()}
    return [(key, (found.get(0, 0), found.get(1, 0))) for key, found in by_cell.items()]


def span(one: Sequence[int], other: Sequence[int]) -> int:
    changes = [b - a for a, b in zip(one, other, strict=True)]
    return max(changes) - min(changes)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("limits", [Limits(1, 1), Limits(1, 2), Limits(2, 1)], ids=str)
def test_the_ranges_are_the_smallest_that_hold_for_everybody(
    limits: Limits, grouped: bool, neighbours: Neighbours
) -> None:
    """By all tables of up to three rows of one unit: no move is larger, and some are as large."""
    contribution = Contribution(limits=limits, grouped=grouped, neighbours=neighbours)
    assert moves(contribution) == (range_l1(contribution), range_l2_squared(contribution))


def check_extreme(sql: str, limits: Limits, neighbours: Neighbours, delta: str = "0") -> None:
    """A patient who takes all that the limits allow, added, or moved from one value to another in all wards."""
    program = plan(sql, schema(unit="patient", limits=limits, neighbours=neighbours), delta)
    crowd, rich = visits(5), greedy(limits)
    poor = [{**row, "age": 0, "charge": 30.0} for row in rich]
    check_near(program, crowd + rich, crowd if neighbours is ADD else crowd + poor)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("limits", [Limits(1, 1), Limits(3, 2)], ids=str)
@pytest.mark.parametrize("sql", QUESTIONS[:4])
def test_a_greedy_patient(sql: str, limits: Limits, neighbours: Neighbours, delta: str) -> None:
    check_extreme(sql, limits, neighbours, delta)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_mutant_a_rate_a_hundredth_too_large(
    monkeypatch: pytest.MonkeyPatch, delta: str, neighbours: Neighbours
) -> None:
    """The price is the least that the moves allow: the greedy patient moves all of it."""
    right = Modal.of.__func__  # type: ignore[attr-defined]

    def loud(cls: Any, *arguments: Any) -> Any:
        made = right(cls, *arguments)
        return replace(made, rate=made.rate * Fraction(101, 100))

    monkeypatch.setattr(Modal, "of", classmethod(loud))
    with pytest.raises(AssertionError):
        check_extreme(BY_WARD, Limits(3, 2), neighbours, delta)


@pytest.mark.parametrize(("name", "delta"), [("range_l1", "0"), ("range_l2_squared", "1e-6")])
def test_mutant_replaced_rows_are_priced_as_removed_ones(
    monkeypatch: pytest.MonkeyPatch, name: str, delta: str
) -> None:
    right = getattr(modes_module, name)
    monkeypatch.setattr(modes_module, name, lambda c: right(replace(c, neighbours=ADD)) * (1 if delta == "0" else 2))
    with pytest.raises(AssertionError):
        check_extreme(BY_WARD, Limits(3, 1), SWAP, delta)


def test_mutant_no_bounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_module, "_bounding", lambda *_: None)
    with pytest.raises(AssertionError):
        check_extreme(BY_WARD, Limits(1, 1), ADD)


def test_the_event_is_what_was_asked() -> None:
    for neighbours in Neighbours:
        for sql in (*QUESTIONS[:4], QUESTIONS[5]):
            program = plan(sql, schema(unit="patient", limits=Limits(2, 3), neighbours=neighbours), "0")
            assert basic(terms(program.event)).epsilon == 1
        program = plan(BY_WARD, schema(unit="patient", limits=Limits(20, 1), neighbours=neighbours), "1e-6")
        assert program.noise.law == "gaussian"
        assert zcdp(terms(program.event)).rho == program_module._rho(Fraction(1), Fraction("1e-6"))


# -------------------------------------------------------------------------------------------------------------- the law


def table(kinds: int = 3) -> TableSchema:
    ends = Bounds(Fraction(0), Fraction(kinds - 1))
    return TableSchema(name="t", columns={"x": ColumnSchema(name="x", type=Type.INT, bounds=ends)})


def drawn_by(rate: Fraction, kinds: int) -> Modal:
    found = ballot_of(Column("x", Type.INT), table(kinds))
    assert found is not None
    contribution = Contribution(limits=Limits(), grouped=False, neighbours=ADD)
    return Modal.of("laplace", found, contribution, rate)


def law(of_each: Sequence[int], rate: Fraction) -> list[float]:
    weights = [math.exp(float(rate) * (n - max(of_each))) for n in of_each]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("of_each", [(0, 0, 0), (3, 1, 0), (0, 5, 5), (1000, 998, 0)])
def test_candidates_are_drawn_by_their_law(of_each: tuple[int, ...]) -> None:
    """4,000 draws: the sum of (found - expected)^2 / expected has 2 degrees of freedom, below 42 but for 1e-9."""
    made, times = drawn_by(Fraction(1, 2), 3), 4000
    assert made.rate == Fraction(1, 2)
    present = [place for place, n in enumerate(of_each) if n]
    numbers = (*present, *(of_each[place] for place in present))
    bits = SeededBits(4)
    found = Counter(made.release({(): numbers}, [()] * times, bits))
    expected = [times * p for p in law(of_each, made.rate)]

    def distance(expected: Sequence[float]) -> float:
        return sum((found[i] - e) ** 2 / e for i, e in enumerate(expected) if e > 1e-9)

    assert distance(expected) < 42
    assert all(found[i] == 0 for i, e in enumerate(expected) if e <= 1e-9)
    if len(set(of_each)) > 1:
        assert distance([times * p for p in law(of_each, made.rate * Fraction(13, 10))]) > 42


@pytest.mark.parametrize("kinds", [2, 3, 500])
@pytest.mark.parametrize("epsilon", ["0.05", "1", "20"])
def test_the_note_tells_how_near_its_count_is(kinds: int, epsilon: str) -> None:
    """At worst all others are just beyond the reach: they are drawn with the stated risk at most."""
    made, risk = drawn_by(Fraction(epsilon), kinds), Fraction(1, 20)
    far = made.reach(risk)
    beyond = (kinds - 1) * math.exp(-float(made.rate) * (far + 1))
    assert beyond / (1 + beyond) <= risk
    assert kinds * math.exp(-float(made.rate) * far) >= risk  # and is not told to be farther than the bound says


# ----------------------------------------------------------------------------------------------------------- candidates


@pytest.mark.parametrize(
    ("column", "given", "wanted"),
    [
        (ColumnSchema(name="x", type=Type.TEXT, keys=("b", "a", "é")), ["a", "b", "é", "c", None, ""], [0, 1, 2]),
        (ColumnSchema(name="x", type=Type.INT, keys=(7, 3, -1)), [-1, 3, 7, 4, 8, -2, None], [0, 1, 2]),
        (ColumnSchema(name="x", type=Type.INT, bounds=Bounds(Fraction(-1), Fraction(1))), [-1, 0, 1, 2, -2], [0, 1, 2]),
        (ColumnSchema(name="x", type=Type.BOOL), [False, True, None], [0, 1]),
        (ColumnSchema(name="x", type=Type.BOOL, keys=(True,)), [True, False, None], [0]),
        (
            ColumnSchema(name="x", type=Type.DATE, bounds=Bounds(Fraction(738000), Fraction(738002))),
            [*(dt.date.fromordinal(738000 + i) for i in range(3)), dt.date(1999, 1, 1), dt.date(2999, 1, 1), None],
            [0, 1, 2],
        ),
    ],
    ids=str,
)
def test_rows_count_for_their_own_value_alone(column: ColumnSchema, given: list[Any], wanted: list[int]) -> None:
    """Values that are no candidate are in no cell, rather than in that of the nearest one."""
    found = ballot_of(Column("x", column.type), TableSchema(name="t", columns={"x": column}))
    assert found is not None
    placed = [evaluate(found.split.argument, {"x": value}) for value in given]
    cells = [None if place is None else place - found.split.low for place in placed]
    assert cells == [*wanted, *[None] * (len(given) - len(wanted))]
    assert [found.values[place] for place in wanted] == given[: len(wanted)]
    assert found.split.high - found.split.low + 1 == len(found.values)


def test_there_are_so_many_candidates_and_no_more() -> None:
    assert ballot_of(Column("x", Type.INT), table(MOST_CANDIDATES)) is not None
    assert ballot_of(Column("x", Type.INT), table(MOST_CANDIDATES + 1)) is None
    for count in (MOST_LISTED, MOST_LISTED + 1):
        keys = tuple(f"{i:05}" for i in range(count))
        listed = TableSchema(name="t", columns={"x": ColumnSchema(name="x", type=Type.TEXT, keys=keys)})
        found = ballot_of(Column("x", Type.TEXT), listed)
        assert (found is not None) is (count <= MOST_LISTED)
        if found is not None:
            at = {key: evaluate(found.split.argument, {"x": key}) for key in (keys[0], keys[517], keys[-1], "x", None)}
            assert list(at.values()) == [0, 517, count - 1, None, None]


# ------------------------------------------------------------------------------------------------- answers and engines


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    kinds = {"patient": pl.Int64, "ward": pl.String, "age": pl.Int64, "charge": pl.Float64, "kind": pl.String}
    return pl.DataFrame(rows, schema=kinds)


@pytest.mark.parametrize("unit", [None, "patient"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_engines_release_the_same_with_the_same_bits(sql: str, unit: str | None) -> None:
    rows = visits(3, patients=150)
    program = plan(sql, schema(unit=unit, limits=Limits(2, 2) if unit else Limits(), neighbours=ADD), "1e-4", "8")
    found = []
    for engine, source in ((Memory(), rows), (DuckDB(threads=2), frame(rows))):
        engine.register("visits", source, TYPES)
        released = run(program, engine, SeededBits(9))
        found.append((released.keys, released.noisy.tolist(), released.rows(Fraction(9, 10))))
    assert found[0] == found[1]


def test_with_much_budget_it_is_the_mode_of_plain_sql() -> None:
    count = 3001
    rows = pl.DataFrame(
        {
            "g": [i % 4 for i in range(count)],
            "t": ["blue" if not i % 7 else ["red", "green", "grey", None][i * i * i % 4] for i in range(count)],
            "k": [(i * i) % 97 for i in range(count)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=(i * i * 31) % 887) for i in range(count)],
            "b": [i % 5 < 2 for i in range(count)],
            "x": [(i * i % 211) / 8 for i in range(count)],
        }
    )
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(17))
    curator.protect(
        rows,
        name="t",
        budget=Budget(epsilon=10**12, delta="1e-2"),
        bounds={"k": (0, 1000), "x": (0, 100), "day": ("2024-01-01", "2027-01-01")},
        keys={"g": [0, 1, 2, 3], "t": ["blue", "green", "grey", "red"]},
    )
    plain = duckdb.connect()
    plain.register("t", rows)
    compared = 0
    for value in ("t", "k", "day", "b", "FLOOR(x)", "CASE WHEN k < 50 THEN t ELSE 'red' END"):
        for where in ("", "WHERE k > 20"):
            answer = curator.ask(f"SELECT g, MODE({value}) AS m FROM t {where} GROUP BY g", epsilon=10**9, delta=0)
            for row in answer:
                known = plain.execute(
                    f"""SELECT {value} AS v, COUNT(*) AS n FROM t {where or "WHERE TRUE"} AND g = {row["g"]}
                    AND ({value}) IS NOT NULL GROUP BY 1 ORDER BY n DESC"""
                ).fetchall()
                best = [v for v, n in known if n == known[0][1]]
                assert row["m"] in best
                compared += len(best) == 1
    assert compared > 20  # so many have a single mode, which is the answer


def test_a_mode_is_a_column_without_an_interval() -> None:
    curator = clinic(Budget(epsilon=100))
    answer = curator.ask(
        "SELECT ward, MODE(age) AS m, MODE(age) + 1 AS more, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=50
    )
    assert answer.columns == ("ward", "m", "more", "n", "n_low", "n_high")
    assert all(row["more"] == row["m"] + 1 for row in answer)
    assert {row["m"] for row in answer} <= {5, 44, 67}
    assert any("MODE is drawn among 121 public values" in note for note in answer.notes)
    both = curator.ask("SELECT ward, MODE(age) + COUNT(*) AS s FROM visits GROUP BY ward", epsilon=50)
    assert both.columns == ("ward", "s", "s_low", "s_high")
    assert "s_low" in both._repr_html_() or "interval" in both._repr_html_()


def test_groups_by_their_modes() -> None:
    """A mode is a released value: it sorts, filters and groups what was released."""
    curator = clinic(Budget(epsilon=100))
    first = curator.ask(BY_WARD, epsilon=10)
    found = Counter(row["m"] for row in first)
    answer = curator.ask(f"SELECT m, COUNT(*) AS n FROM ({BY_WARD}) AS w GROUP BY m ORDER BY m", epsilon=10)
    assert answer.replayed
    assert answer.columns == ("m", "n")
    assert {row["m"]: row["n"] for row in answer} == dict(found)
    commonest = max(found, key=lambda value: found[value])
    kept = curator.ask(f"{BY_WARD} HAVING MODE(age) = {commonest} ORDER BY m, ward", epsilon=10)
    assert kept.replayed
    assert len(kept) == found[commonest]


def test_an_empty_group_has_any_of_the_values() -> None:
    """200 draws among three: each is missed with a probability of (2/3)^200."""
    rows = pl.DataFrame({"g": [0], "t": ["a"]})
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(3))
    curator.protect(
        rows.to_dicts(),
        name="t",
        types={"g": "int", "t": "text"},
        budget=Budget(epsilon=10),
        keys={"g": list(range(201)), "t": ["a", "b", "c"]},
    )
    answer = curator.ask("SELECT g, MODE(t) AS m FROM t GROUP BY g", epsilon=1)
    assert {row["m"] for row in answer if row["g"]} == {"a", "b", "c"}


# --------------------------------------------------------------------------------------------------- the curator around


def test_replayed_in_another_order_and_at_a_smaller_price() -> None:
    curator = clinic(Budget(epsilon=4))
    first = curator.ask("SELECT ward, MODE(age) AS m, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=2)
    again = curator.ask(
        "SELECT COUNT(*) AS n, MODE() WITHIN GROUP (ORDER BY age) AS m, ward FROM visits GROUP BY 3 ORDER BY 3 DESC",
        epsilon=1,
    )
    assert again.replayed
    assert [(row["ward"], row["m"]) for row in again] == [(row["ward"], row["m"]) for row in reversed(list(first))]
    assert curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon="0.5").replayed
    assert not curator.ask("SELECT ward, MODE(age) AS m FROM visits GROUP BY ward", epsilon="0.5").replayed


def test_a_stored_release_comes_back_from_the_file(tmp_path: Any) -> None:
    asked = "SELECT ward, MODE(age) AS m, MEDIAN(charge) AS h, COUNT(*) AS n FROM visits GROUP BY ward"
    ledger = str(tmp_path / "ledger")
    with clinic(Budget(epsilon=4), ledger=ledger) as curator:
        first = curator.ask(asked, epsilon=1)
    with clinic(Budget(epsilon=4), ledger=ledger) as curator:
        again = curator.ask(asked, epsilon=1)
    assert again.replayed
    assert again.records == first.records


def test_how_often_data_are_read() -> None:
    for sql, reads in (
        ("SELECT MODE(age) AS m FROM visits", 1),
        ("SELECT MODE(age) AS m, MODE(ward) AS w FROM visits WHERE ward = 'no such ward'", 2),
        ("SELECT ward, MODE(age) AS m, MEDIAN(age) AS a, COUNT(*) AS n FROM visits GROUP BY ward", 3),
    ):
        spy = Spy()
        clinic(engine=spy).ask(sql, epsilon=1)
        assert spy.reads == reads, sql


def test_private_keys_show_modes_of_shown_groups_only() -> None:
    curator = clinic(Budget(epsilon=10**6, delta="1e-2"))
    answer = curator.ask("SELECT kind, MODE(ward) AS m FROM visits GROUP BY kind", epsilon=10**4, delta="1e-3")
    assert {row["kind"] for row in answer} == {"check", "fever", "fracture", "other"}
    assert {row["m"] for row in answer} <= {"A", "B", "C"}


def test_the_fluent_front_asks_the_same() -> None:
    curator = clinic(Budget(epsilon=4))
    first = curator.table("visits").group_by("ward").agg(m=mode("age")).ask(epsilon=1)
    again = curator.ask(BY_WARD, epsilon=1)
    assert again.replayed
    assert again.records == first.records


def test_explained_and_rehearsed() -> None:
    curator = clinic(Budget(epsilon=4, delta="1e-6"))
    explained = curator.explain(BY_WARD, epsilon=1)
    assert re.search(r"exponential mechanism, within \d+ rows of the most frequent value", str(explained))
    assert explained.errors == {}
    made_up = curator.rehearse(BY_WARD)
    assert made_up.columns == ("ward", "m")
    assert len(curator.rehearse("SELECT kind, MODE(ward) AS m FROM visits GROUP BY kind", epsilon="0.1")) > 0


def test_an_error_is_not_promised_beforehand() -> None:
    with pytest.raises(UnsupportedQuery, match="mode"):
        clinic().ask("SELECT MODE(age) AS m FROM visits", within=5, max_epsilon=1)


@pytest.mark.parametrize("epsilon", ["1e-12", "1e12"])
def test_tiny_and_huge_budgets(epsilon: str) -> None:
    answer = clinic(Budget(epsilon="1e13")).ask(BY_WARD, epsilon=epsilon)
    assert len(answer) == 3


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MODE(kind) AS m FROM visits",
        "SELECT ward, MODE(charge) AS m FROM visits GROUP BY ward",
        "SELECT MODE(patient) AS m FROM visits",
        "SELECT MODE(UPPER(kind)) AS m FROM visits",
        "SELECT MODE(v.kind) AS m FROM visits AS v",
        "SELECT MODE(age + 1000 * CAST(charge AS INT)) AS m FROM visits",
        "SELECT MODE(DISTINCT age) AS m FROM visits",
        "SELECT MODE() AS m FROM visits",
        "SELECT MODE(NULL) AS m FROM visits",
        "SELECT COUNT(*) AS n FROM visits WHERE age = MODE(age)",
        "SELECT AVG(m) AS a FROM (SELECT patient, MODE(age) AS m FROM visits GROUP BY patient) AS t",
    ],
)
def test_refusals_propose_what_is_accepted(sql: str) -> None:
    curator = clinic(Budget(epsilon=4, delta="1e-3"))
    with pytest.raises(UnsupportedQuery) as refused:
        curator.ask(sql, epsilon=1)
    proposed = re.findall(r"`([^`]+)`", refused.value.hint)
    assert proposed
    for question in proposed:
        curator.explain(question, epsilon=1, delta="1e-4")
