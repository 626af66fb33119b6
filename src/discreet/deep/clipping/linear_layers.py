"""Linear layers: one matrix, used at one position of each example or at many."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from discreet.deep.clipping.layer_rule import (
    LayerCall,
    LayerRule,
    pair_norms,
    rule_for,
    small_sum,
    weighted_product,
    wide,
)


@rule_for(nn.Linear)
class LinearRule(LayerRule):
    """y_t = W a_t + b: the gradient is the sum of e_t (outer) a_t for W, and of e_t for b."""

    narrow = True

    def per_example(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example."""
        e = _positions(call.e)
        found = {"bias": e.sum(1, dtype=torch.promote_types(e.dtype, torch.float32))} if "bias" in names else {}
        if "weight" in names:
            found["weight"] = torch.matmul(wide(e).mT, wide(_positions(call.a)))
        return found

    def squared_norms(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the squared norms."""
        a, e = _positions(call.a)[:, None], _positions(call.e)[:, None]
        made = [name for name in names if name == "bias" or small_sum(a, e)]
        found = super().squared_norms(call, made)
        return found | {name: pair_norms(a, e) for name in names if name not in made}

    def weighted_sums(self, call: LayerCall, names: Sequence[str], weights: Tensor) -> dict[str, Tensor]:
        """Returns the weighted sums: one product over all examples and positions, unless gradients were made."""
        made = [name for name in names if name == "bias" or name in call.kept]
        found = super().weighted_sums(call, made, weights)
        if "weight" not in names or "weight" in made:
            return found
        return found | {"weight": weighted_product(_positions(call.a), _positions(call.e), weights)}

    def merge_calls(self, calls: Sequence[LayerCall]) -> LayerCall:
        """Returns one call at the positions of all."""
        a = torch.cat([_positions(call.a) for call in calls], 1)
        return LayerCall(calls[0].layer, (a,), {}, (torch.cat([_positions(call.e) for call in calls], 1),))


def _positions(values: Tensor) -> Tensor:
    """Returns values as (examples, positions, features)."""
    return values.reshape(len(values), -1, values.shape[-1])
