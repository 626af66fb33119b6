"""Families of layers find the gradient of every example from a layer's input and its output's gradient.

A layer is used once or several times in a forward pass. Each use is a `LayerCall`: what went in, and, after one
backward pass, the gradient of the sum of the losses with respect to what came out. Since no layer mixes examples, row i
of that gradient belongs to example i alone, and

    gradient of example i = sum over positions t of e_it (outer) a_it

for a linear layer with inputs a and output gradients e, and likewise for its relatives. A `LayerRule` gives the squared
norm of each example's gradient, and the sum of all of them with a weight for each, without a second backward pass.

Rounding. Floats have the unit roundoff u (2^-24 for 32 bits). Let S_i = ||a_i|| ||e_i|| be the product of the Frobenius
norms of what was kept of example i. The sum of n products in floats is off by at most n u / (1 - n u) times the sum of
their absolute values, in any order (Higham 2002, section 3.1), which Cauchy and Schwarz bound by S_i.

A gradient that is made for each example is a vector of floats, measured in 64 bits and added up with its weight as it
is: nothing is hidden. A squared norm that is found from pairs of positions is raised by what rounding can hide, and by
16 u S_i^2 besides: it is never below the squared norm of the exact gradient that belongs to the floats a_i and e_i.
Since a weight is at most C / (raised norm), w_i S_i <= C / (4 sqrt(u)), and rounding the weight and its product with
e_i or a_i, relatively by 2u, moves the weighted gradient by at most C sqrt(u) / 2 = 2^-13 C. Positions that cancel
each other are the reason: their sum may be far below what rounding leaves of it.

Reduced precision. Under `torch.autocast` with bfloat16, which keeps 8 bits, a and e are the numbers that the layer
really multiplied. The product of two of them is exact in 32 bits, and everything here is added up in 32 bits or more,
never in bfloat16: u stays 2^-24. Squared norms are raised by 64 u S_i^2, so that w_i S_i <= C / (8 sqrt(u)) = 2^9 C.
What is weighted has 32 bits: on a GPU each example's sum of products, elsewhere inputs or output gradients. So rounding
moves the weighted gradient by at most 2 u 2^9 C = 2^-14 C.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from discreet.deep import kernels
from discreet.errors import InvalidParameter

GUARD = 16
"""Multiples of the unit roundoff by which squared norms are raised, relative to S_i^2; four times that for 8 bits."""

_WIDE_PRODUCTS = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 8)  # of narrow matrices, on their device
REDUCED = (torch.bfloat16, torch.float16)
"""Types of fewer than 32 bits."""


@dataclass(eq=False, slots=True)
class LayerCall:
    """One use of a layer.

    Attributes:
        layer: the layer.
        inputs: what it was called with, in order.
        keywords: what it was called with by name.
        gradients: for each tensor that came out, in order, the gradient of the sum of losses; None if it has none.
        edges: for each tensor that came out, where its gradient arrives.
        versions: how often each input had been changed in place when it was recorded; None where nothing can.
        autocast: the type that matrices were multiplied in, if another one than theirs.
        kept: what a rule wants to use again within this step.
    """

    layer: nn.Module
    inputs: tuple[Any, ...]
    keywords: dict[str, Any]
    gradients: tuple[Tensor | None, ...] = ()
    edges: tuple[Any, ...] = ()
    versions: tuple[int, ...] | None = None
    kept: dict[str, Tensor] = field(default_factory=dict)
    autocast: Any = None

    @property
    def a(self) -> Tensor:
        """Returns the layer's input."""
        return self.inputs[0]

    @property
    def e(self) -> Tensor:
        """Returns the gradient with respect to the layer's output."""
        return self.gradients[0]


class LayerRule(ABC):
    """The gradients of examples for one family of layers; `names` are the trainable parameters that are asked for.

    Attributes:
        small: whether gradients of examples are small against inputs and outputs. Then they are made as soon as the
            output's gradient arrives, and neither that nor the input is kept.
        narrow: whether the layer multiplies in the precision of its output, to which its input is rounded first.
    """

    small = False
    narrow = False

    def fits(self, layer: nn.Module, names: tuple[str, ...]) -> bool:  # noqa: ARG002 - most rules fit their type
        """Returns whether the rule is right for a layer of its type; else the rule for any layer is used.

        It is not for one with other parameters than PyTorch gives it, such as those of `torch.nn.utils.weight_norm`.
        """
        return set(names) <= {"weight", "bias"}

    def check(self, layer: nn.Module) -> None:  # noqa: B027 - most layers have no options that matter
        """Refuses options under which a layer mixes examples or changes while it is used."""

    @abstractmethod
    def per_example(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example, along a first dimension."""

    def squared_norms(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the squared norm of each example's gradient, in 64 bits, never below that of what is summed."""
        return {name: squares(gradient) for name, gradient in self.compute_gradients(call, names).items()}

    def weighted_sums(self, call: LayerCall, names: Sequence[str], weights: Tensor) -> dict[str, Tensor]:
        """Returns the sum over examples of weight times gradient."""
        return {name: weigh(weights, gradient) for name, gradient in self.compute_gradients(call, names).items()}

    def merge_calls(self, calls: Sequence[LayerCall]) -> LayerCall | None:  # noqa: ARG002 - most layers are used once
        """Returns several calls of one layer as one call at more positions; None where that cannot be said so."""
        return None

    def compute_gradients(self, call: LayerCall, names: Sequence[str]) -> dict[str, Tensor]:
        """Returns the gradient of each example, kept with the call."""
        missing = [name for name in names if name not in call.kept]
        if missing:
            call.kept |= self.per_example(call, missing)
        return {name: call.kept[name] for name in names}


def wide(values: Tensor) -> Tensor:
    """Returns the values in at least 32 bits, in which they are added up.

    >>> wide(torch.tensor([1.0], dtype=torch.bfloat16)).dtype
    torch.float32
    """
    return values.float() if values.dtype in REDUCED else values


def unit_roundoff(values: Tensor) -> float:
    """Returns the largest relative error of rounding in the precision that such values are added up in."""
    return float(torch.finfo(torch.float32 if values.dtype in REDUCED else values.dtype).eps) / 2


def guard(values: Tensor) -> float:
    """Returns by how much squared norms are raised beyond what rounding can hide, relative to S_i^2."""
    return GUARD * (4 if values.dtype in REDUCED else 1) * unit_roundoff(values)


def sum_error(terms: int, values: Tensor) -> float:
    """Returns the largest error of a sum of so many products, relative to the sum of their absolute values."""
    share = terms * unit_roundoff(values)
    return share / (1 - share) if share < 0.5 else math.inf


def squares(values: Tensor) -> Tensor:
    """Returns the sum of squares of each example, in 64 bits.

    >>> squares(torch.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [25.0, 1.0]
    """
    rows = values.reshape(len(values), -1)
    return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64).square()


def weigh(weights: Tensor, gradients: Tensor) -> Tensor:
    """Returns the weighted sum of gradients that lie along the first dimension, which are floats and hence exact."""
    return torch.tensordot(weights.to(gradients.dtype), gradients, dims=1)


def weighted_pair(a: Tensor, e: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Returns inputs and output gradients, the smaller of them times the weight of its example."""
    smaller = e if e.numel() <= a.numel() else a
    weighted = smaller * weights.to(smaller.dtype).reshape(-1, *[1] * (smaller.dim() - 1))
    return (a, weighted) if smaller is e else (weighted, e)


def small_sum(a: Tensor, e: Tensor) -> bool:
    """Returns whether the sum over t of e_t (outer) a_t has fewer numbers than its T parts, d p against T (d + p).

    Then it is made for each example, measured, kept and added up as it is. Else pairs of positions give its norm in
    fewer multiplications, and no memory is taken.

    Args:
        a: (examples, groups, T, d).
        e: (examples, groups, T, p).
    """
    positions, width, height = a.shape[2], a.shape[3], e.shape[3]
    return bool(positions > 1 and positions * (width + height) > width * height)


def pair_norms(a: Tensor, e: Tensor) -> Tensor:
    """Returns upper bounds on the squared norms of the sums over t of e_t (outer) a_t, for each example.

    They are the sums over t and t' of (a_t . a_t') (e_t . e_t'), with an error of at most that of d + p + 2 products,
    relative to S^2; see the module.

    Args:
        a: (examples, groups, T, d).
        e: (examples, groups, T, p).

    >>> a, e = torch.eye(2).reshape(1, 1, 2, 2), torch.ones(1, 1, 2, 3)
    >>> round(float(pair_norms(a, e)), 3)
    6.0
    """
    if a.shape[1] == a.shape[2] == 1:
        return squares(a) * squares(e)
    if a.shape[1] == 1 and a.dtype == e.dtype and kernels.usable(a, e):
        return _pair_norms_on_gpu(a[:, 0], e[:, 0])
    together = squares(a) * squares(e)
    hidden = sum_error(a.shape[3] + e.shape[3] + 2, e) + guard(e)
    a, e = wide(a), wide(e)
    pairs = torch.matmul(a, a.mT) * torch.matmul(e, e.mT)
    found = pairs.flatten(1).sum(1, dtype=torch.float64).clamp(min=0)
    return found + hidden * together


def weighted_product(a: Tensor, e: Tensor, weights: Tensor) -> Tensor:
    """Returns the sum over examples and positions of weight times e_t (outer) a_t, added up in at least 32 bits.

    Args:
        a: (examples, T, d).
        e: (examples, T, p).
        weights: of the examples.
    """
    if a.dtype in REDUCED and a.dtype == e.dtype and kernels.usable(a, e):
        from discreet.deep.kernels.weighted_sums import weighted_sums  # noqa: PLC0415 - Triton, where there is a GPU

        return weighted_sums(
            make_contiguous(a), make_contiguous(e), weights.float(), precision=kernels.product_precision()
        )
    a, e = weighted_pair(wide(a), wide(e), weights)
    return torch.matmul(e.flatten(0, 1).T, a.flatten(0, 1))


def _pair_norms_on_gpu(a: Tensor, e: Tensor) -> Tensor:
    from discreet.deep.kernels.pair_norms import pair_sums  # noqa: PLC0415 - Triton, where there is a GPU

    found, inputs, outputs = pair_sums(make_contiguous(a), make_contiguous(e), precision=kernels.product_precision())
    return raise_norms(found, inputs * outputs, a.shape[2] + e.shape[2] + 2, guard(e))


def raise_norms(found: Tensor, together: Tensor, terms: int, more: float) -> Tensor:
    """Returns squared norms that a kernel has found from pairs, raised by what rounding in 32 bits can hide.

    Args:
        found: the squared norms.
        together: S_i^2 for each example.
        terms: how many products each pair has.
        more: what they are raised by besides.
    """
    return found.clamp(min=0) + (sum_error(terms + _TILE_SUM, found.float()) + more) * together


_TILE_SUM = 128
"""How many numbers are added up one after the other, at most, within a tile of pairs: its sum is a tree."""


def make_contiguous(values: Tensor) -> Tensor:
    """Returns the values with a last dimension of contiguous numbers."""
    return values if values.stride(-1) == 1 else values.contiguous()


RULES: dict[type[nn.Module], LayerRule] = {}
"""The rule of each type of layer. Types count, not their descendants, which may compute something else."""


def rule_for(*types: type[nn.Module]) -> Callable[[type[LayerRule]], type[LayerRule]]:
    """Registers the rule of some types of layers."""

    def register(rule: type[LayerRule]) -> type[LayerRule]:
        RULES.update(dict.fromkeys(types, rule()))
        return rule

    return register


def refuse(layer: nn.Module, why: str, hint: str) -> InvalidParameter:
    """Returns the refusal of a layer."""
    return InvalidParameter("layer", type(layer).__name__, f"to be a layer {why}", hint)
