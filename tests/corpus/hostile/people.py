"""After single people: rows, lists of values, other people's rows beside one's own, order, ranks, and keys of one."""

from __future__ import annotations

from tests.corpus.hostile.case import Case, harmless, refused

ROWS = {
    "all rows": "SELECT * FROM visits",
    "one row": "SELECT charge FROM visits WHERE patient_id = 7",
    "rows beside a count": "SELECT charge, COUNT(*) AS n FROM visits",
    "distinct ids": "SELECT DISTINCT patient_id FROM visits",
    "distinct amounts": "SELECT DISTINCT charge FROM visits",
    "distinct on": "SELECT DISTINCT ON (patient_id) charge FROM visits ORDER BY patient_id",
    "group by the id": "SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id",
    "group by the id, hidden": "SELECT COUNT(*) AS n FROM visits GROUP BY patient_id ORDER BY n DESC LIMIT 1",
    "group by the id by place": "SELECT patient_id AS who, SUM(charge) AS s FROM visits GROUP BY 1",
    "order by the id": "SELECT patient_id, charge FROM visits ORDER BY patient_id LIMIT 1",
    "the id in a nested select": "SELECT w, COUNT(*) AS n FROM (SELECT patient_id AS w FROM visits) AS t GROUP BY w",
    "limit before counting": "SELECT COUNT(*) AS n FROM (SELECT * FROM visits ORDER BY charge DESC LIMIT 1) AS t",
    "offset before counting": "SELECT SUM(charge) AS s FROM (SELECT charge FROM visits LIMIT 1 OFFSET 6) AS t",
    "fetch before counting": "SELECT SUM(charge) AS s FROM (SELECT charge FROM visits FETCH FIRST ROW ONLY) AS t",
    "from first, one patient": "FROM visits WHERE patient_id = 7",
    "star expression": "SELECT COLUMNS(*) FROM visits",
    "a struct of the row": "SELECT visits, COUNT(*) AS n FROM visits GROUP BY 1",
}
LISTS = {
    "string_agg": "SELECT ward, STRING_AGG(triage_note, ',') AS s FROM visits GROUP BY ward",
    "listagg": "SELECT ward, LISTAGG(diagnosis, ',') AS s FROM visits GROUP BY ward",
    "array_agg": "SELECT ARRAY_AGG(charge) AS a FROM visits",
    "list": "SELECT LIST(charge) AS a FROM visits",
    "first": "SELECT ward, FIRST(charge) AS f FROM visits GROUP BY ward",
    "any_value": "SELECT ward, ANY_VALUE(triage_note) AS f FROM visits GROUP BY ward",
    "arg_max": "SELECT ARG_MAX(patient_id, charge) AS richest FROM visits",
    "max_by": "SELECT MAX_BY(triage_note, charge) AS note FROM visits",
    "the largest text": "SELECT MAX(triage_note) AS note FROM visits",
    "histogram of values": "SELECT HISTOGRAM(triage_note) AS h FROM visits",
    "a bit for each": "SELECT BIT_XOR(patient_id) AS x FROM visits",
    "a product": "SELECT PRODUCT(charge) AS p FROM visits",
    "entropy": "SELECT ENTROPY(diagnosis) AS e FROM visits",
    "a list in a list": "SELECT COUNT(*) AS n FROM visits WHERE charge IN (SELECT UNNEST([1, 2, 3]))",
    "json": "SELECT json_group_array(charge) AS j FROM visits",
}
OTHERS = {
    "a join on a ward": "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.ward = b.ward",
    "a join on a doctor": "SELECT COUNT(*) AS n FROM visits AS v JOIN visits AS w ON v.doctor_id = w.doctor_id",
    "a join on a lesser id": "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.patient_id < b.patient_id",
    "a join on a shifted id": (
        "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.patient_id = b.patient_id + 1"
    ),
    "a join on either": (
        "SELECT COUNT(*) AS n FROM visits AS a JOIN labs AS b ON a.patient_id = b.patient_id OR a.ward = b.test"
    ),
    "a cross join": "SELECT COUNT(*) AS n FROM visits CROSS JOIN labs",
    "a natural join": "SELECT COUNT(*) AS n FROM visits NATURAL JOIN labs",
    "a full join": "SELECT COUNT(*) AS n FROM visits AS v FULL JOIN labs AS l ON v.patient_id = l.patient_id",
    "an asof join": (
        "SELECT COUNT(*) AS n FROM visits AS v ASOF JOIN labs AS l ON v.patient_id = "
        "l.patient_id AND v.admitted >= l.taken_at"
    ),
    "a public table first": "SELECT COUNT(*) AS n FROM wards AS w LEFT JOIN visits AS v ON v.ward = w.ward",
    "exists of others": (
        "SELECT COUNT(*) AS n FROM visits AS v WHERE EXISTS (SELECT 1 FROM visits AS o "
        "WHERE o.ward = v.ward AND o.charge > 3000)"
    ),
    "exists of anybody": "SELECT COUNT(*) AS n FROM visits WHERE EXISTS (SELECT 1 FROM patients WHERE smoker)",
    "in others": "SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM visits WHERE patient_id = 7)",
    "not in others": (
        "SELECT COUNT(*) AS n FROM visits WHERE charge NOT IN (SELECT charge FROM visits WHERE patient_id = 7)"
    ),
    "not in with nulls": "SELECT COUNT(*) AS n FROM visits WHERE discharged NOT IN (SELECT discharged FROM visits)",
    "more than the mean": "SELECT COUNT(*) AS n FROM visits WHERE charge > (SELECT AVG(charge) FROM visits)",
    "a correlated sum": (
        "SELECT SUM((SELECT SUM(o.charge) FROM visits AS o WHERE o.ward = v.ward)) AS s FROM visits AS v"
    ),
    "any of others": "SELECT COUNT(*) AS n FROM visits WHERE charge > ANY (SELECT charge FROM visits)",
    "all of others": "SELECT COUNT(*) AS n FROM visits WHERE charge >= ALL (SELECT charge FROM visits)",
    "lateral": (
        "SELECT COUNT(*) AS n FROM visits AS v, LATERAL (SELECT charge FROM visits AS o WHERE o.ward = v.ward) AS l"
    ),
    "union of the distinct": ("SELECT COUNT(*) AS n FROM (SELECT ward FROM visits UNION SELECT ward FROM visits) AS t"),
    "except": "SELECT COUNT(*) AS n FROM (SELECT charge FROM visits EXCEPT SELECT result FROM labs) AS t",
    "distinct wards": "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward FROM visits) AS t",
    "a window over everybody": (
        "SELECT SUM(x) AS s FROM (SELECT SUM(charge) OVER (ORDER BY charge) AS x FROM visits) AS t"
    ),
    "a window over a ward": (
        "SELECT COUNT(*) AS n FROM (SELECT RANK() OVER (PARTITION BY ward ORDER BY "
        "charge) AS r FROM visits) AS t WHERE r = 1"
    ),
    "a row number": (
        "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (ORDER BY charge) AS r, "
        "charge FROM visits) AS t WHERE r = 7"
    ),
    "the neighbour's value": (
        "SELECT SUM(p) AS s FROM (SELECT LAG(charge) OVER (ORDER BY patient_id) AS p FROM visits) AS t"
    ),
    "qualify": "SELECT COUNT(*) AS n FROM visits QUALIFY ROW_NUMBER() OVER (ORDER BY charge) = 1",
    "ntile": "SELECT q, COUNT(*) AS n FROM (SELECT NTILE(4) OVER (ORDER BY charge) AS q FROM visits) AS t GROUP BY q",
    "pivot": "PIVOT visits ON ward USING SUM(charge)",
    "a recursive walk": (
        "WITH RECURSIVE r AS (SELECT patient_id FROM visits UNION ALL SELECT patient_id "
        "+ 1 FROM r) SELECT COUNT(*) AS n FROM r"
    ),
    "a table under a lie": "WITH wards AS (SELECT * FROM visits) SELECT ward, charge FROM wards",
}
ACCOUNTS = {
    "a join of two accounts": "SELECT COUNT(*) AS n FROM pupils AS p JOIN teachers AS t ON p.school_id = t.school_id",
    "ids of two accounts": "SELECT COUNT(*) AS n FROM pupils AS p JOIN teachers AS t ON p.pupil_id = t.teacher_id",
    "in of another account": "SELECT COUNT(*) AS n FROM pupils WHERE school_id IN (SELECT school_id FROM teachers)",
    "union of two accounts": (
        "SELECT COUNT(*) AS n FROM (SELECT pupil_id FROM pupils UNION ALL SELECT teacher_id FROM teachers) AS t"
    ),
    "exists in another account": (
        "SELECT COUNT(*) AS n FROM pupils AS p WHERE EXISTS (SELECT 1 FROM teachers AS t "
        "WHERE t.school_id = p.school_id)"
    ),
}
NAMED = {
    "one person": "SELECT COUNT(*) AS n, SUM(charge) AS s FROM visits WHERE patient_id = 7",
    "everybody but one": "SELECT COUNT(*) AS n, SUM(charge) AS s FROM visits WHERE patient_id <> 7",
    "a list of one": "SELECT COUNT(*) AS n FROM visits WHERE patient_id IN (7)",
    "one person's wards": "SELECT ward, COUNT(*) AS n FROM visits WHERE patient_id = 7 GROUP BY ward",
    "one person in a sum": "SELECT SUM(CASE WHEN patient_id = 7 THEN charge ELSE 0 END) AS s FROM visits",
    "one person magnified": "SELECT SUM(CASE WHEN patient_id = 7 THEN 1000000 ELSE 0 END) AS s FROM visits",
    "one person decides the group": (
        "SELECT CASE WHEN patient_id = 7 THEN 'him' ELSE 'others' END AS who, COUNT(*) AS n FROM visits GROUP BY 1"
    ),
    "having of one": (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING SUM(charge) > 3000 ORDER BY n LIMIT 1"
    ),
    "a fold of one": (
        "SELECT COUNT(*) AS n FROM (SELECT patient_id, MAX(charge) AS m FROM visits "
        "GROUP BY patient_id) AS t WHERE m > 3000"
    ),
    "a self join on the person": (
        "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.patient_id = b.patient_id"
    ),
    "three times the person": (
        "SELECT SUM(a.charge) AS s FROM visits AS a JOIN visits AS b ON a.patient_id = b.patient_id "
        "JOIN visits AS c ON c.patient_id = a.patient_id"
    ),
    "a join that multiplies": "SELECT COUNT(*) AS n FROM visits AS v JOIN labs AS l ON l.patient_id = v.patient_id",
    "a union of oneself": (
        "SELECT COUNT(*) AS n, SUM(c) AS s FROM (SELECT patient_id, charge AS c FROM visits "
        "UNION ALL SELECT patient_id, charge FROM visits UNION ALL SELECT patient_id, charge FROM visits) AS t"
    ),
    "distinct values": "SELECT DISTINCT triage_note FROM visits",
    "keys without numbers": "SELECT triage_note, admitted FROM visits WHERE patient_id = 7 GROUP BY 1, 2",
    "a union of answers": (
        "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) FROM visits WHERE patient_id <> 7 ORDER BY n"
    ),
    "offset after": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 2 OFFSET 1",
    "the largest group": (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY ROW_NUMBER() OVER (ORDER BY SUM(charge) DESC) = 1"
    ),
    "a rare text as a key": "SELECT triage_note, COUNT(*) AS n FROM visits GROUP BY triage_note",
    "a date as a key": "SELECT admitted, COUNT(*) AS n FROM visits GROUP BY admitted",
    "people who never came": (
        "SELECT COUNT(*) AS n FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM visits)"
    ),
}
KEYS = {
    "a float as a key": "SELECT charge, COUNT(*) AS n FROM visits GROUP BY charge",
    "a quotient as a key": "SELECT charge / 7 AS k, COUNT(*) AS n FROM visits GROUP BY charge / 7",
    "the id as a text": "SELECT CAST(patient_id AS TEXT) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "the id plus zero": "SELECT patient_id + 0 AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "the id modulo ten": "SELECT patient_id % 10 AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "the smallest id": "SELECT MIN(patient_id) AS k FROM visits",
    "the number of a visit": "SELECT visit_id, COUNT(*) AS n FROM visits GROUP BY visit_id",
    "the sum of ids": "SELECT SUM(patient_id) AS s FROM visits",
}

_OWN = "FROM visits AS w WHERE w.patient_id = v.patient_id"
EACH_REFUSED = {
    "an error if somebody has two": f"SELECT COUNT(*) AS n FROM visits AS v WHERE (SELECT w.charge {_OWN}) > 0",
    "one row of two": f"SELECT COUNT(*) AS n FROM visits AS v WHERE (SELECT w.charge {_OWN} LIMIT 1) > 0",
    "for each row, the others": (
        "SELECT SUM((SELECT COUNT(*) FROM visits AS w WHERE w.patient_id <> v.patient_id)) AS n FROM visits AS v"
    ),
    "for each row, one or all": (
        "SELECT COUNT(*) AS n FROM visits AS v WHERE EXISTS (SELECT 1 FROM visits AS w WHERE w.patient_id ="
        " v.patient_id OR w.patient_id = 7)"
    ),
    "the row next to mine": (
        "SELECT COUNT(*) AS n FROM visits AS v JOIN LATERAL (SELECT w.charge FROM visits AS w WHERE w.ward = v.ward"
        " ORDER BY w.admitted LIMIT 1) AS b ON TRUE"
    ),
    "one row of a ward": (
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (ward) ward, charge FROM visits ORDER BY ward, charge DESC) AS t"
    ),
    "a value outside as an output": f"SELECT (SELECT MAX(w.charge) {_OWN}) AS m, COUNT(*) AS n FROM visits AS v",
}
EACH_HARMLESS = {
    "many rows for each row": f"SELECT SUM((SELECT COUNT(*) {_OWN})) AS n FROM visits AS v",
    "rows before mine": f"SELECT SUM((SELECT COUNT(*) {_OWN} AND w.admitted < v.admitted)) AS n FROM visits AS v",
    "one person among the rows": (
        f"SELECT COUNT(*) AS n FROM visits AS v WHERE EXISTS (SELECT 1 {_OWN} AND w.charge > v.charge"
        " AND w.patient_id = 7)"
    ),
    "all pairs of rows": (f"SELECT COUNT(*) AS n FROM visits AS v JOIN LATERAL (SELECT w.charge {_OWN}) AS b ON TRUE"),
    "divided by what may be none": f"SELECT SUM(1 / (SELECT COUNT(*) {_OWN} AND w.charge < 0)) AS n FROM visits AS v",
    "the dearest row of each": (
        "SELECT ward, COUNT(*) AS n FROM (SELECT DISTINCT ON (patient_id) patient_id, ward FROM visits ORDER BY"
        " patient_id, charge DESC) AS t GROUP BY ward"
    ),
}

CASES: tuple[Case, ...] = (
    *refused(ROWS | LISTS | OTHERS | EACH_REFUSED),
    *refused(ACCOUNTS, world="school"),
    *harmless(NAMED | KEYS | EACH_HARMLESS),
)
