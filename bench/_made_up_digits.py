"""Digits that nobody wrote: strokes drawn by a program, distorted at random, to choose settings on without any data."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray

SIDE = 28
PIECE = 1000  # drawn by one process
Points = list[tuple[float, float]]
Images = NDArray[np.float32]


def _arc(x: float, y: float, wide: float, high: float, *turned: float) -> Points:
    """Points of an ellipse around (x, y), from one angle to another, in turns."""
    turns = np.linspace(*turned, 9) * 2 * math.pi
    return [(x + wide * math.cos(t), y + high * math.sin(t)) for t in turns]


STROKES: dict[int, list[list[Points]]] = {  # several ways to write each, of lines each; x to the right, y downwards
    0: [[_arc(0.5, 0.5, 0.24, 0.36, 0, 1)], [_arc(0.5, 0.5, 0.18, 0.38, -0.25, 0.75)]],
    1: [[[(0.5, 0.12), (0.5, 0.88)]], [[(0.36, 0.28), (0.52, 0.12), (0.52, 0.88)]]],
    2: [
        [[*_arc(0.5, 0.32, 0.22, 0.2, -0.5, 0.1), (0.28, 0.86), (0.74, 0.86)]],
        [[*_arc(0.5, 0.3, 0.2, 0.18, -0.45, 0.15), (0.3, 0.82)], [*_arc(0.36, 0.8, 0.1, 0.08, 0.4, 1.0), (0.76, 0.84)]],
    ],
    3: [[_arc(0.46, 0.3, 0.2, 0.18, -0.4, 0.25) + _arc(0.46, 0.68, 0.24, 0.2, -0.25, 0.4)]],
    4: [
        [[(0.62, 0.88), (0.62, 0.12), (0.24, 0.62), (0.78, 0.62)]],
        [[(0.3, 0.14), (0.28, 0.5), (0.7, 0.5)], [(0.68, 0.16), (0.64, 0.88)]],
    ],
    5: [[[(0.72, 0.14), (0.36, 0.14), (0.32, 0.46), *_arc(0.46, 0.65, 0.24, 0.22, -0.3, 0.4)]]],
    6: [[[(0.62, 0.12), (0.4, 0.36), *_arc(0.5, 0.66, 0.2, 0.2, -0.55, 0.5)]]],
    7: [
        [[(0.26, 0.16), (0.74, 0.16), (0.44, 0.88)]],
        [[(0.26, 0.16), (0.74, 0.16), (0.44, 0.88)], [(0.38, 0.5), (0.68, 0.5)]],
    ],
    8: [[_arc(0.5, 0.31, 0.17, 0.18, 0.25, 1.25), _arc(0.5, 0.68, 0.21, 0.2, -0.25, 0.75)]],
    9: [
        [_arc(0.5, 0.34, 0.19, 0.2, 0, 1), [(0.69, 0.34), (0.62, 0.88)]],
        [_arc(0.5, 0.34, 0.2, 0.2, 0, 1) + _arc(0.46, 0.6, 0.24, 0.26, 0, 0.3)],
    ],
}


def made_up_digits(count: int, seed: int, strength: float) -> tuple[Images, NDArray[np.int64]]:
    """So many pictures of 28 x 28 in [0, 1], and what they show; `strength` scales how much each is distorted."""
    pieces = -(-count // PIECE)
    with ProcessPoolExecutor() as pool:
        drawn = list(pool.map(_piece, [(seed, number, strength) for number in range(pieces)]))
    return np.concatenate([images for images, _ in drawn])[:count], np.concatenate([told for _, told in drawn])[:count]


def _piece(asked: tuple[int, int, float]) -> tuple[Images, NDArray[np.int64]]:
    seed, number, strength = asked
    random = np.random.default_rng([seed, number])
    labels = random.integers(0, 10, PIECE)
    return np.stack([_drawn(STROKES[int(label)], random, strength) for label in labels])[:, None], labels


def _drawn(ways: list[list[Points]], random: np.random.Generator, strength: float) -> Images:
    lines = ways[random.integers(len(ways))]
    turn, shear = strength * random.normal(0, 0.1, 2)
    wide, high = 0.8 + strength * random.normal(0, 0.08, 2)
    moved = strength * random.normal(0, 0.02, 2)
    matrix = np.array([[math.cos(turn) * wide, shear - math.sin(turn)], [math.sin(turn), math.cos(turn) * high]])
    starts, ends = [], []
    for line in lines:
        points = np.array(line) + strength * random.normal(0, 0.02, (len(line), 2))
        placed = (points - 0.5) @ matrix.T + 0.5 + moved
        starts.append(placed[:-1])
        ends.append(placed[1:])
    far = _distances(np.concatenate(starts), np.concatenate(ends))
    thick = abs(random.normal(0.042, 0.01)) + 0.015
    return np.clip(1.3 - far / thick, 0, 1).astype(np.float32)


def _distances(starts: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each pixel from the nearest of some line segments."""
    centres = (np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), 2).reshape(-1, 1, 2) + 0.5) / SIDE
    along = ends - starts
    share = ((centres - starts) * along).sum(2) / np.maximum((along**2).sum(1), 1e-9)
    nearest = starts + np.clip(share, 0, 1)[:, :, None] * along
    found: NDArray[np.float64] = np.sqrt(((centres - nearest) ** 2).sum(2)).min(1)
    return found.reshape(SIDE, SIDE)
