"""What an attacker can learn: published figures, exact formulas, and what must grow with what."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from discreet.accounting import risk
from discreet.errors import InvalidParameter
from discreet.privacy import events
from discreet.privacy.events import Event

CURVE = NormalDist()


@pytest.mark.parametrize(
    ("epsilon", "posterior", "power"),
    [(0.1, 0.5250, 0.0553), (1, 0.7311, 0.1359), (3, 0.9526, 0.9527), (8, 0.9997, 0.9997)],
)
def test_a_pure_epsilon(epsilon: float, posterior: float, power: float) -> None:
    found = risk(events.Pure(epsilon))
    assert (round(found.posterior, 4), round(found.power, 4)) == (posterior, power)
    assert found.chance == 0
    assert math.isclose(found.guess, found.posterior, rel_tol=1e-9)  # randomized response: the guess is the posterior


@pytest.mark.parametrize(("epsilon", "distance"), [(0.1, 0.049958), (1, 0.462117), (2, 0.761594)])
def test_the_best_guess_gains_half_the_distance_of_the_laws(epsilon: float, distance: float) -> None:
    assert round(2 * risk(events.Pure(epsilon)).guess - 1, 6) == distance


@pytest.mark.sampled(4)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 4])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.5])
def test_an_approximate_promise_has_its_closed_form(epsilon: float, delta: float, alpha: float) -> None:
    power = min(math.exp(epsilon) * alpha + delta, 1 - math.exp(-epsilon) * (1 - alpha - delta))
    found = risk(events.Approx(epsilon, delta), false_positives=alpha, chance=0.4).power
    assert power <= found * (1 + 1e-12)
    assert found <= power + 1e-6


def test_gaussian_noise_has_its_own_curve() -> None:
    found = risk(events.Gaussian(1))
    assert round(found.power, 4) == 0.2595
    assert math.isclose(found.guess, CURVE.cdf(0.5), rel_tol=1e-9)
    # the loss is N(1/2, 1): its true tail at a chance of 1e-6, which no bound may lie below, and which it comes near to
    loss = 0.5 - CURVE.inv_cdf(1e-6)
    true = 1 / (1 + math.exp(-loss))
    assert true <= found.posterior <= 1 / (1 + math.exp(-1.2 * loss))


def test_a_concentrated_promise_bounds_gaussian_noise() -> None:
    for multiplier in (0.5, 1, 4, 20):
        noise, promise = risk(events.Gaussian(multiplier)), risk(events.Concentrated(1 / (2 * multiplier**2)))
        assert noise.power <= promise.power
        assert noise.posterior <= promise.posterior * (1 + 1e-9)
        assert noise.guess <= promise.guess


@pytest.mark.sampled(2)
@pytest.mark.parametrize("family", [events.Pure, events.Concentrated, lambda e: events.Approx(e, 1e-7)])
def test_more_budget_is_more_risk(family: type[Event]) -> None:
    found = [risk(family(amount)) for amount in (0.01, 0.1, 0.5, 1, 3)]  # type: ignore[call-arg]
    for figure in ("power", "posterior", "guess"):
        values = [getattr(each, figure) for each in found]
        assert values == sorted(values)
        assert len(set(values)) == len(values)


def test_two_releases_are_more_risk_than_one() -> None:
    one = events.DiscreteLaplace(scale=10, sensitivity=1)
    assert risk([one, one]).power > risk(one).power
    assert risk([one, one]).posterior == pytest.approx(risk(events.Pure(0.2)).posterior)


def test_nobody_learns_below_chance_or_above_certainty() -> None:
    for event in (events.Pure(1e-9), events.Pure(700), events.Approx(0, 0.5), events.Concentrated(1000)):
        found = risk(event)
        assert 0.05 <= found.power <= 1
        assert 0.5 <= found.posterior <= 1
        assert 0.5 <= found.guess <= 1


@pytest.mark.parametrize("wrong", [{"false_positives": 2}, {"prior": 0}, {"prior": 1}, {"chance": 0}])
def test_figures_outside_their_domain_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        risk(events.Pure(1), **wrong)  # type: ignore[arg-type]
    assert refused.value.name in wrong
