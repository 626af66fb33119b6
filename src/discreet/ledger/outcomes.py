"""How a charge ends: an answer that is kept before it is sent, or a failure that uses up a credit. Once only."""

from __future__ import annotations

from discreet.errors import LedgerError, LedgerTampered
from discreet.ledger import changes
from discreet.ledger.charging import Receipt
from discreet.ledger.entry import Entry, digest
from discreet.ledger.failures import credited
from discreet.ledger.store import Rows, Stored
from discreet.ledger.verify import is_answer_of


def store_answer(rows: Rows, receipt: Receipt, replay_key: str, payload: bytes) -> None:
    """Keeps the bytes of an answer, and their digest in the chain.

    Raises:
        LedgerError: if the charge is not in this book, was found under its key, or has ended otherwise.
    """
    charge = _own_charge(rows, receipt)
    body = {"digest": digest(payload), "replay_key": replay_key}
    ended = rows.outcome(charge.sequence)
    if ended is not None:
        if ended.kind == "answer" and ended.content == body:
            return
        raise LedgerError(f"Charge {charge.sequence} has already ended", "A charge pays for one answer.")
    entry = rows.add("answer", body, who=charge.who, account=charge.account, about=charge.sequence)
    rows.add_answer(entry.sequence, charge.sequence, replay_key, payload)


def fail(rows: Rows, receipt: Receipt) -> None:
    """Uses up one failure credit of whoever asked; the charge stays.

    Raises:
        LedgerError: if the charge is not in this book, was found under its key, or was answered.
    """
    charge = _own_charge(rows, receipt)
    ended = rows.outcome(charge.sequence)
    if ended is not None:
        if ended.kind == "fail":
            return
        raise LedgerError(f"Charge {charge.sequence} has already ended", "It was answered.")
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


def _own_charge(rows: Rows, receipt: Receipt) -> Entry:
    """The entry of a receipt that its holder was the first to get."""
    if receipt.repeated:
        raise LedgerError(f"Charge {receipt.sequence} was found under its key", "Give its stored answer, or none.")
    entry = rows.entry(receipt.sequence)
    if entry is None or entry.kind != "charge" or entry.hash != receipt.hash:
        raise LedgerError(f"Charge {receipt.sequence} is not in this book")
    return entry
