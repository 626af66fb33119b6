"""Transcripts with psql, SQLAlchemy, pandas and the JDBC driver: what they do by themselves costs nothing."""

import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from tests.service.wire.served import TYPES, Served

sa = pytest.importorskip("sqlalchemy")
JDBC = sorted(Path.home().glob(".m2/repository/org/postgresql/postgresql/*/postgresql-*.jar"))

pytestmark = pytest.mark.slow


def _psql(wire: Served, *commands: str, name: str = "ann") -> subprocess.CompletedProcess[str]:
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed")
    arguments = [part for command in commands for part in ("-c", command)]
    environment = {**wire.environment(name), "PATH": "/usr/bin:/bin"}
    return subprocess.run([program, "-X", *arguments], env=environment, capture_output=True, text=True, check=False)


def test_psql_lists_tables_and_columns_for_nothing(wire: Served) -> None:
    before, spent = len(wire.desk.done), wire.spent()
    found = _psql(wire, r"\d", r"\dt", r"\d visits", r"\d+ visits", r"\l", r"\dn", r"\du", r"\df", r"\dp", r"\dt+ vis*")
    assert (found.returncode, found.stderr) == (0, "")
    assert " public | visits | table | discreet" in found.stdout
    assert 'Table "public.visits"' in found.stdout
    for name in TYPES:
        assert f"\n {name} " in found.stdout
    assert "timestamp without time zone" in found.stdout
    assert "from 0 to 120" in found.stdout
    assert (len(wire.desk.done), wire.spent()) == (before, spent)


def test_psql_asks(wire: Served) -> None:
    question = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"
    found = _psql(wire, "SET discreet.epsilon = 0.02", question, r"\gdesc", "SHOW discreet.remaining")
    assert found.returncode == 0
    assert "NOTICE:  Cost: epsilon=0.02, 0.02 % of the budget; remaining: 99.98 %" in found.stderr
    assert [part.strip() for part in found.stdout.splitlines()[1].split("|")] == ["ward", "n", "n_low", "n_high"]
    assert "spendable" in found.stdout


def test_psql_shows_refusals_with_position_and_hint(wire: Served) -> None:
    found = _psql(wire, "SET discreet.epsilon = 0.02", "SELECT age FROM visits", "SELECT COUNT(*) FROM vists")
    assert found.returncode == 1
    assert "LINE 1: SELECT age FROM visits" in found.stderr
    assert "^" in found.stderr
    assert "Did you mean 'visits'?" in found.stderr


def test_psql_with_a_wrong_key_is_refused(wire: Served) -> None:
    environment = {**wire.environment(), "PGPASSWORD": "wrong", "PATH": "/usr/bin:/bin"}
    found = subprocess.run(
        ["psql", "-X", "-c", "SELECT 1"], env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    assert "The name or the key is wrong" in found.stderr


def test_sqlalchemy_reflects_and_asks(wire: Served) -> None:
    before, spent = len(wire.desk.done), wire.spent()
    options = {"options": "-c discreet.epsilon=0.02"}
    engine = sa.create_engine(wire.url(scheme="postgresql+psycopg"), connect_args=options)
    try:
        inspected = sa.inspect(engine)
        assert inspected.get_table_names() == ["staff", "visits"]
        kinds = {each["name"]: type(each["type"]).__name__ for each in inspected.get_columns("visits")}
        assert list(kinds) == list(TYPES)
        assert (kinds["age"], kinds["charge"], kinds["at"]) == ("BIGINT", "DOUBLE_PRECISION", "TIMESTAMP")
        assert inspected.get_pk_constraint("visits")["constrained_columns"] == []
        assert inspected.get_indexes("visits") == inspected.get_foreign_keys("visits") == []
        assert inspected.get_schema_names() == ["information_schema", "public"]
        metadata = sa.MetaData()
        metadata.reflect(engine)
        assert (len(wire.desk.done), wire.spent()) == (before, spent)
        visits = metadata.tables["visits"]
        counted = sa.select(visits.c.ward, sa.func.count().label("n")).where(visits.c.age > 25).group_by(visits.c.ward)
        with engine.connect() as connection:
            assert [row.ward for row in connection.execute(counted)] == ["A", "B", "C"]
        assert wire.spent() == pytest.approx(spent + 0.02)
    finally:
        engine.dispose()


def test_pandas_reads_answers(wire: Served) -> None:
    engine = sa.create_engine(wire.url(scheme="postgresql+psycopg"))
    try:
        with engine.connect() as connection:
            connection.execute(sa.text("SET discreet.epsilon = 0.02"))
            found = pd.read_sql(
                sa.text("SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits WHERE age > :age GROUP BY ward"),
                connection,
                params={"age": 30},
            )
        assert list(found.columns) == ["ward", "n", "n_low", "n_high", "a", "a_low", "a_high"]
        assert found["n"].dtype == "int64"
        assert found["a"].dtype == "float64"
    finally:
        engine.dispose()


_JAVA = """
import java.sql.*;
public class Meta {
  static void dump(String what, ResultSet r) throws SQLException {
    int n = Math.min(r.getMetaData().getColumnCount(), 6);
    while (r.next()) {
      StringBuilder b = new StringBuilder(what);
      for (int i = 1; i <= n; i++) b.append('|').append(r.getString(i));
      System.out.println(b);
    }
  }
  public static void main(String[] a) throws Exception {
    try (Connection c = DriverManager.getConnection(a[0], a[1], a[2])) {
      DatabaseMetaData d = c.getMetaData();
      dump("schema", d.getSchemas());
      dump("catalog", d.getCatalogs());
      dump("table", d.getTables(null, null, "%", new String[]{"TABLE", "VIEW"}));
      dump("column", d.getColumns(null, "public", "visits", "%"));
      dump("primary", d.getPrimaryKeys(null, "public", "visits"));
      dump("imported", d.getImportedKeys(null, "public", "visits"));
      dump("index", d.getIndexInfo(null, "public", "visits", false, false));
      dump("type", d.getTypeInfo());
      d.getSQLKeywords();
      c.createStatement().execute("SET discreet.epsilon = 0.02");
      PreparedStatement p = c.prepareStatement("SELECT ward, COUNT(*) AS n FROM visits WHERE age > ? GROUP BY ward");
      for (int round = 0; round < 7; round++) {  // the driver goes over to binary after five
        p.setInt(1, 33);
        ResultSet r = p.executeQuery();
        while (r.next()) System.out.println("row|" + round + "|" + r.getString(1) + "|" + r.getLong(2));
      }
    }
  }
}
"""


@pytest.mark.skipif(not JDBC or shutil.which("java") is None, reason="the JDBC driver is not installed")
def test_jdbc_reads_metadata_and_asks(wire: Served, tmp_path: Path) -> None:
    program, spent = tmp_path / "Meta.java", wire.spent()
    program.write_text(_JAVA)
    url = f"jdbc:postgresql://127.0.0.1:{wire.port}/clinic"
    command = ["java", "-cp", str(JDBC[-1]), str(program), url, "ann", wire.keys["ann"][1]]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert [line for line in lines if line.startswith("table|")] == [
        "table|clinic|public|staff|TABLE|Protected: one patient|",
        "table|clinic|public|visits|TABLE|Protected: one patient|",
    ]
    assert [line.split("|")[4] for line in lines if line.startswith("column|")] == list(TYPES)
    assert "column|clinic|public|visits|charge|8|float8" in lines
    assert not [line for line in lines if line.startswith(("primary|", "imported|", "index|"))]
    rows = [line.split("|")[2:] for line in lines if line.startswith("row|")]
    assert len(rows) == 21
    assert rows == rows[:3] * 7  # the first was charged, and the others are the same answer
    assert wire.spent() == pytest.approx(spent + 0.02)
