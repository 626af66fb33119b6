"""Noisy descent: what is asked of the data, and that nothing else of it comes through."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.learn.linear.linear_classifier import CLIP, Descent
from discreet.learn.linear.loss_functions import Loss, hinge, logistic
from discreet.mechanisms import Gaussian
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from discreet.statistics.budget_split import Spending
from discreet.statistics.row_sums import RESIDUAL, UNIT, Design

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOSSES = [logistic(2), logistic(3), hinge(2), hinge(3)]
NAMES = ["logistic", "softmax", "hinge", "one against the rest"]


def gradient(loss: Loss, rows: Integers, codes: Integers, theta: Floats) -> Integers:
    design = Design.of(rows, clip=CLIP)
    return design.gradient(loss.residuals(design.margins(theta), codes))


def weights(loss: Loss, seed: int) -> Floats:
    shape = (2,) if loss.outputs == 1 else (loss.outputs, 2)
    return np.linspace(-3, 3, int(np.prod(shape))).reshape(shape) * (seed - 2)


rows_of_two = st.lists(st.integers(-5000, 5000), min_size=2, max_size=2)
code, seeds = st.integers(-1, 3), st.integers(0, 5)


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
@given(table=st.lists(rows_of_two, max_size=3), pair=st.tuples(rows_of_two, rows_of_two), label=code, seed=seeds)
def test_one_row_moves_a_gradient_by_the_clip_or_twice_that(
    loss: Loss, table: list[list[int]], pair: tuple[list[int], list[int]], label: int, seed: int
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


@pytest.mark.parametrize(("relation", "moved"), [(Neighbours.ADD_REMOVE, CLIP), (Neighbours.REPLACE, 2 * CLIP)])
def test_noise_is_made_for_the_relation(relation: Neighbours, moved: int) -> None:
    made = Descent.of(Spending.of(1, 1e-6), relation, steps=9)
    assert made.mechanism.sensitivity == moved
    assert made.mechanism.event == events.Gaussian(made.noise_multiplier)
    assert made.event == events.Repeated(events.Gaussian(made.noise_multiplier), 9)
    whole = Spending.of(1, 1e-6).noise_multiplier
    assert float(made.noise_multiplier) == pytest.approx(3 * float(whole), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_integer_slopes_are_the_slopes_of_the_loss(loss: Loss) -> None:
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
    final = made.run(query, (2,), count=50.0, curvature=0.25, ridge=0.1, bits=SeededBits(1))
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
    made = Descent(steps=100, noise_multiplier=Fraction(10), neighbours=Neighbours.ADD_REMOVE)
    assert made.rate(200, 100, 0.25) == pytest.approx(1.0)
    assert made.rate(1e9, 100, 0.25) == pytest.approx(13.2)
    assert made.rate(1e9, 100, 0.5) == pytest.approx(6.6)


def test_without_noise_it_finds_the_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gaussian, "release", lambda *given, **_: given[1])
    rows = np.array([[4000, 500], [-4000, 500], [3000, 500]] * 40)
    codes = np.array([1, 0, 0] * 40)
    made = Descent.of(Spending.of(50, 1e-6), Neighbours.REPLACE, steps=400)
    design = Design.of(rows, clip=2 * UNIT)
    loss = logistic(2)
    theta = made.run(
        lambda w: design.gradient(loss.residuals(design.margins(w), codes)),
        (2,),
        count=120,
        curvature=0.25,
        ridge=2.0,
        bits=SeededBits(1),
    )
    slope = design.gradient(loss.residuals(design.margins(theta), codes)) / UNIT + 2.0 * theta
    assert np.abs(slope).max() < 0.2  # of 120 rows
