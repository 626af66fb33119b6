"""Convolutions in one, two and three dimensions: linear layers on patches, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.deep import kernels
from discreet.deep.clipping.layer_rule import (
    LayerCall,
    LayerRule,
    guard,
    pair_norms,
    raise_norms,
    refuse,
    rule_for,
    small_sum,
    squares,
    weighted_pair,
    wide,
)


@rule_for(nn.Conv1d, nn.Conv2d, nn.Conv3d)
class ConvolutionRule(LayerRule):
    """Position t of the output sees a patch a_t of the padded input: the gradient is the sum of e_t (outer) a_t.

    Patches are copied out of one strided view. The weighted sum needs none: it is the ordinary gradient of the kernel
    for output gradients that have their example's weight.
    """

    narrow = True

    def per_example(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example."""
        found = {"bias": wide(call.e).flatten(2).sum(2)} if "bias" in names else {}
        return found | ({"weight": _kernels(call, *patches(call))} if "weight" in names else {})

    def squared_norms(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the squared norms."""
        found = super().squared_norms(call, [name for name in names if name == "bias"])
        if "weight" not in names:
            return found
        if call.a.dtype == call.e.dtype and kernels.usable(call.a, call.e) and call.a.dim() <= _PLANE:
            return found | {"weight": _norms_on_gpu(call) + 0 * _unseen_guard(call)}
        a, e = patches(call)
        if small_sum(a, e):
            call.kept["weight"] = _kernels(call, a, e)
            return found | super().squared_norms(call, ["weight"])
        return found | {"weight": pair_norms(a, e) + 0 * _unseen_guard(call)}

    def weighted_sums(self, call: LayerCall, names: Sequence[str], weights: Tensor) -> dict[str, Tensor]:
        """Returns the weighted sums."""
        made = [name for name in names if name == "bias" or name in call.kept]
        found = super().weighted_sums(call, made, weights)
        if "weight" not in names or "weight" in made:
            return found
        return found | {"weight": _kernel_gradient(call.layer, *weighted_pair(wide(call.a), wide(call.e), weights))}


def _unseen_guard(call: LayerCall) -> Tensor | int:
    """Returns a value that is not finite if a number outside all patches is not: the weighted sum may touch it."""
    layer: Any = call.layer
    return 0 if {*layer.stride, *layer.dilation} == {1} else squares(call.a)


def _norms_on_gpu(call: LayerCall) -> Tensor:
    """Returns squared norms of kernels without patches: from pairs of pixels if these are few, else tile by tile."""
    from discreet.deep.kernels.kernel_norms import kernel_squares  # noqa: PLC0415 - Triton, where there is a GPU
    from discreet.deep.kernels.pixel_pairs import patch_pair_sums  # noqa: PLC0415 - likewise

    layer: Any = call.layer
    _check_batch(layer, call.a)
    a, e, padding = call.a, call.e, layer.padding
    if not _zero_padded(layer):
        a, padding = _pad_inputs(layer, a), (0,) * len(layer.kernel_size)
    options = {"sides": layer.kernel_size, "stride": layer.stride, "padding": padding, "dilation": layer.dilation}
    if a.dim() < _PLANE:
        a, e = a.unsqueeze(2), e.unsqueeze(2)
        options = {name: (int(name in {"sides", "stride", "dilation"}), *sizes) for name, sizes in options.items()}
    positions, taps = e.shape[2:].numel(), layer.weight[0, 0].numel()
    products = a.shape[2:].numel() ** 2 * a.shape[1] + positions**2 * (e.shape[1] + taps)
    options["precision"] = kernels.product_precision(convolution=True)
    if layer.groups > 1 or _PAIRS_COST * products >= positions * taps * a.shape[1] * e.shape[1]:
        return kernel_squares(a, e, groups=layer.groups, **options)
    found, inputs, outputs = patch_pair_sums(a, e, **options)
    return raise_norms(found, inputs * outputs, a.shape[1] + e.shape[1] + taps + 2, guard(e))


_PLANE = 4  # the dimensions of a batch of images
_PAIRS_COST = 4  # the time of a product for pairs, against one of a tile


def _zero_padded(layer: Any) -> bool:
    """Returns whether padding is by zeros, and by as many on both sides."""
    return layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


def _kernels(call: LayerCall, a: Tensor, e: Tensor) -> Tensor:
    """Returns the gradient of the kernel for each example."""
    kernels = torch.matmul(wide(e).mT, wide(a))
    return kernels.reshape(len(kernels), *call.layer.weight.shape)


def _check_batch(layer: Any, a: Tensor) -> None:
    if a.dim() != layer.weight.dim():
        raise refuse(layer, "of batches", "Give it a first dimension of examples.")


def _pad_inputs(layer: Any, a: Tensor) -> Tensor:
    _check_batch(layer, a)
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    return functional.pad(a, layer._reversed_padding_repeated_twice, mode)


def patches(call: LayerCall) -> tuple[Tensor, Tensor]:
    """Returns the patches (examples, groups, positions, inputs) and the output gradients in the same order."""
    layer: Any = call.layer
    a = _pad_inputs(layer, call.a).contiguous()
    examples, channels = a.shape[:2]
    groups, sides = layer.groups, layer.kernel_size
    rooms = call.e.shape[2:]
    batch, channel, *steps = a.stride()
    within = channels // groups
    shape = (examples, groups, *rooms, within, *sides)
    strides = (batch, within * channel)
    strides += tuple(step * stride for step, stride in zip(steps, layer.stride, strict=True))
    strides += (channel, *(step * gap for step, gap in zip(steps, layer.dilation, strict=True)))
    view = a.as_strided(shape, strides)
    positions = rooms.numel()
    copied = view.reshape(examples, groups, positions, -1)
    e = call.e.reshape(examples, groups, -1, positions).mT
    return copied, e


def _kernel_gradient(layer: Any, a: Tensor, e: Tensor) -> Tensor:
    """Returns the kernel's gradient for some inputs and output gradients, as an ordinary backward pass does."""
    none = [0] * len(layer.kernel_size)
    padding = layer.padding
    if not _zero_padded(layer):
        a, padding = _pad_inputs(layer, a), none
    mask = [False, True, False]
    found = torch.ops.aten.convolution_backward(
        e, a, layer.weight.to(e.dtype), None, layer.stride, padding, layer.dilation, False, none, layer.groups, mask
    )
    return found[1]
