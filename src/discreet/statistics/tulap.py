"""The Tulap law, discrete Laplace noise with a uniform part: the noise of the most powerful private binomial tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import optimize, special

Floats = NDArray[np.float64]

_ALL = 20_000  # trials up to which every count is summed
_WINDOW = 12.0  # standard deviations that are summed otherwise; what is left out is below 1e-30


def tulap_cdf(t: float | Floats, epsilon: float) -> Floats:
    """P(T <= t) for T = G - G' + U, with geometric G of ratio b = e^-epsilon and U uniform on (-1/2, 1/2).

    F(t) = b^-[t] / (1 + b) (b + (t - [t] + 1/2)(1 - b)) for t <= 0, [t] the nearest integer, and 1 - F(-t) above.

    >>> round(float(tulap_cdf(0.7, 1.0)), 4)
    0.7651
    """
    below = -np.abs(np.asarray(t, dtype=np.float64))
    nearest = np.rint(below)
    ratio = np.exp(-epsilon)
    lower = np.exp(epsilon * nearest) / (1 + ratio) * (ratio + (below - nearest + 0.5) * (1 - ratio))
    return np.asarray(np.where(np.asarray(t) <= 0, lower, 1 - lower))


def greater(z: float, trials: int, chance: float, epsilon: float) -> float:
    """P(X + T >= z) for X of law Binomial(trials, chance): the p-value against smaller chances.

    Formal guarantee: rejecting for small values of it is uniformly most powerful among all epsilon-DP tests of counts
    (Awan, Slavkovic 2018, Theorem 4.5), and under the null its law is uniform, because X + T is continuous.

    >>> round(greater(20, 30, 0.5, 1.0), 8), round(greater(20, 30, 0.5, 0.5), 8)
    (0.05205376, 0.09406783)
    """
    counts, weights = _binomial(trials, chance)
    return float(min(1.0, np.sum(weights * tulap_cdf(counts - z, epsilon))))


def less(z: float, trials: int, chance: float, epsilon: float) -> float:
    """P(X + T <= z), by symmetry."""
    return greater(trials - z, trials, 1 - chance, epsilon)


def two_sided(z: float, trials: int, chance: float, epsilon: float) -> float:
    """P(|X + T - trials chance| >= |z - trials chance|): exact level, nearly unbiased (Awan, Slavkovic 2018)."""
    middle = trials * chance
    away = abs(z - middle)
    both = greater(middle + away, trials, chance, epsilon) + less(middle - away, trials, chance, epsilon)
    return min(1.0, both)


def chance_interval(z: float, trials: int, epsilon: float, outside: float) -> tuple[float, float]:
    """The chances that neither one-sided test at level outside / 2 rejects: covers with 1 - outside exactly."""

    def lower(chance: float) -> float:
        return greater(z, trials, chance, epsilon) - outside / 2

    def upper(chance: float) -> float:
        return less(z, trials, chance, epsilon) - outside / 2

    low = 0.0 if lower(0.0) >= 0 else (1.0 if lower(1.0) <= 0 else float(optimize.brentq(lower, 0.0, 1.0, xtol=1e-12)))
    high = 1.0 if upper(1.0) >= 0 else (0.0 if upper(0.0) <= 0 else float(optimize.brentq(upper, 0.0, 1.0, xtol=1e-12)))
    return low, high


def _binomial(trials: int, chance: float) -> tuple[Floats, Floats]:
    """Counts and their probabilities."""
    first, last = 0, trials
    if trials > _ALL:
        reach = _WINDOW * np.sqrt(trials * chance * (1 - chance)) + 100
        first = max(0, int(trials * chance - reach))
        last = min(trials, int(trials * chance + reach) + 1)
    counts = np.arange(first, last + 1, dtype=np.float64)
    ways = special.gammaln(trials + 1) - special.gammaln(counts + 1) - special.gammaln(trials - counts + 1)
    return counts, np.exp(ways + special.xlogy(counts, chance) + special.xlog1py(trials - counts, -chance))
