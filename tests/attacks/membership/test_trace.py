"""Tracing from means: the predicted power is reached on raw means, and noise takes it away."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from discreet.attacks import trace
from discreet.attacks.attack import ceiling
from discreet.attacks.membership import trace as tracing
from discreet.attacks.membership.score_threshold import effective_number, power, threshold_of
from discreet.attacks.membership.trace import noisy_sums, private_law
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import events

N, OUTSIDE = 100, 200
MEMBERS = np.arange(N + OUTSIDE) < N


def crowd(count: int, d: int, bits: SeededBits, mean: float = 1.0) -> NDArray[np.float64]:
    return normals((count, d), bits=bits) + mean


def attacked(d: int, noise: float, bits: SeededBits, **other: Any) -> Any:
    group, others = crowd(N, d, bits), crowd(OUTSIDE, d, bits)
    released = group.mean(axis=0) + noise * normals(d, bits=bits)
    setting: dict[str, Any] = {"members": MEMBERS, "n": N, "noise": noise, "controls": crowd(399, d, bits)} | other
    return trace(released, crowd(400, d, bits), np.concatenate([group, others]), **setting)


@pytest.mark.parametrize(("d", "noise", "wanted"), [(100, 0.0, 0.260), (1000, 0.0, 0.935), (5000, 0.5, 0.398)])
def test_theory_predicts_the_tabulated_power(d: int, noise: float, wanted: float) -> None:
    assert power(d, N, noise=noise) == pytest.approx(wanted, abs=5e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("d", "noise"), [(100, 0.0), (1000, 0.0), (5000, 0.5)])
def test_members_are_accused_as_often_as_predicted(d: int, noise: float, bits: SeededBits) -> None:
    # Prediction with a reference of 400. Standard errors: 0.05 at most for 100 members who are accused independently;
    # the threshold from 399 controls moves the rate of false positives by sqrt(0.05 * 0.95 / 400) = 0.011, that is its
    # place by 0.011 / 0.103 = 0.11 standard deviations and the power by at most 0.11 * 0.4 = 0.042; the mean of 100
    # people has a random length: sqrt(2 / d) of sqrt(d / n), 0.14 standard deviations, 0.057. Together 0.087; the
    # mean of 6 runs is within 4 standard errors if it is within 0.14.
    found = [attacked(d, noise, bits) for _ in range(6 if d < 5000 else 2)]
    expected = power(d, N, noise=noise, reference=400)
    assert np.mean([run.success for run in found]) == pytest.approx(expected, abs=0.14 if d < 5000 else 0.25)
    assert np.mean([run.predicted for run in found]) == pytest.approx(expected, abs=0.01)


def test_the_accused_are_named_and_strangers_seldom(bits: SeededBits) -> None:
    found = attacked(1000, 0.0, bits)
    accused = np.zeros(N + OUTSIDE, dtype=bool)
    accused[found.recovered] = True
    assert found.success == accused[MEMBERS].mean()
    assert found.false_positives == accused[~MEMBERS].mean()
    # 200 strangers at 5 %, the threshold itself off by 0.011: 4 standard errors are 4 * sqrt(0.0154^2 + 0.011^2).
    assert found.false_positives == pytest.approx(0.05, abs=0.076)
    assert "of people outside were accused, 5 % were allowed" in found.summary()


def test_without_centring_next_to_nothing_is_left(bits: SeededBits) -> None:
    group, strangers = crowd(N, 1000, bits), crowd(2000, 1000, bits)
    plain = [part @ group.mean(axis=0) for part in (group, strangers)]
    uncentred = np.mean(plain[0] > np.quantile(plain[1], 0.95))
    # Uncentred scores spread by sqrt(d)|mean| = 33 about a gap of d/n = 10: power 1 - Phi(1.645 - 0.3) = 0.09.
    assert uncentred < 0.09 + 4 * 0.03
    assert attacked(1000, 0.0, bits).success > 0.7


def test_without_truth_the_share_of_accused_is_reported(bits: SeededBits) -> None:
    found = attacked(1000, 0.0, bits, members=None)
    assert found.goal == "candidates accused"
    assert found.false_positives is None
    assert found.success == len(found.recovered) / (N + OUTSIDE)


def test_a_group_of_unknown_size_is_traced_without_a_prediction(bits: SeededBits) -> None:
    found = attacked(1000, 0.0, bits, n=None)
    assert found.predicted is None
    assert found.success > 0.6


def test_a_coordinate_that_never_varies_is_left_out(bits: SeededBits) -> None:
    group, known = crowd(20, 30, bits), crowd(60, 30, bits)
    group[:, 3] = known[:, 3] = 7.0
    assert trace(group.mean(axis=0), known, group, n=20, bits=bits).coordinates == 29


def test_copies_of_a_coordinate_do_not_count_twice(bits: SeededBits) -> None:
    strangers = np.repeat(crowd(400, 50, bits, mean=0.0), 4, axis=1)
    # d = 200 in blocks of 4 equal ones: |R|^2 = 50 * 16, so that 200^2 / 800 = 50 are effective. The variance of 79,800
    # products of 400 people has a standard error of about 2/400 + sqrt(2/50)/20 of itself: 5 times that is 10 %.
    assert effective_number(strangers @ strangers.T) == pytest.approx(50, rel=0.1)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.5])
def test_a_stranger_exceeds_the_threshold_at_most_as_often_as_allowed(rate: float) -> None:
    # Of k + 1 exchangeable scores the stranger's is among those above the threshold with (k + 1 - rank) / (k + 1).
    for k in (99, 100, 137, 400):
        rank = int(threshold_of(np.arange(1.0, k + 1), rate))
        assert (k + 1 - rank) / (k + 1) <= rate + 1e-12
        assert (k + 2 - rank) / (k + 1) > rate - 1e-12


def compared(bits: SeededBits, **other: Any) -> Any:
    d = 1000
    group, others, known = crowd(N, d, bits, 0.0), crowd(OUTSIDE, d, bits, 0.0), crowd(800, d, bits, 0.0)
    return trace.compare(
        group, known, others, bounds=(-4, 4), epsilons=(0.1, 1, 100_000), repeats=2, bits=bits, **other
    )


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_private_means_stay_below_the_bound_and_raw_ones_do_not(law: str, bits: SeededBits) -> None:
    found = compared(bits, law=law)
    private = found["epsilon 1"]
    assert found.raw.success > 0.6  # 0.87 predicted with 400 known people
    assert private.bound is not None
    # At the bound itself more than this many of 100 members would be accused once in 10,000 runs.
    assert private.success * N <= binom.ppf(1 - 1e-4, N, private.bound)
    assert found.raw.success * N > binom.ppf(1 - 1e-4, N, private.bound)
    # The Gaussian curve is its own bound, below that of (1, 1e-6)-DP for every test.
    pure = ceiling(1, 0.05)
    assert private.bound == pytest.approx(pure, abs=1e-6) if law == "laplace" else private.bound < pure


def test_ad_hoc_defences_are_tried_and_named(bits: SeededBits) -> None:
    found = compared(bits)
    assert [trial.defence for trial in found] == [
        "no defence",
        "rounded to 0.4",
        "one mean in ten",
        "epsilon 0.1",
        "epsilon 1",
        "epsilon 100000",
    ]
    assert found["one mean in ten"].predicted < 0.5 < found.raw.predicted


def test_with_the_noise_off_the_bound_is_broken(bits: SeededBits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Laplace, "release", lambda _self, value, **_: value)
    private = compared(bits)["epsilon 1"]
    assert private.success * N > binom.ppf(1 - 1e-4, N, private.bound)


def test_one_person_moves_the_protected_sums_by_what_the_noise_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def watched(sums: Any, largest: int, *law: Any, **other: Any) -> Any:
        seen.append((sums, largest))
        return noisy_sums(sums, largest, *law, **other)

    monkeypatch.setattr(tracing, "noisy_sums", watched)
    low, high = np.full((3, 5), -4.0), np.full((3, 5), -4.0)
    high[1] = 1e9  # far outside the bounds: clipped
    for group in (low, high):
        tracing._private(group, (-4.0, 4.0), "laplace", epsilon=1.0, delta=1e-6, bits=SeededBits(0))
    (first, largest), (second, _) = seen
    assert np.abs(second - first).max() == largest


@pytest.mark.parametrize("largest", [1, 2])
def test_the_noise_is_for_the_largest_move_of_all_sums_under_both_relations(largest: int) -> None:
    values = list(product(range(largest + 1), repeat=3))
    moves = [np.array(one) for one in values] + [np.array(a) - b for a in values for b in values]
    laplace = private_law("laplace", 1.0, 0, 3, largest).mechanism
    gaussian = private_law("gaussian", 1.0, 1e-6, 3, largest).mechanism
    assert laplace.sensitivity == max(np.abs(move).sum() for move in moves)
    assert float(gaussian.sensitivity) == pytest.approx(max(np.linalg.norm(move) for move in moves), rel=1e-12)


def test_a_seed_repeats_everything() -> None:
    one, two = (compared(SeededBits(5)) for _ in range(2))
    assert [trial.finding.success for trial in one] == [trial.finding.success for trial in two]


def test_an_event_gives_the_bound(bits: SeededBits) -> None:
    assert attacked(100, 0.0, bits, event=events.Pure(1)).bound == pytest.approx(0.1359, abs=5e-5)


GOOD = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("released_mean", {"released_mean": [1, 2, float("nan")]}),
        ("reference", {"reference": GOOD[:, :2]}),
        ("reference", {"reference": GOOD[:2]}),
        ("reference", {"reference": np.ones((40, 3))}),
        ("candidates", {"candidates": [["a"]]}),
        ("controls", {"controls": GOOD}),
        ("members", {"members": [4]}),
        ("members", {"members": [False] * 4}),
        ("n", {"n": 0}),
        ("noise", {"noise": -1.0}),
        ("false_positives", {"false_positives": 1}),
    ],
)
def test_what_does_not_fit_is_refused(name: str, change: dict[str, Any]) -> None:
    given: dict[str, Any] = {
        "released_mean": [1.0, 2.0, 3.0],
        "reference": np.tile(GOOD, (20, 1)),
        "candidates": GOOD,
        "n": 3,
    } | change
    with pytest.raises(InvalidParameter) as caught:
        trace(given.pop("released_mean"), given.pop("reference"), given.pop("candidates"), **given)
    assert caught.value.name == name
