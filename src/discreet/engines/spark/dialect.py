"""Spark's SQL in ANSI mode: its functions, types and arrays, and ids as it finds them.

Only the forms that Spark writes in its own way stand here; the others are those of `engines.sql.dialect`. Where Spark
raises an error in ANSI mode (overflow, casts, a zero divisor, an index), the form asks before it computes, or has a
`try_` function that is NULL then. One limit is Spark's own: windows, and with them bounded contributions, hold the rows
of one unit in an array whose places have 32 bits, and a unit with more of them fails. Java's regular expressions try
one way after another: only patterns are given to them that have few ways, all others to a function in Python.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from discreet.engines.row_choice import BUCKET, P
from discreet.engines.spark.java_patterns import found_quickly
from discreet.engines.sql.dialect import Dialect, Templates, struct_extremes
from discreet.engines.sql.pattern_ways import write_like
from discreet.errors import InvalidParameter
from discreet.plan.expressions.functions import Template
from discreet.plan.expressions.letter_case import LOWER, UPPER
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import COMMON, WHITE, Range

_DAY = "[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
_TIME = "(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{{1,6}})?)?)?"
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"

ID_FUNCTION, MATCHES, EXTRACT = "discreet_id", "discreet_matches", "discreet_extract"
"""What SQL calls the functions in Python, which the engine registers."""


def _full_match(pattern: str) -> str:
    """Returns a condition that a whole text matches; Java's $ would let a line feed follow."""
    return f"{{0}} RLIKE r'(?s)^(?:{pattern})(?!.)'"


def _in_case(function: str, letters: Mapping[int, int]) -> Template:
    """Writes upper or lower case by the table of `letter_case`; what has as many bytes as characters is ASCII."""
    table = f"'{''.join(map(chr, letters))}', '{''.join(map(chr, letters.values()))}'"
    return Template(
        f"CASE WHEN octet_length({{0}}) = length({{0}}) THEN {function}({{0}}) ELSE translate({{0}}, {table}) END",
        repeats=(0,),
    )


_FUNCTIONS: Templates = {
    "read_timestamp": Template(
        f"CASE WHEN {_full_match(_DAY + _TIME)} AND {{0}} >= '0001' THEN try_cast("
        "CASE WHEN length({0}) = 16 THEN {0} || ':00' ELSE {0} END AS TIMESTAMP_NTZ) END",
        repeats=(0,),
    ),
    "matches_by_function": Template(f"{MATCHES}({{0}}, {{1}})"),
    "extract_by_function": Template(f"{EXTRACT}({{0}}, {{1}})"),
    "upper_case": _in_case("upper", UPPER),
    "lower_case": _in_case("lower", LOWER),
}

# ------------------------------------------------------------------------------------------------------------------ ids

_POINTS = r"\x{{{{{:x}}}}}-\x{{{{{:x}}}}}"


def _class(ranges: Sequence[Range]) -> str:
    """Returns a set of code points as a regular expression, its braces doubled for a template."""
    return "[" + "".join(_POINTS.format(first, last) for first, last in ranges) + "]"


def _is_id() -> str:
    """Returns a condition on a text: that it is an id. Most are, by their first character."""
    return f"(({{0}} >= '!' AND {{0}} < CAST(X'C280' AS STRING)) OR NOT ({{0}} RLIKE r'(?s)^{_class(WHITE)}*+(?!.)'))"


def _is_plain() -> str:
    """Returns a condition on a text: that it is surely an id as it is.

    Cheaper questions come first: ASCII that neither begins nor ends with white space or a control character, and common
    letters and spaces. Where a text has as many bytes as characters, its last character is the one in the place of the
    last byte; in the place of the last byte of other texts there is none.
    """
    words = _class((*COMMON, (0x20, 0x20)))
    return (
        "(({0} >= '!' AND substring({0}, octet_length({0}), 1) >= '!')"
        f" OR {{0}} RLIKE r'(?s)^(?! ){words}++(?<! )(?!.)')"
    )


def _normalised_id() -> str:
    """Writes `row_choice.normalised` of a text.

    Spark calls a function in Python for every row, wherever the call is: it is given NULL but where there may be
    something to do.
    """
    plain = _is_plain()
    odd = f"CASE WHEN {plain} THEN NULL WHEN {_is_id()} THEN {{0}} END"
    return f"coalesce(CASE WHEN {plain} THEN {{0}} END, {ID_FUNCTION}({odd}))"


# -------------------------------------------------------------------------------------------------------------- dialect


def _struct(**parts: str) -> str:
    listed = ", ".join(f"'{name}', {sql}" for name, sql in parts.items())
    return f"named_struct({listed})"


class SparkDialect(Dialect):
    """Spark's SQL: DECIMAL(38,0) sums, named parameters, arrays and structs.

    >>> DIALECT.total("x"), DIALECT.quote_name("a`b")
    ('SUM(CAST(x AS DECIMAL(38,0)))', '`a``b`')
    """

    name = "spark"
    functions = _FUNCTIONS
    types: ClassVar[Mapping[Type, str]] = {
        Type.INT: "BIGINT",
        Type.FLOAT: "DOUBLE",
        Type.BOOL: "BOOLEAN",
        Type.TEXT: "STRING",
        Type.DATE: "DATE",
        Type.TIMESTAMP: "TIMESTAMP_NTZ",
    }
    strategy = "one_sort"
    together = "/*+ REPARTITION({0}) */ "
    wide = "DECIMAL(38,0)"
    marker = ":"
    once = inline = "AS"
    rank_numbers: ClassVar[Mapping[Type, str]] = {
        Type.INT: f"(CAST({{0}} AS BIGINT) % {P})",
        Type.BOOL: "CAST({0} AS BIGINT)",
        Type.DATE: "CAST(unix_date({0}) AS BIGINT)",
        Type.TIMESTAMP: f"(timestampdiff(MICROSECOND, {_EPOCH}, {{0}}) % {P})",
        Type.TEXT: "CAST(conv(substring(md5({0}), 1, 7), 16, 10) AS BIGINT)",
    }
    id_parts: ClassVar[Mapping[Type, str]] = {
        **dict.fromkeys((Type.INT, Type.BOOL, Type.DATE), "CAST({0} AS STRING)"),
        Type.TIMESTAMP: f"CAST(timestampdiff(MICROSECOND, {_EPOCH}, {{0}}) AS STRING)",
        Type.TEXT: "{0}",
    }
    normalised_id = _normalised_id()
    is_id = _is_id()
    finite = "CASE WHEN abs({0}) < CAST('Infinity' AS DOUBLE) THEN {0} END"  # NaN is above all numbers
    nearest = "floor({0}) + CASE WHEN {0} - floor({0}) >= 0.5D THEN 1L ELSE 0L END"
    nearest_to_half = "shiftright(floor({0}) + 1L, 1)"
    quotient = "{0} DIV {1}"
    shifted = "shiftright({0}, {1})"
    bucket_bit = f"shiftleft(1L, CAST(shiftright({{0}}, {BUCKET.bit_length() - 1}) AS INT))"
    bit_count = "CAST(bit_count({0}) AS BIGINT)"
    ordered_list = "transform(array_sort(collect_list(named_struct('a', {1}, 'b', {0}))), s -> s.b)"
    run = "explode(sequence({0}, {1}))"
    extremes = struct_extremes(_struct, "{0}.b")

    def quote_name(self, name: str) -> str:
        """Writes a declared name as an identifier, such as `a``b`.

        Raises:
            InvalidParameter: for a name with NUL.
        """
        if "\0" in name:
            raise InvalidParameter("column", name, "to have a name without NUL")
        return "`" + name.replace("`", "``") + "`"

    def text_literal(self, text: str) -> str:
        """Writes a text as its bytes, which no setting reads in another way."""
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    def narrow(self, sql: str) -> str:
        """Writes a decimal as a BIGINT, NULL if that does not hold it."""
        return f"try_cast({sql} AS BIGINT)"

    def same(self, one: str, other: str) -> str:
        """Writes that two values are equal, NULL being like NULL."""
        return f"{one} <=> {other}"

    def with_pattern(self, function: str, written: str) -> tuple[str, str]:
        """Gives Java patterns that it finds in time proportional to the text, and all others to Python."""
        if function == "like":
            return function, write_like(written)
        quick = found_quickly(written)
        return (function, quick) if quick is not None else (f"{function}_by_function", written)

    def public_table(self, lists: Sequence[list[Any]], kinds: Sequence[Type], parameters: dict[str, Any]) -> str:
        """Writes a query for rows that travel as one text in JSON."""
        rows = [{f"p{i}": _json(value) for i, value in enumerate(row)} for row in zip(*lists, strict=True)]
        name = self.parameter(json.dumps(rows), parameters)
        read = ", ".join(f"p{i}: {_IN_JSON.get(kind, 'STRING')}" for i, kind in enumerate(kinds))
        columns = ", ".join(f"{self.cast(f'p{i}', kind)} AS p{i}" for i, kind in enumerate(kinds))
        return f"SELECT {columns} FROM (SELECT inline(from_json({name}, 'ARRAY<STRUCT<{read}>>')))"


_IN_JSON = {Type.INT: "BIGINT", Type.FLOAT: "DOUBLE", Type.BOOL: "BOOLEAN"}
"""Types that JSON has; days and moments travel as texts."""


def _json(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else str(value)


DIALECT = SparkDialect()
