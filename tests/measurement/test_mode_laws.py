"""The law of a mode: exact, charged for what one person can move in any group, over public candidates alone."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.composition import compose as basic
from discreet.accounting.composition import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.engines import Memory
from discreet.measurement.program import program as program_module
from discreet.measurement.program.draft import rho_of
from discreet.measurement.program.program import Program, choose
from discreet.measurement.releases.candidates import (
    MOST_CANDIDATES,
    MOST_LISTED,
    CandidateDraw,
    CountMoves,
    candidates_of,
)
from discreet.measurement.releases.draws import CandidateDraws
from discreet.noise import SeededBits
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import Groups
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from discreet.sql.select import parse
from tests.cases import every, try_all
from tests.curator.clinic import TYPES, Row, neighbour, visits
from tests.curator.nearness import check_modes
from tests.curator.test_neighbours import check_keys, check_within, exact, greedy, schema
from tests.effort import some, tried
from tests.measurement.draws import readings
from tests.open_groups import unsealed

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


@cache
def planned(sql: str, unit: str | None, limits: Limits, neighbours: Neighbours, delta: str) -> Program:
    """The plan, once for each declaration. For honest code only."""
    return plan(sql, schema(unit=unit, limits=limits, neighbours=neighbours), delta)


# ----------------------------------------------------------------------------------------------------------- neighbours


def polled(program: Program, rows: Sequence[Row]) -> list[Groups]:
    """For each list of candidates how often each stands in each group; groups of a grouping by its number."""
    engine = Memory()
    engine.register("visits", rows, TYPES)
    if not program.groupings:
        return [unsealed(engine.read(reading)) for reading in readings(program, CandidateDraws)]
    parts = [[unsealed(engine.read(reading)) for reading in readings(one, CandidateDraws)] for one in program.groupings]
    return [
        {(i, *key): numbers for i, groups in enumerate(of_one) for key, numbers in groups.items()}
        for of_one in zip(*parts, strict=True)
    ]


def check_near(program: Program, one: Sequence[Row], other: Sequence[Row]) -> None:
    check_modes(program, polled(program, one), polled(program, other))


CASES = [(sql, delta) for sql in QUESTIONS for delta in ("0", "1e-6") if "kind" not in sql or delta != "0"]


@tried(12)
@given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    who=st.integers(0, 11),
)
def test_one_patient_moves_no_count_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    rows = visits(seed)
    other = neighbour(rows, seed, who, neighbours)

    def check(case: tuple[str, str]) -> None:
        program = planned(case[0], "patient", limits, neighbours, case[1])
        check_near(program, rows, other)
        if program.measures and not program.groupings:
            one, two = exact(program, rows), exact(program, other)
            check_within(program, one, two)
            check_keys(program, one, two)

    try_all(CASES, check)


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), neighbours=st.sampled_from(list(Neighbours)))
def test_one_row_moves_no_count_farther_than_charged(seed: int, neighbours: Neighbours) -> None:
    rows = visits(seed)
    other = rows[1:] if neighbours is ADD else [*rows[1:], visits(seed + 7)[0]]

    def check(sql: str) -> None:
        check_near(planned(sql, None, Limits(), neighbours, "1e-6"), rows, other)

    try_all(QUESTIONS, check)


SMALL = {"unit": Type.INT, "g": Type.TEXT, "x": Type.BOOL}
KINDS = [(g, x) for g in ("a", "b") for x in (False, True, None)]


def moves(contribution: QueryContribution, *, grouped: bool) -> tuple[int, int]:
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
    asked = parse(f"SELECT MODE(x) AS m FROM t{' GROUP BY g' if grouped else ''}", {"t": declared})
    program = choose(asked, declared, epsilon=Fraction(1), salt="pepper")
    found = []
    for count in range(4):
        for chosen in combinations_with_replacement(KINDS, count):
            engine = Memory()
            engine.register("t", [{"unit": 1, "g": g, "x": x} for g, x in chosen], SMALL)
            found.append(counts(unsealed(engine.read(readings(program, CandidateDraws)[0]))))
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


@every("neighbours", list(Neighbours))
@every("grouped", [False, True])
@every("limits", some([Limits(1, 1), Limits(1, 2), Limits(2, 1)], 2))
def test_the_ranges_are_the_smallest_that_hold_for_everybody(
    limits: Limits, grouped: bool, neighbours: Neighbours
) -> None:
    """By all tables of up to three rows of one unit: no move is larger, and some are as large."""
    contribution = QueryContribution.of(limits=limits, neighbours=neighbours, shown=[2 if grouped else 1])
    claimed = 2 * CountMoves.l1(contribution), 4 * CountMoves.l2_squared(contribution)
    assert tuple(map(Fraction, moves(contribution, grouped=grouped))) == claimed


def check_extreme(sql: str, limits: Limits, neighbours: Neighbours, delta: str = "0") -> None:
    """A patient who takes all that the limits allow, added, or moved from one value to another in all wards."""
    program = plan(sql, schema(unit="patient", limits=limits, neighbours=neighbours), delta)
    crowd, rich = visits(5), greedy(limits)
    poor = [{**row, "age": 0, "charge": 30.0} for row in rich]
    check_near(program, crowd + rich, crowd if neighbours is ADD else crowd + poor)


@every("delta", ["0", "1e-6"])
@every("neighbours", list(Neighbours))
@every("limits", [Limits(1, 1), Limits(3, 2)])
@every("sql", QUESTIONS[:4])
def test_a_greedy_patient(sql: str, limits: Limits, neighbours: Neighbours, delta: str) -> None:
    check_extreme(sql, limits, neighbours, delta)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_mutant_a_rate_a_hundredth_too_large(
    monkeypatch: pytest.MonkeyPatch, delta: str, neighbours: Neighbours
) -> None:
    """The price is the least that the moves allow: the greedy patient moves all of it."""
    right = CandidateDraw.of.__func__  # type: ignore[attr-defined]

    def loud(cls: Any, *arguments: Any) -> Any:
        made = right(cls, *arguments)
        return replace(made, rate=made.rate * Fraction(101, 100))

    monkeypatch.setattr(CandidateDraw, "of", classmethod(loud))
    with pytest.raises(AssertionError):
        check_extreme(BY_WARD, Limits(3, 2), neighbours, delta)


@pytest.mark.parametrize(("name", "delta"), [("moves", "0"), ("l2_squared", "1e-6")])
def test_mutant_replaced_rows_are_priced_as_removed_ones(
    monkeypatch: pytest.MonkeyPatch, name: str, delta: str
) -> None:
    right = getattr(CountMoves, name)
    often = 1 if delta == "0" else 2
    monkeypatch.setattr(CountMoves, name, staticmethod(lambda c: right(replace(c, neighbours=ADD)) * often))
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
        many = "SELECT age, MODE(ward) AS m FROM visits GROUP BY age"
        program = plan(many, schema(unit="patient", limits=Limits(20, 1), neighbours=neighbours), "1e-6")
        assert program.noise.law == "gaussian"
        assert zcdp(terms(program.event)).rho == rho_of(Fraction(1), Fraction("1e-6"))


# -------------------------------------------------------------------------------------------------------------- the law


def table(kinds: int = 3) -> TableSchema:
    ends = ColumnBounds(Fraction(0), Fraction(kinds - 1))
    return TableSchema(name="t", columns={"x": ColumnSchema(name="x", type=Type.INT, bounds=ends)})


def drawn_by(rate: Fraction, kinds: int) -> CandidateDraw:
    found = candidates_of(ColumnRef("x", Type.INT), table(kinds))
    assert found is not None
    contribution = QueryContribution(limits=Limits(), neighbours=ADD)
    return CandidateDraw.of("laplace", found, contribution, rate)


def law(of_each: Sequence[int], rate: Fraction) -> list[float]:
    weights = [math.exp(float(rate) * (n - max(of_each))) for n in of_each]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("rows", [1, 2])
def test_probabilities_of_neighbours_are_as_near_as_charged(rows: int, neighbours: Neighbours) -> None:
    """All tables of up to two others' rows for each of three values, and all that one unit may have or have instead."""
    found = candidates_of(ColumnRef("x", Type.INT), table(3))
    assert found is not None
    made = CandidateDraw.of(
        "laplace", found, QueryContribution(limits=Limits(1, rows), neighbours=neighbours), Fraction(1)
    )
    own = [k for k in product(range(rows + 1), repeat=3) if sum(k) <= rows]
    spans = []
    for others in product(range(3), repeat=3):
        laws = [law([n + k for n, k in zip(others, mine, strict=True)], made.rate) for mine in own]
        for one, other in product(laws[:1] if neighbours is ADD else laws, laws):
            losses = [math.log(p / q) for p, q in zip(one, other, strict=True)]
            assert max(map(abs, losses)) <= 1 + 1e-12
            spans.append(max(losses) - min(losses))
    assert max(spans) == pytest.approx(1)


@pytest.mark.sampled(2)
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
        (
            ColumnSchema(name="x", type=Type.INT, bounds=ColumnBounds(Fraction(-1), Fraction(1))),
            [-1, 0, 1, 2, -2],
            [0, 1, 2],
        ),
        (ColumnSchema(name="x", type=Type.BOOL), [False, True, None], [0, 1]),
        (ColumnSchema(name="x", type=Type.BOOL, keys=(True,)), [True, False, None], [0]),
        (
            ColumnSchema(name="x", type=Type.DATE, bounds=ColumnBounds(Fraction(738000), Fraction(738002))),
            [*(dt.date.fromordinal(738000 + i) for i in range(3)), dt.date(1999, 1, 1), dt.date(2999, 1, 1), None],
            [0, 1, 2],
        ),
    ],
    ids=str,
)
def test_rows_count_for_their_own_value_alone(column: ColumnSchema, given: list[Any], wanted: list[int]) -> None:
    """Values that are no candidate are in no cell, rather than in that of the nearest one."""
    found = candidates_of(ColumnRef("x", column.type), TableSchema(name="t", columns={"x": column}))
    assert found is not None
    placed = [evaluate(found.split.argument, {"x": value}) for value in given]
    cells = [None if place is None else place - found.split.low for place in placed]
    assert cells == [*wanted, *[None] * (len(given) - len(wanted))]
    assert [found.values[place] for place in wanted] == given[: len(wanted)]
    assert found.split.high - found.split.low + 1 == len(found.values)


def test_there_are_so_many_candidates_and_no_more() -> None:
    assert candidates_of(ColumnRef("x", Type.INT), table(MOST_CANDIDATES)) is not None
    assert candidates_of(ColumnRef("x", Type.INT), table(MOST_CANDIDATES + 1)) is None
    for count in (MOST_LISTED, MOST_LISTED + 1):
        keys = tuple(f"{i:05}" for i in range(count))
        listed = TableSchema(name="t", columns={"x": ColumnSchema(name="x", type=Type.TEXT, keys=keys)})
        found = candidates_of(ColumnRef("x", Type.TEXT), listed)
        assert (found is not None) is (count <= MOST_LISTED)
        if found is not None:
            at = {key: evaluate(found.split.argument, {"x": key}) for key in (keys[0], keys[517], keys[-1], "x", None)}
            assert list(at.values()) == [0, 517, count - 1, None, None]
