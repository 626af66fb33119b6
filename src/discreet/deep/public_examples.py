"""Examples that reveal nothing about the data, for the check of a model: made from shapes and types, or given.

Examples that are alike hide what mixes them. A batch whose examples all have the same largest number looks the same
with and without a division by the largest number of the batch. So examples differ in scale, offset, label and length,
and an example is replaced by one that is far from all others in these respects, above and below them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils.data import default_collate

from discreet.errors import InvalidParameter

Signature = tuple[Any, tuple[tuple[Any, ...], ...]]
"""The structure of a batch, and the shape of an example, the type and the device of each of its tensors."""

FEWEST = 3
"""How many different examples a list must have."""

_SCALES = (1.0, 0.5, 2.0, 0.25, 1.5, 0.75, 3.0, 1.25)
_OFFSETS = (0.0, 0.3, -0.5, 1.0, -1.0, 0.6, 0.1, -0.2)
_LABELS = (0, 1, 1, 0, 1, 0, 0, 1)  # neither place nor scale gives them away
_FAR = 1e4  # a share of 10^-8 of it still moves what is compared
_COLOURS = (1, 3, 4)
_GOLDEN = (math.sqrt(5) - 1) / 2
_ALIKE = f"Examples that are alike hide what mixes them: pass at least {FEWEST} public ones that all differ."


class OutlierKind(enum.Enum):
    """Says what replaces an example: one above all others, one below them, or one that is no number."""

    ABOVE = enum.auto()
    BELOW = enum.auto()
    NAN = enum.auto()


Kind = int | tuple[int, OutlierKind]
"""An ordinary example, or what replaces the example of such a number."""


class PublicExamples:
    """Makes public batches.

    Args:
        signature: of a batch.
        given: a list of public examples; None to make them up.

    Raises:
        InvalidParameter: if fewer than three of the given examples differ.
    """

    def __init__(self, signature: Signature, given: list[Any] | None = None) -> None:
        self._signature, self._given = signature, None if given is None else _different(given)
        self._words: dict[int, int] = {}  # by the place of a tensor in a batch
        if given is not None and len(_different(given)) < FEWEST:
            raise InvalidParameter("example", f"a list of {len(given)}", "to have examples that differ", _ALIKE)

    @property
    def different(self) -> int:
        """Returns how many examples differ from each other in every respect that matters."""
        return len(_SCALES) if self._given is None else len(self._given)

    @property
    def has_floats(self) -> bool:
        """Returns whether an example can be no number."""
        return any(dtype.is_floating_point for _, dtype, _ in self._signature[1])

    def batch(self, kinds: Sequence[Kind]) -> Any:
        """Returns a batch with an example for each kind."""
        if self._given is not None:
            return default_collate([self._choose_example(kind, self._given) for kind in kinds])
        spec, leaves = self._signature
        made = [
            torch.stack([_made_up(shape, dtype, kind, leaf, self._words.get(leaf, 2)) for kind in kinds]).to(device)
            for leaf, (shape, dtype, device) in enumerate(leaves)
        ]
        return pytree.tree_unflatten(made, spec)

    def learn_words(self, batch: Any, looked_up: Sequence[tuple[Tensor, int]]) -> None:
        """Takes more words than 0 and 1 from now on, for what a model looks up in a table.

        Texts of two words, where one is padding, are all alike to a model that averages words.

        Args:
            batch: that went through the model.
            looked_up: what its tables were asked for, and how many rows each has.
        """
        for leaf, values in enumerate(pytree.tree_leaves(batch)):
            sizes = [size for index, size in looked_up if _is_part(index, values)]
            if sizes and self._given is None:
                self._words[leaf] = min(sizes)

    def _choose_example(self, kind: Kind, given: list[Any]) -> Any:
        """Returns one of the given examples, as models may rely on their range: another replaces one, or no number."""
        if isinstance(kind, int):
            return given[kind % len(given)]
        place, far = kind
        other = given[(place + (2 if far is OutlierKind.BELOW else 1)) % len(given)]
        return pytree.tree_map(_no_number, other) if far is OutlierKind.NAN else other


def _different(given: list[Any]) -> list[Any]:
    """Returns the examples of a list that differ from all before them."""
    kept: list[Any] = []
    seen: list[list[Tensor]] = []
    for example in given:
        leaves = [torch.as_tensor(leaf) for leaf in pytree.tree_leaves(example)]
        if not any(len(leaves) == len(other) and all(map(torch.equal, leaves, other)) for other in seen):
            seen.append(leaves)
            kept.append(example)
    return kept


def _no_number(leaf: Any) -> Any:
    if isinstance(leaf, float):
        return math.nan
    tensor = torch.as_tensor(leaf)
    return torch.full_like(tensor, math.nan) if tensor.is_floating_point() else leaf


def _is_part(index: Tensor, values: Tensor) -> bool:
    """Returns whether words that are looked up are those of a batch, but for the last one, which is only predicted."""
    if values.is_floating_point() or values.dtype == torch.bool or index.dim() != values.dim():
        return False
    cut = index.dim() == 2 and index.shape[1] == values.shape[1] - 1
    shown = values[:, :-1] if cut else values
    return bool(index.shape == shown.shape and torch.equal(index.cpu(), shown.to(index.dtype).cpu()))


def _made_up(shape: tuple[int, ...], dtype: Any, kind: Kind, leaf: int, words: int) -> Tensor:
    """Returns a tensor of waves, of grey values, or of words, which are zeros and ones unless more are known."""
    place, far = (kind, None) if isinstance(kind, int) else kind
    if dtype.is_floating_point:
        return _wave(shape, place, far).to(dtype)
    if dtype == torch.uint8 and len(shape) == 3 and (shape[0] in _COLOURS or shape[2] in _COLOURS):
        wave = {None: 60 + 15 * _wave(shape, place, None), OutlierKind.BELOW: torch.zeros(shape)}
        return wave.get(far, torch.full(shape, 255.0)).clamp(0, 255).to(dtype)
    ones = _zeros_and_ones(shape, place + 3 * leaf, far)
    if words > 2:
        steps = torch.arange(torch.Size(shape).numel()).reshape(shape)
        ones = ones * (1 + (3 * steps + 2 * place + (far is not None)) % (words - 1))
    return ones.to(dtype)


def _wave(shape: tuple[int, ...], place: int, far: OutlierKind | None) -> Tensor:
    if far is OutlierKind.NAN:
        return torch.full(shape, math.nan, dtype=torch.float64)
    steps = torch.arange(1, torch.Size(shape).numel() + 1, dtype=torch.float64).reshape(shape)
    wave = torch.cos(steps * (1.3 + place))
    scale, offset = _SCALES[place % len(_SCALES)], _OFFSETS[place % len(_OFFSETS)]
    if far is not None:
        scale, offset = (_FAR, _FAR / 2) if far is OutlierKind.ABOVE else (0.0, 0.0)
    return scale * wave + offset


def _zeros_and_ones(shape: tuple[int, ...], place: int, far: OutlierKind | None) -> Tensor:
    """Returns ones, then zeros along the last dimension, like a text of its own length; a label, if there is none."""
    label = _LABELS[place % len(_LABELS)]
    if not shape:
        return torch.tensor(label if far is None else 1 - label)
    most, rows = shape[-1], torch.Size(shape[:-1]).numel()
    if far is not None:
        lengths = [(0 if label else 1) if most == 1 else 1 if far is OutlierKind.BELOW else most] * rows
    else:
        lengths = [_length(place + 3 * row, most) for row in range(rows)]
    return (torch.arange(most) < torch.tensor(lengths)[:, None]).reshape(shape)


def _length(place: int, most: int) -> int:
    """Returns a length of a text; between those of the shortest and the longest one where there is room."""
    if most <= 2:
        return _LABELS[place % len(_LABELS)] + (most == 2)
    least = 1 if most < 5 else 2
    return least + int(_GOLDEN * (place + 1) % 1 * (most - least))
