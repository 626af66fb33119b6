"""Releases as an audit sees them: which mechanism drew, and how much privacy its event allows."""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.composition import compose as basic
from discreet.accounting.composition import terms
from discreet.dataclass import dataclass
from discreet.errors import UnsupportedEvent
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.releases.candidates import CandidateDraw
from discreet.mechanisms import PartitionSelection, WeightedSelection
from discreet.mechanisms.mechanism import Law
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.ranks import Pick
from discreet.privacy import events


@dataclass(frozen=True)
class PointRelease:
    """Describes the release of one point in every group, from a grid up to `last` read in blocks of 2^shift points.

    Points that are drawn in one go share a read, whose number is `read`.
    """

    pick: Pick
    last: int
    shift: int
    read: int = 0

    @property
    def event(self) -> events.Event:
        """Returns the event that prices the release."""
        return self.pick.event

    @property
    def law(self) -> Law:
        """Returns which currency it was paid in."""
        return law_of(self.event)


@dataclass(frozen=True)
class QuantileLevelRelease:
    """Describes the release of one level of several quantiles, in every group; recorded outputs hold all levels."""

    tree: QuantileTree
    level: int
    last: int
    shift: int
    read: int = 0

    @property
    def event(self) -> events.Event:
        """Returns the event that prices the release."""
        return self.tree.levels[self.level]

    @property
    def law(self) -> Law:
        """Returns which currency it was paid in."""
        return law_of(self.event)


@dataclass(frozen=True)
class CandidateRelease:
    """Describes the release of one candidate in every group, from the counts of a read."""

    recipe: CandidateDraw
    read: int

    @property
    def event(self) -> events.Event:
        """Returns the event that prices the release."""
        return self.recipe.event

    @property
    def law(self) -> Law:
        """Returns which currency it was paid in."""
        return law_of(self.event)


@dataclass(frozen=True)
class SelectionRound:
    """Describes the release of one round of a weighted selection, from the weights of all groups that are left."""

    selection: WeightedSelection
    turn: int

    @property
    def event(self) -> events.Event:
        """Returns the event that prices the noise of the round."""
        return self.selection.event.events[2 * self.turn]


Release = AdditiveNoise | PartitionSelection | PointRelease | QuantileLevelRelease | CandidateRelease | SelectionRound


def law_of(event: events.Event) -> Law:
    """Returns "gaussian" for what was paid in rho, "laplace" for what was paid in epsilon."""
    return "gaussian" if isinstance(event, events.Concentrated | events.Gaussian) else "laplace"


def allowance(event: events.Event) -> Fraction:
    """Returns what an event allows.

    Epsilon for Laplace noise and drawn points, rho for Gaussian noise and points like it.

    Raises:
        UnsupportedEvent: for one that no release of a curator has.
    """
    if isinstance(event, events.DiscreteLaplace):
        return event.sensitivity / event.scale
    if isinstance(event, events.DiscreteGaussian):
        return event.sensitivity**2 / (2 * event.sigma**2)
    if isinstance(event, events.Concentrated):
        return event.rho
    if isinstance(event, events.Gaussian):
        return 1 / (2 * event.noise_multiplier**2)
    if isinstance(event, events.BoundedRange | events.Repeated):
        return Fraction(basic(terms(event)).epsilon)
    if isinstance(event, events.Pure):
        return event.epsilon
    raise UnsupportedEvent(event, "The audit of questions")
