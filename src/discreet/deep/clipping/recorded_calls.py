"""Hooks that keep what goes into each trainable layer, and where in the graph its output's gradient arrives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.nn.utils.parametrize import is_parametrized
from torch.utils import _pytree as pytree

from discreet.deep.clipping.generic_layer import GenericRule
from discreet.deep.clipping.joined_layers import JoinedRule
from discreet.deep.clipping.layer_rule import REDUCED, RULES, LayerCall, LayerRule, refuse
from discreet.errors import InvalidParameter

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_GENERIC = GenericRule()

_KEYS = count()
_TAPS: dict[int, list[Tensor]] = {}
"""The taps of each recorder, which are no attribute of it: what hangs on a model is compiled for one shape only."""

Watched = tuple[Tensor, Any]
"""An output of a layer, and where in the graph its gradient arrives."""


class _Hook:
    """A forward hook that a copy of the model does not take along: a copy, such as an average, trains nothing."""

    def __init__(self, recorder: LayerCallRecorder | None = None) -> None:
        self.recorder = recorder

    def __call__(self, layer: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any], out: Any) -> Any:
        if self.recorder is None or not self.recorder.active:
            return None
        leaves, spec = pytree.tree_flatten(out)
        several = sum(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves) > 1
        watched = [self.recorder.watch(leaf, apart=several) for leaf in leaves if isinstance(leaf, Tensor)]
        self.recorder.see(watched)
        self.recorder.note(layer, inputs, keywords, watched)
        values = iter(watched)
        return pytree.tree_unflatten([next(values)[0] if isinstance(leaf, Tensor) else leaf for leaf in leaves], spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Hook, ()


class _Forward:
    """Replaces the forward of a layer of several matrices: PyTorch's own runs unless uses are recorded.

    A copy of the layer computes with the copy's parameters, and trains nothing.
    """

    def __init__(
        self, layer: nn.Module, rule: JoinedRule | None = None, recorder: LayerCallRecorder | None = None
    ) -> None:
        self.layer, self.rule, self.recorder = layer, rule, recorder

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        recorder, layer = self.recorder, self.layer
        if recorder is None or self.rule is None or not recorder.active:
            return type(layer).forward(layer, *inputs, **keywords)
        given: list[Tensor] = []
        watched: list[Watched] = []

        def watch(several: tuple[Tensor, ...], made: Tensor | None) -> Tensor | None:
            given.extend(several)
            if made is None:
                return None
            watched.append(recorder.watch(made))
            return watched[-1][0]

        out = self.rule.forward(layer, watch, *inputs, **keywords)
        recorder.note(layer, tuple(given), {}, watched)
        recorder.see([(leaf, None) for leaf in _tensors(out, {})])
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return _Forward, (self.layer,)


class LayerCallRecorder:
    """Records the uses of a model's trainable layers while it is active.

    The gradient of a layer's output arrives at an edge of the graph, which, unlike the output itself, stays what it is
    when the output is changed in place later. A compiled model has no such edges inside. There a tap is added to the
    output, a zero for each of its numbers that takes no memory: the gradient of the tap is that of the output. Taps
    must be there before the model runs, so that it needs not be left for them; their shapes are those of earlier
    examples, and the first examples are public. While there are taps, no gradient of a parameter is asked for: a
    compiled model would compute them all.

    Args:
        model: the model; its frozen parameters are left alone.

    Attributes:
        outputs: where in the graph the outputs of layers are.
        reduced: whether matrices are multiplied in fewer than 32 bits, as public examples showed; None if none did yet.

    Raises:
        InvalidParameter: for layers that mix examples or keep statistics of batches.
    """

    def __init__(self, model: nn.Module) -> None:
        self.active = self._listening = False
        self.calls: list[LayerCall] = []
        self.outputs: list[Any] = []
        self.reduced: bool | None = None
        self._compiled = any(_is_compiled(layer) for layer in model.modules())
        self._trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._shapes: list[tuple[Any, ...]] = []  # of the outputs of one example, with type and device
        self._learned: list[tuple[Any, ...]] = []
        self._key = next(_KEYS)
        self._tapped, self._place = False, 0
        self._outside = torch.compiler.disable(self._made_outside)
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
        if self._tapped:
            for parameter in self._trainable:
                parameter.requires_grad_(True)
        self.active, self.calls, self.outputs, self._shapes = False, [], [], []
        self._tapped, self._place = False, 0
        _TAPS.pop(self._key, None)

    def start(self, examples: int, *, taps: bool = True) -> None:
        """Records the uses of layers from now on, in a batch of so many examples.

        With taps a compiled model gets no gradients of its parameters; without, it must run as it was written.
        """
        self.clear()
        if taps and self._compiled and self._learned:
            _TAPS[self._key] = [_tap((examples, *shape), dtype, device) for shape, dtype, device in self._learned]
            self._tapped = True
            for parameter in self._trainable:
                parameter.requires_grad_(False)
        self.active = True

    @property
    def taps(self) -> bool:
        """Returns whether outputs get taps, since there are no edges inside of what is compiled."""
        return self._tapped or bool(torch.compiler.is_compiling())

    def see(self, watched: list[Watched]) -> None:
        """Notes where in the graph the outputs of a layer are, behind which its parameters may be used."""
        if not self.taps:
            self.outputs += [get_gradient_edge(made) for made, _ in watched if made.requires_grad]

    def watch(self, made: Tensor, *, apart: bool = False) -> Watched:
        """Returns what goes on in place of an output, and where its gradient arrives; None if it has none.

        Outputs where one is made from another, such as those of an LSTM's cell, are kept `apart` by a copy: at the
        output itself the gradient of the other one would arrive, too, and its parameters' would be counted twice.
        """
        if not self.taps:
            self._shapes.append((made.shape[1:], made.dtype, made.device))
            if apart and made.requires_grad:
                made = made.clone()
            elif made._is_view() and made.requires_grad:
                # A change in place of a view goes around its edge. The same numbers as no view do not let it.
                made = torch.ops.aten._unsafe_view(made, made.shape)
            return made, get_gradient_edge(made) if made.requires_grad else None
        if not made.is_floating_point() or not torch.is_grad_enabled():
            return made, None
        place = self._place
        self._place = place + 1
        taps = _TAPS.get(self._key, [])
        if place < len(taps) and _like(taps[place], made):
            return made + taps[place], taps[place]
        found: Watched = self._outside(made)
        return found

    def _made_outside(self, made: Tensor) -> Watched:
        """Taps an output of another shape than the learned one; a compiled model is left for it."""
        tap = _tap(made.shape, made.dtype, made.device)
        self._shapes.append((made.shape[1:], made.dtype, made.device))
        return made + tap, tap

    def note(self, layer: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any], watched: list[Watched]) -> None:
        """Keeps a use of a layer."""
        edges = tuple(edge for _, edge in watched)
        if all(edge is None for edge in edges):  # nothing is learned from this use
            return
        out = watched[0][0]
        given, named = pytree.tree_map_only(Tensor, torch.Tensor.detach, (inputs, keywords))
        rule = self.layers[layer][0]
        if rule.narrow and out.dtype in REDUCED:  # what it multiplies with is rounded first
            given = pytree.tree_map_only(Tensor, lambda tensor: tensor.to(out.dtype), given)
        versions = None if torch.compiler.is_compiling() else _versions(given, named)
        autocast = _autocast(layer, out)
        call = LayerCall(layer, given, named, edges=edges, versions=versions, autocast=autocast)
        if rule.small and len(watched) == 1 and not self._tapped and not torch.compiler.is_compiling():
            out.register_hook(partial(self._record_gradient, call))
            if any(tensor.requires_grad for tensor in _tensors(inputs, keywords)):
                call.edges = ()  # the gradient passes by on its way to the layers before, and need not be asked for
        self.calls.append(call)

    def _record_gradient(self, call: LayerCall, gradient: Tensor) -> None:
        """Makes the small gradients of a call's examples, and forgets its tensors."""
        if not self._listening:  # a backward pass that is not the trainer's
            return
        rule, names = self.layers[call.layer]
        self._check_inputs(call)
        if not gradient.dim() or not call.a.dim() or len(gradient) != len(call.a):
            raise refuse(
                call.layer, "whose output has a row for each example", "Examples lie along the first dimension."
            )
        call.gradients = (gradient.detach(),)
        call.autocast = call.autocast or (gradient.dtype if gradient.dtype in REDUCED else None)
        with torch.no_grad():
            rule.compute_gradients(call, names)
        call.inputs, call.keywords, call.gradients = (), {}, ()

    def backward(self, total: Tensor) -> list[LayerCall]:
        """Runs one backward pass from the sum of losses, and returns the uses of layers with their output gradients.

        No gradient of a parameter is computed on the way.

        Raises:
            InvalidParameter: if a layer's input was changed in place after the layer had read it.
        """
        calls = self.calls
        self._learned = self._learned or self._shapes
        self.clear()
        edges = [edge for call in calls for edge in call.edges if edge is not None]
        self._listening = True
        try:
            found = iter(torch.autograd.grad(total, edges, allow_unused=True) if edges else ())
        finally:
            self._listening = False
        for call in calls:
            gradients = tuple(None if edge is None else next(found) for edge in call.edges)
            if not call.kept:
                self._check_inputs(call)
                call.gradients = gradients
        return [call for call in calls if call.kept or any(e is not None for e in call.gradients)]

    @staticmethod
    def _check_inputs(call: LayerCall) -> None:
        if call.versions is not None and _versions(call.inputs, call.keywords) != call.versions:
            raise refuse(call.layer, "whose input stays as it is", "Pass inplace=False to the activation behind it.")


def _is_compiled(layer: nn.Module) -> bool:
    return "_orig_mod" in layer._modules or layer._compiled_call_impl is not None


def _tap(shape: Any, dtype: Any, device: Any) -> Tensor:
    return torch.zeros((), dtype=dtype, device=device).expand(shape).requires_grad_()


def _like(tap: Tensor, made: Tensor) -> bool:
    return bool(tap.shape == made.shape and tap.dtype == made.dtype and tap.device == made.device)


def _tensors(inputs: Any, keywords: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves((inputs, keywords)) if isinstance(leaf, Tensor)]


def _versions(inputs: Any, keywords: Any) -> tuple[int, ...]:
    return tuple(tensor._version for tensor in _tensors(inputs, keywords))


def _rule(layer: nn.Module, names: tuple[str, ...]) -> LayerRule:
    """Returns the rule of a layer's type; the one for any layer, if it has none or its forward was replaced."""
    rule = RULES.get(type(layer), _GENERIC)
    own = vars(layer).get("forward")
    free = own is None or (isinstance(own, _Forward) and own.recorder is None)
    return rule if free and rule.fits(layer, names) else _GENERIC


def _autocast(layer: nn.Module, out: Tensor) -> Any:
    """Returns the type that `torch.autocast` multiplies matrices in; None if it is not in use.

    Raises:
        InvalidParameter: for float16, whose gradients vanish unless losses are scaled, and then overflow.
    """
    kind = out.device.type
    found = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    if torch.float16 in {found, out.dtype}:
        hint = "Use torch.autocast with dtype=torch.bfloat16, which needs no GradScaler."
        raise refuse(layer, "of 32 bits, or of bfloat16 under autocast", hint)
    return found


def trainable_layers(model: nn.Module) -> Iterator[tuple[nn.Module, tuple[str, ...]]]:
    """Yields each layer with trainable parameters of its own, and their names.

    Attention counts the matrix behind it, which it uses without calling it, as its own; so does a layer with
    parameters that its weights are computed from.

    Raises:
        InvalidParameter: for a layer that computes statistics over a batch.
    """
    behind: set[nn.Module] = set()
    for layer in model.modules():
        behind |= {layer.out_proj} if isinstance(layer, nn.MultiheadAttention) else set()
        behind |= set(_parametrizations(layer))
    for layer in model.modules():
        if isinstance(layer, _BATCH_NORMS):
            raise InvalidParameter(
                "layer",
                type(layer).__name__,
                "to keep examples apart",
                "Batch statistics mix them. Use GroupNorm, LayerNorm or InstanceNorm.",
            )
        nested = isinstance(layer, nn.MultiheadAttention) or bool(_parametrizations(layer))
        own = [(name, each) for name, each in layer.named_parameters(recurse=nested) if _is_own(layer, name)]
        names = tuple(name for name, parameter in own if parameter.requires_grad)
        if names and layer not in behind:
            yield layer, names


def _parametrizations(layer: nn.Module) -> list[nn.Module]:
    """Returns the modules that compute a layer's weights from other parameters (`torch.nn.utils.parametrizations`)."""
    return list(layer.parametrizations.modules()) if is_parametrized(layer) else []


def _is_own(layer: nn.Module, name: str) -> bool:
    """Returns whether a parameter is used by a layer itself, and not by a layer inside of it."""
    inner = name.rpartition(".")[0]
    return not inner or inner.startswith("parametrizations.") or isinstance(layer, nn.MultiheadAttention)
