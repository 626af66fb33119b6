"""Noisy descent: what is asked of the data, and that nothing else of it comes through."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.learn.linear.loss_functions import MarginLoss, hinge, logistic
from discreet.learn.linear.noisy_descent import (
    FEWEST,
    MORE_STEPS,
    MOST,
    MOST_DRAWN,
    STEPS,
    Descent,
    Schedule,
)
from discreet.learn.linear.placed_rows import CLIP, prior_margins
from discreet.learn.linear.surveyed_fit import MARGIN, PriorComparison
from discreet.learn.linear.vector_noise import VectorNoise
from discreet.learn.weights import ONE
from discreet.mechanisms import Gaussian, KNorm
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from discreet.statistics.budget_split import Spending
from discreet.statistics.row_sums import RESIDUAL, UNIT, Design

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOSSES = [logistic(2), logistic(3), hinge(2), hinge(3)]
NAMES = ["logistic", "softmax", "hinge", "one against the rest"]


def gradient(loss: MarginLoss, rows: Integers, codes: Integers, theta: Floats) -> Integers:
    design = Design.of(rows, clip=CLIP)
    return design.gradient(loss.residuals(design.margins(theta), codes))


def weights(loss: MarginLoss, seed: int) -> Floats:
    shape = (2,) if loss.outputs == 1 else (loss.outputs, 2)
    return np.linspace(-3, 3, int(np.prod(shape))).reshape(shape) * (seed - 2)


rows_of_two = st.lists(st.integers(-5000, 5000), min_size=2, max_size=2)
code, seeds = st.integers(-1, 3), st.integers(0, 5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
@given(table=st.lists(rows_of_two, max_size=3), pair=st.tuples(rows_of_two, rows_of_two), label=code, seed=seeds)
def test_one_row_moves_a_gradient_by_the_clip_or_twice_that(
    loss: MarginLoss, table: list[list[int]], pair: tuple[list[int], list[int]], label: int, seed: int
) -> None:
    new, old = pair
    theta = weights(loss, seed)

    def total(rows: list[list[int]], labels: list[int]) -> Integers:
        return gradient(loss, np.array(rows, dtype=np.int64).reshape(-1, 2), np.array(labels, dtype=np.int64), theta)

    codes = [i % 3 for i in range(len(table))]
    base = total(table, codes)
    added = total([*table, new], [*codes, label])
    other = total([*table, old], [*codes, (label + 1) % 3])
    assert (added - base).tolist() == total([new], [label]).tolist()  # whatever the other rows are
    assert sum(int(x) ** 2 for x in (added - base).ravel()) <= CLIP**2
    assert sum(int(x) ** 2 for x in (added - other).ravel()) <= (2 * CLIP) ** 2


MOVES = [(Neighbours.ADD_REMOVE, CLIP), (Neighbours.REPLACE, 2 * CLIP)]


@pytest.mark.parametrize(("relation", "moved"), MOVES)
def test_noise_is_made_for_the_relation(relation: Neighbours, moved: int) -> None:
    made = Descent.of(Spending.of(1, 1e-6), relation, steps=9)
    mechanism = made.noise.mechanism(made.sensitivity, 5)
    assert isinstance(mechanism, Gaussian)
    assert made.sensitivity == mechanism.sensitivity == moved
    assert made.event == events.Repeated(mechanism.event, 9)
    whole = Spending.of(1, 1e-6).noise_multiplier
    assert float(mechanism.sigma / moved) == pytest.approx(3 * float(whole), rel=1e-12)


@pytest.mark.parametrize(("relation", "moved"), MOVES)
def test_pure_steps_add_up_to_epsilon_exactly(relation: Neighbours, moved: int) -> None:
    made = Descent.of(Spending.of(Fraction(1, 10)), relation, steps=7)
    mechanism = made.noise.mechanism(made.sensitivity, 5)
    assert isinstance(mechanism, KNorm)
    assert mechanism.sensitivity == moved
    assert mechanism.dimension == 5
    assert made.event == events.Repeated(mechanism.event, 7)
    assert mechanism.epsilon * 7 == Fraction(1, 10)


@pytest.mark.parametrize("count", [1.0, 300.0, 1e5, 1e12])
@pytest.mark.parametrize("size", [1, 100, 9000])
def test_however_many_steps_are_chosen_they_cost_the_same(count: float, size: int) -> None:
    schedule = Schedule(part=Spending.of(2), neighbours=Neighbours.ADD_REMOVE, steps=None)
    made = schedule.descent(count, size)
    step = made.noise.event
    assert isinstance(step, events.Pure)
    scaling = schedule.scaling(count, size)
    first = Fraction(0) if scaling is None else scaling.noise.part.pure_epsilon
    assert schedule.event == events.Pure(first + made.steps * step.epsilon) == events.Pure(2)
    assert FEWEST <= made.steps <= max(FEWEST, min(MOST, MOST_DRAWN // size))


@pytest.mark.parametrize("count", [1.0, 3e4, 1e6, 1e12])
@pytest.mark.parametrize("size", [1, 100, 9000])
def test_however_many_gaussian_steps_are_chosen_their_mu_is_within_the_event(count: float, size: int) -> None:
    schedule = Schedule(part=Spending.of(1, 1e-6), neighbours=Neighbours.ADD_REMOVE, steps=None)
    made, whole = schedule.descent(count, size), schedule.event
    step = made.noise.event
    assert isinstance(step, events.Gaussian)
    assert isinstance(whole, events.Gaussian)
    scaling = schedule.scaling(count, size)
    first = Fraction(0) if scaling is None else 1 / scaling.noise.part.noise_multiplier**2
    used, paid = first + made.steps / step.noise_multiplier**2, 1 / whole.noise_multiplier**2
    assert paid * Fraction(999_999, 10**6) < used <= paid
    assert STEPS <= made.steps <= MORE_STEPS


@pytest.mark.ci
def test_the_deviation_of_noise_is_what_mechanisms_draw() -> None:
    for part in (Spending.of(1), Spending.of(1, 1e-6)):
        noise = VectorNoise(part=part)
        mechanism = noise.mechanism(7 << 20, 6)
        drawn = np.array([mechanism.release(np.zeros(6), bits=SeededBits(seed)) for seed in range(300)], dtype=float)
        # 1800 entries of kurtosis 6 or less: the mean square is within 5 sqrt(5 / 1800) = 0.27 of its expectation.
        assert np.mean(drawn**2) == pytest.approx(noise.deviation(7 << 20, 6) ** 2, rel=0.27)


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_integer_slopes_are_the_slopes_of_the_loss(loss: MarginLoss) -> None:
    margins = np.linspace(-4, 4, 5 * loss.outputs).reshape(5, loss.outputs)
    codes = np.array([0, 1, 2 if loss.outputs > 1 else 0, 1, -1])
    whole = np.rint(margins * (1 << 28)).astype(np.int64)
    found = loss.residuals(whole[:, 0] if loss.outputs == 1 else whole, codes).reshape(5, -1) / RESIDUAL
    values, slopes = loss.value(margins, codes)
    assert found == pytest.approx(slopes, abs=0.006)  # bins are 1/128 wide
    assert (np.linalg.norm(slopes, axis=1) <= loss.slope + 1e-12).all()
    assert values[-1] == 0
    assert not slopes[-1].any()
    step = 1e-6
    for output in range(loss.outputs):
        moved = margins + step * (np.arange(loss.outputs) == output)
        rise = (loss.value(moved, codes)[0] - values) / step
        assert rise == pytest.approx(slopes[:, output], abs=1e-5)
        bend = (loss.value(moved, codes)[1] - slopes) / step
        assert (np.linalg.norm(bend, axis=1) <= loss.curvature + 1e-5).all()
    assert loss.value(np.zeros((1, loss.outputs)), np.array([0]))[0][0] <= loss.at_zero + 1e-12


class Scripted:
    """Stands for Gaussian.release: keeps what it was given and answers from a script."""

    def __init__(self) -> None:
        self.given: list[Integers] = []

    def release(self, value: Any) -> Any:
        self.given.append(value)
        return np.sin(np.arange(value.size) + len(self.given)).reshape(value.shape) * UNIT


def asked(rows: Integers, codes: Integers, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Floats], Floats]:
    script, weights_seen, loss = Scripted(), [], logistic(2)
    monkeypatch.setattr(Gaussian, "release", lambda *given, **_: script.release(given[1]))

    def query(theta: Floats) -> Integers:
        weights_seen.append(theta)
        return gradient(loss, rows, codes, theta)

    made = Descent.of(Spending.of(1, 1e-6), Neighbours.ADD_REMOVE, steps=6)
    final = made.run(query, np.zeros(2), count=50.0, curvature=0.25, ridge=0.1, bits=SeededBits(1))
    return weights_seen, final


def test_weights_depend_on_what_was_released_and_on_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, codes = np.array([[4096, 0], [0, 4096], [2000, -2000]]), np.array([1, 0, 1])
    with monkeypatch.context() as first:
        seen, final = asked(rows, codes, first)
    with monkeypatch.context() as second:
        others, last = asked(np.array([[-4096, 0]]), np.array([0]), second)
    assert len(seen) == len(others) == 6
    assert all((a == b).all() for a, b in zip(seen, others, strict=True))
    assert (final == last).all()


def test_steps_are_stable_and_grow_with_what_can_be_heard() -> None:
    made = Descent.of(Spending.of(rho=Fraction(1, 2)), Neighbours.ADD_REMOVE)  # mu = 1
    assert made.rate(200, 100, 0.25) == pytest.approx(1.0)
    assert made.rate(1e9, 100, 0.25) == pytest.approx(13.2)
    assert made.rate(1e9, 100, 0.5) == pytest.approx(6.6)
    pure = Descent.of(Spending.of(2), Neighbours.ADD_REMOVE, steps=9)
    assert pure.rate(50, 100, 0.25) == pytest.approx(2.0)
    assert pure.rate(1e9, 100, 0.25) == pytest.approx(13.2)


def test_without_noise_it_finds_the_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gaussian, "release", lambda *given, **_: given[1])
    rows = np.array([[4000, 500], [-4000, 500], [3000, 500]] * 40)
    codes = np.array([1, 0, 0] * 40)
    made = Descent.of(Spending.of(50, 1e-6), Neighbours.REPLACE, steps=400)
    design = Design.of(rows, clip=2 * UNIT)
    loss = logistic(2)
    theta = made.run(
        lambda w: design.gradient(loss.residuals(design.margins(w), codes)),
        np.zeros(2),
        count=120,
        curvature=0.25,
        ridge=2.0,
        bits=SeededBits(1),
    )
    slope = design.gradient(loss.residuals(design.margins(theta), codes)) / UNIT + 2.0 * theta
    assert np.abs(slope).max() < 0.2  # of 120 rows


def compared(neighbours: Neighbours = Neighbours.ADD_REMOVE) -> PriorComparison:
    return PriorComparison(noise=VectorNoise(part=Spending.of(1)), neighbours=neighbours)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shares", [None, np.array([ONE, 100, 512])])
def test_a_row_moves_the_comparison_by_one_or_by_two_when_it_is_replaced(classes: int, shares: Integers | None) -> None:
    sides = [-5, 5] if classes == 2 else np.eye(3, dtype=np.int64).tolist()
    rows = [(new, old, code) for new in sides for old in sides for code in range(-1, classes)]

    def gain(table: list[tuple[Any, Any, int]]) -> int:
        new, old, codes = (np.array([row[place] for row in table], dtype=np.int64) for place in range(3))
        return compared().gain(new, old, codes, shares)

    others = rows[:2]
    moves = [gain([*others, row]) - gain(others) for row in rows]
    assert moves == [gain([row]) for row in rows]  # whatever the other rows are
    assert max(map(abs, moves)) == ONE == compared().sensitivity
    assert max(moves) - min(moves) == 2 * ONE == compared(Neighbours.REPLACE).sensitivity


def test_a_comparison_of_twice_the_weight_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that counts what is gained and what is lost apart: a row then moves it by two."""
    monkeypatch.setattr(PriorComparison, "gain", lambda *_: 2 * ONE)
    with pytest.raises(AssertionError):
        test_a_row_moves_the_comparison_by_one_or_by_two_when_it_is_replaced(2, None)


def test_weights_win_by_many_rows_and_lose_by_many() -> None:
    """By more than chance: 10 weights are right about `MARGIN` rows each that they have followed."""
    one, by_chance = compared(), int(10 * MARGIN)
    seeds = [SeededBits(seed) for seed in range(50)]
    assert all(one.is_won((by_chance + 40) * ONE, 10, bits) for bits in seeds)  # noise beyond 40: e^-40
    assert not any(one.is_won((by_chance - 40) * ONE, 10, bits) for bits in seeds)


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_the_prior_predicts_the_most_frequent_class(loss: MarginLoss) -> None:
    shares = np.array([0.2, 0.8]) if loss.outputs == 1 else np.array([0.3, 0.2, 0.5])
    margins = prior_margins(loss, shares)
    assert margins.shape == (loss.outputs,)
    assert margins[0] > 0 if loss.outputs == 1 else np.argsort(margins).tolist() == [1, 0, 2]
    even = prior_margins(loss, np.full(shares.size, 1 / shares.size))
    assert np.ptp([*even, even[0]]) == 0
    assert loss.outputs > 1 or even == pytest.approx([0.0])


def test_the_prior_of_the_logistic_loss_is_its_minimum_without_features() -> None:
    shares, codes = np.array([0.3, 0.2, 0.5]), np.array([0] * 3 + [1] * 2 + [2] * 5)
    for loss, mine in ((logistic(3), codes), (logistic(2), (codes == 2).astype(np.int64))):
        parts = shares if loss.outputs == 3 else np.array([0.5, 0.5])
        margins = np.tile(prior_margins(loss, parts), (10, 1))
        assert loss.value(margins, mine)[1].sum(axis=0) == pytest.approx(np.zeros(loss.outputs), abs=1e-9)
