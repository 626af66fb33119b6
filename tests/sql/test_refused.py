"""Questions that are refused: with a reason in words, at the right place, and with a remedy that is itself accepted."""

from __future__ import annotations

import re

import pytest

from discreet.errors import UnknownTable, UnsupportedQuery
from discreet.sql.frame import TableFrame, count
from discreet.sql.select import parse
from tests.cases import every, try_all
from tests.plan.tables import BARE, ROWS, SCHEMAS, VISITS

MARK = "¦"  # stands before the character that a refusal points at

# The question with its mark, and a part of the reason.
REFUSED: list[tuple[str, str]] = [
    # RT-054, RT-109, RT-110: statements
    ("¦ATTACH 'x.db'", "statement"),
    ("¦COPY visits TO 'x.csv'", "statement"),
    ("¦EXPORT DATABASE 'x'", "statement"),
    ("¦PRAGMA database_list", "statement"),
    ("¦INSTALL httpfs", "statement"),
    ("¦LOAD httpfs", "statement"),
    ("¦SET memory_limit = '1TB'", "statement"),
    ("¦EXPLAIN SELECT COUNT(*) FROM visits", "statement"),
    ("¦EXPLAIN ANALYZE SELECT COUNT(*) FROM visits", "statement"),
    ("¦SUMMARIZE visits", "statement"),
    ("¦DESCRIBE visits", "statement"),
    ("¦DROP TABLE visits", "statement"),
    ("¦INSERT INTO visits VALUES (1)", "statement"),
    ("¦DELETE FROM visits", "statement"),
    ("¦VALUES (1)", "statement"),
    ("¦FROM visits", "publish rows"),
    ("¦(SELECT COUNT(*) FROM visits) AS t", "one SELECT"),
    ("¦hello", "begins with SELECT"),
    ("SELECT COUNT(*) FROM visits¦; DROP TABLE visits", "several statements"),
    ("SELECT COUNT(*) FROM visits¦; SELECT COUNT(*) FROM visits", "several statements"),
    ("¦", "empty"),
    ("¦;;", "empty"),
    ("¦SELECT", "selects something"),
    ("¦SELECT FROM visits", "selects something"),
    ("¦SELECT 1", "selects something"),
    # RT-107, RT-108, RT-052: places outside the declared tables
    ("SELECT COUNT(*) FROM ¦'/etc/passwd'", "not a file"),
    ("SELECT COUNT(*) FROM ¦'s3://bucket/x.parquet'", "not a file"),
    ("SELECT COUNT(*) FROM ¦read_csv('/etc/passwd')", "reads a file"),
    ("SELECT COUNT(*) FROM ¦read_text('/etc/passwd')", "reads a file"),
    ("SELECT COUNT(*) FROM ¦read_parquet('x')", "reads a file"),
    ("SELECT COUNT(*) FROM ¦glob('*')", "reads a file"),
    ("SELECT COUNT(*) FROM ¦duckdb_tables()", "engine"),
    ("SELECT COUNT(*) FROM ¦duckdb_settings()", "engine"),
    ("SELECT COUNT(*) FROM ¦range(1000000000)", "lists"),
    ("SELECT COUNT(*) FROM ¦unnest([1])", "lists"),
    ("SELECT COUNT(*) FROM ¦pragma_storage_info('visits')", "engine"),
    ("SELECT COUNT(*) FROM ¦main.visits", "without schema"),
    ("SELECT COUNT(*) FROM ¦a.b.visits", "without schema"),
    ("SELECT ¦current_user FROM visits", "engine"),
    ("SELECT ¦stats(age) FROM visits", "engine"),
    # RT-038, RT-056: functions that raise, and functions of chance and time
    ("SELECT COUNT(*) FROM visits WHERE ¦error('x')", "could fail"),
    ("SELECT COUNT(*) FROM visits WHERE CASE WHEN age = 7 THEN ¦error('x') END", "could fail"),
    ("SELECT COUNT(*) FROM visits WHERE ¦raise_error('x')", "could fail"),
    ("SELECT COUNT(*) FROM visits WHERE ¦strptime(ward, '%Y') > day", "could fail"),
    ("SELECT COUNT(*) FROM visits WHERE ¦random() < 0.5", "function of the row"),
    ("SELECT COUNT(*) FROM visits WHERE ¦uuid() = ward", "function of the row"),
    ("SELECT COUNT(*) FROM visits WHERE ¦setseed(1)", "function of the row"),
    ("SELECT COUNT(*) FROM visits WHERE ¦nextval('s') = 1", "function of the row"),
    ("SELECT COUNT(*) FROM visits WHERE seen < ¦now()", "each time"),
    ("SELECT COUNT(*) FROM visits WHERE day < ¦today()", "No day is declared as today"),
    ("SELECT COUNT(*) FROM visits WHERE day < ¦CURRENT_DATE", "No day is declared as today"),
    ("SELECT COUNT(*) FROM visits WHERE day < ¦localtimestamp", "each time"),
    ("SELECT COUNT(*) FROM visits WHERE EXTRACT(YEAR FROM ¦AGE(day)) > 3", "No day is declared as today"),
    ("SELECT COUNT(*) FROM visits WHERE ¦age > '3.5'", "'3.5' is not a whole number"),
    ("SELECT COUNT(*) FROM visits WHERE ¦age IN (1, 'x')", "'x' is not a whole number"),
    ("SELECT COUNT(*) FROM visits WHERE ¦charge = ' 2'", "' 2' is not a number"),
    ("SELECT COUNT(*) FROM visits WHERE ¦charge BETWEEN 1 AND '1e999'", "'1e999' is not a number"),
    ("SELECT COUNT(*) FROM visits WHERE ¦age + '3' > 5", "does not take int and text"),
    ("SELECT COUNT(*) FROM visits WHERE seen < ¦current_timestamp", "each time"),
    ("SELECT COUNT(*) FROM visits WHERE ¦repeat(ward, 2000000000) = ''", "text functions"),
    ("SELECT COUNT(*) FROM visits WHERE ¦foo(age) = 1", "FOO is not in the list"),
    ('SELECT COUNT(*) FROM visits WHERE ¦"abs"(age) = 1', "not in the list"),
    # RT-046: aggregates
    ("SELECT ¦MIN(ward) FROM visits", "does not take text"),
    ("SELECT ¦MAX(weight) FROM visits", "no bounds"),
    ("SELECT ¦MEDIAN(weight) FROM visits", "no bounds"),
    ("SELECT ¦MEDIAN(DISTINCT age) FROM visits", "DISTINCT"),
    ("SELECT ¦MEDIAN(NULL) FROM visits", "no quantile"),
    ("SELECT quantile_cont(¦age, 1.5) FROM visits", "from 0 to 1"),
    ("SELECT ¦QUANTILE(age) FROM visits", "from 0 to 1"),
    ("SELECT ¦QUANTILE(age, '0.5') FROM visits", "from 0 to 1"),
    ("SELECT ¦QUANTILE(age, 0.1234567) FROM visits", "six digits"),
    ("SELECT QUANTILE(age, ¦[ward]) FROM visits", "list"),
    ("SELECT QUANTILE(age, ¦[]) FROM visits", "list"),
    ("SELECT QUANTILE(age, [0.5, ¦['x']]) FROM visits", "list"),
    ("SELECT QUANTILE(age, ¦[-0.5]) FROM visits", "list"),
    ("SELECT QUANTILE(age, ¦[[0.5]]) FROM visits", "list"),
    ("SELECT ¦QUANTILE(age, [0.5, 2]) FROM visits", "from 0 to 1"),
    ("SELECT ¦QUANTILE(age, [0.5, 0.5]) AS q FROM visits", "Two columns"),
    ("SELECT QUANTILE(age, [0.5, 0.9])¦[1] FROM visits", "list"),
    ("SELECT 1 + ¦QUANTILE(age, [0.5, 0.9]) FROM visits", "several columns"),
    ("SELECT SUM([¦1, 2]) FROM visits", "lists"),
    ("SELECT COUNT(*) FROM visits WHERE age IN ([¦1, 2])", "lists"),
    ("SELECT MEDIAN(¦MEDIAN(age)) FROM visits", "whole query"),
    ("SELECT COUNT(*) FROM visits WHERE age > ¦MEDIAN(age)", "whole query"),
    ("SELECT quantile_disc(¦ward, 0.5) FROM visits", "does not take text"),
    ("SELECT ¦PERCENTILE_DISC(2) WITHIN GROUP (ORDER BY age) FROM visits", "from 0 to 1"),
    ("SELECT ¦MEDIAN(DISTINCT age) FROM visits", "DISTINCT"),
    ("SELECT ¦SUM(DISTINCT age, charge) FROM visits", "of one argument"),
    ("SELECT ¦SUM(DISTINCT ward) FROM visits", "does not take text"),
    ("SELECT ¦AVG(DISTINCT weight) FROM visits", "no bounds"),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY ¦age, charge) FROM visits", "one expression"),
    ("SELECT ¦COUNT(*) WITHIN GROUP (ORDER BY age) FROM visits", "not allowed"),
    ("SELECT ¦PERCENTILE_CONT(0.5) FROM visits", "from 0 to 1"),
    ("SELECT ¦STRING_AGG(ward, ',') FROM visits", "publish people's values"),
    ("SELECT ¦ANY_VALUE(ward) FROM visits", "keys decide it"),
    ("SELECT ¦first(ward) FROM visits", "publish people's values"),
    ("SELECT ¦approx_top_k(ward, 3) FROM visits", "publish people's values"),
    ("SELECT ¦mode(weight) FROM visits", "drawn among public values"),
    ("SELECT MODE(¦MODE(age)) FROM visits", "whole query"),
    ("SELECT ¦arg_max(ward, age) FROM visits", "publish people's values"),
    ("SELECT ¦list(ward) FROM visits", "lists"),
    ("SELECT ¦array_agg(ward) FROM visits", "publish people's values"),
    ("SELECT ¦STDDEV(weight) FROM visits", "no bounds"),
    ("SELECT ¦VARIANCE(ward) FROM visits", "does not take text"),
    ("SELECT ¦VAR_POP(NULL) FROM visits", "not a number"),
    ("SELECT ¦VAR_POP(DISTINCT age) FROM visits", "DISTINCT"),
    ("SELECT ¦VAR_POP(age * 1e200) FROM visits", "no squares"),
    ("SELECT ¦CORR(age, charge * 1e-200) FROM visits", "no squares"),
    ("SELECT ¦CORR(age, weight) FROM visits", "no bounds"),
    ("SELECT ¦COVAR_POP(ward, age) FROM visits", "does not take text"),
    ("SELECT ¦REGR_R2(age, charge) FROM visits", "not supported yet"),
    ("SELECT ward, ¦HISTOGRAM(age, 12) FROM visits GROUP BY ward", "must be alone"),
    ("SELECT ¦HISTOGRAM(age, 12) FROM visits LIMIT 3", "must be alone"),
    ("SELECT COUNT(*) FROM visits WHERE ¦HISTOGRAM(age) > 3", "must be alone"),
    ("SELECT ¦HISTOGRAM(weight, 12) FROM visits", "need bounds"),
    ("SELECT ¦HISTOGRAM(ward) FROM visits", "bands of numbers"),
    ("SELECT ¦HISTOGRAM() FROM visits", "takes a number"),
    ("SELECT ¦HISTOGRAM(age, 0) FROM visits", "1 to 500 bands"),
    ("SELECT ¦HISTOGRAM(age, 2.5) FROM visits", "1 to 500 bands"),
    ("SELECT ¦HISTOGRAM(age, 501) FROM visits", "1 to 500 bands"),
    ("SELECT ¦HISTOGRAM(age, 0, 10, 10) FROM visits", "ascend"),
    ("SELECT ¦HISTOGRAM(age, 0, charge) FROM visits", "written out"),
    ("SELECT ¦HISTOGRAM(age) AS high FROM visits", "called low and high"),
    ("SELECT ¦KURTOSIS(age) FROM visits", "not supported yet"),
    ("SELECT ¦SKEWNESS(weight) FROM visits", "no bounds"),
    ("SELECT ¦SKEWNESS(ward) FROM visits", "does not take text"),
    ("SELECT ¦SKEWNESS(DISTINCT age) FROM visits", "DISTINCT"),
    ("SELECT COUNT(*) FROM visits WHERE ¦SKEWNESS(age) > 1", "not allowed inside WHERE"),
    ("SELECT ¦approx_count_distinct(ward) FROM visits", "sketch"),
    ("SELECT COUNT_IF(¦age) FROM visits", "does not take int"),
    ("SELECT ¦COUNT(DISTINCT patient_id, ward) FROM visits", "takes one column"),
    ("SELECT COUNT(age, ¦ward) FROM visits", "more arguments"),
    ("SELECT ¦COUNT(DISTINCT patient_id) FILTER (WHERE age > 3) FROM visits", "takes no FILTER"),
    ("SELECT ¦ABS(age) FILTER (WHERE age > 3) FROM visits", "belongs to an aggregate"),
    ("SELECT SUM(age) FILTER (WHERE ¦COUNT(*) > 3) FROM visits", "inside"),
    ("SELECT SUM(¦age) FILTER (WHERE age) FROM visits", "does not take int"),
    ("SELECT ¦COUNT(NULL) FROM visits", "always 0"),
    ("SELECT ¦SUM(NULL) FROM visits", "NULL"),
    ("SELECT ¦SUM(ward) FROM visits", "does not take text"),
    ("SELECT ¦MAX(smoker) FROM visits", "does not take bool"),
    ("SELECT ¦MEDIAN(age > 40) FROM visits", "does not take bool"),
    ("SELECT ¦AVG(day) FROM visits", "does not take date"),
    ("SELECT SUM(¦COUNT(*)) FROM visits", "inside"),
    ("SELECT COUNT(*) FROM visits WHERE ¦COUNT(*) > 3", "inside"),
    ("SELECT COUNT(*) FROM visits GROUP BY ¦COUNT(*)", "inside"),
    ("SELECT ¦COUNT(*), ward FROM visits GROUP BY 1", "inside"),
    # RT-011, RT-024: nothing is summed without public bounds
    ("SELECT ¦SUM(weight) FROM visits", "no bounds"),
    ("SELECT ward, ¦AVG(visits_before) FROM visits GROUP BY ward", "no bounds"),
    ("SELECT ¦SUM(1 / (debt - 4)) FROM visits", "no bounds"),
    ("SELECT ¦AVG(v.weight) FROM visits v", "no bounds"),
    ("SELECT ¦SUM(GREATEST(weight, 0)) FROM visits", "no bounds"),
    ("SELECT ¦SUM(CAST(ward AS INT)) FROM visits", "no bounds"),
    # rows and people are not shown
    ("SELECT ¦* FROM visits", "publish rows"),
    ("SELECT * ¦EXCLUDE (age) FROM visits", "EXCLUDE"),
    ("SELECT visits.¦* FROM visits", "publish rows"),
    ("SELECT ¦COLUMNS('a.*') FROM visits", "pattern"),
    ("SELECT ¦ward FROM visits", "neither a key"),
    ("SELECT ¦charge FROM visits", "not inside an aggregate"),
    ("SELECT ward, ¦age, COUNT(*) FROM visits GROUP BY ward", "neither a key"),
    ("SELECT AVG(age) + ¦age FROM visits", "neither a key"),
    ("SELECT ¦patient_id, COUNT(*) FROM visits GROUP BY 1", "whose row"),
    ("SELECT COUNT(*) FROM visits GROUP BY ¦patient_id", "whose row"),
    ("SELECT COUNT(*) FROM visits GROUP BY ¦patient_id % 10", "whose row"),
    ("SELECT ¦patient_id, COUNT(*) FROM visits GROUP BY ward", "never shown"),
    ("SELECT COUNT(*) FROM visits GROUP BY ward HAVING ¦age > 3", "neither a key"),
    ("SELECT COUNT(*) FROM visits GROUP BY ward ORDER BY ¦age", "neither a key"),
    ("SELECT DISTINCT ¦patient_id FROM visits", "whose row"),
    ("SELECT DISTINCT ¦charge FROM visits", "rounding errors"),
    ("SELECT DISTINCT ON (¦ward) ward FROM visits", "single rows"),
    ("SELECT DISTINCT ¦COUNT(*) AS n FROM visits GROUP BY ward", "chance decides"),
    ("SELECT ¦1 AS one FROM visits HAVING TRUE", "Nothing is counted"),
    # RT-032: keys
    ("SELECT COUNT(*) FROM visits GROUP BY ¦charge", "float"),
    ("SELECT FLOOR(¦age) / 10, COUNT(*) FROM visits GROUP BY 1", "float"),
    ("SELECT COUNT(*) FROM visits v GROUP BY ¦v.charge", "float"),
    ("SELECT COUNT(*) FROM visits GROUP BY ¦'a'", "constant"),
    ("SELECT COUNT(*) FROM visits GROUP BY ¦7", "output number 7"),
    ("SELECT ¦patient_id, COUNT(*) FROM visits GROUP BY ALL", "whose row"),
    ("SELECT ward, ¦charge, COUNT(*) FROM visits GROUP BY ALL", "float"),
    ("SELECT COUNT(*) FROM visits GROUP BY CUBE (¦age, age + 1, age + 2, age + 3, age + 4, age + 5)", "32 groupings"),
    # RT-048, RT-050, RT-051: other shapes of questions
    ("SELECT COUNT(*) FROM visits JOIN ¦rows_only ON TRUE", "which columns are equal"),
    ("SELECT COUNT(*) FROM visits LEFT JOIN ¦rows_only USING (ward)", "same people"),
    ("SELECT COUNT(*) FROM visits, ¦rows_only", "join"),
    ("SELECT COUNT(*) FROM visits CROSS JOIN ¦rows_only", "joined by JOIN"),
    ("¦SELECT COUNT(*) FROM visits UNION SELECT COUNT(*) FROM visits", "chance decides"),
    ("¦SELECT COUNT(*) FROM visits EXCEPT SELECT 1", "several questions"),
    ("WITH ¦t AS (SELECT 1) SELECT COUNT(*) FROM visits", "Nothing reads"),
    ("WITH ¦RECURSIVE t AS (SELECT 1 UNION ALL SELECT 1 FROM t) SELECT COUNT(*) FROM t", "RECURSIVE"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (¦SELECT 1)", "tables and SELECTs"),
    ("SELECT COUNT(*) FROM visits WHERE age = (¦SELECT 1)", "A subquery is answered only"),
    ("SELECT COUNT(*) FROM visits WHERE ¦EXISTS (SELECT 1)", "EXISTS"),
    ("SELECT ¦COUNT(*) OVER () FROM visits", "single rows"),
    ("SELECT ¦ROW_NUMBER() OVER (PARTITION BY ward) FROM visits", "single rows"),
    ("SELECT ¦LAG(age) OVER (ORDER BY age) FROM visits", "single rows"),
    ("SELECT COUNT(*) FROM visits QUALIFY ¦age", "takes a condition"),
    ("SELECT ¦ward, COUNT(*) FROM visits QUALIFY ward = 'a'", "neither a key"),
    ("SELECT COUNT(*) FROM visits ¦TABLESAMPLE 10%", "random part"),
    ("SELECT COUNT(*) FROM visits PIVOT (¦COUNT(*) FOR ward IN ('a'))", "says what it groups by"),
    ("SELECT COUNT(*) FROM visits ¦UNPIVOT (v FOR n IN (age, charge))", "reshapes"),
    ("SELECT COUNT(*) FROM visits LIMIT 3 OFFSET ¦age", "OFFSET takes a whole number"),
    ("SELECT COUNT(*) FROM visits OFFSET ¦1.5", "OFFSET takes a whole number"),
    ("SELECT COUNT(*) FROM visits FETCH FIRST ¦3 ROWS WITH TIES", "ties"),
    ("SELECT COUNT(*) FROM visits FETCH FIRST ¦age ROWS ONLY", "FETCH FIRST takes a whole number"),
    ("SELECT COUNT(*) FROM visits FETCH FIRST 3 ¦PERCENT ROWS ONLY", "PERCENT"),
    ("SELECT COUNT(*) FROM visits WHERE age > ¦ANY (ARRAY[1, 2])", "list of values"),
    ("SELECT COUNT(*) FROM visits WHERE age = ¦ANY (ARRAY[ARRAY[1]])", "list of values"),
    ("SELECT COUNT(*) FROM visits WHERE age > ALL (¦ARRAY[1, 2])", "lists"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward = ANY (ARRAY[1, 2])", "does not take"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward IS DISTINCT FROM 3", "does not take"),
    ("SELECT DISTINCT FROM ¦'x.csv'", "not a file"),
    ("FROM ¦'x.csv' SELECT COUNT(*)", "not a file"),
    ("SELECT 'a' FROM ¦'x.csv'", "not a file"),
    ("SELECT (TRAILING 'a' FROM ¦'x.csv'", "not a file"),
    ("SELECT TRIM(ward 'a' FROM ¦'x.csv')", "not a file"),
    ("SELECT TRIM(BOTH 'a' FROM 'x'), COUNT(*) FROM ¦'x.csv'", "not a file"),
    ("SELECT age // 10 AS ward, ¦GROUPING(ward) AS g, COUNT(*) AS n FROM visits GROUP BY ROLLUP (1)", "GROUPING shows"),
    ("SELECT ¦TOP 3 COUNT(*) FROM visits", "TOP"),
    ("SELECT COUNT(*) ¦INTO x FROM visits", "INTO"),
    ("SELECT ¦MEDIAN(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)", "quantile"),
    ("SELECT ¦ward, MAX(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)", "neither a key"),
    ("SELECT ¦x FROM (SELECT COUNT(*) AS n FROM visits)", "no column 'x'"),
    ("SELECT n FROM (SELECT COUNT(*) AS n FROM visits LIMIT ¦3)", "outer SELECT"),
    ("SELECT n FROM (SELECT COUNT(*) AS n FROM visits) GROUP BY ¦n", "made by the noise"),
    ("SELECT COUNT(*) FROM visits ¦v(a)", "not in the list"),
    # RT-092, names
    ("SELECT COUNT(*) FROM visits WHERE ¦agee > 3", "No column 'agee'"),
    ("SELECT COUNT(*) FROM visits WHERE ¦other.age > 3", "not a table"),
    ("SELECT COUNT(*) FROM visits AS v WHERE ¦visits.age > 3", "not a table"),
    ("SELECT ¦COUNT(*) AS n_low FROM visits", "cannot be called"),
    ("SELECT ¦COUNT(*) AS N_HIGH FROM visits", "cannot be called"),
    ('SELECT ¦COUNT(*) AS "#1" FROM visits', "cannot be called"),
    ("SELECT COUNT(*) AS n, ¦SUM(age) AS N FROM visits", "Two columns"),
    # types
    ("SELECT COUNT(*) FROM visits WHERE ¦age", "takes a condition"),
    ("SELECT COUNT(*) FROM visits HAVING ¦COUNT(*)", "takes a condition"),
    ("SELECT COUNT(*) FROM visits WHERE ¦age = 'x'", "'x' is not a whole number"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward + 1 = 2", "does not take"),
    ("SELECT COUNT(*) FROM visits WHERE ¦day = seen", "date and timestamp"),
    ("SELECT COUNT(*) FROM visits WHERE ¦day > '2026-02-30'", "not a date that exists"),
    ("SELECT COUNT(*) FROM visits WHERE ¦day > 'yesterday'", "not a date that exists"),
    ("SELECT COUNT(*) FROM visits WHERE ¦seen > '2026-01-01 25:00'", "not a timestamp"),
    ("SELECT COUNT(*) FROM visits WHERE seen > TIMESTAMP ¦'2026-01-01 10:00:00+02'", "not a timestamp"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward = NULL", "equals NULL"),
    ("SELECT COUNT(*) FROM visits WHERE ¦age IN (1, NULL)", "without NULL"),
    ("SELECT COUNT(*) FROM visits WHERE ¦age IN (index)", "list of values"),
    ("SELECT COUNT(*) FROM visits WHERE ¦charge IN (1.5)", "IN does not take"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward LIKE note", "written out"),
    ("SELECT COUNT(*) FROM visits WHERE ward ¦RLIKE 'a%'", "patterns"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward ILIKE ward", "written out"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward LIKE 'a!b' ESCAPE '!'", "itself only, at character 2"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward LIKE 'a!!' ESCAPE '!!'", "one character"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward SIMILAR TO 'a.*'", "different ways"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward SIMILAR TO note", "written out"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward ~ note", "written out"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward ~ '(a'", "never closed, at character 1"),
    ("SELECT COUNT(*) FROM visits WHERE ¦ward !~* '(?=a)'", "look around"),
    ("SELECT COUNT(*) FROM visits WHERE ¦regexp_matches(ward, 'a', 'g')", "options"),
    ("SELECT COUNT(*) FROM visits WHERE ¦regexp_matches(age, 'a')", "does not take int"),
    ("SELECT COUNT(*) FROM visits WHERE ¦regexp_extract(ward, '(a)', 2) = 'a'", "numbered up to 1"),
    ("SELECT COUNT(*) FROM visits WHERE ¦regexp_extract(ward, '(?i)(a)', 1) = 'a'", "case matters"),
    ("SELECT COUNT(*) FROM visits WHERE ¦REGEXP_REPLACE(ward, 'a', 'b') = 'b'", "could fail"),
    ("SELECT COUNT(*) FROM visits WHERE NOT ¦age", "NOT does not take"),
    ("SELECT COUNT(*) FROM visits WHERE smoker AND ¦age", "takes a condition"),
    ("SELECT COUNT(*) FROM visits WHERE ¦charge % 2 = 0", "does not take float"),
    ("SELECT COUNT(*) FROM visits WHERE ¦HOUR(day) = 3", "does not take date"),
    ("SELECT COUNT(*) FROM visits WHERE ¦CAST(age AS BOOLEAN)", "not supported"),
    ("SELECT COUNT(*) FROM visits WHERE ¦CAST(charge AS TEXT) = ''", "does not take float"),
    ("SELECT COUNT(*) FROM visits WHERE ¦CAST(ward AS TIMESTAMP) = seen", "written timestamps"),
    ("SELECT COUNT(*) FROM visits WHERE ¦EXTRACT(century FROM day) = 1", "CENTURY"),
    ("SELECT COUNT(*) FROM visits WHERE day + ¦INTERVAL '1 month 3 days' > day", "INTERVAL"),
    ("SELECT COUNT(*) FROM visits WHERE seen + ¦INTERVAL 3 HOUR > seen", "INTERVAL"),
    ("SELECT COUNT(*) FROM visits WHERE ¦INTERVAL 3 DAY > 2", "INTERVAL"),
    ("SELECT COUNT(*) FROM visits WHERE ¦DATE_DIFF('decade', seen, seen) > 2", "DATE_DIFF"),
    ("SELECT COUNT(*) FROM visits WHERE ¦seen - seen > 2", "not a number"),
    ("SELECT COUNT(*) FROM visits WHERE ¦age(day) > 2", "not a number"),
    ("SELECT COUNT(*) FROM visits WHERE ¦STRFTIME(day, '%H:%M') = '1'", "format"),
    ("SELECT COUNT(*) FROM visits WHERE ¦STRFTIME(day, ward) = '1'", "format"),
    ("SELECT COUNT(*) FROM visits WHERE ¦LPAD(ward, age, '0') = '1'", "padded"),
    ("SELECT COUNT(*) FROM visits WHERE ¦LEFT(ward, -1) = '1'", "length"),
    ("SELECT COUNT(*) FROM visits WHERE ¦TRIM(BOTH note FROM ward) = '1'", "written out"),
    ("SELECT COUNT(*) FROM visits WHERE ¦BTRIM(ward, 'a', 'b') = '1'", "1 or 2 arguments"),
    ("SELECT COUNT(*) FROM visits WHERE ¦INITCAP(ward) = 'A'", "word"),
    ("SELECT COUNT(*) FROM visits WHERE ¦POWER(ward, 2.5) > 2", "POWER does not take text"),
    ("SELECT ¦SUM(EXP(EXP(EXP(age)))) AS x FROM visits", "no bounds"),
    ("SELECT ¦AVG(LN(weight)) AS x FROM visits", "no bounds"),
    ("SELECT ¦LN(age) AS x, COUNT(*) FROM visits GROUP BY 1", "rounding errors"),
    ("SELECT ¦age / 10 * 10 AS x, COUNT(*) FROM visits GROUP BY 1", "/ divides to a double"),
    ("SELECT ¦charge / 10 AS x, COUNT(*) FROM visits GROUP BY 1", "A key of type float"),
    ("SELECT COUNT(*) FROM visits WHERE ¦LN(ward) > 2", "LN does not take text"),
    ("SELECT COUNT(*) FROM visits WHERE ¦GAMMA(age) > 2", "list of number functions"),
    ("SELECT COUNT(*) FROM visits WHERE ¦EXTRACT(century FROM seen) = 1", "CENTURY"),
    ("SELECT COUNT(*) FROM visits WHERE ¦EXTRACT(EPOCH FROM AGE(seen, day)) = 1", "not a supported part of a duration"),
    ("SELECT COUNT(*) FROM visits WHERE ¦EXTRACT(YEAR FROM (seen - day)) = 1", "not a supported part of a duration"),
    ("SELECT COUNT(*) FROM visits WHERE ¦AGE(seen, day) = 1", "AGE is not a number"),
    ("SELECT COUNT(*) FROM visits WHERE ¦AGE(seen, day, day) = 1", "1 or 2 arguments"),
    ("SELECT COUNT(*) FROM visits WHERE ¦EPOCH(ward) = 1", "does not take"),
    ("SELECT COUNT(*) FROM visits WHERE ¦seen - day > 3", "not a number"),
    ("SELECT COUNT(*) FROM visits;¦ -- the end", "follow"),
    ("SELECT COUNT(*) FROM visits WHERE ¦DATE_TRUNC('hour', seen) = day", "cannot be cut to HOUR"),
    ("SELECT COUNT(*) FROM visits WHERE ¦CASE WHEN smoker THEN 1 ELSE 'a' END = 1", "does not take"),
    ("SELECT COUNT(*) FROM visits WHERE ROUND(charge, ¦index) = 1", "places"),
    ("SELECT ¦NULL AS x, COUNT(*) FROM visits", "no type"),
    # literals
    ("SELECT COUNT(*) FROM visits WHERE age > ¦99999999999999999999", "too large"),
    ("SELECT COUNT(*) FROM visits WHERE age > ¦9223372036854775808", "too large"),
    ("SELECT COUNT(*) FROM visits WHERE charge > ¦1e999", "too large"),
    ("SELECT COUNT(*) FROM visits WHERE charge > ¦1e-999", "too small"),
    ("SELECT COUNT(*) FROM visits WHERE age > ¦0x1F", "decimal"),
    ("SELECT COUNT(*) FROM visits WHERE ward = ¦x'00'", "without a prefix"),
    ("SELECT COUNT(*) FROM visits WHERE ward = ¦E'a'", "prefix"),
    ("SELECT COUNT(*) FROM visits WHERE ¦'a' 'b' = ward", "follow each other"),
    ("SELECT COUNT(*) FROM visits WHERE age = ¦$ 1", "parameter"),
    ("SELECT COUNT(*) FROM visits WHERE age = ¦: x", "parameter"),
    ("SELECT COUNT(*) FROM visits WHERE age = ¦@x", "parameter"),
    ("SELECT COUNT(*) FROM visits WHERE age = ¦:1", "parameter"),
    ("SELECT COUNT(*) FROM visits WHERE age¦:ward = 1", "parameter"),
    ("SELECT COUNT(*) FROM visits WHERE ward = ¦$$x$$", "parameter"),
    ("SELECT COUNT(*) FROM visits WHERE ¦charge || 'a' = 'b'", "TO_TEXT"),
    ("SELECT COUNT(*) FROM visits WHERE age::INT¦[] = 1", "list"),
    ("SELECT COUNT(*) FROM visits WHERE ¦{'a': 1} = 1", "struct"),
    ("SELECT COUNT(*) FROM visits WHERE ward ¦-> 'a' = 1", "arrow"),
    # comments and characters
    ("¦SELECT COUNT(*) FROM visits /* never closed", "never closed"),
    ("SELECT COUNT(*) FROM visits ¦/* outer /* inner */ */", "inside"),
    ("SELECT COUNT(*) FROM visits ¦/*! hint */", "Hints are not read"),
    ("SELECT COUNT(*) FROM visits ¦-- a\rline", "inside"),
    ("¦-- nothing else", "empty"),
    ("SELECT ¦/*+ no_index */ COUNT(*) FROM visits", "Hints are not read"),
    ("SELECT COUNT(*) FROM visits WHERE ward = 'a¦\u202e'", "cannot be seen"),
    ("SELECT COUNT(*) FROM visits WHERE ward = 'a¦\x00'", "cannot be seen"),
    ("SELECT COUNT(*) FROM visits WHERE ward = 'a¦\ud800'", "cannot be seen"),
    ("¦\ufeffSELECT COUNT(*) FROM visits", "cannot be seen"),
    ("SELECT COUNT(*) FROM visits WHERE ¦\u0430ge > 3", "No column"),  # a Cyrillic letter
    # what is no SQL
    ("SELECT COUNT(¦*", "be parsed"),
    ("SELECT COUNT(*) FROM visits ¦WHERE", "be parsed"),
    ("SELECT COUNT(*) FROM visits WHERE age > ¦ORDER BY 1", "be parsed"),
    ("¦SELECT COUNT(*) FROM visits WHERE ward = 'a", "never closed"),
    ("SELECT COUNT(*)\nFROM visits\n  WHERE ¦agee > 3", "No column"),
    ("SELECT COUNT(*) FROM visits LIMIT ¦1.5", "whole number"),
    ("SELECT COUNT(*) FROM visits ORDER BY ¦3", "output number 3"),
    ("SELECT COUNT(*) FROM visits ORDER BY count NULLS ¦FIRST", "sorts last"),
    ("SELECT COUNT(*) FROM visits FOR ¦UPDATE", "statement"),
    ("¦SELECT COUNT(*) FROM visits FOR SHARE", "lock"),
    ("SELECT COUNT(*) FROM visits WHERE age BETWEEN ¦SYMMETRIC 3 AND 1", "SYMMETRIC"),
]


def refusal(text: str) -> UnsupportedQuery:
    with pytest.raises(UnsupportedQuery) as caught:
        parse(text, SCHEMAS)
    return caught.value


def expected(marked: str) -> tuple[int, int]:
    ahead = marked[: marked.index(MARK)]
    return ahead.count("\n") + 1, len(ahead.rpartition("\n")[2]) + 1


def accepted(hint: str) -> None:
    """Everything between backticks is a question that is accepted."""
    assert hint
    for proposal in re.findall("`([^`]*)`", hint):
        parse(proposal, SCHEMAS)


def test_the_table_is_long_enough() -> None:
    assert len(REFUSED) >= 120


@pytest.mark.ci
@every(("marked", "reason"), REFUSED)
def test_refused(marked: str, reason: str) -> None:
    error = refusal(marked.replace(MARK, ""))
    assert reason in error.reason
    assert error.position == expected(marked)
    accepted(error.hint)


@pytest.mark.ci
@pytest.mark.parametrize("name", [BARE.name, ROWS.name, VISITS.name])
def test_remedies_fit_the_table(name: str) -> None:
    """Whatever the table declares, what is proposed is accepted for it."""
    schemas = {name: SCHEMAS[name]}

    def check(text: str) -> None:
        with pytest.raises((UnsupportedQuery, UnknownTable)) as caught:
            parse(text, schemas)
        for proposal in re.findall("`([^`]*)`", str(caught.value)):
            parse(proposal, schemas)

    try_all([marked.replace(MARK, "").replace("visits", name) for marked, _ in REFUSED], check)


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ('ward = "Bones"', "A text is written in single quotes: 'Bones'."),
        ("ward = Bones", "A text is written in single quotes: 'Bones'."),
        ('ward IN ("A", "O\'Hara")', "A text is written in single quotes: 'A'."),
        ('ward <> "O\'Hara"', "A text is written in single quotes: 'O''Hara'."),
        ('ward LIKE "%x"', "A text is written in single quotes: '%x'."),
        ("day > 2024", "WHERE day >= DATE '2026-01-01'"),
    ],
)
def test_a_value_that_was_written_as_a_name(condition: str, hint: str) -> None:
    assert hint in refusal(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}").hint


@pytest.mark.parametrize("condition", ["nothing > 3", "nobody.ward = 'A'", 'ward = "a`b"', 'ward = "{mean}"'])
def test_a_name_is_no_text(condition: str) -> None:
    assert "single quotes" not in refusal(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}").hint


def test_unknown_tables_come_with_declared_names_only() -> None:
    with pytest.raises(UnknownTable) as caught:
        parse("SELECT COUNT(*) FROM vists", SCHEMAS)
    assert caught.value.known == tuple(SCHEMAS)
    assert caught.value.hint == "Did you mean 'visits'?"
    with pytest.raises(UnknownTable):
        parse('SELECT COUNT(*) FROM "/etc/passwd"', SCHEMAS)


def test_no_tables_at_all() -> None:
    with pytest.raises(UnsupportedQuery, match="protect"):
        parse("SELECT ENTROPY(x) FROM t", {})


def subjects(levels: int) -> str:
    """Each level compares the one inside it three times, so the plan would have 3^levels parts."""
    inner = "age"
    for _ in range(levels):
        inner = f"CASE age + ({inner}) WHEN 1 THEN 2 WHEN 3 THEN 4 WHEN 5 THEN 6 END"
    return f"SELECT COUNT(*) FROM visits WHERE {inner} = 1"


BOMBS = {
    "subjects": subjects(18),
    "brackets": "SELECT " + "(" * 3_000 + "1" + ")" * 3_000,
    "not": "SELECT COUNT(*) FROM visits WHERE " + "NOT " * 3_000 + "smoker",
    "minus": "SELECT COUNT(*) FROM visits WHERE " + "- " * 3_000 + "age > 1",
    "mixed prefixes": "SELECT COUNT(*) FROM visits WHERE " + "NOT - " * 2_000 + "age > 1",
    "case": "SELECT " + "CASE WHEN smoker THEN " * 800 + "1" + " END" * 800 + " FROM visits",
    "sum": "SELECT COUNT(*) FROM visits WHERE 0 < " + "1+" * 2_000 + "1",
    "and": "SELECT COUNT(*) FROM visits WHERE " + "smoker AND " * 1_500 + "smoker",
    "casts": "SELECT COUNT(*) FROM visits WHERE age" + "::INT" * 2_000 + " = 1",
    "doubling": "SELECT COUNT(*) FROM visits WHERE "
    + "CASE WHEN " * 30
    + "age"
    + " BETWEEN 1 AND 2 THEN 1 ELSE 2 END" * 30
    + " = 1",
    "long": "SELECT COUNT(*) FROM visits WHERE ward = '" + "a" * 20_000 + "'",
    "words": "SELECT COUNT(*) FROM visits WHERE age IN (" + "1," * 6_000 + "1)",
    "dots": "SELECT a" + ".a" * 2_000 + " FROM visits",
    "selects": "SELECT COUNT(*) FROM " + "(SELECT n FROM " * 900 + "visits" + ")" * 900,
    "equals": "SELECT COUNT(*) FROM visits WHERE age" + " = age" * 1_500,
    "commas": "SELECT " + "," * 4_000,
    "structs": "SELECT COUNT(*) FROM visits WHERE CAST(age AS " + "STRUCT<a " * 1_000 + "INT" + ">" * 1_000 + ") = 1",
    "aliases": "SELECT COUNT(*)" + " AS a" * 2_000 + " FROM visits",
    "inlining": "SELECT "
    + "+".join(["n"] * 90)
    + " AS x FROM (SELECT "
    + "+".join(["COUNT(*)"] * 90)
    + " AS n FROM visits)",
}


@pytest.mark.ci
@every("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    """RT-112: no text makes the parser fall over."""
    error = refusal(BOMBS[name])
    assert error.reason
    accepted(error.hint)


def test_long_lists_and_chains_of_a_bearable_length_are_accepted() -> None:
    parse("SELECT COUNT(*) FROM visits WHERE age IN (" + "1, " * 2_000 + "1)", SCHEMAS)
    parse("SELECT COUNT(*) FROM visits WHERE " + "smoker AND " * 60 + "smoker", SCHEMAS)
    parse("SELECT COUNT(*) FROM visits WHERE " + "(" * 30 + "smoker" + ")" * 30, SCHEMAS)


def test_positions_in_the_fluent_front_count_from_the_text_itself() -> None:
    with pytest.raises(UnsupportedQuery) as caught:
        _ = TableFrame(schema=VISITS).where("age > 3 AND agee = 1").agg(n=count()).question
    assert caught.value.position == (1, 13)
    with pytest.raises(UnsupportedQuery) as caught:
        _ = TableFrame(schema=VISITS).where("smoker").where("agee = 1").agg(n=count()).question
    assert caught.value.position == (1, 1)
