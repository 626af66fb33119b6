"""Never below the truth: against laws composed by hand with 60 digits, and against exact Gaussian profiles."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from discreet import accounting
from discreet.accounting import pld
from discreet.accounting.composition import terms
from discreet.accounting.gdp import gaussian_delta
from discreet.privacy import events
from discreet.privacy.events import Event
from tests.accounting import reference
from tests.accounting.checks import above_and_near

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)

ATOMIC: list[tuple[Event, reference.Law]] = [
    (events.RandomizedResponse(1), reference.randomized_response(Fraction(1))),
    (events.Pure(THIRD), reference.randomized_response(THIRD)),
    (events.RandomizedResponse(HALF, 5), reference.randomized_response(HALF, 5)),
    (events.DiscreteLaplace(2, 1), reference.discrete_laplace(Fraction(2), 1)),
    (events.DiscreteLaplace("7/3", 4), reference.discrete_laplace(Fraction(7, 3), 4)),
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("count", [1, 2, 5, 12])
@pytest.mark.parametrize(("event", "law"), ATOMIC, ids=[repr(event) for event, _ in ATOMIC])
def test_atomic_laws_composed_with_themselves(event: Event, law: reference.Law, count: int) -> None:
    total = reference.composed([law] * count)
    largest = float(max(total))
    for share in (0.0, 0.11, 0.43, 0.87):
        exact = reference.hockey_stick(total, share * largest)
        above_and_near(accounting.delta(events.Repeated(event, count), share * largest), exact, near=1e-4)
        if exact > 1e-12:
            found = accounting.epsilon(events.Repeated(event, count), float(exact))
            assert found >= share * largest * (1 - 1e-15)
            assert found <= share * largest * (1 + 1e-5) + 1e-5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3, 2), Fraction(4)])
@pytest.mark.parametrize("shift", [1, 3])
def test_discrete_gaussian_once_and_twice(sigma: Fraction, shift: int) -> None:
    law = reference.discrete_gaussian(sigma, shift)
    likely = {loss: mass for loss, mass in law.items() if mass > 1e-30}  # a lower bound of the law, fast to square
    event, squared = events.DiscreteGaussian(sigma, shift), reference.composed([likely] * 2)
    for at in (0.0, 0.4, 1.7, 4.0):
        above_and_near(accounting.delta(event, at), reference.hockey_stick(law, at))
        twice = reference.hockey_stick(squared, at)
        above_and_near(accounting.delta(events.Repeated(event, 2), at), twice, near=1e-4)


@pytest.mark.parametrize("sigma", [Fraction(3, 4), Fraction(5)])
def test_the_whole_sensitivity_is_the_worst_move_of_a_discrete_gaussian(sigma: Fraction) -> None:
    laws = [reference.discrete_gaussian(sigma, shift) for shift in range(1, 5)]
    for at in (0.1, 1.0, 3.0):
        moves = [reference.hockey_stick(law, at) for law in laws]
        assert moves == sorted(moves)
        assert accounting.delta(events.DiscreteGaussian(sigma, 4), at) >= moves[-1]


SAMPLED = [
    (events.RandomizedResponse(1), reference.randomized_response(Fraction(1))),
    (events.RandomizedResponse(2, 3), reference.randomized_response(Fraction(2), 3)),
    (events.DiscreteLaplace(1, 2), reference.discrete_laplace(Fraction(1), 2)),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 10), Fraction(2, 3)])
@pytest.mark.parametrize(("event", "law"), SAMPLED, ids=[repr(event) for event, _ in SAMPLED])
def test_sampled_atomic_laws_in_both_directions(event: Event, law: reference.Law, rate: Fraction) -> None:
    for count in (1, 2, 6):
        both = [reference.composed([reference.sampled(law, rate, removal=way)] * count) for way in (True, False)]
        largest = float(max(max(one) for one in both))
        for share in (0.0, 0.2, 0.6):
            exact = max(reference.hockey_stick(one, share * largest) for one in both)
            found = accounting.delta(events.Repeated(events.PoissonSampled(rate, event), count), share * largest)
            above_and_near(found, exact, near=1e-4)


def test_different_laws_composed() -> None:
    listed = [events.RandomizedResponse(1), events.DiscreteLaplace(3, 2), events.RandomizedResponse(HALF, 4)]
    laws = [
        reference.randomized_response(Fraction(1)),
        reference.discrete_laplace(Fraction(3), 2),
        reference.randomized_response(HALF, 4),
    ]
    total = reference.composed(laws * 2)
    for at in (0.0, 0.7, 2.0, 3.9):
        above_and_near(accounting.delta(listed * 2, at), reference.hockey_stick(total, at), near=1e-4)


def test_a_leak_is_composed_exactly() -> None:
    """Optimal composition of (1/2, 1/1000) five times: 1 - (1 - leak)^5 (1 - d) of the pure part's d."""
    leak, at = Fraction(1, 1000), 1.2
    pure = reference.hockey_stick(reference.composed([reference.randomized_response(HALF)] * 5), at)
    exact = 1 - (1 - reference.real(leak)) ** 5 * (1 - pure)
    for method in ("optimal homogeneous", "PLD"):
        found = accounting.delta(events.Repeated(events.Approx(HALF, leak), 5), at, method=method)
        above_and_near(found, exact)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-15, 1e-50, 1e-100])
@pytest.mark.parametrize(
    ("sigma", "count"), [(1, 2), (10, 100), (50, 10**4), (1000, 10**6), ("0.3", 3), (10**5, 10**6)]
)
def test_composed_gaussians_against_their_closed_form(sigma: int | str, count: int, delta: float) -> None:
    """The grid is never asked where a closed form exists, so it is asked directly here."""
    released = terms(events.Repeated(events.Gaussian(sigma), count))
    found = pld.epsilon(released, delta)
    mu = reference.mp.sqrt(count) / reference.real(Fraction(sigma))
    assert reference.gaussian_delta(mu, reference.real(found)) <= delta
    if found > 0:
        assert reference.gaussian_delta(mu, reference.real(found) * (1 - reference.real(2e-3))) > delta
    exact = accounting.epsilon(events.Repeated(events.Gaussian(sigma), count), delta)
    assert exact <= found
    if exact > 0:
        assert reference.gaussian_delta(mu, reference.real(exact)) <= delta
        assert reference.gaussian_delta(mu, reference.real(exact) * (1 - reference.real(1e-9))) > delta


@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.3, 2.0, 30.0, 1e3, 1e6])
def test_gaussian_profile_is_rounded_up(mu: float) -> None:
    for at in (0.0, mu / 7, mu, mu * mu / 2, 3 * mu, 20 * mu + mu * mu / 2):
        exact = reference.gaussian_delta(reference.real(mu), reference.real(at))
        found = gaussian_delta(mu, at)
        assert found >= exact or exact < 1e-300
        assert found <= exact * (1 + 1e-6) + 2.0**-44 * (1 + at)  # the rounding of both exponents is added


def _normal(sigma: float) -> Callable[[Any], Any]:
    return lambda x: reference.mp.npdf(x, 0, sigma)


def _laplace(scale: float) -> Callable[[Any], Any]:
    b = reference.real(scale)
    return lambda x: reference.mp.exp(-abs(x) / b) / (2 * b)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 2)])
@pytest.mark.parametrize("kind", ["Gaussian", "Laplace"])
def test_one_sampled_release_against_an_integral(kind: str, rate: Fraction, removal: bool) -> None:
    scale = 0.75
    density, base = (_normal(scale), events.Gaussian) if kind == "Gaussian" else (_laplace(scale), events.Laplace)
    ((removed, added),) = [pld._directions(terms(events.PoissonSampled(rate, base(scale))))]
    with reference.mp.workdps(25):
        for at in (0.05, 0.3, 0.6):
            kinks = [-3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 4.0, _crossing(kind, rate, at, scale, removal=removal)]
            exact = reference.continuous_sampled_delta(density, rate, at, kinks, removal=removal)
            above_and_near(pld._delta(removed if removal else added, at), exact, near=1e-6, floor=1e-12)


def _crossing(kind: str, rate: Fraction, at: float, scale: float, *, removal: bool) -> float:
    """Where the integrand starts: base loss L with ln(1 - q + q e^L) = epsilon, or its mirror image."""
    mp, q = reference.mp, reference.real(rate)
    inner = (mp.exp(at if removal else -at) - 1 + q) / q
    if inner <= 0:
        return 0.25
    loss = mp.log(inner)
    return float(scale**2 * loss + 0.5) if kind == "Gaussian" else float((loss * scale + 1) / 2)
