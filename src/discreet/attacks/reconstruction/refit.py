"""A published model can reveal one person: the attacker knows all others and fits it with each possible value.

The strongest position there is (Balle, Cherubin, Hayes 2022): against it only a guarantee helps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import beside, compare_trials, right_guess_gaussian
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.mechanisms import Gaussian
from discreet.noise import Bits, source_of
from discreet.noise.experiment import shuffle_indices
from discreet.report.attack_finding import RAW, Comparison, Finding, Trial

Floats = NDArray[np.float64]

_SLOPE = 1e-10  # at which fitting stops
_STEPS = 100


@dataclass(frozen=True, kw_only=True)
class Refit(Finding):
    """Reports which of the possible values a release fits best.

    Attributes:
        distances: from the release to what each candidate would have given.
        measured: whether `success` was measured against the truth; else it is what is expected.
    """

    distances: tuple[float, ...]
    measured: bool

    def details(self) -> tuple[str, ...]:
        """Returns how clear it was."""
        if self.measured or not self.distances:
            return ()
        return ("The rate is expected, not measured: the truth was not given.",)


def _compare(
    features: Any,
    labels: Any,
    *,
    epsilons: Sequence[check.Number] = ("0.1", 1, 10),
    delta: check.Number = 1e-6,
    ridge: float = 0.01,
    digits: int = 2,
    targets: int = 100,
    runs: int = 20,
    bits: Bits | None = None,
) -> Comparison:
    """Compares what a classifier's exact, rounded and private weights say; the attacker knows all but one label.

    Logistic regression with a ridge, on rows scaled to length 1 at most. Replacing one person moves its weights by at
    most 2 / (n ridge) (Chaudhuri, Monteleoni, Sarwate 2011, Lemma 7), and by what the solver leaves: the distance to
    the minimum is at most the slope there over the ridge. Normal noise for that is mu-Gaussian DP when a person is
    *replaced*, at (epsilon, delta); a label is guessed with at most Phi(mu / 2).

    Args:
        features: a row for each person.
        labels: 0 or 1 for each.
        epsilons: each for the whole model.
        delta: likewise.
        ridge: the weight of the penalty, on the average loss.
        digits: of rounded weights, after the point.
        targets: how many people are tried, at most.
        runs: how many private models each of them meets, for the average; epsilon is that of one.
        bits: the source of randomness.
    """
    source, rows, known = source_of(bits), *_data(features, labels)
    penalty = float(check.positive(ridge=ridge))
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    tried = shuffle_indices(len(rows), bits=source)[: check.integer(targets=targets, at_least=1)]
    often = check.integer(runs=runs, at_least=1)
    budgets = sorted(check.positive(epsilon=each) for each in epsilons)
    released = logistic(rows, known, ridge=penalty)
    move = 2 * (1 / len(rows) + _SLOPE) / penalty * (1 + 1e-9)  # lengths of 1 are rounded
    laws = [Gaussian(epsilon=each, delta=delta, sensitivity=move) for each in budgets]
    others = np.array([logistic(rows, _flip_label(known, person), ridge=penalty) for person in tried])
    gaps = np.linalg.norm(others - released, axis=1)

    def score_weights(published: Floats, predicted: float | None = None, bound: float | None = None) -> Finding:
        """Returns the finding on published weights, half a point for a tie."""
        right, wrong = np.linalg.norm(published - released, axis=-1), np.linalg.norm(published - others, axis=-1)
        return Refit(
            attack="Refitting",
            goal="labels guessed correctly",
            success=float(np.mean((right < wrong) + (right == wrong) / 2)),
            baseline=0.5,
            targets=right.size,
            predicted=predicted,
            bound=bound,
            distances=(),
            measured=True,
        )

    same = np.tile(released, (len(tried), 1))
    found = [
        Trial(defence=RAW, epsilon=None, finding=score_weights(same, predicted=1.0)),
        Trial(defence=f"rounded to {digits} digits", epsilon=None, finding=score_weights(np.round(same, digits))),
    ]
    for epsilon, law in zip(budgets, laws, strict=True):
        sigma, mu = float(law.sigma), float(law.sensitivity / law.sigma)
        published = law.release(np.tile(released, (often, len(tried), 1)), bits=source)  # each model is published alone
        finding = score_weights(published, float(np.mean(special.ndtr(gaps / (2 * sigma)))), right_guess_gaussian(mu))
        found.append(Trial(defence=f"epsilon {float(epsilon):g}", epsilon=float(epsilon), finding=finding))
    return compare_trials(
        found, bound=lambda at: right_guess_gaussian(float(1 / Gaussian(epsilon=at, delta=delta, sensitivity=1).sigma))
    )


def _refit(
    released: Any,
    candidates: Sequence[Any],
    *,
    fit: Callable[[Any], Any],
    truth: int | None = None,
    noise: float | None = None,
    bound: float | None = None,
) -> Refit:
    """Finds which of several data sets a release was computed from: the one whose own release is nearest.

    The candidates are the data with each possible value of one person, or with and without this person. Anything that
    can be fitted again will do: an average, a regression, the weights or the predictions of a classifier.

    Args:
        released: the numbers that were published.
        candidates: what the data may have been.
        fit: from a candidate to the numbers that it would have given.
        truth: the place of the right candidate, to keep score.
        noise: the standard deviation of each released number, if it is noisy.
        bound: what a guarantee allows.

    Raises:
        InvalidParameter: with fewer than two candidates, or if a release has another shape.

    >>> found = refit([2.75], [[1, 2, 3, 4], [1, 2, 3, 5]], fit=lambda values: [sum(values) / len(values)], truth=1)
    >>> found.recovered, found.success
    (1, 1.0)
    """
    published = np.asarray(released, dtype=np.float64)
    if len(candidates) < 2:
        raise InvalidParameter("candidates", len(candidates), "to be at least two", "Pass every possible value.")
    refitted = [np.asarray(fit(candidate), dtype=np.float64) for candidate in candidates]
    if any(each.shape != published.shape for each in refitted):
        raise InvalidParameter("fit", refitted[0].shape, f"to give numbers of shape {published.shape}, as was released")
    distances = np.array([float(np.linalg.norm(published - each)) for each in refitted])
    best = int(np.argmin(distances))
    chance = 1 / len(candidates)
    if truth is None:
        success = _expected_success(distances, noise)
    else:
        success = float(best == check.integer(truth=truth, at_least=0, at_most=len(candidates) - 1))
    return Refit(
        attack="Refitting",
        goal="value guessed correctly",
        success=success,
        baseline=chance,
        targets=1,
        bound=bound,
        recovered=best,
        distances=tuple(float(each) for each in distances),
        measured=truth is not None,
    )


def logistic(features: Floats, labels: Floats, *, ridge: float) -> Floats:
    """Returns the weights that minimise the average logistic loss plus ridge / 2 times their squared length.

    Newton's method, until the slope is at most 1e-10; the minimum is then within 1e-10 / ridge.

    Raises:
        InvalidParameter: if it does not get there, because features are too large or the ridge too small.
    """
    signed = np.where(labels == 1, 1.0, -1.0)[:, None] * features
    weights = np.zeros(features.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(np.minimum(signed @ weights, 700)))
        slope = ridge * weights - signed.T @ chance / len(features)
        if float(np.linalg.norm(slope)) <= _SLOPE:
            return weights
        curve = (features * (chance * (1 - chance))[:, None]).T @ features / len(features)
        weights = weights - np.linalg.solve(curve + ridge * np.eye(len(weights)), slope)
    raise InvalidParameter("ridge", ridge, "to be large enough for a fit", "Raise it, or scale the features.")


def _expected_success(distances: Floats, noise: float | None) -> float:
    """Returns the chance of the nearest candidate, all equally likely; without noise, a share of those that fit."""
    if not noise:
        nearest = float(distances.min())
        return 1 / int(np.sum(distances <= nearest + 1e-12 * (1 + nearest)))
    spread = (distances.min() ** 2 - distances**2) / (2 * noise**2)
    return 1 / math.fsum(np.exp(spread))


def _flip_label(labels: Floats, person: int) -> Floats:
    other = labels.copy()
    other[person] = 1 - other[person]
    return other


def _data(features: Any, labels: Any) -> tuple[Floats, Floats]:
    rows, known = np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise InvalidParameter("features", rows.shape, "to be a matrix of numbers", "Pass a row for each person.")
    if known.shape != (len(rows),) or not np.isin(known, (0, 1)).all():
        raise InvalidParameter("labels", known.shape, f"to be 0 or 1 for each of {len(rows):,} people")
    return rows, known


refit = beside(_compare)(_refit)
