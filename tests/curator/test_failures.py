"""Questions that fail after their charge: who is stopped by them, and who is not."""

from __future__ import annotations

import pytest

from discreet.errors import AccountLocked, QueryFailed
from discreet.learn import DecisionTreeClassifier
from discreet.ledger import FAILURE_CREDITS, OWNER
from discreet.privacy import Budget, events
from tests.curator.spies import COUNT, Broken, Spy, clinic, filtered

BUDGET = Budget(epsilon=3, delta=1e-6)


def test_an_engine_that_fails_stops_whoever_asked_and_nobody_else() -> None:
    curator = clinic(BUDGET, engine=Broken())
    for analyst in ("ana", "ben"):
        curator.appoint(analyst, "analyst", account="visits")
    for age in range(FAILURE_CREDITS):
        with pytest.raises(QueryFailed):
            curator.ask(filtered(age), epsilon=0.1, analyst="ana")
    with pytest.raises(AccountLocked, match=r"unlock\('visits'\)"):
        curator.ask(COUNT, epsilon=0.1, analyst="ana")
    with pytest.raises(AccountLocked):
        curator.fit(DecisionTreeClassifier(epsilon=0.1), "SELECT age, ward FROM visits", target="ward", analyst="ana")
    for analyst in ("ben", OWNER):
        with pytest.raises(QueryFailed):  # the engine is still broken, but they are let in
            curator.ask(filtered(9), epsilon=0.1, analyst=analyst)
    assert curator.balance("visits").stopped == ("ana",)
    curator.unlock("visits", note="the disk was full")
    assert not curator.balance("visits", analyst="ana").locked
    curator.verify()


def test_credits_that_run_out_meanwhile_do_not_stop_a_question_that_was_let_in() -> None:
    spy = Spy()
    curator = clinic(BUDGET, engine=spy, bounds={})

    def use_up() -> None:
        if spy.reads == 1:  # while bounds are being found, which are remembered by an entry of their own
            curator._ledger.fail(
                *(curator._ledger.charge("visits", events.Pure("0.01")) for _ in range(FAILURE_CREDITS))
            )

    spy.before = use_up
    assert not curator.ask("SELECT AVG(age) AS a FROM visits", epsilon=2).replayed
    assert curator.budget("visits").failures == FAILURE_CREDITS
    with pytest.raises(AccountLocked):
        curator.ask(COUNT, epsilon=0.1)
