"""One question in one form for every library, and the loop in which a worker answers it.

A worker is a script of its own environment, because peers pin versions that conflict with each other's and with ours.
It reads a job from its input, answers it several times from the file on, and prints releases, times and what the
library says about its noise. Standard library only: every environment imports this file.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

Columns = dict[str, list[Any]]  # "key", and a list for each aggregate
Said = dict[str, str]  # what a library reports about the noise of an aggregate


@dataclass(frozen=True, kw_only=True)
class Job:
    """Aggregates of a Parquet file by group at a total guarantee.

    Attributes:
        path: of the file.
        aggregates: some of "count", "sum" and "mean".
        key: the column to group by; None for one group.
        keys: how many public keys there are, 0, 1, ...; None if they are private.
        unit: the column of persons; None if every row is a person of its own.
        groups: in how many groups a person may be.
        rows: with how many rows in each.
        value: the column that is averaged or summed, clipped to [low, high].
        public_rows: no table of this kind has more rows; a float sum needs that in some libraries.
        quantile: which one, where a quantile is asked for.
        candidates: how many points between the bounds a library may choose from that needs a list of them.
        by_hand: whether an average is made from a count and a sum around the middle of the bounds.
        repeats: releases wanted, fewer if `seconds` are over.
        timed: whether every release must start from nothing; otherwise a plan may serve them all.
    """

    path: str
    aggregates: tuple[str, ...]
    key: str | None = "g"
    keys: int | None = None
    unit: str | None = "person"
    groups: int = 1
    rows: int = 1
    value: str = "x"
    low: int = 0
    high: int = 1
    epsilon: float = 1.0
    delta: float = 1e-6
    public_rows: int = 10**8
    quantile: float = 0.5
    candidates: int = 1000
    by_hand: bool = False
    repeats: int = 1
    seconds: float = 60.0
    timed: bool = False

    @property
    def private(self) -> bool:
        return self.key is not None and self.keys is None

    @property
    def middle(self) -> int:
        return (self.low + self.high) // 2

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Job:
        fields = json.loads(text)
        return cls(**{**fields, "aggregates": tuple(fields["aggregates"])})


def repeat(job: Job, ask: Callable[[Job], Columns]) -> dict[str, Any]:
    """Releases, and the least wall and processor time of one: everything that disturbs a run makes it longer."""
    releases, wall, cpu, end = [], [], [], time.perf_counter() + job.seconds
    while len(releases) < job.repeats and (not releases or time.perf_counter() < end):
        start, used = time.perf_counter(), time.process_time()
        releases.append(ask(job))
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return {"releases": releases, "wall": min(wall), "cpu": min(cpu)}


def serve(ask: Callable[[Job], Columns], say: Callable[[Job], Said], note: str = "") -> None:
    """Answers the job of this process's input."""
    warnings.simplefilter("ignore")
    job = Job.read(sys.stdin.read())
    said = say(job)
    print(json.dumps(repeat(job, ask) | {"said": said, "note": note}))
