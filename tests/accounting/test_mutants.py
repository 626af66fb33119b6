"""Mistakes that accountants have made, each put into the code and caught by a check that the real code passes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.accounting import bounds, composition, filters, homogeneous, pld, zcdp
from discreet.accounting.loss_distributions import convolution as compose
from discreet.accounting.loss_distributions import dominating_pairs as dominating
from discreet.accounting.loss_distributions import pairs
from discreet.errors import InsufficientBudget
from discreet.privacy import ZCDP, ApproxDP, Budget, PureDP, events
from tests.accounting import reference
from tests.accounting.checks import above_and_near
from tests.cases import every
from tests.effort import some

Patch = pytest.MonkeyPatch
HALF = Fraction(1, 2)


def check_sampled(event: events.RandomizedResponse, rate: Fraction, at: float) -> None:
    law = reference.randomized_response(event.epsilon, event.options)
    removed, added = (reference.composed([reference.sampled(law, rate, removal=way)] * 2) for way in (True, False))
    exact = max(reference.hockey_stick(removed, at), reference.hockey_stick(added, at))
    sampled = events.Repeated(events.PoissonSampled(rate, event), 2)
    above_and_near(accounting.delta(sampled, at, method="PLD"), exact, near=1e-3)


def check_removal() -> None:
    """Here a removed unit is the easier one to notice."""
    check_sampled(events.RandomizedResponse(2, 3), Fraction(1, 5), 0.3)


def check_addition() -> None:
    """Here an added one is: 0.2136 against 0.1567 (two coins of epsilon 1 on samples of a half)."""
    check_sampled(events.RandomizedResponse(1), HALF, 0.25)


def check_grid() -> None:
    """Laplace noise four times, whose profile the grid must never undercut: the Laplace-PLD value of ten releases."""
    found = accounting.epsilon(events.Repeated(events.Laplace(10), 10), 1e-6, method="PLD")
    assert found >= 0.998977
    assert found <= 0.99899


def check_leak() -> None:
    exact = 1 - (1 - reference.mpf("1e-3")) ** 3
    above_and_near(accounting.delta(events.Repeated(events.Approx(HALF, "1e-3"), 3), 2, method="PLD"), exact)


def check_repetition() -> None:
    total = reference.composed([reference.randomized_response(HALF)] * 6)
    for method in ("optimal homogeneous", "PLD"):
        found = accounting.delta(events.Repeated(events.RandomizedResponse(HALF), 6), 1, method=method)
        above_and_near(found, reference.hockey_stick(total, 1), near=1e-4)


def check_pure_by_zcdp() -> None:
    """The order-4 divergence of randomized response at epsilon = 0.1 is 0.0199: four times rho must not be less."""
    law = reference.randomized_response(Fraction(1, 10))
    order = 4
    moment = sum(mass * reference.mp.exp((order - 1) * loss) for loss, mass in law.items())
    rho = zcdp.zcdp(events.Pure("0.1")).rho
    assert reference.real(rho) * order >= reference.mp.log(moment) / (order - 1)


def check_amplified_leak() -> None:
    found = accounting.delta(events.PoissonSampled("0.01", events.Approx(1, "1e-5")), 1, method="basic")
    assert found >= 1e-7 * (1 - 1e-15)


def check_optimal() -> None:
    assert accounting.epsilon(events.Repeated(events.Pure("0.1"), 100), 1e-6, method="optimal homogeneous") >= 4.774567


def check_discrete_gaussian() -> None:
    law = reference.discrete_gaussian(Fraction(2), 1)
    above_and_near(accounting.delta(events.DiscreteGaussian(2, 1), 1, method="PLD"), reference.hockey_stick(law, 1))


def check_calibrated_on_the_lattice() -> None:
    sigma = accounting.discrete_gaussian_sigma(1, "1e-5")
    assert reference.hockey_stick(reference.discrete_gaussian(sigma, 1), 1) <= reference.real(Fraction(1, 10**5))


def check_the_whole_support() -> None:
    """A shift of 100 sigmas at epsilon = 100: every z of P has a larger loss, and delta is 1."""
    law = reference.discrete_gaussian(Fraction(10), 1000)
    above_and_near(dominating.discrete_gaussian_delta(Fraction(10), 1000, 100), reference.hockey_stick(law, 100))


def check_calibrated_for_a_large_epsilon() -> None:
    sigma = accounting.discrete_gaussian_sigma(100, "1e-6", 100)
    assert reference.hockey_stick(reference.discrete_gaussian(sigma, 100), 100) <= reference.real(Fraction(1, 10**6))


def check_beyond_the_window() -> None:
    """Sixteen losses of 1/4 against a window that ends at 3: above it lies 1 - e^(3.5 - 4) of 2^-16."""
    law = compose.GridLaw(0.25, -1, np.log(np.array([0.5, 1e-300, 0.5])), 0.0)
    found = compose.compose([(law, 16)], compose.View(tilt=4.0, low=1.0, steeper=4.0, log_size=3))
    assert found.delta(3.5) >= -math.expm1(3.5 - 4) * 2**-16


def check_losses_beyond_floats() -> None:
    """A loss of 3,000 on a sample of a tenth: e^3000 is no float, and delta is a tenth up to 2,997."""
    law = reference.sampled(reference.randomized_response(Fraction(3000)), Fraction(1, 10), removal=True)
    sampled = events.PoissonSampled("0.1", events.RandomizedResponse(3000))
    above_and_near(accounting.delta(sampled, 2000, method="PLD"), reference.hockey_stick(law, 2000))
    assert accounting.delta(events.Repeated(events.PoissonSampled("0.1", events.Laplace("1/3000")), 2), 1000) > 0.18


def check_filter_shares() -> None:
    budget = ApproxDP(1, "1e-6")
    caps = [rule.cap for rule in filters.rules(budget)]
    spent = [getattr(cap, "delta", Fraction(0)) for cap in caps]
    assert sum(spent) + budget.delta / 4 <= budget.delta


def check_ten_tenths() -> None:
    account = accounting.Filter(Budget(epsilon=1))
    for _ in range(10):
        account.charge(events.Pure(0.1))
    assert not account.can_afford(events.Pure("1e-9"))


def check_one_sample() -> None:
    """Two pure releases from one sample of a half: 1 + (e^2 - 1)/2 at most, attained by composing before sampling."""
    law = reference.composed([reference.randomized_response(Fraction(1))] * 2)
    exact = max(reference.hockey_stick(reference.sampled(law, HALF, removal=way), 0.8) for way in (True, False))
    pair = events.PoissonSampled(HALF, events.Repeated(events.RandomizedResponse(1), 2))
    assert accounting.delta(pair, 0.8) >= exact


CHECKS: list[Callable[[], None]] = [
    check_removal,
    check_addition,
    check_grid,
    check_leak,
    check_repetition,
    check_pure_by_zcdp,
    check_amplified_leak,
    check_optimal,
    check_discrete_gaussian,
    check_calibrated_on_the_lattice,
    check_the_whole_support,
    check_calibrated_for_a_large_epsilon,
    check_beyond_the_window,
    check_losses_beyond_floats,
    check_filter_shares,
    check_ten_tenths,
    check_one_sample,
]


@every("check", some(CHECKS, 2))
def test_the_real_code_passes(check: Callable[[], None]) -> None:
    check()


def only_removal(patch: Patch) -> None:
    real = pld._directions
    patch.setattr(pld, "_directions", lambda released: real(released)[:1])


def only_addition(patch: Patch) -> None:
    real = pld._directions
    patch.setattr(pld, "_directions", lambda released: real(released)[-1:])


def swapped_sample(patch: Patch) -> None:
    """Q against the mixture where the mixture against Q is meant."""
    real = pairs.SampledPair
    patch.setattr(dominating, "SampledPair", lambda base, rate, removal: real(base, rate, removal=not removal))
    only_removal(patch)


def all_to_the_lower_point(patch: Patch) -> None:
    patch.setattr(compose, "_lower_share", lambda *arguments: arguments[-1].p[1:-1])


def no_infinite_mass(patch: Patch) -> None:
    real = compose.connect

    def drop(pair: Any, step: float, tail: float) -> compose.GridLaw:
        law = real(pair, step, tail)
        return compose.GridLaw(law.step, law.first, law.log_masses, 0.0)

    patch.setattr(pld, "connect", drop)


def forgotten_count(patch: Patch) -> None:
    patch.setattr(
        bounds, "terms", lambda released, neighbours: dict.fromkeys(composition.terms(released, neighbours), 1)
    )


def bounded_range_for_all(patch: Patch) -> None:
    patch.setattr(zcdp, "zcdp", lambda event: ZCDP(event.epsilon**2 / 8))


def scaled_twice(patch: Patch) -> None:
    """delta counted as q^2 delta: a sample of the sample that nobody drew."""
    real = composition.compose

    def less(released: composition.Terms) -> ApproxDP:
        total = real(released)
        return ApproxDP(total.epsilon, total.delta / 100)

    patch.setattr(composition, "compose", less)


def one_release_too_few(patch: Patch) -> None:
    real = homogeneous._excess
    patch.setattr(homogeneous, "_excess", lambda each, count, at: real(each, count - 1, at))


def half_the_shift(patch: Patch) -> None:
    real = dominating.discrete_gaussian_pair
    patch.setattr(dominating, "discrete_gaussian_pair", lambda sigma, shift: real(2 * sigma, shift))


def continuous_sigma(patch: Patch) -> None:
    patch.setattr(accounting, "discrete_gaussian_sigma", accounting.gaussian_sigma)


def only_near_the_boundary(patch: Patch) -> None:
    """Forty sigmas around half the shift, where the loss changes its sign, in the place of those around 0."""
    real = dominating._shift_atoms

    def near(sigma: float, shift: int) -> pairs.AtomicPair:
        pair = real(sigma, shift)
        kept = np.abs(pair.losses) <= 40 * shift / sigma
        return pairs.AtomicPair(losses=pair.losses[kept], p=pair.p[kept], q=pair.q[kept])

    patch.setattr(dominating, "_shift_atoms", near)


def start_below_the_boundary(patch: Patch) -> None:
    """A start that is taken for certain and is too small, a fifth of what zCDP gives."""
    module, real = import_module("discreet.accounting.calibration"), accounting.concentrated_sigma
    patch.setattr(module, "concentrated_sigma", lambda rho, move: real(25 * rho, move))


def discounted_twice(patch: Patch) -> None:
    """What lies above the window, lowered like the rounding errors."""
    real = compose.Composition.delta

    def delta(self: compose.Composition, epsilon: float) -> float:
        return real(replace(self, lost=self.lost * math.exp(-self.tilt * epsilon)), epsilon)

    patch.setattr(compose.Composition, "delta", delta)


def overflowing_sample(patch: Patch) -> None:
    """The base's loss of a sampled one as ln(1 + (e^l - 1) / q), infinite from l = 710 on."""

    def preimage(self: pairs.SampledPair, edges: pairs.Floats) -> pairs.Floats:
        side = 1.0 if self.removal else -1.0
        with np.errstate(over="ignore"):
            inner = np.expm1(side * edges) / self.rate
        return side * np.where(inner > -1, np.log1p(np.maximum(inner, -1)), -np.inf)

    patch.setattr(pairs.SampledPair, "_preimage", preimage)


def full_delta_for_every_rule(patch: Patch) -> None:
    def greedy(budget: ApproxDP) -> tuple[filters.Rule, ...]:
        return (
            filters.Rule(PureDP(budget.epsilon), filters._pure),
            filters.Rule(budget, composition.compose),
            filters.Rule(ZCDP(1, budget.delta), zcdp.compose),
        )

    patch.setattr(filters, "rules", greedy)


def floats_instead_of_fractions(patch: Patch) -> None:
    """Ten binary tenths are more than one: Fraction(0.1) is above one tenth."""
    patch.setattr(events, "Pure", lambda epsilon: events.Laplace(1 / Fraction(float(epsilon))))


def amplified_before_composed(patch: Patch) -> None:
    def fresh(released: Any, neighbours: Any) -> dict[Any, int]:
        ((event, _),) = composition.terms(released, neighbours).items()
        assert isinstance(event, events.PoissonSampled)
        inner = Counter(composition.terms(event.event))
        return {events.PoissonSampled(event.probability, part): count for part, count in inner.items()}

    patch.setattr(bounds, "terms", fresh)


MUTANTS: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (only_removal, check_addition),
    (only_addition, check_removal),
    (swapped_sample, check_removal),
    (all_to_the_lower_point, check_grid),
    (no_infinite_mass, check_leak),
    (forgotten_count, check_repetition),
    (bounded_range_for_all, check_pure_by_zcdp),
    (scaled_twice, check_amplified_leak),
    (one_release_too_few, check_optimal),
    (half_the_shift, check_discrete_gaussian),
    (continuous_sigma, check_calibrated_on_the_lattice),
    (only_near_the_boundary, check_the_whole_support),
    (start_below_the_boundary, check_calibrated_for_a_large_epsilon),
    (discounted_twice, check_beyond_the_window),
    (overflowing_sample, check_losses_beyond_floats),
    (full_delta_for_every_rule, check_filter_shares),
    (floats_instead_of_fractions, check_ten_tenths),
    (amplified_before_composed, check_one_sample),
]


@pytest.mark.parametrize(("mutate", "check"), MUTANTS, ids=[f"{m.__name__}-{c.__name__}" for m, c in MUTANTS])
def test_the_mutant_is_caught(mutate: Callable[[Patch], None], check: Callable[[], None], monkeypatch: Patch) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, InsufficientBudget)):  # too little, or a tenth charge refused
        check()
