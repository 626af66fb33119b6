"""Neighbours of tables: one unit is taken away, added or replaced in all of them, as the account's relation has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from discreet.audit.queries.newcomers import Newcomers, Rows
from discreet.audit.queries.units import People, Row, ids_of
from discreet.engines.duckdb.copies import Copy
from discreet.noise import Bits
from discreet.noise.experiment import shuffled
from discreet.plan.model.schema import TableSchema
from discreet.privacy import Neighbours


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to a table: the places of rows that are left out, and rows that are added."""

    without: tuple[int, ...] = ()
    more: tuple[Row, ...] = ()


Changes = Mapping[str, Change]
"""What is done to tables, by name; nothing to those that are not named."""


@dataclass(frozen=True, slots=True)
class Neighbouring:
    """Two states of the tables that differ in one unit, and how, in words without values."""

    name: str
    one: Changes
    other: Changes


def neighbourings(
    copies: Mapping[str, Copy], schemas: Mapping[str, TableSchema], wanted: int, bits: Bits
) -> Iterator[Neighbouring]:
    """So many pairs of states, one of them the tables themselves where they have units; every other one turned round.

    Args:
        copies: the tables of one account, by name.
        schemas: what is declared about them.
        wanted: how many pairs.
        bits: of the choices.
    """
    found = _Maker(People(copies, schemas), bits).pairs()
    for place, pair in enumerate(islice(found, wanted)):
        yield pair if place % 2 == 0 else Neighbouring(pair.name, pair.other, pair.one)


class _Maker:
    def __init__(self, people: People, bits: Bits) -> None:
        self.people, self.newcomers = people, Newcomers(people, bits)
        units = list(people.rows)
        self.order = [units[index] for index in shuffled(len(units), bits=bits)]

    def pairs(self) -> Iterator[Neighbouring]:
        first = next(iter(self.people.schemas.values()))
        step = self._replaced if first.neighbours is Neighbours.REPLACE else self._added_or_removed
        place = 0
        while True:
            yield from step(place)
            place += 1
            if not self.order and place >= 2 * len(self.newcomers.kinds):
                return  # empty tables have no more neighbours than there are kinds of strangers

    def _added_or_removed(self, place: int) -> Iterator[Neighbouring]:
        if self.order:
            gone = _changes(self._own(place))
            yield Neighbouring("the table without one unit", {}, gone)
        kind, rows = self.newcomers.one(place)
        if rows:
            yield Neighbouring(f"the table with {kind}", {}, _changes({}, rows))

    def _replaced(self, place: int) -> Iterator[Neighbouring]:
        if not self.order:
            (_, before), (kind, after) = self.newcomers.one(place), self.newcomers.one(place + 1)
            yield Neighbouring(f"a stranger replaced by {kind}", _changes({}, before), _changes({}, after))
            return
        own = self._own(place)
        same = self._id_of(own) if place % 3 else None
        kind, rows = self.newcomers.one(place, same)
        if rows:
            yield Neighbouring(f"one unit replaced by {kind}", {}, _changes(own, rows))
        next_kind, others = self.newcomers.one(place + 1, same)
        if rows and others:
            yield Neighbouring(f"{kind} replaced by {next_kind}", _changes(own, rows), _changes(own, others))
        if same is not None:
            yield Neighbouring("one unit with nothing in its place", {}, _changes(own))
            somebody = self._of_somebody(place, same)
            yield Neighbouring("one unit with another one's values", {}, _changes(own, somebody))

    def _own(self, place: int) -> Mapping[str, Sequence[int]]:
        return self.people.rows[self.order[place % len(self.order)]]

    def _id_of(self, own: Mapping[str, Sequence[int]]) -> tuple[Any, ...] | None:
        """The id of whose rows these are, as it is written in one of them; None if each row is one."""
        for name, places in own.items():
            names = ids_of(self.people.schemas[name])
            if names:
                (row,) = self.people.copies[name].rows(places[:1])
                return tuple(row[part] for part in names)
        return None

    def _of_somebody(self, place: int, who: tuple[Any, ...]) -> Rows:
        """The rows of another unit under this one's id; rows on a way are then of both, by their keys."""
        found: Rows = {}
        for name, places in self._own(place + 1).items():
            names = ids_of(self.people.schemas[name])
            if names:
                renamed = dict(zip(names, who, strict=True))
                found[name] = [{**row, **renamed} for row in self.people.copies[name].rows(places)]
        return found


def _changes(without: Mapping[str, Sequence[int]], more: Rows | None = None) -> dict[str, Change]:
    added = more or {}
    return {
        name: Change(tuple(without.get(name, ())), tuple(added.get(name, ())))
        for name in dict.fromkeys([*without, *added])
    }
