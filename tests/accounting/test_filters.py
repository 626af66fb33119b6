"""Budgets under adaptive use: exact to the last tenth, sound for the worst adversary small enough to enumerate."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import accounting
from discreet.accounting.composition import compose, strip_calibration, terms
from discreet.accounting.filters import rules
from discreet.accounting.zcdp import rho_for
from discreet.errors import InsufficientBudget, InvalidParameter, UnsupportedEvent
from discreet.privacy import GDP, ZCDP, ApproxDP, Budget, Loss, Neighbours, PureDP, events
from discreet.privacy.events import Event
from tests.accounting import reference

Filter = accounting.Filter


def successes(account: accounting.Filter, event: Event, most: int = 2000) -> int:
    for passed in range(most):
        try:
            account.charge(event)
        except InsufficientBudget:
            return passed
    return most


@pytest.mark.parametrize(
    ("each", "count"), [(0.1, 10), ("1/3", 3), (0.01, 100), ("0.001", 1000), (Fraction(1, 7), 7), (1, 1)]
)
def test_a_budget_of_one_is_exactly_so_many_parts(each: float | str | Fraction, count: int) -> None:
    assert successes(Filter(Budget(epsilon=1)), events.Pure(each)) == count
    assert successes(Filter(Budget(rho=1)), events.Concentrated(each)) == count


def test_unequal_parts_add_up_exactly() -> None:
    account = Filter(Budget(epsilon=1))
    account.charge(events.Pure("0.3"))
    account.charge(events.Pure(0.7))
    assert account.spent == PureDP(1)
    assert account.remaining == PureDP(0)
    assert not account.can_afford(events.Pure("1e-300"))


def test_a_refused_charge_spends_nothing() -> None:
    account = Filter(Budget(epsilon=1))
    account.charge(events.Pure("0.5"))
    with pytest.raises(InsufficientBudget) as refused:
        account.charge(events.Pure("0.6"))
    assert refused.value.requested == PureDP("0.6")
    assert refused.value.remaining == PureDP("0.5")
    account.charge(events.Pure("0.5"))
    assert account.spent == PureDP(1)


def test_repetition_and_lists_are_charged_in_full() -> None:
    account = Filter(Budget(epsilon=1))
    with pytest.raises(InsufficientBudget):
        account.charge(events.Repeated(events.Pure("0.1"), 11))
    account.charge(events.Composed([events.Repeated(events.Pure("0.1"), 9), events.Laplace(10)]))
    assert account.remaining == PureDP(0)


def test_concentrated_budgets_count_both_amounts() -> None:
    account = Filter(ZCDP(1, "1e-6"))
    account.charge(events.Gaussian(1))  # rho = 1/2
    account.charge(events.Concentrated("0.25", "1e-6"))
    with pytest.raises(InsufficientBudget):
        account.charge(events.Concentrated("0.01", "1e-9"))
    account.charge(events.DiscreteGaussian(2, 1, 5))  # rho = 1/8
    account.charge(events.BoundedRange(1))  # rho = 1/8
    assert account.remaining == ZCDP(0)


def test_gaussian_budgets_add_squares() -> None:
    account = Filter(GDP(5))
    account.charge(events.Gaussian("1/3"))
    account.charge(events.Gaussian("1/4"))
    assert account.spent == GDP(5)
    with pytest.raises(InsufficientBudget):
        account.charge(events.Gaussian(10**6))
    with pytest.raises(UnsupportedEvent) as refused:
        Filter(GDP(5)).charge(events.Pure(1))
    assert refused.value.event == events.Pure(1)


@pytest.mark.parametrize(
    "budget", [Budget(epsilon=1, delta=1e-6), Budget(epsilon="0.01", delta="1e-12"), ApproxDP(3, "0.1")]
)
def test_shares_of_an_approximate_budget_add_up(budget: ApproxDP) -> None:
    """Each rule is (epsilon, delta_i)-DP by itself, and the deltas add up to the budget's."""
    pure, basic, concentrated = (rule.cap for rule in rules(budget))
    assert pure == PureDP(budget.epsilon)
    assert isinstance(basic, ApproxDP)
    assert isinstance(concentrated, ZCDP)
    conversion = budget.delta / 4
    assert basic.delta + concentrated.delta + conversion == budget.delta
    assert basic.epsilon == budget.epsilon
    found = accounting.epsilon(events.Concentrated(concentrated.rho), conversion, method="zCDP")
    assert budget.epsilon * Fraction(999, 1000) < found <= budget.epsilon


def test_each_rule_serves_until_it_dies() -> None:
    budget = Budget(epsilon=1, delta=1e-6)
    rho = Fraction(rho_for(1.0, float(budget.delta / 4)))
    account = Filter(budget)
    assert successes(account, events.Pure("0.01")) >= 100  # pure sums reach 100, concentrated ones further
    small = Filter(budget)
    assert successes(small, events.Pure("0.005")) == math.floor(rho / (Fraction(5, 1000) ** 2 / 2))
    gaussian = Filter(budget)  # kills both sums, leaves zCDP
    gaussian.charge(events.Gaussian(20))
    assert isinstance(gaussian.spent, ZCDP)
    with pytest.raises(InsufficientBudget):
        gaussian.charge(events.Pure(1))
    leak = Filter(budget)  # kills pure sums, leaves basic and zCDP
    leak.charge(events.Approx("0.5", "1e-7"))
    leak.charge(events.Approx("0.5", "1e-7"))
    assert leak.spent == ApproxDP(1, "2e-7")


@given(
    budget=st.sampled_from([Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho="0.1"), GDP(1)]),
    charges=st.lists(
        st.sampled_from(
            [
                events.Pure("0.2"),
                events.Gaussian(3),
                events.Approx("0.1", "1e-7"),
                events.Repeated(events.Laplace(9), 2),
            ]
        ),
        max_size=12,
    ),
)
def test_asking_and_charging_agree(budget: Loss, charges: list[Event]) -> None:
    account = Filter(budget)
    for event in charges:
        before, affordable = account.spent, account.can_afford(event)
        try:
            account.charge(event)
        except (InsufficientBudget, UnsupportedEvent):
            assert not affordable
            assert account.spent == before
        else:
            assert affordable
        assert account.spent <= budget or isinstance(account.spent, ZCDP)


def test_relations_do_not_mix() -> None:
    account = Filter(Budget(epsilon=1), neighbours=Neighbours.REPLACE)
    with pytest.raises(InvalidParameter) as refused:
        account.charge(events.Pure("0.1"), neighbours=Neighbours.ADD_REMOVE)
    assert refused.value.name == "neighbours"
    with pytest.raises(UnsupportedEvent):
        account.charge(events.PoissonSampled("0.1", events.Pure("0.1")))
    account.charge(events.Pure("0.1"), neighbours=Neighbours.REPLACE)
    assert account.spent == PureDP("0.1")


@pytest.mark.parametrize("make", [lambda: Filter(Budget(epsilon=1)), lambda: Filter(Budget(rho=1))])
def test_threads_share_one_budget(make: Callable[[], accounting.Filter]) -> None:
    account, passed, start = make(), [], threading.Barrier(64)

    def spend() -> None:
        start.wait()
        for _ in range(4):
            try:
                account.charge(
                    events.Pure("0.01") if isinstance(account.budget, PureDP) else events.Concentrated("0.01")
                )
            except InsufficientBudget:
                continue
            passed.append(1)

    threads = [threading.Thread(target=spend) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 100


@pytest.mark.parametrize(("rho", "true"), [("0.005", 0.766656), ("0.05", 2.418259), ("0.3", 5.106211)])
def test_odometer(rho: str, true: float) -> None:
    meter = accounting.Odometer(delta="1e-6", first="0.01")
    meter.charge(events.Concentrated(rho))
    assert float(meter.spent.epsilon) == pytest.approx(true, rel=1e-6)
    assert meter.spent.delta == Fraction(1, 10**6)


def test_odometer_counts_leaks_and_prefers_sums_while_they_are_smaller() -> None:
    meter = accounting.Odometer(delta="1e-6")
    assert meter.spent == ApproxDP(0, 0)
    meter.charge(events.Pure("0.1"))
    assert meter.spent == ApproxDP("0.1", 0)
    meter.charge(events.Approx("0.1", "1e-7"))
    assert meter.spent == ApproxDP("0.2", "1e-7")
    meter.charge(events.Gaussian(5))
    assert meter.spent.delta == Fraction(11, 10**7)
    assert meter.spent.epsilon > Fraction(2, 10)


def test_renyi_filter_caps_one_order() -> None:
    """Its cap converts back to the target: (cap / (a - 1)) plus the conversion at half of delta is epsilon."""
    account = accounting.RenyiFilter(epsilon=2, delta=1e-5, order=8)
    step = events.PoissonSampled("0.01", events.Gaussian(1))
    passed = 0
    with pytest.raises(InsufficientBudget):  # noqa: PT012 - the loop counts until the refusal
        while True:
            account.charge(step)
            passed += 1
    assert passed > 100
    assert accounting.epsilon(events.Repeated(step, passed), 5e-6, method="RDP") <= 2
    assert accounting.epsilon(events.Repeated(step, passed), 1e-5) <= 2
    for wrong in (1, 0.5, 10.05, -3):
        with pytest.raises(InvalidParameter) as refused:
            accounting.RenyiFilter(epsilon=2, delta=1e-5, order=wrong)
        assert refused.value.name == "order"


def test_an_order_too_small_for_the_target_is_refused() -> None:
    with pytest.raises(InvalidParameter) as refused:
        accounting.RenyiFilter(epsilon="0.01", delta=1e-9, order=2)
    assert refused.value.name == "order"


# An adversary over coins: after every answer it picks the next event among a few, and stops when the filter refuses
# all. All transcripts are enumerated, with their exact probabilities on both neighbours.

Strategy = Callable[[tuple[int, ...]], list[events.RandomizedResponse]]


def transcripts(account: accounting.Filter, strategy: Strategy, most: int) -> reference.Law:
    """The law of the privacy loss of the whole interaction."""
    law: dict[Any, Any] = {}

    def continue_with(account: accounting.Filter, seen: tuple[int, ...], loss: Any, mass: Any) -> None:
        event = next((e for e in strategy(seen) if account.can_afford(e)), None) if len(seen) < most else None
        if event is None:
            law[loss] = law.get(loss, 0) + mass
            return
        after = copy.copy(account)  # what was spent is immutable, so that a copy is a branch
        after.charge(event)
        for answer, (at, share) in enumerate(reference.randomized_response(event.epsilon).items()):
            continue_with(after, (*seen, 1 - answer), loss + at, mass * share)

    continue_with(account, (), reference.mpf(0), reference.mpf(1))
    return law


def lucky(seen: tuple[int, ...]) -> list[events.RandomizedResponse]:
    """Bets more after truths, which raise the realised loss, and little after lies."""
    large, small = events.RandomizedResponse("0.5"), events.RandomizedResponse("0.2")
    return [large, small] if sum(seen) * 2 >= len(seen) else [small, large]


def greedy(seen: tuple[int, ...]) -> list[events.RandomizedResponse]:
    """Alternates, then takes whatever still passes."""
    return [events.RandomizedResponse(size) for size in (("0.4", "0.3") if len(seen) % 2 else ("0.3", "0.4"))]


@pytest.mark.parametrize("strategy", [lucky, greedy])
@pytest.mark.parametrize(
    ("budget", "at", "delta"),
    [(Budget(epsilon=1), 1.0, 0.0), (ApproxDP(1, "0.2"), 1.0, 0.2), (ApproxDP("0.7", "0.4"), 0.7, 0.4)],
    ids=["pure", "approximate", "loose"],
)
def test_an_adaptive_adversary_cannot_exceed_the_budget(
    strategy: Strategy, budget: Loss, at: float, delta: float
) -> None:
    law = transcripts(Filter(budget), strategy, most=10)
    assert abs(sum(law.values()) - 1) < 1e-50
    assert reference.hockey_stick(law, at) <= delta + 1e-50


def test_the_adversary_has_power() -> None:
    """The same adversary exceeds a budget that a filter of twice the size would enforce."""
    law = transcripts(Filter(Budget(epsilon=2)), lucky, most=10)
    assert reference.hockey_stick(law, 1.0) > 0.05


CALIBRATED = events.Calibrated(events.Gaussian(5), 1, "1e-7")


def test_calibrated_noise_has_both_prices() -> None:
    """Sums of epsilons count the amounts it was calibrated to, sums of rho the law of the noise."""
    budget = Budget(epsilon=4, delta="1e-6")
    plain, found = rules(budget)[1:]
    released = terms(events.Repeated(CALIBRATED, 3), calibrated=True)
    assert plain.price(released) == ApproxDP(3, "3e-7")
    assert found.price(released) == ZCDP(Fraction(3, 50))
    assert compose(terms(events.PoissonSampled(1, CALIBRATED), calibrated=True)) == ApproxDP(1, "1e-7")


@pytest.mark.parametrize("event", [CALIBRATED, events.Composed([events.Repeated(CALIBRATED, 2), events.Pure(1)])])
def test_accountants_look_at_the_law_of_calibrated_noise(event: Event) -> None:
    bare = events.strip_calibration(event)
    assert terms(event) == terms(bare) == strip_calibration(terms(event, calibrated=True))
    assert accounting.epsilon(event, "1e-6") == accounting.epsilon(bare, "1e-6")
    for budget in (Budget(rho=1), GDP(2)):
        accounts = Filter(budget), Filter(budget)
        for account, one in zip(accounts, (CALIBRATED, CALIBRATED.event), strict=True):
            account.charge(one)
        assert accounts[0].spent == accounts[1].spent


def test_one_gaussian_leaves_plain_sums_open() -> None:
    account = Filter(Budget(epsilon=10, delta="1e-6"))
    account.charge(CALIBRATED)
    assert account.can_afford(events.Pure(9))
    assert not account.can_afford(events.Pure("9.01"))


def test_a_pure_budget_pays_no_calibrated_noise() -> None:
    with pytest.raises(UnsupportedEvent):
        Filter(Budget(epsilon=10)).charge(CALIBRATED)
