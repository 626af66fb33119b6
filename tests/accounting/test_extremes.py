"""The ends of every range: a number or a typed refusal, never NaN, never a warning, never infinity without cause."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import accounting
from discreet.accounting import zcdp
from discreet.errors import UnsupportedEvent
from discreet.privacy import Budget, events
from discreet.privacy.events import Event, PoissonSampled, Repeated

ALMOST = 1 - Fraction(1, 10**20)  # a rate that no float below 1 can hold
DELTAS = [0.5, 1e-5, 1e-15, 1e-100, 1e-300]
COUNTS = [1, 1000, 10**6]

EXTREME: list[Event] = [
    *[events.Gaussian(size) for size in ("1e-3", "1e6")],
    *[events.Laplace(size) for size in ("1e-3", "1e6")],
    *[PoissonSampled(rate, events.Gaussian(size)) for rate in ("1e-6", "0.5", ALMOST) for size in ("1e-3", 1, "1e6")],
    *[PoissonSampled(rate, events.Laplace(size)) for rate in ("1e-6", ALMOST) for size in ("1e-3", "1e6")],
    *[events.Pure(size) for size in ("1e-6", 1000)],
    *[events.RandomizedResponse(size, 10**18) for size in ("1e-6", 1000)],
    *[PoissonSampled("1e-6", events.Pure(size)) for size in ("1e-6", 1000)],
    events.DiscreteLaplace("0.01", 1),
    events.DiscreteLaplace(10**9, 2**30),
    events.DiscreteLaplace(10**30, 10**30),
    events.DiscreteGaussian("0.01", 1),
    events.DiscreteGaussian(10**9, 2**30),
    events.DiscreteGaussian(10**30, 10**30),
    PoissonSampled("0.1", events.DiscreteGaussian(5000, 1)),
    events.Concentrated("1e-9"),
    events.BoundedRange(1000),
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("event", EXTREME, ids=repr)
def test_a_finite_bound_always_exists(event: Event) -> None:
    for count in COUNTS:
        bounds = [accounting.epsilon(Repeated(event, count), delta) for delta in DELTAS[1::3]]
        assert all(math.isfinite(bound) for bound in bounds)
        assert bounds == sorted(bounds)
    assert 0 <= accounting.delta(Repeated(event, 1000), 1) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("event", EXTREME, ids=repr)
def test_a_finite_bound_always_exists_at_every_delta(event: Event) -> None:
    for count in (1, 2, 30, 1000, 10**5, 10**6):
        for delta in DELTAS:
            assert math.isfinite(accounting.epsilon(Repeated(event, count), delta))


@pytest.mark.slow
@settings(max_examples=10)
@given(
    listed=st.lists(st.tuples(st.sampled_from(EXTREME), st.sampled_from(COUNTS)), min_size=2, max_size=3),
    delta=st.sampled_from(DELTAS),
)
def test_mixtures_of_tiny_and_huge(listed: list[tuple[Event, int]], delta: float) -> None:
    """Every pair of these events has a common method, RDP; the mixture costs at least its dearest part."""
    whole = accounting.epsilon([Repeated(event, count) for event, count in listed], delta)
    assert math.isfinite(whole)
    exact = accounting.delta([Repeated(event, count) for event, count in listed], 3)
    assert 0 <= exact <= 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("event", EXTREME[:12], ids=repr)
def test_the_least_is_never_above_one_method(event: Event) -> None:
    best = accounting.epsilon(Repeated(event, 100), 1e-30)
    for method in ("zCDP", "RDP"):
        assert best <= accounting.epsilon(Repeated(event, 100), 1e-30, method=method), method


LARGE: list[Event] = [
    events.Gaussian("1/60"),  # losses of 1,800 and 60 up or down
    events.Laplace("1/3000"),
    events.DiscreteLaplace(1, 3000),
    events.DiscreteGaussian(10, 600),
    events.DiscreteGaussian(5000, 300_000),
    events.Pure(3000),
    events.RandomizedResponse(3000, 3),
]


@pytest.mark.parametrize("event", LARGE, ids=repr)
@pytest.mark.parametrize(
    "count", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.slow)]
)
def test_losses_whose_exponential_no_float_holds(event: Event, count: int) -> None:
    """A unit in the sample, with probability a tenth, is recognised nearly surely at any epsilon below 1,200.

    So it is if it is sampled once in several times. Infinite epsilons aside, all methods must say so.
    """
    sampled = Repeated(PoissonSampled("0.1", event), count)
    seen = 1 - 0.9**count
    for method in (None, "PLD", "RDP", "zCDP"):
        try:
            assert accounting.delta(sampled, 1200, method=method) >= 0.499 * seen  # half of a Laplace draw says so
            assert accounting.epsilon(sampled, 0.499 * seen, method=method) >= 1200
        except UnsupportedEvent:
            assert method == "PLD"


def test_infinity_only_where_it_is_the_truth() -> None:
    leak = events.Repeated(events.Approx(1, "1e-6"), 10)
    assert accounting.epsilon(leak, "1e-6") == math.inf  # the leaks alone exceed it
    assert 9.9 < accounting.epsilon(leak, "1e-5") <= 10
    assert accounting.epsilon(events.Approx(1, "1e-5"), "1e-5") == 1  # also where no float is the delta
    assert accounting.epsilon(events.Gaussian(1), 0) == math.inf
    assert accounting.epsilon(events.Concentrated(1, "1e-6"), "1e-7") == math.inf


def test_a_tiny_delta_is_not_rounded_to_zero() -> None:
    """The truth at epsilon = 60 is about 1e-770: positive, so zero would be too little."""
    assert accounting.delta(events.Gaussian(1), 60) > 0
    assert accounting.delta(PoissonSampled("0.5", events.Gaussian(1)), 100) > 0
    assert accounting.delta(events.Laplace(1), 1) == 0


def test_just_below_the_largest_loss_something_is_left() -> None:
    at = 1 - Fraction(1, 2**52)
    assert accounting.delta(events.Pure(1), at) >= float(1 - at) * math.e / (1 + math.e) / math.e


def test_no_method_prices_losses_that_floats_cannot_resolve() -> None:
    with pytest.raises(UnsupportedEvent):
        accounting.epsilon(Repeated(PoissonSampled("0.5", events.Gaussian("1e-9")), 10**6), 0.5, method="PLD")


@pytest.mark.parametrize(
    "event", [events.Pure("1e-200"), events.Gaussian(Fraction(10) ** 200), events.BoundedRange("1e-250")]
)
def test_tiny_prices_are_rounded_up_and_not_refused(event: events.Event) -> None:
    assert 0 < zcdp.zcdp(event).rho <= Fraction(1, 10**300)
    account = accounting.Filter(Budget(rho=1))
    account.charge(event)
    assert account.can_afford(event)
