"""Ways from answers back to bits: least squares, a linear program, all databases at once, a fast transform.

Each takes queries as a matrix with a row for each query and a column for each person, and one answer for each row.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.lazy import optimize, sparse, special

Floats = NDArray[np.float64]
Bools = NDArray[np.int8]

LARGEST_EXHAUSTIVE = 20  # people: a million databases
_SMALLEST_PIVOT = 1e-6  # below, equations of whole numbers are the same up to rounding
_BLOCK = 1 << 22  # answers of candidates that are held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructedBits:
    """Holds the bits that a solver found.

    Attributes:
        bits: of each person, 0 or 1.
        expected: the share of bits that should be right, as far as that follows without the truth; None if it does not.
        certain: the share of bits that must be right, by a theorem about errors of at most alpha; None without one.
    """

    bits: Bools
    expected: float | None
    certain: float | None = None


def phi(z: float) -> float:
    """Returns the normal distribution function."""
    return float(special.ndtr(z))


def least_squares(
    queries: Floats, answers: Floats, *, noise: float | None, inverse: Floats | None = None
) -> ReconstructedBits:
    """Returns the real numbers with the least squared error, rounded at one half (Dinur, Nissim 2003).

    Independent normal errors of standard deviation s leave person i's number off by s sqrt(c_i), with c the diagonal of
    (A'A)^-1, so that a share of mean Phi(1 / (2 s sqrt(c_i))) of the bits come out right. With m random subsets of n
    people that is about Phi(sqrt(m - n) / (4 s)). Without `noise`, s is estimated from the residuals.

    Args:
        queries: a row for each.
        answers: one for each.
        noise: s, if it is known.
        inverse: (A'A)^-1, if it is at hand.
    """
    rows, people = queries.shape
    known = normal_inverse(queries) if inverse is None else inverse
    if known is None:
        return ReconstructedBits(bits=_round_to_bits(np.asarray(np.linalg.lstsq(queries, answers)[0])), expected=None)
    found = known @ (queries.T @ answers)
    spread = noise
    if noise is None and rows > people:
        spread = float(np.linalg.norm(answers - queries @ found)) / math.sqrt(rows - people)
    return ReconstructedBits(bits=_round_to_bits(found), expected=None if spread is None else _right(known, spread))


def normal_inverse(queries: Floats) -> Floats | None:
    """Returns (A'A)^-1; None if there is none, as when some people were only asked about together."""
    rows, people = queries.shape
    if rows < people:
        return None
    gram = queries.T @ queries
    with suppress(np.linalg.LinAlgError):
        pivots = np.linalg.cholesky(gram).diagonal()
        if pivots.min() > _SMALLEST_PIVOT * pivots.max():
            return np.asarray(np.linalg.inv(gram))
    return None


def _right(inverse: Floats, noise: float) -> float:
    if noise <= 0:
        return 1.0
    return float(np.mean(special.ndtr(0.5 / (noise * np.sqrt(inverse.diagonal())))))


def predicted_share(rows: int, people: int, noise: float) -> float:
    """Returns the share of bits that least squares gets right from many random subsets: Phi(sqrt(m - n) / (4 s)).

    >>> round(predicted_share(512, 128, 0.25 * 128**0.5), 3), round(predicted_share(1280, 128, 2 * 128**0.5), 3)
    (0.958, 0.646)
    """
    return phi(math.sqrt(max(rows - people, 0)) / (4 * noise)) if noise > 0 else 1.0


def linear_program(queries: Floats, answers: Floats, *, alpha: float | None, noise: float | None) -> ReconstructedBits:
    """Returns numbers from 0 to 1 with the least sum of absolute errors, or with none above alpha, rounded at one half.

    A few arbitrarily wrong answers hardly move the least sum (Dwork, McSherry, Talwar 2007). For normal errors its
    numbers have pi/2 times the variance of least squares; the limits 0 and 1 make them better, which is not counted in
    what is expected.

    Raises:
        InvalidParameter: if no numbers keep all errors within alpha.
    """
    rows, people = queries.shape
    if alpha is None:
        slack = sparse.eye_array(rows)
        spread = sparse.hstack([sparse.csr_array(queries), slack, -slack], format="csr")
        cost = np.concatenate([np.zeros(people), np.ones(2 * rows)])
        limits = [(0.0, 1.0)] * people + [(0.0, None)] * (2 * rows)
        result = optimize.linprog(cost, A_eq=spread, b_eq=answers, bounds=limits, method="highs")
    else:
        sides = np.concatenate([answers + alpha, alpha - answers])
        result = optimize.linprog(np.zeros(people), A_ub=np.vstack([queries, -queries]), b_ub=sides, bounds=(0.0, 1.0))
    if result.status != 0:
        raise inconsistent(alpha)
    bits = _round_to_bits(np.asarray(result.x)[:people])
    spread_out = math.sqrt(float(np.mean((answers - queries @ bits) ** 2))) if noise is None else noise
    expected = predicted_share(rows, people, spread_out * math.sqrt(math.pi / 2)) if rows > people else None
    return ReconstructedBits(bits=bits, expected=expected)


def exhaustive(queries: Floats, answers: Floats, *, alpha: float | None, noise: float | None) -> ReconstructedBits:
    """Tries all 2^n databases: the likeliest under normal errors, or one whose errors are all within alpha.

    Formal guarantee: if all 2^n subsets were asked and every answer is within alpha of the truth, every database that
    is within alpha of all answers differs from the true one in at most 4 alpha places (Dinur, Nissim 2003): the people
    with a 1 in one and a 0 in the other are a subset whose two sums are within 2 alpha, and so are the others.

    What is expected to be right is the mean of each bit's chance, when all databases were equally likely before.
    """
    rows, people = queries.shape
    if people > LARGEST_EXHAUSTIVE:
        hint = Hint('Pass {method:"least_squares"}.')
        raise InvalidParameter("queries", f"{people} people", f"about at most {LARGEST_EXHAUSTIVE} people", hint)
    errors = _squares(queries, answers)
    if alpha is not None:
        kept = _consistent(queries, answers, alpha)
        best, weights = int(kept[np.argmin(errors[kept])]), np.ones(len(kept))
    else:
        kept, best = np.arange(1 << people), int(np.argmin(errors))
        weights = _likelihoods(errors, float(errors[best]), rows, noise)
    chances = np.array([weights[(kept >> place & 1) == (best >> place & 1)].sum() for place in range(people)])
    bits = (best >> np.arange(people) & 1).astype(np.int8)
    certain = None if alpha is None or not _every_subset(queries) else max(0.0, 1 - 4 * alpha / people)
    return ReconstructedBits(bits=bits, expected=float(chances.mean() / weights.sum()), certain=certain)


def hadamard(queries: Floats | None, answers: Floats, *, alpha: float | None, noise: float | None) -> ReconstructedBits:
    """Returns the inverse of n queries with weights +1 and -1 that are orthogonal to each other, in n log n steps.

    Formal guarantee: with errors of at most alpha, at most a share of 4 alpha^2 / n of the bits is wrong: the transform
    keeps lengths, so that the squared errors of the n numbers sum to at most alpha^2, and each wrong bit takes 1/4.

    Args:
        queries: None for Sylvester's matrix, in the order of `scipy.linalg.hadamard`.
        answers: one for each query; as many as there are people.
        alpha: the largest error of an answer, if it is known.
        noise: the standard deviation of the errors, if it is known.
    """
    size = len(answers)
    found = (hadamard_transform(answers) if queries is None else queries.T @ answers) / size
    certain = None if alpha is None else max(0.0, 1 - 4 * alpha**2 / size)
    expected = certain if noise is None else phi(math.sqrt(size) / (2 * noise)) if noise > 0 else 1.0
    return ReconstructedBits(bits=_round_to_bits(found), expected=expected, certain=certain)


def hadamard_transform(values: Floats) -> Floats:
    """Returns the Walsh-Hadamard transform of 2^k numbers: Sylvester's matrix times them.

    >>> [float(value) for value in hadamard_transform(np.array([1.0, 0.0, 1.0, 0.0]))]
    [2.0, 2.0, 0.0, 0.0]
    """
    found, half = np.array(values, dtype=np.float64), 1
    while half < len(found):
        pairs = found.reshape(-1, 2, half)
        found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return found


def inconsistent(alpha: float | None) -> InvalidParameter:
    """Returns the error for answers that no database fits."""
    return InvalidParameter(
        "alpha", alpha, "to be kept in all answers by some database", "Raise alpha, or leave it out for the best fit."
    )


def _round_to_bits(values: Floats) -> Bools:
    return (values > 0.5).astype(np.int8)


def _squares(queries: Floats, answers: Floats) -> Floats:
    """Returns the squared error of every database: a sum over its two halves of people and over pairs between them."""
    people = queries.shape[1]
    low = people // 2
    gram, line = queries.T @ queries, queries.T @ answers
    first, last = _cube(low), _cube(people - low)
    own = [
        np.einsum("bi,ij,bj->b", half, gram[part, part], half) - 2 * half @ line[part]
        for half, part in ((first, slice(0, low)), (last, slice(low, people)))
    ]
    mixed = 2 * last @ gram[low:, :low] @ first.T
    return np.asarray((mixed + own[1][:, None] + own[0][None, :]).ravel() + float(answers @ answers))


def _cube(people: int) -> Floats:
    return (np.arange(1 << people)[:, None] >> np.arange(people) & 1).astype(np.float64)


def _consistent(queries: Floats, answers: Floats, alpha: float) -> NDArray[np.int64]:
    """Returns the databases that keep all errors within alpha.

    Queries are taken in growing blocks as candidates get fewer.
    """
    places = 1 << np.arange(queries.shape[1])
    plus, minus = (queries == 1) @ places, (queries == -1) @ places
    kept, start = np.arange(1 << queries.shape[1]), 0
    slack = alpha + 1e-9 * (1 + float(np.abs(answers).max()))  # answers that are off by alpha exactly, in floats
    while start < len(queries) and len(kept):
        block = slice(start, start + max(1, _BLOCK // len(kept)))
        sums = np.bitwise_count(kept[:, None] & plus[block]).astype(np.int64)
        sums -= np.bitwise_count(kept[:, None] & minus[block])
        kept, start = kept[(np.abs(sums - answers[block]) <= slack).all(axis=1)], block.stop
    if not len(kept):
        raise inconsistent(alpha)
    return kept


def _every_subset(queries: Floats) -> bool:
    """Returns whether each subset of people was asked about."""
    people = queries.shape[1]
    if len(queries) < 1 << people or not np.isin(queries, (0, 1)).all():
        return False
    return bool(len(np.unique(queries.astype(np.int64) @ (1 << np.arange(people)))) == 1 << people)


def _likelihoods(errors: Floats, least: float, rows: int, noise: float | None) -> Floats:
    """Returns likelihoods up to a factor; unknown noise gets the variance of the best database's errors."""
    variance = least / rows if noise is None else noise**2
    if variance < 1e-9:  # exact answers, up to the rounding of floats
        return (errors <= least + 1e-6).astype(np.float64)
    return np.asarray(np.exp((least - errors) / (2 * variance)))
