"""Linear queries over a histogram, planned and released together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.exact import root_above
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import DiscreteLaplace
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.strategy import ONE_CELL, STEPS, Contribution, StrategyMechanism, whole_counts
from discreet.mechanisms.tails import normal_reach
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.privacy.events import Composed, Event
from discreet.privacy.losses import Loss
from discreet.workload.budget_currency import gaussian_or_pure
from discreet.workload.factor_strategies import of_structures
from discreet.workload.product_strategy import ProductStrategy, largest_entry
from discreet.workload.query_structures import Product, Queries, Union
from discreet.workload.released_answers import ReleasedAnswers, StrategyMeasurements, join_parts
from discreet.workload.span_reuse import PastRelease, ReusedAnswers, laplace_sum_reaches, reuse

Floats = NDArray[np.float64]

_ROUNDS = 8  # of improving the factors of one strategy for several products
_FEW_CELLS = 512  # for which the queries of a union are written out
_MOST_WEIGHTS = 1 << 24  # queries times measurements whose largest weight is looked for


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Workload:
    """Linear queries over the counts of public cells: a matrix with a row for each query, or a structure.

    Args:
        queries: a matrix; `Ranges`, `Prefixes`, `Each` or `Total` of one attribute; a `Product` of such for several; or
            a `Union` of products. Up to 4,096 cells of each attribute.

    Raises:
        InvalidParameter: if it is no matrix of finite numbers, or too large.

    Formal guarantee of its plans: see `WorkloadPlan`.

    >>> from discreet.privacy import Budget
    >>> plan = Workload([[1, 1, 0], [1, 1, 0], [0, 0, 1]]).plan(budget=Budget(rho=0.5))
    >>> [round(float(variance), 3) for variance in plan.variances]  # the same question twice costs what one costs
    [1.0, 1.0, 1.0]
    """

    union: Union

    def __init__(self, queries: Any) -> None:
        assign(self, union=queries if isinstance(queries, Union) else Union(queries))

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape of the counts: one axis for each attribute."""
        return self.union.shape

    @property
    def count(self) -> int:
        """Returns how many queries there are."""
        return self.union.count

    def plan(
        self,
        *,
        budget: Loss,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        contribution: Contribution = ONE_CELL,
    ) -> WorkloadPlan:
        """Returns how the queries are answered within a budget.

        Args:
            budget: ``Budget(rho=...)`` or ``Budget(epsilon=..., delta=...)`` for normal noise, ``Budget(epsilon=...)``
                for Laplace noise.
            neighbours: the relation to protect. A unit that is replaced may also have stood in no cell.
            contribution: what one unit can hold, one row in one cell unless said otherwise.

        Raises:
            InvalidParameter: if the budget is none, or an attribute has more than 4,096 distinguishable cells.
        """
        relation = Neighbours(neighbours)
        held = check.instance(Contribution, contribution=contribution)
        mu_squared, epsilon = gaussian_or_pure(budget)
        pure = epsilon is not None
        groups = min(self._choices(pure=pure), key=lambda choice: _total(choice, pure=pure))
        mechanisms = _noise(groups, mu_squared, epsilon, held, relation)
        measured = tuple((mechanism, group.parts) for mechanism, group in zip(mechanisms, groups, strict=True))
        return WorkloadPlan(workload=self, measured=measured, neighbours=relation)

    def _choices(self, *, pure: bool) -> Iterator[list[_Group]]:
        """Yields ways to answer all parts: from one strategy, each from its own, or, of few cells, without products."""
        yield [self._find_shared_strategy(pure=pure)]
        if len(self.union.parts) > 1:
            yield [_group((part,), [part], pure=pure) for part in self.union.parts]
            if math.prod(self.shape) <= _FEW_CELLS and math.prod(self.shape) * self.count <= _MOST_WEIGHTS:
                written = Product(np.vstack([_matrix(part) for part in self.union.parts]))
                yield [_group((written,), [written], pure=pure)]

    def _find_shared_strategy(self, *, pure: bool) -> _Group:
        """Returns one strategy for all parts; its factors are improved in turn, for what others make of the parts."""
        parts = list(self.union.parts)
        best = _group(self.union.parts, parts, pure=pure)
        for _ in range(_ROUNDS if len(parts) > 1 and len(self.shape) > 1 else 0):
            tried = _group(self.union.parts, parts, pure=pure, others=best.strategy)
            if not _total([tried], pure=pure) < _total([best], pure=pure) * (1 - 1e-6):
                break
            best = tried
        return best

    def reuse(self, past: Iterable[PastRelease], *, confidence: Number = CONFIDENCE) -> ReusedAnswers:
        """Answers from past releases, for free, whatever follows from them: look here before you spend.

        Raises:
            InvalidParameter: if there is no release, or the numbers of cells differ.
        """
        rows = np.vstack([_matrix(part) for part in self.union.parts])
        return reuse(past, rows, confidence=confidence)


def _matrix(part: Product) -> Floats:
    result: Floats = np.ones((1, 1))
    for factor in part.factors:
        result = np.asarray(np.kron(result, factor.matrix()), dtype=np.float64)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """A strategy, and the parts that are answered from it."""

    strategy: ProductStrategy
    parts: tuple[Product, ...]

    def total(self, *, pure: bool) -> float:
        """Returns the total variance of all answers, for noise of the size of the sensitivity."""
        step = float(self.strategy.grid.step) ** 2
        size = float(self.strategy.l1()) ** 2 if pure else float(self.strategy.l2_squared())
        return size * step * sum(_trace(part, self.strategy) for part in self.parts)


def _trace(part: Product, strategy: ProductStrategy) -> float:
    totals = (factor.total(queries.gram()) for factor, queries in zip(strategy.factors, part.factors, strict=True))
    return math.prod(totals)


def _group(
    answered: tuple[Product, ...], parts: list[Product], *, pure: bool, others: ProductStrategy | None = None
) -> _Group:
    """Returns a product of each attribute's best strategies; a part's weight in one is what the others make of it."""
    count = len(parts[0].factors)
    factors = []
    for axis in range(count):
        structures: list[Queries] = [part.factors[axis] for part in parts]
        shares = [1.0 if others is None else _weight(part, others, axis) for part in parts]
        queries = of_structures(structures, shares)
        largest = largest_entry(count)
        factors.append(queries.laplace(largest) if pure else queries.gaussian(largest))
    return _Group(ProductStrategy(tuple(factors)), answered)


def _weight(part: Product, strategy: ProductStrategy, axis: int) -> float:
    pairs = zip(strategy.factors, part.factors, strict=True)
    return math.prod(factor.total(queries.gram()) for place, (factor, queries) in enumerate(pairs) if place != axis)


def _total(groups: list[_Group], *, pure: bool) -> float:
    """Returns the total variance of strategies that share a budget in the best way, up to a factor.

    Variances c / share of mu^2 add up to (sum of c^(1/2))^2 at their least, those of c / share^2 of epsilon to
    (sum of c^(1/3))^3.
    """
    power = 3 if pure else 2
    return float(sum(group.total(pure=pure) ** (1 / power) for group in groups) ** power)


def _noise(
    groups: list[_Group], mu_squared: Fraction, epsilon: Fraction | None, held: Contribution, relation: Neighbours
) -> list[StrategyMechanism]:
    roots = [group.total(pure=epsilon is not None) ** (1 / (2 if epsilon is None else 3)) for group in groups]
    parts = [math.floor(root / sum(roots) * (1 - 1e-9) * (1 << 40)) + 1 for root in roots]  # below 2^40 together
    shares = [Fraction(1)] if len(groups) == 1 else [Fraction(part, 1 << 40) for part in parts]
    if epsilon is None:
        multipliers = [root_above(1 / (mu_squared * share)) for share in shares]
        return [
            StrategyMechanism.gaussian(g.strategy, noise_multiplier=m, contribution=held, neighbours=relation)
            for g, m in zip(groups, multipliers, strict=True)
        ]
    return [
        StrategyMechanism.laplace(g.strategy, epsilon=epsilon * share, contribution=held, neighbours=relation)
        for g, share in zip(groups, shares, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkloadPlan:
    """How queries are answered: strategies, their noise, its error and its event; all of it is public.

    Formal guarantee: one release is described by `event`, for all counts that differ by what one unit can hold, under
    `neighbours`. Strategies are rounded to public grids of powers of two, map counts to exact integers, and get integer
    noise for a sensitivity that is computed from the rounded matrices in integers; all else is post-processing. With
    normal noise and one product, the total variance is within a millionth (a ten-thousandth for more than 1,024 cells)
    of the least that any Gaussian strategy has under ADD_REMOVE, but for the rounding of strategies.

    Attributes:
        workload: the queries.
        measured: mechanisms, each with the products that are answered from it.
        neighbours: the relation.
    """

    workload: Workload
    measured: tuple[tuple[StrategyMechanism, tuple[Product, ...]], ...]
    neighbours: Neighbours

    @property
    def event(self) -> Event:
        """Returns what one release costs, for accounting."""
        parts = [mechanism.event for mechanism, _ in self.measured]
        return parts[0] if len(parts) == 1 else Composed(parts)

    @property
    def variances(self) -> Floats:
        """Returns the variance of each answer, in the order of the queries."""
        return join_parts([variances for found in self._spreads() for variances, _ in found])

    @property
    def total_variance(self) -> float:
        """Returns the sum of all variances."""
        return float(np.sum(self.variances))

    def _spreads(self) -> list[list[tuple[Floats, int]]]:
        """Returns for each mechanism and each of its parts the variances, and how many measurements there are."""
        found = []
        for mechanism, parts in self.measured:
            strategy = _product(mechanism)
            spreads = [part.variances(strategy.covariances) * mechanism.variance for part in parts]
            found.append([(spread, strategy.rows) for spread in spreads])
        return found

    def release(self, counts: Any, *, confidence: Number = CONFIDENCE, bits: Bits | None = None) -> ReleasedAnswers:
        """Answers all queries from private counts.

        Args:
            counts: integers, one axis for each attribute.
            confidence: of each interval, for the answer from these very counts.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidParameter: if the confidence is not strictly between 0 and 1.
            InvalidValue: if the counts are not of an integer type, or of another shape.
        """
        chance = check.probability(confidence=confidence)
        given = _shape_counts(counts, self.workload.shape)
        source = source_of(bits)
        exact = [given.reshape(_product(mechanism).shape) for mechanism, _ in self.measured]
        noisy = [mechanism.release(x, bits=source) for x, (mechanism, _) in zip(exact, self.measured, strict=True)]
        measured = tuple(
            StrategyMeasurements(strategy=_product(mechanism), values=values, parts=parts)
            for (mechanism, parts), values in zip(self.measured, noisy, strict=True)
        )
        value = join_parts([answers for one in measured for answers in one.answers()])
        half = self._halves(1 - chance)
        estimate = Estimate(value, value - half, value + half, self.event, confidence=chance, private=source.private)
        gaussian = isinstance(self.measured[0][0].noise, Gaussian)
        return ReleasedAnswers(
            estimate=estimate,
            variances=self.variances,
            measured=measured,
            noise_variance=tuple(_past_variance(mechanism) for mechanism, _ in self.measured),
            law="gaussian" if gaussian else "laplace",
        )

    def _halves(self, outside: Fraction) -> Floats:
        """Returns half the widths of the intervals.

        A query is a weighted sum of measurements. The roundings of normal noise, half a step each, add up to at most
        sqrt(rows) / 2 steps of its standard error, 1 / 2^16 of a sigma each.
        """
        halves = []
        for (mechanism, parts), spreads in zip(self.measured, self._spreads(), strict=True):
            for part, (variances, rows) in zip(parts, spreads, strict=True):
                if isinstance(mechanism.noise, Gaussian):
                    reach = float(normal_reach(outside)) + math.sqrt(rows) / STEPS
                    halves.append(np.sqrt(variances) * reach * (1 + 1e-9))
                else:
                    halves.append(_laplace_halves(mechanism, part, float(outside)))
        return join_parts(halves)


def _product(mechanism: StrategyMechanism) -> ProductStrategy:
    return check.instance(ProductStrategy, strategy=mechanism.strategy)


def _past_variance(mechanism: StrategyMechanism) -> float:
    """Returns the variance of a measurement; of Laplace noise that of the continuous law, which is a little larger."""
    if isinstance(mechanism.noise, Gaussian):
        return mechanism.variance
    return 2 * (float(mechanism.noise.scale) * float(mechanism.strategy.grid.step)) ** 2


def _laplace_halves(mechanism: StrategyMechanism, part: Product, outside: float) -> Floats:
    """Returns the reach of each query, from the sum of the squares of its weights and the largest of them."""
    strategy = _product(mechanism)
    squares = part.variances(strategy.covariances)
    largest = np.ones(())
    for queries, factor in zip(part.factors, strategy.factors, strict=True):
        small = queries.count * factor.strategy.rows <= _MOST_WEIGHTS
        lengths = np.sqrt(queries.variances(factor.covariance))  # at least the largest weight
        found = np.max(np.abs(queries.apply(factor.decoder)), axis=1) if small else lengths
        largest = np.multiply.outer(largest, found)
    step = float(strategy.grid.step)
    scale = float(check.instance(DiscreteLaplace, noise=mechanism.noise).scale) * step
    flat = (squares.ravel() * scale**2, largest.ravel() * scale)
    return laplace_sum_reaches(*flat, outside, steps=largest.ravel() * step).reshape(squares.shape)


def _shape_counts(counts: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Counts with one axis for each attribute; a vector of all cells in order is taken, too."""
    return whole_counts(counts, (math.prod(shape),) if np.ndim(counts) == 1 else shape)
