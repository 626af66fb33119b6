"""A list of files in discreet.toml is one table, as in `protect`; audits of such tables, and of folders, copy it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.curator.config.toml_file import as_given, parse
from discreet.engines import DuckDB
from discreet.engines.duckdb.copies import copy_of
from discreet.errors import InvalidParameter
from discreet.presentation.inspection.config_addition import account_of, addition
from discreet.presentation.inspection.file_check import check_file

TOML = """
[tables.visits]
source = ["a.csv", "more/b.ndjson"]
unit = "who"
max_rows = 1
types = { who = "text", age = "int" }

[public.wards]
source = ["wards.csv", "more/wards.csv"]
types = { ward = "text" }

[budgets.visits]
epsilon = 100
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "more").mkdir()
    (tmp_path / "a.csv").write_text("who,age\n" + "".join(f"a{place},40\n" for place in range(50)))
    (tmp_path / "more" / "b.ndjson").write_text("".join(f'{{"who": "b{place}", "age": 60}}\n' for place in range(50)))
    (tmp_path / "wards.csv").write_text("ward\nA\n")
    (tmp_path / "more" / "wards.csv").write_text("ward\nB\n")
    (tmp_path / "discreet.toml").write_text(TOML)
    return tmp_path / "discreet.toml"


@pytest.mark.ci
def test_a_list_of_files_is_one_table(config: Path) -> None:
    declared = parse(TOML, config.parent)
    assert as_given(declared.tables[0].source) == [str(config.parent / "a.csv"), str(config.parent / "more/b.ndjson")]
    with Curator.from_config(config, engine=DuckDB(threads=1)) as curator:
        assert 90 < curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=20)[0]["n"] < 110
    with Curator.from_config(config, engine=DuckDB(threads=1)) as curator:  # as the ledger has it
        assert 90 < curator.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 0", epsilon=20)[0]["n"] < 110


@pytest.mark.parametrize("source", ["[]", "[1]", '["s3://bucket/a.parquet"]', '[["a.csv"]]', "1"])
def test_what_is_no_list_of_files_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse(TOML.replace('["a.csv", "more/b.ndjson"]', source), tmp_path)
    assert caught.value.name.startswith("tables.visits.source")
    assert caught.value.hint


def test_a_file_of_a_list_shares_its_account(config: Path) -> None:
    assert account_of(TOML, config.parent / "a.csv", config.parent) == "visits"
    assert account_of(TOML, config.parent / "c.csv", config.parent) == ""


def test_two_lists_of_one_folder_are_two_tables(config: Path) -> None:
    """Which is what the declarations above have: their files lie beside each other."""
    both = [str(config.parent / "wards.csv"), str(config.parent / "a.csv")]
    with Curator.from_config(config, engine=DuckDB(threads=1)) as curator:
        with pytest.raises(InvalidParameter, match="protected table"):
            curator.public(both, name="again", types={"ward": "text"})
        with pytest.raises(InvalidParameter, match="public table"):
            curator.protect(both, name="again", unit="who", max_rows=1, types={"who": "text"})


def test_pictures_are_in_one_folder(config: Path) -> None:
    pictures = TOML.replace('types = { who = "text", age = "int" }', 'files = { suffix = ".png", shape = [1, 2, 2] }')
    config.write_text(pictures)
    with pytest.raises(InvalidParameter, match="to be one folder"):
        Curator.from_config(config, engine=DuckDB(threads=1))


def test_many_files_are_copied_for_audits(config: Path) -> None:
    for source in ([str(config.parent / "a.csv"), str(config.parent / "more/b.ndjson")], config.parent / "more"):
        rows = copy_of(source, ["who", "age"]).column(["who", "age"])
        assert {"who": "b7", "age": "60"} in rows


@pytest.mark.ci
def test_a_table_of_many_files_is_audited(config: Path) -> None:
    found = audit.audit_table(config, sql="SELECT COUNT(*) AS n FROM visits", neighbours=1)
    assert found.passed, found.summary()


# -------------------------------------------------------------------------------------------------- tables of databases


def test_a_table_of_a_database_is_looked_into(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("CREATE SCHEMA care")
        connection.execute("CREATE TABLE care.stays AS SELECT n AS patient_id, 40 + n % 9 AS age FROM range(9) AS t(n)")
    found = check_file(tmp_path / "clinic.duckdb", table="care.stays")
    assert (found.types, found.rows, found.unit) == ({"patient_id": "int", "age": "int"}, 9, "patient_id")
    assert "care.stays" in str(found)
    text = addition("", found, folder=tmp_path).text
    assert 'source = "clinic.duckdb"\ntable = "care.stays"' in text
    assert "[tables.stays.types]" in text
    with pytest.raises(InvalidParameter, match="declared yet"):
        addition(text, found, folder=tmp_path)
    other = replace(found, table="stays")
    assert "[tables.other]" in addition(text, other, folder=tmp_path, name="other").text


def test_what_is_no_table_of_a_database_is_refused(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "clinic.duckdb")).close()
    sqlite3.connect(tmp_path / "clinic.sqlite").execute("CREATE TABLE stays (n INT)").connection.close()
    (tmp_path / "visits.csv").write_text("n\n1\n")
    asked = (("clinic.duckdb", None), ("clinic.duckdb", "absent"), ("clinic.sqlite", "stays"), ("visits.csv", "visits"))
    for name, table in asked:
        with pytest.raises(InvalidParameter) as caught:
            check_file(tmp_path / name, table=table)
        assert str(tmp_path) not in str(caught.value)
