"""Training runs under audit: one run with canaries is within the claim, and beyond it if the trainer is broken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn

from discreet import audit
from discreet.audit import OneRun
from discreet.deep import Trainer
from discreet.deep.clipping import PerExampleGradients
from discreet.deep.gradient_noise import NoisySum
from discreet.deep.poisson_batches import PoissonBatches
from discreet.mechanisms import Gaussian
from discreet.noise import SeededBits
from tests.deep.test_neighbours import one_sum

CANARIES, RATE = 1000, 10
"""Canaries, and one in so many is in a batch."""


class Each(nn.Module):
    """A weight for every canary, whose gradient is along that weight: the worst there is, and nothing in between."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(CANARIES, 1, bias=False)
        nn.init.zeros_(self.inner.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)[:, 0]


def example(place: int) -> Tensor:
    return 30 * nn.functional.one_hot(torch.tensor(place), CANARIES).float()


def audited(seed: int = 1, **changed: Any) -> OneRun:
    """The weights after every step are seen; a canary's score is how far its weight went down in all."""
    score = changed.pop("score", lambda seen, place: -float(seen[-1][place]))
    canaries = changed.pop("canaries", range(CANARIES))
    options: dict[str, Any] = {"size": CANARIES // 2, "batch_size": CANARIES // 2 // RATE, "epochs": 2, "delta": 1e-5}
    options["noise_multiplier"] = 1.363  # for an epsilon of 2

    def train(dataset: Any) -> tuple[Trainer, list[Any]]:
        net, seen = Each(), []
        data = [example(place) for place in dataset]
        optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
        made = Trainer(net, optimizer, data, example=example(0), bits=SeededBits(seed + 1), **{**options, **changed})
        for batch in made:
            made.step(net(batch))
            if made.taken:  # before that, public batches come, and no step
                seen.append(net.inner.weight.detach().numpy()[0].copy())
        made.close()
        return made, seen

    return audit.training(train, canaries, score, guesses=100, bits=SeededBits(seed))


def smaller(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Noise that is so many times too small: as it is after a division that the bound did not see."""
    honest = NoisySum.__init__

    def broken(self: NoisySum, *args: Any, **options: Any) -> None:
        honest(self, *args, **options)
        sigma, move = self.mechanism.sigma, self.mechanism.sensitivity
        self.mechanism = Gaussian.with_multiplier(noise_multiplier=sigma / move, sensitivity=move / times)

    monkeypatch.setattr(NoisySum, "__init__", broken)


def split(self: NoisySum, noisy: Any) -> dict[str, Tensor]:
    sizes = self._sizes
    return dict(zip(sizes, torch.from_numpy(noisy).split(list(sizes.values())), strict=True))


# ----------------------------------------------------------------------------------------------------- honest runs


def test_the_claim_of_a_run_survives() -> None:
    """And the audit is not idle: with a known law of the scores, 66 of 100 guesses are right here, not 50."""
    found = audited()
    assert found.passed
    assert 0 < found.epsilon_lower < found.epsilon_claimed <= 2
    assert found.delta == pytest.approx(1e-5)
    assert found.most > 3  # it could have failed
    assert "training run" in found.summary()


def test_the_claim_of_correlated_noise_survives() -> None:
    found = audited(bands=5, noise_multiplier=2.386)
    assert found.passed
    assert 0 < found.epsilon_lower < found.epsilon_claimed <= 2


def test_data_beside_canaries_is_always_in() -> None:
    lengths = []

    def train(dataset: Any) -> tuple[Any, list[int]]:
        lengths.append(len(dataset))
        assert [dataset[place] for place in range(3)] == [7, 8, 9]
        net = nn.Linear(1, 1)
        made = Trainer(
            net,
            torch.optim.SGD(net.parameters()),
            [torch.zeros(1)],
            size=1,
            delta=0.5,
            epochs=1,
            batch_size=1,
            noise_multiplier=1,
        )
        made.close()
        return made, list(dataset)

    found = audit.training(train, range(20, 40), lambda seen, canary: canary in seen, data=[7, 8, 9], guesses=10)
    assert 3 < lengths[0] < 23
    assert (found.correct, found.epsilon_claimed) == (10, 0)  # no step was made


# ----------------------------------------------------------------------------------------------------------- mutants


def test_mutant_noise_after_division(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller(monkeypatch, 10)
    assert not audited().passed


def test_mutant_correlated_noise_after_division(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller(monkeypatch, 10)
    assert not audited(bands=5, noise_multiplier=2.386).passed


def test_mutant_noise_forgotten_for_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: NoisySum, bits: Any = None) -> dict[str, Tensor]:
        total, self._total = self._total.numpy(), self._empty()
        noisy = np.asarray(self.mechanism.release(total, bits=bits))
        noisy[CANARIES // 2 :] = total[CANARIES // 2 :]
        return split(self, noisy)

    monkeypatch.setattr(NoisySum, "release", broken)
    assert not audited(canaries=range(CANARIES // 2, CANARIES)).passed


def test_mutant_clipping_of_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean gradient is as short as the bound, and noise is as if each example's were."""

    def broken(self: PerExampleGradients, clip: Any) -> dict[str, Tensor]:
        return one_sum(self, self.examples * float(clip.bound))

    monkeypatch.setattr(PerExampleGradients, "clipped_sum", broken)
    assert not audited().passed


def test_what_one_run_does_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clipping of a batch's sum: canaries share the bound. `tests.deep.test_neighbours` sees it, exactly."""
    monkeypatch.setattr(PerExampleGradients, "clipped_sum", lambda self, clip: one_sum(self, float(clip.bound)))
    assert audited().passed


PIECES = 25


def noise_in_pieces(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Noise in every physical piece of a batch, in each so many times smaller than a batch's, and none for all."""
    honest, bits = NoisySum.add, SeededBits(3)

    def add(self: NoisySum, sums: Any) -> None:
        honest(self, sums)
        sigma, move = self.mechanism.sigma, self.mechanism.sensitivity
        piece = Gaussian.with_multiplier(noise_multiplier=sigma / move, sensitivity=move / times)
        self._total = torch.from_numpy(piece.release(self._total.numpy(), bits=bits))

    def release(self: NoisySum, bits: Any = None) -> dict[str, Tensor]:  # noqa: ARG001 - the noise is in already
        total, self._total = self._total.numpy(), self._empty()
        return split(self, total)

    monkeypatch.setattr(NoisySum, "add", add)
    monkeypatch.setattr(NoisySum, "release", release)


@pytest.mark.ci
def test_mutant_noise_divided_between_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A 25th of the deviation in each of 25 pieces is a fifth of it in all."""
    noise_in_pieces(monkeypatch, PIECES)
    assert not audited(physical_batch=CANARIES // 2 // RATE // PIECES).passed


@pytest.mark.slow
def test_noise_in_every_piece_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    """That mistake costs accuracy, and no privacy."""
    noise_in_pieces(monkeypatch, 1)
    assert audited(physical_batch=CANARIES // 2 // RATE // PIECES).passed


def at_their_turn(seen: list[Any], place: int) -> float:
    """How far a canary's weight went down in the steps of its own turn."""
    weights = np.array([[0.0] * CANARIES, *seen])[:, place]
    return float((weights[:-1] - weights[1:])[place % RATE :: RATE].sum())


def fixed(self: Any, bits: Any = None, *, part: int = 0) -> Iterator[Any]:  # noqa: ARG001 - that is what is broken
    """Every example once in an epoch, in the same batch."""
    self.turn = getattr(self, "turn", -1) + 1
    data = self._data
    chosen = [at for at in range(len(data)) if int(data[at].argmax()) % RATE == self.turn % RATE]
    for start in range(0, len(chosen), self.most):
        piece = chosen[start : start + self.most]
        yield self._collate_batch(piece), len(piece), start + self.most >= len(chosen)


@pytest.mark.slow
def test_mutant_fixed_batches_accounted_as_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who knows an example's turn looks at that step; in drawn batches there is none to look at."""
    options: dict[str, Any] = {"noise_multiplier": 2.93, "epochs": 5, "score": at_their_turn}
    assert audited(**options).passed
    monkeypatch.setattr(PoissonBatches, "draw", fixed)
    assert not audited(**options).passed


# ------------------------------------------------------------------------------------------------- a model that learns


def memorised(seed: int, bits: SeededBits) -> OneRun:
    """Canaries with labels of a coin, found by how small their losses are in the end."""
    features = torch.randn((400, 1500), generator=torch.Generator().manual_seed(seed))
    labels = torch.randint(0, 2, (400,), generator=torch.Generator().manual_seed(seed + 1))

    def train(dataset: Any) -> tuple[Trainer, nn.Module]:
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(1500, 16), nn.Tanh(), nn.Linear(16, 2))
        data = [(features[place], labels[place]) for place in dataset]
        options: dict[str, Any] = {"size": 200, "batch_size": 50, "epochs": 40, "delta": 1e-5}
        options["noise_multiplier"] = 6.44  # for an epsilon of 2
        optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
        made = Trainer(net, optimizer, data, example=(features[0], labels[0]), bits=bits, **options)
        for x, y in made:
            made.step(nn.functional.cross_entropy(net(x), y, reduction="none"))
        made.close()
        return made, net

    def score(net: nn.Module, place: int) -> float:
        with torch.no_grad():
            return -float(nn.functional.cross_entropy(net(features[place][None]), labels[place][None]))

    return audit.training(train, range(400), score, guesses=100, bits=bits)


@pytest.mark.slow
def test_what_a_model_memorises_stays_within_the_claim() -> None:
    assert memorised(1, SeededBits(1)).passed


@pytest.mark.slow
def test_what_a_model_memorises_without_noise_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller(monkeypatch, 100)
    assert not memorised(1, SeededBits(1)).passed
