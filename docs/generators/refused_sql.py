"""What the SQL reference says about refused questions: an example for each reason; reasons and hints are the gate's."""

from __future__ import annotations

_N = "SELECT COUNT(*) AS n FROM visits"

WORDS = {
    "RIGHT": f"{_N} RIGHT JOIN people USING (patient)",
    "MINUS": f"({_N}) MINUS ({_N})",
    "NTILE": "SELECT NTILE(4) OVER (ORDER BY charge) AS q FROM visits",
    "TABLESAMPLE": f"{_N} TABLESAMPLE 10 PERCENT",
    "UNPIVOT": f"{_N} UNPIVOT (v FOR k IN (age, charge))",
    "TOTALS": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward WITH TOTALS",
    "COPY": "COPY visits TO 'visits.csv'",
    "READ_CSV": "SELECT COUNT(*) AS n FROM read_csv('visits.csv')",
    "CURRENT_TIME": f"{_N} WHERE arrived > CURRENT_TIME",
    "RANDOM": f"{_N} WHERE RANDOM() < 0.1",
    "REGEXP_REPLACE": f"{_N} WHERE REGEXP_REPLACE(note, '1', '2') = 'note 2'",
    "CURRENT_USER": "SELECT CURRENT_USER AS u FROM visits",
    "STRING_AGG": "SELECT STRING_AGG(note, ', ') AS notes FROM visits",
    "KURTOSIS": "SELECT KURTOSIS(charge) AS k FROM visits",
    "UNNEST": "SELECT COUNT(*) AS n FROM UNNEST(visits)",
    "REVERSE": f"{_N} WHERE REVERSE(note) = '1 eton'",
    "COLLATE": f"{_N} WHERE note = 'A' COLLATE NOCASE",
    "GCD": "SELECT AVG(GCD(age, 10)) AS g FROM visits",
    "NULLS FIRST": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n NULLS FIRST",
    "RECURSIVE": "WITH RECURSIVE t AS (SELECT 1) SELECT COUNT(*) AS n FROM t",
    "ANY": f"{_N} WHERE age > ANY (SELECT 1)",
    "SOME": f"{_N} WHERE age > SOME (SELECT 1)",
    "TOP": "SELECT TOP 3 ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "INTO": "SELECT COUNT(*) AS n INTO t FROM visits",
    "GENERATE_SERIES": "SELECT COUNT(*) AS n FROM generate_series(1, 10)",
    "APPROX_COUNT_DISTINCT": "SELECT APPROX_COUNT_DISTINCT(patient) AS n FROM visits",
    "COLUMNS": "SELECT AVG(COLUMNS('a.*')) AS v FROM visits",
    "INITCAP": "SELECT INITCAP(ward) AS w, COUNT(*) AS n FROM visits GROUP BY 1",
    "MEAN": "SELECT MEAN(charge) AS m FROM visits",
    "ROW": "SELECT COUNT(ROW(age, ward)) AS n FROM visits",
    "SYMMETRIC": f"{_N} WHERE age BETWEEN SYMMETRIC 65 AND 18",
    "DATEADD": f"{_N} WHERE DATEADD('day', 7, day) > DATE '2026-06-01'",
}
"""One question for each reason, by the word of it that is refused."""

PARTS = {
    "JOINS": "what the parser calls tables after a comma",
    "EXPRESSIONS": "what it calls further arguments",
    "LOCKS": "what it calls FOR UPDATE",
}
"""Entries of the registry that nobody writes: parts of the parser's tree."""

TYPES = ("SMALLINT", "TINYINT", "BOOLEAN", "TIME", "TIMESTAMPTZ")
"""Names of types that the first gate lets through and a cast does not take."""

SHAPES = (
    "SELECT * FROM visits",
    "SELECT age FROM visits WHERE patient = 7",
    "SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient",
    "SELECT charge, COUNT(*) AS n FROM visits GROUP BY charge",
    "SELECT COUNT(*) AS n FROM visits WHERE COUNT(*) > 3",
    "SELECT AVG(LENGTH(note)) AS v FROM visits",
    "SELECT SUM(note) AS s FROM visits",
    "SELECT COUNT(*) AS n_low FROM visits",
    "SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.age = p.born",
    "SELECT COUNT(*) AS n FROM visits v CROSS JOIN people p",
    "SELECT ward FROM visits UNION SELECT ward FROM people",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward EXCEPT SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT AVG(x) AS v FROM (SELECT LAG(charge) OVER (ORDER BY day) AS x FROM visits)",
    "SELECT DISTINCT ON (ward) ward FROM visits",
    "SELECT MEDIAN(DISTINCT age) AS m FROM visits",
    "SELECT HISTOGRAM(charge, 4) AS n FROM visits GROUP BY ward",
    "SELECT COUNT(*) AS n FROM visits WHERE arrived > NOW()",
    "SELECT COUNT(*) AS n FROM visits WHERE note = (SELECT note FROM visits WHERE patient = 1)",
    "SELECT SUM(CAST(age AS TINYINT)) AS s FROM visits",
    "SELECT COUNT(*) AS n FROM visits; SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM 'visits.csv'",
    "SELECT COUNT(*) AS n FROM patients",
    "SELECT COUNT(*) AS n FROM visits WHERE nothing > 1",
    "SELECT COUNT(*) AS n FROM wards",
    "SELECT COUNT(*) AS n FROM visits WHERE age = 0x1F",
    "SELECT COUNT(*) AS n FROM visits /*+ hint */",
)
"""Questions whose words are accepted, and which are refused for their shape."""
