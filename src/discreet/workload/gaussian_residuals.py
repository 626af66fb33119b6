"""Normal noise on residuals: the least total variance that any Gaussian strategy has for tables of a product domain.

Notation: R_B the residual of B, p_B = prod (n_i - 1) / n_i, v_B its weight in the objective, s_B = sigma_B^2.

One unit in a cell moves R_B x such that its distance, measured by the inverse of Sub Sub^T on every axis, is p_B: the
diagonal of P = Sub^+ Sub is (n - 1) / n. All residuals together are one normal vector, and mu^2 = sum p_B / s_B. So the
sum of v_B s_B is least at s_B = sqrt(p_B / v_B) sum(sqrt(p v)) / mu^2 (Xiao, He, Zhang, Kifer 2023). Paying 1 / s_B, as
for independent noise on every entry, would cost 2^k times as much for k binary attributes.

A unit that is replaced by one that differs in the attributes D moves R_B by 2 p_B (1 - prod over i in B and D of
-1 / (n_i - 1)), squared, since an entry of P off the diagonal is -1 / n. It may also have stood in no cell, because its
row was left out; then it is added or removed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter
from discreet.exact import Grid, root_above
from discreet.mechanisms.mechanism import add
from discreet.mechanisms.strategy import STEPS
from discreet.mechanisms.tails import normal_reach
from discreet.noise import Bits
from discreet.noise.rounded_contrasts import contrasts, rounded_contrasts
from discreet.privacy import Neighbours, events
from discreet.workload.counted_tables import CountedTables
from discreet.workload.product_domain import Attributes, ProductDomain, closure
from discreet.workload.residuals import component_of_residual, share, table_variance, weights

Floats = NDArray[np.float64]

_STEPS = STEPS
_FINEST = -20  # exponent of a grid: counts are whole numbers
_LARGE = 1 << 40  # counts that times 2^20 leave int64
_LARGEST_SIGMA = Fraction(1 << 60)  # remainders of counts on its grid are exact as floats
_FEW = 12  # attributes whose differences are all tried
_SAFE = 1 + 1e-9
_PRECISION = 80  # bits to which costs are rounded up, relative to the budget


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianResiduals:
    """Which noise each residual gets, and what all of it costs.

    Attributes:
        domain: the attributes.
        sigmas: of the normals whose contrasts are the noise of a residual.
        noise_multiplier: of all of it, as one Gaussian release, for one row.
    """

    domain: ProductDomain
    sigmas: dict[Attributes, Fraction]
    noise_multiplier: Fraction

    def event_of_rows(self, rows: int) -> events.Gaussian:
        """Returns what one release costs where a unit has so many rows, which may all stand in one cell."""
        return events.Gaussian(noise_multiplier=self.noise_multiplier / rows)

    @property
    def scales(self) -> dict[Attributes, float]:
        """Returns s_B for each residual, with what rounding adds at most."""
        return {part: float(sigma) ** 2 + float(_grid(sigma).step) ** 2 / 4 for part, sigma in self.sigmas.items()}

    def components(self, counts: CountedTables, bits: Bits) -> dict[Attributes, Floats]:
        """Releases every residual, and returns the components they have."""
        exact = {part: np.asarray(contrasts(counts.table(part))) for part in self.sigmas}
        return {part: component_of_residual(_release(exact[part], self.sigmas[part], bits)) for part in self.sigmas}

    def reach(self, table: Attributes, outside: Fraction) -> float:
        """Returns a distance that the error of a cell exceeds with at most this probability.

        Rounding moves an entry of a residual by half a step, and Sub^+ doubles this at most, on each axis.
        """
        variance = table_variance(table, {part: float(sigma) ** 2 for part, sigma in self.sigmas.items()}, self.domain)
        rounding = 0.0
        for part in closure([table], self.domain):
            rest = math.prod(self.domain.sizes[name] for name in table if name not in part)
            rounding += 2.0 ** len(part) * float(_grid(self.sigmas[part]).step) / 2 / rest
        return (float(normal_reach(outside)) * math.sqrt(variance) + rounding) * (1 + 1e-9)


def _grid(sigma: Fraction) -> Grid:
    return Grid(max(Grid.finer_than(sigma / _STEPS).exponent, _FINEST))


def _release(exact: NDArray[Any], sigma: Fraction, bits: Bits) -> Floats:
    """Rounds exact integers plus contrasts of normals to the grid, and returns what was released.

    With a step of 1 or less the integers are grid points, and only the noise is rounded. With a larger one their
    remainder is part of what is rounded.
    """
    grid = _grid(sigma)
    if grid.exponent <= 0:
        large = exact.size and max(-int(exact.min()), int(exact.max())) >= _LARGE
        steps = (exact.astype(object) if large else exact) * (1 << -grid.exponent)
        offsets = np.zeros(exact.shape)
    else:
        steps = exact >> grid.exponent
        offsets = np.ldexp((exact & ((1 << grid.exponent) - 1)).astype(float), -grid.exponent)
    noisy = add(np.asarray(steps), rounded_contrasts(sigma / grid.step, offsets, bits))
    return np.ldexp(np.asarray(noisy, dtype=np.float64), grid.exponent)


def plan_gaussian(
    tables: dict[Attributes, float], domain: ProductDomain, mu_squared: Fraction, neighbours: Neighbours
) -> GaussianResiduals:
    """Returns the noise with the least weighted total variance that mu-GDP allows.

    It is optimal under ADD_REMOVE. Under REPLACE the shares of residuals are chosen by a bound of what each can cost,
    and then all are scaled to what the worst pair of cells costs.
    """
    chosen = weights(tables, domain)
    replaced = neighbours is Neighbours.REPLACE
    costs = {part: _largest_swap(part, domain) if replaced else share(part, domain) for part in chosen}
    root = sum(math.sqrt(costs[part] * weight) for part, weight in chosen.items())
    budget = float(mu_squared)
    ideal = {part: math.sqrt(costs[part] / weight) * root / budget for part, weight in chosen.items() if costs[part]}
    if replaced:
        ideal = _scaled_to_swaps(ideal, domain, budget)
    sigmas = {part: _above(math.sqrt(ideal[part])) for part in chosen}
    cost = _cost(sigmas, domain, neighbours, mu_squared)
    if cost > mu_squared:
        raise InternalError("The plan costs more than its budget.")
    if max(sigmas.values()) > _LARGEST_SIGMA:
        raise InvalidParameter("budget", "the amount", "to need noise below 2^60 counts", "Pass a larger budget.")
    return GaussianResiduals(domain=domain, sigmas=sigmas, noise_multiplier=1 / root_above(cost))


def _above(sigma: float) -> Fraction:
    """Returns a rational above sigma, so far above that no rounding of the formulas matters."""
    return Fraction(sigma * (1 + 1e-9))


def _exact_share(part: Attributes, domain: ProductDomain) -> Fraction:
    return math.prod((Fraction(domain.sizes[name] - 1, domain.sizes[name]) for name in part), start=Fraction(1))


def _cost(
    sigmas: dict[Attributes, Fraction], domain: ProductDomain, neighbours: Neighbours, budget: Fraction
) -> Fraction:
    """Returns an upper bound of mu^2, each term rounded up to a tiny share of the budget."""
    unit = budget / (1 << _PRECISION)
    added = unit * sum(math.ceil(_exact_share(part, domain) / sigma**2 / unit) for part, sigma in sigmas.items())
    if neighbours is Neighbours.ADD_REMOVE:
        return added
    terms = {part: share(part, domain) / float(sigma) ** 2 for part, sigma in sigmas.items()}
    return max(added, Fraction(_worst_swap(terms, domain)))


def _worst_swap(terms: dict[Attributes, float], domain: ProductDomain) -> float:
    """Bounds the move of a unit from a cell to another: over all differences of few attributes, else term by term.

    All terms are positive, each a product of few numbers: floats are off by less than 10^-11, and 10^-9 is added.
    """
    names = sorted({name for part in terms for name in part})
    if len(names) > _FEW:
        return sum(term * _swap(part, _nearest(part, domain), domain) for part, term in terms.items()) * _SAFE
    different = (np.arange(1 << len(names))[:, None] >> np.arange(len(names))) & 1
    factors = np.where(different, [-1 / (domain.sizes[name] - 1) for name in names], 1.0)
    totals = np.zeros(len(different))
    for part, term in terms.items():
        totals += 2 * term * (1 - np.prod(factors[:, [names.index(name) for name in part]], axis=1))
    return float(np.max(totals)) * _SAFE


def _swap(part: Attributes, different: Attributes, domain: ProductDomain) -> float:
    """Returns 2 (1 - prod of -1 / (n_i - 1) over the attributes of a residual that differ), in units of p_B."""
    return 2 * (1 - math.prod(-1 / (domain.sizes[name] - 1) for name in part if name in different))


def _nearest(part: Attributes, domain: ProductDomain) -> Attributes:
    """Returns the difference that moves a residual farthest: in one attribute, of the fewest values."""
    return tuple(sorted(part, key=lambda name: domain.sizes[name])[:1])


def _largest_swap(part: Attributes, domain: ProductDomain) -> float:
    return share(part, domain) * _swap(part, _nearest(part, domain), domain)


def _scaled_to_swaps(ideal: dict[Attributes, float], domain: ProductDomain, budget: float) -> dict[Attributes, float]:
    """Scales variances to the worst pair of cells; what adding a unit leaves of the budget, the number of rows gets.

    Adding costs at most half of the worst swap: over all second cells, the mean of what a swap costs is twice as much.
    """
    worst = _worst_swap({part: share(part, domain) / variance for part, variance in ideal.items()}, domain)
    scaled = {part: variance * worst / budget for part, variance in ideal.items()}
    added = sum(share(part, domain) / variance for part, variance in scaled.items())
    return {(): 1 / (budget - added), **scaled}
