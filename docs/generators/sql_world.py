"""The small clinic that examples of the SQL reference are asked of: made up on the spot, in memory."""

from __future__ import annotations

import datetime as dt
from typing import Any

from discreet import Budget, Curator
from discreet.engines import Memory

WARDS = ("heart", "bones", "birth")
FIRST_DAY = dt.date(2026, 1, 1)


def visits(people: int = 300) -> list[dict[str, Any]]:
    """Returns a visit of each patient, and a second one of every third."""
    return [_visit(number, again) for number in range(people) for again in range(2 if number % 3 == 0 else 1)]


def _visit(number: int, again: int) -> dict[str, Any]:
    day = FIRST_DAY + dt.timedelta(days=(number * 7 + again * 30) % 365)
    return {
        "patient": number,
        "ward": WARDS[(number + again) % 3],
        "age": 20 + number % 70,
        "charge": 50.0 + number * 3 % 900,
        "urgent": number % 5 == 0,
        "day": day,
        "arrived": dt.datetime.combine(day, dt.time(number % 24)),
        "note": f"note {number % 7}",
    }


def curator() -> Curator:
    """Returns a curator of two tables of the same people and of a public one."""
    found = Curator(engine=Memory(), today=dt.date(2026, 11, 30))
    found.protect(
        visits(),
        name="visits",
        unit="patient",
        account="patients",
        budget=Budget(epsilon=1000, delta=1e-6),
        types={"patient": "int", "ward": "text", "age": "int", "charge": "float", "urgent": "bool", "day": "date"}
        | {"arrived": "timestamp", "note": "text"},
        bounds={"age": (0, 120), "charge": (0, 1000), "day": ("2026-01-01", "2026-12-31")},
        keys={"ward": list(WARDS)},
        max_groups=2,
    )
    found.protect(
        [{"patient": number, "born": 1940 + number % 70, "sex": "FM"[number % 2]} for number in range(300)],
        name="people",
        unit="patient",
        max_rows=1,
        account="patients",
        types={"patient": "int", "born": "int", "sex": "text"},
        bounds={"born": (1900, 2026)},
        keys={"sex": ["F", "M"]},
    )
    floors = [{"ward": ward, "floor": floor} for floor, ward in enumerate(WARDS)]
    found.public(floors, name="wards", types={"ward": "text", "floor": "int"})
    return found
