"""Amplification by shuffling: what reports of the local model cost when it stays hidden who sent which.

Let a randomizer be epsilon-DP, and let R0, R1 be its laws on the two values that one person may have. As for every
pair of laws with this ratio, R0 = r Q0 + (1 - r) Q1 and R1 = (1 - r) Q0 + r Q1 for some laws Q0, Q1 and
r = e^epsilon / (e^epsilon + 1) (Kairouz, Oh, Viswanath 2015). Every other person's law is at least e^-epsilon R0 and at
least e^-epsilon R1, hence at least e^-epsilon (R0 + R1) / 2 = e^-epsilon (Q0 + Q1) / 2: with probability e^-epsilon
their report is a *clone*, drawn from Q0 or Q1 by a fair coin. Reveal all reports that are neither clones nor the one
person's, and of the rest how many came from Q0 and Q1; what is observed in truth is a random function of this. With C
clones, C ~ Bin(n - 1, e^-epsilon), A ~ Bin(C, 1/2) of them from Q0, and D = 1 with probability r, the pair

    (A + D, C - A + 1 - D)    against    (A + 1 - D, C - A + D)

is thus at least as easy to tell apart as the shuffled reports (Feldman, McMillan, Talwar 2021, Theorem 3.1).
Randomized response over k options is Q0 = one value, Q1 = the other, with p = 1 / (e^epsilon + k - 1): another person's
report is one of the two with probability 2 p, and the one person's report is a third value, the same in both worlds,
with probability 1 - p - e^epsilon p. So the clones are Bin(n - 1, 2 p), and all of it is multiplied by
p + e^epsilon p.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import float_above, float_below
from discreet.lazy import special, stats
from discreet.privacy.events import Event, Pure, RandomizedResponse

Floats = NDArray[np.float64]

MOST_REPORTS = 10**10
_DEVIATIONS = 12.0  # of the number of clones; beyond, less than 2 exp(-12^2 / 3) is left, and is paid for
_BLOCKS = 1024  # of numbers of clones; of many, several are looked at as one
_SLACK = 1e-9  # relative; probabilities and tails of binomial laws were seen to be off by 2e-11 at such numbers
_CLOSE = 1e-6  # relative, of the epsilon that is found


@dataclass(frozen=True, slots=True)
class _Clones:
    """All that a bound depends on: the loss of one report, how likely another hides it, how many others there are."""

    epsilon: float
    probability: float
    share: float
    others: int


def shuffled_delta(event: Event, reports: int, epsilon: check.Number) -> float:
    """Returns a delta such that the shuffled reports are (epsilon, delta)-DP for each of their senders.

    Args:
        event: what one report costs without shuffling: `Pure`, or `RandomizedResponse`, whose bound is tighter, if
            all people report one of the same options.
        reports: how many are shuffled together, all of them made by this randomizer.
        epsilon: at least 0.

    Raises:
        InvalidParameter: outside these domains.
        UnsupportedEvent: for any other event.

    Formal guarantee: for neighbours that differ in one person's value, n being public. The order of reports, and
    everything else that shows who sent which, must be hidden by a trusted shuffler.

    >>> shuffled_delta(Pure(1), 10_000, 0.06) < 1e-6
    True
    """
    return _delta(_clones(event, reports), float_below(check.not_negative(epsilon=epsilon)))


def shuffled_epsilon(event: Event, reports: int, delta: check.Number) -> float:
    """Returns the least epsilon, rounded up, at which the shuffled reports are (epsilon, delta)-DP.

    Args:
        event: what one report costs without shuffling: `Pure` or `RandomizedResponse`.
        reports: how many are shuffled together.
        delta: strictly between 0 and 1.

    Raises:
        InvalidParameter: outside these domains.
        UnsupportedEvent: for any other event.

    >>> round(shuffled_epsilon(Pure(1), 10_000, 1e-6), 4)
    0.053
    """
    clones, wanted = _clones(event, reports), float_below(check.probability(delta=delta))
    low, high = 0.0, clones[0].epsilon  # ends on the safe side: `high` was tried, or is the loss of one report
    if _delta(clones, low) <= wanted:
        return low
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(clones, middle) <= wanted else (middle, high)
    return high


def _clones(event: Event, reports: int) -> tuple[_Clones, ...]:
    """Returns the clones of any randomizer with this epsilon and, if its law is known, those of this one."""
    count = check.integer(reports=reports, at_least=1, at_most=MOST_REPORTS)
    if not isinstance(event, Pure | RandomizedResponse):
        raise UnsupportedEvent(event, "shuffling", "Pass the Pure or RandomizedResponse event of one report.")
    if event.epsilon > 64:
        raise InvalidParameter("epsilon", event.epsilon, "<= 64", "Shuffling does not help a larger epsilon.")
    epsilon = float_above(event.epsilon)
    general = _Clones(epsilon, math.exp(-epsilon) * (1 - _SLACK), 1.0, count - 1)
    if isinstance(event, Pure):
        return (general,)
    p = 1 / (math.exp(epsilon) + event.options - 1)
    share = min(1.0, p * (1 + math.exp(epsilon)) * (1 + _SLACK))
    return general, _Clones(epsilon, 2 * p * (1 - _SLACK), share, count - 1)


def _delta(bounds: tuple[_Clones, ...], epsilon: float) -> float:
    """Returns the least of the bounds; 0 from the randomizer's own epsilon on."""
    return 0.0 if epsilon >= bounds[0].epsilon else min(_divergence(clones, epsilon) for clones in bounds)


def _divergence(clones: _Clones, epsilon: float) -> float:
    """Returns the hockey-stick divergence over all numbers of clones, with omitted and rounded parts added."""
    counts, weights, left_out = _numbers(clones)
    total = float(np.sum(weights * _divergence_by_clones(counts, clones.epsilon, epsilon)))
    return min(1.0, clones.share * (total + left_out))


@lru_cache(maxsize=64)
def _numbers(clones: _Clones) -> tuple[Floats, Floats, float]:
    """Numbers of clones, at least their probabilities, and the probability of all smaller numbers.

    Fewer clones hide less, since anyone can add one: a block of numbers counts as its smallest, all that are larger as
    the last. The binomial law has one peak, so a block has at most its size times the largest of its two ends, or the
    peak if that is inside.
    """
    n, p = clones.others, clones.probability
    spread = _DEVIATIONS * math.sqrt(n * p * (1 - p)) + _DEVIATIONS**2
    low, high = max(0, math.floor(n * p - spread)), min(n, math.ceil(n * p + spread))
    step = -(-(high - low + 1) // _BLOCKS)
    starts = np.arange(low, high + 1, step)
    stops = np.minimum(starts + step - 1, high)
    peak = np.clip(math.floor((n + 1) * p), starts, stops)
    masses = np.maximum.reduce([stats.binom.pmf(at, n, p) for at in (starts, stops, peak)])
    weights = masses * (stops - starts + 1) * (1 + _SLACK)
    weights[-1] += float(stats.binom.sf(high, n, p)) * (1 + _SLACK)
    return starts.astype(np.float64), weights, float(stats.binom.cdf(low - 1, n, p)) * (1 + _SLACK)


def _divergence_by_clones(counts: Floats, loss: float, epsilon: float) -> Floats:
    """Returns at least the divergence for each number of clones c.

    The odds of the two worlds grow with the first count a, and exceed e^epsilon from a > (c + 1) s on, with
    s = (e^(loss + epsilon) - 1) / ((e^loss - 1) (e^epsilon + 1)). A bound that is off by one through rounding misses a
    term near zero, which the slack covers.
    """
    share = math.expm1(loss + epsilon) / (math.expm1(loss) * (math.exp(epsilon) + 1))
    first = np.floor((counts + 1) * share) + 1
    truth = 1 / (1 + math.exp(-loss))
    more, less = truth - math.exp(epsilon) * (1 - truth), math.exp(epsilon) * truth - (1 - truth)
    gain, cost = more * _at_least(first - 1, counts), less * _at_least(first, counts)
    return np.asarray(np.maximum(gain - cost, 0.0) + _SLACK * (gain + cost))


def _at_least(least: Floats, counts: Floats) -> Floats:
    """Returns the probability that so many of the clones, or more, come from the first law."""
    inside = np.clip(least, 1, np.maximum(counts, 1))
    tail = special.betainc(inside, np.maximum(counts, 1) - inside + 1, 0.5)
    return np.where(least <= 0, 1.0, np.where(least > counts, 0.0, tail))
