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
from discreet.engines.spark.java_patterns import found_quickly, like
from discreet.engines.sql.dialect import Dialect, Template, Templates, moved_days, moved_months, struct_extremes
from discreet.errors import InvalidParameter
from discreet.plan.expressions.evaluation import DAY_NAMES, MONTH_NAMES
from discreet.plan.expressions.functions import LONGEST_TEXT
from discreet.plan.expressions.letter_case import LOWER, UPPER
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import COMMON, WHITE, Range

_LONGEST = (1 << 31) - 1  # positions beyond it are past the end of every text
_DAY = "[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
_TIME = "(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{{1,6}})?)?)?"
_FLOAT = "[+-]?(?:[0-9]++[.]?[0-9]*+|[.][0-9]++)(?:[eE][+-]?[0-9]++)?"
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"

ID_FUNCTION, MATCHES, EXTRACT = "discreet_id", "discreet_matches", "discreet_extract"
"""What SQL calls the functions in Python, which the engine registers."""


def _full_match(pattern: str) -> str:
    """A condition that a whole text matches; Java's $ would let a line feed follow."""
    return f"{{0}} RLIKE r'(?s)^(?:{pattern})(?!.)'"


def _matches(pattern: str, sql: str, *, infinite: bool = False) -> Template:
    return Template(f"CASE WHEN {_full_match(pattern)} THEN {sql} END", repeats=(0,), infinite=infinite)


def _whole(sql: str) -> Template:
    """A 32-bit number as an INT, so that what is computed with it has 64 bits."""
    return Template(f"CAST({sql} AS BIGINT)")


def _of_day(sql: str) -> Template:
    return _whole(sql.replace("{0}", "CAST({0} AS DATE)"))


def _rounded(sql: str) -> Template:
    """A whole number in FLOAT; doubles beyond 2^53 are whole."""
    return Template(f"CASE WHEN abs({{0}}) < 9007199254740992D THEN CAST({sql} AS DOUBLE) ELSE {{0}} END", repeats=(0,))


def _moved_days(sql: str) -> Template:
    return moved_days(sql, place="datediff(CAST({0} AS DATE), DATE '0001-01-01')", wide="DECIMAL(38,0)")


def _moved_months(sql: str) -> Template:
    return moved_months(sql, place="(year({0}) * 12 + month({0}) - 13)", wide="DECIMAL(38,0)")


def _start(unit: str) -> Template:
    return Template(f"trunc(CAST({{0}} AS DATE), '{unit}')")


def _named(names: Sequence[str], place: str) -> Template:
    words = ", ".join(f"'{name}'" for name in names)
    return Template(f"elt({place.replace('{0}', 'CAST({0} AS DATE)')}, {words})")


def _in_case(function: str, letters: Mapping[int, int]) -> Template:
    """A text in upper or lower case, by the table of `letter_case`; what has as many bytes as characters is ASCII."""
    table = f"'{''.join(map(chr, letters))}', '{''.join(map(chr, letters.values()))}'"
    return Template(
        f"CASE WHEN octet_length({{0}}) = length({{0}}) THEN {function}({{0}}) ELSE translate({{0}}, {table}) END",
        repeats=(0,),
    )


def _gridded(text: str, domain: str = "") -> Template:
    """An elementary function of arguments in its domain; of others it is NULL."""
    held = f"CASE WHEN {domain} THEN {{0}} END" if domain else "{0}"
    return Template(text.replace("{0}", held), repeats=(0,) if domain else (), gridded=True)


_ELEMENTARY: Templates = {
    "ln": _gridded("ln({0})", "{0} > 0"),
    "log2": _gridded("log2({0})", "{0} > 0"),
    "log10": _gridded("log10({0})", "{0} > 0"),
    "log": Template(
        "CASE WHEN {0} > 0 AND {0} <> 1 AND {1} > 0 THEN ln({1}) / ln({0}) END", repeats=(0, 1), gridded=True
    ),
    "power": _gridded("power({0}, {1})"),
    "cube_root": _gridded("cbrt({0})"),
    "asin": _gridded("asin({0})", "abs({0}) <= 1"),
    "acos": _gridded("acos({0})", "abs({0}) <= 1"),
    "atan2": _gridded("atan2({0} + 0D, {1} + 0D)"),
    **{name: _gridded(f"{name}({{0}})") for name in ("exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh")},
}

_NUMBERS: Templates = {
    ("add", Type.INT): Template("try_add({0}, {1})"),
    ("subtract", Type.INT): Template("try_subtract({0}, {1})"),
    ("multiply", Type.INT): Template("try_multiply({0}, {1})"),
    ("negate", Type.INT): Template("try_subtract(0L, {0})"),
    ("absolute", Type.INT): Template("CASE WHEN {0} >= 0 THEN {0} ELSE try_subtract(0L, {0}) END", repeats=(0,)),
    "modulo": Template("CASE WHEN {1} <> 0 THEN {0} % {1} END", repeats=(1,)),
    "integer_divide": Template(
        "CASE WHEN {1} = -1 THEN try_subtract(0L, {0}) WHEN {1} <> 0 THEN {0} DIV {1} END", repeats=(0, 1)
    ),
    "greatest": Template("greatest({0}, {all})", repeats=(0,)),  # which takes two arguments at least
    "least": Template("least({0}, {all})", repeats=(0,)),
    "round": _rounded(
        "CASE WHEN {0} < 0 THEN -1L ELSE 1L END"
        " * (floor(abs({0})) + CASE WHEN abs({0}) - floor(abs({0})) >= 0.5D THEN 1L ELSE 0L END)"
    ),
    "floor": _rounded("floor({0})"),
    "ceil": _rounded("ceil({0})"),
    ("to_int", Type.BOOL): _whole("{0}"),
    ("to_int", Type.FLOAT): Template(
        "CASE WHEN {0} >= -9223372036854775808D AND {0} < 9223372036854775808D THEN CAST({0} AS BIGINT) END",
        repeats=(0,),
    ),
    "round_to_int": Template(
        "CASE WHEN {0} >= -9223372036854775808D AND {0} < 9223372036854775808D THEN CAST(rint({0}) AS BIGINT) END",
        repeats=(0,),
    ),
    ("to_int", Type.TEXT): _matches("[+-]?[0-9]{{1,19}}", "try_cast({0} AS BIGINT)"),
    ("to_float", Type.TEXT): _matches(_FLOAT, "try_cast({0} AS DOUBLE)", infinite=True),
}

_DAYS: Templates = {
    ("to_date", Type.TEXT): Template(
        f"CASE WHEN {_full_match(_DAY)} AND {{0}} >= '0001' THEN try_cast({{0}} AS DATE) END", repeats=(0,)
    ),
    "read_timestamp": Template(
        f"CASE WHEN {_full_match(_DAY + _TIME)} AND {{0}} >= '0001' THEN try_cast("
        "CASE WHEN length({0}) = 16 THEN {0} || ':00' ELSE {0} END AS TIMESTAMP_NTZ) END",
        repeats=(0,),
    ),
    "year": _of_day("year({0})"),
    "quarter": _of_day("quarter({0})"),
    "month": _of_day("month({0})"),
    "day": _of_day("day({0})"),
    "day_of_week": _of_day("weekday({0}) + 1"),
    "hour": _whole("hour({0})"),
    "week": _of_day("weekofyear({0})"),
    "day_of_year": _of_day("dayofyear({0})"),
    "day_name": _named(DAY_NAMES, "weekday({0}) + 1"),
    "month_name": _named(MONTH_NAMES, "month({0})"),
    "days_between": _whole("datediff({1}, {0})"),
    "microseconds_between": Template("timestampdiff(MICROSECOND, {0}, {1})"),
    ("add_days", Type.DATE): _moved_days("date_add({0}, {1})"),
    ("add_days", Type.TIMESTAMP): _moved_days("timestampadd(DAY, {1}, {0})"),
    ("add_months", Type.DATE): _moved_months("add_months({0}, {1})"),
    ("add_months", Type.TIMESTAMP): _moved_months("timestampadd(MONTH, {1}, {0})"),
    "end_of_month": Template("last_day(CAST({0} AS DATE))"),
    "start_of_year": _start("YEAR"),
    "start_of_quarter": _start("QUARTER"),
    "start_of_month": _start("MONTH"),
    "start_of_week": _start("WEEK"),
}

_TEXTS: Templates = {
    "like": Template("{0} RLIKE {1}"),
    "matches": Template("{0} RLIKE {1}"),
    "extract": Template("regexp_extract({0}, {1}, 1)"),
    "matches_by_function": Template(f"{MATCHES}({{0}}, {{1}})"),
    "extract_by_function": Template(f"{EXTRACT}({{0}}, {{1}})"),
    "upper_case": _in_case("upper", UPPER),
    "lower_case": _in_case("lower", LOWER),
    "trim": Template("trim(BOTH ' ' FROM {0})"),
    "trim_left": Template("trim(LEADING ' ' FROM {0})"),
    "trim_right": Template("trim(TRAILING ' ' FROM {0})"),
    "strip": Template("trim(BOTH {1} FROM {0})"),
    "strip_left": Template("trim(LEADING {1} FROM {0})"),
    "strip_right": Template("trim(TRAILING {1} FROM {0})"),
    "length": _whole("length({0})"),
    "position": _whole("instr({0}, {1})"),
    "starts_with": Template("startswith({0}, {1})"),
    "ends_with": Template("endswith({0}, {1})"),
    "contains": Template("contains({0}, {1})"),
    # The text itself is left out where the result could be long, so that nothing long is ever made.
    "replace": Template(
        "replace(CASE WHEN length({2}) <= length({1})"
        f" OR CAST(length({{0}}) AS BIGINT) * length({{2}}) <= {LONGEST_TEXT} THEN {{0}} END, {{1}}, {{2}})",
        repeats=(0, 1, 2),
    ),
    "split_part": Template(
        "CASE WHEN {1} <> '' AND {2} <> 0 THEN split_part({0}, {1}, "
        f"CAST(greatest(least({{2}}, {_LONGEST}), -{_LONGEST}) AS INT)) "
        "WHEN {1} = '' AND {2} IN (1, -1) THEN {0} "
        "WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL THEN '' END",
        repeats=(0, 1, 2),
    ),
    # From max(b, 1) up to, not including, b + max(c, 0), all held to positions that a text can have.
    "substring": Template(
        f"substring({{0}}, CAST(least(greatest({{1}}, 1), {_LONGEST}) AS INT), "
        f"CASE WHEN {{1}} IS NOT NULL AND {{2}} IS NOT NULL THEN "
        f"CAST(greatest(least(CAST({{1}} AS DECIMAL(38,0)) + greatest({{2}}, 0), {_LONGEST})"
        f" - least(greatest({{1}}, 1), {_LONGEST}), 0) AS INT) END)",
        repeats=(1, 2),
    ),
}

# ------------------------------------------------------------------------------------------------------------------ ids

_POINTS = r"\x{{{{{:x}}}}}-\x{{{{{:x}}}}}"


def _class(ranges: Sequence[Range]) -> str:
    """A set of code points as a regular expression, its braces doubled for a template."""
    return "[" + "".join(_POINTS.format(first, last) for first, last in ranges) + "]"


def _is_id() -> str:
    """A condition on a text: that it is an id. Most are, by their first character."""
    return f"(({{0}} >= '!' AND {{0}} < CAST(X'C280' AS STRING)) OR NOT ({{0}} RLIKE r'(?s)^{_class(WHITE)}*+(?!.)'))"


def _is_plain() -> str:
    """A condition on a text: that it is surely an id as it is.

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
    """`row_choice.normalised` of a text.

    Spark calls a function in Python for every row, wherever it stands: it is given NULL but where there may be
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

    >>> DIALECT.total("x"), DIALECT.quoted("a`b")
    ('SUM(CAST(x AS DECIMAL(38,0)))', '`a``b`')
    """

    functions: ClassVar[Templates] = {**_ELEMENTARY, **_NUMBERS, **_DAYS, **_TEXTS}
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
        Type.INT: f"({{0}} % {P})",
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
    quotient = "{0} DIV {1}"
    shifted = "shiftright({0}, {1})"
    bucket_bit = f"shiftleft(1L, CAST(shiftright({{0}}, {BUCKET.bit_length() - 1}) AS INT))"
    bit_count = "CAST(bit_count({0}) AS BIGINT)"
    ordered_list = "transform(array_sort(collect_list(named_struct('a', {1}, 'b', {0}))), s -> s.b)"
    run = "explode(sequence({0}, {1}))"
    extremes = struct_extremes(_struct, "{0}.b")

    def quoted(self, name: str) -> str:
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
            return function, like(written)
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
