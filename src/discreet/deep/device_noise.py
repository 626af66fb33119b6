"""Normal noise that is drawn where the gradients are, keyed from the secure source.

Exact noise is drawn on the processor, some ten million numbers a second; a GPU would wait for it. On a device the noise
comes from the stream cipher ChaCha20 (RFC 8439) under a fresh key of 256 bits from the secure source for every release:
without the key, its words look like fair coins unless the cipher is broken. A pair of words of 64
bits is made into two normal deviates by the formula of Box and Muller, in 64-bit floats, and the noisy sum is rounded
to a public grid.

What is not promised: the deviates are floats, and no exact normals. None is beyond 9.5 deviations, which is missed with
a chance of 10^-20 each, and each is off by a few units in its last place. The rounding to a grid of 2^-10 deviations
hides the pattern of their last digits from a reader of one result (Mironov 2012), which is a good reason and no
proof. Where a proof is wanted, exact noise is (`noise="exact"`).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from discreet.deep import kernels
from discreet.noise import Bits, source_of

_KEY_WORDS = 8
_WORD = 0xFFFFFFFF
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)  # "expand 32-byte k"
_ROUNDS = 10  # of a column and a diagonal each
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_GRID = 10


def device_normals(count: int, device: torch.device, bits: Bits | None = None) -> Tensor:
    """Returns so many normal deviates in 64 bits, from a fresh key.

    >>> from discreet.noise import SeededBits
    >>> drawn = device_normals(10_000, torch.device("cpu"), SeededBits(1))
    >>> abs(float(drawn.mean())) < 0.05, 0.95 < float(drawn.std()) < 1.05
    (True, True)
    """
    source = source_of(bits)
    key = torch.tensor([source.integer(32) for _ in range(_KEY_WORDS)], dtype=torch.int64, device=device)
    if kernels.usable(torch.empty(0, device=device)):
        from discreet.deep.kernels.chacha_normals import chacha_normals  # noqa: PLC0415 - Triton, where there is a GPU

        return chacha_normals(key, count)
    return normals_of(chacha_words(key, torch.arange(-(-count // 8), device=device)))[:count]


def on_public_grid(values: Tensor, sigma: float) -> Tensor:
    """Returns the values rounded to multiples of a power of two, at most sigma / 2^10."""
    step = 2.0 ** (math.floor(math.log2(sigma)) - _GRID)
    return torch.round(values / step) * step


def chacha_words(key: Tensor, counters: Tensor, nonce: tuple[int, int] = (0, 0)) -> Tensor:
    """Returns the 16 words of ChaCha20 for each counter of 64 bits, as (counters, 16) integers.

    Args:
        key: eight words of 32 bits.
        counters: their low word comes first in the state.
        nonce: the last two words of the state.
    """
    fixed = [*_CONSTANTS, *key.tolist()]
    start = [torch.full_like(counters, word) for word in fixed]
    start += [counters & _WORD, counters >> 32, *(torch.full_like(counters, word) for word in nonce)]
    state = list(start)
    for _ in range(_ROUNDS):
        for places in (*_COLUMNS, *_DIAGONALS):
            _quarter_round(state, *places)
    return torch.stack([(one + other) & _WORD for one, other in zip(state, start, strict=True)], 1)


def _quarter_round(x: list[Tensor], a: int, b: int, c: int, d: int) -> None:
    for one, other, third, places in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[one] = (x[one] + x[other]) & _WORD
        mixed = x[third] ^ x[one]
        x[third] = ((mixed << places) | (mixed >> (32 - places))) & _WORD


def normals_of(words: Tensor) -> Tensor:
    """Returns eight normal deviates for each 16 words of 32 bits, flat."""
    quads = words.reshape(-1, 4).to(torch.float64)
    # Words of 64 bits do not fit into signed integers: their halves are put together as floats.
    long = quads[:, 0] * 2.0**32 + quads[:, 1]
    angle = (((words.reshape(-1, 4)[:, 2] << 32) | words.reshape(-1, 4)[:, 3]) >> 11) & (2**53 - 1)
    radius = torch.sqrt(-2.0 * torch.log((long + 0.5) * 2.0**-64))
    turn = angle.to(torch.float64) * (2.0**-53 * 2 * math.pi)
    return torch.stack([radius * torch.cos(turn), radius * torch.sin(turn)], 1).reshape(-1)
