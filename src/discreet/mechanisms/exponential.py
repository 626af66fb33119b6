"""The exponential mechanism, exactly: on a set of options, and on an interval with piecewise constant scores."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Grid, exact_value
from discreet.mechanisms.private_selection import Selection, choose_point, score_steps
from discreet.noise import Bits, choose_exponential, source_of
from discreet.privacy import events

_MOST_POINTS = 1 << 62


@dataclass(frozen=True, slots=True, init=False)
class Exponential(Selection):
    """Chooses option i of score q_i with probability proportional to e^(epsilon q_i / (2 sensitivity)).

    If the scores are monotone, to the square of that.

    Formal guarantee: epsilon-bounded range, hence epsilon-DP and epsilon^2 / 8-zCDP (McSherry, Talwar 2007; Durfee,
    Rogers 2019; Cesar, Rogers 2021). The privacy loss of option i is rate (q_i - q'_i) plus the same constant for
    every i, where scores are in steps. The differences lie in an interval of 2 m steps, or of m steps if all have the
    same sign, and rate times that length is epsilon. In the monotone case this is the same theorem with a shorter
    range.

    Utility: the chosen score is more than (2 sensitivity / epsilon) ln(options / beta) below the best with
    probability at most beta.

    >>> mechanism = Exponential(epsilon=200, sensitivity=1)
    >>> mechanism.choose([3, 2, 5, 0])
    2
    >>> mechanism.event
    BoundedRange(epsilon=Fraction(200, 1))
    >>> Exponential(epsilon=1, sensitivity=1).interval(40, options=10, confidence=0.95)
    Interval(low=40, high=50)
    """

    @property
    def event(self) -> events.Event:
        """Returns what one choice costs."""
        return events.BoundedRange(self.epsilon)

    def _pick(self, rows: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        picks = [choose_exponential(row.max() - row, self.rate, bits) for row in rows]
        return np.array(picks, dtype=np.int64)

    def choose_interval(
        self, edges: Any, scores: Any, *, points: Grid | check.Number = Grid.integers(), bits: Bits | None = None
    ) -> int | float:
        """Returns a point of a public interval, where the score is constant between edges; the base measure is uniform.

        Piece i holds the points x of the public grid `points` with edges_i <= x < edges_(i+1); the last piece also
        holds its right end. The first and the last edge are public; the others may depend on the data, as long as the
        score of each single point moves by at most the sensitivity.

        Args:
            edges: numbers in ascending order, one more than scores; equal ones enclose no points.
            scores: one number for each piece.
            points: the public grid of possible outputs.
            bits: the source of randomness; None is the secure one.

        Returns:
            The point, drawn exactly: a piece with probability proportional to its number of points times
            e^(rate score), then a point of it uniformly.

        Raises:
            InvalidParameter: if the numbers of edges and scores do not match.
            InvalidValue: if the edges are not in order or enclose no point, or a number is not finite.

        >>> Exponential(epsilon=500, sensitivity=1).choose_interval([0, 4, 5, 10], [0, 9, 0])
        4
        """
        source = source_of(bits)
        grid = Grid.of(points)
        heights = score_steps(scores, self.grid)
        if np.shape(edges) != (heights.size + 1,) or heights.ndim != 1:
            raise InvalidParameter("edges", f"an array of shape {np.shape(edges)}", "one longer than scores")
        starts, counts = _pieces(edges, grid)
        point = choose_point(starts, counts, heights.max() - heights, self.rate, source)
        value: int | float = grid.value(point)
        return value


def _pieces(edges: Any, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the first point of each piece and its number of points, in exact arithmetic."""
    exact = [exact_value(edge) / grid.step for edge in np.asarray(edges).tolist()]
    if any(left > right for left, right in pairwise(exact)):
        raise InvalidValue("to have edges in ascending order", "Sort them.")
    bounds = [math.ceil(edge) for edge in exact[:-1]] + [math.floor(exact[-1]) + 1]
    if not 1 <= bounds[-1] - bounds[0] < _MOST_POINTS or max(map(abs, bounds)) >= _MOST_POINTS:
        raise InvalidValue("to enclose from 1 to 2^62 points", "Choose another grid of points.")
    ends = np.maximum.accumulate(np.array(bounds, dtype=np.int64))
    return ends[:-1], np.diff(ends)
