"""Reconstruction and differencing: how much is rebuilt, against the targets, and how long the largest one takes.

Rates are of random bits: with n of them and r runs the standard error is at most 1 / (2 sqrt(n r)).
"""

from __future__ import annotations

import math
import time

from _claims import Claim, show

from discreet import attacks
from discreet.attacks.reconstruction import subset_counts
from discreet.attacks.reconstruction.linear_reconstruction import repeat_attack
from discreet.attacks.reconstruction.subset_counts import Answerer, GaussianAnswerer, NoisyAnswerer, PrivateAnswerer
from discreet.noise import SeededBits
from discreet.noise.experiment import coins, uniforms
from discreet.report.attack_finding import wilson_interval

PEOPLE, RUNS = 512, 20
LARGE, LARGE_QUERIES, SECONDS = 2000, 8000, 60
DELTA = 1e-6


def rebuilt() -> list[Claim]:
    """512 bits from 4 n random subset counts."""
    bits = SeededBits(1)
    secret, queries = coins(PEOPLE, bits=bits), subset_counts.random_subsets(4 * PEOPLE, PEOPLE, bits=bits)
    named: list[tuple[str, Answerer, float | None, float | None]] = [
        ("noise of 0.25 sqrt(n)", NoisyAnswerer(sd=0.25 * math.sqrt(PEOPLE)), 0.9, None),
        ("epsilon 1 for all, pure, Laplace", PrivateAnswerer(total=1), None, 0.6),
        (f"epsilon 1 for all, delta {DELTA:g}, normal", PrivateAnswerer(total=1, delta=DELTA), None, 0.6),
        ("mu 1 for all, noise sqrt(m)", GaussianAnswerer(mu=1, blind=True), None, None),
    ]
    claims = []
    for name, answerer, least, most in named:
        found = repeat_attack(answerer, secret, queries, runs=RUNS, bits=bits)
        claims.append(
            Claim(name, *wilson_interval(found.success, found.targets), least=least, most=most, note=theory(found))
        )
    return claims


def large() -> list[Claim]:
    """2,000 bits from 8,000 queries, and 20 people one database after another: elapsed seconds."""
    bits = SeededBits(2)
    secret, queries = coins(LARGE, bits=bits), subset_counts.random_subsets(LARGE_QUERIES, LARGE, bits=bits)
    noise = 0.25 * math.sqrt(LARGE)
    answers = NoisyAnswerer(sd=noise).answer(secret, queries, bits=bits)
    start = time.perf_counter()
    found = attacks.reconstruct(queries, answers, noise=noise, truth=secret)
    took = time.perf_counter() - start
    few, asked = coins(20, bits=bits), subset_counts.random_subsets(400, 20, bits=bits)
    rough = subset_counts.BoundedNoiseAnswerer(alpha=4.0).answer(few, asked, bits=bits)
    start = time.perf_counter()
    tried = attacks.reconstruct(asked, rough, method="exhaustive", alpha=4.0, truth=few)
    all_of_them = time.perf_counter() - start
    return [
        Claim(f"{LARGE:,} bits, {LARGE_QUERIES:,} queries: rebuilt", found.success, note=theory(found)),
        Claim("  time", took, most=SECONDS, unit="s"),
        Claim("all 2^20 databases, m=400: rebuilt", tried.success),
        Claim("  time", all_of_them, unit="s"),
    ]


def departures() -> list[Claim]:
    """A leaver's number within a hundredth of the bounds, which a guess reaches in 2 % of all trials."""
    bits = SeededBits(3)
    others = 20_000 + 60_000 * uniforms(30, bits=bits)
    compared = attacks.difference.compare(others, bounds=(0, 200_000), trials=10_000, bits=bits)
    return [Claim(trial.defence, trial.finding.success, note=theory(trial.finding)) for trial in compared]


def theory(finding: attacks.Finding) -> str:
    told = [] if finding.predicted is None else [f"{finding.predicted:.1%} predicted"]
    return ", ".join(told if finding.bound is None else [*told, f"at most {finding.bound:.1%} possible"])


def run() -> None:
    show(f"Reconstruction: {PEOPLE} bits from {4 * PEOPLE:,} random subset counts, {RUNS} runs", rebuilt())
    show("Reconstruction at size", large())
    show("Differencing: a number from averages before and after, 10,000 trials", departures())


if __name__ == "__main__":
    run()
