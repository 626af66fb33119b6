"""Private statistics of arrays: their time beside numpy's, and their error and intervals beside what theory allows.

- Time: the median of a million doubles, its interval and the noisy count included, beside np.median; the mean and the
  variance beside theirs. The least of several runs, in processor time.
- Error: the mean of 1,000 values of 100 Beta(2, 5) at epsilon 1, whose root mean square error by the pair of sums is
  0.1086 for the whole budget.
- Intervals: the length of those of means, variances and medians of 5,000 values over that of the same interval without
  privacy; twice as long, and twice the noise, is what they may be.
- Smooth sensitivity: its time at a million sorted values, and the noise and the intervals that it gives.

    python bench/arrays.py [rows, default 1000000]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from _claims import show as show_claims
from _statistics_smooth import rows as smooth_rows
from _timing import Row, cpu, show

from discreet import statistics as st
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms

SECONDS = 1.0  # a private median of a million values may take
RUNS = 300


def beta_sample(count: int, bits: SeededBits) -> Any:
    """100 Beta(2, 5): the second smallest of six uniform numbers."""
    return 100 * np.partition(uniforms((count, 6), bits=bits), 1, axis=1)[:, 1]


def times(rows: int) -> list[Row]:
    x = 100 * uniforms(rows, bits=SeededBits(1))
    pairs: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
        ("median", st.median, np.median),
        ("mean", st.mean, np.mean),
        ("variance", st.variance, np.var),
    ]
    found = []
    for name, ours, plain in pairs:
        private = cpu(lambda ours=ours: ours(x, bounds=(0, 100), epsilon=1), repeats=3)
        found.append(Row(f"{name} of {rows:,} values", private, cpu(lambda plain=plain: plain(x), repeats=3), None))
        if name == "median":
            found.append(Row("  against a second", private, SECONDS, Fraction(1)))
    return found


def errors() -> list[Row]:
    bits, off = SeededBits(2), []
    for _ in range(RUNS * 3):
        x = beta_sample(1000, bits)
        off.append(st.mean(x, bounds=(0, 100), epsilon=1, bits=bits).value - float(x.mean()))
    return [Row("error of the mean, over 0.109", float(np.sqrt(np.mean(np.square(off)))), 0.109, Fraction(112, 109))]


def lengths() -> list[Row]:
    found = []
    asked: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
        ("mean", st.mean, np.mean),
        ("variance", st.variance, np.var),
        ("median", st.median, np.median),
    ]
    for name, ours, plain in asked:
        bits, long, off, exact = SeededBits(3), [], [], []
        for _ in range(RUNS // 3):
            x = beta_sample(5000, bits)
            one = ours(x, bounds=(0, 100), epsilon=1, bits=bits)
            long.append(one.high - one.low)
            exact.append(float(plain(x)))
            off.append(abs(one.value - exact[-1]))
        without = 2 * 1.96 * float(np.std(exact)) + 2 * float(np.quantile(off, 0.95))
        found.append(Row(f"length of the interval of a {name}", float(np.mean(long)), without, Fraction(2)))
    return found


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    show("Statistics of arrays: time beside numpy", times(rows), unit="ms", per=1e-3)
    show(
        "Statistics of arrays: errors and intervals beside what they may be", [*errors(), *lengths()], unit="", per=1.0
    )
    show_claims("Smooth sensitivity", smooth_rows())
