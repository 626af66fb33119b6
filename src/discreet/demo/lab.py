"""The lab: attacks on what a small town publishes, each on the raw release and on private ones, and their page.

The town is made on the spot: a register with names, and a hospital's table from which the names were removed. All its
people are synthetic, so that the same seed may give the same town and a report may name those who were found. The page
is for readers who have never heard of epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet import attacks
from discreet.dataclass import dataclass
from discreet.noise import Bits, SeededBits, uniform_below
from discreet.noise.experiment import shuffle_indices, uniforms
from discreet.report import page
from discreet.report.attack_finding import EPSILON, Comparison, Finding, comparison_section, finding_section
from discreet.report.display import rate
from discreet.report.html import Html

FILE, REPORT = "lab.html", "report.html"
PEOPLE, PATIENTS = 6_000, 1_500
EPSILONS = ("0.1", "1", "3", "10")
BITS, SUBSETS, RUNS = 256, 4, 60
GROUP, SITES, KNOWN, STRANGERS = 100, 3_000, 400, 1_000
_SEED = 5
QUASI = ("postcode", "birth", "sex")
DIAGNOSES = {"hypertension": 40, "diabetes": 25, "asthma": 20, "depression": 10, "epilepsy": 5}  # shares of 100

_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jana", "Kai", "Lea", "Max", "Nora")
_STARTS = ("Al", "Ber", "Cas", "Dor", "El", "Fal", "Gar", "Hol", "Is", "Jor", "Kel", "Lin", "Mar", "Nor")
_ENDS = ("berg", "croft", "dale", "feld", "gate", "ham", "kamp", "ley", "man", "ness", "rup", "sen", "ton", "wood")
_POSTCODES = tuple(f"{number:05}" for number in range(20410, 20420))
_OLDEST, _DAYS = date(1936, 1, 1), 80 * 365
_READING = {
    "How to read the charts": (
        "Every dot is a private release that was really made and attacked. The line through it is the 95 % interval of "
        "the rate. The dashed curve is the most that any attacker could reach against this epsilon. The dotted lines "
        "show releases without a guarantee, and a guess."
    ),
    "What epsilon means": EPSILON,
}


@dataclass(frozen=True, slots=True)
class RegisteredPerson:
    """One line of the register, and what only the hospital knows."""

    number: int
    name: str
    postcode: str
    birth: date
    sex: str
    diagnosis: str


def town(people: int = PEOPLE, seed: int = 11) -> list[RegisteredPerson]:
    """Returns the people of the town: the same for the same seed."""
    bits = SeededBits(seed)
    return [_person(number, bits) for number in range(people)]


def register(people: Sequence[RegisteredPerson]) -> list[dict[str, str]]:
    """Returns what anyone can buy: names with addresses and dates of birth. The number only keeps score."""
    return [_person_row(person) | {"name": person.name} for person in people]


def hospital(people: Sequence[RegisteredPerson], patients: int = PATIENTS) -> list[dict[str, str]]:
    """Returns what the hospital calls anonymous: everything but the name. The number only keeps score."""
    return [_person_row(person) | {"diagnosis": person.diagnosis} for person in people[:patients]]


def _person_row(person: RegisteredPerson) -> dict[str, str]:
    return {
        "number": str(person.number),
        "postcode": person.postcode,
        "birth": person.birth.isoformat(),
        "sex": person.sex,
    }


def _person(number: int, bits: SeededBits) -> RegisteredPerson:
    name = f"{_one(_FIRST, bits)} {_one(_STARTS, bits)}{_one(_ENDS, bits)}"
    birth = _OLDEST + timedelta(days=uniform_below(_DAYS, bits=bits))
    return RegisteredPerson(number, name, _one(_POSTCODES, bits), birth, _one("FM", bits), _diagnosis(bits))


def _one(choices: Sequence[str], bits: SeededBits) -> str:
    return choices[uniform_below(len(choices), bits=bits)]


def _diagnosis(bits: SeededBits) -> str:
    drawn = uniform_below(100, bits=bits)
    for name, share in DIAGNOSES.items():
        if drawn < share:
            return name
        drawn -= share
    return name


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
    """Yields the attacks, one after the other.

    Args:
        bits: the source of all noise; None is the secure one.
    """
    for show in SHOWN:
        yield show(bits)


def link_names(bits: Bits | None) -> Exhibit:
    """Returns the attack that links a table without names with a register that has them."""
    people = town()
    released, named = hospital(people), register(people)
    finding = attacks.linkage(released, named, on=QUASI, population=named, sensitive="diagnosis", truth="number")
    comparison = attacks.linkage.compare(
        released, named, on=QUASI, sensitive="diagnosis", truth="number", epsilons=EPSILONS, bits=bits
    )
    row, person = finding.recovered[0]
    told = (
        f"A hospital publishes {PATIENTS:,} synthetic patients without their names: postcode, date of birth, sex and "
        f"diagnosis. A register of the town's {len(people):,} people has names and the first three columns. By joining "
        f"the two, an attacker names {rate(finding.success)} of the patients. One is {named[person]['name']}, born on "
        f"{released[row]['birth']}: {released[row]['diagnosis']}. If the hospital publishes counts with noise instead, "
        f"an attacker learns little more than the most common of {len(DIAGNOSES)} diagnoses, which needs no table."
    )
    return Exhibit(name="renamed", title="Names come back", told=told, finding=finding, comparison=comparison)


def rebuild_answers(bits: Bits | None) -> Exhibit:
    """Returns the attack that rebuilds every answer from counts of subsets."""
    secret = shuffle_indices(BITS, bits=SeededBits(_SEED)) % 2  # as many yes as no
    comparison = attacks.reconstruct.compare(secret, epsilons=EPSILONS, runs=RUNS, bits=bits)
    told = (
        f"{BITS} synthetic people answered yes or no to an embarrassing question. The release has {SUBSETS * BITS:,} "
        "counts: how many of some randomly chosen people said yes. No count has a name in it. But together they are "
        f"{SUBSETS * BITS:,} equations for {BITS} unknowns, and least squares solves them. It rebuilds "
        f"{rate(comparison.raw.success)} of the answers. Rounding the counts does not help. Noise helps, if one budget "
        "pays for all counts together."
    )
    return Exhibit(
        name="rebuilt", title="Answers are rebuilt from counts", told=told, finding=None, comparison=comparison
    )


def trace_participants(bits: Bits | None) -> Exhibit:
    """Returns the attack that recognises participants of a study in its averages."""
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
        f"A study of a disease has {GROUP} synthetic participants. For each of {SITES:,} places in the genome it "
        "publishes how frequent a variant is among them. An attacker who has a person's genome tests whether it is "
        "closer to these averages than chance allows. With 5 false accusations among 100 strangers, the attacker "
        f"recognises {rate(comparison.raw.success)} of the participants, and so their disease. With private averages "
        "the attacker accuses participants hardly more often than strangers."
    )
    return Exhibit(
        name="traced", title="Participants are recognised in averages", told=told, finding=None, comparison=comparison
    )


SHOWN: tuple[Callable[[Bits | None], Exhibit], ...] = (link_names, rebuild_answers, trace_participants)


def _genomes(people: int, shares: NDArray[np.float64], bits: Bits) -> NDArray[np.int64]:
    """Returns two copies of every place, each with the variant by its share."""
    copies = uniforms((2, people, len(shares)), bits=bits) < shares
    return np.asarray(copies.sum(axis=0))


def write_lab(exhibits: Sequence[Exhibit], folder: Path) -> Path:
    """Writes the page, over an older one, and says where it is.

    Raises:
        MissingExtra: if charts cannot be drawn; nothing is written.
    """
    text = lab_page(exhibits)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(text, encoding="utf-8")
    return path


def lab_page(exhibits: Sequence[Exhibit]) -> str:
    """Returns the whole page."""
    lead = (
        "This page shows three releases about synthetic people, without names, and what an attacker learns from them. "
        "Next to each is the same release with noise from differential privacy."
    )
    contents = {one.name: one.title for one in exhibits} | {"reading": "How to read this"}
    sections = [page.section(one.name, one.title, *_render_exhibit(one)) for one in exhibits]
    words = [
        page.section(name.lower().replace(" ", "-"), name, page.paragraph(text), level=3)
        for name, text in _READING.items()
    ]
    back = page.paragraph(page.link("The story of the clinic", REPORT))
    reading = page.section("reading", contents["reading"], *words)
    return page.document("What releases give away", *sections, reading, back, lead=lead, contents=contents)


def _render_exhibit(exhibit: Exhibit) -> list[Html]:
    told = page.paragraph(exhibit.told)
    if exhibit.finding is None:
        return comparison_section(exhibit.comparison, told)
    return [*finding_section(exhibit.finding, told), *comparison_section(exhibit.comparison)]
