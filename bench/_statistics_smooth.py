"""Smooth sensitivity and robust centres: time at a million values, errors and coverage on normal data with outliers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from _claims import Claim, show
from _timing import cpu

from discreet import statistics as st
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.statistics.robust import smooth_sensitivity as smooth

MANY, WIDTH = 10**6, 1 << 20
TENTH = Fraction(1, 10)
RUNS, VALUES = 60, 5000
BOUNDS = (-1000, 1000)


def times() -> list[Claim]:
    """Seconds of processor time; a public bound keeps the sensitivity above one step."""
    values = np.sort((uniforms(MANY, bits=SeededBits(1)) * WIDTH).astype(np.int64))
    calm = np.full(MANY, WIDTH // 2)
    spread = uniforms(MANY, bits=SeededBits(2))
    one = Fraction(1)
    work = {
        "smooth sensitivity of a median": lambda: smooth.order_statistic(values, WIDTH, MANY // 2, TENTH, one),
        "the same with beta = 0.001": lambda: smooth.order_statistic(values, WIDTH, MANY // 2, TENTH / 100, one),
        "the same of equal values": lambda: smooth.order_statistic(calm, WIDTH, MANY // 2, TENTH, one),
        "smooth sensitivity of a trimmed mean": lambda: smooth.trimmed_mean(values, WIDTH, MANY // 10, TENTH, one),
    }
    found = [Claim(f"{what}, 10^6 sorted values", cpu(run), most=0.1, unit="s") for what, run in work.items()]
    whole = cpu(lambda: st.trimmed_mean(spread, bounds=(0, 1), epsilon=1, bits=SeededBits(3)))
    return [*found, Claim("a trimmed mean of 10^6 values with its interval", whole, most=0.5, unit="s")]


def errors() -> list[Claim]:
    """5 % of the values are outliers at the upper bound, and the bounds are a thousand deviations away."""
    misses: dict[str, list[float]] = {"trimmed": [], "median": []}
    covered = 0
    for run in range(RUNS):
        x = normals(VALUES, bits=SeededBits(1000 + run))
        x[: VALUES // 20] = 1000.0
        trimmed = st.trimmed_mean(x, bounds=BOUNDS, epsilon=1, trim="0.2", bits=SeededBits(run))
        median = st.smooth_median(x, bounds=BOUNDS, epsilon=1, bits=SeededBits(run))
        middle = np.sort(x)[VALUES // 5 : VALUES - VALUES // 5]
        misses["trimmed"].append(trimmed.value - float(middle.mean()))
        misses["median"].append(median.value - float(np.median(x)))
        covered += median.low <= 0.0660 <= median.high  # the median of 95 % N(0, 1) and 5 % above
    noise = {name: float(np.sqrt(np.mean(np.square(each)))) for name, each in misses.items()}
    plain = 1.2533 / np.sqrt(VALUES)
    return [
        Claim("noise of a trimmed mean over the sampling error of a median", noise["trimmed"] / plain, most=0.5),
        Claim("noise of a smooth median over its sampling error", noise["median"] / plain, most=0.5),
        Claim("intervals of 95 % that cover the population's median", covered / RUNS, least=0.94),
    ]


def rows() -> list[Claim]:
    """Everything that is claimed."""
    return [*times(), *errors()]


if __name__ == "__main__":
    show("Smooth sensitivity", rows())
