"""Features cut into public cells: equal parts of public bounds, so that a row is a few small integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.learn.features import features
from discreet.statistics.inputs import matrix

Integers = NDArray[np.int64]

_HINT = "Pass public limits bounds=(low, high), one pair or one for each feature; they are never read from the data."


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
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
    def of(cls, n_features: int, bounds: Any, count: int) -> Cells:
        """The cells for the parameters of a learner.

        Raises:
            InvalidParameter: if there are no bounds, or they do not fit.
        """
        if bounds is None:
            raise InvalidParameter("bounds", None, "to be given", _HINT)
        public = features(n_features, bounds=bounds)
        return cls(low=public.centre - public.spread, width=2 * public.spread, count=count)

    def places(self, X: Any) -> Integers:
        """The cell of each entry, from 0; what lies outside is in the first or last one, what is missing in the middle.

        Each entry is a function of itself alone.

        >>> Cells.of(1, (0, 8), 4).places([[0], [1.9], [2], [8], [99], [float("nan")]]).ravel().tolist()
        [0, 0, 1, 3, 3, 2]
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (matrix(X) - self.low) / self.width * self.count
        middle = self.count // 2
        found = np.floor(np.nan_to_num(scaled, nan=middle, posinf=self.count, neginf=0.0))
        return np.clip(found, 0, self.count - 1).astype(np.int64)
