"""Long lists of declared keys: a digest and their number in the declaration, the keys themselves once in the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DeclarationChanged, InvalidParameter, LedgerError, LedgerTampered
from discreet.ledger import AnchoredLedger, Ledger, changes, stewardship
from discreet.ledger.entry import digest
from discreet.ledger.redeclaration import differences, keys_place, named_keys
from discreet.ledger.serialization import canonical
from discreet.ledger.store import sqlite
from discreet.privacy import Budget
from tests.ledger.ledgers import PATIENTS, TENTH, opened, tamper
from tests.ledger.test_chain import thawed
from tests.ledger.test_redeclaration import column, declared
from tests.ledger.test_service_acts import version

KEYS = canonical([f"ward {number}" for number in range(1000)]).encode()
OTHERS = canonical([f"ward {number}" for number in range(1, 1001)]).encode()


def named(block: bytes, count: int | None = None) -> dict[str, Any]:
    """What stands for a list of keys in a declaration."""
    return {"count": len(json.loads(block)) if count is None else count, "digest": digest(block)}


def in_wards(block: bytes = KEYS, count: int | None = None) -> str:
    return declared(ward={**column("text"), "keys": named(block, count)})


def attach(ledger: Ledger, declaration: str, *blocks: bytes, table: str = "visits", **told: Any) -> None:
    kept = {digest(block): block for block in blocks}
    usual: dict[str, Any] = {"account": "patients", "version": "1", "blocks": kept.__getitem__}
    ledger.stewardship.attach(table, declaration=declaration, **usual | told)


def kept(ledger: Ledger, block: bytes = KEYS) -> list[bytes]:
    return [stored.payload for stored in ledger.read_answers(keys_place(digest(block)))]


def test_keys_are_kept_once_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with opened(path) as ledger:
        attach(ledger, in_wards(), KEYS)
        attach(ledger, in_wards(), KEYS, table="stays")
        attach(ledger, in_wards(), KEYS, version="2")
    with Ledger(str(path)) as ledger:
        attach(ledger, in_wards(), version="3")  # it is there: nobody writes it again
        assert [entry.kind for entry in ledger.history()] == ["open", "keys", *["attach"] * 4]
        assert kept(ledger) == [KEYS]
        assert ledger.declaration("visits") == in_wards()
        head = ledger.head()
        attach(ledger, in_wards(), version="3")
        assert ledger.verify() == head
    assert path.stat().st_size < 8 * len(KEYS)


def test_an_entry_tells_how_many_keys_there_are_and_their_digest() -> None:
    ledger = opened()
    attach(ledger, in_wards(), KEYS)
    entry = ledger.history()[1]
    assert entry.content == {"count": 1000, "digest": digest(KEYS), "replay_key": keys_place(digest(KEYS))}
    assert (entry.account, entry.who, entry.about) == ("patients", "owner", 0)
    assert named_keys(in_wards()) == {digest(KEYS): 1000}
    assert named_keys(declared()) == {}


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE answers SET payload = CAST(replace(payload, 'ward 7', 'ward 8') AS BLOB)", "list of keys was changed"),
        ("UPDATE answers SET charge = -9", "list of keys was changed"),
        ("UPDATE answers SET replay_key = 'keys:'", "list of keys was changed"),
        ("DELETE FROM answers", "list of keys is missing"),
        ("UPDATE entries SET body = replace(body, '1000', '1001') WHERE kind = 'keys'", "does not match its hash"),
        ("UPDATE states SET text = replace(text, '1000', '1001') WHERE scope = 'keys'", "does not match its seal"),
    ],
)
def test_altered_keys_are_found(tmp_path: Path, statement: str, said: str) -> None:
    path = tmp_path / "ledger"
    with opened(path) as ledger:
        attach(ledger, in_wards(), KEYS)
    tamper(path, statement)
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered, match=said):
        ledger.verify()


def test_altered_keys_are_not_given(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with opened(path) as ledger:
        attach(ledger, in_wards(), KEYS)
    tamper(path, "UPDATE answers SET payload = CAST('[]' AS BLOB)")
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered):
        kept(ledger)


def test_a_check_that_forgets_keys_would_miss_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    with opened(path) as ledger:
        attach(ledger, in_wards(), KEYS)
    tamper(path, "UPDATE answers SET payload = CAST('[]' AS BLOB)")
    monkeypatch.setattr("discreet.ledger.journal._check_block", lambda _, blocks: next(blocks))
    with Ledger(str(path)) as ledger:
        ledger.verify()  # so that it is this check that finds the others


@pytest.mark.parametrize(
    ("declaration", "blocks"),
    [(in_wards(), ()), (in_wards(), (OTHERS,)), (in_wards(count=999), (KEYS,))],
    ids=["none", "others", "fewer"],
)
def test_keys_that_the_declaration_does_not_name_are_refused(declaration: str, blocks: tuple[bytes, ...]) -> None:
    ledger, head = (made := opened()), made.head()
    with pytest.raises(InvalidParameter, match="keys"):
        attach(ledger, declaration, *blocks)
    assert ledger.head() == head


def test_another_list_under_a_digest_is_refused() -> None:
    ledger, head = (made := opened()), made.head()
    with pytest.raises(InvalidParameter, match="to be those that the declaration names"):
        attach(ledger, in_wards(), blocks=lambda _: OTHERS)
    assert ledger.head() == head


def test_too_long_lists_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stewardship, "LONGEST_BLOCK", len(KEYS) - 1)
    ledger = opened()
    with pytest.raises(InvalidParameter, match="Declare fewer or shorter keys"):
        attach(ledger, in_wards(), KEYS)


def test_a_declaration_names_no_keys_that_the_ledger_does_not_hold() -> None:
    ledger = opened()
    body = {"declaration": in_wards(), "table": "visits", "version": ""}
    with ledger._journal.writing() as rows:
        entry = rows.add("attach", body, who="owner", account="patients")
        with pytest.raises(LedgerTampered, match="keys that the ledger does not hold"):
            changes.apply(rows, entry)


# ------------------------------------------------------------------------------------------------------ declared anew


def test_a_difference_tells_how_many_keys_there_are() -> None:
    fewer = declared(ward={**column("text"), "keys": named(OTHERS, 900)})
    short = declared(ward=column("text", keys=json.loads(KEYS)))
    assert differences(in_wards(), in_wards(OTHERS)) == ("keys of ward: 1000 keys -> other 1000 keys",)
    assert differences(in_wards(), fewer) == ("keys of ward: 1000 keys -> 900 keys",)
    assert differences(declared(), in_wards()) == ("keys of ward: A, B -> 1000 keys",)
    assert differences(in_wards(), declared(ward=column("text"))) == ("keys of ward: 1000 keys -> none",)
    assert differences(in_wards(), short) == differences(short, in_wards()) == ()  # written otherwise, and the same


def test_many_listed_keys_are_compared_at_once() -> None:
    many = declared(ward=column("text", keys=[str(number) for number in range(20_000)]))
    more = declared(ward=column("text", keys=[str(number) for number in range(1, 20_001)]))
    assert differences(many, more) == ("keys of ward: added 20000", "keys of ward: removed 0")


def test_a_steward_replaces_long_lists(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with opened(path) as ledger:
        attach(ledger, in_wards(), KEYS)
        with pytest.raises(DeclarationChanged, match="1000 keys -> other 1000 keys"):
            attach(ledger, in_wards(OTHERS), OTHERS)
        attach(ledger, in_wards(OTHERS), OTHERS, replacing=in_wards())
        attach(ledger, in_wards(), replacing=in_wards(OTHERS))  # the first list is still there
        assert [entry.kind for entry in ledger.history()] == ["open", "keys", "attach", "keys", "attach", "attach"]
        assert kept(ledger) == [KEYS]
        assert kept(ledger, OTHERS) == [OTHERS]
        ledger.verify()


# ------------------------------------------------------------------------------------------------- versions and copies


def test_a_ledger_becomes_a_newer_one_with_its_first_long_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = thawed(tmp_path)
    before = version(path)
    with Ledger(str(path)) as ledger:
        anchor, account = ledger.head(), ledger.accounts()[0]
        ledger.stewardship.attach("shifts", account=account, declaration=declared())
        ledger.verify()
    assert version(path) == before == 1  # nothing in it that old code does not know
    with Ledger(str(path)) as ledger:
        attach(ledger, in_wards(), KEYS, table="stays", account=account)
        ledger.charge(account, TENTH)
        ledger.verify()
        ledger.check_anchor(anchor)
    assert version(path) == 5
    monkeypatch.setattr(sqlite, "VERSION", 4)
    with pytest.raises(LedgerError, match=r"newer version \(schema 5\). Upgrade discreet"):
        Ledger(str(path))


@pytest.mark.parametrize("take", [Ledger.backup, Ledger.move], ids=["backup", "move"])
def test_copies_hold_the_keys(tmp_path: Path, take: Callable[[Ledger, str], object]) -> None:
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    with opened(path) as ledger:
        attach(ledger, in_wards(), KEYS)
        take(ledger, str(copy))
    with Ledger(str(copy), read_only=True) as ledger:
        assert kept(ledger) == [KEYS]
        ledger.verify()
    assert version(copy) == 5


def test_an_anchored_ledger_opens_again(tmp_path: Path) -> None:
    path, anchor = str(tmp_path / "ledger"), str(tmp_path / "anchor")
    with AnchoredLedger(path, anchor_file=anchor) as ledger:
        ledger.stewardship.open_account("patients", unit=PATIENTS, budget=Budget(epsilon=1))
        attach(ledger, in_wards(), KEYS)
        ledger.charge("patients", TENTH)
    with AnchoredLedger(path, anchor_file=anchor) as ledger:
        attach(ledger, in_wards())
        assert kept(ledger) == [KEYS]
        ledger.verify()
