"""The local model: time and variance of its oracles, beside theory and beside float versions as others write them.

- Variance: n times the mean square error of 1,024 frequencies at epsilon 1 over the least that any oracle can have,
  that of subset selection; within 5 % for those that claim to be near it.
- Time: processor seconds that a million clients take together, and an aggregator; at most 10 each.
- Peers: the same oracles in numpy floats, as libraries of "pure" protocols write them (no exact probabilities, a
  generator that is not secure): optimised unary encoding, local hashing with a hash of every value for every report,
  and direct randomized response. They are timed on fewer reports, and the time is scaled up.

    python bench/local.py [reports, default 1000000]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from _claims import Claim
from _claims import show as show_claims
from _timing import Row, cpu, show

from discreet.local import (
    FrequencyOracle,
    GeneralizedRandomizedResponse,
    HadamardResponse,
    HeavyHitters,
    HybridMean,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms

VALUES, EPSILON = 1024, 1
KINDS = (LocalHashing, SubsetSelection, UnaryEncoding, HadamardResponse, GeneralizedRandomizedResponse)
NEAR = (LocalHashing, SubsetSelection, UnaryEncoding)
SECONDS = 10.0
RUNS, FEW = 12, 100_000  # of 1,024 errors each: their mean square is known to 1.3 %
PEER_REPORTS = 20_000

Floats = Any


def skewed(count: int) -> Any:
    """Values of a law with a long tail; half of the domain is nearly empty."""
    return (VALUES * uniforms(count, bits=SeededBits(1)) ** 3).astype(np.int64)


def variances() -> list[Claim]:
    values = skewed(FEW)
    truth = np.bincount(values, minlength=VALUES) / FEW
    least = SubsetSelection(epsilon=EPSILON, domain=VALUES).variance(FEW)
    found = []
    for kind in NEAR:
        oracle: FrequencyOracle = kind(epsilon=EPSILON, domain=VALUES)
        bits, squares = SeededBits(2), []
        for _ in range(RUNS):
            errors = oracle.estimate(oracle.privatize(values, bits=bits)).value - truth
            squares.append(float(np.mean(errors**2)))
        note = f"n x variance {np.mean(squares) * FEW:.3f}, by theory {oracle.variance(FEW) * FEW:.3f}"
        ratio = float(np.mean(squares)) / least
        found.append(Claim(f"{kind.__name__} over the optimum", ratio, most=1.05, unit="x", note=note))
    return found


def times(reports: int) -> list[Row]:
    values, found = skewed(reports), []
    for kind in KINDS:
        oracle: FrequencyOracle = kind(epsilon=EPSILON, domain=VALUES)
        made: list[Any] = []
        client = cpu(lambda oracle=oracle, made=made: made.append(oracle.privatize(values)), repeats=1)
        aggregator = cpu(lambda oracle=oracle, made=made: oracle.estimate(made[0]), repeats=1)
        scale = reports / 10**6
        found.append(Row(f"{kind.__name__}: privatize", client, SECONDS * scale, Fraction(1)))
        found.append(Row(f"{kind.__name__}: estimate", aggregator, SECONDS * scale, Fraction(1)))
    mean = HybridMean(epsilon=EPSILON)
    numbers = 2 * uniforms(reports, bits=SeededBits(3)) - 1
    found.append(Row("HybridMean: both", cpu(lambda: mean.estimate(mean.privatize(numbers)), repeats=1), SECONDS, None))
    finder = HeavyHitters(epsilon=4, length=8, alphabet="abcdefghijklmnopqrstuvwxyz")
    names = ["anna", "otto", "maria", "john"] * (reports // 40)
    found.append(
        Row("HeavyHitters, a tenth: both", cpu(lambda: finder.estimate(finder.privatize(names)), 1), SECONDS, None)
    )
    return found


def float_unary(values: Any, bits: SeededBits) -> Any:
    noise = uniforms((values.size, VALUES), bits=bits) < 1 / (math.exp(EPSILON) + 1)
    noise[np.arange(values.size), values] = uniforms(values.size, bits=bits) < 0.5
    return noise.sum(axis=0)


def float_hashing(values: Any, bits: SeededBits) -> Any:
    """Every report's hash of every value: n d hashes, by multiplication modulo a prime."""
    g, prime = round(math.exp(EPSILON)) + 1, (1 << 31) - 1
    keys = bits.words(2 * values.size).reshape(2, -1).astype(np.int64) & (prime >> 1)
    truth = (keys[0] * (values + 1) + keys[1]) % prime % g
    kept = uniforms(values.size, bits=bits) < math.exp(EPSILON) / (math.exp(EPSILON) + g - 1)
    other = (truth + 1 + (uniforms(values.size, bits=bits) * (g - 1)).astype(np.int64)) % g
    sent = np.where(kept, truth, other)
    every = np.arange(1, VALUES + 1)
    return sum(((k * every + b) % prime % g == z).astype(np.int64) for k, b, z in zip(*keys, sent, strict=True))


def float_direct(values: Any, bits: SeededBits) -> Any:
    kept = uniforms(values.size, bits=bits) < math.exp(EPSILON) / (math.exp(EPSILON) + VALUES - 1)
    other = (values + 1 + (uniforms(values.size, bits=bits) * (VALUES - 1)).astype(np.int64)) % VALUES
    return np.bincount(np.where(kept, values, other), minlength=VALUES)


def peers(reports: int) -> list[Row]:
    values, few, found = skewed(reports), skewed(PEER_REPORTS), []
    pairs: list[tuple[Any, Callable[..., Any]]] = [
        (UnaryEncoding, float_unary),
        (LocalHashing, float_hashing),
        (GeneralizedRandomizedResponse, float_direct),
    ]
    for kind, peer in pairs:
        oracle: FrequencyOracle = kind(epsilon=EPSILON, domain=VALUES)
        ours = cpu(lambda oracle=oracle: oracle.estimate(oracle.privatize(values)), repeats=1)
        theirs = cpu(lambda peer=peer: peer(few, SeededBits(4)), repeats=1) * reports / PEER_REPORTS
        found.append(Row(f"{kind.__name__}: both sides, beside floats", ours, theirs, None))
    return found


def main() -> None:
    reports = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    show_claims(f"Frequencies of {VALUES} values at epsilon {EPSILON}", variances())
    show(f"{reports:,} reports, against 10 seconds a million", times(reports), unit="s", per=1.0)
    show(f"{reports:,} reports, against the same in floats", peers(reports), unit="s", per=1.0)


if __name__ == "__main__":
    main()
