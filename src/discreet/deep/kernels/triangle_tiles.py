"""Tiles of the lower triangle of a matrix of pairs, which is as its transpose: what kernels over pairs share."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def place_of(tile):  # type: ignore[no-untyped-def]
    """Returns the row and column of a tile, numbered row by row; a rounded root is corrected."""
    row = ((tl.sqrt(8.0 * tile + 1.0) - 1.0) * 0.5).to(tl.int32)
    row = tl.where(row * (row + 1) // 2 > tile, row - 1, row)
    row = tl.where((row + 1) * (row + 2) // 2 <= tile, row + 1, row)
    return row, tile - row * (row + 1) // 2


@triton.jit
def store_sums(at, inputs, outputs, row, column, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Stores a tile's sum of products, twice where its transpose is left out, and the sums of its two diagonals."""
    twice = tl.where(row == column, 1.0, 2.0)
    tl.store(at, tl.sum(inputs * outputs) * twice)
    alone = (tl.arange(0, BLOCK)[:, None] == tl.arange(0, BLOCK)[None, :]) & (row == column)
    tl.store(at + 1, tl.sum(tl.where(alone, inputs, 0.0)))
    tl.store(at + 2, tl.sum(tl.where(alone, outputs, 0.0)))


def room_for(like: Tensor, positions: int, block: int) -> Tensor:
    """Returns a tensor (examples, tiles, 3) for what `store_sums` stores, on the device of `like`."""
    side = triton.cdiv(positions, block)
    return torch.empty(len(like), side * (side + 1) // 2, 3, device=like.device, dtype=torch.float32)


def added_up(stored: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the sums of each example over all tiles, in 64 bits: of products, and of the squares of both factors."""
    products, inputs, outputs = stored.sum(1, dtype=torch.float64).unbind(1)
    return products, inputs, outputs
