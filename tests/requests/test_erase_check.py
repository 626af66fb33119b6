"""Where a person may still be: from the ledger and the names of files alone, without the person's id in anything."""

from __future__ import annotations

import datetime as dt
import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB
from discreet.errors import InvalidParameter, NotPermitted, UnknownTable
from discreet.noise import SeededBits
from discreet.presentation.documents.result_documents import result_of
from discreet.privacy import Budget
from discreet.requests.erasure_requests import ErasureReport, PersonPlace
from discreet.requests.verb_table import VERBS, Permission

SECRET = "zz-canary-1042"
TYPES = {"patient": "text", "ward": "text", "age": "int"}
DECLARED: dict[str, Any] = {"unit": "patient", "account": "patients", "max_rows": 1, "budget": Budget(epsilon=100)}


def write(path: Path, people: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("patient,ward,age\n" + "".join(f"{who},A,40\n" for who in people))
    return path


@pytest.fixture
def clinic(tmp_path: Path) -> Curator:
    """A file that has the person, a folder that may, a frame, and a table of another account."""
    curator = Curator.for_tests(str(tmp_path / "book"), bits=SeededBits(1))
    visits = write(tmp_path / "visits.csv", [SECRET, "b"])
    write(tmp_path / "stays" / "first.csv", ["c"])
    curator.protect(str(visits), name="visits", types=TYPES, keys={"ward": ["A"]}, **DECLARED)
    curator.protect(str(tmp_path / "stays"), name="stays", types=TYPES, **DECLARED)
    numbers = pa.table({"patient": [1, 2]})
    curator.protect(numbers, name="codes", **{**DECLARED, "account": "numbers"})
    return curator


def told(report: ErasureReport, kind: str) -> PersonPlace:
    (found,) = [place for place in report.places if place.kind == kind]
    return found


def test_every_source_of_the_account_is_listed(clinic: Curator, tmp_path: Path) -> None:
    report = clinic.erase_check("stays", SECRET)
    assert report.account == "patients"
    assert told(report, "file").place == str((tmp_path / "visits.csv").resolve())
    assert told(report, "folder, and all below it").place == f"{(tmp_path / 'stays').resolve()}/"
    assert "rows with the id in patient" in told(report, "file").holds
    assert all("codes" not in place.holds for place in report.places)
    numbers = clinic.erase_check("codes", 2)
    assert told(numbers, "frame in memory").place == "codes"


def test_a_file_that_was_declared_before_is_listed_too(clinic: Curator, tmp_path: Path) -> None:
    later = write(tmp_path / "december.csv", ["d"])
    clinic.protect(str(later), name="visits", types=TYPES, keys={"ward": ["A"]}, version="2", **DECLARED)
    report = clinic.erase_check("visits", SECRET)
    assert [place.place for place in report.places if place.kind == "file"] == sorted(
        str((tmp_path / name).resolve()) for name in ("visits.csv", "december.csv")
    )


def test_the_id_is_in_nothing(clinic: Curator, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    clinic.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    head = clinic.verify()
    report = clinic.erase_check("visits", SECRET)
    form = result_of(VERBS["erase_check"])
    document = json.loads(json.dumps(form.write(report)))
    assert form.read(document) == report
    assert SECRET not in f"{report!r} {report} {report._repr_html_()} {document} {caplog.text}"
    assert clinic.verify() == head  # no entry
    clinic.close()
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("book*") if path.is_file())


@pytest.mark.parametrize("empty", ["", "  ", "\u00a0"])
def test_an_empty_id_is_refused(clinic: Curator, empty: str) -> None:
    with pytest.raises(InvalidParameter, match="Pass the id as the column has it"):
        clinic.erase_check("visits", empty)


def test_only_a_steward_may_ask(clinic: Curator) -> None:
    clinic.appoint("ana", "analyst", account="patients")
    clinic.appoint("sue", "steward", account="patients")
    clinic.appoint("stella", "steward")
    for who in ("ana", "nobody"):
        with pytest.raises(NotPermitted) as refused:
            clinic.erase_check("visits", SECRET, by=who)
        assert SECRET not in str(refused.value)
    with pytest.raises(NotPermitted):
        clinic.erase_check("codes", 1, by="sue")  # of another account
    assert clinic.erase_check("visits", SECRET, by="sue") == clinic.erase_check("visits", SECRET, by="stella")
    assert VERBS["erase_check"].permission is Permission.STEWARD
    with pytest.raises(UnknownTable):
        clinic.erase_check("vists", SECRET)


def test_no_row_is_read(clinic: Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is the same whether the person is there, and where no file is left."""
    there = clinic.erase_check("visits", SECRET)
    write(tmp_path / "visits.csv", ["b"])
    assert clinic.erase_check("visits", SECRET) == there
    (tmp_path / "visits.csv").unlink()
    monkeypatch.setattr(DuckDB, "read", lambda *_: pytest.fail("data were read"))
    assert clinic.erase_check("visits", SECRET) == there


def test_an_id_that_somebody_wrote_into_a_query_is_found(clinic: Curator) -> None:
    assert told(clinic.erase_check("visits", SECRET), "ledger").remedy == "Nothing."
    clinic.ask(f"SELECT COUNT(*) AS n FROM visits WHERE patient <> '{SECRET}' AND age > 3", epsilon=1)
    charge = next(entry.sequence for entry in clinic.entries() if entry.kind == "charge")
    for spelled in (SECRET, f" {SECRET} "):
        found = told(clinic.erase_check("visits", spelled), "ledger")
        assert (found.place, "cannot be changed" in found.remedy) == (f"1 entries: {charge}", True)
    assert told(clinic.erase_check("visits", "A"), "ledger").place.startswith("1 entries")  # a declared key


def test_a_long_list_of_keys_is_searched(tmp_path: Path) -> None:
    curator = Curator.for_tests(str(tmp_path / "book"), bits=SeededBits(1))
    path = write(tmp_path / "visits.csv", ["a"])
    keys = {"ward": [f"ward {place:09}" + "x" * 50 for place in range(20_000)]}
    curator.protect(str(path), name="visits", types=TYPES, keys=keys, **DECLARED)
    assert "1 entries" in told(curator.erase_check("visits", keys["ward"][777]), "ledger").place
    assert told(curator.erase_check("visits", "ward 777"), "ledger").remedy == "Nothing."


def test_an_id_of_another_type_has_no_rows(clinic: Curator) -> None:
    assert (
        "no row, because patient holds whole numbers"
        in told(clinic.erase_check("codes", "x1"), "frame in memory").holds
    )
    for whole in ("12", "-3", 5):
        assert "rows with the id" in told(clinic.erase_check("codes", whole), "frame in memory").holds


def test_units_of_every_kind_have_words(tmp_path: Path) -> None:
    curator = Curator.for_tests(str(tmp_path / "book"), bits=SeededBits(1))
    budget = Budget(epsilon=1)
    columns = {"patient": [1], "ward": ["A"], "visit": [7]}
    curator.protect(pa.table(columns), name="rows", budget=budget)
    curator.protect(pa.table(columns), name="pairs", unit=("patient", "ward"), max_rows=1, budget=budget)
    curator.protect(pa.table(columns), name="visits", unit="patient", max_rows=1, budget=budget)
    linked = pa.table({"visit": [7]})
    curator.protect(linked, name="notes", unit="visit -> visits.visit", max_rows=1)
    expected = {
        "rows": "each row is one person",
        "pairs": "in patient or ward",
        "visits": "rows whose visit is visits.visit",
    }
    for table, words in expected.items():
        assert words in str(curator.erase_check(table, "1"))


def test_states_of_streams_are_listed(tmp_path: Path) -> None:
    curator = Curator.for_tests(str(tmp_path / "book"), bits=SeededBits(1))
    days = pa.table({"patient": [1, 2], "day": [dt.date(2026, 1, 1)] * 2})
    curator.protect(days, name="visits", unit="patient", max_rows=1, budget=Budget(epsilon=10))
    assert "stream states" not in str(curator.erase_check("visits", 1))
    sql = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
    curator.stream(sql, every="day", horizon=3, epsilon=1, start="2026-01-01", periods=1).release()
    places = [place.place for place in curator.erase_check("visits", 1).places if place.kind == "stream states"]
    assert places[0] == str(tmp_path / "book.streams")
    assert Path(places[0]).is_dir()
    assert "other files" in places[1]


def test_what_may_stay_is_counted(clinic: Curator) -> None:
    for place in range(3):
        clinic.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age > {place}", epsilon=1)
    kept = {one.kind: one.count for one in clinic.erase_check("visits", SECRET).kept}
    assert kept == {"stored releases": 3, "charges": 3}


def test_an_erasure_leaves_answers_free(clinic: Curator, tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits"
    before = clinic.ask(sql, epsilon=1)
    write(tmp_path / "visits.csv", ["b"])
    after = clinic.ask(sql, epsilon=1)
    assert (after.replayed, after.records) == (True, before.records)
