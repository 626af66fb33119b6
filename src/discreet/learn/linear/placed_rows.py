"""Rows around their middle, ready to be weighed, and the budget of what weighs them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.learn.linear.loss_functions import MarginLoss
from discreet.learn.linear.row_summary import EntrySquares, Place
from discreet.learn.linear.vector_noise import VectorNoise
from discreet.learn.weights import shrink_values
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS
from discreet.statistics.row_sums import UNIT, Design

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CLIP = UNIT // 2  # of r x, where |r| <= 1 and ||x|| <= 1 without a clip: noise is halved, large residuals count less
SCALING_SHARE = Fraction(1, 20)  # of the budget of the weights
SCALED = 200.0  # of what is heard: from here on entries are made equally loud


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRows:
    """Integer rows around their middle, with their classes, and what is public of them.

    Attributes:
        design: the rows, ||row|| <= RADIUS.
        targets: the class of each; -1 is none.
        loss: of margins.
        place: where they are, public.
        shares: public weights of classes; None if all count alike.
    """

    design: Design
    targets: Integers
    loss: MarginLoss
    place: Place
    shares: Integers | None

    @property
    def start(self) -> Floats:
        """Returns the weights that know nothing but the released shares of classes: post-processing."""
        place = self.place
        theta = np.zeros((self.loss.outputs, place.width))
        if place.constant:
            weighed = place.shares if self.shares is None else place.shares * np.maximum(self.shares, 1)
            theta[:, -1] = prior_margins(self.loss, weighed / np.sum(weighed)) * RADIUS / place.constant
        return theta[0] if self.loss.outputs == 1 else theta

    def gradient(self, theta: Floats) -> Integers:
        """Returns the exact sum of clipped gradients of all rows; the weight of a class only makes them shorter."""
        residuals = self.loss.residuals(self.design.margins(theta), self.targets)
        if self.shares is not None:
            residuals = shrink_values(residuals, self.shares[np.maximum(self.targets, 0)])
        return self.design.gradient(residuals)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsBudget(ABC):
    """What private weights may cost, divided when the number of rows has been released.

    Where rows say much more than noise, a part of it makes the entries of rows equally loud first.

    Formal guarantee: its parts, of epsilon or of mu^2, add up to no more than the whole whatever they are, and depend
    on released numbers alone, so the event is that of the whole (adaptive composition of a fixed sum: Rogers, Roth,
    Ullman, Vadhan 2016 for epsilons, Smith, Thakurta 2022 for mu-GDP).

    Attributes:
        part: the budget.
        neighbours: the relation to protect.
    """

    part: Spending
    neighbours: Neighbours

    @property
    def event(self) -> Event:
        """Returns what all of it costs."""
        return VectorNoise(part=self.part).event

    def signal_to_noise(self, count: float, size: int) -> float:
        """Returns how much gradients of about so many rows by so many weights hold, in units of their noise."""
        if self.part.is_pure:
            return count * float(self.part.pure_epsilon) / size
        return count / math.sqrt(size) / float(self.part.noise_multiplier)

    def scaling(self, count: float, size: int) -> EntrySquares | None:
        """Returns what is released about entries first, if anything."""
        if self.signal_to_noise(count, size) < SCALED:
            return None
        return EntrySquares(noise=VectorNoise(part=self._whole.share(SCALING_SHARE)), neighbours=self.neighbours)

    def rest(self, count: float, size: int) -> Spending:
        """Returns the budget that remains for the weights."""
        return self._whole.share(1 if self.scaling(count, size) is None else 1 - SCALING_SHARE)

    @property
    def _whole(self) -> Spending:
        """Returns the budget, whose mu is what the event says of it: the root in a noise multiplier is rounded up."""
        return self.part if self.part.is_pure else replace(self.part, mu_squared=1 / self.part.noise_multiplier**2)

    @abstractmethod
    def theta(self, rows: PlacedRows, bits: Bits) -> Floats:
        """Releases weights of integer rows over RADIUS, in the shape of their start."""


def prior_margins(loss: MarginLoss, shares: Floats) -> Floats:
    """Returns margins that predict classes in these parts of all rows, one for each output.

    They are the minimiser of the logistic loss without features. The hinge has its minimisers near -1 and 1, where
    classes would tie: 2 p - 1 keeps their order.
    """
    if loss.twice_smooth:
        logs = np.log(shares)
        return logs[1:] - logs[:1] if loss.outputs == 1 else logs - np.mean(logs)
    return 2 * shares[1:] - 1 if loss.outputs == 1 else 2 * shares - 1
