"""Squared norms of convolution gradients, example by example, without patches and without the gradients in memory."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _kernel_squares(  # type: ignore[no-untyped-def]
    a, e, out,
    a_example, a_channel, a_row, a_column,
    e_example, e_channel, e_row, e_column,
    CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    OUTPUTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SIDE: tl.constexpr, TAPS: tl.constexpr,
    STRIDE_Y: tl.constexpr, STRIDE_X: tl.constexpr, PAD_Y: tl.constexpr, PAD_X: tl.constexpr,
    GAP_Y: tl.constexpr, GAP_X: tl.constexpr, GROUPS: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_T: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    pair = tl.program_id(1)
    example = (pair // GROUPS).to(tl.int64)
    group = pair % GROUPS
    blocks_k: tl.constexpr = (CHANNELS * TAPS + BLOCK_K - 1) // BLOCK_K
    k = (tile % blocks_k) * BLOCK_K + tl.arange(0, BLOCK_K)  # channels of a tap lie side by side
    p = (tile // blocks_k) * BLOCK_P + tl.arange(0, BLOCK_P)
    tap, c = k // CHANNELS, k % CHANNELS
    up, left = (tap // SIDE) * GAP_Y - PAD_Y, (tap % SIDE) * GAP_X - PAD_X
    a_start = a + example * a_example + (group * CHANNELS + c) * a_channel + up * a_row + left * a_column
    e_start = e + example * e_example + (group * OUTPUTS + p) * e_channel
    total = tl.zeros((BLOCK_P, BLOCK_K), tl.float32)
    for start in range(0, ROWS * COLUMNS, BLOCK_T):
        t = start + tl.arange(0, BLOCK_T)
        y, x = t // COLUMNS, t % COLUMNS
        high, wide = (y * STRIDE_Y)[:, None] + up[None, :], (x * STRIDE_X)[:, None] + left[None, :]
        inside = (t < ROWS * COLUMNS)[:, None] & (k < CHANNELS * TAPS)[None, :]
        inside = inside & (high >= 0) & (high < HEIGHT) & (wide >= 0) & (wide < WIDTH)
        step = (y * STRIDE_Y) * a_row + (x * STRIDE_X) * a_column
        patch = tl.load(a_start[None, :] + step[:, None], mask=inside, other=0.0)
        error = tl.load(
            e_start[:, None] + (y * e_row + x * e_column)[None, :],
            mask=(p < OUTPUTS)[:, None] & (t < ROWS * COLUMNS)[None, :], other=0.0,
        )  # fmt: skip
        total = tl.dot(error, patch, total, input_precision=PRECISION)
    tl.store(out + pair.to(tl.int64) * tl.num_programs(0) + tile, tl.sum(total * total))


def kernel_squares(
    a: Tensor,
    e: Tensor,
    *,
    sides: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
    precision: str,
    blocks: tuple[int, int, int] | None = None,
    **tuned: Any,
) -> Tensor:
    """Returns the squared norms of the gradients of a convolution's kernel, for each example, in 64 bits.

    Each tile of an example's gradient is added up over positions in 32 bits, squared, and forgotten.

    Args:
        a: (examples, channels, height, width), the input without padding.
        e: (examples, outputs, rows, columns), the gradient of the output.
        sides: of the kernel.
        stride: of the convolution.
        padding: with zeros.
        dilation: likewise.
        groups: likewise.
        precision: "ieee" for products of 32 bits, "tf32" for those of PyTorch's faster setting.
        blocks: how many outputs, inputs and positions are taken at once.
        tuned: what Triton takes besides.
    """
    examples, channels, height, width = a.shape
    outputs, rows, columns = e.shape[1:]
    channels, outputs = channels // groups, outputs // groups
    taps = sides[0] * sides[1]
    block_p, block_k, block_t = blocks or (_block(outputs), _block(channels * taps), 32)
    tiles = triton.cdiv(outputs, block_p) * triton.cdiv(channels * taps, block_k)
    out = torch.empty(examples * groups, tiles, device=a.device, dtype=torch.float32)
    _kernel_squares[tiles, examples * groups](
        a, e, out, *a.stride(), *e.stride(),
        channels, height, width, outputs, rows, columns, sides[1], taps,
        *stride, *padding, *dilation, groups, block_p, block_k, block_t, precision,
        **{"num_warps": 4, "num_stages": 3, **tuned},
    )  # fmt: skip
    return out.reshape(examples, -1).sum(1, dtype=torch.float64)


def _block(size: int) -> int:
    """Returns a power of two that Triton can multiply."""
    return min(128, max(16, int(triton.next_power_of_2(size))))
