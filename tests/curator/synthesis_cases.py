"""Random tables to synthesize under a curator, their neighbours, and what the two may differ in: nothing but inputs."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.zcdp import zcdp
from discreet.audit.queries.mechanism_recorder import MechanismCall, MechanismRecorder, watch_mechanisms
from discreet.curator import Curator
from discreet.curator.observation import observe_curator
from discreet.engines import Memory
from discreet.errors import QueryFailed
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms import Exponential, Gaussian
from discreet.noise import SeededBits, uniform_below
from discreet.privacy import Budget, Neighbours
from discreet.privacy.events import Composed, Event, from_json, strip_calibration
from discreet.synthetic import Calendar

GENERATORS = ("independent", "mst", "aim", "allpairs")
BUDGET = Budget(epsilon=10**4, delta=1e-4)

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A protected table, and what is asked of it.

    Attributes:
        rows: as they are stored.
        declared: as `protect` takes it.
        how: as `synthesize` takes it.
        neighbours: the relation of the account.
    """

    rows: list[Row]
    declared: dict[str, Any]
    how: dict[str, Any]
    neighbours: Neighbours
    names: tuple[str, ...]

    @property
    def sql(self) -> str:
        return f"SELECT {', '.join(self.names)} FROM t"


@dataclass
class Made:
    """What a curator did with a table: what mechanisms were given, what everybody sees, and what was charged."""

    handed: list[MechanismCall]
    strayed: bool
    seen: dict[str, Any] = field(default_factory=dict)
    event: Event | None = None
    charged: list[Event] = field(default_factory=list)


# ------------------------------------------------------------------------------------------------------- random tables

_DAY = dt.date(2023, 1, 1)
_VALUES: dict[str, Callable[[SeededBits], Any]] = {
    "word": lambda bits: ["x", "y", "z", "never declared", None, ""][uniform_below(6, bits=bits)],
    "level": lambda bits: [None, 0, 1, 2, 3, 3, -(10**9), 2**62][uniform_below(8, bits=bits)],
    "real": lambda bits: [None, math.nan, 0.0, 0.4, 0.9, 1.0, 1e300, -2.5][uniform_below(8, bits=bits)],
    "flag": lambda bits: [None, False, True][uniform_below(3, bits=bits)],
    "day": lambda bits: [None, dt.date(1, 1, 1), *(_DAY + dt.timedelta(200 * n) for n in range(4))][
        uniform_below(6, bits=bits)
    ],
}
_TYPES = {"who": "int", "word": "text", "level": "int", "real": "float", "flag": "bool", "day": "date"}


def row(who: int | None, bits: SeededBits) -> Row:
    """One row of a person; what is missing, never declared or absurd is among its values."""
    return {"who": who, **{name: value(bits) for name, value in _VALUES.items()}}


def case(seed: int, generator: str | None = None, *, wide: bool = False) -> Case:
    """A table of random size, with a random domain, relation and limit; a third has no units.

    A wide one has all columns, and little noise: values are told apart.
    """
    bits = SeededBits(seed)

    def pick(limit: int) -> int:
        return int(uniform_below(limit, bits=bits))

    alone = pick(3) == 0
    rows = [row(pick(12) or None, bits) for _ in range(pick(50))]
    names = [name for name in _VALUES if pick(3)][: 2 + pick(2)] or ["word"]
    names = list(_VALUES) if wide else names
    how: dict[str, Any] = {
        "generator": generator or GENERATORS[pick(4)],
        "epsilon": [Fraction(1, 10), 1, 5, 100][pick(4)] if not wide else 1000,
        "delta": Fraction(1, 10**6),
        "bins": 1 + pick(3),
        "rows_per_unit": 1 if alone else 1 + pick(3),
    }
    if "day" in names and pick(2):
        how["domain"] = {"day": [Calendar("weekday"), Calendar("quarter", years=(2023, 2023), missing=False)][pick(2)]}
    if {"word", "flag"} <= set(names) and pick(2):
        how["forbidden"] = [{"word": ["x"], "flag": [True]}, {"flag": [None]}]
    declared: dict[str, Any] = {
        "types": _TYPES,
        "keys": {"word": ["x", "y"]},
        "bounds": {"level": (0, 2 + pick(3)), "real": (0, 1), "day": (_DAY, dt.date(2023, 12, 31))},
        "neighbours": list(Neighbours)[pick(2)],
    }
    if not alone:
        declared["unit"] = "who"
    return Case(rows=rows, declared=declared, how=how, neighbours=declared["neighbours"], names=tuple(names))


def neighbour(found: Case, seed: int) -> list[Row]:
    """The rows without one unit, or with other rows of it, up to five; in another order."""
    bits = SeededBits(seed + 10**6)
    rows = found.rows
    if "unit" in found.declared:
        who: int | None = 1 + int(uniform_below(11, bits=bits))
        left, count = [one for one in rows if one["who"] != who], 1 + int(uniform_below(5, bits=bits))
    else:
        place = int(uniform_below(max(1, len(rows)), bits=bits))
        left, who, count = rows[:place] + rows[place + 1 :], None, 1
    if found.neighbours is Neighbours.REPLACE and len(left) < len(rows):
        left = left + [row(who, bits) for _ in range(count)]
    return left[::-1]


# ------------------------------------------------------------------------------------------------------------- a run


def made(found: Case, rows: list[Row], frozen: list[MechanismCall] | None = None) -> Made:
    """Makes a table under a curator whose mechanisms are watched; with what came out before, that comes out again."""
    recorder = MechanismRecorder(SeededBits(3), frozen=frozen)  # rows are drawn with other bits: the same both times
    with Curator.for_tests(engine=Memory(), bits=SeededBits(5)) as curator:
        curator.protect(rows, name="t", budget=BUDGET, **{"max_rows": 1, **found.declared})
        twin = observe_curator(curator, engine=curator._engine, releaser=Releaser(SeededBits(7)), salt="salt")
        done = Made(handed=recorder.made, strayed=False)
        try:
            with watch_mechanisms(recorder):
                table = twin.synthesize(found.sql, **found.how)
        except QueryFailed:
            done.seen = {"failed": True}
        else:
            done.event = table.event
            done.seen = {"model": table.model.to_json(), "rows": table.table.to_pydict(), "notes": table.notes}
            done.seen |= {"cost": table.cost, "remaining": table.remaining, "private": table.private}
        done.strayed = recorder.strayed
        done.charged = charged_in(curator)
        return done


def charged_in(curator: Curator) -> list[Event]:
    """The noise of all charges, as it is written in the ledger."""
    return [strip_calibration(event) for event in priced_in(curator)]


def priced_in(curator: Curator) -> list[Event]:
    """The events of all charges, with the epsilon and delta that noise was calibrated to."""
    return [from_json(entry.content["event"]) for entry in curator.entries() if entry.kind == "charge"]


def drawn(handed: list[MechanismCall]) -> Fraction:
    """What all that was drawn costs in zCDP, by the mechanisms themselves."""
    return sum((zcdp(one.mechanism.event).rho for one in handed), Fraction(0))


def share_moved(one: MechanismCall, other: MechanismCall) -> float:
    """How far an input moved, as a part of what the mechanism hides."""
    apart = np.asarray(one.inputs[0], dtype=object) - np.asarray(other.inputs[0], dtype=object)
    if isinstance(one.mechanism, Exponential):
        square = max((int(step) ** 2 for step in apart.ravel()), default=0)
    else:
        assert isinstance(one.mechanism, Gaussian)
        square = int((apart * apart).sum())
    return math.sqrt(Fraction(square) / one.mechanism.sensitivity**2)


def complaint(found: Case, rows: list[Row]) -> str:
    """What is wrong with a table and its neighbour, if the same is released from both; empty if nothing is."""
    first = made(found, found.rows)
    return complaint_of(first, made(found, rows, first.handed))


def complaint_of(first: Made, second: Made) -> str:
    """What is wrong with a run, and with a second one on a neighbour from which the same is released."""
    if first.event is None:
        return "failed"
    if second.strayed or len(first.handed) != len(second.handed):
        return "another mechanism, or another shape"
    if max(share_moved(one, two) for one, two in zip(first.handed, second.handed, strict=True)) > 1:
        kinds = {
            type(one.mechanism).__name__
            for one, two in zip(first.handed, second.handed, strict=True)
            if share_moved(one, two) > 1
        }
        return "a score moved too far" if kinds == {"Exponential"} else "a marginal moved too far"
    if first.seen != second.seen:
        return "something that was not released"
    return overdrawn(first)


def overdrawn(done: Made) -> str:
    """What is wrong with the account of a run: one charge, the event that is told, and draws that it pays for."""
    if [done.event] != done.charged:
        return "another charge"
    (charged,) = done.charged
    return "more was drawn than charged" if drawn(done.handed) > rho_of(charged) else ""


def rho_of(event: Event) -> Fraction:
    """What an event costs in zCDP, exactly."""
    parts = event.events if isinstance(event, Composed) else (event,)
    return sum((zcdp(part).rho for part in parts), Fraction(0))
