"""The rank of groups in SQL (`row_choice`): from their keys, or from the numbers that public groups have."""

from __future__ import annotations

from discreet.engines.row_choice import P, Salt
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.printer import Parts, nested, select
from discreet.plan.model.types import Type

_PLACES = 32  # bits that tell public groups apart


class PublicGroups:
    """Public groups, each with one number g: what its keys add to the rank, times 2^32, and its place in their order.

    So keys are compared with the public ones once for each row, and a text's digest is computed once for each group.
    """

    def __init__(self, parts: Parts, salt: Salt) -> None:
        known = sorted(dict.fromkeys(parts.public_keys or ()), key=lambda keys: [(k is not None, k) for k in keys])
        numbers = [(salt.of_keys(keys) << _PLACES) + place for place, keys in enumerate(known)]
        kinds, self._dialect = [kind for _, kind in parts.keys], parts.dialect
        self._lists = [[keys[i] for keys in known] for i in range(len(kinds))]
        self._table = parts.dialect.public_table([*self._lists, numbers], [*kinds, Type.INT], parts.printer.parameters)
        self._keys, self._number = [f"p{i}" for i in range(len(kinds))], f"p{len(kinds)}"

    place = f"g & {(1 << _PLACES) - 1}"
    """Where a group comes among those of equal rank."""

    def sql(self, source: str, name: str, columns: list[str], where: str = "") -> str:
        """Prints a query for g and columns of a source's rows that have public keys k0, k1, ..."""
        same = " AND ".join(
            self._dialect.same(f"q.{p}", f"{name}.k{i}") if None in self._lists[i] else f"q.{p} = {name}.k{i}"
            for i, p in enumerate(self._keys)
        )
        source = f"{source} JOIN {nested(self._table, 'q')} ON {same}"
        return select(f"q.{self._number} AS g", *columns, source=source, where=where)

    def told(self, source: str, name: str, columns: list[str]) -> str:
        """Prints a query for the keys and columns of a source's rows that have a number g."""
        keys = (f"q.{p} AS k{i}" for i, p in enumerate(self._keys))
        source = f"{source} JOIN {nested(self._table, 'q')} ON q.{self._number} = {name}.g"
        return select(*keys, *(f"{name}.{column}" for column in columns), source=source)


class Rank:
    """The rank r of the groups of a table with keys k0, k1, ..., or with g: z^4 mod P, in products below 2^62."""

    def __init__(self, dialect: Dialect, salt: Salt, unit: Type, keys: list[Type] | None) -> None:
        self._dialect, self._salt, self._unit, self._keys = dialect, salt, unit, keys

    def number(self, unit: str) -> str:
        """The whole number of a unit."""
        return self._dialect.rank_numbers[self._unit].format(unit)

    def of(self, number: str, table: str, columns: list[str], only: str = "") -> str:
        """A table's columns and r, from the unit's number; where a condition is given, r is NULL for other rows."""
        z = self._z(number)
        z = f"CASE WHEN {only} THEN {z} END" if only else z
        text = nested(select(*columns, f"{z} AS z", source=table))
        text = nested(select(*columns, f"z * z % {P} AS zz", source=text))
        return nested(select(*columns, f"zz * zz % {P} AS r", source=text))

    def _z(self, number: str) -> str:
        if self._keys is None:  # two numbers below P, whose sum's square fits into 64 bits
            return f"{number} + ({self._dialect.shifted.format('g', _PLACES)})"
        return f"({' + '.join([number, *self._places(self._keys), str(self._salt.shift)])}) % {P}"

    def _places(self, keys: list[Type]) -> list[str]:
        """Each key's number times its factor, one of them below 2^60 and the others below 2^30."""
        places = []
        for i, kind in enumerate(keys):
            whole = f"coalesce({self._dialect.rank_numbers[kind].format(f'k{i}')}, {self._salt.null})"
            place = f"{whole} * {self._salt.factor(i)}"
            places.append(f"({place}) % {P}" if i else place)
        return places
