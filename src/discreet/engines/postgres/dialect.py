"""PostgreSQL's SQL: NUMERIC for wide numbers, texts by code points, dates, and ids as it finds them.

Only the forms that PostgreSQL writes in its own way stand here; the others are those of `engines.sql.dialect`. It
raises where an operation has no result, so that each of them is asked for behind a condition under which it has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from discreet.engines.postgres.doubles import DOUBLE, DOUBLES, number, scale_double
from discreet.engines.postgres.posix_patterns import translate_pattern
from discreet.engines.row_choice import BUCKET, P
from discreet.engines.sql.dialect import Dialect, Extremes, Templates
from discreet.plan.expressions.evaluation import INT_HIGH, INT_LOW
from discreet.plan.expressions.functions import Template
from discreet.plan.expressions.letter_case import LOWER, UPPER
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import WHITE_SPACE, unassigned_ranges

_DAY = "[0-9]{{4}}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = "([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{{1,6}})?)?)?"


def _narrow(sql: str) -> str:
    return f"CASE WHEN {sql} BETWEEN {INT_LOW} AND {INT_HIGH} THEN CAST({sql} AS bigint) END"


def _text(sql: str) -> str:
    return f'(CAST({sql} AS text) COLLATE "C")'


_MICROSECONDS = "CAST(extract(epoch FROM {0}) * 1000000 AS bigint)"

# --------------------------------------------------------------------------------------------------------------- dates


_FIRST_OF_MONTH = "make_date(CAST(left({0}, 4) AS integer), CAST(substr({0}, 6, 2) AS integer), 1)"
_SAME_MONTH = "extract(month FROM {2}) = extract(month FROM {1})"


def _read_day(pattern: str, sql: str) -> Template:
    """Reads a text of a pattern, if its day exists: counted from the first of its month, it is in the same month."""
    return Template(
        f"CASE WHEN {_SAME_MONTH} THEN {sql} END",
        repeats=(0,),
        steps=(
            f"CASE WHEN {{0}} ~ '^{pattern}$' AND {{0}} >= '0001' THEN {_FIRST_OF_MONTH} END",
            "{1} + (CAST(CASE WHEN {1} IS NOT NULL THEN substr({0}, 9, 2) END AS integer) - 1)",
        ),
    )


_FUNCTIONS: Templates = {
    **DOUBLES,
    "integer_divide": Template(
        _narrow("{2}"),
        repeats=(1,),
        steps=("CASE WHEN {1} <> 0 THEN div(CAST({0} AS numeric), CAST({1} AS numeric)) END",),
    ),
    ("to_int", Type.TEXT): Template(
        _narrow("{1}"),
        repeats=(0,),
        steps=("CASE WHEN {0} ~ '^[+-]?[0-9]{{1,19}}$' THEN CAST({0} AS numeric) END",),
    ),
    ("to_date", Type.TEXT): _read_day(_DAY, "{2}"),
    "read_timestamp": _read_day(
        _DAY + _TIME,
        "{2} + CAST(CASE WHEN {2} IS NOT NULL AND length({0}) > 10 THEN substr({0}, 12) ELSE '00:00' END AS time)",
    ),
}

# ------------------------------------------------------------------------------------------------------ texts and ids

_ASCII = "octet_length({0}) = length({0})"


def _in_case(letters: Mapping[int, int]) -> Template:
    """Translates a text of ASCII by a short table, which is quick."""

    def table(chosen: Mapping[int, int]) -> str:
        return f"translate({{0}}, '{''.join(map(chr, chosen))}', '{''.join(map(chr, chosen.values()))}')"

    short = {one: other for one, other in letters.items() if one < 128}
    return Template(f"CASE WHEN {_ASCII} THEN {table(short)} ELSE {table(letters)} END", repeats=(0,))


def _unknown() -> str:
    """Returns a set of the code points that `unit_ids.UNICODE` does not assign."""
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in unassigned_ranges()) + "]"


def _trim_text(sql: str) -> str:
    return f"nullif(btrim({sql}, '{WHITE_SPACE}'), '')"


def _normalised_id() -> str:
    """Writes `row_choice.normalised` of a text: PostgreSQL knows `unit_ids.UNICODE` or a later version from 15 on.

    A text of ASCII is in every normal form.
    """
    composed = f"CASE WHEN {{0}} IS NFC NORMALIZED OR {{0}} ~ '{_unknown()}' THEN {{0}} ELSE normalize({{0}}, NFC) END"
    return f"CASE WHEN {_ASCII} THEN {_trim_text('{0}')} ELSE {_trim_text(composed)} END"


# -------------------------------------------------------------------------------------------------------------- dialect

_KNOWN = "FILTER (WHERE {0} IS NOT NULL AND {1} IS NOT NULL)"
_PLACED = "FILTER (WHERE {1} IS NOT NULL)"
_BOTH = ("{0}", "{1}")


class PostgresDialect(Dialect):
    """PostgreSQL's SQL: exact sums in NUMERIC, texts in the order of their code points, subqueries that are kept apart.

    >>> DIALECT.total("x"), DIALECT.cast("x", Type.TEXT)
    ('SUM(CAST(x AS bigint))', '(CAST(x AS text) COLLATE "C")')
    """

    name = "postgres"
    functions: ClassVar[Templates] = {
        **_FUNCTIONS,
        "upper_case": _in_case(UPPER),
        "lower_case": _in_case(LOWER),
    }
    types: ClassVar[Mapping[Type, str]] = {
        Type.INT: "bigint",
        Type.FLOAT: DOUBLE,
        Type.BOOL: "boolean",
        Type.TEXT: "text",
        Type.DATE: "date",
        Type.TIMESTAMP: "timestamp",
    }
    strategy = "group_sort"
    wide = "numeric"
    narrow_repeats = True
    folds: ClassVar[Mapping[str | tuple[str, Type], str]] = {
        **Dialect.folds,
        ("min", Type.BOOL): "bool_and({0})",
        ("max", Type.BOOL): "bool_or({0})",
    }
    rank_numbers: ClassVar[Mapping[Type, str]] = {
        Type.INT: f"(CAST({{0}} AS bigint) % {P})",
        Type.BOOL: "CAST(CAST({0} AS integer) AS bigint)",
        Type.DATE: "CAST({0} - DATE '1970-01-01' AS bigint)",
        Type.TIMESTAMP: f"({_MICROSECONDS} % {P})",
        Type.TEXT: "CAST(CAST(CAST('x' || substr(md5({0}), 1, 7) AS bit(28)) AS integer) AS bigint)",
    }
    id_parts: ClassVar[Mapping[Type, str]] = {
        **dict.fromkeys((Type.INT, Type.BOOL, Type.DATE), _text("{0}")),
        Type.TIMESTAMP: _text(_MICROSECONDS),
        Type.TEXT: "{0}",
    }
    normalised_id = _normalised_id()
    is_id = f"btrim({{0}}, '{WHITE_SPACE}') <> ''"
    finite = f"CASE WHEN {{0}} > {number(float('-inf'))} AND {{0}} < {number(float('inf'))} THEN {{0}} END"
    nearest = f"CAST(floor({{0}}) AS bigint) + CASE WHEN {{0}} - floor({{0}}) >= {number(0.5)} THEN 1 ELSE 0 END"
    nearest_to_half = "(CAST(floor({0}) AS bigint) + 1) >> 1"
    quotient = "div({0}, {1})"
    shifted = "({0} >> CAST({1} AS integer))"
    bucket_bit = f"(CAST(1 AS bigint) << CAST({{0}} >> {BUCKET.bit_length() - 1} AS integer))"
    bit_count = "bit_count(CAST({0} AS bit(64)))"
    ordered_list = "array_agg({0} ORDER BY {1})"
    run = "generate_series({0}, {1})"
    extremes: ClassVar[Extremes] = {
        "arg_min": (_BOTH, f"(array_agg({{0}} ORDER BY {{1}}, {{0}}) {_KNOWN})[1]"),
        "arg_max": (_BOTH, f"(array_agg({{0}} ORDER BY {{1}} DESC, {{0}} DESC) {_KNOWN})[1]"),
        "first": (_BOTH, f"(array_agg({{0}} ORDER BY {{1}}, {{0}} NULLS LAST) {_PLACED})[1]"),
        "last": (_BOTH, f"(array_agg({{0}} ORDER BY {{1}} DESC, {{0}} DESC NULLS LAST) {_PLACED})[1]"),
    }

    def cast(self, sql: str, kind: Type) -> str:
        """Writes a conversion; texts are declared to be in the order of their code points from the beginning."""
        return _text(sql) if kind is Type.TEXT else super().cast(sql, kind)

    def narrow(self, sql: str) -> str:
        """Writes a NUMERIC as a bigint, NULL if that does not hold it."""
        return _narrow(sql)

    def total(self, sql: str, *, distinct: bool = False) -> str:
        """Writes an exact sum: SUM of bigint is a NUMERIC already."""
        return f"SUM({'DISTINCT ' if distinct else ''}CAST({sql} AS bigint))"

    def scale_by_power(self, exponent: int) -> Template:
        """Returns a double times two to a power: zero where that is too small for one, NULL where it is too large."""
        return scale_double(exponent)

    def scaled_within(self, exponent: int) -> Template:
        """Returns a double times two to a power, not too large by far; it may still be too small for one."""
        return super().scale_by_power(exponent) if exponent > 0 else scale_double(exponent)

    def pattern(self, written: str) -> str:
        """Returns a regular expression in PostgreSQL's notation."""
        return translate_pattern(written)

    def public_table(self, lists: Sequence[list[Any]], kinds: Sequence[Type], parameters: dict[str, Any]) -> str:
        """Writes a query for lists that travel as parameters, unnested side by side; no text here holds U+0000."""
        rows = [row for row in zip(*lists, strict=True) if not any(isinstance(v, str) and "\0" in v for v in row)]
        columns = []
        for i, kind in enumerate(kinds):
            name = self.parameter([row[i] for row in rows], parameters)
            order = ' COLLATE "C"' if kind is Type.TEXT else ""
            columns.append(f"unnest(CAST({name} AS {self.types[kind]}[])){order} AS p{i}")
        return f"SELECT {', '.join(columns)}"

    def looked_up(self, table: str, keys: Sequence[str]) -> str:
        """Declares that keys differ: PostgreSQL would take a list for many equal ones, and hash all rows instead."""
        return f"SELECT DISTINCT ON ({', '.join(keys)}) * FROM ({table}) AS listed"

    def same(self, one: str, other: str) -> str:
        """Writes that two values are equal, NULL being like NULL: of arrays that is so, and they can be hashed."""
        return f"ARRAY[{one}] = ARRAY[{other}]"

    def write_subquery(self, query: str, *, once: bool = True) -> str:
        """Writes a query as a table; OFFSET 0 keeps PostgreSQL from computing its values wherever they are named."""
        return f"({query} OFFSET 0) AS derived" if once else f"({query}) AS derived"


DIALECT = PostgresDialect()
