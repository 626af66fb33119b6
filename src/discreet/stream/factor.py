"""The parts of a stream's measurement: participation of units, factorisations of sums, lines of values, mechanisms.

The sums W x of a stream x, with a lower-triangular W, are released through a factorisation W = B C into
lower-triangular matrices: y = C x + noise is measured, one entry per period, and B y is the answer, which is
post-processing. C is public, and its entries are dyadic rationals, so that C x is exact; B is used in floats only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.noise import Bits
from discreet.privacy.events import Event

LARGEST_TIMES = 10**6
_LONGEST = 1 << 26  # outputs that one unit moves, where its columns meet


@dataclass(frozen=True, slots=True)
class Participation:
    """The unit of privacy of a stream: a person who takes part in at most so many periods, so far apart.

    `Participation()` is one event: each unit is in one period. `Participation(times=12, apart=30)` is a person in at
    most twelve periods, every two at least thirty periods apart.

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
    if participation.apart >= len(envelope):  # columns that do not meet; only the last may be cut short
        alone: int = sum(c * c for c in envelope.tolist())
        return len(periods) * alone
    length = min(horizon, periods[-1] + len(envelope))
    if length > _LONGEST:
        hint = f"At most {_LONGEST} periods lie between the first and the last one of a unit."
        raise InvalidParameter("participation", participation, "to be shorter", hint)
    moved = np.zeros(length, dtype=np.int64)
    for start in periods:
        moved[start : start + len(envelope)] += envelope[: length - start]
    return sum(c * c for c in moved.tolist())


class Encoder(ABC):
    """The private side of a factor: the values so far, from which the next entry of C x follows."""

    __slots__ = ()

    @abstractmethod
    def step(self, value: int) -> int:
        """Takes the next value and returns the next entry of C x, exactly, in units of 2^-bits."""


class Decoder(ABC):
    """The public side of a factor: the measurements so far, from which the next sum follows."""

    __slots__ = ()

    @abstractmethod
    def step(self, measured: float) -> float:
        """Takes the next entry of y and returns the next entry of B y."""


class Gain(NamedTuple):
    """The effect of a decoder on the noise of one period: the sum of squares of its weights, and of their sizes."""

    squared: float
    total: float


class SumFactorization(ABC):
    """A public factorisation W = B C of the sums of a stream."""

    horizon: int
    bits: int

    @abstractmethod
    def sensitivity(self, participation: Participation) -> Fraction:
        """Returns how far C x can move in the L2 norm if each period of one unit moves by at most 1.

        It holds for entries as `Encoder.step` computes them, and along every way in which values may depend on
        earlier releases.
        """

    @abstractmethod
    def encoder(self) -> Encoder:
        """Returns a new encoder, before the first period."""

    @abstractmethod
    def decoder(self) -> Decoder:
        """Returns a new decoder, before the first period."""

    def gains(self) -> Iterator[Gain]:
        """Yields the gain of each period; here of a Toeplitz B, by its answer to a single impulse."""
        decoder = self.decoder()
        squared = total = 0.0
        weight = decoder.step(1.0)
        for _ in range(self.horizon):
            squared += weight * weight
            total += abs(weight)
            yield Gain(squared, total)
            weight = decoder.step(0.0)


class StreamLine(ABC):
    """The state of one line: a private side that takes values, and a public side that takes noisy measurements."""

    __slots__ = ()

    @abstractmethod
    def measure(self, value: int) -> list[int]:
        """Takes the next value, and returns the exact integers to which noise is added in this period."""

    @abstractmethod
    def absorb(self, noisy: list[int]) -> float:
        """Takes these integers with their noise, and returns the estimate of this period, in steps of the value."""


class EstimateError(NamedTuple):
    """The error of one estimate, in steps of the value: its variance, and a distance that it keeps to."""

    variance: float
    reach: float


class StreamMechanism(ABC):
    """The release of a whole stream, for one budget: all its lines, and the noise of every period."""

    method: str

    @property
    @abstractmethod
    def event(self) -> Event:
        """Returns what all periods together cost, for accounting."""

    @abstractmethod
    def line(self) -> StreamLine:
        """Returns a new line, before the first period."""

    @abstractmethod
    def noise(self, bits: Bits) -> Callable[[list[int]], list[int]]:
        """Returns the function that adds noise to the measured integers of a period; each gets noise of its own."""

    @abstractmethod
    def errors(self, confidence: Fraction) -> Iterator[EstimateError]:
        """Yields the error of each period; the estimate is nearer to the sum than its reach so often, at least."""

    def worst_variance(self, horizon: int) -> float:
        """Returns the largest variance of any period, in squared steps."""
        errors = self.errors(Fraction(1, 2))
        return max(error.variance for _, error in zip(range(horizon), errors, strict=False))
