"""Noisy gradient descent on exact integers, from the prior of the classes, and back to it where weights are noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.learn.features import Features
from discreet.learn.linear.loss_functions import Loss
from discreet.learn.linear.row_summary import EntrySquares, Place, Survey, fine_rows
from discreet.learn.linear.vector_noise import VectorNoise
from discreet.learn.weights import ONE, shrunk
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS
from discreet.statistics.row_sums import UNIT, Design

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS, MORE_STEPS = 100, 300  # with Gaussian noise, of which many small pieces are one large piece
WORK = 2.2e9  # of rows times weights times steps, about 4 seconds
FEWEST, MOST = 4, 100  # steps with K-norm noise, of which T pieces are sqrt(T) times as long as one
MOST_DRAWN = 25_000  # entries of K-norm noise in a fit, about 5 seconds
CLIP = UNIT // 2  # of r x, where |r| <= 1 and ||x|| <= 1 without a clip: noise is halved, large residuals count less
MOMENTUM = 0.9
_STABLE = 3.3  # of step size times curvature: momentum 0.9 is stable below 2 (1 + 0.9) = 3.8
_SIGNAL = 20.0  # of n mu / sqrt(d) for a step size of 1; chosen on training folds of several tables
_PURE_SIGNAL = 0.5  # of n epsilon / d for a step size of 1; likewise

SURVEY_SHARE = Fraction(1, 10)
SCALING_SHARE = Fraction(1, 20)  # of the descent
SCALED = 200.0  # of what is heard: from here on entries are made equally loud
COMPARISON_SHARE = Fraction(1, 20)
KEPT = 0.05  # of a descent that does no better than the prior: enough to decide where the prior says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Gradient descent with momentum, every gradient released with noise.

    Formal guarantee: a row moves each gradient by at most `clip` in the L2 norm when it is added or removed, by 2 clip
    when it is replaced (`statistics.row_sums.Design`), whatever the weights. Weights depend on released gradients
    alone, so T steps of noise multiplier sqrt(T) / mu are mu-GDP together (Dong, Roth, Su 2022, Corollary 3.3), and T
    steps of epsilon / T are epsilon-DP (Dwork, McSherry, Nissim, Smith 2006).

    Attributes:
        steps: how many there are, whatever the data.
        noise: of one step.
        neighbours: the relation to protect.
        clip: the largest gradient of a row, in units of 1 / UNIT.
    """

    steps: int
    noise: VectorNoise
    neighbours: Neighbours
    clip: int = CLIP

    @classmethod
    def of(cls, spending: Spending, neighbours: Neighbours, *, steps: int = STEPS) -> Descent:
        """Returns the descent that uses all of a budget."""
        noise = VectorNoise(part=spending.share(Fraction(1, steps)))
        return cls(steps=steps, noise=noise, neighbours=neighbours)

    @property
    def event(self) -> Event:
        """Returns what all steps cost."""
        return events.Repeated(self.noise.event, self.steps)

    @property
    def sensitivity(self) -> int:
        """Returns how far a row moves a gradient in the L2 norm."""
        return self.clip if self.neighbours is Neighbours.ADD_REMOVE else 2 * self.clip

    def rate(self, count: float, size: int, curvature: float) -> float:
        """Returns the step size: as much as the noise allows, and never so much that the descent could swing up.

        Args:
            count: how many rows there are, about.
            size: how many weights.
            curvature: the largest second derivative of a row's loss by its margins.
        """
        part = self.noise.part
        if part.is_pure:
            heard = count * self.steps * float(part.pure_epsilon) / size / _PURE_SIGNAL
        else:
            heard = count * math.sqrt(self.steps / size) / float(part.noise_multiplier) / _SIGNAL
        return min(heard, _STABLE / curvature)

    def run(
        self,
        gradient: Callable[[Floats], Integers],
        start: Floats,
        *,
        count: float,
        curvature: float,
        ridge: float,
        bits: Bits,
    ) -> Floats:
        """Returns the mean of the weights of the second half of all steps.

        Args:
            gradient: exact sums over rows for weights, in units of 1 / UNIT.
            start: the first weights, public.
            count: how many rows there are, about.
            curvature: the largest second derivative of a row's loss.
            ridge: the weight of ||theta||^2 / 2 in the sum of losses.
            bits: the source of randomness.
        """
        mechanism = self.noise.mechanism(self.sensitivity, start.size)
        rate = self.rate(count, start.size, curvature + ridge / count)
        theta, velocity, total = start, np.zeros(start.shape), np.zeros(start.shape)
        for step in range(self.steps):
            noisy = np.asarray(mechanism.release(gradient(theta), bits=bits), dtype=np.float64) / UNIT
            velocity = MOMENTUM * velocity - rate * (noisy + ridge * theta) / count
            theta = theta + velocity
            if step >= self.steps // 2:
                total += theta
        return total / (self.steps - self.steps // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The budget of a descent, divided when the number of rows has been released.

    Where gradients hold much more than noise, a part of it makes the entries of rows equally loud first, and there are
    more steps.

    Formal guarantee: its parts, of epsilon or of mu^2, add up to no more than the whole whatever they are, and depend
    on released numbers alone, so the event is that of the whole (adaptive composition of a fixed sum: Rogers, Roth,
    Ullman, Vadhan 2016 for epsilons, Smith, Thakurta 2022 for mu-GDP).

    Attributes:
        part: the budget.
        neighbours: the relation to protect.
        steps: how many; None if that is chosen.
    """

    part: Spending
    neighbours: Neighbours
    steps: int | None

    @property
    def event(self) -> Event:
        """Returns what all of it costs."""
        return VectorNoise(part=self.part).event

    def heard(self, count: float, size: int) -> float:
        """Returns how much gradients of about so many rows by so many weights hold, in units of their noise."""
        if self.part.is_pure:
            return count * float(self.part.pure_epsilon) / size
        return count / math.sqrt(size) / float(self.part.noise_multiplier)

    def scaling(self, count: float, size: int) -> EntrySquares | None:
        """Returns what is released about entries first, if anything."""
        if self.heard(count, size) < SCALED:
            return None
        return EntrySquares(noise=VectorNoise(part=self._whole.share(SCALING_SHARE)), neighbours=self.neighbours)

    def descent(self, count: float, size: int) -> Descent:
        """Returns the descent for about so many rows and so many weights."""
        rest = 1 if self.scaling(count, size) is None else 1 - SCALING_SHARE
        steps = self._chosen_steps(count, size) if self.steps is None else self.steps
        return Descent.of(self._whole.share(rest), self.neighbours, steps=steps)

    @property
    def _whole(self) -> Spending:
        """The budget, whose mu is what the event says of it: the root in a noise multiplier is rounded up."""
        return self.part if self.part.is_pure else replace(self.part, mu_squared=1 / self.part.noise_multiplier**2)

    def _chosen_steps(self, count: float, size: int) -> int:
        """How many steps there are, by rules chosen on training folds.

        T pure steps are heard sqrt(T) times less than one, so there are more only where rows can be heard. Gaussian
        noise of T steps is heard as that of one; more of them come closer to the minimiser.
        """
        heard = self.heard(count, size)
        if self.part.is_pure:
            return max(FEWEST, min(math.ceil(math.sqrt(heard)), MOST, MOST_DRAWN // size))
        return int(max(STEPS, min(heard / 2, MORE_STEPS, WORK / (count * size))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One release: on how many more rows weights are right than the prior of the classes alone.

    Formal guarantee: a row counts -1, 0 or 1, times the share of its class, so it moves the number by 1 at most when
    it is added or removed, by 2 when it is replaced. Margins are exact integers, and those of a row are its own.

    If weights that are right on G rows fewer are kept, the noise exceeds G: in expectation, noise of deviation s loses
    no more than max G P(Z > G / s) < 0.17 s rows if it is normal; the Laplace noise of a pure budget, less than 0.19 b.

    Attributes:
        noise: what it costs.
        neighbours: the relation to protect.
    """

    noise: VectorNoise
    neighbours: Neighbours

    @property
    def event(self) -> Event:
        """Returns what it costs."""
        return self.noise.event

    @property
    def sensitivity(self) -> int:
        """Returns how far a row moves the number, in units of 1 / ONE of a row."""
        return ONE if self.neighbours is Neighbours.ADD_REMOVE else 2 * ONE

    def gain(self, weights: Integers, prior: Integers, codes: Integers, shares: Integers | None) -> int:
        """Returns what meets the noise, in units of 1 / ONE of a row.

        Args:
            weights: integer margins of rows by the weights.
            prior: the same by the prior.
            codes: the classes of the rows; -1 is never right.
            shares: the weight of each class in units of 1 / ONE; None for ONE.
        """
        better = (_chosen(weights) == codes).astype(np.int64) - (_chosen(prior) == codes)
        each = ONE if shares is None else shares[np.maximum(codes, 0)]
        return int(np.sum(each * better))

    def is_won(self, gain: int, bits: Bits) -> bool:
        """Releases whether the weights seem to be better."""
        return bool(self.noise.mechanism(self.sensitivity, 1).release(gain, bits=bits) > 0)


def _chosen(margins: Integers) -> Integers:
    """The class that integer margins stand for."""
    return (margins > 0).astype(np.int64) if margins.ndim == 1 else np.argmax(margins, axis=1)


def prior_margins(loss: Loss, shares: Floats) -> Floats:
    """Returns margins that predict classes in these parts of all rows, one for each output.

    They are the minimiser of the logistic loss without features. The hinge has its minimisers near -1 and 1, where
    classes would tie: 2 p - 1 keeps their order.
    """
    if loss.twice_smooth:
        logs = np.log(shares)
        return logs[1:] - logs[:1] if loss.outputs == 1 else logs - np.mean(logs)
    return 2 * shares[1:] - 1 if loss.outputs == 1 else 2 * shares - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDescent:
    """A survey of the rows, a noisy descent over rows around their middle, and a comparison with the prior.

    The descent starts from the released shares of classes. Where it seems to do no better than they do, its weights are
    shrunk toward them; see `Survey`, `Descent` and `Comparison`.

    Attributes:
        survey: the first release.
        schedule: of all gradients, and of what makes rows fit for them.
        comparison: the last release; None without an intercept, where there is no prior.
        ridge: the weight of ||theta||^2 / 2.
    """

    survey: Survey
    schedule: Schedule
    comparison: Comparison | None
    ridge: float

    @classmethod
    def of(
        cls, spending: Spending, neighbours: Neighbours, *, steps: int | None, ridge: float, intercept: bool
    ) -> GradientDescent:
        """Returns the method that uses all of a budget."""
        noise = VectorNoise(part=spending.share(COMPARISON_SHARE))
        compared = Comparison(noise=noise, neighbours=neighbours) if intercept else None
        rest = 1 - SURVEY_SHARE - (COMPARISON_SHARE if intercept else 0)
        return cls(
            survey=Survey.of(spending.share(SURVEY_SHARE), neighbours),
            schedule=Schedule(part=spending.share(rest), neighbours=neighbours, steps=steps),
            comparison=compared,
            ridge=ridge,
        )

    @property
    def event(self) -> Event:
        """Returns what all of it costs."""
        last = [] if self.comparison is None else [self.comparison.event]
        return events.Composed([self.survey.event, self.schedule.event, *last])

    def weights(
        self, X: Floats, targets: Integers, public: Features, loss: Loss, bits: Bits, *, shares: Integers | None = None
    ) -> tuple[Floats, Floats]:
        """Returns weights of normalised features and shifts, one row and one shift for each output.

        With `shares` a row's residuals are shrunk by the weight of its class: its gradient only gets shorter.
        """
        fine = fine_rows(X, public)
        classes = max(2, loss.outputs)
        place = self.survey.release(fine, targets, classes, centred=public.constant > 0, bits=bits)
        scaling = self.schedule.scaling(place.count, place.width * loss.outputs)
        if scaling is not None:
            place = scaling.release(fine, place, bits)
        design = Design.of(place.rows(fine), clip=CLIP)
        start = _start(place, loss, shares)

        def weighed(residuals: Integers) -> Integers:
            return residuals if shares is None else shrunk(residuals, shares[np.maximum(targets, 0)])

        theta = self.schedule.descent(place.count, start.size).run(
            lambda weights: design.gradient(weighed(loss.residuals(design.margins(weights), targets))),
            start,
            count=place.count,
            curvature=loss.curvature,
            ridge=self.ridge,
            bits=bits,
        )
        if self.comparison is not None:
            gain = self.comparison.gain(design.margins(theta), design.margins(start), targets, shares)
            if not self.comparison.is_won(gain, bits):
                theta = start + KEPT * (theta - start)
        return place.weights(theta.reshape(loss.outputs, place.width), public.norm)


def _start(place: Place, loss: Loss, shares: Integers | None) -> Floats:
    """The weights that know nothing but the released shares of classes: post-processing."""
    theta = np.zeros((loss.outputs, place.width))
    if place.constant:
        weighed = place.shares if shares is None else place.shares * np.maximum(shares, 1)
        theta[:, -1] = prior_margins(loss, weighed / np.sum(weighed)) * RADIUS / place.constant
    return theta[0] if loss.outputs == 1 else theta
