"""Mistakes that accountants have made, each put into the code and caught by a check that the real code passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.accounting import bounds, dominating, dots, filters, homogeneous, pld, terms, zcdp
from discreet.accounting.lattice import discrete_gaussian_delta
from discreet.privacy import ZCDP, ApproxDP, Budget, PureDP, events
from tests.accounting import reference
from tests.accounting.checks import above_and_near

Patch = pytest.MonkeyPatch
HALF = Fraction(1, 2)


def check_sampled_both_ways() -> None:
    """Removing a unit is the worse direction here, adding one there; both laws are composed by hand."""
    law, rate = reference.randomized_response(Fraction(2), 3), Fraction(1, 5)
    for at in (0.05, 0.3):
        both = [reference.composed([reference.sampled(law, rate, removal=way)] * 3) for way in (True, False)]
        event = events.PoissonSampled(rate, events.RandomizedResponse(2, 3))
        exact = max(reference.hockey_stick(one, at) for one in both)
        above_and_near(accounting.delta(events.Repeated(event, 3), at, method="PLD"), exact, near=1e-3)


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
    assert reference.hockey_stick(reference.discrete_gaussian(sigma, 1), 1) <= Fraction(1, 10**5)


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


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_real_code_passes(check: Callable[[], None]) -> None:
    check()


def one_direction(patch: Patch, index: int) -> None:
    real = pld._directions
    patch.setattr(pld, "_directions", lambda released: [real(released)[index]])


def swapped_sample(patch: Patch) -> None:
    """Q against the mixture where the mixture against Q is meant."""
    real = dominating.SampledPair
    patch.setattr(dominating, "SampledPair", lambda base, rate, removal: real(base, rate, removal=not removal))
    one_direction(patch, 0)


def all_to_the_lower_point(patch: Patch) -> None:
    patch.setattr(dots, "_lower_share", lambda step, losses, cells: cells.p[1:-1])


def no_infinite_mass(patch: Patch) -> None:
    real = pld.connect

    def drop(pair: Any, step: float, tail: float) -> dots.GridLaw:
        law = real(pair, step, tail)
        return dots.GridLaw(law.step, law.first, law.log_masses, 0.0)

    patch.setattr(pld, "connect", drop)


def forgotten_count(patch: Patch) -> None:
    patch.setattr(bounds, "terms", lambda released, neighbours: dict.fromkeys(terms.terms(released, neighbours), 1))


def bounded_range_for_all(patch: Patch) -> None:
    patch.setattr(zcdp, "zcdp", lambda event: ZCDP(event.epsilon**2 / 8))


def scaled_twice(patch: Patch) -> None:
    """delta counted as q^2 delta: a sample of the sample that nobody drew."""
    real = bounds.basic.compose

    def less(released: terms.Terms) -> ApproxDP:
        total = real(released)
        return ApproxDP(total.epsilon, total.delta / 100)

    patch.setattr(bounds.basic, "compose", less)


def one_release_too_few(patch: Patch) -> None:
    real = homogeneous._excess
    patch.setattr(homogeneous, "_excess", lambda each, count, at: real(each, count - 1, at))


def half_the_shift(patch: Patch) -> None:
    real = dominating.discrete_gaussian_pair
    patch.setattr(dominating, "discrete_gaussian_pair", lambda sigma, shift: real(2 * sigma, shift))


def continuous_sigma(patch: Patch) -> None:
    patch.setattr(accounting, "discrete_gaussian_sigma", accounting.gaussian_sigma)


def full_delta_for_every_rule(patch: Patch) -> None:
    def greedy(budget: ApproxDP) -> tuple[filters.Rule, ...]:
        return (
            filters.Rule(PureDP(budget.epsilon), filters._pure),
            filters.Rule(budget, filters.basic.compose),
            filters.Rule(ZCDP(1, budget.delta), zcdp.compose),
        )

    patch.setattr(filters, "rules", greedy)


def floats_instead_of_fractions(patch: Patch) -> None:
    """Ten binary tenths are more than one: Fraction(0.1) is above one tenth."""
    patch.setattr(events, "Pure", lambda epsilon: events.Laplace(1 / Fraction(float(epsilon))))


def amplified_before_composed(patch: Patch) -> None:
    def fresh(released: Any, neighbours: Any) -> dict[Any, int]:
        ((event, _),) = terms.terms(released, neighbours).items()
        inner = Counter(terms.terms(event.event))
        return {events.PoissonSampled(event.probability, part): count for part, count in inner.items()}

    patch.setattr(bounds, "terms", fresh)


MUTANTS: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (lambda patch: one_direction(patch, 1), check_sampled_both_ways),
    (swapped_sample, check_sampled_both_ways),
    (all_to_the_lower_point, check_grid),
    (no_infinite_mass, check_leak),
    (forgotten_count, check_repetition),
    (bounded_range_for_all, check_pure_by_zcdp),
    (scaled_twice, check_amplified_leak),
    (one_release_too_few, check_optimal),
    (half_the_shift, check_discrete_gaussian),
    (continuous_sigma, check_calibrated_on_the_lattice),
    (full_delta_for_every_rule, check_filter_shares),
    (floats_instead_of_fractions, check_ten_tenths),
    (amplified_before_composed, check_one_sample),
]


@pytest.mark.parametrize(("mutate", "check"), MUTANTS, ids=[f"{m.__name__}-{c.__name__}" for m, c in MUTANTS])
def test_the_mutant_is_caught(mutate: Callable[[Patch], None], check: Callable[[], None], monkeypatch: Patch) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, accounting_refusal())):
        check()


def accounting_refusal() -> type[Exception]:
    """A mutant of exact sums shows itself by a refused tenth charge."""
    from discreet.errors import InsufficientBudget

    return InsufficientBudget


def test_the_addition_direction_matters_somewhere() -> None:
    """A mutant that only ever removes units survives Gaussian checks; this pair of profiles kills it."""
    law, rate = reference.randomized_response(Fraction(2), 3), Fraction(4, 5)
    removed, added = (reference.hockey_stick(reference.sampled(law, rate, removal=way), 0.9) for way in (True, False))
    assert removed > added > 0 or added > removed > 0
    assert discrete_gaussian_delta(2.0, 1, 1.0) <= np.float64(1)
