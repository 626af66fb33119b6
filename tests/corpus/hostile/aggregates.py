"""After one value by way of an aggregate: ranks, distinct values, filters, buckets, spread, and ways to the owner."""

from __future__ import annotations

from tests.corpus.hostile.case import Case, harmless, refused

RANKS = {
    "the largest of one person": "SELECT MAX(charge) AS m FROM visits WHERE patient_id = 7",
    "the median of one person": "SELECT MEDIAN(charge) AS m FROM visits WHERE patient_id = 7",
    "the smallest of everybody else": "SELECT MIN(charge) AS m FROM visits WHERE patient_id <> 7",
    "the extreme quantile": "SELECT QUANTILE_CONT(charge, 1) AS q FROM visits",
    "the least quantile": "SELECT QUANTILE_CONT(charge, 0) AS q FROM visits",
    "a rank that marks one person": "SELECT MAX(CASE WHEN patient_id = 7 THEN charge ELSE 0 END) AS m FROM visits",
    "a median of a constant": "SELECT MEDIAN(CASE WHEN patient_id = 7 THEN 5000 ELSE 0 END) AS m FROM visits",
    "ranks of rows made many": (
        "SELECT MEDIAN(v.charge) AS m FROM visits AS v JOIN labs AS l ON l.patient_id = v.patient_id"
    ),
    "the range": "SELECT MAX(charge) - MIN(charge) AS r FROM visits",
}
DISTINCT = {
    "distinct texts": "SELECT COUNT(DISTINCT triage_note) AS n FROM visits",
    "distinct texts of one": "SELECT COUNT(DISTINCT triage_note) AS n FROM visits WHERE patient_id = 7",
    "distinct visits": "SELECT ward, COUNT(DISTINCT visit_id) AS n FROM visits GROUP BY ward",
    "one distinct value": (
        "SELECT COUNT(DISTINCT CASE WHEN patient_id = 7 THEN 'him' ELSE 'others' END) AS n FROM visits"
    ),
    "distinct by cast": "SELECT COUNT(DISTINCT CAST(triage_note AS INT)) AS n FROM visits",
}
FILTERS = {
    "a filter on one": "SELECT COUNT(*) FILTER (WHERE patient_id = 7) AS him, COUNT(*) AS n FROM visits",
    "a filter that divides by zero": "SELECT SUM(charge) FILTER (WHERE 1 / (severity - 3) > 0) AS s FROM visits",
    "a mean of one by filter": "SELECT AVG(charge) FILTER (WHERE patient_id = 7) AS m FROM visits",
    "a filter beside its opposite": (
        "SELECT COUNT(*) FILTER (WHERE charge > 3000) AS a, COUNT(*) FILTER (WHERE NOT charge > 3000) AS b FROM visits"
    ),
    "a count of one": "SELECT COUNT_IF(patient_id = 7) AS n FROM visits",
}
ODD = {
    "a quantile from a column": "SELECT QUANTILE_CONT(charge, severity) AS q FROM visits",
    "a quantile below zero": "SELECT QUANTILE_CONT(charge, -0.5) AS q FROM visits",
    "a quantile above one": "SELECT QUANTILE_CONT(charge, 1.5) AS q FROM visits",
    "a quantile of a text": "SELECT QUANTILE_DISC(triage_note, 0.5) AS q FROM visits",
    "a median of ids": "SELECT MEDIAN(triage_note) AS m FROM visits",
    "distinct spreads": "SELECT STDDEV(DISTINCT charge) AS s FROM visits",
    "a filter by others": ("SELECT COUNT(*) FILTER (WHERE charge > (SELECT AVG(charge) FROM visits)) AS n FROM visits"),
    "a filter by a window": "SELECT COUNT(*) FILTER (WHERE ROW_NUMBER() OVER () = 1) AS n FROM visits",
    "no buckets": "SELECT WIDTH_BUCKET(charge, 0, 100, 0) AS b, COUNT(*) AS n FROM visits GROUP BY 1",
    "buckets from a column": "SELECT WIDTH_BUCKET(charge, 0, severity, 4) AS b, COUNT(*) AS n FROM visits GROUP BY 1",
    "very many buckets": "SELECT WIDTH_BUCKET(charge, 0, 1, 2000000000) AS b, COUNT(*) AS n FROM visits GROUP BY 1",
    "an ordered list": "SELECT FIRST(charge ORDER BY charge DESC) AS f FROM visits",
    "a distinct window": "SELECT COUNT(DISTINCT charge) OVER () AS n FROM visits",
}
OWNERS = {
    "items of other orders": "SELECT COUNT(*) AS n FROM items AS i JOIN orders AS o ON i.product_id = o.order_id",
    "items beside items": "SELECT COUNT(*) AS n FROM items AS a JOIN items AS b ON a.product_id = b.product_id",
    "an item's order as a key": "SELECT customer_id, COUNT(*) AS n FROM items GROUP BY customer_id",
    "reviews of the same product": (
        "SELECT COUNT(*) AS n FROM items AS i JOIN reviews AS r ON r.product_id = i.product_id"
    ),
}

CASES: tuple[Case, ...] = (*harmless(RANKS | DISTINCT | FILTERS), *refused(ODD), *refused(OWNERS, world="shop"))
