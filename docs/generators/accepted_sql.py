"""What the SQL reference says about accepted words: a meaning, a price and an example for each.

Functions of a row are taken from their records; of all other words, names are compared with the registries of the gate,
in both directions. Examples are planned.
"""

# ruff: noqa: S608 - questions that are shown and planned; nothing runs them

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from discreet.plan.expressions.functions import date_functions, text_functions
from discreet.plan.expressions.functions.conditions import CONDITIONS
from discreet.plan.expressions.functions.elementary import ELEMENTARY
from discreet.plan.expressions.functions.number_functions import ARITHMETIC
from discreet.plan.expressions.shorthands import DATE_SHORTHANDS, NUMBER_SHORTHANDS, TEXT_SHORTHANDS
from discreet.sql.grammar_words import DATE_WORDS, NUMBER_WORDS, TEXT_WORDS

FREE = "nothing"


@dataclass(frozen=True, slots=True)
class Entry:
    """Words that mean the same, what they mean, what they take of a question's epsilon, and a question with them."""

    words: tuple[str, ...]
    meaning: str
    price: str
    example: str


def _entry(words: str, meaning: str, example: str, price: str = FREE) -> Entry:
    return Entry(tuple(words.split()), meaning, price, example)


def _number(words: str, meaning: str, value: str) -> Entry:
    return _entry(words, meaning, f"SELECT AVG({value}) AS v FROM visits")


def _key(words: str, meaning: str, value: str) -> Entry:
    return _entry(words, meaning, f"SELECT {value} AS k, COUNT(*) AS n FROM visits GROUP BY 1")


def _condition(words: str, meaning: str, value: str) -> Entry:
    return _entry(words, meaning, f"SELECT COUNT(*) AS n FROM visits WHERE {value}")


# ------------------------------------------------------------------------------------------------------------- clauses

_N = "COUNT(*) AS n FROM visits"
_BY_WARD = f"SELECT ward, {_N} GROUP BY ward"
_JOINED = "FROM visits v INNER JOIN people p ON v.patient = p.patient"
_GROUPS = "noise for as many groups as one person can be in"

CLAUSES = (
    _entry("SELECT FROM", "which columns are shown, and from which rows", f"SELECT {_N}", "nothing on their own"),
    _entry("WHERE", "keeps rows that satisfy a condition", f"SELECT {_N} WHERE age >= 65"),
    _entry("GROUP_BY", "one row of the answer for each group", _BY_WARD, f"{_GROUPS}; private keys also need a delta"),
    _entry("HAVING", "keeps released groups that satisfy a condition", f"{_BY_WARD} HAVING COUNT(*) > 20"),
    _entry("ORDER_BY ASC DESC", "sorts released groups; NULL sorts last", f"{_BY_WARD} ORDER BY n DESC, ward ASC"),
    _entry("LIMIT OFFSET", "shows only a part of the released groups", f"{_BY_WARD} ORDER BY n DESC LIMIT 2 OFFSET 1"),
    _entry("FETCH", "LIMIT, as the SQL standard writes it", f"{_BY_WARD} ORDER BY n DESC FETCH FIRST 2 ROWS ONLY"),
    _entry("ALIAS", "names a column or a table", "SELECT COUNT(*) AS n FROM visits AS v"),
    _entry(
        "DISTINCT",
        "in COUNT, SUM and AVG: takes each different value once; SELECT DISTINCT: shows the groups",
        "SELECT COUNT(DISTINCT patient) AS people FROM visits",
        "for different values: noise for as many values as one person can have",
    ),
    _entry(
        "WITH", "names a SELECT", "WITH old AS (SELECT * FROM visits WHERE age >= 65) SELECT COUNT(*) AS n FROM old"
    ),
    _entry(
        "JOIN INNER ON",
        "joins tables of one account by the id of the person; see [Joined rows](#joined-rows)",
        f"SELECT p.sex, COUNT(*) AS n {_JOINED} GROUP BY p.sex",
    ),
    _entry(
        "USING LEFT OUTER",
        "joins a public table by any column; LEFT keeps rows without a match",
        "SELECT w.floor, COUNT(*) AS n FROM visits LEFT OUTER JOIN wards w USING (ward) GROUP BY w.floor",
        f"{_GROUPS}; here also a delta, because floors are not declared keys",
    ),
    _entry(
        "LATERAL CROSS",
        "reads a SELECT for each row, over rows of the same person",
        "SELECT AVG(r.n) AS v FROM visits v"
        " CROSS JOIN LATERAL (SELECT COUNT(*) AS n FROM visits u WHERE u.patient = v.patient) r",
        "a fifth of the epsilon for bounds of what it counts, if these do not follow otherwise",
    ),
    _entry(
        "UNION ALL",
        "puts the rows of several SELECTs together",
        "SELECT COUNT(*) AS n FROM (SELECT patient, day FROM visits UNION ALL SELECT patient, day FROM visits)",
    ),
    _entry(
        "INTERSECT",
        "people who are in both SELECTs",
        "SELECT COUNT(*) AS n FROM (SELECT patient FROM visits INTERSECT SELECT patient FROM people)",
    ),
    _entry(
        "EXCEPT",
        "people who are only in the first SELECT",
        "SELECT COUNT(*) AS n FROM (SELECT patient FROM people EXCEPT SELECT patient FROM visits WHERE urgent)",
    ),
    _entry(
        "EXISTS",
        "whether the same person has such a row",
        f"SELECT {_N} v WHERE EXISTS (SELECT 1 FROM people p WHERE p.patient = v.patient AND p.born < 1960)",
    ),
    _entry(
        "OVER PARTITION_BY",
        "adds a column to rows of one person, or to released groups",
        "SELECT ward, urgent, COUNT(*) AS n, RANK() OVER (PARTITION BY ward ORDER BY COUNT(*) DESC) AS place"
        " FROM visits GROUP BY ward, urgent",
    ),
    _entry(
        "ROWS",
        "the frame of a window over released groups",
        "SELECT MONTH(day) AS m, SUM(COUNT(*)) OVER (ORDER BY MONTH(day) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS n"
        " FROM visits GROUP BY 1",
    ),
    _entry(
        "QUALIFY",
        "keeps rows by the value of a window",
        f"{_BY_WARD} QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 2",
    ),
    _entry(
        "ROLLUP",
        "groups, and totals that leave out keys from the right",
        f"SELECT ward, urgent, {_N} GROUP BY ROLLUP (ward, urgent)",
        _GROUPS,
    ),
    _entry(
        "CUBE",
        "groups, and totals for every combination of keys",
        f"SELECT ward, urgent, {_N} GROUP BY CUBE (ward, urgent)",
        _GROUPS,
    ),
    _entry(
        "GROUPING_SETS",
        "the groupings that are listed",
        f"SELECT ward, urgent, {_N} GROUP BY GROUPING SETS ((ward), (urgent))",
        "a share of the epsilon for each",
    ),
    _entry(
        "PIVOT FOR",
        "turns values of a key into columns",
        "SELECT * FROM (SELECT ward, urgent, charge FROM visits)"
        " PIVOT (COUNT(*) FOR ward IN ('heart', 'bones') GROUP BY urgent)",
        _GROUPS,
    ),
)

OPERATORS = (
    _number("PLUS DASH STAR", "arithmetic", "age * 2 + 1 - age"),
    _number(
        "SLASH DIV",
        "division of doubles (`/`) or whole numbers (`//`); NULL if the divisor is zero",
        "age / 2 + age // 10",
    ),
    _number("MOD", "the remainder", "age % 10"),
    _number("CARET DSTAR", "powers", "age ^ 2 + age ** 2"),
    _condition("EQ NEQ", "equal, not equal", "ward = 'heart' AND age <> 50"),
    _condition(
        "LT LTE GT GTE",
        "less, less or equal, greater, greater or equal",
        "age > 17 AND age >= 18 AND age < 66 AND age <= 65",
    ),
    _condition(
        "AND OR NOT L_PAREN R_PAREN",
        "combine conditions; NULL is neither true nor false",
        "NOT (age < 18 OR urgent) AND age < 66",
    ),
    _condition(
        "IS NULL TRUE FALSE",
        "used in IS NULL, IS TRUE, IS NOT DISTINCT FROM",
        "note IS NOT NULL AND urgent IS TRUE OR urgent = FALSE",
    ),
    _condition("IN COMMA", "whether a value is in a list, or an id in a SELECT", "ward IN ('heart', 'bones')"),
    _condition("BETWEEN", "whether a value lies between two ends, both included", "age BETWEEN 18 AND 65"),
    _condition(
        "LIKE ESCAPE",
        "whether a text matches a pattern: `%` is any text, `_` is one character",
        "note LIKE 'note!_1' ESCAPE '!'",
    ),
    _condition("ILIKE", "LIKE that ignores letter case", "note ILIKE 'NOTE%'"),
    _condition("SIMILAR_TO", "whether a text matches a pattern of the SQL standard", "note SIMILAR TO 'note (1|2)'"),
    _condition("TILDE", "whether a regular expression is found in a text", "note ~ '[12]$'"),
    _condition("IRLIKE", "the same as `~`, but ignores letter case", "note ~* 'NOTE'"),
    _key("DPIPE", "joins texts", "'ward ' || ward"),
    _key(
        "CASE WHEN THEN ELSE END",
        "a value chosen by conditions; results that are written out are public groups",
        "CASE WHEN age < 65 THEN 'below' ELSE 'above' END",
    ),
    _number("DCOLON", "a cast", "age::DOUBLE"),
    _condition(
        "INTERVAL", "a duration, added to a date or subtracted from it", "day >= DATE '2026-12-31' - INTERVAL 30 DAY"
    ),
    _entry("L_BRACKET R_BRACKET", "a list of quantiles", "SELECT QUANTILE(age, [0.1, 0.9]) AS q FROM visits"),
    _condition(
        "DOT VAR IDENTIFIER NUMBER STRING",
        "declared names, in quotes where needed; values",
        "visits.age > 17.5 AND \"ward\" = 'heart'",
    ),
    _entry("SEMICOLON", "ends the query", f"SELECT {_N};"),
)

TYPES = (
    _number(
        "INT BIGINT",
        "whole numbers of 64 bits; a double becomes the nearest one, or the even one of two: 2.5 becomes 2, 3.5 "
        "becomes 4; a text that is not a whole number, such as '2.5', becomes NULL, and so does what does not fit",
        "CAST(charge AS INT) + CAST(charge AS BIGINT)",
    ),
    _number("FLOAT DOUBLE", "doubles", "CAST(age AS FLOAT) + CAST(age AS DOUBLE)"),
    _number(
        "DECIMAL",
        "DECIMAL(p, s) is a double, rounded as with ROUND(x, s); NULL if it has more than p - s digits before the "
        "point; DECIMAL alone is DECIMAL(18, 3)",
        "CAST(charge AS DECIMAL(10, 2))",
    ),
    _condition("TEXT VARCHAR", "texts", "CAST(age AS TEXT) LIKE '6%' OR CAST(age AS VARCHAR) LIKE '7%'"),
    _condition("DATE", "a day", "day >= DATE '2026-06-01'"),
    _condition(
        "TIMESTAMP TIMESTAMPNTZ", "a date and time, without a time zone", "arrived >= TIMESTAMP '2026-06-01 12:00:00'"
    ),
)

_WRITTEN = """\
PLUS + DASH - STAR * SLASH / DIV // MOD % CARET ^ DSTAR ** EQ = NEQ <> LT < LTE <= GT > GTE >= L_PAREN ( R_PAREN )
COMMA , TILDE ~ IRLIKE ~* DPIPE || DCOLON :: L_BRACKET [ R_BRACKET ] DOT . SEMICOLON ; ALIAS AS VAR names
IDENTIFIER "names" NUMBER numbers STRING 'texts'
"""

SIGNS = dict(zip(_WRITTEN.split()[::2], _WRITTEN.split()[1::2], strict=True))
"""How kinds of tokens are written that are not called as they are written."""

# ---------------------------------------------------------------------------------------------------------- aggregates

_DRAWS = "three draws: the value, and the two ends of its interval for a twentieth each"

AGGREGATES = (
    _entry(
        "COUNT",
        "the number of rows or values; with DISTINCT, of people or different values",
        f"SELECT {_N}",
        "one number",
    ),
    _entry(
        "COUNT_IF COUNTIF",
        "the number of rows for which a condition is true",
        "SELECT COUNT_IF(age >= 65) AS n FROM visits",
        "one number",
    ),
    _entry("SUM", "the sum; values are clipped to the bounds", "SELECT SUM(charge) AS s FROM visits", "one number"),
    _entry(
        "AVG",
        "the mean; adding COUNT(*) changes nothing",
        "SELECT AVG(charge) AS m FROM visits",
        "two numbers: the sum and the count",
    ),
    _entry(
        "VAR VARIANCE VAR_SAMP", "the variance of a sample", "SELECT VARIANCE(charge) AS v FROM visits", "three numbers"
    ),
    _entry("VAR_POP", "the variance of the population", "SELECT VAR_POP(charge) AS v FROM visits", "three numbers"),
    _entry(
        "STDDEV STDDEV_SAMP",
        "the standard deviation of a sample",
        "SELECT STDDEV(charge) AS s FROM visits",
        "three numbers",
    ),
    _entry(
        "STDDEV_POP",
        "the standard deviation of the population",
        "SELECT STDDEV_POP(charge) AS s FROM visits",
        "three numbers",
    ),
    _entry(
        "SKEWNESS",
        "the skewness: how asymmetric the values are",
        "SELECT SKEWNESS(charge) AS s FROM visits",
        "four numbers",
    ),
    _entry(
        "COVAR_POP",
        "the covariance of two columns, of the population",
        "SELECT COVAR_POP(charge, age) AS c FROM visits",
        "four numbers",
    ),
    _entry(
        "COVAR_SAMP",
        "the covariance of two columns, of a sample",
        "SELECT COVAR_SAMP(charge, age) AS c FROM visits",
        "four numbers",
    ),
    _entry("CORR", "the correlation, from -1 to 1", "SELECT CORR(charge, age) AS c FROM visits", "six numbers"),
    _entry(
        "REGR_SLOPE",
        "the slope of the regression line",
        "SELECT REGR_SLOPE(charge, age) AS b FROM visits",
        "five numbers",
    ),
    _entry(
        "REGR_INTERCEPT",
        "the value of the regression line at zero",
        "SELECT REGR_INTERCEPT(charge, age) AS a FROM visits",
        "five numbers",
    ),
    _entry("MEDIAN", "the middle value, drawn near its rank", "SELECT MEDIAN(charge) AS m FROM visits", _DRAWS),
    _entry(
        "QUANTILE QUANTILE_CONT QUANTILE_DISC APPROX_QUANTILE",
        "the value below which a given share of the values lies",
        "SELECT QUANTILE(charge, 0.9) AS q FROM visits",
        _DRAWS,
    ),
    _entry(
        "PERCENTILE_CONT PERCENTILE_DISC",
        "the same as QUANTILE, as the SQL standard writes it",
        "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY charge) AS q FROM visits",
        _DRAWS,
    ),
    _entry(
        "MIN",
        "a low quantile; the smallest value itself is never released",
        "SELECT MIN(age) AS low FROM visits",
        "one draw",
    ),
    _entry("MAX", "a high quantile", "SELECT MAX(age) AS high FROM visits", "one draw"),
    _entry(
        "MODE",
        "the most frequent value; needs a delta if the values are not public",
        "SELECT MODE(ward) AS w FROM visits",
        "one draw",
    ),
    _entry("HISTOGRAM", "counts in equal bands", "SELECT HISTOGRAM(charge, 4) AS n FROM visits", "one number per band"),
    _entry(
        "FILTER",
        "limits an aggregate to some rows",
        "SELECT COUNT(*) FILTER (WHERE urgent) AS n FROM visits",
        "the price of its aggregate",
    ),
    _entry(
        "ANY_VALUE ARBITRARY",
        "a value that the keys of a group determine",
        "SELECT ward, ANY_VALUE(UPPER(ward)) AS w, COUNT(*) AS n FROM visits GROUP BY ward",
    ),
    _entry(
        "GROUPING",
        "1 where a total leaves out a key, else 0",
        f"SELECT ward, GROUPING(ward) AS total, {_N} GROUP BY ROLLUP (ward)",
    ),
)

_OWN = "SELECT AVG(x) AS v FROM (SELECT patient, {} AS x FROM visits GROUP BY patient)"
_ROWS = "SELECT {} FROM (SELECT *, {} OVER (PARTITION BY patient ORDER BY day) AS x FROM visits)"


def _place(words: str, meaning: str) -> Entry:
    return _entry(words, meaning, _ROWS.format("COUNT(*) AS n", f"{words}()") + " WHERE x = 1")


PER_PERSON = (
    _entry(
        "ARG_MIN MIN_BY",
        "one person's value in the row where another value is smallest",
        _OWN.format("ARG_MIN(charge, day)"),
    ),
    _entry(
        "ARG_MAX MAX_BY",
        "one person's value in the row where another value is largest",
        _OWN.format("ARG_MAX(charge, day)"),
    ),
    _entry("FIRST", "one person's first value", _OWN.format("FIRST(charge ORDER BY day)")),
    _entry("LAST", "one person's last value", _OWN.format("LAST(charge ORDER BY day)")),
    _place("ROW_NUMBER", "the position of a row among its person's rows, or of a group among the groups"),
    _place("RANK", "the same as ROW_NUMBER, but equal rows share a position"),
    _place("DENSE_RANK", "the same as RANK, but without gaps"),
    _entry("LAG", "the value in the previous row", _ROWS.format("AVG(charge - x) AS v", "LAG(charge)")),
    _entry("LEAD", "the value in the next row", _ROWS.format("AVG(x - charge) AS v", "LEAD(charge)")),
    _entry("FIRST_VALUE", "the value in the first row", _ROWS.format("AVG(x) AS v", "FIRST_VALUE(charge)")),
    _entry(
        "LAST_VALUE",
        "the value in the last row, with a frame of all rows",
        "SELECT AVG(x) AS v FROM (SELECT patient, LAST_VALUE(charge) OVER (PARTITION BY patient ORDER BY day"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS x FROM visits)",
    ),
)


class _Record(Protocol):
    @property
    def words(self) -> tuple[str, ...]: ...

    @property
    def meaning(self) -> str: ...

    @property
    def example(self) -> str: ...


def _recorded(*families: Iterable[_Record]) -> tuple[Entry, ...]:
    """What the records of functions say, of those that have words."""
    records = [record for family in families for record in family if record.words]
    return tuple(Entry(record.words, record.meaning, FREE, _question(record.example)) for record in records)


def _question(example: str) -> str:
    """An example of a record as a whole question."""
    if example.startswith("WHERE "):
        return f"SELECT COUNT(*) AS n FROM visits {example}"
    key = example.removeprefix("GROUP BY ")
    grouped = f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY 1"
    return grouped if key != example else f"SELECT {example} AS v FROM visits"


NUMBERS = _recorded(ARITHMETIC, ELEMENTARY, CONDITIONS, NUMBER_SHORTHANDS, NUMBER_WORDS)
TEXTS = _recorded(text_functions.TEXTS, TEXT_SHORTHANDS, TEXT_WORDS)
DATES = _recorded(date_functions.DATES, DATE_SHORTHANDS, DATE_WORDS)
