"""Tables of a server under a curator: one line changes, and nothing else; what is refused is never paid."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from discreet.curator import Curator
from discreet.engines.postgres import Postgres
from discreet.engines.postgres.roles import role_statements
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.noise import SeededBits
from discreet.privacy import Budget
from discreet.server_address import ServerTable
from docs.site.code_blocks import blocks
from docs.site.navigation import DOCS
from tests.cli.clinic import run
from tests.engines.postgres_tables import READER, PostgresTables
from tests.redteam.salts import same_salt

NATIVE = {"patient": "text", "ward": "text", "age": "integer"}
ROWS = [{"patient": f"p{i % 20}", "ward": "AB"[i % 2], "age": 20 + i} for i in range(60)]
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY ward"
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


def address(tables: PostgresTables, source: str) -> str:
    return f"{tables.url}/{source}"


@pytest.fixture
def visits(postgres_tables: PostgresTables) -> str:
    """The address of a table."""
    return address(postgres_tables, postgres_tables.table(NATIVE, ROWS))


def protect(curator: Curator, source: object, name: str = "visits", **declared: object) -> None:
    options = {"unit": "patient", "budget": Budget(epsilon=10), "bounds": {"age": (0, 100)}, **declared}
    curator.protect(source, name=name, **{"max_rows": 1, **options})  # type: ignore[arg-type]


def test_a_file_moves_to_a_server_by_one_line(tmp_path: Path, visits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger, the budget and the stored answer stay; a new question is read from the server."""
    monkeypatch.chdir(tmp_path)
    header = ",".join(NATIVE)
    lines = [",".join(map(str, row.values())) for row in ROWS]
    (tmp_path / "visits.csv").write_text("\n".join([header, *lines, ""]))
    config = tmp_path / "discreet.toml"
    for source, engine in (
        ("visits.csv", ""),
        (visits, ""),
        (visits.rpartition("/")[2], f'engine = "{visits.rpartition("/")[0]}"'),
    ):
        config.write_text(TOML.format(source=source, engine=engine))
        assert run("protect").code == 0, source
        told = run("ask", BY_WARD, "--epsilon", "1")
        assert told.code == 0
        assert ("free" in told.out) == (source != "visits.csv")
        other = run("ask", f"{BY_WARD.replace('age', 'age + 1')}", "--epsilon", "1")
        assert other.code == 0
    ledger = b"".join(path.read_bytes() for path in tmp_path.glob("clinic.ledger*"))
    assert READER.encode() not in ledger


def test_the_answer_is_that_of_a_file(visits: str) -> None:
    answers = []
    for source in (visits, pa.Table.from_pylist(ROWS)):
        with same_salt(), Curator.for_tests(bits=SeededBits(7)) as curator:
            protect(curator, source)
            answers.append(list(curator.ask(BY_WARD.replace("ward, ", "").replace(" GROUP BY ward", ""), epsilon=1)))
    assert answers[0] == answers[1]


def test_what_two_databases_would_have_to_join_is_refused_before_it_is_paid(visits: str) -> None:
    with Curator() as curator:
        protect(curator, visits)
        protect(curator, pa.Table.from_pylist(ROWS), "copies", account="visits", identity="copies of visits")
        before = len(curator.history("visits"))
        for sql in (
            "SELECT COUNT(*) FROM visits JOIN copies USING (patient)",
            "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM copies)",
            "SELECT COUNT(*) FROM visits WHERE REGEXP_EXTRACT(ward, '(A|AB)', 1) = 'A'",
        ):
            for ask in (curator.ask, curator.explain):
                with pytest.raises(UnsupportedQuery):
                    ask(sql, epsilon=1)
        assert len(curator.history("visits")) == before
        certain = "SELECT COUNT(*) FROM visits WHERE REGEXP_EXTRACT(ward, '^([^B]*)', 1) = 'A'"
        assert len(curator.ask(certain, epsilon=1)) == 1


def test_one_table_has_one_budget_whatever_it_is_called(visits: str) -> None:
    """By another name of the host it is still the same table, and the ledger says where it is without a user."""
    with Curator() as curator:
        protect(curator, visits)
        for again in (visits.replace("127.0.0.1", "localhost"), visits.replace("public.", "")):
            with pytest.raises(InvalidParameter, match="budget"):
                protect(curator, again, "others")
        with pytest.raises(InvalidParameter, match="protected table"):
            curator.public(visits, name="open")


def test_an_engine_of_its_own(visits: str) -> None:
    server, _, source = visits.rpartition("/")
    with Curator(engine=Postgres(server, deadline=60)) as curator:
        protect(curator, source)
        assert len(curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1)) == 1
        with pytest.raises(InvalidParameter):
            protect(curator, "postgresql://db.example/clinic/visits", "others")


def test_the_page_shows_the_role() -> None:
    """As `discreet postgres-role` prints it; tests/cli/test_how_to.py hands that to psql."""
    (written,) = (block for block in blocks(DOCS / "scaling.md") if block.language == "sql")
    table = ServerTable.of("postgresql://db.example/clinic/visits")
    made = role_statements(table, ["patient_id", "ward", "age", "charge", "day"])
    assert written.body == "".join(f"{line};\n" for line in made)
    written.ran()
