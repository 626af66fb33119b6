"""What counts of an event certify: lower bounds on epsilon and mu from two binomial samples, and from one run.

Notation: an event S falls in `first` of the runs on one dataset and in `second` of the runs on its neighbour. With
confidence 1 - outside both of these hold at once, each missed with at most outside / 2 (Clopper, Pearson 1934): p >=
p_low on the one, q <= q_up on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.lazy import special
from discreet.mechanisms.randomized_response import clopper_pearson

Floats = NDArray[np.float64]
Chance = Callable[..., float]

_SLACK = 1e-12  # relative, far above the rounding of sums of positive terms


def ends(first: ArrayLike, second: ArrayLike, runs: int, outside: float) -> tuple[Floats, Floats]:
    """Returns p_low and q_up."""
    low, _ = clopper_pearson(_counts(first), runs, outside)
    _, high = clopper_pearson(_counts(second), runs, outside)
    return low, high


def certified_epsilon(first: ArrayLike, second: ArrayLike, runs: int, *, delta: float, outside: float) -> Any:
    """Returns the largest epsilon that the counts refute, at least 0; arrays of counts give arrays.

    Formal guarantee: (epsilon, delta)-DP says p <= e^epsilon q + delta for the event and 1 - q <= e^epsilon (1 - p) +
    delta for its absence, so epsilon >= ln((p_low - delta) / q_up) and epsilon >= ln((1 - q_up - delta) / (1 -
    p_low)). Both use the same two limits: with probability at least 1 - outside both bounds hold, hence the larger.

    Args:
        first: how often the event fell on the dataset where it is likelier.
        second: how often it fell on the other.
        runs: on each.
        delta: of the claim.
        outside: one minus the confidence.

    >>> round(float(certified_epsilon(500, 10, 1000, delta=0, outside=0.05)), 4)
    3.242
    """
    low, high = ends(first, second, runs, outside)
    with np.errstate(divide="ignore", invalid="ignore"):
        fell = np.log(np.maximum(low - delta, 0) / high)
        stayed = np.log(np.maximum(1 - high - delta, 0) / (1 - low))
    return np.maximum(np.maximum(fell, stayed), 0.0)


def absence_epsilon(first: int, second: int, runs: int, *, delta: float, outside: float) -> float:
    """Returns the bound from the absence of the event alone.

    >>> round(absence_epsilon(500, 10, 1000, delta=0, outside=0.05), 4)
    0.6137
    """
    low, high = ends(first, second, runs, outside)
    left = max(1 - float(high) - delta, 0.0)
    return math.log(left / (1 - float(low))) if left else 0.0


def certified_mu(first: ArrayLike, second: ArrayLike, runs: int, *, outside: float) -> Any:
    """Returns the largest mu that the counts refute, at least 0.

    Formal guarantee: mu-GDP says Phi^-1(p) <= Phi^-1(q) + mu for every event (Dong, Roth, Su 2022), so mu >=
    Phi^-1(p_low) - Phi^-1(q_up) with probability at least 1 - outside.

    >>> round(float(certified_mu(500, 10, 1000, outside=0.05)), 4)
    2.011
    """
    low, high = ends(first, second, runs, outside)
    with np.errstate(invalid="ignore"):
        found = special.ndtri(low) - special.ndtri(high)
    return np.maximum(np.nan_to_num(found, nan=0.0, neginf=0.0), 0.0)


def most_epsilon(runs: int, *, delta: float, outside: float) -> float:
    """Returns the most that so many runs can certify: an event in all runs on the one and in none on the other.

    >>> round(most_epsilon(1000, delta=0, outside=0.05), 4)
    5.6006
    """
    return float(certified_epsilon(runs, 0, runs, delta=delta, outside=outside))


def one_run_chance(canaries: int, guesses: int, correct: int, *, epsilon: float, delta: float) -> float:
    """Returns the largest probability, under (epsilon, delta)-DP, that so many of the guesses about canaries are right.

    Formal guarantee: let each of m canaries be included by a fair coin of its own, and let r guesses be made from the
    output of a mechanism that is (epsilon, delta)-DP with respect to adding or removing one canary. Then

        P(right >= v) <= P(B >= v) + m delta max_k g_k,   B of law Bin(r, e^epsilon / (1 + e^epsilon)),

    g_k = P(B >= v) P(B < k) / (k P(B = k)) for k <= v, and smaller for k > v. *Proof.* Flip a random set of coins
    together with the guesses about them, and permute the canaries: the mixture is as private, and as often right. So
    every answer with w right guesses may be taken to have one probability, and a_w = P(right = w) is all that matters.
    Two inputs that differ in one coin give the answers in which that coin is guessed rightly an excess of (1/m) sum_w
    (w a_w - e^epsilon (r - w + 1) a_(w-1))_+ <= delta. Write w a_w = e^epsilon (r - w + 1) a_(w-1) + s_w - d_w with s,
    d >= 0 and sum s <= m delta. This recursion is linear: a is a multiple of the binomial law plus, for each k, (s_k -
    d_k) / k times that law from k on, divided by P(B = k). With sum a = 1, P(right >= v) = P(B >= v) + sum_k (s_k -
    d_k) g_k, g_k >= 0. For k > v, g_k = P(B < v) P(B >= k) / (k P(B = k)), which falls in k, as B is log-concave. For
    delta = 0 it is Proposition 5.1 of Steinke, Nasr, Jagielski 2023.
    """
    reached = float(special.bdtrc(correct - 1, guesses, special.expit(epsilon))) if correct else 1.0
    extra = canaries * delta * reached * _steepest(guesses, correct, epsilon) if delta else 0.0
    return min(1.0, (reached + extra) * (1 + _SLACK))


def _steepest(guesses: int, correct: int, epsilon: float) -> float:
    """Returns the largest P(B < k) / (k P(B = k)) for k from 1 to `correct`, by the recursion of its terms."""
    below, found = 0.0, 0.0  # P(B < k) / P(B = k)
    shrink = math.exp(-epsilon)
    for k in range(1, correct + 1):
        below = (below + 1) * shrink * k / (guesses - k + 1)
        found = max(found, below / k)
    return found


def published_one_run_chance(canaries: int, guesses: int, correct: int, *, epsilon: float, delta: float) -> float:
    """Returns the bound of Steinke, Nasr, Jagielski 2023 for delta > 0, for comparison.

    P(B >= v) + 2 m delta max_i P(v - i <= B < v) / i. In the upper tail, where audits live, it is larger than
    `one_run_chance`; below the mean of B it can be smaller than what some mechanism reaches: m = r = 2, v = 1, epsilon
    = 1, delta = 0.1 give 0.9566, and the linear program in the tests finds 0.9618.
    """
    q = float(special.expit(epsilon))
    reached = float(special.bdtrc(correct - 1, guesses, q)) if correct else 1.0
    if not delta or not correct:
        return min(1.0, reached)
    below = np.cumsum(_binomial(np.arange(correct - 1, -1, -1), guesses, q))
    return min(1.0, reached + 2 * canaries * delta * float(np.max(below / np.arange(1, correct + 1))))


def safe_one_run_chance(canaries: int, guesses: int, correct: int, *, epsilon: float, delta: float) -> float:
    """Returns the larger of the published bound and ours, so that no audit rests on one proof alone."""
    return max(
        one_run_chance(canaries, guesses, correct, epsilon=epsilon, delta=delta),
        published_one_run_chance(canaries, guesses, correct, epsilon=epsilon, delta=delta),
    )


def one_run_epsilon(
    canaries: int, guesses: int, correct: int, *, delta: float, outside: float, chance: Chance = safe_one_run_chance
) -> float:
    """Returns the largest epsilon at which so many right guesses have a chance of at most `outside`, rounded down.

    >>> round(one_run_epsilon(1000, 100, 100, delta=0, outside=0.05), 4)
    3.493
    >>> round(one_run_epsilon(1000, 100, 95, delta=1e-5, outside=0.05), 4)
    2.1652
    >>> round(one_run_epsilon(1000, 100, 95, delta=1e-5, outside=0.05, chance=one_run_chance), 4)
    2.1719
    """

    def is_refuted(epsilon: float) -> bool:
        return chance(canaries, guesses, correct, epsilon=epsilon, delta=delta) <= outside

    if not is_refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while is_refuted(high) and high < 700:
        low, high = high, 2 * high
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def _binomial(k: NDArray[np.int64], n: int, q: float) -> Floats:
    logs = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(logs + special.xlogy(k, q) + special.xlog1py(n - k, -q)))


def _counts(hits: ArrayLike) -> NDArray[Any]:
    return np.asarray(hits, dtype=np.float64)
