"""A table moves on to other data: an entry, and the version at which each curator asks after it."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DeclarationChanged, InvalidParameter, LedgerTampered, NotPermitted, UnknownTable
from discreet.ledger import Ledger, Role
from discreet.ledger.journal import DeclaredTable
from discreet.ledger.serialization import canonical
from discreet.ledger.stewardship import DataOrigin
from discreet.ledger.store import ledger_store
from tests.ledger.ledgers import opened

FILE = DataOrigin.of({"/visits.csv": "1:2"}, None)
COLUMN = {"bounds": None, "keys": None, "type": "text"}
FIRST = canonical({"columns": {"id": COLUMN}, "limits": [1, 1], "name": "visits", "unit": "id"})
WIDER = canonical({"columns": {"id": COLUMN, "ward": COLUMN}, "limits": [1, 1], "name": "visits", "unit": "id"})


def clinic(path: str | Path = ":memory:", *versions: str, origin: DataOrigin = FILE) -> Ledger:
    ledger = opened(path)
    for version in versions or ("1",):
        ledger.stewardship.attach("visits", account="patients", declaration=FIRST, version=version, origin=origin)
    return ledger


def declared(ledger: Ledger) -> DeclaredTable:
    found = ledger.declared_table("visits")
    assert found is not None
    return found


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
    return int(found)


def test_an_advance_is_one_entry_that_verifies() -> None:
    ledger = clinic()
    before = ledger.head().sequence
    entry = ledger.versions.advance("visits", version="2", note="the file of December")
    assert (entry.sequence, entry.kind, entry.account) == (before + 1, "advance", "patients")
    assert entry.content == {"from": "1", "note": "the file of December", "table": "visits", "version": "2"}
    assert declared(ledger) == DeclaredTable(FIRST, ("1", "2"), "2", {"2": entry.time})
    assert ledger.verify().sequence == before + 1
    told = json.loads(json.dumps(declared(ledger)))
    assert DeclaredTable(told[0], tuple(told[1]), *told[2:]) == declared(ledger)


def test_labels_are_ordered_as_the_ledger_met_them() -> None:
    ledger = clinic(":memory:", "1", "b", "a")
    assert [declared(ledger).current(label) for label in ("1", "b", "a", "x")] == ["1", "b", "a", "x"]
    ledger.versions.advance("visits", version="0")
    assert [declared(ledger).current(label) for label in ("1", "b", "a", "0", "x")] == ["0", "0", "0", "0", "x"]
    ledger.stewardship.attach("visits", account="patients", declaration=FIRST, version="x")  # newer than the advance
    assert [declared(ledger).current(label) for label in ("a", "0", "x")] == ["0", "0", "x"]
    ledger.versions.advance("visits", version="c")
    assert {declared(ledger).current(label) for label in ("1", "b", "a", "0", "x")} == {"c"}
    ledger.verify()


def test_since_when_is_the_time_of_the_entry_that_named_the_version_first() -> None:
    ledger = clinic(":memory:", "1", "2")
    ledger.stewardship.attach("visits", account="patients", declaration=WIDER, version="1", replacing=FIRST)
    first, second, _ = (entry.time for entry in ledger.history("patients") if entry.kind == "attach")
    assert declared(ledger).times == {"1": first, "2": second}
    moved = ledger.versions.advance("visits", version="3")
    assert declared(ledger).times == {"3": moved.time}
    ledger.stewardship.attach("visits", account="patients", declaration=WIDER, version="4")
    assert declared(ledger).times == {"3": moved.time, "4": ledger.history("patients")[-1].time}


def test_a_table_without_a_version_has_no_time_and_moves_on() -> None:
    ledger = clinic(":memory:", "")
    assert declared(ledger).times == {}
    ledger.versions.advance("visits", version="2026-12")
    assert declared(ledger).current("") == "2026-12"
    assert ledger.history("patients")[-1].content["from"] == ""
    ledger.verify()


@pytest.mark.parametrize("label", ["1", "2", "", " 3", "3 ", "\uff11", "x" * 201, "\u200b", "V", "v"])
def test_a_label_that_is_old_or_odd_is_refused_and_another_is_proposed(label: str) -> None:
    ledger = clinic(":memory:", "1", "v")
    ledger.versions.advance("visits", version="2")
    before = ledger.head()
    with pytest.raises(InvalidParameter) as refused:
        ledger.versions.advance("visits", version=label)
    assert refused.value.name == "version"
    assert ledger.head() == before
    proposed = re.search(r"version=(\S+)\.$", str(refused.value.hint))
    assert proposed is not None
    ledger.versions.advance("visits", version=proposed[1])
    ledger.verify()


@pytest.mark.parametrize("label", ["a\nb", "a\x1b[31m", "\u202e1", 3, None])
def test_what_is_no_label_is_refused(label: Any) -> None:
    ledger = clinic()
    with pytest.raises(InvalidParameter):
        ledger.versions.advance("visits", version=label)
    assert declared(ledger).labels == ("1",)


def test_only_a_steward_moves_a_table_on() -> None:
    ledger = clinic()
    ledger.stewardship.appoint("ana", "analyst", account="patients")
    ledger.stewardship.appoint("sue", Role.STEWARD, account="patients")
    before = ledger.head()
    for who in ("ana", "ben"):
        with pytest.raises(NotPermitted):
            ledger.versions.advance("visits", version="2", by=who)
    with pytest.raises(UnknownTable):
        ledger.versions.advance("vists", version="2")
    assert ledger.head() == before
    assert ledger.versions.advance("visits", version="2", by="sue").who == "sue"


def test_a_table_in_memory_stays_as_it_is() -> None:
    ledger = clinic(origin=DataOrigin.of(None, None))
    with pytest.raises(InvalidParameter, match="at this version") as refused:
        ledger.versions.advance("visits", version="2")
    assert refused.value.name == "table"
    ledger.stewardship.attach("visits", account="patients", declaration=FIRST, version="2")  # as the hint says
    assert declared(ledger).labels == ("1", "2")


# ------------------------------------------------------------------------------------------ another declaration with it


def test_another_declaration_can_come_with_a_version() -> None:
    ledger = clinic()
    with pytest.raises(DeclarationChanged):
        ledger.versions.advance("visits", version="2", declaration=WIDER)
    with pytest.raises(DeclarationChanged):
        ledger.versions.advance("visits", version="2", declaration=WIDER, replacing=WIDER)
    others = WIDER.replace('"unit":"id"', '"unit":"ward"')
    with pytest.raises(InvalidParameter, match="unit"):
        ledger.versions.advance("visits", version="2", declaration=others, replacing=FIRST)
    ledger.versions.advance("visits", version="2", declaration=WIDER, replacing=FIRST)
    assert (declared(ledger).declaration, declared(ledger).advanced) == (WIDER, "2")
    ledger.verify()


# ---------------------------------------------------------------------------------------------------------- the chain


@pytest.mark.parametrize(
    "more",
    [
        {"version": "1"},
        {"version": ""},
        {"from": "0"},
        {"table": "nothing"},
        {"declaration": WIDER},
        {"declaration": WIDER, "before": WIDER},
        {"declaration": WIDER.replace('"unit":"id"', '"unit":"ward"'), "before": FIRST},
    ],
    ids=["old", "none", "from another", "no table", "a change unsaid", "another before", "other people"],
)
def test_an_entry_that_no_act_writes_is_found(more: dict[str, str]) -> None:
    ledger = clinic()
    body = {"from": "1", "note": "", "table": "visits", "version": "2"}
    with ledger._journal.acting() as rows:  # as a hostile program would: without the act, and without the state
        rows.require_version(ledger_store.VERSIONS["advance"])
        rows.add("advance", {**body, **more}, who="owner", account="patients")
    with pytest.raises(LedgerTampered):
        ledger.verify()


def test_an_advance_of_another_account_is_found() -> None:
    ledger = clinic()
    with ledger._journal.acting() as rows:
        body = {"from": "1", "note": "", "table": "visits", "version": "2"}
        rows.add("advance", body, who="owner", account="others")
    with pytest.raises(LedgerTampered):
        ledger.verify()


def test_the_first_advance_raises_the_version_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "book"
    with clinic(path) as ledger:
        assert version_of(path) == ledger_store.NEW
        ledger.versions.advance("visits", version="2")
    assert version_of(path) == ledger_store.VERSIONS["advance"] == 7
    with Ledger(str(path), read_only=True) as again:
        assert declared(again).advanced == "2"
        again.verify()


def test_other_processes_see_it_at_once(tmp_path: Path) -> None:
    path = tmp_path / "book"
    with clinic(path) as ledger, Ledger(str(path)) as other:
        assert declared(other).advanced == ""
        ledger.versions.advance("visits", version="2")
        assert declared(other).advanced == "2"
