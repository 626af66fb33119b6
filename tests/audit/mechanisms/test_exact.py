"""Exact losses: against published numbers, against laws from definitions, and past the sensitivity they are refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from discreet import audit, mechanisms
from discreet.accounting.gdp import gaussian_delta
from discreet.audit.mechanisms.additive_laws import LawPair, OutputMass, laplace_pieces, upper_tail
from discreet.audit.mechanisms.exact_loss import LAWS
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure
from discreet.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Mechanism,
    PartitionSelection,
    PermuteAndFlip,
    ProposeTestRelease,
    Quantile,
    RandomizedResponse,
    ReportNoisyMax,
    SparseVector,
    Staircase,
)
from discreet.privacy import events
from tests.cases import every
from tests.mechanisms.choices import law_of

CLOSE = 1e-9


def middle(ends: tuple[Fraction, Fraction] | None) -> float:
    assert ends is not None
    assert 0 <= ends[1] - ends[0] < Fraction(1, 10**9)
    return float(sum(ends) / 2)


# ------------------------------------------------------------------------------------------------ known losses
@pytest.mark.parametrize(
    ("mechanism", "a", "b", "loss"),
    [
        (Laplace(epsilon=1, sensitivity=1), 0, 1, 1.0),
        (Laplace(epsilon=1, sensitivity=1), 1, 0, 1.0),
        (Laplace(epsilon="1/3", sensitivity=3), [5, 5, 5], [6, 5, 3], 1 / 3),
        (Laplace(epsilon=1, sensitivity=4), 0, 1, 0.25),
        (DiscreteLaplace(scale=2.5, sensitivity=3), 3, 6, 1.2),
        (Staircase(epsilon=4, sensitivity=10), 0, 10, 4.0),
        (Staircase(epsilon=4, sensitivity=10), 0, 1, 4.0),
        (Staircase(epsilon=2, sensitivity=1, grid=1), 7, 8, 2.0),
        (RandomizedResponse(epsilon=1, options=3), 0, 2, 1.0),
        (RandomizedResponse(epsilon=2), True, False, 2.0),
    ],
)
def test_known_losses(mechanism: Mechanism, a: Any, b: Any, loss: float) -> None:
    found = audit.exact(mechanism, a, b)
    assert middle(found.epsilon) == pytest.approx(loss, abs=CLOSE)
    assert found.passed
    assert found.delta[1] < Fraction(1, 10**30)


def test_the_quantile_of_the_published_example() -> None:
    """x = (1, 4, 5, 7, 9) on integers: the loss between two neighbours, from weights e^(-rate loss) by hand."""
    mechanism = Quantile(epsilon=1, quantile=0.5, bounds=(0, 10), grid=1, neighbours="replace")
    a, b = [1, 4, 5, 7, 9], [1, 4, 5, 7, 0]

    def law(data: list[int]) -> list[float]:
        losses = []
        for y in range(11):
            below, upto = sum(x < y for x in data), sum(x <= y for x in data)
            losses.append(max(0.0, below - 2.5, 2.5 - upto))
        weights = [math.exp(-loss / 2) for loss in losses]
        return [weight / sum(weights) for weight in weights]

    expected = max(abs(math.log(p / q)) for p, q in zip(law(a), law(b), strict=True))
    found = audit.exact(mechanism, a, b, neighbours="replace")
    assert middle(found.epsilon) == pytest.approx(expected, abs=CLOSE)
    assert found.passed


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, ReportNoisyMax])
def test_choices_agree_with_laws_from_their_definitions(kind: Any) -> None:
    mechanism = kind(epsilon=1, sensitivity=1)
    one, other = (3, 2, 2, 0), (2, 3, 2, 1)
    b = Fraction(math.exp(-mechanism.rate)).limit_denominator(10**7)
    ratios = zip(law_of(mechanism, one, b), law_of(mechanism, other, b), strict=True)
    expected = max(abs(math.log(p / q)) for p, q in ratios)
    assert middle(audit.exact(mechanism, list(one), list(other)).epsilon) == pytest.approx(expected, abs=1e-6)


def test_discrete_gaussian_noise_of_the_published_sigma() -> None:
    """sigma = 3.740485 gives delta = 1e-5 at epsilon 1, and the normal law's own sigma does not."""
    found = audit.exact(DiscreteGaussian.with_sigma(sigma=3.740485, sensitivity=1), 0, 1, epsilon=1, delta=1e-5)
    assert found.epsilon is None
    assert middle(found.delta) == pytest.approx(1e-5, rel=1e-5)
    short = audit.exact(DiscreteGaussian.with_sigma(sigma="3.7306316348", sensitivity=1), 0, 1, epsilon=1, delta=1e-5)
    assert not short.passed


def test_normal_noise_on_a_grid_costs_what_the_curve_says_or_less() -> None:
    for step in (Fraction(1, 1024), Fraction(1, 8), 1, 8):
        mechanism = Gaussian.with_multiplier(noise_multiplier=1.5, sensitivity=2, grid=step)
        found = audit.exact(mechanism, 0, 2, epsilon=1, delta=0.5)
        assert 0 < middle(found.delta) <= gaussian_delta(1 / 1.5, 1.0) * (1 + CLOSE)
        if step == Fraction(1, 1024):
            assert middle(found.delta) == pytest.approx(gaussian_delta(1 / 1.5, 1.0), rel=1e-5)


def test_the_optimal_selection_uses_all_of_delta() -> None:
    mechanism = PartitionSelection(epsilon=1, delta=1e-5)
    for count in (0, 3, 10, 12):
        found = audit.exact(mechanism, [count], [count + 1])
        assert found.passed
        assert middle(found.delta) == pytest.approx(1e-5, rel=CLOSE)


@pytest.mark.parametrize(("epsilon", "delta", "chance"), [(1, 1e-5, 4.4918e-6)])
def test_thresholds_show_a_key_of_one_person_as_rarely_as_published(epsilon: int, delta: float, chance: float) -> None:
    mechanism = PartitionSelection(epsilon=epsilon, delta=delta, method="laplace")
    found = audit.exact(mechanism, [0], [1])
    assert found.passed
    assert middle(found.delta) == pytest.approx(chance, rel=1e-4)


def test_propose_test_release_on_both_sides_of_its_bound() -> None:
    mechanism = ProposeTestRelease(epsilon=1, delta=1e-5, bound=2, grid=0.5)
    near = audit.exact(mechanism, (7, 12), (9, 11))
    assert near.passed
    assert 1.5 < middle(near.epsilon) <= 2
    far = audit.exact(mechanism, (7, 0), (90, 0))
    assert far.passed
    assert middle(far.delta) == pytest.approx(float(upper_tail(Fraction(1), 12, 40).high), rel=1e-6)
    assert not audit.exact(mechanism, (7, 5), (90, 4)).passed  # the distance is a lie: trouble is not that far


def test_sparse_vector_near_its_claim() -> None:
    """Noes that rise and a yes that falls: the loss comes near to epsilon, and past it without enough noise."""
    mechanism = SparseVector(epsilon=4, sensitivity=1, threshold=0)
    found = audit.exact(mechanism, [0] * 6 + [-9], [1] * 6 + [-10])
    assert found.passed
    assert 2.5 < middle(found.epsilon) <= 4
    assert not audit.exact(mechanism, [0] * 6 + [-9], [1] * 6 + [-10], epsilon=2).passed


# ------------------------------------------------------------------------------------------- past the sensitivity
@every(
    ("mechanism", "a", "b"),
    [
        (Laplace(epsilon=1, sensitivity=1), 0, 2),
        (Laplace(epsilon=1, sensitivity=1), [0, 0], [1, 1]),
        (Staircase(epsilon=4, sensitivity=10), 0, 10.25),
        (DiscreteGaussian(epsilon=1, delta=1e-5, sensitivity=1), 0, 2),
        (Gaussian(epsilon=1, delta=1e-5, sensitivity=2), 0, 2.25),
        (Exponential(epsilon=1, sensitivity=1), [0, 0, 30], [3, -3, 27]),
        (PermuteAndFlip(epsilon=1, sensitivity=1), [0, 30], [3, 27]),
        (ReportNoisyMax(epsilon=1, sensitivity=1), [0, 30], [3, 27]),
        (RandomizedResponse(epsilon=1), [0, 0], [1, 1]),
        (Quantile(epsilon=1, quantile=0.5, bounds=(0, 10), grid=1), [0] * 9, [0] * 3 + [10] * 6),
        (PartitionSelection(epsilon=1, delta=1e-5), [0], [2]),
        (PartitionSelection(epsilon=1, delta=1e-5, method="laplace"), [0], [2]),
        (PartitionSelection(epsilon=1, delta=1e-5), [0, 0], [1, 1]),
        (SparseVector(epsilon=1, sensitivity=1, threshold=0), [0, 0, -9], [9, 9, -18]),
    ],
)
def test_values_that_are_no_neighbours_are_seen(mechanism: Mechanism, a: Any, b: Any) -> None:
    found = audit.exact(mechanism, a, b)
    assert not found.passed
    assert "above the claimed" in found.summary()


# ------------------------------------------------------------------------------------------------------- pieces
def test_pieces_of_a_law_sum_to_one() -> None:
    for shift in (1, 2, 7):
        pieces = laplace_pieces(Fraction(3), shift, 40)
        for side in ("p", "q"):
            mass = sum(float(getattr(one, side).high) * one.count for one in pieces.listed)
            assert mass == pytest.approx(1, abs=1e-12)


def test_an_output_that_only_one_dataset_has_costs_without_bound() -> None:
    half, none = Enclosure.of(Fraction(1, 2), 30), Enclosure.of(0, 30)
    pieces = LawPair((OutputMass(half, none), OutputMass(half, half + half)))
    assert pieces.loss() is None
    assert pieces.swapped_pieces.loss() is not None
    assert pieces.excess(Fraction(5))[0] == Fraction(1, 2)


def test_every_mechanism_has_a_law_or_is_refused() -> None:
    continuous = {"KNorm", "Lomax", "WeightedSelection"}  # or of several rounds
    kinds = [getattr(mechanisms, name) for name in mechanisms.__all__]
    known = {kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, Mechanism)}
    assert known == {kind.__name__ for kind in LAWS} | {"Gaussian", "Mechanism"} | continuous
    with pytest.raises(InvalidParameter) as refused:
        audit.exact(mechanisms.KNorm(epsilon=1, sensitivity=1, dimension=1), 0, 1)
    assert "distinguish" in refused.value.hint


@pytest.mark.parametrize(
    ("mechanism", "a", "b"),
    [
        (Laplace(epsilon=1, sensitivity=1), [1, 2], [1]),
        (Laplace(epsilon=1, sensitivity=1, grid=2**-20), 0, 10),
        (Gaussian(epsilon=1, delta=1e-5, sensitivity=2), [0, 0], [1, 1]),
        (Gaussian(epsilon=1, delta=1e-5, sensitivity=2), [0, 0], [1]),
        (Exponential(epsilon=1, sensitivity=1), [1, 2], [1]),
        (RandomizedResponse(epsilon=1), [0], [0, 1]),
        (PartitionSelection(epsilon=1, delta=1e-5), [0], [0, 1]),
        (SparseVector(epsilon=1, sensitivity=1, threshold=0), [0] * 13, [0] * 13),
        (DiscreteGaussian.with_sigma(sigma=10**6, sensitivity=1), 0, 1),
    ],
)
def test_what_cannot_be_compared_is_refused(mechanism: Mechanism, a: Any, b: Any) -> None:
    with pytest.raises(InvalidParameter):
        audit.exact(mechanism, a, b)


def test_a_curve_has_no_epsilon_without_a_delta() -> None:
    with pytest.raises(InvalidParameter) as refused:
        audit.exact(Gaussian(epsilon=1, delta=1e-5, sensitivity=1), 0, 1, delta=0)
    assert refused.value.name == "delta"


def test_another_claim_can_be_judged() -> None:
    mechanism = Laplace(epsilon=2, sensitivity=1)
    assert not audit.exact(mechanism, 0, 1, epsilon=1).passed
    assert not audit.exact(mechanism, 0, 1, event=events.Pure(1)).passed
    assert audit.exact(mechanism, 0, 1, epsilon=1, delta=0.9).passed
