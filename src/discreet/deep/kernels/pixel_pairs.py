"""Squared norms of convolution gradients from products of pixels, for images of few positions.

Patches at positions t and t' have the product sum_k (x_{t + k} . x_{t' + k}) over the taps k of the kernel. So products
of pixels are taken once, by a matrix product, and added up along their diagonals where a pair of patches needs them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from discreet.deep.kernels.triangle_tiles import added_up, place_of, room_for, store_sums


@triton.jit
def _patch_pairs(  # type: ignore[no-untyped-def]
    pixels, e, out, e_example, e_channel, e_row, e_column,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    SIDE: tl.constexpr, TAPS: tl.constexpr,
    STRIDE_Y: tl.constexpr, STRIDE_X: tl.constexpr, PAD_Y: tl.constexpr, PAD_X: tl.constexpr,
    GAP_Y: tl.constexpr, GAP_X: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    example = tl.program_id(1).to(tl.int64)
    tile = tl.program_id(0)
    row, column = place_of(tile)
    t, u = row * BLOCK + tl.arange(0, BLOCK), column * BLOCK + tl.arange(0, BLOCK)
    t_known, u_known = t < ROWS * COLUMNS, u < ROWS * COLUMNS
    t_y, t_x, u_y, u_x = t // COLUMNS, t % COLUMNS, u // COLUMNS, u % COLUMNS
    outputs = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, OUTPUTS, STEP):
        p = start + tl.arange(0, STEP)
        at = e + example * e_example + (p * e_channel)[None, :]
        known = (p < OUTPUTS)[None, :]
        one = tl.load(at + (t_y * e_row + t_x * e_column)[:, None], mask=known & t_known[:, None], other=0.0)
        other = tl.load(at + (u_y * e_row + u_x * e_column)[:, None], mask=known & u_known[:, None], other=0.0)
        outputs = tl.dot(one, tl.trans(other), outputs, input_precision=PRECISION)
    inputs = tl.zeros((BLOCK, BLOCK), tl.float32)
    size: tl.constexpr = HEIGHT * WIDTH
    for tap in range(TAPS):
        down, right = (tap // SIDE) * GAP_Y - PAD_Y, (tap % SIDE) * GAP_X - PAD_X
        t_high, t_wide = t_y * STRIDE_Y + down, t_x * STRIDE_X + right
        u_high, u_wide = u_y * STRIDE_Y + down, u_x * STRIDE_X + right
        t_in = t_known & (t_high >= 0) & (t_high < HEIGHT) & (t_wide >= 0) & (t_wide < WIDTH)
        u_in = u_known & (u_high >= 0) & (u_high < HEIGHT) & (u_wide >= 0) & (u_wide < WIDTH)
        at = (t_high * WIDTH + t_wide)[:, None] * size + (u_high * WIDTH + u_wide)[None, :]
        inputs += tl.load(pixels + example * size * size + at, mask=t_in[:, None] & u_in[None, :], other=0.0)
    place = out + (example * tl.num_programs(0) + tile) * 3
    store_sums(place, inputs, outputs, row, column, BLOCK)


def patch_pair_sums(
    a: Tensor,
    e: Tensor,
    *,
    sides: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    precision: str,
    block: int = 32,
    step: int = 32,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the sums over t and t' of (patch_t . patch_t') (e_t . e_t') for each example, and those of squares.

    Args:
        a: (examples, channels, height, width), the input without padding.
        e: (examples, outputs, rows, columns), the gradient of the output.
        sides: of the kernel.
        stride: of the convolution.
        padding: with zeros.
        dilation: likewise.
        precision: "ieee" for products of 32 bits, "tf32" for those of PyTorch's faster setting.
        block: how many positions a tile has on either side.
        step: how many outputs are multiplied at once.
    """
    height, width = a.shape[2:]
    outputs, rows, columns = e.shape[1:]
    flat = a.flatten(2).float()  # a product of 16-bit numbers would be rounded to 16 bits
    pixels = torch.bmm(flat.mT, flat)
    out = room_for(a, rows * columns, block)
    _patch_pairs[out.shape[1], len(a)](
        pixels, e, out, *e.stride(), height, width, outputs, rows, columns, sides[1], sides[0] * sides[1],
        *stride, *padding, *dilation, block, step, precision,
    )  # fmt: skip
    return added_up(out)
