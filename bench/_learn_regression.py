"""Coefficients and clusters: R2, coverage and length of intervals, and the cost of centres beside noisy Lloyd steps.

Rows are made up afresh for every seed. Regression: 10,000 rows of 10 standard normal features and normal errors of
deviation 1, such that least squares has an R2 of .816; public norm 1.3 sqrt(10), public label bounds of four
deviations. Clusters: blobs of deviation 0.1 around centres in [-0.8, 0.8]^d, bounds -1 and 1, and the digits of
scikit-learn; costs are over that of scikit-learn without privacy. The baseline is Lloyd's method with noisy counts and
sums: five steps from spread-out starts, the same relation, epsilon and delta, float noise.

    python bench/_learn_regression.py
"""

from __future__ import annotations

import math

import numpy as np
from _claims import Claim, show
from numpy.typing import NDArray
from sklearn.cluster import KMeans as Plain
from sklearn.datasets import load_digits

from discreet import accounting, learn

Floats = NDArray[np.float64]

DELTA = 1e-6
GOALS = {0.5: 0.74, 1.0: 0.80, 3.0: 0.81}
ROWS, FEATURES, SEEDS, CLUSTER_SEEDS = 10_000, 10, 10, 5
SIGNAL = math.sqrt(0.816 / 0.184)  # the deviation of what features explain
NORM, LABELS = 1.3 * math.sqrt(FEATURES), 4 * math.hypot(1, SIGNAL)
STEPS = 5


def regression(epsilon: float) -> tuple[list[float], Floats, Floats]:
    """R2 of each seed, which coefficients their intervals cover, and how long these are."""
    reached, covered, lengths = [], [], []
    for seed in range(SEEDS):
        draws = np.random.default_rng(2000 + seed)
        X, weights = draws.normal(size=(2 * ROWS, FEATURES)), draws.normal(size=FEATURES)
        weights *= SIGNAL / np.linalg.norm(weights)
        y = X @ weights + draws.normal(size=2 * ROWS)
        model = learn.LinearRegression(
            epsilon=epsilon, delta=DELTA, norm_bound=NORM, label_bounds=(-LABELS, LABELS), random_state=seed
        ).fit(X[:ROWS], y[:ROWS])
        low, high = model.coef_interval_
        reached.append(float(model.score(X[ROWS:], y[ROWS:])))
        covered.append((low <= weights) & (weights <= high))
        lengths.append(high - low)
    return reached, np.array(covered), np.array(lengths)


def coefficients() -> list[Claim]:
    plain = 2 * 1.96 / math.sqrt(ROWS)
    found = []
    for epsilon, least in GOALS.items():
        reached, covered, lengths = regression(epsilon)
        text, note = f"at epsilon {epsilon:g}", f"without privacy {plain:.4f}"
        found += [
            Claim(f"R2 {text}", float(np.mean(reached)), least=least, unit="", note=f"{SEEDS} seeds"),
            Claim(f"95 % intervals cover, {text}", float(covered.mean()), note=f"{covered.size} coefficients"),
            Claim(f"length of an interval {text}", float(lengths.mean()), unit="", note=note),
        ]
    return found


def blobs(seed: int, rows: int, features: int, clusters: int) -> Floats:
    draws = np.random.default_rng(seed)
    centres = draws.uniform(-0.8, 0.8, size=(clusters, features))
    return centres[draws.integers(clusters, size=rows)] + 0.1 * draws.normal(size=(rows, features))


def cost(X: Floats, centres: Floats) -> float:
    return float(np.mean(np.min(np.sum(centres**2, axis=1) - 2 * X @ centres.T, axis=1) + np.sum(X**2, axis=1)))


def lloyd(X: Floats, clusters: int, epsilon: float, draws: np.random.Generator) -> Floats:
    """Noisy steps within the ball that holds the box, budget split between counts and sums as it is best."""
    features, radius = X.shape[1], math.sqrt(X.shape[1])
    mu = 1 / float(accounting.gaussian_sigma(epsilon, DELTA)) / math.sqrt(STEPS)
    part = 1 / (1 + math.sqrt(3 * features))
    of_count, of_sum = 1 / (math.sqrt(part) * mu), radius / (math.sqrt(1 - part) * mu)
    centres = draws.normal(size=(clusters, features))
    centres *= 0.6 * radius / np.linalg.norm(centres, axis=1, keepdims=True)
    for _ in range(STEPS):
        nearest = np.argmin(np.sum(centres**2, axis=1) - 2 * X @ centres.T, axis=1)
        for cluster in range(clusters):
            count = np.sum(nearest == cluster) + of_count * draws.normal()
            total = X[nearest == cluster].sum(axis=0) + of_sum * draws.normal(size=features)
            if count > 3 * of_count:
                centres[cluster] = total / count
        centres *= np.minimum(1, radius / np.linalg.norm(centres, axis=1, keepdims=True))
    return centres


def clusters() -> list[Claim]:
    tables = {"digits": (load_digits(return_X_y=True)[0] / 8 - 1, 10)}
    for rows, features, count in ((10_000, 2, 15), (10_000, 10, 8), (20_000, 30, 10)):
        tables[f"{rows:,} rows, {features} features"] = (np.clip(blobs(7, rows, features, count), -1, 1), count)
    found = []
    for name, (X, count) in tables.items():
        plain = cost(X, Plain(count, n_init=3, random_state=0).fit(X).cluster_centers_)
        for epsilon in (1.0, 3.0):
            ours = [
                cost(
                    X,
                    learn.KMeans(n_clusters=count, epsilon=epsilon, bounds=(-1, 1), random_state=seed)
                    .fit(X)
                    .cluster_centers_,
                )
                for seed in range(CLUSTER_SEEDS)
            ]
            theirs = [cost(X, lloyd(X, count, epsilon, np.random.default_rng(seed))) for seed in range(CLUSTER_SEEDS)]
            best, note = float(np.mean(theirs)) / plain, f"noisy Lloyd steps {np.mean(theirs) / plain:.3g}"
            text = f"cost of {count} centres over no privacy, {name}, epsilon {epsilon:g}"
            found.append(Claim(text, float(np.mean(ours)) / plain, most=best, unit="", note=note))
    return found


def rows() -> list[Claim]:
    """What is claimed about regression and clustering, measured now."""
    return [*coefficients(), *clusters()]


if __name__ == "__main__":
    show("Regression and clusters", rows())
