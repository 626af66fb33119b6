"""What follows from past releases: answers that cost nothing, with their error.

Noisy linear measurements y = A x + noise of covariance S answer a query w for free if w is a combination of rows of A:
by generalised least squares the answer is w (A^T S^-1 A)^+ A^T S^-1 y, of variance w (A^T S^-1 A)^+ w^T, the least of
all unbiased linear ones (Aitken 1936). A query outside of their span is not answered, at no precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Interval
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.tails import normal_reach

Floats = NDArray[np.float64]

_NEAR = 1e-8  # relative: what of a query lies outside of the span of measurements, by rounding alone
_TILTS = np.linspace(0.005, 0.995, 199)
_LAWS = ("gaussian", "laplace")


@dataclass(frozen=True, slots=True, init=False, eq=False)
class PastRelease:
    """Noisy linear measurements of the counts of cells, paid for in an earlier release.

    Args:
        strategy: a row for each measurement, a column for each cell.
        values: what was released.
        variance: of the noise: one number, one for each measurement, or a covariance matrix.
        law: of the noise, 'gaussian' or 'laplace'; a covariance matrix needs normal noise.

    Raises:
        InvalidParameter: if the shapes do not fit, or a variance is not above 0.

    >>> PastRelease(strategy=[[1, 1], [0, 1]], values=[10.5, 3.0], variance=2).cells
    2
    """

    strategy: Floats
    values: Floats
    variance: Floats
    law: str

    def __init__(self, *, strategy: Any, values: Any, variance: Any, law: str = "gaussian") -> None:
        rows, found = _finite("strategy", strategy), _finite("values", values)
        if rows.ndim != 2 or found.shape != (len(rows),):
            raise InvalidParameter(
                "values", f"{found.shape}", f"to be one for each of {len(rows)} rows of the strategy"
            )
        if law not in _LAWS:
            raise InvalidParameter("law", law, "to be 'gaussian' or 'laplace'")
        spread = _finite("variance", variance)
        if spread.ndim < 2:
            spread = np.broadcast_to(spread, (len(rows),)) if spread.shape in ((), (len(rows),)) else spread[:0]
        if spread.shape not in ((len(rows),), (len(rows), len(rows))) or not _positive(spread):
            raise InvalidParameter("variance", variance, "to be above 0, one for each measurement, or a covariance")
        if spread.ndim == 2 and law != "gaussian":
            raise InvalidParameter("variance", "a matrix", "to be of normal noise", "Pass one variance for each row.")
        assign(self, strategy=rows, values=found, variance=spread, law=law)

    @property
    def cells(self) -> int:
        """Returns how many cells there are."""
        return int(self.strategy.shape[1])

    def whiten_noise(self) -> tuple[Floats, Floats]:
        """Returns the strategy and the values, with noise of variance 1 and no correlation."""
        if self.variance.ndim == 1:
            scale = 1 / np.sqrt(self.variance)
            return self.strategy * scale[:, None], self.values * scale
        root = np.linalg.cholesky(self.variance)
        return np.linalg.solve(root, self.strategy), np.linalg.solve(root, self.values)


def _finite(name: str, given: Any) -> Floats:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(name, type(given).__name__, "to be numbers") from None
    if not np.isfinite(found).all() or not found.size:
        raise InvalidParameter(name, f"an array of shape {found.shape}", "to be finite, and not empty")
    return found


def _positive(variance: Floats) -> bool:
    if variance.ndim == 1:
        return bool(np.all(variance > 0))
    symmetric = np.allclose(variance, variance.T)
    return symmetric and float(np.linalg.eigvalsh(variance)[0]) > 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReusedAnswers:
    """What past releases say of queries, for free.

    Attributes:
        answered: for each query whether it follows from them.
        value: the answers; NaN where there is none.
        variances: of the answers; infinite where there is none.
        interval: around the answers, each with the confidence asked for.
    """

    answered: NDArray[np.bool_]
    value: Floats
    variances: Floats
    interval: Interval

    @property
    def complete(self) -> bool:
        """Returns whether every query is answered, so that nothing needs to be spent."""
        return bool(np.all(self.answered))


def reuse(past: Iterable[PastRelease], queries: Any, *, confidence: Number = CONFIDENCE) -> ReusedAnswers:
    """Answers queries from past releases, as far as they follow from them; costs nothing and reads nothing private.

    Args:
        past: releases about the same counts.
        queries: a row for each query, a column for each cell.
        confidence: of each interval.

    Raises:
        InvalidParameter: if there is no release, or the numbers of cells differ.

    >>> total = PastRelease(strategy=[[1, 1]], values=[50], variance=1)
    >>> first = PastRelease(strategy=[[1, 0]], values=[20], variance=3)
    >>> found = reuse([total, first], [[0, 1], [1, 1]])
    >>> found.value.round(3).tolist(), found.variances.round(3).tolist()
    ([30.0, 50.0], [4.0, 1.0])
    """
    known = [check.instance(PastRelease, past=release) for release in past]
    outside = 1 - check.probability(confidence=confidence)
    rows = _finite("queries", queries)
    if not known:
        raise InvalidParameter("past", known, "to hold a release", "Pass at least one past release.")
    if rows.ndim != 2 or {release.cells for release in known} != {rows.shape[-1]}:
        sizes = sorted({release.cells for release in known})
        raise InvalidParameter(
            "queries", f"an array of shape {rows.shape}", f"to have {sizes} columns, as the releases"
        )
    strategy, values = (np.concatenate(parts) for parts in zip(*(r.whiten_noise() for r in known), strict=True))
    weights = rows @ np.linalg.pinv(strategy, rcond=1e-12)
    lost = np.linalg.norm(rows - weights @ strategy, axis=1)
    answered = lost <= _NEAR * np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    laws = np.concatenate([np.full(len(r.values), r.law == "laplace") for r in known])
    half = _reach(weights, laws, outside)
    value = np.where(answered, weights @ values, np.nan)
    return ReusedAnswers(
        answered=answered,
        value=value,
        variances=np.where(answered, np.sum(weights**2, axis=1), np.inf),
        interval=Interval(value - half, value + half),
    )


def _reach(weights: Floats, laplace: NDArray[np.bool_], outside: Fraction) -> Floats:
    """Returns how far weighted sums of noise of variance 1 reach: normal and Laplace parts, half of the risk each."""
    if not laplace.any():
        return np.asarray(float(normal_reach(outside)) * np.linalg.norm(weights, axis=1) * (1 + 1e-9))
    shared = outside if laplace.all() else outside / 2
    normal = float(normal_reach(shared)) * np.linalg.norm(weights[:, ~laplace], axis=1)
    parts = weights[:, laplace] / math.sqrt(2)  # times the scale of a draw
    return np.asarray(
        normal + laplace_sum_reaches(np.sum(parts**2, axis=1), np.max(np.abs(parts), axis=1), float(shared))
    )


def laplace_sum_reaches(squares: Floats, largest: Floats, outside: float, steps: Floats | None = None) -> Floats:
    """Returns distances that sums of Laplace draws exceed at most so often, from their scales' squares and maximum.

    The mean of e^(t S) is the product of 1 / (1 - (t s_i)^2) over the scales s_i, at most
    exp(-ln(1 - y^2) / y^2 sum (t s_i)^2), y = t max s_i, because -ln(1 - x) / x grows with x. Chernoff's bound takes
    the best t. A discrete draw has no larger means: cosh v - cosh u >= (cosh v - 1) (1 - u^2 / v^2), term by term.

    Args:
        squares: sums of s_i^2.
        largest: the largest s_i.
        outside: the probability.
        steps: what one step of discrete noise is worth, where it is known. The tail of one draw beyond x is
            2 a^(floor(x) + 1) / (1 + a), a = e^(-1 / s), in steps: at most a^x a step further, and at most 2 a^x.
    """
    sizes = np.maximum(largest, 1e-300)
    ratio = np.maximum(squares / sizes**2, 1.0)
    tilts = _TILTS[:, None]
    reaches = np.min((math.log(2 / outside) - np.log1p(-(tilts**2)) * ratio) / tilts, axis=0) * sizes
    one = sizes * math.log(2 / outside) if steps is None else sizes * math.log(1 / outside) + steps
    return np.asarray(np.where(ratio <= 1 + 1e-12, one, reaches) * (1 + 1e-9))
