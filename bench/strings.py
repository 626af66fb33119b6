"""Names that many people have: how many are found, by each rule, and by a question to a curator.

One person is one name: the babies of a year in `../shared/data/baby_names` (made-up names without it). Three rules have
the same budget: the threshold on counts with Laplace noise that others use, the same with noise that is cut at the
threshold, and the optimal rule, which gives no counts. The optimal rule keeps a name with the largest probability that
(epsilon, delta)-DP allows, so that no rule finds more on average, and the ratio of its names to those of the Laplace
threshold is what there is to gain: it depends on how many names have between 109 and 133 people, and differs from
year to year. Rules are averaged over 20 draws of their noise.

People with several words each are made up: there, the weighted selection spreads the weight of a person over them.

    python bench/strings.py
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from _claims import DATA, Claim, show

from discreet import Budget, Curator
from discreet.mechanisms import PartitionSelection, WeightedSelection

DELTA = "1e-6"
YEAR, OTHERS = 2000, (1880, 1920, 1960, 2008, 2016)
DRAWS, ASKED = 20, 12
FILE = DATA / "baby_names" / "ssa_baby_names.parquet"


@dataclass(frozen=True)
class Names:
    """Names, and how many people have each."""

    label: str
    names: list[str]
    counts: np.ndarray

    @property
    def people(self) -> pa.Table:
        places = np.repeat(np.arange(len(self.names)), self.counts)
        return pa.table({"name": pa.array(self.names).take(pa.array(places))})


def of_year(year: int) -> Names:
    if not FILE.exists():
        return made_up(year)
    sql = f"SELECT name, SUM(count)::BIGINT FROM '{FILE}' WHERE year = ? GROUP BY name ORDER BY name"
    names, counts = zip(*duckdb.execute(sql, [year]).fetchall(), strict=True)
    return Names(f"babies of {year}", list(names), np.array(counts))


def made_up(seed: int) -> Names:
    """30,000 names as frequent as 1 / rank^1.35, of two million people."""
    chances = 1 / np.arange(1, 30_001) ** 1.35
    counts = np.random.default_rng(seed).multinomial(2_000_000, chances / chances.sum())
    return Names(f"made-up names {seed}", [f"name {i:05}" for i in range(30_000)], counts)


def found(names: Names, epsilon: str, method: str) -> float:
    rule = PartitionSelection(epsilon=epsilon, delta=DELTA, method=method)
    return float(np.mean([rule.select(names.counts).sum() for _ in range(DRAWS)]))


def asked(names: Names, epsilon: str, sql: str) -> tuple[float, float]:
    """How many names a question shows, and which share of those of more than twice the threshold."""
    threshold = PartitionSelection(epsilon=epsilon, delta=DELTA, method="laplace").threshold
    common = {name for name, count in zip(names.names, names.counts, strict=True) if count > 2 * threshold}
    sizes, shares = [], []
    for _ in range(ASKED):
        with Curator(":memory:") as curator:
            curator.protect(names.people, name="people", budget=Budget(epsilon=1, delta="1e-3"))
            shown = {record["name"] for record in curator.ask(sql, epsilon=epsilon, delta=DELTA).records}
        sizes.append(len(shown))
        shares.append(len(shown & common) / len(common))
    return float(np.mean(sizes)), float(np.mean(shares))


COUNTED = "SELECT name, COUNT(*) AS n FROM people GROUP BY name"
ALONE = "SELECT name FROM people GROUP BY name"


def one_name_each() -> list[Claim]:
    names = of_year(YEAR)
    note = f"{len(names.names):,} names of {names.counts.sum():,} people"
    what = f"{names.label}, epsilon 1: of the common names, by question"
    claims = [Claim(what, asked(names, "1", COUNTED)[1], least=0.95, note=note)]
    whole = found(names, "0.1", "laplace")
    for what, number in (
        ("cut Laplace noise", found(names, "0.1", "truncated")),
        ("optimal rule", found(names, "0.1", "optimal")),
        ("SELECT name, COUNT(*)", asked(names, "0.1", COUNTED)[0]),
        ("SELECT name", asked(names, "0.1", ALONE)[0]),
    ):
        text = f"{number:,.0f} names, {whole:,.0f} by the Laplace threshold"
        claims.append(Claim(f"epsilon 0.1: more names by {what}", number / whole - 1, least=0.15, note=text))
    return claims


def other_years() -> list[Claim]:
    claims = []
    for names in map(of_year, OTHERS):
        whole, best = (found(names, "0.1", method) for method in ("laplace", "optimal"))
        text = f"{best:,.0f} and {whole:,.0f} names; no rule finds more"
        claims.append(Claim(f"{names.label}: more names by the optimal rule", best / whole - 1, note=text))
    return claims


def several_words_each() -> list[Claim]:
    """50,000 people of 1 to 10 words, geometric, words as frequent as 1 / rank^1.05."""
    source = np.random.default_rng(5)
    chances = 1 / np.arange(1, 100_001) ** 1.05
    words = source.choice(100_000, p=chances / chances.sum(), size=(50_000, 10))
    sizes = np.minimum(source.geometric(0.15, 50_000), 10)
    people = [sorted(set(row[:size].tolist())) for row, size in zip(words, sizes, strict=True)]
    counts = np.bincount([word for own in people for word in own], minlength=100_000)
    best = PartitionSelection(epsilon=1, delta=DELTA, max_groups=10).select(counts).sum()
    claims = []
    for rounds in (1, 2, 3):
        number = len(WeightedSelection(epsilon=1, delta=DELTA, max_groups=10, rounds=rounds).release(people))
        text = f"{number:,} and {best:,} words"
        what = f"several words, epsilon 1: weighted, {rounds} rounds / optimal rule"
        claims.append(Claim(what, number / best, least=1.5, unit="x", note=text))
    number = words_asked(people)
    text = f"{number:,} and {best:,} words"
    claims.append(
        Claim("several words, epsilon 1: SELECT word / optimal rule", number / best, least=1.5, unit="x", note=text)
    )
    return claims


def words_asked(people: list[list[int]]) -> int:
    """How many words a question shows, of people who may have ten of them."""
    rows = [(person, f"word {word}") for person, own in enumerate(people) for word in own]
    ids, words = zip(*rows, strict=True)
    with Curator(":memory:") as curator:
        table = pa.table({"person": ids, "word": words})
        curator.protect(table, name="notes", unit="person", max_groups=10, budget=Budget(epsilon=2, delta="1e-3"))
        return len(curator.ask("SELECT word FROM notes GROUP BY word", epsilon=1, delta=DELTA))


def main() -> None:
    show("Names and words that are found, delta 1e-6", [*one_name_each(), *other_years(), *several_words_each()])


if __name__ == "__main__":
    main()
