"""Small hostile tables and their neighbours: one unit, or one row, is added, taken away or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.curator import Curator
from discreet.engines import Engine
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Loss, Neighbours
from tests.curator.fuzz import BOUNDS, KEYS, TYPES, Draw, Setting
from tests.engines.tables import EDGES

Row = dict[str, Any]

NAN, INFINITY = float("nan"), float("inf")
KINDS = (
    "check",
    "fever",
    "alone",
    "",
    " ",
    None,
    "12",
    "-0.5",
    "2024-02-29",
    "naïve",
    "\0",
    "e\u0301",
    "it's",
    "🤦🏼‍♂️",
)
VALUES: dict[str, Sequence[Any]] = {
    "ward": ("A", "B", "C", "A", "B", "D", "", " A", None),
    "kind": KINDS,
    "age": (None, 0, 5, 44, 67, 120, 121, 300, -5, (1 << 63) - 1),
    "charge": (None, 0.0, -0.0, 12.5, 250.0, 999.999, 1000.0, -3.0, 1e300, -1e300, NAN, INFINITY, -INFINITY, 5e-324),
    "debt": (None, -10.0, 10.0, 0.1, -0.1, 1e9, -1e9, NAN, INFINITY),
    "stars": (None, 1, 2, 3, 4, 5, 0, -(1 << 63)),
    "weight": EDGES[Type.FLOAT],
    "before": EDGES[Type.INT],
    "day": EDGES[Type.DATE],
    "seen": EDGES[Type.TIMESTAMP],
    "smoker": EDGES[Type.BOOL],
}
HUGE = "x" * (1 << 20)
NUMBER_IDS: Sequence[Any] = (0, 1, 2, -1, 1 << 62, -(1 << 63), None)
TEXT_IDS: Sequence[Any] = ("1", " 1", "2 ", "ß", "", "  ", None, "id'--")
WITH_DELTA: Sequence[Loss] = (Budget(epsilon=10**9, delta=0.9), Budget(rho=10**9, delta=0.9))
WITHOUT: Sequence[Loss] = (Budget(epsilon=10**9), Budget(rho=10**9))
MOVED_NUMBER: Sequence[Any] = (7,)
MOVED_TEXT: Sequence[Any] = ("7", " 7 ", "7  ")


@dataclass(frozen=True, kw_only=True)
class World:
    """A declared table, and two neighbouring states of it."""

    setting: Setting
    neighbours: Neighbours
    limits: Limits
    budget: Loss
    rows: list[Row]
    other: list[Row]
    types: dict[str, Type] = field(default_factory=dict)

    def declared(self) -> dict[str, Any]:
        """The arguments of `protect` beside the source."""
        return {
            "name": "visits",
            "types": {name: kind.value for name, kind in self.types.items()},
            "bounds": BOUNDS,
            "keys": {name: list(values) for name, values in KEYS.items()},
            "unit": "patient" if self.setting.unit else None,
            "max_groups": self.limits.groups,
            "max_rows": self.limits.rows,
            "neighbours": self.neighbours,
            "budget": self.budget,
            "version": "1",
        }

    def curator(self, engine: Engine, source: Any, seed: int = 1) -> Curator:
        """A fresh curator of one of the states."""
        made = Curator.for_tests(engine=engine, bits=SeededBits(seed))
        made.protect(source, **self.declared())
        return made


def world(seed: int) -> World:
    """The world of a seed."""
    draw = Draw(seed)
    unit, text_ids, delta = draw.chance(75), draw.chance(40), draw.chance(60)
    neighbours = Neighbours.ADD_REMOVE if draw.chance(65) else Neighbours.REPLACE
    ids, moved = (TEXT_IDS, MOVED_TEXT) if text_ids else (NUMBER_IDS, MOVED_NUMBER)
    crowd = [row for who in draw.some(ids, 6) for row in _rows(draw, [who], 1 + draw.below(4))]
    crowd += _alike(draw, text_ids) if draw.chance(30) else []
    rows, other = crowd + _one(draw, moved, unit=unit), crowd
    if neighbours is Neighbours.REPLACE:
        other = crowd + _one(draw, moved, unit=unit)
    elif draw.chance(30):
        rows, other = other, rows
    return World(
        setting=Setting(unit=unit, text_ids=text_ids, delta=delta, selects=delta),
        neighbours=neighbours,
        limits=Limits(1 + draw.below(4), 1 + draw.below(3)),
        budget=draw.one(WITH_DELTA if delta else WITHOUT),
        rows=rows,
        other=other,
        types=TYPES | {"patient": Type.TEXT if text_ids else Type.INT},
    )


def _one(draw: Draw, ids: Sequence[Any], *, unit: bool) -> list[Row]:
    """The rows that one unit brings: a few, many, or as much as it can everywhere."""
    if not unit:
        return _rows(draw, ids, 1)
    return greedy(draw, ids) if draw.chance(50) else _rows(draw, ids, draw.one((0, 1, 3, 25)))


def _rows(draw: Draw, ids: Sequence[Any], count: int) -> list[Row]:
    return [{"patient": draw.one(ids)} | {name: _value(draw, name) for name in VALUES} for _ in range(count)]


def _alike(draw: Draw, text_ids: bool) -> list[Row]:
    """Many people with the same row, so that private groups are shown."""
    row = _rows(draw, [None], 1)[0]
    return [row | {"patient": str(who) if text_ids else who} for who in range(100, 130)]


def _value(draw: Draw, name: str) -> Any:
    return HUGE if name == "kind" and draw.below(1000) == 0 else draw.one(VALUES[name])


def greedy(draw: Draw, ids: Sequence[Any]) -> list[Row]:
    """At one end of all bounds, in many groups, several times in each."""
    end = draw.below(2)
    fixed = {name: float(ends[end]) if TYPES[name] is Type.FLOAT else ends[end] for name, ends in BOUNDS.items()}
    wide = {name: draw.one(VALUES[name]) for name in ("weight", "before", "day", "seen")}
    places = [(ward, smoker, kind) for ward in "ABC" for smoker in (True, False) for kind in ("alone", "fever")]
    return [
        {"patient": draw.one(ids)} | fixed | wide | {"ward": ward, "smoker": smoker, "kind": kind, "stars": stars}
        for ward, smoker, kind in places
        for stars in (1, 2, 5)
    ]
