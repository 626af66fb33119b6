"""Weighted sums of gradients of linear layers, each example's product weighted after it was added up, in 32 bits."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_TILE = 128
_STEP = 64
_PROGRAMS = 512  # enough to fill a GPU


@triton.jit
def _weighted_sums(  # type: ignore[no-untyped-def]
    a, e, weights, out, examples, a_example, a_position, e_example, e_position,
    POSITIONS: tl.constexpr, WIDTH: tl.constexpr, HEIGHT: tl.constexpr, EACH: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    blocks: tl.constexpr = (WIDTH + BLOCK_D - 1) // BLOCK_D
    tile, part = tl.program_id(0), tl.program_id(1)
    p = (tile // blocks) * BLOCK_P + tl.arange(0, BLOCK_P)
    d = (tile % blocks) * BLOCK_D + tl.arange(0, BLOCK_D)
    total = tl.zeros((BLOCK_P, BLOCK_D), tl.float32)
    for offset in range(EACH):
        number = part * EACH + offset
        example = tl.minimum(number, examples - 1).to(tl.int64)
        one = tl.zeros((BLOCK_P, BLOCK_D), tl.float32)
        for start in range(0, POSITIONS, STEP):
            t = start + tl.arange(0, STEP)
            known = (t < POSITIONS)[:, None]
            left = e + example * e_example + t[:, None] * e_position + p[None, :]
            right = a + example * a_example + t[:, None] * a_position + d[None, :]
            errors = tl.load(left, mask=known & (p < HEIGHT)[None, :], other=0.0)
            inputs = tl.load(right, mask=known & (d < WIDTH)[None, :], other=0.0)
            one = tl.dot(tl.trans(errors), inputs, one, input_precision=PRECISION)
        weight = tl.load(weights + example, mask=number < examples, other=0.0)
        total += tl.where(weight > 0, weight * one, 0.0)
    place = out + (part * HEIGHT + p).to(tl.int64)[:, None] * WIDTH + d[None, :]
    tl.store(place, total, mask=(p < HEIGHT)[:, None] & (d < WIDTH)[None, :])


def weighted_sums(a: Tensor, e: Tensor, weights: Tensor, *, precision: str, **tuned: Any) -> Tensor:
    """Returns the sum over examples of weight times the sum over t of e_t (outer) a_t, a matrix (p, d) of 32 bits.

    Args:
        a: (examples, T, d), with d contiguous numbers.
        e: (examples, T, p), likewise and of the same type.
        weights: of the examples, of 32 bits.
        precision: "ieee" for products of 32 bits, "tf32" for those of PyTorch's faster setting.
        tuned: what Triton takes besides.
    """
    examples, positions, width = a.shape
    height = e.shape[2]
    tiles = triton.cdiv(height, _TILE) * triton.cdiv(width, _TILE)
    each = triton.next_power_of_2(triton.cdiv(examples * tiles, _PROGRAMS))  # few sizes to compile for
    parts = triton.cdiv(examples, each)
    out = torch.empty(parts, height, width, device=a.device, dtype=torch.float32)
    _weighted_sums[tiles, parts](
        a, e, weights, out, examples, a.stride(0), a.stride(1), e.stride(0), e.stride(1),
        positions, width, height, each, _TILE, _TILE, min(_STEP, max(16, triton.next_power_of_2(positions))), precision,
        **{"num_warps": 8, "num_stages": 3, **tuned},
    )  # fmt: skip
    return out.sum(0)
