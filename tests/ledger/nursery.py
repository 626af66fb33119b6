"""A process that forks spenders from one warm interpreter, kills them if asked, and prints what they acknowledged.

    python nursery.py crowd PATH PROCESSES THREADS   several at once until the budget is gone
    python nursery.py killed PATH RUNS SEED          one after the other, each killed at some point with SIGKILL
    python nursery.py months PATH RUNS SEED          pairs that charge for months of rows, both killed with SIGKILL

A spender writes a line to its pipe after every step that returned: "charged KEY SEQUENCE HASH" and "answered KEY".
Whoever reads such a line has been promised what it says.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from discreet.errors import InsufficientBudget, LedgerError
from discreet.ledger import Ledger, charges
from discreet.ledger.account import AccountMember, AccountState
from discreet.ledger.store import sqlite
from discreet.ledger.store.ledger_store import Places, Transaction
from discreet.ledger.store.sqlite import SqliteTransaction
from discreet.noise import Bits, SeededBits
from discreet.privacy import events

TENTH = events.Pure("0.1")


def spend(ledger: Ledger, who: str, pipe: int, keys: Callable[[], str]) -> None:
    """Charges and answers until the budget refuses."""
    while True:
        key = keys()
        try:
            receipt = ledger.charge("patients", TENTH, analyst=who, question=key, key=key)
        except InsufficientBudget:
            return
        os.write(pipe, f"charged {key} {receipt.sequence} {receipt.hash}\n".encode())
        with contextlib.suppress(LedgerError):  # a repeated charge is not answered again
            ledger.store_answer(receipt, f"replay {key}", key)
            os.write(pipe, f"answered {key}\n".encode())


def counter(prefix: str, start: int = 0) -> Callable[[], str]:
    places = iter(range(start, 10**9))
    return lambda: f"{prefix}-{next(places)}"


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """A child with a pipe to us."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(read)
        try:
            work(write)
        except BaseException as error:  # noqa: BLE001 - said to the reader, who will not expect it
            os.write(write, f"error {error!r}\n".encode())
        os._exit(0)
    os.close(write)
    return process, read


def collect(process: int, read: int) -> None:
    with os.fdopen(read, "rb") as pipe:
        sys.stdout.buffer.write(pipe.read())
    os.waitpid(process, 0)


def crowd(path: str, processes: int, threads: int) -> None:
    def work(pipe: int) -> None:
        with Ledger(path) as ledger:
            names = [f"{os.getpid()}-{place}" for place in range(threads)]
            crew = [threading.Thread(target=spend, args=(ledger, who, pipe, counter(who))) for who in names]
            for thread in crew:
                thread.start()
            for thread in crew:
                thread.join()

    children = [forked(work) for _ in range(processes)]
    for child in children:
        collect(*child)


def spend_on_months(ledger: Ledger, pipe: int, bits: Bits, charges: int) -> None:
    """Charges for months of three years, at random; each question says which and how much, for whoever adds up."""
    for number in range(charges):
        first, length, amount = bits.word() % 36, 1 + bits.word() % 3, 1 + bits.word() % 20
        months = [month(place) for place in range(first, first + length)]
        question = f"{first}+{length}/{amount}/{os.getpid()}-{number}"
        with contextlib.suppress(InsufficientBudget):
            event = events.Pure(Fraction(amount, 1000))
            receipt = ledger.charge("patients", event, question=question, periods=months)
            os.write(pipe, f"charged {question} {receipt.sequence} {receipt.hash}\n".encode())


def month(place: int) -> str:
    """The first day of a month, counted from January 2024."""
    return f"{2024 + place // 12}-{1 + place % 12:02}-01"


def months(path: str, runs: int, seed: int) -> None:
    """Of two children at once, one kills itself at a chosen SQL statement, one is killed after an acknowledgement."""
    bits = SeededBits(seed)
    for run in range(runs):
        steps, acknowledged = 1 + bits.word() % 300, 1 + bits.word() % 20

        def work(pipe: int, *, falls: bool, run: int = run, steps: int = steps) -> None:
            ledger = Ledger(path)
            if falls:
                fall_at(ledger, steps)
            spend_on_months(ledger, pipe, SeededBits(seed + 1 + 2 * run + falls), 25)

        pair = [forked(partial(work, falls=falls)) for falls in (True, False)]
        pass_on(pair[1][1], acknowledged)
        os.kill(pair[1][0], signal.SIGKILL)
        for child in pair:
            collect(*child)


def killed(path: str, runs: int, seed: int) -> None:
    """Half of the children kill themselves at a chosen SQL statement, half are killed after an acknowledgement."""
    bits = SeededBits(seed)
    for run in range(runs):
        step, acknowledged = 1 + bits.word() % 60, bits.word() % 6

        def work(pipe: int, run: int = run, step: int = step) -> None:
            ledger = Ledger(path)
            if run % 2 == 0:
                fall_at(ledger, step)
            spend(ledger, "ana", pipe, counter("key", run // 3))  # keys overlap with those of earlier runs

        process, read = forked(work)
        if run % 2:
            pass_on(read, acknowledged)
            os.kill(process, signal.SIGKILL)
        collect(process, read)


def pass_on(read: int, lines: int) -> None:
    """Waits for so many acknowledgements, and for none after the end."""
    while lines and (byte := os.read(read, 1)):
        sys.stdout.buffer.write(byte)
        lines -= byte == b"\n"


def fall_at(ledger: Ledger, step: int) -> None:
    """Dies at the start of the n-th SQL statement: every step of a charge and of an answer is one."""
    left = [step]

    def count(_statement: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    store: Any = ledger._journal.store
    store._writer.set_trace_callback(count)


def uncharged() -> None:
    """Acknowledges without writing."""

    def pretend(rows: Transaction, asked: charges.PricedRequest) -> tuple[charges.Receipt, ...]:
        receipts = honest(rows, asked)
        rows._connection.execute("ROLLBACK")  # type: ignore[attr-defined]
        rows._connection.execute("BEGIN IMMEDIATE")  # type: ignore[attr-defined]
        return receipts

    honest, charges.charge = charges.charge, pretend


def late() -> None:
    """Acknowledges first and commits with the next charge but two."""
    honest = sqlite.SqliteStore._commit
    honest_begin = sqlite.SqliteStore.begin
    count = [0]

    def commit(store: sqlite.SqliteStore) -> None:
        count[0] += 1
        if count[0] % 3 == 0:
            honest(store)

    def begin(store: sqlite.SqliteStore, places: Places = list) -> Transaction:
        if not store._writer.in_transaction:
            return honest_begin(store, places)
        store._write_lock.acquire()
        store._rows = SqliteTransaction(store._writer)
        return store._rows

    sqlite.SqliteStore._commit = commit  # type: ignore[method-assign,assignment]
    sqlite.SqliteStore.begin = begin  # type: ignore[method-assign,assignment]


def race() -> None:
    """Looks at the balance first and writes later, each in a transaction of its own."""
    admitted, charged = charges._admit_analyst, Ledger.charge_all
    seen = threading.local()

    def look(ledger: Ledger, asked: Any, **details: Any) -> tuple[charges.Receipt, ...]:
        with ledger._journal.reading() as rows:
            seen.standing = admitted(rows, "patients", details["analyst"])
        threading.Event().wait(0.003)  # the others look, too
        return charged(ledger, asked, **details)

    def remember(_rows: Transaction, _account: str, _who: str) -> tuple[AccountState, AccountMember]:
        standing, member = seen.standing
        return standing, member

    charges._admit_analyst, Ledger.charge_all = remember, look  # type: ignore[method-assign,assignment]


MUTANTS = {"": lambda: None, "uncharged": uncharged, "late": late, "race": race}

if __name__ == "__main__":
    MUTANTS[os.environ.get("MUTANT", "")]()
    what, path, *numbers = sys.argv[1:]
    {"crowd": crowd, "killed": killed, "months": months}[what](path, *map(int, numbers))
