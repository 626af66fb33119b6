"""How long an example's gradient may be: by one bound, by a bound for each layer, or always the same length.

Neighbours differ in one example, added or removed. The sum of clipped gradients then moves by one clipped gradient,
whose norm is at most `bound` under every rule here. Weights are computed for `bound` times 1 - 2^-10; the rest is for
rounding (see `discreet.deep.gradient_noise`). Where matrices are multiplied in bfloat16, norms are raised until weights
are those for `bound` times 1 - 2^-5, since more is rounded.

An example whose norm is no finite number, be it for a NaN, an infinity or an overflow, has the weight 0: it contributes
nothing. That is a rule about the example alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from discreet import check
from discreet.check import Number, assign
from discreet.errors import InvalidParameter

KEPT = 1 - Fraction(1, 1 << 10)
"""The share of the bound that weights are computed for."""
KEPT_REDUCED = 1 - Fraction(1, 1 << 5)
"""The same where matrices are multiplied in fewer than 32 bits."""
_LEAST, _MOST = Fraction(1, 1 << 30), Fraction(1 << 30)


@dataclass(frozen=True, slots=True, init=False)
class ClipRule(ABC):
    """Weights for gradients.

    Formal guarantee: an example's weighted gradient, over all parameters together, has a Euclidean norm of at most
    `bound` times 1 - 2^-10, in exact arithmetic, if the squared norms that are given are not too small.

    Args:
        bound: the sensitivity of the sum under add/remove.

    A rule of your own gives weights; what is released with them has `sensitivity`:

    >>> class AllOrNothing(ClipRule):
    ...     def weights(self, squared):
    ...         total = torch.stack(list(squared.values())).sum(0)
    ...         return dict.fromkeys(squared, (total.sqrt() <= self.target).double())
    >>> rule = AllOrNothing(5)
    >>> rule.weights({"w": torch.tensor([9.0, 100.0]).double(), "b": torch.tensor([4.0, 0.0]).double()})["w"].tolist()
    [1.0, 0.0]
    >>> rule.sensitivity
    Fraction(5, 1)
    """

    bound: Fraction

    def __init__(self, bound: Number) -> None:
        assign(self, bound=check.positive(bound=bound))
        if not _LEAST <= self.bound <= _MOST:
            hint = "Beyond that, floats round too much."
            raise InvalidParameter("bound", bound, "to be between 2^-30 and 2^30", hint)

    @property
    def sensitivity(self) -> Fraction:
        """Returns how far one example moves the sum, in the Euclidean norm, under add/remove."""
        return self.bound

    @property
    def target(self) -> float:
        """Returns the norm that weights are computed for."""
        return float(self.bound * KEPT)

    @abstractmethod
    def weights(self, squared: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns a weight of each example for each parameter.

        Args:
            squared: for each parameter's name, the squared norms of its gradient for each example, in 64 bits.
        """


@dataclass(frozen=True, slots=True, init=False)
class Flat(ClipRule):
    """Shortens what is too long: the weight is min(1, bound / ||g||), of all parameters together.

    >>> Flat(5).weights({"w": torch.tensor([9.0, 90000.0], dtype=torch.float64)})["w"].numpy().round(4)
    array([1.    , 0.0167])
    """

    def weights(self, squared: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the same weight for all parameters."""
        return dict.fromkeys(squared, _compute_clip_weights(_total(squared), self.target))


@dataclass(frozen=True, slots=True, init=False)
class PerLayer(ClipRule):
    """Shortens each of L layers to bound / sqrt(L): all together have at most `bound`.

    A layer is the part of a parameter's name before its last dot.

    >>> of_layers = {"a.w": torch.tensor([9.0]).double(), "b.w": torch.tensor([0.25]).double()}
    >>> {name: round(float(weight), 4) for name, weight in PerLayer(1).weights(of_layers).items()}
    {'a.w': 0.2355, 'b.w': 1.0}
    """

    def weights(self, squared: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the same weight for all parameters of a layer."""
        layers: dict[str, dict[str, Tensor]] = {}
        for name, values in squared.items():
            layers.setdefault(name.rpartition(".")[0], {})[name] = values
        share = math.nextafter(self.target / math.sqrt(len(layers)), 0)
        whole = torch.isfinite(_total(squared))
        return {
            name: torch.where(whole, _compute_clip_weights(_total(inside), share), 0)
            for inside in layers.values()
            for name in inside
        }


@dataclass(frozen=True, slots=True, init=False)
class Normalised(ClipRule):
    """Gives every gradient nearly the same length: the weight is bound / (||g|| + 0.01).

    No bound needs to be found: another one is another learning rate (Bu, Wang, Zha, Karypis 2023).

    >>> Normalised(1).weights({"w": torch.tensor([9.0]).double()})["w"].numpy().round(4)
    array([0.3319])
    """

    def weights(self, squared: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the same weight for all parameters."""
        norms = _total(squared).sqrt()
        weight = self.target / (norms + _STABILITY)
        return dict.fromkeys(squared, torch.where(torch.isfinite(norms), weight, 0))


_STABILITY = 0.01


def _total(squared: Mapping[str, Tensor]) -> Tensor:
    return torch.stack(list(squared.values())).sum(0)


def _compute_clip_weights(squared: Tensor, target: float) -> Tensor:
    norms = squared.sqrt()
    weights = torch.clamp(target / norms, max=1.0)  # of a norm of 0 it is 1
    return torch.where(torch.isfinite(norms), weights, 0)


def clip_rule(clip: Any) -> ClipRule:
    """Returns a rule for clipping; a number is the bound of `Flat`."""
    return clip if isinstance(clip, ClipRule) else Flat(check.positive(clip=clip))
