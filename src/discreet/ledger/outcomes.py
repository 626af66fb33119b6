"""How a charge ends: an answer that is kept before it is sent, or a failure that uses up a credit. Once only.

A charge that was claimed (`ledger.claims`) may be run by several at once; whoever ends it first has ended it for all.
"""

from __future__ import annotations

from discreet.errors import LedgerError, LedgerTampered
from discreet.ledger import changes
from discreet.ledger import charges as charging
from discreet.ledger.charges import Receipt, Request
from discreet.ledger.entry import Entry, digest
from discreet.ledger.failures import credited
from discreet.ledger.store.base import Rows, Stored
from discreet.ledger.verify import is_answer_of


def store_answer(rows: Rows, receipt: Receipt, replay_key: str, payload: bytes) -> bool:
    """Keeps the bytes of an answer, and their digest in the chain.

    Returns:
        Whether this is the charge's answer; if not, somebody else who claimed it has ended it before.

    Raises:
        LedgerError: if the charge is not in this book, was found under its key, or has ended otherwise.
    """
    charge = own_charge(rows, receipt)
    body = {"digest": digest(payload), "replay_key": replay_key}
    ended = rows.outcome(charge.sequence)
    if ended is not None:
        if ended.kind == "answer" and ended.content == body:
            return True
        _refuse_second(rows, charge, "A charge pays for one answer.")
        return False
    entry = rows.add("answer", body, who=charge.who, account=charge.account, about=charge.sequence)
    rows.add_answer(entry.sequence, charge.sequence, replay_key, payload)
    return True


def store_beside(rows: Rows, receipt: Receipt, free: Request, replay_key: str, payload: bytes) -> bytes:
    """Keeps what was released on the way to an answer, under an entry that costs nothing: its charge has paid for it.

    Returns:
        What is kept for this charge under this replay key: these bytes, or those of whoever ran it before. What was
        drawn a second time for one charge must not be used.
    """
    own_charge(rows, receipt)
    for kept in rows.answers(replay_key):
        entry = rows.entry(kept.charge)
        if entry is not None and entry.content.get("beside") == receipt.sequence:
            _check(rows, kept)
            return kept.payload
    (written,) = charging.charge(rows, free)
    store_answer(rows, written, replay_key, payload)
    return payload


def fail(rows: Rows, receipt: Receipt) -> None:
    """Uses up one failure credit of whoever asked; the charge stays.

    Raises:
        LedgerError: if the charge is not in this book, was found under its key, or was answered.
    """
    charge = own_charge(rows, receipt)
    ended = rows.outcome(charge.sequence)
    if ended is not None:
        if ended.kind != "fail":
            _refuse_second(rows, charge, "It was answered.")
        return
    body = {"credit": credited(rows, charge.account, charge.who)}
    entry = rows.add("fail", body, who=charge.who, account=charge.account, about=charge.sequence)
    changes.apply(rows, entry)


def stored(rows: Rows, replay_key: str) -> tuple[Stored, ...]:
    """Every answer kept under a replay key, oldest first, each checked against the chain.

    Raises:
        LedgerTampered: if one was changed.
    """
    found = tuple(rows.answers(replay_key))
    for answer in found:
        _check(rows, answer)
    return found


def related(rows: Rows, start: str, most: int) -> tuple[tuple[str, Stored], ...]:
    """The newest answers whose replay key begins like this, each checked and with the question that it answers.

    Raises:
        LedgerTampered: if one was changed.
    """
    found = []
    for answer in rows.answers_from(start, most):
        _check(rows, answer)
        charge = rows.entry(answer.charge)
        if charge is None or charge.kind != "charge":
            raise LedgerTampered(answer.sequence, "its charge is missing")
        found.append((str(charge.content["question"]), answer))
    return tuple(found)


def _check(rows: Rows, answer: Stored) -> None:
    entry = rows.entry(answer.sequence)
    if entry is None or entry.kind != "answer" or not is_answer_of(entry, answer):
        raise LedgerTampered(answer.sequence, "its answer was changed")


def answer(rows: Rows, receipt: Receipt) -> tuple[bool, bytes | None]:
    """Whether a charge has ended, and the bytes of its answer if it has one."""
    ended = rows.outcome(receipt.sequence)
    if ended is None:
        return False, None
    if ended.kind == "fail":
        return True, None
    kept = [found for found in stored(rows, ended.content["replay_key"]) if found.charge == receipt.sequence]
    if not kept:
        raise LedgerTampered(ended.sequence, "its answer is missing")
    return True, kept[0].payload


def _refuse_second(rows: Rows, charge: Entry, hint: str) -> None:
    """Whoever alone runs a charge cannot end it twice; of several, all but one come too late."""
    claimed, _ = changes.claims(rows, charge.sequence)
    if not claimed:
        raise LedgerError(f"Charge {charge.sequence} has already ended", hint)


def own_charge(rows: Rows, receipt: Receipt) -> Entry:
    """The entry of a receipt that its holder was the first to get, or has claimed.

    Raises:
        LedgerError: for every other receipt.
    """
    if receipt.repeated:
        raise LedgerError(f"Charge {receipt.sequence} was found under its key", "Give its stored answer, or none.")
    entry = rows.entry(receipt.sequence)
    if entry is None or entry.kind != "charge" or entry.hash != receipt.hash:
        raise LedgerError(f"Charge {receipt.sequence} is not in this book")
    return entry
