"""Solvers of the convex problem behind a fit, on vectors: a quasi-Newton method, and mirror descent as the baseline.

The problem, in probabilities p with total 1, marginals M p, measured y and noise of standard deviation s:

    minimise  L(p) - T H(p),  L(p) = sum |M p - y|^2 / (2 s^2),  H the entropy.

Without entropy (T = 0) its solutions are not unique as rows, and it is what mirror descent solves, which tends to the
one of largest entropy. With T > 0 its dual has no constraints: with p proportional to exp(M^T theta),

    minimise  F(theta) = log Z(theta) - theta . y + T/2 sum s^2 theta^2,   gradient  g = M p - y + T s^2 theta,

which is the likelihood of a log-linear model with a ridge. The primal value at p(theta) exceeds the dual one by
exactly sum g^2 / (2 s^2) (expand the square and use T log Z = T H(p) + T theta . M p): a certificate of how far the
measured marginals are from the best ones, since L is strongly convex in them with modulus 1 / s^2. Where residuals are
measured, theta, y and g are projected on what they contain, and the excess is at most that, since the largest value of
g . x - x S x / 2 over a subspace is at most that over all x, S the diagonal matrix of T s^2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from discreet.dataclass import dataclass
from discreet.synthetic.inference.factors import Table

_ARMIJO = 1e-4
_MEMORY = 20  # pairs of steps and changes of the gradient that are kept
_CUTS = 30
_ROUNDING = 1e-15

_Pair = tuple[Table, Table, float]
"""A step, the change of the gradient, and the inverse of their product."""


@dataclass(frozen=True, slots=True, eq=False)
class MarginalFitProblem:
    """Holds what a solver needs to know about a fit.

    Args:
        marginals: the map from theta to log Z and the marginals M p.
        measured: y, for each cell; each measured table adds up to 1, or to 0 in each line of a residual.
        deviations: s, for each cell.
        project: removes from a vector what residuals do not contain.
        temperature: T.
    """

    marginals: Callable[[Table], tuple[float, Table]]
    measured: Table
    deviations: Table
    project: Callable[[Table], Table]
    temperature: float


@dataclass(frozen=True, slots=True, eq=False)
class SolverResult:
    """Where a solver stopped: theta, the primal loss L, the gap (not known to mirror descent), and evaluations used."""

    theta: Table
    loss: float
    gap: float
    evaluations: int


@dataclass(slots=True, eq=False)
class _Point:
    theta: Table
    value: float
    gradient: Table
    marginals: Table
    gap: float


def follow_path(
    problem: MarginalFitProblem, start: Table, path: Sequence[tuple[float, float]], *, evaluations: int
) -> SolverResult:
    """Minimises the dual for falling temperatures, each from the last solution: far from it the last one is hard.

    Args:
        problem: what is to be solved at last.
        start: theta to begin with.
        path: by how much the temperature is multiplied at each stage, and to which gap it is solved.
        evaluations: the most evaluations of all stages together.
    """
    used, solution = 0, None
    for number, (factor, gap) in enumerate(path):
        stage = replace(problem, temperature=problem.temperature * factor)
        share = max(1, (evaluations - used) // (len(path) - number))  # one hard stage does not starve the others
        theta = start if solution is None else solution.theta
        solution = quasi_newton(
            stage, theta, gap=gap, evaluations=share if number < len(path) - 1 else evaluations - used
        )
        used += solution.evaluations
    assert solution is not None  # noqa: S101 - a path has an end
    return replace(solution, evaluations=used)


def quasi_newton(problem: MarginalFitProblem, start: Table, *, gap: float, evaluations: int) -> SolverResult:
    """Minimises the dual by L-BFGS with a diagonal start (Nocedal 1980); returns the point of the least gap.

    The Hessian is M Cov(p) M^T + T s^2, whose diagonal is about M p + T s^2: its inverse starts the recursion anew in
    each step, so that cells whose probability falls towards 0 take the long steps they need. Where y is larger than M p
    it replaces that: the exponential soon makes such a cell as large.
    """
    ridge = problem.temperature * problem.deviations**2
    weights = 0.5 / problem.deviations**2
    point = best = _at(problem, ridge, weights, start)
    used, pairs = 1, deque[_Pair](maxlen=_MEMORY)
    while used < evaluations and best.gap > gap:
        direction = problem.project(-_inverse_hessian(point, problem.measured, ridge, pairs))
        found, tried = _search(problem, ridge, weights, point, direction)
        used += tried
        if found is None and not pairs:
            break
        if found is None:  # rounding has spoilt the curvature: begin again
            pairs.clear()
            continue
        step, change = found.theta - point.theta, found.gradient - point.gradient
        curvature = float(step @ change)
        if curvature > 0:
            pairs.append((step, change, 1 / curvature))
        point = found
        best = min(best, point, key=lambda p: p.gap)
    residual = best.marginals - problem.measured
    return SolverResult(best.theta, float(weights @ residual**2), best.gap, used)


def _at(problem: MarginalFitProblem, ridge: Table, weights: Table, theta: Table) -> _Point:
    log_total, raw = problem.marginals(theta)
    marginals = problem.project(raw)
    pull = problem.project(ridge * theta)
    value = log_total - float(theta @ problem.measured) + 0.5 * float(pull @ theta)
    gradient = marginals - problem.measured + pull
    return _Point(theta, value, gradient, marginals, float(weights @ gradient**2))


def _inverse_hessian(point: _Point, measured: Table, ridge: Table, pairs: deque[_Pair]) -> Table:
    """Returns the approximate inverse Hessian times the gradient, by the two loops of L-BFGS."""
    result = point.gradient.copy()
    weights = []
    for step, change, scale in reversed(pairs):
        weight = scale * float(step @ result)
        weights.append(weight)
        result -= weight * change
    diagonal = 1 / (np.maximum(np.abs(point.marginals), measured) + ridge)
    if pairs:
        step, change, scale = pairs[-1]
        diagonal *= 1 / (scale * float(change @ (diagonal * change)))
    result *= diagonal
    for (step, change, scale), weight in zip(pairs, reversed(weights), strict=True):
        result += (weight - scale * float(change @ result)) * step
    return result


def _search(
    problem: MarginalFitProblem, ridge: Table, weights: Table, point: _Point, direction: Table
) -> tuple[_Point | None, int]:
    """Returns the first point that lowers the value enough, and how many were tried; a quadratic guess cuts steps."""
    slope = float(direction @ point.gradient)
    if slope >= 0:
        return None, 0
    length = 1.0
    for tried in range(1, _CUTS + 1):
        candidate = _at(problem, ridge, weights, point.theta + length * direction)
        if candidate.value <= point.value + _ARMIJO * length * slope + _ROUNDING * abs(point.value):
            return candidate, tried
        guess = -0.5 * slope * length**2 / (candidate.value - point.value - length * slope)
        length = min(max(guess, 0.1 * length), 0.5 * length)
    return None, _CUTS


def mirror_descent(problem: MarginalFitProblem, start: Table, *, gap: float, evaluations: int) -> SolverResult:
    """Minimises L itself by entropic mirror descent with Armijo's rule (McKenna, Sheldon, Miklau 2019): the baseline.

    Stops where a step lowers the loss by less than `gap` / 1000.
    """
    weights = 0.5 / problem.deviations**2

    def loss(theta: Table) -> tuple[float, Table, Table]:
        marginals = problem.project(problem.marginals(theta)[1])
        residual = marginals - problem.measured
        return float(weights @ residual**2), 2 * weights * residual, marginals

    theta = start
    value, gradient, marginals = loss(theta)
    used, rate = 1, 1 / float(2 * weights.max())
    while used < evaluations:
        candidate = theta - rate * gradient
        new, new_gradient, new_marginals = loss(candidate)
        used += 1
        if value - new >= 0.5 * float(gradient @ (marginals - new_marginals)):
            done = value - new < gap / 1000
            theta, value, gradient, marginals = candidate, new, new_gradient, new_marginals
            rate *= 2
            if done:
                break
        else:
            rate /= 2
    return SolverResult(theta, value, np.inf, used)
