"""Staircase noise: exact ratios, exact law, the best stairs, and the test vectors of the real law it approaches."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Criterion, Staircase
from discreet.mechanisms.staircase import Stairs
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.mechanisms.judges import exponent, stairs_are_drawn, stairs_are_private
from tests.statistical.laws import FALSE_ALARM, WRONG, DiscreteLaplaceLaw, p_value


@pytest.mark.parametrize("steps", [1, 2, 3, 8])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_no_move_of_the_sensitivity_changes_the_probability_by_more_than_epsilon(steps: int, epsilon: Fraction) -> None:
    for high in range(1, steps + 1):
        stairs_are_private(Stairs(epsilon, steps, high), move=steps)
    with pytest.raises(AssertionError):  # the check has power: one step more is two stairs away
        stairs_are_private(Stairs(epsilon, steps, steps), move=steps + 1)


@pytest.mark.parametrize(
    ("sensitivity", "step"),
    [(Fraction(1), Fraction(1)), (Fraction(5, 3), Fraction(1, 2)), (Fraction(1, 3), Fraction(1))],
)
def test_the_sensitivity_with_its_rounding_is_one_stair(sensitivity: Fraction, step: Fraction) -> None:
    mechanism = Staircase(epsilon=1, sensitivity=sensitivity, grid=step)
    fine = [step * Fraction(i, 16) for i in range(-32, 33)]
    apart = max(
        abs(mechanism.grid.steps(x) - mechanism.grid.steps(y)) for x in fine for y in fine if abs(x - y) <= sensitivity
    )
    assert apart <= mechanism.stairs.steps


@pytest.mark.parametrize(
    "stairs", [Stairs(Fraction(1), 4, 2), Stairs(Fraction(5), 16, 1), Stairs(Fraction(1, 2), 3, 3)]
)
def test_tails_are_sums_of_the_defining_probabilities(stairs: Stairs) -> None:
    b = math.exp(-stairs.epsilon)
    reach = stairs.steps * math.ceil(60 / stairs.epsilon)
    weights = [b ** exponent(stairs, z) for z in range(reach)]
    total = 2 * math.fsum(weights) - weights[0]
    for t in (0, 1, 2, 5, 17, 3 * stairs.steps):
        low, high = stairs.tail(t)(40).fractions()
        assert float(low) == pytest.approx(2 * math.fsum(weights[t + 1 :]) / total, rel=1e-12)
        assert high - low < Fraction(1, 10**30)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stairs", [Stairs(Fraction(1), 8, 3), Stairs(Fraction(4), 32, 4), Stairs(Fraction(2), 5, 5)])
def test_the_law_of_the_draws(stairs: Stairs, bits: SeededBits) -> None:
    draws = stairs.draw(100_000, bits)
    stairs_are_drawn(stairs, draws)
    stairs_are_drawn(stairs, np.array([stairs.draw_one(bits) for _ in range(20_000)]))
    with pytest.raises(AssertionError):
        stairs_are_drawn(Stairs(stairs.epsilon * Fraction(7, 10), stairs.steps, stairs.high), draws)
    with pytest.raises(AssertionError):
        stairs_are_drawn(Stairs(stairs.epsilon, stairs.steps, stairs.high % stairs.steps + 1), draws)


def test_one_step_to_a_stair_is_the_discrete_laplace_law(bits: SeededBits) -> None:
    mechanism = Staircase(epsilon=1, sensitivity=1, grid=1, entries=1)
    assert (mechanism.stairs.steps, mechanism.stairs.high) == (1, 1)
    draws = mechanism.release(np.zeros(50_000, dtype=int), bits=bits)
    assert p_value(draws, DiscreteLaplaceLaw(Fraction(1))) > FALSE_ALARM
    assert all(p_value(draws, DiscreteLaplaceLaw(factor)) < FALSE_ALARM for factor in WRONG)
    for t in range(5):
        expected = 2 * math.exp(-(t + 1)) / (1 + math.exp(-1))
        assert float(mechanism.stairs.tail(t)(30).low) == pytest.approx(expected, rel=1e-12)


# On a lattice of N steps the mean differs from that of the real law by O(1 / N^2), below 10^-5 at N = 1024.
@pytest.mark.parametrize(("epsilon", "mean"), [(1, 0.959517), (5, 0.082642)])
def test_test_vectors_of_the_mean(epsilon: int, mean: float, bits: SeededBits) -> None:
    assert mean == pytest.approx(math.exp(epsilon / 2) / (math.exp(epsilon) - 1), abs=5e-7)
    fine = Staircase(epsilon=epsilon, sensitivity=1)
    assert fine.stairs.steps == 1024
    assert fine.stairs.mean() / 1024 == pytest.approx(mean, abs=5e-6)
    finer = Staircase(epsilon=epsilon, sensitivity=1, grid=2.0**-20)
    assert finer.stairs.mean() / 2**20 == pytest.approx(mean, abs=6e-7)
    draws = fine.stairs.draw(200_000, bits)
    spread = math.sqrt(fine.stairs.mean(Criterion.VARIANCE) / draws.size)
    assert abs(np.abs(draws).mean() - fine.stairs.mean()) < 6 * spread


def test_test_vectors_of_the_variance() -> None:
    mechanism = Staircase(epsilon=5, sensitivity=1, minimise="variance", grid=2.0**-20)
    stairs = mechanism.stairs
    assert stairs.high / stairs.steps == pytest.approx(0.14448, abs=5e-6)
    assert stairs.mean(Criterion.VARIANCE) / stairs.steps**2 == pytest.approx(0.02971, abs=5e-6)
    absolute = Staircase(epsilon=5, sensitivity=1, grid=2.0**-20).stairs
    assert absolute.mean(Criterion.VARIANCE) / absolute.steps**2 == pytest.approx(0.03703, abs=5e-6)


@every("epsilon", ["0.01", "0.5", 1, 2, 5, 10, 50, 2000])
@every("criterion", list(Criterion))
def test_the_stairs_are_the_best_of_all(epsilon: int | str, criterion: Criterion) -> None:
    chosen = Stairs.best(Fraction(epsilon), 24, criterion).mean(criterion)
    every = [Stairs(Fraction(epsilon), 24, high).mean(criterion) for high in range(1, 25)]
    assert chosen <= min(every) * (1 + 1e-3)  # flat where epsilon is small
    assert chosen <= min(every) * (1 + 1e-12) or Fraction(epsilon) < Fraction(1, 10)


def test_arrays_need_to_say_how_many_entries_move() -> None:
    with pytest.raises(InvalidValue, match="entries="):
        Staircase(epsilon=1, sensitivity=1).release([1.0, 2.0], bits=NoBits())
    both = Staircase(epsilon=1, sensitivity=1, entries=2)
    assert both.event == events.Pure(1)
    assert both.stairs.epsilon == Fraction(1, 2)
    assert both.release([1.0, 2.0]).shape == (2,)


def test_grids_too_fine_for_the_noise_are_refused() -> None:
    with pytest.raises(InvalidParameter) as refused:
        Staircase(epsilon=1e-9, sensitivity=1, grid=2.0**-40)
    assert refused.value.name == "grid"


def test_large_epsilon_beats_laplace() -> None:
    assert Staircase(epsilon=5, sensitivity=1).stairs.mean() / 1024 < 0.2 / 2
