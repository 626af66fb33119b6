"""Neighbours of tables: one unit is taken away, added or replaced in all of them, as the account's relation has it.

A person who is added enters all tables of an account at once, with keys that lead from each of their rows to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from discreet.audit.queries.units import (
    VERY_MANY,
    Row,
    UnitRows,
    fresh_ids,
    fresh_values,
    ids_of,
    invented_units,
    respell_id,
)
from discreet.dataclass import dataclass
from discreet.engines.duckdb.copies import Copy
from discreet.noise import Bits, uniform_below
from discreet.noise.experiment import shuffle_indices
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours

Rows = dict[str, list[Row]]
"""New rows, by table."""

CLAIMS = "a stranger who claims the keys of other people's rows"


class InventedUnits:
    """Makes kinds of invented units for the tables of an account.

    A stranger has rows of one kind in every table. Where a table is on a way, the rows that it leads to get keys that
    no one else has, one each, and its own rows take turns with these keys: all of them are the stranger's alone. One
    kind has rows with other people's keys instead, so that rows which are there already become the stranger's too.

    Args:
        people: who is there already.
        bits: of the choices.
    """

    def __init__(self, people: UnitRows, bits: Bits) -> None:
        self.people, self.bits = people, bits
        self.schemas = _in_order(people)
        self.made = {name: invented_units(schema, bits) for name, schema in self.schemas.items()}
        kinds: list[str] = list(next(iter(self.made.values())))
        ways = any(schema.reach is not None for schema in self.schemas.values())
        self.kinds = [*kinds[:1], CLAIMS, *kinds[1:]] if ways else kinds

    def one(self, place: int, who: tuple[Any, ...] | None = None) -> tuple[str, Rows]:
        """Returns the rows of one stranger, of a kind by turns; none, where there are no more ids.

        Args:
            place: whose turn it is.
            who: the id; a new one unless it is given.
        """
        kind = self.kinds[place % len(self.kinds)]
        roots = [name for name, schema in self.schemas.items() if ids_of(schema)]
        if not roots:
            name = list(self.schemas)[place % len(self.schemas)]
            rows = self.made[name][kind]()
            return kind, {name: [rows[uniform_below(len(rows), bits=self.bits)]]}
        roots = [name for name in roots if _kinds(self.schemas[name]) == _kinds(self.schemas[roots[0]])]
        own = self._new_id(roots[0]) if who is None else who
        if own is None:
            return kind, {}
        if kind == CLAIMS:
            return kind, self._claiming(roots, own)
        on_ways = [name for name, schema in self.schemas.items() if schema.reach is not None]
        return kind, self._connect_rows({name: self.made[name][kind]() for name in (*roots, *on_ways)}, own)

    def _connect_rows(self, found: Rows, who: tuple[Any, ...]) -> Rows:
        """Returns the rows with the stranger's id, or with keys that lead to it."""
        for name in found:
            schema = self.schemas[name]
            rows = _assign_ids(schema, found[name], who)
            if schema.reach is not None:
                keys = [row[schema.reach.key] for row in found.get(schema.reach.table, [])]
                known = [key for key in keys if key is not None]
                rows = [{**row, schema.reach.column: key} for row, key in zip(rows, cycle(known), strict=False)]
            for column in self._keys_in(name):
                keys = list(islice(self._new_keys(name, column), len(rows)))
                rows = [{**row, column: key} for row, key in zip(rows, cycle(keys or [None]), strict=False)]
            found[name] = rows
        return {name: rows for name, rows in found.items() if rows}

    def _claiming(self, roots: list[str], who: tuple[Any, ...]) -> Rows:
        """Returns a row with each key that rows on a way have, in the table with ids that the way leads to."""
        kind, found = next(kind for kind in self.kinds if kind != CLAIMS), Rows()
        for schema in self.schemas.values():
            reach = schema.reach
            if reach is not None and reach.table in roots:
                known = self.people.values(schema.name, reach.column)
                keys = list(dict.fromkeys(key for key in known if key is not None))[:VERY_MANY]
                made = _assign_ids(self.schemas[reach.table], self.made[reach.table][kind](), who)
                rows = [{**row, reach.key: key} for key, row in zip(keys, cycle(made), strict=False)]
                found[reach.table] = [*found.get(reach.table, []), *rows]
        return {name: rows for name, rows in found.items() if rows}

    def _keys_in(self, name: str) -> list[str]:
        """Returns the columns of a table that ways lead to."""
        reaches = [schema.reach for schema in self.schemas.values() if schema.reach is not None]
        return list(dict.fromkeys(reach.key for reach in reaches if reach.table == name))

    def _new_keys(self, name: str, column: str) -> Iterator[Any]:
        """Returns keys that no row has, neither in the column nor on a way to it."""
        taken = set(self.people.values(name, column))
        for schema in self.schemas.values():
            if schema.reach is not None and (schema.reach.table, schema.reach.key) == (name, column):
                taken |= set(self.people.values(schema.name, schema.reach.column))
        return (key for key in fresh_values(self.schemas[name].columns[column].type) if key not in taken)

    def _new_id(self, root: str) -> tuple[Any, ...] | None:
        schema = self.schemas[root]
        known: Callable[[Row], bool] = lambda row: self.people.unit_of(row, root) in self.people.rows  # noqa: E731
        found = next(iter(fresh_ids(schema, known)), None)
        return None if found is None else tuple(found[name] for name in ids_of(schema))


def _assign_ids(schema: TableSchema, rows: list[Row], who: tuple[Any, ...]) -> list[Row]:
    """Returns rows with an id, in several spellings."""
    names = ids_of(schema)
    own = dict(zip(names, who, strict=False))
    return [{**row, **respell_id(own, schema, place)} for place, row in enumerate(rows)]


def _kinds(schema: TableSchema) -> list[Type]:
    """Returns the types of an id; ids of other types are other people's."""
    return [schema.columns[name].type for name in ids_of(schema)]


def _in_order(people: UnitRows) -> dict[str, TableSchema]:
    """Returns tables with ids before those that lead to them; the owners of rows were found in this order."""
    return {name: people.schemas[name] for name in people.owners}


@dataclass(frozen=True, slots=True)
class Change:
    """Describes a change of a table: the places of rows that are left out, and rows that are added."""

    without: tuple[int, ...] = ()
    more: tuple[Row, ...] = ()


Changes = Mapping[str, Change]
"""What is done to tables, by name; nothing to those that are not named."""


@dataclass(frozen=True, slots=True)
class NeighbouringTables:
    """Holds two states of the tables that differ in one unit, and how, in words without values."""

    name: str
    one: Changes
    other: Changes


def neighbourings(
    copies: Mapping[str, Copy], schemas: Mapping[str, TableSchema], wanted: int, bits: Bits
) -> Iterator[NeighbouringTables]:
    """Yields so many pairs of states, one of them the tables themselves where they have units.

    Every other pair is turned round.

    Args:
        copies: the tables of one account, by name.
        schemas: what is declared about them.
        wanted: how many pairs.
        bits: of the choices.
    """
    found = _Maker(UnitRows(copies, schemas), bits).pairs()
    for place, pair in enumerate(islice(found, wanted)):
        yield pair if place % 2 == 0 else NeighbouringTables(pair.name, pair.other, pair.one)


class _Maker:
    def __init__(self, people: UnitRows, bits: Bits) -> None:
        self.people, self.invented = people, InventedUnits(people, bits)
        units = list(people.rows)
        self.order = [units[index] for index in shuffle_indices(len(units), bits=bits)]

    def pairs(self) -> Iterator[NeighbouringTables]:
        first = next(iter(self.people.schemas.values()))
        step = self._replace_unit if first.neighbours is Neighbours.REPLACE else self._added_or_removed
        place = 0
        while True:
            yield from step(place)
            place += 1
            if not self.order and place >= 2 * len(self.invented.kinds):
                return  # empty tables have no more neighbours than there are kinds of invented units

    def _added_or_removed(self, place: int) -> Iterator[NeighbouringTables]:
        if self.order:
            gone = _changes(self._own(place))
            yield NeighbouringTables("the table without one unit", {}, gone)
        kind, rows = self.invented.one(place)
        if rows:
            yield NeighbouringTables(f"the table with {kind}", {}, _changes({}, rows))

    def _replace_unit(self, place: int) -> Iterator[NeighbouringTables]:
        if not self.order:
            (_, before), (kind, after) = self.invented.one(place), self.invented.one(place + 1)
            yield NeighbouringTables(f"a stranger replaced by {kind}", _changes({}, before), _changes({}, after))
            return
        own = self._own(place)
        same = self._id_of(own) if place % 3 else None
        kind, rows = self.invented.one(place, same)
        if rows:
            yield NeighbouringTables(f"one unit replaced by {kind}", {}, _changes(own, rows))
        next_kind, others = self.invented.one(place + 1, same)
        if rows and others:
            yield NeighbouringTables(f"{kind} replaced by {next_kind}", _changes(own, rows), _changes(own, others))
        if same is not None:
            yield NeighbouringTables("one unit with nothing in its place", {}, _changes(own))
            somebody = self._of_somebody(place, same)
            yield NeighbouringTables("one unit with another one's values", {}, _changes(own, somebody))

    def _own(self, place: int) -> Mapping[str, Sequence[int]]:
        return self.people.rows[self.order[place % len(self.order)]]

    def _id_of(self, own: Mapping[str, Sequence[int]]) -> tuple[Any, ...] | None:
        """Returns the id of whose rows these are, as it is written in one of them; None if each row is one."""
        for name, places in own.items():
            names = ids_of(self.people.schemas[name])
            if names:
                (row,) = self.people.copies[name].rows(places[:1])
                return tuple(row[part] for part in names)
        return None

    def _of_somebody(self, place: int, who: tuple[Any, ...]) -> Rows:
        """Returns the rows of another unit under this one's id; rows on a way are then of both, by their keys."""
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
