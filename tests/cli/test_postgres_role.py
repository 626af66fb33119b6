"""`discreet postgres-role`: what it prints for which tables; tests/cli/test_how_to.py runs it on a server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.clinic import TOML, run, write

CLINIC = "postgresql://db.example/clinic"


def lines(*arguments: str) -> list[str]:
    told = run("postgres-role", *arguments)
    assert told.code == 0, told
    first, *found, last = told.out.splitlines()
    assert (first, last) == ("BEGIN;", "COMMIT;")
    return found


def test_declared_tables_and_their_declared_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    listed = '("patient_id", "ward", "age", "charge") ON "public"."visits"'
    write(tmp_path, TOML.replace("visits.csv", f"{CLINIC.replace('db', 'ana@db')}/visits"))
    assert f'GRANT SELECT {listed} TO "ana";' in lines()
    assert f'GRANT SELECT {listed} TO "bo""b";' in lines("--role", 'bo"b')
    public = '[public.wards]\nsource = "care.wards"\n'
    write(tmp_path, f'engine = "{CLINIC}"\n{TOML.replace("visits.csv", "visits")}{public}')
    found = lines("--seconds", "7")
    assert [line for line in found if "SELECT" in line] == [
        f'GRANT SELECT {listed} TO "discreet_reader";',
        'GRANT SELECT ON "care"."wards" TO "discreet_reader";',
    ]
    assert sum("CREATE ROLE" in line for line in found) == 1
    assert "ALTER ROLE \"discreet_reader\" SET statement_timeout = '7s';" in found
    assert "ALTER ROLE \"discreet_reader\" SET log_min_error_statement = 'panic';" in found
    assert lines("--seconds", "7", "--no-create") == [line for line in found if "CREATE ROLE" not in line]


def test_a_few_types_are_of_a_few_columns_and_ids_are_among_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    toml = TOML.replace("visits.csv", f"{CLINIC}/visits").replace('patient_id = "text", ward = "text", ', "")
    write(tmp_path, toml)
    listed = '("age", "charge", "patient_id", "ward")'
    assert f'GRANT SELECT {listed} ON "public"."visits" TO "discreet_reader";' in lines()
    write(tmp_path, re.sub("(?m)^types = .*$", "", toml))
    assert 'GRANT SELECT ON "public"."visits" TO "discreet_reader";' in lines()


def test_named_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = lines(f"{CLINIC}/visits", "--column", "ward", "--column", "a b")
    assert 'GRANT SELECT ("ward", "a b") ON "public"."visits" TO "discreet_reader";' in found
    assert sum("SELECT" in line for line in lines(f"{CLINIC}/visits", f"{CLINIC}/wards")) == 2
    for wrong in (
        (f"{CLINIC}/visits", "postgresql://db.example/other/wards"),
        (f"{CLINIC}/visits", f"{CLINIC}/wards", "--column", "ward"),
        ("--column", "ward"),
        (f"{CLINIC}/visits", "--seconds", "0"),
        ("visits.csv",),
        ("postgresql://ana:secret@db.example/clinic/visits",),
        (),
    ):
        told = run("postgres-role", *wrong)
        assert told.code == 2, wrong
        assert "secret" not in f"{told}"
    write(tmp_path)
    assert "one database" in run("postgres-role").err
