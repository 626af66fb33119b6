"""Neighbours under the same draws: with and without one example, what meets the noise moves by at most the bound.

Coins and outputs of the noise follow tables (`tests.deep.replayed`). Where examples go through the model one at a time
the comparison is of integers, without any tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from discreet.deep import Flat, Normalised, PerLayer
from discreet.deep.clipping import PerExampleGradients
from discreet.deep.gradient_noise import NoisySum
from discreet.deep.poisson_batches import PoissonBatches
from discreet.errors import InvalidValue
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, shuffle_indices, uniforms
from tests.deep.replayed import Draws, moves, size_of, sums, without
from tests.deep.small_models import MODELS, losses_of, seeded, values
from tests.deep.test_trainer import train, trainer
from tests.effort import tried
from tests.learn.spying import Told

STEPS, MULTIPLIER = 3, 2
BOUND = Fraction(1, 2)
CLIPS = {"flat": Flat(BOUND), "per layer": PerLayer(BOUND), "normalised": Normalised(BOUND)}
SMALL = ["linear", "two layers", "conv1d", "layer norm", "group norm", "learned slope", "parameter beside layers"]
EXTREMES = [0.0, 1e-42, 1e-20, 1.0, 30.0, 1e18, 1e30, math.inf, math.nan]


def per_output(net: nn.Module, batch: Any) -> Tensor:
    return losses_of(net(batch[0]))


def run(
    make: Callable[[], nn.Module], clip: Any, physical: int, compute: Callable[[nn.Module, Any], Tensor] = per_output
) -> Callable[[Any], Any]:
    """Trains a model of the same first weights on any data."""

    def on(data: Any) -> Any:
        options: dict[str, Any] = {"size": 2 * STEPS, "batch_size": 2, "epochs": 1, "clip": clip}
        public = [(row,) for row in values((3, *data.tensors[0].shape[1:]), seed=8)]
        made = trainer(data, seeded(make), physical_batch=physical, example=public, **options)
        return train(made, compute)

    return on


def table(examples: int, seed: int) -> Draws:
    return Draws(uniforms((STEPS, examples), bits=SeededBits(seed)) < 0.6)


def outputs_of(make: Callable[[], nn.Module], seed: int) -> list[Any]:
    """Noise of a size that makes every step change the weights by much."""
    return [20 * normals(size_of(make()), bits=SeededBits(seed + step)) for step in range(STEPS)]


def largest(vectors: list[Any]) -> float:
    """The largest norm, which is no number if one is none."""
    return float(np.max([np.linalg.norm(vector) for vector in vectors]))


def in_steps(told: Told, step: Fraction) -> list[int]:
    """A sum in whole steps of the grid: it must lie there."""
    found = np.asarray(told.value) / float(step)
    assert np.array_equal(found, np.rint(found))
    return [int(entry) for entry in found]


@tried(15)
@given(
    model=st.sampled_from(SMALL),
    clip=st.sampled_from(sorted(CLIPS)),
    sizes=st.lists(st.sampled_from(EXTREMES), min_size=2, max_size=6),
    place=st.integers(0, 5),
    seed=st.integers(0, 1000),
)
def test_one_example_moves_sums_by_at_most_the_bound_exactly(
    model: str, clip: str, sizes: list[float], place: int, seed: int
) -> None:
    make, shape = MODELS[model]
    place %= len(sizes)
    scale = torch.tensor(sizes).reshape(-1, *[1] * len(shape))
    data = TensorDataset(values((len(sizes), *shape), seed=seed) * scale)
    draws, outputs = table(len(sizes), seed), outputs_of(make, seed)
    on = run(make, CLIPS[clip], physical=1)
    whole = sums(lambda: on(data), draws, outputs)
    fewer = sums(lambda: on(without(data, place)), draws.without(place), outputs)
    assert len(whole) == len(fewer) == STEPS
    step = Fraction(NoisySum({"all": size_of(make())}, CLIPS[clip], MULTIPLIER, alone=True)._step)
    for told, other, coins in zip(whole, fewer, draws.coins, strict=True):
        assert told.sigma == other.sigma == BOUND * MULTIPLIER
        moved = [a - b for a, b in zip(in_steps(told, step), in_steps(other, step), strict=True)]
        assert sum(entry * entry for entry in moved) * step**2 <= BOUND**2
        assert coins[place] or not any(moved)  # who is not in a batch moves nothing, not even by rounding


@tried(10)
@given(model=st.sampled_from(SMALL), physical=st.integers(2, 8), place=st.integers(0, 7), seed=st.integers(0, 1000))
def test_in_pieces_one_example_moves_sums_by_at_most_the_bound(
    model: str, physical: int, place: int, seed: int
) -> None:
    """Pieces of other sizes round differently; the part of the bound that weights leave free, 2^-10, is for that."""
    make, shape = MODELS[model]
    data = TensorDataset(5 * values((8, *shape), seed=seed))
    found = moves(run(make, BOUND, physical), data, place, table(8, seed), outputs_of(make, seed))
    assert largest(found) <= 1 / MULTIPLIER


# ------------------------------------------------------------------------------------------------------- the sampler


def batches_of(draws: Draws, physical: int = 3) -> list[list[int]]:
    """The examples of each batch, by their numbers, under a table of coins."""
    examples = draws.coins.shape[1]
    batches = PoissonBatches(TensorDataset(torch.arange(examples)), Fraction(1, 7), physical)
    with draws.in_use():
        return [[int(x) for batch, _, _ in batches.draw() for x in batch[0]] for _ in range(len(draws.coins))]


def follows_coins(draws: Draws) -> bool:
    expected = [np.flatnonzero(row).tolist() for row in draws.coins]
    try:
        return batches_of(draws) == expected and draws.asked == [Fraction(1, 7)] * len(expected)
    except (AssertionError, StopIteration):
        return False


@settings(max_examples=30)
@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4))
def test_a_batch_is_exactly_whose_coins_fell_so(rows: list[list[bool]]) -> None:
    """So examples are independent of each other and of other batches, as the coins are: Poisson, and nothing else."""
    assert follows_coins(Draws(np.array(rows)))


def test_mutant_shuffled_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example once in an epoch, in random order. One run with canaries cannot see it; a table of coins does."""
    bits = SeededBits(1)

    def broken(self: Any, source: Any = None, *, part: int = 0) -> Iterator[Any]:  # noqa: ARG001
        count = len(self._data)
        if not getattr(self, "order", []):
            self.order = shuffle_indices(count, bits=bits).tolist()
        piece, self.order = self.order[: count // 3], self.order[count // 3 :]
        yield self._collate_batch(piece), len(piece), True

    coins = Draws(uniforms((6, 6), bits=SeededBits(2)) < 0.5)
    assert follows_coins(coins)
    monkeypatch.setattr(PoissonBatches, "draw", broken)
    assert not follows_coins(coins)


def test_mutant_one_coin_for_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two examples by one coin: each has its probability, and they are not independent."""
    honest = PoissonBatches.draw

    def broken(self: Any, source: Any = None, *, part: int = 0) -> Iterator[Any]:
        for batch, _, last in honest(self, source, part=part):
            doubled = sorted({place for x in batch[0].tolist() for place in (x - x % 2, x - x % 2 + 1)})
            yield self._collate_batch(doubled), len(doubled), last

    monkeypatch.setattr(PoissonBatches, "draw", broken)
    assert not follows_coins(Draws(uniforms((6, 6), bits=SeededBits(2)) < 0.5))


# ------------------------------------------------------------------------------------------------------------ mutants

LINE = "linear without bias"


def turned(physical: int = 4) -> list[Any]:
    """The moves by one example whose gradient is opposed to all others', and much longer."""
    make, shape = MODELS[LINE]
    x = torch.ones((8, *shape)) + 0.1 * values((8, *shape))
    x[3] *= -50
    on = run(make, BOUND, physical, lambda net, batch: net(batch[0]).sum(1))
    everybody = Draws(np.ones((STEPS, 8), dtype=bool))
    return moves(on, TensorDataset(x), 3, everybody, outputs_of(make, 5))


def breaks(found: Callable[[], list[Any]]) -> bool:
    """Whether a run moves by more than its bound, or its neighbour's has another number of releases."""
    try:
        return not largest(found()) <= 1.2 / MULTIPLIER
    except (AssertionError, StopIteration, InvalidValue):
        return True


def test_the_turn_is_within_the_bound() -> None:
    for physical in (1, 4):
        found = largest(turned(physical))
        assert 0.96 / MULTIPLIER < found <= 1 / MULTIPLIER  # the grid takes at most a 32nd


def one_sum(found: PerExampleGradients, bound: float) -> dict[str, Tensor]:
    """The sum of a piece, shortened as a whole."""
    with torch.no_grad():
        ones = torch.ones(found.examples, dtype=torch.float64)
        plain = found.weighted_sums(dict.fromkeys(found.squared_norms(), ones))
        norm = float(torch.cat([value.flatten() for value in plain.values()]).norm())
        return {name: value * min(1.0, bound / norm) for name, value in plain.items()}


def test_mutant_bound_for_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """One example turns the sum of a piece around: it moves by twice the bound."""
    monkeypatch.setattr(PerExampleGradients, "clipped_sum", lambda self, clip: one_sum(self, float(clip.bound)))
    assert breaks(turned)


def test_mutant_no_clipping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PerExampleGradients, "clipped_sum", lambda self, _: one_sum(self, math.inf))
    assert breaks(turned)


def test_mutant_sums_that_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a batch added is not forgotten: an example is in all steps after its own, which nobody counted."""

    def broken(self: NoisySum, bits: Any = None) -> dict[str, Tensor]:
        noisy = torch.from_numpy(self.mechanism.release(self._total.numpy(), bits=bits))
        return dict(zip(self._sizes, noisy.split(list(self._sizes.values())), strict=True))

    monkeypatch.setattr(NoisySum, "release", broken)
    monkeypatch.setattr(NoisySum, "clear", lambda _: None)
    assert breaks(turned)


def test_mutant_a_release_for_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgotten accumulation: how many releases there are tells how many examples a batch had."""
    honest = PoissonBatches.draw

    def broken(self: Any, source: Any = None, *, part: int = 0) -> Iterator[Any]:
        for batch, size, _ in honest(self, source, part=part):
            yield batch, size, True

    monkeypatch.setattr(PoissonBatches, "draw", broken)
    assert breaks(lambda: turned(physical=1))


def test_mutant_division_by_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean over the examples that are there: all of them move when one comes."""
    honest = NoisySum.add

    def broken(self: NoisySum, sums: Any) -> None:
        honest(self, sums)
        self.count = getattr(self, "count", 0) + 1  # type: ignore[attr-defined]

    def released(self: NoisySum, bits: Any = None) -> dict[str, Tensor]:
        total = self._total / max(1, getattr(self, "count", 0)) * 8
        self._total, self.count = self._empty(), 0  # type: ignore[attr-defined]
        noisy = torch.from_numpy(self.mechanism.release(total.numpy(), bits=bits))
        return dict(zip(self._sizes, noisy.split(list(self._sizes.values())), strict=True))

    monkeypatch.setattr(NoisySum, "add", broken)
    monkeypatch.setattr(NoisySum, "release", released)
    assert breaks(lambda: turned(physical=1))


def test_mutant_infinite_gradients_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zero times infinity is no number, and the run would tell."""
    monkeypatch.setattr(PerExampleGradients, "_silence", lambda *_: None)
    make, shape = MODELS["two layers"]
    x = values((6, *shape))
    x[2] = math.inf

    def found() -> list[Any]:
        return moves(
            run(make, BOUND, 4), TensorDataset(x), 2, Draws(np.ones((STEPS, 6), dtype=bool)), outputs_of(make, 5)
        )

    assert breaks(found)
    monkeypatch.undo()
    assert not breaks(found)


def test_mutant_nearest_points_of_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding to the nearest point makes vectors longer than the bound: integers see it, floats would not."""
    honest = torch.trunc
    monkeypatch.setattr(torch, "trunc", lambda x: torch.sign(x) * torch.ceil(x.abs()) if x.dim() == 1 else honest(x))
    sums_of = NoisySum({"w": 10_000}, Flat(BOUND), MULTIPLIER, alone=True)
    gradient = torch.full((10_000,), float(BOUND) / 100, dtype=torch.float64)
    found = (sums_of.on_grid(gradient) / sums_of._step).long().tolist()
    assert sum(entry * entry for entry in found) * Fraction(sums_of._step) ** 2 > BOUND**2
    monkeypatch.undo()
    found = (sums_of.on_grid(gradient) / sums_of._step).long().tolist()
    assert sum(entry * entry for entry in found) * Fraction(sums_of._step) ** 2 <= BOUND**2
