"""What the SQL reference says about accepted words: a meaning, a price and an example for each.

Names, and nothing else, are compared with the registries of the gate, in both directions; examples are planned.
"""

# ruff: noqa: S608 - questions that are shown and planned; nothing runs them

from __future__ import annotations

from dataclasses import dataclass

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
    _entry("SELECT FROM", "what is shown, of which rows", f"SELECT {_N}", "nothing by themselves"),
    _entry("WHERE", "which rows count", f"SELECT {_N} WHERE age >= 65"),
    _entry(
        "GROUP_BY", "one row of the answer for each group", _BY_WARD, f"{_GROUPS}; keys that are not public: a delta"
    ),
    _entry("HAVING", "which released groups are shown", f"{_BY_WARD} HAVING COUNT(*) > 20"),
    _entry(
        "ORDER_BY ASC DESC", "the order of released groups; NULL sorts last", f"{_BY_WARD} ORDER BY n DESC, ward ASC"
    ),
    _entry("LIMIT OFFSET", "a part of the released groups", f"{_BY_WARD} ORDER BY n DESC LIMIT 2 OFFSET 1"),
    _entry("FETCH", "LIMIT, as the standard writes it", f"{_BY_WARD} ORDER BY n DESC FETCH FIRST 2 ROWS ONLY"),
    _entry("ALIAS", "names a column or a table", "SELECT COUNT(*) AS n FROM visits AS v"),
    _entry(
        "DISTINCT",
        "in COUNT, SUM and AVG: different values; SELECT DISTINCT: the groups",
        "SELECT COUNT(DISTINCT patient) AS people FROM visits",
        "different values: noise for as many as one person can have",
    ),
    _entry(
        "WITH", "names a SELECT", "WITH old AS (SELECT * FROM visits WHERE age >= 65) SELECT COUNT(*) AS n FROM old"
    ),
    _entry(
        "JOIN INNER ON",
        "people of one account by their id; see [Joined rows](#joined-rows)",
        f"SELECT p.sex, COUNT(*) AS n {_JOINED} GROUP BY p.sex",
    ),
    _entry(
        "USING LEFT OUTER",
        "a public table by any column; LEFT keeps rows without a match",
        "SELECT w.floor, COUNT(*) AS n FROM visits LEFT OUTER JOIN wards w USING (ward) GROUP BY w.floor",
        f"{_GROUPS}; here a delta, as floors are no declared keys",
    ),
    _entry(
        "LATERAL CROSS",
        "a SELECT for each row, over rows of the same person",
        "SELECT AVG(r.n) AS v FROM visits v"
        " CROSS JOIN LATERAL (SELECT COUNT(*) AS n FROM visits u WHERE u.patient = v.patient) r",
        "a fifth for bounds of what it counts, if they do not follow",
    ),
    _entry(
        "UNION ALL",
        "rows of several SELECTs under each other",
        "SELECT COUNT(*) AS n FROM (SELECT patient, day FROM visits UNION ALL SELECT patient, day FROM visits)",
    ),
    _entry(
        "INTERSECT",
        "people who are in both",
        "SELECT COUNT(*) AS n FROM (SELECT patient FROM visits INTERSECT SELECT patient FROM people)",
    ),
    _entry(
        "EXCEPT",
        "people who are in the first alone",
        "SELECT COUNT(*) AS n FROM (SELECT patient FROM people EXCEPT SELECT patient FROM visits WHERE urgent)",
    ),
    _entry(
        "EXISTS",
        "whether the same person has such a row",
        f"SELECT {_N} v WHERE EXISTS (SELECT 1 FROM people p WHERE p.patient = v.patient AND p.born < 1960)",
    ),
    _entry(
        "OVER PARTITION_BY",
        "beside rows of one person, or beside released groups",
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
        "which rows are shown, by a window",
        f"{_BY_WARD} QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 2",
    ),
    _entry(
        "ROLLUP",
        "groups, and totals from the right",
        f"SELECT ward, urgent, {_N} GROUP BY ROLLUP (ward, urgent)",
        _GROUPS,
    ),
    _entry("CUBE", "groups, and all totals", f"SELECT ward, urgent, {_N} GROUP BY CUBE (ward, urgent)", _GROUPS),
    _entry(
        "GROUPING_SETS",
        "the groupings that are listed",
        f"SELECT ward, urgent, {_N} GROUP BY GROUPING SETS ((ward), (urgent))",
        "a share for each",
    ),
    _entry(
        "PIVOT FOR",
        "values of a key as columns",
        "SELECT * FROM (SELECT ward, urgent, charge FROM visits)"
        " PIVOT (COUNT(*) FOR ward IN ('heart', 'bones') GROUP BY urgent)",
        _GROUPS,
    ),
)

OPERATORS = (
    _number("PLUS DASH STAR", "arithmetic", "age * 2 + 1 - age"),
    _number("SLASH DIV", "division of doubles, of whole numbers; by zero it is NULL", "age / 2 + age // 10"),
    _number("MOD", "the remainder", "age % 10"),
    _number("CARET DSTAR", "powers", "age ^ 2 + age ** 2"),
    _condition("EQ NEQ", "equal or not", "ward = 'heart' AND age <> 50"),
    _condition("LT LTE GT GTE", "less, greater", "age > 17 AND age >= 18 AND age < 66 AND age <= 65"),
    _condition(
        "AND OR NOT L_PAREN R_PAREN",
        "conditions together; NULL is neither true nor false",
        "NOT (age < 18 OR urgent) AND age < 66",
    ),
    _condition(
        "IS NULL TRUE FALSE",
        "IS NULL, IS TRUE, IS NOT DISTINCT FROM",
        "note IS NOT NULL AND urgent IS TRUE OR urgent = FALSE",
    ),
    _condition("IN COMMA", "a list, or ids from a SELECT", "ward IN ('heart', 'bones')"),
    _condition("BETWEEN", "both ends included", "age BETWEEN 18 AND 65"),
    _condition("LIKE ESCAPE", "`%` is any text, `_` one sign", "note LIKE 'note!_1' ESCAPE '!'"),
    _condition("ILIKE", "LIKE, whatever the case", "note ILIKE 'NOTE%'"),
    _condition("SIMILAR_TO", "the pattern of the standard", "note SIMILAR TO 'note (1|2)'"),
    _condition("TILDE", "a regular expression", "note ~ '[12]$'"),
    _condition("IRLIKE", "likewise, whatever the case", "note ~* 'NOTE'"),
    _key("DPIPE", "texts put together", "'ward ' || ward"),
    _key(
        "CASE WHEN THEN ELSE END",
        "by conditions; listed results are public groups",
        "CASE WHEN age < 65 THEN 'below' ELSE 'above' END",
    ),
    _number("DCOLON", "a cast", "age::DOUBLE"),
    _condition("INTERVAL", "a duration, added to a date", "day >= DATE '2026-12-31' - INTERVAL 30 DAY"),
    _entry("L_BRACKET R_BRACKET", "a list of quantiles", "SELECT QUANTILE(age, [0.1, 0.9]) AS q FROM visits"),
    _condition(
        "DOT VAR IDENTIFIER NUMBER STRING",
        "a declared name, with quotes where needed; a value",
        "visits.age > 17.5 AND \"ward\" = 'heart'",
    ),
    _entry("SEMICOLON", "ends the question", f"SELECT {_N};"),
)

TYPES = (
    _number(
        "INT BIGINT",
        "whole numbers of 64 bits; of a double the nearest, of two the even one: 2.5 is 2, 3.5 is 4; "
        "a text of anything else than digits, '2.5' too, is NULL, and so is what does not fit",
        "CAST(charge AS INT) + CAST(charge AS BIGINT)",
    ),
    _number("FLOAT DOUBLE", "doubles", "CAST(age AS FLOAT) + CAST(age AS DOUBLE)"),
    _number(
        "DECIMAL",
        "DECIMAL(p, s) is a double that is rounded as by ROUND(x, s), and NULL with more than p - s digits before the "
        "point; DECIMAL alone is DECIMAL(18, 3)",
        "CAST(charge AS DECIMAL(10, 2))",
    ),
    _condition("TEXT VARCHAR", "texts", "CAST(age AS TEXT) LIKE '6%' OR CAST(age AS VARCHAR) LIKE '7%'"),
    _condition("DATE", "a day", "day >= DATE '2026-06-01'"),
    _condition("TIMESTAMP TIMESTAMPNTZ", "a moment, without a zone", "arrived >= TIMESTAMP '2026-06-01 12:00:00'"),
)

_WRITTEN = """\
PLUS + DASH - STAR * SLASH / DIV // MOD % CARET ^ DSTAR ** EQ = NEQ <> LT < LTE <= GT > GTE >= L_PAREN ( R_PAREN )
COMMA , TILDE ~ IRLIKE ~* DPIPE || DCOLON :: L_BRACKET [ R_BRACKET ] DOT . SEMICOLON ; ALIAS AS VAR names
IDENTIFIER "names" NUMBER numbers STRING 'texts'
"""

SIGNS = dict(zip(_WRITTEN.split()[::2], _WRITTEN.split()[1::2], strict=True))
"""How kinds of tokens are written that are not called as they are written."""

# ---------------------------------------------------------------------------------------------------------- aggregates

_DRAWS = "three draws: the value, and for a twentieth each the ends of its interval"

AGGREGATES = (
    _entry("COUNT", "rows, values, or with DISTINCT people or different values", f"SELECT {_N}", "one number"),
    _entry(
        "COUNT_IF COUNTIF",
        "rows for which a condition holds",
        "SELECT COUNT_IF(age >= 65) AS n FROM visits",
        "one number",
    ),
    _entry("SUM", "a sum; values are clipped to the bounds", "SELECT SUM(charge) AS s FROM visits", "one number"),
    _entry(
        "AVG",
        "a mean; COUNT(*) beside it changes nothing",
        "SELECT AVG(charge) AS m FROM visits",
        "two numbers: the sum and the count",
    ),
    _entry(
        "VAR VARIANCE VAR_SAMP", "the variance of a sample", "SELECT VARIANCE(charge) AS v FROM visits", "three numbers"
    ),
    _entry("VAR_POP", "the variance of all", "SELECT VAR_POP(charge) AS v FROM visits", "three numbers"),
    _entry("STDDEV STDDEV_SAMP", "its root", "SELECT STDDEV(charge) AS s FROM visits", "three numbers"),
    _entry("STDDEV_POP", "its root, of all", "SELECT STDDEV_POP(charge) AS s FROM visits", "three numbers"),
    _entry("SKEWNESS", "how lopsided values are", "SELECT SKEWNESS(charge) AS s FROM visits", "four numbers"),
    _entry(
        "COVAR_POP", "the covariance of two columns", "SELECT COVAR_POP(charge, age) AS c FROM visits", "four numbers"
    ),
    _entry("COVAR_SAMP", "likewise, of a sample", "SELECT COVAR_SAMP(charge, age) AS c FROM visits", "four numbers"),
    _entry("CORR", "the correlation, -1 to 1", "SELECT CORR(charge, age) AS c FROM visits", "six numbers"),
    _entry("REGR_SLOPE", "the slope of a line", "SELECT REGR_SLOPE(charge, age) AS b FROM visits", "five numbers"),
    _entry(
        "REGR_INTERCEPT", "its value at zero", "SELECT REGR_INTERCEPT(charge, age) AS a FROM visits", "five numbers"
    ),
    _entry("MEDIAN", "the middle value, drawn near its rank", "SELECT MEDIAN(charge) AS m FROM visits", _DRAWS),
    _entry(
        "QUANTILE QUANTILE_CONT QUANTILE_DISC APPROX_QUANTILE",
        "the value below which a share lies",
        "SELECT QUANTILE(charge, 0.9) AS q FROM visits",
        _DRAWS,
    ),
    _entry(
        "PERCENTILE_CONT PERCENTILE_DISC",
        "the same, as the standard writes it",
        "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY charge) AS q FROM visits",
        _DRAWS,
    ),
    _entry("MIN", "a low quantile: the least value is nobody's", "SELECT MIN(age) AS low FROM visits", "one draw"),
    _entry("MAX", "a high quantile", "SELECT MAX(age) AS high FROM visits", "one draw"),
    _entry(
        "MODE",
        "the most frequent value; if values are not public, it needs a delta",
        "SELECT MODE(ward) AS w FROM visits",
        "one draw",
    ),
    _entry("HISTOGRAM", "counts of equal bands", "SELECT HISTOGRAM(charge, 4) AS n FROM visits", "one number a band"),
    _entry("FILTER", "of some rows only", "SELECT COUNT(*) FILTER (WHERE urgent) AS n FROM visits", "as its aggregate"),
    _entry(
        "ANY_VALUE ARBITRARY",
        "a value that the keys of a group determine",
        "SELECT ward, ANY_VALUE(UPPER(ward)) AS w, COUNT(*) AS n FROM visits GROUP BY ward",
    ),
    _entry(
        "GROUPING",
        "1 where a total leaves a key out",
        f"SELECT ward, GROUPING(ward) AS total, {_N} GROUP BY ROLLUP (ward)",
    ),
)

_OWN = "SELECT AVG(x) AS v FROM (SELECT patient, {} AS x FROM visits GROUP BY patient)"
_ROWS = "SELECT {} FROM (SELECT *, {} OVER (PARTITION BY patient ORDER BY day) AS x FROM visits)"


def _place(words: str, meaning: str) -> Entry:
    return _entry(words, meaning, _ROWS.format("COUNT(*) AS n", f"{words}()") + " WHERE x = 1")


PER_PERSON = (
    _entry("ARG_MIN MIN_BY", "one person's value where another is least", _OWN.format("ARG_MIN(charge, day)")),
    _entry("ARG_MAX MAX_BY", "where another is largest", _OWN.format("ARG_MAX(charge, day)")),
    _entry("FIRST", "one person's first value", _OWN.format("FIRST(charge ORDER BY day)")),
    _entry("LAST", "one person's last value", _OWN.format("LAST(charge ORDER BY day)")),
    _place("ROW_NUMBER", "the place of a row among its person's, or of a group"),
    _place("RANK", "likewise; equals share a place"),
    _place("DENSE_RANK", "likewise, without gaps"),
    _entry("LAG", "the value of the row before", _ROWS.format("AVG(charge - x) AS v", "LAG(charge)")),
    _entry("LEAD", "of the row after", _ROWS.format("AVG(x - charge) AS v", "LEAD(charge)")),
    _entry("FIRST_VALUE", "of the first row", _ROWS.format("AVG(x) AS v", "FIRST_VALUE(charge)")),
    _entry(
        "LAST_VALUE",
        "of the last row, with a frame of all rows",
        "SELECT AVG(x) AS v FROM (SELECT patient, LAST_VALUE(charge) OVER (PARTITION BY patient ORDER BY day"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS x FROM visits)",
    ),
)

NUMBERS = (
    _number("ABS", "without its sign", "ABS(age - 50)"),
    _number("SIGN", "-1, 0 or 1", "SIGN(age - 50)"),
    _number("ROUND", "to places from -9 to 9; a double", "ROUND(charge, -1)"),
    _number("FLOOR", "downwards; a double", "FLOOR(charge)"),
    _number("CEIL CEILING", "upwards; a double", "CEIL(charge)"),
    _number("TRUNC", "towards zero", "TRUNC(charge)"),
    _number("MOD", "the remainder", "MOD(age, 10)"),
    _number(
        "GREATEST",
        "the largest that is not NULL; clips from below, and makes the limit of NULL",
        "GREATEST(charge, 10)",
    ),
    _number(
        "LEAST", "the smallest that is not NULL; clips from above, and makes the limit of NULL", "LEAST(charge, 500)"
    ),
    _number("POWER POW", "a power", "POWER(age, 2)"),
    _number("SQRT", "the root; of less than 0 it is NULL", "SQRT(charge)"),
    _number("CBRT", "the cube root", "CBRT(charge)"),
    _number("EXP", "e to a power", "EXP(charge / 1000)"),
    _number("LN", "the natural logarithm; of 0 and less NULL", "LN(charge + 1)"),
    _number("LOG LOG10", "the logarithm to 10, or LOG(b, x)", "LOG(charge + 1) + LOG10(charge + 1)"),
    _number("LOG2", "the logarithm to 2", "LOG2(charge + 1)"),
    _number("PI", "3.14...", "age * PI()"),
    _number("RADIANS DEGREES", "from degrees, to degrees", "RADIANS(age) + DEGREES(age)"),
    _number(
        "SIN COS TAN",
        "of an angle; bounds of TAN are clipped in the question",
        "SIN(age) + COS(age) + GREATEST(LEAST(TAN(age), 9), -9)",
    ),
    _number("ASIN ACOS ATAN", "the angle", "ASIN(age / 120) + ACOS(age / 120) + ATAN(age)"),
    _number("ATAN2", "the angle of two sides", "ATAN2(age, charge)"),
    _number("SINH COSH TANH", "hyperbolic", "SINH(age / 120) + COSH(age / 120) + TANH(age)"),
    _key("WIDTH_BUCKET", "the number of a band; all bands are public", "WIDTH_BUCKET(charge, 0, 1000, 4)"),
    _number("COALESCE IFNULL NVL", "the first that is not NULL", "COALESCE(age, 50) + IFNULL(age, 50) + NVL(age, 50)"),
    _number("NULLIF", "NULL where both are equal", "NULLIF(age, 0)"),
    _number("IF", "by a condition", "IF(urgent, charge, 0)"),
    _number(
        "CAST TRY_CAST", "to another type; what does not fit is NULL", "CAST(charge AS INT) + TRY_CAST(charge AS INT)"
    ),
)

TEXTS = (
    _key("UPPER LOWER", "in capitals, in small letters", "UPPER(ward) || LOWER(ward)"),
    _condition(
        "TRIM BTRIM LTRIM RTRIM",
        "without spaces, or other signs, at the ends",
        "TRIM(note) = BTRIM(note) AND LTRIM(note) = RTRIM(note)",
    ),
    _condition("SUBSTRING SUBSTR", "a part, from a place on", "SUBSTRING(note, 6, 1) = '1' OR SUBSTR(note, 6) = '2'"),
    _condition("LEFT RIGHT", "the first, the last signs", "LEFT(note, 4) = 'note' AND RIGHT(note, 1) = '1'"),
    _number(
        "LENGTH LEN CHAR_LENGTH",
        "how many signs",
        "GREATEST(LEAST(LENGTH(note) + LEN(note) + CHAR_LENGTH(note), 99), 0)",
    ),
    _condition("CONCAT", "put together, NULL passed over", "CONCAT(ward, '-', note) = 'heart-note 1'"),
    _condition("REPLACE", "one text for another", "REPLACE(note, 'note ', '') = '1'"),
    _condition("LPAD RPAD", "filled up to a length", "LPAD(note, 8, ' ') = RPAD(note, 8, ' ')"),
    _condition("SPLIT_PART", "the part between separators", "SPLIT_PART(note, ' ', 2) = '1'"),
    _condition(
        "POSITION STRPOS INSTR",
        "where a text begins; 0 if nowhere",
        "POSITION('1' IN note) > 0 AND STRPOS(note, '1') = INSTR(note, '1')",
    ),
    _condition(
        "STARTS_WITH ENDS_WITH CONTAINS",
        "whether a text is at the start, at the end, inside",
        "STARTS_WITH(note, 'n') AND ENDS_WITH(note, '1') AND CONTAINS(note, 'ot')",
    ),
    _condition(
        "REGEXP_MATCHES REGEXP_LIKE REGEXP_FULL_MATCH",
        "whether a pattern is found, or is the whole text",
        "REGEXP_MATCHES(note, '1') OR REGEXP_LIKE(note, '2') OR REGEXP_FULL_MATCH(note, 'note .')",
    ),
    _condition(
        "REGEXP_EXTRACT", "the text of a match, or of one of its groups", "REGEXP_EXTRACT(note, 'note (.)', 1) = '3'"
    ),
)

DATES = (
    _key(
        "EXTRACT DATE_PART DATEPART",
        "a part of a date",
        "EXTRACT(month FROM day) + DATE_PART('month', day) + DATEPART('month', day)",
    ),
    _key("DATE_TRUNC", "the first day of a month, week, ...; a moment is cut likewise", "DATE_TRUNC('month', day)"),
    _key("YEAR QUARTER MONTH DAY", "parts by name", "YEAR(day) * 0 + QUARTER(day) * 0 + MONTH(day) + DAY(day) * 0"),
    _key("HOUR", "of a moment", "HOUR(arrived)"),
    _key(
        "ISODOW DAYOFWEEK WEEKDAY",
        "1 (Monday) to 7; 0 (Sunday) to 6",
        "ISODOW(day) + DAYOFWEEK(day) * 0 + WEEKDAY(day) * 0",
    ),
    _key(
        "WEEK WEEKOFYEAR DAYOFYEAR",
        "the number of the week, of the day",
        "WEEK(day) + WEEKOFYEAR(day) * 0 + DAYOFYEAR(day) * 0",
    ),
    _key("DAYNAME MONTHNAME", "in English", "DAYNAME(day) || MONTHNAME(day)"),
    _condition("LAST_DAY", "of its month", "LAST_DAY(day) = day"),
    _number(
        "DATE_DIFF DATEDIFF",
        "how many borders of a unit lie between",
        "DATE_DIFF('day', DATE '2026-01-01', day) + DATEDIFF('month', DATE '2026-01-01', day)",
    ),
    _condition(
        "DATE_ADD DATE_SUB",
        "a date and a duration",
        "DATE_ADD(day, INTERVAL 7 DAY) > DATE '2026-06-01' AND DATE_SUB(day, INTERVAL 1 MONTH) < DATE '2026-11-01'",
    ),
    _condition(
        "STRFTIME TO_CHAR",
        "a date as text",
        "STRFTIME(day, '%Y-%m') = '2026-06' OR TO_CHAR(day, 'YYYY-MM') = '2026-07'",
    ),
    _number("EPOCH", "seconds since 1970", "EPOCH(arrived - DATE '2026-01-01')"),
    _number(
        "AGE", "a duration between dates, of which a part is taken", "EXTRACT(year FROM AGE(DATE '2026-12-31', day))"
    ),
    _condition(
        "CURRENT_DATE TODAY", "the day that the steward declares as `today`", "day < CURRENT_DATE AND day < TODAY()"
    ),
    _condition(
        "CURRENT_TIMESTAMP NOW",
        "cut or cast to a day: likewise",
        "day < CAST(NOW() AS DATE) AND day < CURRENT_TIMESTAMP::DATE",
    ),
)
