"""Normalisations within one example: layers, groups of channels, channels, root mean squares.

Their scale and shift are small, so that the gradient of each example is made, kept and summed as it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from discreet.deep.clipping.layer_rule import Call, LayerRule, refuse, rule_for, wide


class _Scaled(LayerRule):
    """y = scale * normalised(a) + shift."""

    def per_example(self, call: Call, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example."""
        found = {}
        if "weight" in names:
            found["weight"] = self._sum(call, wide(call.e) * self.normalised(call))
        if "bias" in names:
            found["bias"] = self._sum(call, wide(call.e))
        return found

    @abstractmethod
    def normalised(self, call: Call) -> Tensor:
        """Returns the input before scale and shift, in at least 32 bits."""

    @abstractmethod
    def _sum(self, call: Call, values: Tensor) -> Tensor:
        """The sum over the positions that share a scale."""


class _LastDimensions(_Scaled):
    def _sum(self, call: Call, values: Tensor) -> Tensor:
        layer: Any = call.layer
        return values.reshape(len(values), -1, *layer.normalized_shape).sum(1)


class _Channels(_Scaled):
    def _sum(self, call: Call, values: Tensor) -> Tensor:  # noqa: ARG002 - channels are always second
        return values.flatten(2).sum(2) if values.dim() > 2 else values


@rule_for(nn.LayerNorm)
class LayerNormRule(_LastDimensions):
    """Normalises the last dimensions to mean 0 and variance 1."""

    def normalised(self, call: Call) -> Tensor:
        """Returns the input before scale and shift, in at least 32 bits."""
        layer: Any = call.layer
        return functional.layer_norm(wide(call.a), layer.normalized_shape, None, None, layer.eps)


@rule_for(nn.RMSNorm)
class RMSNormRule(_LastDimensions):
    """Divides the last dimensions by their root mean square."""

    def normalised(self, call: Call) -> Tensor:
        """Returns the input before its scale, in at least 32 bits."""
        layer: Any = call.layer
        return functional.rms_norm(wide(call.a), layer.normalized_shape, None, layer.eps)


@rule_for(nn.GroupNorm)
class GroupNormRule(_Channels):
    """Normalises groups of channels."""

    def normalised(self, call: Call) -> Tensor:
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

    def normalised(self, call: Call) -> Tensor:
        """Returns the input before scale and shift, in at least 32 bits."""
        layer: Any = call.layer
        if call.a.dim() != layer._get_no_batch_dim() + 1:
            raise refuse(layer, "of batches", "Give it a first dimension of examples.")
        return functional.instance_norm(wide(call.a), use_input_stats=True, eps=layer.eps)
