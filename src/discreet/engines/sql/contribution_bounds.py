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

from discreet.engines.row_choice import BUCKET, P
from discreet.engines.sql.bounded_rows import BoundedRows, present
from discreet.engines.sql.printer import Parts, TermKind, nested, select
from discreet.plan.model.readings import Bounding
from discreet.plan.model.types import Type

_FEW = 16  # terms that are added up pair by pair
_LADDER = 16  # the largest limit of groups for which ceilings are worth their price


class Bounded:
    """The common table expressions and the query over them.

    Args:
        parts: the reading's.
        bounding: its limits.
    """

    def __init__(self, parts: Parts, bounding: Bounding) -> None:
        self._rows = BoundedRows(parts, bounding)
        self._parts, self._limits, self._kind = parts, bounding, self._rows.kind
        self._numbered, self._k, self._rank = self._rows.numbered, self._rows.k, self._rows.rank
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
        tables = [("own", inline, self._rows.own(self._parts.termed))]
        if self._parts.heavy is not None:
            tables.append(("heavy", once, self._parts.heavy))
        tables.append(("base", kept, self._rows.base("own AS b", self._parts.columns)))
        if not self._parts.made:
            tables.append(("bare", inline, self._rows.base(nested(self._rows.own([]), "b"), [])))
        if self._parts.keys or not self._row_by_row:
            tables += [("suspects", once, self._suspects()), ("pairs", once, self._pairs())]
        if self._parts.keys:
            tables += [("excess", once, self._excess()), ("removed", once, self._removed())]
        if self._parts.terms:
            picked = once if self._parts.distinct else inline
            tables += [("crowded", once, self._crowded()), ("picked", picked, self._picked())]
        named = ", ".join(f"{name} {how} ({text})" for name, how, text in tables)
        return f"WITH {named}"

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
            select(*columns, source="base AS b LEFT JOIN suspects AS s ON b.u = s.u", where="".join(self._rows.known))
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
        order = ", ".join(["r", *self._rows.ordered_keys()])
        place = f"ROW_NUMBER() OVER (PARTITION BY v ORDER BY {order}) AS place"
        ranked = self._rank.of(self._rank.number("v"), doubtful, columns)
        return select(
            *columns, source=nested(select(*columns, place, source=ranked)), where=f"place > {self._limits.groups}"
        )

    def _crowded(self) -> str:
        if self._row_by_row and not self._parts.keys:
            having = f"COUNT(u) > {self._limits.rows}"
            return select("u AS v", "COUNT(u) AS n", source=self._counted, group=["u"], having=having)
        own = [*self._k, "v", "n"]
        where = f"n > {self._limits.rows} AND v IS NOT NULL"
        if self._parts.keys:
            same = " AND ".join(["q.v = p.v", *self._rows.same_group("q", "p")])
            where += f" AND NOT EXISTS (SELECT 1 FROM removed AS q WHERE {same})"
        return select(*own, source="pairs AS p", where=where)

    def _picked(self) -> str:
        parts, rows = self._parts, self._limits.rows
        own = [*self._k, *parts.columns]
        same = " AND ".join(["c.v = b.u", *self._rows.same_group("c", "b")])
        columns = ["b.u", "c.n", *(f"b.{name}" for name in own)]
        among = nested(select(*columns, source=f"base AS b JOIN crowded AS c ON {same}"))
        ranked = self._rank.of(self._rank.number("u"), among, ["u", "n", *own])
        place = (
            f"ROW_NUMBER() OVER (PARTITION BY {', '.join(['u', *self._k])} ORDER BY {self._rows.order()}) - 1 AS place"
        )
        found = nested(select(*own, "r", "n", place, source=ranked))
        return select(*own, source=found, where=f"({self._rows.moved('place')}) % n >= n - {rows}")

    def _result(self) -> str:
        parts = self._parts
        if self._row_by_row:
            totals = ["COUNT(*) AS a0", "COUNT(*) AS a1", *parts.aggregates(parts.t)]
            source, having = nested(self._kept(parts.columns)), "" if parts.keys else "COUNT(*) > 0"
            text = select(*self._k, *totals, source=source, group=self._k, having=having)
            return self._rows.with_keys(text, ["a0", "a1", *parts.a])
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
        return self._rows.with_keys(text, ["a0", "a1", *parts.a])

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
        return self._rows.with_keys(self._kept(columns), columns)

    def _kept(self, columns: list[str]) -> str:
        parts, names = self._parts, [*self._k, *columns]
        if self._row_by_row and not parts.keys:
            return f"{self._uncrowded(names)} UNION ALL {select(*names, source='picked')}"
        source, where = self._chosen()
        left = ["crowded", "removed"] if parts.keys else ["crowded"]
        same = " AND ".join(["q.v = p.v", *self._rows.same_group("q", "p")])
        absent = [f"NOT EXISTS (SELECT 1 FROM {table} AS q WHERE {same})" for table in left]
        below = nested(select(*names, "v", source=source, where=where), "p")
        own = select(*(f"p.{name}" for name in names), source=below, where=" AND ".join(absent))
        return f"{own} UNION ALL {select(*names, source='picked')}"

    def _uncrowded(self, names: list[str]) -> str:
        """The rows of units that are within the limit of rows, where there is one group."""
        absent = "NOT EXISTS (SELECT 1 FROM crowded AS c WHERE c.v = b.u)"
        return select(*names, source="base AS b", where=" AND ".join([*self._rows.known, absent]))

    def _summand(self, table: str, sign: str) -> str:
        """Each pair's rows up to the limit, one unit, and its terms unless it is crowded."""
        rows = self._limits.rows
        counts = [f"CASE WHEN v IS NULL THEN n ELSE LEAST(n, {rows}) END", "CASE WHEN v IS NULL THEN n ELSE 1 END"]
        terms = [f"CASE WHEN v IS NULL OR n <= {rows} THEN {a} ELSE 0 END" for a in self._parts.a]
        numbers = zip((*counts, *terms), ("a0", "a1", *self._parts.a), strict=True)
        return select(*self._k, *(f"{sign}{number} AS {a}" for number, a in numbers), source=table)


def _summed(term: str, kind: TermKind) -> str:
    if kind == "sum":
        return term
    return present(term) if kind == "values" else "0"
