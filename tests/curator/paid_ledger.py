"""A ledger in which every verb was paid, by the code from before one function paid for all of them.

``data/paid_book.tar.gz`` and ``data/paid_book.json`` were written once and are never made again: they stand for ledgers
that users have. `write` is how they were made (``python -m tests.curator.paid_book FOLDER`` with that code on the
path). Noise is secure, so that releases are private ones; what every call returned is kept beside the ledger.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from discreet import Budget, Curator
from discreet.curator import Answer
from discreet.errors import QueryFailed
from discreet.learn import GaussianNB
from discreet.learn.persistence.store import to_json
from discreet.ledger import Ledger
from discreet.privacy import events
from tests.curator.old_ledger import Hooked, _stopped

DATA = Path(__file__).parent / "data"
BOOK, TOLD = DATA / "paid_book.tar.gz", DATA / "paid_book.json"
NAME = "book"
START = dt.date(2026, 1, 1)
VISITS = {"person": "int", "ward": "text", "age": "int", "free": "int", "fee": "int", "ill": "int", "day": "date"}


def declare(curator: Curator) -> None:
    """Declares the tables as the ledger has them: two of the same people, and one of another account."""
    visits = [
        {
            "person": number // 2,
            "ward": "AB"[number % 2],
            "age": 20 + number % 60,
            "free": 100 * number,
            "fee": 10 * number,
            "ill": int(number % 3 == 0),
            "day": START + dt.timedelta(days=number % 4),
        }
        for number in range(240)
    ]
    people = [{"person": number, "sex": "FM"[number % 2]} for number in range(120)]
    budget = Budget(epsilon=200, delta="1e-3")
    shared: dict[str, Any] = {"unit": "person", "account": "patients"}
    curator.protect(
        people,
        name="people",
        types={"person": "int", "sex": "text"},
        keys={"sex": ["F", "M"]},
        budget=budget,
        **shared,
    )
    bounds = {"age": (0, 100), "ill": (0, 1)}
    curator.protect(visits, name="visits", types=VISITS, bounds=bounds, keys={"ward": ["A", "B"]}, max_rows=2, **shared)
    curator.protect(
        [{"total": number % 9} for number in range(50)],
        name="sales",
        account="shop",
        types={"total": "int"},
        bounds={"total": (0, 10)},
        budget=Budget(epsilon=20),
    )


# --------------------------------------------------------------------------------------------------------------- verbs


@dataclass(frozen=True)
class Call:
    """A paid call.

    Args:
        name: of the call, which is its idempotency key as well.
        make: takes the curator, and `key` and who asks.
        other: another request that the same key must not answer.
        who: who asks.
        stops_at: at which read it is stopped, where it is.
    """

    name: str
    make: Callable[..., Any]
    other: Callable[..., Any]
    who: tuple[tuple[str, str], ...] = ()
    stops_at: int = 1

    def __call__(self, curator: Curator, key: str | None = "") -> Any:
        """Returns the result, under its own key, another one, or none."""
        return self.make(curator, key=self.name if key == "" else key, **dict(self.who))

    def conflict(self, curator: Curator) -> Any:
        """Asks something else under its key."""
        return self.other(curator, key=self.name, **dict(self.who))


def _ask(sql: str, **how: Any) -> Callable[..., Any]:
    return lambda curator, **more: curator.ask(sql, **{"epsilon": 1, **how, **more})


def _many(age: int) -> Callable[..., Any]:
    questions = [
        f"SELECT ward, SUM(age) AS s FROM visits WHERE age > {age} GROUP BY ward",
        f"SELECT COUNT(*) AS n FROM visits WHERE age > {age + 1}",
    ]
    return lambda curator, **more: curator.ask_many(questions, epsilon=1, **more)


def _profile(*columns: str) -> Callable[..., Any]:
    return lambda curator, **more: curator.profile("visits", epsilon=2, columns=list(columns), **more)


def _fit(sql: str) -> Callable[..., Any]:
    return lambda curator, **more: curator.fit(GaussianNB(epsilon=1, delta="1e-6"), sql, target="ill", **more)


def _synthesize(columns: str) -> Callable[..., Any]:
    how: dict[str, Any] = {"epsilon": 2, "generator": "independent", "bins": 2, "rows": 20}
    return lambda curator, **more: curator.synthesize(f"SELECT {columns} FROM visits", **how, **more)


def _tables(columns: str) -> Callable[..., Any]:
    how: dict[str, Any] = {"epsilon": 2, "generator": "independent", "bins": 2, "rows": 10}
    events = f"SELECT {columns} FROM visits"
    return lambda curator, **more: curator.synthesize_tables("people", events, **how, **more)


_COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age <> {}"
_SUM = "SELECT SUM(free) AS s FROM visits WHERE age <> {}"
_OTHER = _ask("SELECT ward, COUNT(*) AS n FROM visits WHERE age = 1 GROUP BY ward")
ANA = (("analyst", "ana"), ("project", "study"))

ANSWERED = [
    Call("ask", _ask(_COUNT.format(1)), _OTHER),
    Call("ask for ana", _ask(_COUNT.format(2)), _OTHER, ANA),
    Call("bounds", _ask("SELECT SUM(fee) AS s FROM visits", epsilon=4), _OTHER),
    Call("limits", _ask("SELECT COUNT(*) AS n FROM people", limits="choose", epsilon=4), _OTHER),
    Call("with profile", _ask(_COUNT.format(5), profile=1), _ask(_COUNT.format(5), profile=2)),
    Call("coverage", _ask(_COUNT.format(6), coverage="0.3"), _ask(_COUNT.format(6))),
    Call("many", _many(10), _many(11)),
    Call("profile", _profile("age", "ill"), _profile("ill")),
    Call("fit", _fit("SELECT age, ill FROM visits"), _fit("SELECT ward, ill FROM visits")),
    Call("synthesize", _synthesize("ward, age"), _synthesize("ward, ill")),
    Call("two tables", _tables("ward"), _tables("ill")),
]
"""Paid and answered, in this order."""

STOPPED = [
    Call("stopped ask", _ask(_COUNT.format(21)), _OTHER),
    Call("stopped ask for ana", _ask(_COUNT.format(22)), _OTHER, ANA),
    Call("stopped after bounds", _ask(_SUM.format(23), epsilon=4), _OTHER, stops_at=2),
    Call("stopped after limits", _ask(_COUNT.format(24), limits="choose", epsilon=4), _OTHER, stops_at=2),
    Call("stopped after coverage", _ask(_COUNT.format(25), coverage="0.3"), _OTHER, stops_at=2),
    Call("stopped many", _many(30), _many(31), stops_at=2),
    Call("stopped profile", _profile("age"), _profile("ill")),
    Call("stopped fit", _fit("SELECT ward, age, ill FROM visits"), _fit("SELECT ward, ill FROM visits")),
    Call("stopped synthesize", _synthesize("ward, ill"), _synthesize("ward, age")),
    Call("stopped two tables", _tables("ill"), _tables("ward")),
]
"""Charged before the others, and stopped by Ctrl-C while they read; some after a part of them was released."""

FAILED = Call("failed", _ask(_COUNT.format(41)), _OTHER)
VANISHED = Call("vanished", _ask(_COUNT.format(42)), _OTHER)
"""Of a process that was killed while it read."""

USED_UP = Call("used up", _ask(_COUNT.format(43)), _OTHER)
"""Stopped three times."""

STREAM = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
BESIDE = {"patients": events.Pure(1), "shop": events.Pure("1/2")}
"""What is charged to two accounts at once."""


def stream(curator: Curator, name: str) -> Any:
    """Returns a stream of four days."""
    return curator.stream(STREAM, every="day", horizon=4, start="2026-01-01", epsilon=2, periods=4, name=name)


def joined(ledger: Ledger, key: str) -> Any:
    """Charges both accounts."""
    return ledger.charge_all(BESIDE, question='{"join":1}', key=key, replay_key=key, terms="1")


def told(result: Any) -> Any:
    """Returns everything that a call released, exactly."""
    if isinstance(result, list):
        return [told(one) for one in result]
    if isinstance(result, Answer):
        return [repr(record) for record in result.records]
    if hasattr(result, "model"):
        tables = [getattr(result, name) for name in ("table", "people", "events") if hasattr(result, name)]
        return [repr(table.to_pydict()) for table in tables]
    return to_json(result) if hasattr(result, "get_params") else str(result)


# ------------------------------------------------------------------------------------------------------------- writing


def write(folder: Path) -> None:
    """Writes the ledger with the states of its streams, and beside it what was told."""
    engine, path = Hooked(), folder / NAME
    with Curator(path, engine=engine, anchor="") as curator:
        declare(curator)
        curator.appoint("ana", "analyst", account="patients", cap=Budget(epsilon=50, delta="1e-4"))
        curator.allot("study", account="patients", cap=Budget(epsilon=40, delta="1e-4"))
        for call in (*STOPPED, *[USED_UP] * 3):
            _stopped(engine, call.stops_at, partial(call, curator))
        found: dict[str, Any] = {"answers": {call.name: told(call(curator)) for call in ANSWERED}}
        with engine.falling(1, lambda: 1 / 0), contextlib.suppress(QueryFailed):
            FAILED(curator)
        opened = stream(curator, "daily")
        found["stream"] = [told(opened.release()) for _ in range(2)]
        stream(curator, "unused")
    with Ledger(str(path)) as ledger:
        first, _ = joined(ledger, "joined")
        ledger.store_answer(first, "joined", "{}")
        ledger.interrupt(joined(ledger, "joined stopped")[0])
    _vanish(path)
    with Ledger(str(path)) as ledger:
        found["head"] = str(ledger.verify())
        found["spent"] = {name: str(ledger.balance(name).spent) for name in ledger.accounts()}
        found["ana"] = str(ledger.balance("patients", analyst="ana").spent)
    (folder / TOLD.name).write_text(json.dumps(found, indent=1) + "\n")
    with tarfile.open(folder / BOOK.name, "w:gz") as archive:
        for file in sorted([path, *Path(f"{path}.streams").glob("*.state")]):
            archive.add(file, file.relative_to(folder))


def _vanish(path: Path) -> None:
    """A process dies while it reads."""
    child = os.fork()
    if not child:
        engine = Hooked()
        curator = Curator(path, engine=engine, anchor="")
        declare(curator)
        with engine.falling(1, lambda: os._exit(9)):
            VANISHED(curator)
        os._exit(1)
    os.waitpid(child, 0)


def unpack(folder: Path) -> Path:
    """Writes a copy of the ledger and of its streams into a folder, and returns where it is."""
    with tarfile.open(fileobj=io.BytesIO(BOOK.read_bytes())) as archive:
        archive.extractall(folder, filter="data")
    return folder / NAME


if __name__ == "__main__":
    write(Path(sys.argv[1]))
