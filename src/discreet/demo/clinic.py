"""A small clinic made on the spot: patients with several visits, wards, diagnoses, charges, and one very rich patient.

All of its patients are synthetic, so that the same seed may give the same clinic and a report may say what is true.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import accumulate
from pathlib import Path

from discreet.dataclass import dataclass
from discreet.noise import SeededBits, geometric, uniform_below

PATIENTS = 4_000
WARDS = ("cardiology", "maternity", "surgery", "oncology")
TYPES = {"patient": "int", "ward": "text", "diagnosis": "text", "age": "int", "days": "int", "charge": "float"}
RICH_PATIENT, RICH_WARD, RICH_CHARGE = 4242, "surgery", 48_750
HIGHEST_CHARGE, MOST_DAYS = 2_000, 10  # of all other patients, and the public bounds
MOST_VISITS = 3  # of one patient

_BY_DAY = {"cardiology": 150, "maternity": 90, "surgery": 210, "oncology": 180}
_DIAGNOSES = {  # name: share, in thousandths
    "hypertension": 240,
    "diabetes": 190,
    "fracture": 150,
    "asthma": 120,
    "anaemia": 100,
    "arthritis": 80,
    "hernia": 60,
    "pneumonia": 40,
    "gallstones": 17,
    "porphyria": 2,
    "kuru": 1,
}


@dataclass(frozen=True, slots=True)
class Visit:
    """One row of the table."""

    patient: int
    ward: str
    diagnosis: str
    age: int
    days: int
    charge: int


def visits(patients: int = PATIENTS, seed: int = 7) -> list[Visit]:
    """Returns the clinic: the same for the same seed."""
    bits = SeededBits(seed)
    rows = [Visit(RICH_PATIENT, RICH_WARD, "fracture", 61, 9, RICH_CHARGE)]
    for patient in range(patients):
        rows += _stay(patient, bits)
    return rows


def without(rows: Sequence[Visit], patient: int) -> list[Visit]:
    """Returns the clinic after one patient took their data away."""
    return [row for row in rows if row.patient != patient]


def write(path: Path, rows: Sequence[Visit]) -> None:
    """Writes the clinic as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TYPES)
        writer.writerows(astuple(row) for row in rows)


def _stay(patient: int, bits: SeededBits) -> Iterator[Visit]:
    """Yields one or two visits to one ward and, now and then, one to another.

    Within the limits that the steward declares.
    """
    age = 18 + uniform_below(70, bits=bits)
    home = uniform_below(len(WARDS), bits=bits)
    for _ in range(1 + uniform_below(2, bits=bits)):
        yield _visit(patient, WARDS[home], age, bits)
    if uniform_below(3, bits=bits) == 0:
        yield _visit(patient, WARDS[(home + 1) % len(WARDS)], age, bits)


def _visit(patient: int, ward: str, age: int, bits: SeededBits) -> Visit:
    days = min(1 + geometric(2, bits=bits), MOST_DAYS)
    charge = min(_BY_DAY[ward] * days + 10 * geometric(20, bits=bits), HIGHEST_CHARGE)
    return Visit(patient, ward, _diagnosis(bits), age, days, charge)


def _diagnosis(bits: SeededBits) -> str:
    bounds = list(accumulate(_DIAGNOSES.values()))
    drawn = uniform_below(bounds[-1], bits=bits)
    return next(name for name, bound in zip(_DIAGNOSES, bounds, strict=True) if drawn < bound)
