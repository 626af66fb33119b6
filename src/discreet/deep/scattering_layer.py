"""Fixed features of images: a cascade of wavelets and absolute values, without learned parts."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet import check

_WIDTH = 0.8  # of the envelope at the finest scale, in pixels
_FREQUENCY = 3 * math.pi / 4
_SLANT = 4  # how much longer than wide the envelope is, times the number of angles


class Scattering(nn.Module):
    """The scattering transform of images, to second order (Bruna, Mallat 2013).

    Each image is filtered by oriented wavelets of `scales` sizes and `angles` directions, absolute values are taken,
    filtered once more by coarser wavelets, and averaged over windows of 2^scales pixels. Small shifts and distortions
    of the image change the result little, which is what a network would have to learn from examples first: with few
    steps under noise, a small model on these features beats a larger one on pixels (Tramer, Boneh 2021).

    It has no parameters and looks at one image at a time, so that it costs no privacy; give it the images once, before
    training, or make it the first layer.

    Args:
        scales: J, how many sizes of wavelets; the result is 2^J times smaller than the image on each side.
        angles: L, how many directions.

    Attributes:
        channels: 1 + J L + L^2 J (J - 1) / 2 numbers for each channel of the image at each place.

    >>> Scattering(2, 4)(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 25, 7, 7])
    """

    def __init__(self, scales: int = 2, angles: int = 8) -> None:
        super().__init__()
        self.scales = check.integer(scales=scales, at_least=1, at_most=6)
        self.angles = check.integer(angles=angles, at_least=1, at_most=64)
        self.channels = 1 + scales * angles + angles**2 * scales * (scales - 1) // 2

    def forward(self, images: Tensor) -> Tensor:
        """Returns the features, (examples, channels of the image times `channels`, height / 2^J, width / 2^J)."""
        examples, colours, height, width = images.shape
        step = 2**self.scales
        room = (step, step + -width % step, step, step + -height % step)
        padded = functional.pad(images, room, mode="reflect")
        waves = self._wavelets(tuple(padded.shape[2:]), images.device)
        rows, columns = (self._windows(length).to(images) for length in padded.shape[2:])

        def average_values(values: Tensor) -> Tensor:
            """Returns smooth values at every 2^J-th pixel; takes and gives (..., height, width)."""
            return rows @ values @ columns.T

        found = [average_values(padded)[:, :, None]]
        spectrum = torch.fft.fft2(padded)[:, :, None]
        for scale, filters in enumerate(waves):
            first = torch.fft.ifft2(spectrum * filters).abs()
            found.append(average_values(first))
            again = torch.fft.fft2(first)[:, :, :, None]
            found += [
                average_values(torch.fft.ifft2(again * filters).abs()).flatten(2, 3) for filters in waves[scale + 1 :]
            ]
        return torch.cat(found, 2).reshape(examples, colours * self.channels, *found[0].shape[3:])

    def _wavelets(self, size: tuple[int, ...], device: torch.device) -> list[Tensor]:
        """Returns the spectra of the wavelets of each scale, along a first dimension of angles."""
        turns = [math.pi * angle / self.angles for angle in range(self.angles)]
        found = []
        for scale in range(self.scales):
            several = [_wavelet(size, _WIDTH * 2**scale, turn, _FREQUENCY / 2**scale, self.angles) for turn in turns]
            found.append(torch.stack(several).to(device, torch.complex64))
        return found

    def _windows(self, length: int) -> Tensor:
        """Returns weights of pixels around every 2^J-th one, the padding left out: a matrix (places, length)."""
        step = 2**self.scales
        apart = torch.arange(length)[None, :] - torch.arange(step, length - step, step)[:, None]
        weights = torch.exp(-(apart**2) / (2 * (_WIDTH * 2 ** (self.scales - 1)) ** 2))
        return weights / weights.sum(1, keepdim=True)


def _coordinates(size: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Returns rows and columns as seen from the first pixel, around which filters wrap."""
    rows, columns = (torch.fft.fftfreq(length, d=1 / length, dtype=torch.float64) for length in size)
    return rows[:, None], columns[None, :]


def _envelope(size: tuple[int, ...], width: float, turn: float, slant: float) -> Tensor:
    rows, columns = _coordinates(size)
    along = columns * math.cos(turn) + rows * math.sin(turn)
    across = rows * math.cos(turn) - columns * math.sin(turn)
    return torch.exp(-(along**2 + (slant * across) ** 2) / (2 * width**2))


def _wavelet(size: tuple[int, ...], width: float, turn: float, frequency: float, angles: int) -> Tensor:
    """Returns the spectrum of a Morlet wavelet: a wave under an envelope, less what makes its mean 0."""
    rows, columns = _coordinates(size)
    envelope = _envelope(size, width, turn, _SLANT / angles)
    wave = torch.exp(1j * frequency * (columns * math.cos(turn) + rows * math.sin(turn)))
    centred = envelope * (wave - (envelope * wave).sum() / envelope.sum())
    return torch.fft.fft2(centred / envelope.sum())
