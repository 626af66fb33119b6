"""The rows of a reading with a unit: whose they are, the ranks of their groups, and the orders of `row_choice` in SQL.

What every strategy starts from, so that all of them mean the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.engines.row_choice import P, Salt
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.printer import Parts, Printer, Term, nested, select
from discreet.plan.model.nodes import UNIT, Column, Value
from discreet.plan.model.readings import Bounding
from discreet.plan.model.types import Type

_SMALL = 1 << 24  # a limit of rows by which every place can be multiplied
_PLACES = 32  # bits that tell public groups apart


class BoundedRows:
    """Rows with a unit u, groups k0, k1, ... or, if they are public, their number g, and terms.

    Args:
        parts: the reading's.
        bounding: its limits.
    """

    def __init__(self, parts: Parts, bounding: Bounding) -> None:
        self.parts, self.limits = parts, bounding
        self.kind = parts.printer.declared[bounding.unit]
        self._unit = unit_of(parts.printer, bounding.unit, self.kind)
        self._somebody = _is_somebody(parts.printer, bounding.unit, self.kind)
        salt = Salt(bounding.salt)
        self.numbered = _PublicGroups(parts, salt) if parts.keys and parts.public_keys is not None else None
        self.k = parts.k if self.numbered is None else ["g"]
        kinds = None if self.numbered else [kind for _, kind in parts.keys]
        self.rank = Rank(parts.dialect, salt, self.kind, kinds)

    def own(self, terms: list[str]) -> str:
        """Prints a query for the unit, keys and terms of rows that somebody owns."""
        where = self.parts.where
        columns = [f"{self._unit.sql} AS u", *self.parts.keyed, *terms]
        conditions = [self._somebody.sql] if not self.late else []
        conditions += [where.sql] if where else []
        return select(*columns, source=self.parts.printer.rows([*columns, *conditions]), where=" AND ".join(conditions))

    def base(self, own: str, terms: list[str]) -> str:
        """Prints a query for those of own rows, called b, that have keys which count, and may be too many."""
        heavy = "b.u IN (SELECT u FROM heavy)" if self.parts.heavy is not None else ""
        if self.numbered is not None:
            return self.numbered.sql(own, "b", ["b.u", *(f"b.{t}" for t in terms)], where=heavy)
        conditions = [self.parts.public("b"), heavy]
        return select("*", source=own, where=" AND ".join(filter(None, conditions)))

    @property
    def late(self) -> bool:
        """Whether rows without an id are left out of what is kept, and not before, where ids would be read twice."""
        return self.parts.printer.is_slow

    @property
    def known(self) -> list[str]:
        """A condition that a row is somebody's, if rows of nobody are still among those kept."""
        return ["b.u IS NOT NULL"] if self.late else []

    def ordered_keys(self) -> Iterator[str]:
        """Yields what puts groups of equal rank in order."""
        if self.numbered is not None:
            yield self.numbered.place
            return
        by_code_points = self.parts.dialect.by_code_points
        for k, (_, kind) in zip(self.parts.k, self.parts.keys, strict=True):
            yield f"{by_code_points.format(k) if kind is Type.TEXT else k} NULLS FIRST"

    def same_group(self, one: str, other: str) -> list[str]:
        """Conditions that rows of two tables are of the same group."""
        return self.parts.same_keys(one, other) if self.numbered is None else [f"{one}.g = {other}.g"]

    def order(self) -> str:
        """Each term in turn; whether one is there need not be asked of rows that are in its order already."""
        order: list[str] = []
        told: set[str] = set()
        for t, (kind, _) in zip(self.parts.t, self.parts.terms, strict=True):
            by = present(t) if kind == "values" else f"{t} NULLS FIRST"
            order += [] if by in told else [by]
            told |= {by, present(t)}
        return ", ".join(order)

    def moved(self, place: str) -> str:
        """A place's number times the limit of rows, plus the rank, of n rows: modulo n it tells whether the row stays.

        It is below n for the first row that stays of each pair, and for no other.
        """
        place = self.parts.dialect.widen(place) if self.limits.rows > _SMALL else place
        return f"{place} * {self.limits.rows} + r % n"

    def with_keys(self, text: str, columns: list[str]) -> str:
        """A query for columns of groups, beside the groups' keys."""
        return text if self.numbered is None else self.numbered.told(nested(text), "x", columns)

    def spread(self, without: tuple[tuple[Value, ...], ...]) -> str:
        """Prints a statement for the units of each group by how many groups they are kept in, as two lists.

        All pairs of a unit and a group are ranked, whatever the strategy: which groups a unit is kept in counts for
        each of them.
        """
        parts, groups, dialect = self.parts, self.limits.groups, self.parts.dialect
        conditions = [*self.known, *([f"NOT {parts.among(without, 'b')}"] if without else [])]
        own = ["b.u", *(f"b.{k}" for k in parts.k)]
        pairs = nested(select(*own, source="own AS b", where=" AND ".join(conditions), group=own))
        ranked = self.rank.of(self.rank.number("u"), pairs, ["u", *parts.k])
        order = ", ".join(["r", *self.ordered_keys()])
        place = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {order}) AS place"
        placed = nested(select(*parts.k, place, "COUNT(*) OVER (PARTITION BY u) AS m", source=ranked))
        kept = select(*parts.k, f"LEAST(m, {groups}) AS c", source=placed, where=f"place <= {groups}")
        counted = select(*parts.k, "c", "COUNT(*) AS n", source=nested(kept), group=[*parts.k, "c"])
        cells = [f"{dialect.ordered_list.format(x, 'c')} AS {name}" for x, name in (("c", "cells"), ("n", "counts"))]
        found = select(*parts.k, *cells, source=nested(counted), group=parts.k)
        return f"WITH own {dialect.inline} ({self.own([])}) {found}"


def unit_of(printer: Printer, column: str, kind: Type) -> Term:
    """Prints the id that counts (`row_choice.normalised`)."""
    unit = printer.name(printer.print(Column(column, kind)))
    known = kind is not Type.TEXT or column == UNIT  # which was made by this function
    return unit if known else printer.name(printer.fill(printer.dialect.normalised_id, unit))


def _is_somebody(printer: Printer, column: str, kind: Type) -> Term:
    """That the id is not NULL, told by what is written: a database would compute the id once more to see it."""
    unit = printer.name(printer.print(Column(column, kind)))
    known = kind is not Type.TEXT or column == UNIT
    return printer.fill("{0} IS NOT NULL" if known else printer.dialect.is_id, unit)


def unit_of_parts(printer: Printer, columns: Sequence[tuple[str, Type]]) -> Term:
    """Prints the id that several columns make (`row_choice.put_together`); what is joined to NULL is NULL."""
    texts = []
    for column, kind in columns:
        part = unit_of(printer, column, kind)
        text = printer.fill(printer.dialect.id_parts[kind], part)
        texts.append(printer.name(text))
    lengths = (printer.dialect.cast(f"length({{{i}}})", Type.TEXT) for i in range(len(texts)))
    pieces = " || ".join(f"{length} || ':' || {{{i}}}" for i, length in enumerate(lengths))
    return printer.name(printer.fill(pieces, *texts))


def present(term: str) -> str:
    """Prints 1 for a term that is not NULL, and 0 for NULL."""
    return f"CASE WHEN {term} IS NULL THEN 0 ELSE 1 END"


class _PublicGroups:
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
        text = self._dialect.derived(select(*columns, f"{z} AS z", source=table))
        text = self._dialect.derived(select(*columns, f"z * z % {P} AS zz", source=text))
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
