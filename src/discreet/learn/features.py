"""Rows of features as integers: vectors within a public norm, with a constant for the intercept, or a few public cells.

Vectors come by a public affine map; cells are equal parts of public bounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.statistics.inputs import RADIUS, matrix, whole, within

Integers = NDArray[np.int64]

_HINT = (
    "Pass norm_bound=1.0 if rows are at most that long, or bounds=(low, high), one pair for all features or one for "
    "each; both are public and never read from the data."
)

_CELLS_HINT = (
    "Pass public limits bounds=(low, high), one pair or one for each feature; they are never read from the data."
)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Everything public that is known of rows before any is seen.

    A row x becomes z = (x - centre) / spread, clipped to the length `norm`; with an intercept the constant `constant`
    is appended. In integers it is round(z / unit), shrunk so that ||row||^2 <= RADIUS^2 holds exactly.

    Attributes:
        centre: of each feature.
        spread: of each feature.
        norm: the length that z may have.
        constant: the entry of the intercept; 0 if there is none.
    """

    centre: Floats
    spread: Floats
    norm: float
    constant: float

    @property
    def count(self) -> int:
        """Returns how many features there are."""
        return int(self.centre.size)

    @property
    def width(self) -> int:
        """Returns how many entries an integer row has."""
        return self.count + (self.constant > 0)

    @property
    def unit(self) -> float:
        """Returns what an integer 1 means in z: longest row over RADIUS."""
        return float(np.hypot(self.norm, self.constant)) / RADIUS

    def rows(self, X: Any) -> NDArray[np.int64]:
        """Returns rows as integer vectors of length at most RADIUS, the constant included.

        Missing values are the centre.

        Each row is a function of itself alone.
        """
        given = matrix(X)
        steps = whole(given - self.centre, 1 / (self.spread * self.unit))
        constant = int(self.constant / self.unit)
        radius = math.isqrt(RADIUS * RADIUS - constant * constant)
        kept = within(steps, radius)
        if not constant:
            return kept
        return np.hstack([kept, np.full((len(kept), 1), constant, dtype=np.int64)])

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Returns weights of z and of the constant (in the last axis), as weights of x and an intercept.

        This is post-processing.
        """
        weights = theta[..., : self.count] / self.spread
        shift = -np.sum(weights * self.centre, axis=-1)
        return weights, shift + (theta[..., -1] * self.constant if self.constant else 0.0)


def features(count: int, *, bounds: Any = None, norm_bound: Any = None, constant: float = 0.0) -> Features:
    """Returns what is public about rows, from the parameters of a learner.

    With `norm_bound` alone rows are taken as they are and clipped to that length. With `bounds` each feature is moved
    to [-1, 1] first; the length is then sqrt(count) unless `norm_bound` says less, in these units.

    Args:
        count: how many features there are, which is public.
        bounds: a pair (low, high) of numbers or of arrays with one number for each feature.
        norm_bound: how long a row may be.
        constant: the entry of the intercept, as a multiple of the length; 0 for none.

    Raises:
        InvalidParameter: if both are missing, or one does not fit.
    """
    if bounds is None and norm_bound is None:
        raise InvalidParameter("norm_bound", None, "or bounds to be given", _HINT)
    centre, spread = np.zeros(count), np.ones(count)
    norm = float(np.sqrt(count))
    if bounds is not None:
        low, high = ends(bounds, count)
        centre, spread = (low + high) / 2, (high - low) / 2
    if norm_bound is not None:
        asked = float(check.positive(norm_bound=norm_bound))
        norm = min(norm, asked) if bounds is not None else asked
    return Features(centre=centre, spread=spread, norm=norm, constant=norm * constant)


def ends(bounds: Any, count: int, name: str = "bounds", hint: str = _HINT) -> tuple[Floats, Floats]:
    """Returns public limits (low, high), numbers or arrays, as one pair for each of so many columns.

    Raises:
        InvalidParameter: if they are no such pair, or not finite with low < high.
    """
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidParameter(name, bounds, "to be a pair (low, high)", hint)
    found = []
    for end in bounds:
        try:
            array = np.asarray(end, dtype=np.float64)
            found.append(np.broadcast_to(array, (count,)).astype(np.float64))
        except (TypeError, ValueError):
            raise InvalidParameter(name, bounds, f"to be numbers, one or {count} at each end", hint) from None
    low, high = found
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InvalidParameter(name, bounds, "to be finite with low < high", hint)
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCells:
    """The public cells of all features.

    Attributes:
        low: the lower end of each feature.
        width: the distance between its ends.
        count: how many cells a feature has.
    """

    low: NDArray[np.float64]
    width: NDArray[np.float64]
    count: int

    @classmethod
    def of(cls, n_features: int, bounds: Any, count: int) -> FeatureCells:
        """Returns the cells for the parameters of a learner.

        Raises:
            InvalidParameter: if there are no bounds, or they do not fit.
        """
        if bounds is None:
            raise InvalidParameter("bounds", None, "to be given", _CELLS_HINT)
        public = features(n_features, bounds=bounds)
        return cls(low=public.centre - public.spread, width=2 * public.spread, count=count)

    def places(self, X: Any) -> Integers:
        """Returns the cell of each entry, from 0.

        What lies outside is in the first or last one, what is missing in the middle.

        Each entry is a function of itself alone.

        >>> FeatureCells.of(1, (0, 8), 4).places([[0], [1.9], [2], [8], [99], [float("nan")]]).ravel().tolist()
        [0, 0, 1, 3, 3, 2]
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (matrix(X) - self.low) / self.width * self.count
        middle = self.count // 2
        found = np.floor(np.nan_to_num(scaled, nan=middle, posinf=self.count, neginf=0.0))
        return np.clip(found, 0, self.count - 1).astype(np.int64)
