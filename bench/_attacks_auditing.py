"""The auditor: what it certifies of honest and of leaky mechanisms, and what that takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from _claims import Claim, show
from _timing import cpu
from numpy.typing import NDArray

from discreet import audit
from discreet.mechanisms import Laplace, PartitionSelection, RandomizedResponse
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms

CANARIES, SEED = 1000, 2026


def float_noise(bits: SeededBits) -> Callable[[float], float]:
    """Textbook Laplace noise in floats, whose low bits tell the exact value (Mironov 2012)."""

    def release(value: float) -> float:
        u = float(uniforms(1, bits=bits)[0]) - 0.5
        return value - math.copysign(math.log(1 - 2 * abs(u)), u)

    return release


def reports(bits: SeededBits) -> Callable[[list[int]], NDArray[np.int64]]:
    """Whether each canary was in, by randomized response of epsilon 1: the best that an attacker can hope for."""

    def release(included: list[int]) -> NDArray[np.int64]:
        truth = np.zeros(CANARIES, dtype=np.int64)
        truth[included] = 1
        return np.asarray(RandomizedResponse(epsilon=1).release(truth, bits=bits))

    return release


def run() -> None:
    """Prints what was found."""
    mechanism = Laplace(epsilon=1, sensitivity=1)
    found: list[audit.Audit] = []
    seconds = cpu(lambda: found.append(audit.distinguish(mechanism, 0, 1, bits=SeededBits(SEED))), repeats=1)
    leak = audit.distinguish(float_noise(SeededBits(SEED)), 0.0, 1.0, epsilon=1, runs=20_000)
    bits = SeededBits(SEED)
    once = audit.one_run(reports(bits), range(CANARIES), lambda out, i: float(out[i]), epsilon=1, bits=bits)
    keys = PartitionSelection(epsilon=1, delta=1e-5, max_groups=2)
    exact = cpu(lambda: audit.exact(keys, [10, 12], [11, 13]))
    show(
        "the auditor: lower bounds on epsilon at 95 %",
        [
            Claim("Laplace, epsilon 1, 100,000 runs on each", found[0].epsilon_lower, least=0.9, unit="epsilon"),
            Claim("the same, never above the claim", found[0].epsilon_lower, most=1.0, unit="epsilon"),
            Claim("the same, processor time", seconds, most=30.0, unit="s"),
            Claim(
                "float noise that claims 1, 20,000 runs", leak.epsilon_lower, least=4.0, unit="epsilon", note=leak.event
            ),
            Claim("one run, 1,000 canaries, epsilon 1", once.epsilon_lower, least=0.7, unit="epsilon"),
            Claim("optimal selection of keys, exactly", exact, most=1.0, unit="s"),
            Claim(
                "its delta at epsilon 1",
                float(sum(audit.exact(keys, [10, 12], [11, 13]).delta) / 2),
                most=float(Fraction(1, 10**5)),
                unit="delta",
            ),
        ],
    )


if __name__ == "__main__":
    run()
