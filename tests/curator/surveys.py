"""Surveys of a known population: people are drawn, a curator holds them, and intervals meet the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from discreet.curator import Curator
from discreet.dataclass import dataclass
from discreet.engines import Memory
from discreet.noise import SeededBits, uniform_below
from discreet.plan.model.sample import Sample
from discreet.privacy import Budget

Row = dict[str, Any]
Person = list[Row]

TYPES = {"person": "int", "ward": "text", "age": "int", "ill": "int", "cost": "float"}
BOUNDS = {"age": (0, 100), "ill": (0, 1), "cost": (0, 50)}

SQL = (
    "SELECT COUNT(*) FILTER (WHERE age >= 60) AS old, SUM(cost) AS paid, AVG(age) AS age, AVG(ill) AS share, "
    "AVG(cost) - AVG(ill) AS apart FROM visits"
)
QUANTILES = (
    "SELECT MEDIAN(age) AS middle, COUNT(age) AS n, QUANTILE(age, 0.38) AS low, QUANTILE(age, 0.62) AS high FROM visits"
)
BY_WARD = (
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS paid, AVG(age) AS age, AVG(ill) AS share, AVG(age) - AVG(cost) AS gap "
    "FROM visits GROUP BY ward"
)
ADDED_UP = (
    "SELECT SUM(n) AS n, SUM(paid) AS paid, SUM(paid) / SUM(n) AS each FROM "
    "(SELECT ward, COUNT(*) AS n, SUM(cost) AS paid FROM visits GROUP BY ward)"
)


def uniform(size: int, bits: SeededBits) -> list[float]:
    """Numbers between 0 and 1."""
    return list((uniform_below(1 << 52, size, bits=bits) / 2.0**52).tolist())


def drawn(people: Sequence[Person], size: int, bits: SeededBits) -> list[Person]:
    """A simple random sample."""
    keys = uniform(len(people), bits)
    return [people[place] for place in sorted(range(len(people)), key=keys.__getitem__)[:size]]


def population(size: int, *, most: int = 1, seed: int = 1) -> list[Person]:
    """People of two wards, with up to `most` rows each, which are alike."""
    bits = SeededBits(seed)
    parts = [uniform(size, bits) for _ in range(4 + 2 * most)]
    return [_person(number, [part[number] for part in parts], most) for number in range(size)]


def _person(number: int, u: list[float], most: int) -> Person:
    ward = "B" if u[0] < 0.25 else "A"
    age, ill = 100 * u[1] ** (2 if ward == "A" else 0.5), int(u[2] < (0.02 if ward == "A" else 0.1))
    count = int(u[3] * (most + 1)) if most > 1 else 1
    return [
        {
            "person": number,
            "ward": ward,
            "age": min(max(round(age + 6 * u[4 + row] - 3), 0), 100),
            "ill": ill,
            "cost": round(min(-8 * math.log(1 - u[4 + most + row]), 50), 2),
        }
        for row in range(count)
    ]


@dataclass(frozen=True)
class Survey:
    """A population, and how many of it are drawn: of everyone, or of each ward.

    Args:
        people: all of them.
        wards: the ward of each, also of those without rows.
        sizes: how many are drawn.
        most: how many rows one of them has at most.
    """

    people: list[Person]
    sizes: int | Mapping[str, int]
    most: int = 1

    @cached_property
    def wards(self) -> dict[str, list[Person]]:
        found: dict[str, list[Person]] = {"A": [], "B": []}
        for place, person in enumerate(self.people):
            found[person[0]["ward"] if person else "AB"[place % 2]].append(person)
        return found

    @property
    def sample(self) -> Sample:
        if isinstance(self.sizes, int):
            return Sample(population=len(self.people), size=self.sizes)
        numbers = {ward: len(people) for ward, people in self.wards.items()}
        return Sample(population=numbers, size=dict(self.sizes), by="ward")

    def draw(self, seed: int) -> list[Row]:
        bits = SeededBits(1_000_000 + seed)
        if isinstance(self.sizes, int):
            people = drawn(self.people, self.sizes, bits)
        else:
            people = [one for ward, size in self.sizes.items() for one in drawn(self.wards[ward], size, bits)]
        return [row for person in people for row in person]

    def curator(self, rows: Iterable[Row], seed: int, **declared: Any) -> Curator:
        curator = Curator.for_tests(engine=Memory(), bits=SeededBits(seed))
        given: dict[str, Any] = {"types": TYPES, "bounds": BOUNDS, "keys": {"ward": ["A", "B"]}}
        given |= {"budget": Budget(epsilon=1000), "sample_of": self.sample, **declared}
        if self.most > 1:
            given |= {"unit": "person", "max_rows": self.most, "max_groups": 1}
        curator.protect(list(rows), name="visits", **given)
        return curator

    def truth(self, sql: str) -> dict[str, Row]:
        """The numbers of the population, by ward; those of everyone have the ward ""."""
        rows = [row for person in self.people for row in person]
        if "GROUP BY ward" not in sql or sql is ADDED_UP:
            return {"": _numbers(rows)}
        return {ward: _numbers([row for row in rows if row["ward"] == ward]) for ward in "AB"}


def _numbers(rows: list[Row]) -> Row:
    ages = sorted(row["age"] for row in rows)
    n, paid = len(rows), sum(row["cost"] for row in rows)
    age, share, cost = (sum(row[name] for row in rows) / n for name in ("age", "ill", "cost"))
    return {
        "n": n,
        "old": sum(row["age"] >= 60 for row in rows),
        "paid": paid,
        "age": age,
        "share": share,
        "apart": cost - share,
        "gap": age - cost,
        "middle": ages[n // 2],
        "each": paid / n,
    }


@dataclass
class Score:
    """How often intervals held the truth, and how wide they were."""

    held: int = 0
    judged: int = 0
    width: float = 0.0

    @property
    def coverage(self) -> float:
        return self.held / self.judged


def score(
    survey: Survey, sql: str, *, samples: int, interval: str = "population", epsilon: float = 1, first: int = 0
) -> dict[str, Score]:
    """Asks each of many samples; numbers without sampling error are scaled to the population."""
    scores: dict[str, Score] = {}
    truth = survey.truth(sql)
    for seed in range(first, first + samples):
        answer = survey.curator(survey.draw(seed), seed).ask(sql, epsilon=epsilon, interval=interval)
        for record in answer:
            true = truth[record.get("ward", "")]
            for name in record.keys() & true.keys():
                low, high = record[f"{name}_low"], record[f"{name}_high"]
                found = scores.setdefault(f"{name} {record.get('ward', '')}".strip(), Score())
                found.held += low <= true[name] <= high
                found.judged += 1
                found.width += high - low
    return scores
