"""A process that forks askers from one warm interpreter, kills them if asked, and prints what they were answered.

    python -m tests.curator.nursery crowd PATH PROCESSES     several at once until the budget is gone
    python -m tests.curator.nursery killed PATH RUNS SEED    one after the other, each killed at some point
    python -m tests.curator.nursery vanish PATH              one that is killed while it reads, after its charge

An asker writes "answered KEY N" to its pipe after `Curator.ask` returned: whoever reads that line has the answer.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterable

from discreet.curator import Curator
from discreet.curator import curator as module
from discreet.engines import Memory
from discreet.errors import InsufficientBudget, QueryFailed
from discreet.noise import SeededBits
from discreet.plan.reading import Groups, Reading
from discreet.privacy import Budget
from tests.ledger.nursery import collect, fall_at, forked, pass_on

PEOPLE = 50
BUDGET = Budget(epsilon=2)
EACH = "0.1"


def curator(path: str, engine: Memory | None = None) -> Curator:
    """Fifty people, one row each."""
    found = Curator(path, engine=engine or Memory())
    rows = [{"age": age} for age in range(PEOPLE)]
    found.protect(rows, name="people", types={"age": "int"}, budget=BUDGET)
    return found


def question(place: int) -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE age < {place}"


def ask(asking: Curator, place: int) -> int:
    """One question under a key of its own."""
    return int(asking.ask(question(place), epsilon=EACH, key=f"key-{place}")[0]["n"])


def spend(asking: Curator, pipe: int, places: Iterable[int]) -> None:
    """Asks until the budget refuses; a question that somebody else took to the grave is passed over."""
    for place in places:
        try:
            number = ask(asking, place)
        except InsufficientBudget:
            return
        except QueryFailed:
            continue
        os.write(pipe, f"answered {place} {number}\n".encode())


def crowd(path: str, processes: int) -> None:
    def work(pipe: int) -> None:
        spend(curator(path), pipe, itertools.count(os.getpid() * 1000))

    for child in [forked(work) for _ in range(processes)]:
        collect(*child)


def killed(path: str, runs: int, seed: int) -> None:
    """Half of the children kill themselves at a chosen SQL statement, half are killed after an answer."""
    bits = SeededBits(seed)
    for run in range(runs):
        step, answers = 1 + bits.word() % 60, bits.word() % 3

        def work(pipe: int, run: int = run, step: int = step) -> None:
            asking = curator(path)
            if run % 2 == 0:
                fall_at(asking._book, step)
            spend(asking, pipe, itertools.count(run))  # questions overlap with those of earlier runs

        process, read = forked(work)
        if run % 2:
            pass_on(read, answers)
            os.kill(process, signal.SIGKILL)
        collect(process, read)


class Doomed(Memory):
    """Dies as soon as it is asked to read."""

    def read(self, reading: Reading) -> Groups:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().read(reading)


def vanish(path: str) -> None:
    collect(*forked(lambda pipe: spend(curator(path, Doomed()), pipe, [1])))


ACTS: dict[str, Callable[..., None]] = {"crowd": crowd, "killed": killed, "vanish": vanish}

if __name__ == "__main__":
    module.WAIT = 0.0  # the dead do not answer
    what, path, *numbers = sys.argv[1:]
    ACTS[what](path, *map(int, numbers))
