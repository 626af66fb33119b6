"""Who is in a group, from its allele frequencies: 1000 Genomes, groups of 100 people, at most 5,000 sites.

For each super-population random groups of 100 are drawn; half of the others are the attacker's reference, a quarter set
the threshold, a quarter measure the false positives: nobody has two parts. Sites are a random choice of those whose
rarer allele has at least 5 % in the reference. Intervals are over groups, which are drawn from the same people.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from _claims import DATA, Claim, show
from numpy.typing import NDArray

from discreet.attacks import Comparison, genome, membership
from discreet.noise import Bits, SeededBits
from discreet.noise.experiment import shuffle_indices
from discreet.report.attack_finding import wilson_interval

GROUP, SITES, GROUPS, SEED = 100, 5_000, 10, 2026
RAREST, ANCESTRY = 0.05, 2
EPSILONS = (0.1, 1, 10, 100, 1_000)
TARGET = 0.9
HEART = (
    (0, 120),
    (0, 1),
    (1, 4),
    (80, 220),
    (100, 600),
    (0, 1),
    (0, 2),
    (60, 220),
    (0, 1),
    (0, 8),
    (1, 3),
    (0, 3),
    (3, 7),
)
Genotypes = NDArray[np.uint8]


def populations() -> dict[str, Genotypes]:
    folder = DATA / "genotypes_1kg"
    table = np.load(folder / "genotypes.npz")["genotypes"].T
    with (folder / "samples.csv").open() as file:
        labels = np.array([row["superpop"] for row in csv.DictReader(file)])
    return {name: table[labels == name] for name in ("EUR", "EAS", "SAS", "AFR", "AMR")}


@dataclass(frozen=True)
class Parts:
    """People who have nothing to do with each other, at the same sites."""

    group: Genotypes
    reference: Genotypes
    controls: Genotypes
    others: Genotypes


def drawn(people: Genotypes, sites: int, bits: Bits) -> Parts:
    order = shuffle_indices(len(people), bits=bits)
    rest = len(people) - GROUP
    ends = np.cumsum([GROUP, rest // 2, rest // 4])
    group, reference, controls, others = np.split(people[order], ends)
    share = (reference.sum(axis=0, dtype=np.int64) + 0.5) / (2 * len(reference) + 1)
    common = np.flatnonzero(np.minimum(share, 1 - share) >= RAREST)
    chosen = np.sort(common[shuffle_indices(len(common), bits=bits)[:sites]])
    return Parts(*(part[:, chosen] for part in (group, reference, controls, others)))


def attacked(parts: Parts, **other: Any) -> Any:
    candidates = np.concatenate([parts.group, parts.others])
    inside = np.arange(len(candidates)) < GROUP
    released = parts.group.mean(axis=0) / 2
    setting = {"n": GROUP, "members": inside, "controls": parts.controls, "ancestry": ANCESTRY} | other
    return genome(released, parts.reference, candidates, **setting)


def measured(values: list[float], people: int = GROUP) -> tuple[float, float, float]:
    """The mean over groups with an interval: over groups, or over people where groups agree by chance."""
    centre = float(np.mean(values))
    reach = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    _, low, high = wilson_interval(centre, people * len(values))
    return centre, max(0.0, min(centre - reach, low)), min(1.0, max(centre + reach, high))


def raw(people: dict[str, Genotypes]) -> None:
    """Power by population, and by the number of sites."""
    claims = []
    for name, table in people.items():
        for sites in (1_000, 2_000, SITES) if name == "EUR" else (SITES,):
            bits = SeededBits(SEED)
            found = [attacked(drawn(table, sites, bits)) for _ in range(GROUPS)]
            wrong = float(np.mean([f.false_positives for f in found]))
            guess = float(np.mean([f.predicted for f in found]))
            note = f"{wrong:.1%} of strangers accused, {guess:.1%} predicted, {found[0].effective:,.0f} effective sites"
            power = measured([f.success for f in found])
            least = TARGET if sites == SITES else None
            claims.append(Claim(f"{name}, {sites:,} sites", *power, least=least, note=note))
    show(f"Members of groups of {GROUP} accused at 5 % false positives, {GROUPS} groups", claims)


def without_ancestry(people: dict[str, Genotypes]) -> None:
    """The same without removing the main directions of ancestry: how much a mixed population hides."""
    claims = []
    for name, table in people.items():
        bits = SeededBits(SEED)
        power = measured([attacked(drawn(table, SITES, bits), ancestry=0).success for _ in range(GROUPS)])
        claims.append(Claim(name, *power))
    show(f"The same from {SITES:,} sites, main directions of ancestry not removed", claims)


def protected(table: Genotypes, law: str) -> None:
    """The same groups behind defences; every epsilon is for all frequencies together."""
    bits, found = SeededBits(SEED), []
    for _ in range(GROUPS):
        parts = drawn(table, SITES, bits)
        found.append(
            genome.compare(
                parts.group,
                parts.reference,
                parts.others,
                controls=parts.controls,
                epsilons=EPSILONS,
                law=law,  # type: ignore[arg-type]
                ancestry=ANCESTRY,
                repeats=1,  # every group has a draw of its own
                bits=bits,
            )
        )
    claims = [_row(found, trial.defence, trial.finding.bound) for trial in found[0]]
    show(f"EUR, {SITES:,} sites, {GROUPS} groups, private releases with {law} noise: most is the bound", claims)


def _row(found: list[Comparison], defence: str, bound: float | None) -> Claim:
    wrong = [comparison[defence].false_positives for comparison in found]  # type: ignore[attr-defined]
    power = measured([comparison[defence].success for comparison in found])
    return Claim(defence, *power, most=bound, note=f"{np.mean(wrong):.1%} of strangers accused")


def models() -> None:
    """Patients in the training data of a model: a tree, a pruned tree, private naive Bayes; features scaled to 0..1."""
    with (DATA / "heart_disease" / "processed_cleveland.csv").open() as file:
        rows = [row for row in csv.reader(file) if "?" not in row][1:]
    table = np.array(rows, dtype=np.float64)
    low, high = np.array(HEART).T  # public: what the questionnaire and the instruments allow
    features, labels = (table[:, :-1] - low) / (high - low), (table[:, -1] > 0).astype(np.int64)
    bits = SeededBits(SEED)
    found = [membership.compare(features, labels, bounds=(0, 1), bins=4, repeats=2, bits=bits) for _ in range(GROUPS)]
    claims = []
    for trial in found[0]:
        rates = measured([comparison[trial.defence].success for comparison in found], trial.finding.targets)
        power = np.mean([comparison[trial.defence].power[0.05] for comparison in found])  # type: ignore[attr-defined]
        note = f"{power:.1%} of members at 5 % false positives"
        claims.append(Claim(trial.defence, *rates, most=trial.finding.bound, note=note))
    show(f"Patients of {len(table)} told apart by whether a model was trained on them, {GROUPS} splits", claims)


def run() -> None:
    if not DATA.is_dir():
        print("The data are not here: nothing measured.")
        return
    people = populations()
    raw(people)
    without_ancestry(people)
    for law in ("laplace", "gaussian"):
        protected(people["EUR"], law)
    models()


if __name__ == "__main__":
    run()
