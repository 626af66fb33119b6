"""A table declared anew: what may change is an entry with its difference, who is protected never changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DeclarationChanged, InvalidParameter, LedgerTampered, NotPermitted
from discreet.ledger import Ledger, changes, redeclaration, stewardship
from discreet.ledger.redeclaration import describe_attachment, differences
from discreet.ledger.serialization import canonical
from discreet.ledger.stewardship import DataOrigin
from discreet.privacy import Budget
from tests.ledger.ledgers import PATIENTS, opened


def column(kind: str = "int", bounds: list[str] | None = None, keys: list[Any] | None = None) -> dict[str, Any]:
    return {"type": kind, "bounds": bounds, "keys": keys}


def declared(unit: Any = "patient", limits: tuple[int, int] = (1, 1), **columns: dict[str, Any]) -> str:
    """A declaration as a curator writes it; one of `columns` may take the place of a usual one."""
    usual = {"patient": column("text"), "age": column(bounds=["0", "120"]), "ward": column("text", keys=["A", "B"])}
    kept = {name: told for name, told in (usual | columns).items() if told}
    return canonical({"columns": kept, "limits": list(limits), "name": "visits", "unit": unit})


FIRST = declared()
WIDER = declared(age=column(bounds=["0", "200"]))


def clinic(path: str | Path = ":memory:", declaration: str = FIRST) -> Ledger:
    ledger = opened(path)
    ledger.stewardship.attach("visits", account="patients", declaration=declaration, version="1")
    return ledger


def attach(ledger: Ledger, declaration: str, replacing: str | None = FIRST, **told: Any) -> None:
    told = {"account": "patients", "version": "1"} | told
    ledger.stewardship.attach("visits", declaration=declaration, replacing=replacing, **told)


# ------------------------------------------------------------------------------------------------------- what is shown


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (FIRST, []),
        (WIDER, ["bounds of age: 0 to 120 -> 0 to 200"]),
        (declared(age=column()), ["bounds of age: 0 to 120 -> none"]),
        (declared(age=column("float", ["0", "120"])), ["type of age: int -> float"]),
        (
            declared(age=column("float", ["1/2", "120"])),
            ["type of age: int -> float", "bounds of age: 0 to 120 -> 0.5 to 120"],
        ),
        (declared(limits=(3, 2)), ["max_groups: 1 -> 3", "max_rows: 1 -> 2"]),
        (declared(age={}), ["column age (int): removed"]),
        (declared(pain=column(bounds=["0", "10"])), ["column pain (int): added", "bounds of pain: 0 to 10"]),
        (declared(sex=column("text", keys=["F", "M"])), ["column sex (text): added", "keys of sex: F, M"]),
        (declared(ward=column("text", keys=["A", "C"])), ["keys of ward: added C", "keys of ward: removed B"]),
        (declared(ward=column("text", keys=["B", "A"])), ["keys of ward: in another order"]),
        (declared(ward=column("text")), ["keys of ward: A, B -> none"]),
        (
            declared(ward=column("text", keys=["A", "B", "x, y", "", "new\nline"])),
            ['keys of ward: added "x, y", "", "new\\nline"'],
        ),
        (
            declared(day=column("date", ["737425", "737790"])),
            ["column day (date): added", "bounds of day: 2020-01-01 to 2020-12-31"],
        ),
        (
            declared(at=column("timestamp", ["737425", "1475581/2"])),
            ["column at (timestamp): added", "bounds of at: 2020-01-01 to 2020-12-31T12:00:00"],
        ),
        (declared(unit=None), ["unit: patient -> each row"]),
        (declared(unit=["patient", "ward"]), ["unit: patient -> patient, ward"]),
    ],
)
def test_the_difference_is_told_line_by_line(after: str, told: list[str]) -> None:
    assert list(differences(FIRST, after)) == told


def test_keys_of_other_types_are_other_keys_and_long_lists_are_cut() -> None:
    before = declared(ward=column("int", keys=[0, 1]))
    after = declared(ward=column("bool", keys=[False, True]))
    assert "keys of ward: added false, true" in differences(before, after)
    many = declared(ward=column("text", keys=["A", "B", *map(str, range(20))]))
    assert differences(FIRST, many) == ("keys of ward: added 0, 1, 2, 3, 4, 5, 6, 7 and 12 more",)


def test_what_a_later_version_declares_is_told() -> None:
    after = canonical(json.loads(FIRST) | {"more": 1})
    assert differences(FIRST, after) == ("more: null -> 1",)


# ----------------------------------------------------------------------------------------------------- what is entered


def test_a_change_is_one_entry_that_tells_what_it_replaces() -> None:
    ledger = clinic()
    before = ledger.head().sequence
    attach(ledger, WIDER, version="2")
    assert ledger.head().sequence == before + 1
    entry = ledger.history("patients")[-1]
    assert (entry.kind, entry.content["before"], entry.content["declaration"]) == ("attach", FIRST, WIDER)
    assert describe_attachment(entry.content) == "visits 2, new declaration: bounds of age: 0 to 120 -> 0 to 200"
    assert ledger.declaration("visits") == WIDER
    assert ledger.origins()["visits"]["versions"] == ["1", "2"]
    attach(ledger, WIDER, None, version="2")  # again, also by somebody who knows nothing of a change
    attach(ledger, WIDER, FIRST, version="2")
    assert ledger.verify().sequence == before + 1
    attach(ledger, FIRST, WIDER)
    assert (ledger.declaration("visits"), ledger.verify().sequence) == (FIRST, before + 2)


@pytest.mark.parametrize("replacing", [None, "", declared(limits=(9, 9)), WIDER])
def test_nobody_replaces_what_they_have_not_seen(replacing: str | None) -> None:
    ledger = clinic()
    head = ledger.head()
    with pytest.raises(DeclarationChanged) as caught:
        attach(ledger, WIDER, replacing)
    assert caught.value.table == "visits"
    assert caught.value.differences == ("bounds of age: 0 to 120 -> 0 to 200",)
    assert caught.value.name == "declaration"
    assert ledger.head() == head


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (FIRST, declared(unit="ward"), "unit"),
        (FIRST, declared(unit=None), "unit"),
        (FIRST, declared(unit=["patient", "ward"]), "unit"),
        (FIRST, declared(unit=["patient -> people.id"]), "unit"),
        (declared(unit=None), FIRST, "unit"),
        (FIRST, declared(patient=column("int")), "types['patient']"),
        (FIRST, declared(patient={}), "types['patient']"),
        (declared(unit=["patient", "ward"]), declared(unit=["ward", "patient"]), "unit"),
        (declared(unit=["patient", "ward"]), declared(unit=["patient", "ward"], ward=column("int")), "types['ward']"),
        (declared(unit=["ward -> people.id"]), declared(unit=["ward -> people.id"], ward=column()), "types['ward']"),
        (declared(unit=["ward -> people.id"]), declared(unit=["ward -> staff.id"]), "unit"),
    ],
)
def test_who_is_protected_never_changes(before: str, after: str, name: str) -> None:
    ledger = clinic(declaration=before)
    head = ledger.head()
    with pytest.raises(InvalidParameter) as caught:
        attach(ledger, after, before)
    assert caught.value.name == name
    assert not isinstance(caught.value, DeclarationChanged)
    assert ledger.head() == head


def test_a_way_over_a_table_holds_its_key() -> None:
    """Items find their people by orders.id: read as another type, they would be other people's."""
    ledger = clinic(declaration=declared(id=column("text")))
    items = {"columns": {"order": column("text")}, "limits": [1, 1], "name": "items", "unit": ["order -> visits.id"]}
    ledger.stewardship.attach("items", account="patients", declaration=canonical(items))
    for after in (declared(id=column("int")), declared(id={})):
        with pytest.raises(InvalidParameter, match="items") as caught:
            attach(ledger, after, declared(id=column("text")))
        assert caught.value.name == "types['id']"
    wider = declared(id=column("text"), age=column(bounds=["0", "200"]))
    attach(ledger, wider, declared(id=column("text")))
    assert ledger.declaration("visits") == wider


def test_account_and_identity_never_change() -> None:
    ledger = opened()
    ledger.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon=1))
    first = DataOrigin.of({"/a.csv": "1"}, "visits of 2026")
    ledger.stewardship.attach("visits", account="patients", declaration=FIRST, origin=first)
    for change in ({"account": "staff"}, {"origin": DataOrigin.of(None, "other visits")}):
        head = ledger.head()
        with pytest.raises(InvalidParameter) as caught:
            attach(ledger, WIDER, **change)
        assert caught.value.name in change or caught.value.name == "identity"
        assert ledger.head() == head
    attach(ledger, WIDER, version="2", origin=DataOrigin.of({"/b.csv": "2"}, None))
    assert ledger.origins()["visits"]["files"] == {"/a.csv": "1", "/b.csv": "2"}
    assert ledger.origins()["visits"]["identity"] == "visits of 2026"


def test_only_stewards_declare_anew() -> None:
    ledger = clinic()
    ledger.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon=1))
    ledger.stewardship.appoint("ana", "analyst", account="patients")
    ledger.stewardship.appoint("sue", "steward", account="patients")
    ledger.stewardship.appoint("tom", "steward", account="staff")
    for who in ("ana", "tom", "nobody"):
        with pytest.raises(NotPermitted):
            attach(ledger, WIDER, by=who)
    attach(ledger, WIDER, by="sue")
    assert ledger.history("patients")[-1].who == "sue"


# ------------------------------------------------------------------------------------------------------------ verifying

FORGED = [
    ("told nothing of", WIDER, {}),
    ("told another one", WIDER, {"before": WIDER}),
    ("for other people", declared(unit="ward"), {"before": FIRST}),
    ("other ids", declared(patient=column("int")), {"before": FIRST}),
]


def forge(path: Path, patch: pytest.MonkeyPatch, declaration: str, more: dict[str, str], account: str) -> None:
    """Writes an entry that nobody may write, with a good hash, and the state that follows from it."""
    with clinic(path) as ledger, patch.context() as broken:
        ledger.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon=1))
        broken.setattr(changes, "_check_attachment", lambda *_: None)
        with ledger._journal.acting() as rows:
            body = {"declaration": declaration, "table": "visits", "version": "1", **more}
            changes.apply(rows, rows.add("attach", body, who="owner", account=account))
        ledger.verify()  # by the mistaken code


@pytest.mark.parametrize(("declaration", "more"), [forged[1:] for forged in FORGED], ids=[f[0] for f in FORGED])
def test_verify_finds_a_declaration_that_changed_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declaration: str, more: dict[str, str]
) -> None:
    forge(tmp_path / "book", monkeypatch, declaration, more, "patients")
    with Ledger(str(tmp_path / "book")) as ledger, pytest.raises(LedgerTampered) as caught:
        ledger.verify()
    assert caught.value.sequence == 4


def test_verify_finds_a_table_that_was_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(tmp_path / "book", monkeypatch, FIRST, {}, "staff")
    with Ledger(str(tmp_path / "book")) as ledger, pytest.raises(LedgerTampered, match="account"):
        ledger.verify()


def test_an_earlier_version_of_the_library_reads_the_entry_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rule for "attach" took the entry's declaration and compared nothing; it came to the same state."""
    ledger = clinic()
    attach(ledger, WIDER, version="2")
    monkeypatch.setattr(changes, "_check_attachment", lambda *_: None)
    assert ledger.verify() == ledger.head()


# -------------------------------------------------------------------------------------------------------------- mutants


def check_unit() -> None:
    test_who_is_protected_never_changes(FIRST, declared(patient=column("int")), "types['patient']")


def check_seen() -> None:
    test_nobody_replaces_what_they_have_not_seen(None)


@pytest.mark.parametrize(
    ("module", "name", "check"),
    [
        (stewardship, "check_same_people", check_unit),
        (stewardship, "check_same_people", test_a_way_over_a_table_holds_its_key),
        (stewardship, "require_seen", check_seen),
        (stewardship, "_check_same_account", test_account_and_identity_never_change),
        (redeclaration, "_ways", test_a_way_over_a_table_holds_its_key),
        (redeclaration, "_id_columns", check_unit),
    ],
)
def test_mistakes_are_seen(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, check: Callable[[], None]) -> None:
    monkeypatch.setattr(changes, "_check_attachment", lambda *_: None)  # each line of defence alone
    check()
    monkeypatch.setattr(module, name, lambda *_: ())
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - pytest's own failure is no Exception
        check()
    assert not isinstance(caught.value, KeyboardInterrupt)
