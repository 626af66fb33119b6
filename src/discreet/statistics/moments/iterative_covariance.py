"""Covariances from a vague upper bound: each noisy one makes the next look round, and noise fits what is round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.mechanisms import Gaussian
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import exact_product, matrix, whole, within
from discreet.statistics.moments.iterative_mean import COUNT, gaussian, length, spread_over
from discreet.statistics.row_sums import moment_sensitivity, positive_part, release_symmetric, second_moments

Floats = NDArray[np.float64]

UNITS = 1 << 14  # of a row, to the radius of clipping
_FINE = 1 << 20  # units of the data, to the same radius under the first map
_FURTHEST = 26  # bits of an entry of an integer row, see `inputs.whole`
_FAILURE = Fraction(1, 10)
_SHARES = (1, 1, 1, 5)
_SLOWEST = 2.0**-10  # of what one step may stretch: maps keep enough digits


def iterative_covariance(
    X: Any,
    *,
    upper: Number,
    centre: Any = 0.0,
    shares: Sequence[Number] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the covariance around a public centre of rows with normal tails, of variances up to `upper`.

    Rows are mapped by a public matrix A under which they are at most round, clipped, and their second moments Z are
    released; the next map is A (Z_+ + eta I)^(-1/2) (1 - s), eta bounding the noise and s the sampling error, and the
    result is A'^-1 Z A^-1 of the last step (CoinPress: Biswas, Dong, Kamath, Ullman 2020). Each entry has its own
    interval: sampling error of normal rows, and noise. Centre the data with a released mean, e.g. `iterative_mean`.

    Args:
        X: a matrix with a row for each unit; missing entries count as the centre.
        upper: public, what no direction's variance exceeds.
        centre: public, a number or one for each coordinate.
        shares: how the steps share the budget; None is (1, 1, 1, 5); more steps reach
            further below `upper`.
        epsilon: with delta, the budget; or
        delta: see epsilon.
        rho: the budget of zero-concentrated DP.
        neighbours: the relation to protect; under ADD_REMOVE rows are counted for a twentieth of the budget.
        confidence: the probability that the interval of one entry covers the population's value.
        bits: the source of randomness; None is the secure one.

    Returns:
        A symmetric matrix without negative eigenvalues.

    Raises:
        InvalidParameter: outside these domains, before anything is read.
        InvalidValue: if there is no table of numbers.

    Formal guarantee: mu-GDP by composition. Each row alone is mapped and shrunk with exact integers to a length of
    at most 2^14 units, so the sum of x x' moves by at most 2^28 in the Frobenius norm (ADD_REMOVE), sqrt 2 times that
    under REPLACE (`moment_sensitivity`), and noise is that of `release_symmetric`. Maps depend on releases only.

    >>> from discreet.noise import SeededBits
    >>> rows = np.tile([[3.0, 1.0], [-3.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], (5000, 1))
    >>> found = iterative_covariance(rows, upper=100, epsilon=1, delta=1e-6, bits=SeededBits(1))
    >>> found.value.round(1).tolist()
    [[5.1, 1.0], [1.0, 1.0]]
    """
    variance = float(check.positive(upper=upper))
    parts = [check.positive(shares=part) for part in (_SHARES if shares is None else tuple(shares))]
    if not parts:
        raise InvalidParameter("shares", shares, "to be at least one", "Pass e.g. shares=(1, 4).")
    outside = 1 - check.probability(confidence=confidence)
    relation = Neighbours(neighbours)
    plan = CovariancePlan.of(Spending.of(epsilon, delta, rho), parts, relation, outside)
    table = matrix(X)
    return plan.run(table - spread_over(centre, table.shape[1]), variance, source_of(bits))


@dataclass(frozen=True, slots=True, kw_only=True)
class CovariancePlan:
    """All releases of a run, known before any row is seen."""

    count: Gaussian | None
    multipliers: tuple[Fraction, ...]
    sensitivity: Fraction
    outside: Fraction

    @classmethod
    def of(
        cls, budget: Spending, shares: Sequence[Fraction], neighbours: Neighbours, outside: Fraction
    ) -> CovariancePlan:
        """Returns the plan of a budget."""
        _ = budget.noise_multiplier  # refuses a budget without a delta
        counted = neighbours is Neighbours.ADD_REMOVE
        left = (1 - COUNT if counted else Fraction(1)) / sum(shares)
        return cls(
            count=gaussian(budget.share(COUNT).noise_multiplier, 1) if counted else None,
            multipliers=tuple(budget.share(share * left).noise_multiplier for share in shares),
            sensitivity=moment_sensitivity(UNITS * UNITS, neighbours),
            outside=outside,
        )

    @property
    def event(self) -> Event:
        """Returns the event of all releases."""
        steps: list[Event] = [events.Gaussian(multiplier) for multiplier in self.multipliers]
        return events.Composed([self.count.event, *steps] if self.count is not None else steps)

    def run(self, table: Floats, upper: float, bits: Bits) -> Estimate:
        """Returns the releases one after the other; each may use what was released before, and nothing else."""
        d = table.shape[1]
        size, doubt = self._size(table, bits)
        fewest = max(size - doubt, 1.0)
        failure = float(self.outside * _FAILURE) / (2 * len(self.multipliers))
        cut = length(d, failure / size)
        root = Root.first(math.sqrt(upper), cut, d)
        for multiplier in self.multipliers[:-1]:
            found, noise = self._moments(table, root, multiplier, size, bits)
            eta = max(noise * (math.sqrt(2 * d) + math.sqrt(2 * math.log(1 / failure))), _SLOWEST)
            off = (math.sqrt(d) + math.sqrt(2 * math.log(1 / failure))) / math.sqrt(fewest)
            if eta < (1 - off) ** 2 and off < 1:
                root = root.then(_inverse_root(positive_part(found) + eta * np.eye(d)) * (1 - off))
        found, noise = self._moments(table, root, self.multipliers[-1], size, bits)
        back: Floats = np.linalg.pinv(root.map).astype(np.float64)  # never refuses
        value, raw = (np.asarray(back.T @ part @ back) for part in (positive_part(found), found))
        half = self._half(value, back, noise, fewest, abs(doubt) / size)
        low, high = np.minimum(raw - half, value), np.maximum(raw + half, value)
        return Estimate(value, low, high, self.event, confidence=1 - self.outside, private=bits.private)

    def _moments(
        self, table: Floats, root: Root, multiplier: Fraction, size: float, bits: Bits
    ) -> tuple[Floats, float]:
        """Returns the noisy second moments under a map, and the deviation of the noise on their diagonal."""
        unit = root.cut / UNITS
        sums = second_moments(root.rows(table))
        noisy = release_symmetric(sums, noise_multiplier=multiplier, sensitivity=self.sensitivity, bits=bits)
        return noisy * (unit * unit / size), float(multiplier * self.sensitivity) * unit * unit / size

    def _half(self, value: Floats, back: Floats, noise: float, fewest: float, doubt: float) -> Floats:
        """Returns half-widths of the entries at the confidence of the plan.

        Normal rows have Var s_ij = (s_ii s_jj + s_ij^2) / n; noise B'NB has it with B'B for s, over 2. The
        count's doubt moves all entries by the same share.
        """
        sampling = (np.outer(np.diag(value), np.diag(value)) + value**2) / fewest
        spread = back.T @ back
        added = noise**2 / 2 * (np.outer(np.diag(spread), np.diag(spread)) + spread**2)
        tail = float(self.outside * (1 - _FAILURE)) / 2
        return np.asarray(-float(special.ndtri(tail)) * np.sqrt(sampling + added) + doubt * np.abs(value))

    def _size(self, table: Floats, bits: Bits) -> tuple[float, float]:
        """Returns how many rows there are, public or noisy, and how much fewer there may be."""
        if self.count is None:
            return float(max(len(table), 1)), 0.0
        doubt = self.count.error(confidence=1 - self.outside * _FAILURE)
        return max(float(self.count.release(len(table), bits=bits)), 1.0), float(doubt)


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """A public map of rows: integers `whole_map` times `grain`, so that products with integer rows are exact.

    Attributes:
        whole_map: integers.
        grain: the value of 1.
        step: of the integer rows, in units of the data.
        cut: the length to which mapped rows are clipped.
    """

    whole_map: Floats
    grain: float
    step: float
    cut: float

    @classmethod
    def first(cls, deviation: float, cut: float, dimension: int) -> Root:
        """Returns the map that makes a deviation of at most so much at most 1."""
        return cls._of(np.eye(dimension) / deviation, deviation * cut / _FINE, cut)

    @classmethod
    def _of(cls, wanted: Floats, step: float, cut: float) -> Root:
        most = 1 << (_FURTHEST - len(wanted).bit_length())
        grain = float(np.max(np.abs(wanted))) / most
        return cls(np.rint(wanted / grain), grain, step, cut)

    @property
    def map(self) -> Floats:
        """Returns the matrix A."""
        return self.whole_map * self.grain

    def then(self, following: Floats) -> Root:
        """Returns this map followed by another."""
        return self._of(self.map @ following, self.step, self.cut)

    def rows(self, table: Floats) -> NDArray[np.int64]:
        """Returns mapped rows in whole units of cut / UNITS, none longer than UNITS.

        Each is a function of itself alone.

        Integer rows have entries up to 2^26 and the map up to 2^26 / dimension, so all sums are exact below 2^53.
        """
        steps = whole(table, 1 / self.step).astype(np.float64)
        mapped = exact_product(steps, self.whole_map, 1 << (2 * _FURTHEST))
        return within(whole(mapped, self.grain * self.step * UNITS / self.cut), UNITS)


def _inverse_root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)
