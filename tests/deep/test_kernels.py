"""Kernels for a GPU, run by Triton's interpreter on the processor, beside the eager functions they stand for."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")
pytest.importorskip("triton", reason="Kernels for a GPU are written in Triton.")

import torch
from torch import Tensor
from torch.nn import functional

from discreet.deep import kernels
from discreet.deep.device_noise import chacha_words, normals_of
from discreet.deep.kernels.chacha_normals import chacha_normals
from discreet.deep.kernels.kernel_norms import kernel_squares
from discreet.deep.kernels.pair_norms import pair_sums
from discreet.deep.kernels.pixel_pairs import patch_pair_sums
from discreet.deep.kernels.scale_sums import channel_sums, row_sums
from discreet.deep.kernels.weighted_sums import weighted_sums

CLOSE = 1e-5
FORMATS = (torch.contiguous_format, torch.channels_last)
CONVOLUTIONS = [  # channels, height, width, outputs, sides, stride, padding, dilation, groups
    (5, 6, 7, 18, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (6, 9, 11, 9, (3, 2), (2, 1), (1, 0), (1, 2), 3),
    (3, 8, 8, 16, (1, 1), (2, 2), (0, 0), (1, 1), 1),
    (2, 1, 30, 3, (1, 5), (1, 2), (0, 2), (1, 3), 1),
]


def made(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def near(found: Tensor, truth: Tensor) -> bool:
    return bool((found.double() - truth.double()).norm() <= CLOSE * truth.double().norm())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("positions", "width", "height"), [(70, 33, 20), (130, 64, 48), (1, 5, 7), (16, 16, 16)])
def test_pairs_of_positions(positions: int, width: int, height: int) -> None:
    a, e = made(3, positions, width), made(3, positions, height, seed=1)
    gradients = torch.einsum("ntd,ntp->ndp", a.double(), e.double())
    pairs, inputs, outputs = pair_sums(a, e, precision="ieee")
    assert near(pairs, gradients.square().sum((1, 2)))
    assert near(inputs, a.square().sum((1, 2)))
    assert near(outputs, e.square().sum((1, 2)))


@pytest.mark.parametrize(("positions", "width", "height"), [(70, 33, 20), (1, 130, 7)])
def test_weighted_sums(positions: int, width: int, height: int) -> None:
    a, e = made(5, positions, width), made(5, positions, height, seed=1)
    weights = torch.tensor([1.0, 0.5, 0.0, 3.0, 1e-3])
    truth = torch.einsum("n,ntd,ntp->pd", weights.double(), a.double(), e.double())
    assert near(weighted_sums(a, e, weights, precision="ieee"), truth)


def gradients_of_kernels(case: tuple[Any, ...], a: Tensor) -> tuple[Tensor, Tensor]:
    """Output gradients, and the squared norms of every example's kernel gradient by a backward pass for each."""
    channels, _, _, outputs, sides, stride, padding, dilation, groups = case
    kernel = made(outputs, channels // groups, *sides, seed=2).double()
    e = made(*functional.conv2d(a.double(), kernel, None, stride, padding, dilation, groups).shape, seed=3)
    norms = []
    for row, error in zip(a, e, strict=True):
        weight = kernel.clone().requires_grad_()
        out = functional.conv2d(row[None].double(), weight, None, stride, padding, dilation, groups)
        (found,) = torch.autograd.grad((out * error.double()).sum(), weight)
        norms.append(found.square().sum())
    return e, torch.stack(norms)


@pytest.mark.ci
@pytest.mark.sampled(4)
@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_kernels_of_convolutions(case: tuple[Any, ...], layout: object) -> None:
    a = made(2, *case[:3])
    e, norms = gradients_of_kernels(case, a)
    a, e = a.contiguous(memory_format=layout), e.contiguous(memory_format=layout)
    options = dict(zip(("sides", "stride", "padding", "dilation"), case[4:8], strict=True))
    assert near(kernel_squares(a, e, groups=case[8], precision="ieee", **options), norms)
    if case[8] == 1:
        found, _, outputs = patch_pair_sums(a, e, precision="ieee", **options)
        assert near(found, norms)
        assert near(outputs, e.square().sum((1, 2, 3)))


@pytest.mark.parametrize("centred", [True, False])
def test_scales_of_rows(centred: bool) -> None:
    a, e = made(3, 21, 40), made(3, 21, 40, seed=1)
    shape, double = (40,), a.double()
    normal = functional.layer_norm(double, shape) if centred else functional.rms_norm(double, shape, eps=1e-5)
    scale, shift = row_sums(a, e, 1e-5, centred=centred)
    assert near(scale, (e * normal).sum(1))
    assert near(shift, e.sum(1))


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("size", [(5, 7), (50, 60)])  # a group that one program holds, and one that it does not
def test_scales_of_channels(size: tuple[int, int], layout: object) -> None:
    a, e = made(2, 12, *size), made(2, 12, *size, seed=1)
    normal = functional.group_norm(a.double(), 4)
    inputs, errors = (values.contiguous(memory_format=layout).flatten(2) for values in (a, e))
    scale, shift = channel_sums(inputs, errors, 4, 1e-5)
    assert near(scale, (e * normal).sum((2, 3)))
    assert near(shift, e.sum((2, 3)))


@pytest.mark.ci
def test_normals_of_the_cipher() -> None:
    key = torch.tensor([place * 0x01234567 % 2**32 for place in range(8)])
    truth = normals_of(chacha_words(key, torch.arange(13)))
    assert torch.allclose(chacha_normals(key, 99), truth[:99], rtol=1e-12, atol=1e-12)


def test_the_processor_uses_eager_functions() -> None:
    assert not kernels.usable(made(2, 2))
