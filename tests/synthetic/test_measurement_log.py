"""The log: exact counts, exact prices, refusals before a draw, limits of contributions."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import accounting
from discreet.accounting.composition import terms
from discreet.accounting.zcdp import compose
from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.errors import InsufficientBudget, InternalError, InvalidParameter
from discreet.noise import SeededBits
from discreet.privacy import Neighbours
from discreet.privacy.events import Concentrated
from discreet.synthetic.coded_rows import CodedRows, rows_within_limit
from discreet.synthetic.measurement_log import STEPS, MeasurementLog, concentrated_budget, l1_error

SIZES = {"a": 2, "b": 3}
RELATIONS = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]


def table(*lines: tuple[int, int]) -> CodedRows:
    return CodedRows(SIZES, np.array(lines, dtype=np.int64).reshape(-1, 2))


def test_counts_are_exact() -> None:
    rows = table((0, 1), (1, 2), (1, 2))
    assert rows.counts(("b", "a")).tolist() == [[0, 0], [1, 0], [0, 2]]
    assert rows.counts(()) == 3
    assert table().counts(("a",)).tolist() == [0, 0]


def test_charges_add_up_exactly_and_nothing_is_drawn_beyond_the_budget() -> None:
    log = MeasurementLog(rho=Fraction(1, 7), bits=SeededBits(1))
    rows = table((0, 1))
    parts = [Fraction(1, 14), Fraction(1, 21), Fraction(1, 43)]
    log.marginal(rows, ("a",), rho=parts[0])
    log.choose([3, 5], rho=parts[1])
    log.marginal(rows, ("a", "b"), rho=parts[2])
    left = Fraction(1, 7) - sum(parts)
    assert log.remaining == left
    seen = MechanismRecorder()
    with watch_mechanisms(seen):
        for refused in (left + Fraction(1, 10**30), Fraction(1)):
            with pytest.raises(InsufficientBudget):
                log.marginal(rows, ("b",), rho=refused)
            with pytest.raises(InsufficientBudget):
                log.choose([1, 2], rho=refused)
    assert not seen.made
    assert log.remaining == left
    log.choose([1, 2], rho=left)
    assert log.remaining == 0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("limit", [1, 3])
def test_draws_are_what_was_charged(relation: Neighbours, limit: int) -> None:
    seen = MechanismRecorder(SeededBits(2))
    log = MeasurementLog(rho=1, neighbours=relation, rows_per_unit=limit)
    rows = table((0, 1), (1, 1))
    with watch_mechanisms(seen):
        log.marginal(rows, ("a", "b"), rho="0.3")
        log.choose([0, 100], rho="0.1", weight=4)
        log.marginal(rows, (), rho="0.6")
    assert [handed.mechanism.event for handed in seen.made] == list(log.event.events)
    assert seen.made[0].inputs[0].tolist() == rows.counts(("a", "b")).tolist()
    spread = limit if relation is Neighbours.ADD_REMOVE else 2 * limit
    assert seen.made[0].mechanism.sensitivity ** 2 >= limit * spread
    assert seen.made[1].mechanism.sensitivity == 4 * STEPS * spread
    price = compose(terms(log.event)).rho
    assert log.spent * (1 - Fraction(1, 10**15)) < price <= log.spent


def test_a_release_that_costs_more_than_its_charge_is_our_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MeasurementLog(rho=1)
    honest = log._noise
    monkeypatch.setattr(log, "_noise", lambda rho: honest(2 * rho))
    with pytest.raises(InternalError):
        log.marginal(table((0, 1)), ("a",), rho="0.5")
    assert not log.charges


def _tables(rows: int) -> list[tuple[tuple[int, int], ...]]:
    cells = list(itertools.product(range(2), range(3)))
    return [lines for size in range(rows + 1) for lines in itertools.combinations_with_replacement(cells, size)]


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
def test_sensitivities_hold_and_are_reached_by_brute_force(relation: Neighbours, limit: int) -> None:
    """All rows of one unit beside those of others: what others have cancels, so that one fixed table will do."""
    log = MeasurementLog(rho=1, neighbours=relation, rows_per_unit=limit)
    others = ((0, 0), (0, 2), (1, 1))
    mine = _tables(limit)
    pairs = itertools.product(mine, mine) if relation is Neighbours.REPLACE else ((unit, ()) for unit in mine)
    estimate = np.array([[0.3, 2.0, 1.1], [0.0, 5.25, 0.7]])
    worst = {"l1": Fraction(0), "l2": Fraction(0), "score": Fraction(0)}
    for one, other in pairs:
        first, second = (table(*others, *unit).counts(("a", "b")) for unit in (one, other))
        move = first - second
        moves = np.abs(move).sum(), (move**2).sum(), abs(l1_error(first, estimate) - l1_error(second, estimate))
        worst = {key: max(worst[key], Fraction(int(moved))) for key, moved in zip(worst, moves, strict=True)}
    assert worst["l1"] == log.l1_sensitivity
    assert worst["l2"] == log.rows_per_unit * log.l1_sensitivity
    assert log.l2_sensitivity**2 >= worst["l2"]
    assert float(log.l2_sensitivity) ** 2 < worst["l2"] * (1 + 1e-12)
    assert STEPS * log.l1_sensitivity * Fraction(9, 10) <= worst["score"] <= STEPS * log.l1_sensitivity


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-9), (10, 1e-6)])
def test_the_budget_keeps_to_epsilon_and_delta(epsilon: float, delta: float) -> None:
    rho = concentrated_budget(epsilon, delta)
    assert epsilon * 0.999 < accounting.epsilon(Concentrated(rho), delta) <= epsilon
    assert accounting.epsilon(Concentrated(rho * Fraction(101, 100)), delta) > epsilon


def test_scores_are_whole_numbers_that_nothing_overflows() -> None:
    counts = np.array([10**12, 0])
    assert l1_error(counts, np.array([1e300, 0.0])) == abs(10**12 - 2**51) * STEPS
    log = MeasurementLog(rho=1, bits=SeededBits(1))
    assert log.choose([-(10**40), 10**40], rho="0.1") == 1


IDS = st.one_of(st.sampled_from(["ann", "bob", "eve", " ann ", ""]), st.integers(0, 2), st.none(), st.just(1.5))
ROWS = st.lists(st.tuples(IDS, st.integers(0, 2), st.integers(0, 1)), max_size=12)


def kept(rows: list[tuple[Any, int, int]], limit: int) -> Counter[tuple[int, ...]]:
    codes = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 2)
    return Counter(map(tuple, rows_within_limit([row[0] for row in rows], codes, limit).tolist()))


@given(rows=ROWS, limit=st.integers(1, 3), order=st.randoms(use_true_random=False))
@settings(deadline=None)
def test_what_a_unit_keeps_is_its_own_matter(rows: list[tuple[Any, int, int]], limit: int, order: Any) -> None:
    """All that is kept is the sum of what each unit keeps alone, at most the limit, in whatever order rows come."""
    whose = {row[0].strip() if isinstance(row[0], str) else row[0] for row in rows}
    total: Counter[tuple[int, ...]] = Counter()
    for unit in whose:
        own = [row for row in rows if (row[0].strip() if isinstance(row[0], str) else row[0]) == unit]
        alone = kept(own, limit)
        nobody = unit is None or unit == "" or isinstance(unit, float)
        assert sum(alone.values()) == (0 if nobody else min(limit, len(own)))
        total += alone
    assert kept(rows, limit) == total
    mixed = list(rows)
    order.shuffle(mixed)
    assert kept(mixed, limit) == total


def test_float_ids_are_refused_by_their_type() -> None:
    with pytest.raises(InvalidParameter) as caught:
        rows_within_limit(np.array([1.0, 2.0]), np.zeros((2, 1), dtype=np.int64), 1)
    assert caught.value.name == "unit"


@pytest.mark.parametrize("wrong", [("c",), ("a", "a")])
def test_unknown_columns_are_refused_before_a_charge(wrong: tuple[str, ...]) -> None:
    log = MeasurementLog(rho=1)
    with pytest.raises(InvalidParameter):
        log.marginal(table((0, 0)), wrong, rho="0.1")
    assert not log.charges


def test_much_noise_is_on_a_coarser_grid_and_costs_the_same() -> None:
    # 1 / sqrt(2 rho) = 2^27 rows: single rows would be drawn one by one, each by exact enclosures.
    rho = Fraction(1, 1 << 55)
    log = MeasurementLog(rho=rho, bits=SeededBits(1))
    found = log.marginal(table((0, 1)), ("a", "b"), rho=rho)
    assert found.sigma == pytest.approx(2.0**27, rel=1e-6)
    assert np.all(found.values % (1 << 16) == 0)
    assert compose(terms(log.event)).rho <= rho
