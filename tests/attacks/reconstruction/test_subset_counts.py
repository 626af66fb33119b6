from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from discreet import accounting
from discreet.attacks.attack import right_guess, right_guess_gaussian
from discreet.attacks.reconstruction.subset_counts import (
    Answerer,
    BoundedNoiseAnswerer,
    CuratorAnswerer,
    ExactAnswerer,
    GaussianAnswerer,
    NoisyAnswerer,
    PrivateAnswerer,
    RoundingAnswerer,
    SuppressingAnswerer,
    all_subsets,
    norms,
    random_subsets,
)
from discreet.errors import InvalidParameter
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import coins
from tests.cases import every

QUERIES = random_subsets(60, 9, bits=SeededBits(1))
SECRET = coins(9, bits=SeededBits(2))


def test_sensitivity_is_the_farthest_move_of_a_flipped_bit_or_a_person_with_a_one() -> None:
    first, second = norms(QUERIES)
    flips, removals = [], []
    for number in range(1 << 9):
        secret = number >> np.arange(9) & 1
        for person in range(9):
            flipped = secret.copy()
            flipped[person] ^= 1
            flips.append(QUERIES @ secret - QUERIES @ flipped)
            removals.append(np.delete(QUERIES, person, axis=1) @ np.delete(secret, person) - QUERIES @ secret)
    for moves in (np.array(flips), np.array(removals)):
        assert int(np.abs(moves).sum(axis=1).max()) == first
        assert math.sqrt((moves**2).sum(axis=1).max()) == pytest.approx(float(second))
        assert second**2 >= int((moves**2).sum(axis=1).max())


def test_private_noise_is_for_all_queries_together() -> None:
    first, second = norms(QUERIES)
    pure = PrivateAnswerer(total=2)
    law = pure.mechanism(QUERIES)
    assert isinstance(law, Laplace)
    assert law.event.scale == first / 2
    assert accounting.epsilon(law.event, 0) == pytest.approx(2)
    many = random_subsets(4000, 9, bits=SeededBits(3))
    normal = PrivateAnswerer(total=1, delta=1e-6).mechanism(many)
    assert isinstance(normal, Gaussian)
    assert accounting.epsilon(normal.event, 1e-6) <= 1 + 1e-9
    assert normal.sensitivity == norms(many)[1]
    # One person alone in one query moves little: Laplace noise is smaller there, and keeps delta at 0.
    assert isinstance(PrivateAnswerer(total=1, delta=1e-6).mechanism([[1, 0], [0, 1]]), Laplace)
    assert second < first


def test_released_noise_has_the_stated_spread() -> None:
    # The spread of n normal draws has a relative standard error of sqrt(1 / 2n); of Laplace draws sqrt(5 / 4n). With
    # 20 x 500 draws that is at most 1.2 %.
    queries = random_subsets(500, 6, bits=SeededBits(4))
    secret = coins(6, bits=SeededBits(5))
    bits = SeededBits(6)
    named: list[Answerer] = [
        PrivateAnswerer(total=1),
        PrivateAnswerer(total=1, delta=1e-5),
        GaussianAnswerer(mu=2),
        NoisyAnswerer(sd=3.0),
        BoundedNoiseAnswerer(alpha=2.0),
    ]
    for answerer in named:
        errors = [answerer.answer(secret, queries, bits=bits) - queries @ secret for _ in range(20)]
        assert float(np.std(errors)) == pytest.approx(answerer.noise(queries), rel=4 * 0.0112)
        assert answerer.varies


def test_ad_hoc_answers() -> None:
    exact = QUERIES @ SECRET
    assert np.array_equal(ExactAnswerer().answer(SECRET, QUERIES), exact)
    rounded = RoundingAnswerer(to=5).answer(SECRET, QUERIES)
    assert set(rounded % 5) == {0}
    assert float(np.abs(rounded - exact).max()) <= 2
    withheld = SuppressingAnswerer(below=3).answer(SECRET, QUERIES)
    assert np.array_equal(np.isnan(withheld), exact < 3)
    assert np.array_equal(withheld[exact >= 3], exact[exact >= 3])
    bounded = BoundedNoiseAnswerer(alpha=0.5).answer(SECRET, QUERIES, bits=SeededBits(1))
    assert float(np.abs(bounded - exact).max()) <= 0.5
    assert not any(
        answerer.varies for answerer in (ExactAnswerer(), RoundingAnswerer(to=5), SuppressingAnswerer(below=3))
    )


@pytest.mark.parametrize("to", [1, 2, 3, 5, 10])
def test_rounding_errs_as_far_as_it_says(to: int) -> None:
    """All counts from 0 to 2 `to` - 1, after which errors repeat: one in the middle goes to an even multiple."""
    people = 2 * to - 1
    queries = np.tri(2 * to, people, -1, dtype=int)
    errors = RoundingAnswerer(to=to).answer(np.ones(people, dtype=int), queries) - np.arange(2 * to)
    assert float(np.sqrt(np.mean(errors**2))) == pytest.approx(RoundingAnswerer(to=to).noise(queries))


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_curator_answers_all_counts_for_one_charge(delta: Any) -> None:
    queries = QUERIES[:12]
    answerer = CuratorAnswerer(total=1, delta=delta)
    first, second = (answerer.answer(SECRET, queries, bits=SeededBits(7)) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, queries @ SECRET)
    certain = CuratorAnswerer(total=10**6).answer(SECRET, queries, bits=SeededBits(8))
    assert np.array_equal(certain, queries @ SECRET)
    assert answerer.guess_bound(queries) == pytest.approx(right_guess(1, delta=float(delta)))


@pytest.mark.ci
def test_private_answers_without_a_seed_differ() -> None:
    for answerer in (PrivateAnswerer(total=1), CuratorAnswerer(total=1)):
        assert len({tuple(answerer.answer(SECRET, QUERIES)) for _ in range(2)}) == 2


@pytest.mark.slow
def test_as_many_counts_as_a_question_may_hold() -> None:
    queries = random_subsets(300, 9, bits=SeededBits(9))
    assert np.array_equal(CuratorAnswerer(total=10**9).answer(SECRET, queries, bits=SeededBits(1)), queries @ SECRET)


def test_all_subsets_are_all_there() -> None:
    assert len({tuple(row) for row in all_subsets(5)}) == 32


@every(
    "wrong",
    [
        lambda: RoundingAnswerer(to=0),
        lambda: SuppressingAnswerer(below=0),
        lambda: NoisyAnswerer(sd=-1.0),
        lambda: BoundedNoiseAnswerer(alpha=-1.0),
        lambda: PrivateAnswerer(total=0),
        lambda: PrivateAnswerer(total=1, delta=-1),
        lambda: CuratorAnswerer(total=-1),
        lambda: GaussianAnswerer(mu=0),
        lambda: ExactAnswerer().answer([1, 0], [[1, 0, 1]]),
        lambda: ExactAnswerer().answer([1, 2, 0], [[1, 0, 1]]),
        lambda: CuratorAnswerer(total=1).answer([1, 0], [[1, -1]]),
        lambda: CuratorAnswerer(total=1).answer([1, 0], [[1, 1]] * 301),
        lambda: random_subsets(0, 5),
        lambda: all_subsets(30),
    ],
)
def test_bad_input_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        wrong()


def test_best_guesses_against_a_guarantee() -> None:
    # Randomized response with two values attains the pure bound; thresholds of two normal laws the Gaussian one.
    for epsilon in (0.1, 1.0, 3.0):
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        for prior in (0.5, 0.6, 0.9):
            assert right_guess(epsilon, prior=prior) == pytest.approx(max(truth, prior))
    cuts = np.linspace(-8, 8, 20001)
    for mu in (0.25, 1.0, 3.0):
        for prior in (0.5, 0.7, 0.95):
            best = float((prior * ndtr(cuts) + (1 - prior) * ndtr(mu - cuts)).max())
            assert right_guess_gaussian(mu, prior=prior) == pytest.approx(best, abs=1e-6)
            assert right_guess_gaussian(mu, prior=prior) <= 1
    assert right_guess_gaussian(0, prior=0.7) == 0.7
    assert right_guess_gaussian(2, prior=1.0) == 1.0
    assert right_guess(1, delta=1) == 1.0
