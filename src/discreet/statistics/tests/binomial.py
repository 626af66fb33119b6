"""The private binomial test, the most powerful one there is, and any public test made private by it.

Its noise has the Tulap law, discrete Laplace noise with a uniform part. A test of tests runs a public test on disjoint
blocks, and tests the number of rejections privately.
"""

from __future__ import annotations

# ruff: noqa: PT028 - a function whose name begins with test, and no test
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter, InvalidValue
from discreet.lazy import optimize, special
from discreet.mechanisms import Laplace
from discreet.noise import Bits, source_of, uniform_below
from discreet.noise.experiment import uniforms
from discreet.privacy import Estimate, Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import vector
from discreet.statistics.tests.results import TestResult

Floats = NDArray[np.float64]

_ALL = 20_000  # trials up to which every count is summed
_WINDOW = 12.0  # standard deviations that are summed otherwise; the rest is below 1e-30

Alternative = Literal["two-sided", "greater", "less"]
_TRIALS = "The number of trials is public here: pass e.g. trials=500, or neighbours='replace' with the outcomes."
_MOST = 1_000_000


def tulap_cdf(t: float | Floats, epsilon: float) -> Floats:
    """Returns P(T <= t) for T = G - G' + U, with geometric G of ratio b = e^-epsilon and U uniform on (-1/2, 1/2).

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
    """Returns P(X + T >= z) for X of law Binomial(trials, chance): the p-value against smaller chances.

    Formal guarantee: rejecting for small values of it is uniformly most powerful among all epsilon-DP tests of counts
    (Awan, Slavkovic 2018, Theorem 4.5), and under the null its law is uniform, because X + T is continuous.

    >>> round(greater(20, 30, 0.5, 1.0), 8), round(greater(20, 30, 0.5, 0.5), 8)
    (0.05205376, 0.09406783)
    """
    counts, weights = _binomial(trials, chance)
    return float(min(1.0, np.sum(weights * tulap_cdf(counts - z, epsilon))))


def less(z: float, trials: int, chance: float, epsilon: float) -> float:
    """Returns P(X + T <= z), by symmetry."""
    return greater(trials - z, trials, 1 - chance, epsilon)


def two_sided(z: float, trials: int, chance: float, epsilon: float) -> float:
    """Returns P(|X + T - trials chance| >= |z - trials chance|).

    The test has an exact level and is nearly unbiased (Awan, Slavkovic 2018).
    """
    middle = trials * chance
    away = abs(z - middle)
    both = greater(middle + away, trials, chance, epsilon) + less(middle - away, trials, chance, epsilon)
    return min(1.0, both)


def chance_interval(z: float, trials: int, epsilon: float, outside: float) -> tuple[float, float]:
    """Returns the chances that neither one-sided test at level outside / 2 rejects: covers with 1 - outside exactly."""

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


_P_VALUES = {"two-sided": two_sided, "greater": greater, "less": less}


def binomial_test(
    successes: Any,
    *,
    epsilon: Number | None = None,
    null: Number = 0.5,
    alternative: Alternative = "two-sided",
    trials: int | None = None,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> TestResult:
    """Tests the chance of success in n trials, one trial for each unit, with n public.

    Releases Z = X + Tulap noise once; the p-value and the interval of the chance are post-processing of it.

    Formal guarantee: epsilon-DP: the number X of successes moves by at most 1 under either relation, integer noise of
    scale 1 / epsilon is exact, and the uniform part is added after it. The p-values are exact; one-sided ones are of
    the uniformly most powerful epsilon-DP test (Awan, Slavkovic 2018). Under ADD_REMOVE the released number does not
    depend on how many units there are: `trials` is what is publicly known of it.

    Args:
        successes: an outcome for each unit (1 or True is a success, everything else is none), or their number.
        epsilon: above 0; there is no use for a delta.
        null: the chance under the null hypothesis.
        alternative: "two-sided", "greater" or "less".
        trials: the public n; under REPLACE with outcomes it is their number.
        neighbours: the relation to protect.
        confidence: of the interval for the chance.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if a parameter is missing or wrong.

    >>> from discreet.noise import SeededBits
    >>> found = binomial_test([1, 1, 1, 0] * 100, null=0.5, epsilon=1, bits=SeededBits(1))
    >>> found.reject(0.01), round(found.estimate.value, 2)
    (True, 0.75)
    """
    budget = Spending.of(epsilon).pure_epsilon
    chance, sure = check.probability(null=null), check.probability(confidence=confidence)
    if alternative not in _P_VALUES:
        raise InvalidParameter("alternative", alternative, "to be 'two-sided', 'greater' or 'less'")
    source = source_of(bits)
    count, size = _count_successes(successes, trials, Neighbours(neighbours))
    noise = Laplace(epsilon=budget, sensitivity=1)
    released = int(noise.release(count, bits=source)) + float(uniforms(1, bits=source)[0]) - 0.5
    value = min(max(released / size, 0.0), 1.0)
    low, high = chance_interval(released, size, float(budget), float(1 - sure))
    estimate = Estimate(value, min(low, value), max(high, value), noise.event, confidence=sure, private=source.private)
    p_value = _P_VALUES[alternative](released, size, float(chance), float(budget))
    return TestResult(p_value=p_value, statistic=released, event=noise.event, estimate=estimate, private=source.private)


def _count_successes(successes: Any, trials: int | None, neighbours: Neighbours) -> tuple[int, int]:
    """Returns the private number of successes and the public number of trials."""
    size = None if trials is None else check.integer(trials=trials, at_least=1)
    if np.ndim(successes) == 0:
        if size is None:
            raise InvalidParameter("trials", trials, "to be given with a number of successes", _TRIALS)
        return check.integer(successes=successes), size
    if size is None and neighbours is not Neighbours.REPLACE:
        raise InvalidParameter("trials", trials, "to be given under add_remove", _TRIALS)
    outcomes = vector(successes)
    return int(np.count_nonzero(outcomes == 1)), len(outcomes) or 1 if size is None else size


def test_of_tests(
    data: Any,
    test: Callable[..., float],
    *,
    blocks: int,
    epsilon: Number | None = None,
    block_level: Number = 0.1,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    bits: Bits | None = None,
) -> TestResult:
    """Runs a test on blocks of units and reports privately whether too many blocks reject.

    Under the null hypothesis each of m blocks rejects with a chance of at most `block_level`, independently, so that
    the number of rejections is at most binomial, and its private p-value holds (Kazan, Shi, Groce, Bray 2023).

    Formal guarantee: epsilon-DP under both relations. Each unit is put into a block independently of all others, so
    one unit, added, removed or replaced, changes one block, and the number of rejections by at most 1. A block that
    is empty, or whose test fails or returns no number, does not reject: nothing else depends on the data.

    Args:
        data: an array with a unit in each row, or a tuple of arrays of the same length.
        test: a public test, from the rows of a block (an argument for each array) to a p-value.
        blocks: how many, m; public.
        epsilon: above 0; there is no use for a delta.
        block_level: the level of the test in each block.
        neighbours: the relation to protect; it makes no difference here.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if a parameter is missing or wrong.
        InvalidValue: if arrays of a tuple differ in length.

    >>> from discreet.noise import SeededBits
    >>> def sign_test(rows: Any) -> float:
    ...     return math.comb(len(rows), 0) / 2 ** len(rows) if (rows > 0).all() else 1.0
    >>> found = test_of_tests(np.ones(500), sign_test, blocks=50, epsilon=1, bits=SeededBits(1))
    >>> found.reject(0.01)
    True
    """
    budget = Spending.of(epsilon).pure_epsilon
    count = check.integer(blocks=blocks, at_least=2, at_most=_MOST)
    level = check.probability(block_level=block_level)
    Neighbours(neighbours)
    if not callable(test):
        raise InvalidParameter("test", test, "to be a function from rows to a p-value")
    arrays = [np.asarray(part) for part in (data if isinstance(data, tuple) else (data,))]
    if len({len(part) for part in arrays}) != 1:
        raise InvalidValue("to have one row for each unit in every array", "Pass arrays of the same length.")
    source = source_of(bits)
    places = uniform_below(count, len(arrays[0]), bits=source)
    rejections = sum(_rejects(test, [part[places == block] for part in arrays], float(level)) for block in range(count))
    noise = Laplace(epsilon=budget, sensitivity=1)
    released = int(noise.release(rejections, bits=source)) + float(uniforms(1, bits=source)[0]) - 0.5
    p_value = greater(released, count, float(level), float(budget))
    return TestResult(p_value=p_value, statistic=released, event=noise.event, private=source.private)


setattr(test_of_tests, "__test__", False)  # noqa: B010 - says the same to pytest, in a way that mypy accepts


def _rejects(test: Callable[..., float], rows: list[Any], level: float) -> bool:
    """Returns whether a block rejects; any error in it counts as a public constant, no."""
    if not len(rows[0]):
        return False
    try:
        found = float(test(*rows))
    except Exception:  # noqa: BLE001 - a failure must look like "not rejected"
        return False
    return math.isfinite(found) and found <= level
