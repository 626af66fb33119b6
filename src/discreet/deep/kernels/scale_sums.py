"""Gradients of scales and shifts of normalisations, example by example, from one reading of inputs and errors."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS = 16


@triton.jit
def _row_sums(  # type: ignore[no-untyped-def]
    a, e, scale, shift, positions, epsilon,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, CENTRED: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0)
    example = tl.program_id(1).to(tl.int64)
    place = tl.arange(0, BLOCK)
    known = place < WIDTH
    scales = tl.zeros((BLOCK,), tl.float32)
    shifts = tl.zeros((BLOCK,), tl.float32)
    for step in range(ROWS):
        t = chunk * ROWS + step
        mask = known & (t < positions)
        offset = (example * positions + t) * WIDTH + place
        x = tl.load(a + offset, mask=mask, other=0.0).to(tl.float32)
        error = tl.load(e + offset, mask=mask, other=0.0).to(tl.float32)
        if CENTRED:
            x = tl.where(mask, x - tl.sum(x) / WIDTH, 0.0)
        x = x * tl.rsqrt(tl.sum(x * x) / WIDTH + epsilon)
        scales += error * x
        shifts += error
    at = (example * tl.num_programs(0) + chunk) * WIDTH + place
    tl.store(scale + at, scales, mask=known)
    tl.store(shift + at, shifts, mask=known)


def row_sums(a: Tensor, e: Tensor, epsilon: float, *, centred: bool) -> tuple[Tensor, Tensor]:
    """Returns, for each example, the sums over positions of e times the normalised a, and of e.

    Args:
        a: (examples, positions, width), contiguous.
        e: of the same shape, contiguous.
        epsilon: what is added to the variance.
        centred: whether the mean is subtracted, as in LayerNorm, or not, as in RMSNorm.
    """
    examples, positions, width = a.shape
    chunks = triton.cdiv(positions, _ROWS)
    scale = torch.empty(examples, chunks, width, device=a.device, dtype=torch.float32)
    shift = torch.empty_like(scale)
    block = triton.next_power_of_2(width)
    _row_sums[chunks, examples](a, e, scale, shift, positions, epsilon, width, block, _ROWS, centred)
    return scale.sum(1), shift.sum(1)


@triton.jit
def _channel_sums(  # type: ignore[no-untyped-def]
    a, e, mean, deviation, scale, shift,
    a_example, a_channel, a_position, e_example, e_channel, e_position,
    CHANNELS: tl.constexpr, POSITIONS: tl.constexpr, PER_GROUP: tl.constexpr,
    BLOCK_C: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    example = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    known = c < CHANNELS
    group = example * (CHANNELS // PER_GROUP) + c // PER_GROUP
    centre = tl.load(mean + group, mask=known, other=0.0)
    width = tl.load(deviation + group, mask=known, other=0.0)
    scales = tl.zeros((BLOCK_C,), tl.float32)
    shifts = tl.zeros((BLOCK_C,), tl.float32)
    for start in range(0, POSITIONS, BLOCK_T):
        t = start + tl.arange(0, BLOCK_T)
        mask = known[:, None] & (t < POSITIONS)[None, :]
        x = tl.load(a + example * a_example + c[:, None] * a_channel + t[None, :] * a_position, mask=mask, other=0.0)
        error = tl.load(
            e + example * e_example + c[:, None] * e_channel + t[None, :] * e_position, mask=mask, other=0.0
        ).to(tl.float32)
        scales += tl.sum(error * (x.to(tl.float32) - centre[:, None]), 1)
        shifts += tl.sum(error, 1)
    tl.store(scale + example * CHANNELS + c, scales * width, mask=known)
    tl.store(shift + example * CHANNELS + c, shifts, mask=known)


@triton.jit
def _group_sums(  # type: ignore[no-untyped-def]
    a, e, scale, shift, epsilon, a_example, a_channel, a_position, e_example, e_channel, e_position,
    CHANNELS: tl.constexpr, POSITIONS: tl.constexpr, PER_GROUP: tl.constexpr,
    BLOCK_C: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    example = tl.program_id(1).to(tl.int64)
    inside = tl.arange(0, BLOCK_C)
    c = tl.program_id(0) * PER_GROUP + inside
    t = tl.arange(0, BLOCK_T)
    mask = (inside < PER_GROUP)[:, None] & (t < POSITIONS)[None, :]
    count: tl.constexpr = PER_GROUP * POSITIONS
    x = tl.load(a + example * a_example + c[:, None] * a_channel + t[None, :] * a_position, mask=mask, other=0.0)
    error = tl.load(e + example * e_example + c[:, None] * e_channel + t[None, :] * e_position, mask=mask, other=0.0)
    x, error = x.to(tl.float32), error.to(tl.float32)
    x = tl.where(mask, x - tl.sum(x) / count, 0.0)
    x = x * tl.rsqrt(tl.sum(x * x) / count + epsilon)
    known = inside < PER_GROUP
    tl.store(scale + example * CHANNELS + c, tl.sum(error * x, 1), mask=known)
    tl.store(shift + example * CHANNELS + c, tl.sum(error, 1), mask=known)


_AT_ONCE = 8192  # numbers of a group that one program holds


def channel_sums(a: Tensor, e: Tensor, groups: int, epsilon: float) -> tuple[Tensor, Tensor]:
    """Returns, for each example and channel, the sums of e times the a that was normalised by groups, and of e.

    Args:
        a: (examples, channels, positions), strided.
        e: of the same shape.
        groups: of channels.
        epsilon: what is added to the variance.
    """
    examples, channels, positions = a.shape
    scale = torch.empty(examples, channels, device=a.device, dtype=torch.float32)
    shift = torch.empty_like(scale)
    within = channels // groups
    block_c, block_t = triton.next_power_of_2(within), triton.next_power_of_2(positions)
    if block_c * block_t <= _AT_ONCE:
        _group_sums[groups, examples](
            a, e, scale, shift, epsilon, *a.stride(), *e.stride(), channels, positions, within, block_c, block_t
        )
        return scale, shift
    grouped = a.unflatten(1, (groups, channels // groups))
    variance, mean = torch.var_mean(grouped.float(), dim=(2, 3), correction=0)
    deviation = torch.rsqrt(variance + epsilon)
    last = a.stride(1) == 1  # channels lie side by side
    block_c, block_t = (min(64, triton.next_power_of_2(channels)), 64) if last else (4, 512)
    _channel_sums[triton.cdiv(channels, block_c), examples](
        a, e, mean, deviation, scale, shift, *a.stride(), *e.stride(),
        channels, positions, within, block_c, block_t,
    )  # fmt: skip
    return scale, shift
