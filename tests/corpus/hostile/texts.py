"""After the reader: characters nobody sees, names that look alike, texts too long or too deep, hidden words."""

from __future__ import annotations

from tests.corpus.hostile.case import Case, harmless, refused

COUNT = "SELECT COUNT(*) AS n FROM visits"

UNSEEN = {
    "a homoglyph of a table": COUNT.replace("visits", "v\u0456sits"),
    "a homoglyph of a column": f"{COUNT} WHERE ch\u0430rge > 3",
    "full-width letters": "\uff33\uff25\uff2c\uff25\uff23\uff34 COUNT(*) AS n FROM visits",
    "a full-width semicolon": f"{COUNT}\uff1b DROP TABLE visits",
    "right to left": f"{COUNT} WHERE ward = '\u202ecardiology'",
    "an isolate": f"{COUNT} WHERE \u2066charge > 3\u2069",
    "a NUL": f"{COUNT} WHERE ward = 'a\0b'",
    "a NUL at the end": f"{COUNT}\0",
    "half a surrogate": f"{COUNT} WHERE ward = '\ud800'",
    "a zero-width space": "SELECT COUNT(*) AS n FROM vis\u200bits",
    "a zero-width joiner": f"{COUNT} WHERE char\u200dge > 3",
    "a byte order mark": f"\ufeff{COUNT}",
    "a bell": f"{COUNT} WHERE ward = '\x07'",
    "an escape sequence": f"{COUNT} WHERE ward = '\x1b[2J'",
    "a vertical tab": "SELECT\x0bCOUNT(*) AS n FROM visits",
    "a soft hyphen": "SELECT COUNT(*) AS n FROM visi\u00adts",
    "a smart quote": f"{COUNT} WHERE ward = \u2018cardiology\u2019",
    "a private character": f"{COUNT} WHERE ward = '\ue000'",
    "an unassigned character": f"{COUNT} WHERE ward = '\U000e0080'",
    "a dotless name": 'SELECT COUNT(*) AS n FROM "V\u0130SITS"',
}
HIDDEN = {
    "a hint": "SELECT /*+ no_noise */ COUNT(*) AS n FROM visits WHERE charge > (SELECT 3)",
    "an executable comment": (
        "SELECT COUNT(*) AS n FROM visits /*!50000 UNION SELECT charge FROM visits */ WHERE 1 IN (SELECT 1)"
    ),
    "a comment that never ends": f"{COUNT} /* and so on",
    "a quote that never ends": f"{COUNT} WHERE ward = 'card",
    "a dollar quote": f"{COUNT} WHERE ward = $$x$$ OR ward = $tag$y$tag$",
    "an escaped text": f"{COUNT} WHERE ward = E'\\x41'",
    "a hexadecimal number": f"{COUNT} WHERE severity = 0x5",
    "a byte text": f"{COUNT} WHERE ward = x'41'",
    "a national text": f"{COUNT} WHERE ward = N'a'",
    "a quoted function": 'SELECT "read_csv"(ward) AS k, COUNT(*) AS n FROM visits GROUP BY 1',
    "a reserved end": "SELECT COUNT(*) AS n, COUNT(*) AS n_low FROM visits",
    "a table of nobody": "SELECT COUNT(*) AS n FROM nobody",
    "a column of nobody": "SELECT SUM(nothing) AS s FROM visits",
    "an empty name": 'SELECT COUNT(*) AS n FROM ""',
    "two tables of one name": "SELECT COUNT(*) AS n FROM visits AS v JOIN labs AS v ON v.patient_id = v.patient_id",
    "nothing": "",
    "only blanks": " \n\t ",
    "only a semicolon": ";",
    "only a comment": "-- nothing to see",
    "half a sentence": "SELECT COUNT(* FROM visits",
}
LARGE = {
    "deep brackets": f"{COUNT} WHERE " + "(" * 5000 + "TRUE" + ")" * 5000,
    "deep cases": f"{COUNT} WHERE " + "CASE WHEN TRUE THEN " * 2000 + "TRUE" + " END" * 2000,
    "deep selects": "SELECT n FROM (" * 2000 + COUNT + ")" * 2000,
    "a long chain of or": f"{COUNT} WHERE " + "severity > 1 OR " * 5000 + "TRUE",
    "a long chain of not": f"{COUNT} WHERE " + "NOT " * 4000 + "TRUE",
    "a long chain of minus": f"{COUNT} WHERE charge > " + "- " * 4000 + "1",
    "a long sum": "SELECT SUM(" + "charge + " * 5000 + "charge) AS s FROM visits",
    "a long list": f"{COUNT} WHERE severity IN (" + "1," * 100_000 + "1)",
    "a long text": f"{COUNT} WHERE ward = '" + "x" * 10**6 + "'",
    "a long number": f"{COUNT} WHERE severity = " + "9" * 10**5,
    "a long exponent": f"{COUNT} WHERE charge < 1e" + "9" * 400,
    "a long name": f"{COUNT} WHERE " + "a" * 10**5 + " = 1",
    "many outputs": "SELECT " + ", ".join(f"COUNT(*) AS n{i}" for i in range(3000)) + " FROM visits",
    "many joins": "SELECT COUNT(*) AS n FROM visits AS v0 "
    + " ".join(f"JOIN visits AS v{i} ON v{i}.patient_id = v0.patient_id" for i in range(1, 150)),
    "many names that double": "WITH t0 AS (SELECT * FROM visits), "
    + ", ".join(f"t{i} AS (SELECT * FROM t{i - 1} UNION ALL SELECT * FROM t{i - 1})" for i in range(1, 40))
    + " SELECT COUNT(*) AS n FROM t39",
    "a name that is itself": "WITH t AS (SELECT * FROM t) SELECT COUNT(*) AS n FROM t",
}
LOOKALIKE = {
    "another letter case": 'SELECT COUNT(*) AS n FROM "VISITS" WHERE "Charge" > 3',
    "a text full of SQL": f"{COUNT} WHERE ward = '''; DROP TABLE visits; --'",
    "a name full of SQL": 'SELECT COUNT(*) AS "n; DROP TABLE visits" FROM visits',
    "a combining accent": f"{COUNT} WHERE ward = 'cardiologi\u0301e'",
    "a large literal": f"{COUNT} WHERE charge < 1e300 AND patient_id < 9223372036854775807",
}

CASES: tuple[Case, ...] = (*refused(UNSEEN | HIDDEN | LARGE), *harmless(LOOKALIKE))
