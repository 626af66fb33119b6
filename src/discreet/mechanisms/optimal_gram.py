"""The Gram matrix of the Gaussian strategy with the least total variance for a workload, within proven bounds.

Notation: W the workload (queries by cells), V = W^T W, A a strategy whose columns have norm at most 1, X = A^T A,
lambda one weight per cell, D = diag(sqrt(lambda)), R = (D V D)^(1/2).

Answers W A^+ (A x + N(0, I)) have the total variance tr(V X^-1), so that the best X solves a convex program with the
constraint diag X <= 1 (Li, Miklau, Hay, McGregor, Rastogi 2015; Yuan, Yang, Zhang, Hao 2016). Its dual is
max 2 tr R - sum(lambda), and where X = D^-1 R D^-1 has a diagonal of ones both are equal. That is a fixed point,
lambda = diag R (Denisov, McMahan, Rush, Smith, Thakurta 2022). Whatever lambda is,

    (tr R)^2 / sum(lambda)  <=  optimum  <=  tr(V Y^-1),  Y = X scaled to a diagonal of ones.

Both ends are computed in every round; their distance, not the size of a step, says when to stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import linalg

Floats = NDArray[np.float64]

MOST_CELLS = 4096  # a round is an eigendecomposition, of a cubic cost
PRECISION = 1e-6  # of the total variance, relative
_ROUNDS = 200
_MEMORY = 6  # earlier rounds that a step looks back to
_LONGEST = 4.0  # step of ln lambda, which no workload needs
_SINGULAR = 1e-13  # relative: below, floats cannot tell a small eigenvalue from none


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimalGram:
    """A feasible Gram matrix, and between which numbers the least total variance lies.

    Attributes:
        gram: X, positive definite, diag X <= 1 up to the rounding of floats: a strategy made of it is rounded to a
            public grid, and its sensitivity is computed from what was rounded.
        total_variance: tr(V X^-1), the total variance of the answers for noise of variance 1.
        lower_bound: no strategy of the same sensitivity has less.
        rounds: how many there were.
    """

    gram: Floats
    total_variance: float
    lower_bound: float
    rounds: int

    def triangular_factor(self) -> Floats:
        """Returns the lower-triangular C with C^T C = X, by which a stream can be released as it comes.

        X with its rows and columns in reverse order is L L^T by Cholesky; C is L^T, in reverse order.
        """
        reverse = np.linalg.cholesky(self.gram[::-1, ::-1])
        return np.ascontiguousarray(reverse.T[::-1, ::-1])


def optimal_gram(workload_gram: Floats, *, basis: Floats | None = None, precision: float = PRECISION) -> OptimalGram:
    """Returns the best Gram matrix for a workload of full rank.

    Args:
        workload_gram: V = W^T W, symmetric and positive definite.
        basis: r by n, for a workload W = Z B of lower rank r. Then V is Z^T Z, strategies are A = M B, what is
            returned is M^T M, and the constraint is that all columns of A have norm at most 1.
        precision: how far the total variance may be from the optimum, relative.

    Raises:
        InvalidParameter: if the matrix is not square, finite, symmetric and positive definite, or is too large.

    >>> prefixes = np.tril(np.ones((8, 8)))
    >>> found = optimal_gram(prefixes.T @ prefixes)
    >>> round(found.total_variance / 8, 4), found.total_variance < found.lower_bound * (1 + 1e-6)
    (2.2333, True)
    """
    problem = _Problem(_positive_definite(workload_gram), None if basis is None else np.asarray(basis, dtype=float))
    if not 0 < precision < 1:
        raise InvalidParameter("precision", precision, "between 0 and 1")
    lower, best, rounds = 0.0, problem.solve(np.zeros(problem.cells)), 0
    for found in _rounds(problem, best):
        rounds += 1
        lower = max(lower, found.lower)
        best = min(best, found, key=lambda solution: solution.upper)
        if best.upper <= lower * (1 + precision):
            break
    return OptimalGram(gram=problem.feasible(best), total_variance=best.upper, lower_bound=lower, rounds=rounds)


def _positive_definite(matrix: Floats) -> Floats:
    found = np.asarray(matrix, dtype=np.float64)
    name, shown = "workload_gram", f"an array of shape {found.shape}"
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size:
        raise InvalidParameter(name, shown, "to be square and not empty", "Pass W.T @ W.")
    check.integer(cells=len(found), at_most=MOST_CELLS)
    if not np.isfinite(found).all() or not np.allclose(found, found.T, rtol=1e-9, atol=0):
        raise InvalidParameter(name, shown, "to be finite and symmetric", "Pass W.T @ W.")
    spectrum = np.linalg.eigvalsh(found)
    if not spectrum[0] > _SINGULAR * spectrum[-1]:
        hint = "Merge the cells that no query distinguishes. For a workload of lower rank, pass a basis."
        raise InvalidParameter(name, shown, "to be positive definite", hint)
    return (found + found.T) / 2


@dataclass(frozen=True, slots=True, eq=False)
class _Solution:
    """What a vector of weights gives: X before it is scaled, its diagonal, and both bounds."""

    logs: Floats
    gram: Floats
    diagonal: Floats
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Minimise tr(V Y^-1) over Y with b^T Y b <= 1 for all columns b of a basis, the unit vectors if there is none.

    With B diag(lambda) B^T = K K^T the conditions of optimality give Y = K^-T (K^T V K)^(1/2) K^-1; for B = I it is the
    formula above. The bounds hold likewise, with B diag(lambda) B^T in place of diag(lambda).
    """

    gram: Floats
    basis: Floats | None

    @property
    def cells(self) -> int:
        return int(self.gram.shape[0] if self.basis is None else self.basis.shape[1])

    def solve(self, logs: Floats) -> _Solution:
        weights = np.exp(logs)
        return self._diagonal(logs, weights) if self.basis is None else self._general(logs, weights, self.basis)

    def _diagonal(self, logs: Floats, weights: Floats) -> _Solution:
        root = np.sqrt(weights)
        values, vectors = _square_root(root[:, None] * self.gram * root)
        diagonal = (vectors * vectors) @ values / weights  # of X
        scaled = vectors * (root * np.sqrt(diagonal))[:, None]
        upper = float(np.sum(scaled * (self.gram @ scaled), axis=0) @ (1 / values))
        gram = (vectors / root[:, None] * values) @ (vectors / root[:, None]).T
        return _Solution(logs, gram, diagonal, float(np.sum(values)) ** 2 / float(np.sum(weights)), upper)

    def _general(self, logs: Floats, weights: Floats, basis: Floats) -> _Solution:
        factor = np.linalg.cholesky((basis * weights) @ basis.T)
        values, vectors = _square_root(factor.T @ self.gram @ factor)
        inverse = linalg.solve_triangular(factor, vectors, lower=True, trans="T")  # K^-T Q
        gram = (inverse * values) @ inverse.T
        diagonal = np.sum(basis * (gram @ basis), axis=0)
        total = float(np.sum(values))
        return _Solution(logs, gram, diagonal, total**2 / float(np.sum(weights)), total * float(np.max(diagonal)))

    def feasible(self, solution: _Solution) -> Floats:
        """Scales the Gram matrix such that no column is longer than 1."""
        if self.basis is not None:
            return solution.gram / float(np.max(solution.diagonal))
        lengths = np.sqrt(solution.diagonal)
        return np.asarray(solution.gram / (lengths[:, None] * lengths))


def _square_root(matrix: Floats) -> tuple[Floats, Floats]:
    """Returns the eigenvalues of the square root of a symmetric matrix, and its eigenvectors."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.sqrt(np.maximum(values, _SINGULAR**2 * values[-1])), vectors


@dataclass(slots=True, eq=False)
class _History:
    """The last steps, from which the next one is extrapolated (Anderson 1965; Walker, Ni 2011)."""

    places: list[Floats] = field(default_factory=list)
    steps: list[Floats] = field(default_factory=list)

    def next(self, place: Floats, step: Floats) -> Floats:
        self.places, self.steps = [*self.places, place][-_MEMORY:], [*self.steps, step][-_MEMORY:]
        if len(self.steps) == 1:
            return place + step
        moves, changes = np.diff(self.places, axis=0).T, np.diff(self.steps, axis=0).T
        share = np.linalg.lstsq(changes, step, rcond=1e-10)[0]
        return place + np.clip(step - (moves + changes) @ share, -_LONGEST, _LONGEST)


def _rounds(problem: _Problem, first: _Solution) -> Iterator[_Solution]:
    """Yields a solution for each round; an extrapolation that lowers the lower bound is taken back.

    The plain step lambda <- diag R = lambda diag X never lowers it, and converges on its own.
    """
    history, found = _History(), first
    for _ in range(_ROUNDS):
        yield found
        step = np.log(np.maximum(found.diagonal, _SINGULAR))
        tried = problem.solve(history.next(found.logs, step))
        if not tried.lower >= found.lower and len(history.steps) > 1:
            history = _History()
            tried = problem.solve(found.logs + step)
        found = tried
