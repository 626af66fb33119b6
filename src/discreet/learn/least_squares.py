"""Coefficients from noisy second moments: how far to trust each direction, and how far off the result may be.

All of this is post-processing: it reads released numbers and public ones only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from discreet.learn.moments import Moments

Floats = NDArray[np.float64]

_SCALES = np.geomspace(1e-8, 1e8, 81)  # of the variance of a coefficient of normalised rows
_TRUSTED = 0.5  # of the smallest eigenvalue may be noise, for an interval to be finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Coefficients of normalised rows for one label in [-1, 1].

    Attributes:
        theta: the coefficients, shrunk where noise is all there is.
        centre: the same without shrinking: the middle of intervals.
        error: the standard error of `centre`; infinite where noise could have decided.
        freedom: degrees of freedom of the residual variance.
    """

    theta: Floats
    centre: Floats
    error: Floats
    freedom: float


def solve(moments: Moments, label: int, *, penalty: Floats, intercept: bool) -> Solution:
    """The coefficients of one label, from moments with noise.

    With A, v the noisy moments and P the penalty, H = A + P, the coefficients theta that the exact moments give
    satisfy v = H theta + e - E theta, where e and E are the noise of v and A. The entries of e - E theta have variance
    s^2 = cross_sigma^2 + sigma^2 ||theta||^2 / 2 (a little more along theta), which is known. So theta is
    estimated as from a linear model with known noise: the posterior mean for theta ~ N(0, tau^2 I), that minimises
    ||v - H theta||^2 / s^2 + ||theta||^2 / tau^2, tau chosen by maximal likelihood of v. It exists whatever the noise
    did to H, is close to H^-1 v where that is reliable, and close to 0 where it is not: an adaptive ridge, as in Wang
    (2018, AdaSSP), that needs no release of the smallest eigenvalue.

    Args:
        moments: released.
        label: which one.
        penalty: P, the diagonal.
        intercept: whether the constant takes part.
    """
    used = len(moments.rows) - (0 if intercept else 1)
    H = moments.rows[:used, :used] + np.diag(penalty[:used])
    v = moments.cross[:used, label]
    fixed = np.zeros(used)  # precision that is known beforehand: a label of constant rows lies in [-1, 1]
    if intercept:
        fixed[-1] = moments.constant**2
    noise, precision = _likeliest(H, v, moments, fixed)
    stacked = np.vstack([H, np.diag(np.sqrt(noise * precision))])
    theta = np.linalg.lstsq(stacked, np.concatenate([v, np.zeros(used)]), rcond=None)[0]
    centre, error = _errors(H, v, theta, moments, label)
    return Solution(theta=theta, centre=centre, error=error, freedom=max(1.0, moments.weight - used))


def _likeliest(H: Floats, v: Floats, moments: Moments, fixed: Floats) -> tuple[float, Floats]:
    """The variance of the noise and the precisions of the prior under which v is likeliest."""
    best, found = -np.inf, (1.0, np.ones(len(v)))
    for variance in _SCALES:
        precision = np.where(fixed > 0, fixed, 1 / variance)
        noise = moments.cross_sigma**2 + moments.sigma**2 * len(v) * variance / 2
        root = np.linalg.cholesky((H / precision) @ H.T + noise * np.eye(len(v)))
        score = -2 * np.sum(np.log(np.diag(root))) - np.sum(np.linalg.solve(root, v) ** 2)
        if score > best:
            best, found = score, (noise, precision)
    return found


def _errors(H: Floats, v: Floats, theta: Floats, moments: Moments, label: int) -> tuple[Floats, Floats]:
    """H^-1 v and its standard errors: noise of both moments, and sampling.

    H^-1 v - theta = H^-1 (r + e - E theta) exactly, r the cross moments of residuals, whose covariance is the residual
    variance times A; that of E theta is sigma^2 (||theta||^2 I + theta theta') / 2 (entries beside the diagonal have
    half the variance). Where noise may be more than half of the smallest eigenvalue of H, no finite error is given.
    """
    values, vectors = np.linalg.eigh(H)
    used, sigma = len(v), moments.sigma
    reach = sigma * np.sqrt(2.0 * used) / max(float(values.min()), 1e-300)
    if values.min() <= 0 or reach > _TRUSTED:
        return theta, np.full(used, np.inf)
    inverse = (vectors / values) @ vectors.T
    centre = inverse @ v
    sampling = residual_variance(moments, label, centre) * moments.rows[:used, :used]
    noise = moments.cross_sigma**2 * np.eye(used)
    noise += sigma**2 / 2 * (np.sum(centre**2) * np.eye(used) + np.outer(centre, centre))
    variances = np.diag(inverse @ (sampling + noise) @ inverse)
    return centre, np.sqrt(np.maximum(variances, 0)) / (1 - reach**2)


def residual_variance(moments: Moments, label: int, theta: Floats) -> float:
    """The variance of residuals in the units of normalised labels, one deviation of its noise on the safe side.

    It is (sum u^2 - 2 theta'v + theta'A theta) / weight; in the exact moments the noise of theta'A theta has the
    deviation sigma ||theta||^2, as theta theta' has that Frobenius norm.
    """
    used, size = len(theta), float(np.sum(theta**2))
    squares = moments.labels[label, label] - 2 * theta @ moments.cross[:used, label]
    squares += theta @ moments.rows[:used, :used] @ theta
    slack = np.sqrt(moments.label_sigma**2 + 4 * size * moments.cross_sigma**2 + size**2 * moments.sigma**2)
    return float(max(squares, 0.0) + slack) / max(1.0, moments.weight - used)


def reach(confidence: float, freedom: float) -> float:
    """How many standard errors an interval of this confidence goes to either side."""
    return float(student.ppf((1 + confidence) / 2, freedom))
