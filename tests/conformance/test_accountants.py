"""What every accounting method owes: one suite, which a method joins by being listed in `accounting.methods()`."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

import pytest

from discreet import accounting
from discreet.errors import UnsupportedEvent
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Composed, Event, PoissonSampled, Repeated
from tests.accounting import reference

pytestmark = pytest.mark.parametrize("method", accounting.methods())

HALF = Fraction(1, 2)
SPECIMENS: list[Event] = [
    events.Pure(HALF),
    events.Approx(HALF, "1e-9"),
    events.BoundedRange(HALF),
    events.RandomizedResponse(HALF, 3),
    events.Laplace(2),
    events.Gaussian(2),
    events.DiscreteLaplace(4, 2),
    events.DiscreteGaussian(4, 2),
    events.DiscreteGaussian(4, 2, 3),
    events.Concentrated("0.125", "1e-9"),
    PoissonSampled("0.1", events.Gaussian(2)),
    PoissonSampled("0.1", events.Laplace(2)),
    PoissonSampled("0.1", Composed([events.Pure(HALF), events.Laplace(2)])),
]
QUIET = 1 + 1e-6


def priced(method: str, ask: Callable[..., float], argument: float) -> list[tuple[Event, float]]:
    """The specimens the method can price; the others it refuses."""
    found = []
    for event in SPECIMENS:
        with suppress(UnsupportedEvent):
            found.append((event, ask(event, argument, method=method)))
    return found


def test_it_prices_something(method: str) -> None:
    assert priced(method, accounting.epsilon, 1e-6)


def test_nothing_is_free_for_everybody(method: str) -> None:
    nothings: list[Event | list[Event]] = [[], Composed([]), Repeated(events.Pure(1), 0)]
    for nothing in nothings:
        assert accounting.epsilon(nothing, 1e-6, method=method) == 0
        assert accounting.delta(nothing, 0, method=method) == 0


def test_lists_and_repetitions_agree(method: str) -> None:
    for event, _ in priced(method, accounting.epsilon, 1e-6):
        listed = accounting.epsilon([event, Composed([event]), event], 1e-6, method=method)
        assert listed == accounting.epsilon(Repeated(event, 3), 1e-6, method=method)


def test_more_releases_never_cost_less(method: str) -> None:
    for event, _ in priced(method, accounting.epsilon, 1e-6):
        costs = [accounting.epsilon(Repeated(event, count), 1e-6, method=method) for count in (1, 2, 5)]
        assert costs == sorted(costs)


def test_a_larger_delta_never_costs_more(method: str) -> None:
    for event, _ in priced(method, accounting.epsilon, 1e-6):
        costs = [accounting.epsilon(Repeated(event, 2), delta, method=method) for delta in (1e-12, 1e-6, 1e-2)]
        assert costs[0] * QUIET >= costs[1] and costs[1] * QUIET >= costs[2]  # noqa: PT018 - one falling row


def test_a_larger_epsilon_never_leaves_more_delta(method: str) -> None:
    for event, _ in priced(method, accounting.delta, 1):
        left = [accounting.delta(Repeated(event, 2), at, method=method) for at in (0.0, 0.5, 2.0)]
        assert left[0] * QUIET >= left[1] and left[1] * QUIET >= left[2]  # noqa: PT018 - one falling row
        assert all(0 <= delta <= 1 for delta in left)


def test_it_is_never_below_the_best_of_all(method: str) -> None:
    for event, cost in priced(method, accounting.epsilon, 1e-6):
        assert accounting.epsilon(event, 1e-6) <= cost
    for event, left in priced(method, accounting.delta, 0.3):
        assert accounting.delta(event, 0.3) <= left


def test_it_is_never_below_an_exact_law(method: str) -> None:
    """Randomized response three times, composed by hand; GDP and the like may refuse it."""
    law = reference.composed([reference.randomized_response(HALF)] * 3)
    event = Repeated(events.RandomizedResponse(HALF), 3)
    for at in (0.2, 1.0, 1.4):
        try:
            assert accounting.delta(event, at, method=method) >= reference.hockey_stick(law, at)
        except UnsupportedEvent:
            return


def test_it_is_never_below_the_gaussian_truth(method: str) -> None:
    for at in (0.1, 1.0):
        exact = reference.gaussian_delta(reference.mpf(1), reference.real(at))
        try:
            assert accounting.delta(Repeated(events.Gaussian(2), 4), at, method=method) >= exact
        except UnsupportedEvent:
            return


def test_epsilon_and_delta_agree(method: str) -> None:
    for event, left in priced(method, accounting.delta, 0.4):
        if 1e-12 < left < 1:
            assert accounting.epsilon(event, Fraction(left), method=method) <= 0.4 * 1.01 + 1e-9


@pytest.mark.ci
@pytest.mark.sampled(3)
def test_extremes_stay_numbers(method: str) -> None:
    for event, _ in priced(method, accounting.epsilon, 1e-6):
        for count, delta in ((10**6, 1e-15), (1, 1e-300)):
            assert not math.isnan(accounting.epsilon(Repeated(event, count), delta, method=method))


def test_samples_are_refused_under_replacement(method: str) -> None:
    with pytest.raises(UnsupportedEvent):
        accounting.epsilon(SPECIMENS[10], 1e-6, method=method, neighbours=Neighbours.REPLACE)
