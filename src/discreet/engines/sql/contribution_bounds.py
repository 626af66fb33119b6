"""The statement of a reading with bounded contributions: `row_choice` in SQL, with work only where it is needed.

    own        rows with a unit, and their keys and terms
    heavy      if rows are joined: units that may exceed their limits by a count of the sides; others' rows count as
               they are, and are not looked at below
    base       own rows with keys that count; those of a table are read anew where it is named, three times at most,
               those that are made of several are kept; the public groups, if there are such, have numbers g
    bare       the same of a table, without terms: what suspects are found from is planned the sooner
    suspects   units that may have too many groups or rows, and a ceiling that their groups' ranks stay below; a
               suspect whose rows are surely each in a group of its own, *apart*, has nothing more to choose below it,
               and a ceiling that is written as a negative number
    pairs      one row for each other suspect and group below its ceiling; one for all other rows of a group together
    removed    pairs beyond the limit of groups
    crowded    remaining pairs with too many rows
    picked     the rows kept of these

The result is what all pairs add up to, less those removed, and with the picked rows' terms in place of the crowded
pairs' own: exact, because all numbers are whole. Where there are many terms, pairs are counted only, and the rows kept
are added up: those of pairs that are neither removed nor crowded, and those picked. Where there are no keys, nobody has
more than one group, and the crowded units are all that is looked for.

A suspect's ceiling comes from a set of 63 bits, the buckets that its ranks lie in: the `groups` smallest ranks lie in
the lowest `groups` buckets that are not empty. The buckets also tell groups apart: as many bits as rows are as many
groups. Nothing rests on this: buckets that hold several groups make innocents suspects, and ceilings higher than
necessary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.engines.row_choice import BUCKET, P, Salt
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.printer import Parts, Printer, Term, TermKind, nested, select
from discreet.plan.model.nodes import UNIT, Column, Value
from discreet.plan.model.readings import Bounding
from discreet.plan.model.types import Type

_SMALL = 1 << 24  # a limit of rows by which every place can be multiplied
_PLACES = 32  # bits that tell public groups apart
_FEW = 16  # terms that are added up pair by pair
_LADDER = 16  # the largest limit of groups for which ceilings are worth their price


class Bounded:
    """The common table expressions and the query over them.

    Args:
        parts: the reading's.
        bounding: its limits.
    """

    def __init__(self, parts: Parts, bounding: Bounding) -> None:
        self._parts, self._limits = parts, bounding
        self._kind = parts.printer.declared[bounding.unit]
        self._unit = unit_of(parts.printer, bounding.unit, self._kind)
        self._somebody = _is_somebody(parts.printer, bounding.unit, self._kind)
        salt = Salt(bounding.salt)
        self._numbered = _PublicGroups(parts, salt) if parts.keys and parts.public_keys is not None else None
        self._k = parts.k if self._numbered is None else ["g"]
        kinds = None if self._numbered else [kind for _, kind in parts.keys]
        self._rank = _Rank(parts.dialect, salt, self._kind, kinds)
        many = bool(parts.terms) if not parts.keys else len(parts.columns) > _FEW
        self._row_by_row = many and not parts.counts_units and parts.heavy is None
        self._a = [] if self._row_by_row else parts.a
        self._ceiled = bool(parts.keys) and bounding.groups <= _LADDER

    def sql(self) -> str:
        """Prints the whole statement."""
        return f"{self.tables()} {self._result()}"

    def tables(self) -> str:
        """Prints the common table expressions."""
        once, inline = self._parts.dialect.once, self._parts.dialect.inline
        kept = once if self._parts.made else inline  # a table is read faster than what was read is kept
        tables = [("own", inline, self._own(self._parts.termed))]
        if self._parts.heavy is not None:
            tables.append(("heavy", once, self._parts.heavy))
        tables.append(("base", kept, self._base("own AS b", self._parts.columns)))
        if not self._parts.made:
            tables.append(("bare", inline, self._base(nested(self._own([]), "b"), [])))
        if self._parts.keys or not self._row_by_row:
            tables += [("suspects", once, self._suspects()), ("pairs", once, self._pairs())]
        if self._parts.keys:
            tables += [("excess", once, self._excess()), ("removed", once, self._removed())]
        if self._parts.terms:
            picked = once if self._parts.distinct else inline
            tables += [("crowded", once, self._crowded()), ("picked", picked, self._picked())]
        named = ", ".join(f"{name} {how} ({text})" for name, how, text in tables)
        return f"WITH {named}"

    def _own(self, terms: list[str]) -> str:
        where = self._parts.where
        columns = [f"{self._unit.sql} AS u", *self._parts.keyed, *terms]
        conditions = [self._somebody.sql] if not self._late else []
        conditions += [where.sql] if where else []
        return select(
            *columns, source=self._parts.printer.rows([*columns, *conditions]), where=" AND ".join(conditions)
        )

    def _base(self, own: str, terms: list[str]) -> str:
        heavy = "b.u IN (SELECT u FROM heavy)" if self._parts.heavy is not None else ""
        if self._numbered is not None:
            return self._numbered.sql(own, "b", ["b.u", *(f"b.{t}" for t in terms)], where=heavy)
        conditions = [self._parts.public("b"), heavy]
        return select("*", source=own, where=" AND ".join(filter(None, conditions)))

    def _light(self) -> str:
        """The rows of units that are surely within their limits; public keys are looked for among their groups."""
        parts = self._parts
        found = select(
            *parts.k,
            "COUNT(*) AS a0",
            "COUNT(*) AS a1",
            *parts.aggregates(parts.t),
            source="own",
            where="NOT EXISTS (SELECT 1 FROM heavy WHERE heavy.u = own.u)",
            group=parts.k,
        )
        if self._numbered is not None:
            return self._numbered.sql(nested(found, "x"), "x", [f"x.{a}" for a in ("a0", "a1", *parts.a)])
        return select("*", source=nested(found, "x"), where=parts.public("x"))

    def _suspects(self) -> str:
        if not self._parts.keys:
            having = f"COUNT(u) > {self._rows_apart}"
            return select("u", f"{P} AS ceiling", source=self._counted, group=["u"], having=having)
        dialect = self._parts.dialect
        bits = f"{dialect.bits.format(dialect.bucket_bit.format('r'))} AS m1"
        ranked = self._rank.of(self._rank.number("u"), self._counted, ["u"])
        counted = select("u", "COUNT(u) AS n", bits, source=ranked, group=["u"])
        text = select("*", source=dialect.derived(counted), where=f"NOT ({self._innocent()})")
        if not self._ceiled:
            return select("u", f"{P} AS ceiling", source=nested(text))
        for i in range(1, self._limits.groups):  # the lowest bit less each time
            text = select("*", f"m{i} & (m{i} - 1) AS m{i + 1}", source=dialect.derived(text))
        columns = ["u", f"CASE WHEN {self._apart()} THEN -1 ELSE 1 END * ({self._ceiling()}) AS ceiling"]
        columns += [f"{self._rank.number('u')} AS h"] if self._carried else []
        return select(*columns, source=dialect.derived(text))

    @property
    def _counted(self) -> str:
        """The table in which rows are counted."""
        return "base" if self._parts.made else "bare"

    @property
    def _carried(self) -> bool:
        """Whether a suspect's number travels with it, because it would cost too much to compute for each row."""
        return self._ceiled and self._kind is Type.TEXT

    @property
    def _late(self) -> bool:
        """Whether rows without an id are left out of what is kept, and not before, where ids would be read twice."""
        return self._parts.printer.is_slow

    @property
    def _known(self) -> list[str]:
        """A condition that a row is somebody's, if rows of nobody are still among those kept."""
        return ["b.u IS NOT NULL"] if self._late else []

    def _innocent(self) -> str:
        """A condition on one unit's rows: surely within the limits."""
        groups, few = self._limits.groups, min(self._limits.groups, self._rows_apart)
        return f"n <= {few} OR (n <= {groups} AND {self._apart()})"

    def _apart(self) -> str:
        """A condition on one unit's rows: surely each in a group of its own."""
        return f"{self._parts.dialect.bit_count.format('m1')} = n"

    @property
    def _rows_apart(self) -> int:
        """How many rows of an innocent unit may share a group: where units are counted, two must not count as two."""
        return 1 if self._parts.counts_units else self._limits.rows

    def _ceiling(self) -> str:
        """The end of the bucket of the lowest bit that is left; there is none if few buckets are used."""
        left = f"m{self._limits.groups}"
        bucket = self._parts.dialect.bit_count.format(f"({left} & -{left}) - 1")
        return f"CASE WHEN {left} = 0 THEN {P} ELSE ({bucket} + 1) * {BUCKET} END"

    def _chosen(self) -> tuple[str, str]:
        """Rows below the ceilings of their units, with v where there is more to choose; and the condition for it."""
        own = [*self._k, *self._parts.columns]
        columns = [f"b.{name}" for name in own]
        columns += ["s.ceiling", "s.h" if self._carried else "b.u", "CASE WHEN s.ceiling > 0 THEN b.u END AS v"]
        source = nested(
            select(*columns, source="base AS b LEFT JOIN suspects AS s ON b.u = s.u", where="".join(self._known))
        )
        if self._ceiled:
            number = "h" if self._carried else self._rank.number("u")
            source = self._rank.of(number, source, [*own, "v", "ceiling"], only="ceiling IS NOT NULL")
        return source, "ceiling IS NULL OR r < abs(ceiling)" if self._ceiled else ""

    def _pairs(self) -> str:
        parts = self._parts
        source, where = self._chosen()
        totals = parts.aggregates(parts.t) if self._a else []
        for i in parts.distinct if self._a else []:
            totals[i] = f"0 AS {parts.a[i]}"
        return select(*self._k, "v", "COUNT(*) AS n", *totals, source=source, where=where, group=[*self._k, "v"])

    def _excess(self) -> str:
        having = f"COUNT(*) > {self._limits.groups}"
        return select("v", source="pairs", where="v IS NOT NULL", group=["v"], having=having)

    def _removed(self) -> str:
        columns = [*self._k, "v", "n", *self._a]
        doubtful = nested(select(*columns, source="pairs", where="v IN (SELECT v FROM excess)"))
        order = ", ".join(["r", *self._ordered_keys()])
        place = f"ROW_NUMBER() OVER (PARTITION BY v ORDER BY {order}) AS place"
        ranked = self._rank.of(self._rank.number("v"), doubtful, columns)
        return select(
            *columns, source=nested(select(*columns, place, source=ranked)), where=f"place > {self._limits.groups}"
        )

    def _ordered_keys(self) -> Iterator[str]:
        if self._numbered is not None:
            yield self._numbered.place
            return
        by_code_points = self._parts.dialect.by_code_points
        for k, (_, kind) in zip(self._parts.k, self._parts.keys, strict=True):
            yield f"{by_code_points.format(k) if kind is Type.TEXT else k} NULLS FIRST"

    def _crowded(self) -> str:
        if self._row_by_row and not self._parts.keys:
            having = f"COUNT(u) > {self._limits.rows}"
            return select("u AS v", "COUNT(u) AS n", source=self._counted, group=["u"], having=having)
        own = [*self._k, "v", "n"]
        where = f"n > {self._limits.rows} AND v IS NOT NULL"
        if self._parts.keys:
            same = " AND ".join(["q.v = p.v", *self._same_group("q", "p")])
            where += f" AND NOT EXISTS (SELECT 1 FROM removed AS q WHERE {same})"
        return select(*own, source="pairs AS p", where=where)

    def _picked(self) -> str:
        parts, rows = self._parts, self._limits.rows
        own = [*self._k, *parts.columns]
        same = " AND ".join(["c.v = b.u", *self._same_group("c", "b")])
        columns = ["b.u", "c.n", *(f"b.{name}" for name in own)]
        among = nested(select(*columns, source=f"base AS b JOIN crowded AS c ON {same}"))
        ranked = self._rank.of(self._rank.number("u"), among, ["u", "n", *own])
        place = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(['u', *self._k])} ORDER BY {self._order()}) - 1 AS place"
        found = nested(select(*own, "r", "n", place, source=ranked))
        moved = f"{parts.dialect.widen('place') if rows > _SMALL else 'place'} * {rows}"
        return select(*own, source=found, where=f"({moved} + r % n) % n >= n - {rows}")

    def _same_group(self, one: str, other: str) -> list[str]:
        """Conditions that rows of two tables are of the same group."""
        return self._parts.same_keys(one, other) if self._numbered is None else [f"{one}.g = {other}.g"]

    def _order(self) -> str:
        """Each term in turn; whether one is there need not be asked of rows that are in its order already."""
        order: list[str] = []
        told: set[str] = set()
        for t, (kind, _) in zip(self._parts.t, self._parts.terms, strict=True):
            by = _present(t) if kind == "values" else f"{t} NULLS FIRST"
            order += [] if by in told else [by]
            told |= {by, _present(t)}
        return ", ".join(order)

    def _result(self) -> str:
        parts = self._parts
        if self._row_by_row:
            totals = ["COUNT(*) AS a0", "COUNT(*) AS a1", *parts.aggregates(parts.t)]
            source, having = nested(self._kept(parts.columns)), "" if parts.keys else "COUNT(*) > 0"
            text = select(*self._k, *totals, source=source, group=self._k, having=having)
            return self._with_keys(text, ["a0", "a1", *parts.a])
        summands = [self._summand("pairs", "")]
        if parts.keys:
            summands.append(self._summand("removed", "-"))
        if parts.terms:
            kinds = (kind for kind, _ in parts.terms)
            terms = [_summed(t, kind) for t, kind in zip(parts.t, kinds, strict=True)]
            summands.append(select(*self._k, "0", "0", *terms, source="picked"))
        if parts.distinct:
            summands.append(self._varieties())
        if parts.heavy is not None:
            summands.append(self._light())
        totals = [f"SUM({a}) AS {a}" for a in ("a0", "a1", *parts.a)]
        source = nested(" UNION ALL ".join(summands))
        text = select(*self._k, *totals, source=source, group=self._k, having="SUM(a1) > 0")
        return self._with_keys(text, ["a0", "a1", *parts.a])

    def _with_keys(self, text: str, columns: list[str]) -> str:
        """A query for columns of groups, beside the groups' keys."""
        return text if self._numbered is None else self._numbered.told(nested(text), "x", columns)

    def _varieties(self) -> str:
        """Different values among the rows kept: those of pairs that are neither removed nor crowded, and those picked.

        A value that several units have counts once, so that it is no sum over pairs.
        """
        parts = self._parts
        kept = nested(self._kept(list(dict.fromkeys(parts.t[i] for i in parts.distinct))))
        totals = [parts.aggregate(i, t) if i in parts.distinct else "0" for i, t in enumerate(parts.t)]
        return select(*self._k, "0", "0", *totals, source=kept, group=self._k)

    def kept(self) -> str:
        """Prints a query for keys and terms of the rows kept."""
        columns = self._parts.columns
        return self._with_keys(self._kept(columns), columns)

    def _kept(self, columns: list[str]) -> str:
        parts, names = self._parts, [*self._k, *columns]
        if self._row_by_row and not parts.keys:
            return f"{self._uncrowded(names)} UNION ALL {select(*names, source='picked')}"
        source, where = self._chosen()
        left = ["crowded", "removed"] if parts.keys else ["crowded"]
        absent = [
            f"NOT EXISTS (SELECT 1 FROM {table} AS q WHERE {' AND '.join(['q.v = p.v', *self._same_group('q', 'p')])})"
            for table in left
        ]
        below = nested(select(*names, "v", source=source, where=where), "p")
        own = select(*(f"p.{name}" for name in names), source=below, where=" AND ".join(absent))
        return f"{own} UNION ALL {select(*names, source='picked')}"

    def spread(self, without: tuple[tuple[Value, ...], ...]) -> str:
        """Prints a statement for the units of each group by how many groups they are kept in, as two lists.

        All pairs of a unit and a group are ranked, not those of suspects alone: which groups a unit is kept in counts
        for each of them.
        """
        parts, groups, dialect = self._parts, self._limits.groups, self._parts.dialect
        conditions = [*self._known, *([f"NOT {parts.among(without, 'b')}"] if without else [])]
        own = ["b.u", *(f"b.{k}" for k in parts.k)]
        pairs = nested(select(*own, source="own AS b", where=" AND ".join(conditions), group=own))
        ranked = self._rank.of(self._rank.number("u"), pairs, ["u", *parts.k])
        order = ", ".join(["r", *self._ordered_keys()])
        place = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {order}) AS place"
        placed = nested(select(*parts.k, place, "COUNT(*) OVER (PARTITION BY u) AS m", source=ranked))
        kept = select(*parts.k, f"LEAST(m, {groups}) AS c", source=placed, where=f"place <= {groups}")
        counted = select(*parts.k, "c", "COUNT(*) AS n", source=nested(kept), group=[*parts.k, "c"])
        cells = [f"{dialect.ordered_list.format(x, 'c')} AS {name}" for x, name in (("c", "cells"), ("n", "counts"))]
        found = select(*parts.k, *cells, source=nested(counted), group=parts.k)
        return f"WITH own {dialect.inline} ({self._own([])}) {found}"

    def _uncrowded(self, names: list[str]) -> str:
        """The rows of units that are within the limit of rows, where there is one group."""
        absent = "NOT EXISTS (SELECT 1 FROM crowded AS c WHERE c.v = b.u)"
        return select(*names, source="base AS b", where=" AND ".join([*self._known, absent]))

    def _summand(self, table: str, sign: str) -> str:
        """Each pair's rows up to the limit, one unit, and its terms unless it is crowded."""
        rows = self._limits.rows
        counts = [f"CASE WHEN v IS NULL THEN n ELSE LEAST(n, {rows}) END", "CASE WHEN v IS NULL THEN n ELSE 1 END"]
        terms = [f"CASE WHEN v IS NULL OR n <= {rows} THEN {a} ELSE 0 END" for a in self._parts.a]
        numbers = zip((*counts, *terms), ("a0", "a1", *self._parts.a), strict=True)
        return select(*self._k, *(f"{sign}{number} AS {a}" for number, a in numbers), source=table)


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


def _summed(term: str, kind: TermKind) -> str:
    if kind == "sum":
        return term
    return _present(term) if kind == "values" else "0"


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


def _present(term: str) -> str:
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


class _Rank:
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
