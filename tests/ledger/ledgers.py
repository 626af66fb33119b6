"""Small ledgers for tests, and ways to spoil them behind the ledger's back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from discreet.errors import InsufficientBudget
from discreet.ledger import Ledger
from discreet.ledger.store import sqlite_tables
from discreet.privacy import Budget, Loss, Unit, events
from discreet.privacy.events import Event

PATIENTS = Unit("patient", "patient_id")
TENTH = events.Pure("0.1")


def opened(path: str | Path = ":memory:", budget: Loss | None = None, account: str = "patients") -> Ledger:
    ledger = Ledger(str(path))
    ledger.stewardship.open_account(account, unit=PATIENTS, budget=budget or Budget(epsilon=1))
    return ledger


def spend(ledger: Ledger, event: Event = TENTH, most: int = 1000, account: str = "patients") -> int:
    """How many charges pass until one is refused."""
    for passed in range(most):
        try:
            ledger.charge(account, event)
        except InsufficientBudget:
            return passed
    return most


def busy_ledger(path: Path) -> None:
    """A ledger in which every kind of act happened."""
    with opened(path) as ledger:
        ledger.stewardship.attach("visits", account="patients", declaration='{"age":[0,120]}', version="2026-11")
        ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="1/2"))
        ledger.stewardship.appoint("sue", "steward")
        first = ledger.charge("patients", TENTH, analyst="ana", question='{"count":"visits"}', key="k1")
        ledger.store_answer(first, "visits@2026-11/count", b"\x00answer\xff")
        failed = ledger.charge("patients", events.Pure("1/3"), analyst="sue", question='{"sum":"age"}')
        ledger.fail(failed)
        ledger.stewardship.unlock("patients", by="sue", note="a full disk")
        ledger.stewardship.amend("patients", budget=Budget(epsilon=2), by="sue", note="agreed by the board")
        ledger.stewardship.renew("patients", by="sue", note="a new year")
        for _ in range(5):
            ledger.charge("patients", events.Laplace(noise_multiplier=20), analyst="ana", question="{}")


def tamper(path: Path, *statements: str) -> None:
    """Runs SQL on a closed ledger with its triggers taken off and put back again."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for name in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for statement in sqlite_tables.STATEMENTS:
            if statement.startswith("CREATE TRIGGER"):
                connection.execute(statement)


class Faulty:
    """A connection whose chosen statements fail the way SQLite does when the disk does."""

    def __init__(self, real: sqlite3.Connection, statement: str, *, after: bool = False) -> None:
        self._real, self._statement, self._after = real, statement, after

    def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        if not query.startswith(self._statement):
            return self._real.execute(query, *values)
        if self._after:  # it reached the disk, but nobody was told
            self._real.execute(query, *values)
        raise sqlite3.OperationalError("disk I/O error")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def spoil(ledger: Ledger, statement: str, *, after: bool = False) -> None:
    """Lets statements of the writing connection and cursor fail that begin like this, after their work if asked."""
    store: Any = ledger._journal.store
    store._writer = Faulty(store._writer, statement, after=after)
    store._cursor = Faulty(store._cursor, statement, after=after)
