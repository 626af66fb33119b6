"""Optimal composition of one (epsilon, delta) guarantee with itself (Kairouz, Oh, Viswanath 2015, Theorem 3.3).

Tight for arbitrary mechanisms of that guarantee: the worst of them is randomized response with a leak of delta.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.composition import Terms, basic
from discreet.accounting.numerics import safe, smallest
from discreet.errors import UnsupportedEvent
from discreet.exact import float_above
from discreet.lazy import special
from discreet.privacy import ApproxDP

METHOD = "Optimal homogeneous composition"
LARGEST_COUNT = 10**9  # the sum has some 80 sqrt(count) terms
_REACH = 40.0
_UNLIKELY = 2 * math.exp(-(_REACH**2) / 2)  # 10^-347: zero in floats, and below every delta that does not count as zero


def homogeneous_delta(guarantee: ApproxDP, count: int, epsilon: float) -> float:
    """Returns the smallest delta at which `count` adaptive releases of one guarantee are certainly (epsilon, delta)-DP.

    >>> f"{homogeneous_delta(ApproxDP('0.1', 0), 100, 4.774568):.4g}"
    '1e-06'
    """
    each = float_above(guarantee.epsilon)
    leak = -math.expm1(count * math.log1p(-float_above(guarantee.delta)))
    lost = _excess(each, count, epsilon)
    return min(1.0, safe(leak + (1 - leak) * lost))


def _excess(each: float, count: int, epsilon: float) -> float:
    """Returns the hockey-stick divergence of `count` randomized responses, by logarithms over the number of lies."""
    if each <= 0 or epsilon > count * each:
        return 0.0
    lies = _likely(each, count, min(count, math.ceil((count - epsilon / each) / 2)))
    losses = (count - 2 * lies) * each
    lies, losses = lies[losses > epsilon], losses[losses > epsilon]
    if not lies.size:
        return 0.0
    log_choose = special.gammaln(count + 1) - special.gammaln(lies + 1) - special.gammaln(count - lies + 1)
    logs = log_choose - lies * each - count * math.log1p(math.exp(-each)) + np.log(-np.expm1(epsilon - losses))
    rounding = 2.0**-48 * (1 + float(special.gammaln(count + 1)) + count * each)
    largest = float(np.max(logs))
    return min(1.0, math.exp(min(0.0, largest + rounding)) * float(np.exp(logs - largest).sum()) + _UNLIKELY)


def _likely(each: float, count: int, most: int) -> NDArray[np.int64]:
    """Numbers of lies up to `most`, without those more than _REACH binomial standard deviations away from the mean.

    With t = _REACH sqrt(count) / 2 these have a probability of at most 2 exp(-2 t^2 / count) (Hoeffding 1963).
    """
    mean, reach = count / (1 + math.exp(min(each, 700.0))), _REACH * math.sqrt(count) / 2
    first = max(0, math.floor(mean - reach))
    return np.arange(first, max(first, min(most, math.ceil(mean + reach)) + 1))


def _single(released: Terms) -> tuple[ApproxDP, int]:
    guarantees = {basic(event): count for event, count in released.items()}
    if len(released) != 1:
        raise UnsupportedEvent("a list of different events", METHOD, "Use PLD, which composes any list.")
    ((guarantee, count),) = guarantees.items()
    if count > LARGEST_COUNT:
        raise UnsupportedEvent(f"{count} releases", METHOD, "Use PLD.")
    return guarantee, count


def epsilon(released: Terms, delta: float) -> float:
    """Returns the epsilon of a repeated event."""
    guarantee, count = _single(released)
    total = float_above(guarantee.epsilon) * count
    if homogeneous_delta(guarantee, count, total) > delta:
        return math.inf
    if homogeneous_delta(guarantee, count, 0.0) <= delta:
        return 0.0
    return safe(smallest(lambda at: homogeneous_delta(guarantee, count, at) <= delta, start=total))


def delta(released: Terms, at: float) -> float:
    """Returns the delta of a repeated event."""
    return homogeneous_delta(*_single(released), at)
