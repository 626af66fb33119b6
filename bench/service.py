"""What the service costs beside bare curators, and what hostile callers can do to others, on one machine.

A clinic is served by `discreet serve` in a process of its own, with ticks of a millisecond, and asked over HTTP by
client threads, each question another one. Beside it, as many bare curators as there are workers, each a process with a
ledger of its own, ask the same questions. Then: the p99 of 32 clients against 3 x clients / workers x the median of one
client; 20 hostile explanations per second beside asks; a question that would run for minutes; and the ledger: charges
and answers are counted, and the chain is verified.

    python bench/service.py [questions per client, default 20]
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from _timing import Row, show

from discreet.curator import Curator
from discreet.ledger import Ledger
from discreet.service import demo_clinic

CLIENTS, WORKERS = 32, 2
DEADLINE = 5.0
SERVICE = f"""
[service]
workers = {WORKERS}
tick = 0.001
deadline = {DEADLINE}
planning_deadline = 3
queue = 64
queue_per_caller = 40
questions_per_day = 100000
requests_per_minute = 100000
"""
EPSILON = "0.001"
HOSTILE = "SELECT " + ", ".join(f"SUM(age + {i}) AS s{i}" for i in range(290)) + " FROM visits"
HEAVY = """
[tables.heavy]
source = "heavy.csv"
unit = "person"
max_rows = 1
types = { person = "int", x = "int" }
bounds = { x = [0, 9] }
[budgets.heavy]
epsilon = 1
[analysts.ana.heavy]
"""
PERSON_ROWS = 2_000  # of one person, who is joined with themselves: 2,000^4 rows to look at
ENDLESS = "SELECT SUM(a.x * b.x + c.x * d.x) AS n FROM heavy AS a" + "".join(
    f" JOIN heavy AS {name} ON {name}.person = a.person" for name in "bcd"
)


def question(number: int) -> str:
    return f"SELECT ward, COUNT(*) AS n, AVG(charge) AS cost FROM visits WHERE days + {number} > 3 GROUP BY ward"


def folder_of_clinic(folder: Path) -> Path:
    config = demo_clinic.make(folder)
    text = config.read_text().replace('epsilon = "10"', 'epsilon = "100"').replace('epsilon = "5"', 'epsilon = "100"')
    config.write_text(text + HEAVY + SERVICE)
    (folder / "heavy.csv").write_text("person,x\n" + "".join(f"1,{i % 10}\n" for i in range(PERSON_ROWS)))
    return config


@contextmanager
def served(folder: Path) -> Iterator[dict[str, str]]:
    """A service of a clinic, and what it says when it is ready."""
    folder_of_clinic(folder)
    code = "from discreet.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--demo", "--folder", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.wait(60)


class Client:
    """One connection of an analyst."""

    def __init__(self, told: dict[str, str], timeout: float = 300) -> None:
        self._host, self._key = urlsplit(told["url"]).netloc, told["analyst_key"]
        self._connection = http.client.HTTPConnection(self._host, timeout=timeout)

    def post(self, route: str, body: dict[str, Any]) -> tuple[int, dict[str, Any], float]:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        start = time.perf_counter()
        self._connection.request("POST", f"/v1/{route}", json.dumps(body), headers)
        reply = self._connection.getresponse()
        found = json.loads(reply.read())
        return reply.status, found, time.perf_counter() - start

    def ask(self, number: int) -> float:
        status, found, seconds = self.post("ask", {"sql": question(number), "epsilon": EPSILON})
        assert status == 200, found
        return seconds


def many(clients: int, each: int, told: dict[str, str], first: int) -> tuple[list[float], float]:
    """The time of every question, and of all together."""

    def run(place: int) -> list[float]:
        client = Client(told)
        return [client.ask(first + place * each + i) for i in range(each)]

    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        times = [seconds for found in pool.map(run, range(clients)) for seconds in found]
    return times, time.perf_counter() - start


def bare(folder: str, first: int, count: int, signs: tuple[Any, Any, Any]) -> None:
    """A curator in a process of its own."""
    ready, go, done = signs
    with Curator.from_config(Path(folder) / "discreet.toml") as curator:
        curator.ask(question(-1), epsilon=EPSILON, analyst=demo_clinic.ANALYST)
        ready.release()
        go.wait()
        for number in range(first, first + count):
            curator.ask(question(number), epsilon=EPSILON, analyst=demo_clinic.ANALYST)
    done.release()


def bare_seconds(count: int) -> float:
    """The time of as many curators as there are workers, for all questions."""
    context = multiprocessing.get_context("spawn")
    ready, go, done = context.Semaphore(0), context.Event(), context.Semaphore(0)
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / str(place) for place in range(WORKERS)]
        for folder in folders:
            folder_of_clinic(folder)
        share = count // WORKERS
        processes = [
            context.Process(target=bare, args=(str(folder), place * share, share, (ready, go, done)))
            for place, folder in enumerate(folders)
        ]
        for process in processes:
            process.start()
        for _ in processes:
            ready.acquire()
        start = time.perf_counter()
        go.set()
        for _ in processes:
            done.acquire()
        found = time.perf_counter() - start
        for process in processes:
            process.join()
    return found


@contextmanager
def beside(told: dict[str, str], act: Callable[[Client, int], None], per_second: float) -> Iterator[None]:
    """Somebody else who acts all the while."""
    stop = threading.Event()

    def run() -> None:
        number, clients = 0, ThreadPoolExecutor(64)
        while not stop.wait(1 / per_second):
            number += 1
            clients.submit(lambda n=number: act(Client(told, timeout=5), n))
        clients.shutdown(cancel_futures=True)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def hostile(client: Client, number: int) -> None:
    client.post("explain", {"sql": HOSTILE.replace("age +", f"age + {number} +"), "epsilon": 1})


def main() -> None:
    each = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    total = CLIENTS * each
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "clinic"
        with served(folder) as told:
            many(4, 10, told, 500_000)  # everything is warm
            alone, _ = many(1, 40, told, 600_000)
            crowd, seconds = many(CLIENTS, each, told, 0)
            curators = bare_seconds(total)
            one = statistics.median(alone)
            bound = 3 * CLIENTS / WORKERS * one
            calm, _ = many(4, each, told, 700_000)
            with beside(told, hostile, 20):
                pressed, _ = many(4, each, told, 800_000)
            status, found, late = Client(told).post("ask", {"sql": ENDLESS, "epsilon": EPSILON})
        rows = [
            ("all questions of 32 clients, beside bare curators", seconds, curators, Fraction(10, 6)),
            (
                "p99 of 32 clients, beside 3 x clients / workers x p50 of one",
                percentile(crowd, 0.99),
                bound,
                Fraction(1),
            ),
            (
                "p99 beside 20 hostile explanations a second",
                percentile(pressed, 0.99),
                percentile(calm, 0.99),
                Fraction(2),
            ),
            ("a question without end, beside its deadline + 1 s", late, DEADLINE + 1, Fraction(1)),
        ]
        with Ledger(str(folder / "clinic.ledger")) as ledger:
            kinds = [entry.kind for entry in ledger.history("patients")]
            ledger.verify()
        show("The service beside bare curators", [Row(*row) for row in rows], unit="s", per=1)
        print(f"a question without end: status {status}, {found.get('error')}")
        print(f"charges {kinds.count('charge')}, answers {kinds.count('answer')}, failures {kinds.count('fail')}")


if __name__ == "__main__":
    main()
