"""Tables of a MariaDB server as sources of a curator and of a file, from the address to the ledger."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from discreet.curator import Curator
from discreet.engines.mariadb.pcre_patterns import SLOW
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.noise import SeededBits
from discreet.privacy import Budget
from tests.cli.clinic import run
from tests.engines.mariadb_tables import READER, MariaDBTables
from tests.redteam.salts import same_salt

NATIVE = {"patient": "VARCHAR(9) CHARACTER SET latin1", "ward": "CHAR(1)", "age": "TINYINT UNSIGNED"}
ROWS = [{"patient": f"p{i % 20}", "ward": "AB"[i % 2], "age": 20 + i} for i in range(60)]
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY ward"
MEAN = "SELECT COUNT(*) AS n, AVG(age) AS mean FROM visits"
TOML = """
ledger = "clinic.ledger"
{engine}

[tables.visits]
source = "{source}"
unit = "patient"
max_rows = 3
version = "2026-11"
bounds = {{ age = [0, 100] }}
keys = {{ ward = ["A", "B"] }}
types = {{ patient = "text", ward = "text", age = "int" }}

[budgets.visits]
epsilon = "10"
"""

pytestmark = pytest.mark.ci


@pytest.fixture
def visits(mariadb_tables: MariaDBTables) -> str:
    """The address of a table."""
    return f"{mariadb_tables.url}/{mariadb_tables.table(NATIVE, ROWS)}"


def protect(curator: Curator, source: object, name: str = "visits") -> None:
    curator.protect(source, name=name, unit="patient", max_rows=1, bounds={"age": (0, 100)}, budget=Budget(epsilon=10))


def test_a_file_moves_to_a_server_by_one_line(tmp_path: Path, visits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger, the budget and the stored answer stay; a new question is read from the server."""
    monkeypatch.chdir(tmp_path)
    lines = [",".join(NATIVE), *(",".join(map(str, row.values())) for row in ROWS), ""]
    (tmp_path / "visits.csv").write_text("\n".join(lines))
    server, _, table = visits.rpartition("/")
    for source, engine in (
        ("visits.csv", ""),
        (visits, ""),
        (visits.replace("mysql:", "mariadb:"), ""),
        (table, f'engine = "{server}"'),
    ):
        (tmp_path / "discreet.toml").write_text(TOML.format(source=source, engine=engine))
        assert run("protect").code == 0, source
        told = run("ask", BY_WARD, "--epsilon", "1")
        assert told.code == 0
        assert ("free" in told.out) == (source != "visits.csv")
        assert run("ask", BY_WARD.replace("age", f"age + {len(source)}"), "--epsilon", "1").code == 0
    ledger = b"".join(path.read_bytes() for path in tmp_path.glob("clinic.ledger*"))
    assert READER.encode() not in ledger


def test_the_answer_is_that_of_a_frame(visits: str) -> None:
    answers = []
    for source in (visits, pa.Table.from_pylist(ROWS)):
        with same_salt(), Curator.for_tests(bits=SeededBits(7)) as curator:
            protect(curator, source)
            answers.append(list(curator.ask(MEAN, epsilon=1)))
    assert answers[0] == answers[1]


def test_what_the_server_cannot_do_is_refused_before_it_is_paid_and_the_remedy_works(visits: str) -> None:
    with Curator() as curator:
        protect(curator, visits)
        before = len(curator.history("visits"))
        for ask in (curator.ask, curator.explain):
            with pytest.raises(UnsupportedQuery) as refused:
                ask("SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(patient, '[0-9]+x')", epsilon=1)
        assert SLOW in str(refused.value)
        assert len(curator.history("visits")) == before
        bounded = "SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(patient, '[0-9]{1,9}x')"
        assert len(curator.ask(bounded, epsilon=1)) == 1


def test_one_table_has_one_budget_whatever_it_is_called(visits: str) -> None:
    """By another name of the host it is still the same table."""
    with Curator() as curator:
        protect(curator, visits)
        for again in (visits.replace("mysql:", "mariadb:"), visits.replace("127.0.0.1", "localhost")):
            with pytest.raises(InvalidParameter, match="budget"):
                protect(curator, again, "others")
        with pytest.raises(InvalidParameter, match="protected table"):
            curator.public(visits, name="open")
