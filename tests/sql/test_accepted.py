"""Questions that are accepted, and what they become: aggregates, keys and outputs with their types."""

from __future__ import annotations

import pytest

from discreet.errors import UnsupportedQuery
from discreet.plan.model.nodes import ColumnRef, FunctionCall, Literal, Question
from discreet.plan.model.types import Type
from discreet.sql.select import parse
from tests.cases import every
from tests.plan.tables import SCHEMAS

# The question; the kinds of its aggregates; its keys; its outputs.
ACCEPTED: list[tuple[str, str, str, str]] = [
    ("SELECT COUNT(*) FROM visits", "count", "", "count:int"),
    ("SELECT COUNT(*) AS n FROM visits", "count", "", "n:int"),
    ("SELECT COUNT(*) n FROM visits", "count", "", "n:int"),
    ("SELECT DISTINCT ward, smoker FROM visits", "", "ward:text smoker:bool", "ward:text smoker:bool"),
    ("SELECT UPPER(ward) AS w FROM visits GROUP BY ward, note", "", "ward:text note:text", "w:text"),
    ("SELECT DISTINCT ward, COUNT(*) AS n FROM visits GROUP BY ward", "count", "ward:text", "ward:text n:int"),
    ("select count(*) from VISITS", "count", "", "count:int"),
    ("SELECT COUNT(1) FROM visits", "count", "", "count:int"),
    ("SELECT COUNT() FROM visits", "count", "", "count:int"),
    ("SELECT COUNT(age) FROM visits", "count_values", "", "count_age:int"),
    ("SELECT COUNT(DISTINCT patient_id) FROM visits", "count_units", "", "count_units:int"),
    ("SELECT COUNT(DISTINCT ward) FROM visits", "count_distinct", "", "count_distinct_ward:int"),
    ("SELECT COUNT(DISTINCT age // 10) AS n FROM rows_only", "count_distinct", "", "n:int"),
    ("SELECT COUNT(DISTINCT ward) FILTER (WHERE smoker) AS n FROM visits", "count_distinct", "", "n:int"),
    (
        "SELECT VARIANCE(age), STDDEV(age) FROM visits",
        "var_samp stddev_samp",
        "",
        "variance_age:float stddev_age:float",
    ),
    ("SELECT VAR_SAMP(age) - VARIANCE(age) AS z FROM visits", "var_samp", "", "z:float"),
    (
        "SELECT VAR_POP(age), STDDEV_POP(age) FROM visits",
        "var_pop stddev_pop",
        "",
        "var_pop_age:float stddev_pop_age:float",
    ),
    ("SELECT STDDEV_SAMP(charge) FILTER (WHERE smoker) AS d FROM visits", "stddev_samp", "", "d:float"),
    ("SELECT SKEWNESS(age) FROM visits", "skewness", "", "skewness_age:float"),
    ("SELECT skewness(2 * charge) FILTER (WHERE smoker) AS w FROM visits", "skewness", "", "w:float"),
    ("SELECT CORR(age, charge) FROM visits", "corr", "", "corr_age_charge:float"),
    ("SELECT COVAR_POP(age, charge) / VAR_POP(charge) AS b FROM visits", "covar_pop var_pop", "", "b:float"),
    ("SELECT COVAR_SAMP(age, 2 * age) FILTER (WHERE smoker) AS c FROM visits", "covar_samp", "", "c:float"),
    (
        "SELECT REGR_SLOPE(charge, age) AS b, REGR_INTERCEPT(charge, age) AS a FROM visits",
        "regr_slope regr_intercept",
        "",
        "b:float a:float",
    ),
    ("SELECT SUM(charge) FROM visits", "sum", "", "sum_charge:float"),
    ("SELECT SUM(smoker), AVG(smoker) AS share FROM visits", "sum mean", "", "sum_smoker:int share:float"),
    ("SELECT SUM(age > 40) / COUNT(age) AS share FROM visits", "sum count_values", "", "share:float"),
    ("SELECT VAR(age), VAR(smoker) AS v FROM visits", "var_samp var_samp", "", "variance_age:float v:float"),
    ("SELECT VAR(age) - VAR_SAMP(age) AS z FROM visits", "var_samp", "", "z:float"),
    (
        "SELECT SUM(DISTINCT age), AVG(DISTINCT charge) FROM visits",
        "sum_distinct mean_distinct",
        "",
        "sum_distinct_age:int avg_distinct_charge:float",
    ),
    ("SELECT SUM(DISTINCT age) FILTER (WHERE smoker) AS s FROM visits", "sum_distinct", "", "s:int"),
    ("SELECT MIN(DISTINCT age) - MIN(age) AS z FROM visits", "min", "", "z:int"),
    ("SELECT COUNT(DISTINCT charge) AS n FROM visits", "count_distinct", "", "n:int"),
    ("SELECT quantile_disc(age, 0.5) - MEDIAN(age) AS z FROM visits", "quantile", "", "z:int"),
    (
        "SELECT PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age DESC) AS q FROM visits",
        "quantile",
        "",
        "q:int",
    ),
    (
        "SELECT quantile_disc(age, [0.25, 0.75]) AS q FROM visits",
        "quantile quantile",
        "",
        "q_p25:int q_p75:int",
    ),
    ("SELECT COUNT(*) FILTER (WHERE age > 3) AS n FROM visits", "count_values", "", "n:int"),
    ("SELECT SUM(age) FILTER (WHERE smoker) / COUNT_IF(smoker) AS m FROM visits", "sum count_values", "", "m:float"),
    ("SELECT ward, COUNTIF(smoker) AS n FROM visits GROUP BY 1", "count_values", "ward:text", "ward:text n:int"),
    ("SELECT AVG(charge) FROM visits", "mean", "", "avg_charge:float"),
    ("SELECT AVG(age) AS a, AVG(age) AS b FROM visits", "mean", "", "a:float b:float"),
    ("SELECT COUNT(*), COUNT(*) FROM visits", "count", "", "count:int count_2:int"),
    ("SELECT SUM(age) / COUNT(*) AS mean FROM visits", "sum count", "", "mean:float"),
    ("SELECT 100 * AVG(charge) - 3 FROM visits", "mean", "", "value:float"),
    ("SELECT -SUM(age) FROM visits", "sum", "", "value:int"),
    ("SELECT ROUND(AVG(charge)) FROM visits", "mean", "", "round_avg_charge:float"),
    ("SELECT ROUND(AVG(charge), 2) FROM visits", "mean", "", "value:float"),
    ("SELECT ROUND(AVG(charge), -2) FROM visits", "mean", "", "value:float"),
    ("SELECT CAST(AVG(charge) AS INT) AS whole FROM visits", "mean", "", "whole:int"),
    ("SELECT AVG(charge)::INT AS whole FROM visits", "mean", "", "whole:int"),
    ("SELECT CASE WHEN COUNT(*) > 100 THEN 'many' ELSE 'few' END AS size FROM visits", "count", "", "size:text"),
    ("SELECT COALESCE(SUM(charge) / COUNT(*), 0) AS mean FROM visits", "sum count", "", "mean:float"),
    ("SELECT 1 AS one, COUNT(*) AS n FROM visits", "count", "", "one:int n:int"),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "count", "ward:text", "ward:text n:int"),
    (
        "SELECT ward, COUNT(*) AS n, AVG(charge) AS cost FROM visits GROUP BY ward",
        "count mean",
        "ward:text",
        "ward:text n:int cost:float",
    ),
    ("SELECT COUNT(*) AS n FROM visits GROUP BY ward", "count", "ward:text", "n:int"),
    ("SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY w", "count", "w:text", "w:text n:int"),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1", "count", "ward:text", "ward:text n:int"),
    ("SELECT UPPER(ward) AS w, COUNT(*) FROM visits GROUP BY w", "count", "w:text", "w:text count:int"),
    (
        "SELECT UPPER(ward), COUNT(*) FROM visits GROUP BY UPPER(ward)",
        "count",
        "upper_ward:text",
        "upper_ward:text count:int",
    ),
    ("SELECT UPPER(ward) AS u, COUNT(*) AS n FROM visits GROUP BY ward", "count", "ward:text", "u:text n:int"),
    (
        "SELECT ward, age, COUNT(*) AS n FROM visits GROUP BY ward, age",
        "count",
        "ward:text age:int",
        "ward:text age:int n:int",
    ),
    (
        "SELECT ward, age, COUNT(*) AS n FROM visits GROUP BY 2, 1",
        "count",
        "age:int ward:text",
        "ward:text age:int n:int",
    ),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward, ward", "count", "ward:text", "ward:text n:int"),
    ("SELECT ward AS a, ward AS b, COUNT(*) AS n FROM visits GROUP BY ward", "count", "a:text", "a:text b:text n:int"),
    (
        "SELECT CAST(FLOOR(age / 10) AS INT) AS band, COUNT(*) AS n FROM visits GROUP BY band",
        "count",
        "band:int",
        "band:int n:int",
    ),
    ("SELECT age // 10 AS band, COUNT(*) AS n FROM visits GROUP BY band", "count", "band:int", "band:int n:int"),
    ("SELECT 10 * (age // 10) AS band, COUNT(*) AS n FROM visits GROUP BY 1", "count", "band:int", "band:int n:int"),
    ("SELECT age % 2, COUNT(*) AS n FROM visits GROUP BY age % 2", "count", "value:int", "value:int n:int"),
    ("SELECT MOD(age, 2) AS odd, COUNT(*) AS n FROM visits GROUP BY odd", "count", "odd:int", "odd:int n:int"),
    ("SELECT age DIV 10 AS band, COUNT(*) AS n FROM visits GROUP BY band", "count", "band:int", "band:int n:int"),
    ("SELECT smoker, COUNT(*) AS n FROM visits GROUP BY smoker", "count", "smoker:bool", "smoker:bool n:int"),
    ("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", "count", "day:date", "day:date n:int"),
    (
        "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month",
        "count",
        "month:date",
        "month:date n:int",
    ),
    (
        "SELECT DATE_TRUNC('week', seen) AS week, COUNT(*) AS n FROM visits GROUP BY week",
        "count",
        "week:date",
        "week:date n:int",
    ),
    (
        "SELECT DATE_TRUNC('quarter', seen) AS q, COUNT(*) AS n FROM visits GROUP BY q",
        "count",
        "q:date",
        "q:date n:int",
    ),
    ("SELECT DATE_TRUNC('year', day) AS y, COUNT(*) AS n FROM visits GROUP BY y", "count", "y:date", "y:date n:int"),
    ("SELECT DATE_TRUNC('day', seen) AS d, COUNT(*) AS n FROM visits GROUP BY d", "count", "d:date", "d:date n:int"),
    ("SELECT DATE_TRUNC('day', day) AS d, COUNT(*) AS n FROM visits GROUP BY d", "count", "d:date", "d:date n:int"),
    ("SELECT CAST(seen AS DATE) AS d, COUNT(*) AS n FROM visits GROUP BY d", "count", "d:date", "d:date n:int"),
    ("SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) AS n FROM visits GROUP BY y", "count", "y:int", "y:int n:int"),
    ("SELECT EXTRACT(month FROM seen) AS m, COUNT(*) AS n FROM visits GROUP BY m", "count", "m:int", "m:int n:int"),
    (
        "SELECT EXTRACT(ISODOW FROM day), COUNT(*) AS n FROM visits GROUP BY 1",
        "count",
        "isodow_day:int",
        "isodow_day:int n:int",
    ),
    ("SELECT DATE_PART('hour', seen) AS h, COUNT(*) AS n FROM visits GROUP BY h", "count", "h:int", "h:int n:int"),
    (
        "SELECT YEAR(day), MONTH(day), COUNT(*) FROM visits GROUP BY 1, 2",
        "count",
        "year_day:int month_day:int",
        "year_day:int month_day:int count:int",
    ),
    (
        "SELECT QUARTER(day) AS q, DAY(day) AS d, COUNT(*) FROM visits GROUP BY q, d",
        "count",
        "q:int d:int",
        "q:int d:int count:int",
    ),
    ("SELECT HOUR(seen) AS h, COUNT(*) FROM visits GROUP BY h", "count", "h:int", "h:int count:int"),
    ("SELECT MINUTE(seen) AS m, COUNT(*) FROM visits GROUP BY m", "count", "m:int", "m:int count:int"),
    ("SELECT EXTRACT(SECOND FROM seen) AS s, COUNT(*) FROM visits GROUP BY s", "count", "s:int", "s:int count:int"),
    ("SELECT DATE(seen) AS d, COUNT(*) FROM visits GROUP BY d", "count", "d:date", "d:date count:int"),
    ("SELECT ISODOW(day) AS w, COUNT(*) FROM visits GROUP BY w", "count", "w:int", "w:int count:int"),
    (
        "SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS band, COUNT(*) FROM visits GROUP BY band",  # noqa: E501 - one question
        "count",
        "band:text",
        "band:text count:int",
    ),
    (
        "SELECT CASE ward WHEN 'A' THEN 'first' WHEN 'B' THEN 'second' END AS place, COUNT(*) FROM visits GROUP BY place",  # noqa: E501 - one question
        "count",
        "place:text",
        "place:text count:int",
    ),
    (
        "SELECT IF(smoker, 'yes', 'no') AS smokes, COUNT(*) FROM visits GROUP BY smokes",
        "count",
        "smokes:text",
        "smokes:text count:int",
    ),
    ("SELECT COALESCE(ward, 'none') AS w, COUNT(*) FROM visits GROUP BY w", "count", "w:text", "w:text count:int"),
    ("SELECT IFNULL(ward, 'none') AS w, COUNT(*) FROM visits GROUP BY w", "count", "w:text", "w:text count:int"),
    ("SELECT NULLIF(ward, '') AS w, COUNT(*) FROM visits GROUP BY w", "count", "w:text", "w:text count:int"),
    ("SELECT LOWER(TRIM(ward)) AS w, COUNT(*) FROM visits GROUP BY w", "count", "w:text", "w:text count:int"),
    (
        "SELECT COUNT(*) FROM visits WHERE ward ~ '^a+' AND ward !~* 'B$' OR ward SIMILAR TO 'a%'",
        "count",
        "",
        "count:int",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE ward NOT LIKE 'a!%%' ESCAPE '!' AND NOT regexp_matches(ward, 'a', 'i')",
        "count",
        "",
        "count:int",
    ),
    (
        "SELECT regexp_extract(ward, '[a-z]+') AS w, COUNT(*) FROM visits GROUP BY w",
        "count",
        "w:text",
        "w:text count:int",
    ),
    ("SELECT AVG(LN(age)), EXP(AVG(LN(charge + 1))) AS g FROM visits", "mean mean", "", "avg_ln_age:float g:float"),
    (
        "SELECT LOG(COUNT(*)) AS a, LOG(3, COUNT(*)) AS b, COUNT(*) ^ 0.3 AS c FROM visits",
        "count",
        "",
        "a:float b:float c:float",
    ),
    ("SELECT BTRIM(ward, '-/') AS w, COUNT(*) FROM visits GROUP BY w", "count", "w:text", "w:text count:int"),
    (
        "SELECT TRIM(BOTH '-' FROM ward), COUNT(*) FROM visits GROUP BY 1",
        "count",
        "trim_ward:text",
        "trim_ward:text count:int",
    ),
    (
        "SELECT LTRIM(ward), COUNT(*) FROM visits GROUP BY 1",
        "count",
        "trim_left_ward:text",
        "trim_left_ward:text count:int",
    ),
    ("SELECT SUBSTRING(ward, 1, 2) AS w, COUNT(*) FROM visits GROUP BY w", "count", "w:text", "w:text count:int"),
    (
        "SELECT SUBSTRING(ward FROM 2 FOR 3) AS w, COUNT(*) FROM visits GROUP BY w",
        "count",
        "w:text",
        "w:text count:int",
    ),
    ("SELECT SUBSTR(ward, 2) AS w, COUNT(*) FROM visits GROUP BY w", "count", "w:text", "w:text count:int"),
    ("SELECT LENGTH(note) AS l, COUNT(*) FROM visits GROUP BY l", "count", "l:int", "l:int count:int"),
    ("SELECT CAST(age AS TEXT) AS t, COUNT(*) FROM visits GROUP BY t", "count", "t:text", "t:text count:int"),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 10",
        "count",
        "ward:text",
        "ward:text n:int",
    ),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 10", "count", "ward:text", "ward:text n:int"),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING AVG(age) > 40 AND ward <> 'A'",
        "count mean",
        "ward:text",
        "ward:text n:int",
    ),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n", "count", "ward:text", "ward:text n:int"),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward LIMIT 3",
        "count",
        "ward:text",
        "ward:text n:int",
    ),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY 2 DESC", "count", "ward:text", "ward:text n:int"),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY SUM(charge) DESC NULLS LAST",
        "count sum",
        "ward:text",
        "ward:text n:int",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY LENGTH(ward) ASC LIMIT 0",
        "count",
        "ward:text",
        "ward:text n:int",
    ),
    ("SELECT COUNT(*) FROM visits WHERE age >= 40", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE age > 40.5", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE age BETWEEN 20 AND 40", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE age NOT BETWEEN 20 AND 40", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward = 'A'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward <> 'A' AND ward != 'B'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward IN ('A', 'B')", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward NOT IN ('A', 'B')", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (1, -2, 3)", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE day IN ('2026-01-01', DATE '2026-01-02')", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward LIKE 'A%'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward NOT LIKE '_B%'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward IS NULL", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward IS NOT NULL", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE smoker", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE NOT smoker", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE smoker IS TRUE", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE smoker IS NOT FALSE", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE smoker = TRUE OR age > 3", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE day >= '2026-01-01'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE '2026-01-01' <= day", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE day BETWEEN DATE '2026-01-01' AND '2026-12-31'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE seen >= TIMESTAMP '2026-01-01 10:30:00'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE seen >= '2026-01-01'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE seen >= DATE '2026-01-01'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE seen < '2026-01-01T10:30:15.25'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE patient_id = 7", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE patient_id IN (7, 8)", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE 1 / (age - 40) > 0", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE CAST(ward AS INT) > 3", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE TRY_CAST(ward AS DOUBLE) > 3", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward::DATE = '2026-01-01'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ABS(charge - 100) < 5", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE CEIL(charge) = FLOOR(charge)", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE GREATEST(age, 3, charge) > LEAST(age, 4)", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE index = 3", "count", "", "count:int"),
    ('SELECT COUNT(*) FROM visits WHERE "index" = 3', "count", "", "count:int"),
    ('SELECT COUNT(*) FROM visits WHERE "Heart rate" > 60', "count", "", "count:int"),
    ('SELECT COUNT(*) FROM visits WHERE "heart RATE" > 60', "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE visits.age > 60", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits AS v WHERE v.age > 60", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits v WHERE V.AGE > 60", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward = 'it''s'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward = '-- no comment; /* */'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE ward = 'Müller 李'", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE age = -9223372036854775808", "count", "", "count:int"),
    ("SELECT COUNT(*) FROM visits WHERE charge < 1.5e3", "count", "", "count:int"),
    ("SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) AS smokers FROM visits", "sum", "", "smokers:int"),
    ("SELECT SUM(CASE WHEN smoker THEN charge END) AS cost FROM visits", "sum", "", "cost:float"),
    ("SELECT AVG(GREATEST(LEAST(weight, 200), 0)) AS kilos FROM visits", "mean", "", "kilos:float"),
    ("SELECT SUM(age * 2 + 1) FROM visits", "sum", "", "sum:int"),
    ("SELECT AVG(charge / 1000) AS thousands FROM visits", "mean", "", "thousands:float"),
    ("SELECT AVG(COALESCE(charge, 0)) FROM visits", "mean", "", "avg_charge:float"),
    ('SELECT AVG("Heart rate") FROM visits', "mean", "", "avg_Heart rate:float"),
    ("SELECT SUM(1) AS n FROM visits", "sum", "", "n:int"),
    ("SELECT COUNT(*) AS index FROM visits", "count", "", "index:int"),
    ("SELECT COUNT(*) AS date FROM visits", "count", "", "date:int"),
    ('SELECT COUNT(*) AS "n of visits" FROM visits', "count", "", "n of visits:int"),
    ("SELECT COUNT(*) FROM visits;", "count", "", "count:int"),
    ("SELECT age, COUNT(*) FROM rows_only GROUP BY age", "count", "age:int", "age:int count:int"),
    (
        "SELECT w, n FROM (SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY ward) AS t",
        "count",
        "w:text",
        "w:text n:int",
    ),
    (
        "SELECT w, n / 2 AS half FROM (SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY ward) WHERE n > 3 ORDER BY half LIMIT 2",  # noqa: E501 - one question
        "count",
        "w:text",
        "w:text half:float",
    ),
    ("SELECT t.n * 2 AS twice FROM (SELECT COUNT(*) AS n, SUM(age) AS s FROM visits) t", "count", "", "twice:int"),
    (
        "SELECT s / n AS mean FROM (SELECT COUNT(*) AS n, SUM(age) AS s FROM visits HAVING n > 2) WHERE s > 0 ORDER BY 1 DESC",  # noqa: E501 - one question
        "sum count",
        "",
        "mean:float",
    ),
]


def kinds(question: Question) -> tuple[str, str, str]:
    """The three texts of the table."""
    return (
        " ".join(aggregate.kind for aggregate in question.aggregates),
        " ".join(f"{key.name}:{key.expression.type.value}" for key in question.keys),
        " ".join(f"{output.name}:{output.expression.type.value}" for output in question.outputs),
    )


def test_the_table_is_long_enough() -> None:
    assert len(ACCEPTED) >= 120


@every(("text", "aggregates", "keys", "outputs"), ACCEPTED)
def test_accepted(text: str, aggregates: str, keys: str, outputs: str) -> None:
    assert kinds(parse(text, SCHEMAS)) == (aggregates, keys, outputs)


SAME = [
    (
        "SELECT COUNT(*) FROM visits WHERE age > '40' AND '7' <> age AND charge <= '12.5' AND age IN ('1', 2, '-3')",
        "SELECT COUNT(*) FROM visits WHERE age > 40 AND 7 <> age AND charge <= 12.5 AND age IN (1, 2, -3)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE age BETWEEN '1' AND '2' AND debt = '-0' AND CASE age WHEN '3' THEN TRUE END",
        "SELECT COUNT(*) FROM visits WHERE age BETWEEN 1 AND 2 AND debt = 0 AND CASE age WHEN 3 THEN TRUE END",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > '10'",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 10",
    ),
    ("SELECT COUNT(*) FROM visits WHERE age >= 40", 'select  count( * )\nfrom "Visits" where "AGE">=40 ;'),
    ("SELECT AVG(charge) AS c FROM visits", "SELECT AVG(v.charge) AS c FROM visits AS v"),
    ("SELECT COUNT(*) FROM visits WHERE charge > 10", "SELECT COUNT(*) FROM visits WHERE charge > 10.0"),
    (
        "SELECT COUNT(*) FROM visits WHERE day > '2026-01-01'",
        "SELECT COUNT(*) FROM visits WHERE day > DATE '2026-01-01'",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE age BETWEEN 1 AND 2",
        "SELECT COUNT(*) FROM visits WHERE age >= 1 AND age <= 2",
    ),
    ("SELECT COUNT(*) FROM visits WHERE ward IS NOT NULL", "SELECT COUNT(*) FROM visits WHERE NOT (ward IS NULL)"),
    ("SELECT COUNT(1) AS n FROM visits", "SELECT COUNT(*) AS n FROM visits"),
    ("SELECT COUNT(*) AS n FROM visits WHERE CAST(age AS INT) > 1", "SELECT COUNT(*) AS n FROM visits WHERE age > 1"),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1"),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 1",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 1",
    ),
    (
        "SELECT n FROM (SELECT ward, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY ward)",
        "SELECT COUNT(*) AS n FROM visits GROUP BY ward",
    ),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "FROM visits SELECT ward, COUNT(*) AS n GROUP BY ALL"),
    ("SELECT COUNT(*) AS n FROM visits WHERE age > 1", "FROM visits SELECT COUNT(*) AS n WHERE age > 1"),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 3",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC FETCH FIRST 3 ROWS ONLY",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 1 OFFSET 2",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC OFFSET 2 ROWS FETCH NEXT ROW ONLY",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE ward NOT IN ('a', 'b') AND age IN (-1, 2) AND age + 1 IN (3)",
        (
            "SELECT COUNT(*) AS n FROM visits WHERE ward <> ALL (ARRAY['a', 'b']) AND age = ANY (ARRAY[-1, 2]) "
            "AND age + 1 = SOME ([3])"
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE patient_id IN (SELECT patient_id FROM visits WHERE age > 3)",
        "SELECT COUNT(*) AS n FROM visits WHERE patient_id = ANY (SELECT patient_id FROM visits WHERE age > 3)",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE ward IS NULL AND NOT (note IS NULL)",
        "SELECT COUNT(*) AS n FROM visits WHERE ward IS NOT DISTINCT FROM NULL AND note IS DISTINCT FROM NULL",
    ),
    (
        "SELECT age // 10 AS band, GROUPING(age // 10) AS g, COUNT(*) AS n FROM visits GROUP BY ROLLUP (age // 10)",
        "SELECT age // 10 AS band, GROUPING(band) AS g, COUNT(*) AS n FROM visits GROUP BY ROLLUP (1)",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY RANK() OVER (ORDER BY COUNT(*)) < 3",
        (
            "SELECT ward, n FROM (SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM visits "
            "GROUP BY ward) WHERE r < 3"
        ),
    ),
    (
        "SELECT IF(smoker, 1, 2) AS s, COUNT(*) FROM visits GROUP BY s",
        "SELECT CASE WHEN smoker THEN 1 ELSE 2 END AS s, COUNT(*) FROM visits GROUP BY s",
    ),
]


@every(("one", "other"), SAME)
def test_different_words_for_the_same_question(one: str, other: str) -> None:
    assert parse(one, SCHEMAS) == parse(other, SCHEMAS)


def where(condition: str) -> object:
    return parse(f"SELECT COUNT(*) FROM visits WHERE {condition}", SCHEMAS).where


def test_conversions_are_written_into_the_plan() -> None:
    age = ColumnRef("age", Type.INT)
    as_float = FunctionCall("to_float", (age,), Type.FLOAT)
    assert where("age > 1.5") == FunctionCall("greater", (as_float, Literal(1.5, Type.FLOAT)), Type.BOOL)
    assert where("age > 1") == FunctionCall("greater", (age, Literal(1, Type.INT)), Type.BOOL)


def test_null_takes_the_type_of_its_place() -> None:
    found = where("CASE WHEN smoker THEN age END > 1")
    assert isinstance(found, FunctionCall)
    assert isinstance(found.arguments[0], FunctionCall)
    assert found.arguments[0].arguments[2] == Literal(None, Type.INT)


def test_a_key_hides_no_other_column_of_its_name() -> None:
    with pytest.raises(UnsupportedQuery, match="neither a key"):
        parse("SELECT UPPER(ward) AS ward, ward AS w, COUNT(*) FROM visits GROUP BY 1", SCHEMAS)


def test_group_by_means_the_column_before_the_alias() -> None:
    asked = parse("SELECT UPPER(ward) AS ward, COUNT(*) FROM visits GROUP BY ward", SCHEMAS)
    assert asked.keys[0].expression == ColumnRef("ward", Type.TEXT)
    assert asked.outputs[0].expression == FunctionCall("upper_case", (ColumnRef("ward", Type.TEXT),), Type.TEXT)


def test_unused_aggregates_of_an_inner_select_are_not_paid_for() -> None:
    asked = parse("SELECT n FROM (SELECT SUM(age) AS s, COUNT(*) AS n FROM visits)", SCHEMAS)
    assert [(aggregate.name, aggregate.kind) for aggregate in asked.aggregates] == [("#1", "count")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("COUNT(*) FILTER (WHERE age > 3)", "COUNT(CASE WHEN age > 3 THEN 1 END)"),
        ("COUNT(*) FILTER (age > 3)", "COUNT_IF(age > 3)"),
        ("COUNT(note) FILTER (WHERE smoker)", "COUNT(CASE WHEN smoker THEN note END)"),
        ("SUM(charge) FILTER (WHERE ward = 'A')", "SUM(CASE WHEN ward = 'A' THEN charge END)"),
        ("AVG(age + 1) FILTER (WHERE smoker OR age > 9)", "AVG(IF(smoker OR age > 9, age + 1, NULL))"),
    ],
)
def test_a_filtered_aggregate_is_one_of_a_case(one: str, other: str) -> None:
    assert parse(f"SELECT {one} AS x FROM visits", SCHEMAS) == parse(f"SELECT {other} AS x FROM visits", SCHEMAS)


_FRAMES = """
SELECT AVG(COUNT(*)) OVER (ORDER BY age ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS a FROM visits GROUP BY age;
SELECT SUM(COUNT(*)) OVER (ORDER BY age ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING) AS a FROM visits GROUP BY age;
SELECT COUNT(*) AS n FROM (SELECT patient_id, LAST_VALUE(age) OVER (PARTITION BY patient_id ORDER BY day ROWS BETWEEN
  UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS w FROM visits) AS t WHERE w > 3;
SELECT COUNT(*) AS n FROM (SELECT patient_id, FIRST(age ORDER BY day DESC NULLS LAST) AS w FROM visits GROUP BY
  patient_id) AS t WHERE w > 3
"""
FRAMES = tuple(" ".join(text.split()) for text in _FRAMES.split(";"))


@pytest.mark.parametrize("sql", FRAMES)
def test_small_letters_mean_the_same(sql: str) -> None:
    for word in ("ROWS", "PRECEDING", "FOLLOWING", "CURRENT ROW", "UNBOUNDED", "DESC"):
        assert parse(sql.replace(word, word.lower()), SCHEMAS) == parse(sql, SCHEMAS), word
    assert parse(sql.lower(), SCHEMAS) == parse(sql, SCHEMAS)
