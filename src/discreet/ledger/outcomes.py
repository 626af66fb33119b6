"""How a charge ends: an answer that is kept before it is sent, or a failure that uses up a credit. Once only.

A process can be stopped or die between a charge and its answer. The charge stays, and a caller who asks again with the
same idempotency key may run the question anew, once their claim is in the ledger. A claim is granted to one caller,
because it names the last claim that its caller has seen. No process can know whether an earlier runner is dead or slow.
So another claim is possible after a wait, and two may be at work for one charge; the first to end it has ended it for
all.

Formal guarantee: of one charge one answer is released, with the law of a single run. Everything that a run draws stays
inside until it is stored; the store takes one outcome for a charge and one release with it for each replay key, in
transactions that exclude all others; the second runner drops what it drew and takes what is stored. Which run is
first depends on clocks and on who stops them, and no one has seen what either drew, so that the choice leaves the law
of the answer as it is (but for the time that drawing takes: `docs/known_vulnerabilities.md`, 4). A charge is run
`MOST_RUNS` times at most, so that neither these times nor anything else that a run might tell can be had without end. A
run is counted before it begins, by the charge or by a claim, both durable: a process that is killed has been counted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from discreet.errors import LedgerError, LedgerTampered, RunsUsedUp
from discreet.ledger import changes, charges
from discreet.ledger.account import AccountState
from discreet.ledger.charges import PricedRequest, Receipt, require_admission
from discreet.ledger.cost import Cost
from discreet.ledger.entry import Entry, Head, digest
from discreet.ledger.journal import Journal
from discreet.ledger.policy import find_credit_owner
from discreet.ledger.store.ledger_store import AnswerPlace, StoredAnswer, StoredHeader, Transaction
from discreet.privacy import events
from discreet.privacy.events import Event


def store_answer(
    rows: Transaction, receipt: Receipt, replay_key: str, payload: bytes, event: Event | None = None
) -> bool:
    """Keeps the bytes of an answer, and in the chain their digest and the event of all that was released for it.

    Without an event the charge's own describes it.

    Returns:
        Whether this is the charge's answer; if not, another runner who claimed it has ended it before.

    Raises:
        LedgerError: if the charge is not in this ledger, was found under its key, or has ended otherwise.
    """
    charge = own_charge(rows, receipt)
    body: dict[str, Any] = {"digest": digest(payload), "replay_key": replay_key}
    body |= {} if event is None else {"event": events.to_json(event)}
    header, line_break, _ = payload.partition(b"\n")
    body |= {"header": [len(header), digest(header)]} if line_break else {}
    ended = rows.outcome(charge.sequence)
    if ended is not None:
        if ended.kind == "answer" and ended.content == body:
            return True
        _refuse_second(rows, charge, "A charge pays for one answer.")
        return False
    entry = rows.add("answer", body, who=charge.who, account=charge.account, about=charge.sequence)
    rows.add_answer(entry.sequence, charge.sequence, replay_key, payload)
    if line_break:
        place = AnswerPlace(entry.sequence, charge.sequence, replay_key, entry.hash)
        _remember(StoredHeader(place, str(charge.content["question"]), header, body.get("event", "")))
    return True


def store_beside(rows: Transaction, receipt: Receipt, free: PricedRequest, replay_key: str, payload: bytes) -> bytes:
    """Keeps what was released on the way to an answer, under an entry that costs nothing: its charge has paid for it.

    Returns:
        What is kept for this charge under this replay key: these bytes, or those of an earlier runner. What was
        drawn a second time for one charge must not be used.
    """
    own_charge(rows, receipt)
    kept = beside(rows, receipt, replay_key)
    if kept is not None:
        return kept
    (written,) = charges.charge(rows, free)
    store_answer(rows, written, replay_key, payload)
    return payload


def beside(rows: Transaction, receipt: Receipt, replay_key: str) -> bytes | None:
    """Returns what a charge has released on the way to its answer, under a replay key; None if it has not yet."""
    for kept in rows.answers(replay_key):
        entry = rows.entry(kept.charge)
        if entry is not None and entry.content.get("beside") == receipt.sequence:
            return _check_answer(rows, kept).payload
    return None


def all_beside(rows: Transaction, receipt: Receipt) -> tuple[StoredAnswer, ...]:
    """Returns everything that a charge has released on the way to its answer, by whichever of its runs."""
    found = [
        _of_charge(rows, entry.sequence)
        for entry in rows.entries(receipt.sequence, receipt.account)
        if entry.kind == "charge" and entry.content.get("beside") == receipt.sequence
    ]
    return tuple(kept for kept in found if kept is not None)


def read_released_event(rows: Transaction, receipt: Receipt) -> Event:
    """Returns all that was released for a charge, as its answer says; where it says nothing, what was charged for."""
    ended = rows.outcome(receipt.sequence)
    told = None if ended is None else ended.content.get("event")
    return receipt.event if told is None else events.from_json(told)


def fail(rows: Transaction, receipt: Receipt) -> None:
    """Uses up one failure credit of the analyst on each account that was charged; the charge stays.

    Raises:
        LedgerError: if the charge is not in this ledger, was found under its key, or was answered.
    """
    charge = own_charge(rows, receipt)
    ended = rows.outcome(charge.sequence)
    if ended is not None:
        if ended.kind != "fail":
            _refuse_second(rows, charge, "It was answered.")
        return
    for one in find_joined_charges(rows, charge):
        if rows.outcome(one.sequence) is None:
            body = {"credit": find_credit_owner(rows, one.account, one.who)}
            changes.apply(rows, rows.add("fail", body, who=one.who, account=one.account, about=one.sequence))


def read_answers(rows: Transaction, replay_key: str) -> tuple[StoredAnswer, ...]:
    """Returns every answer kept under a replay key, oldest first, each checked against the chain.

    Raises:
        LedgerTampered: if one was changed.
    """
    return tuple(_check_answer(rows, answer) for answer in rows.answers(replay_key))


_HEADERS: dict[AnswerPlace, StoredHeader] = {}  # what is recorded never changes, and a hash identifies one record
_MOST_HEADERS = 4096
_LONGEST_HEADER = 1 << 16  # bytes that are remembered


def read_headers(rows: Transaction, start: str, most: int) -> tuple[StoredHeader, ...]:
    """Returns the headers of the newest answers whose replay key begins like this, each checked and with its question.

    What this process has read once is not read again. Answers themselves are read and checked by `read_answer`.

    Raises:
        LedgerTampered: if one was changed.
    """
    return tuple([_HEADERS.get(place) or _header(rows, place) for place in _places(rows, start, most)])


_PLACES: dict[tuple[str, int], tuple[Head, list[AnswerPlace]]] = {}  # as they were up to a head
_MOST_PLACES, _MANY = 64, 16


def _places(rows: Transaction, start: str, most: int) -> list[AnswerPlace]:
    """Returns the places of the newest answers; where there are many, only those that came since are looked for.

    The hash of an entry covers all before it, so what was recorded up to a head that the ledger contains is known.
    """
    known = _PLACES.get((start, most))
    if known is None or rows.hash_at(known[0].sequence) != known[0].hash:
        found = rows.answer_places(start, most)
    else:
        found = [*rows.answer_places(start, most, after=known[0].sequence), *known[1]][:most]
    if len(found) >= _MANY:
        while len(_PLACES) >= _MOST_PLACES:
            _PLACES.pop(next(iter(_PLACES)), None)
        _PLACES[start, most] = rows.tail(), found
    return found


def _header(rows: Transaction, place: AnswerPlace) -> StoredHeader:
    entry, charge = rows.entry(place.sequence), rows.entry(place.charge)
    if charge is None or charge.kind != "charge":
        raise LedgerTampered(place.sequence, "its charge is missing")
    recorded = {} if entry is None or entry.kind != "answer" or entry.about != place.charge else entry.content
    length, known = recorded.get("header", (0, digest(b"")))
    header = rows.answer_start(place.sequence, length) if length else b""
    if recorded.get("replay_key") != place.replay_key or digest(header) != known:
        raise LedgerTampered(place.sequence, "its answer was changed")
    return _remember(StoredHeader(place, str(charge.content["question"]), header, recorded.get("event", "")))


def _remember(found: StoredHeader) -> StoredHeader:
    """Keeps a header for those who ask next; where its commit failed, no entry has its hash, and none finds it."""
    if len(found.header) <= _LONGEST_HEADER:
        while len(_HEADERS) >= _MOST_HEADERS:
            _HEADERS.pop(next(iter(_HEADERS)), None)
        _HEADERS[found.place] = found
    return found


def read_answer(rows: Transaction, place: AnswerPlace) -> StoredAnswer:
    """Returns the whole answer that is kept at a place, checked.

    Raises:
        LedgerTampered: if it was changed, or is not there any more.
    """
    answer = rows.answer_at(place.sequence)
    if answer is None or answer.replay_key != place.replay_key:
        raise LedgerTampered(place.sequence, "its answer is missing")
    return _check_answer(rows, answer)


def _check_answer(rows: Transaction, answer: StoredAnswer) -> StoredAnswer:
    """Returns an answer with what its entry says that was released."""
    entry = rows.entry(answer.sequence)
    if entry is None or not answer.is_of(entry):
        raise LedgerTampered(answer.sequence, "its answer was changed")
    return answer._replace(event=entry.content.get("event", ""))


def answer(rows: Transaction, receipt: Receipt) -> tuple[bool, bytes | None]:
    """Returns whether a charge has ended, and the bytes of its answer if it has one."""
    ended = rows.outcome(receipt.sequence)
    if ended is None:
        return False, None
    kept = _of_charge(rows, receipt.sequence)
    return True, None if kept is None else kept.payload


def awaited_answer(journal: Journal, receipt: Receipt, wait: float) -> bytes | None:
    """Returns the answer of a charge, waiting so many seconds for its runner; None if there is none."""
    deadline = time.monotonic() + wait
    while True:
        with journal.reading() as rows:
            ended, payload = answer(rows, receipt)
        if ended or time.monotonic() >= deadline:
            return payload
        time.sleep(_POLL)


def _of_charge(rows: Transaction, charge: int) -> StoredAnswer | None:
    """Returns the answer of a charge; None if it has not ended, or has failed."""
    ended = rows.outcome(charge)
    if ended is None or ended.kind == "fail":
        return None
    kept = [found for found in read_answers(rows, ended.content["replay_key"]) if found.charge == charge]
    if not kept:
        raise LedgerTampered(ended.sequence, "its answer is missing")
    return kept[0]


def _refuse_second(rows: Transaction, charge: Entry, hint: str) -> None:
    """Refuses a second outcome: one runner cannot end a charge twice, and of several runners all but one are late."""
    claimed, _ = changes.claims(rows, charge.sequence)
    if not claimed:
        raise LedgerError(f"Charge {charge.sequence} has already ended", hint)


def find_joined_charges(rows: Transaction, charge: Entry) -> tuple[Entry, ...]:
    """Returns the charges of all accounts that were made together with this one, and after it; itself first.

    They stand one after the other, in the order of the names of their accounts, and each says how many there are.
    """
    found, count = [charge], charge.content["joined"]
    for sequence in range(charge.sequence + 1, charge.sequence + count):
        entry = rows.entry(sequence)
        if entry is None or entry.kind != "charge" or entry.content["joined"] != count:
            break
        if entry.who != charge.who or entry.account <= found[-1].account:
            break
        found.append(entry)
    return tuple(found)


def own_charge(rows: Transaction, receipt: Receipt) -> Entry:
    """Returns the entry of a receipt that its holder was the first to get, or has claimed.

    Raises:
        LedgerError: for every other receipt.
    """
    if receipt.repeated:
        raise LedgerError(f"Charge {receipt.sequence} was found under its key", "Return its stored answer, or none.")
    entry = rows.entry(receipt.sequence)
    if entry is None or entry.kind != "charge" or entry.hash != receipt.hash:
        raise LedgerError(f"Charge {receipt.sequence} is not in this ledger")
    return entry


MOST_RUNS = 3
"""The most runs of a charge: the first one, and those under claims."""

_POLL = 0.01  # seconds between looks for the outcome of what another process runs
_MOST_DOUBLED = 6  # times that the wait for a runner grows, since a long question is run again in vain


def write_receipt(receipt: Receipt) -> dict[str, Any]:
    """Returns a receipt as JSON fields, for another process that runs its charge."""
    event, cost, state = events.to_json(receipt.event), receipt.cost.write(), receipt.state.write()
    return {**receipt._asdict(), "event": event, "cost": cost, "state": state}


def read_receipt(fields: Mapping[str, Any]) -> Receipt:
    """Returns the receipt that `write_receipt` wrote."""
    event, cost = events.from_json(fields["event"]), Cost.read(fields["cost"])
    return Receipt(**{**fields, "event": event, "cost": cost, "state": AccountState.read(fields["state"])})


def claim_run(journal: Journal, receipt: Receipt, wait: float) -> Receipt | None:
    """Returns a receipt to run a charge again, after waiting for its runner; None once it has ended.

    The wait is so many seconds, twice as many after each claim, and none if the runner was interrupted.

    Raises:
        AccountLocked, NotPermitted: as for a new charge.
        RunsUsedUp: if it was run as often as a charge may be.
        LedgerError: if the charge belongs to a period before the last renewal, or before the ledger was restored.
    """
    while True:
        seen = _await_runner(journal, receipt, wait)
        if seen is None:
            return None
        with journal.acting() as rows:
            mine = _claim(rows, receipt, seen)
        if mine is not None:
            return mine


def interrupt(rows: Transaction, receipt: Receipt) -> bool:
    """Notes that the runner of a charge has stopped, so that no caller waits for it; it uses up no failure credit.

    Nothing is noted if the charge has ended, or another runner has claimed it since.

    Returns:
        Whether it has an answer.
    """
    charge = own_charge(rows, receipt)
    ended = rows.outcome(charge.sequence)
    if ended is None and changes.claims(rows, charge.sequence) == (receipt.claim, False):
        _note(rows, "interrupt", receipt, receipt.claim)
    return ended is not None and ended.kind == "answer"


def _await_runner(journal: Journal, receipt: Receipt, wait: float) -> int | None:
    """Returns the number of the claim whose runner is gone, or late; None if the charge has ended."""
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


def _claim(rows: Transaction, receipt: Receipt, seen: int) -> Receipt | None:
    """Claims the charge after the claim that was seen; returns None if it has ended, or another runner was faster."""
    mine = receipt._replace(repeated=False, claim=seen + 1)
    charge = own_charge(rows, mine)
    together = find_joined_charges(rows, charge)
    for one in together:
        require_admission(rows, one.account, one.who)
    if rows.outcome(charge.sequence) is not None or changes.claims(rows, charge.sequence)[0] != seen:
        return None
    for one in together:
        _require_same_period(rows, one)
        _refuse_restored(rows, one)
    if seen + 1 >= MOST_RUNS:
        raise RunsUsedUp(charge.sequence, seen + 1)
    _note(rows, "claim", receipt, seen + 1)
    return mine


def reopen(rows: Transaction, receipt: Receipt) -> Receipt | None:
    """Returns a receipt to go on with a charge whose parts are released one by one; None once it has ended.

    Nothing is run again: what was released is stored with the charge, and a part that another runner has stored
    meanwhile stays as it is. So a charge may be reopened as often as it takes, and no claim is noted.

    Raises:
        LedgerError: if the charge belongs to a period before the last renewal.
    """
    mine = receipt._replace(repeated=False)
    charge = own_charge(rows, mine)
    if rows.outcome(charge.sequence) is not None:
        return None
    for one in find_joined_charges(rows, charge):
        _require_same_period(rows, one)
    return mine


def _require_same_period(rows: Transaction, charge: Entry) -> None:
    if changes.is_from_reserve(charge.body):
        return
    if any(entry.kind == "renew" for entry in rows.entries(charge.sequence, charge.account)):
        raise LedgerError(f"Charge {charge.sequence} was made before its account was renewed", "Ask with a new key.")


def _refuse_restored(rows: Transaction, charge: Entry) -> None:
    """Refuses charges of a copy that took the place of a lost ledger, in which they may have been answered, or run.

    A copy that lacks entries is frozen until a steward resumes it, or has what was lost counted as spent; and one may
    have taken the ledger's place where its anchor was missing.
    """
    recovered = (entry.kind == "recover" for entry in rows.entries(charge.sequence, charge.account))
    resumed = (
        entry.kind == "resume" or changes.makes_anchor_again(entry) for entry in rows.entries(charge.sequence, "")
    )
    if any(recovered) or any(resumed):
        hint = "Its answer may be lost with the rest. Ask with a new key, which is charged again."
        raise LedgerError(f"Charge {charge.sequence} was made before the ledger was restored from a copy", hint)


def _note(rows: Transaction, kind: str, receipt: Receipt, number: int) -> None:
    body = {"charge": receipt.sequence, "number": number}
    changes.apply(rows, rows.add(kind, body, who=receipt.analyst, account=receipt.account))
