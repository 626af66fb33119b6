"""Bad input, one by one: a message that says what to do, nothing read, nothing spent, and the same path works after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from discreet.deep import Trainer
from discreet.errors import InvalidParameter, InvalidValue
from discreet.privacy.events import Composed
from tests.deep.test_trainer import losses, network, rows, train, trainer
from tests.learn.spying import told

SIZE = 26  # numbers in the network


class Watched:
    """A dataset that remembers which examples were asked for."""

    def __init__(self, count: int = 10, longer: int | None = None) -> None:
        self.inner, self.longer = rows(count), longer
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, place: int) -> Any:
        self.asked.append(place)
        x, y = self.inner[place]
        return (torch.cat([x, x]) if place == self.longer else x), y


class Endless(IterableDataset):
    def __iter__(self) -> Iterator[Any]:
        return iter(rows(3))


def frozen() -> nn.Module:
    return network().requires_grad_(requires_grad=False)


def normalised() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


PUBLIC = (torch.zeros(3), torch.tensor(0))
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "batch norm": ({"model": normalised}, "Expected layer='BatchNorm1d' to keep examples apart."),
    "nothing to train": ({"model": frozen}, "Expected model='without trainable parameters' to have some."),
    "a loader that shuffles": ({"data": lambda: DataLoader(rows(10), shuffle=True)}, "pass the loader's dataset"),
    "a loader": ({"data": lambda: DataLoader(rows(10))}, "pass the loader's dataset"),
    "unknown length": ({"data": Endless}, "pass a dataset with __len__ and __getitem__"),
    "an iterator": ({"data": lambda: iter(rows(10))}, "pass a dataset with __len__ and __getitem__"),
    "no data": ({"data": lambda: TensorDataset(torch.zeros(0, 3))}, "Pass example=, a public one."),
    "epsilon of 0": ({"epsilon": 0, "noise_multiplier": None}, "Expected epsilon=0 > 0."),
    "epsilon below 0": ({"epsilon": -1, "noise_multiplier": None}, "Expected epsilon=-1 > 0."),
    "epsilon that is no number": ({"epsilon": math.nan, "noise_multiplier": None}, "epsilon=nan"),
    "noise below 0": ({"noise_multiplier": -1}, "Expected noise_multiplier=-1 > 0."),
    "a bound of 0": ({"clip": 0}, "Expected clip=0 > 0."),
    "a bound below 0": ({"clip": -2}, "Expected clip=-2 > 0."),
    "an endless bound": ({"clip": math.inf}, "clip=inf"),
    "delta of 0": ({"delta": 0}, "Expected delta=0"),
    "delta of 1": ({"delta": 1}, "Expected delta=1"),
    "no epoch": ({"epochs": 0}, "Expected epochs=0 > 0."),
    "no size": ({"size": None}, "pass size=len(data)"),
    "larger batches than data": ({"batch_size": 11}, "batch_size=11"),
}


def attempt(path: Path, changed: dict[str, Any]) -> Trainer:
    made = {name: value() if callable(value) else value for name, value in changed.items()}
    return trainer(**{"data": Watched(), "checkpoint": path, **made})


@pytest.mark.parametrize(("changed", "message"), CASES.values(), ids=CASES.keys())
def test_what_cannot_be_trained_is_refused_and_leaves_nothing(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.pt"
    for _ in range(2):  # refused twice, for the same reason
        with pytest.raises(InvalidParameter) as refused:
            attempt(path, changed)
        assert message in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    with attempt(path, {}) as made:
        assert (made.taken, made.event) == (0, Composed([]))


@pytest.mark.parametrize("name", ["delta of 0", "epsilon below 0", "a bound of 0", "no size", "no epoch"])
def test_parameters_are_refused_before_data_is_touched(name: str) -> None:
    data = Watched()
    with pytest.raises(InvalidParameter):
        trainer(data, **CASES[name][0])
    assert data.asked == []


def test_a_refused_model_has_no_hooks() -> None:
    """And neither has one whose path is in use."""
    for make, path in ((normalised, None), (network, "/nowhere/at/all")):
        net = make()
        with pytest.raises((InvalidParameter, OSError)):
            trainer(rows(10), net, checkpoint=path)
        assert not any(layer._forward_hooks for layer in net.modules())


def test_an_optimizer_of_other_parameters_is_refused(tmp_path: Path) -> None:
    net, other = network(), network()
    for parameters in (other.parameters(), [*net.parameters(), nn.Parameter(torch.zeros(1))]):
        with pytest.raises(InvalidParameter, match="Expected optimizer='of other parameters' to hold parameters of"):
            Trainer(
                net,
                torch.optim.SGD(parameters, lr=0.1),
                rows(10),
                size=10,
                delta=1e-5,
                epochs=1,
                batch_size=2,
                noise_multiplier=1,
                checkpoint=tmp_path / "run.pt",
            )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda net, batch: losses(net, batch).mean(), 'Keep losses apart: pass reduction="none"'),
        (lambda net, batch: losses(net, batch).sum(), 'Keep losses apart: pass reduction="none"'),
        (lambda net, batch: losses(net, batch).mean().expand(len(batch[0])), "Examples must not depend on each other"),
        (lambda net, batch: losses(net, batch) / len(batch[0]), "Examples must not depend on each other"),
        (lambda net, batch: cross_entropy(net(batch[0]), batch[1]).repeat(1, 1), "reduction"),
    ],
)
def test_losses_that_are_averaged_are_refused_before_a_step(
    compute: Callable[[nn.Module, Any], Tensor], message: str, tmp_path: Path
) -> None:
    data, path = Watched(), tmp_path / "run.pt"
    made = trainer(data, checkpoint=path)
    shown = list(data.asked)
    with pytest.raises(InvalidParameter, match=message):
        train(made, compute)
    assert (made.taken, data.asked) == (0, shown)  # the first, for its shape, and no other
    made.close()
    with trainer(rows(10), checkpoint=path) as again:
        assert again.taken == 0
        train(again)
        assert again.taken == 3


def test_an_example_that_is_no_number_costs_what_any_costs() -> None:
    """Its batch is as any other: no error, the same steps, and sums without it."""
    data, fewer = rows(10), rows(10)
    data.tensors[0][4] = math.nan
    keep = [place for place in range(10) if place != 4]
    less = TensorDataset(*(tensor[keep] for tensor in fewer.tensors))
    for spoil in (math.nan, math.inf):
        data.tensors[0][4] = spoil
        spoiled = told(lambda: train(trainer(data, physical_batch=1)), [np.zeros(SIZE)] * 3)
        without = told(lambda: train(trainer(less, physical_batch=1)), [np.zeros(SIZE)] * 3)
        assert len(spoiled) == len(without) == 3
        assert all(np.array_equal(a.value, b.value) for a, b in zip(spoiled, without, strict=True))


def test_an_example_of_another_shape_ends_the_run_and_its_step_is_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    for taken in (1, 2, 3):  # each attempt begins one step, and no step is begun twice
        made = trainer(Watched(longer=7), checkpoint=path)
        with pytest.raises(InvalidValue) as refused:
            train(made)
        assert "Pad or crop examples to one public shape" in str(refused.value)
        assert "7" not in str(refused.value)
        assert made.taken == taken
        made.close()
    made = trainer(Watched(longer=7), checkpoint=path)
    assert train(made).taken == made.steps == 3  # nothing is left to spend, and nothing is read
    assert made.event == made.planned_event
