"""The dominating pairs of every event: the worst case of any two neighbours, one function per event."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from discreet.accounting.basic import basic, compose
from discreet.accounting.event_counts import terms
from discreet.accounting.lattice import discrete_gaussian_pair, discrete_laplace_pair
from discreet.accounting.pairs import AtomicPair, Floats, GaussianPair, LaplacePair, Pair, SampledPair
from discreet.errors import UnsupportedEvent
from discreet.exact import float_above
from discreet.privacy import events
from discreet.privacy.events import Event

METHOD = "PLD"


@dataclass(frozen=True, slots=True, eq=False)
class Dominating:
    """The pairs for a removed and for an added unit; None as the second says that they are the same."""

    removal: Pair
    other: Pair | None = None

    @property
    def symmetric(self) -> bool:
        """Whether one pair serves both directions."""
        return self.other is None

    @property
    def addition(self) -> Pair:
        """The pair for an added unit."""
        return self.removal if self.other is None else self.other


@singledispatch
def dominating(event: Event) -> Dominating:
    """The dominating pairs of one event.

    An event known only by its (epsilon, delta) is dominated by randomized response with a leak of delta (Kairouz, Oh,
    Viswanath 2015, Theorem 3.4).
    """
    loss = basic(event)
    return Dominating(_randomized_response(float_above(loss.epsilon), 2, float_above(loss.delta)))


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
def _(event: events.RandomizedResponse) -> Dominating:
    return Dominating(_randomized_response(float_above(event.epsilon), event.options, 0.0))


@dominating.register
def _(event: events.Gaussian) -> Dominating:
    return Dominating(GaussianPair(mu=float_above(1 / event.noise_multiplier)))


@dominating.register
def _(event: events.Laplace) -> Dominating:
    return Dominating(LaplacePair(width=float_above(1 / event.noise_multiplier)))


@dominating.register
def _(event: events.DiscreteLaplace) -> Dominating:
    """The shift by the whole sensitivity in one entry is the worst move, the law being log-concave."""
    return Dominating(discrete_laplace_pair(event.scale, event.sensitivity))


@dominating.register
def _(event: events.DiscreteGaussian) -> Dominating:
    if event.dimension != 1:
        raise UnsupportedEvent(event, METHOD, "In several dimensions no single shift is the worst; use zCDP or RDP.")
    return Dominating(discrete_gaussian_pair(event.sigma, int(event.sensitivity)))


@dominating.register
def _(event: events.Concentrated) -> Dominating:
    raise UnsupportedEvent(event, METHOD, "Concentrated DP names no worst pair; use zCDP or RDP.")


@dominating.register
def _(event: events.PoissonSampled) -> Dominating:
    """Zhu, Dong, Wang 2022, Theorem 11, from the base pairs of each direction."""
    base, rate = dominating(event.event), float_above(event.probability)
    if rate == 1:  # closer to 1 than floats can say: a sample of everybody is never better
        return base
    return Dominating(SampledPair(base.removal, rate, removal=True), SampledPair(base.addition, rate, removal=False))


@dominating.register(events.Composed)
@dominating.register(events.Repeated)
def _(event: events.Composed | events.Repeated) -> Dominating:
    """Several releases from one sample: their basic composition stands for them."""
    loss = compose(terms(event))
    return Dominating(_randomized_response(float_above(loss.epsilon), 2, float_above(loss.delta)))
