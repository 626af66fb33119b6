"""A ledger that an earlier version wrote, and the tables it is about, which can be made again.

``data/book_0_2.sqlite.gz`` and ``data/book_0_2.json`` were written once, by the last version before its curator was
made of parts, and are never made again: they stand for the ledgers that users have. `write` is how they were made
(``python -m tests.curator.old_book FOLDER`` with that version on the path). It asks with secure noise, so that the
answers are private ones like those of users, and keeps beside the ledger what every question was answered.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from discreet import Budget, Curator, Limits
from discreet.engines import Memory
from discreet.errors import QueryFailed
from discreet.learn import GaussianNB

DATA = Path(__file__).parent / "data"
BOOK, TOLD = DATA / "book_0_2.sqlite.gz", DATA / "book_0_2.json"

Row = dict[str, Any]
VISITS = "SELECT patient, ward, age, charge FROM visits"


def tables() -> dict[str, list[Row]]:
    """Rows by table; what is in them does not matter but for private groups and bounds, which need many people."""
    return {
        "wards": [{"ward": ward, "beds": 10 * place} for place, ward in enumerate("ABC", 1)],
        "visits": [_visit(number) for number in range(900)],
        "stays": [{"patient": number, "nights": number % 9} for number in range(0, 450, 2)],
        "orders": [{"id": number, "customer": number % 150, "total": 3.25 * (number % 40)} for number in range(300)],
        "items": [{"order_id": number % 300, "price": 0.5 * (number % 30)} for number in range(600)],
        "survey": [
            {"likes": number % 3 > 0, "score": number % 11, "fee": 1.5 * (number % 97)} for number in range(500)
        ],
        "trials": [
            {"arm": "ab"[number % 2], "dose": 0.1 * (number % 50), "cured": number % 3 == 0} for number in range(400)
        ],
        "panel": [{"size": number % 7} for number in range(80)],
    }


def _visit(number: int) -> Row:
    return {
        "patient": number // 2,
        "ward": "ABC"[number % 3],
        "town": ["Kiel", "Ulm", "Bonn", f"hamlet {number}"][min(number % 7, 3)],
        "age": 20 + number % 70,
        "charge": 2.5 * (number % 200),
        "fee": 0.75 * (number % 300) + 10,
        "day": dt.date(2025, 1, 1) + dt.timedelta(days=number % 300),
    }


def declare(curator: Curator) -> None:
    """Everything as it was declared in the ledger: accounts of each currency, each relation and kind of unit."""
    data = tables()
    curator.public(data["wards"], name="wards", types={"ward": "text", "beds": "int"})
    curator.protect(
        data["visits"],
        name="visits",
        unit="patient",
        account="patients",
        budget=Budget(epsilon=60, delta="1e-3"),
        types={
            "patient": "int",
            "ward": "text",
            "town": "text",
            "age": "int",
            "charge": "float",
            "fee": "float",
            "day": "date",
        },
        bounds={"age": (0, 120), "charge": (0, 500), "day": ("2025-01-01", "2025-12-31")},
        keys={"ward": ["A", "B", "C"]},
        max_groups=2,
        max_rows=2,
        version="2025-12",
    )
    curator.protect(
        data["stays"],
        name="stays",
        unit="patient",
        max_rows=1,
        account="patients",
        types={"patient": "int", "nights": "int"},
        bounds={"nights": (0, 30)},
        version="2025-12",
    )
    curator.protect(
        data["orders"],
        name="orders",
        unit="customer",
        account="shop",
        budget=Budget(rho=40),
        types={"id": "int", "customer": "int", "total": "float"},
        bounds={"total": (0, 200)},
        max_rows=4,
    )
    curator.protect(
        data["items"],
        name="items",
        unit="order_id -> orders.id",
        types={"order_id": "int", "price": "float"},
        bounds={"price": (0, 20)},
        max_rows=8,
    )
    curator.protect(
        data["survey"],
        name="survey",
        budget=Budget(epsilon=40),
        types={"likes": "bool", "score": "int", "fee": "float"},
        bounds={"score": (0, 10)},
    )
    curator.protect(
        data["trials"],
        name="trials",
        budget=Budget(epsilon=30),
        types={"arm": "text", "dose": "float", "cured": "bool"},
        bounds={"dose": (0, 5)},
        keys={"arm": ["a", "b"]},
        neighbours="replace",
    )
    curator.protect(
        data["panel"],
        name="panel",
        budget=Budget(rho="1/2", delta="1e-6"),
        types={"size": "int"},
        bounds={"size": (0, 10)},
    )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question with its options."""

    sql: str
    options: dict[str, Any] = field(default_factory=dict)

    def ask(self, curator: Curator) -> Any:
        """The answer."""
        return curator.ask(self.sql, **self.options)


def _asked(sql: str, epsilon: str | None = "1/2", **options: Any) -> Asked:
    return Asked(sql=sql, options=options if epsilon is None else {"epsilon": epsilon, **options})


ANSWERED = [
    _asked("SELECT COUNT(*) AS n FROM visits"),
    _asked("SELECT ward, COUNT(*) AS n, SUM(charge) AS s, AVG(charge) AS m FROM visits GROUP BY ward", key="by ward"),
    _asked("SELECT COUNT(age) AS n, COUNT(DISTINCT ward) AS w, COUNT(DISTINCT patient) AS p FROM visits"),
    _asked("SELECT VARIANCE(age) AS v, STDDEV(charge) AS s FROM visits WHERE age < 60"),
    _asked("SELECT COVAR_SAMP(age, charge) AS c, CORR(age, charge) AS r FROM visits"),
    _asked("SELECT MEDIAN(age) AS h, QUANTILE(charge, 0.9) AS q, MIN(age) AS a, MAX(age) AS z FROM visits"),
    _asked("SELECT ward, MEDIAN(charge) AS h FROM visits GROUP BY ward", "1"),
    _asked("SELECT MODE(ward) AS w FROM visits", key="mode"),
    _asked("SELECT HISTOGRAM(age, 0, 30, 60, 90) AS band FROM visits"),
    _asked("SELECT HISTOGRAM(charge) AS band FROM visits", "1"),
    _asked("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", "2", delta="1e-6", key="towns"),
    _asked("SELECT town, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY town", "2", delta="1e-6", other="elsewhere"),
    _asked("SELECT ward, town, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, town)", "2", delta="1e-6"),
    _asked("SELECT ward, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY ROLLUP (ward)"),
    _asked(
        "SELECT w.beds, COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.ward = w.ward GROUP BY w.beds",
        "1",
        delta="1e-6",
    ),
    _asked("SELECT COUNT(*) AS n, SUM(s.nights) AS k FROM visits AS v JOIN stays AS s ON v.patient = s.patient"),
    _asked("SELECT AVG(x.n) AS m FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS x"),
    _asked("SELECT COUNT(*) AS n FROM visits WHERE day >= DATE '2025-06-01'", limits=Limits(1, 3), analyst="ana"),
    _asked("SELECT COUNT(*) AS n FROM visits WHERE age > 40", None, within=15, max_epsilon=2, key="near"),
    _asked("SELECT ward, COUNT(charge) AS n FROM visits GROUP BY ward", "1"),
    _asked("SELECT ward, AVG(charge) AS m FROM visits GROUP BY ward", None, within=40, max_epsilon=4),
    _asked("SELECT AVG(fee) AS m, SUM(fee) AS s FROM visits", "4", key="fee"),
    _asked("SELECT ward, AVG(fee) AS m FROM visits GROUP BY ward", "1", key="fee by ward"),
    _asked("SELECT MEDIAN(fee) AS h FROM visits", "1"),
    _asked("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "4", limits="choose", key="limits"),
    _asked("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 100 ORDER BY n DESC LIMIT 2", "1/4"),
    _asked("SELECT COUNT(*) AS n FROM visits WHERE ward = 'A'", "1/8"),
    _asked("SELECT COUNT(*) AS n, SUM(total) AS s FROM orders", project="prices"),
    _asked("SELECT AVG(price) AS m, MAX(price) AS z FROM items", "1", key="items"),
    _asked("SELECT likes, COUNT(*) AS n, AVG(score) AS m FROM survey GROUP BY likes", key="likes", analyst="bob"),
    _asked("SELECT SUM(fee) AS s FROM survey", "4", key="survey fee"),
    _asked("SELECT likes, COUNT(*) AS n, SUM(score) AS s FROM survey GROUP BY ROLLUP (likes)", "1"),
    _asked("SELECT COUNT(*) AS n FROM survey", "1/10"),
    _asked("SELECT AVG(score) AS m FROM survey WHERE likes", "1/10"),
    _asked("SELECT arm, COUNT(*) AS n, AVG(dose) AS m FROM trials GROUP BY arm", key="arms"),
    _asked("SELECT QUANTILE(dose, 0.25) AS q FROM trials WHERE cured", "1"),
    _asked("SELECT COUNT(*) AS n, AVG(size) AS m FROM panel", "1/4"),
]
"""Asked one after the other, and answered; some follow from what was answered before."""

FAILED = _asked("SELECT COUNT(*) AS n FROM visits WHERE age = 33", key="failed")
STOPPED = [
    _asked("SELECT COUNT(*) AS n FROM visits WHERE age = 34", key="stopped"),
    _asked("SELECT ward, SUM(charge) AS s FROM visits WHERE age <> 35 GROUP BY ward", key="stopped by ward"),
    _asked("SELECT AVG(fee) AS m FROM survey WHERE likes", "3", key="stopped before bounds"),
    _asked("SELECT SUM(fee) AS s FROM visits WHERE age <> 36", "3", key="stopped after bounds"),
]
"""Stopped while they read; before and after a stage that finds bounds, which are known by the end of the ledger."""

VANISHED = _asked("SELECT COUNT(*) AS n FROM visits WHERE age = 37", key="vanished")
"""Of a process that was killed while it read: nothing but its charge is in the ledger."""

EARLIER = _asked("SELECT COUNT(*) AS n FROM panel WHERE size < 3", "1/8", key="earlier")
"""Stopped, and then its account was renewed."""

FIT: tuple[str, dict[str, Any]] = ("SELECT age, charge, ward FROM visits", {"target": "ward", "key": "fit"})
STOPPED_FIT: tuple[str, dict[str, Any]] = ("SELECT age, ward FROM visits", {"target": "ward", "key": "stopped fit"})


def learner() -> Any:
    """What is fitted."""
    return GaussianNB(epsilon=1, delta="1e-6")


class Hooked(Memory):
    """Counts reads, and does something at one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.at: tuple[int, Any] = (0, None)

    def read(self, reading: Any) -> Any:
        self.reads += 1
        place, act = self.at
        if self.reads == place:
            act()
        return super().read(reading)

    @contextlib.contextmanager
    def falling(self, place: int, act: Any) -> Iterator[None]:
        """At the read of this number something happens."""
        self.reads, self.at = 0, (place, act)
        yield
        self.at = (0, None)


def _stop() -> None:
    raise KeyboardInterrupt


def _stopped(engine: Hooked, place: int, act: Any) -> None:
    with engine.falling(place, _stop):
        try:
            act()
        except KeyboardInterrupt:
            return
    raise AssertionError("It was not stopped.")


def told(answer: Any) -> list[str]:
    """All rows of an answer, exactly."""
    return [repr(record) for record in answer.records]


def model(fitted: Any) -> dict[str, Any]:
    """What was learned, exactly."""
    return {name: repr(getattr(fitted, name).tolist()) for name in ("theta_", "var_", "class_prior_")}


def write(folder: Path) -> None:
    """Writes the ledger, and beside it what was answered."""
    engine, path = Hooked(), folder / BOOK.stem
    with Curator(path, engine=engine) as curator:
        declare(curator)
        _steward(curator)
        for asked, place in zip(STOPPED, (1, 1, 1, 2), strict=True):
            _stopped(engine, place, partial(asked.ask, curator))
        found: dict[str, Any] = {"answers": [told(asked.ask(curator)) for asked in ANSWERED]}
        with engine.falling(1, lambda: 1 / 0), contextlib.suppress(QueryFailed):
            FAILED.ask(curator)
        sql, options = FIT
        found["fit"] = model(curator.fit(learner(), sql, **options))
        sql, options = STOPPED_FIT
        _stopped(engine, 1, lambda: curator.fit(learner(), sql, **options))
        _stopped(engine, 1, lambda: EARLIER.ask(curator))
        curator.renew("panel", note="a new year")
    _vanish(path)
    with Curator(path, engine=Memory()) as curator:
        found["head"] = str(curator.verify())
        found["spent"] = {name: str(curator.balance(name).spent) for name in curator.accounts()}
        found["lifetime"] = {name: str(curator.balance(name).lifetime) for name in curator.accounts()}
    (folder / BOOK.name).write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    (folder / TOLD.name).write_text(json.dumps(found, indent=1) + "\n")


def _steward(curator: Curator) -> None:
    curator.amend("survey", budget=Budget(epsilon=50), note="agreed")
    curator.appoint("ana", "analyst", account="patients", cap=Budget(epsilon=5, delta="1e-4"))
    curator.appoint("eve", "auditor")
    curator.allot("prices", account="shop", cap=Budget(rho=20), note="a study")
    curator.unlock("patients", note="nothing was wrong")


def _vanish(path: Path) -> None:
    """A process dies while it reads."""
    child = os.fork()
    if not child:
        engine = Hooked()
        curator = Curator(path, engine=engine)
        declare(curator)
        with engine.falling(1, lambda: os._exit(9)):
            VANISHED.ask(curator)
        os._exit(1)
    os.waitpid(child, 0)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
