"""Embeddings: rows of a table, looked up by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from discreet.deep.clipping.layer_rule import (
    LayerCall,
    LayerRule,
    guard,
    refuse,
    rule_for,
    sum_error,
    wide,
)


@rule_for(nn.Embedding)
class EmbeddingRule(LayerRule):
    """Position t looks up row i_t: the gradient of a row is the sum of e_t over the positions that look it up.

    The squared norm is the sum of e_t . e_t' over pairs of positions with the same index, so that no table is made for
    each example.
    """

    def check(self, layer: nn.Module) -> None:
        """Refuses tables that change when they are read, and gradients that count a batch's words."""
        options: Any = layer
        if options.max_norm is not None:
            raise refuse(layer, "without max_norm", "max_norm would change rows that a batch reads, without noise.")
        if options.scale_grad_by_freq or options.sparse:
            hint = "Pass scale_grad_by_freq=False and sparse=False: frequencies in a batch are private."
            raise refuse(layer, "with plain gradients", hint)

    def per_example(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example: a whole table for each, only for tables that are shared."""
        layer: Any = call.layer
        index, e = _looked_up(call)
        tables = e.new_zeros(len(e), *layer.weight.shape)
        tables.scatter_add_(1, index[:, :, None].expand_as(e), e)
        return dict.fromkeys(names, tables)

    def squared_norms(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the squared norms."""
        index, e = _looked_up(call)
        same = index[:, :, None] == index[:, None, :]
        pairs = torch.matmul(e, e.mT) * same
        found = pairs.flatten(1).sum(1, dtype=torch.float64).clamp(min=0)
        # The error of e_t . e_t' is relative to |e_t| |e_t'|.
        lengths = torch.linalg.vector_norm(e, dim=2)
        together = (lengths[:, :, None] * lengths[:, None, :] * same).flatten(1).sum(1, dtype=torch.float64)
        share = sum_error(e.shape[2] + 2, e) + guard(e)
        return dict.fromkeys(names, found + share * together)

    def weighted_sums(self, call: LayerCall, names: Sequence[str], weights: Tensor) -> dict[str, Tensor]:
        """Returns the weighted sums: one table."""
        layer: Any = call.layer
        index, e = _looked_up(call)
        weighted = (e * weights.to(e.dtype)[:, None, None]).flatten(0, 1)
        table = e.new_zeros(layer.weight.shape).index_add_(0, index.flatten(), weighted)
        return dict.fromkeys(names, table)

    def merge_calls(self, calls: Sequence[LayerCall]) -> LayerCall:
        """Returns one call at the positions of all."""
        found = [_looked_up(call) for call in calls]
        index, e = (torch.cat(several, 1) for several in zip(*found, strict=True))
        return LayerCall(calls[0].layer, (index,), {}, (e,))


def _looked_up(call: LayerCall) -> tuple[Tensor, Tensor]:
    """Returns indices (examples, positions) and gradients (examples, positions, features), zero where padded."""
    layer: Any = call.layer
    index = call.a.reshape(len(call.a), -1)
    e = wide(call.e).reshape(*index.shape, -1)
    if layer.padding_idx is not None:
        e = e * (index != layer.padding_idx)[:, :, None]
    return index, e
