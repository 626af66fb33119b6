"""Whose rows the tables of one account have: by ids in their own columns, or on a way over keys of other tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from discreet.engines.duckdb.copies import Copy
from discreet.engines.ids import normalised
from discreet.engines.memory.engine import cell
from discreet.engines.row_choice import put_together
from discreet.errors import InvalidParameter
from discreet.noise import Bits
from discreet.noise.experiment import shuffled
from discreet.plan.model.schema import Reach, TableSchema

Row = dict[str, Any]
Places = dict[str, list[int]]
"""Rows, as places in tables by name."""


def ids_of(schema: TableSchema) -> tuple[str, ...]:
    """The columns of a table's own that make the id of whose row it is; none if each row is one, or on a way."""
    if schema.unit is None or schema.reach is not None:
        return ()
    return schema.parts or (schema.unit,)


class People:
    """The people of one account, and the rows that are theirs in all of its tables.

    A row on a way belongs to everybody who has a row with its key in the table that the way leads to, as every engine
    reads it: to several people, if they share the key, and to nobody, if nobody has it.

    Args:
        copies: the tables of the account, by name.
        schemas: what is declared about them.

    Raises:
        InvalidParameter: if a way leads to a table that is not given.
    """

    def __init__(self, copies: Mapping[str, Copy], schemas: Mapping[str, TableSchema]) -> None:
        self.copies, self.schemas = copies, schemas
        self.owners: dict[str, list[frozenset[Any]]] = {}
        for name in schemas:
            self._find(name)
        self.rows: dict[Any, Places] = {}
        for name, owners in self.owners.items():
            for place, own in enumerate(owners):
                if len(own) == 1:  # what is others' as well stays when somebody goes
                    self.rows.setdefault(next(iter(own)), {}).setdefault(name, []).append(place)

    def unit_of(self, row: Row, name: str) -> Any:
        """Whose row of a table with ids it is, as every engine reads it; None if it is nobody's."""
        schema = self.schemas[name]
        parts = [cell(row, part, schema.columns[part].type) for part in ids_of(schema)]
        return put_together(parts) if len(parts) > 1 else normalised(parts[0])

    def values(self, name: str, column: str) -> list[Any]:
        """A column as engines read it."""
        kind = self.schemas[name].columns[column].type
        return [cell(row, column, kind) for row in self.copies[name].column([column])]

    def sample(self, most: int, bits: Bits) -> Places:
        """The rows of so many people as have at most so many rows together, and of at least one."""
        touched: dict[Any, list[tuple[str, int]]] = {}
        for name, owners in self.owners.items():
            for place, own in enumerate(owners):
                for who in own:
                    touched.setdefault(who, []).append((name, place))
        everybody = list(touched.values())
        kept: set[tuple[str, int]] = set()
        for index in shuffled(len(everybody), bits=bits):
            own_rows = set(everybody[index])
            if kept and len(kept | own_rows) > most:
                break
            kept |= own_rows
        return {name: sorted(place for table, place in kept if table == name) for name in self.schemas}

    def _find(self, name: str) -> None:
        """Finds the owners of a table's rows, those of the table that it leads to first."""
        if name in self.owners:
            return
        schema = self.schemas[name]
        if schema.reach is not None:
            self.owners[name] = self._reached(name, schema.reach)
        elif schema.unit is None:
            self.owners[name] = [frozenset([(name, place)]) for place, _ in enumerate(self.copies[name].column([]))]
        else:
            rows = self.copies[name].column(ids_of(schema))
            self.owners[name] = [_alone(self.unit_of(row, name)) for row in rows]

    def _reached(self, name: str, reach: Reach) -> list[frozenset[Any]]:
        if reach.table not in self.schemas:
            hint = f"Pass a mapping of tables that has {reach.table!r} as well: it tells whose rows {name!r} has."
            raise InvalidParameter("table", name, f"to come with {reach.table!r}", hint)
        self._find(reach.table)
        keys = self.values(reach.table, reach.key)
        found: dict[Any, set[Any]] = {}
        for key, own in zip(keys, self.owners[reach.table], strict=True):
            if key is not None:
                found.setdefault(key, set()).update(own)
        return [frozenset(found.get(key, ())) for key in self.values(name, reach.column)]


def _alone(who: Any) -> frozenset[Any]:
    return frozenset() if who is None else frozenset([who])


def by_account(schemas: Iterable[TableSchema]) -> dict[str, dict[str, TableSchema]]:
    """Tables by their accounts."""
    found: dict[str, dict[str, TableSchema]] = {}
    for schema in schemas:
        found.setdefault(schema.account, {})[schema.name] = schema
    return found


def called(schemas: Sequence[TableSchema]) -> str:
    """What the people of an account are called, by the first table that has ids."""
    for schema in schemas:
        if ids_of(schema):
            return " and ".join(ids_of(schema))
    return "row"
