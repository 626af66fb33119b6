"""Normalisations within one example: layers, groups of channels, channels, root mean squares.

Their scale and shift are small, so that the gradient of each example is made, kept and summed as it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.deep import kernels
from discreet.deep.clipping.layer_rule import LayerCall, LayerRule, refuse, rule_for, wide


class _Scaled(LayerRule):
    """y = scale * normalised(a) + shift."""

    small = True

    def per_example(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example."""
        if call.a.dtype == call.e.dtype and kernels.usable(call.a, call.e):
            scale, shift = self._sums_on_gpu(call)
            return {name: {"weight": scale, "bias": shift}[name] for name in names}
        found = {}
        if "weight" in names:
            found["weight"] = self._sum(call, wide(call.e) * self.normalize_input(call))
        if "bias" in names:
            found["bias"] = self._sum(call, wide(call.e))
        return found

    @abstractmethod
    def normalize_input(self, call: LayerCall) -> Tensor:
        """Returns the input before scale and shift, in at least 32 bits."""

    @abstractmethod
    def _sum(self, call: LayerCall, values: Tensor) -> Tensor:
        """Returns the sum over the positions that share a scale."""

    @abstractmethod
    def _sums_on_gpu(self, call: LayerCall) -> tuple[Tensor, Tensor]:
        """Returns the gradients of scale and shift, from one kernel."""


class _LastDimensions(_Scaled):
    centred = True

    def _sums_on_gpu(self, call: LayerCall) -> tuple[Tensor, Tensor]:
        from discreet.deep.kernels.scale_sums import row_sums  # noqa: PLC0415 - Triton, where there is a GPU

        layer: Any = call.layer
        width = torch.Size(layer.normalized_shape).numel()
        a, e = (values.reshape(len(values), -1, width).contiguous() for values in (call.a, call.e))
        epsilon = torch.finfo(a.dtype).eps if layer.eps is None else layer.eps
        scale, shift = row_sums(a, e, epsilon, centred=self.centred)
        return scale.unflatten(1, layer.normalized_shape), shift.unflatten(1, layer.normalized_shape)

    def _sum(self, call: LayerCall, values: Tensor) -> Tensor:
        layer: Any = call.layer
        return values.reshape(len(values), -1, *layer.normalized_shape).sum(1)


class _Channels(_Scaled):
    @abstractmethod
    def groups(self, call: LayerCall) -> int:
        """Returns how many groups of channels are normalised apart."""

    def _sums_on_gpu(self, call: LayerCall) -> tuple[Tensor, Tensor]:
        from discreet.deep.kernels.scale_sums import channel_sums  # noqa: PLC0415 - Triton, where there is a GPU

        layer: Any = call.layer
        a, e = (values.reshape(*values.shape[:2], -1) for values in (call.a, call.e))
        return channel_sums(a, e, self.groups(call), layer.eps)

    def _sum(self, call: LayerCall, values: Tensor) -> Tensor:  # noqa: ARG002 - channels are always second
        return values.flatten(2).sum(2) if values.dim() > 2 else values


@rule_for(nn.LayerNorm)
class LayerNormRule(_LastDimensions):
    """Normalises the last dimensions to mean 0 and variance 1."""

    def normalize_input(self, call: LayerCall) -> Tensor:
        """Returns the input before scale and shift, in at least 32 bits."""
        layer: Any = call.layer
        return functional.layer_norm(wide(call.a), layer.normalized_shape, None, None, layer.eps)


@rule_for(nn.RMSNorm)
class RMSNormRule(_LastDimensions):
    """Divides the last dimensions by their root mean square."""

    centred = False

    def normalize_input(self, call: LayerCall) -> Tensor:
        """Returns the input before its scale, in at least 32 bits."""
        layer: Any = call.layer
        return functional.rms_norm(wide(call.a), layer.normalized_shape, None, layer.eps)


@rule_for(nn.GroupNorm)
class GroupNormRule(_Channels):
    """Normalises groups of channels."""

    def groups(self, call: LayerCall) -> int:
        """Returns the layer's number of groups."""
        layer: Any = call.layer
        return int(layer.num_groups)

    def normalize_input(self, call: LayerCall) -> Tensor:
        """Returns the input before scale and shift, in at least 32 bits."""
        layer: Any = call.layer
        return functional.group_norm(wide(call.a), layer.num_groups, None, None, layer.eps)


@rule_for(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
class InstanceNormRule(_Channels):
    """Normalises each channel of each example."""

    def check(self, layer: nn.Module) -> None:
        """Refuses statistics that are kept from batch to batch."""
        options: Any = layer
        if options.track_running_stats:
            raise refuse(layer, "without running statistics", "Pass track_running_stats=False.")

    def groups(self, call: LayerCall) -> int:
        """Returns the number of channels."""
        return int(call.a.shape[1])

    def normalize_input(self, call: LayerCall) -> Tensor:
        """Returns the input before scale and shift, in at least 32 bits."""
        layer: Any = call.layer
        if call.a.dim() != layer._get_no_batch_dim() + 1:
            raise refuse(layer, "of batches", "Give it a first dimension of examples.")
        return functional.instance_norm(wide(call.a), use_input_stats=True, eps=layer.eps)
