"""Two neighbouring states of several tables: one person is added, taken away or replaced, in all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.curator import Curator
from discreet.engines import DuckDB, Engine
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Loss, Neighbours
from tests.curator.families import CALLS, DAYS, HOSPITAL, SHOP, Data, Family, Row
from tests.curator.fuzz import Draw, Setting
from tests.engines.tables import arrow
from tests.redteam.worlds import WITH_DELTA, WITHOUT


@dataclass(frozen=True, kw_only=True)
class Joined:
    """A family with its parameters, and two neighbouring states of its tables.

    `alone` are the states with nobody but the person in whom they differ; `undeclared` is a column without bounds.
    """

    family: Family
    setting: Setting
    neighbours: Neighbours
    limits: Limits
    budget: Loss
    one: Data
    other: Data
    alone: tuple[Data, Data]
    undeclared: str = ""

    def filled(self, engine: Engine, data: Data) -> Engine:
        """An engine that holds the tables."""
        for name, types in self.family.types.items():
            engine.register(name, _source(engine, data[name], types), types)
        return engine

    def curator(self, engine: Engine, data: Data, seed: int = 1) -> Curator:
        """A fresh curator of one of the states."""
        made = Curator.for_tests(engine=engine, bits=SeededBits(seed))
        opened: set[str] = set()
        for name, types in self.family.types.items():
            source = _source(engine, data[name], types)
            declared = {column: kind.value for column, kind in types.items()}
            if name in self.family.public:
                made.public(source, name=name, types=declared)
                continue
            account = self.family.accounts.get(name, self.family.account)
            reached = isinstance(self.family.units[name], str) and "->" in str(self.family.units[name])
            made.protect(
                source,
                name=name,
                types=declared,
                unit=self.family.units[name],
                account=None if reached else account,
                bounds={c: ends for c, ends in self.family.bounds.items() if c in types and c != self.undeclared},
                keys={column: list(few) for column, few in self.family.keys.items() if column in types},
                max_groups=self.limits.groups,
                max_rows=self.limits.rows,
                neighbours=None if reached else self.neighbours,
                budget=None if account in opened else self.budget,
                version="1",
            )
            opened.add(account)
        return made


def _source(engine: Engine, rows: list[Row], types: Mapping[str, Type]) -> Any:
    """Rows in the form that an engine takes."""
    return arrow(rows, types) if isinstance(getattr(engine, "inner", engine), DuckDB) else rows


def joined(seed: int) -> Joined:
    """The world of a seed: families, relations and limits take turns."""
    draw = Draw(seed)
    family = draw.one((HOSPITAL, HOSPITAL, HOSPITAL, SHOP, SHOP, SHOP, DAYS, CALLS))
    neighbours = Neighbours.ADD_REMOVE if draw.chance(55) else Neighbours.REPLACE
    delta = draw.chance(65)
    crowd = family.crowd(draw)
    people = [family.person(draw, draw.chance(75)), family.person(draw, draw.chance(40))]
    if neighbours is Neighbours.ADD_REMOVE:
        people[1] = {}
        people = people[::-1] if draw.chance(40) else people
    one, other = (put(crowd, person) for person in people)
    return Joined(
        family=family,
        setting=Setting(unit=family is not CALLS, text_ids=True, delta=delta, selects=delta),
        neighbours=neighbours,
        limits=Limits(1 + draw.below(4), 1 + draw.below(3)),
        budget=draw.one(WITH_DELTA if delta else WITHOUT),
        one=one,
        other=other,
        alone=(_alone(family, one, people[0]), _alone(family, other, people[1])),
        undeclared=draw.one(tuple(family.bounds)) if draw.chance(25) else "",
    )


def _alone(family: Family, state: Data, person: Data) -> Data:
    return {name: person.get(name, []) if name in family.roots else rows for name, rows in state.items()}


def put(data: Data, more: Data) -> Data:
    """All rows of both."""
    return {name: [*rows, *more.get(name, [])] for name, rows in data.items()}
