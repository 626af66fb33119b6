"""Noise that is drawn on the device: the cipher, the law of the deviates, the grid, and fresh keys."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import itertools

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from discreet import deep
from discreet.deep.clipping import Flat
from discreet.deep.device_noise import chacha_words, device_normals, normals_of, on_public_grid
from discreet.deep.gradient_noise import NoisySum
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits

CPU = torch.device("cpu")


def test_the_cipher_is_that_of_rfc_8439() -> None:
    """Section 2.3.2; the first word of its nonce is the high word of our counter."""
    key = torch.tensor([int.from_bytes(bytes(range(4 * word, 4 * word + 4)), "little") for word in range(8)])
    words = chacha_words(key, torch.tensor([1 + (0x09000000 << 32)]), (0x4A000000, 0))
    expected = (
        "e4e7f110 15593bd1 1fdd0f50 c47120a3 c7f4d1c7 0368c033 9aaa2204 4e6cd4c3 "
        "466482d2 09aa9f07 05d7c214 a2028bd9 d19c12b5 b94e16de e883d0cb 4e3c50a2"
    )
    assert [f"{word:08x}" for word in words[0].tolist()] == expected.split()


def test_deviates_at_the_ends_of_the_words() -> None:
    """All zeros and all ones are finite, and the longest radius is that of half a unit in 2^64."""
    ends = torch.tensor([[0, 0, 0, 0] * 4, [0xFFFFFFFF] * 16])
    found = normals_of(ends)
    assert torch.isfinite(found).all()
    assert float(found.abs().max()) == pytest.approx(math.sqrt(2 * 65 * math.log(2)))


def test_deviates_are_normal() -> None:
    """The largest distance from the normal law (Kolmogorov), at a chance of 2 exp(-2 lambda^2) below 10^-6."""
    count = 200_000
    drawn = device_normals(count, CPU, SeededBits(7)).sort().values
    law = torch.special.ndtr(drawn)
    steps = torch.arange(count + 1) / count
    distance = max(float((steps[1:] - law).max()), float((law - steps[:-1]).max()))
    assert distance <= math.sqrt(math.log(2e6) / 2 / count)
    assert not torch.allclose(drawn, device_normals(count, CPU, SeededBits(8)).sort().values)


def test_mutant_uniform_angle_is_not_normal() -> None:
    """The same check finds deviates that lack their radius."""
    count = 200_000
    words = chacha_words(torch.arange(8), torch.arange(count // 8))
    words[:, ::4] = 1 << 31  # every radius the same
    drawn = normals_of(words).sort().values
    law, steps = torch.special.ndtr(drawn), torch.arange(count + 1) / count
    assert float((steps[1:] - law).max()) > math.sqrt(math.log(2e6) / 2 / count)


def test_each_release_has_a_key_of_its_own() -> None:
    several = [device_normals(16, CPU) for _ in range(3)]
    assert not any(torch.equal(one, other) for one, other in itertools.pairwise(several))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 700.0])
def test_results_are_on_the_grid(sigma: float) -> None:
    step = 2.0 ** (math.floor(math.log2(sigma)) - 10)
    values = on_public_grid(device_normals(1000, CPU, SeededBits(1)) * sigma, sigma)
    assert torch.equal(values / step, torch.round(values / step))


def test_the_noisy_sum_of_a_device() -> None:
    noisy = NoisySum({"w": 50_000}, Flat(2), 3, exact=False)
    noisy.add({"w": torch.full((50_000,), 5.0)})
    found = noisy.release(SeededBits(3))["w"]
    assert abs(float(found.mean()) - 5) < 5 * 6 / math.sqrt(50_000)
    assert float(found.std()) == pytest.approx(6, rel=5 / math.sqrt(2 * 50_000))


def test_a_run_with_noise_of_the_device() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    data = TensorDataset(torch.eye(3).repeat(10, 1), torch.arange(30) % 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    trainer = deep.Trainer(
        model, optimizer, data, size=30, noise_multiplier=1, delta=1e-5, epochs=1, batch_size=10, noise="device",
        bits=SeededBits(1),
    )  # fmt: skip
    for inputs, labels in trainer:
        trainer.step(cross_entropy(model(inputs), labels, reduction="none"))
    assert trainer.taken == 3
    assert not torch.equal(before, model.weight)


def test_unknown_noise_is_refused() -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.eye(3))
    with pytest.raises(InvalidParameter, match="noise="):
        deep.Trainer(
            model, optimizer, data, size=3, noise_multiplier=1, delta=1e-5, epochs=1, batch_size=1, noise="fast"
        )
