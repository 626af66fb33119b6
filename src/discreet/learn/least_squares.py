"""Coefficients from noisy second moments: how far to trust each direction, and how far off the result may be.

All of this is post-processing: it reads released numbers and public ones only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import stats
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
    values, vectors = np.linalg.eigh(H)
    known = 1 / moments.constant**2 if intercept else None  # a label of constant rows lies in [-1, 1]
    variance = _likeliest(values, vectors, v, moments, known)
    noise = moments.cross_sigma**2 + moments.sigma**2 * used * variance / 2
    roots = np.full(used, np.sqrt(noise / variance))
    if known is not None:
        roots[-1] = np.sqrt(noise / known)
    theta = np.linalg.lstsq(np.vstack([H, np.diag(roots)]), np.concatenate([v, np.zeros(used)]), rcond=None)[0]
    centre, error = _errors((values, vectors), theta, v, moments, label)
    return Solution(theta=theta, centre=centre, error=error, freedom=max(1.0, moments.weight - used))


def _likeliest(values: Floats, vectors: Floats, v: Floats, moments: Moments, known: float | None) -> float:
    """tau^2 under which v is likeliest; the last coefficient has the variance `known`, if there is one.

    The covariance of v is tau^2 H^2 + s^2 I + (known - tau^2) h h', h the last column of H: in the eigenvectors of H a
    diagonal matrix and one of rank 1, so that its determinant and its inverse follow from sums (Sherman and Morrison).
    """
    seen, last = vectors.T @ v, values * vectors[-1]
    noise = moments.cross_sigma**2 + moments.sigma**2 * len(v) * _SCALES / 2
    spread = _SCALES[:, None] * values**2 + noise[:, None]
    scores = -np.sum(np.log(spread) + seen**2 / spread, axis=1)
    if known is not None:
        more = known - _SCALES
        size = 1 + more * np.sum(last**2 / spread, axis=1)
        scores += more * np.sum(last * seen / spread, axis=1) ** 2 / size - np.log(size)
    return float(_SCALES[np.argmax(scores)])


def _errors(
    spectrum: tuple[Floats, Floats], theta: Floats, v: Floats, moments: Moments, label: int
) -> tuple[Floats, Floats]:
    """H^-1 v and its standard errors: noise of both moments, and sampling.

    H^-1 v - theta = H^-1 (r + e - E theta) exactly, r the cross moments of residuals, whose covariance is the residual
    variance times A; that of E theta is sigma^2 (||theta||^2 I + theta theta') / 2 (entries beside the diagonal have
    half the variance). H^-1 has met that noise as well: errors grow by 1 / (1 - f), f the share of its smallest
    eigenvalue that noise may be (its norm is about sigma sqrt(2 size)); beyond a half no finite error is given.
    """
    (values, vectors), used, sigma = spectrum, len(v), moments.sigma
    share = sigma * np.sqrt(2.0 * used) / max(float(values.min()), 1e-300)
    if values.min() <= 0 or share > _TRUSTED:
        return theta, np.full(used, np.inf)
    inverse = (vectors / values) @ vectors.T
    centre = inverse @ v
    sampling = residual_variance(moments, label, centre) * moments.rows[:used, :used]
    noise = moments.cross_sigma**2 * np.eye(used)
    noise += sigma**2 / 2 * (np.sum(centre**2) * np.eye(used) + np.outer(centre, centre))
    variances = np.diag(inverse @ (sampling + noise) @ inverse)
    return centre, np.sqrt(np.maximum(variances, 0)) / (1 - share)


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
    return float(stats.t.ppf((1 + confidence) / 2, freedom))
