"""The declared tables that the tests of the plan ask about."""

from __future__ import annotations

from fractions import Fraction

from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type

_COLUMNS: list[tuple[str, Type, tuple[int, int] | None]] = [
    ("patient_id", Type.INT, None),
    ("ward", Type.TEXT, None),
    ("age", Type.INT, (0, 120)),
    ("charge", Type.FLOAT, (0, 50_000)),
    ("weight", Type.FLOAT, None),
    ("visits_before", Type.INT, None),
    ("day", Type.DATE, None),
    ("seen", Type.TIMESTAMP, None),
    ("smoker", Type.BOOL, None),
    ("note", Type.TEXT, None),
    ("index", Type.INT, (1, 5)),
    ("Heart rate", Type.INT, (20, 250)),
    ("debt", Type.FLOAT, (-10, 10)),
]


def table(name: str, columns: list[tuple[str, Type, tuple[int, int] | None]], unit: str | None = None) -> TableSchema:
    declared = {
        column: ColumnSchema(
            name=column, type=kind, bounds=None if ends is None else ColumnBounds(Fraction(ends[0]), Fraction(ends[1]))
        )
        for column, kind, ends in columns
    }
    return TableSchema(name=name, columns=declared, unit=unit, limits=Limits(3, 1) if unit else Limits())


VISITS = table("visits", _COLUMNS, unit="patient_id")
ROWS = table("rows_only", [("ward", Type.TEXT, None), ("age", Type.INT, (0, 120))])
BARE = table("bare", [("id", Type.INT, None)], unit="id")
SCHEMAS = {schema.name: schema for schema in (VISITS, ROWS, BARE)}
