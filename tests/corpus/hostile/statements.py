"""After the machine: other statements, files, functions of the engine, its tables and settings, chance and time."""

from __future__ import annotations

from tests.corpus.hostile.case import Case, refused

STATEMENTS = {
    "stacked drop": "SELECT COUNT(*) AS n FROM visits; DROP TABLE visits",
    "stacked select": "SELECT COUNT(*) AS n FROM visits; SELECT * FROM visits",
    "injection by a quote": "SELECT COUNT(*) AS n FROM visits WHERE ward = '' OR 1=1; --'",
    "injection of a union": "SELECT COUNT(*) AS n FROM visits WHERE ward = 'x' UNION SELECT charge FROM visits",
    "copy to a file": "COPY visits TO '/tmp/visits.csv'",
    "copy of a query": "COPY (SELECT * FROM visits) TO '/tmp/visits.parquet'",
    "attach": "ATTACH '/tmp/other.db' AS other",
    "pragma": "PRAGMA table_info('visits')",
    "storage of a table": "SELECT * FROM pragma_storage_info('visits')",
    "set": "SET memory_limit = '1GB'",
    "create": "CREATE TABLE mine AS SELECT * FROM visits",
    "insert": "INSERT INTO visits SELECT * FROM visits",
    "delete": "DELETE FROM visits WHERE patient_id = 7",
    "update": "UPDATE visits SET charge = 0",
    "export": "EXPORT DATABASE '/tmp/all'",
    "install": "INSTALL httpfs",
    "load": "LOAD httpfs",
    "call": "CALL dbgen(sf = 1)",
    "explain": "EXPLAIN SELECT COUNT(*) AS n FROM visits",
    "explain analyze": "EXPLAIN ANALYZE SELECT COUNT(*) AS n FROM visits",
    "describe": "DESCRIBE visits",
    "summarize": "SUMMARIZE visits",
    "show": "SHOW TABLES",
    "prepare": "PREPARE q AS SELECT COUNT(*) FROM visits",
    "values": "VALUES (1), (2)",
    "from first": "FROM visits",
    "into": "SELECT COUNT(*) AS n INTO mine FROM visits",
    "locks": "SELECT COUNT(*) AS n FROM visits FOR UPDATE",
    "parameter": "SELECT COUNT(*) AS n FROM visits WHERE charge > ?",
    "named parameter": "SELECT COUNT(*) AS n FROM visits WHERE charge > $limit",
}
FILES = {
    "read_csv": "SELECT COUNT(*) AS n FROM read_csv('/etc/passwd')",
    "read_text": "SELECT COUNT(*) AS n FROM read_text('/etc/passwd')",
    "a path as a table": "SELECT COUNT(*) AS n FROM '/etc/passwd'",
    "a quoted path": 'SELECT COUNT(*) AS n FROM "/etc/passwd"',
    "parquet on the net": "SELECT COUNT(*) AS n FROM read_parquet('https://example.org/x.parquet')",
    "glob": "SELECT COUNT(*) AS n FROM glob('/etc/*')",
    "join with a file": "SELECT COUNT(*) AS n FROM visits JOIN read_csv('/tmp/x.csv') AS f ON f.ward = visits.ward",
    "a file in a condition": "SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT column0 FROM read_csv('/tmp/x'))",
}
ENGINE = {
    "list of tables": "SELECT COUNT(*) AS n FROM duckdb_tables()",
    "estimated sizes": "SELECT estimated_size AS n FROM duckdb_tables() WHERE table_name = 'visits'",
    "information schema": "SELECT COUNT(*) AS n FROM information_schema.columns",
    "sqlite master": "SELECT COUNT(*) AS n FROM sqlite_master",
    "pg catalog": "SELECT COUNT(*) AS n FROM pg_catalog.pg_class",
    "another schema": "SELECT COUNT(*) AS n FROM main.visits",
    "another catalog": "SELECT COUNT(*) AS n FROM temp.main.visits",
    "statistics": "SELECT stats(charge) AS s, COUNT(*) AS n FROM visits GROUP BY 1",
    "settings": "SELECT current_setting('threads') AS s, COUNT(*) AS n FROM visits GROUP BY 1",
    "environment": "SELECT COUNT(*) AS n FROM visits WHERE getenv('HOME') LIKE '/root%'",
    "user": "SELECT COUNT(*) AS n FROM visits WHERE current_user = 'root'",
    "version": "SELECT version() AS v, COUNT(*) AS n FROM visits GROUP BY 1",
    "row id": "SELECT COUNT(*) AS n FROM visits WHERE rowid = 0",
    "query in a text": "SELECT COUNT(*) AS n FROM query('SELECT * FROM visits')",
    "table by name": "SELECT COUNT(*) AS n FROM query_table('visits')",
    "log": "SELECT COUNT(*) AS n FROM visits WHERE write_log(triage_note) IS NULL",
}
CHANCE = {
    "random": "SELECT COUNT(*) AS n FROM visits WHERE random() < 0.5",
    "uuid": "SELECT COUNT(*) AS n FROM visits WHERE uuid() > 'a'",
    "seed": "SELECT setseed(0.5) AS s, COUNT(*) AS n FROM visits GROUP BY 1",
    "now": "SELECT COUNT(*) AS n FROM visits WHERE admitted < now()",
    "current date": "SELECT COUNT(*) AS n FROM visits WHERE admitted < CURRENT_DATE",
    "sample": "SELECT COUNT(*) AS n FROM visits TABLESAMPLE 10 PERCENT",
    "using sample": "SELECT COUNT(*) AS n FROM visits USING SAMPLE 5 ROWS",
    "sequence": "SELECT nextval('s') AS s, COUNT(*) AS n FROM visits GROUP BY 1",
    "hash of an id": "SELECT hash(patient_id) % 10 AS h, COUNT(*) AS n FROM visits GROUP BY 1",
    "md5": "SELECT md5(triage_note) AS h, COUNT(*) AS n FROM visits GROUP BY 1",
}

CASES: tuple[Case, ...] = refused(STATEMENTS | FILES | ENGINE | CHANCE)
