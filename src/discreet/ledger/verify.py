"""Walks the whole chain and adds everything up again, from the entries alone.

It detects a changed, missing, inserted or reordered entry, a changed answer, and a balance that is not the sum of its
charges. It cannot see that the end of the book is missing together with everything that followed from it (a file
restored from yesterday is a good book of yesterday): that is what the exported head is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from discreet.errors import LedgerTampered
from discreet.ledger import changes
from discreet.ledger.entry import GENESIS, Entry, Head, chained, digest
from discreet.ledger.serialization import parsed
from discreet.ledger.store.base import Rows, Stored
from discreet.ledger.tallies import Tallies

Pending = Counter[tuple[str, str, str, str]]
"""How often each charge occurs: account, who, price and project."""

_MOST_PENDING = 50_000  # different charges held before they are added up


def verify(rows: Rows) -> Head:
    """Checks everything about one state of the book.

    Returns:
        The head, to be exported.

    Raises:
        LedgerTampered: with the first entry that does not fit.
    """
    head, states = _walk(rows, together=True)
    if _difference(rows, states) is not None:  # adding equal charges at once may round very long sums differently
        head, states = _walk(rows, together=False)
        wrong = _difference(rows, states)
        if wrong is not None:
            raise LedgerTampered(head.sequence, f"the stored {wrong} is not what the entries amount to")
    rows.check()
    return head


def _walk(rows: Rows, *, together: bool) -> tuple[Head, changes.MemoryStates]:
    states, pending, answers = changes.MemoryStates(), Pending(), rows.answers()
    previous, place = GENESIS, 0
    for entry in rows.entries():
        place += 1
        if entry[0] != place:
            raise LedgerTampered(place, "is missing")
        previous = chained(previous, entry)
        if entry[9] != previous:
            raise LedgerTampered(place, "its content does not fit its hash")
        kind = entry[2]
        if kind == "charge" and together:
            pending[*entry[3:6], changes.project_of(entry[8])] += 1
            if len(pending) > _MOST_PENDING:
                _add_up(states, pending)
        elif kind == "answer":
            _check_answer(entry, answers)
        else:
            _add_up(states, pending)
            changes.apply(states, entry)
    _add_up(states, pending)
    if next(answers, None) is not None:
        raise LedgerTampered(place, "after it there is an answer that no entry records")
    return Head(place, previous), states


def _add_up(states: changes.MemoryStates, pending: Pending) -> None:
    """Equal charges are added at once: exact sums do not depend on order."""
    for (account, who, price, project), count in pending.items():
        changes.charge(states, account, who, Tallies.read(parsed(price)) * count, project_name=project)
    pending.clear()


def _check_answer(entry: Entry, answers: Iterator[Stored]) -> None:
    stored = next(answers, None)
    if stored is None or stored.sequence != entry.sequence:
        raise LedgerTampered(entry.sequence, "its answer is missing")
    if not is_answer_of(entry, stored):
        raise LedgerTampered(entry.sequence, "its answer was changed")


def is_answer_of(entry: Entry, stored: Stored) -> bool:
    """Whether stored bytes are those that an entry records."""
    content = entry.content
    return (
        stored.charge == entry.about
        and stored.replay_key == content["replay_key"]
        and digest(stored.payload) == content["digest"]
    )


def _difference(rows: Rows, states: changes.MemoryStates) -> str | None:
    """The scope of a state that is stored otherwise than computed."""
    stored, computed = {(scope, name): text for scope, name, text in rows.states()}, states.texts
    for place in sorted(stored.keys() | computed.keys()):
        if stored.get(place) != computed.get(place):
            return place[0]
    return None
