"""After errors and extremes: rows on which an expression fails, overflows or has no value must look like any other."""

from __future__ import annotations

from tests.corpus.hostile.case import Case, harmless, refused

TOTAL = {
    "division by zero": "SELECT SUM(GREATEST(LEAST(1 / (severity - 3), 5), -5)) AS s FROM visits",
    "division in a condition": "SELECT COUNT(*) AS n FROM visits WHERE 1 / (severity - 5) > 0",
    "whole division by zero": "SELECT COUNT(*) AS n FROM visits WHERE 10 // (severity - 5) = 1",
    "remainder by zero": "SELECT COUNT(*) AS n FROM visits WHERE visit_id % (severity - 5) = 0",
    "an error for one person": (
        "SELECT SUM(CASE WHEN patient_id = 7 THEN 1 / (severity - severity) ELSE 0 END) "
        "AS s FROM visits WHERE severity < 9"
    ),
    "an error behind a condition": (
        "SELECT COUNT(*) AS n FROM visits WHERE CASE WHEN charge > 3000 THEN 1 // 0 = 1 ELSE TRUE END"
    ),
    "a text that is no number": "SELECT COUNT(*) AS n FROM visits WHERE CAST(triage_note AS INT) > 3",
    "a text that is no date": "SELECT COUNT(*) AS n FROM visits WHERE CAST(triage_note AS DATE) > DATE '2025-01-01'",
    "a cast with colons": "SELECT COUNT(*) AS n FROM visits WHERE triage_note::DOUBLE > 3",
    "nulls by casts": "SELECT COUNT(CAST(diagnosis AS INT)) AS n, COUNT(*) AS m FROM visits",
    "overflow of a product": "SELECT COUNT(*) AS n FROM visits WHERE visit_id * 9223372036854775807 > 0",
    "overflow of a sum": "SELECT COUNT(*) AS n FROM visits WHERE patient_id + 9223372036854775807 < 0",
    "overflow of doubles": "SELECT COUNT(*) AS n FROM visits WHERE charge * 1e308 * 10 > 0",
    "negative of the least": "SELECT COUNT(*) AS n FROM visits WHERE -(patient_id - 9223372036854775807 - 2) > 0",
    "an infinite mean": "SELECT AVG(GREATEST(LEAST(charge * 1e308 * 1e308, 10), 0)) AS m FROM visits",
    "filled nulls": "SELECT SUM(COALESCE(charge, 1e12)) AS s FROM visits",
    "a constant": "SELECT SUM(1) AS s, AVG(2) AS m FROM visits",
    "a sum of nothing": "SELECT SUM(charge) AS s FROM visits WHERE FALSE",
    "never true": "SELECT ward, COUNT(*) AS n FROM visits WHERE 1 = 2 GROUP BY ward",
    "equal to itself": "SELECT COUNT(*) AS n FROM visits WHERE charge = charge OR charge <> charge",
    "days at the end of time": "SELECT COUNT(*) AS n FROM visits WHERE admitted > DATE '9999-12-31'",
    "substring from nowhere": "SELECT SUBSTRING(triage_note, -3, 99) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "a pattern of many wildcards": (
        "SELECT COUNT(*) AS n FROM visits WHERE triage_note LIKE '%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%b'"
    ),
    "having by noise": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING 1 / (COUNT(*) - 3) > 0",
    "an order that divides by zero": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY 1 / (COUNT(*) - 3)",
    "a quotient of noise": "SELECT SUM(charge) / (COUNT(*) - COUNT(*)) AS q FROM visits",
    "a small decimal": "SELECT SUM(CAST(charge AS DECIMAL(3, 1))) AS s FROM visits",
    "a limit of none": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT 0",
}
FAILING = {
    "an error by name": "SELECT COUNT(*) AS n FROM visits WHERE error(triage_note) IS NULL",
    "an error if": "SELECT SUM(CASE WHEN patient_id = 7 THEN error('found') ELSE 0 END) AS s FROM visits",
    "a strict date": "SELECT COUNT(*) AS n FROM visits WHERE strptime(triage_note, '%Y') > DATE '2025-01-01'",
    "a strict json": "SELECT COUNT(*) AS n FROM visits WHERE json_extract(triage_note, '$.a') = 1",
    "a narrow type": "SELECT SUM(CAST(charge AS TINYINT)) AS s FROM visits",
    "a uuid": "SELECT COUNT(*) AS n FROM visits WHERE CAST(triage_note AS UUID) IS NULL",
    "a blob": "SELECT COUNT(*) AS n FROM visits WHERE CAST(triage_note AS BLOB) IS NULL",
    "a scalar of many rows": "SELECT COUNT(*) AS n FROM visits WHERE charge = (SELECT charge FROM visits)",
    "a back reference": r"SELECT COUNT(*) AS n FROM visits WHERE regexp_matches(triage_note, '(a+)+\1$')",
    "a pattern from a column": "SELECT COUNT(*) AS n FROM visits WHERE ward LIKE triage_note",
    "a text repeated": "SELECT COUNT(*) AS n FROM visits WHERE length(repeat(triage_note, 2000000000)) > 1",
    "a padded text": "SELECT COUNT(*) AS n FROM visits WHERE length(lpad(ward, 1000000000, 'x')) > 1",
    "a long series": "SELECT COUNT(*) AS n FROM visits, generate_series(1, 1000000000)",
    "an unnested range": "SELECT SUM(UNNEST(range(1000000000))) AS s FROM visits",
    "a list of ranges": "SELECT COUNT(*) AS n FROM visits WHERE len(range(patient_id * 1000000)) > 3",
    "a busy sleep": "SELECT COUNT(*) AS n FROM visits WHERE CASE WHEN patient_id = 7 THEN sleep_ms(1000) IS NULL END",
    "a sketch": "SELECT APPROX_COUNT_DISTINCT(diagnosis) AS n FROM visits",
    "a reservoir": "SELECT RESERVOIR_QUANTILE(charge, 0.5) AS q FROM visits",
    "a float sum of the engine": "SELECT FSUM(charge) AS s FROM visits",
    "a lambda": "SELECT COUNT(*) AS n FROM visits WHERE len(list_filter([charge], x -> x > 3)) = 1",
    "a comparison with null": "SELECT COUNT(*) AS n FROM visits WHERE charge = NULL",
    "one that is always null": "SELECT COUNT(NULL) AS n FROM visits",
}

CASES: tuple[Case, ...] = (*harmless(TOTAL), *refused(FAILING))
