"""DuckDB's SQL: its functions, types and lists, and ids as it finds them.

Only the forms that DuckDB writes in its own way stand here; the others are those of `engines.sql.dialect`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from discreet.engines.row_choice import BUCKET, P
from discreet.engines.sql.dialect import Dialect, Templates, struct_extremes
from discreet.plan.expressions.functions import Template
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import COMMON, WHITE, Range

_DAY = "[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
_TIME = "([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{{1,6}})?)?)?"


_POINTS = r"\x{{{{{:x}}}}}-\x{{{{{:x}}}}}"


def _class(ranges: Iterable[Range]) -> str:
    """Returns a set of code points as a regular expression, its braces doubled for a template."""
    return "[" + "".join(_POINTS.format(first, last) for first, last in ranges) + "]"


_SETTLED: tuple[Range, ...] = (
    *((0x0000, 0x019A), (0x019C, 0x0263), (0x0265, 0x1C88), (0x1C90, 0xA7CA), (0xA7D0, 0xA7D1), (0xA7D6, 0xA7D9)),
    *((0xA7F2, 0x10CF2), (0x118A0, 0x118DF), (0x16E40, 0x16E7F), (0x1E900, 0x1E943), (0x1F000, 0x3FFFF)),
)
"""Code points whose case DuckDB and `letter_case` agree on. All that have one there are among these; those that got one
in later versions of Unicode, which a later DuckDB may know, are not."""


def _in_case(function: str) -> Template:
    """Writes DuckDB's own upper or lower case, which is quick; where that is not settled, one character at a time.

    A text with as many bytes as characters is ASCII.
    """
    settled = _class(_SETTLED)
    alone = f"CASE WHEN regexp_full_match(c, '{settled}') THEN {function}(c) ELSE c END"
    return Template(
        f"CASE WHEN strlen({{0}}) = length({{0}}) OR regexp_full_match({{0}}, '{settled}*') THEN {function}({{0}}) "
        f"ELSE array_to_string(list_transform(string_split({{0}}, ''), lambda c: {alone}), '') END",
        repeats=(0,),
    )


def _read_number(plainly: str, pattern: str, kind: str, *, trims: bool = False) -> Template:
    """Reads a number from a text by DuckDB's own conversion, where that surely reads no more than the pattern.

    A pattern is slow next to a conversion, and few texts need one: all but those that are written plainly. No text with
    a space at an end is, so only what is not written plainly is trimmed.
    """
    matched, text = (f" *{pattern} *", "trim({0}, ' ')") if trims else (pattern, "{0}")
    matches = f"regexp_full_match({{0}}, '{matched}')"
    return Template(
        f"CASE WHEN {plainly} THEN TRY_CAST({{0}} AS {kind}) WHEN {matches} THEN TRY_CAST({text} AS {kind}) END",
        repeats=(0,),
    )


WHOLE_PLAINLY = "CAST(TRY_CAST({0} AS BIGINT) AS VARCHAR) = {0}"
"""A condition on a text: digits that are written again as they were read."""

DOUBLE_PLAINLY = "{0} >= '-' AND {0}[-1] >= '.' AND NOT contains({0}, '_')"
"""A condition on a text: no plus, white space or low line, which DuckDB passes over in doubles."""

_WHOLE, _DOUBLE = "[+-]?[0-9]{{1,19}}", "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"

_NUMBERS = {"to_int": (WHOLE_PLAINLY, _WHOLE, "BIGINT"), "to_float": (DOUBLE_PLAINLY, _DOUBLE, "DOUBLE")}


def _numbers(*, trims: bool) -> dict[str, Template]:
    """Returns the functions that read numbers from texts."""
    return {
        name: replace(_read_number(*parts, trims=trims), infinite=name == "to_float")
        for name, parts in _NUMBERS.items()
    }


_FUNCTIONS: Templates = {
    **{(name, Type.TEXT): template for name, template in _numbers(trims=False).items()},
    "read_timestamp": Template(
        f"CASE WHEN regexp_full_match({{0}}, '{_DAY}{_TIME}') AND {{0}} >= '0001' "
        "THEN TRY_CAST({0} AS TIMESTAMP) END",
        repeats=(0,),
    ),
    "upper_case": _in_case("upper"),
    "lower_case": _in_case("lower"),
}

# ------------------------------------------------------------------------------------------------------------------ ids

ID_FUNCTION = "normalised_id"
"""What SQL calls `unit_ids.id_text`; the engine registers it."""


def _is_id() -> str:
    """Returns a condition on a text: that it is an id. Most are, by their first character."""
    return f"({{0}} >= '!' AND {{0}} < chr(128)) OR NOT regexp_full_match({{0}}, '{_class(WHITE)}*')"


def _normalised_id() -> str:
    """Writes `row_choice.normalised` of a text. The function in Python is called only where it may have to act.

    Cheaper questions come first: a text of ASCII that neither begins nor ends with white space or a control character
    is an id as it is, and so are words of common letters. Where a text has as many bytes as characters, its last
    character is the one in the place of the last byte; in the place of the last byte of other texts there is none.
    """
    words = f"{_class(COMMON)}+"
    return (
        "CASE WHEN {0} >= '!' AND substr({0}, strlen({0})) >= '!' THEN {0} "
        f"WHEN regexp_full_match({{0}}, '{words}( +{words})*') THEN {{0}} "
        f"WHEN {_is_id()} THEN {ID_FUNCTION}({{0}}) END"
    )


# -------------------------------------------------------------------------------------------------------------- dialect


def _struct(**parts: str) -> str:
    return f"struct_pack({', '.join(f'{name} := {sql}' for name, sql in parts.items())})"


def _modulo(number: str, others: str = "") -> str:
    """Returns a whole number modulo P; most are below it, and to see that takes half as long as a division."""
    return f"(CASE WHEN {number} BETWEEN {1 - P} AND {P - 1} THEN {number} {others}ELSE {number} % {P} END)"


class DuckDBDialect(Dialect):
    """DuckDB's SQL: HUGEINT sums, named parameters, lists and structs.

    >>> DIALECT.total("x"), DIALECT.quote_name('a"b')
    ('SUM(x)', '"a""b"')
    """

    name = "duckdb"
    functions = _FUNCTIONS
    types: ClassVar[Mapping[Type, str]] = {
        Type.INT: "BIGINT",
        Type.FLOAT: "DOUBLE",
        Type.BOOL: "BOOLEAN",
        Type.TEXT: "VARCHAR",
        Type.DATE: "DATE",
        Type.TIMESTAMP: "TIMESTAMP",
    }
    of_trimmed = _numbers(trims=True)
    wide = "HUGEINT"
    rank_numbers: ClassVar[Mapping[Type, str]] = {
        Type.INT: _modulo("CAST({0} AS BIGINT)"),
        Type.BOOL: "CAST({0} AS BIGINT)",
        Type.DATE: "({0} - DATE '1970-01-01')",
        Type.TIMESTAMP: f"(epoch_us({{0}}) % {P})",
        Type.TEXT: "TRY_CAST('0x' || substring(md5({0}), 1, 7) AS BIGINT)",
    }
    id_parts: ClassVar[Mapping[Type, str]] = {
        **dict.fromkeys((Type.INT, Type.BOOL, Type.DATE), "CAST({0} AS VARCHAR)"),
        Type.TIMESTAMP: "CAST(epoch_us({0}) AS VARCHAR)",
        Type.TEXT: "{0}",
    }
    normalised_id = _normalised_id()
    is_id = _is_id()
    finite = "CASE WHEN isfinite({0}) THEN {0} END"
    nearest = "CAST(floor({0}) AS BIGINT) + CAST({0} - floor({0}) >= CAST('0.5' AS DOUBLE) AS BIGINT)"
    nearest_to_half = "(CAST(floor({0}) AS BIGINT) + 1) >> 1"
    quotient = "{0} // {1}"
    shifted = "{0} >> {1}"
    bucket_bit = f"CAST(1 AS BIGINT) << ({{0}} >> {BUCKET.bit_length() - 1})"
    bit_count = "CAST(bit_count({0}) AS BIGINT)"
    ordered_list = "list({0} ORDER BY {1})"
    count_between = (
        "coalesce(bit_count(bitstring_agg(CASE WHEN {0} BETWEEN {1} AND {2} THEN {0} END, "
        "CAST({1} AS BIGINT), CAST({2} AS BIGINT))), 0)"
    )
    run = "unnest(range({0}, {1} + 1))"
    extremes = struct_extremes(_struct, "struct_extract({0}, 'b')")

    def key_number(self, key: str, kind: Type, null: int) -> str:
        """Writes a key as a number; what is asked of INTs first is true of nearly all of them."""
        if kind is not Type.INT:
            return super().key_number(key, kind, null)
        return _modulo(self.cast(key, kind), f"WHEN {key} IS NULL THEN {null} ")

    def narrow(self, sql: str) -> str:
        """Writes a HUGEINT as a BIGINT, NULL if that does not hold it."""
        return f"TRY_CAST({sql} AS BIGINT)"

    def total(self, sql: str, *, distinct: bool = False) -> str:
        """Writes an exact sum: SUM of BIGINT is a HUGEINT already."""
        return f"SUM({'DISTINCT ' if distinct else ''}{sql})"

    def public_table(self, lists: Sequence[list[Any]], kinds: Sequence[Type], parameters: dict[str, Any]) -> str:
        """Writes a query for lists that travel as parameters, unnested side by side."""
        columns = (
            f"unnest(CAST({self.parameter(values, parameters)} AS {self.types[kind]}[])) AS p{i}"
            for i, (values, kind) in enumerate(zip(lists, kinds, strict=True))
        )
        return f"SELECT {', '.join(columns)}"


DIALECT = DuckDBDialect()
