"""Intervals hold the statistic of clipped values, not of those on a grid: noise near zero, bounds off every grid."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import statistics
from discreet.noise import SeededBits
from discreet.privacy import Estimate
from tests.cases import every

LOW, HIGH = Fraction("0.1"), Fraction("7.3")
BOUNDS = ("0.1", "7.3")
QUIET = 10**5
TABLES = {
    "the upper bound": [99.0] * 400,
    "the lower bound": [-1.0] * 400,
    "both bounds": [-1.0, 99.0] * 200,
    "thirds": [1 / 3] * 250 + [20 / 3] * 151,
}


def mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def trimmed(values: list[Fraction]) -> Fraction:
    cut = len(values) // 10
    return mean(sorted(values)[cut : len(values) - cut])


def variance(values: list[Fraction]) -> Fraction:
    return mean([value**2 for value in values]) - mean(values) ** 2


def middle(values: list[Fraction]) -> Fraction:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


ROWS = {"neighbours": "replace"}
SMOOTH = {"epsilon": 100}  # the largest for which there is such noise
CASES: dict[str, tuple[Callable[..., Estimate], dict[str, Any], Callable[[list[Fraction]], Fraction]]] = {
    "mean": (statistics.mean, {"target": "sample"}, mean),
    "mean of so many": (statistics.mean, {"target": "sample", **ROWS}, mean),
    "variance": (statistics.variance, {"target": "sample", "ddof": 0}, variance),
    "variance of so many": (statistics.variance, {"target": "sample", "ddof": 0, **ROWS}, variance),
    "trimmed mean": (statistics.trimmed_mean, {"target": "sample", "trim": Fraction(1, 10), **SMOOTH}, trimmed),
    "smooth median": (statistics.smooth_median, {"target": "sample", **SMOOTH}, middle),
    "median": (statistics.median, {}, middle),
}


@every("name", CASES)
@every("table", TABLES)
def test_the_interval_holds_the_truth(table: str, name: str) -> None:
    if (table, name) == ("both bounds", "median"):  # any number between is the median of such a population
        return
    release, options, truth = CASES[name]
    found = release(TABLES[table], bounds=BOUNDS, bits=SeededBits(3), **{"epsilon": QUIET, **options})
    exact = truth([min(max(Fraction(x), LOW), HIGH) for x in TABLES[table]])
    assert Fraction(found.low) <= exact * (1 + Fraction(1, 1 << 50))
    assert exact * (1 - Fraction(1, 1 << 50)) <= Fraction(found.high)
    assert found.high - found.low < 0.1 or "epsilon" in options


def test_covariances_that_rounding_hides() -> None:
    """The second column goes with the first, by less than half a step: on the grid it is always 0."""
    rows = [[0.9, 1.5e-4], [-0.9, -1.5e-4]] * 500
    found = statistics.covariance(rows, bounds=(-1, 1), epsilon=10**12, delta=1e-2, bits=SeededBits(3))
    exact = 0.9 * 1.5e-4 * 1000 / 999
    assert found.low[0, 1] <= exact <= found.high[0, 1]
    assert found.low[1, 1] <= 1.5e-4**2 <= found.high[1, 1]
    assert found.high[0, 1] < 1e-3


def test_a_location_between_two_steps() -> None:
    """All values are the same, and the estimate is one of the grid."""
    place = 1 / 3
    found = statistics.huber_location(
        [place] * 400, bounds=(0, 1), scale=1, epsilon=QUIET, neighbours="replace", target="sample", bits=SeededBits(3)
    )
    assert found.low <= place <= found.high
    assert found.high - found.low < 1e-3
