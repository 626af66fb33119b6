from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import hadamard

from discreet import attacks
from discreet.attacks.reconstruction import solvers, subset_counts
from discreet.attacks.reconstruction.linear_reconstruction import Method, repeat_attack
from discreet.attacks.reconstruction.subset_counts import (
    BoundedNoiseAnswerer,
    ExactAnswerer,
    GaussianAnswerer,
    NoisyAnswerer,
    PrivateAnswerer,
)
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import coins, normals, uniforms
from tests.cases import every

Bools = NDArray[np.int8]


def standard_error(rate: float, bits: int) -> float:
    """Of a share of bits whose errors are nearly independent; never 0, as one bit in so many may always flip."""
    return max(math.sqrt(rate * (1 - rate) / bits), 1 / bits)


def average(method: Method, people: int, queries: int, *, noise: float, runs: int, seed: int) -> float:
    bits, rates = SeededBits(seed), []
    for _ in range(runs):
        secret, asked = coins(people, bits=bits), subset_counts.random_subsets(queries, people, bits=bits)
        answers = NoisyAnswerer(sd=noise).answer(secret, asked, bits=bits)
        rates.append(attacks.reconstruct(asked, answers, method=method, truth=secret).success)
    return float(np.mean(rates))


# ---------------------------------------------------------------------------------------------------------- exhaustive


@pytest.mark.sampled(2)
@pytest.mark.parametrize("people", [8, 10, 12])
@pytest.mark.parametrize("share", [40, 8])
def test_all_subsets_within_alpha_leave_at_most_four_alpha_wrong(people: int, share: int) -> None:
    bits, alpha = SeededBits(people), people / share
    asked = subset_counts.all_subsets(people)
    for _ in range(5):
        secret = coins(people, bits=bits)
        extreme = alpha * (2 * coins(len(asked), bits=bits) - 1.0)  # errors at the ends are the hardest
        found = attacks.reconstruct(asked, asked @ secret + extreme, method="exhaustive", alpha=alpha, truth=secret)
        assert int(np.sum(found.recovered != secret)) <= 4 * alpha
        assert found.certain == pytest.approx(max(0, 1 - 4 * alpha / people))


def test_errors_that_lean_one_way_reach_the_bound_but_never_pass_it() -> None:
    # Answers halfway between two databases that differ in 2 alpha people of one kind are within alpha of both.
    people, alpha = 8, 1.0
    asked = subset_counts.all_subsets(people)
    secret = np.array([1, 1, 1, 1, 0, 0, 0, 0])
    other = np.array([0, 0, 1, 1, 1, 1, 0, 0])  # 4 alpha places away: two people each way
    answers = asked @ (secret + other) / 2
    assert float(np.abs(answers - asked @ secret).max()) == alpha
    kept = solvers._consistent(asked.astype(float), answers, alpha)
    wrong = [int(np.sum((number >> np.arange(people) & 1) != secret)) for number in kept]
    assert max(wrong) == 4 * alpha
    found = attacks.reconstruct(asked, answers, method="exhaustive", alpha=alpha)
    assert not found.measured
    assert found.success < 1  # four of the bits are in doubt, and the attack knows it


def test_exhaustive_search_agrees_with_a_loop_over_all_databases() -> None:
    bits, people = SeededBits(5), 7
    asked = np.where(coins((30, people), bits=bits) == 1, 1, -1)
    secret = coins(people, bits=bits)
    answers = asked @ secret + 2 * normals(30, bits=bits)
    every = np.arange(1 << people)[:, None] >> np.arange(people) & 1
    errors = ((every @ asked.T - answers) ** 2).sum(axis=1)
    found = attacks.reconstruct(asked, answers, method="exhaustive")
    assert np.array_equal(found.recovered, every[np.argmin(errors)])
    chances = np.exp((errors.min() - errors) / (2 * errors.min() / 30))
    right = [chances[every[:, place] == found.recovered[place]].sum() / chances.sum() for place in range(people)]
    assert found.success == pytest.approx(np.mean(right))


def test_expected_success_of_exhaustive_search_is_calibrated() -> None:
    # 200 runs of 8 bits: the mean of 0/1 scores around their stated chances has a standard error of at most
    # sqrt(0.25 / 1600) = 0.0125.
    bits, stated, scored = SeededBits(6), [], []
    for _ in range(200):
        secret, asked = coins(8, bits=bits), subset_counts.random_subsets(16, 8, bits=bits)
        answers = NoisyAnswerer(sd=1.5).answer(secret, asked, bits=bits)
        stated.append(attacks.reconstruct(asked, answers, method="exhaustive", noise=1.5).success)
        scored.append(attacks.reconstruct(asked, answers, method="exhaustive", noise=1.5, truth=secret).success)
    assert np.mean(stated) == pytest.approx(np.mean(scored), abs=4 * 0.0125)
    assert 0.6 < np.mean(scored) < 0.99


@pytest.mark.slow
def test_twenty_people_are_tried_in_seconds() -> None:
    bits = SeededBits(7)
    secret, asked = coins(20, bits=bits), subset_counts.random_subsets(2000, 20, bits=bits)
    answers = BoundedNoiseAnswerer(alpha=4).answer(secret, asked, bits=bits)
    for alpha in (None, 4.0):
        assert attacks.reconstruct(asked, answers, method="exhaustive", alpha=alpha, truth=secret).success == 1


# ------------------------------------------------------------------------------------------------------- least squares

PAIRS = [
    (512, 0.25, 0.958, 0.965),
    (512, 0.5, 0.807, 0.800),
    (1280, 0.5, 0.933, 0.942),
    (1280, 1.0, 0.773, 0.772),
    (1280, 2.0, 0.646, 0.645),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("queries", "noise", "predicted", "simulated"), PAIRS)
def test_least_squares_keeps_to_its_prediction(queries: int, noise: float, predicted: float, simulated: float) -> None:
    people, runs = 128, 16
    assert solvers.predicted_share(queries, people, noise * math.sqrt(people)) == pytest.approx(predicted, abs=5e-4)
    rate = average("least_squares", people, queries, noise=noise * math.sqrt(people), runs=runs, seed=queries)
    # The formula is asymptotic: its own error at this size is below 0.005. Other simulations were of unknown length,
    # at least one run.
    assert rate == pytest.approx(predicted, abs=0.005 + 4 * standard_error(predicted, people * runs))
    assert rate == pytest.approx(simulated, abs=4 * standard_error(simulated, people) * math.sqrt(1 + 1 / runs))
    # A prediction for noise that is wrong by 30 % is refused, where Phi is steep enough for as many bits to tell.
    for wrong in (
        solvers.predicted_share(queries, people, factor * noise * math.sqrt(people)) for factor in (0.7, 1.3)
    ):
        assert noise >= 1 or abs(rate - wrong) > 0.005 + 4 * standard_error(wrong, people * runs)


def test_prediction_is_for_the_queries_that_were_asked() -> None:
    # Everybody in one query alone, and all of them once more: the formula for random subsets has nothing to say there.
    # An estimate then has variance s^2 (1 - 1 / (n + 1)), up to the sum: (I + 11')^-1 = I - 11' / (n + 1).
    people, noise, bits = 50, 0.4, SeededBits(25)
    asked, secret = np.vstack([np.eye(people, dtype=int), np.ones(people, dtype=int)]), coins(people, bits=bits)
    found = repeat_attack(NoisyAnswerer(sd=noise), secret, asked, runs=40, bits=bits)
    expected = solvers.phi(0.5 / (noise * math.sqrt(1 - 1 / 51)))
    assert found.predicted == pytest.approx(expected)
    assert found.success == pytest.approx(expected, abs=4 * standard_error(expected, people * 40))
    square = attacks.reconstruct(asked[:people], secret + 0.1, noise=noise)
    assert square.predicted == pytest.approx(solvers.phi(0.5 / noise))


def test_noise_is_estimated_from_the_residuals() -> None:
    bits, people = SeededBits(8), 128
    secret, asked = coins(people, bits=bits), subset_counts.random_subsets(1280, people, bits=bits)
    answers = NoisyAnswerer(sd=8.0).answer(secret, asked, bits=bits)
    guessed, told = attacks.reconstruct(asked, answers), attacks.reconstruct(asked, answers, noise=8.0)
    # A standard deviation from 1152 degrees of freedom is off by 2 %, and so is the argument of Phi, near 1.06.
    assert guessed.predicted == pytest.approx(told.predicted, abs=4 * 0.021 * 1.06 * 0.23)
    assert (guessed.success, guessed.measured) == (guessed.predicted, False)


def test_fewer_answers_than_people_are_fitted_without_a_prediction() -> None:
    asked = subset_counts.random_subsets(20, 40, bits=SeededBits(1))
    found = attacks.reconstruct(asked, asked @ coins(40, bits=SeededBits(2)))
    assert (found.predicted, found.success, found.baseline) == (None, 0.5, 0.5)
    assert "not measured" in found.summary()


def test_people_who_are_always_asked_about_together_do_not_stop_it() -> None:
    asked = np.repeat(subset_counts.random_subsets(40, 5, bits=SeededBits(3)), 2, axis=1)
    secret = np.repeat(coins(5, bits=SeededBits(4)), 2)  # both of a pair alike: the shortest solution is the truth
    assert attacks.reconstruct(asked, asked @ secret, truth=secret).success == 1


# ------------------------------------------------------------------------------------------------------ linear program


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize(("noise", "known"), [(0.25, 0.996), (0.5, 0.92), (1.0, 0.71)])
def test_linear_program(noise: float, known: float) -> None:
    people, runs = 64, 6
    rate = average("linear_program", people, 640, noise=noise * math.sqrt(people), runs=runs, seed=13)
    # The stated rates are of at least one run of 64 bits each.
    assert rate == pytest.approx(known, abs=4 * standard_error(known, people) * math.sqrt(1 + 1 / runs))
    # What is promised without the truth takes the larger error of least absolute sums into account.
    assert rate >= solvers.predicted_share(640, people, noise * 8 * math.sqrt(math.pi / 2)) - 4 * standard_error(
        rate, 384
    )


def test_linear_program_stands_arbitrary_answers_where_least_squares_falls() -> None:
    bits, people = SeededBits(9), 40
    secret, asked = coins(people, bits=bits), subset_counts.random_subsets(400, people, bits=bits)
    answers = (asked @ secret).astype(float)
    answers[:40] = 1000 * uniforms(40, bits=bits)  # one in ten is anything at all
    assert attacks.reconstruct(asked, answers, method="linear_program", truth=secret).success == 1
    assert attacks.reconstruct(asked, answers, truth=secret).success < 0.8


def test_feasible_point_within_alpha() -> None:
    bits, people = SeededBits(10), 30
    secret, asked = coins(people, bits=bits), subset_counts.random_subsets(300, people, bits=bits)
    answers = BoundedNoiseAnswerer(alpha=1.5).answer(secret, asked, bits=bits)
    assert attacks.reconstruct(asked, answers, method="linear_program", alpha=1.5, truth=secret).success > 0.9
    with pytest.raises(InvalidParameter, match="Raise alpha"):
        attacks.reconstruct(asked, answers, method="linear_program", alpha=0.1)


# ------------------------------------------------------------------------------------------------------------ hadamard


def test_hadamard_within_its_bound() -> None:
    people, bits = 1024, SeededBits(12)
    alpha = 0.25 * math.sqrt(people)
    secret, asked = coins(people, bits=bits), np.asarray(hadamard(people))
    found = attacks.reconstruct(
        asked,
        BoundedNoiseAnswerer(alpha=alpha).answer(secret, asked, bits=bits),
        method="hadamard",
        alpha=alpha,
        truth=secret,
    )
    assert found.certain == pytest.approx(1 - 0.25)
    # Even errors have a standard deviation of alpha / sqrt(3): Phi(-2 sqrt(3)) = 0.00027 of the bits, 0.3 bits, fall.
    assert found.success >= 1 - 4 / people
    ends = asked @ secret + alpha * (2 * coins(people, bits=bits) - 1.0)
    assert attacks.reconstruct(asked, ends, method="hadamard", truth=secret).success == pytest.approx(
        solvers.phi(2), abs=4 * standard_error(solvers.phi(2), people)
    )


def test_hadamard_bound_is_reached_by_errors_that_aim() -> None:
    # Errors H d / 2 with d = +-1 on k people flip exactly these; they are as large as max |H d| / 2.
    people, aimed = 64, 16
    asked = np.asarray(hadamard(people))
    secret = coins(people, bits=SeededBits(1)).astype(np.int64)
    push = np.zeros(people)
    push[:aimed] = (1 - 2 * secret[:aimed]) * 0.5001
    errors = asked @ push
    found = attacks.reconstruct(asked, asked @ secret + errors, method="hadamard", truth=secret)
    alpha = float(np.abs(errors).max())
    assert 1 - found.success == aimed / people <= 4 * alpha**2 / people


def test_fast_transform_is_the_matrix() -> None:
    values = normals(64, bits=SeededBits(2))
    assert np.allclose(solvers.hadamard_transform(values), hadamard(64) @ values)
    secret = coins(64, bits=SeededBits(3))
    found = attacks.reconstruct(None, solvers.hadamard_transform(secret.astype(float)), method="hadamard", truth=secret)
    assert (found.success, found.residual) == (1.0, 0.0)


# ------------------------------------------------------------------------------------------------------------ defences


def test_guarantee_holds_least_squares_down_to_its_prediction() -> None:
    # Noise of sqrt(m) / mu: Phi(mu / 4) = 0.599 at mu = 1, in the limit of many queries; here m = 16 n.
    assert solvers.phi(1 / 4) == pytest.approx(0.599, abs=5e-4)
    people, runs, bits = 128, 40, SeededBits(14)
    secret, asked = coins(people, bits=bits), subset_counts.random_subsets(16 * people, people, bits=bits)
    answerer = GaussianAnswerer(mu=1, blind=True)
    assert answerer.noise(asked) == pytest.approx(math.sqrt(16 * people))
    found = repeat_attack(answerer, secret, asked, runs=runs, bits=bits)
    error = standard_error(0.6, people * runs)
    assert found.predicted == pytest.approx(solvers.phi(math.sqrt(15 / 16) / 4), abs=1e-3)
    assert found.success == pytest.approx(found.predicted, abs=4 * error + 0.005)
    assert found.success < solvers.phi(1 / 4) + 4 * error < solvers.phi(1 / 2)


def below_the_bound(found: Any) -> bool:
    return bool(found.success <= found.bound + 4 * standard_error(found.bound, found.targets))


def test_compare_shows_the_raw_release_falling_and_the_private_one_standing(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = coins(128, bits=SeededBits(15))
    compared = attacks.reconstruct.compare(secret, bits=SeededBits(16))
    assert compared.raw.success == 1
    assert compared["rounded to 5"].success > 0.99
    assert compared["noise of 2.83"].success == pytest.approx(0.958, abs=0.03)
    assert [trial.epsilon for trial in compared.private] == [0.1, 1, 10]
    assert all(below_the_bound(trial.finding) for trial in compared.private)
    # Errors of 1,280 bits in ten runs; the prediction is that of the noise which was used.
    for trial in compared.private:
        predicted = trial.finding.predicted or 0.0
        assert trial.finding.success == pytest.approx(predicted, abs=0.01 + 4 * standard_error(predicted, 1280))
    assert compared["epsilon 0.1"].success < 0.56
    assert compared["epsilon 10"].success > 0.65
    assert compared.spec()["layer"]

    monkeypatch.setattr(PrivateAnswerer, "_answers", ExactAnswerer._answers)  # noise off: the same check sees it
    broken = attacks.reconstruct.compare(secret, bits=SeededBits(16), runs=1)
    assert not any(below_the_bound(trial.finding) for trial in broken.private)


def test_compare_repeats_with_a_seed_and_knows_pure_privacy() -> None:
    secret = coins(64, bits=SeededBits(17))
    first, second = (attacks.reconstruct.compare(secret, delta=0, bits=SeededBits(18)) for _ in range(2))
    assert first.summary() == second.summary()
    assert first["epsilon 1"].bound == pytest.approx(max(attacks.posterior(1, 0.5), first.raw.baseline))
    assert all(below_the_bound(trial.finding) for trial in first.private)


def test_compare_by_other_ways() -> None:
    secret = coins(16, bits=SeededBits(19))
    for method in ("linear_program", "exhaustive", "hadamard"):
        compared = attacks.reconstruct.compare(secret, method=method, epsilons=(1,), runs=2, bits=SeededBits(20))
        assert compared.raw.success == 1
        assert compared["epsilon 1"].success < 0.9


def test_withheld_answers_are_left_out() -> None:
    secret = coins(30, bits=SeededBits(21))
    asked = subset_counts.random_subsets(200, 30, bits=SeededBits(22))
    answers = subset_counts.SuppressingAnswerer(below=7).answer(secret, asked)
    kept = int(np.sum(~np.isnan(answers)))
    found = attacks.reconstruct(asked, answers, truth=secret)
    assert 30 < kept < 200
    assert (found.queries, found.success) == (kept, 1.0)
    nothing = attacks.reconstruct(asked, np.full(200, np.nan), truth=secret)
    assert nothing.queries == 0
    assert nothing.success == np.mean(secret == 0)


def test_curves_follow_theory() -> None:
    curves = attacks.reconstruction_by_noise(64, per_person=(4,), noises=(0.25, 1), runs=10, bits=SeededBits(23))
    ((name, points),) = curves.found.items()
    for noise, (rate, low, high) in points:
        predicted = solvers.predicted_share(256, 64, noise * 8)
        assert low < rate < high
        assert rate == pytest.approx(predicted, abs=0.01 + 4 * standard_error(predicted, 640))
    assert curves.expected[name][0][1] == pytest.approx(solvers.predicted_share(256, 64, 2))
    guarded = attacks.reconstruction_by_guarantee(64, mus=(1, 4), runs=2, bits=SeededBits(24))
    best = dict(guarded.expected["most that any attack can guess"])
    for mu, (rate, _, _) in guarded.found["least squares"]:
        assert rate <= max(best.values()) + 4 * standard_error(0.5, 128)
        assert any(math.isclose(mu, place) for place in best)
    assert curves.spec()["layer"]
    assert guarded.spec()["layer"]


# ----------------------------------------------------------------------------------------------------------- bad input


@every(
    ("queries", "answers", "more", "name"),
    [
        ([[1, 2]], [1], {}, "queries"),
        ([[0.5, 1]], [1], {}, "queries"),
        ([1, 0], [1], {}, "queries"),
        ([[1, 0]], [1, 2], {}, "answers"),
        ([[1, 0]], [math.inf], {}, "answers"),
        ([[1, 0]], [1], {"truth": [1]}, "truth"),
        ([[1, 0]], [1], {"truth": [1, 2]}, "truth"),
        ([[1, 0]], [1], {"method": "magic"}, "method"),
        (None, [1, 2], {}, "queries"),
        (None, [1, 2, 3], {"method": "hadamard"}, "answers"),
        ([[1, 0], [1, 1]], [1, 2], {"method": "hadamard"}, "queries"),
        ([[1] * 21], [1], {"method": "exhaustive"}, "queries"),
        ([[1, 0]], [0.5], {"method": "exhaustive", "alpha": 0.1}, "alpha"),
    ],
)
def test_bad_input_is_refused(queries: Any, answers: Any, more: Any, name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        attacks.reconstruct(queries, answers, **more)
    assert refused.value.name == name
