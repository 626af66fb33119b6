"""An entry of the ledger for people: who did what, when, and what it cost, in the same words on every face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from discreet.dataclass import dataclass
from discreet.ledger import Entry
from discreet.ledger.acts.table_versions import describe_advance
from discreet.ledger.cost import Cost
from discreet.ledger.redeclaration import describe_attachment
from discreet.ledger.serialization import ratio, read_loss
from discreet.presentation.ledger_view.query_text import asked_text, outputs_text
from discreet.privacy import RenewalSchedule
from discreet.report.display import share_spent


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """One entry, as tables, pages and documents show it.

    Attributes:
        sequence: its place in the ledger.
        time: when it was written, in UTC, as the ledger has it.
        kind: "charge", "amend" and so on.
        account: empty for an action on the whole ledger.
        who: who acted.
        project: the project that a charge or a cap is for; empty for none.
        words: what was asked or done, on one line, without the kind.
        sql: the query of a charge as it was written; None if it has none.
        plan: the plan of a charge, as canonical JSON; None for other entries.
        cost: what a charge cost, or what was lost with a ledger and counts as spent; None for other entries.
        share: how far the entry moved the share of the budget that is spent, below 0 where a budget grew; the shares of
            a period add up to what is spent. None for an entry that moves nothing, or of an earlier version.
        paid_by: the charge that paid for this one; 0 if it paid for itself.
        about: the charge whose outcome this is, or 0.
        hash: of the entry, in the chain.
    """

    sequence: int
    time: str
    kind: str
    account: str
    who: str
    project: str
    words: str
    sql: str | None
    plan: str | None
    cost: Cost | None
    share: Fraction | None
    paid_by: int
    about: int
    hash: str

    @property
    def what(self) -> str:
        """Returns the kind and the words, on one line."""
        return f"{self.kind} {self.words}".rstrip()

    @property
    def moment(self) -> str:
        """Returns the time, to the second."""
        return self.time[:19].replace("T", " ")

    @property
    def cost_text(self) -> str:
        """Returns the cost in words, of another budget the percent alone; empty for an entry that moves nothing."""
        if self.cost is not None:
            return self.cost.brief
        return share_spent(self.share) if self.share else ""


def view_entry(entry: Entry) -> EntryView:
    """Returns the view of an entry.

    >>> from discreet.ledger import Ledger
    >>> from discreet.privacy import Budget, Unit, events
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("patients", unit=Unit("patient"), budget=Budget(epsilon=1))
    >>> _ = ledger.charge("patients", events.Pure(0.25), sql="SELECT COUNT(*) FROM visits", question="{}")
    >>> [(one.what, one.cost_text) for one in map(view_entry, ledger.history())]
    [('open with epsilon=1', ''), ('charge SELECT COUNT(*) FROM visits', 'epsilon=0.25, 25 %')]
    """
    content = entry.content
    costs = entry.kind in ("charge", "recover") and content.get("cost") is not None
    return EntryView(
        sequence=entry.sequence,
        time=entry.time,
        kind=entry.kind,
        account=entry.account,
        who=entry.who,
        project=content.get("project") or "",
        words=_words(entry, content),
        sql=content.get("sql"),
        plan=content.get("question"),
        cost=Cost.read(content) if costs else None,
        share=None if content.get("share") is None else ratio(content["share"]),
        paid_by=content.get("beside", 0),
        about=entry.about,
        hash=entry.hash,
    )


def _words(entry: Entry, content: dict[str, Any]) -> str:
    said = f"of entry {entry.about}" if entry.about else _WORDS.get(entry.kind, _nothing)(content)
    return " ".join(said.split())


def anchor_words(content: Mapping[str, Any]) -> str:
    """Returns what an entry about the ledger's anchor says."""
    words = {
        "begun": "created with the ledger",
        "marked": "created for a ledger of an earlier version",
        "joined": f"joined on another machine, with the head {content.get('head', '')[:16]}",
        "accepted": f"missing, and accepted: {content.get('reason', '')}",
    }
    return words.get(content["how"], str(content["how"]))


def _nothing(_: Mapping[str, Any]) -> str:
    return ""


def _budget(content: Mapping[str, Any]) -> str:
    return f"{read_loss(content['budget'])}{_calendar(content)}"


def _calendar(content: Mapping[str, Any]) -> str:
    """Returns the calendar by which a budget or cap renews from an entry on, and the period that it opens."""
    told = content.get("renews")
    if "rows" in content:
        return f" {RenewalSchedule.read(content['rows'])}"
    if told is None or told["per"] == "never":
        return "" if told is None else ", which renews no longer"
    return f" {RenewalSchedule.read(told)}, for the period from {told['opened']}"


def _add_note(words: str, content: Mapping[str, Any]) -> str:
    note = content.get("note")
    return ": ".join(filter(None, (words, note)))


def _add_cap(words: str, content: Mapping[str, Any]) -> str:
    cap = content.get("cap")
    return f"{words}, cap {read_loss(cap)}{_calendar(content)}" if cap else words


def _until(content: Mapping[str, Any]) -> str:
    return f", until {content['until'][:16].replace('T', ' ')}" if content["until"] else ""


def _head(content: Mapping[str, Any]) -> str:
    return f"entry {content['anchor'].split(':')[0]}"


def _describe_charge(content: Mapping[str, Any]) -> str:
    if "beside" in content:
        return f"{outputs_text(content['question'])}, paid by entry {content['beside']}"
    return asked_text(content)


_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "advance": describe_advance,
    "allot": lambda content: _add_note(_add_cap(f"to project {content['project']}", content), content),
    "amend": lambda content: _add_note(f"to {_budget(content)}", content),
    "anchor": anchor_words,
    "approvals": lambda content: _add_note(f"{content['needed']} needed for each request", content),
    "approve": lambda content: _add_note(f"request {content['request']}{_until(content)}", content),
    "answer": _nothing,
    "appoint": lambda content: _add_cap(f"{content['name']} as {content['role']}", content),
    "attach": describe_attachment,
    "charge": _describe_charge,
    "claim teams": lambda content: f"{', '.join(content['teams']) or 'none'}{_until(content)}",
    "claim": lambda content: f"entry {content['charge']}, to run it again",
    "doubt": lambda content: f"nothing renews until a steward renews it: {content['why']}",
    "fail": _nothing,
    "freeze": lambda content: f"{'moved at' if content.get('moved') else 'without'} {_head(content)}",
    "give back": lambda content: _add_note(f"the rest of {content['reserve']}", content),
    "interrupt": lambda content: f"of entry {content['charge']}; the charge stays",
    "keys": lambda content: f"of a declaration: {content['count']} keys, SHA-256 {content['digest']}",
    "open": lambda content: f"with {_budget({**content['account'], **content})}",
    "recover": lambda content: _add_note(f"what was lost up to {_head(content)}", content),
    "renew": lambda content: _add_note(f"with {_budget(content)}", content),
    "request": lambda content: _add_note(content["sql"], {"note": content["reason"]}),
    "reserve": lambda content: _add_note(
        f"{_budget(content)} for {content['reserve']}{', by ' + content['for'] if content['for'] else ''}", content
    ),
    "resume": lambda content: _add_note("", content),
    "service": lambda content: " ".join(filter(None, (content["act"], content.get("key"), "of", content["about"]))),
    "team": lambda content: _add_note(
        _add_cap(f"{content['team']} of {', '.join(content['members']) or 'no listed members'}", content), content
    ),
    "unlock": lambda content: _add_note("", content),
}
"""What entries of each kind say; every kind of the ledger has its line, and a test compares the two lists."""
