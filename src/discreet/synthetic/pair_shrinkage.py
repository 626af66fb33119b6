"""How much of a noisy pair of columns comes from the data: priors that are fitted to what was released, for free.

The residual r of a pair, what it adds to its columns, is measured with noise of the same variance w in all cells,
although cells that expect few rows can only differ by few. So before anything is seen, the residual of a cell that
expects e rows where columns are independent is taken for normal of mean 0 and variance

    v = t^2 e^(2 g) m^(2 - 2 g),   m the mean of e,

with the two numbers t (how far the pair is from independent) and g (1: differences are shares of what is expected; 1/2:
they are as those of counts) for which the released residual is most likely: empirical Bayes (Robbins 1956; Efron,
Morris 1973). Given r, the residual is normal of mean r v / (v + w) and variance v w / (v + w).

A fit shrinks by the same factor if it has the right ridge. Near independence the entropy of a model adds
(p - e)^2 / (2 e) to what is minimised, and a measurement with the ridge R adds (p - y)^2 / (2 R), in rows: the least
is at p - e = (y - e) e / (e + R), which is v / (v + w) of y - e for R = e w / v.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.dataclass import dataclass
from discreet.synthetic.inference.factors import Table
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal

_STRENGTHS = np.geomspace(1 / 256, 32, 40)
_POWERS = (0.5, 0.75, 1.0)
_LEAST = 2.0**-10  # rows that a cell expects at least
_FLOOR = 1.0  # of a ridge, in deviations of the noise: as much as a fit has without a prior
_MEAN = math.sqrt(2 / math.pi)  # of the absolute value of a standard normal number


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairPrior:
    """Holds what is known about a pair before its residual is looked at cell by cell.

    Args:
        noise: the variance of the noise of a cell's residual.
        variances: of the residual itself, cell by cell.
        ridge: of a fit that shrinks at least as the prior does, in rows.
        evidence: twice by how much more likely the released residual is than if columns were independent, as a
            logarithm.
    """

    noise: float
    variances: Table
    ridge: Table
    evidence: float

    def gain(self, residual: Table) -> float:
        """Returns by how much the expected L1 distance of a model falls if it follows a residual, in rows.

        Given what was released, a cell is normal of mean a and deviation b. A model that does not follow it is off by
        b (2 f(z) + z (2 F(z) - 1)) on average, z = a / b, f and F the normal density and distribution; one that does,
        by 2 b f(0).

        Args:
            residual: what was released, less what the model says already.
        """
        share = self.variances / (self.variances + self.noise)
        deviation = np.sqrt(share * self.noise)
        z = np.abs(share * residual) / deviation
        inside = np.tanh(_MEAN * (z + 0.044715 * z**3))  # 2 F(z) - 1 to three digits, without its integral
        return float((deviation * (_MEAN * np.expm1(-0.5 * z**2) + z * inside)).sum())


def pair_prior(pair: NoisyMarginal, expected: Table) -> PairPrior:
    """Returns the prior of a pair for which its released residual is most likely.

    Formal guarantee: a function of released numbers.

    Args:
        pair: the residual, as it was released.
        expected: how many rows each cell has if columns are independent, by what is known of the columns.

    >>> expected = np.full((2, 2), 250.0)
    >>> strong, none = (NoisyMarginal(("a", "b"), x * np.array([[1, -1], [-1, 1]]), 5.0, True) for x in (200.0, 1.0))
    >>> [pair_prior(pair, expected).evidence > 4 for pair in (strong, none)]
    [True, False]
    """
    noise = pair.sigma**2 * math.prod(1 - 1 / size for size in pair.values.shape)
    rows = np.maximum(expected, _LEAST)
    squares = pair.values**2
    none = float((math.log(noise) + squares / noise).sum())
    best, variances = math.inf, np.zeros_like(rows)
    for power in _POWERS:
        shape = rows ** (2 * power) * rows.mean() ** (2 - 2 * power)
        for strength in _STRENGTHS:
            whole = strength**2 * shape + noise
            deviance = float((np.log(whole) + squares / whole).sum())
            if deviance < best:
                best, variances = deviance, strength**2 * shape
    ridge = rows * pair.sigma**2 / variances + _FLOOR * pair.sigma
    return PairPrior(noise=noise, variances=variances, ridge=ridge, evidence=max(0.0, none - best))
