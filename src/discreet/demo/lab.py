"""Three attacks on what the town publishes, each on the raw release and on private ones.

Who is in the table that has no names; what everybody answered, from counts of subsets; whose genome is in a study, from
its averages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet import attacks
from discreet.demo.town import DIAGNOSES, PATIENTS, QUASI, hospital, register, town
from discreet.noise import Bits, SeededBits
from discreet.noise.experiment import shuffled, uniforms
from discreet.report.display import rate
from discreet.report.finding import Comparison, Finding

EPSILONS = ("0.1", "1", "3", "10")
BITS, SUBSETS, RUNS = 256, 4, 60
GROUP, SITES, KNOWN, STRANGERS = 100, 3_000, 400, 1_000
_SEED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """An attack to be shown.

    Attributes:
        name: for links.
        title: its heading.
        told: what is released, what the attacker does and what comes of it.
        finding: on the raw release, where it says more than the comparison.
        comparison: with defences.
    """

    name: str
    title: str
    told: str
    finding: Finding | None
    comparison: Comparison


def exhibits(*, bits: Bits | None = None) -> Iterator[Exhibit]:
    """The attacks, one after the other.

    Args:
        bits: the source of all noise; None is the secure one.
    """
    for show in SHOWN:
        yield show(bits)


def renamed(bits: Bits | None) -> Exhibit:
    """A table without names meets a register with names."""
    people = town()
    released, named = hospital(people), register(people)
    finding = attacks.linkage(released, named, on=QUASI, population=named, sensitive="diagnosis", truth="number")
    comparison = attacks.linkage.compare(
        released, named, on=QUASI, sensitive="diagnosis", truth="number", epsilons=EPSILONS, bits=bits
    )
    row, person = finding.recovered[0]
    told = (
        f"A hospital publishes {PATIENTS:,} made-up patients without their names: postcode, date of birth, sex and "
        f"diagnosis. A register of the town's {len(people):,} people has names beside the same three columns. Whoever "
        f"joins the two names {rate(finding.success)} of the patients, {named[person]['name']} for one, born on "
        f"{released[row]['birth']}: {released[row]['diagnosis']}. If counts with noise are published instead, looking "
        f"somebody up tells little more than the commonest of {len(DIAGNOSES)} diagnoses, which needs no table."
    )
    return Exhibit(name="renamed", title="Names come back", told=told, finding=finding, comparison=comparison)


def rebuilt(bits: Bits | None) -> Exhibit:
    """Counts of subsets give every answer away."""
    secret = shuffled(BITS, bits=SeededBits(_SEED)) % 2  # as many yes as no
    comparison = attacks.reconstruct.compare(secret, epsilons=EPSILONS, runs=RUNS, bits=bits)
    told = (
        f"{BITS} made-up people answered yes or no to a question that nobody likes to answer in public. Published are "
        f"{SUBSETS * BITS:,} counts: how many of some randomly chosen people said yes. No count names anybody, yet "
        f"together they are {SUBSETS * BITS:,} equations for {BITS} unknowns, and least squares solves them: "
        f"{rate(comparison.raw.success)} of the answers are rebuilt, and rounding the counts does not help. Noise that "
        "is paid for from one budget for all counts together does."
    )
    return Exhibit(
        name="rebuilt", title="Answers are rebuilt from counts", told=told, finding=None, comparison=comparison
    )


def traced(bits: Bits | None) -> Exhibit:
    """Averages of a study tell who took part."""
    made = SeededBits(_SEED)
    shares = 0.05 + 0.9 * uniforms(SITES, bits=made)
    comparison = attacks.genome.compare(
        _genomes(GROUP, shares, made),
        _genomes(KNOWN, shares, made),
        _genomes(STRANGERS, shares, made),
        epsilons=[float(epsilon) for epsilon in EPSILONS],
        bits=bits,
    )
    told = (
        f"A study of a disease publishes, for each of {SITES:,} places in the genome, how frequent a variant is among "
        f"its {GROUP} made-up participants. Somebody who has a person's genome asks whether it is a little closer to "
        f"these averages than chance would have it. At a price of 5 false accusations among 100 strangers, "
        f"{rate(comparison.raw.success)} of the participants are recognised, and with them their disease. Private "
        "averages leave the accuser with not much more than the false accusations."
    )
    return Exhibit(
        name="traced", title="Participants are recognised in averages", told=told, finding=None, comparison=comparison
    )


SHOWN: tuple[Callable[[Bits | None], Exhibit], ...] = (renamed, rebuilt, traced)


def _genomes(people: int, shares: NDArray[np.float64], bits: Bits) -> NDArray[np.int64]:
    """Two copies of every place, each with the variant by its share."""
    copies = uniforms((2, people, len(shares)), bits=bits) < shares
    return np.asarray(copies.sum(axis=0))
