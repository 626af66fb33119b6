"""Factorisations of a stream's sums: what is measured, and how sums are made of the measurements.

The sums W x of a stream x, with a lower-triangular W, are released through a factorisation W = B C into
lower-triangular matrices: y = C x + noise is measured, one entry per period, and B y is the answer, which is
post-processing. C is public, and its entries are dyadic rationals, so that C x is exact; B is used in floats only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from discreet.stream.participation import Participation


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
    """What a decoder makes of noise in one period: the sum of squares of its weights, and of their sizes."""

    squared: float
    total: float


class Factor(ABC):
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
