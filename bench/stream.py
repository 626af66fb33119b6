"""How wrong sums of a stream are, beside independent noise, trees and the least possible error; and how fast they come.

All at rho = 1/2 and sensitivity 1 unless a line says otherwise, where a Gaussian mechanism for one value has sigma 1.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from fractions import Fraction

import numpy as np
from _claims import Claim, show

from discreet.privacy import Budget
from discreet.stream import Participation, RunningSum, SlidingWindow
from discreet.stream.laplace_tree import LaplaceTree
from discreet.stream.toeplitz import square_root_series

RHO = Budget(rho="0.5")
STEPS = 100_000


def tree(horizon: int, *, weighted: bool) -> list[float]:
    """Variances of the binary tree with Gaussian noise, all levels paid alike."""
    levels = horizon.bit_length()
    noise = [float(levels)]
    for _ in range(levels - 1):
        noise.append(1 / (1 / levels + 1 / (2 * noise[-1])) if weighted else float(levels))
    return [sum(noise[h] for h in range(levels) if t >> h & 1) for t in range(1, horizon + 1)]


def rms(variances: list[float]) -> float:
    return math.sqrt(float(np.mean(variances)))


def worst(variances: list[float]) -> float:
    return math.sqrt(max(variances))


def errors() -> list[Claim]:
    claims = []
    for horizon in (64, 365, 1024):
        ours = RunningSum(horizon=horizon, budget=RHO).variances(horizon)
        plain, weighted = tree(horizon, weighted=False), tree(horizon, weighted=True)
        text = f"{rms(plain):.2f}, {rms(weighted):.2f} and {rms(ours):.2f} on average"
        claims += [
            Claim(f"{horizon} periods: tree / square root", rms(plain) / rms(ours), least=1.5, unit="x", note=text),
            Claim(f"{horizon} periods: weighted tree / square root", rms(weighted) / rms(ours), least=1.25, unit="x"),
            Claim(f"{horizon} periods: noise on every value / square root", math.sqrt(horizon) / worst(ours), unit="x"),
        ]
    best = rms(RunningSum(horizon=365, budget=RHO, method="optimal").variances(365))
    year = RunningSum(horizon=365, budget=RHO).variances(365)
    claims.append(Claim("365 periods: square root / least mean", rms(year) / best, most=1.06, unit="x"))
    claims.append(Claim("365 periods: worst day, standard error", worst(year), most=2.95, unit=""))
    return claims


def measured() -> list[Claim]:
    """The error as it comes out: 400 lines of a year, each with noise of its own."""
    stream = RunningSum(horizon=365, budget=RHO, size=400)
    values, total, squares, covered = np.arange(400) % 7, np.zeros(400), [], []
    for _ in range(365):
        total += values
        found = stream.release(values)
        squares.append(np.mean((found.value - total) ** 2))
        covered.append(np.mean((found.low <= total) & (total <= found.high)))
    claimed = float(np.mean(stream.variances(365)))
    return [
        Claim("365 periods: measured / claimed variance", float(np.mean(squares)) / claimed, most=1.1, unit="x"),
        Claim("365 periods: intervals of 95 % that cover", float(np.mean(covered)), least=0.94),
    ]


def windows() -> list[Claim]:
    found = {
        name: SlidingWindow(window=7, horizon=horizon, budget=RHO) for name, horizon in (("known", 365), ("any", None))
    }
    known, unknown = (max(stream.variances(365)) for stream in found.values())
    return [
        Claim("window of 7, 365 periods: largest variance", known, most=3.1625, unit=""),
        Claim("window of 7: noise on every value / ours", 7 / known, least=2.2, unit="x"),
        Claim("window of 7: differences of totals / ours", 7.329 / known, least=2.3, unit="x"),
        Claim("window of 7: any horizon / known horizon, variance", unknown / known, most=1.09, unit="x"),
    ]


def pure() -> list[Claim]:
    claims = []
    for horizon in (365, 1024):
        ours = RunningSum(horizon=horizon, budget=Budget(epsilon=1))
        levels = horizon.bit_length()
        full = LaplaceTree((Fraction(1, levels),) * levels, 1)
        text = (
            f"standard errors of {worst(ours.variances(horizon)):.1f} and {math.sqrt(full.worst_variance(horizon)):.1f}"
        )
        ratio = math.sqrt(full.worst_variance(horizon)) / worst(ours.variances(horizon))
        claims.append(
            Claim(f"pure, {horizon} periods: tree of all levels / ours", ratio, least=1.1, unit="x", note=text)
        )
    return claims


def people() -> list[Claim]:
    once = worst(RunningSum(horizon=365, budget=RHO).variances(365))
    months = worst(RunningSum(horizon=365, budget=RHO, participation=Participation(12, 30)).variances(365))
    return [Claim("12 periods of a person, a month apart / one, standard error", months / once, most=12, unit="x")]


def long_streams() -> list[Claim]:
    """One call of `release` per step, in Python."""
    stream = RunningSum(horizon=10**6, budget=RHO)
    stream.release(1)
    tracemalloc.start()
    for _ in range(2000):
        stream.release(1)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(4000):
        stream.release(1)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    start = time.process_time()
    for _ in range(STEPS):
        stream.release(1)
    speed = STEPS / (time.process_time() - start)
    last = stream.variances(10**6)[-1]
    exact = float(np.sum(square_root_series(10**6) ** 2)) ** 2
    unknown = RunningSum(horizon=None, budget=RHO).variances(10**4)[-1]
    near = float(np.sum(square_root_series(10**4) ** 2)) ** 2
    return [
        Claim("a million periods: steps per second", speed, least=20_000, unit=""),
        Claim("a million periods: bytes more after 4,000 steps", grown, most=1_000_000, unit=""),
        Claim("a million periods: error / square root", math.sqrt(last / exact), most=1.05, unit="x"),
        Claim("unknown horizon, 10,000 periods: error / known", math.sqrt(unknown / near), most=1.5, unit="x"),
    ]


def main() -> None:
    show("Errors of streams", [*errors(), *measured(), *windows(), *pure(), *people()])
    show("Long streams", long_streams())
    print("OpenDP has no continual release to compare with: its b-ary trees answer range queries on whole arrays.")


if __name__ == "__main__":
    main()
