"""The printer: expressions as SQL, numbers as whole steps of a public grid, and the printed parts of a reading.

What an analyst wrote is never part of the text: columns are called c0, c1, ... by us, computed values v0, v1, ...,
texts travel apart from it, and numbers, days and moments are printed from their values.

A value that is used twice is given a name in a subquery below (`Printer.name`), so that the text grows with the plan
and not with its depth's power, and the database computes it once.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import reduce
from typing import Any
from typing import Literal as Choice

from discreet.dataclass import dataclass
from discreet.engines.abstract_engine import read_as
from discreet.engines.sql.dialect import Dialect
from discreet.errors import InternalError
from discreet.exact import float_above, float_below
from discreet.plan.expressions.evaluation import INT_HIGH, INT_LOW
from discreet.plan.expressions.functions import Template
from discreet.plan.expressions.functions.elementary import LARGEST, SPLITTER
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal, Value
from discreet.plan.model.readings import Statistic
from discreet.plan.model.types import Type
from discreet.plan.validation import find_argument_types

_NAME = re.compile(r"\b[cv][0-9]+\b")

_Layers = list[tuple[list[str], dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Term:
    """Printed SQL and the number of subqueries that must lie below it."""

    sql: str
    level: int
    simple: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """How a table is read best; whatever is said here, the same rows are found.

    Args:
        is_slow: whether ids are better not computed twice, as those of a text file.
        is_kept: whether rows that are needed twice are better kept than read again.
        is_dense: whether the units are whole numbers close together.
        is_sorted: whether the engine sorts rows by unit and rank itself, where it can (`unit_sort`).
        ends: the smallest and the largest unit, if units are whole numbers and most seem to have one row each.
    """

    is_slow: bool = False
    is_kept: bool = False
    is_dense: bool = False
    is_sorted: bool = False
    ends: tuple[int, int] | None = None


@dataclass
class Printer:
    """Prints the expressions of one statement over one source.

    Args:
        dialect: the database's.
        source: SQL of the table, as it appears after FROM.
        columns: how each declared column is stored there: type, and SQL that yields it.
        declared: the declared types.
        parameters: of the statement.
        is_finite: whether the source's numbers are known to be finite; else those that are not are NULL.
        access: how the source is read best.
    """

    dialect: Dialect
    source: str
    columns: Mapping[str, tuple[Type, str]]
    declared: Mapping[str, Type]
    parameters: dict[str, Any] = field(default_factory=dict)
    is_finite: bool = False
    access: Access = Access()
    _raw: dict[str, str] = field(default_factory=dict)
    _named: dict[str, Term] = field(default_factory=dict)
    _layers: list[dict[str, str]] = field(default_factory=list)
    _unchecked: dict[str, Term] = field(default_factory=dict)

    def print(self, expression: Expression) -> Term:
        """Prints an expression over declared columns."""
        return _PRINT[type(expression)](self, expression)

    def name(self, term: Term) -> Term:
        """Gives a value a name, computed once in a subquery below; what is simple stays as it is."""
        if term.simple:
            return term
        if term.sql not in self._named:
            while len(self._layers) <= term.level:
                self._layers.append({})
            alias = f"v{len(self._named)}"
            self._layers[term.level][alias] = term.sql
            self._named[term.sql] = Term(alias, term.level + 1, simple=True)
            if term.sql in self._unchecked:
                self._unchecked[alias] = self._unchecked[term.sql]
        return self._named[term.sql]

    def finite(self, term: Term) -> Term:
        """Prints a double, NULL if it is NaN or infinite."""
        made = self.fill(self.dialect.finite, term)
        self._unchecked[made.sql] = term
        return made

    def unchecked_term(self, term: Term) -> Term:
        """Returns the double that `finite` was given to make a term, if it did: for what asks for its size anyway."""
        return self._unchecked.get(term.sql, term)

    def value(self, value: Any, kind: Type) -> Term:
        """Prints a literal; texts travel as parameters."""
        if kind is Type.TEXT and value is not None:
            return Term(self.dialect.write_parameter(str(value), kind, self.parameters), 0, simple=True)
        return Term(self.dialect.literal(value, kind), 0, simple=True)

    def fill(self, text: str, *terms: Term) -> Term:
        """Fills a template with terms."""
        sqls = [term.sql for term in terms]
        filled = text.format(*sqls, all=", ".join(sqls), rest=", ".join(sqls[1:]))
        return Term(f"({filled})", max((term.level for term in terms), default=0))

    def rows(self, used: Iterable[str]) -> str:
        """Prints a subquery to stand after FROM, with the columns and values that are named in what is used of it.

        Whatever looks like a name counts as one: then a value is computed that is not needed, or that is not there.
        """
        above, wanted = self._select_layers(used)
        raw = [f"{self.columns[name][1]} AS {alias}" for name, alias in self._raw.items() if alias in wanted]
        source = self.dialect.write_subquery(f"SELECT {', '.join(raw) or '1 AS c'} FROM {self.source}", once=False)
        return self._over(source, above)

    def raw(self, used: Iterable[str]) -> list[str]:
        """Returns the names of the stored columns from which everything is computed that is used."""
        return list(self._select_layers(used)[1])

    def later(self, used: Iterable[str], source: str, beside: list[str]) -> str:
        """Prints what `rows` prints, over a source that has the raw columns, and others with them to keep."""
        return self._over(source, self._select_layers(used)[0], beside)

    def _select_layers(self, used: Iterable[str]) -> tuple[_Layers, dict[str, None]]:
        """Returns the layers that are needed, the last one first, and the raw columns below them."""
        above: _Layers = []
        wanted = self._names(used)
        for layer in reversed(self._layers):
            made = {alias: sql for alias, sql in layer.items() if alias in wanted}
            carried = [alias for alias in wanted if alias not in layer]
            wanted = self._names([*carried, *made.values()])
            above += [(carried, made)] if made else []
        return above, wanted

    def _over(self, source: str, above: _Layers, beside: Sequence[str] = ()) -> str:
        for carried, made in reversed(above):
            columns = [*dict.fromkeys([*beside, *carried]), *(f"{sql} AS {alias}" for alias, sql in made.items())]
            source = self.dialect.write_subquery(f"SELECT {', '.join(columns)} FROM {source}")
        return source

    def _names(self, texts: Iterable[str]) -> dict[str, None]:
        """Returns the names of ours in a text, in their order."""
        known = {*self._raw.values(), *(term.sql for term in self._named.values())}
        return {name: None for text in texts for name in _NAME.findall(text) if name in known}

    def _print_stored_column(self, name: str) -> Term:
        alias = self._raw.setdefault(name, f"c{len(self._raw)}")
        stored = self.columns[name][0]
        term = Term(alias, 0, simple=True)
        doubtful = stored is Type.FLOAT and not self.is_finite
        return self.name(self.finite(term)) if doubtful else term

    def _column(self, expression: ColumnRef) -> Term:
        stored, declared = self.columns[expression.name][0], self.declared[expression.name]
        reading = read_as(expression.name, stored, declared)
        return (
            self._print_stored_column(expression.name)
            if isinstance(reading, ColumnRef)
            else self.name(self._reading(reading))
        )

    def _reading(self, expression: Expression) -> Term:
        if isinstance(expression, ColumnRef):
            return self._print_stored_column(expression.name)
        if not isinstance(expression, FunctionCall):
            raise InternalError("A column is read by calls only.")
        function, (argument,) = expression.function, expression.arguments
        if isinstance(argument, FunctionCall) and argument.function == "trim" and function in self.dialect.of_trimmed:
            return self.apply(self.dialect.of_trimmed[function], self._reading(argument.arguments[0]))
        return self._apply(function, argument.type, [self._reading(argument)])

    def _call(self, call: FunctionCall) -> Term:
        kinds = find_argument_types(call)
        function, given = self._as_read(call)
        terms = [self._argument(argument, kind) for argument, kind in zip(given, kinds, strict=True)]
        if call.function in _ANY_NUMBER:
            terms = list(dict.fromkeys(terms))
        if call.function in self.dialect.pairwise:
            return reduce(lambda one, other: self._apply(function, kinds[0], [one, other]), terms)
        return self._apply(function, kinds[0], terms)

    def _argument(self, argument: Expression, kind: Type) -> Term:
        term = self.print(argument)
        if argument.type is kind:
            return term
        return self._apply("to_float", argument.type, [term])

    def _as_read(self, call: FunctionCall) -> tuple[str, tuple[Expression, ...]]:
        """Returns the function to apply, and its arguments: a database may have its own notation for patterns."""
        if call.function not in _WITH_PATTERN:
            return call.function, call.arguments
        text, pattern = call.arguments
        if not isinstance(pattern, Literal):
            raise InternalError("A pattern is a literal.")
        function, read = self.dialect.with_pattern(call.function, str(pattern.value))
        return function, (text, Literal(read, pattern.type))

    def _apply(self, function: str, first: Type, terms: list[Term]) -> Term:
        return self.apply(self.dialect.template(function, first), *terms)

    def apply(self, template: Template, *given: Term) -> Term:
        """Prints what a template makes of terms; what it repeats, and each of its steps, is computed once."""
        terms = [self.name(term) if i in template.repeats else term for i, term in enumerate(given)]
        for step in template.steps:
            terms.append(self.name(self.fill(step, *terms)))
        result = self.fill(template.text, *terms)
        if template.gridded:
            return self._round_to_grid(result)
        return self.finite(self.name(result)) if template.infinite else result

    def _round_to_grid(self, term: Term) -> Term:
        """Prints `elementary.on_grid` in the same three operations; comparisons put NaN above all numbers."""
        largest, splitter = (self.dialect.literal(number, Type.FLOAT) for number in (LARGEST, SPLITTER))
        value = self.name(self.fill(f"CASE WHEN abs({{0}}) <= {largest} THEN {{0}} END", self.name(term)))
        split = self.name(self.fill(f"{{0}} * {splitter}", value))
        return self.fill("{1} - ({1} - {0})", value, split)

    def _literal(self, literal: Literal) -> Term:
        return self.value(literal.value, literal.type)


_ANY_NUMBER = ("greatest", "least")
"""Functions that are the same without repeated arguments, which DuckDB 2.0 fails to copy within a plan."""

_WITH_PATTERN = ("like", "matches", "extract")

_PRINT: Mapping[type[Expression], Callable[[Printer, Any], Term]] = {
    ColumnRef: Printer._column,
    Literal: Printer._literal,
    FunctionCall: Printer._call,
}


# ----------------------------------------------------------------------------------------------------------------- grid

_CLIP = "CASE WHEN {{0}} <= {low} THEN {bottom} WHEN {{0}} >= {high} THEN {top} ELSE {inside} END"
_HALVED = 1 << 60  # the largest bound whose double, and a little more, is a whole number of 64 bits
_NULL_OR = "CASE WHEN {{0}} IS NULL THEN NULL ELSE {inside} END"
_LARGEST = sys.float_info.max


def grid_steps(printer: Printer, statistic: Statistic, argument: Term, kind: Type) -> Term:
    """Prints the term of a sum, clip(floor(x * 2^-exponent + 1/2), low, high), as a named INT; NULL where x is.

    Formal guarantee: the result equals the formula computed with rationals, for every double and every 64-bit integer.
    No number is rounded on the way except where it cannot matter: multiplying a double by a power of two is exact
    unless it falls below the smallest double, far from the half where the result would change; floor(s + 1/2) is
    floor((floor(2s) + 1) / 2), of whole numbers; and s - floor(s), for bounds so large that 2s would not do, is exact
    below 1/2, and where it is rounded it stays at or above. (A double plus 1/2 would not do: 0.5 - 2^-54 would become
    1.) The cases of CASE keep NULL, which LEAST and GREATEST would turn into a bound.
    """
    if kind is Type.INT:
        form = _whole_number
    else:
        form = _double if max(abs(statistic.low), abs(statistic.high)) <= _HALVED else _large_double
    return printer.name(form(printer, statistic, printer.name(argument)))


def _ends(statistic: Statistic) -> tuple[Fraction, Fraction]:
    low, high = (Fraction(steps) * Fraction(2) ** statistic.exponent for steps in (statistic.low, statistic.high))
    return low, high


def _double(printer: Printer, statistic: Statistic, x: Term) -> Term:
    """Asks first whether x is between the outermost doubles that lie within the bounds: most are, and nothing more is.

    Their steps are within the bounds, too; a double beyond the lower one is below low * 2^exponent, so that its steps
    are clipped to low. Where no double lies within the bounds, the lower one is just above the upper one, and each x
    is beyond one of them. NaN is above all numbers, and neither it nor an infinite one is in any case of the CASE.
    """
    low, high = _ends(statistic)
    first, last = float_above(low), float_below(high)
    most, least = (printer.dialect.literal(end, Type.FLOAT) for end in (_LARGEST, -_LARGEST))
    if math.isinf(first) or math.isinf(last):  # no double is as large as the bounds, and not each database has infinity
        beyond = statistic.low if math.isinf(first) else statistic.high
        return printer.fill(f"CASE WHEN {{0}} BETWEEN {least} AND {most} THEN {beyond} END", printer.unchecked_term(x))
    ends = [printer.dialect.literal(end, Type.FLOAT) for end in (first, last)]
    scaled = printer.dialect.scaled_within(1 - statistic.exponent).text
    inside = printer.dialect.nearest_to_half.format(f"({scaled})")
    text = (
        f"CASE WHEN {{0}} BETWEEN {ends[0]} AND {ends[1]} THEN {inside} "
        f"WHEN {{0}} > {ends[1]} AND {{0}} <= {most} THEN {statistic.high} "
        f"WHEN {{0}} < {ends[0]} AND {{0}} >= {least} THEN {statistic.low} END"
    )
    return printer.fill(text, printer.unchecked_term(x))


def _large_double(printer: Printer, statistic: Statistic, x: Term) -> Term:
    low, high = _ends(statistic)
    bottom, top = _below(low), _above(high)
    ends = (printer.dialect.literal(end, Type.FLOAT) for end in (bottom, top))
    clipped = printer.fill(_clip(*ends), x)
    scaled = printer.name(printer.apply(printer.dialect.scale_by_power(-statistic.exponent), clipped))
    whole = printer.fill(printer.dialect.nearest, scaled)
    if (Fraction(bottom), Fraction(top)) == (low, high):
        return whole
    return printer.fill(_clip(str(statistic.low), str(statistic.high)), printer.name(whole))


def _clip(low: str, high: str) -> str:
    return _CLIP.format(low=low, bottom=low, high=high, top=high, inside="{0}")


def _below(bound: Fraction) -> float:
    return float_below(max(bound, -Fraction(_LARGEST)))


def _above(bound: Fraction) -> float:
    return float_above(min(bound, Fraction(_LARGEST)))


def _whole_number(printer: Printer, statistic: Statistic, x: Term) -> Term:
    text = _finer(statistic) if statistic.exponent <= 0 else _coarser(statistic, printer.dialect)
    return printer.fill(text, x)


def _finer(statistic: Statistic) -> str:
    """Prints x * 2^k: it lies within the bounds exactly if x lies within theirs / 2^k, and then cannot overflow."""
    scale = 1 << -statistic.exponent
    low, high = _wide(-(-statistic.low // scale)), _wide(statistic.high // scale)
    inside = "{0}" if scale == 1 else f"{{0}} * {min(scale, 1 << 62)}"  # a larger scale leaves only x = 0 within
    return (
        f"CASE WHEN {{0}} BETWEEN {low} AND {high} THEN {inside} "
        f"WHEN {{0}} > {high} THEN {statistic.high} WHEN {{0}} < {low} THEN {statistic.low} END"
    )


def _coarser(statistic: Statistic, dialect: Dialect) -> str:
    """Prints floor((x + half) / step) on numbers shifted to be positive, where this rounds towards zero."""
    step, half = 1 << statistic.exponent, 1 << (statistic.exponent - 1)
    if half > INT_HIGH:  # every x is nearest to zero
        return _NULL_OR.format(inside=max(statistic.low, min(statistic.high, 0)))
    base = max(statistic.low, INT_LOW // step - 1)
    quotient = dialect.quotient.format(f"({dialect.widen('{0}')} + {half - base * step})", step)
    inside = dialect.cast(f"{quotient} + {base}", Type.INT)
    return _CLIP.format(
        low=_wide((statistic.low + 1) * step - half - 1),
        bottom=statistic.low,
        high=_wide(statistic.high * step - half),
        top=statistic.high,
        inside=inside,
    )


def _wide(bound: int) -> str:
    """Returns a bound to compare 64-bit integers with; beyond them, the first number that compares alike."""
    return str(max(INT_LOW - 1, min(INT_HIGH + 1, bound)))


# --------------------------------------------------------------------------------------------------- parts of a reading

TermKind = Choice["values", "sum", "distinct", "distinct_sum"]


@dataclass(frozen=True)
class PrintedReading:
    """The printed parts of a reading: keys k0, k1, ..., terms t0, t1, ..., and the aggregates a0, a1, ... made of them.

    The aggregates a0 and a1 are the numbers of rows and of units; a2, a3, ... belong to the terms, which are counted
    where they are not NULL (*values*), summed, or counted or summed without repetition (*distinct*, *distinct_sum*).
    Rows are *made* if they are not simply those of a table: then they are kept between one look and the next.
    If `heavy` is given, it is a query for units u; all others are within the limits.
    """

    printer: Printer
    keys: tuple[tuple[Term, Type], ...]
    where: Term | None
    terms: tuple[tuple[TermKind, Term], ...]
    public_keys: tuple[tuple[Value, ...], ...] | None
    counts_units: bool
    made: bool = False
    heavy: str | None = None

    @property
    def dialect(self) -> Dialect:
        """Returns the dialect of the printer."""
        return self.printer.dialect

    @property
    def is_kept(self) -> bool:
        """Returns whether rows are kept between one look and the next."""
        return self.made or self.printer.access.is_kept

    @property
    def is_dense(self) -> bool:
        """Returns whether units are whole numbers close together; those of rows that were joined need not be."""
        return self.printer.access.is_dense and not self.made

    @property
    def k(self) -> list[str]:
        """Returns the names of the keys."""
        return [f"k{i}" for i in range(len(self.keys))]

    @property
    def t(self) -> list[str]:
        """Returns the name of each term; terms of the same value share one."""
        names: dict[str, str] = {}
        return [names.setdefault(term.sql, f"t{len(names)}") for _, term in self.terms]

    @property
    def columns(self) -> list[str]:
        """Returns the names of the terms, each once."""
        return list(dict.fromkeys(self.t))

    @property
    def a(self) -> list[str]:
        """Returns the names of the terms' aggregates."""
        return [f"a{i + 2}" for i in range(len(self.terms))]

    @property
    def key_columns(self) -> list[str]:
        """Returns the keys under their names."""
        return [f"{key.sql} AS k{i}" for i, (key, _) in enumerate(self.keys)]

    @property
    def named_terms(self) -> list[str]:
        """Returns the terms under their names."""
        named = {t: term.sql for t, (_, term) in zip(self.t, self.terms, strict=True)}
        return [f"{sql} AS {t}" for t, sql in named.items()]

    @property
    def distinct(self) -> list[int]:
        """Returns the places of terms whose different values count, which no sum over pairs can show."""
        return [i for i, (kind, _) in enumerate(self.terms) if kind in ("distinct", "distinct_sum")]

    def aggregates(self, terms: list[str]) -> list[str]:
        """Prints the aggregates of the terms, which the caller knows under these names."""
        made = [self.aggregate(i, t) for i, t in enumerate(terms)]
        return [f"{total} AS {a}" for total, a in zip(made, self.a, strict=True)]

    def aggregate(self, place: int, term: str) -> str:
        """Prints the aggregate of the term in a place."""
        kind, _ = self.terms[place]
        if kind in ("sum", "distinct_sum"):
            return self.dialect.total(term, distinct=kind == "distinct_sum")
        return f"COUNT({term})" if kind == "values" else f"COUNT(DISTINCT {term})"

    def same_keys(self, one: str, other: str) -> list[str]:
        """Prints conditions that rows of two tables are of the same group, NULL being like NULL."""
        return [self.dialect.same(f"{one}.{k}", f"{other}.{k}") for k in self.k]

    def public(self, table: str) -> str:
        """Prints the condition to be among the public keys, "" if there are none; to be used once."""
        if self.public_keys is None:
            return ""
        if not self.keys:
            return "TRUE" if self.public_keys else "FALSE"
        return self.among(self.public_keys, table)

    def among(self, keys: tuple[tuple[Value, ...], ...], table: str) -> str:
        """Prints the condition to be among some keys; to be used once."""
        kinds = [kind for _, kind in self.keys]
        lists = [[values[i] for values in keys] for i in range(len(kinds))]
        public = self.dialect.public_table(lists, kinds, self.printer.parameters)
        same = " AND ".join(
            self.dialect.same(f"q.p{i}", f"{table}.k{i}") if None in values else f"q.p{i} = {table}.k{i}"
            for i, values in enumerate(lists)
        )
        return f"EXISTS (SELECT 1 FROM ({public}) AS q WHERE {same})"


def select(*columns: str, source: str, where: str = "", group: list[str] | None = None, having: str = "") -> str:
    """Prints a query; what is empty is left out."""
    text = f"SELECT {', '.join(columns)} FROM {source}"
    for word, part in (("WHERE", where), ("GROUP BY", ", ".join(group or ())), ("HAVING", having)):
        text += f" {word} {part}" if part else ""
    return text


def print_subquery(text: str, name: str = "x") -> str:
    """Prints a query as a named table."""
    return f"({text}) AS {name}"
