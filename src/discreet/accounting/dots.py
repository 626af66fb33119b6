"""Connect the dots: a pair put on a grid of losses, never better than it is (Doroshenko et al. 2022).

The mass of a cell is split between the cell's two ends so that both P and Q keep their mass. The profile of the
result is the chord of the true profile between grid points, hence an upper bound, with an error of second order in
the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.pairs import FLUSHED, Floats, Masses, Pair

_SUBNORMAL = 2.0**-1070  # the error of a mass too small for all its digits


@dataclass(frozen=True, slots=True, eq=False)
class GridLaw:
    """Masses of P at the losses first * step, (first + 1) * step, ..., and at infinity."""

    step: float
    first: int
    log_masses: Floats
    infinite: float

    @property
    def indices(self) -> NDArray[np.int64]:
        """The grid points, counted in steps from loss 0."""
        return self.first + np.arange(self.log_masses.size)

    @property
    def losses(self) -> Floats:
        """The grid points."""
        return np.asarray(self.indices * self.step, dtype=np.float64)

    def cumulants(self, tilts: Floats) -> Floats:
        """ln E[e^(tilt L)] over the finite losses, for each tilt."""
        exponents = self.log_masses + np.multiply.outer(tilts, self.losses)
        largest = exponents.max(axis=-1)
        return np.asarray(largest + np.log(np.exp(exponents - largest[..., None]).sum(axis=-1)))

    def cumulant(self, tilt: float) -> float:
        """The same for one tilt."""
        return float(self.cumulants(np.array([tilt]))[0])


def connect(pair: Pair, step: float, log_tail: float) -> GridLaw:
    """The pair on the grid; a share exp(log_tail) of P beyond the top counts as an infinite loss."""
    low, high = pair.span(log_tail)
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    losses = np.arange(first, last + 1, dtype=np.float64) * step
    cells = pair.masses(np.concatenate([[-np.inf], losses, [np.inf]]))
    to_lower = _lower_share(step, losses, cells)
    raised = cells.p + cells.p_error  # an upper bound: mass counted twice is only pessimistic
    points = np.zeros(losses.size)
    points[0] = raised[0]  # everything below the grid moves up to its lowest point
    points[:-1] += to_lower
    points[1:] += raised[1:-1] - to_lower
    with np.errstate(divide="ignore"):
        logs = np.log(points)
    return GridLaw(step, first, logs, pair.infinite + float(raised[-1]) + FLUSHED)


def _lower_share(step: float, losses: Floats, cells: Masses) -> Floats:
    """What each cell may give to its lower end: (q e^upper - p) / (e^step - 1), less what rounding may have added."""
    p, q = cells.p[1:-1], cells.q[1:-1]
    with np.errstate(over="ignore", invalid="ignore"):
        scale, growth = np.exp(losses[1:]), np.expm1(step)
        error = (cells.q_error[1:-1] + _SUBNORMAL) * scale + cells.p_error[1:-1] + 2.0**-50 * p
        share = np.clip((q * scale - p - error) / growth, 0.0, p)
    return np.asarray(np.nan_to_num(share, nan=0.0))
