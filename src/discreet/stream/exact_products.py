"""Exact inner products of public weights and private integers, at the speed of machine words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

WEIGHT_BITS = 26  # of the entries of a factor: they are multiples of 2^-26 of size at most 1
LARGEST_VALUE = 1 << 52  # of a private integer: floats hold them exactly
LARGEST_LENGTH = 1 << 16
_MODULUS = 1 << 64
_PART = 1 << 13


def to_grid(weights: Floats) -> Integers:
    """Returns weights as multiples of 2^-26, the nearest ones."""
    return np.rint(np.ldexp(weights, WEIGHT_BITS)).astype(np.int64)


def exact_product(weights: Integers, values: Integers, float_weights: Floats, float_values: Floats) -> int:
    """Returns the inner product of two integer vectors, exactly.

    Machine words give it modulo 2^64, floats give it nearly, and both together give it: with weights up to 2^26,
    values up to 2^52 and 2^16 of them, the terms add up to at most S = 2^94 in size, and the float product is off by
    less than 2^16 2^-53 S = 2^57 (Higham 2002, section 3.1), far below half the modulus.

    Args:
        weights: up to 2^26 in size.
        values: below 2^52 in size, as many, at most 2^16.
        float_weights: the same weights, as floats.
        float_values: the same values, as floats.
    """
    residue = int(weights @ values)
    nearly = float_product(float_weights, float_values)
    return residue + _MODULUS * math.floor((nearly - residue) / _MODULUS + 0.5)


def float_product(left: Floats, right: Floats) -> float:
    """Returns the inner product of two vectors of floats; long ones in parts, which wake no other threads."""
    if len(left) <= _PART:
        return float(left @ right)
    return sum(float(left[at : at + _PART] @ right[at : at + _PART]) for at in range(0, len(left), _PART))


class History:
    """The values of a stream so far, as integers and as floats, for exact products.

    Args:
        length: of the longest history that is looked at.
    """

    __slots__ = ("_floats", "_integers", "count")

    def __init__(self, length: int) -> None:
        self._integers, self._floats = np.zeros(length, dtype=np.int64), np.zeros(length)
        self.count = 0

    def append(self, value: int) -> None:
        """Takes the next value."""
        self._integers[self.count] = self._floats[self.count] = value
        self.count += 1

    def product(self, weights: Integers, float_weights: Floats) -> int:
        """Returns the exact inner product of all values, first to last, and as many weights."""
        count = self.count
        return exact_product(weights, self._integers[:count], float_weights, self._floats[:count])


def squared_length(vector: NDArray[Any]) -> int:
    """Returns the squared L2 norm of a vector of integers, exactly."""
    return sum(entry * entry for entry in vector.tolist())
