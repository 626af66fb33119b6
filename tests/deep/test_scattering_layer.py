"""The scattering transform beside sums that are written out, and what a layer before a private model must keep."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch

from discreet import deep
from discreet.errors import InvalidParameter


def images(count: int, side: int = 16) -> torch.Tensor:
    return torch.randn(count, 1, side, side, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_the_first_order_is_a_convolution() -> None:
    """One wavelet, written out: the wave under its envelope, less its mean, then absolute values and a window."""
    picture = images(1)
    found = deep.Scattering(1, 2)(picture)[0, 1]
    padded = torch.nn.functional.pad(picture, (2, 2, 2, 2), mode="reflect")[0, 0]
    side = len(padded)
    places = torch.tensor([(p + side // 2) % side - side // 2 for p in range(side)], dtype=torch.float64)
    rows, columns = places[:, None], places[None, :]
    envelope = torch.exp(-(columns**2 + (2 * rows) ** 2) / (2 * 0.8**2))
    wave = torch.exp(1j * 3 * math.pi / 4 * columns) + 0j * rows
    wavelet = envelope * (wave - (envelope * wave).sum() / envelope.sum()) / envelope.sum()
    filtered = torch.zeros(side, side, dtype=torch.complex128)
    for y in range(side):
        for x in range(side):
            filtered += wavelet[y, x] * torch.roll(padded, (y, x), (0, 1))
    centre = torch.arange(2, side - 2, 2)[:, None] - torch.arange(side)[None, :]
    window = torch.exp(-(centre**2) / (2 * 0.8**2)).double()
    window /= window.sum(1, keepdim=True)
    assert torch.allclose(found, window @ filtered.abs() @ window.T, atol=1e-5)


@pytest.mark.parametrize(("scales", "angles", "channels"), [(2, 8, 81), (1, 4, 5), (3, 2, 19)])
def test_the_number_of_channels(scales: int, angles: int, channels: int) -> None:
    layer = deep.Scattering(scales, angles)
    assert layer.channels == channels
    assert layer(images(2, 24).float().repeat(1, 3, 1, 1)).shape[1] == 3 * channels


def test_nothing_is_learned_and_images_stay_apart() -> None:
    layer = deep.Scattering(2, 4)
    several = images(3).float()
    assert not [*layer.parameters()]
    assert not [*layer.buffers()]
    assert torch.allclose(layer(several)[1], layer(several[1:2])[0], atol=1e-6)


def test_sides_that_are_no_multiple_of_the_step() -> None:
    assert deep.Scattering(2, 2)(torch.zeros(1, 1, 13, 10)).shape == (1, 9, 4, 3)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="scales"):
        deep.Scattering(0)
