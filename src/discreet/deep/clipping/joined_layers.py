"""Layers that are made of several matrices: each is a linear layer, if the layer is computed step by step.

While gradients are recorded, such a layer is not computed by PyTorch's own forward, which hides what goes into its
matrices, but here, from the same parameters and to the same numbers up to rounding. So one backward pass gives
everything, and nothing is computed a second time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from discreet.deep.clipping.layer_rule import LayerCall, LayerRule
from discreet.deep.clipping.linear_layers import LinearRule

Watch = Callable[[tuple[Tensor, ...], Any], Any]
"""Takes what goes into matrices of a layer and what comes out, and returns what goes on in its place.

With None in place of what comes out, it takes what goes together with the output before.
"""

_LINEAR = LinearRule()


@dataclass(frozen=True, slots=True)
class MatrixUse:
    """Describes one matrix in its use: some rows of the layer's parameters.

    Attributes:
        a: what goes in, (examples, positions, features).
        e: the gradient with respect to what comes out.
        rows: for "weight" and "bias" the layer's own name of the parameter, and the first of its rows.
    """

    a: Tensor
    e: Tensor
    rows: Mapping[str, tuple[str, int]]


class JoinedRule(LayerRule):
    """The gradients of a layer of several matrices, which have no row of a parameter in common.

    So squared norms of a parameter's parts are added up, and its weighted sums are put one below the other.
    """

    narrow = True

    @abstractmethod
    def forward(self, layer: nn.Module, watch: Watch, *inputs: Any, **keywords: Any) -> Any:
        """Returns what the layer gives, in which `watch` sees what every matrix is given and gives."""

    @abstractmethod
    def parts(self, call: LayerCall) -> list[MatrixUse]:
        """Returns the matrices of the layer in their use."""

    def per_example(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example."""
        found: dict[str, list[tuple[int, Tensor]]] = {}
        for _, part, asked, one in self._single(call, names):
            for kind, gradient in _LINEAR.per_example(one, asked).items():
                name, start = part.rows[kind]
                found.setdefault(name, []).append((start, gradient))
        return {name: _below(several, call.layer.get_parameter(name), 1) for name, several in found.items()}

    def squared_norms(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the squared norms."""
        found: dict[str, Tensor] = {}
        for place, part, asked, one in self._single(call, names):
            for kind, squared in _LINEAR.squared_norms(one, asked).items():
                name = part.rows[kind][0]
                found[name] = found[name] + squared if name in found else squared
            call.kept |= {f"{place} {kind}": gradient for kind, gradient in one.kept.items()}
        return found

    def weighted_sums(self, call: LayerCall, names: Sequence[str], weights: Tensor) -> dict[str, Tensor]:
        """Returns the weighted sums."""
        found: dict[str, list[tuple[int, Tensor]]] = {}
        for _, part, asked, one in self._single(call, names):
            for kind, total in _LINEAR.weighted_sums(one, asked, weights).items():
                name, start = part.rows[kind]
                found.setdefault(name, []).append((start, total))
        return {name: _below(several, call.layer.get_parameter(name), 0) for name, several in found.items()}

    def merge_calls(self, calls: Sequence[LayerCall]) -> LayerCall | None:
        """Returns one call at the positions of all; None if the layer was not used the same way each time."""
        if len({(len(call.inputs), len(call.gradients)) for call in calls}) > 1:
            return None
        if any(e is None for call in calls for e in call.gradients):
            return None
        inputs = tuple(torch.cat(several, 1) for several in zip(*(call.inputs for call in calls), strict=True))
        found: Any = zip(*(call.gradients for call in calls), strict=True)
        return LayerCall(calls[0].layer, inputs, {}, tuple(torch.cat(several, 1) for several in found))

    def _single(self, call: LayerCall, names: Sequence[str]) -> Iterator[tuple[int, MatrixUse, list[str], LayerCall]]:
        """Yields each matrix as a call of a linear layer, with what was kept, and the parameters that are asked for."""
        for place, part in enumerate(self.parts(call)):
            asked = [kind for kind, (name, _) in part.rows.items() if name in names]
            kept = {kind: call.kept[f"{place} {kind}"] for kind in asked if f"{place} {kind}" in call.kept}
            if asked:
                yield place, part, asked, LayerCall(call.layer, (part.a,), {}, (part.e,), kept=kept)


def _below(several: Sequence[tuple[int, Tensor]], parameter: Tensor, dim: int) -> Tensor:
    """Returns rows of a parameter's gradient, from their first rows on; unused ones are 0."""
    if len(several) == 1 and several[0][1].shape[dim] == len(parameter):
        return several[0][1]
    first = several[0][1]
    whole = first.new_zeros(*first.shape[:dim], *parameter.shape)
    for start, values in several:
        whole.narrow(dim, start, values.shape[dim]).copy_(values)
    return whole
