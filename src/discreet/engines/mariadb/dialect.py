"""MariaDB's SQL: DECIMAL for wide numbers, texts by code points, public tables in JSON, and extremes as texts.

Only the forms that MariaDB writes in its own way are here; the others are those of `engines.sql.dialect`. It raises
where a result of BIGINT or DOUBLE leaves its range, so that each operation is asked for behind a condition under which
it has one, or computed in DECIMAL, which is wide enough. Operations of bits make unsigned numbers, which are cast back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from discreet.engines.mariadb.double_templates import DOUBLES, number, scale_double
from discreet.engines.mariadb.moments import MOMENTS
from discreet.engines.mariadb.pcre_patterns import like, translate_pattern
from discreet.engines.mariadb.text_templates import ID_PART, IS_ID, NORMALISED_ID, TEXTS, literal, write_text
from discreet.engines.row_choice import BUCKET, P
from discreet.engines.sql.dialect import Dialect, Extremes, Templates
from discreet.plan.expressions.evaluation import INT_HIGH, INT_LOW
from discreet.plan.expressions.functions import Template
from discreet.plan.model.types import Type

_WIDE = "DECIMAL(40,0)"


def _narrow(sql: str) -> str:
    return f"CASE WHEN {sql} BETWEEN {INT_LOW} AND {INT_HIGH} THEN CAST({sql} AS SIGNED) END"


_FUNCTIONS: Templates = {
    **DOUBLES,
    **TEXTS,
    **MOMENTS,
    # DIV makes a BIGINT, which it may leave: what is left without the remainder is divided exactly.
    "integer_divide": Template(
        _narrow("{4}"),
        repeats=(1,),
        steps=(
            f"CAST({{0}} AS {_WIDE})",
            f"CAST(CASE WHEN {{1}} <> 0 THEN {{1}} END AS {_WIDE})",
            "({2} - {2} % {3}) / {3}",
        ),
    ),
    ("to_int", Type.TEXT): Template(
        _narrow("{1}"),
        repeats=(0,),
        steps=(r"CASE WHEN {0} REGEXP '\A[+-]?[0-9]{{1,19}}\z' THEN CAST({0} AS DECIMAL(20,0)) END",),
    ),
    ("to_int", Type.BOOL): Template("CAST({0} AS SIGNED)"),
    # Where one of several values is NULL, the functions of MariaDB return NULL.
    **{
        name: Template(f"CASE WHEN {{0}} {sign} {{1}} OR {{1}} IS NULL THEN {{0}} ELSE {{1}} END", repeats=(0, 1))
        for name, sign in (("greatest", ">="), ("least", "<="))
    },
}

_EPOCH = "CAST('1970-01-01' AS DATETIME(6))"
_MICROSECONDS = f"TIMESTAMPDIFF(MICROSECOND, {_EPOCH}, {{0}})"
_HALF = "{0} * 5e-1"
_NEAREST = "CAST(FLOOR({0}) AS SIGNED) + CASE WHEN {0} - FLOOR({0}) >= 5e-1 THEN 1 ELSE 0 END"


def _first(value: str, condition: str, order: str) -> str:
    """Writes an aggregate: the first value in an order, as a text {value} behind a sign; empty for NULL."""
    kept = f"CASE WHEN {condition} THEN CASE WHEN {{0}} IS NULL THEN '' ELSE {value} END END"
    return f"MID(NULLIF(GROUP_CONCAT({kept} ORDER BY {order} SEPARATOR '' LIMIT 1), ''), 2)"


_KNOWN, _PLACED = "{0} IS NOT NULL AND {1} IS NOT NULL", "{1} IS NOT NULL"
_BOTH = ("{0}", "{1}")
_ORDERS: Mapping[str, tuple[str, str]] = {
    "arg_min": (_KNOWN, "{1}, {0}"),
    "arg_max": (_KNOWN, "{1} DESC, {0} DESC"),
    "first": (_PLACED, "{1}, {0} IS NULL, {0}"),
    "last": (_PLACED, "{1} DESC, {0} IS NULL, {0} DESC"),
}


class MariaDBDialect(Dialect):
    """MariaDB's SQL: exact sums in DECIMAL, texts of one collation, subqueries with names.

    >>> DIALECT.total("x"), DIALECT.quote_name("a`b")
    ('SUM(CAST(x AS SIGNED))', '`a``b`')
    """

    name = "mariadb"
    functions = _FUNCTIONS
    pairwise = ("greatest", "least")
    types: ClassVar[Mapping[Type, str]] = {
        Type.INT: "SIGNED",
        Type.FLOAT: "DOUBLE",
        Type.BOOL: "SIGNED",
        Type.TEXT: "CHAR",
        Type.DATE: "DATE",
        Type.TIMESTAMP: "DATETIME(6)",
    }
    strategy = "one_sort"
    wide = _WIDE
    narrow_repeats = True
    once = inline = "AS"
    length = "CHAR_LENGTH({0})"
    rank_numbers: ClassVar[Mapping[Type, str]] = {
        Type.INT: f"({{0}} % {P})",
        Type.BOOL: "CAST({0} AS SIGNED)",
        Type.DATE: "DATEDIFF({0}, '1970-01-01')",
        Type.TIMESTAMP: f"({_MICROSECONDS} % {P})",
        Type.TEXT: "CAST(CONV(LEFT(MD5({0}), 7), 16, 10) AS SIGNED)",
    }
    id_parts: ClassVar[Mapping[Type, str]] = {
        **dict.fromkeys((Type.INT, Type.DATE), write_text("CAST({0} AS CHAR)")),
        Type.BOOL: write_text("CASE WHEN {0} THEN 'true' WHEN NOT {0} THEN 'false' END"),
        Type.TIMESTAMP: write_text(f"CAST({_MICROSECONDS} AS CHAR)"),
        Type.TEXT: ID_PART,
    }
    normalised_id = NORMALISED_ID
    is_id = IS_ID
    # Short keys of a sort: ranks decide almost always, and a digest tells long texts apart that begin alike.
    by_code_points = "(LEFT({0}, 2000) || CASE WHEN CHAR_LENGTH({0}) > 2000 THEN SHA2({0}, 256) ELSE '' END)"
    finite = "{0}"
    nearest = _NEAREST
    nearest_to_half = _NEAREST.replace("{0}", f"({_HALF})")
    quotient = "(({0} - {0} % {1}) / {1})"
    shifted = "CAST({0} >> {1} AS SIGNED)"
    bucket_bit = f"(1 << ({{0}} >> {BUCKET.bit_length() - 1}))"
    bit_count = "BIT_COUNT({0})"
    ordered_list = "GROUP_CONCAT({0} ORDER BY {1} SEPARATOR ',')"
    run = ""
    extremes: ClassVar[Extremes] = {kind: (_BOTH, _first("'v' || {0}", *order)) for kind, order in _ORDERS.items()}

    def quote_name(self, name: str) -> str:
        """Writes a declared name as an identifier, such as `a``b`.

        Raises:
            InvalidParameter: for a name with NUL.
        """
        return "`" + super().quote_name(name)[1:-1].replace('""', '"').replace("`", "``") + "`"

    def text_literal(self, text: str) -> str:
        """Writes a text as its bytes."""
        return literal(text)

    def literal(self, value: Any, kind: Type) -> str:
        """Writes a number, a truth value, a day or a moment."""
        return number(value) if kind is Type.FLOAT and value is not None else super().literal(value, kind)

    def write_parameter(self, value: Any, kind: Type, parameters: dict[str, Any]) -> str:
        """Writes a value itself: the driver has no parameters but what it writes into the text."""
        del parameters
        return literal(value) if kind is Type.TEXT else self.literal(value, kind)

    def with_pattern(self, function: str, written: str) -> tuple[str, str]:
        """Writes patterns, and those of LIKE, as PCRE reads them."""
        return function, like(written) if function == "like" else translate_pattern(written)

    def public_table(self, lists: Sequence[list[Any]], kinds: Sequence[Type], parameters: dict[str, Any]) -> str:
        """Writes a query for rows that are one text in JSON; texts in it are the digits of their bytes."""
        del parameters
        rows = [[_in_json(value) for value in row] for row in zip(*lists, strict=True)]
        read = ", ".join(f"j{i} {_json_type(lists[i], kind)} PATH '$[{i}]'" for i, kind in enumerate(kinds))
        columns = ", ".join(f"{self._from_json(f'j{i}', kind)} AS p{i}" for i, kind in enumerate(kinds))
        return f"SELECT {columns} FROM {json_table(literal(json.dumps(rows)), read)} AS listed"

    def _from_json(self, sql: str, kind: Type) -> str:
        if kind is Type.TEXT:
            return write_text(f"UNHEX({sql})")
        return sql if kind in _IN_JSON else self.cast(sql, kind)

    def cast(self, sql: str, kind: Type) -> str:
        """Writes a conversion; texts have their collation from the beginning."""
        made = super().cast(sql, kind)
        return write_text(made) if kind is Type.TEXT else made

    def narrow(self, sql: str) -> str:
        """Writes a DECIMAL as a BIGINT, NULL if that does not hold it."""
        return _narrow(sql)

    def scale_by_power(self, exponent: int) -> Template:
        """Returns a double times two to a power, NULL where that is too large."""
        return scale_double(exponent)

    def scaled_within(self, exponent: int) -> Template:
        """Returns a double times two to a power, not too large by far."""
        return Template(f"{{0}} * {number(2.0**exponent)}")

    def extreme(self, kind: str, value: Type) -> tuple[tuple[str, ...], str]:
        """Returns the terms and the aggregate of a kind of extreme: a text, which is read as the value's type.

        As it is, a double is 23 characters long to an aggregate, which cuts off the last digit of its exponent.
        """
        if value is Type.TEXT:
            return _BOTH, self.cast(self.extremes[kind][1], value)
        return _BOTH, self.cast(_first("'v' || CAST({0} AS CHAR(40))", *_ORDERS[kind]), value)

    def sort_key(self, sql: str, *, descending: bool = False, nulls_first: bool = False) -> str:
        """Writes a part of ORDER BY: NULL is below all values."""
        if nulls_first == descending:
            return f"{sql} IS NULL{' DESC' if nulls_first else ''}, {sql}{' DESC' if descending else ''}"
        return f"{sql}{' DESC' if descending else ''}"

    def total(self, sql: str, *, distinct: bool = False) -> str:
        """Writes an exact sum: SUM of a BIGINT is a DECIMAL already."""
        return f"SUM({'DISTINCT ' if distinct else ''}CAST({sql} AS SIGNED))"

    def same(self, one: str, other: str) -> str:
        """Writes that two values are equal, NULL being like NULL."""
        return f"{one} <=> {other}"

    def write_subquery(self, query: str, *, once: bool = True) -> str:
        """Writes a query as a table."""
        del once
        return f"({query}) AS derived"


def json_table(text: str, columns: str) -> str:
    """Writes a table of the rows that a text in JSON lists."""
    return f"JSON_TABLE({text}, '$[*]' COLUMNS({columns}))"


_IN_JSON = {Type.INT: "BIGINT", Type.BOOL: "BIGINT"}
_SHORT = 1000  # digits of a text that can be a part of an index


def _in_json(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode().hex()
    return value if value is None or isinstance(value, int) else str(value)


def _json_type(values: Sequence[Any], kind: Type) -> str:
    if kind is not Type.TEXT:
        return _IN_JSON.get(kind, "VARCHAR(40)")
    longest = max((len(value.encode()) for value in values if value is not None), default=0)
    return (
        f"VARCHAR({2 * longest + 1})" if 2 * longest < _SHORT else "MEDIUMTEXT"
    )  # the length of UNHEX(LONGTEXT) is taken for 0


DIALECT = MariaDBDialect()
