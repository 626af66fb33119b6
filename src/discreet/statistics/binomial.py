"""The private binomial test: the most powerful one there is."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import Bits, source_of
from discreet.noise.experiment import uniforms
from discreet.privacy import Estimate, Neighbours
from discreet.statistics.column import vector
from discreet.statistics.results import TestResult
from discreet.statistics.spending import Spending
from discreet.statistics.tulap import chance_interval, greater, less, two_sided

Alternative = Literal["two-sided", "greater", "less"]

_P_VALUES = {"two-sided": two_sided, "greater": greater, "less": less}
_TRIALS = "How many trials there were is public here: pass e.g. trials=500, or neighbours='replace' with the outcomes."


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
    count, size = _counted(successes, trials, Neighbours(neighbours))
    noise = Laplace(epsilon=budget, sensitivity=1)
    released = int(noise.release(count, bits=source)) + float(uniforms(1, bits=source)[0]) - 0.5
    value = min(max(released / size, 0.0), 1.0)
    low, high = chance_interval(released, size, float(budget), float(1 - sure))
    estimate = Estimate(value, min(low, value), max(high, value), noise.event, confidence=sure, private=source.private)
    p_value = _P_VALUES[alternative](released, size, float(chance), float(budget))
    return TestResult(p_value=p_value, statistic=released, event=noise.event, estimate=estimate, private=source.private)


def _counted(successes: Any, trials: int | None, neighbours: Neighbours) -> tuple[int, int]:
    """The private number of successes and the public number of trials."""
    size = None if trials is None else check.integer(trials=trials, at_least=1)
    if np.ndim(successes) == 0:
        if size is None:
            raise InvalidParameter("trials", trials, "to be given with a number of successes", _TRIALS)
        return check.integer(successes=successes), size
    if size is None and neighbours is not Neighbours.REPLACE:
        raise InvalidParameter("trials", trials, "to be given under add_remove", _TRIALS)
    outcomes = vector(successes)
    return int(np.count_nonzero(outcomes == 1)), len(outcomes) or 1 if size is None else size
