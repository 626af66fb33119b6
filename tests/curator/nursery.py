"""A process that forks askers from one warm interpreter, kills them if asked, and prints what they were answered.

    python -m tests.curator.nursery crowd PATH PROCESSES     several at once until the budget is gone
    python -m tests.curator.nursery killed PATH RUNS SEED    one after the other, each killed at some point
    python -m tests.curator.nursery vanish PATH              one that is killed while it reads, after its charge
    python -m tests.curator.nursery probes PATH RUNS SEED    as killed, with questions that must find bounds first
    python -m tests.curator.nursery steps PATH FIRST BY MEAN one after the other, killed at a later statement each; the
                                                             question of each is asked again by another
    python -m tests.curator.nursery race PATH PROCESSES      as vanish, then several at once with the same key

An asker writes "answered KEY N" to its pipe after `Curator.ask` returned: whoever reads that line has the answer.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial

from discreet.curator import Curator
from discreet.curator import paid_release as module
from discreet.engines import Memory
from discreet.errors import InsufficientBudget, QueryFailed, RunsUsedUp
from discreet.measurement.probes import probes as probes_module
from discreet.measurement.program.program import Program
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
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
                fall_at(asking._ledger, step)
            spend(asking, pipe, itertools.count(run))  # questions overlap with those of earlier runs

        process, read = forked(work)
        if run % 2:
            pass_on(read, answers)
            os.kill(process, signal.SIGKILL)
        collect(process, read)


def mean(asking: Curator, place: int) -> float:
    """One question that needs bounds which nobody declared, under a key of its own."""
    sql = f"SELECT AVG(age) AS m FROM people WHERE age <> {place}"
    return float(asking.ask(sql, epsilon=EACH, key=f"mean-{place}")[0]["m"])


def certain(program: Program) -> Fraction:
    """A threshold that every bucket exceeds, so that fifty people are enough to find bounds, and to remember them."""
    del program
    return Fraction(-(10**9))


def probes(path: str, runs: int, seed: int) -> None:
    """Each child kills itself at a chosen SQL statement; questions overlap with those of earlier runs."""
    bits = SeededBits(seed)
    probes_module.threshold = certain
    for run in range(runs):
        step = 1 + bits.word() % 90

        def work(pipe: int, run: int = run, step: int = step) -> None:
            asking = curator(path)
            fall_at(asking._ledger, step)
            for place in (run // 3, run):
                with contextlib.suppress(QueryFailed):
                    os.write(pipe, f"answered {place} {mean(asking, place)!r}\n".encode())

        collect(*forked(work))


class Doomed(Memory):
    """Dies as soon as it is asked to read."""

    def read(self, reading: Reading) -> ExactGroups:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().read(reading)


def vanish(path: str) -> None:
    collect(*forked(lambda pipe: spend(curator(path, Doomed()), pipe, [1])))


def steps(path: str, first: int, by: int, mean_of_it: int) -> None:
    """Until one survives: a child that dies at a statement, then one that asks the same with the same key."""
    probes_module.threshold = certain
    for place in itertools.count(first):

        def work(pipe: int, step: int | None = None, place: int = place) -> None:
            asking = curator(path)
            if step is not None:
                fall_at(asking._ledger, step)
            number = int(mean(asking, place) if mean_of_it else ask(asking, place))
            os.write(pipe, f"answered {place} {number}\n".encode())

        process, read = forked(partial(work, step=1 + (place - first) * by))
        survived = os.read(read, 1 << 16)
        os.close(read)
        os.waitpid(process, 0)
        collect(*forked(work))
        if survived:
            return


def race(path: str, processes: int) -> None:
    """All wait for a line before they ask what one was charged for who died while it read.

    Whoever finds all runs taken while one of them is still at work asks later with the same key, as it is told to.
    """
    vanish(path)
    gate, opened = os.pipe()

    def work(pipe: int) -> None:
        asking = curator(path)
        os.read(gate, 1)
        while True:
            try:
                return spend(asking, pipe, [1])
            except RunsUsedUp:
                continue

    children = [forked(work) for _ in range(processes)]
    os.write(opened, b"x" * processes)
    for child in children:
        collect(*child)


ACTS: dict[str, Callable[..., None]] = {
    "crowd": crowd,
    "killed": killed,
    "vanish": vanish,
    "probes": probes,
    "steps": steps,
    "race": race,
}

if __name__ == "__main__":
    module.WAIT = 0.0  # the dead do not answer
    what, path, *numbers = sys.argv[1:]
    ACTS[what](path, *map(int, numbers))
