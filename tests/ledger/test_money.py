"""Money in the ledger is exact, is what a filter in memory would count, and costs the same however much was spent."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import accounting
from discreet.check import LARGEST_EXPONENT
from discreet.errors import InsufficientBudget, UnsupportedEvent
from discreet.ledger import Ledger
from discreet.ledger.account import AccountMember, AccountState, Role
from discreet.ledger.serialization import add_pairs, by_identity, canonical, is_at_most, pair_of, remainder
from discreet.ledger.store.ledger_store import Kept, Place
from discreet.ledger.store.sqlite import SqliteTransaction
from discreet.ledger.tallies import ChargePrice, Tallies, prices
from discreet.privacy import Budget, Loss, Neighbours, PureDP, events
from discreet.privacy.amounts import short
from discreet.privacy.events import Event
from tests.ledger.ledgers import PATIENTS, TENTH, opened, spend

BUDGETS = (
    Budget(epsilon=1),
    Budget(epsilon=1, delta="1e-6"),
    Budget(epsilon="0.3", delta="1e-3"),
    Budget(rho="0.1"),
    Budget(rho="0.05", delta="1e-6"),
)
EVENTS: tuple[Event, ...] = (
    TENTH,
    events.Pure("1/3"),
    events.Pure("0.01"),
    events.Laplace(noise_multiplier=7),
    events.Gaussian(noise_multiplier=5),
    events.DiscreteGaussian(sigma=9, sensitivity=2),
    events.Approx("0.1", "1e-7"),
    events.Approx("0.1", "0.6"),
    events.Concentrated("0.01"),
    events.BoundedRange("0.2"),
    events.Composed([events.Pure("0.02"), events.Gaussian(noise_multiplier=10)]),
)


def test_ten_tenths_are_one_through_the_file_and_across_reopening(tmp_path: Path) -> None:
    path = tmp_path / "book"
    opened(path).close()
    for place in range(10):
        with Ledger(str(path)) as ledger:
            assert ledger.charge("patients", TENTH).remaining == PureDP(Fraction(9 - place, 10))
    with Ledger(str(path)) as ledger:
        assert ledger.balance("patients").remaining.loss == PureDP(0)
        for least in (TENTH, events.Pure("1e-300")):
            with pytest.raises(InsufficientBudget) as caught:
                ledger.charge("patients", least)
            assert caught.value.remaining == PureDP(0)
        ledger.verify()


@pytest.mark.parametrize(("each", "count"), [("1/3", 3), ("1/7", 7), ("0.01", 100)])
def test_parts_of_one(each: str, count: int) -> None:
    assert spend(opened(), events.Pure(each)) == count
    assert spend(opened(budget=Budget(rho=1)), events.Concentrated(each)) == count


def passes(charge: Callable[[Event], object], event: Event) -> bool:
    """Whether a charge passes; the ledger and the filter may name the same refusal differently."""
    try:
        charge(event)
    except (InsufficientBudget, UnsupportedEvent):
        return False
    return True


@given(budget=st.sampled_from(BUDGETS), chosen=st.lists(st.sampled_from(EVENTS), min_size=1, max_size=25))
def test_the_ledger_agrees_with_the_filter(budget: Loss, chosen: list[Event]) -> None:
    ledger, reference = opened(budget=budget), accounting.Filter(budget)
    for event in chosen:
        assert passes(partial(ledger.charge, "patients"), event) == passes(reference.charge, event)
        assert ledger.balance("patients").spent == reference.spent
        assert ledger.balance("patients").remaining.loss == reference.remaining
    ledger.verify()


@given(budget=st.sampled_from(BUDGETS), chosen=st.lists(st.sampled_from(EVENTS), max_size=8))
def test_the_largest_pure_question_passes_and_a_larger_one_does_not(budget: Loss, chosen: list[Event]) -> None:
    ledger = opened(budget=budget)
    for event in chosen:
        passes(partial(ledger.charge, "patients"), event)
    largest = ledger.balance("patients").remaining.epsilon
    if largest:
        with pytest.raises(InsufficientBudget):
            ledger.charge("patients", events.Pure(largest * (1 + Fraction(1, 2**50))))
        ledger.charge("patients", events.Pure(largest))
    else:
        with pytest.raises(InsufficientBudget):
            ledger.charge("patients", events.Pure("1e-9"))


@given(budget=st.sampled_from(BUDGETS), chosen=st.lists(st.sampled_from(EVENTS), max_size=8))
def test_the_epsilon_that_is_advised_to_what_needs_a_delta_passes_with_that_delta(
    budget: Loss, chosen: list[Event]
) -> None:
    ledger = opened(budget=budget)
    for event in chosen:
        passes(partial(ledger.charge, "patients"), event)
    wanted = events.Approx(50, "1e-9")
    try:
        with pytest.raises(InsufficientBudget) as caught:
            ledger.charge("patients", wanted)
    except UnsupportedEvent:
        return  # an account without a delta
    advised = re.search(r"Ask with epsilon=([0-9.e-]+), or", str(caught.value))
    if advised is None:
        assert "No budget remains for questions that need a delta" in str(caught.value)
        with pytest.raises(InsufficientBudget):
            ledger.charge("patients", events.Approx("1e-6", "1e-9"))
    else:
        ledger.charge("patients", events.Approx(advised[1], "1e-9"))


def test_unrelated_denominators_do_not_let_the_sums_grow() -> None:
    ledger = opened(budget=Budget(epsilon=1000))
    parts = [Fraction(1, 2**127 + 2 * place + 1) for place in range(120)]
    for part in parts:
        ledger.charge("patients", events.Pure(part))
    spent = ledger.balance("patients").spent
    assert isinstance(spent, PureDP)
    assert spent.epsilon.denominator.bit_length() < 2500
    assert sum(parts) <= spent.epsilon <= sum(parts) * (1 + Fraction(1, 2**200))
    ledger.verify()  # rounded sums depend on order: the walk repeats it


def test_sums_survive_being_written() -> None:
    budget = Budget(epsilon=1, delta="1e-6")
    tallies = Tallies.zero(budget) + prices(events.Gaussian(noise_multiplier=3), budget, Neighbours.ADD_REMOVE)
    assert Tallies.read(tallies.write()) == tallies
    assert tallies.sums["pure"] is None


def test_deltas_that_reach_one_bound_nothing() -> None:
    budget = Budget(epsilon=1, delta="0.9")
    price = prices(events.Approx("0.1", "0.6"), budget, Neighbours.ADD_REMOVE)
    assert (price + price).sums == {"pure": None, "approximate": None, "concentrated": None}
    assert price * 2 == price + price
    assert (price * 2).spent_under(budget) is None


def test_units_and_relations_survive_the_file(tmp_path: Path) -> None:
    with Ledger(str(tmp_path / "book")) as ledger:
        ledger.stewardship.open_account(
            "a", unit=PATIENTS, neighbours="replace", budget=Budget(rho="1/3", delta="1e-9")
        )
        first = ledger.account("a")
    with Ledger(str(tmp_path / "book")) as ledger:
        assert ledger.account("a") == first


@given(budget=st.sampled_from(BUDGETS), cap=st.sampled_from([None, *BUDGETS]), chosen=st.lists(st.sampled_from(EVENTS)))
def test_states_written_by_hand_are_canonical(budget: Loss, cap: Loss | None, chosen: list[Event]) -> None:
    now = AccountState.open_account(budget)
    person = AccountMember.of(now)._replace(cap=cap, role=None if cap is None else Role.ANALYST)
    for event in chosen:
        try:
            price = ChargePrice(prices(event, budget, Neighbours.ADD_REMOVE))
        except UnsupportedEvent:
            continue
        now, person = now.with_charge(price), person.with_charge(price)
    for state in (now, person, now._replace(failures=2, listed=True)):
        text = state.write()
        assert text == canonical(json.loads(text))
        assert type(state).read(text) == state


@given(spent=st.fractions(0, 9, max_denominator=99), cap=st.fractions(0, 9, max_denominator=99))
def test_sums_are_covered_as_numbers_not_as_pairs(spent: Fraction, cap: Fraction) -> None:
    """(1, 2) comes before (1, 3) in order of pairs, and one half is more than a third."""
    one, other = (Tallies({"pure": (each.as_integer_ratio(),)}) for each in (spent, cap))
    assert one.is_covered_by(other) == (spent <= cap)


def test_a_sum_that_nobody_knows_is_not_covered() -> None:
    known, unknown = Tallies({"pure": ((1, 2),)}), Tallies({"pure": None})
    assert not unknown.is_covered_by(known)
    assert known.is_covered_by(unknown)
    assert not Tallies({"pure": ((1, 2),)}).is_covered_by(
        Tallies({"pure": ((1, 3),)})
    )  # what an order of pairs would pass
    assert ((1, 2),) <= ((1, 3),)


AMOUNTS = st.fractions(0, 9, max_denominator=99) | st.sampled_from([Fraction(1, 10**301), Fraction(3, 2**2040)])


@given(one=AMOUNTS, other=AMOUNTS)
def test_pairs_are_added_compared_and_taken_away_as_fractions(one: Fraction, other: Fraction) -> None:
    first, second = pair_of(one), pair_of(other)
    assert add_pairs(first, second) == pair_of(short(one + other))
    assert is_at_most(first, second) == (one <= other)
    rest = one - other
    assert remainder(first, second) == pair_of(rest if rest * 10**LARGEST_EXPONENT >= 1 else Fraction(0))


def test_what_is_found_by_identity_belongs_to_the_object() -> None:
    """Objects come and go, and the place of one is soon that of another."""
    write = by_identity(str)
    assert all(write(Fraction(number, 7)) == str(Fraction(number, 7)) for number in range(2000))


def collections_of(charges: int) -> int:
    """How often the garbage collector ran during so many charges, after as many to get going."""
    ledger = opened(budget=Budget(epsilon=10**6))
    assert spend(ledger, most=charges) == charges
    gc.collect()
    runs: list[str] = []
    count = lambda phase, _: runs.append(phase)  # noqa: E731 - the very object is taken out again
    gc.callbacks.append(count)
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # as in every program; tests have another
    try:
        assert spend(ledger, most=charges) == charges
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(count)
    return len(runs)


@pytest.mark.ci
def test_charges_leave_nothing_to_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at every object of the process while all others wait for the ledger."""
    assert collections_of(400) == 0
    honest, written = SqliteTransaction.put, []

    def put(rows: SqliteTransaction, *states: tuple[Place, Kept]) -> None:
        written.append(states)  # a mutant that forgets nothing
        honest(rows, *states)

    monkeypatch.setattr(SqliteTransaction, "put", put)
    assert collections_of(400) > 0
