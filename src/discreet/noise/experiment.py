"""Random numbers of attackers and auditors: which subsets to ask about, which targets to try, which half to hold back.

They are floats and give no privacy: nothing that is released may depend on them in place of noise. They come through
the one door to randomness so that a seed makes every experiment repeat.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import special
from discreet.noise.rng import Bits, source_of

Floats = NDArray[np.float64]


def uniforms(shape: int | tuple[int, ...], *, bits: Bits | None = None) -> Floats:
    """Draws numbers spread evenly over (0, 1): odd multiples of 2^-53.

    >>> from discreet.noise import SeededBits
    >>> uniforms((2, 2), bits=SeededBits(7)).round(3).tolist()
    [[0.087, 0.67], [0.662, 0.408]]
    """
    count = int(np.prod(shape))
    words = source_of(bits).words(count) >> np.uint64(12)
    return ((words.astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)


def normals(shape: int | tuple[int, ...], *, bits: Bits | None = None) -> Floats:
    """Draws standard normal numbers, for experiments only: noise that protects comes from `discreet.mechanisms`."""
    return np.asarray(special.ndtri(uniforms(shape, bits=bits)))


def coins(shape: int | tuple[int, ...], *, bits: Bits | None = None) -> NDArray[np.int8]:
    """Tosses fair coins, 0 or 1."""
    return (uniforms(shape, bits=bits) < 0.5).astype(np.int8)


def shuffle_indices(count: int, *, bits: Bits | None = None) -> NDArray[np.intp]:
    """Returns the numbers below count in random order.

    >>> from discreet.noise import SeededBits
    >>> patients = np.array(["ana", "ben", "cid", "dan", "eve"])
    >>> patients[shuffle_indices(5, bits=SeededBits(7))].tolist()
    ['ana', 'dan', 'cid', 'eve', 'ben']
    """
    return np.argsort(uniforms(count, bits=bits), kind="stable")
