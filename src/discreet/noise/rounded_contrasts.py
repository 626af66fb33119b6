"""Contrasts of normal noise, correctly rounded: noise shaped like the differences between cells of a table.

D maps m + 1 numbers to the m differences (z_0 - z_1, ..., z_0 - z_m); for a table it acts along every axis. Rounding
v + sigma (D x ... x D) Z to integers, Z a table of independent real normals, is post-processing of a normal vector with
mean v and covariance sigma^2 (D D^T x ... x D D^T), whose guarantee carries over unchanged. As for single normals,
floats decide nearly all entries, certain up to an error that is derived below; enclosures from the same bits decide
the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact import Enclosure, Real, UndecidedComparison, settle
from discreet.noise.real import polar, round_real
from discreet.noise.rng import Bits
from discreet.noise.rounded_gaussian import NORMAL_ERROR, Disc, float_normals

Floats = NDArray[np.float64]
_NARROW = Fraction(1, 1 << 45)


def rounded_contrasts(sigma: Fraction, offsets: Floats, bits: Bits) -> NDArray[np.int64]:
    """Returns the nearest integers to offsets + sigma (D x ... x D) Z, exactly.

    Args:
        sigma: of the normals Z, above 0.
        offsets: below 2^62 in size; Z has one more entry along every axis. Without axes it is one normal.
        bits: the source of randomness.
    """
    shape = tuple(length + 1 for length in offsets.shape)
    disc = Disc.draw(math.prod(shape), bits)
    normals = _certain_normals(disc, bits).reshape(shape)
    whole = np.floor(offsets)
    scaled = offsets - whole + float(sigma) * contrasts(normals)  # the first difference is exact
    nearest = np.floor(scaled + 0.5)
    sure = np.abs(scaled - nearest) < 0.5 - _margin(float(sigma), normals)
    result = np.asarray(whole.astype(np.int64) + np.where(sure, nearest, 0).astype(np.int64))
    for place in zip(*np.nonzero(~sure), strict=True) if offsets.ndim else [()] * int(not sure):
        exact = _contrast(_normal_of(disc, shape, bits), tuple(map(int, place)), sigma, Fraction(float(offsets[place])))
        result[place] = round_real(exact)
    return result


def contrasts(table: NDArray[Any]) -> NDArray[Any]:
    """Returns the differences of the first entry and each other one, along every axis.

    >>> contrasts(np.array([[1, 2, 4], [10, 20, 40]])).tolist()
    [[9, 27]]
    """
    for axis in range(table.ndim):
        first, others = np.split(table, [1], axis=axis)
        table = np.subtract(first, others)
    return table


def _margin(sigma: float, normals: Floats) -> float:
    """Returns how far sigma times a float contrast can be from the real one, in all.

    With k axes and |Z| <= M, a contrast adds 2^k normals, each off by E, in k levels of rounding of 2^-53 relative to
    at most 2^k M; the product with sigma and the sum with the offset round three times more.
    """
    axes, largest = normals.ndim, float(np.max(np.abs(normals)))
    return float(1.01 * sigma * 2**axes * (NORMAL_ERROR + (axes + 4) * largest * 2.0**-53) + 2.0**-49)


def _certain_normals(disc: Disc, bits: Bits) -> Floats:
    """Returns all normals as floats; those that the polar method cannot compute well in floats come from enclosures."""
    normals = float_normals(disc.words)
    for index in np.flatnonzero(np.isnan(normals)).tolist():
        normals[index] = settle(_middle(polar(*disc.uniforms(index, bits))))
    return normals


def _middle(real: Real) -> Callable[[int], float]:
    def decide(digits: int) -> float:
        low, high = real(digits).fractions()
        if high - low > _NARROW:
            raise UndecidedComparison
        return float((low + high) / 2)

    return decide


def _normal_of(disc: Disc, shape: tuple[int, ...], bits: Bits) -> Callable[[tuple[int, ...]], Real]:
    def normal(place: tuple[int, ...]) -> Real:
        index = int(np.ravel_multi_index(place, shape)) if place else 0
        return polar(*disc.uniforms(index, bits))

    return normal


def _contrast(
    normal: Callable[[tuple[int, ...]], Real], place: tuple[int, ...], sigma: Fraction, offset: Fraction
) -> Real:
    """Returns one contrast as a real number: corners of a box of the table, a sign for each index but the first."""
    corners = list(itertools.product(*((0, index + 1) for index in place)))
    terms = [(-1 if sum(map(bool, corner)) % 2 else 1, normal(corner)) for corner in corners]

    def value(digits: int) -> Enclosure:
        total = Enclosure.of(0, digits)
        for sign, term in terms:
            total = total + term(digits) * sign
        return total * sigma + offset

    return value
