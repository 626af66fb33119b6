"""Two protected tables about the same people, one about other people, rows without ids, and a public table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.noise import SeededBits, uniform_below
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours

Row = dict[str, Any]
Data = dict[str, list[Row]]

TYPES: Mapping[str, Mapping[str, Type]] = {
    "visits": {"patient": Type.TEXT, "ward": Type.TEXT, "age": Type.INT, "charge": Type.FLOAT, "day": Type.DATE},
    "labs": {"person": Type.TEXT, "test": Type.TEXT, "result": Type.FLOAT},
    "staff": {"id": Type.INT, "ward": Type.TEXT},
    "calls": {"ward": Type.TEXT, "minutes": Type.INT},
    "wards": {"ward": Type.TEXT, "floor": Type.INT},
}
_UNITS = {"visits": "patient", "labs": "person", "staff": "id"}
_ACCOUNTS = {"visits": "patients", "labs": "patients", "staff": "staff", "calls": "calls"}
_BOUNDS = {"age": (0, 120), "charge": (0, 1000), "result": (-5, 10), "minutes": (0, 60)}
_KEYS = {"ward": ("A", "B", "C"), "test": ("x", "y")}


def schemas(limits: Limits, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> dict[str, TableSchema]:
    """All five, as a steward would declare them."""
    return {table: _schema(table, limits, neighbours) for table in TYPES}


def _schema(table: str, limits: Limits, neighbours: Neighbours) -> TableSchema:
    columns = {
        name: ColumnSchema(
            name=name,
            type=kind,
            bounds=ColumnBounds(*map(Fraction, _BOUNDS[name])) if name in _BOUNDS else None,
            keys=_KEYS.get(name) if table != "wards" else None,
        )
        for name, kind in TYPES[table].items()
    }
    return TableSchema(
        name=table,
        columns=columns,
        unit=_UNITS.get(table),
        limits=limits,
        neighbours=neighbours,
        public=table == "wards",
        account=_ACCOUNTS.get(table, ""),
    )


def pick(bits: SeededBits, *values: Any) -> Any:
    """One of a few values."""
    return values[uniform_below(len(values), bits=bits)]


def data(seed: int, patients: int = 6) -> Data:
    """Rows with missing, absurd and repeated values; ids with spaces around them."""
    made = _data(seed, patients)
    return {table: [dict(row) for row in rows] for table, rows in made.items()}  # everybody may change their own


@lru_cache(maxsize=1024)
def _data(seed: int, patients: int) -> Data:
    bits = SeededBits(seed)
    found: Data = {"visits": [], "labs": [], "staff": [], "calls": []}
    for patient in range(patients):
        add_patient(found, f"p{patient}", bits)
    found["staff"] = [{"id": i, "ward": pick(bits, "A", "B", None)} for i in range(4)]
    found["calls"] = [{"ward": pick(bits, "A", "B", "Z", None), "minutes": pick(bits, 3, 99, None)} for _ in range(6)]
    found["wards"] = [{"ward": "A", "floor": 1}, {"ward": "B", "floor": 2}, {"ward": "B", "floor": 3}]
    found["wards"] += [{"ward": None, "floor": 4}, {"ward": "C", "floor": None}]
    return found


def add_patient(found: Data, name: str, bits: SeededBits, most: int = 4) -> None:
    """A patient with a few visits and laboratory results."""
    for _ in range(uniform_below(most + 1, bits=bits)):
        found["visits"].append(
            {
                "patient": pick(bits, name, f" {name}", f"{name}  "),
                "ward": pick(bits, "A", "B", "C", "D", None),
                "age": pick(bits, None, 5, 44, 67, 300),
                "charge": pick(bits, None, 5.0e9, -3.0, 12.5, 250.0, float("nan"), 999.0),
                "day": pick(bits, None, dt.date(2026, 1, 31), dt.date(2026, 2, 1)),
            }
        )
    for _ in range(uniform_below(most + 1, bits=bits)):
        result = pick(bits, None, -7.5, 0.25, 3.0, 3.0, 1e300)
        found["labs"].append({"person": name, "test": pick(bits, "x", "y", "z", None), "result": result})


def without(found: Data, name: str) -> Data:
    """The same hospital without one patient."""
    return {
        **found,
        "visits": [row for row in found["visits"] if row["patient"].strip() != name],
        "labs": [row for row in found["labs"] if row["person"].strip() != name],
    }
