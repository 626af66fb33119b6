"""A small clinic, generated from seeded bits: patients with a few visits each, one of them very rich."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from discreet.noise import SeededBits, uniform_below
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours

TYPES = {"patient": Type.INT, "ward": Type.TEXT, "age": Type.INT, "charge": Type.FLOAT, "kind": Type.TEXT}
DECLARED: dict[str, Any] = {
    "types": {name: kind.value for name, kind in TYPES.items()},
    "bounds": {"age": (0, 120), "charge": (0, 1000)},
    "keys": {"ward": ["A", "B", "C"]},
}
KINDS = ("check", "fever", "fracture", "other")

Row = dict[str, Any]


def visits(seed: int, patients: int = 12, most: int = 4) -> list[Row]:
    """Rows of so many patients; missing and absurd values included."""
    return [dict(row) for row in _visits(seed, patients, most)]  # everybody may change their own


@lru_cache(maxsize=4096)
def _visits(seed: int, patients: int, most: int) -> list[Row]:
    bits = SeededBits(seed)
    counts = [1 + uniform_below(most, bits=bits) for _ in range(patients)]
    return [visit(patient, bits) for patient, count in enumerate(counts) for _ in range(count)]


def visit(patient: int, bits: SeededBits) -> Row:
    """One visit."""
    charge = [None, 5.0e9, -3.0, 12.5, 250.0, float("nan"), 999.0][uniform_below(7, bits=bits)]
    return {
        "patient": patient,
        "ward": ["A", "B", "C", "D", None][uniform_below(5, bits=bits)],
        "age": [None, 5, 44, 67, 300][uniform_below(5, bits=bits)],
        "charge": charge,
        "kind": KINDS[uniform_below(4, bits=bits)],
    }


def neighbour(rows: Sequence[Row], seed: int, who: int, neighbours: Neighbours) -> list[Row]:
    """The rows without a patient, or with other rows of the same patient: those of a stranger, by the next seed."""
    other = [row for row in rows if row["patient"] != who]
    if neighbours is Neighbours.REPLACE:
        other += [{**row, "patient": who} for row in visits(seed + 1) if row["patient"] == 0]
    return other
