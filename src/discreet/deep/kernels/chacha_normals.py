"""Normal deviates from the stream cipher ChaCha20, drawn on the device."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 128
_PER_STATE = 8  # deviates from the 16 words of one state


@triton.jit
def _rotate_bits(x, places: tl.constexpr):  # type: ignore[no-untyped-def]
    return (x << places) | (x >> (32 - places))


@triton.jit
def _quarter(a, b, c, d):  # type: ignore[no-untyped-def]
    a += b
    d = _rotate_bits(d ^ a, 16)
    c += d
    b = _rotate_bits(b ^ c, 12)
    a += b
    d = _rotate_bits(d ^ a, 8)
    c += d
    b = _rotate_bits(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _pair(first, second, third, fourth):  # type: ignore[no-untyped-def]
    """Returns two normal deviates from four words (Box and Muller 1958)."""
    long = (first.to(tl.uint64) << 32) | second.to(tl.uint64)
    angle = ((third.to(tl.uint64) << 32) | fourth.to(tl.uint64)) >> 11
    radius = tl.sqrt(-2.0 * tl.log((long.to(tl.float64) + 0.5) * 5.421010862427522e-20))  # 2^-64
    turn = angle.to(tl.float64) * (1.1102230246251565e-16 * 6.283185307179586)  # 2^-53 of a circle
    return radius * tl.cos(turn), radius * tl.sin(turn)


@triton.jit
def _normals(key, out, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    state = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    zero = tl.zeros((BLOCK,), tl.uint32)
    k0, k1 = tl.load(key).to(tl.uint32) + zero, tl.load(key + 1).to(tl.uint32) + zero
    k2, k3 = tl.load(key + 2).to(tl.uint32) + zero, tl.load(key + 3).to(tl.uint32) + zero
    k4, k5 = tl.load(key + 4).to(tl.uint32) + zero, tl.load(key + 5).to(tl.uint32) + zero
    k6, k7 = tl.load(key + 6).to(tl.uint32) + zero, tl.load(key + 7).to(tl.uint32) + zero
    low, high = (state & 0xFFFFFFFF).to(tl.uint32), (state >> 32).to(tl.uint32)
    c0, c1 = zero + 0x61707865, zero + 0x3320646E
    c2, c3 = zero + 0x79622D32, zero + 0x6B206574
    x0, x1, x2, x3, x4, x5, x6, x7 = c0, c1, c2, c3, k0, k1, k2, k3
    x8, x9, x10, x11, x12, x13, x14, x15 = k4, k5, k6, k7, low, high, zero, zero
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    at = out + state * 8
    n0, n1 = _pair(x0 + c0, x1 + c1, x2 + c2, x3 + c3)
    n2, n3 = _pair(x4 + k0, x5 + k1, x6 + k2, x7 + k3)
    n4, n5 = _pair(x8 + k4, x9 + k5, x10 + k6, x11 + k7)
    n6, n7 = _pair(x12 + low, x13 + high, x14, x15)
    tl.store(at, n0, mask=state * 8 < count)
    tl.store(at + 1, n1, mask=state * 8 + 1 < count)
    tl.store(at + 2, n2, mask=state * 8 + 2 < count)
    tl.store(at + 3, n3, mask=state * 8 + 3 < count)
    tl.store(at + 4, n4, mask=state * 8 + 4 < count)
    tl.store(at + 5, n5, mask=state * 8 + 5 < count)
    tl.store(at + 6, n6, mask=state * 8 + 6 < count)
    tl.store(at + 7, n7, mask=state * 8 + 7 < count)


def chacha_normals(key: Tensor, count: int) -> Tensor:
    """Returns so many normal deviates of 64 bits, on the key's device.

    Args:
        key: eight words of 32 bits, as 64-bit integers.
        count: how many.
    """
    out = torch.empty(count, device=key.device, dtype=torch.float64)
    _normals[(triton.cdiv(triton.cdiv(count, _PER_STATE), _BLOCK),)](key, out, count, _BLOCK)
    return out
