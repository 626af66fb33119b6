"""How often one unit may take part in a stream, and how far that moves a factor's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet import check

LARGEST_TIMES = 10**6


@dataclass(frozen=True, slots=True)
class Participation:
    """The unit of privacy of a stream: somebody who takes part in at most so many periods, so far apart.

    `Participation()` is one event: each unit is in one period. `Participation(times=12, apart=30)` is a person in at
    most twelve periods, any two of which are at least thirty periods from each other.

    Args:
        times: in how many periods one unit may be.
        apart: the least distance of two of them, in periods.

    Raises:
        InvalidParameter: if one is below 1.

    >>> Participation(times=3, apart=7).earliest(10)
    range(0, 10, 7)
    """

    times: int = 1
    apart: int = 1

    def __post_init__(self) -> None:
        check.integer(times=self.times, at_least=1, at_most=LARGEST_TIMES)
        check.integer(apart=self.apart, at_least=1, at_most=1 << 40)

    def earliest(self, horizon: int) -> range:
        """Returns the periods of a unit that takes part as early and as often as it may."""
        return range(0, min(horizon, self.times * self.apart), self.apart)

    def __str__(self) -> str:
        if self.times == 1:
            return "one period"
        return f"at most {self.times} periods, at least {self.apart} apart"


def earliest_move(column: Sequence[int], participation: Participation, horizon: int) -> int:
    """Returns the largest squared L2 move of the outputs of a Toeplitz factor, in exact integers.

    The factor has the column (c_0, c_1, ...), shifted down by j in period j, over `horizon` periods; a unit moves its
    periods by at most 1 each, up or down.

    *Theorem.* If c >= 0 does not increase, the earliest periods move the outputs farthest, all in the same direction.
    *Proof.* The squared move is the sum over pairs of periods i <= j of d_i d_j G(i, j), with |d| <= 1 and
    G(i, j) = sum of c_u c_(u + j - i) over 0 <= u < horizon - j, which is not negative: all d = 1 is the worst. Let the
    periods be p_1 < p_2 < ...; then p_s >= (s - 1) apart and p_s - p_r >= (s - r) apart. G falls as j grows (fewer
    terms) and as j - i grows (smaller terms), so that each G(p_r, p_s) is at most that of the earliest periods; fewer
    periods have fewer terms. *QED* (Compare Kalinin and Lampert 2024, Theorem 2.)

    Where c has negative entries or increases, its envelope e_u = max of |c_v| over v >= u does neither, and bounds the
    moves entry by entry: the result is then an upper bound, and for one period the exact norm of the longest column.
    """
    if participation.times == 1:
        return sum(c * c for c in column)
    sizes = np.abs(np.array(column, dtype=np.int64))
    envelope = np.maximum.accumulate(sizes[::-1])[::-1]
    periods = participation.earliest(horizon)
    length = min(horizon, periods[-1] + len(envelope))
    moved = np.zeros(length, dtype=np.int64)
    for start in periods:
        moved[start : start + len(envelope)] += envelope[: length - start]
    return sum(c * c for c in moved.tolist())
