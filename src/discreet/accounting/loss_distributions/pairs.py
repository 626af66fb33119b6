"""Dominating pairs of distributions, seen through the privacy loss L = ln(dP/dQ).

A pair answers one question: how much mass of P and of Q lies where the loss is between two numbers. Poisson sampling
maps losses monotonically and mixes the masses, so it is a pair made of a pair, for any base (Zhu, Dong, Wang 2022,
Theorem 11).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.numerics import SLACK, safe
from discreet.dataclass import dataclass
from discreet.lazy import special

Floats = NDArray[np.float64]

FLUSHED = 1e-310  # a normal tail beyond 37.6 deviations is zero in floats, and so is any mass below 5e-324
LOW_TAIL = -40.0  # ln of a share; losses below are raised to the lowest grid point, which moves no answer
_UNIT = 2.0**-50  # the error of one tail probability, relative to it: eight units of roundoff
_ON_EDGE = 2.0**-50  # an atom that misses a cell's edge by this share of its loss counts as lying on it


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """Masses of P and Q in cells of losses, each with a bound of its absolute error."""

    p: Floats
    q: Floats
    p_error: Floats
    q_error: Floats


class DistributionPair(ABC):
    """Two distributions P and Q; the guarantee of a mechanism in one direction is theirs."""

    infinite: float = 0.0
    """The mass of P where Q has none."""

    lattice: float | None = None
    """If losses are whole multiples of a number, half that number's multiples included, the number."""

    @abstractmethod
    def masses(self, edges: Floats) -> Masses:
        """Returns masses of the cells (edges[i], edges[i+1]] of increasing losses.

        Edges may be infinite at both ends.
        """

    @abstractmethod
    def span(self, log_tail: float) -> tuple[float, float]:
        """Returns losses between which P lies, but for a share exp(log_tail) above and a share LOW_TAIL below."""

    def delta(self, epsilon: float) -> float:
        """Returns P(L > epsilon) - e^epsilon Q(L > epsilon), rounded up.

        This is the profile of one release, which needs no grid.

        An atom that rounding puts on the edge would be missed, so the edge is lowered by more than that.
        """
        at = epsilon * (1 - SLACK)
        above = self.masses(np.array([at, np.inf]))
        p, q = float(above.p[0] + above.p_error[0]), float(above.q[0] - above.q_error[0])
        return min(1.0, safe(self.infinite + max(0.0, p - _scale_mass(q - FLUSHED, at)) + FLUSHED))


def _scale_mass(mass: float, epsilon: float) -> float:
    """Returns at most mass times e^epsilon, which may overflow alone; exponents are rounded relative to their size.

    A mass below the smallest float with all its digits is not known exactly, and counts as nothing.
    """
    if mass <= 0:
        return 0.0
    log = math.log(mass)
    return math.exp(log + epsilon - 2.0**-50 * (1 + epsilon - log))


@dataclass(frozen=True, slots=True, eq=False)
class GaussianPair(DistributionPair):
    """N(mu, 1) against N(0, 1): the loss is N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q."""

    mu: float

    def masses(self, edges: Floats) -> Masses:
        """Returns differences of normal tails."""
        centred = edges / self.mu
        p, p_error = _normal_cells(centred - self.mu / 2)
        q, q_error = _normal_cells(centred + self.mu / 2)
        return Masses(p, q, p_error, q_error)

    def span(self, log_tail: float) -> tuple[float, float]:
        """Returns the mean of the loss plus and minus a normal quantile."""
        mean = self.mu**2 / 2
        return mean + self.mu * float(special.ndtri_exp(LOW_TAIL)), mean - self.mu * float(special.ndtri_exp(log_tail))


def _normal_cells(x: Floats) -> tuple[Floats, Floats]:
    """Normal masses between neighbouring points, as differences of the smaller tails."""
    tail = special.ndtr(-np.abs(x))
    left, right = tail[:-1], tail[1:]
    straddling = (x[:-1] < 0) & (x[1:] >= 0)
    mass = np.where(straddling, 1 - left - right, np.abs(right - left))
    size = np.where(straddling, 1.0, left + right)
    moved = np.minimum(np.minimum(np.abs(x[:-1]), np.abs(x[1:])) ** 2, 1e4)  # rounding x moves its tail by x^2 units
    return mass, _UNIT * size * (1 + moved)


@dataclass(frozen=True, slots=True, eq=False)
class LaplacePair(DistributionPair):
    """Lap(b) shifted by s against Lap(b), width = s / b: losses from -width to width, with atoms at both ends.

    P(L > l) = 1 - e^((l - width)/2) / 2 and Q(L > l) = e^(-(l + width)/2) / 2 for -width <= l < width.
    """

    width: float

    def masses(self, edges: Floats) -> Masses:
        """Returns differences of exponentials; the atoms fall into the cells that contain the ends."""
        w = self.width
        inside = np.clip(edges, -w, w)
        # Cells (l, u] with u >= w hold the upper atom: P(L = w) = 1/2; those with l < -w <= u the lower one.
        p = np.exp((inside[1:] - w) / 2) * -np.expm1((inside[:-1] - inside[1:]) / 2) / 2
        q = np.exp(-(inside[:-1] + w) / 2) * -np.expm1((inside[:-1] - inside[1:]) / 2) / 2
        upper = (edges[:-1] < w) & (edges[1:] >= w)
        lower = (edges[:-1] < -w) & (edges[1:] >= -w)
        p += 0.5 * upper + 0.5 * math.exp(-w) * lower
        q += 0.5 * math.exp(-w) * upper + 0.5 * lower
        return Masses(p, q, 8 * _UNIT * p, 8 * _UNIT * q)

    def span(self, log_tail: float) -> tuple[float, float]:  # noqa: ARG002 - nothing lies beyond
        """Returns the smallest and the largest loss: no tail lies beyond."""
        return -self.width, self.width


@dataclass(frozen=True, slots=True, eq=False)
class AtomicPair(DistributionPair):
    """Finitely many losses with their masses, and a rest of P that counts as an infinite loss."""

    losses: Floats
    p: Floats
    q: Floats
    infinite: float = 0.0
    lattice: float | None = None
    relative_error: float | Floats = 2.0**-46  # of the masses, for all or for each

    def masses(self, edges: Floats) -> Masses:
        """Sums per cell; an atom within a rounding error of an edge counts as lying on it."""
        tolerance = _ON_EDGE * np.abs(self.losses)
        cell = np.searchsorted(edges, self.losses - tolerance, side="left") - 1
        inside = (cell >= 0) & (cell < edges.size - 1)
        error = np.broadcast_to(self.relative_error, self.p.shape)
        sums = [
            np.bincount(cell[inside], weights[inside], minlength=edges.size - 1).astype(np.float64, copy=False)
            for weights in (self.p, self.q, error * self.p, error * self.q)
        ]
        return Masses(*sums)

    def delta(self, epsilon: float) -> float:
        """Returns E[(1 - e^(epsilon - L))+] under P, atom by atom: also where Q has a mass too small for floats."""
        above = np.maximum(self.losses - epsilon * (1 - SLACK) + _ON_EDGE * np.abs(self.losses), 0.0)
        excess = float((self.p * (1 + self.relative_error) * -np.expm1(-above)).sum())
        return min(1.0, safe(self.infinite + excess + FLUSHED))

    def span(self, log_tail: float) -> tuple[float, float]:  # noqa: ARG002 - nothing lies beyond
        """Returns the smallest and largest loss."""
        return float(self.losses.min()), float(self.losses.max())


@dataclass(frozen=True, slots=True, eq=False)
class SampledPair(DistributionPair):
    """A base pair on a Poisson sample.

    When a unit is removed it is (1-q) Q + q P against Q, when one is added P against (1-q) P + q Q. Removal: the loss
    is ln(1 - q + q e^L), so an edge at l means L = ln(1 + (e^l - 1) / q). Addition: the same with both losses
    negated.
    """

    base: DistributionPair
    rate: float
    removal: bool

    @property
    def infinite(self) -> float:  # type: ignore[override]  # a mixture keeps a share of the base's infinite mass
        """Returns the infinite mass: removal keeps the sampled share of P; else the mixture covers all of P."""
        return self.rate * self.base.infinite if self.removal else 0.0

    def masses(self, edges: Floats) -> Masses:
        """Returns base masses between the edges' preimages, mixed."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            base = self.base.masses(self._preimage(edges))
        if self.removal:
            mixed, error = self._mix(base.q, base.p), self._mix(base.q_error, base.p_error)
            return Masses(mixed, base.q, error, base.q_error)
        mixed, error = self._mix(base.p, base.q), self._mix(base.p_error, base.q_error)
        return Masses(base.p, mixed, base.p_error, error)

    def _mix(self, kept: Floats, sampled: Floats) -> Floats:
        return (1 - self.rate) * kept + self.rate * sampled

    def _preimage(self, edges: Floats) -> Floats:
        """ln(1 + (e^l - 1) / q), which for large l is l - ln q + ln(1 - (1-q) e^-l): no float holds e^710."""
        side = 1.0 if self.removal else -1.0
        near = np.expm1(np.minimum(side * edges, 1.0)) / self.rate
        far = np.maximum(side * edges, 1.0)
        beyond = far - math.log(self.rate) + np.log1p((self.rate - 1) * np.exp(-far))
        inside = np.where(near > -1, np.log1p(np.maximum(near, -1)), -np.inf)
        return side * np.where(side * edges > 1, beyond, inside)

    def _image(self, loss: float) -> float:
        side = 1.0 if self.removal else -1.0
        if side * loss > 700:
            return side * (side * loss + math.log(self.rate))
        return side * math.log1p(self.rate * math.expm1(side * loss))

    def span(self, log_tail: float) -> tuple[float, float]:
        """Returns the images of the base's span; a removed unit leaves mostly Q, which has the mirrored loss of P."""
        low, high = self.base.span(log_tail)
        bottom = min(low, -self.base.span(LOW_TAIL)[1]) if self.removal else low
        return self._image(bottom), self._image(high)


@dataclass(frozen=True, slots=True, eq=False)
class LeakyPair(DistributionPair):
    """A base pair with an independent release that gives everything away with probability `leak`, else nothing."""

    base: DistributionPair
    leak: float

    @property
    def infinite(self) -> float:  # type: ignore[override]  # made of two
        """Returns what leaks, or else has an infinite loss in the base."""
        return (self.leak + (1 - self.leak) * self.base.infinite) * (1 + _UNIT)

    @property
    def lattice(self) -> float | None:  # type: ignore[override]  # that of the base
        """Returns the losses are those of the base."""
        return self.base.lattice

    def masses(self, edges: Floats) -> Masses:
        """Returns what does not leak, of both distributions."""
        base, kept = self.base.masses(edges), 1 - self.leak
        p, q = kept * base.p, kept * base.q
        return Masses(p, q, base.p_error + _UNIT * p, base.q_error + _UNIT * q)

    def delta(self, epsilon: float) -> float:
        """Returns what leaks, and of the rest what the base gives."""
        return min(1.0, safe(self.leak + (1 - self.leak) * self.base.delta(epsilon)))

    def span(self, log_tail: float) -> tuple[float, float]:
        """Returns the span of the base."""
        return self.base.span(log_tail)
