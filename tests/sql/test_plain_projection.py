"""Which queries of DuckDB choose and rename columns and do nothing else: all others are refused, whatever they mean."""

from __future__ import annotations

import pytest

from discreet.sql.plain_projection import PlainProjection, plain_projection

T = ("t",)
ACCEPTED = {
    "SELECT * FROM t": PlainProjection(columns=None, table=T),
    "TABLE t": PlainProjection(columns=None, table=T),
    "from t": PlainProjection(columns=None, table=T),
    "SELECT a, b AS z\n FROM t": PlainProjection(columns={"a": "a", "z": "b"}, table=T),
    'SELECT "a b" AS "q""z" FROM "s"."odd ""name" AS x': PlainProjection(
        columns={'q"z': "a b"}, table=("s", 'odd "name')
    ),
    "SELECT a AS b, b AS a FROM db.s.t": PlainProjection(columns={"b": "a", "a": "b"}, table=("db", "s", "t")),
    "SELECT k FROM (SELECT a AS K FROM t) AS x": PlainProjection(columns={"k": "a"}, table=T),
    "SELECT * FROM (SELECT a AS k FROM t)": PlainProjection(columns={"k": "a"}, table=T),
    "SELECT a FROM (SELECT * FROM t)": PlainProjection(columns={"a": "a"}, table=T),
    "FROM 'x.parquet'": PlainProjection(columns=None, table=("x.parquet",)),
    "SELECT a FROM read_parquet('x/*.parquet')": PlainProjection(columns={"a": "a"}, paths=("x/*.parquet",)),
    "FROM parquet_scan(['a', 'b'], union_by_name := false, hive_partitioning := true)": PlainProjection(
        columns=None, paths=("a", "b"), is_partitioned=True
    ),
    "FROM read_parquet('a', filename = false)": PlainProjection(columns=None, paths=("a",)),
}
REFUSED = [
    *("", "SELECT", "SELECT 1", "SELECT 1 AS a", "SELECT 'a' FROM t", "SELECT $1 FROM t", "SELECT NULL AS a FROM t"),
    *("SELECT a + 0 AS a FROM t", "SELECT a::INT AS a FROM t", "SELECT CAST(a AS INT) FROM t", "SELECT -a FROM t"),
    *(
        "SELECT a FROM t WHERE a > 1",
        "SELECT a FROM t LIMIT 1",
        "SELECT a FROM t OFFSET 1",
        "SELECT a FROM t LIMIT 0",
        "SELECT a FROM t ORDER BY a",
    ),
    *(
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t GROUP BY a",
        "SELECT a FROM t QUALIFY true",
        "SELECT count(*) FROM t",
    ),
    *("SELECT a FROM t USING SAMPLE 10", "SELECT a FROM t TABLESAMPLE 10%", "SELECT a FROM t AT (VERSION => 1)"),
    *(
        "SELECT a FROM t, u",
        "SELECT a FROM t JOIN u USING (a)",
        "SELECT a FROM t POSITIONAL JOIN u",
        "SELECT a FROM t, t",
    ),
    *("SELECT a FROM t UNION ALL SELECT a FROM t", "WITH q AS (FROM t) SELECT a FROM q", "PIVOT t ON a"),
    *("SELECT a FROM t; DROP TABLE t", "SELECT a FROM t; SELECT a FROM t", "DELETE FROM t", "CREATE TABLE u AS FROM t"),
    *(
        "SELECT * EXCLUDE (a) FROM t",
        "SELECT * REPLACE (1 AS a) FROM t",
        "SELECT COLUMNS('a') FROM t",
        "SELECT t.* FROM t",
    ),
    *(
        "SELECT a.b FROM t",
        "SELECT a[1] FROM t",
        "SELECT {'a': a} FROM t",
        "SELECT (SELECT 1) AS a FROM t",
        "SELECT *, a FROM t",
    ),
    *(
        "SELECT a, a FROM t",
        "SELECT a AS x, b AS X FROM t",
        "SELECT a FROM t AS t(x)",
        "SELECT a FROM (SELECT b FROM t)",
    ),
    *("SELECT a FROM (SELECT b + 1 AS a FROM t)", "SELECT a FROM (FROM t LIMIT 1)", "SELECT a FROM (FROM t) AS x(a)"),
    *(
        "SELECT sum(a) OVER () AS a FROM t",
        "SELECT random() AS a FROM t",
        "SELECT current_date FROM t",
        "SELECT a FROM f(1)",
    ),
    *(
        "FROM read_csv('a.csv')",
        "FROM read_parquet()",
        "FROM read_parquet(x)",
        "FROM read_parquet('a', filename = true)",
    ),
    *(
        "FROM read_parquet('a', schema = map {})",
        "FROM read_parquet(['a', b])",
        "FROM glob('*')",
        "FROM read_text('a')",
    ),
    *("FROM s.read_parquet('a')", "FROM read_parquet('a', file_row_number = 1)", "VALUES (1)", "FROM (VALUES (1))"),
    *(
        "SELECT a FROM t WINDOW w AS (ORDER BY a)",
        "SELECT a COLLATE NOCASE AS a FROM t",
        "SELECT a FROM LATERAL t",
        "(" * 999,
    ),
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_a_plain_projection_is_read(text: str) -> None:
    assert plain_projection(text) == ACCEPTED[text]


@pytest.mark.parametrize("text", REFUSED)
def test_everything_else_is_none(text: str) -> None:
    assert plain_projection(text) is None
