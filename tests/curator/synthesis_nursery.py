"""A process that forks makers of synthetic tables from one warm interpreter, and kills them at some point.

    python -m tests.curator.synthesis_nursery read PATH      each is killed when it reads, after its charge
    python -m tests.curator.synthesis_nursery fit PATH       each is killed when it has read and measured
    python -m tests.curator.synthesis_nursery steps PATH BY  killed at a later statement of SQL each, the same table
                                                             asked for again by another, until one survives

A maker writes "made KEY DIGEST" to its pipe after `Curator.synthesize` returned: whoever reads that line has the table.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from discreet.curator import Curator, paid_release
from discreet.curator.synthesis.synthetic_table import SyntheticTable
from discreet.engines import Memory
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.releaser import Releaser
from discreet.plan.model.readings import Reading
from discreet.privacy import Budget
from tests.ledger.nursery import collect, fall_at, forked

GENERATORS = ("independent", "mst", "aim", "allpairs")
PEOPLE = 60
BUDGET = Budget(epsilon=50, delta=1e-5)


def curator(path: str, engine: Memory | None = None) -> Curator:
    """Sixty people, one row each."""
    found = Curator(path, engine=engine or Memory())
    rows = [{"ward": "AB"[place % 2], "old": place % 3 == 0} for place in range(PEOPLE)]
    declared: dict[str, Any] = {"types": {"ward": "text", "old": "bool"}, "keys": {"ward": ["A", "B"]}}
    found.protect(rows, name="people", budget=BUDGET, **declared)
    return found


def made(asked: Curator, key: str) -> SyntheticTable:
    """A table of the generator that the key begins with."""
    return asked.synthesize("people", epsilon=1, generator=key.partition("-")[0], key=key)


def digest(table: SyntheticTable) -> str:
    """Of all rows and of the model."""
    text = json.dumps(table.table.to_pydict()) + table.model.to_json()
    return hashlib.sha256(text.encode()).hexdigest()


def work(pipe: int, path: str, key: str, engine: Memory | None = None, step: int | None = None) -> None:
    asked = curator(path, engine)
    if step is not None:
        fall_at(asked._ledger, step)
    os.write(pipe, f"made {key} {digest(made(asked, key))}\n".encode())


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Doomed(Memory):
    """Dies as soon as it is asked to read."""

    def read(self, reading: Reading) -> ExactGroups:
        die()
        return super().read(reading)


def read(path: str) -> None:
    for name in GENERATORS:
        collect(*forked(partial(work, path=path, key=f"{name}-1", engine=Doomed())))


def fit(path: str) -> None:
    """Dies with the fitted model in hand."""
    honest = Releaser.model

    def doomed(self: Releaser, *given: Any, **how: Any) -> Any:
        honest(self, *given, **how)
        die()

    Releaser.model = doomed  # type: ignore[method-assign]
    for name in GENERATORS:
        collect(*forked(partial(work, path=path, key=f"{name}-1")))


def steps(path: str, by: str) -> None:
    for place in itertools.count(1):
        key = f"independent-{place}"
        process, pipe = forked(partial(work, path=path, key=key, step=1 + (place - 1) * int(by)))
        survived = os.read(pipe, 1 << 16)
        os.close(pipe)
        os.waitpid(process, 0)
        collect(*forked(partial(work, path=path, key=key)))
        if survived:
            return


ACTS: dict[str, Callable[..., None]] = {"read": read, "fit": fit, "steps": steps}

if __name__ == "__main__":
    paid_release.WAIT = 0.0  # the dead do not answer
    made(curator(":memory:"), "mst-0")  # what is loaded late is loaded before anybody is forked
    ACTS[sys.argv[1]](*sys.argv[2:])
