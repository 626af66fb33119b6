"""Convolutions in one, two and three dimensions: linear layers on patches, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.deep.clipping.layer_rule import Call, LayerRule, pair_norms, refuse, rule_for, small_sum, squares, wide


@rule_for(nn.Conv1d, nn.Conv2d, nn.Conv3d)
class ConvolutionRule(LayerRule):
    """Position t of the output sees a patch a_t of the padded input: the gradient is the sum of e_t (outer) a_t.

    Patches are copied out of one strided view. The weighted sum needs none: it is the ordinary gradient of the kernel
    for output gradients that have their example's weight.
    """

    narrow = True

    def per_example(self, call: Call, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example."""
        found = {"bias": wide(call.e).flatten(2).sum(2)} if "bias" in names else {}
        return found | ({"weight": _kernels(call, *patches(call))} if "weight" in names else {})

    def squared_norms(self, call: Call, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the squared norms."""
        found = super().squared_norms(call, [name for name in names if name == "bias"])
        if "weight" not in names:
            return found
        a, e = patches(call)
        if small_sum(a, e):
            call.kept["weight"] = _kernels(call, a, e)
            return found | super().squared_norms(call, ["weight"])
        # A number that no patch contains must be finite too, since the weighted sum may touch it.
        return found | {"weight": pair_norms(a, e) + 0 * squares(call.a)}

    def weighted_sums(self, call: Call, names: Sequence[str], weights: Tensor) -> dict[str, Tensor]:
        """Returns the weighted sums."""
        made = [name for name in names if name == "bias" or name in call.kept]
        found = super().weighted_sums(call, made, weights)
        if "weight" not in names or "weight" in made:
            return found
        e = wide(call.e)
        return found | {"weight": _kernel_gradient(call, e * _like(weights, e))}


def _kernels(call: Call, a: Tensor, e: Tensor) -> Tensor:
    """The gradient of the kernel for each example."""
    kernels = torch.matmul(wide(e).mT, wide(a))
    return kernels.reshape(len(kernels), *call.layer.weight.shape)


def _like(weights: Tensor, values: Tensor) -> Tensor:
    return weights.to(values.dtype).reshape(-1, *[1] * (values.dim() - 1))


def _padded(call: Call) -> Tensor:
    layer: Any = call.layer
    if call.a.dim() != layer.weight.dim():
        raise refuse(layer, "of batches", "Give it a first dimension of examples.")
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    return functional.pad(call.a, layer._reversed_padding_repeated_twice, mode)


def patches(call: Call) -> tuple[Tensor, Tensor]:
    """Returns the patches (examples, groups, positions, inputs) and the output gradients in the same order."""
    layer: Any = call.layer
    a = _padded(call).contiguous()
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


def _kernel_gradient(call: Call, e: Tensor) -> Tensor:
    """The gradient of the kernel for some output gradients, as an ordinary backward pass computes it."""
    layer: Any = call.layer
    none = [0] * len(layer.kernel_size)
    mask = [False, True, False]
    found = torch.ops.aten.convolution_backward(
        e, wide(_padded(call)), layer.weight, None, layer.stride, none, layer.dilation, False, none, layer.groups, mask
    )
    return found[1]
