"""The sum of clipped gradients of a batch, from one backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from discreet.deep import kernels
from discreet.deep.clipping.clip_bounds import KEPT, KEPT_REDUCED, ClipRule
from discreet.deep.clipping.layer_rule import REDUCED, LayerCall, LayerRule, refuse, squares, weigh
from discreet.deep.clipping.recorded_calls import LayerCallRecorder
from discreet.errors import InvalidParameter

_FIRST = "Examples lie along the first dimension of every layer: batch_first=True, and no reshape into it."
_REDUCED_NORMS = float(KEPT / KEPT_REDUCED) ** 2
_AVERAGED = 'Keep losses apart: pass reduction="none", and sum over what belongs to one example.'


class PerExampleGradients:
    """Holds the gradients of a batch of examples; each is made only where it must be.

    A parameter that one call uses is left to the rule of its layer. One that several use, because layers share it or a
    layer is called repeatedly, has the sum of its uses made for every example, since norms do not determine the norm of
    a sum.

    Args:
        recorder: that was active while the model ran.
        losses: of the examples, one for each.
        names: of the trainable parameters.
        examples: how many there are.

    Raises:
        InvalidParameter: if losses are no vector of that length, or a layer saw another number of examples.
    """

    def __init__(
        self, recorder: LayerCallRecorder, losses: Tensor, names: dict[nn.Parameter, str], examples: int
    ) -> None:
        if losses.dim() != 1 or len(losses) != examples:
            # How many examples a batch has is private, and so is the shape of what they give.
            given = f"of {losses.dim()} dimensions" if losses.dim() != 1 else "of another length"
            raise InvalidParameter("losses", given, "to be a vector with a loss for each example", _AVERAGED)
        self.examples = examples
        self._names = names
        self._plain = torch.autocast(losses.device.type, enabled=False)  # nothing below is rounded to fewer bits
        with self._plain:
            self._read(recorder, losses)

    def _read(self, recorder: LayerCallRecorder, losses: Tensor) -> None:
        self.calls = recorder.backward(losses.sum())
        _check_rows(self.calls, self.examples)
        self.reduced = _is_reduced(self.calls, recorder)
        self.calls = _merge_calls(self.calls, recorder)
        uses: dict[nn.Parameter, list[tuple[LayerRule, LayerCall, str]]] = {}
        for call in self.calls:
            rule, own = recorder.layers[call.layer]
            for name in own:
                uses.setdefault(call.layer.get_parameter(name), []).append((rule, call, name))
        self._alone: dict[LayerCall, tuple[LayerRule, dict[str, nn.Parameter]]] = {}
        self._shared: dict[nn.Parameter, Tensor] = {}
        for parameter, several in uses.items():
            if len(several) == 1:
                rule, call, name = several[0]
                self._alone.setdefault(call, (rule, {}))[1][name] = parameter
            else:
                self._shared[parameter] = _add_gradients(several)

    def squared_norms(self) -> dict[str, Tensor]:
        """Returns, for each parameter that was used, the squared norms of its gradients in 64 bits."""
        found = {self._names[parameter]: squares(gradient) for parameter, gradient in self._shared.items()}
        with self._plain:
            for call, (rule, own) in self._alone.items():
                norms = rule.squared_norms(call, list(own))
                found |= {self._names[own[name]]: values for name, values in norms.items()}
        return found

    def weighted_sums(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns the weighted sum of gradients for each parameter.

        An example of weight 0 contributes nothing, whatever its gradient is: 0 times infinity would be something.
        """
        self._silence(weights)
        with self._plain:
            found = {self._names[p]: weigh(weights[self._names[p]], gradient) for p, gradient in self._shared.items()}
            for call, (rule, own) in self._alone.items():
                for group in _equal(own, {name: weights[self._names[p]] for name, p in own.items()}):
                    sums = rule.weighted_sums(call, group, weights[self._names[own[group[0]]]])
                    found |= {self._names[own[name]]: values for name, values in sums.items()}
        return found

    def _silence(self, weights: dict[str, Tensor]) -> None:
        """Overwrites what was kept of examples whose norm is no number."""
        norms = torch.stack([values == 0 for values in weights.values()]).all(0) if weights else torch.zeros(0)
        if not bool(norms.any()):
            return

        def quiet(value: Any) -> Any:
            if not isinstance(value, Tensor) or not value.dim() or len(value) != self.examples:
                return value
            return value.masked_fill(norms.reshape(-1, *[1] * (value.dim() - 1)), 0)

        for call in self._alone:
            call.inputs, call.keywords = pytree.tree_map(quiet, (call.inputs, call.keywords))
            call.gradients = tuple(map(quiet, call.gradients))
            call.kept = {name: quiet(value) for name, value in call.kept.items()}
        self._shared = {parameter: quiet(value) for parameter, value in self._shared.items()}

    def clipped_sum(self, clip: ClipRule) -> dict[str, Tensor]:
        """Returns the sum of clipped gradients for each parameter that was used.

        Formal guarantee: in exact arithmetic on what the layers kept, one example contributes a vector of a norm of at
        most `clip.bound` times 1 - 2^-10, which depends on this example alone; 1 - 2^-5 in reduced precision.
        """
        with torch.no_grad():
            used = self.squared_norms()
            if not used:
                return {}
            if self.reduced or kernels.rounds_products(next(iter(used.values()))):
                used = {name: values * _REDUCED_NORMS for name, values in used.items()}
            # All parameters count, used or not: a rule that divides between layers must not divide by what others use.
            unused = torch.zeros_like(next(iter(used.values())))
            return self.weighted_sums(clip.weights(dict.fromkeys(self._names.values(), unused) | used))


def _check_rows(calls: Iterable[LayerCall], examples: int) -> None:
    for call in calls:
        if call.kept:
            if any(len(gradient) != examples for gradient in call.kept.values()):
                raise refuse(call.layer, "whose input has one row for each example", _FIRST)
            continue
        tensors = [call.inputs[0]] if call.inputs and isinstance(call.inputs[0], Tensor) else []
        first = [e for e in call.gradients[:1] if e is not None]
        if not tensors or any(not tensor.dim() or len(tensor) != examples for tensor in [*tensors, *first]):
            raise refuse(call.layer, "whose input has one row for each example", _FIRST)


def _is_reduced(calls: Iterable[LayerCall], recorder: LayerCallRecorder) -> bool:
    """Returns whether rounding gets more of the bound: public examples decide, as no single example may."""
    found = [
        call for call in calls if call.autocast or any(e is not None and e.dtype in REDUCED for e in call.gradients)
    ]
    if found and recorder.reduced is False:
        hint = "Use autocast for every batch, or for none."
        raise refuse(found[0].layer, "whose precision is the same for all batches", hint)
    return bool(found) if recorder.reduced is None else recorder.reduced


def _merge_calls(calls: Sequence[LayerCall], recorder: LayerCallRecorder) -> list[LayerCall]:
    """Returns the calls, those of one layer as one where its rule can say so."""
    layers: dict[nn.Module, list[LayerCall]] = {}
    for call in calls:
        layers.setdefault(call.layer, []).append(call)
    found: list[LayerCall] = []
    with torch.no_grad():
        for layer, several in layers.items():
            one = recorder.layers[layer][0].merge_calls(several) if len(several) > 1 else None
            found += several if one is None else [one]
    return found


def _add_gradients(uses: Sequence[tuple[LayerRule, LayerCall, str]]) -> Tensor:
    total: Any = 0
    with torch.no_grad():
        for rule, call, name in uses:
            total = total + rule.compute_gradients(call, [name])[name]
    return total


def _equal(own: Iterable[str], weights: dict[str, Tensor]) -> list[list[str]]:
    """Returns the names of a layer's parameters, together where they share one tensor of weights."""
    groups: dict[int, list[str]] = {}
    for name in own:
        groups.setdefault(id(weights[name]), []).append(name)
    return list(groups.values())
