from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import attacks
from discreet.attacks.reconstruction.attribute_inference import ClippedValues, near, near_twice, sensible, span
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms

OTHERS = 20_000 + 60_000 * uniforms(30, bits=SeededBits(1))
BOUNDS = (0, 200_000)


def standard_error(rate: float, trials: int) -> float:
    return max(math.sqrt(rate * (1 - rate) / trials), 1 / trials)


def test_averages_before_and_after_a_departure() -> None:
    found = attacks.difference((10, 50_000), (9, 48_000), truth=68_000, tolerance=0)
    assert (found.recovered, found.success, found.targets) == (68_000, 1.0, 1)
    assert "68000" in found.summary()


def test_arithmetic_is_exact() -> None:
    # One third has no float: thirty times the float is not 10.
    found = attacks.difference((30, Fraction(1, 3)), (29, "1/3"), truth="1/3", tolerance=0)
    assert (found.recovered, found.success) == (Fraction(1, 3), 1.0)
    assert attacks.difference((3, 0.1), (2, 0.1)).recovered == Fraction(1, 10)


def test_totals_and_counts_are_subtracted() -> None:
    assert attacks.difference(500_000, 432_000, truth=68_000).success == 1
    assert attacks.difference(42, 41, truth=0).success == 0


def test_without_the_truth_success_is_expected() -> None:
    exact, noisy = attacks.difference(42, 41), attacks.difference(42, 41, noise=0.5)
    assert (exact.success, exact.measured) == (1.0, False)
    assert noisy.success == noisy.predicted == pytest.approx(0.6827, abs=1e-4)
    assert "not measured" in noisy.summary()


def test_trials_side_by_side() -> None:
    before, truth = np.array([51.0, 52.0, 53.0]), np.array([60.0, 70.0, 0.0])
    found = attacks.difference((10, before), (9, np.full(3, 50.0)), truth=truth)
    assert found.recovered.tolist() == [60, 70, 80]
    assert found.success == pytest.approx(2 / 3)
    assert found.targets == 3


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [((10, 5, 1), 4, "before"), (10, (0, 5), "after"), (10, "many", "after"), ((2.5, 5), 4, "before")],
)
def test_bad_releases_are_refused(before: Any, after: Any, name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        attacks.difference(before, after)
    assert refused.value.name == name


def test_difference_of_two_laplace_numbers() -> None:
    # Against the density, integrated numerically.
    for tolerance, scale in ((0.5, 2.0), (3.0, 1.0)):
        places = np.linspace(-tolerance, tolerance, 200_001)
        density = (1 + np.abs(places) / scale) * np.exp(-np.abs(places) / scale) / (4 * scale)
        assert near_twice(tolerance, scale) == pytest.approx(np.trapezoid(density, places), abs=1e-8)
    assert near(1.96, 1) == pytest.approx(0.95, abs=1e-3)


def test_clipped_sums_move_by_at_most_the_width() -> None:
    clip = ClippedValues(bounds=span("bounds", (-3, "7.5")))
    values = clip.steps(np.linspace(-20, 20, 2001))
    assert int(values.max() - values.min()) == clip.width
    assert clip.width >= 1 << 20
    assert float(clip.width * clip.grid.step) == pytest.approx(10.5, rel=1e-5)


def test_sensible_guesses_use_the_ends() -> None:
    ends = span("prior", (0, 100))
    assert sensible(np.array([-5.0, 50.0, 200.0, np.nan]), ends, 1.0).tolist() == [1, 50, 99, 50]


def test_compare_raw_falls_private_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = 4000
    compared = attacks.difference.compare(
        OTHERS, bounds=BOUNDS, epsilons=(1, "0.1", 10, 100), trials=trials, bits=SeededBits(2)
    )
    assert compared.raw.success == compared["fewer than 5 withheld"].success == compared["clipped"].success == 1
    assert compared.raw.baseline == pytest.approx(0.02)
    assert [trial.epsilon for trial in compared.private] == [0.1, 1, 10, 100]
    for trial in compared.private:
        predicted, bound = trial.finding.predicted or 0.0, trial.finding.bound or 0.0
        assert trial.finding.success == pytest.approx(predicted, abs=4 * standard_error(predicted, trials))
        assert trial.finding.success <= bound + 4 * standard_error(bound, trials)
    # Noise that is too small by 30 % would be seen where there is something to see.
    clip = ClippedValues(bounds=span("bounds", BOUNDS))
    wrong = 1 - (1 - near_twice(2000, 0.7 * clip.scale(Fraction(50)))) * 0.98
    assert compared["epsilon 100"].success < wrong - 4 * standard_error(wrong, trials)

    monkeypatch.setattr(ClippedValues, "noisy", lambda self, totals, **_: totals * float(self.grid.step))
    broken = attacks.difference.compare(OTHERS, bounds=BOUNDS, epsilons=("0.1", 1), bits=SeededBits(2))
    assert all(trial.finding.success > (trial.finding.bound or 0) + 0.5 for trial in broken.private)


def test_withholding_small_groups_helps_only_at_the_edge() -> None:
    four, five = (
        attacks.difference.compare(OTHERS[:stay], bounds=BOUNDS, smallest=5, bits=SeededBits(3)) for stay in (4, 5)
    )
    error = 4 * standard_error(0.02, 1000)
    assert four["fewer than 5 withheld"].success == pytest.approx(0.02, abs=error)  # five people, then four
    assert five["fewer than 5 withheld"].success == 1


def test_an_outlier_is_hidden_by_clipping() -> None:
    compared = attacks.difference.compare(OTHERS, bounds=BOUNDS, prior=(0, 10_000_000), bits=SeededBits(4))
    assert compared.raw.success == 1
    # One in fifty lies within the bounds, and as many beside the end that all others are clipped to.
    assert compared["clipped"].success == pytest.approx(0.04, abs=0.02)


def test_compare_repeats_with_a_seed() -> None:
    first, second = (attacks.difference.compare(OTHERS, bounds=BOUNDS, bits=SeededBits(5)).summary() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"bounds": (5, 5)}, "bounds"),
        ({"bounds": 5}, "bounds"),
        ({"prior": (1, 0)}, "prior"),
        ({"tolerance": 0}, "tolerance"),
        ({"epsilons": (0,)}, "epsilon"),
        ({"trials": 0}, "trials"),
        ({"smallest": 0}, "smallest"),
        ({"others": []}, "others"),
        ({"others": [math.nan]}, "others"),
    ],
)
def test_bad_comparisons_are_refused(changes: Any, name: str) -> None:
    given = {"others": OTHERS, "bounds": BOUNDS} | changes
    with pytest.raises(InvalidParameter) as refused:
        attacks.difference.compare(given.pop("others"), **given)
    assert refused.value.name == name
