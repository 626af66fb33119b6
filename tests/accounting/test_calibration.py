"""Noise that meets its target by an independent formula, and would miss it with one percent less."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import accounting
from discreet.errors import InvalidParameter
from discreet.privacy import ZCDP, events
from discreet.privacy.events import Event
from tests.accounting import reference
from tests.cases import every
from tests.effort import some

EPSILONS = st.sampled_from(["1e-6", "0.001", "0.1", "1", "7", "50", "1000"])
DELTAS = st.sampled_from(["0.5", "1e-3", "1e-9", "1e-30", "1e-290"])


@given(epsilon=EPSILONS, delta=DELTAS)
def test_gaussian(epsilon: str, delta: str) -> None:
    sigma = accounting.gaussian_sigma(epsilon, delta)
    at, target = reference.real(Fraction(epsilon)), reference.real(Fraction(delta))
    assert reference.gaussian_delta(1 / reference.real(sigma), at) <= target
    assert reference.gaussian_delta(1 / (reference.real(sigma) * reference.mpf("0.99")), at) > target
    assert accounting.epsilon(events.Gaussian(sigma), delta) <= Fraction(epsilon) * (1 + Fraction(1, 10**7))


@every("delta", ["1e-2", "1e-5", "1e-12"])
@every(("epsilon", "shift"), some([("0.5", 1), ("1", 1), ("1", 3), ("3", 1), ("8", 2)], 3))
def test_discrete_gaussian_on_small_lattices(epsilon: str, shift: int, delta: str) -> None:
    sigma = accounting.discrete_gaussian_sigma(epsilon, delta, shift)
    exact = reference.hockey_stick(reference.discrete_gaussian(sigma, shift), float(epsilon))
    assert exact <= reference.real(Fraction(delta))
    less = reference.discrete_gaussian(sigma * Fraction(99, 100), shift)
    assert reference.hockey_stick(less, float(epsilon)) > reference.real(Fraction(delta))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shift", [2**k for k in range(0, 31, 3)])
def test_discrete_gaussian_approaches_the_continuous_law(shift: int) -> None:
    sigma = accounting.discrete_gaussian_sigma(1, "1e-6", shift)
    smooth = accounting.gaussian_sigma(1, "1e-6", shift)
    assert smooth * (1 - Fraction(1, 10**6)) <= sigma <= smooth * Fraction(1005, 1000)
    assert accounting.delta(events.DiscreteGaussian(sigma, shift), 1) <= 1.001e-6


@pytest.mark.parametrize("dimension", [2, 10, 10**6])
def test_several_dimensions_go_through_zcdp(dimension: int) -> None:
    sigma = accounting.discrete_gaussian_sigma(1, "1e-6", "2.5", dimension)
    event = events.DiscreteGaussian(sigma, "2.5", dimension)
    assert 0.999 < accounting.epsilon(event, "1e-6") <= 1


@given(rho=st.sampled_from(["1e-9", "0.3", "0.5", "77"]), move=st.sampled_from([1, "1/3", 1000]))
def test_concentrated(rho: str, move: int | str) -> None:
    sigma = accounting.concentrated_sigma(rho, move)
    spent = ZCDP(Fraction(move) ** 2 / (2 * sigma**2))
    assert spent <= ZCDP(rho)
    assert spent.rho > Fraction(rho) * (1 - Fraction(1, 10**9))


FAMILIES: dict[str, Callable[[Fraction], Event]] = {
    "Gaussian": lambda s: events.Repeated(events.Gaussian(s), 10),
    "Laplace": events.Laplace,
    "training": lambda s: events.Repeated(events.PoissonSampled("0.01", events.Gaussian(s)), 500),
    "mixture": lambda s: events.Composed([events.Laplace(s), events.Repeated(events.Gaussian(s), 3)]),
}


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FAMILIES)
def test_families(name: str) -> None:
    family = FAMILIES[name]
    noise = accounting.calibrate(family, epsilon=2, delta="1e-6")
    assert accounting.epsilon(family(noise), "1e-6") <= 2
    assert accounting.epsilon(family(noise * Fraction(99, 100)), "1e-6") > 2


def test_where_the_search_begins_does_not_matter() -> None:
    found = [
        accounting.calibrate(events.Gaussian, epsilon=1, delta="1e-5", start=start) for start in ("1e-4", 1, 10**6)
    ]
    assert max(found) <= min(found) * Fraction(1001, 1000)
    assert min(found) >= accounting.gaussian_sigma(1, "1e-5")


@pytest.mark.ci
def test_a_target_that_no_noise_meets() -> None:
    leak = events.Approx(1, "1e-3")
    with pytest.raises(InvalidParameter) as refused:
        accounting.calibrate(lambda s: events.Composed([leak, events.Gaussian(s)]), epsilon=2, delta="1e-6")
    assert refused.value.name == "epsilon"


def test_half_a_step_is_no_move_of_an_integer() -> None:
    with pytest.raises(InvalidParameter) as refused:
        accounting.discrete_gaussian_sigma(1, "1e-5", "0.5")
    assert refused.value.name == "sensitivity"
