"""Accuracy on handwritten digits (MNIST) of a private model, mean over seeds, at delta 1e-5 for add/remove neighbours.

A linear model on fixed features (`deep.Scattering`) of each image and of four shifts of it by a pixel, whose losses are
averaged. Learning rate, size of a batch and number of epochs were found on a part of the training images, which is not
counted. `--chosen` looks for them on digits that a program draws; how hard these are decides what it prefers.

    python bench/deep_mnist.py                       # epsilon 1 and 3, five seeds; minutes on a GPU, an hour without
    python bench/deep_mnist.py --chosen              # how the choice was made
"""

from __future__ import annotations

import argparse
import gzip
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import _deep_environment  # noqa: F401 - first: it may run this script elsewhere
import numpy as np
import torch
from _claims import DATA, Claim, show
from _made_up_digits import made_up_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from discreet import deep
from discreet.noise import SeededBits

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHIFTS = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))
CLASSES, CHANNELS, GROUPS, SIDE = 10, 81, 27, 7
GOALS = {1.0: 0.975, 3.0: 0.985}
UNIQUE, TESTED, PEOPLE = 6000, 3000, 60_000


@dataclass(frozen=True)
class Choice:
    """What a training run is told besides its budget."""

    rate: float
    clip: float
    batch: int
    epochs: float


CHOICES = {
    1.0: Choice(rate=1.0, clip=1.0, batch=4096, epochs=20),
    3.0: Choice(rate=0.5, clip=1.0, batch=2048, epochs=40),
}


def numbers(path: Path) -> np.ndarray:
    """The contents of an IDX file: 16 bytes of head for images, 8 for labels."""
    content = gzip.decompress(path.read_bytes())
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3])


def images(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    pixels = numbers(folder / f"{part}-images-idx3-ubyte.gz").reshape(-1, 1, 28, 28)
    labels = numbers(folder / f"{part}-labels-idx1-ubyte.gz")
    return torch.from_numpy(pixels / np.float32(255)), torch.from_numpy(labels.astype(np.int64))


def features(pictures: Tensor, shifts: tuple[tuple[int, int], ...]) -> Tensor:
    """(images, shifts, channels, side, side), in pieces that fit anywhere; shifted-out pixels are black."""
    transform = deep.Scattering().to(DEVICE)
    found = []
    for piece in pictures.split(1000):
        wide = nn.functional.pad(piece.to(DEVICE), (1, 1, 1, 1))
        moved = [wide[:, :, 1 + y : 29 + y, 1 + x : 29 + x] for y, x in shifts]
        found.append(torch.stack([transform(part) for part in moved], 1))
    return torch.cat(found)


def model() -> nn.Module:
    return nn.Sequential(
        nn.GroupNorm(GROUPS, CHANNELS, affine=False), nn.Flatten(), nn.Linear(CHANNELS * SIDE * SIDE, CLASSES)
    ).to(DEVICE)


def trained(data: Tensor, labels: Tensor, epsilon: float, choice: Choice, seed: int) -> nn.Module:
    """A trained model; noise and batches are seeded, to give the same figures again."""
    network = model()
    nn.init.zeros_(network[2].weight)
    nn.init.zeros_(network[2].bias)
    optimizer = torch.optim.SGD(network.parameters(), lr=choice.rate, momentum=0.9)
    total = round(choice.epochs * len(data) / choice.batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
    trainer = deep.Trainer(
        network, optimizer, TensorDataset(data, labels), size=len(data), epsilon=epsilon, delta=1e-5,
        epochs=choice.epochs, batch_size=choice.batch, clip=choice.clip, physical_batch=20_000, scheduler=schedule,
        bits=SeededBits(seed),
    )  # fmt: skip
    for inputs, told in trainer:
        losses = [cross_entropy(network(one), told, reduction="none") for one in inputs.unbind(1)]
        trainer.step(torch.stack(losses).mean(0))
    return network


def accuracy(network: nn.Module, data: Tensor, labels: Tensor) -> float:
    with torch.no_grad():
        return float((network(data[:, 0]).argmax(1) == labels).float().mean())


def chosen() -> None:
    """Accuracies on digits that a program has drawn, for settings around those that were chosen."""
    drawn, told = made_up_digits(UNIQUE + TESTED, 0)
    made, labels = features(torch.from_numpy(drawn), SHIFTS[:1]), torch.from_numpy(told).to(DEVICE)
    several = PEOPLE // UNIQUE  # drawing and filtering each of 60,000 takes long, and noise is what is looked at
    data, known = made[:UNIQUE].repeat(several, 1, 1, 1, 1), labels[:UNIQUE].repeat(several)
    for epsilon, first in CHOICES.items():
        choices = [replace(first, rate=first.rate * factor) for factor in (1 / 3, 1, 3)]
        choices += [replace(first, batch=int(first.batch * factor)) for factor in (0.5, 2, 4)]
        choices += [replace(first, epochs=first.epochs * factor) for factor in (0.5, 2)]
        for choice in choices:
            found = accuracy(trained(data, known, epsilon, choice, 0), made[UNIQUE:], labels[UNIQUE:])
            print(f"epsilon {epsilon:g}: {choice} {found:.4f}", flush=True)


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--chosen", action="store_true")
    parser.add_argument("--data", type=Path, default=DATA / "mnist")
    asked = parser.parse_args(words)
    if asked.chosen:
        chosen()
        return
    if not asked.data.exists():
        sys.exit("The data are not there.")
    pictures, labels = images(asked.data, "train")
    data, labels = features(pictures, SHIFTS), labels.to(DEVICE)
    tests, truth = images(asked.data, "t10k")
    tests, truth = features(tests, SHIFTS[:1]), truth.to(DEVICE)
    claims = []
    for epsilon, goal in GOALS.items():
        found = []
        for seed in range(asked.seeds):
            found.append(accuracy(trained(data, labels, epsilon, CHOICES[epsilon], seed), tests, truth))
            print(f"epsilon {epsilon:g}, seed {seed}: {found[-1]:.4f}", file=sys.stderr, flush=True)
        claims.append(
            Claim(f"MNIST, epsilon {epsilon:g}", float(np.mean(found)), least=goal, note=f"{asked.seeds} seeds")
        )
    show("Accuracy on test images", claims)


if __name__ == "__main__":
    main(sys.argv[1:])
