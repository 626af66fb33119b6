"""DuckDB's SQL: its functions, types and lists, and ids as it finds them.

Only the forms that DuckDB writes in its own way stand here; the others are those of `engines.sql.dialect`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from discreet.engines.row_choice import BUCKET, P
from discreet.engines.sql.dialect import Dialect, Template, Templates, moved_days, moved_months, struct_extremes
from discreet.plan.expressions.functions import LONGEST_TEXT
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import COMMON, WHITE, Range

_LONGEST = (1 << 31) - 1  # positions beyond it are past the end of every text a database can hold
_DAY = "[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
_TIME = "([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{{1,6}})?)?)?"
_FLOAT = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"


_POINTS = r"\x{{{{{:x}}}}}-\x{{{{{:x}}}}}"


def _class(ranges: Iterable[Range]) -> str:
    """A set of code points as a regular expression, its braces doubled for a template."""
    return "[" + "".join(_POINTS.format(first, last) for first, last in ranges) + "]"


def _matches(pattern: str, sql: str, *, infinite: bool = False) -> Template:
    return Template(f"CASE WHEN regexp_full_match({{0}}, '{pattern}') THEN {sql} END", repeats=(0,), infinite=infinite)


def _moved_days(sql: str) -> Template:
    return moved_days(sql, place="(CAST({0} AS DATE) - DATE '0001-01-01')", wide="HUGEINT")


def _moved_months(sql: str) -> Template:
    return moved_months(sql, place="(year({0}) * 12 + month({0}) - 13)", wide="HUGEINT")


_SETTLED: tuple[Range, ...] = (
    *((0x0000, 0x019A), (0x019C, 0x0263), (0x0265, 0x1C88), (0x1C90, 0xA7CA), (0xA7D0, 0xA7D1), (0xA7D6, 0xA7D9)),
    *((0xA7F2, 0x10CF2), (0x118A0, 0x118DF), (0x16E40, 0x16E7F), (0x1E900, 0x1E943), (0x1F000, 0x3FFFF)),
)
"""Code points whose case DuckDB and `letter_case` agree on. All that have one there are among these; those that got one
in later versions of Unicode, which a later DuckDB may know, are not."""


def _in_case(function: str) -> Template:
    """A text in DuckDB's own upper or lower case, which is quick; where that is not settled, one character at a time.

    A text with as many bytes as characters is ASCII.
    """
    settled = _class(_SETTLED)
    alone = f"CASE WHEN regexp_full_match(c, '{settled}') THEN {function}(c) ELSE c END"
    return Template(
        f"CASE WHEN strlen({{0}}) = length({{0}}) OR regexp_full_match({{0}}, '{settled}*') THEN {function}({{0}}) "
        f"ELSE array_to_string(list_transform(string_split({{0}}, ''), lambda c: {alone}), '') END",
        repeats=(0,),
    )


def _gridded(text: str, domain: str = "") -> Template:
    """An elementary function of arguments in its domain; others are NULL, for some versions of DuckDB fail on them."""
    held = f"CASE WHEN {domain} THEN {{0}} END" if domain else "{0}"
    return Template(text.replace("{0}", held), repeats=(0, 1) if domain else (), gridded=True)


_ELEMENTARY: Templates = {
    "ln": _gridded("ln({0})", "{0} > 0"),
    "log2": _gridded("log2({0})", "{0} > 0"),
    "log10": _gridded("log10({0})", "{0} > 0"),
    "log": Template(
        "CASE WHEN {0} > 0 AND {0} <> 1 AND {1} > 0 THEN ln({1}) / ln({0}) END", repeats=(0, 1), gridded=True
    ),
    "power": _gridded("pow({0}, {1})"),
    "cube_root": _gridded("cbrt({0})"),
    "asin": _gridded("asin({0})", "abs({0}) <= 1"),
    "acos": _gridded("acos({0})", "abs({0}) <= 1"),
    "atan2": _gridded("atan2({0} + 0, {1} + 0)"),
    **{name: _gridded(f"{name}({{0}})") for name in ("exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh")},
}

_FUNCTIONS: Templates = {
    **_ELEMENTARY,
    "integer_divide": Template(
        "CASE WHEN {1} <> 0 THEN TRY_CAST(CAST({0} AS HUGEINT) // CAST({1} AS HUGEINT) AS BIGINT) END", repeats=(1,)
    ),
    "round": Template("round({0})"),
    "floor": Template("floor({0})"),
    "ceil": Template("ceil({0})"),
    "like": Template("{0} LIKE {1}"),
    ("to_int", Type.BOOL): Template("CAST({0} AS BIGINT)"),
    ("to_int", Type.FLOAT): Template(
        "CASE WHEN {0} >= -9223372036854775808e0 AND {0} < 9223372036854775808e0 THEN CAST(trunc({0}) AS BIGINT) END",
        repeats=(0,),
    ),
    # What is left beside the whole part is exact; a cast rounds as well, but not the same way in all versions.
    "round_to_int": Template(
        "CASE WHEN {0} >= -9223372036854775808e0 AND {0} < 9223372036854775808e0 THEN CAST(trunc({0}) + CASE"
        " WHEN abs({0} - trunc({0})) > 0.5e0"
        " OR (abs({0} - trunc({0})) = 0.5e0 AND trunc({0}) / 2e0 <> trunc({0} / 2e0))"
        " THEN sign({0}) ELSE 0e0 END AS BIGINT) END",
        repeats=(0,),
    ),
    ("to_int", Type.TEXT): _matches("[+-]?[0-9]{{1,19}}", "TRY_CAST({0} AS BIGINT)"),
    ("to_float", Type.TEXT): _matches(_FLOAT, "TRY_CAST({0} AS DOUBLE)", infinite=True),
    ("to_date", Type.TEXT): Template(
        f"CASE WHEN regexp_full_match({{0}}, '{_DAY}') AND {{0}} >= '0001' THEN TRY_CAST({{0}} AS DATE) END",
        repeats=(0,),
    ),
    "read_timestamp": Template(
        f"CASE WHEN regexp_full_match({{0}}, '{_DAY}{_TIME}') AND {{0}} >= '0001' "
        "THEN TRY_CAST({0} AS TIMESTAMP) END",
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
    "microseconds_between": Template("epoch_us({1}) - epoch_us({0})"),
    ("add_days", Type.DATE): _moved_days("{0} + {1}"),
    ("add_days", Type.TIMESTAMP): _moved_days("{0} + to_days({1})"),
    ("add_months", Type.DATE): _moved_months("CAST({0} + to_months({1}) AS DATE)"),
    ("add_months", Type.TIMESTAMP): _moved_months("{0} + to_months({1})"),
    "end_of_month": Template("last_day({0})"),
    "start_of_year": Template("CAST(date_trunc('year', {0}) AS DATE)"),
    "start_of_quarter": Template("CAST(date_trunc('quarter', {0}) AS DATE)"),
    "start_of_month": Template("CAST(date_trunc('month', {0}) AS DATE)"),
    "start_of_week": Template("CAST(date_trunc('week', {0}) AS DATE)"),
    # Most texts have nothing to trim, and trimming costs as much as reading a file's cell.
    "trim": Template("CASE WHEN contains({0}, ' ') THEN trim({0}, ' ') ELSE {0} END", repeats=(0,)),
    "trim_left": Template("ltrim({0}, ' ')"),
    "trim_right": Template("rtrim({0}, ' ')"),
    "strip": Template("trim({0}, {1})"),
    "strip_left": Template("ltrim({0}, {1})"),
    "strip_right": Template("rtrim({0}, {1})"),
    "matches": Template("regexp_matches({0}, {1})"),
    "extract": Template("regexp_extract({0}, {1}, 1)"),
    "upper_case": _in_case("upper"),
    "lower_case": _in_case("lower"),
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
}

# ------------------------------------------------------------------------------------------------------------------ ids

ID_FUNCTION = "normalised_id"
"""What SQL calls `unit_ids.id_text`; the engine registers it."""


def _is_id() -> str:
    """A condition on a text: that it is an id. Most are, by their first character."""
    return f"({{0}} >= '!' AND {{0}} < chr(128)) OR NOT regexp_full_match({{0}}, '{_class(WHITE)}*')"


def _normalised_id() -> str:
    """`row_choice.normalised` of a text. The function in Python is called only where there may be something to do.

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


class DuckDBDialect(Dialect):
    """DuckDB's SQL: HUGEINT sums, named parameters, lists and structs.

    >>> DIALECT.total("x"), DIALECT.quoted('a"b')
    ('SUM(x)', '"a""b"')
    """

    functions = _FUNCTIONS
    types: ClassVar[Mapping[Type, str]] = {
        Type.INT: "BIGINT",
        Type.FLOAT: "DOUBLE",
        Type.BOOL: "BOOLEAN",
        Type.TEXT: "VARCHAR",
        Type.DATE: "DATE",
        Type.TIMESTAMP: "TIMESTAMP",
    }
    wide = "HUGEINT"
    rank_numbers: ClassVar[Mapping[Type, str]] = {
        Type.INT: f"({{0}} % {P})",
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
    quotient = "{0} // {1}"
    shifted = "{0} >> {1}"
    bucket_bit = f"CAST(1 AS BIGINT) << ({{0}} >> {BUCKET.bit_length() - 1})"
    bit_count = "CAST(bit_count({0}) AS BIGINT)"
    ordered_list = "list({0} ORDER BY {1})"
    run = "unnest(range({0}, {1} + 1))"
    extremes = struct_extremes(_struct, "struct_extract({0}, 'b')")

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
