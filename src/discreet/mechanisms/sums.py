"""How far weighted sums of independent noise reach: certain distances, and fast ones for many sums at once.

The noise is discrete, the sums are bounded through their continuous kin. A discrete Laplace draw is the difference of
two geometric ones, a geometric draw is the whole part of an exponential one of the same scale, and so discrete and
continuous Laplace noise can be drawn less than one step apart.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InternalError
from discreet.exact import Enclosure
from discreet.lazy import special
from discreet.mechanisms.tails import DIGITS, polynomial_reach

Floats = NDArray[np.float64]

_TAILS = {1: (Fraction(1),), 2: (Fraction(1), Fraction(1, 2)), 3: (Fraction(1), Fraction(5, 8), Fraction(1, 4))}
"""P(|sum of m standard Laplace draws| > x) = e^(-x) sum_j w_j x^j / j!, by repeated convolution."""

_APART = 1.002  # scales nearer than this are separated by raising the larger: a thousandth of the distance
_SAFE = 1 + 1e-9  # covers what doubles lose here: terms below 10^6, of 2^-53 each
_LOST = 1e-9
_LARGEST_SHARE = 1e6
_FEW = 6  # draws, whose fractions are worth trying
_TILTS = np.concatenate([np.geomspace(1e-3, 0.5, 60, endpoint=False), np.linspace(0.5, 0.999, 60)])
_SOME_TILTS = _TILTS[::6]
_FEW_ENOUGH = 64  # numbers, whose distances are kept
_AT_ONCE = 1 << 16  # numbers, which stay in the cache of a processor
_TINY = 1e-300
_RARE = 1e-10
_MOST_TERMS = 1 << 14
_HALVINGS = 28  # of a bracket no wider than its upper end, which is taken


def laplace_sum_reach(scale: Fraction, count: int, outside: Fraction) -> Fraction:
    """Returns a distance that the sum of so many discrete Laplace draws of one scale exceeds at most this often."""
    if count not in _TAILS:
        raise InternalError(f"Expected count={count} to be one of {sorted(_TAILS)}.")
    return scale * _standard_reach(count, outside) + count


@lru_cache(maxsize=4096)
def _standard_reach(count: int, outside: Fraction) -> Fraction:
    return polynomial_reach([Enclosure.of(weight, DIGITS) for weight in _TAILS[count]], outside)


def laplace_reaches(sizes: Floats, steps: Floats, outside: float) -> Floats:
    """Returns for each column a distance that a weighted sum of discrete Laplace draws exceeds at most this often.

    Args:
        sizes: weight times scale, one row for each draw.
        steps: the weights.
        outside: the probability.

    For different s_i, the sum of Laplace draws of scales s_i exceeds t in absolute value with the probability
    sum_i e^(-t / s_i) prod_(j != i) s_i^2 / (s_i^2 - s_j^2), by partial fractions of its characteristic function.
    Larger scales make all tails heavier, so that nearly equal ones may be separated by raising one. Of many draws the
    fractions cancel too much for doubles; then Chernoff's bound serves.

    Questions that are explained, asked and asked again need the same few distances: they are kept.
    """
    if not 0 < sizes.size <= _FEW_ENOUGH:
        return _laplace_reaches(sizes, steps, outside)
    numbers = [np.asarray(part, dtype=np.float64).tobytes() for part in (sizes, steps)]
    return _kept_laplace_reaches(sizes.shape, *numbers, outside).copy()


@lru_cache(maxsize=4096)
def _kept_laplace_reaches(shape: tuple[int, ...], sizes: bytes, steps: bytes, outside: float) -> Floats:
    return _laplace_reaches(np.frombuffer(sizes).reshape(shape), np.frombuffer(steps).reshape(shape), outside)


def _laplace_reaches(sizes: Floats, steps: Floats, outside: float) -> Floats:
    sizes, slack = np.abs(sizes), np.sum(np.abs(steps), axis=0)
    largest = np.maximum(np.max(sizes, axis=0), _TINY)
    relative = sizes / largest
    union = np.sum(relative, axis=0) * math.log(len(sizes) / outside)
    if outside < 1000 * _LOST:
        return np.asarray((np.minimum(union, _chernoff(relative, outside)) * largest + slack) * _SAFE)
    if len(sizes) > 3 and np.min(relative) > 1 - _LOST:
        return np.asarray((_equal_reach(len(sizes), outside) * largest + slack) * _SAFE)
    if len(sizes) > _FEW:
        return np.asarray((_chernoff(relative, outside) * largest + slack) * _SAFE)
    apart = _told_apart(relative)
    shares = _shares(apart)
    cancelling = np.max(np.abs(shares), axis=0) > _LARGEST_SHARE
    low, high = np.full_like(union, math.log(1 / outside)), union * _APART ** len(sizes)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        heavy = np.add.reduce(shares * np.exp(-middle / apart)) > outside - _LOST
        np.copyto(low, middle, where=heavy)
        np.copyto(high, middle, where=~heavy)
    if np.any(cancelling):
        high[cancelling] = _chernoff(relative[:, cancelling], outside)
    return np.asarray((high * largest + slack) * _SAFE)


@lru_cache(maxsize=1024)
def _equal_reach(count: int, outside: float) -> float:
    """Returns a distance that the sum of so many standard Laplace draws exceeds at most so often.

    The sum is the difference of two Gamma draws of that order. The first exceeds the second by more than x if, of two
    Poisson processes, the first has fewer than `count` points until x after the second's last one: x brings a Poisson
    number of them, and the time before it a negative binomial number. All terms are positive.
    """
    before = np.arange(count)
    logs = special.gammaln(count + before) - special.gammaln(before + 1) - special.gammaln(count)
    chances = np.exp(logs - (count + before) * math.log(2))
    low, high = 0.0, float(_chernoff(np.ones((count, 1)), outside)[0])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        heavy = 2 * float(chances @ special.pdtr(count - 1 - before, middle)) > outside - _LOST
        low, high = (middle, high) if heavy else (low, middle)
    return high


def _chernoff(sizes: Floats, outside: float) -> Floats:
    """Returns a distance that the sum of Laplace draws of these sizes, at most 1, exceeds at most so often.

    For every t below 1, P(|S| > x) <= 2 e^(-t x) prod_i 1 / (1 - (t s_i)^2), since that product is the mean of e^(t S).
    So each t gives a distance, and the least of those on a lattice of t is taken.
    """
    count = max(_AT_ONCE // max(sizes.size, 1), 1)
    blocks = [_TILTS[start : start + count, None, None] for start in range(0, len(_TILTS), count)]
    means = np.concatenate([np.sum(-np.log1p(-((tilts * sizes) ** 2)), axis=1) for tilts in blocks])
    return np.asarray(np.min((math.log(2 / outside) + means) / _TILTS[:, None], axis=0))


def repeated_laplace_reach(weights: Floats, scales: Floats, count: int, outside: float) -> float:
    """Returns a distance that many independent weighted sums of discrete Laplace draws exceed at most this often.

    Chernoff's bound as above, with the mean of e^(u Z) of a discrete draw, (1 - p)^2 / ((1 - p e^u) (1 - p e^-u)) for
    p = e^(-1/scale) and |u| < 1/scale: no step is lost to a continuous law, however many draws there are.
    """
    tilts = _TILTS * np.min(1 / (scales * np.abs(weights)))
    logs = sum(laplace_logs(weight, scale, tilts) for weight, scale in zip(weights, scales, strict=True))
    return tilted_reach(count * np.asarray(logs), tilts, outside)


def laplace_tilts(largest: float) -> Floats:
    """Returns tilts for Chernoff's bound of a sum whose largest weight times scale is given."""
    return np.asarray(_TILTS / largest)


def laplace_logs(weight: float, scale: float, tilts: Floats) -> Floats:
    """Returns the logarithms of the mean of e^(tilt weight Z) for a discrete Laplace draw Z, one for each tilt."""
    rate, moved = 1 / scale, tilts * abs(weight)
    return np.asarray(2 * np.log(-np.expm1(-rate)) - np.log(-np.expm1(moved - rate)) - np.log(-np.expm1(-moved - rate)))


def tilted_reach(logs: Floats, tilts: Floats, outside: float) -> float:
    """Returns the least distance that Chernoff's bound gives for a symmetric sum, of those at these tilts."""
    return float(np.min((math.log(2 / outside) + logs) / tilts)) * _SAFE


def repeated_gaussian_reach(weights: Floats, sigmas: Floats, count: int, outside: float) -> float:
    """Returns the same for discrete Gaussian draws: the mean of e^(u Z) is at most e^(u^2 sigma^2 / 2).

    Shown in Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, NeurIPS 2020.
    """
    return math.sqrt(2 * count * float(np.sum((weights * sigmas) ** 2)) * math.log(2 / outside)) * _SAFE


def many_laplace_reaches(weights: Floats, scales: Floats, counts: Floats, outside: float) -> Floats:
    """Returns for each column how far a weighted sum of discrete Laplace draws reaches; a row is many draws.

    Args:
        weights: one row for each kind of draw, one column for each sum.
        scales: of each kind.
        counts: how many draws there are of each.
        outside: the probability.

    The smaller of two: Chernoff's bound as in `repeated_laplace_reach`, and the law of a sum of continuous draws, each
    less than one step away from its discrete one.
    """
    if weights.shape[1] > _FEW_ENOUGH:
        width = max(_AT_ONCE // (len(_SOME_TILTS) * len(weights)), 1)
        blocks = [weights[:, start : start + width] for start in range(0, weights.shape[1], width)]
        return np.concatenate([_many_laplace(np.abs(part), scales, counts, outside, _SOME_TILTS) for part in blocks])
    found = _many_laplace(np.abs(weights), scales, counts, outside, _TILTS)
    if np.sum(counts) <= _FEW:
        rows = np.repeat(np.arange(len(counts)), counts.astype(int))
        return np.asarray(np.minimum(found, laplace_reaches((weights * scales[:, None])[rows], weights[rows], outside)))
    sizes, slacks = np.abs(weights) * scales[:, None], counts @ np.abs(weights)
    laws = [_of_law(tuple(column), tuple(counts), outside) for column in sizes.T]
    return np.array([min(bound, law + slack) for bound, law, slack in zip(found, laws, slacks, strict=True)])


@lru_cache(maxsize=4096)
def _of_law(sizes: tuple[float, ...], counts: tuple[float, ...], outside: float) -> float:
    """Returns a distance that a sum of continuous Laplace draws of these sizes exceeds at most so often.

    With the characteristic function f(t) = prod (1 + s^2 t^2)^-count, which is positive, for every distance d

        P(|S| > x) = 1 - 2 sum_(k >= 0) f(t_k) sin(t_k x) / (pi (k + 1/2)),      t_k = (k + 1/2) 2 pi / d,

    but for at most 2 P(|S| > d - x) (Davies 1973, by Poisson's summation formula). Here d - x is a distance that is
    exceeded with a chance below 10^-10. The terms beyond the last t add up to less than f(t) / (pi p), as f falls at
    least like t^-p from there on, p = sum 2 count s^2 t^2 / (1 + s^2 t^2); there are so many terms that it is below
    10^-10, too, or else there is no such distance.
    """
    relative, many = np.array(sizes) / max(sizes), np.array(counts)
    used = many > 0
    far = float(_chernoff_of(relative[used], many[used], outside))
    rare = float(_chernoff_of(relative[used], many[used], _RARE))
    rates = (np.arange(_MOST_TERMS) + 0.5) * (2 * math.pi / (far + rare))
    squares = (relative[used][:, None] * rates) ** 2
    logs = -(many[used] @ np.log1p(squares))
    powers = 2 * many[used] @ (squares / (1 + squares))
    ended = np.flatnonzero(logs - np.log(math.pi * powers) < math.log(_RARE))
    if not len(ended) or outside < 1000 * _LOST:
        return math.inf
    kept = slice(0, int(ended[0]) + 1)
    terms = np.exp(logs[kept]) / (math.pi * (np.arange(ended[0] + 1) + 0.5))
    low, high = 0.0, far
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        heavy = 1 - 2 * float(terms @ np.sin(rates[kept] * middle)) > outside - _LOST
        low, high = (middle, high) if heavy else (low, middle)
    return high * max(sizes) * _SAFE


def _chernoff_of(sizes: Floats, counts: Floats, outside: float) -> float:
    """Returns chernoff's bound as in `_chernoff`, with so many draws of each size."""
    means = counts @ -np.log1p(-((_TILTS * sizes[:, None]) ** 2))
    return float(np.min((math.log(2 / outside) + means) / _TILTS))


def _many_laplace(weights: Floats, scales: Floats, counts: Floats, outside: float, shares: Floats) -> Floats:
    """Returns chernoff's bound for each column, at these shares of the largest tilt."""
    rates, used = 1 / scales[:, None], np.maximum(weights, _TINY)
    tilts = shares[:, None] * np.min(rates / used, axis=0)
    moved = tilts[:, None, :] * used
    logs = 2 * np.log(-np.expm1(-rates)) - np.log(-np.expm1(moved - rates)) - np.log(-np.expm1(-moved - rates))
    means = np.einsum("tdc,d->tc", logs, counts)
    return np.asarray(np.min((math.log(2 / outside) + means) / tilts, axis=0) * _SAFE)


def many_gaussian_reaches(weights: Floats, sigmas: Floats, counts: Floats, outside: float) -> Floats:
    """Returns the same for discrete Gaussian draws.

    As `gaussian_reaches`: one draw, of those that weigh most, is a rounded normal one, and every other makes the law
    wider and hardly less smooth; the more was added before, the less, so that of equal draws the first represents all.
    Where this is not near, the bound of `repeated_gaussian_reach` serves.
    """
    sizes = np.abs(weights) * sigmas[:, None]
    order = np.argsort(-np.max(sizes, axis=1), kind="stable")
    first = order[0]
    variance, logs = sizes[first] ** 2, np.zeros(sizes.shape[1])
    for row in order:
        count = counts[row] - (row == first)
        smoothed = sigmas[row] ** 2 * variance / np.maximum(variance + sizes[row] ** 2, _TINY)
        logs += count * (np.log1p(_ripple(smoothed)) - math.log(max(1 - float(_ripple(sigmas[row] ** 2)), 0.1)))
        variance = variance + count * sizes[row] ** 2
    price = 2 * _rounding(float(sigmas[first]))
    far = _far(np.maximum(outside - price, outside / 2) / np.exp(np.minimum(logs, 1.0)))
    near = np.sqrt(variance) * far + np.abs(weights[first]) / 2
    certain = np.sqrt(2 * variance * math.log(2 / outside))
    return np.asarray(np.where((price < outside / 4) & (logs < math.log(1.2)), near, certain) * _SAFE)


def _told_apart(sizes: Floats) -> Floats:
    """Returns sizes of at most 1 in their order, each made larger than the one before."""
    ordered = np.maximum(np.sort(sizes, axis=0), 1e-9)
    for i in range(1, len(ordered)):
        ordered[i] = np.maximum(ordered[i], ordered[i - 1] * _APART)
    return ordered


def _shares(sizes: Floats) -> Floats:
    squares = sizes**2
    shares = np.ones_like(sizes)
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            if i != j:
                shares[i] *= squares[i] / (squares[i] - squares[j])
    return shares


def gaussian_reaches(sizes: Floats, steps: Floats, sigmas: Floats, outside: float) -> Floats:
    """Returns the same for discrete Gaussian draws, whose sigmas, in steps, decide how nearly normal they are.

    The draw with the largest sigma is a rounded normal one, up to a small distance of their distribution functions
    (`_rounding`). A normal law of variance v, plus c times a discrete Gaussian draw of variance s^2, has the density of
    a normal law of variance v + c^2 s^2 but for a factor near 1 (`_ripple` at s^2 v / (v + c^2 s^2) over `_ripple` at
    s^2, by completing the square and Poisson's summation formula). Where this is not near, the tails are added up.
    """
    sizes, steps, widest = np.abs(sizes), np.abs(steps), int(np.argmax(sigmas))
    largest = np.maximum(np.max(sizes, axis=0), _TINY)
    squares = (sizes / largest) ** 2
    variance, factor = squares[widest].copy(), np.ones(sizes.shape[1])
    for j in (j for j in range(len(sigmas)) if j != widest):
        smoothed = sigmas[j] ** 2 * variance / np.maximum(variance + squares[j], _TINY)
        factor *= (1 + _ripple(smoothed)) / max(1 - float(_ripple(sigmas[j] ** 2)), 0.1)
        variance += squares[j]
    price = 2 * _rounding(float(sigmas[widest]))
    far = _far(np.maximum(outside - price, outside / 2) / factor)
    near = np.sqrt(variance) * largest * far + steps[widest] / 2
    union = np.sum(sizes, axis=0) * _far(outside / len(sigmas)) + np.sum(steps, axis=0)
    return np.asarray(np.where((price < outside / 4) & (factor < 1.2), near, union) * _SAFE)


def _far(outside: Floats | float) -> Floats:
    """Returns how far a standard normal draw reaches."""
    return np.asarray(-special.ndtri(np.asarray(outside) / 2))


def _ripple(variance: Floats | float) -> Floats:
    """Bounds how far a sum of densities over integers is from 1: below 2.1 q for q = exp(-2 pi^2 variance) <= 1/4."""
    return np.asarray(2.1 * np.exp(-2 * math.pi**2 * np.asarray(variance)))


def _rounding(sigma: float) -> float:
    """Returns at least the distance of the distribution functions of a discrete Gaussian and of a rounded normal law.

    The mass of a cell is its middle's density up to a 24th of the largest second derivative f'' in it, and the sum over
    cells of these maxima is at most the integral of |f''|, 0.968 / sigma^2, and the variation of f'', 1.513 / sigma^3.
    """
    return (0.968 / sigma**2 + 1.513 / sigma**3) / 24 + float(_ripple(sigma**2))
