"""Neighbours of a table: one unit is taken away, added or replaced, as the account's relation has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from discreet.audit.strangers import fresh_ids, spelled, strangers
from discreet.engines.choosing import normalised, put_together
from discreet.engines.copies import Copy
from discreet.engines.memory import cell
from discreet.errors import InvalidParameter
from discreet.noise import Bits, uniform_below
from discreet.noise.experiment import shuffled
from discreet.plan.schema import TableSchema
from discreet.privacy import Neighbours

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to the table: the places of rows that are left out, and rows that are added."""

    without: tuple[int, ...] = ()
    more: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbouring:
    """Two states of the table that differ in one unit, and how, in words without values."""

    name: str
    one: Change
    other: Change


class People:
    """Whose rows a table has: the places of each unit's rows.

    Args:
        copy: the table.
        schema: what is declared about it.
    """

    def __init__(self, copy: Copy, schema: TableSchema) -> None:
        self.schema = schema
        self._names = () if schema.unit is None else schema.parts or (schema.unit,)
        if schema.reach is not None:
            hint = "Audit the table that the way leads to."
            raise InvalidParameter("table", schema.name, "to tell by itself whose rows it has", hint)
        self.places: dict[Any, list[int]] = {}
        for place, row in enumerate(copy.column(self._names)):
            who = place if schema.unit is None else self.unit_of(row)
            if who is not None:
                self.places.setdefault(who, []).append(place)

    def unit_of(self, row: Row) -> Any:
        """Whose row it is, as every engine reads it; None if it is nobody's."""
        parts = [cell(row, name, self.schema.columns[name].type) for name in self._names]
        return put_together(parts) if len(parts) > 1 else normalised(parts[0])

    def sample(self, most: int, bits: Bits) -> list[int]:
        """The places of all rows of so many units as have at most so many rows together, and of at least one."""
        units, kept = list(self.places.values()), list[int]()
        for index in shuffled(len(units), bits=bits):
            if kept and len(kept) + len(units[index]) > most:
                break
            kept += units[index]
        return sorted(kept)


def neighbourings(copy: Copy, schema: TableSchema, wanted: int, bits: Bits) -> Iterator[Neighbouring]:
    """So many pairs of states, one of them the table itself where it has units; every other one turned round.

    Args:
        copy: the table.
        schema: what is declared about it.
        wanted: how many pairs.
        bits: of the choices.
    """
    found = _Maker(copy, schema, bits).pairs()
    for place, pair in enumerate(islice(found, wanted)):
        yield pair if place % 2 == 0 else Neighbouring(pair.name, pair.other, pair.one)


class _Maker:
    def __init__(self, copy: Copy, schema: TableSchema, bits: Bits) -> None:
        self.copy, self.schema, self.bits = copy, schema, bits
        self.people = People(copy, schema)
        self.kinds = strangers(schema, bits)
        units = list(self.people.places)
        self.order = [units[index] for index in shuffled(len(units), bits=bits)]

    def pairs(self) -> Iterator[Neighbouring]:
        replace = self.schema.neighbours is Neighbours.REPLACE
        step = self._replaced if replace else self._added_or_removed
        place = 0
        while True:
            yield from step(place)
            place += 1
            if not self.order and place >= 2 * len(self.kinds):
                return  # an empty table has no more neighbours than there are kinds of strangers

    def _added_or_removed(self, place: int) -> Iterator[Neighbouring]:
        if self.order:
            who = self.order[place % len(self.order)]
            yield Neighbouring("the table without one unit", Change(), Change(without=self._own(who)))
        kind, rows = self._stranger(place)
        if rows:
            yield Neighbouring(f"the table with {kind}", Change(), Change(more=rows))

    def _replaced(self, place: int) -> Iterator[Neighbouring]:
        if not self.order:
            (_, before), (kind, after) = self._stranger(place), self._stranger(place + 1)
            yield Neighbouring(f"a stranger replaced by {kind}", Change(more=before), Change(more=after))
            return
        own = self._own(self.order[place % len(self.order)])
        same = self._id_of(own[0]) if place % 3 else None
        kind, rows = self._stranger(place, same)
        if rows:
            yield Neighbouring(f"one unit replaced by {kind}", Change(), Change(own, rows))
        next_kind, others = self._stranger(place + 1, same)
        if rows and others:
            name = f"{kind} replaced by {next_kind}"
            yield Neighbouring(name, Change(own, rows), Change(own, others))
        if same is not None:
            yield Neighbouring("one unit with nothing in its place", Change(), Change(own))
            somebody = self._of_somebody(place, same)
            yield Neighbouring("one unit with another one's values", Change(), Change(own, somebody))

    def _own(self, who: Any) -> tuple[int, ...]:
        return tuple(self.people.places[who])

    def _id_of(self, place: int) -> Row | None:
        names = self.schema.parts or ((self.schema.unit,) if self.schema.unit is not None else ())
        row = self.copy.rows([place])[0]
        return {name: row[name] for name in names} or None

    def _of_somebody(self, place: int, who: Row) -> tuple[Row, ...]:
        """The rows of another unit under this one's id."""
        other = self.order[(place + 1) % len(self.order)]
        return tuple({**row, **who} for row in self.copy.rows(self._own(other)))

    def _stranger(self, place: int, who: Row | None = None) -> tuple[str, tuple[Row, ...]]:
        """A kind of stranger with rows; none, where there are no more ids."""
        kind = list(self.kinds)[place % len(self.kinds)]
        rows = self.kinds[kind]()
        if self.schema.unit is None:
            return kind, (rows[uniform_below(len(rows), bits=self.bits)],)
        known: Callable[[Row], bool] = lambda row: self.people.unit_of(row) in self.people.places  # noqa: E731
        found: Sequence[Row] = [who] if who is not None else list(islice(fresh_ids(self.schema, known), 1))
        return kind, tuple({**row, **spelled(own, self.schema, i)} for own in found for i, row in enumerate(rows))
