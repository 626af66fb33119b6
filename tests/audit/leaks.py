"""Functions that leak in ways that no account of noise sees."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from discreet.mechanisms import Laplace
from discreet.noise import Bits
from discreet.noise.experiment import uniforms


def float_noise(bits: Bits, scale: float = 1.0) -> Callable[[float], float]:
    """Textbook Laplace noise in floats, off any grid (Mironov 2012)."""

    def release(value: float) -> float:
        u = float(uniforms(1, bits=bits)[0]) - 0.5
        return value - scale * math.copysign(math.log(1 - 2 * abs(u)), u)

    return release


def noisy(bits: Bits, epsilon: float = 1.0) -> Callable[[int], int]:
    """What an honest count does."""
    mechanism = Laplace(epsilon=epsilon, sensitivity=1)
    return lambda value: int(mechanism.release(value, bits=bits))


def failing(bits: Bits) -> Callable[[int], int]:
    """Raises where there is nothing to count."""
    honest = noisy(bits)

    def release(value: int) -> int:
        if value == 0:
            raise ZeroDivisionError
        return honest(value)

    return release


def grouped(bits: Bits) -> Callable[[dict[str, int]], dict[str, int]]:
    """Shows a noisy count for every group there is."""
    honest = noisy(bits)
    return lambda counts: {key: honest(count) for key, count in counts.items()}


def listed(bits: Bits) -> Callable[[list[Any]], list[int]]:
    """As many fresh noises as there are rows, and nothing else."""
    honest = noisy(bits)
    return lambda rows: [honest(0) for _ in rows]
