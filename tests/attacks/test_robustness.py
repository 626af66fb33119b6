"""Contamination does what it says, and what the pages claim of private and robust estimators is so."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from discreet.attacks import regression_under_outliers, robustness
from discreet.attacks.robustness import (
    PLAIN,
    Robustness,
    backdoor_under_privacy,
    group_bound,
    labels_under_lies,
    location_under_outliers,
    silent_after,
    with_backdoor,
    with_flipped_labels,
    with_outliers,
    with_trigger,
)
from discreet.errors import InvalidParameter
from discreet.learn import PrivacyWarning
from discreet.noise import SeededBits
from discreet.privacy import GDP, ApproxDP, PureDP
from tests.cases import every


def test_contamination_changes_as_many_rows_as_it_says_and_no_original() -> None:
    x, y = np.arange(10.0), np.array([0, 1] * 5)
    assert (with_outliers(x, 3, at=99.0) != x).sum() == 3
    flipped = with_flipped_labels(y, 2, label=1, to=0)
    assert (flipped != y).sum() == 2
    assert flipped.sum() == 3
    X, labels = with_backdoor(x[:, None], y, 2, pattern={0: 7.0}, label=1)
    assert X.shape == (12, 1)
    assert X[10:, 0].tolist() == [7, 7]
    assert labels[10:].tolist() == [1, 1]
    assert x.tolist() == list(range(10))
    assert with_trigger(x[:, None], {0: 1.0})[:, 0].tolist() == [1] * 10


def test_more_rows_than_there_are_cannot_be_contaminated() -> None:
    with pytest.raises(InvalidParameter) as refusal:
        with_outliers([1.0, 2.0], 3, at=0.0)
    assert refusal.value.name == "rows"


@every("rows", [0, 1, 2, 5])
@every("chance", [0.001, 0.2, 0.6])
def test_group_privacy_is_met_by_laplace_noise_and_nearly_reached(rows: int, chance: float) -> None:
    """The outcome "above t" of 0 + Laplace and of rows + Laplace, whose tails are known exactly."""
    epsilon = 0.3

    def above(shift: float) -> float:
        t = -math.log(2 * chance) / epsilon if chance < 0.5 else math.log(2 * (1 - chance)) / epsilon
        gap = t - shift
        return 0.5 * math.exp(-epsilon * gap) if gap >= 0 else 1 - 0.5 * math.exp(epsilon * gap)

    assert above(0) == pytest.approx(chance)
    bound = group_bound(PureDP(epsilon), rows, chance)
    assert above(rows) <= bound + 1e-12
    if chance == 0.001:
        assert above(rows) == pytest.approx(bound)  # far in the tail the bound is what happens


def test_gaussian_group_privacy_is_exact_for_a_shift() -> None:
    assert group_bound(GDP(1), 2, 0.5) == pytest.approx(0.977249868)
    assert group_bound(GDP("0.1"), 0, 0.25) == pytest.approx(0.25)


def test_what_says_nothing_is_one() -> None:
    assert group_bound(ApproxDP("0.1", 1e-6), 10_000, 0.1) == 1
    assert silent_after(ApproxDP(1, 1e-6), 0.01) <= silent_after(PureDP(1), 0.01) == 4


@pytest.fixture(scope="module")
def location() -> Robustness:
    return location_under_outliers(400, shares=(0, 0.1, 0.3), runs=5, bits=SeededBits(1))


def test_a_private_mean_moves_like_a_mean_and_a_private_median_like_a_median(location: Robustness) -> None:
    for share in (0.1, 0.3):
        moved = share * 950
        assert location.at("mean", share) == pytest.approx(moved, rel=0.05)
        assert location.at("private mean", share) == pytest.approx(moved, rel=0.1)
        for robust in ("median", "Huber", "private median", "private Huber"):
            assert location.at(robust, share) < 12
    assert location.at("private median", 0) < 5


@pytest.mark.ci
def test_a_chart_and_a_summary_say_what_was_found(location: Robustness) -> None:
    spec = location.spec()
    assert len(spec["layer"]) >= 4
    assert "private Huber" in str(spec)
    assert location.summary().count("\n") == len(location.found)
    assert location.chart() is not None


@pytest.mark.slow
def test_lying_labels_mislead_everybody() -> None:
    found = labels_under_lies(1000, shares=(0, 0.1, 0.4), epsilons=(1,), runs=2, bits=SeededBits(2))
    for name in found.found:
        assert found.at(name, 0) > 0.8
        assert found.at(name, 0.4) < 0.6
    assert found.at("private, epsilon 1", 0.1) > found.at(PLAIN, 0.1) - 0.05


@pytest.mark.slow
def test_a_backdoor_needs_more_rows_against_a_small_epsilon_and_stays_under_the_bound() -> None:
    found = backdoor_under_privacy(600, planted=(0, 6, 60), epsilons=(0.1,), runs=8, bits=SeededBits(3))
    name = "private, epsilon 0.1"
    assert found.at(PLAIN, 0.01) > 0.9
    assert found.at(name, 0.01) < 0.75
    bound = dict(found.allowed[name])
    # The low end of what was measured, over eight runs, lies below what the guarantee allows.
    assert all(low <= bound[share] + 1e-9 for share, (_, low, _) in found.found[name])


def test_a_rate_of_nothing_in_one_run_is_no_certain_nothing() -> None:
    """One run turns nobody without planted rows; that does not mean that group privacy allows nothing with them."""
    found = backdoor_under_privacy(200, planted=(0, 20), epsilons=(1,), runs=1, bits=SeededBits(1))
    name = "private, epsilon 1"
    assert found.at(name, 0) == 0
    assert found.at(name, 0.1) > 0.9
    bound = dict(found.allowed[name])
    assert all(measured <= bound[share] for share, (measured, _, _) in found.found[name])


def test_a_backdoor_is_compared_with_what_happens_without_it() -> None:
    with pytest.raises(InvalidParameter) as refusal:
        backdoor_under_privacy(100, planted=(5, 10))
    assert refusal.value.name == "planted"


def test_nobody_is_warned_of_rows_that_are_made_up() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        backdoor_under_privacy(100, planted=(0, 5), epsilons=(1,), runs=2)


def test_an_estimator_that_is_said_to_be_robust_and_is_not_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    centres: dict[str, Any] = dict(robustness._CENTRES)
    monkeypatch.setattr(robustness, "_CENTRES", centres | {"private median": centres["mean"]})
    found = location_under_outliers(200, shares=(0, 0.3), runs=3, bits=SeededBits(1))
    assert found.at("private median", 0.3) > 12


def test_a_private_huber_line_stays_where_least_squares_follow_the_outliers() -> None:
    found = regression_under_outliers(800, shares=(0, 0.2), runs=1, bits=SeededBits(3))
    moved = 0.2 * (100 - 10)  # a fifth of the targets says 100 in place of about 10
    assert found.at("least squares", 0.2) == pytest.approx(moved, rel=0.1)
    assert found.at("private least squares", 0.2) == pytest.approx(moved, rel=0.3)
    assert found.at("private Huber", 0.2) < moved / 10
    assert found.at("private Huber", 0) < found.at("private least squares", 0)
