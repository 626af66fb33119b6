"""Models and batches of the deep-learning benchmark, in plain PyTorch, of layers that every library here knows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


class Residual(nn.Module):
    """A block of a wide residual network before its sum (Zagoruyko, Komodakis 2016), with groups for batches."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(16, inputs), nn.GroupNorm(16, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        seen = functional.relu(self.norm1(x))
        short = x if self.short is None else self.short(seen)
        return short + self.conv2(functional.relu(self.norm2(self.conv1(seen))))


def wide_resnet(width: int = 4, blocks: int = 2) -> nn.Module:
    """WRN-16-4 with its default arguments."""
    sizes = [16, 16 * width, 32 * width, 64 * width]
    layers: list[nn.Module] = [nn.Conv2d(3, sizes[0], 3, 1, 1, bias=False)]
    for place, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        layers += [Residual(inputs if i == 0 else outputs, outputs, 1 + (i == 0 < place)) for i in range(blocks)]
    return nn.Sequential(
        *layers, nn.GroupNorm(16, sizes[-1]), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(sizes[-1], 10)
    )


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inputs, self.outputs = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = [part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.inputs(x).chunk(3, 2)]
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=self.causal)
        return self.outputs(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=causal)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """An encoder with a class at its end, or a decoder that tells the next token."""

    def __init__(
        self, layers: int = 6, width: int = 512, words: int = 1000, length: int = 256, classes: int = 0
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.register_buffer("numbers", torch.arange(length))
        self.blocks = nn.Sequential(*(Block(width, 8, causal=not classes) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes or words)
        self.classes = classes

    def forward(self, tokens: Tensor) -> Tensor:
        places = self.numbers[: tokens.shape[1]].repeat(len(tokens), 1)
        x = self.norm(self.blocks(self.words(tokens) + self.places(places)))
        return self.head(x[:, 0] if self.classes else x)


def mnist_cnn() -> nn.Module:
    """The usual small network for digits."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, 3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )


def class_losses(scores: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(scores, labels, reduction="none")


def word_losses(scores: Tensor, words: Tensor) -> Tensor:
    """The mean over the words of each text."""
    losses = functional.cross_entropy(scores.flatten(0, 1), words.flatten(), reduction="none")
    return losses.unflatten(0, words.shape).mean(1)


@dataclass(frozen=True)
class Task:
    """A model, a batch of made-up data, and the losses of its examples."""

    name: str
    model: Callable[[], nn.Module]
    batch: Callable[[], tuple[Tensor, Tensor]]
    losses: Callable[[Tensor, Tensor], Tensor] = class_losses


def _images(count: int, *shape: int) -> Callable[[], tuple[Tensor, Tensor]]:
    return lambda: (torch.randn(count, *shape), torch.arange(count) % 10)


def _texts(
    count: int, *, words: int = 1000, length: int = 256, classes: int = 0
) -> Callable[[], tuple[Tensor, Tensor]]:
    def made() -> tuple[Tensor, Tensor]:
        tokens = (torch.arange(count * (length + 1)) * 7919 % words).reshape(count, -1)
        return tokens[:, :-1].contiguous(), torch.arange(count) % classes if classes else tokens[:, 1:].contiguous()

    return made


TASKS = {
    task.name: task
    for task in (
        Task("WRN-16-4", wide_resnet, _images(1024, 3, 32, 32)),
        Task("encoder", lambda: Transformer(classes=10), _texts(256, classes=10)),
        Task("decoder", Transformer, _texts(128), word_losses),
        Task("CNN", mnist_cnn, _images(512, 1, 28, 28)),
        Task("MLP", mlp, _images(512, 1, 28, 28)),
    )
}
