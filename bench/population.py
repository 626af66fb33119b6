"""Intervals for a population: how often they hold it, and how wide they are beside those of a survey without privacy.

People of a known population are drawn again and again, simply or in strata, each with one row or with several. An
answer with `interval="population"` is judged by the population. The ideal is the estimator of a survey that may look
at its rows: 1.96 standard errors by the variance of the people's own sums in the sample, which has no noise.

    python bench/population.py [SAMPLES]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet
from discreet.engines import DuckDB
from discreet.lazy import pa
from discreet.noise import SeededBits

SAMPLES, EPSILON = 300, 1
PEOPLE, DRAWN = 20_000, 1_000
BOUNDS = {"age": (0, 100), "ill": (0, 1), "cost": (0, 50)}
TYPES = {"person": "int", "ward": "text", "age": "int", "ill": "int", "cost": "float"}
NUMBERS = "COUNT(*) AS n, SUM(cost) AS paid, AVG(age) AS age, AVG(ill) AS share, AVG(age) - AVG(cost) AS apart"
Floats = NDArray[np.float64]


@dataclass
class Population:
    """Rows of people; `person` says whose each is."""

    columns: Mapping[str, NDArray[Any]]
    ward: NDArray[Any]

    def truth(self, rows: NDArray[np.bool_]) -> dict[str, float]:
        """Returns the numbers of some rows."""
        age, ill, cost = (self.columns[name][rows] for name in ("age", "ill", "cost"))
        means = float(age.mean()), float(ill.mean()), float(cost.mean())
        named = {"age": means[0], "share": means[1], "apart": means[0] - means[2]}
        return {"n": float(len(age)), "paid": float(cost.sum()), **named}


def population(most: int, seed: int) -> Population:
    """Returns people of two wards, whose rows are alike."""
    bits = np.random.default_rng(seed)
    ward = np.where(bits.random(PEOPLE) < 0.25, "B", "A")
    count = bits.integers(0, most + 1, PEOPLE) if most > 1 else np.ones(PEOPLE, dtype=int)
    person = np.repeat(np.arange(PEOPLE), count)
    old, sick = bits.beta(np.where(ward == "A", 2, 5), 3) * 100, bits.random(PEOPLE) < np.where(ward == "A", 0.02, 0.1)
    age = np.clip(np.rint(old[person] + bits.normal(0, 3, len(person))), 0, 100).astype(int)
    cost = np.round(np.minimum(bits.exponential(8, len(person)), 50), 2)
    columns = {"person": person, "ward": ward[person], "age": age, "ill": sick[person].astype(int), "cost": cost}
    return Population(columns, ward)


@dataclass
class Score:
    """How often an interval held the truth, and how wide it was beside the ideal one."""

    judged: int = 0
    held: int = 0
    ratios: list[float] = field(default_factory=list)

    def add(self, holds: bool, ratio: float) -> None:
        """Counts one more."""
        self.judged, self.held = self.judged + 1, self.held + holds
        self.ratios.append(ratio)

    def __str__(self) -> str:
        return f"{self.held / self.judged:7.1%}  {np.median(self.ratios):6.2f}"


def survey(made: Population, sizes: Mapping[str, int] | int, *, most: int, more: str, samples: int) -> dict[str, Score]:
    """Asks each of many samples."""
    scores: dict[str, Score] = {}
    by_ward = isinstance(sizes, Mapping)
    sql = f"SELECT {'ward, ' if by_ward else ''}{NUMBERS}{more} FROM visits{' GROUP BY ward' if by_ward else ''}"
    for seed in range(samples):
        drawn = draw(made.ward, sizes, seed)
        rows = drawn[made.columns["person"]]
        answer = held(made, rows, sizes, most, seed).ask(sql, epsilon=EPSILON, interval="population")
        for record in answer:
            ward = record.get("ward", "")
            whole = made.columns["ward"] == ward if ward else np.ones(len(rows), dtype=bool)
            frame = made.ward == ward if ward else np.ones(PEOPLE, dtype=bool)
            true, ideal = made.truth(whole), ideals(made, rows & whole, frame, drawn & frame)
            for name, number in true.items():
                low, high = record[f"{name}_low"], record[f"{name}_high"]
                found = scores.setdefault(f"{name} {ward}".strip(), Score())
                found.add(low <= number <= high, (high - low) / ideal[name] if ideal[name] else math.nan)
    return scores


def draw(ward: NDArray[Any], sizes: Mapping[str, int] | int, seed: int) -> NDArray[np.bool_]:
    """Returns who is drawn."""
    bits = np.random.default_rng(10_000 + seed)
    found = np.zeros(PEOPLE, dtype=bool)
    parts = {"": sizes} if isinstance(sizes, int) else sizes
    for name, size in parts.items():
        frame = np.flatnonzero(ward == name) if name else np.arange(PEOPLE)
        found[bits.choice(frame, size, replace=False)] = True
    return found


def held(
    made: Population, rows: NDArray[np.bool_], sizes: Mapping[str, int] | int, most: int, seed: int
) -> discreet.Curator:
    """Returns a curator of a sample."""
    curator = discreet.Curator.for_tests(engine=DuckDB(), bits=SeededBits(seed))
    wards = {name: int(np.sum(made.ward == name)) for name in ("A", "B")}
    sample = (
        discreet.Sample(population=PEOPLE, size=sizes)
        if isinstance(sizes, int)
        else discreet.Sample(population=wards, size=dict(sizes), by="ward")
    )
    declared: dict[str, Any] = {"bounds": BOUNDS, "keys": {"ward": ["A", "B"]}, "sample_of": sample}
    if most > 1:
        declared |= {"unit": "person", "max_rows": most}
    table = pa.table({name: column[rows] for name, column in made.columns.items()})
    curator.protect(table, name="visits", budget=discreet.Budget(epsilon=10), **declared)
    return curator


def ideals(
    made: Population, rows: NDArray[np.bool_], frame: NDArray[np.bool_], drawn: NDArray[np.bool_]
) -> dict[str, float]:
    """Returns the widths of intervals of a survey without privacy: of totals, and of means by linearisation."""
    population, size = int(frame.sum()), int(drawn.sum())
    whose = made.columns["person"][rows]

    def spread(values: Floats) -> float:
        parts = np.bincount(whose, values, minlength=PEOPLE)[drawn]
        return math.sqrt(size * (1 - size / population) * float(np.var(parts, ddof=1)))

    age, ill, cost = (made.columns[name][rows].astype(float) for name in ("age", "ill", "cost"))
    count, twice = len(age), 2 * 1.96
    parts = {"age": age - age.mean(), "share": ill - ill.mean(), "apart": age - cost - (age - cost).mean()}
    found = {name: twice * spread(values) / count for name, values in parts.items()}
    totals = {"n": np.ones(count), "paid": cost}
    return found | {name: twice * spread(values) * population / size for name, values in totals.items()}


def main(arguments: Sequence[str]) -> None:
    """Prints coverage and the ratio of widths for every design."""
    samples = int(arguments[0]) if arguments else SAMPLES
    spreads = ", STDDEV(age) AS s1, STDDEV(cost) AS s2, STDDEV(ill) AS s3"
    one, several, strata = population(1, 1), population(4, 2), {"A": 500, "B": 500}
    print(f"{samples} samples of {DRAWN:,} of {PEOPLE:,} people, epsilon {EPSILON}, 95 % intervals")
    for title, made, sizes, most, more in (
        ("simple, a row each", one, DRAWN, 1, ""),
        ("simple, a row each, with released variances", one, DRAWN, 1, spreads),
        ("simple, up to 4 rows each", several, DRAWN, 4, ""),
        ("strata, a row each", one, strata, 1, ""),
        ("strata, up to 4 rows each", several, strata, 4, ""),
    ):
        print(f"\n{title:46}{'held':>7}  width / ideal")
        for name, found in survey(made, sizes, most=most, more=more, samples=samples).items():
            print(f"  {name:44}{found}")


if __name__ == "__main__":
    main(sys.argv[1:])
