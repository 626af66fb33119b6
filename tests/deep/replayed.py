"""Training runs whose sampler and noise follow tables: the same draws for neighbours, so that their sums compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import TensorDataset

from discreet.deep import poisson_batches
from tests.learn.spying import Told, told


@dataclass
class Draws:
    """A coin for every step and example, and a part for every example.

    Attributes:
        asked: the probability that each row of coins was drawn for.
    """

    coins: NDArray[np.bool_]
    parts: NDArray[np.int64] | None = None
    asked: list[Fraction] = field(default_factory=list)

    def without(self, place: int) -> Draws:
        parts = None if self.parts is None else np.delete(self.parts, place)
        return Draws(np.delete(self.coins, place, axis=1), parts)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        rows = iter(self.coins)

        def coins(probability: Fraction, size: int, **_: Any) -> Any:
            self.asked.append(probability)
            row = next(rows)
            assert row.shape == (size,)
            return row.copy()

        def places(bound: int, size: int, **_: Any) -> Any:
            assert self.parts is not None
            assert self.parts.shape == (size,)
            assert self.parts.max(initial=0) < bound
            return self.parts.copy()

        with (
            mock.patch.object(poisson_batches, "bernoulli", coins),
            mock.patch.object(poisson_batches, "uniform_below", places),
        ):
            yield


def without(data: TensorDataset, place: int) -> TensorDataset:
    keep = [index for index in range(len(data)) if index != place]
    return TensorDataset(*(tensor[keep] for tensor in data.tensors))


def sums(train: Callable[[], Any], draws: Draws, outputs: list[Any]) -> list[Told]:
    """What a run hands to the noise, step by step, if the noise gives these outputs."""
    with draws.in_use():
        return told(train, list(outputs))


def moves(train: Callable[[Any], Any], data: TensorDataset, place: int, draws: Draws, outputs: list[Any]) -> list[Any]:
    """How one example moves what meets the noise in each step, in deviations of the noise: one vector for each."""
    whole = sums(lambda: train(data), draws, outputs)
    fewer = sums(lambda: train(without(data, place)), draws.without(place), outputs)
    assert len(whole) == len(fewer)
    assert {told.sigma for told in (*whole, *fewer)} == {whole[0].sigma}
    return [(a.value - b.value) / float(a.sigma) for a, b in zip(whole, fewer, strict=True)]


def size_of(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters() if parameter.requires_grad)
