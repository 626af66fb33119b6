"""Hooks that keep what goes into each trainable layer, and where in the graph its output's gradient arrives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.utils import _pytree as pytree

from discreet.deep.clipping.generic_layer import GenericRule
from discreet.deep.clipping.layer_rule import RULES, Call, LayerRule, refuse
from discreet.errors import InvalidParameter

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_GENERIC = GenericRule()


class _Hook:
    """A forward hook that a copy of the model does not take along: a copy, such as an average, trains nothing."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder: Recorder | None = recorder

    def __call__(self, layer: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any], out: Any) -> None:
        if self.recorder is not None and self.recorder.active:
            self.recorder.note(layer, inputs, keywords, out)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Hook:
        copy = object.__new__(_Hook)
        copy.recorder = None
        return copy


class Recorder:
    """Records the uses of a model's trainable layers while it is active.

    Args:
        model: the model; its frozen parameters are left alone.

    Raises:
        InvalidParameter: for layers that mix examples or keep statistics of batches.
    """

    def __init__(self, model: nn.Module) -> None:
        self.active = self._listening = False
        self.calls: list[Call] = []
        self._edges: list[list[Any]] = []
        self.layers: dict[nn.Module, tuple[LayerRule, tuple[str, ...]]] = {}
        for layer, names in trainable_layers(model):
            rule = RULES.get(type(layer), _GENERIC)
            rule.check(layer)
            self.layers[layer] = (rule, names)
        self._handles = [layer.register_forward_hook(_Hook(self), with_kwargs=True) for layer in self.layers]

    def close(self) -> None:
        """Takes the hooks off the model."""
        for handle in self._handles:
            handle.remove()
        self.clear()

    def clear(self) -> None:
        """Forgets what was recorded, and stops recording."""
        self.active, self.calls, self._edges = False, [], []

    def note(self, layer: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any], out: Any) -> None:
        """Keeps a use of a layer.

        An edge of the graph, unlike the output itself, stays what it is when the output is changed in place later.
        """
        tensors = [leaf for leaf in pytree.tree_leaves(out) if isinstance(leaf, Tensor)]
        edges = [get_gradient_edge(tensor) if tensor.requires_grad else None for tensor in tensors]
        if not any(edges):  # nothing is learned from this use
            return
        given, named = pytree.tree_map_only(Tensor, torch.Tensor.detach, (inputs, keywords))
        versions = tuple(tensor._version for tensor in _tensors(given, named))
        call = Call(layer, given, named, versions=versions)
        if self.layers[layer][0].small and len(tensors) == 1:
            tensors[0].register_hook(partial(self._arrived, call))
            if any(tensor.requires_grad for tensor in _tensors(inputs, keywords)):
                edges = []  # the gradient passes by on its way to the layers before, and need not be asked for
        self.calls.append(call)
        self._edges.append(edges)

    def _arrived(self, call: Call, gradient: Tensor) -> None:
        """Makes the small gradients of a call's examples, and forgets its tensors."""
        if not self._listening:  # somebody else's backward pass
            return
        rule, names = self.layers[call.layer]
        self._check_inputs(call)
        if not gradient.dim() or not call.a.dim() or len(gradient) != len(call.a):
            raise refuse(
                call.layer, "whose output has a row for each example", "Examples lie along the first dimension."
            )
        call.gradients = (gradient.detach(),)
        with torch.no_grad():
            rule.made(call, names)
        call.inputs, call.keywords, call.gradients = (), {}, ()

    def backward(self, total: Tensor) -> list[Call]:
        """Runs one backward pass from the sum of losses, and returns the uses of layers with their output gradients.

        No gradient of a parameter is computed on the way.

        Raises:
            InvalidParameter: if a layer's input was changed in place after the layer had read it.
        """
        edges = [edge for several in self._edges for edge in several if edge is not None]
        self._listening = True
        try:
            found = iter(torch.autograd.grad(total, edges, allow_unused=True) if edges else ())
        finally:
            self._listening = False
        calls = self.calls
        for call, several in zip(calls, self._edges, strict=True):
            gradients = tuple(None if edge is None else next(found) for edge in several)
            if not call.kept:
                self._check_inputs(call)
                call.gradients = gradients
        self.clear()
        return [call for call in calls if call.kept or any(e is not None for e in call.gradients)]

    @staticmethod
    def _check_inputs(call: Call) -> None:
        if tuple(tensor._version for tensor in _tensors(call.inputs, call.keywords)) != call.versions:
            raise refuse(call.layer, "whose input stays as it is", "Pass inplace=False to the activation behind it.")


def _tensors(inputs: Any, keywords: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves((inputs, keywords)) if isinstance(leaf, Tensor)]


def trainable_layers(model: nn.Module) -> Iterator[tuple[nn.Module, tuple[str, ...]]]:
    """Yields each layer with trainable parameters of its own, and their names.

    Attention counts the matrix behind it, which it uses without calling it, as its own.

    Raises:
        InvalidParameter: for a layer that computes statistics over a batch.
    """
    behind = {layer.out_proj for layer in model.modules() if isinstance(layer, nn.MultiheadAttention)}
    for layer in model.modules():
        if isinstance(layer, _BATCH_NORMS):
            raise InvalidParameter(
                "layer",
                type(layer).__name__,
                "to keep examples apart",
                "Batch statistics mix them. Use GroupNorm, LayerNorm or InstanceNorm.",
            )
        nested = isinstance(layer, nn.MultiheadAttention)
        own = layer.named_parameters(recurse=nested)
        names = tuple(name for name, parameter in own if parameter.requires_grad)
        if names and layer not in behind:
            yield layer, names
