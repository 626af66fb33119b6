"""Normal noise correctly rounded to integers: exactly mu-GDP in any dimension, because rounding is post-processing.

Unlike the discrete Gaussian, round(a + sigma Z) with a real normal Z inherits the whole trade-off curve of the Gaussian
mechanism. The array form evaluates the polar method in floats, certain up to an error E; the entries within E of a
rounding boundary are computed again by enclosures from the same bits, continued.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import Enclosure, Real
from discreet.noise.real import LazyUniform, in_disc, normal_deviate, polar, round_real
from discreet.noise.rng import TURNS, Bits, endless

# In the part of the disc with 2^-24 <= s <= 1 - 2^-12 the float s = x^2 + y^2 is off by less than 2^-50, hence ln s by
# less than 2^-37 relative, trusting the library's logarithm and root for 40 of their 53 bits, and |x| sqrt(-2 ln s / s)
# is below 6. Together the normal variable is off by less than 2^-33. Points outside are left to the enclosures.
NORMAL_ERROR = 2.0**-32
_INNER, _OUTER = 2.0**-24, 1 - 2.0**-12
LARGEST_RATIO = Fraction(1 << 20)  # of sigma and the grid step: above, too many entries would be undecided
_RIM = 2.0**-46  # far above the error of the float radius, far below what would cost time
_ACCEPTED = 0.78  # the share of the square that the disc covers

_Point = tuple[LazyUniform, LazyUniform]


def rounded_gaussian(sigma: Fraction, offset: Fraction, bits: Bits) -> int:
    """Returns the nearest integer to offset + sigma Z, exactly.

    >>> from discreet.noise import SeededBits
    >>> bits = SeededBits(7)
    >>> [rounded_gaussian(Fraction(10), Fraction(1, 2), bits) for _ in range(8)]
    [-8, -3, -3, -6, 3, -17, 3, -4]
    """
    whole = math.floor(offset)
    part = np.array([float(offset - whole)])
    if sigma <= LARGEST_RATIO and Fraction(float(part[0])) == offset - whole:
        return whole + int(rounded_gaussians(sigma, part, bits)[0])
    return round_real(_scale_and_shift(normal_deviate(bits), sigma, offset))


def rounded_gaussians(sigma: Fraction, offsets: NDArray[np.float64], bits: Bits) -> NDArray[np.int64]:
    """Returns the nearest integers to offsets + sigma Z with independent Z, exactly; offsets below 2^62 in size.

    >>> from discreet.noise import SeededBits
    >>> rounded_gaussians(Fraction(10), np.array([0.0, 0.5, 1e6]), SeededBits(7)).tolist()
    [-2, 1, 1000015]
    """
    if sigma > LARGEST_RATIO:
        flat = [rounded_gaussian(sigma, Fraction(offset), bits) for offset in offsets.ravel().tolist()]
        return np.array(flat, dtype=np.int64).reshape(offsets.shape)
    values = offsets.ravel()
    disc = Disc.draw(values.size, bits)
    whole = np.floor(values)
    scaled = values - whole + float(sigma) * float_normals(disc.words)  # the first difference is exact
    nearest = np.floor(scaled + 0.5)
    margin = float(sigma) * (NORMAL_ERROR + 2.0**-49) + 2.0**-49
    sure = np.abs(scaled - nearest) < 0.5 - margin  # NaN, for points near the rim or the centre, is not sure
    result = whole.astype(np.int64) + np.where(sure, nearest, 0).astype(np.int64)
    for index in np.flatnonzero(~sure):
        normal = polar(*disc.uniforms(int(index), bits))
        result[index] = round_real(_scale_and_shift(normal, sigma, Fraction(float(values[index]))))
    return result.reshape(offsets.shape)


def normal_block(count: int, bits: Bits) -> list[tuple[float, int, Disc]]:
    """Draws normal variables as floats that are off by less than `NORMAL_ERROR`, each with its place in the block.

    A float is NaN where it would not be that certain.
    """
    block = Disc.draw(count, bits)
    return [(normal, index, block) for index, normal in enumerate(float_normals(block.words).tolist())]


def rounded_normal(block: Disc, index: int, sigma: Fraction, offset: Fraction, bits: Bits) -> int:
    """Returns the nearest integer to offset + sigma Z, exactly, for a Z of the block."""
    return round_real(_scale_and_shift(polar(*block.uniforms(index, bits)), sigma, offset))


def _scale_and_shift(normal: Real, sigma: Fraction, offset: Fraction) -> Real:
    def value(digits: int) -> Enclosure:
        return normal(digits) * sigma + offset

    return value


@dataclass(frozen=True, slots=True)
class Disc:
    """Uniform points of the unit disc: 64-bit prefixes of both coordinates, and the few with further bits."""

    words: NDArray[np.uint64]
    continued: dict[int, _Point]

    @classmethod
    def draw(cls, count: int, bits: Bits) -> Disc:
        """Draws points of the square, kept if they lie inside the circle; near the circle more bits decide."""
        words = np.empty((2, count), dtype=np.uint64)
        continued: dict[int, _Point] = {}
        done = 0
        for _ in range(TURNS):
            if done == count:
                return cls(words, continued)
            square = bits.words(2 * (int((count - done) / _ACCEPTED) + 16)).reshape(2, -1)
            inside, pairs = _inside(square, bits)
            kept = np.flatnonzero(inside)[: count - done]
            words[:, done : done + kept.size] = square[:, kept]
            places = {index: int(np.searchsorted(kept, index)) for index in pairs}
            continued |= {done + place: pairs[index] for index, place in places.items() if place < kept.size}
            done += kept.size
        raise endless()

    def uniforms(self, index: int, bits: Bits) -> _Point:
        """Returns the coordinates of one point, to any precision."""
        if index not in self.continued:
            x, y = self.words[:, index].tolist()
            self.continued[index] = LazyUniform(bits, x), LazyUniform(bits, y)
        return self.continued[index]


def _inside(square: NDArray[np.uint64], bits: Bits) -> tuple[NDArray[np.bool_], dict[int, _Point]]:
    """Returns which points lie in the disc, and those of them that needed further bits."""
    radius = _squares(square)
    inside = radius < 1 - _RIM
    pairs: dict[int, _Point] = {}
    for index in np.flatnonzero(~inside & (radius <= 1 + _RIM)).tolist():
        pair = LazyUniform(bits, int(square[0, index])), LazyUniform(bits, int(square[1, index]))
        if in_disc(*pair):
            inside[index], pairs[index] = True, pair
    return inside, pairs


def _squares(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    signed = _convert_to_signed(words)
    return np.asarray(signed[0] ** 2 + signed[1] ** 2)


def _convert_to_signed(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    centred = (words ^ np.uint64(1 << 63)).view(np.int64)  # the prefix minus 2^63
    return (centred.astype(np.float64) + 0.5) * 2.0**-63


def float_normals(points: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Returns the normals of points of the disc, off by at most `NORMAL_ERROR`; NaN near its rim and its centre."""
    square = _squares(points)
    square[(square < _INNER) | (square > _OUTER)] = np.nan
    return np.asarray(_convert_to_signed(points)[0] * np.sqrt(-2 * np.log(square) / square))
