"""What explains a question admits like what asks it: the same people, and the same budgets are told to be too small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.errors import (
    AccountLocked,
    DiscreetError,
    InsufficientBudget,
    InvalidParameter,
    NotPermitted,
    QueryFailed,
)
from discreet.learn.persistence import store
from discreet.ledger import FAILURE_CREDITS
from discreet.privacy import Budget, Loss
from discreet.sql.frame import count
from tests.cases import every
from tests.curator.spies import COUNT, Spy, clinic, filtered
from tests.learn.tiny import TINY, TinyClassifier

WARD = "SELECT age, charge, ward FROM visits"
LOOKS: dict[str, Callable[..., Any]] = {
    "explain": lambda curator, **who: curator.explain(COUNT, epsilon="0.5", **who),
    "rehearse": lambda curator, **who: curator.rehearse(COUNT, **who),
    "choose_epsilon": lambda curator, **who: curator.choose_epsilon(COUNT, [1], **who),
    "plan_fit": lambda curator, **who: curator.plan_fit(TinyClassifier(epsilon="0.5"), WARD, target="ward", **who),
    "a frame's explain": lambda curator, **who: curator.table("visits").agg(n=count()).explain(epsilon="0.5", **who),
    "a frame's rehearse": lambda curator, **who: curator.table("visits").agg(n=count()).rehearse(**who),
}
BUYS: dict[str, Callable[..., Any]] = {
    "explain": lambda curator, **who: curator.ask(COUNT, epsilon="0.5", **who),
    "plan_fit": lambda curator, **who: curator.fit(TinyClassifier(epsilon="0.5"), WARD, target="ward", **who),
    "a frame's explain": lambda curator, **who: curator.table("visits").agg(n=count()).ask(epsilon="0.5", **who),
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learners small enough for a test."""
    monkeypatch.setattr(store, "kinds", lambda: dict(TINY))


def spied(budget: Loss | None = None) -> tuple[Curator, Spy]:
    spy = Spy()
    return clinic(budget or Budget(epsilon=2), engine=spy), spy


@pytest.mark.parametrize("look", LOOKS)
def test_who_may_not_ask_is_told_nothing(look: str) -> None:
    curator, spy = spied()
    assert LOOKS[look](curator, analyst="anybody") is not None
    curator.appoint("ana", "analyst", account="visits")
    curator.appoint("otto", "auditor", account="visits")
    head = curator.verify()
    assert LOOKS[look](curator, analyst="ana") is not None
    for stranger in ("bob", "otto"):
        with pytest.raises(NotPermitted):
            LOOKS[look](curator, analyst=stranger)
    with pytest.raises(InvalidParameter):
        LOOKS[look](curator, analyst="")
    assert (spy.reads, curator.verify()) == (0, head)


@pytest.mark.parametrize("look", BUYS)
def test_a_project_without_a_share_is_told_nothing(look: str) -> None:
    curator, _ = spied()
    with pytest.raises(NotPermitted):
        LOOKS[look](curator, project="asthma")
    curator.allot("asthma", account="visits", cap=Budget(epsilon=1))
    assert LOOKS[look](curator, project="asthma").refusal is None


def used_up(curator: Curator, _spy: Spy) -> None:
    curator.ask(filtered(1), epsilon="1.75")


def capped(curator: Curator, _spy: Spy) -> None:
    curator.appoint("ana", "analyst", account="visits", cap=Budget(epsilon="0.25"))


def allotted(curator: Curator, _spy: Spy) -> None:
    curator.allot("asthma", account="visits", cap=Budget(epsilon="0.25"))


def locked(curator: Curator, spy: Spy) -> None:
    spy.before = lambda: 1 / 0
    for age in range(FAILURE_CREDITS):
        with pytest.raises(QueryFailed):
            curator.ask(filtered(age), epsilon="0.01", analyst="ana")


@every("look", BUYS)
@every(
    ("change", "kind"),
    [
        (used_up, InsufficientBudget),
        (capped, InsufficientBudget),
        (allotted, InsufficientBudget),
        (locked, AccountLocked),
    ],
)
def test_what_would_be_refused_is_explained_with_the_refusal(
    look: str, change: Callable[[Curator, Spy], None], kind: type[DiscreetError]
) -> None:
    curator, spy = spied()
    curator.allot("asthma", account="visits", cap=Budget(epsilon=2))
    who = {"analyst": "ana", "project": "asthma"}
    assert LOOKS[look](curator, **who).refusal is None
    change(curator, spy)
    before, head = spy.reads, curator.verify()
    told = LOOKS[look](curator, **who)
    with pytest.raises(kind) as refused:
        BUYS[look](curator, **who)
    assert told.refusal == str(refused.value)
    assert "would be refused" in str(told)
    assert (spy.reads, curator.verify()) == (before, head)


def test_what_is_free_is_not_refused() -> None:
    curator, _ = spied()
    curator.ask(COUNT, epsilon="0.5")
    used_up_by = Budget(epsilon="0.5")
    curator.amend("visits", budget=used_up_by)
    told = curator.explain(COUNT, epsilon="0.5")
    assert told.refusal is None
    assert told.free is not None
    assert curator.ask(COUNT, epsilon="0.5").replayed
    assert curator.explain(filtered(1), epsilon="0.5").refusal is not None


def test_caps_are_shown_beside_what_remains() -> None:
    curator, _ = spied()
    capped(curator, Spy())
    allotted(curator, Spy())
    curator.ask(filtered(1), epsilon="0.125", analyst="ana", project="asthma")
    told = curator.explain(COUNT, epsilon="0.125", analyst="ana", project="asthma")
    assert {who: str(left.loss) for who, left in told.caps.items()} == {
        "analyst ana": "epsilon=0.125",
        "project asthma": "epsilon=0.125",
    }
    assert (str(told.remaining.loss), told.refusal) == ("epsilon=1.875", None)
    assert "analyst ana: 50 % left" in str(told)
    assert curator.explain(COUNT, epsilon="0.125").caps == {}


def test_a_frame_asks_for_a_project() -> None:
    curator, _ = spied()
    allotted(curator, Spy())
    curator.table("visits").agg(n=count()).ask(epsilon="0.25", project="asthma")
    assert str(curator.balance("visits", project="asthma").spent) == "epsilon=0.25"
