"""What is refused, by whom, and with which fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from discreet import accounting
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.privacy import Budget, events
from discreet.privacy.events import Event
from tests.cases import every

NONSENSE: list[Any] = [-1, -0.0, float("nan"), float("inf"), -float("inf"), 1e-320, "1e999", True, 10**400, None, "x"]
STEP = events.PoissonSampled("0.01", events.Gaussian(1))


@dataclass(frozen=True)
class Unknown(Event):
    size: int = 1


@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_deltas_and_epsilons(value: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        accounting.epsilon(STEP, value)
    assert refused.value.name == "delta"
    with pytest.raises(InvalidParameter) as refused:
        accounting.delta(STEP, value)
    assert refused.value.name == "epsilon"


@every("value", [*NONSENSE, 0])
def test_targets_of_calibration(value: Any) -> None:
    for call in (accounting.gaussian_sigma, accounting.discrete_gaussian_sigma):
        for arguments, name in (((value, 1e-5), "epsilon"), ((1, value), "delta"), ((1, 1e-5, value), "sensitivity")):
            with pytest.raises(InvalidParameter) as refused:
                call(*arguments)
            assert refused.value.name == name
    with pytest.raises(InvalidParameter):
        accounting.concentrated_sigma(value)
    with pytest.raises(InvalidParameter):
        accounting.calibrate(events.Gaussian, epsilon=value, delta=1e-5)


@pytest.mark.parametrize("value", [v for v in NONSENSE if v is not None] + [0], ids=repr)
def test_noise(value: Any) -> None:
    for build in (events.Gaussian, events.Laplace):
        with pytest.raises(InvalidParameter) as refused:
            build(value)
        assert refused.value.name == "noise_multiplier"


@pytest.mark.parametrize("value", [1, 2, "1.5"])
def test_a_delta_of_one_says_nothing(value: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        accounting.epsilon(STEP, value)
    assert refused.value.name == "delta"


@every("method", accounting.methods())
@every("event", [Unknown(), events.Repeated(Unknown(), 3), events.PoissonSampled("0.5", Unknown())])
def test_unknown_events_have_no_price(event: Event, method: str) -> None:
    for ask, argument in ((accounting.epsilon, 1e-5), (accounting.delta, 1)):
        with pytest.raises(UnsupportedEvent):
            ask(event, argument, method=method)
        with pytest.raises(UnsupportedEvent):
            ask([events.Pure(1), event], argument)
    with pytest.raises(UnsupportedEvent):
        accounting.trade_off(event, 0.1)


def test_a_refusal_says_which_method_has_no_price() -> None:
    for ask, argument in ((accounting.epsilon, 1e-5), (accounting.epsilon, 0), (accounting.delta, 1)):
        with pytest.raises(UnsupportedEvent) as refused:
            ask(events.Gaussian(1), argument, method="basic")
        assert (refused.value.event, refused.value.method) == (events.Gaussian(1), "Basic composition")
        with pytest.raises(UnsupportedEvent, match=r"^Accounting has no price for"):
            ask(Unknown(), argument)


def test_unknown_events_cannot_be_charged() -> None:
    for budget in (Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho=1)):
        account = accounting.Filter(budget)
        with pytest.raises(UnsupportedEvent) as refused:
            account.charge(Unknown(7))
        assert refused.value.event == Unknown(7)
        assert account.spent.is_zero
    with pytest.raises(UnsupportedEvent):
        accounting.Odometer().charge(Unknown())
    with pytest.raises(UnsupportedEvent):
        accounting.RenyiFilter(epsilon=1, delta=1e-6, order=64).charge(Unknown())


@pytest.mark.parametrize("thing", [1, None, "Gaussian", [1], [events.Pure(1), "x"]])
def test_what_is_no_event(thing: Any) -> None:
    with pytest.raises((InvalidParameter, TypeError)):
        accounting.epsilon(thing, 1e-5)


@pytest.mark.parametrize("delta", [0, 1e-5])
def test_unknown_methods(delta: float) -> None:
    with pytest.raises(InvalidParameter) as refused:
        accounting.epsilon(events.Pure(1), delta, method="moments")
    assert refused.value.name == "method"
    with pytest.raises(InvalidParameter):
        accounting.delta(events.Pure(1), 1, method="moments")


def test_unknown_neighbours() -> None:
    with pytest.raises(InvalidParameter) as refused:
        accounting.epsilon(STEP, 1e-5, neighbours="nearby")  # type: ignore[arg-type]
    assert refused.value.name == "neighbours"
