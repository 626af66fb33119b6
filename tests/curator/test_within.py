"""Budgets solved from errors: minimal, capped, a function of public facts, and true to their promise."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.curator.asking import planner as module
from discreet.engines import Memory
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.program import error_targets as targets
from discreet.noise import SeededBits
from discreet.privacy import Budget, Neighbours, PureDP
from discreet.sql.frame import count
from tests.curator.clinic import visits
from tests.curator.spies import OPTIONS, Spy, clinic

LARGE = Budget(epsilon=1000)
COUNT = "SELECT COUNT(*) AS n FROM visits"
SUM = "SELECT ward, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY ward"
MEAN = "SELECT AVG(age) AS a FROM visits"
VALUES = "SELECT COUNT(age) AS n FROM visits"
GAUSSIAN = Budget(epsilon=1000, delta=1e-2)


def cost(curator: Curator, sql: str, within: Any, cap: Any = 100, **more: Any) -> Fraction:
    """What an explanation says it would cost."""
    found = curator.explain(sql, within=within, max_epsilon=cap, **more).cost
    assert isinstance(found.details, PureDP)
    assert found.epsilon == found.details.epsilon
    return found.details.epsilon


def reaches(curator: Curator, sql: str, epsilon: Fraction, confidence: Fraction) -> Fraction | float:
    program = curator.explain(sql, epsilon=epsilon).program
    return targets.farthest(program, 1 - confidence, {})


# --------------------------------------------------------------------------------------------------------------- solved


@pytest.mark.sampled(4)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)])
@pytest.mark.parametrize(("sql", "within"), [(COUNT, 25), (COUNT, 1), (SUM, 5000), (SUM, 400)])
def test_the_budget_is_the_smallest_to_one_in_a_hundred(
    sql: str, within: int, confidence: Fraction, neighbours: Neighbours
) -> None:
    curator = clinic(LARGE, neighbours=neighbours)
    found = cost(curator, sql, within, confidence=confidence)
    assert reaches(curator, sql, found, confidence) <= within
    assert reaches(curator, sql, found / Fraction("1.01"), confidence) > within


def test_nearer_and_surer_cost_more() -> None:
    curator = clinic(LARGE)
    costs = [cost(curator, COUNT, within) for within in (1000, 100, 25, 24, 10, 3, 1)]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)
    surer = [cost(curator, COUNT, 25, confidence=c) for c in ("0.5", "0.9", "0.95", "0.99", "0.9999")]
    assert surer == sorted(surer)
    assert len(set(surer)) == len(surer)


def test_a_count_has_its_closed_form() -> None:
    """P(|Z| >= 26) = 2 e^(-26 e) / (1 + e^-e) is 0.0493 for e = 0.118, 0.0499 for 0.1175 and 0.0505 for 0.117."""
    assert cost(clinic(LARGE, max_rows=1), COUNT, 25) == Fraction("0.118")
    assert cost(clinic(LARGE, max_rows=2), COUNT, 25) == Fraction("0.235")  # two rows, twice the scale


def test_what_is_explained_is_what_is_charged() -> None:
    spy = Spy()
    curator = clinic(LARGE, engine=spy)
    expected = cost(curator, SUM, 5000, 5)
    assert spy.reads == 0
    answer = curator.ask(SUM, within=5000, max_epsilon=5)
    assert answer.cost.details == PureDP(expected)
    assert all(row["s_high"] - row["s"] <= 5000 and row["s"] - row["s_low"] <= 5000 for row in answer)
    again = curator.ask(SUM, within=5000, max_epsilon=5)
    assert (again.replayed, again.records, spy.reads) == (True, answer.records, 1)


def test_frames_ask_so_too() -> None:
    curator = clinic(LARGE)
    frame = curator.table("visits").agg(n=count())
    assert frame.explain(within=25, max_epsilon=5).cost == curator.explain(COUNT, within=25, max_epsilon=5).cost
    assert frame.ask(within=25, max_epsilon=5).cost.details == PureDP(cost(curator, COUNT, 25))


def test_gaussian_noise_is_solved_as_well() -> None:
    curator = clinic(GAUSSIAN, max_groups=3, max_rows=9)
    sums = ", ".join(f"SUM(age + {i}) AS s{i}" for i in range(9))
    sql = f"SELECT ward, {sums} FROM visits GROUP BY ward"
    found = curator.explain(sql, within=100_000, max_epsilon=5)
    assert found.program.noise.law == "gaussian"
    assert targets.farthest(found.program, Fraction(1, 20), {}) <= 100_000


# ------------------------------------------------------------------------------------------------------------------ cap


@pytest.mark.parametrize("within", [25, 1, "0.5"])
def test_a_budget_never_exceeds_its_cap_and_a_refusal_names_one_that_is_enough(within: Any) -> None:
    spy = Spy()
    curator = clinic(LARGE, engine=spy)
    before = curator.verify()
    with pytest.raises(InvalidParameter) as refused:
        curator.ask(COUNT, within=within, max_epsilon=0.001)
    assert refused.value.name == "max_epsilon"
    assert (spy.reads, curator.verify()) == (0, before)
    enough = refused.value.hint.split("max_epsilon=")[1].split(",")[0]
    answer = curator.ask(COUNT, within=within, max_epsilon=enough)
    assert answer.cost.details == PureDP(Fraction(enough))


def test_a_cap_that_is_no_round_number_is_kept() -> None:
    curator = clinic(LARGE, max_rows=1)
    cap = Fraction("0.11753")  # enough, and below the next number of three digits
    assert cost(curator, COUNT, 25, cap) == cap


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"within": 25}, "max_epsilon"),
        ({"max_epsilon": 1}, "max_epsilon"),
        ({"within": 25, "epsilon": 1}, "within"),
        ({"within": 25, "epsilon": 1, "max_epsilon": 1}, "within"),
        ({"within": 0, "max_epsilon": 1}, "within"),
        ({"within": -1, "max_epsilon": 1}, "within"),
        ({"within": float("nan"), "max_epsilon": 1}, "within"),
        ({"within": 25, "max_epsilon": 0}, "max_epsilon"),
        ({"within": 25, "max_epsilon": 1, "delta": 1e-9}, "delta"),
        ({}, "epsilon"),
    ],
)
def test_mistakes_are_named_before_anything_happens(options: dict[str, Any], name: str) -> None:
    spy = Spy()
    curator = clinic(LARGE, engine=spy)
    for act in (curator.ask, curator.explain):
        with pytest.raises(InvalidParameter) as refused:
            act(COUNT, **options)
        assert refused.value.name == name
    assert spy.reads == 0


def test_a_number_that_is_computed_has_no_error_beforehand() -> None:
    for sql in ("SELECT SUM(age) / COUNT(*) AS r FROM visits", "SELECT COUNT(*) * 2 AS n FROM visits"):
        with pytest.raises(UnsupportedQuery):
            clinic(LARGE).ask(sql, within=25, max_epsilon=1)


# ---------------------------------------------------------------------------------------------------------------- means


def test_a_mean_needs_a_count_of_its_values_first() -> None:
    curator = clinic(LARGE)
    for first in (None, COUNT):  # how many rows there are says nothing about how many values
        if first is not None:
            curator.ask(first, epsilon=1)
        with pytest.raises(UnsupportedQuery, match="Release a COUNT first"):
            curator.explain(MEAN, within=5, max_epsilon=50)
    curator.ask(VALUES, epsilon=1)
    assert cost(curator, MEAN, 5) < 50


@pytest.mark.parametrize("first", [VALUES, MEAN, "SELECT COUNT(age) AS n, COUNT(*) AS k FROM visits"])
def test_any_release_that_counts_the_values_will_do(first: str) -> None:
    curator = clinic(LARGE)
    curator.ask(first, epsilon=1)
    assert cost(curator, MEAN, 5) < 50


def test_only_the_lower_end_of_a_released_count_is_used() -> None:
    """The price is the same on other data, once the same count was released."""
    prices, elsewhere = set(), clinic(LARGE)
    elsewhere.ask(VALUES, epsilon=1)
    (stored,) = [e for e in elsewhere.history("visits") if e.kind == "answer"]
    (kept,) = elsewhere._ledger.read_answers(stored.content["replay_key"])
    for rows in (visits(3, patients=200), visits(4, patients=150), []):
        curator = Curator.for_tests(engine=Memory(), bits=SeededBits(11))
        curator.protect(rows, name="visits", budget=LARGE, **OPTIONS)
        receipt = curator._ledger.charge("visits", curator.explain(VALUES, epsilon=1).event)
        curator._ledger.store_answer(receipt, kept.replay_key, kept.payload)
        prices.add(cost(curator, MEAN, 5))
    assert len(prices) == 1


def test_a_better_count_released_later_does_not_change_the_price() -> None:
    """So that the same idempotency key always asks for the same."""
    curator = clinic(LARGE)
    curator.ask(VALUES, epsilon="0.5")
    first = curator.ask(MEAN, within=8, max_epsilon=50, key="k")
    curator.ask(VALUES, epsilon=5)
    again = curator.ask(MEAN, within=8, max_epsilon=50, key="k")
    assert (again.records, again.replayed) == (first.records, True)


def test_groups_that_may_be_empty_and_private_groups_are_refused() -> None:
    curator = clinic(GAUSSIAN, keys={"ward": ["A", "nowhere"]})
    by_ward = "SELECT ward, {} AS x FROM visits GROUP BY ward"
    curator.ask(by_ward.format("COUNT(age)"), epsilon=1)
    with pytest.raises(UnsupportedQuery):
        curator.ask(by_ward.format("AVG(age)"), within=5, max_epsilon=50)
    with pytest.raises(UnsupportedQuery):
        curator.ask("SELECT kind, AVG(age) AS a FROM visits GROUP BY kind", within=5, max_epsilon=50, delta=1e-6)


# ------------------------------------------------------------------------------------------------------------- coverage

RUNS, CONFIDENCE = 400, Fraction(4, 5)


def most(runs: int) -> int:
    """P(Bin(runs, 1/5) >= k) <= 1e-9 from this k on: so many misses are no bad luck."""
    tail = [sum(comb(runs, i) * 4 ** (runs - i) for i in range(k, runs + 1)) for k in range(runs)]
    return next(k for k in range(runs) if tail[k] * 10**9 < 5**runs)


def missed(sql: str, within: int, bits: SeededBits, *, before: str | None = None, runs: int = RUNS) -> int:
    """How often a number was farther away than asked from what the same curator says almost without noise."""
    rows, misses, truths = visits(3, patients=200), 0, {}
    for _ in range(runs):
        curator = Curator.for_tests(engine=Memory(), bits=bits)
        curator.protect(rows, name="visits", budget=Budget(epsilon=10**9), **(OPTIONS | {"max_rows": 9}))
        if before is not None:
            curator.ask(before, epsilon="0.5")
        (row,) = curator.ask(sql, within=within, max_epsilon=100, confidence=CONFIDENCE)
        if sql not in truths:  # limits that keep everybody's rows: the same for all salts
            truths[sql] = next(iter(curator.ask(sql, epsilon=10**8)[0].values()))
        misses += abs(next(iter(row.values())) - truths[sql]) > within
    return misses


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "within", "before"), [(COUNT, 10, None), ("SELECT SUM(age) AS s FROM visits", 800, None), (MEAN, 6, VALUES)]
)
def test_numbers_are_as_near_as_asked(sql: str, within: int, before: str | None, bits: SeededBits) -> None:
    assert missed(sql, within, bits, before=before) < most(RUNS)


@pytest.mark.ci
def test_counts_are_as_near_as_asked(bits: SeededBits) -> None:
    assert missed(COUNT, 10, bits, runs=100) < most(100)


@pytest.mark.ci
def test_mutant_an_error_told_too_small(bits: SeededBits, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the budget: a miss has a chance of about the third root of 1/5, which is 0.58."""
    right = targets.farthest
    monkeypatch.setattr(targets, "farthest", lambda *arguments: right(*arguments) / 3)
    assert missed(COUNT, 10, bits, runs=100) >= most(100)


def test_mutant_a_price_that_looks_at_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of public prices sees a count that was never released."""

    register, seen = Memory.register, dict[str, int]()

    def noting(engine: Memory, name: str, source: Any, columns: Any) -> None:
        seen[name] = len(source)
        register(engine, name, source, columns)

    monkeypatch.setattr(Memory, "register", noting)
    monkeypatch.setattr(module.Planner, "_collect_counts", lambda *_: [1 + seen["visits"]])
    with pytest.raises((AssertionError, InvalidParameter)):
        test_only_the_lower_end_of_a_released_count_is_used()
