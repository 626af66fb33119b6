"""The dominating pairs of every event: the worst case of any two neighbours, one function per event.

Discrete laws stand against their own shifts, with exact losses and masses on the integers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

import numpy as np

from discreet.accounting.composition import basic, compose, terms
from discreet.accounting.loss_distributions.pairs import (
    AtomicPair,
    DistributionPair,
    Floats,
    GaussianPair,
    LaplacePair,
    Masses,
    SampledPair,
)
from discreet.dataclass import dataclass
from discreet.errors import UnsupportedEvent
from discreet.exact import float_above, float_below
from discreet.lazy import special
from discreet.privacy import events
from discreet.privacy.events import Event

_REACH = 40.0  # standard deviations beyond which a Gaussian has a share below e^-800 of its mass, and no float has any
_LARGEST_RATIO = 1 << 12  # of a shift to sigma: losses stay below 2^24, where floats tell them apart
_WIDE = 1 << 12  # sigma above which integers are summed by integrals with a bounded error
_LARGEST_SHIFT = 1 << 45
_UNIT = 2.0**-46
_ON_EDGE = 2.0**-50  # an integer that misses a cell's edge by this share of its largest size counts as lying on it

METHOD = "PLD"


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteLaplacePair(DistributionPair):
    """Discrete Laplace against itself, shifted: P(z) ~ a^|z|, Q(z) = P(z - shift), a = e^-each.

    For 0 < z < shift the loss is (shift - 2 z) each; all z <= 0 share the largest, all z >= shift the smallest.
    """

    each: float
    shift: int

    @property
    def lattice(self) -> float:  # type: ignore[override]  # fixed by the parameters
        """Returns the distance of neighbouring losses, twice `each`."""
        return 2 * self.each

    def masses(self, edges: Floats) -> Masses:
        """Returns geometric sums over the integers whose losses fall into each cell."""
        bound = np.clip(np.ceil((self.shift - edges / self.each) / 2 - _ON_EDGE * self.shift), 1, self.shift)
        start, count = bound[1:], bound[:-1] - bound[1:]  # integers start, ..., start + count - 1
        some = -np.expm1(-self.each * count) / (1 + math.exp(-self.each))
        p = np.exp(-self.each * start) * some
        q = np.exp(-self.each * (self.shift - start - count + 1)) * some
        top, bottom = 1 / (1 + math.exp(-self.each)), math.exp(-self.shift * self.each) / (1 + math.exp(-self.each))
        largest = self.shift * self.each
        above, below = (_holds(edges, largest), _holds(edges, -largest))
        p, q = p + top * above + bottom * below, q + bottom * above + top * below
        return Masses(p, q, _UNIT * p, _UNIT * q)

    def span(self, log_tail: float) -> tuple[float, float]:  # noqa: ARG002 - nothing lies beyond
        """Returns the smallest and the largest loss: no tail lies beyond."""
        return -self.shift * self.each, self.shift * self.each


def _holds(edges: Floats, loss: float) -> Floats:
    """Returns which cells hold one loss, an edge missed by a rounding error counting as met."""
    slack = _ON_EDGE * abs(loss)
    return ((edges[:-1] < loss - slack) & (edges[1:] >= loss - slack)).astype(float)


@dataclass(frozen=True, slots=True, eq=False)
class WideGaussianPair(DistributionPair):
    """Discrete Gaussian of large sigma against its shift: z has loss (shift^2 - 2 z shift) / (2 sigma^2).

    A sum of masses over integers is the integral between half-integers, up to the error of the midpoint rule, the
    integral of |f''| / 24: relative to the mass at most (E[x^2] + 1) / (16 sigma^2), x counted in sigmas. In a cell
    whose edge nearest to 0 is a, E[x^2] <= a^2 + a + 2, also if the cell is unbounded, by the normal hazard rate of
    at most a + 1.
    """

    sigma: float
    shift: int

    def masses(self, edges: Floats) -> Masses:
        """Returns normal cells whose edges are the half-integers between which the integers of a cell lie."""
        missed = _ON_EDGE * (self.shift + 40 * self.sigma)
        cut = np.ceil(self.shift / 2 - edges * self.sigma**2 / self.shift - missed) - 0.5
        p, p_error = self._cells(cut)
        q, q_error = self._cells(cut - self.shift)
        return Masses(p, q, p_error, q_error)

    def _cells(self, cut: Floats) -> tuple[Floats, Floats]:
        x = cut / self.sigma
        upper, lower = x[:-1], x[1:]  # losses rise as integers fall
        tails = special.ndtr(-np.abs(x))
        same = np.sign(upper) == np.sign(lower)
        mass = np.where(same, np.abs(tails[:-1] - tails[1:]), 1 - tails[:-1] - tails[1:])
        size = np.where(same, tails[:-1] + tails[1:], 1.0)
        near = np.where(same, np.minimum(np.abs(upper), np.abs(lower)), 0.0)
        near = np.minimum(near, _REACH)  # beyond, masses are zero
        return mass, size * ((near**2 + near + 3) / (16 * self.sigma**2) + 2.0**-50 * (1 + near**2))

    def span(self, log_tail: float) -> tuple[float, float]:
        """Returns the span of the continuous law, and one integer more."""
        low, high = GaussianPair(self.shift / self.sigma).span(log_tail)
        step = self.shift / self.sigma**2
        return low - 2 * step, high + 2 * step


def discrete_laplace_pair(scale: Fraction, shift: int) -> DistributionPair:
    """Returns the pair of a discrete Laplace law and its shift."""
    if shift > _LARGEST_SHIFT:
        raise UnsupportedEvent(f"a move of {shift} steps", "PLD", "Use a coarser grid, or price it as pure.")
    return DiscreteLaplacePair(float_above(1 / scale), shift)


def discrete_gaussian_pair(sigma: Fraction, shift: int) -> DistributionPair:
    """Returns the pair of a discrete Gaussian law and its shift."""
    spread = float_below(sigma)
    if shift > _LARGEST_RATIO * spread or spread > 2.0**60:
        raise UnsupportedEvent(f"sigma={spread:.3g} and a move of {shift}", "PLD", "Use zCDP or RDP.")
    return WideGaussianPair(spread, shift) if spread > _WIDE else _shift_atoms(spread, shift)


def _shift_atoms(sigma: float, shift: int) -> AtomicPair:
    """Returns the pair on all integers where P has mass in floats: around 0, however far the shift is."""
    reach = math.ceil(_REACH * sigma) + 4
    z = np.arange(-reach, reach + 1).astype(float)
    logs = -(z**2) / (2 * sigma**2)
    logs -= math.log(float(np.exp(logs).sum()))
    step = shift / sigma**2
    losses = (shift / 2 - z) * step
    kept = logs > -745  # smaller masses are zero in floats
    p = np.exp(logs[kept])
    q = np.exp(logs[kept] - losses[kept])
    error = 2.0**-49 * (4 + np.abs(logs[kept]) + np.abs(losses[kept]))  # exponents are rounded relative to their size
    return AtomicPair(losses=losses[kept], p=p, q=q, lattice=step, relative_error=error)


def discrete_gaussian_delta(sigma: Fraction, shift: int, epsilon: float) -> float:
    """Returns the profile of one release, the sum of (p(z) - e^epsilon p(z - shift))+ over the integers, rounded up.

    The law is log-concave, so shifts are ordered by likelihood ratio, every best test is a threshold, and the largest
    shift that a unit can cause is the worst.

    >>> f"{discrete_gaussian_delta(Fraction(3.740485), 1, 1.0):.4g}"
    '1e-05'

    Raises:
        UnsupportedEvent: where `discrete_gaussian_pair` has no pair.
    """
    return discrete_gaussian_pair(sigma, shift).delta(epsilon)


@dataclass(frozen=True, slots=True, eq=False)
class DominatingPairs:
    """The pairs for a removed and for an added unit; None as the second says that they are the same."""

    removal: DistributionPair
    other: DistributionPair | None = None

    @property
    def symmetric(self) -> bool:
        """Returns whether one pair serves both directions."""
        return self.other is None

    @property
    def addition(self) -> DistributionPair:
        """Returns the pair for an added unit."""
        return self.removal if self.other is None else self.other


@singledispatch
def dominating(event: Event) -> DominatingPairs:
    """Returns the dominating pairs of one event.

    An event known only by its (epsilon, delta) is dominated by randomized response with a leak of delta (Kairouz, Oh,
    Viswanath 2015, Theorem 3.4).
    """
    loss = basic(event)
    return DominatingPairs(_randomized_response(float_above(loss.epsilon), 2, float_above(loss.delta)))


def _randomized_response(epsilon: float, options: int, leak: float) -> AtomicPair:
    """Truth against lie: losses epsilon, 0 (if there are more than two options) and -epsilon."""
    lie = math.exp(-epsilon)
    total = 1 + (options - 1) * lie
    losses = np.array([epsilon, 0.0, -epsilon])
    p = np.array([1.0, (options - 2) * lie, lie]) / total * (1 - leak)
    return _atoms(losses, p, p[::-1], infinite=leak, lattice=2 * epsilon)


def _atoms(losses: Floats, p: Floats, q: Floats, infinite: float, lattice: float | None) -> AtomicPair:
    kept = p > 0
    return AtomicPair(losses=losses[kept], p=p[kept], q=q[kept], infinite=infinite, lattice=lattice)


@dominating.register
def _(event: events.RandomizedResponse) -> DominatingPairs:
    return DominatingPairs(_randomized_response(float_above(event.epsilon), event.options, 0.0))


@dominating.register
def _(event: events.Gaussian) -> DominatingPairs:
    return DominatingPairs(GaussianPair(mu=float_above(1 / event.noise_multiplier)))


@dominating.register
def _(event: events.Laplace) -> DominatingPairs:
    return DominatingPairs(LaplacePair(width=float_above(1 / event.noise_multiplier)))


@dominating.register
def _(event: events.DiscreteLaplace) -> DominatingPairs:
    """The shift by the whole sensitivity in one entry is the worst move, the law being log-concave."""
    return DominatingPairs(discrete_laplace_pair(event.scale, event.sensitivity))


@dominating.register
def _(event: events.DiscreteGaussian) -> DominatingPairs:
    if event.dimension != 1:
        raise UnsupportedEvent(event, METHOD, "In several dimensions no single shift is the worst; use zCDP or RDP.")
    return DominatingPairs(discrete_gaussian_pair(event.sigma, int(event.sensitivity)))


@dominating.register
def _(event: events.Concentrated) -> DominatingPairs:
    raise UnsupportedEvent(event, METHOD, "Concentrated DP names no worst pair; use zCDP or RDP.")


@dominating.register
def _(event: events.PoissonSampled) -> DominatingPairs:
    """Zhu, Dong, Wang 2022, Theorem 11, from the base pairs of each direction."""
    base, rate = dominating(event.event), float_above(event.probability)
    if rate == 1:  # closer to 1 than floats can say: a sample of all rows is never better
        return base
    return DominatingPairs(
        SampledPair(base.removal, rate, removal=True), SampledPair(base.addition, rate, removal=False)
    )


@dominating.register(events.Composed)
@dominating.register(events.Repeated)
def _(event: events.Composed | events.Repeated) -> DominatingPairs:
    """Several releases from one sample are replaced by their basic composition."""
    loss = compose(terms(event))
    return DominatingPairs(_randomized_response(float_above(loss.epsilon), 2, float_above(loss.delta)))
