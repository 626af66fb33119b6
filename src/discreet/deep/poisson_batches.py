"""Batches that each example enters by a coin of its own, in pieces that fit into memory.

The number of examples in a batch is private, as is which ones they are. Shapes and types of an example are public and
the same for all: they are those of `example=`, or of the first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from discreet.deep.public_examples import PublicExamples, Signature
from discreet.errors import InvalidParameter, InvalidValue
from discreet.noise import Bits, bernoulli, uniform_below

_LOADER = "The trainer draws batches, each example by a separate coin: pass the loader's dataset, loader.dataset."
_LENGTH = "Every example must be reachable by its index: pass a dataset with __len__ and __getitem__."


class PoissonBatches:
    """Draws batches from a dataset.

    Args:
        data: with a length, and an example for each number below it.
        probability: with which an example enters a batch, independently of all others and of other batches.
        most: how many examples a piece has at most.
        example: a public example, or a list of at least three, that shows shapes and types; None for those of the
            first one.
        parts: into how many parts examples are put, each by a draw of its own; a batch is of one part.

    Attributes:
        most: how many examples a piece has at most.
        public: makes batches that reveal nothing about the data.

    Raises:
        InvalidParameter: for a loader with batches of its own, and for data of unknown length.
    """

    def __init__(self, data: Any, probability: Fraction, most: int, example: Any = None, *, parts: int = 1) -> None:
        if isinstance(data, DataLoader):
            raise InvalidParameter("data", "a DataLoader", "to be a dataset", _LOADER)
        sized = hasattr(data, "__len__") and hasattr(data, "__getitem__")
        if isinstance(data, IterableDataset) or not sized:
            raise InvalidParameter("data", type(data).__name__, "to have a length", _LENGTH)
        if example is None and len(data) == 0:
            raise InvalidParameter("data", "empty", "to have an example", "Pass example=, a public one.")
        self._data, self._probability, self.most = data, probability, most
        self._parts, self._part_of = parts, np.zeros(0, dtype=np.int64)
        given = example if isinstance(example, list) else None
        shown = data[0] if example is None else example if given is None else given[0]
        self._signature = _signature(default_collate([shown]))
        self.public = PublicExamples(self._signature, given)

    def assign(self, bits: Bits | None = None) -> None:
        """Puts every example into a part, which stays secret; before the first batch is drawn."""
        if self._parts > 1:
            self._part_of = uniform_below(self._parts, len(self._data), bits=bits)

    def draw(self, bits: Bits | None = None, *, part: int = 0) -> Iterator[tuple[Any, int, bool]]:
        """Yields the pieces of a fresh batch: the examples, how many, and whether it is the last; none if it is empty.

        Raises:
            InvalidValue: if an example has another shape or type; which one is not said.
        """
        coins = bernoulli(self._probability, len(self._data), bits=bits)
        chosen = np.flatnonzero(coins & (self._part_of == part) if self._parts > 1 else coins)
        for start in range(0, chosen.size, self.most):
            piece = chosen[start : start + self.most]
            yield self._collate_batch(piece.tolist()), piece.size, start + self.most >= chosen.size

    def _collate_batch(self, places: Sequence[int]) -> Any:
        if isinstance(self._data, TensorDataset):
            index = torch.tensor(places)
            return [tensor[index] for tensor in self._data.tensors]
        try:
            batch = default_collate([self._data[place] for place in places])
        except (RuntimeError, TypeError):
            batch = None
        if batch is None or _signature(batch) != self._signature:
            raise InvalidValue(
                "of every example to have the shape and type of the first",
                "Pad or crop examples to one public shape, or pass example= to say which it is.",
            )
        return batch


def _signature(batch: Any) -> Signature:
    leaves, spec = pytree.tree_flatten(batch)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise InvalidParameter("data", "with other things", "to have examples of tensors and numbers", "Encode texts.")
    return spec, tuple((tuple(leaf.shape[1:]), leaf.dtype, leaf.device) for leaf in leaves)
