"""Regression by bounded scores: the public function."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Grid
from discreet.mechanisms import Quantile
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS, column, matrix, vector, whole, within
from discreet.statistics.noise_errors import number_noise, pure_part, vector_noise
from discreet.statistics.robust.regression_plan import (
    GRADIENT_STEPS,
    NEWTON_STEPS,
    SHARES,
    BinaryResponse,
    RegressionPlan,
    Response,
    predicted_error,
    response_of,
)
from discreet.statistics.robust.scores import Score
from discreet.statistics.row_sums import SymmetricNoise

Method = Literal["auto", "newton", "gradient"]

_HINT = "Rows are clipped to a public length: pass e.g. norm_bound=1.0; it is never read from the data."
_LARGEST_RATIO = 1 << 20  # of bounds and scale


def m_regression(
    X: Any,
    y: Any,
    *,
    psi: Score | Literal["logistic_regression"],
    norm_bound: Number,
    bounds: Any = None,
    scale: Number = 1,
    intercept: bool = True,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    size: int | None = None,
    method: Method = "auto",
    steps: int | None = None,
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates regression coefficients, the intercept last, with intervals that cover the population's.

    Solves sum psi((y - x beta) / scale) x = 0, or for targets 0 and 1 sum (y - 1 / (1 + e^-(x beta))) x = 0, by
    noisy Newton steps (Avella-Medina, Bradshaw, Loh 2023): each releases a gradient and a curvature. The interval is
    the sandwich H^-1 M H^-1, M and H released too, with the noise of all steps.

    Formal guarantee: the event of the estimate, which keeps to epsilon, to (epsilon, delta), or to rho. A row, shrunk
    to the norm in integers, adds r x with |r| <= B: L2 sensitivity B times the norm under ADD_REMOVE, twice that under
    REPLACE. Curvatures w x x^T with w >= 0 have Frobenius sensitivity Bbar and sqrt(2) Bbar; with signed slopes 2 Bbar.
    No number depends on how many rows there are, unless that is public or paid for.

    Args:
        X: a row for each unit; missing entries are 0.
        y: numbers within `bounds`, or 0 and 1; rows whose target is missing count nowhere.
        psi: `Huber()`, `Logistic()`, `Biweight()`, a `Score` of your own bounded by 4, or "logistic_regression".
        norm_bound: the public length to which rows are clipped.
        bounds: public limits of y, for numbers.
        scale: the public spread of y around the line.
        intercept: whether there is one; it is a feature of the constant value norm_bound, and costs no extra.
        epsilon: with or without `delta`; or `rho` alone.
        delta: for Gaussian noise, much better here.
        rho: for Gaussian noise, as zCDP.
        neighbours: the relation to protect.
        size: about how many rows there are, if that is public.
        method: "newton", "gradient", or "auto", Newton where its curvatures are expected to be well above their noise.
        steps: 5 of Newton, 100 of gradients.
        confidence: of each interval.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if a parameter is missing or wrong; nothing has been read then.
        InvalidValue: if X is no table, or y no vector of the same number of rows.

    >>> from discreet.noise import SeededBits
    >>> from discreet.statistics import Huber
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 1)
    >>> found = m_regression(
    ...     X,
    ...     3 * X[:, 0] + 10,
    ...     psi=Huber(),
    ...     norm_bound=1,
    ...     bounds=(0, 20),
    ...     scale=0.5,
    ...     epsilon=1,
    ...     delta=1e-6,
    ...     bits=SeededBits(1),
    ... )
    >>> found.value.round(1).tolist()
    [3.0, 10.0]
    """
    response = response_of(psi)
    setting = _Setting.of(response, norm_bound, bounds, scale, intercept)
    spending, chance = Spending.of(epsilon, delta, rho), check.probability(confidence=confidence)
    relation, source = Neighbours(neighbours), source_of(bits)
    replaced = relation is Neighbours.REPLACE
    given, targets = matrix(X), vector(y)
    if len(given) != len(targets):
        raise InvalidValue("to have a target for each row", "Pass X and y of the same length.")
    known = max(1, len(given)) if replaced else (None if size is None else check.integer(size=size, at_least=1))
    dimension = given.shape[1] + intercept
    plan = _plan(
        response=response,
        setting=setting,
        spending=spending,
        relation=relation,
        dimension=dimension,
        size=known,
        method=method,
        steps=steps,
    )
    rows, wanted = setting.rows(given), setting.targets(targets)
    start = np.zeros(dimension)
    if plan.start is not None:
        heights = column(targets, bounds=setting.bounds, neighbours=relation)
        middle = float(heights.value(plan.start.release(heights.steps, bits=source)))
        start[-1] = middle / setting.scale * float(np.sqrt(2))
    fit = plan.run(rows, wanted, start, chance, source)
    value, wide = fit.theta * setting.back(dimension), fit.widths * setting.back(dimension)
    return Estimate(value, value - wide, value + wide, plan.event, confidence=chance, private=source.private)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """The public map between data and integers: z = x / norm, with 1 appended and all divided by sqrt 2."""

    response: Response
    norm: float
    bounds: Any
    scale: float
    intercept: bool

    @classmethod
    def of(cls, response: Response, norm_bound: Any, bounds: Any, scale: Number, intercept: bool) -> _Setting:
        if norm_bound is None:
            raise InvalidParameter("norm_bound", norm_bound, "to be given", _HINT)
        norm, unit = check.positive(norm_bound=norm_bound), check.positive(scale=scale)
        check.instance(bool, intercept=intercept)
        if isinstance(response, BinaryResponse):
            return cls(response=response, norm=float(norm), bounds=None, scale=1.0, intercept=intercept)
        low, high = check.limits(bounds=bounds)
        if max(abs(low), abs(high)) / unit > _LARGEST_RATIO:
            hint = "Pass the spread around the line."
            raise InvalidParameter("scale", scale, "to be in proportion to the bounds", hint)
        return cls(response=response, norm=float(norm), bounds=(low, high), scale=float(unit), intercept=intercept)

    @property
    def _radius(self) -> int:
        """Returns the radius of rows, RADIUS; next to a constant it is RADIUS / sqrt 2, rounded down."""
        return int(RADIUS / np.sqrt(2)) if self.intercept else RADIUS

    def rows(self, given: NDArray[np.float64]) -> NDArray[np.int64]:
        """Returns integer rows within RADIUS, each a function of itself."""
        kept = within(whole(given, self._radius / self.norm), self._radius)
        if not self.intercept:
            return kept
        return np.hstack([kept, np.full((len(kept), 1), self._radius, dtype=np.int64)])

    def targets(self, y: NDArray[np.float64]) -> NDArray[np.int64]:
        """Returns integer targets, clipped to the bounds."""
        if self.bounds is not None:
            y = np.clip(y, float(self.bounds[0]), float(self.bounds[1]))
        return self.response.targets(y, self.scale)

    def back(self, dimension: int) -> NDArray[np.float64]:
        """Returns what the weights are multiplied by to be in the units of the data."""
        factors = np.full(dimension, self.scale * self._radius / RADIUS)
        factors[: dimension - self.intercept] /= self.norm
        return factors


def _plan(
    *,
    response: Response,
    setting: _Setting,
    spending: Spending,
    relation: Neighbours,
    dimension: int,
    size: int | None,
    method: Method,
    steps: int | None,
) -> RegressionPlan:
    newton = _is_newton(method, spending, response, dimension, size)
    usual = NEWTON_STEPS if newton else GRADIENT_STEPS
    count = usual if steps is None else check.integer(steps=steps, at_least=1, at_most=1000)
    needed = {"gradient", "square", "slope"}
    needed |= {"start"} if setting.bounds is not None and setting.intercept else set()
    needed |= {"curvature"} if newton else ({"count"} if size is None else set())
    names = [name for name in SHARES if name in needed]
    parts = dict(zip(names, spending.shares([SHARES[name] for name in names]), strict=True))
    each = Fraction(1, count)
    twice = 2 if relation is Neighbours.REPLACE else 1

    def matrix_noise(part: Spending, weight: int, signed: bool = False) -> SymmetricNoise:
        limit = weight * RADIUS * RADIUS
        return SymmetricNoise(part=part, limit=limit, dimension=dimension, neighbours=relation, signed=signed)

    plan = RegressionPlan(
        response=response,
        steps=count,
        start=None,
        size=None if newton else (size if size is not None else number_noise(parts["count"], 1)),
        gradient=vector_noise(parts["gradient"].share(each), twice * response.residual_bound * RADIUS, dimension),
        curvature=matrix_noise(parts["curvature"].share(each), response.weight_bound) if newton else None,
        square=matrix_noise(parts["square"], max(1, response.residual_bound**2 >> 10)),
        slope=matrix_noise(parts["slope"], response.slope_bound, response.signed),
    )
    return plan if "start" not in parts else replace(plan, start=_median(parts["start"], setting, relation))


def _is_newton(method: Method, spending: Spending, response: Response, dimension: int, size: int | None) -> bool:
    if method not in ("auto", "newton", "gradient"):
        raise InvalidParameter("method", method, "to be 'auto', 'newton' or 'gradient'")
    if method != "auto":
        return method == "newton"
    if size is None:
        return True
    part = spending.share(SHARES["curvature"] / sum(SHARES.values()))
    noise = SymmetricNoise(part=part, limit=1, dimension=dimension, neighbours=Neighbours.REPLACE).deviation
    return predicted_error(dimension, size, NEWTON_STEPS, noise, response.weight_bound / 1024) < 0.5


def _median(part: Spending, setting: _Setting, relation: Neighbours) -> Quantile:
    width = column([], bounds=setting.bounds, neighbours=relation).width
    return Quantile(
        epsilon=pure_part(part), quantile=Fraction(1, 2), bounds=(0, width), grid=Grid.integers(), neighbours=relation
    )
