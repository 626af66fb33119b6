"""Noise that meets its target by an independent formula, and would miss it with one percent less."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import accounting
from discreet.accounting import composition, pld
from discreet.accounting.calibration import _first, _interpolate_raises, increase_noise
from discreet.errors import InvalidParameter
from discreet.exact import float_above, root_above
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


# ------------------------------------------------------------------------------------------------- noise that is raised


def walked(noise: Fraction, family: Callable[[Fraction], Event], epsilon: Fraction, delta: Fraction) -> Fraction:
    """What `increase_noise` is defined to return: one price after the other, by the composed law itself."""
    step = 2.0**-34
    while step < 1 and accounting.epsilon(family(noise), delta) > epsilon:
        noise, step = Fraction(float_above(noise * (1 + Fraction(step)))), 2 * step
    return noise


def leaky(sigma: Fraction, parts: int, delta: Fraction) -> events.Composed:
    """Gaussian noise in parts of different sizes, each beside a leak, as rounds of a selection have it."""
    noise = [events.Gaussian(sigma * root_above(Fraction(2 * part + 2))) for part in range(parts)]
    return events.Composed([*noise, events.Repeated(events.Approx(0, delta / (2 * parts)), parts)])


LEAKY = [
    (epsilon, delta, parts)
    for epsilon in ("1e-6", "2e-5", "0.001", "0.07", "0.3", "1.7", "5", "33", "210", "1000")
    for delta in ("1e-3", "1e-5", "3e-8", "1e-13")
    for parts in (2, 5)
]


def leaky_start(epsilon: Fraction, delta: Fraction, parts: int) -> Fraction:
    """The noise of one part for which all of them have the mu that half of delta allows."""
    shares = sum(1 / (2 * part + 2) for part in range(parts))
    return accounting.gaussian_sigma(epsilon, delta / 2) * Fraction(math.sqrt(shares))


def test_raised_noise_is_within_the_target_and_the_noise_before_it_is_not() -> None:
    epsilon, delta = Fraction(1, 1000), Fraction(1, 10**9)
    seen: list[Fraction] = []

    def family(sigma: Fraction) -> events.Composed:
        seen.append(sigma)
        return leaky(sigma, 2, delta)

    found = increase_noise(leaky_start(epsilon, delta, 2), family, epsilon=epsilon, delta=delta)
    before = max(sigma for sigma in seen if sigma < found)
    assert found <= before * (1 + Fraction(1, 2**20))
    prices = [accounting.epsilon(leaky(sigma, 2, delta), delta) for sigma in (before, found)]
    assert prices[1] <= epsilon < prices[0]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "parts"), LEAKY)
def test_interpolation_ends_where_trying_one_noise_after_the_other_does(epsilon: str, delta: str, parts: int) -> None:
    target, share = Fraction(epsilon), Fraction(delta)
    start = leaky_start(target, share, parts)

    def family(sigma: Fraction) -> events.Composed:
        return leaky(sigma, parts, share)

    assert increase_noise(start, family, epsilon=target, delta=share) == walked(start, family, target, share)


@given(
    first=st.floats(1e-12, 1e3),
    slope=st.floats(1e-3, 1e3),
    guessed=st.floats(1e-3, 1e3),
    bend=st.floats(0, 4),
    endless=st.integers(0, 5),
)
def test_interpolation_finds_the_first_of_any_falling_excess(
    first: float, slope: float, guessed: float, bend: float, endless: int
) -> None:
    looks: list[int] = []

    def excess(times: int) -> float:
        looks.append(times)
        grown = (2**times - 1) * 2.0**-34
        return math.inf if times < endless else first - slope * (grown + bend * grown**2)

    found = _interpolate_raises(excess, guessed)
    assert len(looks) == len(set(looks)) <= 35
    assert found == _first(excess)


ERROR_OF_TRANSFORMS = 1e-4  # as a share of delta: what lies within it may be left undecided


def check_excess(epsilon: str, delta: str, moves: tuple[float, ...]) -> list[tuple[float | None, ...]]:
    """Both sides of the price, at each distance."""
    share, found = Fraction(delta), list[tuple[float | None, ...]]()
    released = composition.terms(leaky(leaky_start(Fraction(epsilon), share, 2), 2, share))
    price = pld.epsilon(released, float(share))
    for move in moves:
        above, below = (pld.excess(released, price * (1 + side * move), float(share)) for side in (1, -1))
        found.append((above, below))
        assert above is None or above <= 0
        assert below is None or below > 0
        certain = below is not None and below > ERROR_OF_TRANSFORMS
        assert above is not None or not certain
    return found


def test_an_excess_agrees_with_the_composed_law() -> None:
    """Signs agree on both sides of the price. Very close to it the error of transforms decides, and there is none."""
    *_, far, farther = check_excess("0.5", "1e-6", (1e-9, 1e-5, 1e-4))
    assert None not in (*far, *farther)


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-9", "1e-12"])
@pytest.mark.parametrize("epsilon", ["1e-6", "0.001", "0.5", "20", "1000"])
def test_an_excess_agrees_with_the_composed_law_everywhere(epsilon: str, delta: str) -> None:
    check_excess(epsilon, delta, (1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4, 1e-2))
