"""A release of nobody's data, to see `release_once` at work: what it does, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.curator.paid_release import ChargedRelease, ChargeRequest, ChargeRun, ReleaseOutcome
from discreet.ledger import Caller, Ledger
from discreet.privacy import Budget, Loss, Unit, events
from discreet.privacy.events import Event

ANA = Caller(analyst="ana", key="k")
BOTH = ("patients", "shop")


def ledger_of(*, budgets: Mapping[str, Loss] | None = None) -> Ledger:
    """A ledger of two accounts."""
    ledger = Ledger()
    for account, budget in (budgets or dict.fromkeys(BOTH, Budget(epsilon=10))).items():
        ledger.stewardship.open_account(account, unit=Unit("person"), budget=budget)
    return ledger


def kinds(ledger: Ledger) -> list[tuple[str, str]]:
    """What is in a ledger after its accounts were opened."""
    return [(entry.kind, entry.account) for entry in ledger.history() if entry.kind != "open"]


@dataclass
class PlainRelease:
    """A release that says what happens to it.

    Args:
        ledger: the ledger.
        accounts: which pay.
        event: what is charged.
        releases: what is released in fact; the event unless given.
        probes: what is kept on the way, by replay key.
        question: what is asked.
        before: is called before anything is read.
        refuses: what is raised before the charge.
    """

    ledger: Ledger
    accounts: tuple[str, ...] = ("patients",)
    event: Event = field(default_factory=lambda: events.Pure(1))
    releases: Event | None = None
    probes: Mapping[str, Event] = field(default_factory=dict)
    question: str = '{"count":1}'
    before: Callable[[], object] = lambda: None
    refuses: Exception | None = None
    seen: list[str] = field(default_factory=list)
    stage: str = "Reading"

    @property
    def request(self) -> ChargeRequest:
        return ChargeRequest(
            accounts=self.accounts, event=self.event, question=self.question, replay_key="planned", terms="1"
        )

    def find(self) -> str | None:
        self.seen.append("find")
        found = self.ledger.read_answers(f"release of {self.question}")
        return json.loads(found[-1].payload)["result"] if found else None

    def prepare(self) -> None:
        self.seen.append("prepare")
        if self.refuses is not None:
            raise self.refuses

    def execute(self, run: ChargeRun) -> ReleaseOutcome:
        self.before()
        self.seen.append("read")
        for key, event in self.probes.items():
            run.keep(key, written(event, "a probe"), event=event, question='{"probe":1}')
        made = self.event if self.releases is None else self.releases
        payload = written(made, f"run {run.receipt.claim}")
        return ReleaseOutcome(event=made, replay_key=f"release of {self.question}", payload=payload)

    def read(self, kept: ChargedRelease) -> str | None:
        self.seen.append("stored")
        return str(json.loads(kept.payload)["result"])

    def show(self, bought: Any) -> Any:
        self.seen.append("show")
        return bought


def written(event: Event, result: str) -> str:
    """Returns what is kept of a release."""
    return json.dumps({"event": events.to_json(event), "result": result})
