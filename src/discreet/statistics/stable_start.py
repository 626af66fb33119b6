"""Where data lies, when nobody knows a range: the fullest cell of a histogram with infinitely many cells."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Enclosure, lower
from discreet.mechanisms import PartitionSelection
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event

Floats = NDArray[np.float64]

REACH = 3  # cells between the middle of the fullest cell and the mean, at most, for normal data
_FURTHEST = 2.0**52  # cells beyond are one cell
_MANY = 16  # coordinates from which on Gaussian noise is the smaller one


@dataclass(frozen=True, slots=True, kw_only=True)
class StableStart:
    """Finds, for each coordinate, a cell of width `scale` that holds much of the data.

    Formal guarantee: (epsilon, delta)-DP under the relation. A unit is in one cell for each coordinate, so the cells
    are keys of `PartitionSelection`, at most `dimension` to a unit, whose integer thresholds pay for cells that one
    unit alone fills; choosing the largest noisy count among the shown ones is post-processing (Karwa, Vadhan 2018). A
    replaced unit is one removed and one added: half of epsilon and delta / (1 + e^(epsilon / 2)) are used then (group
    privacy).
    """

    selection: PartitionSelection
    event: Event
    dimension: int

    @classmethod
    def of(cls, *, epsilon: Fraction, delta: Fraction, dimension: int, neighbours: Neighbours) -> StableStart:
        """The search of a budget."""
        method: Any = "laplace" if dimension < _MANY else "gaussian"
        if neighbours is Neighbours.ADD_REMOVE:
            selection = PartitionSelection(epsilon=epsilon, delta=delta, max_groups=dimension, method=method)
            return cls(selection=selection, event=selection.event, dimension=dimension)
        half = epsilon / 2
        share = lower(lambda digits: 1 / (Enclosure.of(half, digits).exp() + 1))
        kept = delta * Fraction(int(share * 2**80), 2**80)
        if kept == 0:
            raise InvalidParameter("radius", None, "to be given at such an epsilon", "State where the mean may be.")
        selection = PartitionSelection(epsilon=half, delta=kept, max_groups=dimension, method=method)
        return cls(selection=selection, event=events.Approx(epsilon, delta), dimension=dimension)

    def release(self, rows: Floats, scale: float, bits: Bits) -> tuple[Floats, NDArray[np.bool_]]:
        """The middle of the fullest cell of each coordinate, 0 where none is shown, and which ones were."""
        cells, owners, counts = _histogram(rows, scale)
        shown = self.selection.release(counts, bits=bits)
        noisy = np.asarray(shown.counts, dtype=np.float64)
        cells, owners = cells[shown.kept], owners[shown.kept]
        centre, known = np.zeros(self.dimension), np.zeros(self.dimension, dtype=bool)
        for place in range(self.dimension):
            own = np.flatnonzero(owners == place)
            if own.size:
                best = own[np.argmax(noisy[own])]
                centre[place], known[place] = (cells[best] + 0.5) * scale, True
        return centre, known


def _histogram(rows: Floats, scale: float) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """The filled cells of all coordinates in order, the coordinate of each, and how many units it holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        places = np.clip(np.floor(rows / scale), -_FURTHEST, _FURTHEST)
    found = [np.unique(column[~np.isnan(column)], return_counts=True) for column in places.T]
    cells = np.concatenate([cell for cell, _ in found])
    counts = np.concatenate([count for _, count in found]).astype(np.int64)
    owners = np.repeat(np.arange(len(found)), [cell.size for cell, _ in found])
    return cells, owners, counts
