"""One refused question for each hint of the SQL gate, and the hint's own words applied to it where they name SQL.

A new hint needs a line here: `python -m pytest tests/hints` says which hint has none. The questions of
`tests/sql/test_refused.py` are applied as well.
"""
# ruff: noqa: E501 - one question is one line

from __future__ import annotations

from tests.hints.hint_case import Case

OTHER = "It names what can be asked, which is not what was asked."
WORD = "It leaves out or replaces a part that has no meaning here."
ORDER = "NULL sorts last wherever a question sorts."
WHOLE = "Plain SQL divides and writes other numbers than whole ones in its own way."
ONE = "SELECT COUNT(*) AS n FROM visits"
_BOTH = "visits AS v JOIN more AS m ON v.patient_id = m.patient_id"
_FOLD = "SELECT patient_id, {} AS x FROM visits GROUP BY patient_id"
_WINDOW = "SELECT {} FROM (SELECT patient_id, {} AS x FROM visits WHERE seen IS NOT NULL) AS t"  # no ties
_GROUPS = "(SELECT CASE WHEN smoker THEN 'yes' ELSE 'no' END AS ward, COUNT(*) AS n FROM visits GROUP BY 1)"
_MANY = " UNION ALL ".join(["SELECT COUNT(*) AS n FROM visits"] * 70)


def _where(refused: str, applied: str | None = None, changed: str = "") -> Case:
    return Case(f"{ONE} WHERE {refused}", None if applied is None else f"{ONE} WHERE {applied}", changed)


def _over(window: str, applied: str | None = None, changed: str = "", value: str = "COUNT(x) AS n") -> Case:
    return Case(_WINDOW.format(value, window), None if applied is None else _WINDOW.format(value, applied), changed)


def _by(window: str, applied: str | None = None, changed: str = "") -> Case:
    """A window over released groups."""
    written = [f"SELECT index, COUNT(*) AS n, {one} AS x FROM visits GROUP BY index" for one in (window, applied or "")]
    return Case(written[0], None if applied is None else written[1], changed)


CLIPPED = [
    Case("SELECT AVG(LENGTH(note)) AS m FROM visits"),
    Case("SELECT SUM(LENGTH(note)) FILTER (WHERE smoker) AS m, AVG(LENGTH(ward)) AS w FROM visits"),
    Case("SELECT ward, MAX(LENGTH(note)) AS m, COUNT(*) AS n FROM visits WHERE age > 20 GROUP BY ward"),
    Case("SELECT MEDIAN(v.visits_before * LENGTH(v.note)) AS m FROM visits AS v"),
    Case("SELECT COVAR_POP(age, LENGTH(ward)) AS c FROM visits"),
    Case("SELECT AVG(x) AS m FROM (SELECT patient_id, SUM(LENGTH(note)) AS x FROM visits GROUP BY patient_id) AS t"),
    Case("SELECT AVG(x) AS m FROM (SELECT SUM(LENGTH(note)) OVER (PARTITION BY patient_id) AS x FROM visits) AS t"),
    Case(
        "SELECT AVG(LENGTH(note) + ?) AS m FROM visits AS v",
        "SELECT AVG(CASE WHEN LENGTH(note) + 1 IS NOT NULL THEN GREATEST(LEAST(LENGTH(note) + 1, 100), 0) END) AS m "
        "FROM visits AS v",
        options={"parameters": [1]},
    ),
    Case(
        "SELECT AVG(x) AS m FROM (SELECT patient_id, SUM(LENGTH(note) + ?) AS x FROM visits GROUP BY patient_id) AS t",
        "SELECT AVG(x) AS m FROM (SELECT patient_id, SUM(CASE WHEN LENGTH(note) + 1 IS NOT NULL THEN "
        "GREATEST(LEAST(LENGTH(note) + 1, 100), 0) END) AS x FROM visits GROUP BY patient_id) AS t",
        options={"parameters": [1]},
    ),
    Case("SELECT MEAN(age) AS m, COUNT(*) AS n FROM visits WHERE smoker"),
    Case("SELECT AVG(agee) AS m, COUNT(*) AS n FROM visits"),
    Case("SELECT AVG(v.agee) AS m FROM visits AS v"),
    Case("SELECT AVG(other.age) AS m, COUNT(*) AS n FROM visits"),
]
"""What is proposed asks the same: a clipped argument, another spelling, the name that was meant."""

WORDS = [
    Case(f"{ONE} FOR SHARE", ONE, WORD),
    Case(
        "SELECT TOP 3 ward, COUNT(*) AS n FROM visits GROUP BY ward",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT 3",
    ),
    Case(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n NULLS FIRST",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n",
        ORDER,
    ),
    Case(
        "WITH RECURSIVE t AS (SELECT 1) SELECT COUNT(*) AS n FROM t",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1",
        OTHER,
    ),
    _where("age = ANY (VALUES (1), (2))", "age IN (1, 2)"),
    _where("age = SOME (VALUES (1), (2))", "age IN (1, 2)"),
    _where("age BETWEEN SYMMETRIC 65 AND 18", "age BETWEEN 18 AND 65"),
    _where("INITCAP(ward) = 'Bones'", "UPPER(LEFT(ward, 1)) || LOWER(SUBSTR(ward, 2)) = 'Bones'"),
    _where("DATEADD('day', 7, day) > DATE '2026-01-01'", "day + INTERVAL 7 DAY > DATE '2026-01-01'"),
    _where("note RLIKE 'b'", "regexp_matches(note, 'b')"),
    _where("REVERSE(note) = 'bA'", "note LIKE 'Ab'"),
    _where("REGEXP_REPLACE(note, 'A', 'B') = 'Bb'"),
    _where("ATANH(age / 200) > 0", "LN((1 + age / 200) / (1 - age / 200)) / 2 > 0"),
    _where("FOO(age) = 1", "ROUND(age) = 1", OTHER),
    Case("SELECT ROW_NUMBER(age) AS n FROM visits", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1", OTHER),
    Case("SELECT COUNT(*) AS n FROM generate_series(1, 10)"),
    Case("SELECT COUNT(ROW(age, ward)) AS n FROM visits"),
    Case("SELECT COUNT(*) AS n FROM (SELECT AVG(COLUMNS('a.*')) AS v FROM visits)"),
    _where("age > ALL (SELECT 1)"),
    Case("SELECT COUNT(*) OFFSET 2 FROM visits"),
    _where("HISTOGRAM(age) > 3"),
    _where(f"age IN ({', '.join(map(str, range(10_000)))})"),
    Case("SELECT COALESCE(SELECT 1) AS n FROM visits"),
    Case(
        "SELECT COUNT(*) AS n FROM visits AS a JOIN LATERAL (SELECT DISTINCT b.age FROM more AS b WHERE b.patient_id = a.patient_id) AS c ON TRUE"
    ),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT ward FROM visits OFFSET 2) AS s",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n LIMIT 5 OFFSET 0",
        OTHER,
    ),
    Case(
        "SELECT w FROM (SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY ward) AS s WHERE EXISTS (SELECT 1 FROM more)"
    ),
    Case(
        "SELECT COUNT(*) AS n FROM visits AS a WHERE EXISTS (SELECT 1 FROM more AS b WHERE b.patient_id = a.patient_id "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY b.patient_id ORDER BY b.seen) = 1)",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 10",
        OTHER,
    ),
]
"""Words that the first gate refuses."""

VALUES = [
    _where("COUNT(*) > 3", "age > 3", OTHER),
    Case(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING SUM(COUNT(*)) > 3",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 3",
        OTHER,
    ),
    _where("ward = NULL", "ward IS NULL", "Nothing equals NULL: plain SQL keeps no row."),
    Case("SELECT NULL AS x, COUNT(*) AS n FROM visits", ONE, WORD),
    _where("CASE WHEN smoker THEN NULL END IS NULL", "CASE WHEN smoker THEN CAST(NULL AS INT) END IS NULL"),
    _where("day > '2026-1-5 x'", "day > '2026-01-05'"),
    _where("seen > '2026-01-05 25:00'", "seen > '2026-01-05 23:00:00'"),
    _where("smoker AND age", "smoker AND age >= 10", OTHER),
    _where("smoker OR age", "smoker OR age >= 10", OTHER),
    _where("NOT age", "NOT age >= 10", OTHER),
    _where("charge IN (1.5)", "charge BETWEEN 1.5 AND 1.5"),
    _where("charge % 2 = 0", "CAST(charge AS INT) % 2 = 0", WHOLE),
    _where("charge // 2 = 10", "CAST(charge AS INT) // 2 = 10", WHOLE),
    _where("CAST(charge AS TEXT) = '12'", "CAST(CAST(charge AS INT) AS TEXT) = '12'", WHOLE),
    _where("CAST(age AS DATE) = day", "CAST(seen AS DATE) = day", OTHER),
    _where("HOUR(day) = 3", "HOUR(seen) = 3", OTHER),
    _where("MINUTE(day) = 3", "MINUTE(seen) = 3", OTHER),
    _where("SECOND(day) = 3", "SECOND(seen) = 3", OTHER),
    _where("age + '3' > 5", "age + CAST('3' AS INT) > 5"),
    _where("day = age", "CAST(seen AS DATE) = day", OTHER),
    Case("SELECT COUNT(*) AS n_low FROM visits", "SELECT COUNT(*) AS low_n FROM visits"),
    Case("SELECT COUNT(*) AS n, SUM(age) AS n FROM visits", "SELECT COUNT(*) AS n, SUM(age) AS m FROM visits"),
    Case(
        "SELECT COUNT(DISTINCT patient_id) FILTER (WHERE age > 30) AS n FROM visits",
        "SELECT COUNT(DISTINCT patient_id) AS n FROM visits WHERE age > 30",
    ),
    _where("CAST(age AS SMALLINT) = 3", "CAST(age AS INT) = 3"),
    _where("EXTRACT(YEAR FROM (seen - day)) = 1", "EXTRACT(YEAR FROM AGE(seen, day)) = 1"),
    _where("EXTRACT(century FROM day) = 21", "EXTRACT(YEAR FROM day) // 100 = 20"),
    _where("seen + INTERVAL 3 HOUR > seen", "day + INTERVAL 7 DAY > day", OTHER),
    _where("day + INTERVAL (1.5) DAY > day", "day + INTERVAL 7 DAY > day", OTHER),
    _where("day + INTERVAL '1.5' DAY > day", "day + INTERVAL 7 DAY > day", OTHER),
    _where("DATE_ADD(day, 7) > DATE '2026-01-01'", "DATE_ADD(day, INTERVAL 7 DAY) > DATE '2026-01-01'"),
    _where("seen - day > 3", "EPOCH(seen - day) > 3"),
    _where("AGE(seen, day) = 1", "EXTRACT(YEAR FROM AGE(seen, day)) = 1"),
    _where("note LIKE 'A!!' ESCAPE '!!'", "note LIKE 'A!!' ESCAPE '!'", OTHER),
    _where("LEFT(note, -1) = 'A'", "SUBSTRING(note, 1, LENGTH(note) - 1) = 'A'"),
    _where("TRIM(BOTH note FROM ward) = 'Bones'", "TRIM(ward, '-') = 'Bones'", OTHER),
    _where("LPAD(ward, age, '0') = '1'", "LPAD(CAST(age AS TEXT), 2, '0') = '01'", OTHER),
    _where("age IS 3"),
    _where("CASE " + "".join(f"WHEN age = {i} THEN {i} " for i in range(41)) + "END = 3"),
    _where("WIDTH_BUCKET(age, 100, 0, 10) = 1"),
    _where("WIDTH_BUCKET(age, index, 100, 10) = 1"),
    _where("WIDTH_BUCKET(age, 0, 100, 0) = 1"),
    Case(
        "SELECT GROUPING(ward) AS g, ward, COUNT(*) AS n FROM visits GROUP BY ward",
        "SELECT GROUPING(ward) AS g, ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)",
        OTHER,
    ),
    Case(
        "SELECT ARG_MAX(ward, age) AS w FROM visits",
        f"SELECT COUNT(x) AS n FROM ({_FOLD.format('ARG_MAX(ward, age)')}) AS t",
        OTHER,
    ),
    Case(
        "SELECT ROW_NUMBER() OVER (ORDER BY day) AS p FROM visits",
        "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY seen) AS p FROM visits) AS t",
        OTHER,
    ),
    Case(
        "SELECT DISTINCT ON (ward) ward FROM visits",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (patient_id) patient_id, ward FROM visits ORDER BY patient_id, day) AS t",
        OTHER,
    ),
    Case("SELECT MODE() AS m FROM visits"),
    Case(
        "SELECT AVG(CAST(age AS DECIMAL(60, 2))) AS m FROM visits",
        "SELECT AVG(CAST(age AS DECIMAL(38, 2))) AS m FROM visits",
    ),
    Case("SELECT MODE(DISTINCT age) AS m FROM visits", "SELECT MODE(age) AS m FROM visits", OTHER),
    Case("SELECT MODE(NULL) AS m FROM visits"),
    Case("SELECT MODE(weight) AS m FROM visits"),
    Case("SELECT MODE(patient_id) AS m FROM visits"),
    Case(f"SELECT COUNT(x) AS n FROM ({_FOLD.format('ARG_MAX(ward, NULL)')}) AS t"),
    Case(
        f"SELECT COUNT(x) AS n FROM ({_FOLD.format('LAST(ward ORDER BY day DESC NULLS FIRST)')}) AS t",
        f"SELECT COUNT(x) AS n FROM ({_FOLD.format('FIRST(ward ORDER BY day)')}) AS t",
        ORDER,
    ),
    Case("SELECT COUNT(*) AS n FROM visits WHERE a.b.visits.age > 3"),
    _where("nothing > 3"),
    Case("SELECT COUNT(*) AS n FROM visits AS v JOIN more AS m ON v.patient_id = m.patient_id WHERE age > 3"),
    Case("SELECT COUNT(*) AS n, LIST_VALUE(1) FROM visits"),
    _where("regexp_extract(note, '(?i)(a)', 1) = 'a'", None),
    _where("regexp_extract(note, '(a)', 2) = 'a'"),
    _where("regexp_matches(note, 'a', 'g')"),
    _where("CAST(age AS DATE) = DATE '2026-01-01'", "CAST(seen AS DATE) = DATE '2026-01-01'", OTHER),
    Case("SELECT MODE(weight * 2) AS m FROM visits WHERE age > 30"),
    Case("SELECT ward, MODE(note || ward) AS m, COUNT(*) AS n FROM visits GROUP BY ward"),
    Case("SELECT age FROM visits AS v JOIN more AS m ON v.patient_id = m.patient_id"),
    Case("SELECT v.age, COUNT(*) AS n FROM visits AS v JOIN more AS m ON v.patient_id = m.patient_id"),
    Case("SELECT v.charge, COUNT(*) AS n FROM visits AS v JOIN more AS m ON v.patient_id = m.patient_id"),
    Case(f"{ONE} WHERE " + "(" * 90 + "age" + ")" * 90 + " > 1"),
    Case(f"{ONE} WHERE age IN (" + "1," * 6_000 + "1)"),
    Case(f"{ONE} WHERE " + "smoker AND " * 400 + "smoker", f"{ONE} WHERE smoker IN (TRUE)"),
    Case(
        "SELECT "
        + " + ".join(["n"] * 90)
        + " AS x FROM (SELECT "
        + " + ".join(["COUNT(*)"] * 90)
        + " AS n FROM visits) AS t"
    ),
    Case("SELECT COUNT(*) AS n FROM visits WHERE 'a' 'b' = ward"),
]
"""Functions, operators and literals."""

ROWS = [
    Case(
        f"SELECT COUNT(x) AS n FROM ({_FOLD.format('FIRST(ward)')}) AS t",
        f"SELECT COUNT(x) AS n FROM ({_FOLD.format('FIRST(ward ORDER BY day)')}) AS t",
        OTHER,
    ),
    Case(
        f"SELECT AVG(x) AS n FROM ({_FOLD.format('STDDEV(age)')}) AS t",
        f"SELECT AVG(x) AS n FROM ({_FOLD.format('AVG(age)')}) AS t",
        OTHER,
    ),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT patient_id, age AS a, ward AS a FROM visits) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT patient_id, age AS a, ward AS b FROM visits) AS t",
    ),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (patient_id) patient_id, COUNT(*) AS c FROM visits GROUP BY patient_id) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (patient_id) patient_id FROM visits ORDER BY seen) AS t",
    ),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward FROM visits) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT patient_id, ward FROM visits) AS t",
        OTHER,
    ),
    Case("SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (ward) ward, patient_id FROM visits ORDER BY ward, day) AS t"),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (patient_id) patient_id, ward FROM visits) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (patient_id) patient_id, ward FROM visits ORDER BY day) AS t",
    ),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION SELECT patient_id FROM more) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM more) AS t",
        "UNION ALL keeps equal rows, as the hint says.",
    ),
    Case("SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION ALL SELECT clerk FROM staff) AS t"),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id, age FROM more) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM more) AS t",
    ),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT ward FROM visits EXCEPT SELECT ward FROM more) AS t",
        "SELECT COUNT(*) AS n FROM visits WHERE NOT EXISTS (SELECT 1 FROM more WHERE more.patient_id = visits.patient_id AND more.ward = visits.ward)",
        OTHER,
    ),
    Case(f"SELECT COUNT(*) AS n FROM {_GROUPS} AS t JOIN visits AS v ON t.ward = v.ward"),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT patient_id, ward, COUNT(*) AS c FROM visits GROUP BY patient_id) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT patient_id, ward, COUNT(*) AS c FROM visits GROUP BY patient_id, ward) AS t",
    ),
    _over("ROW_NUMBER() OVER (PARTITION BY patient_id)", "ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY seen)"),
    _over(
        "LAST_VALUE(age) OVER (PARTITION BY patient_id ORDER BY seen)",
        "LAST_VALUE(age) OVER (PARTITION BY patient_id ORDER BY seen ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "Plain SQL takes the value of the row itself, as the refusal says.",
    ),
    _over(
        "ROW_NUMBER() OVER (PARTITION BY ward ORDER BY day)",
        "ROW_NUMBER() OVER (PARTITION BY patient_id, ward ORDER BY day)",
        OTHER,
    ),
    _over(
        "SUM(age) OVER (PARTITION BY patient_id ORDER BY seen ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "SUM(age) OVER (PARTITION BY patient_id ORDER BY seen ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        OTHER,
    ),
    _over(
        "NTILE(4) OVER (PARTITION BY patient_id ORDER BY seen)",
        "ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY seen)",
        OTHER,
    ),
    _over("LAG(age, index) OVER (PARTITION BY patient_id ORDER BY seen)"),
    _over(
        "STDDEV(age) OVER (PARTITION BY patient_id ORDER BY seen)",
        "ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY seen)",
        OTHER,
    ),
    Case("SELECT COUNT(x) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY ward ORDER BY age) AS x FROM single) AS t"),
    Case("SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward FROM single) AS t"),
    Case(
        "SELECT COUNT(*) AS n FROM (SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward) AS t JOIN more AS m ON t.ward = m.ward"
    ),
    Case(
        "SELECT COUNT(*) AS n FROM visits AS v JOIN (SELECT ward, COUNT(*) AS c FROM more GROUP BY ward) AS t ON t.ward = v.ward"
    ),
    _over("LAG(NULL) OVER (PARTITION BY patient_id ORDER BY seen)"),
    _over(
        "ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY seen NULLS FIRST)",
        "ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY seen)",
        ORDER,
    ),
]
"""SELECTs of one person's rows, and their windows."""

JOINS = [
    Case("SELECT COUNT(*) AS n FROM visits AS v, more AS m", f"SELECT COUNT(*) AS n FROM {_BOTH}", OTHER),
    Case("SELECT COUNT(*) AS n FROM visits AS v CROSS JOIN more AS m", f"SELECT COUNT(*) AS n FROM {_BOTH}", OTHER),
    Case(
        "SELECT COUNT(*) AS n FROM visits AS v JOIN more AS m ON v.age > m.age",
        f"SELECT COUNT(*) AS n FROM {_BOTH}",
        OTHER,
    ),
    Case("SELECT COUNT(*) AS n FROM visits AS v JOIN more AS m", f"SELECT COUNT(*) AS n FROM {_BOTH}", OTHER),
    Case(
        "SELECT COUNT(*) AS n FROM visits AS v JOIN more AS v ON v.patient_id = v.patient_id",
        f"SELECT COUNT(*) AS n FROM {_BOTH}",
    ),
    Case(
        "SELECT COUNT(*) AS n FROM visits AS v JOIN (SELECT patient_id FROM more) ON v.patient_id = v.patient_id",
        "SELECT COUNT(*) AS n FROM visits AS v JOIN (SELECT patient_id FROM more) AS m ON v.patient_id = m.patient_id",
        OTHER,
    ),
    Case(
        "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN more AS m ON v.patient_id = m.patient_id AND m.age > 50",
        "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN (SELECT * FROM more WHERE age > 50) AS m ON v.patient_id = m.patient_id",
    ),
    Case(
        f"{ONE} AS v JOIN more AS m ON v.patient_id = m.ward",
        f"{ONE} AS v JOIN more AS m ON v.patient_id = m.patient_id AND CAST(v.age AS TEXT) = m.ward",
        OTHER,
    ),
    Case(f"{ONE} AS v JOIN staff AS s ON v.ward = s.ward"),
    Case(
        f"{ONE} AS v JOIN more AS m ON v.ward = m.ward",
        f"{ONE} AS v JOIN more AS m ON v.ward = m.ward AND v.patient_id = m.patient_id",
        OTHER,
    ),
    Case(
        "SELECT COUNT(*) AS n FROM wards AS w LEFT JOIN visits AS v ON w.ward = v.ward",
        "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN wards AS w ON w.ward = v.ward",
        "Which rows are kept changes with the table that comes first.",
    ),
    _where("patient_id IN (SELECT patient_id, age FROM more)", "patient_id IN (SELECT patient_id FROM more)"),
    _where("EXISTS (SELECT 1)"),
    _where(
        "EXISTS (SELECT COUNT(*) FROM more WHERE more.patient_id = visits.patient_id)",
        "EXISTS (SELECT 1 FROM more WHERE more.patient_id = visits.patient_id)",
        "An aggregate always gives a row, as the refusal says.",
    ),
    _where(
        "EXISTS (SELECT 1 FROM more WHERE more.age > 3)",
        "EXISTS (SELECT 1 FROM more WHERE more.patient_id = visits.patient_id AND more.age > 3)",
        OTHER,
    ),
    Case("WITH a AS (SELECT patient_id FROM visits) SELECT COUNT(*) AS n FROM visits", ONE),
    Case(
        "SELECT COUNT(*) AS n FROM visits AS v "
        + " ".join(f"JOIN more AS m{i} ON v.patient_id = m{i}.patient_id" for i in range(70))
    ),
    _where(
        "age = (SELECT age, ward FROM more WHERE more.patient_id = visits.patient_id)",
        "age = (SELECT MAX(age) FROM more WHERE more.patient_id = visits.patient_id)",
        OTHER,
    ),
    _where(
        "age = (SELECT age FROM more WHERE more.patient_id = visits.patient_id)",
        "age = (SELECT MAX(age) FROM more WHERE more.patient_id = visits.patient_id)",
        OTHER,
    ),
    _where(
        "age = (SELECT MAX(w.floor) FROM wards AS w WHERE w.floor > visits.age)",
        "EXISTS (SELECT 1 FROM wards AS w WHERE w.ward = visits.ward AND w.floor > 1)",
        OTHER,
    ),
    Case(
        "SELECT COUNT(l.x) AS n FROM visits AS v JOIN LATERAL (SELECT m.age AS x FROM more AS m WHERE m.patient_id = v.patient_id LIMIT 1) AS l ON TRUE",
        "SELECT COUNT(l.x) AS n FROM visits AS v JOIN LATERAL (SELECT m.age AS x FROM more AS m WHERE m.patient_id = v.patient_id ORDER BY m.age LIMIT 1) AS l ON TRUE",
        OTHER,
    ),
    Case(
        "SELECT COUNT(l.x) AS n FROM visits AS v FULL JOIN LATERAL (SELECT MAX(m.age) AS x FROM more AS m WHERE m.patient_id = v.patient_id) AS l ON TRUE",
        "SELECT COUNT(l.x) AS n FROM visits AS v JOIN LATERAL (SELECT MAX(m.age) AS x FROM more AS m WHERE m.patient_id = v.patient_id) AS l ON TRUE",
    ),
    Case(
        "SELECT COUNT(l.x) AS n FROM visits AS v LEFT JOIN LATERAL (SELECT MAX(m.age) AS x FROM more AS m WHERE m.patient_id = v.patient_id) AS l ON l.x > 3",
        "SELECT COUNT(l.x) AS n FROM visits AS v LEFT JOIN LATERAL (SELECT MAX(m.age) AS x FROM more AS m WHERE m.patient_id = v.patient_id AND m.age > 3) AS l ON TRUE",
    ),
    Case("SELECT COUNT(*) AS n FROM visits AS v JOIN LATERAL (SELECT 1 AS x) AS l ON TRUE"),
    _where("age > (SELECT m.age + m.index FROM more AS m WHERE m.patient_id = visits.patient_id ORDER BY m.day)"),
    _where(
        "age > (SELECT ROW_NUMBER() OVER (PARTITION BY m.patient_id ORDER BY m.day) FROM more AS m WHERE m.patient_id = visits.patient_id ORDER BY m.day LIMIT 1)",
        "patient_id IN (SELECT patient_id FROM (SELECT patient_id, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY seen) AS p FROM more) AS t WHERE p = 1)",
        OTHER,
    ),
    _where("age > (SELECT MAX(m.age) FROM more AS m WHERE m.patient_id = visits.patient_id LIMIT 1)"),
    _where(
        "age > (SELECT MAX(x) FROM (SELECT m.age AS x FROM more AS m WHERE m.patient_id = visits.patient_id LIMIT 1) AS t)",
        "age > (SELECT m.age FROM more AS m WHERE m.patient_id = visits.patient_id ORDER BY m.age LIMIT 1)",
        OTHER,
    ),
    _where(
        "age > (SELECT MAX(m.age) + m.index FROM more AS m WHERE m.patient_id = visits.patient_id)",
        "age > (SELECT MAX(m.age) + MAX(m.index) FROM more AS m WHERE m.patient_id = visits.patient_id)",
        OTHER,
    ),
    Case(
        "SELECT COUNT(l.x) AS n FROM visits AS v RIGHT JOIN LATERAL (SELECT MAX(m.age) AS x FROM more AS m WHERE m.patient_id = v.patient_id) AS l ON TRUE",
        "SELECT COUNT(l.x) AS n FROM visits AS v JOIN LATERAL (SELECT MAX(m.age) AS x FROM more AS m WHERE m.patient_id = v.patient_id) AS l ON TRUE",
    ),
    Case(
        'SELECT COUNT(*) AS n FROM visits AS "l.x" JOIN LATERAL (SELECT MAX(m.age) AS x FROM more AS m WHERE m.patient_id = "l.x".patient_id) AS l ON TRUE',
        "SELECT COUNT(*) AS n FROM visits AS v JOIN LATERAL (SELECT MAX(m.age) AS x FROM more AS m WHERE m.patient_id = v.patient_id) AS l ON TRUE",
    ),
    Case("SELECT COUNT(*) AS n FROM single AS s JOIN wards AS w ON s.age = w.floor + 1"),
    Case("SELECT COUNT(*) AS n FROM single AS s JOIN wards AS w ON s.ward = w.ward"),
    Case(
        "SELECT COUNT(*) AS n FROM single AS s JOIN (SELECT ward, MAX(floor) AS f FROM wards GROUP BY ward) AS w ON s.age = w.f"
    ),
    _where("age > (SELECT MAX(m.age + visits.age) FROM more AS m WHERE m.patient_id = visits.patient_id)"),
    _where(
        "patient_id IN (SELECT m.patient_id FROM more AS m WHERE m.age > 3 GROUP BY m.patient_id, m.age HAVING COUNT(*) = 1) AND age IN (SELECT age, ward FROM more AS m WHERE m.patient_id = visits.patient_id)"
    ),
]
"""Several tables, and questions inside the question."""

GROUPS = [
    Case(
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS a USING (ward)",
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b USING (ward)",
    ),
    Case(
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a FULL JOIN {_GROUPS} AS b USING (ward)",
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b USING (ward)",
        OTHER,
    ),
    Case(
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b ON a.n = b.n",
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b USING (ward)",
        OTHER,
    ),
    Case(
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b ON a.ward > b.ward",
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b USING (ward)",
        OTHER,
    ),
    Case(
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b",
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b USING (ward)",
        OTHER,
    ),
    Case(f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b USING (wards)"),
    Case(f"SELECT n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b ON a.ward = b.ward"),
    Case(f"SELECT m FROM {_GROUPS} AS a"),
    Case(f"SELECT x.n FROM {_GROUPS} AS a"),
    Case(f"SELECT STDDEV(n) AS s FROM {_GROUPS} AS a", f"SELECT AVG(n) AS s FROM {_GROUPS} AS a", OTHER),
    Case(f"SELECT SUM(ward) AS s FROM {_GROUPS} AS a", f"SELECT COUNT(ward) AS s FROM {_GROUPS} AS a", OTHER),
    Case(
        f"SELECT ward, n FROM {_GROUPS} AS a WHERE RANK() OVER (ORDER BY n) < 2",
        f"SELECT ward, n FROM (SELECT ward, n, RANK() OVER (ORDER BY n) AS r FROM {_GROUPS} AS a) AS b WHERE r < 2",
    ),
    Case(
        f"SELECT n, COUNT(*) AS c FROM {_GROUPS} AS a GROUP BY n",
        f"SELECT ward, COUNT(*) AS c FROM {_GROUPS} AS a WHERE n > 3 GROUP BY ward",
        OTHER,
    ),
    Case(f"SELECT ward, SUM(n) AS c FROM {_GROUPS} AS a"),
    _by("ROW_NUMBER() OVER ()", "ROW_NUMBER() OVER (ORDER BY index)", OTHER),
    _by(
        "SUM(COUNT(*)) OVER (ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "SUM(COUNT(*)) OVER (ORDER BY index ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        OTHER,
    ),
    _by("RANK() OVER (PARTITION BY COUNT(*) ORDER BY index)", "RANK() OVER (ORDER BY index)", OTHER),
    _by(
        "SUM(COUNT(*)) OVER (ORDER BY index RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "SUM(COUNT(*)) OVER (ORDER BY index ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        OTHER,
    ),
    _by("SUM(COUNT(*)) OVER (ORDER BY index ROWS BETWEEN 99999999 PRECEDING AND CURRENT ROW)"),
    _by("STDDEV(COUNT(*)) OVER (ORDER BY index)", "AVG(COUNT(*)) OVER (ORDER BY index)", OTHER),
    _by("SUM(CAST(index AS TEXT)) OVER (ORDER BY index)", "COUNT(index) OVER (ORDER BY index)", OTHER),
    _by("LAG(COUNT(*), 99999999) OVER (ORDER BY index)"),
    _by("LAG(NULL) OVER (ORDER BY index)"),
    _by("RANK() OVER (ORDER BY COUNT(*) NULLS FIRST)", "RANK() OVER (ORDER BY COUNT(*))", ORDER),
    Case("SELECT COUNT(*) AS n FROM visits GROUP BY GROUPING SETS (())"),
    Case(
        "SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM more GROUP BY ward) AS m FROM visits",
        "SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM more) AS m FROM visits",
        OTHER,
    ),
    Case("SELECT COUNT(*) AS n, (SELECT ward, COUNT(*) FROM more) AS m FROM visits"),
    Case(
        f"SELECT t.ward, t.n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n LIMIT 2) AS t JOIN {_GROUPS} AS u USING (ward)"
    ),
    Case(f"SELECT t.ward, t.n FROM {_GROUPS} AS t JOIN wards AS w ON t.ward = w.ward"),
    Case(
        f"SELECT COUNT(*) AS n, {', '.join(f'(SELECT COUNT(*) FROM more WHERE age > {i}) AS a{i}' for i in range(70))} FROM visits"
    ),
    Case(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward UNION SELECT ward, COUNT(*) AS n FROM more GROUP BY ward",
        "SELECT 'v' AS t, ward, COUNT(*) AS n FROM visits GROUP BY ward UNION ALL SELECT 'm', ward, COUNT(*) FROM more GROUP BY ward",
        OTHER,
    ),
    Case(
        "(SELECT 'v' AS t, ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n) UNION ALL SELECT 'm' AS t, ward, COUNT(*) AS n FROM more GROUP BY ward",
        "SELECT 'v' AS t, ward, COUNT(*) AS n FROM visits GROUP BY ward UNION ALL SELECT 'm' AS t, ward, COUNT(*) AS n FROM more GROUP BY ward ORDER BY n",
    ),
    Case("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward UNION ALL SELECT COUNT(*) AS n FROM more"),
    Case("SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) + (SELECT COUNT(*) FROM more) AS n FROM more"),
    Case(_MANY),
    Case(
        "SELECT ward AS x, COUNT(*) AS n FROM visits GROUP BY ward UNION ALL SELECT smoker AS x, COUNT(*) AS n FROM more WHERE smoker GROUP BY smoker",
        "SELECT ward AS x, COUNT(*) AS n FROM visits GROUP BY ward UNION ALL SELECT CAST(smoker AS TEXT) AS x, COUNT(*) AS n FROM more WHERE smoker GROUP BY 1",
    ),
    Case(
        "SELECT SUM(n) AS s FROM (SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) AS n FROM more) AS t",
        "SELECT SUM(n) AS s FROM (SELECT COUNT(*) AS n FROM visits) AS t",
        OTHER,
    ),
    Case("SELECT COUNT(*) AS n FROM visits UNION ALL (SELECT COUNT(*) AS n FROM more) AS t"),
    Case("PIVOT visits ON ward IN ('Bones') USING COUNT(*) GROUP BY age PIVOT"),
    Case(
        "SELECT * FROM visits PIVOT (COUNT(*) FOR ward IN ('Bones') GROUP BY smoker) PIVOT (COUNT(*) FOR age IN (1) GROUP BY smoker)"
    ),
    Case(
        "PIVOT visits ON ward IN ('Bones') USING MAX(age) + 1, age GROUP BY smoker",
        "PIVOT visits ON ward IN ('Bones') USING COUNT(*) GROUP BY smoker",
        OTHER,
    ),
    Case(
        "PIVOT visits ON age IN (" + ", ".join(map(str, range(2_000))) + ") USING COUNT(*) GROUP BY smoker",
        "PIVOT visits ON age IN (30, 40) USING COUNT(*) GROUP BY smoker",
        OTHER,
    ),
    Case(
        "PIVOT visits ON ward IN ('Bones') USING COUNT(*) GROUP BY age // 10",
        "PIVOT (SELECT patient_id, ward, age // 10 AS tens FROM visits) ON ward IN ('Bones') USING COUNT(*) GROUP BY tens",
    ),
    Case("PIVOT visits ON ward IN () USING COUNT(*) GROUP BY smoker"),
    Case(
        "PIVOT visits ON ward IN (age) USING COUNT(*) GROUP BY smoker",
        "PIVOT visits ON ward IN ('Bones', 'Eyes') USING COUNT(*) GROUP BY smoker",
        OTHER,
    ),
    Case(
        "PIVOT visits ON ward USING COUNT(*) GROUP BY smoker",
        "PIVOT visits ON ward IN ('Bones', 'Eyes', 'Heart') USING COUNT(*) GROUP BY smoker",
    ),
    Case(
        "PIVOT visits ON ward IN ('Bones') USING COUNT(*)",
        "PIVOT visits ON ward IN ('Bones') USING COUNT(*) GROUP BY smoker",
        OTHER,
    ),
    Case("SELECT HISTOGRAM(age) AS high FROM visits", "SELECT HISTOGRAM(age) AS n FROM visits", OTHER),
    Case("SELECT HISTOGRAM(LENGTH(note)) AS n FROM visits"),
    Case("SELECT HISTOGRAM(LENGTH(v.note)) AS n FROM visits AS v"),
    Case("SELECT DISTINCT ward, COUNT(*) AS n FROM visits GROUP BY ward, age"),
    Case("SELECT HISTOGRAM(" + " + ".join(["age"] * 60) + ", 400) AS n FROM visits"),
    Case(
        "PIVOT visits ON ward IN ('Bones') USING age GROUP BY smoker",
        "PIVOT visits ON ward IN ('Bones') USING COUNT(*) GROUP BY smoker",
        OTHER,
    ),
    Case(
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a CROSS JOIN {_GROUPS} AS b",
        f"SELECT a.ward, a.n FROM {_GROUPS} AS a JOIN {_GROUPS} AS b USING (ward)",
        OTHER,
    ),
    Case("SELECT COUNT(*) AS n FROM visits UNION ALL SELECT 1 + (SELECT COUNT(*) FROM more) AS n FROM more"),
    Case(
        "SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM more HAVING COUNT(*) > 3) AS m FROM visits",
        "SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM more) AS m FROM visits",
    ),
    Case("SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM more LIMIT 1) AS m FROM visits"),
    Case("SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM more UNION ALL SELECT COUNT(*) FROM more) AS m FROM visits"),
    Case(_MANY.replace("visits", "visits", 1) + " UNION ALL SELECT COUNT(*) AS n FROM visits"),
    Case("SELECT ward, COUNT(*) AS n FROM visits GROUP BY CUBE (ward) WITH TOTALS"),
    _by(
        "SUM(COUNT(*)) OVER (ORDER BY index GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "SUM(COUNT(*)) OVER (ORDER BY index ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        OTHER,
    ),
]
"""Released groups, their windows, unions and pivots."""

PATTERNS = [
    _where(f"note ~ '{pattern}'", f"note ~ '{applied}'", OTHER)
    for pattern, applied in {
        "a)": r"a\)",
        "(a": r"\(a",
        r"\bé": "(^| )é",
        r"a\b\b+": r"a\b",
        "a**": "a*",
        "a{x}": r"a\{x\}",
        "a{5,2}": "a+",
        "a{2000}": "a+",
        "*a": r"\*a",
        "(?=a)": "(?:a)",
        "(" * 60 + "a" + ")" * 60: "(a)",
        r"(a)\1": r"\d",
        "[z-a]": r"[z\-a]",
        "[a": r"\[a",
        "[[:abc:]]": "[[:alpha:]]",
        "(a{200}){200}": "a+",
        r"\m b": r"\b b",
        r"[^\s\S]": "a",
    }.items()
] + [
    _where("note LIKE 'a!b' ESCAPE '!'", "note LIKE 'a!!b' ESCAPE '!'", OTHER),
    _where("note SIMILAR TO 'A.'", "note SIMILAR TO 'A[.]'", OTHER),
]

_BEDS = "visits AS v JOIN beds AS b ON v.ward = b.ward JOIN beds AS c ON v.ward = c.ward"
PLANNED = [
    Case(
        f"SELECT COUNT(*) AS n FROM {_BEDS}",
        f"SELECT COUNT(*) AS n FROM {_BEDS} AND v.age = c.place".replace(
            "b.ward JOIN", "b.ward AND v.index = b.place JOIN"
        ),
        OTHER,
    ),
    Case("SELECT COUNT(*) AS n FROM (SELECT ward FROM visits GROUP BY ward) AS t"),
    Case("SELECT AVG(n) AS m FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t"),
    Case(
        "SELECT COUNT(*) AS n FROM visits AS v "
        + " ".join(f"JOIN more AS m{i} ON v.patient_id = m{i}.patient_id" for i in range(25)),
        "SELECT COUNT(*) AS n FROM visits AS v JOIN (SELECT patient_id, COUNT(*) AS c FROM more GROUP BY patient_id) AS m "
        "ON v.patient_id = m.patient_id",
        OTHER,
    ),
]
"""Refusals of the plan, which has no text any more: what they propose is told in words."""

CASES = [*PLANNED, *CLIPPED, *WORDS, *VALUES, *ROWS, *JOINS, *GROUPS, *PATTERNS]
