"""Answers to linear queries that were released: each with its error, and, on request, those of the nearest counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.privacy import Estimate
from discreet.report.display import Display, DisplayMixin
from discreet.workload.product_strategy import ProductStrategy
from discreet.workload.query_structures import Product
from discreet.workload.span_reuse import PastRelease

Floats = NDArray[np.float64]

_ROUNDS = 2000
_STILL = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrategyMeasurements:
    """One strategy's noisy measurements, and the queries that are answered from them.

    Attributes:
        strategy: what was measured.
        values: with noise, in units of the strategy.
        parts: the queries.
    """

    strategy: ProductStrategy
    values: Floats
    parts: tuple[Product, ...]

    def answers(self) -> list[Floats]:
        """Returns the answers to each part, by least squares."""
        cells = self.strategy.decode_cells(self.values)
        return [part.apply(cells) for part in self.parts]

    def project_answers(self) -> list[Floats]:
        """Returns the answers from the nearest counts without negative ones.

        They minimise ||A x - y||^2 over x >= 0, by projected gradients with momentum (Beck, Teboulle 2009), from the
        least-squares solution with its negative counts set to zero.
        """
        cells = np.maximum(self.strategy.decode_cells(self.values), 0.0)
        step, ahead, pace = 1 / self.strategy.steepness, cells, 1.0
        values = self.values.reshape(self.strategy.measure_cells(cells).shape)
        for _ in range(_ROUNDS):
            slope = self.strategy.measure_cells(self.strategy.measure_cells(ahead) - values, back=True)
            moved = np.maximum(ahead - step * slope, 0.0)
            faster = (1 + math.sqrt(1 + 4 * pace * pace)) / 2
            ahead = moved + (pace - 1) / faster * (moved - cells)
            still = float(np.max(np.abs(moved - cells))) <= _STILL * max(1.0, float(np.max(moved)))
            cells, pace = moved, faster
            if still:
                break
        return [part.apply(cells) for part in self.parts]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedAnswers(DisplayMixin):
    """Private answers to all queries of a workload.

    Attributes:
        estimate: the raw answers with their intervals, in the order of the queries; they are unbiased.
        variances: of each answer.
        measured: what was released, from which all answers follow.
        noise_variance: of each measurement, for each strategy.
        law: of the noise.

    >>> from discreet.noise import SeededBits
    >>> from discreet.privacy import Budget
    >>> from discreet.workload import Prefixes, Workload
    >>> plan = Workload(Prefixes(4)).plan(budget=Budget(rho=0.5))
    >>> released = plan.release([5, 0, 0, 2], bits=SeededBits(1))  # the truth is 5, 5, 5, 7
    >>> released.value.round(1).tolist(), released.projected().round(1).tolist()
    ([3.5, 5.6, 5.0, 7.0], [3.4, 5.3, 5.3, 7.2])
    """

    estimate: Estimate
    variances: Floats
    measured: tuple[StrategyMeasurements, ...]
    noise_variance: tuple[float, ...]
    law: str

    @property
    def value(self) -> Any:
        """Returns the raw answers."""
        return self.estimate.value

    @property
    def low(self) -> Any:
        """Returns the lower ends of the intervals."""
        return self.estimate.low

    @property
    def high(self) -> Any:
        """Returns the upper ends of the intervals."""
        return self.estimate.high

    @property
    def event(self) -> Any:
        """Returns what the release cost, for accounting."""
        return self.estimate.event

    def projected(self) -> Floats:
        """Returns the answers of the nearest counts without negative ones.

        They follow from the raw measurements alone and cost nothing; all answers from one strategy agree, since they
        are sums of the same counts. They are usually nearer to the truth, and biased where counts are small: the
        intervals of the raw answers are not about them.
        """
        return join_parts([answers for measured in self.measured for answers in measured.project_answers()])

    def past(self) -> tuple[PastRelease, ...]:
        """Returns what was released in the form that `reuse` takes, where its matrices are small."""
        return tuple(
            PastRelease(
                strategy=_matrix(measured.strategy), values=measured.values.ravel(), variance=variance, law=self.law
            )
            for measured, variance in zip(self.measured, self.noise_variance, strict=True)
        )

    def __str__(self) -> str:
        return str(self.estimate)

    def _display(self) -> Display:
        return self.estimate._display()


def join_parts(parts: Sequence[Floats]) -> Floats:
    """Returns the answers of one part as they are, those of several one after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate([part.ravel() for part in parts])


def _matrix(strategy: ProductStrategy) -> Floats:
    result: Floats = np.ones((1, 1))
    for factor in strategy.factors:
        result = np.asarray(np.kron(result, factor.strategy.values()), dtype=np.float64)
    return result
