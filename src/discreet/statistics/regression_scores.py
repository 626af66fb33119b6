"""What a row contributes to a regression: its residual, its weight in a step, and its slope, all from public tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.statistics.glm import MARGIN, RESIDUAL, SIGMOID, class_residuals, link_table, look_up
from discreet.statistics.scores import Huber, Score

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LARGEST_BOUND = 4.0  # of a score: 2^24 times its square, in units of 2^-10, is then at most the largest curvature
_FURTHEST_TARGET = 1 << 50
NOWHERE = np.int64(1 << 60)  # the target of a row that counts nowhere


class Response(ABC):
    """How targets meet margins: integer residuals (score units of 1 / RESIDUAL), step weights >= 0, and slopes."""

    residual_bound: int
    weight_bound: int
    slope_bound: int
    signed: bool

    @abstractmethod
    def targets(self, y: Floats, scale: float) -> Integers:
        """Targets as integers, each by itself."""

    @abstractmethod
    def residuals(self, margins: Integers, targets: Integers) -> Integers:
        """psi: positive where the target lies above the margin."""

    @abstractmethod
    def weights(self, margins: Integers, targets: Integers) -> Integers:
        """Curvatures for a step, never negative."""

    @abstractmethod
    def slopes(self, margins: Integers, targets: Integers) -> Integers:
        """Slopes of psi, for the interval."""


@dataclass(frozen=True)
class Numbers(Response):
    """Targets that are numbers, with a score of (y - margin) / scale.

    The weight of a step is psi(u) / u, with which each step is one of iteratively reweighted least squares: it never
    overshoots and is never negative, even for scores that turn back.
    """

    score: Score

    @cached_property
    def _psi(self) -> Integers:
        found = link_table(self.score.psi)
        if np.abs(found).max() > _LARGEST_BOUND * RESIDUAL:
            raise InvalidParameter("psi", self.score, f"bounded by {_LARGEST_BOUND:g}", "Rescale the score.")
        return found

    @cached_property
    def _weight(self) -> Integers:
        return np.maximum(link_table(lambda u: np.clip(self.score.psi(u) / u, 0, _LARGEST_BOUND)), 0)

    @cached_property
    def _slope(self) -> Integers:
        return link_table(lambda u: np.clip(self.score.slope(u), -_LARGEST_BOUND, _LARGEST_BOUND))

    @property
    def residual_bound(self) -> int:  # type: ignore[override]
        """The largest |psi|."""
        return int(np.abs(self._psi).max())

    @property
    def weight_bound(self) -> int:  # type: ignore[override]
        """The largest psi(u) / u."""
        return int(self._weight.max())

    @property
    def slope_bound(self) -> int:  # type: ignore[override]
        """The largest |psi'|."""
        return int(np.abs(self._slope).max())

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Whether the score turns back somewhere."""
        return bool((self._slope < 0).any())

    def targets(self, y: Floats, scale: float) -> Integers:
        """y / scale in units of a margin; a missing one is marked as a row that counts nowhere."""
        with np.errstate(over="ignore"):
            scaled = np.clip(np.nan_to_num(y / scale * MARGIN, nan=0.0), -_FURTHEST_TARGET, _FURTHEST_TARGET)
        return np.where(np.isnan(y), NOWHERE, np.rint(scaled).astype(np.int64))

    def residuals(self, margins: Integers, targets: Integers) -> Integers:
        """psi of the differences; Huber's is the clipped difference itself."""
        if isinstance(self.score, Huber):
            shift = (MARGIN // RESIDUAL).bit_length() - 1
            bound = self.residual_bound
            found = np.clip((targets - margins + (1 << (shift - 1))) >> shift, -bound, bound)
        else:
            found = look_up(self._psi, targets - margins)
        return np.where(targets == NOWHERE, 0, found)

    def weights(self, margins: Integers, targets: Integers) -> Integers:
        """psi(u) / u."""
        return np.where(targets == NOWHERE, 0, look_up(self._weight, targets - margins))

    def slopes(self, margins: Integers, targets: Integers) -> Integers:
        """psi'(u)."""
        return np.where(targets == NOWHERE, 0, look_up(self._slope, targets - margins))


@dataclass(frozen=True)
class Binary(Response):
    """Targets 0 and 1 with the score of logistic regression, y - 1 / (1 + e^-margin); other targets count nowhere."""

    residual_bound: int = RESIDUAL
    weight_bound: int = RESIDUAL // 4
    slope_bound: int = RESIDUAL // 4
    signed: bool = False

    def targets(self, y: Floats, scale: float) -> Integers:  # noqa: ARG002 - margins have no scale here
        """0, 1, or -1 for anything else."""
        return np.where(y == 1, 1, np.where(y == 0, 0, -1)).astype(np.int64)

    def residuals(self, margins: Integers, targets: Integers) -> Integers:
        """The target minus the chance."""
        return -class_residuals(margins, targets, SIGMOID)

    def weights(self, margins: Integers, targets: Integers) -> Integers:
        """p (1 - p)."""
        return np.where(targets >= 0, look_up(_VARIANCE, margins), 0)

    def slopes(self, margins: Integers, targets: Integers) -> Integers:
        """p (1 - p), the same."""
        return self.weights(margins, targets)


_VARIANCE = link_table(lambda z: special.expit(z) * special.expit(-z))


def response_of(psi: Any) -> Response:
    """A score of residuals, or the name of logistic regression.

    Raises:
        InvalidParameter: if it is neither.
    """
    if psi == "logistic_regression":
        return Binary()
    if not isinstance(psi, Score):
        hint = "Pass e.g. psi=Huber() for numbers, or psi='logistic_regression' for targets 0 and 1."
        raise InvalidParameter("psi", psi, "to be a Score or 'logistic_regression'", hint)
    found = Numbers(psi)
    if found.residual_bound == 0 or found.slope_bound == 0:
        raise InvalidParameter("psi", psi, "not to be 0 everywhere")
    return found
