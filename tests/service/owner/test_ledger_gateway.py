"""What a worker can and cannot ask of the ledger."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from discreet.curator.catalog.declared_limits import limits_place
from discreet.errors import InternalError, InvalidParameter, LedgerError, NotPermitted
from discreet.ledger import Ledger, Receipt
from discreet.ledger.entry import digest
from discreet.ledger.outcomes import read_receipt, write_receipt
from discreet.ledger.redeclaration import keys_place
from discreet.ledger.serialization import canonical, with_body
from discreet.privacy import PureDP, events
from discreet.service.owner.ledger_gateway import LedgerGateway
from discreet.service.worker.ledger_client import LedgerClient
from discreet.service.worker.messages import read_header, read_stored, write_stored
from tests.service.owner.clinics import kinds, ledger_of_ana

EVENT = events.to_json(events.Pure("0.1"))
CHARGE = {"events_by_account": {"visits": EVENT}, "question": "{}", "replay_key": "", "terms": None}


@pytest.fixture
def ledger() -> Ledger:
    return ledger_of_ana()


def door(ledger: Ledger, **more: object) -> LedgerGateway:
    return LedgerGateway(ledger, analyst="ana", spending=True, **more)  # type: ignore[arg-type]


def test_who_is_charged_was_decided_before(ledger: Ledger) -> None:
    """A worker that is not ours could name anybody: the names have no place in a call."""
    with pytest.raises(TypeError):
        door(ledger).serve("charge", {**CHARGE, "analyst": "owner"})
    receipt = read_receipt(door(ledger, key="k1").serve("charge", CHARGE))
    (entry,) = [each for each in ledger.history() if each.kind == "charge"]
    assert (entry.who, entry.key, receipt.analyst) == ("ana", "k1", "ana")


def test_the_text_of_a_question_reaches_the_ledger(ledger: Ledger) -> None:
    read_receipt(door(ledger).serve("charge", {**CHARGE, "sql": "SELECT COUNT(*) FROM visits"}))
    assert ledger.history()[-1].content["sql"] == "SELECT COUNT(*) FROM visits"
    ledger.verify()


def test_receipts_stay_with_the_owner(ledger: Ledger) -> None:
    other = ledger.charge("visits", events.Pure("0.1"), analyst="ana")
    mine = door(ledger)
    for method in ("fail", "answer", "claim", "interrupt"):
        with pytest.raises(InternalError):
            mine.serve(method, {"sequence": other.sequence})
    with pytest.raises(InternalError):
        mine.serve("store_answer", {"sequence": other.sequence, "replay_key": "", "payload": "{}"})
    assert kinds(ledger)[-1] == "charge"


@pytest.mark.parametrize(
    "method", ["verify", "history", "stewardship", "__init__", "close", "_own", "appoint", "attach"]
)
def test_nothing_else_passes(ledger: Ledger, method: str) -> None:
    with pytest.raises(InternalError):
        door(ledger).serve(method, {})


def test_long_lists_of_keys_come_with_the_declaration_of_a_steward(ledger: Ledger) -> None:
    class Direct:
        """A channel whose other end answers at once."""

        def send(self, message: dict[str, Any]) -> None:
            message = json.loads(json.dumps(message))
            self._reply = {"value": steward.serve(message["call"], message["with"])}

        def receive(self) -> dict[str, Any]:
            return self._reply

    ledger.stewardship.appoint("sue", "steward")
    steward, keys = LedgerGateway(ledger, analyst="sue", steward=True), canonical(["A", "é"]).encode()
    column = {"bounds": None, "keys": {"count": 2, "digest": digest(keys)}, "type": "text"}
    told = canonical({"columns": {"ward": column}, "limits": [1, 1], "name": "wards", "unit": None})
    client = LedgerClient(Direct(), steward=True)  # type: ignore[arg-type]
    client.stewardship.attach("wards", account="visits", declaration=told, blocks={digest(keys): keys}.__getitem__)
    assert kinds(ledger)[-2:] == ["keys", "attach"]
    assert [kept.payload for kept in client.read_answers(keys_place(digest(keys)))] == [keys]
    assert door(ledger).serve("read_headers", {"start": "", "most": 100}) == []  # they are nobody's answer
    ledger.verify()


def test_planning_cannot_charge(ledger: Ledger) -> None:
    with pytest.raises(InternalError):
        LedgerGateway(ledger, analyst="ana").serve("charge", CHARGE)


def test_an_account_for_which_nobody_was_appointed_answers_nobody(ledger: Ledger) -> None:
    for method, told in (
        ("admit", {"account": "staff"}),
        ("charge", {**CHARGE, "events_by_account": {"staff": EVENT}}),
    ):
        with pytest.raises(NotPermitted, match="No analysts are appointed"):
            door(ledger).serve(method, told)
    assert LedgerGateway(ledger, analyst="owner").serve("admit", {"account": "staff"})


def test_two_accounts_are_charged_together_for_who_may_ask_on_both(ledger: Ledger) -> None:
    both = {**CHARGE, "events_by_account": {"visits": EVENT, "staff": EVENT}}
    with pytest.raises(NotPermitted):
        door(ledger).serve("charge", both)
    assert "charge" not in kinds(ledger)
    ledger.stewardship.appoint("ana", "analyst", account="staff")
    used = door(ledger)
    receipt = read_receipt(used.serve("charge", both))
    assert [entry.account for entry in ledger.history() if entry.kind == "charge"] == ["staff", "visits"]
    assert receipt.account == "staff"
    assert used.close(failed=True)
    assert [ledger.balance(account).failures for account in ("visits", "staff")] == [1, 1]
    ledger.verify()


def test_the_event_of_all_that_was_released_reaches_the_ledger(ledger: Ledger) -> None:
    used = door(ledger)
    receipt = read_receipt(used.serve("charge", CHARGE))
    beside = {"sequence": receipt.sequence, "replay_key": "p", "payload": "{}", "question": "{}"}
    used.serve("store_beside", beside)
    (kept,) = used.serve("all_beside", {"sequence": receipt.sequence})
    assert read_stored(kept).replay_key == "p"
    assert used.serve("read_released_event", {"sequence": receipt.sequence}) == EVENT
    told = events.to_json(events.Composed([events.Pure("0.05"), events.Pure("0.05")]))
    answer = {"sequence": receipt.sequence, "replay_key": "r", "payload": "{}", "event": told}
    used.serve("store_answer", answer)
    assert used.serve("read_released_event", {"sequence": receipt.sequence}) == told
    assert read_stored(used.serve("read_answers", {"replay_key": "r"})[0]).event == told


def test_a_header_comes_alone_and_its_answer_when_it_is_opened(ledger: Ledger) -> None:
    used = door(ledger)
    receipt = read_receipt(used.serve("charge", CHARGE))
    payload = with_body({"n": 1}, {"noisy": "é" * 10_000})
    used.serve("store_answer", {"sequence": receipt.sequence, "replay_key": "r:1", "payload": payload})
    told = used.serve("read_headers", {"start": "r:", "most": 100})
    assert len(json.dumps(told)) < 1000
    (header,) = [read_header(one) for one in told]
    assert header == ledger.read_headers("r:")[0]
    stored = used.serve("read_answer", {"place": list(header.place)})
    assert read_stored(stored).payload.decode() == payload
    with pytest.raises(LedgerError):  # a worker knows an answer by its replay key
        used.serve("read_answer", {"place": [header.place.sequence, header.place.charge, "other", header.place.hash]})


def test_a_closed_door_lets_nothing_pass(ledger: Ledger) -> None:
    shut = door(ledger)
    shut.close(failed=True)
    with pytest.raises(LedgerError):
        shut.serve("charge", CHARGE)
    assert "charge" not in kinds(ledger)


@pytest.mark.parametrize(("failed", "entry"), [(True, "fail"), (False, "interrupt")])
def test_open_charges_get_an_end(ledger: Ledger, failed: bool, entry: str) -> None:
    left = door(ledger)
    left.serve("charge", CHARGE)
    assert left.has_charged
    assert not left.has_all_outcomes
    assert left.close(failed=failed)
    assert kinds(ledger)[-1] == entry


def test_an_answer_that_is_stored_ends_its_charge(ledger: Ledger) -> None:
    used = door(ledger)
    receipt = read_receipt(used.serve("charge", CHARGE))
    used.serve("store_answer", {"sequence": receipt.sequence, "replay_key": "r", "payload": '{"n":1}'})
    assert used.has_all_outcomes
    assert not used.close(failed=True)
    assert ledger.balance("visits", analyst="ana").failures == 0


def test_a_charge_under_its_key_is_claimed_once(ledger: Ledger) -> None:
    """Its runner is gone: whoever comes with the same key runs it, for the same charge."""
    door(ledger, key="k").serve("charge", CHARGE)
    again = door(ledger, key="k")
    assert again.serve("is_charged", {})
    repeated = read_receipt(again.serve("charge", CHARGE))
    assert (repeated.repeated, again.has_all_outcomes) == (True, True)  # not ours to end
    claimed = read_receipt(again.serve("claim", {"sequence": repeated.sequence}))
    assert (claimed.claim, again.has_all_outcomes) == (1, False)
    assert kinds(ledger).count("charge") == 1


def test_messages_are_exact(ledger: Ledger) -> None:
    receipt: Receipt = ledger.charge("visits", events.Pure("1/3"), analyst="ana")
    assert read_receipt(write_receipt(receipt)) == receipt
    ledger.store_answer(receipt, "r", '{"n":"é"}')
    (stored,) = ledger.read_answers("r")
    assert read_stored(write_stored(stored)) == stored


def test_whoever_asks_learns_of_nobody_else(ledger: Ledger) -> None:
    ledger.stewardship.appoint("ben", "analyst", account="visits")
    assert door(ledger).serve("role", {"account": "visits", "who": "ben"}) is None
    assert door(ledger).serve("role", {"account": "visits", "who": "ana"}) == "analyst"
    assert door(ledger).serve("analyst_cap", {"account": "visits", "analyst": "ben"}) == {"epsilon": "1/1"}  # ana's


def test_crumbs_are_refused_whatever_the_request_called_them(ledger: Ledger) -> None:
    crumb = events.to_json(events.Pure("0.0001"))
    mine = door(ledger, least=Fraction(1, 1000))
    with pytest.raises(InvalidParameter, match="epsilon"):
        mine.serve("charge", {**CHARGE, "events_by_account": {"visits": crumb}})
    assert "charge" not in kinds(ledger)
    mine.serve("charge", {**CHARGE, "events_by_account": {"visits": events.to_json(events.Pure("0.001"))}})


LIMITED = '{"columns":{},"limits":{"private":"1/10"},"name":"stays","unit":"id"}'


def test_limits_are_charged_to_the_account_at_the_price_that_was_declared(ledger: Ledger) -> None:
    """Whoever asks first has them found: their own cap is not touched, and what a worker says decides nothing."""
    ledger.stewardship.attach("stays", account="visits", declaration=LIMITED, version="1")
    place = limits_place(LIMITED, "1", "add_remove")
    told = {"account": "visits", "question": "{}", "replay_key": place, "terms": "1/10 0", "sql": "", "asked": "1/10"}
    told["key"] = place
    first, again = (read_receipt(door(ledger, key="k").serve("charge_limits", told)) for _ in range(2))
    assert (first.analyst, first.event, first.repeated, again.repeated) == ("owner", events.Pure("0.1"), False, True)
    assert [(entry.who, entry.key) for entry in ledger.history() if entry.kind == "charge"] == [("owner", place)]
    assert ledger.balance("visits", analyst="ana").spent == PureDP(0)
    unknown = limits_place(LIMITED, "2", "add_remove")
    for other in ({"replay_key": unknown, "key": unknown}, {"replay_key": "limits:", "key": "limits:"}, {"key": "k"}):
        with pytest.raises(InternalError):
            door(ledger).serve("charge_limits", told | other)
    with pytest.raises(NotPermitted):
        door(ledger).serve("charge_limits", told | {"account": "staff"})
    with pytest.raises(InternalError):
        LedgerGateway(ledger, analyst="ana").serve("charge_limits", told)
    assert kinds(ledger).count("charge") == 1
