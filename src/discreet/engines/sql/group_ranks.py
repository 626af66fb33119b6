"""The rank of `row_choice` in SQL, to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.engines.row_choice import P, Salt
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.printer import print_subquery, select
from discreet.plan.model.types import Type

PLACES = 32
"""How many bits tell public groups apart."""


class GroupRank:
    """The rank r of the groups of a table with keys k0, k1, ..., or with g: z^4 mod P, in products below 2^62."""

    def __init__(self, dialect: Dialect, salt: Salt, unit: Type, keys: list[Type] | None) -> None:
        self._dialect, self._salt, self._unit, self._keys = dialect, salt, unit, keys

    def number(self, unit: str) -> str:
        """Returns the whole number of a unit."""
        return self._dialect.rank_numbers[self._unit].format(unit)

    def of(self, number: str, table: str, columns: list[str], only: str = "") -> str:
        """Prints a table's columns and r, from the unit's number; if a condition is given, r is NULL for other rows."""
        z = self._z(number)
        z = f"CASE WHEN {only} THEN {z} END" if only else z
        text = self._dialect.write_subquery(select(*columns, f"{z} AS z", source=table))
        text = self._dialect.write_subquery(select(*columns, f"z * z % {P} AS zz", source=text))
        return print_subquery(select(*columns, f"zz * zz % {P} AS r", source=text))

    def _z(self, number: str) -> str:
        if self._keys is None:  # two numbers below P, whose sum's square fits into 64 bits
            return f"{number} + ({self._dialect.shifted.format('g', PLACES)})"
        return print_rank_number(
            self._dialect, self._salt, number, [(f"k{i}", kind) for i, kind in enumerate(self._keys)]
        )


def print_rank_number(dialect: Dialect, salt: Salt, unit: str, keys: Sequence[tuple[str, Type]]) -> str:
    """Prints z, whose fourth power modulo P is the rank of a unit's number and keys; it is between -P and P."""
    return f"({' + '.join([unit, *_key_numbers(dialect, salt, keys), str(salt.shift)])}) % {P}"


def _key_numbers(dialect: Dialect, salt: Salt, keys: Sequence[tuple[str, Type]]) -> Iterator[str]:
    """Yields each key's number times its factor, one of them below 2^60 and the others below 2^30."""
    for i, (key, kind) in enumerate(keys):
        place = f"{dialect.key_number(key, kind, salt.null)} * {salt.factor(i)}"
        yield f"({place}) % {P}" if i else place
