"""A linear fit in four releases: where rows are, how loud their entries, their weights, if these beat the prior."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.learn.features import Features
from discreet.learn.linear.loss_functions import MarginLoss
from discreet.learn.linear.placed_rows import CLIP, PlacedRows, WeightsBudget
from discreet.learn.linear.row_summary import RowSummary, fine_rows
from discreet.learn.linear.vector_noise import VectorNoise
from discreet.learn.weights import ONE
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.row_sums import Design

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SURVEY_SHARE = Fraction(1, 10)
COMPARISON_SHARE = Fraction(1, 20)
PURE_COMPARISON_SHARE = Fraction(1, 10)  # Laplace noise of the same share is heard over more rows
MARGIN = 1.0  # rows for each weight: about so many are right by chance on the rows that weights were fitted to
KEPT = 0.05  # of weights that do no better than the prior: enough to decide where the prior says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorComparison:
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
        better = (_choose_classes(weights) == codes).astype(np.int64) - (_choose_classes(prior) == codes)
        each = ONE if shares is None else shares[np.maximum(codes, 0)]
        return int(np.sum(each * better))

    def is_won(self, gain: int, size: int, bits: Bits) -> bool:
        """Releases whether so many weights seem to be better, by more than they follow chance."""
        return bool(self.noise.mechanism(self.sensitivity, 1).release(gain, bits=bits) > MARGIN * size * ONE)


def _choose_classes(margins: Integers) -> Integers:
    """Returns the class that integer margins select."""
    return (margins > 0).astype(np.int64) if margins.ndim == 1 else np.argmax(margins, axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyedFit:
    """A survey of the rows, weights of rows around their middle, and a comparison with the prior.

    Weights start from the released shares of classes. Where they seem to do no better than these do, they are shrunk
    toward them; see `RowSummary`, `WeightsBudget` and `PriorComparison`.

    Attributes:
        survey: the first release.
        method: of the weights, and of what makes rows fit for them.
        comparison: the last release; None without an intercept, where there is no prior.
    """

    survey: RowSummary
    method: WeightsBudget
    comparison: PriorComparison | None

    @classmethod
    def of(
        cls,
        spending: Spending,
        neighbours: Neighbours,
        method: Callable[[Spending], WeightsBudget],
        *,
        intercept: bool,
    ) -> SurveyedFit:
        """Returns the fit that uses all of a budget, with a method for the part that weights may cost."""
        share = PURE_COMPARISON_SHARE if spending.is_pure else COMPARISON_SHARE
        noise = VectorNoise(part=spending.share(share))
        rest = 1 - SURVEY_SHARE - (share if intercept else 0)
        return cls(
            survey=RowSummary.of(spending.share(SURVEY_SHARE), neighbours),
            method=method(spending.share(rest)),
            comparison=PriorComparison(noise=noise, neighbours=neighbours) if intercept else None,
        )

    @property
    def event(self) -> Event:
        """Returns what all of it costs."""
        last = [] if self.comparison is None else [self.comparison.event]
        return events.Composed([self.survey.event, self.method.event, *last])

    def weights(
        self,
        X: Floats,
        targets: Integers,
        public: Features,
        loss: MarginLoss,
        bits: Bits,
        *,
        shares: Integers | None = None,
    ) -> tuple[Floats, Floats]:
        """Returns weights of normalised features and shifts, one row and one shift for each output.

        With `shares` a row's residuals are shrunk by the weight of its class: its gradient only gets shorter.
        """
        fine = fine_rows(X, public)
        classes = max(2, loss.outputs)
        place = self.survey.release(fine, targets, classes, centred=public.constant > 0, bits=bits)
        scaling = self.method.scaling(place.count, place.width * loss.outputs)
        if scaling is not None:
            place = scaling.release(fine, place, bits)
        design = Design.of(place.rows(fine), clip=CLIP)
        rows = PlacedRows(design=design, targets=targets, loss=loss, place=place, shares=shares)
        start, theta = rows.start, self.method.theta(rows, bits)
        if self.comparison is not None:
            gain = self.comparison.gain(design.margins(theta), design.margins(start), targets, shares)
            if not self.comparison.is_won(gain, theta.size, bits):
                theta = start + KEPT * (theta - start)
        return place.weights(theta.reshape(loss.outputs, place.width), public.norm)
