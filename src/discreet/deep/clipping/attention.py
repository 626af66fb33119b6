"""Attention with several heads: projections of queries, keys and values, and one of what the heads found."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.deep.clipping.joined_layers import JoinedRule, MatrixUse, Watch
from discreet.deep.clipping.layer_rule import LayerCall, refuse, rule_for

_OWN = {
    "in_proj_weight",
    "in_proj_bias",
    "q_proj_weight",
    "k_proj_weight",
    "v_proj_weight",
    "out_proj.weight",
    "out_proj.bias",
}


@rule_for(nn.MultiheadAttention)
class AttentionRule(JoinedRule):
    """Linear layers around an attention without parameters, which autograd goes through.

    Where no weights are asked for, the attention is PyTorch's own, with whatever kernels the device has. Keys and
    values that are added to every example (`add_bias_kv`, `add_zero_attn`) are left to the rule for any layer.
    """

    def fits(self, layer: nn.Module, names: tuple[str, ...]) -> bool:
        """Returns whether the layer is computed here."""
        own: Any = layer
        plain = own.bias_k is None and own.bias_v is None and not own.add_zero_attn
        return plain and own.batch_first and set(names) <= _OWN

    def forward(self, layer: nn.Module, watch: Watch, *inputs: Any, **keywords: Any) -> tuple[Tensor, Tensor | None]:
        """Returns what the layer gives; see `torch.nn.MultiheadAttention.forward` for what it is called with."""
        return _attend(layer, watch, *inputs, **keywords)

    def parts(self, call: LayerCall) -> list[MatrixUse]:
        """Returns the projections: of all inputs at once where they are the same, and of the result."""
        layer: Any = call.layer
        width, inner = layer.embed_dim, len(call.inputs) - 1
        starts = {1: [0], 2: [0, width], 3: [0, width, 2 * width]}[inner]
        apart = layer.in_proj_weight is None
        named = [f"{letter}_proj_weight" for letter in "qkv"] if apart else ["in_proj_weight"] * inner
        found = []
        for place, (name, start) in enumerate(zip(named, starts, strict=True)):
            rows = {"weight": (name, 0 if apart else start), "bias": ("in_proj_bias", start)}
            found.append((call.inputs[place], call.gradients[place], rows))
        rows = {"weight": ("out_proj.weight", 0), "bias": ("out_proj.bias", 0)}
        found.append((call.inputs[-1], call.gradients[-1], rows))
        return [MatrixUse(a, e, rows) for a, e, rows in found if e is not None]


def _attend(  # noqa: PLR0917 - the order of PyTorch
    layer: Any,
    watch: Watch,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    if query.dim() != 3 or query.is_nested:
        raise refuse(layer, "of batches", "Give it a first dimension of examples, and no nested tensors.")
    if is_causal and attn_mask is None:
        raise refuse(
            layer, "with attn_mask where is_causal=True", "Pass attn_mask too: is_causal is only a hint about it."
        )
    projected = _project_inputs(layer, watch, query, key, value)
    q, k, v = (each.unflatten(-1, (layer.num_heads, -1)).transpose(1, 2) for each in projected)
    chance = layer.dropout if layer.training else 0.0
    causal = is_causal and key_padding_mask is None and not need_weights
    mask = None if causal else _mask(q, attn_mask, key_padding_mask)
    weights = None
    if need_weights:
        weights = functional.dropout(_weights(q, k, mask), chance)
        found = torch.matmul(weights, v)
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        found = functional.scaled_dot_product_attention(q, k, v, mask, chance, causal)
    mixed = found.transpose(1, 2).flatten(2)
    out = functional.linear(mixed, layer.out_proj.weight, layer.out_proj.bias)
    return watch((mixed,), out), weights


def _project_inputs(layer: Any, watch: Watch, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
    """Returns queries, keys and values.

    Inputs that are the same are projected together, as PyTorch does it.
    """
    bias = layer.in_proj_bias
    if layer.in_proj_weight is None:
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        given: tuple[Tensor, ...] = (query, key, value)
        matrices = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
    else:
        same = key is value
        given = (query,) if same and query is key else (query, key) if same else (query, key, value)
        sizes = {1: [3], 2: [1, 2], 3: [1, 1, 1]}[len(given)]
        rows = [size * layer.embed_dim for size in sizes]
        matrices = layer.in_proj_weight.split(rows)
        biases = (None,) * len(given) if bias is None else bias.split(rows)
    found: list[Tensor] = []
    for each, matrix, one in zip(given, matrices, biases, strict=True):
        found.extend(watch((each,), functional.linear(each, matrix, one)).split(layer.embed_dim, -1))
    return found


def _mask(q: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None) -> Tensor | None:
    """Returns what is added to the products of queries and keys; None if nothing is.

    Truth means "leave out". A mask of three dimensions has one for each example and head.
    """
    mask = _make_additive_mask(attn_mask, q)
    if mask is not None and mask.dim() == 3:
        mask = mask.unflatten(0, q.shape[:2])
    padding = _make_additive_mask(key_padding_mask, q)
    if padding is None:
        return mask
    padding = padding[:, None, None, :]
    return padding.expand(-1, -1, q.shape[2], -1) if mask is None else mask + padding


def _make_additive_mask(mask: Tensor | None, q: Tensor) -> Tensor | None:
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=q.dtype).masked_fill_(mask, -math.inf)


def _weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    products = torch.matmul(q * math.sqrt(1 / q.shape[-1]), k.mT)
    return functional.softmax(products if mask is None else products + mask, -1)
