"""Pieces of bins: where a number lies within its bin, by shares of equal pieces that were measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

PIECES = 8
"""Of a bin; of one with fewer whole numbers, as many as these."""


@dataclass(frozen=True, slots=True, eq=False)
class BinPieces:
    """All pieces of the bins of a column, in order.

    Args:
        edges: one more than there are pieces; those of bins are among them, to the bit.
        bins: the bin of each piece.
    """

    edges: Floats
    bins: Codes

    @classmethod
    def of(cls, edges: tuple[float, ...], *, whole: bool) -> BinPieces:
        """Returns pieces of equal width, or, of whole numbers, as equal as they can be: public facts decide.

        >>> BinPieces.of((0.0, 10.0, 12.0), whole=True).edges.tolist()
        [0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0, 10.0, 11.0, 12.0]
        """
        low, high = np.array(edges[:-1]), np.array(edges[1:])
        numbers = np.minimum(PIECES, high - low).astype(np.int64) if whole else np.full(low.size, PIECES)
        bins = np.repeat(np.arange(low.size), numbers)
        starts = np.cumsum(numbers) - numbers
        place = np.arange(bins.size) - starts[bins]
        if whole:
            width = (high - low).astype(np.int64)
            found = low[bins] + (width[bins] * place) // numbers[bins]
        else:
            part = place / PIECES
            found = np.clip(low[bins] * (1 - part) + high[bins] * part, low[bins], high[bins])  # a bin begins with low
        return cls(np.maximum.accumulate(np.append(found, edges[-1])), bins)

    @property
    def divide(self) -> bool:
        """Returns whether a bin has more than one."""
        return bool(self.bins.size > self.bins[-1] + 1)

    def places(self, numbers: Floats) -> Codes:
        """Returns the piece of each number, clipped to the edges; -1 for NaN."""
        found = np.searchsorted(self.edges, numbers, side="right") - 1
        return np.where(np.isnan(numbers), -1, found.clip(0, self.bins.size - 1)).astype(np.int64)

    def shares(self, counts: Floats, sigma: float) -> Floats:
        """Returns the share of each piece of its bin, from noisy counts: not negative, with the sum 1 in each bin.

        Of the tables without negative counts and with the same sum in a bin, the nearest is taken: a projection on a
        simplex, which subtracts one number from all counts and cuts off at zero (Duchi, Shalev-Shwartz, Singer, Chandra
        2008). A bin whose sum is within a deviation of its noise is even.
        """
        ends = np.flatnonzero(np.diff(self.bins)) + 1
        return np.concatenate([_project_counts(mine, sigma) for mine in np.split(counts, ends)])

    def split(self, places: Codes, uniforms: Floats, shares: Floats) -> tuple[Codes, Floats]:
        """Returns a piece for each bin that was drawn, and what its number in (0, 1) leaves for the place within it."""
        ends = np.cumsum(shares)
        first = np.searchsorted(self.bins, places)
        last = np.searchsorted(self.bins, places, side="right") - 1
        before = ends[first] - shares[first]
        target = before + uniforms * (ends[last] - before)
        piece = np.clip(np.searchsorted(ends, target, side="right"), first, last)
        width = np.where(shares[piece] > 0, shares[piece], 1.0)
        return piece, np.clip((target - (ends[piece] - shares[piece])) / width, 2.0**-53, 1 - 2.0**-53)


def _project_counts(counts: Floats, sigma: float) -> Floats:
    total = float(counts.sum())
    if total <= sigma * np.sqrt(counts.size):
        return np.full(counts.size, 1 / counts.size)
    falling = np.sort(counts)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    less = over[np.flatnonzero(falling > over)[-1]]
    kept = np.maximum(counts - less, 0.0)
    return np.asarray(kept / kept.sum(), dtype=np.float64)
