"""Sampling errors against all samples of small populations, and intervals at every count that there can be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from discreet.measurement.intervals.estimators import RatioEstimator, TotalEstimator
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.population import population_estimators
from discreet.measurement.population.combined_reach import combined_reaches, noise_risks
from discreet.measurement.population.population_estimators import PopulationRatio, PopulationTotal
from discreet.measurement.releases.additive import LinearCombination
from discreet.plan.model.sample import Sample, SimpleSample

RISK = Fraction(1, 20)
SILENT = Noise("laplace", (Fraction(1, 100), Fraction(1, 100)))  # a draw is zero but for e^-100


def variance(sums: list[Fraction]) -> Fraction:
    mean = sum(sums, Fraction(0)) / len(sums)
    return sum(((one - mean) ** 2 for one in sums), Fraction(0)) / len(sums)


def sums_of_samples(parts: list[Fraction], size: int) -> list[Fraction]:
    return [sum(chosen, Fraction(0)) for chosen in combinations(parts, size)]


# ------------------------------------------------------------------------------------------------- variances, exactly


@pytest.mark.parametrize("size", [1, 2, 4, 6])
def test_a_total_varies_as_cochran_says(size: int) -> None:
    parts = [Fraction(x) for x in (0, 3, 1, 1, 7, 2)]  # rows of six people
    sample, mean = SimpleSample.of(6, size), sum(parts, Fraction(0)) / 6
    mean_square = sum(((part - mean) ** 2 for part in parts), Fraction(0)) / 6
    assert variance(sums_of_samples(parts, size)) == size * sample.design_factor * mean_square


def test_no_population_has_a_total_that_varies_more_than_is_supposed() -> None:
    sample, most = SimpleSample.of(5, 2), 3
    tight = False
    for rows in product(range(most + 1), repeat=5):
        parts = [Fraction(x) for x in rows]
        expected = sum(parts, Fraction(0)) / 5 * 2
        bound = sample.design_factor * (2 * most - expected) * expected / 2
        found = variance(sums_of_samples(parts, 2))
        assert found <= bound
        tight |= found == bound > 0
    assert tight


def clusters(people: int, values: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """All populations whose people have no row, one or two."""
    own = [(), *((x,) for x in values), *((x, y) for x in values for y in values if x <= y)]
    for population in product(own, repeat=people):
        if any(population):
            yield list(population)


@pytest.mark.parametrize("forgetting", [False, True])
def test_a_residual_varies_no_more_than_is_supposed_unless_clusters_are_forgotten(forgetting: bool) -> None:
    sample, low, high, most, broken = SimpleSample.of(4, 2), 0, 2, 1 if forgetting else 2, 0
    for people in clusters(4, (0, 2)):
        rows = [Fraction(x) for person in people for x in person]
        mean = sum(rows, Fraction(0)) / len(rows)
        parts = [sum((x - mean for x in person), Fraction(0)) for person in people]
        expected = Fraction(len(rows), 4) * 2
        bound = sample.design_factor * most * expected * (high - mean) * (mean - low)
        found = sums_of_samples(parts, 2)
        assert sum(found, Fraction(0)) == 0
        broken += variance(found) > bound
    assert bool(broken) is forgetting


def test_proportional_strata_vary_no_more_than_one_sample() -> None:
    design = Sample(population={"A": 4, "B": 2}, size={"A": 2, "B": 1}, by="ward").together
    assert design is not None
    assert design == replace(SimpleSample.of(6, 3), correction=Fraction(2))
    for rows in product(range(3), repeat=6):
        strata = [[Fraction(x) for x in rows[:4]], [Fraction(x) for x in rows[4:]]]
        found = [a + b for a in sums_of_samples(strata[0], 2) for b in sums_of_samples(strata[1], 1)]
        mean = sum(found, Fraction(0)) / len(found)
        assert mean == Fraction(sum(rows), 2)
        assert variance(found) <= design.design_factor * (6 - mean) * mean / 3


def test_strata_that_are_rounded_are_off_by_their_unevenness() -> None:
    design = Sample(population={"A": 5, "B": 3}, size={"A": 3, "B": 1}, by="ward").together
    assert design is not None
    assert design.unevenness == 1
    for rows in product((0, 1, 2), repeat=8):
        expected = 3 * Fraction(sum(rows[:5]), 5) + Fraction(sum(rows[5:]), 3)
        assert abs(expected - 4 * Fraction(sum(rows), 8)) <= design.unevenness * 2
    assert Sample(population={"A": 5, "B": 5}, size={"A": 4, "B": 1}, by="ward").together is None


# ------------------------------------------------------------------------------------------------------ combined reach


def missed(reach: float, scale: float, deviation: float) -> float:
    """The chance that a Laplace and a normal draw together are further away than a reach."""
    grid = np.linspace(-40 * scale, 40 * scale, 200_001)
    density = np.exp(-np.abs(grid) / scale) / (2 * scale)
    tails = stats.norm.sf((reach - grid) / deviation) + stats.norm.cdf((-reach - grid) / deviation)
    return float(np.trapezoid(density * tails, grid))


@pytest.mark.parametrize("deviation", [0.01, 0.5, 1.0, 2.0, 10.0])
def test_a_combined_reach_is_exceeded_seldom_enough_and_hardly_too_seldom(deviation: float) -> None:
    risks = noise_risks(RISK)
    reaches = np.array([[-math.log(float(risk))] for risk in risks])
    (found,) = combined_reaches(reaches, risks, np.array([deviation]), RISK)
    assert missed(found, 1.0, deviation) <= 0.05
    assert missed(found * 0.92, 1.0, deviation) > 0.05


def test_without_a_sampling_error_the_reach_is_that_of_noise() -> None:
    risks = noise_risks(RISK)
    reaches = np.array([[-math.log(float(risk))] for risk in risks])
    (found,) = combined_reaches(reaches, risks, np.zeros(1), RISK)
    assert -math.log(0.05) <= found <= -math.log(0.045) * 1.001


# ------------------------------------------------------------------------------------- coverage at every count, exactly


def total(population: int, size: int, most: int = 1) -> PopulationTotal:
    base = TotalEstimator(LinearCombination.at(0), whole=True, positive=True)
    sample = SimpleSample.of(population, size)
    return PopulationTotal(base=base, sample=sample, low=Fraction(0), high=Fraction(most))


def least_coverage(population: int, size: int) -> float:
    """The smallest coverage of a count's interval, for any number of people in a population that are counted."""
    counts = np.arange(size + 1)
    cells = total(population, size).cells(SILENT, np.stack([counts, counts], axis=1), RISK)
    low, high = (np.array([getattr(cell, end) for cell in cells]) for end in ("low", "high"))
    few = np.arange(min(population + 1, 200))
    people = np.unique(np.concatenate([few, population - few, np.arange(0, population, 37)]))[:, None]
    chances = stats.hypergeom.pmf(counts[None, :], population, people, size)
    return float(np.min(np.sum(chances * ((low <= people) & (people <= high)), axis=1)))


@pytest.mark.parametrize(("population", "size"), [(400, 40), (200, 150), (3000, 30)])
def test_counts_are_covered_however_few_there_are(population: int, size: int) -> None:
    assert least_coverage(population, size) >= 0.94


def test_without_the_correction_for_jumps_small_counts_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(*given: object) -> np.ndarray:
        return combined_reaches(*given) - 0.5  # type: ignore[arg-type]

    monkeypatch.setattr(population_estimators, "combined_reaches", plain)
    assert least_coverage(3000, 30) < 0.9


def test_a_count_of_zero_has_an_interval() -> None:
    (cell,) = total(10_000, 500).cells(SILENT, np.zeros((1, 2), dtype=np.int64), RISK)
    assert (cell.value, cell.low) == (0, 0)  # type: ignore[union-attr]
    assert 60 <= cell.high <= 110  # type: ignore[union-attr, operator] # the exact upper end is 73


def test_a_census_has_no_sampling_error() -> None:
    (cell,) = total(500, 500).cells(SILENT, np.full((1, 2), 123), RISK)
    assert (cell.low, cell.value, cell.high) == (123, 123, 123)  # type: ignore[union-attr]


# ---------------------------------------------------------------------------------------------------------------- means


def mean(population: int, size: int, rows: int) -> PopulationRatio:
    """The mean of values between 0 and 1; the statistics are their sum and their number."""
    return PopulationRatio(
        top=LinearCombination.at(0),
        bottom=LinearCombination.at(1),
        centre=Fraction(0),
        low=Fraction(0),
        high=Fraction(1),
        sample=SimpleSample.of(population, size),
        rows=rows,
    )


def test_a_mean_is_wider_by_what_sampling_adds() -> None:
    rows = np.array([[250, 500], [0, 500], [5, 10]])
    widths = {}
    for each in (1, 4):
        cells = mean(10_000, 500, each).cells(SILENT, rows, RISK)
        widths[each] = cells.high - cells.low
        assert np.all((cells.low <= cells.value) & (cells.value <= cells.high))
    assert widths[1][0] == pytest.approx(2 * 1.96 * math.sqrt(0.95 * 0.25 / 500), rel=0.12)
    assert 2 * widths[1][0] < widths[4][0] < 2.4 * widths[1][0]
    assert widths[1][1] > 3 / 500
    alone = RatioEstimator(
        top=LinearCombination.at(0),
        bottom=LinearCombination.at(1),
        centre=Fraction(0),
        low=Fraction(0),
        high=Fraction(1),
    )
    noisy = alone.cells(SILENT, rows, RISK)
    assert noisy.high[0] - noisy.low[0] < widths[1][0] / 10
