"""RT-064: amounts that are no amounts are refused by every door, before anything else happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from discreet.errors import InvalidParameter
from discreet.privacy import GDP, ZCDP, ApproxDP, Budget, PureDP, events
from tests.cases import every, try_all

EVERYWHERE = [
    -1,
    -0.5,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e-320,
    "1e999",
    True,
    10**400,
    None,
    "",
    "a",
    [],
    1j,
]
NOT_ZERO = [0, 0.0, -0.0, "0"]
INNER = events.Pure(1)

DOORS: list[tuple[Callable[[Any], object], str, bool]] = [  # the door, the parameter's name, whether 0 is allowed
    (PureDP, "epsilon", True),
    (lambda x: ApproxDP(x, 1e-6), "epsilon", True),
    (lambda x: ApproxDP(1, x), "delta", True),
    (ZCDP, "rho", True),
    (lambda x: ZCDP(1, x), "delta", True),
    (GDP, "mu", True),
    (GDP.from_square, "mu_squared", True),
    (lambda x: Budget(epsilon=x, delta=1e-6), "epsilon", False),
    (lambda x: Budget(epsilon=1, delta=x), "delta", False),
    (lambda x: Budget(rho=x), "rho", False),
    (events.Laplace, "noise_multiplier", False),
    (events.Gaussian, "noise_multiplier", False),
    (lambda x: events.DiscreteLaplace(x, 1), "scale", False),
    (lambda x: events.DiscreteLaplace(1, x), "sensitivity", False),
    (lambda x: events.DiscreteGaussian(x, 1), "sigma", False),
    (lambda x: events.DiscreteGaussian(1, x), "sensitivity", False),
    (lambda x: events.DiscreteGaussian(1, 1, x), "dimension", False),
    (events.Pure, "epsilon", False),
    (lambda x: events.Approx(x, 1e-6), "epsilon", True),
    (lambda x: events.Approx(1, x), "delta", False),
    (events.Concentrated, "rho", False),
    (lambda x: events.Concentrated(1, x), "delta", True),
    (events.BoundedRange, "epsilon", False),
    (events.RandomizedResponse, "epsilon", False),
    (lambda x: events.RandomizedResponse(1, x), "options", False),
    (lambda x: events.PoissonSampled(x, INNER), "probability", False),
]
OF_BUDGET = range(7, 10)  # there None means that the amount was not given


@every("door", range(len(DOORS)))
def test_no_amount(door: int) -> None:
    build, name, _ = DOORS[door]

    def check(value: Any) -> None:
        with pytest.raises(InvalidParameter) as refusal:
            build(value)
        assert refusal.value.name == name
        assert refusal.value.value is value or refusal.value.value == value

    try_all([value for value in EVERYWHERE if value is not None or door not in OF_BUDGET], check)


@every("door", range(len(DOORS)))
def test_zero(door: int) -> None:
    build, name, allowed = DOORS[door]

    def check(value: Any) -> None:
        if allowed and str(value) != "-0.0":
            build(value)
            return
        with pytest.raises(InvalidParameter) as refusal:
            build(value)
        assert refusal.value.name == name

    try_all(NOT_ZERO, check)


@pytest.mark.parametrize("value", [1, 1.0, 2, "1", 1e300])
def test_delta_stays_below_one(value: Any) -> None:
    doors = (ApproxDP, ZCDP, events.Approx, events.Concentrated)
    for door in doors:
        with pytest.raises(InvalidParameter) as refusal:
            door(1, value)
        assert (refusal.value.name, refusal.value.value, refusal.value.condition) == ("delta", value, "< 1")


def test_a_message_says_what_to_do() -> None:
    with pytest.raises(InvalidParameter, match=r"^Expected epsilon=-1 > 0. Pass a positive number, e.g. epsilon=0.1.$"):
        Budget(epsilon=-1)
