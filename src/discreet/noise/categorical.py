"""One choice among many with probabilities proportional to w_i exp(-rate k_i), exactly.

The float cumulative sums decide unless the uniform draw falls within their error of a boundary; then the sums are
computed again by enclosures, and the same uniform draw is continued, until one choice is certain.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InternalError
from discreet.exact import Enclosure, settle
from discreet.noise.coin import LARGEST, RELATIVE_ERROR, exponential, exponentials
from discreet.noise.real import LazyUniform
from discreet.noise.rng import Bits

_FEW = 24  # numbers, for which a loop is faster than an array


def choose_exponential(
    steps: NDArray[np.int64], rate: Fraction, bits: Bits, weights: NDArray[np.int64] | None = None
) -> int:
    """Returns an index i drawn with probability proportional to weights_i exp(-rate steps_i).

    Args:
        steps: whole numbers of at least 0, with a 0 at an index of positive weight.
        rate: a positive rational.
        bits: the source of randomness.
        weights: whole numbers of at least 0, below 2^62; None is all ones.

    Returns:
        The index; its law is exact.

    >>> from discreet.noise import SeededBits
    >>> steps, bits = np.array([0, 1, 3]), SeededBits(7)
    >>> drawn = [choose_exponential(steps, Fraction(1), bits) for _ in range(1000)]
    >>> [drawn.count(index) for index in range(3)]  # 705.4, 259.5 and 35.1 are expected
    [706, 248, 46]
    """
    counts = np.ones_like(steps) if weights is None else weights
    possible = np.flatnonzero(counts > 0)
    if not possible.size or steps[possible].min() != 0:
        raise InternalError("A choice needs an index of positive weight at zero steps.")
    uniform = LazyUniform(bits)
    kept, sizes = steps[possible], counts[possible]
    guess = _guess(kept, rate, sizes, uniform)
    return int(possible[_settle(kept, rate, sizes, uniform) if guess is None else guess])


def _guess(steps: NDArray[np.int64], rate: Fraction, weights: NDArray[np.int64], uniform: LazyUniform) -> int | None:
    """Returns the choice if floats are certain of it. Their sums err by the error of each term and of n additions."""
    sums, forgotten = (_few_sums if steps.size <= _FEW else _sums)(steps, float(rate), weights)
    total = float(sums[-1])
    error = 4 * (total * (2 * RELATIVE_ERROR + steps.size * 2.0**-52) + forgotten * 2.0**-92)
    target = float(uniform(20).low) * total
    index = bisect_right(sums, target)
    below = float(sums[index - 1]) if index else -math.inf
    above = float(sums[index]) if index < len(sums) - 1 else math.inf
    return index if below + error < target < above - error else None


def _sums(steps: NDArray[np.int64], rate: float, weights: NDArray[np.int64]) -> tuple[Sequence[float], float]:
    """Returns the sums of weights up to each index, and the weights of those that are too small to be added up."""
    with np.errstate(over="ignore"):  # infinity is beyond LARGEST, too
        x = steps.astype(np.float64) * rate
    sums = np.cumsum(np.where(x > LARGEST, 0.0, exponentials(np.minimum(x, LARGEST))) * weights.astype(np.float64))
    return sums, float(weights[x > LARGEST].astype(np.float64).sum())  # type: ignore[return-value]


def _few_sums(steps: NDArray[np.int64], rate: float, weights: NDArray[np.int64]) -> tuple[Sequence[float], float]:
    """Returns the same without the cost of arrays."""
    sums, total, forgotten = [], 0.0, 0.0
    for step, weight in zip(steps.tolist(), weights.tolist(), strict=True):
        x = float(step) * rate
        if x > LARGEST:
            forgotten += float(weight)
        else:
            total += exponential(x) * float(weight)
        sums.append(total)
    return sums, forgotten


def _settle(steps: NDArray[np.int64], rate: Fraction, weights: NDArray[np.int64], uniform: LazyUniform) -> int:
    return settle(lambda digits: _decide(steps, rate, weights, uniform(digits)))


def _decide(steps: NDArray[np.int64], rate: Fraction, weights: NDArray[np.int64], uniform: Enclosure) -> int:
    digits = uniform.digits
    powers = {step: Enclosure.of(-rate * step, digits).exp() for step in set(steps.tolist())}
    sums = [Enclosure.of(0, digits)]
    for step, weight in zip(steps.tolist(), weights.tolist(), strict=True):
        sums.append(sums[-1] + powers[step] * weight)
    target = uniform * sums[-1]
    for index, bound in enumerate(sums[1:-1]):
        if target.below(bound):
            return index
    return len(steps) - 1
