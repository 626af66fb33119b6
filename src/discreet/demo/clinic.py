"""A small clinic made on the spot: patients with several visits, wards, charges, and one very rich patient."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from discreet.noise import SeededBits, geometric, uniform_below

WARDS = ("cardiology", "maternity", "surgery", "oncology")
TYPES = {"patient": "int", "ward": "text", "age": "int", "charge": "float"}
RICH_PATIENT, RICH_CHARGE = 4242, 48_750


@dataclass(frozen=True, slots=True)
class Visit:
    """One row of the table."""

    patient: int
    ward: str
    age: int
    charge: int


def visits(patients: int = 2_000, seed: int = 7) -> list[Visit]:
    """The same clinic for the same seed: made-up people, so their data need no secure randomness."""
    bits = SeededBits(seed)
    rows = [Visit(RICH_PATIENT, "surgery", 61, RICH_CHARGE)]
    for patient in range(patients):
        age = 18 + uniform_below(70, bits=bits)
        for _ in range(1 + geometric("3/2", bits=bits)):
            ward = WARDS[uniform_below(len(WARDS), bits=bits)]
            rows.append(Visit(patient, ward, age, 80 + 10 * geometric(60, bits=bits)))
    return rows


def write(path: Path, rows: list[Visit]) -> None:
    """The clinic as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TYPES)
        writer.writerows((row.patient, row.ward, row.age, row.charge) for row in rows)
