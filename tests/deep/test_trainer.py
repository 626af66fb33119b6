"""The trainer: what it hands to the noise, what it says it cost, what it refuses, and mutants that its checks catch."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import StepLR
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from discreet import accounting
from discreet.deep import Flat, Normalised, Trainer
from discreet.deep.clipping import PerExampleGradients
from discreet.deep.gradient_noise import NoisySum
from discreet.deep.poisson_batches import PoissonBatches
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Gaussian
from discreet.noise import SeededBits
from discreet.privacy.events import Composed, PoissonSampled, Repeated
from discreet.privacy.events import Gaussian as GaussianEvent
from tests.deep.small_models import Summed, seeded, values
from tests.learn.spying import Told, told

CLIP = Fraction(1, 2)
MULTIPLIER = 2


def rows(count: int, width: int = 3, classes: int = 2) -> TensorDataset:
    """Examples of which the last is far from all others, and of another opinion."""
    x = values((count, width), seed=5)
    y = (x[:, 0] > 0).long() % classes
    x[-1], y[-1] = -30 * x[0], 1 - y[0]
    return TensorDataset(x, y)


def without_last(data: TensorDataset) -> TensorDataset:
    return TensorDataset(*(tensor[:-1] for tensor in data.tensors))


def network() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))


def trainer(data: Any, model: nn.Module | None = None, **changed: Any) -> Trainer:
    net = network() if model is None else model
    options = {"size": 10, "delta": 1e-5, "epochs": 3, "batch_size": 10, "clip": CLIP, "noise_multiplier": MULTIPLIER}
    rate = changed.pop("lr", 0.1)
    made = Trainer(net, torch.optim.SGD(net.parameters(), lr=rate), data, **{**options, **changed})
    made.net = net  # type: ignore[attr-defined]
    return made


def losses(net: nn.Module, batch: Any) -> Tensor:
    return cross_entropy(net(batch[0]), batch[1], reduction="none")


def train(made: Any, compute: Callable[[nn.Module, Any], Tensor] = losses) -> Any:
    for batch in made:
        made.step(compute(made.net, batch))
    made.close()
    return made


# ------------------------------------------------------------------------------------------- what meets the noise


def handed(data: Any, outputs: list[Any] | None = None, **changed: Any) -> list[Told]:
    return told(lambda: train(trainer(data, **changed)), outputs)


def moves(**changed: Any) -> list[float]:
    """How far the last example moves what meets the noise, in deviations of the noise, step by step.

    Every example is in every batch, and later steps are given the same outputs of earlier ones.
    """
    data, size = rows(10), sum(parameter.numel() for parameter in network().parameters())
    outputs = [values((size,), seed=step, dtype=torch.float64).numpy() for step in range(3)]
    whole, fewer = handed(data, outputs, **changed), handed(without_last(data), outputs, **changed)
    assert len(whole) == len(fewer) == 3
    assert {each.sigma for each in (*whole, *fewer)} == {whole[0].sigma}
    return [float(np.linalg.norm(a.value - b.value)) / float(a.sigma) for a, b in zip(whole, fewer, strict=True)]


def within(found: list[float]) -> bool:
    """Whether one example moves nothing by more than the event says."""
    return max(found) <= 1 / MULTIPLIER


@pytest.mark.sampled(2)
@pytest.mark.parametrize("clip", [CLIP, Normalised(CLIP)], ids=["flat", "normalised"])
@pytest.mark.parametrize("physical", [4, 1000])
def test_one_example_moves_the_sum_by_at_most_its_bound(clip: Any, physical: int) -> None:
    found = moves(clip=clip, physical_batch=physical)
    assert within(found)
    assert min(found) > 0.99 / MULTIPLIER * (1 - 2.0**-9)  # the far example is clipped to the bound


def test_examples_that_come_alone_are_exact() -> None:
    """Whole steps of a grid; without the last example, all others contribute the same bits."""
    data, outputs = rows(10), [np.zeros(26)] * 3
    whole, fewer = handed(data, outputs, physical_batch=1), handed(without_last(data), outputs, physical_batch=1)
    step = 2.0 ** math.floor(math.log2(0.5 / (32 * math.sqrt(26))))
    for a, b in zip(whole, fewer, strict=True):
        units = [Fraction(float(x)) / Fraction(step) for x in (*a.value, *b.value)]
        assert all(unit.denominator == 1 for unit in units)
        squared = sum((Fraction(float(x)) - Fraction(float(y))) ** 2 for x, y in zip(a.value, b.value, strict=True))
        assert squared <= CLIP**2


def test_the_event_is_what_was_drawn() -> None:
    made = trainer(rows(10), size=20, batch_size=5)
    seen = told(lambda: train(made))
    assert len(seen) == made.steps == made.taken == 12
    assert {each.sigma for each in seen} == {MULTIPLIER * CLIP}
    assert made.event == made.planned_event
    assert made.event == Repeated(PoissonSampled(Fraction(1, 4), GaussianEvent(MULTIPLIER)), 12)
    assert float(made.spent.epsilon) == pytest.approx(accounting.epsilon(made.event, 1e-5))


def test_an_empty_batch_is_a_step_of_noise() -> None:
    made = trainer(TensorDataset(torch.zeros(0, 3), torch.zeros(0).long()), example=rows(1)[0], size=20)
    before = [parameter.clone() for parameter in made.net.parameters()]  # type: ignore[attr-defined]
    seen = told(lambda: train(made))
    assert len(seen) == made.steps
    assert all(not each.value.any() for each in seen)
    assert all(not torch.equal(a, b) for a, b in zip(before, made.net.parameters(), strict=True))  # type: ignore[attr-defined]


def test_pieces_add_up() -> None:
    whole = handed(rows(10), [np.zeros(26)] * 3, physical_batch=1000)
    pieces = handed(rows(10), [np.zeros(26)] * 3, physical_batch=3)
    for a, b in zip(whole, pieces, strict=True):
        assert np.allclose(a.value, b.value, atol=1e-6)


def test_the_step_divides_by_a_constant() -> None:
    """The released sum over the expected size, whatever the batch's own size was."""
    made = trainer(rows(6), size=20, batch_size=10, epochs=0.5, physical_batch=2)
    before = torch.cat([p.detach().clone().flatten() for p in made.net.parameters()])  # type: ignore[attr-defined]
    told(lambda: train(made), [np.arange(26.0)])
    after = torch.cat([p.detach().flatten() for p in made.net.parameters()])  # type: ignore[attr-defined]
    assert torch.allclose(before - after, 0.1 * torch.arange(26.0) / 10, atol=1e-6)


def sizes(draws: int = 400) -> list[int]:
    batches = PoissonBatches(rows(50), Fraction(1, 5), 1000)
    bits = SeededBits(11)
    return [sum(size for _, size, _ in batches.draw(bits)) for _ in range(draws)]


def is_binomial(found: list[int]) -> bool:
    """Whether sizes of 400 batches have the mean 10 and the variance 8 of 50 coins of 1/5.

    Six deviations: of the mean sqrt(8 / 400) = 0.141, of the variance about 8 sqrt(2 / 400) = 0.57.
    """
    return abs(float(np.mean(found)) - 10) < 0.85 and abs(float(np.var(found)) - 8) < 3.4


def test_batches_are_drawn_by_coins() -> None:
    assert is_binomial(sizes())


def test_schedules_averages_and_optimizers_work_as_they_do() -> None:
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    average = AveragedModel(net)
    schedule = StepLR(optimizer, step_size=2, gamma=0.5)
    made: Any = Trainer(
        net,
        optimizer,
        rows(10),
        size=10,
        delta=1e-5,
        epochs=4,
        batch_size=10,
        noise_multiplier=1,
        scheduler=schedule,
        average=average,
    )
    made.net = net
    train(made)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.025)
    assert int(average.n_averaged) == 4


def test_augmentations_of_an_example_are_averaged_before_clipping() -> None:
    def augmented(net: nn.Module, batch: Any) -> Tensor:
        views = [losses(net, (batch[0] + shift, batch[1])) for shift in (0.0, 0.5)]
        return torch.stack(views).mean(0)

    data = rows(10)
    outputs = [np.zeros(26)] * 3
    whole = told(lambda: train(trainer(data), augmented), outputs)
    fewer = told(lambda: train(trainer(without_last(data)), augmented), outputs)
    found = [float(np.linalg.norm(a.value - b.value)) / float(a.sigma) for a, b in zip(whole, fewer, strict=True)]
    assert within(found)


def test_frozen_parameters_stay() -> None:
    net = network()
    net[0].requires_grad_(False)
    before = net[0].weight.clone()
    seen = told(lambda: train(trainer(rows(10), net)))
    assert torch.equal(net[0].weight, before)
    assert seen[0].value.shape == (10,)


def test_noise_is_found_from_epsilon_before_any_example_is_read() -> None:
    made = trainer(rows(10), noise_multiplier=None, epsilon=2)
    assert made.taken == 0
    assert made.event == Composed([])
    assert 1.99 < accounting.epsilon(made.planned_event, 1e-5) <= 2
    made.close()


def test_progress_tells_what_is_spent() -> None:
    heard: list[Any] = []
    train(trainer(rows(10), progress=heard.append))
    assert [stage.partition(",")[0] for stage in heard] == [f"Step {step} of 3" for step in range(3)]
    assert heard[0].spent == 0
    assert 0 < heard[1].spent < heard[2].spent < 1


def test_seeded_randomness_is_marked() -> None:
    assert not train(trainer(rows(10), bits=SeededBits(1))).private


# ------------------------------------------------------------------------------------------------------- mutants


def test_mutant_noise_after_division(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for a mean, on a sum that was not divided."""
    honest = NoisySum.__init__

    def broken(self: NoisySum, sizes: Any, clip: Any, noise_multiplier: Any, **more: Any) -> None:
        honest(self, sizes, clip, noise_multiplier, **more)
        self.mechanism = Gaussian.with_multiplier(noise_multiplier=noise_multiplier, sensitivity=clip.sensitivity / 10)

    monkeypatch.setattr(NoisySum, "__init__", broken)
    assert not within(moves())


def test_mutant_clipping_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: PerExampleGradients, clip: Flat) -> dict[str, Tensor]:
        with torch.no_grad():
            ones = torch.ones(self.examples, dtype=torch.float64)
            sums = self.weighted_sums(dict.fromkeys(self.squared_norms(), ones))
            norm = torch.cat([value.flatten() for value in sums.values()]).norm()
            return {name: value * min(1.0, float(clip.bound) / float(norm)) for name, value in sums.items()}

    assert within([turned()])
    monkeypatch.setattr(PerExampleGradients, "clipped_sum", broken)
    assert not within([turned()])


def turned() -> float:
    """How far one example moves a sum that it turns around, in deviations of the noise: nine ones, then -100."""

    def first(count: int) -> Told:
        net = nn.Linear(1, 1, bias=False)
        data = TensorDataset(torch.tensor([[1.0]] * 9 + [[-100.0]])[:count])
        made = trainer(data, net, epochs=1)
        return told(lambda: train(made, lambda net, batch: net(batch[0])[:, 0]), [np.zeros(1)])[0]

    whole, fewer = first(10), first(9)
    return abs(float(whole.value[0] - fewer.value[0])) / float(whole.sigma)


def test_mutant_forgotten_accumulation(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = NoisySum.add

    def broken(self: NoisySum, sums: Any) -> None:
        self.clear()
        honest(self, sums)

    monkeypatch.setattr(NoisySum, "add", broken)
    with pytest.raises(AssertionError):
        test_pieces_add_up()


def test_mutant_shuffled_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example once in five batches of ten."""

    def broken(*_: Any) -> Iterator[Any]:
        yield None, 10, True

    monkeypatch.setattr(PoissonBatches, "draw", broken)
    assert not is_binomial(sizes())


# ------------------------------------------------------------------------------------------------------- refusals


class Endless(IterableDataset):
    def __iter__(self) -> Iterator[Any]:
        return iter(rows(3))


class Ragged:
    """Examples of which one is longer."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        return torch.ones(3 + place // 4), 0


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"data": DataLoader(rows(10), shuffle=True)}, "data"),
        ({"data": Endless()}, "data"),
        ({"data": TensorDataset(torch.zeros(0, 3))}, "data"),
        ({"size": None}, "size"),
        ({"batch_size": 11}, "batch_size"),
        ({"noise_multiplier": None}, "epsilon"),
        ({"epsilon": 1}, "epsilon"),
        ({"clip": 0}, "clip"),
        ({"physical_batch": 0}, "physical_batch"),
        ({"model": nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))}, "layer"),
        ({"model": nn.Linear(3, 2).half()}, "parameter"),
    ],
)
def test_refusals_before_anything_is_read(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        trainer(**{"data": rows(10), **changed})
    assert refused.value.name == field
    assert refused.value.hint or field in {"batch_size", "physical_batch"}  # which say it all


def test_an_optimizer_of_another_model_is_refused() -> None:
    net, other = network(), network()
    with pytest.raises(InvalidParameter, match="parameters of the model"):
        Trainer(net, torch.optim.SGD(other.parameters()), rows(3), size=3, delta=1e-5, epochs=1, batch_size=1)


@pytest.mark.parametrize(
    ("compute", "told_why"),
    [
        (lambda net, batch: losses(net, batch).mean(), 'reduction="none"'),
        (lambda net, batch: losses(net, batch) / len(batch[0]), "depend on each other"),
        (lambda net, batch: losses(net, batch) - losses(net, batch).mean(), "depend on each other"),
        (lambda net, batch: cross_entropy(net(batch[0] - batch[0].mean(0)), batch[1], reduction="none"), "each other"),
        (lambda net, batch: losses(net, batch) + net[0].weight.sum(), "its layer's own call"),
        (lambda net, batch: losses(net, batch) / 0, "three public ones"),
    ],
)
def test_losses_that_mix_examples_are_refused_before_a_private_one_is_read(
    compute: Callable[[nn.Module, Any], Tensor], told_why: str
) -> None:
    made = trainer(rows(10))
    with pytest.raises(InvalidParameter, match=told_why):
        train(made, compute)
    assert made.taken == 0


class Statistics(nn.Module):
    """Keeps a mean of what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.mean.mul_(0.9).add_(x.detach().mean(0))
        return self.inner(x)


def test_statistics_kept_from_batches_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="from batch to batch"):
        train(trainer(rows(10), seeded(Statistics)))


def test_dropout_is_no_mixture() -> None:
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)))
    assert train(trainer(rows(10), model)).taken == 3


def test_an_example_of_another_shape_is_refused_without_saying_which() -> None:
    made = trainer(Ragged(), physical_batch=1)
    with pytest.raises(InvalidValue) as refused:
        train(made)
    assert "4" not in str(refused.value)
    assert made.taken == 1  # what was begun stays counted


def test_an_example_that_is_no_number_changes_nothing_else() -> None:
    data = rows(10)
    data.tensors[0][-1] = math.nan
    spoiled = handed(data, [np.zeros(26)] * 3)
    fewer = handed(without_last(data), [np.zeros(26)] * 3)
    assert all(np.allclose(a.value, b.value, atol=1e-6) for a, b in zip(spoiled, fewer, strict=True))


def test_a_batch_without_losses_is_refused() -> None:
    made = trainer(rows(10))
    with pytest.raises(InvalidParameter, match="once for each batch"):
        list(made)
    with pytest.raises(InvalidParameter, match="once for each batch"):
        trainer(rows(10)).step(torch.zeros(3))


def test_a_batch_that_was_broken_off_leaves_nothing_behind() -> None:
    """Else an example would be in the next step's sum twice."""
    data, made = rows(10), trainer(rows(10), physical_batch=3)
    net: Any = made.net  # type: ignore[attr-defined]

    def broken_off() -> None:
        for batch in made:
            made.step(losses(net, batch))
            if made.taken == 1:
                break
        train(made)

    seen = told(broken_off, [np.zeros(26)] * 3)
    assert made.taken == 3
    whole = handed(data, [np.zeros(26)] * 3)
    assert np.allclose(seen[0].value, whole[0].value, atol=1e-6)


def test_two_loops_at_once_are_refused() -> None:
    made = trainer(rows(10), physical_batch=3)
    net: Any = made.net  # type: ignore[attr-defined]
    first = iter(made)
    made.step(losses(net, next(first)))
    second = iter(made)
    next(second)
    with pytest.raises(InvalidParameter, match="once at a time"):
        next(first)


# ---------------------------------------------------------------------------------------------------- checkpoints


@pytest.mark.ci
def test_a_killed_run_goes_on_and_counts_every_step(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    options: dict[str, Any] = {"size": 20, "epochs": 5, "checkpoint": path, "save_every": 3}
    child = os.fork()
    if child == 0:  # a process that is killed in the middle of its fifth step, after weights of the third were saved
        made = trainer(rows(10), physical_batch=2, **options)
        for batch in made:
            if made.taken == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            made.step(losses(made.net, batch))  # type: ignore[attr-defined]
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL

    saved = torch.load(path, weights_only=True)
    made = trainer(rows(10), seeded(network, seed=3), **options)
    assert (saved["taken"], made.taken, made.steps) == (3, 5, 10)
    net: Any = made.net  # type: ignore[attr-defined]
    assert all(torch.equal(value, net.state_dict()[name]) for name, value in saved["model"].items())
    seen = told(lambda: train(made))
    assert len(seen) == 5
    assert made.event == made.planned_event
    assert torch.load(path, weights_only=True)["taken"] == 10
    with trainer(rows(10), **options) as again:
        assert accounting.epsilon(again.event, 1e-5) == accounting.epsilon(made.planned_event, 1e-5)
        assert told(lambda: train(again)) == []


def test_a_run_is_held_by_one_trainer_and_keeps_its_parameters(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    with trainer(rows(10), checkpoint=path), pytest.raises(InvalidParameter, match="Another process"):
        trainer(rows(10), checkpoint=path)
    with pytest.raises(InvalidParameter, match="event"):
        trainer(rows(10), checkpoint=path, noise_multiplier=1)
    with pytest.raises(InvalidParameter, match="clip"):
        trainer(rows(10), checkpoint=path, clip=1)


def test_weights_without_their_count_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    train(trainer(rows(10), checkpoint=path))
    count = tmp_path / "run.pt.steps"
    content = count.read_bytes()
    count.write_bytes(content[: content.index(b"\n") + 3])
    with pytest.raises(InvalidParameter, match="no newer"):
        trainer(rows(10), checkpoint=path)
    count.unlink()
    with pytest.raises(InvalidParameter, match="belong to its count"):
        trainer(rows(10), checkpoint=path)


@pytest.mark.ci
def test_a_model_of_images_learns() -> None:
    """Two classes that differ in one corner, at a noise that leaves them apart."""
    x = values((200, 1, 6, 6))
    y = torch.arange(200) % 2
    x[y == 1, :, :3, :3] += 2
    head = [nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)]
    net = seeded(lambda: Summed(*head))
    options = {"size": 200, "epochs": 15, "batch_size": 50, "clip": 1, "noise_multiplier": 0.5, "lr": 0.5}
    train(trainer(TensorDataset(x, y), net, **options))
    with torch.no_grad():
        assert float((net(x).argmax(1) == y).double().mean()) > 0.9
