"""Any layer: its gradient for one example, computed again for every example.

The layer is run once more on its own input, one example at a time from the layer's point of view, and its gradient is
taken for the output gradient of that example (`torch.func.vmap` of `grad`; where an operation has no such form, a
loop). This is right for every layer that is a function of its input, slower than a rule of its own, and said so in the
log. Layers that draw random numbers would draw others: the check of the model refuses them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from discreet.deep.clipping.layer_rule import LayerCall, LayerRule, refuse

_LOG = logging.getLogger("discreet.deep")
_RECURRENT = (nn.RNN, nn.LSTM, nn.GRU)
_MASK = 5  # the place of attn_mask


class GenericRule(LayerRule):
    """The gradients of any layer that is a function of its input."""

    def __init__(self) -> None:
        self._loops: WeakSet[nn.Module] = WeakSet()

    def check(self, layer: nn.Module) -> None:
        """Refuses layouts in which examples do not come first."""
        if getattr(layer, "batch_first", True) is False:
            raise refuse(layer, "with batch_first=True", "Examples lie along the first dimension.")
        _LOG.info("%s has no clipping rule: its gradients are computed example by example.", type(layer).__name__)

    def per_example(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example."""
        values, rebuild = _by_example(call)
        errors = _errors(call)
        asked = {name: call.layer.get_parameter(name).detach() for name in names}
        others = {n: v.detach() for n, v in _list_tensors(call.layer) if n not in asked}
        places = [place for place, e in enumerate(call.gradients) if e is not None]
        again = _Again(call.layer, others, rebuild, places)
        kind, reduced = errors[0].device.type, call.autocast
        with torch.autocast(kind, reduced, enabled=reduced is not None, cache_enabled=False):  # as in the forward pass
            if call.layer not in self._loops and not isinstance(call.layer, _RECURRENT):
                try:
                    with sdpa_kernel(SDPBackend.MATH):  # the one attention that can be mapped over examples
                        return dict(vmap(grad(again), in_dims=(None, 0, 0))(asked, values, errors))
                except (RuntimeError, NotImplementedError):  # an operation that cannot
                    self._loops.add(call.layer)
            return _loop_over_examples(again, asked, values, errors)


def _list_tensors(layer: nn.Module) -> list[tuple[str, Tensor]]:
    return [*layer.named_parameters(), *layer.named_buffers()]


def _shared_mask(call: LayerCall) -> Any:
    """Returns the mask of attention that is the same for all examples; None if there is none."""
    if not isinstance(call.layer, nn.MultiheadAttention):
        return None
    mask = call.keywords.get("attn_mask", call.inputs[_MASK] if len(call.inputs) > _MASK else None)
    return mask if mask is not None and mask.dim() == 2 else None


def _by_example(call: LayerCall) -> tuple[list[Tensor], Any]:
    """Returns the tensors that a layer was called with, and how to call it again with one row of each."""
    leaves, spec = pytree.tree_flatten((call.inputs, call.keywords))
    mask = _shared_mask(call)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf is not mask]
    if any(not leaves[place].dim() or len(leaves[place]) != len(call.a) for place in places):
        hint = "Masks and states that all examples share belong inside the layer, e.g. as a buffer."
        raise refuse(call.layer, "whose tensors all have a first dimension of examples", hint)

    def rebuild(rows: Sequence[Tensor]) -> Any:
        filled = list(leaves)
        for place, row in zip(places, rows, strict=True):
            filled[place] = row.unsqueeze(0)
        return pytree.tree_unflatten(filled, spec)

    return [leaves[place] for place in places], rebuild


def _errors(call: LayerCall) -> list[Tensor]:
    """Returns output gradients with examples first; PyTorch's recurrent layers put layers first in their states."""
    recurrent = isinstance(call.layer, _RECURRENT)
    found = [(place, e) for place, e in enumerate(call.gradients) if e is not None]
    return [e.movedim(1, 0) if recurrent and place else e for place, e in found]


@dataclass(frozen=True, slots=True)
class _Again:
    """A call that is made again for one example.

    It gives the output times its gradient, whose derivative is the gradient of the parameters that are asked for.
    """

    layer: nn.Module
    others: dict[str, Tensor]
    rebuild: Any
    places: Sequence[int]

    def __call__(self, asked: dict[str, Tensor], rows: Sequence[Tensor], errors: Sequence[Tensor]) -> Tensor:
        inputs, keywords = self.rebuild(rows)
        out = functional_call(self.layer, {**self.others, **asked}, inputs, keywords)
        found = [leaf for leaf in pytree.tree_leaves(out) if isinstance(leaf, Tensor)]
        terms = [(found[place].reshape(e.shape) * e).sum() for place, e in zip(self.places, errors, strict=True)]
        return torch.stack(terms).sum()


def _loop_over_examples(
    again: _Again, asked: dict[str, Tensor], values: Sequence[Tensor], errors: Sequence[Tensor]
) -> dict[str, Tensor]:
    gradients = []
    for example in range(len(values[0])):
        leaves = {name: value.clone().requires_grad_() for name, value in asked.items()}
        with torch.enable_grad():
            moves = again(leaves, [v[example] for v in values], [e[example] for e in errors])
        gradients.append(torch.autograd.grad(moves, list(leaves.values())))
    return {name: torch.stack(column) for name, column in zip(asked, zip(*gradients, strict=True), strict=True)}
