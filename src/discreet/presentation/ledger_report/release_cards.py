"""The newest stored releases of a ledger, as tables of numbers with their intervals."""

from __future__ import annotations

from functools import partial

from discreet.dataclass import dataclass
from discreet.ledger import Ledger
from discreet.ledger.entry import digest
from discreet.ledger.redeclaration import keys_place
from discreet.presentation.ledger_report.released_numbers import CONFIDENCE, released_numbers
from discreet.presentation.ledger_view.ledger_history import ChargeView, LedgerHistory
from discreet.report import answers, page
from discreet.report.display import percent, plain
from discreet.report.html import Html

MOST_RELEASES = 25
MOST_GROUPS = 30
"""Rows of one release; the ledger has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCard:
    """One stored release.

    Attributes:
        words: what was asked.
        table: the numbers.
        hidden: groups beyond those of the table.
        private: False if the noise was seeded, for a test.
    """

    words: str
    table: Html
    hidden: int
    private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReleases:
    """The stored releases that a report shows.

    Attributes:
        stored: how many the ledger has.
        cards: the newest that are numbers.
        hidden: newer ones that cannot be shown from the ledger alone.
        confidence: of the intervals.
    """

    stored: int
    cards: tuple[ReleaseCard, ...]
    hidden: int
    confidence: str = percent(CONFIDENCE)


def stored_releases(ledger: Ledger, history: LedgerHistory) -> StoredReleases:
    """Returns the newest releases whose numbers can be rebuilt from the ledger."""
    cards, hidden = list[ReleaseCard](), 0
    for charge in reversed(history.charges.values()):
        if not charge.replay_key or len(cards) == MOST_RELEASES:
            continue
        card = _card(ledger, history, charge)
        hidden += card is None
        cards += [] if card is None else [card]
    return StoredReleases(stored=history.counts["answer"], cards=tuple(cards), hidden=hidden)


def _declared_keys(ledger: Ledger, told: str) -> bytes:
    """Returns a long list of keys that the ledger keeps, see `stewardship.Blocks`."""
    for kept in ledger.read_answers(keys_place(told)):
        if digest(kept.payload) == told:  # an answer may be stored under any replay key
            return kept.payload
    raise KeyError(told)


def _card(ledger: Ledger, history: LedgerHistory, charge: ChargeView) -> ReleaseCard | None:
    """Returns the numbers of an answer; None if they cannot be rebuilt from the ledger."""
    entry = charge.entry
    payload = next(
        (kept.payload for kept in ledger.read_answers(charge.replay_key) if kept.charge == entry.sequence), None
    )
    if payload is None or entry.plan is None:
        return None
    found = released_numbers(entry.plan, payload, history.declared_at(entry.sequence), partial(_declared_keys, ledger))
    if found is None:
        return None
    groups = list(found.records[:MOST_GROUPS])
    paid = f"paid by entry {entry.paid_by}" if entry.paid_by else entry.cost_text
    caption = f"Entry {entry.sequence}, {entry.moment[:16]}, {plain(entry.who)}, {paid}"
    table = page.scrolling(answers.table(groups, caption=caption), label=caption)
    return ReleaseCard(words=entry.words, table=table, hidden=len(found.records) - len(groups), private=found.private)
