"""How cells of text files are written: the forms that people and programs use, and plain ones that are read.

Numbers are read with a point and nothing else, days as YYYY-MM-DD. What is written otherwise is recognised here, so
that a steward learns of it and can have it written plainly; nothing that answers questions looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from discreet.engines.abstract_engine import READS
from discreet.engines.duckdb.dialect import DIALECT
from discreet.plan.model.types import Type


class CellFormat(Enum):
    """How a cell is written; the first that fits is its form."""

    MISSING = "missing"
    WHOLE = "whole number"
    PADDED = "whole number with leading zeros"
    NUMBER = "number"
    TRUTH = "truth value"
    MARK = "mark of a missing value"
    DAY = "day"
    MOMENT = "moment"
    COMMA = "number with one comma, of decimals or of thousands"
    COMMA_GROUPS = "number with commas between thousands"
    DECIMAL_COMMA = "number with a decimal comma"
    POINT_GROUPS = "number with points between thousands"
    OTHER_GROUPS = "number with spaces or apostrophes between thousands"
    DAY_FIRST = "day, month, year"
    MONTH_FIRST = "month, day, year"
    DAY_OR_MONTH_FIRST = "day and month in an unknown order, year"
    YEAR_FIRST = "year, month, day with other separators"
    NAMED_MONTH = "day with the name of a month"
    ZONED = "moment with a time zone"
    CURRENCY = "number with a sign of a currency"
    PERCENT = "number with a percent sign"
    TEXT = "text"


MARKS = ("?", "na", "n/a", "#n/a", "n", "nan", "null", "none", "nil", "-", "--", ".", "unknown", "missing")
"""What files write where there is no value, in lower case; a number or a date is not read from it."""

_GAP = "[ '\u2019\\x{a0}\\x{202f}]"
_SIGN = "([$\u20ac\u00a3\u00a5\u20b9]|USD|EUR|GBP|CHF|JPY|INR|Rs[.]?)"
_WRITTEN = "[+-]?[0-9][0-9.,]*([ '\u2019\\x{a0}\\x{202f}][0-9]{3})*[0-9.,]*"
_SHORT_DAY = "([0-9]{1,2})[/.-]([0-9]{1,2})[/.-]([0-9]{4}|[0-9]{2})([ T].*)?"
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"


def _like(pattern: str) -> str:
    return f"regexp_full_match({{0}}, {DIALECT.text_literal(pattern)})"


def _part(number: int) -> str:
    return f"TRY_CAST(regexp_extract({{0}}, {DIALECT.text_literal(_SHORT_DAY)}, {number}) AS INTEGER)"


def reads(kind: Type, sql: str) -> str:
    """Writes a text without spaces around it as a type, just as the engine reads it: NULL where it cannot be read."""
    for function in READS[Type.TEXT, kind]:
        template = DIALECT.template(function, Type.TEXT)
        sql = template.text.format(sql)
        sql = DIALECT.finite.format(sql) if template.infinite else sql
    return sql


def _is(kind: Type) -> str:
    return f"{reads(kind, '{0}')} IS NOT NULL"


IS_MARK = f"lower({{0}}) IN ({', '.join(map(DIALECT.text_literal, MARKS))})"
"""A condition on a cell: that it is a mark of a missing value."""

_FORMS: Mapping[CellFormat, str] = {
    CellFormat.MISSING: "{0} IS NULL OR {0} = ''",
    CellFormat.WHOLE: f"{_like('[+-]?(0|[1-9][0-9]*)')} AND {_is(Type.INT)}",
    CellFormat.PADDED: _is(Type.INT),
    CellFormat.NUMBER: _is(Type.FLOAT),
    CellFormat.TRUTH: "lower({0}) IN ('true', 'false', 't', 'f')",
    CellFormat.MARK: IS_MARK,
    CellFormat.DAY: _is(Type.DATE),
    CellFormat.MOMENT: _is(Type.TIMESTAMP),
    CellFormat.COMMA: _like("[+-]?[0-9]{1,3},[0-9]{3}"),
    CellFormat.COMMA_GROUPS: _like("[+-]?[0-9]{1,3}(,[0-9]{3})+([.][0-9]+)?"),
    CellFormat.DECIMAL_COMMA: _like(f"[+-]?[0-9]+,[0-9]*|[+-]?[0-9]{{1,3}}({_GAP}[0-9]{{3}})+,[0-9]+"),
    CellFormat.POINT_GROUPS: _like("[+-]?[0-9]{1,3}([.][0-9]{3})+,[0-9]+|[+-]?[0-9]{1,3}([.][0-9]{3}){2,}"),
    CellFormat.OTHER_GROUPS: _like(f"[+-]?[0-9]{{1,3}}({_GAP}[0-9]{{3}})+([.][0-9]+)?"),
    CellFormat.DAY_FIRST: f"{_like(_SHORT_DAY)} AND {_part(1)} BETWEEN 13 AND 31 AND {_part(2)} <= 12",
    CellFormat.MONTH_FIRST: f"{_like(_SHORT_DAY)} AND {_part(2)} BETWEEN 13 AND 31 AND {_part(1)} <= 12",
    CellFormat.DAY_OR_MONTH_FIRST: f"{_like(_SHORT_DAY)} AND {_part(1)} <= 12 AND {_part(2)} <= 12",
    CellFormat.YEAR_FIRST: _like("[12][0-9]{3}[/.][0-9]{1,2}[/.][0-9]{1,2}([ T].*)?"),
    CellFormat.NAMED_MONTH: _like(
        f"(?i)[0-9]{{1,2}}[ .-]*{_MONTH}[ .,-]*[0-9]{{2,4}}|{_MONTH} *[0-9]{{1,2}}(st|nd|rd|th)?,? *[0-9]{{4}}"
    ),
    CellFormat.ZONED: _like("[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+ *(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)"),
    CellFormat.CURRENCY: _like(f"[+-]? *{_SIGN} *{_WRITTEN}|{_WRITTEN} *{_SIGN}"),
    CellFormat.PERCENT: _like(f"{_WRITTEN} *%"),
}


def form_of(cell: str) -> str:
    """Writes the place of a cell's form in `CellFormat`."""
    cases = {
        form: f"WHEN {test.replace('{0}', cell)} THEN {place}" for place, (form, test) in enumerate(_FORMS.items())
    }
    words = " ".join(
        cases[form] for form in (CellFormat.MISSING, CellFormat.TRUTH, CellFormat.MARK)
    )  # which have no digits
    return (
        f"CASE WHEN {cell} IS NOT NULL AND regexp_matches({cell}, '[0-9]') "
        f"THEN CASE {' '.join(cases.values())} ELSE {len(_FORMS)} END ELSE CASE {words} ELSE {len(_FORMS)} END END"
    )


# ----------------------------------------------------------------------------------------------------------------- mend


class Mend(Enum):
    """What is done to the cells of a column to write them plainly."""

    COMMA_GROUPS = "numbers without signs, and without commas or spaces between thousands"
    DECIMAL_COMMA = "numbers without signs and spaces, with a point for the comma"
    POINT_GROUPS = "numbers without signs and points, with a point for the comma"
    DAY_FIRST = "days of day, month, year as YYYY-MM-DD"
    MONTH_FIRST = "days of month, day, year as YYYY-MM-DD"
    YEAR_FIRST = "days of year, month, day as YYYY-MM-DD"
    NAMED_MONTH = "days with names of months as YYYY-MM-DD"
    ZONED = "moments in UTC, without a zone"


def strip_signs(sql: str) -> str:
    """Writes a text without signs of currencies and percents."""
    return f"regexp_replace({sql}, '{_SIGN}|%', '', 'g')"


_BARE = f"regexp_replace({strip_signs('{0}')}, {DIALECT.text_literal(_GAP)}, '', 'g')"
_SLASHED = "regexp_replace(replace({0}, 'T', ' '), '[.-]', '/', 'g')"
_TIMES = ("", " %H:%M:%S", " %H:%M", " %I:%M %p", " %I:%M:%S %p")


def _parse_date(cell: str, *days: str) -> str:
    formats = ", ".join(f"'{day}{time}'" for day in days for time in _TIMES)
    return _plain(f"try_strptime({cell}, [{formats}])")


def _plain(moment: str) -> str:
    """Returns a moment as text, a day where the cell has no time; the cell itself where there is none."""
    length = "CASE WHEN contains({0}, ':') THEN 26 ELSE 10 END"
    return f"coalesce(left(CAST({moment} AS VARCHAR), {length}), {{0}})"


_MENDS: Mapping[Mend, str] = {
    Mend.COMMA_GROUPS: f"replace({_BARE}, ',', '')",
    Mend.DECIMAL_COMMA: f"replace({_BARE}, ',', '.')",
    Mend.POINT_GROUPS: f"replace(replace({_BARE}, '.', ''), ',', '.')",
    Mend.DAY_FIRST: _parse_date(_SLASHED, "%d/%m/%y", "%d/%m/%Y"),  # of two digits first: %Y reads them as they are
    Mend.MONTH_FIRST: _parse_date(_SLASHED, "%m/%d/%y", "%m/%d/%Y"),
    Mend.YEAR_FIRST: _parse_date(_SLASHED, "%Y/%m/%d"),
    Mend.NAMED_MONTH: _parse_date(
        "{0}",
        *(f"{a}{b}" for a in ("%d %b ", "%d-%b-", "%d %B ") for b in ("%y", "%Y")),
        "%b %d, %Y",
        "%B %d, %Y",
        "%B %d %Y",
    ),
    Mend.ZONED: _plain("make_timestamp(epoch_us(TRY_CAST({0} AS TIMESTAMPTZ)))"),
}


def mend_cell(cell: str, mend: Mend) -> str:
    """Writes a cell plainly."""
    return _MENDS[mend].replace("{0}", cell)
