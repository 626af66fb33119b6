"""What durable charges cost beside bare SQLite commits of the same durability, wall time, all measured in this run.

The bare writer does `BEGIN IMMEDIATE; INSERT; COMMIT` of a row as long as an entry, with a write-ahead log and a sync
for every commit. The book does the same and keeps exact balances, a hash chain and an analyst's sums beside it.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import median

from _timing import Row, show

from discreet.ledger import Ledger, changes
from discreet.ledger.entry import seal
from discreet.ledger.serialization import canonical
from discreet.ledger.tallies import prices
from discreet.privacy import Budget, Neighbours, Unit, events

PROCESSES, SECONDS = 8, 3.0
FEW, MANY, MILLION = 100, 100_000, 1_000_000
LATENCIES = 300
BUDGET = Budget(epsilon=10**7, delta="1e-6")
EVENT = events.Pure("0.001")
QUESTION = '{"from":"visits","group":["ward"],"select":[{"count":"*"},{"avg":"charge"}],"where":"age >= 40"}'


def bare(path: str) -> Callable[[], None]:
    connection = sqlite3.connect(path, timeout=30, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (place INTEGER PRIMARY KEY, body TEXT)")

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (body) VALUES (?)", (QUESTION * 5,))
        connection.execute("COMMIT")

    return commit


def charging(path: str) -> Callable[[], None]:
    ledger = Ledger(path)
    ledger.stewardship.open_account("patients", unit=Unit("patient", "id"), budget=BUDGET)

    def charge() -> None:
        ledger.charge("patients", EVENT, analyst="ana", question=QUESTION)

    return charge


def _spend(
    make: Callable[[str], Callable[[], None]], path: str, start: float, counts: multiprocessing.Queue[int]
) -> None:
    work, done = make(path), 0
    while time.time() < start:
        time.sleep(0.001)
    while time.time() < start + SECONDS:
        work()
        done += 1
    counts.put(done)


def rate(make: Callable[[str], Callable[[], None]], path: str) -> float:
    """Commits per second of several processes together."""
    make(path)
    context = multiprocessing.get_context("spawn")
    counts: multiprocessing.Queue[int] = context.Queue()
    start = time.time() + 6
    spenders = [context.Process(target=_spend, args=(make, path, start, counts)) for _ in range(PROCESSES)]
    for spender in spenders:
        spender.start()
    total = sum(counts.get() for _ in spenders)
    for spender in spenders:
        spender.join()
    return total / SECONDS


def latency(work: Callable[[], None]) -> float:
    times = []
    for _ in range(LATENCIES):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)


def filled(path: str, count: int) -> Ledger:
    """A ledger with so many charges, written in one transaction by the ledger's own pieces."""
    charging(path)()
    ledger = Ledger(path)
    price = prices(EVENT, BUDGET, Neighbours.ADD_REMOVE)
    price_text = canonical(price.write())
    first = ledger.history("patients", after=1, limit=1)[0]
    with ledger._journal.writing() as rows:
        sequence, previous = rows.tail()
        for _ in range(count):
            sequence += 1
            fields = (first.time, "charge", "patients", "ana", price_text, "", 0, first.body)
            entry = seal(previous, sequence, fields)
            rows.append(entry)
            previous = entry.hash
        changes.charge(rows, "patients", "ana", price * count)
    return ledger


def verified(folder: Path) -> float:
    with filled(str(folder / "million.ledger"), MILLION) as ledger:
        start = time.process_time()
        ledger.verify()
        return time.process_time() - start


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("DISCREET_BENCH_DIR", ".")) as name:
        folder = Path(name)
        rates = rate(charging, str(folder / "rate.ledger")), rate(bare, str(folder / "rate.sqlite"))
        few = latency(charging(str(folder / "few.ledger")))
        filled(str(folder / "many.ledger"), MANY).close()
        many = latency(charging(str(folder / "many.ledger")))
        one = latency(bare(str(folder / "one.sqlite")))
        million = verified(folder)
    print(f"durable charges per second, {PROCESSES} processes: {rates[0]:.0f} (target >= 200); bare: {rates[1]:.0f}")
    rows = [
        Row(f"a charge, {PROCESSES} processes at once, beside a bare commit", 1 / rates[0], 1 / rates[1], Fraction(3)),
        Row("a charge, one process, beside a bare commit", few, one, None),
        Row(f"a charge after {MANY} entries, beside one after {FEW}", many, few, Fraction(3, 2)),
    ]
    show("Durable charges", rows, "ms", 1e-3)
    show("Verification", [Row("verify 10^6 entries (CPU), beside 10 s", million, 10.0, Fraction(1))], "s", 1.0)


if __name__ == "__main__":
    main()
