"""Regressions and classifiers that were fitted with one person and without, or with another value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import attacks
from discreet.attacks.reconstruction.attribute_inference import ClippedValues, span
from discreet.attacks.reconstruction.refit import logistic
from discreet.errors import InvalidParameter
from discreet.mechanisms import Gaussian
from discreet.noise import SeededBits
from discreet.noise.experiment import normals

BITS = SeededBits(9)
X = np.column_stack([np.ones(50), normals((50, 2), bits=BITS)])
X[7] = [1, 4, 4]
Y = X @ [50_000, 3000, 2000] + 5000 * normals(50, bits=BITS)
LABELS = (X[:, 1] + X[:, 2] + normals(50, bits=BITS) > 0).astype(np.int64)
BOUNDS = (0, 100_000)


def standard_error(rate: float, trials: int) -> float:
    return max(math.sqrt(rate * (1 - rate) / trials), 1 / trials)


def fitted(rows: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.lstsq(rows, values)[0], dtype=np.float64)


@pytest.mark.parametrize("person", [0, 7, 49])
def test_outcome_follows_from_two_regressions(person: int) -> None:
    stay = np.arange(50) != person
    found = attacks.leverage(
        fitted(X, Y), fitted(X[stay], Y[stay]), features=X, person=person, truth=Y[person], tolerance=1e-3
    )
    assert found.success == 1
    assert found.recovered == pytest.approx(Y[person], abs=1e-4)


def test_regressions_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = 2000
    given: dict[str, Any] = {"person": 7, "bounds": BOUNDS}
    compared = attacks.leverage.compare(X, Y, **given, epsilons=("0.1", 1, 2000), trials=trials, bits=SeededBits(1))
    assert compared.raw.success == compared["clipped"].success == compared["rounded to 2 digits"].success == 1
    for trial in compared.private:
        bound = trial.finding.bound or 0.0
        assert trial.finding.success <= bound + 4 * standard_error(bound, trials)
    assert compared["epsilon 0.1"].success == pytest.approx(0.02, abs=4 * standard_error(0.02, trials))
    assert compared["epsilon 2000"].success > 0.3
    outlier = attacks.leverage.compare(X, Y, **given, prior=(0, 10_000_000), bits=SeededBits(1))
    assert outlier.raw.success == 1
    assert outlier["clipped"].success < 0.1

    monkeypatch.setattr(ClippedValues, "noisy", lambda self, totals, **_: totals * float(self.grid.step))
    broken = attacks.leverage.compare(X, Y, **given, epsilons=(1,), bits=SeededBits(1))
    assert broken["epsilon 1"].success > (broken["epsilon 1"].bound or 1) + 0.5


def test_noise_covers_the_farthest_move_of_a_replaced_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    # The moments that are released, for two outcomes of one person that clipping takes to the two ends.
    seen: list[tuple[NDArray[np.int64], int]] = []

    def record(_self: ClippedValues, totals: NDArray[np.int64], *, reach: int, **_: Any) -> NDArray[np.float64]:
        seen.append((totals, reach))
        return totals.astype(np.float64)

    monkeypatch.setattr(ClippedValues, "noisy", record)
    for row in range(50):
        for end in (-1, 1):
            far = (10**9 * end, 10**9 * end + 1)
            attacks.leverage.compare(
                X, Y, person=row, bounds=BOUNDS, prior=far, epsilons=(1,), trials=1, bits=SeededBits(1)
            )
    with_the_person = seen[::2]
    moves = [
        int(np.abs(high[0] - low[0]).sum())
        for low, high in zip(with_the_person[::2], with_the_person[1::2], strict=True)
    ]
    (reach,) = {reach for _, reach in seen}
    assert max(moves) == reach * ClippedValues(bounds=span("bounds", BOUNDS)).width


def test_classifiers_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = attacks.refit.compare(X, LABELS, epsilons=("0.1", 10, 100), runs=40, bits=SeededBits(2))
    assert compared.raw.success == 1
    for trial in compared.private:
        predicted, bound = trial.finding.predicted or 0.0, trial.finding.bound or 0.0
        error = 4 * standard_error(predicted, trial.finding.targets)
        assert trial.finding.targets == 50 * 40
        assert trial.finding.success == pytest.approx(predicted, abs=error)
        assert trial.finding.success <= bound + error
    assert compared["epsilon 0.1"].success < 0.55
    assert compared["epsilon 100"].success > 0.6
    assert compared.spec()["layer"]

    monkeypatch.setattr(Gaussian, "release", lambda _self, value, **_: value)
    broken = attacks.refit.compare(X, LABELS, epsilons=(1,), bits=SeededBits(2))
    assert broken["epsilon 1"].success == 1 > (broken["epsilon 1"].bound or 1) + 0.4


def test_weights_move_by_at_most_what_the_noise_is_for() -> None:
    # 2 / (n ridge) for rows of length 1 at most: all replacements of a label or of a whole row that are tried.
    ridge, rows = 0.01, X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    known = logistic(rows, LABELS.astype(float), ridge=ridge)
    largest = 0.0
    for person in range(50):
        labels, changed = LABELS.astype(float), rows.copy()
        labels[person] = 1 - labels[person]
        changed[person] = -rows[person]
        for other in (logistic(rows, labels, ridge=ridge), logistic(changed, LABELS.astype(float), ridge=ridge)):
            largest = max(largest, float(np.linalg.norm(other - known)))
    assert 0.2 / (50 * ridge) < largest <= 2 / (50 * ridge)


def test_logistic_regression_is_at_its_minimum() -> None:
    rows, labels = X[:, 1:], LABELS.astype(float)

    def loss(weights: NDArray[np.float64]) -> float:
        signed = np.where(labels == 1, 1, -1) * (rows @ weights)
        return float(np.mean(np.log1p(np.exp(-signed))) + 0.05 * weights @ weights)

    best = logistic(rows, labels, ridge=0.1)
    assert all(loss(best) < loss(best + 1e-4 * step) for step in normals((50, 2), bits=SeededBits(3)))


def test_any_model_with_and_without_a_person() -> None:
    # Candidates are the data with the person and without: whatever can be fitted again tells them apart.
    linear_model = pytest.importorskip("sklearn.linear_model")

    def fit(kept: NDArray[np.int64]) -> Any:
        return linear_model.LogisticRegression().fit(X[kept], LABELS[kept]).predict_proba(X[:5])[:, 1]

    everybody, without = np.arange(50), np.delete(np.arange(50), 7)
    for place, kept in enumerate((everybody, without)):
        found = attacks.refit(fit(kept), [everybody, without], fit=fit, truth=place)
        assert (found.recovered, found.success, found.baseline) == (place, 1.0, 0.5)
        assert found.distances[place] == 0 < found.distances[1 - place]


def test_expected_success_without_the_truth() -> None:
    def same(value: float) -> list[float]:
        return [value]

    assert attacks.refit([2.0], [1.0, 2.0, 3.0], fit=same).success == 1
    assert attacks.refit([1.5], [1.0, 2.0], fit=same).success == 0.5
    # Two equally likely values at distance 0 and 1 from what was seen with noise of 1: odds of e^(1/2).
    noisy = attacks.refit([0.0], [0.0, 1.0], fit=same, noise=1.0)
    assert noisy.success == pytest.approx(1 / (1 + math.exp(-0.5)))
    assert "not measured" in noisy.summary()


@pytest.mark.parametrize(
    ("features", "person", "name"),
    [(X[:, [0, 0]], 7, "features"), (X, 50, "person"), (X[:3], 0, "person"), ([[1.0], [0.0], [1.0]], 1, "person")],
)
def test_bad_regressions_are_refused(features: Any, person: int, name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        attacks.leverage([1.0] * np.shape(features)[1], [1.0] * np.shape(features)[1], features=features, person=person)
    assert refused.value.name == name


def test_other_bad_input_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="weights"):
        attacks.leverage([1.0], [1.0], features=X, person=7)
    with pytest.raises(InvalidParameter, match="at least two"):
        attacks.refit([1.0], [1.0], fit=lambda value: [value])
    with pytest.raises(InvalidParameter, match="shape"):
        attacks.refit([1.0], [1.0, 2.0], fit=lambda value: [value, value])
    with pytest.raises(InvalidParameter, match="0 or 1"):
        attacks.refit.compare(X, LABELS + 1)
    with pytest.raises(InvalidParameter, match="matrix"):
        attacks.refit.compare(X[0], LABELS)
    with pytest.raises(InvalidParameter, match="one number for each"):
        attacks.leverage.compare(X, Y[:-1], person=7, bounds=BOUNDS)
