"""A charge without an outcome, run again: claimed first, answered once.

A process can be stopped or die between a charge and its answer. The charge stays, and whoever asks again with the same
idempotency key may run the question anew, once a claim of theirs is in the book. A claim is granted to one: whoever
makes it names the last claim that they have seen. Nobody can know whether an earlier runner is dead or slow, so
another claim is possible after a wait, and two may be at work for one charge.

Formal guarantee: of one charge one answer is released, with the law of a single run. Everything that a run draws stays
inside until it is stored; the store takes one outcome for a charge (`ledger.outcomes`) and one release beside it for
each replay key, in transactions that exclude all others; whoever comes second drops what they drew and takes what is
stored. Which run is first depends on clocks and on who stops them, and nobody has seen what either drew, so that the
choice leaves the law of the answer as it is (but for the time that drawing takes: `docs/known_vulnerabilities.md`, 4).
"""

from __future__ import annotations

import time

from discreet.errors import LedgerError
from discreet.ledger import changes
from discreet.ledger.charges import Receipt, require_admission
from discreet.ledger.journal import Journal
from discreet.ledger.outcomes import own_charge
from discreet.ledger.store.base import Rows

_POLL = 0.01  # seconds between looks for the outcome of what somebody else runs
_MOST_DOUBLED = 6  # times that the wait for a runner grows, since a long question is run again in vain


def claimed(journal: Journal, receipt: Receipt, wait: float) -> Receipt | None:
    """A receipt under which a charge may be run again, after waiting for whoever runs it; None once it has ended.

    The wait is so many seconds, twice as many after each claim, and none if whoever ran it was interrupted.

    Raises:
        AccountLocked, NotPermitted: as for a new charge.
        LedgerError: if the charge belongs to a period before the last renewal.
    """
    while True:
        seen = _awaited(journal, receipt, wait)
        if seen is None:
            return None
        with journal.acting() as rows:
            mine = _claim(rows, receipt, seen)
        if mine is not None:
            return mine


def interrupt(rows: Rows, receipt: Receipt) -> bool:
    """Notes that whoever ran a charge has stopped, so that nobody waits for them; it uses up no failure credit.

    Nothing is noted if the charge has ended, or somebody else has claimed it since.

    Returns:
        Whether it has an answer.
    """
    charge = own_charge(rows, receipt)
    ended = rows.outcome(charge.sequence)
    if ended is None and changes.claims(rows, charge.sequence) == (receipt.claim, False):
        _note(rows, "interrupt", receipt, receipt.claim)
    return ended is not None and ended.kind == "answer"


def _awaited(journal: Journal, receipt: Receipt, wait: float) -> int | None:
    """The number of the claim whose runner is gone, or late; None if the charge has ended."""
    last, deadline = -1, 0.0
    while True:
        with journal.reading() as rows:
            ended = rows.outcome(receipt.sequence) is not None
            number, free = changes.claims(rows, receipt.sequence)
        if number != last:
            last, deadline = number, time.monotonic() + wait * 2 ** min(number, _MOST_DOUBLED)
        if ended:
            return None
        if free or time.monotonic() >= deadline:
            return number
        time.sleep(_POLL)


def _claim(rows: Rows, receipt: Receipt, seen: int) -> Receipt | None:
    """The claim after the one that was seen; None if the charge has ended, or somebody else was faster."""
    mine = receipt._replace(repeated=False, claim=seen + 1)
    charge = own_charge(rows, mine)
    require_admission(rows, charge.account, charge.who)
    if rows.outcome(charge.sequence) is not None or changes.claims(rows, charge.sequence)[0] != seen:
        return None
    if any(entry.kind == "renew" for entry in rows.entries(charge.sequence, charge.account)):
        raise LedgerError(f"Charge {charge.sequence} was made before its account was renewed", "Ask with a new key.")
    _note(rows, "claim", receipt, seen + 1)
    return mine


def _note(rows: Rows, kind: str, receipt: Receipt, number: int) -> None:
    body = {"charge": receipt.sequence, "number": number}
    changes.apply(rows, rows.add(kind, body, who=receipt.analyst, account=receipt.account))
