"""What a steward may want to know about private data before choosing a method: every value here is private.

**Nothing of this module is differentially private.** The values are exact properties of the data, for a person who may
see the data, never to be published and never to choose the parameters of a release.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.privacy import Neighbours
from discreet.statistics.inputs import column, vector
from discreet.statistics.robust import smooth_sensitivity as smooth
from discreet.statistics.robust.centre import FINE, some_values
from discreet.statistics.robust.smooth_sensitivity import HUBER, Functional, functional

_DUST = Fraction(1, 10**300)  # of a step: what is smaller counts as 0


def smooth_sensitivity(
    statistic: str | int, x: Any, *, beta: Number, bounds: Any, trim: Number = Fraction(1, 10)
) -> float:
    """Returns the smooth sensitivity of a statistic of these values under REPLACE: private, for the steward's eyes.

    Args:
        statistic: "median", "trimmed_mean", or a rank from 1.
        x: the values.
        beta: the smoothness.
        bounds: public limits (low, high).
        trim: of a trimmed mean.

    Raises:
        InvalidParameter: outside these domains.

    >>> round(smooth_sensitivity("median", [1, 4, 5, 7, 9], beta=0.1, bounds=(0, 10)), 5)
    6.06531
    """
    slope = check.positive(beta=beta)
    values = column(x, bounds=bounds, neighbours=Neighbours.REPLACE, fine=FINE)
    n = some_values(values.size)
    steps = np.sort(values.steps)
    if isinstance(statistic, str):
        found = smooth.trimmed_mean(steps, values.width, _cut(statistic, n, trim), slope, _DUST)
    else:
        rank = check.integer(statistic=statistic, at_least=1, at_most=n)
        found = smooth.order_statistic(steps, values.width, rank, slope, _DUST)
    return float(found * values.step) if found > _DUST else 0.0


def _cut(statistic: str, n: int, trim: Number) -> int:
    if statistic == "median":
        return (n - 1) // 2
    if statistic == "trimmed_mean":
        share = check.share(trim=trim)
        if share >= Fraction(1, 2):
            raise InvalidParameter("trim", trim, "below 1/2")
        return math.floor(share * n)
    raise InvalidParameter("statistic", statistic, "to be 'median', 'trimmed_mean' or a rank")


def influence_function(
    estimator: str,
    x: Any,
    *,
    at: Any,
    share: Number | None = None,
    trim: Number = 0.1,
    k: Number = HUBER,
    scale: Number = 1,
) -> Any:
    """Returns how strongly a little weight at some places moves an estimator: private, for the steward's eyes.

    Args:
        estimator: "mean", "median", "trimmed_mean" or "huber".
        x: the values.
        at: a place, or an array of them.
        share: the weight t of the contamination, e.g. 1 / len(x); None is the limit t -> 0.
        trim: of a trimmed mean.
        k: of Huber's psi.
        scale: of Huber's residuals, fixed.

    Raises:
        InvalidParameter: outside these domains, or for the limit of a median, which data does not have.

    >>> influence_function("mean", [1.0, 2.0, 3.0], at=[2, 5]).tolist()
    [0.0, 3.0]
    """
    found = functional(estimator, trim=trim, k=k, scale=scale)
    points = _points(x)
    places = np.asarray(at, dtype=np.float64)
    values = [_influence(found, points, place, share) for place in places.ravel().tolist()]
    return np.array(values).reshape(places.shape)[()]


def gross_error_sensitivity(
    estimator: str,
    x: Any,
    *,
    bounds: Any,
    share: Number | None = None,
    trim: Number = 0.1,
    k: Number = HUBER,
    scale: Number = 1,
) -> float:
    """Returns the largest influence of a place within the bounds.

    It is private, and no noise scale (see `gross_error_delta`).

    All four estimators move in the direction in which a point moves, so that the largest is at one of the bounds.

    Args:
        estimator: "mean", "median", "trimmed_mean" or "huber".
        x: the values.
        bounds: limits (low, high) of what a value may be.
        share: the weight of the contamination; None is the limit to 0.
        trim: of a trimmed mean.
        k: of Huber's psi.
        scale: of Huber's residuals, fixed.

    >>> gross_error_sensitivity("mean", [1.0, 2.0, 3.0], bounds=(0, 10))
    8.0
    """
    ends = [float(end) for end in check.limits(bounds=bounds)]
    found = influence_function(estimator, x, at=ends, share=share, trim=trim, k=k, scale=scale)
    return float(np.max(np.abs(found)))


def _influence(found: Functional, points: NDArray[np.float64], at: float, share: Number | None) -> float:
    if share is None:
        return found.influence(points, at)
    return found.influence_at(points, at, float(check.probability(share=share)))


def _points(x: Any) -> NDArray[np.float64]:
    points = np.sort(vector(x))
    some_values(points.size)
    if not np.isfinite(points).all():
        raise InvalidParameter("x", "an array", "to be finite", "Remove missing and infinite values first.")
    return points


def chaudhuri_hsu_bound(gross_error: Number, *, n: int, beta: Number, bounds: Any, failure: Number) -> float:
    """Returns what the smooth sensitivity of n draws stays below with high probability.

    It predicts accuracy, it is no scale.

    max(2 g / n, R e^(-beta (sqrt(n ln(2 / failure) / 2) - 1))) with probability 1 - failure over the sample, R being
    the width of the bounds and g the largest gross error sensitivity at share 1 / n of all distributions within the
    Kolmogorov distance sqrt(2 ln(2 / failure) / n) of the true one (Chaudhuri, Hsu 2012; Dvoretzky, Kiefer, Wolfowitz).

    Args:
        gross_error: g, of the unknown distribution: as private as what it was computed from.
        n: the number of values.
        beta: the smoothness.
        bounds: limits (low, high) of the values.
        failure: the probability with which it may fail.

    >>> round(chaudhuri_hsu_bound(5, n=10_000, beta=0.1, bounds=(0, 1), failure=0.05), 6)
    0.001
    """
    size = check.integer(n=n, at_least=1)
    low, high = check.limits(bounds=bounds)
    chance = float(check.probability(failure=failure))
    far = math.sqrt(size * math.log(2 / chance) / 2) - 1
    beyond = float(high - low) * math.exp(-float(check.positive(beta=beta)) * far)
    return max(2 * float(check.positive(gross_error=gross_error)) / size, beyond)


def gross_error_delta(x: Any, neighbour: Any, *, epsilon: Number, delta: Number, k: Number = HUBER) -> float:
    """Returns the true delta, at epsilon, of Huber's estimate with noise from its gross error sensitivity.

    It is the delta between two neighbours.

    The release T + g 5 sqrt(2 ln n ln(2 / delta)) / (epsilon n) N(0, 1), g being the gross error sensitivity of the
    data itself (Avella-Medina 2021), is private for data that satisfies conditions, and checking them is not free.
    Where few points lie inside Huber's zone, one replaced value changes the scale by a factor that no n makes small:
    this function shows by how much the claim fails, and is why no such mechanism is offered.

    Args:
        x: the values of one database.
        neighbour: those of another that differs in one value.
        epsilon: claimed.
        delta: claimed.
        k: of Huber's psi, at scale 1.

    >>> far = [-100.0] * 499 + [100.0] * 499
    >>> found = gross_error_delta([*far, 0, 0, 0, 0], [*far, 0, 0, 0, 100], epsilon=1, delta=1e-5)
    >>> found > 1000 * 1e-5
    True
    """
    claim, budget = float(check.probability(delta=delta)), float(check.positive(epsilon=epsilon))
    huber = functional("huber", k=k)

    def law(data: NDArray[np.float64]) -> tuple[float, float]:
        noise = 5 * math.sqrt(2 * math.log(data.size) * math.log(2 / claim)) / (budget * data.size)
        return huber.of(data), abs(huber.influence(data, math.inf)) * noise

    first, second = law(_points(x)), law(_points(neighbour))
    if math.inf in (first[1], second[1]):
        return 1.0
    return max(_normal_stick(first, second, budget), _normal_stick(second, first, budget))


def _normal_stick(first: tuple[float, float], second: tuple[float, float], epsilon: float) -> float:
    """Returns sup_S P(S) - e^epsilon Q(S) for two normal laws (centre, deviation): the loss is a parabola in x."""
    (m, s), (m2, s2) = first, second
    a, b = (s2**-2 - s**-2) / 2, (m / s**2 - m2 / s2**2)
    c = (m2 / s2) ** 2 / 2 - (m / s) ** 2 / 2 + math.log(s2 / s) - epsilon
    bend = b * b - 4 * a * c

    def mass(centre: float, deviation: float, low: float, high: float) -> float:
        return float(special.ndtr((high - centre) / deviation) - special.ndtr((low - centre) / deviation))

    if a == 0:
        pieces = [(-c / b, math.inf) if b > 0 else (-math.inf, -c / b)] if b else []
    elif bend <= 0:
        pieces = [(-math.inf, math.inf)] if a > 0 else []
    else:
        ends = sorted([(-b - math.sqrt(bend)) / (2 * a), (-b + math.sqrt(bend)) / (2 * a)])
        pieces = [(-math.inf, ends[0]), (ends[1], math.inf)] if a > 0 else [(ends[0], ends[1])]
    return sum(mass(m, s, *piece) - math.exp(epsilon) * mass(m2, s2, *piece) for piece in pieces)
