"""Expressions as SQL: one template per function, every one total. Another database overrides the entries that differ.

What an analyst wrote is never part of the text: columns are called c0, c1, ... by us, computed values v0, v1, ...,
texts travel as parameters, and numbers, days and moments are printed from their values.

A value that is used twice is given a name in a subquery below (`Printer.name`), so that the text grows with the plan
and not with its depth's power, and the database computes it once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.engines import ids
from discreet.engines.base import read_as
from discreet.engines.cells import FALSE, TRUE
from discreet.engines.row_choice import BUCKET, P
from discreet.errors import InternalError, InvalidParameter
from discreet.plan.expressions.evaluation import LAST_DAY
from discreet.plan.expressions.functions import FUNCTIONS, LONGEST_TEXT
from discreet.plan.model.nodes import Call, Column, Expression, Literal
from discreet.plan.model.types import Type
from discreet.plan.validation import wanted


@dataclass(frozen=True, slots=True)
class Template:
    """SQL with {0}, {1}, ... for arguments, {all} for all and {rest} for all but the first, separated by commas.

    Args:
        text: the template.
        repeats: the arguments that stand in it more than once.
        infinite: whether the result may be NaN or infinite, and is NULL then.
    """

    text: str
    repeats: tuple[int, ...] = ()
    infinite: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """Printed SQL and the number of subqueries that must lie below it."""

    sql: str
    level: int
    simple: bool = False


def _wide(text: str) -> str:
    return f"TRY_CAST({text} AS BIGINT)".replace("{0}", "CAST({0} AS HUGEINT)").replace("{1}", "CAST({1} AS HUGEINT)")


def _matches(pattern: str, sql: str) -> Template:
    return Template(f"CASE WHEN regexp_full_match({{0}}, '{pattern}') THEN {sql} END", repeats=(0,))


def _words(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _held(most: int) -> str:
    """The second argument as a 32-bit number that no day within the years 1 to 9999 is carried out of range by."""
    return f"CAST(greatest(least({{1}}, {most}), -{most}) AS INTEGER)"


def _moved(place: str, last: int, sql: str, most: int) -> Template:
    """A day or moment elsewhere, if the place, counted from the year 1, is in the years up to 9999."""
    moved = sql.replace("{1}", _held(most))
    return Template(f"CASE WHEN CAST({place} AS HUGEINT) + {{1}} BETWEEN 0 AND {last} THEN {moved} END", repeats=(0, 1))


def _moved_days(sql: str) -> Template:
    return _moved("(CAST({0} AS DATE) - DATE '0001-01-01')", LAST_DAY - 1, sql, LAST_DAY)


def _moved_months(sql: str) -> Template:
    return _moved("(year({0}) * 12 + month({0}) - 13)", 9999 * 12 - 1, sql, 9999 * 12)


_DAY = "[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
_TIME = "([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{{1,6}})?)?)?"
_SMALL, _LARGE = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LONGEST = (1 << 31) - 1  # positions beyond it are past the end of every text a database can hold

TEMPLATES: Mapping[str | tuple[str, Type], Template] = {
    ("add", Type.INT): Template(_wide("{0} + {1}")),
    ("subtract", Type.INT): Template(_wide("{0} - {1}")),
    ("multiply", Type.INT): Template(_wide("{0} * {1}")),
    ("negate", Type.INT): Template(_wide("-{0}")),
    ("absolute", Type.INT): Template(_wide("abs({0})")),
    ("add", Type.FLOAT): Template("{0} + {1}", infinite=True),
    ("subtract", Type.FLOAT): Template("{0} - {1}", infinite=True),
    ("multiply", Type.FLOAT): Template("{0} * {1}", infinite=True),
    ("negate", Type.FLOAT): Template("-{0}"),
    ("absolute", Type.FLOAT): Template("abs({0})"),
    "divide": Template("CASE WHEN {1} <> 0 THEN {0} / {1} END", repeats=(1,), infinite=True),
    "integer_divide": Template(f"CASE WHEN {{1}} <> 0 THEN {_wide('{0} // {1}')} END", repeats=(1,)),
    "modulo": Template(f"CASE WHEN {{1}} <> 0 THEN {_wide('{0} % {1}')} END", repeats=(1,)),
    "round": Template("round({0})"),
    "floor": Template("floor({0})"),
    "ceil": Template("ceil({0})"),
    "square_root": Template("sqrt(CASE WHEN {0} >= 0 THEN {0} END)", repeats=(0,)),
    "greatest": Template("greatest({all})"),
    "least": Template("least({all})"),
    "equal": Template("{0} = {1}"),
    "not_equal": Template("{0} <> {1}"),
    "less": Template("{0} < {1}"),
    "less_equal": Template("{0} <= {1}"),
    "greater": Template("{0} > {1}"),
    "greater_equal": Template("{0} >= {1}"),
    "and": Template("{0} AND {1}"),
    "or": Template("{0} OR {1}"),
    "not": Template("NOT {0}"),
    "is_null": Template("{0} IS NULL"),
    "in": Template("{0} IN ({rest})"),
    "like": Template("{0} LIKE {1}"),
    "if": Template("CASE WHEN {0} THEN {1} ELSE {2} END"),
    "coalesce": Template("coalesce({all})"),
    "null_if": Template("CASE WHEN {0} = {1} THEN NULL ELSE {0} END", repeats=(0,)),
    ("to_int", Type.INT): Template("{0}"),
    ("to_int", Type.BOOL): Template("CAST({0} AS BIGINT)"),
    ("to_int", Type.FLOAT): Template(
        "CASE WHEN {0} >= -9223372036854775808e0 AND {0} < 9223372036854775808e0 THEN CAST(trunc({0}) AS BIGINT) END",
        repeats=(0,),
    ),
    ("to_int", Type.TEXT): _matches("[+-]?[0-9]{{1,19}}", "TRY_CAST({0} AS BIGINT)"),
    ("to_float", Type.FLOAT): Template("{0}"),
    ("to_float", Type.INT): Template("CAST({0} AS DOUBLE)"),
    ("to_float", Type.TEXT): Template(
        _matches("[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?", "TRY_CAST({0} AS DOUBLE)").text,
        repeats=(0,),
        infinite=True,
    ),
    ("to_text", Type.TEXT): Template("{0}"),
    "to_text": Template("CAST({0} AS VARCHAR)"),
    ("to_date", Type.DATE): Template("{0}"),
    ("to_date", Type.TIMESTAMP): Template("CAST({0} AS DATE)"),
    ("to_date", Type.TEXT): Template(
        f"CASE WHEN regexp_full_match({{0}}, '{_DAY}') AND {{0}} >= '0001' THEN TRY_CAST({{0}} AS DATE) END",
        repeats=(0,),
    ),
    "year": Template("year({0})"),
    "quarter": Template("quarter({0})"),
    "month": Template("month({0})"),
    "day": Template("day({0})"),
    "day_of_week": Template("isodow({0})"),
    "hour": Template("hour({0})"),
    "week": Template("week({0})"),
    "day_of_year": Template("dayofyear({0})"),
    "day_name": Template("dayname({0})"),
    "month_name": Template("monthname({0})"),
    "days_between": Template("{1} - {0}"),
    ("add_days", Type.DATE): _moved_days("{0} + {1}"),
    ("add_days", Type.TIMESTAMP): _moved_days("{0} + to_days({1})"),
    ("add_months", Type.DATE): _moved_months("CAST({0} + to_months({1}) AS DATE)"),
    ("add_months", Type.TIMESTAMP): _moved_months("{0} + to_months({1})"),
    "end_of_month": Template("last_day({0})"),
    "start_of_year": Template("CAST(date_trunc('year', {0}) AS DATE)"),
    "start_of_quarter": Template("CAST(date_trunc('quarter', {0}) AS DATE)"),
    "start_of_month": Template("CAST(date_trunc('month', {0}) AS DATE)"),
    "start_of_week": Template("CAST(date_trunc('week', {0}) AS DATE)"),
    "upper": Template(f"translate({{0}}, '{_SMALL}', '{_LARGE}')"),
    "lower": Template(f"translate({{0}}, '{_LARGE}', '{_SMALL}')"),
    "trim": Template("trim({0}, ' ')"),
    "trim_left": Template("ltrim({0}, ' ')"),
    "trim_right": Template("rtrim({0}, ' ')"),
    "length": Template("length({0})"),
    "concat": Template(
        f"CASE WHEN length({{0}}) + length({{1}}) <= {LONGEST_TEXT} THEN {{0}} || {{1}} END", repeats=(0, 1)
    ),
    # The text itself is left out where the result could be long, so that nothing long is ever made.
    "replace": Template(
        "replace(CASE WHEN length({2}) <= length({1})"
        f" OR length({{0}}) * length({{2}}) <= {LONGEST_TEXT} THEN {{0}} END, {{1}}, {{2}})",
        repeats=(0, 1, 2),
    ),
    "split_part": Template(
        "CASE WHEN {1} <> '' AND {2} IS NOT NULL THEN split_part({0}, {1}, "
        f"greatest(least({{2}}, {_LONGEST}), -{_LONGEST})) WHEN {{1}} = '' AND {{2}} IN (1, -1) THEN {{0}} "
        "WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL THEN '' END",
        repeats=(0, 1, 2),
    ),
    "position": Template("strpos({0}, {1})"),
    "starts_with": Template("starts_with({0}, {1})"),
    "ends_with": Template("ends_with({0}, {1})"),
    "contains": Template("contains({0}, {1})"),
    # From max(b, 1) up to, not including, b + max(c, 0), all held to positions that a text can have.
    "substring": Template(
        "CASE WHEN {1} IS NOT NULL AND {2} IS NOT NULL THEN "
        f"substring({{0}}, least(greatest({{1}}, 1), {_LONGEST}), "
        f"CAST(greatest(least(CAST({{1}} AS HUGEINT) + greatest({{2}}, 0), {_LONGEST})"
        f" - least(greatest({{1}}, 1), {_LONGEST}), 0) AS BIGINT)) END",
        repeats=(1, 2),
    ),
    "read_bool": Template(
        f"CASE WHEN {{0}} IN ({_words(TRUE)}) THEN TRUE WHEN {{0}} IN ({_words(FALSE)}) THEN FALSE END",
        repeats=(0,),
    ),
    "read_timestamp": Template(
        f"CASE WHEN regexp_full_match({{0}}, '{_DAY}{_TIME}') AND {{0}} >= '0001' "
        "THEN TRY_CAST({0} AS TIMESTAMP) END",
        repeats=(0,),
    ),
    "midnight": Template("CAST({0} AS TIMESTAMP)"),
}
"""The functions of `plan.functions`, and the three for reading; a pair is looked up first, by the first argument."""

WHOLE: Mapping[Type, str] = {
    Type.INT: f"({{0}} % {P})",
    Type.BOOL: "CAST({0} AS BIGINT)",
    Type.DATE: "({0} - DATE '1970-01-01')",
    Type.TIMESTAMP: f"(epoch_us({{0}}) % {P})",
    Type.TEXT: "TRY_CAST('0x' || substring(md5({0}), 1, 7) AS BIGINT)",
}
"""Ids and keys as numbers between -P and P, equal to `choosing.Salt.whole` modulo P."""

PART: Mapping[Type, str] = {
    **dict.fromkeys((Type.INT, Type.BOOL, Type.DATE), "CAST({0} AS VARCHAR)"),
    Type.TIMESTAMP: "CAST(epoch_us({0}) AS VARCHAR)",
    Type.TEXT: "{0}",
}
"""A part of an id as text, equal to that of `choosing.put_together`."""


def quoted(name: str) -> str:
    """A declared name as an identifier.

    >>> quoted('a"b')
    '"a""b"'
    """
    if "\0" in name:
        raise InvalidParameter("column", name, "to have a name without NUL")
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A text of the steward's, such as a path, as a literal."""
    if "\0" in text:
        raise InvalidParameter("text", text, "to be without NUL")
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Dialect:
    """What a database calls things."""

    templates: Mapping[str | tuple[str, Type], Template] = field(default_factory=lambda: TEMPLATES)
    types: Mapping[Type, str] = field(
        default_factory=lambda: {
            Type.INT: "BIGINT",
            Type.FLOAT: "DOUBLE",
            Type.BOOL: "BOOLEAN",
            Type.TEXT: "VARCHAR",
            Type.DATE: "DATE",
            Type.TIMESTAMP: "TIMESTAMP",
        }
    )
    whole: Mapping[Type, str] = field(default_factory=lambda: WHOLE)
    part: Mapping[Type, str] = field(default_factory=lambda: PART)
    finite: str = "CASE WHEN isfinite({0}) THEN {0} END"
    bit: str = f"CAST(1 AS BIGINT) << ({{0}} >> {BUCKET.bit_length() - 1})"  # of a rank's bucket
    bit_count: str = "CAST(bit_count({0}) AS BIGINT)"
    by_code_points: str = "{0}"  # a TEXT as it is sorted by
    normalised: str = field(default_factory=ids.sql)  # a TEXT as the id that it is
    somebody: str = field(default_factory=ids.somebody)  # whether it is one
    wide: str = "CAST({0} AS HUGEINT)"  # an integer that can be multiplied by another
    run: str = "unnest(range({0}, {1} + 1))"  # a row for each whole number from one to another
    once: str = "AS MATERIALIZED"
    inline: str = "AS NOT MATERIALIZED"

    def template(self, function: str, first: Type) -> Template:
        """The template of a function, by its first argument's type where that matters."""
        found = self.templates.get((function, first)) or self.templates.get(function)
        if found is None:
            raise InvalidParameter("function", function, "to be known to this engine")
        return found

    def parameter(self, name: str, kind: Type) -> str:
        """A place for a value that travels beside the text."""
        return f"CAST(${name} AS {self.types[kind]})"

    def public_table(self, names: list[str], kinds: list[Type]) -> str:
        """A table of lists that travel as parameters, one column each, called p0, p1, ..."""
        columns = (f"unnest(CAST(${n} AS {self.types[k]}[])) AS p{i}" for i, (n, k) in enumerate(zip(names, kinds)))  # noqa: B905
        return f"SELECT {', '.join(columns)}"

    def total(self, sql: str) -> str:
        """An aggregate: the exact sum of BIGINTs, without overflow up to 10^19 rows."""
        return f"SUM({self.wide.format(sql)})"


@dataclass
class Printer:
    """Prints the expressions of one statement over one source.

    Args:
        dialect: the database's.
        source: SQL of the table, as it stands after FROM.
        columns: how each declared column is stored there: type, and SQL that yields it.
        declared: the declared types.
        parameters: of the statement.
        is_finite: whether the source's numbers are known to be finite; else those that are not are NULL.
    """

    dialect: Dialect
    source: str
    columns: Mapping[str, tuple[Type, str]]
    declared: Mapping[str, Type]
    parameters: dict[str, Any] = field(default_factory=dict)
    is_finite: bool = False
    _raw: dict[str, str] = field(default_factory=dict)
    _named: dict[str, Term] = field(default_factory=dict)
    _layers: list[list[str]] = field(default_factory=list)

    def print(self, expression: Expression) -> Term:
        """An expression over declared columns."""
        return _PRINT[type(expression)](self, expression)

    def name(self, term: Term) -> Term:
        """The same value under a name, computed once in a subquery below; what is simple stays as it is."""
        if term.simple:
            return term
        if term.sql not in self._named:
            while len(self._layers) <= term.level:
                self._layers.append([])
            alias = f"v{len(self._named)}"
            self._layers[term.level].append(f"{term.sql} AS {alias}")
            self._named[term.sql] = Term(alias, term.level + 1, simple=True)
        return self._named[term.sql]

    def value(self, value: Any, kind: Type) -> Term:
        """A literal; texts become parameters."""
        if value is None:
            return Term(f"CAST(NULL AS {self.dialect.types[kind]})", 0, simple=True)
        return Term(_LITERALS[kind](self, value), 0, simple=True)

    def pass_on(self, value: Any) -> str:
        """The name of a parameter with this value."""
        name = f"q{len(self.parameters)}"
        self.parameters[name] = value
        return name

    def fill(self, text: str, *terms: Term) -> Term:
        """A template filled in with terms."""
        sqls = [term.sql for term in terms]
        filled = text.format(*sqls, all=", ".join(sqls), rest=", ".join(sqls[1:]))
        return Term(f"({filled})", max((term.level for term in terms), default=0))

    def rows(self) -> str:
        """All named values and columns, as a subquery after FROM; to be called last."""
        raw = ", ".join(f"{self.columns[name][1]} AS {alias}" for name, alias in self._raw.items())
        text = f"SELECT {raw or '1 AS c'} FROM {self.source}"
        for layer in self._layers:
            text = f"SELECT *, {', '.join(layer)} FROM ({text})"
        return f"({text})"

    def _stored(self, name: str) -> Term:
        alias = self._raw.setdefault(name, f"c{len(self._raw)}")
        stored = self.columns[name][0]
        term = Term(alias, 0, simple=True)
        doubtful = stored is Type.FLOAT and not self.is_finite
        return self.name(self.fill(self.dialect.finite, term)) if doubtful else term

    def _column(self, expression: Column) -> Term:
        stored, declared = self.columns[expression.name][0], self.declared[expression.name]
        reading = read_as(expression.name, stored, declared)
        return self._stored(expression.name) if isinstance(reading, Column) else self.name(self._reading(reading))

    def _reading(self, expression: Expression) -> Term:
        if isinstance(expression, Column):
            return self._stored(expression.name)
        if not isinstance(expression, Call):
            raise InternalError("A column is read by calls only.")
        return self._apply(expression.function, expression.arguments[0].type, [self._reading(expression.arguments[0])])

    def _call(self, call: Call) -> Term:
        kinds = wanted(call)
        terms = [self._argument(a, kind) for a, kind in zip(call.arguments, kinds, strict=True)]
        if call.function in _ANY_NUMBER:
            terms = list(dict.fromkeys(terms))
        return self._apply(call.function, kinds[0], terms)

    def _argument(self, argument: Expression, kind: Type) -> Term:
        term = self.print(argument)
        if argument.type is kind:
            return term
        return self._apply("to_float", argument.type, [term])

    def _apply(self, function: str, first: Type, terms: list[Term]) -> Term:
        template = self.dialect.template(function, first)
        terms = [self.name(term) if i in template.repeats else term for i, term in enumerate(terms)]
        result = self.fill(template.text, *terms)
        return self.fill(self.dialect.finite, self.name(result)) if template.infinite else result

    def _literal(self, literal: Literal) -> Term:
        return self.value(literal.value, literal.type)


_ANY_NUMBER = ("greatest", "least")
"""Functions that are the same without repeated arguments, which DuckDB 2.0 fails to copy within a plan."""

_PRINT: Mapping[type[Expression], Callable[[Printer, Any], Term]] = {
    Column: Printer._column,
    Literal: Printer._literal,
    Call: Printer._call,
}

_LITERALS: Mapping[Type, Callable[[Printer, Any], str]] = {
    Type.INT: lambda _, value: f"CAST({int(value)} AS BIGINT)",
    Type.FLOAT: lambda _, value: f"CAST('{float(value)!r}' AS DOUBLE)",
    Type.BOOL: lambda _, value: "TRUE" if value else "FALSE",
    Type.TEXT: lambda printer, value: printer.dialect.parameter(printer.pass_on(str(value)), Type.TEXT),
    Type.DATE: lambda _, value: f"CAST('{dt.date.isoformat(value)}' AS DATE)",
    Type.TIMESTAMP: lambda _, value: f"CAST('{dt.datetime.isoformat(value, ' ', 'microseconds')}' AS TIMESTAMP)",
}

KNOWN = frozenset(name if isinstance(name, str) else name[0] for name in TEMPLATES)
"""The functions that have a template."""

if not FUNCTIONS.keys() <= KNOWN:
    raise InternalError(f"No SQL for {sorted(FUNCTIONS.keys() - KNOWN)}.")
