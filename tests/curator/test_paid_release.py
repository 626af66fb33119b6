"""One paid release: the order of its steps, all of its accounts, its event and its price, its keys, and interrupts."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from discreet.curator import paid_release
from discreet.curator.paid_release import AGAIN, LOST, STAYS, STORED, PricedResult, costs_no_more, release_once
from discreet.errors import (
    AccountLocked,
    InsufficientBudget,
    InvalidParameter,
    KeyConflict,
    LedgerError,
    NotPermitted,
    QueryFailed,
    RunsUsedUp,
)
from discreet.ledger import FAILURE_CREDITS, Caller, Ledger, Receipt
from discreet.ledger.outcomes import MOST_RUNS
from discreet.privacy import Budget, PureDP, events
from tests.curator.paid_verbs import VERBS, PaidVerb, hospital
from tests.curator.plain_release import ANA, BOTH, PlainRelease, kinds, ledger_of

pytestmark = pytest.mark.usefixtures("ctrl_c")

QUICK = {verb.name for verb in VERBS if verb.name.startswith(("ask", "profile"))} | {"synthesize by independent"}


def released(paid: PlainRelease, caller: Caller = ANA) -> Any:
    return release_once(paid.ledger, paid, caller, paid.show)


def stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def stopped_when_all_was_drawn(paid: PlainRelease) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "store_answer", stop)
        with pytest.raises(KeyboardInterrupt):
            released(paid)


def spent(ledger: Ledger) -> list[str]:
    return [str(ledger.balance(account).spent) for account in ledger.accounts()]


def stopped(paid: PlainRelease, caller: Caller = ANA) -> list[str]:
    """Stops a release while it reads, and returns what is told to whoever did."""
    paid.before = stop
    with pytest.raises(KeyboardInterrupt) as caught:
        released(paid, caller)
    paid.before = lambda: None
    return list(caught.value.__notes__)


# ---------------------------------------------------------------------------------------------------------- the order


def test_all_accounts_are_charged_before_anything_is_read_and_it_is_stored_before_it_is_shown() -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    seen: list[Any] = []
    paid.before = lambda: seen.append(kinds(paid.ledger))

    def show(bought: PricedResult[str]) -> str:
        seen.append(kinds(paid.ledger))
        return bought.result

    assert release_once(paid.ledger, paid, ANA, show) == "run 0"
    charges = [("charge", "patients"), ("charge", "shop")]
    assert seen == [charges, [*charges, ("answer", "patients")]]
    assert paid.seen == ["find", "prepare", "read", "stored"]


def test_what_is_found_is_shown_for_nothing_and_to_others_too() -> None:
    """The replay key is the account's."""
    paid = PlainRelease(ledger_of())
    first = released(paid)
    for caller in (Caller(analyst="ben", key="k"), Caller(analyst="ana")):
        again = released(paid, caller)
        assert (again.result, again.cost, again.found) == (first.result, None, True)
    assert (first.cost.details, first.found, paid.seen.count("read")) == (PureDP(1), False, 1)


def test_what_is_refused_for_public_reasons_is_refused_before_the_charge() -> None:
    paid = PlainRelease(ledger_of(), refuses=InvalidParameter("x", 1, "to be 2"))
    with pytest.raises(InvalidParameter):
        released(paid)
    assert (kinds(paid.ledger), paid.seen) == ([], ["find", "prepare"])


def test_who_may_not_ask_on_one_account_is_not_even_given_what_is_stored() -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    released(paid)
    paid.ledger.stewardship.appoint("ana", "analyst", account="shop")
    with pytest.raises(NotPermitted):
        released(paid, Caller(analyst="ben"))
    assert released(paid, Caller(analyst="ana")).found


# ------------------------------------------------------------------------------------------------------- all accounts


def test_two_accounts_are_charged_in_full() -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    released(paid)
    assert spent(paid.ledger) == ["epsilon=1", "epsilon=1"]
    paid.ledger.verify()


def test_if_one_account_cannot_pay_none_is_charged_and_nothing_is_read() -> None:
    ledger = ledger_of(budgets={"patients": Budget(epsilon=10), "shop": Budget(epsilon="1/2")})
    paid = PlainRelease(ledger, BOTH)
    with pytest.raises(InsufficientBudget):
        released(paid)
    assert (kinds(ledger), spent(ledger)) == ([], ["epsilon=0", "epsilon=0"])
    assert "read" not in paid.seen


def test_a_failure_uses_up_a_credit_on_all_accounts() -> None:
    ledger = ledger_of()
    for place in range(FAILURE_CREDITS):
        paid = PlainRelease(ledger, BOTH, question=f'{{"count":{place}}}', before=lambda: 1 / 0)
        with pytest.raises(QueryFailed):
            released(paid, Caller(analyst="ana"))
    assert [ledger.balance(account).failures for account in BOTH] == [FAILURE_CREDITS] * 2
    for account in BOTH:
        with pytest.raises(AccountLocked):
            released(PlainRelease(ledger, (account,), question='{"count":9}'), Caller(analyst="ana"))
    ledger.verify()


@pytest.mark.parametrize("account", BOTH)
def test_a_stopped_release_is_not_run_again_after_one_of_its_accounts_was_renewed(account: str) -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    stopped(paid)
    paid.ledger.stewardship.renew(account)
    with pytest.raises(LedgerError, match="renewed"):
        released(paid)
    assert "read" not in paid.seen


@pytest.mark.parametrize("account", BOTH)
def test_a_stopped_release_is_not_run_again_by_who_was_locked_out_of_one_account(account: str) -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    stopped(paid)
    for _ in range(FAILURE_CREDITS):
        paid.ledger.fail(paid.ledger.charge(account, events.Pure("1/100"), analyst="ana"))
    with pytest.raises(AccountLocked):
        released(paid)
    assert "read" not in paid.seen


# ------------------------------------------------------------------------------------------------- event and its price


def header(ledger: Ledger) -> events.Event:
    """What the last answer says that was released."""
    last = ledger.history()[-1]
    assert last.kind == "answer"
    (charge,) = [entry for entry in ledger.history() if entry.sequence == last.about]
    return events.from_json(last.content.get("event") or charge.content["event"])


def test_the_header_holds_the_event_of_all_that_was_released() -> None:
    probes = {"bounds": events.Pure("1/4"), "limits": events.Pure("1/8")}
    paid = PlainRelease(ledger_of(), probes=probes, releases=events.Pure("1/2"))
    released(paid)
    parts = [events.Pure("1/4"), events.Pure("1/8"), events.Pure("1/2")]
    assert header(paid.ledger) == events.Composed(parts)
    assert paid.ledger.read_answers(f"release of {paid.question}")[0].event == events.to_json(events.Composed(parts))


def test_what_an_interrupted_run_released_is_in_the_header_of_the_next() -> None:
    """Also if the next finds the fact known, and does not probe."""
    paid = PlainRelease(ledger_of(), probes={"bounds": events.Pure("1/4")}, releases=events.Pure("1/2"))
    stopped_when_all_was_drawn(paid)
    paid.probes = {}
    released(paid)
    assert header(paid.ledger) == events.Composed([events.Pure("1/4"), events.Pure("1/2")])


def test_a_release_that_costs_more_than_its_charge_is_not_stored() -> None:
    paid = PlainRelease(ledger_of(), BOTH, releases=events.Pure("1001/1000"))
    with pytest.raises(QueryFailed):
        released(paid)
    assert kinds(paid.ledger) == [("charge", "patients"), ("charge", "shop"), ("fail", "patients"), ("fail", "shop")]
    assert not paid.ledger.read_answers(f"release of {paid.question}")


def test_probes_count_for_the_price() -> None:
    paid = PlainRelease(ledger_of(), probes={"bounds": events.Pure("1/2")}, releases=events.Pure("3/4"))
    with pytest.raises(QueryFailed):
        released(paid)
    assert not paid.ledger.read_answers(f"release of {paid.question}")
    assert paid.ledger.read_answers("bounds")  # the charge has paid for it


def test_a_probe_that_costs_more_than_the_charge_is_not_stored() -> None:
    paid = PlainRelease(ledger_of(), probes={"bounds": events.Pure(1), "limits": events.Pure("1/8")})
    with pytest.raises(QueryFailed):
        released(paid)
    assert (len(paid.ledger.read_answers("bounds")), paid.ledger.read_answers("limits")) == (1, ())


def test_what_earlier_runs_kept_counts_for_the_price() -> None:
    paid = PlainRelease(ledger_of(), probes={"bounds": events.Pure("1/2")}, releases=events.Pure("1/2"))
    stopped_when_all_was_drawn(paid)
    paid.probes, paid.releases = {}, events.Pure("3/4")
    with pytest.raises(QueryFailed):
        released(paid)


def test_the_price_is_compared_on_all_accounts() -> None:
    """A release that costs as much in epsilon may cost more in rho."""
    ledger = ledger_of(budgets={"patients": Budget(epsilon=10), "shop": Budget(rho=10)})
    charged = events.Composed([events.Pure("1/2"), events.Pure("1/2")])
    paid = PlainRelease(ledger, ("patients",), event=charged, releases=events.Pure(1))
    assert released(paid).result == "run 0"
    paid = PlainRelease(ledger, BOTH, event=charged, releases=events.Pure(1), question='{"count":2}')
    with pytest.raises(QueryFailed):
        released(paid, Caller(analyst="ana", key="another"))


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, id=str(verb), marks=[] if verb.name in QUICK else [pytest.mark.slow]) for verb in VERBS]
)
def test_every_verb_says_what_it_released_and_releases_no_more_than_its_charge(verb: PaidVerb) -> None:
    with hospital() as curator:
        verb.call(curator, key="k")
        ledger = curator._ledger
        (charge,) = [entry for entry in ledger.history() if entry.kind == "charge" and entry.key]
        receipt = Receipt.again(charge, ledger.admit("patients", "owner"))
        told, kept = ledger.read_released_event(receipt), ledger.all_beside(receipt)
        assert costs_no_more(told, receipt.event, ledger.account("patients"))
        beside = [one for one in map(paid_release._event_of, (one.payload for one in kept)) if one is not None]
        assert bool(beside) is verb.beside
        if beside:
            assert isinstance(told, events.Composed)
            assert told.events[:-1] == tuple(beside)
            assert (told.events[-1] == paid_release.NOTHING) is (verb.name == "ask_many")


@pytest.mark.parametrize("name", ["ask with private bounds", "ask with private limits", "ask with a profile"])
def test_an_answer_that_is_given_again_says_all_that_was_released_for_it(name: str) -> None:
    (verb,) = [verb for verb in VERBS if verb.name == name]
    with hospital() as curator:
        first = verb.call(curator, key="k")
        assert len(first.event.events) > 1
        for key in ("k", None):
            again = verb.call(curator, key=key)
            assert (again.replayed, again.event) == (True, first.event)


# ------------------------------------------------------------------------------------------------------------- keys


def test_the_same_request_under_a_key_is_charged_once() -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    released(paid)
    again = released(paid)
    assert (again.cost, again.found, paid.seen.count("read"), paid.seen.count("find")) == (None, False, 1, 1)
    assert spent(paid.ledger) == ["epsilon=1", "epsilon=1"]


def test_another_request_under_a_key_is_refused_whether_or_not_it_is_stored() -> None:
    ledger = ledger_of()
    released(PlainRelease(ledger, question='{"count":2}'), Caller(analyst="ben"))
    first = PlainRelease(ledger)
    released(first)
    entries = len(ledger.history())
    others = [PlainRelease(ledger, question='{"count":2}'), PlainRelease(ledger, BOTH), PlainRelease(ledger, ("shop",))]
    for other in others:
        with pytest.raises(KeyConflict):
            released(other)
        assert other.seen == []
    assert len(ledger.history()) == entries


def test_a_key_is_its_callers_own() -> None:
    ledger = ledger_of()
    stopped(PlainRelease(ledger))
    other = PlainRelease(ledger)
    assert released(other, Caller(analyst="ben", key="k")).cost.details == PureDP(1)
    assert spent(ledger)[0] == "epsilon=2"


# -------------------------------------------------------------------------------------------------------- interrupts


def test_a_stop_while_it_reads_says_that_the_charge_stays() -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    assert stopped(paid) == [STAYS, AGAIN]
    assert stopped(PlainRelease(paid.ledger, question='{"count":2}'), Caller(analyst="ana")) == [STAYS, LOST]
    assert released(paid).result == "run 1"
    assert spent(paid.ledger) == ["epsilon=2", "epsilon=1"]


def test_a_stop_while_it_is_shown_says_that_it_is_stored() -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    with pytest.raises(KeyboardInterrupt) as caught:
        release_once(paid.ledger, paid, ANA, stop)
    assert caught.value.__notes__ == [STAYS, STORED]
    assert released(paid).result == "run 0"


def test_a_release_of_two_accounts_is_run_three_times() -> None:
    paid = PlainRelease(ledger_of(), BOTH)
    for _ in range(MOST_RUNS):
        stopped(paid)
    with pytest.raises(RunsUsedUp):
        released(paid)
    assert spent(paid.ledger) == ["epsilon=1", "epsilon=1"]


def test_a_fault_while_it_is_stored_shows_nothing_that_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Error reporters print the variables of frames."""
    paid = PlainRelease(ledger_of())
    monkeypatch.setattr(Ledger, "store_answer", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        released(paid)
    found = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert not any("run 0" in value for frame in found.stack for value in (frame.locals or {}).values())


def test_a_fault_while_it_is_shown_keeps_its_frames() -> None:
    def show(bought: PricedResult[str]) -> None:
        raise ValueError(bought.result)

    paid = PlainRelease(ledger_of())
    with pytest.raises(ValueError, match="run 0") as caught:
        release_once(paid.ledger, paid, ANA, show)
    assert "show" in {frame.name for frame in traceback.extract_tb(caught.value.__traceback__)}
