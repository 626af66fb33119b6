"""A reading as one SQL statement, and its rows as exact statistics.

Without a unit column the statement is one aggregation. With one, groups and rows are chosen as `choosing` defines, and
only where a unit may have too many: one pass finds the suspects, everybody else is summed as if there were no units,
which is done by adding all rows and subtracting those of suspects (exact, because all numbers are whole). Groups are
ranked for suspects only, and rows digested and ordered only where one unit has too many in one group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from discreet.engines import grid
from discreet.engines.choosing import P, Salt
from discreet.engines.sql import Dialect, Printer, Term
from discreet.errors import InternalError
from discreet.plan.nodes import Column, Expression, Value
from discreet.plan.reading import Bounding, Reading, Statistic
from discreet.plan.types import Type

Finish = Callable[[tuple[Any, ...]], int]


@dataclass(frozen=True)
class Statement:
    """SQL, its parameters, and how its rows become statistics."""

    sql: str
    parameters: Mapping[str, Any]
    keys: int
    finish: tuple[Finish, ...]

    def results(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[tuple[Value, ...], tuple[int, ...]]]:
        """Keys and statistics, from the database's rows."""
        for row in rows:
            numbers = row[self.keys :]
            yield row[: self.keys], tuple(finish(numbers) for finish in self.finish)


@dataclass
class _Columns:
    """The aggregates of a statement, each once: what it sums per row, and where it comes in the result.

    `rows` and `units` are always the first two.
    """

    terms: list[tuple[str, Term]] = field(default_factory=list)

    def add(self, kind: str, term: Term) -> int:
        if (kind, term) not in self.terms:
            self.terms.append((kind, term))
        return self.terms.index((kind, term)) + 2


def statement(reading: Reading, printer: Printer) -> Statement:
    """The statement for a reading that has been checked."""
    keys = [printer.name(printer.print(key)) for key in reading.keys]
    where = None if reading.where is None else printer.print(reading.where)
    columns = _Columns()
    finish = tuple(_finish(printer, columns, statistic) for statistic in reading.statistics)
    build = _Build(reading, printer, keys, where, columns.terms)
    sql = build.by_row() if reading.bounding is None else build.by_unit(reading.bounding)
    return Statement(sql=sql, parameters=printer.parameters, keys=len(keys), finish=finish)


def _finish(printer: Printer, columns: _Columns, statistic: Statistic) -> Finish:
    times = statistic.times
    if statistic.kind in ("rows", "units"):
        place = 0 if statistic.kind == "rows" else 1
        return lambda numbers: times * int(numbers[place])
    if statistic.argument is None:
        raise InternalError("A reading reached an engine unchecked.")
    argument = printer.name(printer.print(statistic.argument))
    if statistic.kind in ("values", "nulls"):
        values = columns.add("values", argument)
        if statistic.kind == "values":
            return lambda numbers: times * int(numbers[values])
        return lambda numbers: times * (int(numbers[0]) - int(numbers[values]))
    term = grid.steps(printer, statistic, argument, statistic.argument.type)
    total = columns.add("sum", term)
    if statistic.shift == 0:
        return lambda numbers: times * int(numbers[total] or 0)
    count, shift = columns.add("values", argument), statistic.shift
    return lambda numbers: times * (int(numbers[total] or 0) - shift * int(numbers[count]))


@dataclass
class _Build:
    """The parts of one statement."""

    reading: Reading
    printer: Printer
    keys: list[Term]
    where: Term | None
    terms: list[tuple[str, Term]]

    @property
    def dialect(self) -> Dialect:
        return self.printer.dialect

    def by_row(self) -> str:
        """One aggregation; public keys are looked for among the groups, of which there are fewer than rows."""
        aggregates = ["COUNT(*) AS a0", "COUNT(*) AS a1", *self._aggregates(self.dialect.total)]
        keys = [f"{key.sql} AS k{i}" for i, key in enumerate(self.keys)]
        condition = f" WHERE {self.where.sql}" if self.where else ""
        group = ", ".join(str(i + 1) for i in range(len(keys)))
        end = f" GROUP BY {group}" if keys else " HAVING COUNT(*) > 0"
        public = self._public("g")
        text = f"SELECT {', '.join(keys + aggregates)} FROM {self.printer.rows()}{condition}{end}"
        return f"SELECT * FROM ({text}) AS g WHERE {public}" if public else text

    def by_unit(self, bounding: Bounding) -> str:
        """Bounded contributions: everybody's rows, with those of suspects replaced by what is kept of them."""
        choice = _Choice(self.printer, bounding, self.reading.keys)
        parts = [*self._crowded(bounding, choice), *self._kept(bounding), *self._pairs(bounding, choice)]
        result = [f"SUM({name}) AS {name}" for name in self._names()]
        counted = " UNION ALL ".join(self._summands(bounding.rows))
        text = f"SELECT {', '.join(self._own + result)} FROM ({counted}){self._by_key} HAVING SUM(a1) > 0"
        public = self._public("g")
        text = f"SELECT * FROM ({text}) AS g WHERE {public}" if public else text
        return f"WITH {', '.join(parts)} {text}"

    @property
    def _own(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.keys))]

    @property
    def _by_key(self) -> str:
        return f" GROUP BY {', '.join(self._own)}" if self.keys else ""

    def _crowded(self, bounding: Bounding, choice: _Choice) -> list[str]:
        """base: the rows that count; suspects: units that may have too many; crowded: their rows, with ranks."""
        keys = [f"{key.sql} AS k{i}" for i, key in enumerate(self.keys)]
        terms = [f"{term.sql} AS t{i}" for i, (_, term) in enumerate(self.terms)]
        columns = [f"{choice.unit.sql} AS u", *keys, *terms]
        columns += [f"{term.sql} AS d{i}" for i, term in enumerate(choice.columns)]
        condition = f" AND {self.where.sql}" if self.where else ""
        base = f"SELECT {', '.join(columns)} FROM {self.printer.rows()} WHERE {choice.unit.sql} IS NOT NULL{condition}"
        suspects = f"SELECT u FROM base GROUP BY u HAVING NOT ({self._innocent(bounding, choice)})"
        public = self._public("base")
        crowded = "SELECT * FROM base WHERE EXISTS (SELECT 1 FROM suspects WHERE suspects.u = base.u)"
        crowded = f"{crowded} AND {public}" if public else crowded
        needed = [column.rsplit(" AS ", 1)[1] for column in columns]
        return [
            f"base AS NOT MATERIALIZED ({base})",
            f"suspects AS MATERIALIZED ({suspects})",
            f"crowded AS MATERIALIZED ({choice.ranked(f'({crowded})', needed)})",
        ]

    def _innocent(self, bounding: Bounding, choice: _Choice) -> str:
        """A condition on one unit's rows: surely within the limits, public keys or not.

        Where units are counted, two rows of one unit in one group must not count as two.
        """
        counts_units = any(statistic.kind == "units" for statistic in self.reading.statistics)
        rows = 1 if counts_units else bounding.rows
        if not self.keys:
            return f"COUNT(*) <= {rows}"
        few = f"COUNT(*) <= {min(bounding.groups, rows)}"
        return f"{few} OR (COUNT(*) <= {bounding.groups} AND {self.dialect.distinct_at_least(choice.key())} = COUNT(*))"

    def _kept(self, bounding: Bounding) -> list[str]:
        """ceilings: where a unit's groups are cut, NULL if not; kept: rows of groups below."""
        if not self.keys:
            return ["kept AS NOT MATERIALIZED (SELECT * FROM crowded)"]
        ceiling = self.dialect.nth_smallest("r", bounding.groups + 1)
        kept = (
            "SELECT crowded.* FROM crowded JOIN ceilings ON crowded.u = ceilings.u"
            " WHERE ceilings.ceiling IS NULL OR crowded.r < ceilings.ceiling"
        )
        return [
            f"ceilings AS MATERIALIZED (SELECT u, {ceiling} AS ceiling FROM crowded GROUP BY u)",
            f"kept AS MATERIALIZED ({kept})",
        ]

    def _pairs(self, bounding: Bounding, choice: _Choice) -> list[str]:
        """pairs: one row for each suspect and kept group; picked: rows in their order, where a pair has too many.

        Only rows of such pairs are digested. A unit that still has too many groups, because ranks are shared, has none.
        """
        own = ", ".join(["u", *self._own])
        exact = "MIN({0})" if bounding.rows == 1 else self.dialect.total("{0}")  # of one row, the same
        aggregates = ", ".join([own, "COUNT(*) AS n", *self._aggregates(exact.format, "t{0}")])
        excess = f"SELECT u FROM every GROUP BY u HAVING COUNT(*) > {bounding.groups}"
        parts = [
            f"every AS MATERIALIZED (SELECT {aggregates} FROM kept GROUP BY {own})",
            f"pairs AS NOT MATERIALIZED (SELECT * FROM every WHERE u NOT IN ({excess}))",
        ]
        if not self.terms:
            return parts
        same = " AND ".join(["p.u = kept.u", *(f"p.{key} IS NOT DISTINCT FROM kept.{key}" for key in self._own)])
        full = f"SELECT 1 FROM pairs AS p WHERE p.n > {bounding.rows} AND {same}"
        order = f"ROW_NUMBER() OVER (PARTITION BY {own} ORDER BY {', '.join(choice.order())})"
        return [*parts, f"picked AS (SELECT *, {order} AS place FROM (SELECT * FROM kept WHERE EXISTS ({full})))"]

    def _summands(self, rows: int) -> list[str]:
        """Everybody's rows, minus those of suspects, plus what is kept of these."""
        everybody = ["COUNT(*)", "COUNT(*)", *self._sums(self.dialect.total, "t{0}")]
        paired = ["n" if self.terms else f"LEAST(n, {rows})", "1", *self._names()[2:]]
        few = f" WHERE n <= {rows}" if self.terms else ""
        made = [
            self._select(everybody) + f" FROM base{self._by_key}",
            self._select([f"-{number}" for number in everybody]) + f" FROM crowded{self._by_key}",
            self._select(paired) + f" FROM pairs{few}",
        ]
        if self.terms:
            single = ["1", "CASE WHEN place = 1 THEN 1 ELSE 0 END"]
            single += [
                f"CASE WHEN t{i} IS NULL THEN 0 ELSE 1 END" if kind == "values" else f"t{i}"
                for i, (kind, _) in enumerate(self.terms)
            ]
            made.append(self._select(single) + f" FROM picked WHERE place <= {rows}")
        return made

    def _select(self, numbers: list[str]) -> str:
        named = [f"{number} AS {name}" for number, name in zip(numbers, self._names(), strict=True)]
        return f"SELECT {', '.join(self._own + named)}"

    def _names(self) -> list[str]:
        return [f"a{i}" for i in range(len(self.terms) + 2)]

    def _aggregates(self, total: Callable[[str], str], alias: str = "") -> list[str]:
        return [f"{sql} AS a{i + 2}" for i, sql in enumerate(self._sums(total, alias))]

    def _sums(self, total: Callable[[str], str], alias: str) -> list[str]:
        shown = [alias.format(i) if alias else term.sql for i, (_, term) in enumerate(self.terms)]
        return [f"COUNT({s})" if kind == "values" else total(s) for s, (kind, _) in zip(shown, self.terms, strict=True)]

    def _public(self, table: str) -> str:
        """A condition on groups: to be among the public keys, NULL being like NULL."""
        if self.reading.public_keys is None:
            return ""
        kinds = [key.type for key in self.reading.keys]
        if not kinds:
            return "TRUE" if self.reading.public_keys else "FALSE"
        lists = [[values[i] for values in self.reading.public_keys] for i in range(len(kinds))]
        public = self.dialect.public_table([self.printer.pass_on(values) for values in lists], kinds)
        same = " AND ".join(f"q.p{i} IS NOT DISTINCT FROM {table}.k{i}" for i in range(len(kinds)))
        return f"EXISTS (SELECT 1 FROM ({public}) AS q WHERE {same})"


class _Choice:
    """The SQL of `choosing`: the unit, the rank of its groups and the order of its rows."""

    def __init__(self, printer: Printer, bounding: Bounding, keys: tuple[Expression, ...]) -> None:
        self._printer, self._dialect, self._salt = printer, printer.dialect, Salt(bounding.salt)
        kind = printer.declared[bounding.unit]
        unit = printer.print(Column(bounding.unit, kind))
        if kind is Type.TEXT:
            unit = printer.fill("CASE WHEN {0} <> '' THEN {0} END", printer.name(printer.fill("trim({0}, ' ')", unit)))
        self.unit = printer.name(unit)
        self.columns = [printer.name(printer.print(Column(name, k))) for name, k in printer.declared.items()]
        self._keys = [(f"k{i}", key.type) for i, key in enumerate(keys)]
        self._values = [("u", kind), *self._keys, *((f"d{i}", k) for i, k in enumerate(printer.declared.values()))]

    @cached_property
    def _prefix(self) -> str:
        """A parameter, made when it is first needed: a database refuses one that is not used."""
        return self._printer.value(self._salt.prefix, Type.TEXT).sql

    def ranked(self, table: str, columns: list[str]) -> str:
        """Columns of rows, and the rank r of their groups: z^5 mod P twice, in products of numbers below 2^31."""
        if not self._keys:
            return f"SELECT {', '.join(columns)} FROM {table}"
        constant = self._salt.constant
        unit = f"({self._whole(*self._values[0])} * {constant('a')} + {constant('b')}) % {P}"
        text = table
        for step in (
            f"{unit} AS z, {self.key()} AS y",
            f"z * z % {P} AS zz",
            f"((zz * zz % {P}) * z + y) % {P} AS s",
            f"s * s % {P} AS ss",
        ):
            text = f"(SELECT *, {step} FROM {text})"
        return f"SELECT {', '.join(columns)}, (ss * ss % {P}) * s % {P} AS r FROM {text}"

    def key(self) -> str:
        """The keys of a row as one number."""
        places = enumerate(self._keys)
        return " + ".join(f"({self._whole(*key)} * {self._salt.constant(f'key {i}')}) % {P}" for i, key in places)

    def order(self) -> list[str]:
        """By what the rows of one unit and group are ordered, in the names of `base`."""
        digest = " || ".join([self._prefix, *(self._canonical(name, kind) for name, kind in self._values)])
        return [f"md5({digest})", *(f"{name} NULLS FIRST" for name, kind in self._values if kind is Type.FLOAT)]

    def _whole(self, name: str, kind: Type) -> str:
        prefix = self._prefix if kind is Type.TEXT else ""
        return f"coalesce({self._dialect.whole[kind].format(name, prefix)}, {self._salt.constant('null')})"

    def _canonical(self, name: str, kind: Type) -> str:
        return f"CASE WHEN {name} IS NULL THEN 'n;' ELSE {self._dialect.canonical[kind].format(name)} || ';' END"
