"""Durable charges on PostgreSQL beside a ledger file: ten clients, sixteen accounts, both on this disk, in this run.

    python bench/shared_ledger.py                                      charges per second, and short forms of the rest
    python bench/shared_ledger.py --attempts 100000 --kills 200        overspending and crashes, as they are claimed

Each client is a process. A charge is counted when its receipt was returned, which is after it is on the disk. Attempts
go to accounts that are soon used up, and overspending is what passes beyond their budgets. Kills are SIGKILL to all
processes of the server while the clients charge, each under a key that it uses again until it has a receipt: a lost
charge is a receipt that is not in the ledger afterwards, a doubled one is a key or a client's question charged twice.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from _timing import Row, show

from discreet.errors import InsufficientBudget, LedgerError
from discreet.ledger import Ledger
from discreet.privacy import Budget, Unit, events
from tests.postgres_server import PostgresServer

CLIENTS, ACCOUNTS, SECONDS = 10, 16, 5.0
EVENT = events.Pure("0.001")
QUESTION = '{"from":"visits","group":["ward"],"select":[{"count":"*"},{"avg":"charge"}],"where":"age >= 40"}'
FORK = multiprocessing.get_context("fork")


def opened(place: str, epsilon: Fraction | int) -> None:
    with Ledger(place) as ledger:
        for number in range(ACCOUNTS):
            unit = Unit(f"unit {number}", "id")
            ledger.stewardship.open_account(f"account {number}", unit=unit, budget=Budget(epsilon=epsilon))


def crowd(work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What ten processes return, begun at the same moment."""
    start, results = FORK.Barrier(CLIENTS), FORK.Queue()

    def run(client: int) -> None:
        start.wait()
        results.put(work(client, *arguments))

    processes = [FORK.Process(target=run, args=(client,)) for client in range(CLIENTS)]
    for process in processes:
        process.start()
    found = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return found


def charge_for_a_while(client: int, place: str) -> tuple[int, float]:
    with Ledger(place, timeout=120) as ledger:
        ledger.charge("account 0", EVENT, analyst=f"client {client}", question=QUESTION)
        done, start = 0, time.perf_counter()
        while time.perf_counter() < start + SECONDS:
            ledger.charge(f"account {(client + done) % ACCOUNTS}", EVENT, analyst=f"client {client}", question=QUESTION)
            done += 1
        return done, time.perf_counter() - start


def rate(place: str) -> float:
    """Charges per second of all clients together."""
    opened(place, 10**7)
    done = crowd(charge_for_a_while, place)
    with Ledger(place, read_only=True) as ledger:
        ledger.verify()
    return sum(count for count, _ in done) / max(seconds for _, seconds in done)


def attempt(client: int, place: str, attempts: int) -> int:
    passed = 0
    with Ledger(place, timeout=120) as ledger:
        for number in range(attempts):
            try:
                ledger.charge(f"account {(client + number) % ACCOUNTS}", EVENT, analyst=f"client {client}")
                passed += 1
            except InsufficientBudget:
                pass
    return passed


def overspend(place: str, attempts: int) -> None:
    each = 20  # charges that an account can pay for
    opened(place, Fraction(each, 1000))
    start = time.perf_counter()
    passed = sum(crowd(attempt, place, attempts // CLIENTS))
    seconds = time.perf_counter() - start
    with Ledger(place, read_only=True) as ledger:
        ledger.verify()
        written = sum(entry.kind == "charge" for entry in ledger.history())
    print(f"{attempts} attempts by {CLIENTS} clients in {seconds:.0f} s: {passed} passed, {written} written, ", end="")
    print(f"{each * ACCOUNTS} paid for; overspent {max(passed, written) - each * ACCOUNTS}")


def charge_until(client: int, place: str, stop: Any) -> list[tuple[str, int, str]]:
    told, number = [], 0
    with Ledger(place, timeout=60) as ledger:
        while not stop.is_set():
            key = f"{client}-{number}"
            try:
                account = f"account {number % ACCOUNTS}"
                receipt = ledger.charge(account, EVENT, analyst=f"client {client}", question=QUESTION, key=key)
            except LedgerError:
                continue  # ask again under the same key
            told.append((key, receipt.sequence, receipt.hash))
            number += 1
    return told


def kills(server: PostgresServer, place: str, times: int) -> None:
    opened(place, 10**7)
    stop = FORK.Event()

    def strike() -> None:
        for _ in range(times):
            time.sleep(0.3)
            server.kill()
            server.restart()
        stop.set()

    killer = FORK.Process(target=strike)
    killer.start()
    told = [each for client in crowd(charge_until, place, stop) for each in client]
    killer.join()
    with Ledger(place, read_only=True) as ledger:
        ledger.verify()
        charges = [entry for entry in ledger.history() if entry.kind == "charge"]
    written = {(entry.key, entry.sequence, entry.hash) for entry in charges}
    doubled = sum(count - 1 for count in Counter((entry.who, entry.key) for entry in charges).values())
    print(f"{times} kills of the server: {len(told)} receipts, {len(charges)} charges, ", end="")
    print(f"lost {len(set(told) - written)}, doubled {doubled}, never acknowledged {len(written - set(told))}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--attempts", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=5)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            server = PostgresServer(place=tempfile.gettempdir())
        except FileNotFoundError as error:
            print(error)
            return
        try:
            shared, alone = rate(server.url(database=server.make_database())), rate(f"{folder}/book")
            print(f"{shared:.0f} charges per second on PostgreSQL, {alone:.0f} in a file (wanted: at least 200)")
            rows = [Row("one charge, ten clients, sixteen accounts", 1 / shared, 1 / alone, None)]
            show("PostgreSQL beside a ledger file, wall time", rows, unit="ms", per=1e-3)
            overspend(server.url(database=server.make_database()), wanted.attempts)
            kills(server, server.url(database=server.make_database()), wanted.kills)
        finally:
            server.close()


if __name__ == "__main__":
    main()
