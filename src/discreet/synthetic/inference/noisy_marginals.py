"""Noisy marginals as they were released, several of the same attributes put together, and the total they imply."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.inference.factors import Attributes, Table


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginal:
    """Counts of the cells of some attributes, with independent noise of one standard deviation on each cell.

    A *residual* marginal contains only what no smaller marginal does: the counts minus their means along each axis. It
    is what a residual measurement of covariance sigma^2 Sub Sub^T holds (Xiao, He, Zhang, Kifer 2023), since Sub^T (Sub
    Sub^T)^-1 Sub is the projection I - 11^T/n; its values are Sub^+ applied to what was released.

    Args:
        attributes: one name per axis; none for the number of rows itself.
        values: the noisy counts.
        sigma: the standard deviation of the noise of each cell.
        residual: whether the values are those of the residual only.

    Raises:
        InvalidParameter: if names repeat, axes do not match, a value is not finite, or sigma is not positive.

    >>> NoisyMarginal(("sex",), np.array([51.0, 48.0]), sigma=2.0).total
    99.0
    """

    attributes: Attributes
    values: Table
    sigma: float
    residual: bool = False

    def __post_init__(self) -> None:
        if len(set(self.attributes)) != len(self.attributes):
            raise InvalidParameter("attributes", self.attributes, "to name each attribute once")
        if np.ndim(self.values) != len(self.attributes):
            raise InvalidParameter("values", np.shape(self.values), f"to have {len(self.attributes)} axes")
        if not np.all(np.isfinite(self.values)):
            raise InvalidParameter("values", "not finite", "to be finite")
        if not 0 < self.sigma < math.inf:
            raise InvalidParameter(
                "sigma", self.sigma, "> 0", "Pass the standard deviation of the noise that was added."
            )

    @property
    def total(self) -> float:
        """Returns the sum of all cells: an unbiased estimate of the number of rows, unless it is a residual."""
        return float(np.sum(self.values))

    @property
    def is_total(self) -> bool:
        """Returns whether this is a noisy number of rows and nothing else."""
        return not self.attributes

    def transpose_to(self, attributes: Attributes) -> NoisyMarginal:
        """Returns the same marginal with its axes in another order."""
        if attributes == self.attributes:
            return self
        order = [self.attributes.index(name) for name in attributes]
        return NoisyMarginal(attributes, np.transpose(self.values, order), self.sigma, self.residual)


def combine_marginals(marginals: Iterable[NoisyMarginal]) -> list[NoisyMarginal]:
    """Returns one marginal for each set of attributes: the mean weighted by inverse variances.

    Nothing is lost: sum_k |m - y_k|^2 / s_k^2 = |m - y|^2 / s^2 + constant, where 1/s^2 is the sum of 1/s_k^2 and y the
    weighted mean, by completing the square.

    >>> low, high = (NoisyMarginal(("a",), np.full(2, value), sigma=1.0) for value in (3.0, 5.0))
    >>> [mean] = combine_marginals([low, high])
    >>> mean.values, round(mean.sigma**2, 9)
    (array([4., 4.]), 0.5)
    """
    groups: dict[tuple[frozenset[str], bool], list[NoisyMarginal]] = {}
    for marginal in marginals:
        groups.setdefault((frozenset(marginal.attributes), marginal.residual), []).append(marginal)
    return [_mean(group) for group in groups.values()]


def _mean(group: Sequence[NoisyMarginal]) -> NoisyMarginal:
    first = group[0]
    if len(group) == 1:
        return first
    aligned = [marginal.transpose_to(first.attributes) for marginal in group]
    if any(marginal.values.shape != first.values.shape for marginal in aligned):
        raise InvalidParameter("values", [m.values.shape for m in aligned], "to have one shape for the same attributes")
    weights = np.array([marginal.sigma**-2 for marginal in aligned])
    values = np.tensordot(weights / weights.sum(), np.stack([m.values for m in aligned]), axes=1)
    return NoisyMarginal(first.attributes, values, float(weights.sum() ** -0.5), first.residual)


def estimated_total(marginals: Iterable[NoisyMarginal]) -> float:
    """Returns the number of rows that noisy marginals imply, at least 1: post-processing, which costs nothing.

    The cells of one marginal of n cells add up to the number of rows plus noise of variance n sigma^2, independent of
    other marginals. Among unbiased weighted means the one with weights 1 / (n sigma^2) has the least variance
    (Gauss and Markov; Aitken 1935), which is 1 / sum of 1 / (n sigma^2). Residuals contain nothing about the total.

    Raises:
        InvalidParameter: if all are residuals, or there is none.

    >>> estimated_total([NoisyMarginal(("a",), np.full(4, 30.0), 1.0), NoisyMarginal((), np.array(100.0), 1.0)])
    104.0
    """
    telling = [marginal for marginal in marginals if not marginal.residual]
    if not telling:
        raise InvalidParameter("marginals", "only residuals", "to contain the number of rows", "Pass total=.")
    weights = np.array([1 / (marginal.values.size * marginal.sigma**2) for marginal in telling])
    totals = np.array([marginal.total for marginal in telling])
    return max(1.0, float(weights @ totals / weights.sum()))


def residual(table: Table) -> Table:
    """Returns what a table adds to smaller ones: itself less its means along each axis.

    >>> residual(np.array([[5.0, 1.0], [2.0, 2.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
