"""Hooks that keep what goes into each trainable layer, and where in the graph its output's gradient arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.utils import _pytree as pytree

from discreet.deep.clipping.generic_layer import GenericRule
from discreet.deep.clipping.joined_layers import JoinedRule
from discreet.deep.clipping.layer_rule import REDUCED, RULES, Call, LayerRule, refuse
from discreet.errors import InvalidParameter

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_GENERIC = GenericRule()


class _Hook:
    """A forward hook that a copy of the model does not take along: a copy, such as an average, trains nothing."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = recorder

    def __call__(self, layer: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any], out: Any) -> None:
        if self.recorder is not None and self.recorder.active:
            self.recorder.note(layer, inputs, keywords, out)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Hook, ()


class _Forward:
    """The forward of a layer of several matrices, in whose place it stands: PyTorch's own unless uses are recorded.

    A copy of the layer computes with the copy's parameters, and trains nothing.
    """

    def __init__(self, layer: nn.Module, rule: JoinedRule | None = None, recorder: Recorder | None = None) -> None:
        self.layer, self.rule, self.recorder = layer, rule, recorder

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        recorder, layer = self.recorder, self.layer
        if recorder is None or self.rule is None or not recorder.active:
            return type(layer).forward(layer, *inputs, **keywords)
        return self.rule.forward(layer, lambda given, made: recorder.note(layer, given, {}, made), *inputs, **keywords)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Forward, (self.layer,)


class Recorder:
    """Records the uses of a model's trainable layers while it is active.

    Args:
        model: the model; its frozen parameters are left alone.

    Attributes:
        reduced: whether matrices are multiplied in fewer than 32 bits, as public examples showed; None if none did yet.

    Raises:
        InvalidParameter: for layers that mix examples or keep statistics of batches.
    """

    def __init__(self, model: nn.Module) -> None:
        self.active = False
        self.calls: list[Call] = []
        self._edges: list[list[Any]] = []
        self.reduced: bool | None = None
        self.layers: dict[nn.Module, tuple[LayerRule, tuple[str, ...]]] = {}
        for layer, names in trainable_layers(model):
            rule = _rule(layer, names)
            rule.check(layer)
            self.layers[layer] = (rule, names)
        self._handles: list[Any] = []
        for layer, (rule, _) in self.layers.items():
            if isinstance(rule, JoinedRule):
                layer.forward = _Forward(layer, rule, self)
            else:
                self._handles.append(layer.register_forward_hook(_Hook(self), with_kwargs=True))

    def close(self) -> None:
        """Takes the hooks off the model."""
        for handle in self._handles:
            handle.remove()
        for layer in self.layers:
            if isinstance(vars(layer).get("forward"), _Forward):
                del layer.forward
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
        if self.layers[layer][0].narrow and tensors[0].dtype in REDUCED:  # what it multiplies with is rounded first
            given = pytree.tree_map_only(Tensor, lambda tensor: tensor.to(tensors[0].dtype), given)
        versions = tuple(tensor._version for tensor in _tensors(given, named))
        self.calls.append(Call(layer, given, named, versions=versions, autocast=_autocast(layer, tensors[0])))
        self._edges.append(edges)

    def backward(self, total: Tensor) -> list[Call]:
        """Runs one backward pass from the sum of losses, and returns the uses of layers with their output gradients.

        No gradient of a parameter is computed on the way.

        Raises:
            InvalidParameter: if a layer's input was changed in place after the layer had read it.
        """
        edges = [edge for several in self._edges for edge in several if edge is not None]
        found = iter(torch.autograd.grad(total, edges, allow_unused=True) if edges else ())
        calls = self.calls
        for call, several in zip(calls, self._edges, strict=True):
            call.gradients = tuple(None if edge is None else next(found) for edge in several)
            if tuple(tensor._version for tensor in _tensors(call.inputs, call.keywords)) != call.versions:
                raise refuse(
                    call.layer, "whose input stays as it is", "Pass inplace=False to the activation behind it."
                )
        self.clear()
        return [call for call in calls if any(e is not None for e in call.gradients)]


def _rule(layer: nn.Module, names: tuple[str, ...]) -> LayerRule:
    """The rule of a layer's type; the one for any layer, if it has none, or a forward that somebody else put there."""
    rule = RULES.get(type(layer), _GENERIC)
    own = vars(layer).get("forward")
    free = own is None or (isinstance(own, _Forward) and own.recorder is None)
    return rule if free and rule.fits(layer, names) else _GENERIC


def _autocast(layer: nn.Module, out: Tensor) -> Any:
    """The type that `torch.autocast` multiplies matrices in; None if it is not in use.

    Raises:
        InvalidParameter: for float16, whose gradients vanish unless losses are scaled, and then overflow.
    """
    kind = out.device.type
    found = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    if torch.float16 in {found, out.dtype}:
        hint = "Use torch.autocast with dtype=torch.bfloat16, which needs no GradScaler."
        raise refuse(layer, "of 32 bits, or of bfloat16 under autocast", hint)
    return found


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
