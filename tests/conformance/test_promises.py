"""What every mechanism promises of its price, at an epsilon and a sensitivity of any size."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.mechanisms import DiscreteGaussian, PartitionSelection
from discreet.noise import SeededBits
from tests.conformance.promises import PROMISES, Promise
from tests.conformance.test_mechanisms import exported

each = pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
ROUNDING = 1 + Fraction(1, 10**6)
MILLIONTH = Fraction(1, 10**6)

FEW = [(Fraction(10) ** power, move) for power in (-9, -2, 2, 6) for move in (1, 10**9)]
MANY = [(Fraction(10) ** power, 10**move) for power in range(-9, 7) for move in range(10)]


def keeps(promise: Promise, epsilon: Fraction, delta: Fraction, sensitivity: int) -> bool:
    """Whether the mechanism could be built; if so it has noise, keeps its promise, and releases finite numbers."""
    try:
        mechanism = promise.build(epsilon, delta, sensitivity)
    except (InvalidParameter, UnsupportedEvent):
        return False
    where = f"epsilon={float(epsilon)}, delta={float(delta)}, sensitivity={sensitivity}"
    assert all(scale > 0 for scale in promise.noise(mechanism)), where
    most = promise.times * epsilon * ROUNDING
    price = accounting.epsilon(mechanism.event, 0 if promise.pure else delta)
    assert price <= most, f"{where}: {price}"
    assert promise.cost is None or promise.cost(mechanism) <= most, where
    released = mechanism.release(*promise.value, bits=SeededBits(1))
    found = getattr(released, "kept", released)  # of keys the mask
    assert np.all(np.isfinite(np.asarray(found, dtype=float))), where
    return True


def test_every_exported_mechanism_makes_a_promise() -> None:
    assert {promise.kind for promise in PROMISES} == set(exported())


@pytest.mark.sampled(4)
@each
def test_the_price_is_kept_at_the_ends_of_every_range(promise: Promise) -> None:
    built = [keeps(promise, epsilon, MILLIONTH, move) for epsilon, move in FEW]
    assert sum(built) >= 4  # what is refused for an epsilon that protects nobody


@pytest.mark.slow
@each
@pytest.mark.parametrize("delta", ["0.4", "1e-3", "1e-6", "1e-12", "1e-100"])
def test_the_price_is_kept_everywhere(promise: Promise, delta: str) -> None:
    if promise.pure and delta != "1e-6":
        return
    built = [keeps(promise, epsilon, Fraction(delta), move) for epsilon, move in MANY]
    assert sum(built) >= 80


def test_noise_for_a_large_epsilon_is_drawn() -> None:
    """Sigma is about 85 steps, so that a draw of 0 has a probability of 1/200 and a hundred of them of 10^-230."""
    fine = DiscreteGaussian(epsilon=100, delta=1e-6, sensitivity=1, grid=Fraction(1, 1024))
    assert fine.sigma > Fraction(1, 20)
    released = [fine.release(0.5, bits=SeededBits(seed)) for seed in range(100)]
    assert released.count(0.5) < 20


def test_keys_of_one_unit_with_many_rows_get_noise_for_all_of_them() -> None:
    selection = PartitionSelection(epsilon=100, delta=1e-6, rows_per_group=1000, method="gaussian")
    assert selection.scale > 1000 / math.sqrt(2 * 130)
    assert accounting.epsilon(selection.event, 1e-6) <= 100 * ROUNDING
