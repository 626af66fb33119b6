"""Mistakes in paying for a release: when and whom it charges, what it says it released, what it shows, and to whom."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from discreet.curator import paid_release as module
from discreet.curator.paid_release import STORED, ChargeRun
from discreet.errors import KeyConflict, QueryFailed
from discreet.ledger import Caller, Ledger, charges, outcomes
from discreet.privacy import events
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.curator.plain_release import ANA, BOTH, PlainRelease, kinds, ledger_of


def _released(paid: PlainRelease, show: Callable[[Any], Any] | None = None) -> Any:
    with suppress(QueryFailed):
        return module.release_once(paid.ledger, paid, ANA, show or paid.show)
    return None


def _header(ledger: Ledger) -> list[str | None]:
    return [entry.content.get("event") for entry in ledger.history() if entry.kind == "answer"][-1:]


def _stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@catcher("the ledger when rows are read")
def all_accounts_are_charged_before_anything_is_read() -> None:
    paid, seen = PlainRelease(ledger_of(), BOTH), list[Any]()
    paid.before = lambda: seen.append(kinds(paid.ledger))
    _released(paid)
    assert seen == [[("charge", "patients"), ("charge", "shop")]]


@catcher("budgets of two accounts")
def every_account_of_a_release_is_charged() -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    _released(paid)
    assert [str(paid.ledger.balance(account).spent) for account in BOTH] == ["epsilon=1", "epsilon=1"]


@catcher("budgets of two accounts")
def a_failure_counts_on_every_account() -> None:
    paid = PlainRelease(ledger_of(), BOTH, before=lambda: 1 / 0)
    _released(paid)
    assert [paid.ledger.balance(account).failures for account in BOTH] == [1, 1]


@catcher("the header of an answer")
def an_answer_reports_what_its_probes_released() -> None:
    probe, rest = events.Pure("1/4"), events.Pure("1/2")
    paid = PlainRelease(ledger_of(), probes={"bounds": probe}, releases=rest)
    _released(paid)
    assert _header(paid.ledger) == [events.to_json(events.Composed([probe, rest]))]


@catcher("the header of an answer")
def an_answer_reports_what_interrupted_runs_released() -> None:
    probe, rest = events.Pure("1/4"), events.Pure("1/2")
    paid = PlainRelease(ledger_of(), probes={"bounds": probe}, releases=rest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "store_answer", _stop)
        with pytest.raises(KeyboardInterrupt):
            _released(paid)
    paid.probes = {}
    _released(paid)
    assert _header(paid.ledger) == [events.to_json(events.Composed([probe, rest]))]


@catcher("the price of a release")
def no_release_costs_more_than_its_charge() -> None:
    paid = PlainRelease(ledger_of(), BOTH, releases=events.Pure("1001/1000"))
    _released(paid)
    assert not paid.ledger.read_answers(f"release of {paid.question}")


@catcher("the price of a release")
def no_probe_costs_more_than_its_charge() -> None:
    paid = PlainRelease(ledger_of(), probes={"bounds": events.Pure(1), "limits": events.Pure("1/8")})
    _released(paid)
    assert not paid.ledger.read_answers("limits")


@catcher("the notes of Ctrl-C")
def an_interrupted_answer_reports_that_it_is_stored() -> None:
    paid = PlainRelease(ledger_of())
    with pytest.raises(KeyboardInterrupt) as caught:
        _released(paid, _stop)
    assert STORED in getattr(caught.value, "__notes__", ())


@catcher("one key, two requests")
def a_key_answers_one_request() -> None:
    ledger = ledger_of()
    _released(PlainRelease(ledger))
    other, found = PlainRelease(ledger, question='{"sum":1}'), None
    with suppress(KeyConflict):
        found = _released(other)
    assert (found, other.seen) == (None, [])


@catcher("one key, two requests")
def a_key_belongs_to_one_caller() -> None:
    ledger = ledger_of()
    stopped = PlainRelease(ledger, before=_stop)
    with pytest.raises(KeyboardInterrupt):
        _released(stopped)
    other = PlainRelease(ledger)
    assert module.release_once(ledger, other, Caller(analyst="ben", key="k"), lambda bought: bought.cost) is not None
    assert str(ledger.balance("patients", analyst="ben").spent) == "epsilon=1"


# ------------------------------------------------------------------------------------------------------------- mistakes


def _reads_first(ledger: Ledger, paid: Any, caller: Caller, show: Callable[[Any], Any]) -> Any:
    accounts = paid.request.accounts
    unpaid: Any = SimpleNamespace(event=paid.request.event, claim=0)
    made = paid.execute(ChargeRun(ledger, unpaid, accounts))
    with module.charge_request(ledger, paid.request, caller) as receipt:
        kept = ChargeRun(ledger, receipt, accounts).end(made)
        return show(None if kept is None else paid.read(kept))


def _shows_outside(ledger: Ledger, paid: Any, caller: Caller, show: Callable[[Any], Any]) -> Any:
    with module.charge_request(ledger, paid.request, caller) as receipt:
        bought = module._obtain_result(ledger, paid, receipt)
    return show(bought)


def _first_account_only(patch: pytest.MonkeyPatch) -> None:
    right = Ledger.charge_all

    def charge_all(ledger: Ledger, parts: Any, **how: Any) -> Any:
        return right(ledger, dict([next(iter(parts.items()))]), **how)

    patch.setattr(Ledger, "charge_all", charge_all)


def _of_any_caller(patch: pytest.MonkeyPatch) -> None:
    right = charges.earlier

    def earlier(rows: Any, asked: Any) -> Any:
        who = next((entry.who for entry in rows.entries() if entry.key == asked.key), asked.who)
        return right(rows, asked._replace(who=who))

    patch.setattr(charges, "earlier", earlier)
    patch.setattr(outcomes, "require_admission", lambda *_: None)


MUTANTS = [
    Mutant(
        "rows before the charge",
        "A release reads data and adds noise first, and is charged only when it is stored.",
        setting(module, "release_once", _reads_first),
        all_accounts_are_charged_before_anything_is_read,
    ),
    Mutant(
        "one of two accounts",
        "A release about people of two accounts is charged only to the first account.",
        _first_account_only,
        every_account_of_a_release_is_charged,
    ),
    Mutant(
        "failures of the first account",
        "A release on two accounts that fails uses up a failure credit on only one of them.",
        setting(outcomes, "find_joined_charges", lambda _rows, charge: (charge,)),
        a_failure_counts_on_every_account,
    ),
    Mutant(
        "a header without probes",
        "An answer reports what it released itself, but leaves out what its probes released.",
        setting(ChargeRun, "total", lambda _run, event: event),
        an_answer_reports_what_its_probes_released,
    ),
    Mutant(
        "a header of the last run",
        "An answer leaves out what interrupted runs released before it.",
        setting(ChargeRun, "_read_stored_events", lambda _run: {}),
        an_answer_reports_what_interrupted_runs_released,
    ),
    Mutant(
        "more than was paid for",
        "What a run released is not compared with its charge.",
        setting(ChargeRun, "_require_paid", lambda *_: None),
        no_release_costs_more_than_its_charge,
    ),
    Mutant(
        "probes beyond the charge",
        "What probes released before the answer is not compared with the charge.",
        setting(ChargeRun, "_require_paid", lambda *_: None),
        no_probe_costs_more_than_its_charge,
    ),
    Mutant(
        "shown outside of the charge",
        "An answer is shown after its charge is closed, so an interruption does not report that it is stored.",
        setting(module, "release_once", _shows_outside),
        an_interrupted_answer_reports_that_it_is_stored,
    ),
    Mutant(
        "a key for every request",
        "A different request with the same idempotency key gets the answer of the first.",
        setting(charges.PricedRequest, "is_of", lambda *_: True),
        a_key_answers_one_request,
    ),
    Mutant(
        "keys of others",
        "Anyone who knows a person's idempotency key can run their charge.",
        _of_any_caller,
        a_key_belongs_to_one_caller,
    ),
]
