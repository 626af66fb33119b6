"""A ledger with entries of every kind, in every currency, and all that is paid; two accounts have caps and projects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from discreet.errors import InsufficientBudget, LedgerTampered
from discreet.ledger import AnchoredLedger, Head, Ledger
from discreet.ledger.anchor.recovery import restore_anchored
from discreet.ledger.entry import digest
from discreet.ledger.renewal.clock import read_machine_clock
from discreet.ledger.serialization import canonical
from discreet.ledger.stewardship import DataOrigin, Stewardship
from discreet.ledger.store import ledger_store
from discreet.privacy import Budget, Loss, Unit, events
from tests.curator.paid_verbs import VERBS, hospital

CURRENCIES: dict[str, tuple[Loss, Loss]] = {
    "pure": (Budget(epsilon=2), Budget(epsilon=1)),
    "approximate": (Budget(epsilon=2, delta="1e-6"), Budget(epsilon=1, delta="1e-7")),
    "concentrated": (Budget(rho=2), Budget(rho=1)),
}
"""Accounts: a budget, and the cap of an analyst and of a project."""

PAID = {"ask", "ask with private bounds", "ask_many", "profile", "fit", "synthesize by independent"}
_CHARGES = (events.Pure("1/8"), events.Laplace(8), events.Pure("1/16"))


@contextmanager
def every_entry(folder: Path) -> Iterator[Ledger]:
    """Writes the ledger in a folder, loses its end, restores it, and opens what was restored."""
    lost, copy, anchor, file = (str(folder / name) for name in ("lost", "copy", "anchor", "clinic.ledger"))
    with AnchoredLedger(lost, anchor_file=anchor) as ledger:
        _use_curator(ledger)
        for name in CURRENCIES:
            _use_account(ledger, name)
        _use_calendar(ledger)
        _freeze_and_resume(ledger)
        ledger.backup(copy)
        ledger.charge("approximate", events.Gaussian(16), analyst="ana", project="flu", question="{}")
    restore_anchored(copy, file, anchor_file=anchor, accept_loss=True, note="the disk broke")
    with AnchoredLedger(file, anchor_file=anchor) as ledger:
        ledger.charge("pure", events.Pure("1/32"), analyst="ben", question="{}")
        yield ledger


def _use_curator(ledger: Ledger) -> None:
    """Everything that is paid, once more for free, refused, and a stream."""
    curator = hospital(ledger)
    for verb in VERBS:
        if verb.name in PAID:
            verb.call(curator, key=verb.name)
            verb.call(curator)  # stored: no entry
    with pytest.raises(InsufficientBudget):  # no entry, either
        curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1000)
    days = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
    curator.stream(days, every="day", horizon=3, epsilon=1, start="2026-01-01", periods=2).release()


def _use_account(ledger: Ledger, name: str) -> None:
    """Caps, charges of each kind, a failure, a retry, amendments, a renewal and a credit that is given back."""
    (budget, cap), acts = CURRENCIES[name], ledger.stewardship
    acts.open_account(name, unit=Unit("person", "id"), budget=budget)
    acts.appoint("ana", "analyst", account=name, cap=cap)
    acts.appoint("ben", "analyst", account=name)
    acts.appoint("sue", "steward", account=name)
    acts.allot("flu", account=name, cap=cap, note="agreed")
    acts.record("make key", about="ana", by="owner", facts={"key": "k1"})
    for event in _CHARGES:
        ledger.charge(name, event, analyst="ana", project="flu", question="{}", sql="SELECT COUNT(*) FROM elsewhere")
    acts.renew(name, note="a new year")
    acts.amend(name, budget=budget * 2, note="more people")
    acts.allot("flu", account=name, cap=cap * 2)
    for event in _CHARGES:
        ledger.charge(name, event, analyst="ben", question="{}")
    ledger.fail(ledger.charge(name, events.Pure("1/8"), analyst="ben", question="{}"))
    acts.unlock(name, note="looked into")
    ledger.fail(ledger.charge(name, events.Pure("1/8"), analyst="ben", project="flu", question="{}"))
    _retry(ledger, name)
    _declare_keys(acts, name)
    _advance(ledger, name)
    _use_caps(ledger, name)


def _use_caps(ledger: Ledger, name: str) -> None:
    """A team with a calendar, an amount set aside, and a query beyond a cap."""
    caps = ledger.caps
    team = Budget(rho=1, per="day") if name == "concentrated" else Budget(epsilon=1, per="day")
    caps.set_team("heart", account=name, cap=team, members=["ben"], note="agreed")
    caps.claim_teams("cid", ["heart"], account=name)
    caps.reserve("weekly", account=name, budget=Budget(epsilon="1/4"), analyst="ben", note="for the board")
    ledger.charge(name, events.Pure("1/16"), analyst="ben", reserve="weekly", question="{}")
    caps.give_back("weekly", account=name)
    caps.reserve("monthly", account=name, budget=Budget(epsilon="1/8"))
    ledger.charge(name, events.Pure("1/16"), reserve="monthly", question="{}")
    caps.require_approvals(name, count=1)
    dan = Budget(rho="1/10000") if name == "concentrated" else Budget(epsilon="1/100")
    ledger.stewardship.appoint("dan", "analyst", account=name, cap=dan)
    told = {"replay_key": "k", "sql": "SELECT COUNT(*) AS n FROM elsewhere", "asked": "1/16", "reason": "a paper"}
    asked = caps.request_approval(name, events.Pure("1/16"), analyst="dan", **told)
    caps.approve(asked.number, by="sue", note="fine")
    ledger.charge(name, events.Pure("1/16"), analyst="dan", replay_key="k", question="{}")


def _use_calendar(ledger: Ledger) -> None:
    """An account that renews, and a clock in doubt."""
    acts = ledger.stewardship
    acts.open_account("monthly", unit=Unit("person", "id"), budget=Budget(epsilon=1, per="month"))
    ledger.charge("monthly", events.Pure("1/8"), question="{}")
    with pytest.MonkeyPatch.context() as patch:
        honest = read_machine_clock
        patch.setattr(ledger_store, "read_machine_clock", lambda: honest()._replace(doubt="it was set"))
        ledger.charge("monthly", events.Pure("1/8"), question="{}")
    acts.renew("monthly", note="the clock is right")
    ledger.charge("monthly", events.Pure("1/8"), question="{}")


def _declare_keys(acts: Stewardship, account: str) -> None:
    """A list of keys that stands beside its declaration, as long ones do."""
    keys = canonical(["A", "B"]).encode()
    column = {"bounds": None, "keys": {"count": 2, "digest": digest(keys)}, "type": "text"}
    told = {"columns": {"ward": column}, "limits": [1, 1], "name": account, "unit": None}
    blocks = {digest(keys): keys}.__getitem__
    acts.attach(f"wards of {account}", account=account, declaration=canonical(told), blocks=blocks)


def _advance(ledger: Ledger, account: str) -> None:
    """A table in a file, which moves on to other data."""
    origin = DataOrigin.of({f"/{account}.csv": f"1:{account}"}, None)
    told = canonical({"columns": {}, "limits": [1, 1], "name": account, "unit": None})
    ledger.stewardship.attach(f"stays of {account}", account=account, declaration=told, version="1", origin=origin)
    ledger.versions.advance(f"stays of {account}", version="2", note="the next file")


def _retry(ledger: Ledger, account: str) -> None:
    """A charge whose runner stopped, and that somebody runs again under its key."""
    given = {"analyst": "ana", "question": "{}", "key": f"again {account}"}
    ledger.interrupt(ledger.charge(account, events.Pure("1/16"), **given))
    claimed = ledger.claim(ledger.charge(account, events.Pure("1/16"), **given))
    assert claimed is not None
    ledger.store_answer(claimed, f"replay {account}", "{}")


def _freeze_and_resume(ledger: Ledger) -> None:
    with pytest.raises(LedgerTampered):
        ledger.check_anchor(Head(1, "f" * 64))
    ledger.resume(note="it was another ledger's")
