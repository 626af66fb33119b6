"""Laplace noise on tables of a product domain, for a pure epsilon: which tables to measure, and how much each.

A measurement is the table of a set A of attributes with, on some of its attributes of two values, C, the difference of
the two in place of both. A unit is in one entry of it, with a sign, so that its L1 sensitivity is 1, and 2 if a
unit is replaced. Independent noise of variance t^2 on all entries gives each component B with C in B in A the scale
s_B = t^2 prod n_j / 2^|C|, j in A but not in B, and components of one measurement are uncorrelated, since centring
along axes projects onto orthogonal spaces. So weighting what all measurements say of a component by 1 / s_B is the
generalised least-squares estimate, and the sum of all v_B s_B is minimised over the shares of epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.lazy import optimize
from discreet.mechanisms.laplace import draw_variance
from discreet.mechanisms.mechanism import add, reasonable_noise
from discreet.mechanisms.sums import laplace_reaches
from discreet.mechanisms.tails import laplace_reach
from discreet.noise import Bits, discrete_laplace
from discreet.privacy import Neighbours, events
from discreet.workload.counted_tables import CountedTables, maximal
from discreet.workload.product_domain import Attributes, ProductDomain, closure, subsets
from discreet.workload.residuals import centre_table, weights

Floats = NDArray[np.float64]

_MOST_EVENTS = 256  # of one release; more are described by their sum
_BITS = 40  # of a share of epsilon
_NEGLIGIBLE = 1e-4  # a share of epsilon that lowers no error worth reading
_MOST_TERMS = 1 << 20  # pairs of a measurement and a component whose shares are optimised
_DUST = 1e-14
_FEW_DRAWS = 64
_TILTS = np.concatenate([np.geomspace(1e-3, 0.5, 60, endpoint=False), np.linspace(0.5, 0.999, 60)])


@dataclass(frozen=True, slots=True)
class Measurement:
    """A table with differences along some of its attributes, each of two values."""

    attributes: Attributes
    differences: Attributes

    def parts(self) -> Iterator[Attributes]:
        """Yields the components that it measures."""
        return (part for part in subsets(self.attributes) if set(self.differences) <= set(part))

    def precision(self, part: Attributes, domain: ProductDomain) -> float:
        """Returns 1 / s_B for noise of variance 1."""
        return 2.0 ** len(self.differences) / math.prod(domain.sizes[n] for n in self.attributes if n not in part)

    def exact(self, counts: CountedTables) -> NDArray[np.int64]:
        """Returns the measured integers."""
        table = counts.table(self.attributes)
        for axis, name in enumerate(self.attributes):
            if name in self.differences:
                table = np.take(table, [0], axis=axis) - np.take(table, [1], axis=axis)
        return table

    def component(self, noisy: Floats, part: Attributes) -> Floats:
        """Returns what the noisy integers say of a component."""
        others = tuple(axis for axis, name in enumerate(self.attributes) if name not in part)
        for axis, name in enumerate(self.attributes):
            if name in self.differences:
                noisy = np.concatenate([noisy / 2, -noisy / 2], axis=axis)
        return centre_table(np.asarray(np.sum(noisy, axis=others)))


@dataclass(frozen=True, kw_only=True)
class LaplaceTables:
    """Which tables are measured, and the share of epsilon of each.

    Attributes:
        domain: the attributes.
        shares: 1 / b for each measurement, b the scale of its noise.
        sensitivity: of each but the number of rows, in the L1 norm: 1, or 2 where a unit may be replaced.
    """

    domain: ProductDomain
    shares: dict[Measurement, Fraction]
    sensitivity: int

    def event_of_rows(self, rows: int) -> events.Event:
        """Returns what one release costs where a unit has so many rows.

        A unit that is replaced by one in another cell leaves the number of rows as it is and moves every other
        measurement by 2; one that leaves moves all of them by 1. It does one or the other.
        """
        total = self.shares.get(Measurement((), ()), Fraction(0))
        others = sum(self.shares.values()) - total
        if self.sensitivity == 2:
            return events.Pure(rows * max(2 * others, total + others))
        parts = [events.DiscreteLaplace(scale=1 / share, sensitivity=rows) for share in self.shares.values()]
        if len(parts) > _MOST_EVENTS:
            return events.Pure(rows * (total + others))
        return parts[0] if len(parts) == 1 else events.Composed(parts)

    @cached_property
    def _precisions(self) -> dict[Attributes, dict[Measurement, float]]:
        """Returns what each measurement adds to 1 / s_B, for each component B."""
        found: dict[Attributes, dict[Measurement, float]] = {}
        for measured, share in self.shares.items():
            for part in measured.parts():
                found.setdefault(part, {})[measured] = measured.precision(part, self.domain) / draw_variance(1 / share)
        return found

    @cached_property
    def scales(self) -> dict[Attributes, float]:
        """Returns s_B for each component."""
        return {part: 1 / sum(precisions.values()) for part, precisions in self._precisions.items()}

    def components(self, counts: CountedTables, bits: Bits) -> dict[Attributes, Floats]:
        """Releases every measurement, and returns the components that fit all of them best."""
        exact = {measured: measured.exact(counts) for measured in self.shares}
        noisy = {measured: _release(exact[measured], share, bits) for measured, share in self.shares.items()}
        found: dict[Attributes, Floats] = {}
        for part, scale in self.scales.items():
            fits = [scale * weight * m.component(noisy[m], part) for m, weight in self._precisions[part].items()]
            found[part] = np.sum(fits, axis=0)
        return found

    def reach(self, table: Attributes, outside: Fraction) -> float:
        """Returns a distance that the error of a cell exceeds with at most this probability.

        The error is a weighted sum of discrete Laplace draws, for which there are two bounds.
        """
        draws = [(abs(weight), share, count) for m in self.shares for weight, share, count in self._draws(table, m)]
        largest = max(weight for weight, _, _ in draws)
        felt = [draw for draw in draws if draw[0] > _DUST * largest]  # the others are 0, but for rounding
        if len(felt) == 1 and felt[0][2] == 1:
            return felt[0][0] * laplace_reach(1 / felt[0][1], outside) * (1 + 1e-6)
        factors, rates, counts = (np.array([float(x) for x in column]) for column in zip(*felt, strict=True))
        return min(_chernoff(factors, rates, counts, outside), _fractions(factors, rates, counts, outside)) * (1 + 1e-6)

    def _draws(self, table: Attributes, measured: Measurement) -> Iterator[tuple[float, Fraction, int]]:
        """Yields what a measurement adds to a cell's error: weights of draws, their 1 / b, and the number of each.

        The weight depends on the attributes in which an entry agrees with the cell.
        """
        speaking = [name for name in table if self.domain.sizes[name] > 1]
        common = [name for name in measured.attributes if name in speaking and name not in measured.differences]
        if not set(measured.differences) <= set(speaking):
            return
        outer = math.prod(self.domain.sizes[name] for name in measured.attributes if name not in speaking)
        parts = {part: self._weight(table, measured, part) for part in closure([table], self.domain)}
        for agreeing in itertools.chain.from_iterable(
            itertools.combinations(common, k) for k in range(len(common) + 1)
        ):
            weight = sum(w * self._entry(part, measured, agreeing) for part, w in parts.items() if w)
            others = math.prod(self.domain.sizes[name] - 1 for name in common if name not in agreeing)
            yield weight, self.shares[measured], outer * others

    def _weight(self, table: Attributes, measured: Measurement, part: Attributes) -> float:
        rest = math.prod(self.domain.sizes[name] for name in table if name not in part)
        return self._precisions[part].get(measured, 0.0) * self.scales[part] / rest

    def _entry(self, part: Attributes, measured: Measurement, agreeing: tuple[str, ...]) -> float:
        centring = (
            (1.0 if name in agreeing else 0.0) - 1 / self.domain.sizes[name]
            for name in part
            if name not in measured.differences
        )
        return math.prod(centring) / 2.0 ** len(measured.differences)


def _chernoff(factors: Floats, rates: Floats, counts: Floats, outside: Fraction) -> float:
    """P(|S| > x) is at most 2 e^(-t x) times the mean of e^(t S), for every t.

    Of one draw the mean of e^(u Z) is (1 - p)^2 / ((1 - p e^u) (1 - p e^-u)), p = e^(-rate).
    """
    tilts = _TILTS[:, None] * np.min(rates / factors)
    moved = tilts * factors
    logs = 2 * np.log(-np.expm1(-rates)) - np.log(-np.expm1(moved - rates)) - np.log(-np.expm1(-moved - rates))
    return float(np.min((math.log(2 / float(outside)) + logs @ counts) / tilts[:, 0]))


def _fractions(factors: Floats, rates: Floats, counts: Floats, outside: Fraction) -> float:
    """Bounds the same by the exact law of few continuous draws, less than a step apart from discrete ones."""
    if np.sum(counts) > _FEW_DRAWS:
        return math.inf
    weights = np.repeat(factors, counts.astype(np.intp))[:, None]
    sizes = weights / np.repeat(rates, counts.astype(np.intp))[:, None]
    return float(laplace_reaches(sizes, weights, float(outside))[0])


def _release(exact: NDArray[Any], share: Fraction, bits: Bits) -> Floats:
    return np.asarray(add(exact, discrete_laplace(1 / share, exact.shape, bits=bits)), dtype=np.float64)


def plan_laplace(
    tables: dict[Attributes, float], domain: ProductDomain, epsilon: Fraction, neighbours: Neighbours
) -> LaplaceTables:
    """Returns measurements for a pure epsilon.

    The shares of epsilon are a local minimum of the weighted total variance, found from several starts; it is never
    worse than measuring the tables that are asked for, each with the best share.
    """
    objective = weights(tables, domain)
    total = Measurement((), ())
    candidates = [m for m in _candidates(list(objective), domain) if m.attributes]
    replaced = neighbours is Neighbours.REPLACE
    search = _Search.of([total, *candidates], objective, domain, fixed=replaced)
    best = min((search.improve_shares(start) for start in search.starts(tables, domain)), key=search.total)
    parts = best / (2 if replaced else 1)
    parts[0] = 0.5 if replaced else parts[0]
    shares = {m: _below(epsilon, part) for m, part in zip(search.measured, parts.tolist(), strict=True)}
    kept = {measured: share for measured, share in shares.items() if share}
    for share in kept.values():
        reasonable_noise(1 / share, "budget")
    return LaplaceTables(domain=domain, shares=kept, sensitivity=1 + replaced)


def _below(epsilon: Fraction, part: float) -> Fraction:
    """Returns a part of epsilon, rounded down: together they are at most the whole."""
    return epsilon * Fraction(math.floor(part * (1 - 1e-9) * (1 << _BITS)), 1 << _BITS)


def _candidates(parts: list[Attributes], domain: ProductDomain) -> Iterator[Measurement]:
    for part in parts:
        yield Measurement(part, ())
        binary = tuple(name for name in part if domain.sizes[name] == 2)
        if binary:
            yield Measurement(part, binary)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Minimises the sum of v_B / (sum of precision theta^2 / 2) over shares theta that add up to 1.

    The number of rows comes first; if `fixed`, it has a share of its own that nothing else pays for.
    """

    measured: list[Measurement]
    rows: NDArray[np.intp]  # of pairs: the measurement
    parts: NDArray[np.intp]  # of pairs: the component
    precisions: Floats
    objective: Floats
    fixed: bool

    @classmethod
    def of(
        cls, measured: list[Measurement], objective: dict[Attributes, float], domain: ProductDomain, *, fixed: bool
    ) -> _Search:
        places = {part: place for place, part in enumerate(objective)}
        pairs = [(row, places[part], m.precision(part, domain)) for row, m in enumerate(measured) for part in m.parts()]
        rows, parts, precisions = (np.array(column) for column in zip(*pairs, strict=True))
        return cls(measured, rows, parts, precisions, np.array(list(objective.values())), fixed)

    def starts(self, tables: dict[Attributes, float], domain: ProductDomain) -> Iterator[Floats]:
        """Yields shares from which to begin: tables asked for, only the largest of them, all, and differences."""
        speaking = {tuple(n for n in table if domain.sizes[n] > 1): weight for table, weight in tables.items()}
        largest = set(maximal(speaking))
        cubes = {t: (w * domain.cells(t)) ** (1 / 3) for t, w in speaking.items()}
        plain = [not m.differences for m in self.measured]
        yield self._start([cubes.get(m.attributes, 0) * p for m, p in zip(self.measured, plain, strict=True)])
        yield self._start([(m.attributes in largest) * p for m, p in zip(self.measured, plain, strict=True)])
        yield self._start([1.0 for _ in self.measured])
        least = [all(domain.sizes[n] > 2 or n in m.differences for n in m.attributes) for m in self.measured]
        yield self._start([float(x) for x in least])

    def _start(self, values: list[float]) -> Floats:
        found = np.array(values, dtype=np.float64)
        found = found / max(float(np.sum(found)), 1e-300) + 1e-7
        return self._normal(found)

    def _normal(self, shares: Floats) -> Floats:
        free = shares.copy()
        if self.fixed:
            free[0] = 0
        result = free / max(float(np.sum(free)), 1e-300)
        if self.fixed:
            result[0] = 1.0
        return result

    def total(self, shares: Floats) -> float:
        """Returns the weighted total variance, up to a factor."""
        return self._with_gradient(shares)[0]

    def _with_gradient(self, shares: Floats) -> tuple[float, Floats]:
        size = len(self.objective)
        known = np.bincount(self.parts, self.precisions * shares[self.rows] ** 2 / 2, minlength=size)
        known = np.maximum(known, 1e-300)
        slope = -(self.objective / known**2)[self.parts] * self.precisions * shares[self.rows]
        return float(np.sum(self.objective / known)), np.asarray(
            np.bincount(self.rows, slope, minlength=len(shares)), dtype=np.float64
        )

    def improve_shares(self, start: Floats) -> Floats:
        """Returns shares at which no small change helps, without those that buy nothing."""
        if len(self.measured) - self.fixed <= 1 or self.rows.size > _MOST_TERMS:
            return min((start, self._thin(start)), key=self.total)
        scale = self.total(start)

        def of_logs(logs: Floats) -> tuple[float, Floats]:
            shares = self._normal(np.exp(logs - np.max(logs)))
            value, slope = self._with_gradient(shares)
            moved = shares * slope
            moved[0] = 0.0 if self.fixed else moved[0]
            free = shares.copy()
            free[0] = 0.0 if self.fixed else free[0]
            return value / scale, (moved - free * float(np.sum(moved))) / scale

        found = optimize.minimize(of_logs, np.log(np.maximum(start, 1e-12)), jac=True, method="L-BFGS-B")
        shares = self._normal(np.exp(found.x - np.max(found.x)))
        return min((shares, self._thin(shares), self._thin(start)), key=self.total)

    def _thin(self, shares: Floats) -> Floats:
        return self._normal(np.where(shares < _NEGLIGIBLE, 0.0, shares))
