"""The error of the same question at the same guarantee: ours beside OpenDP's, PipelineDP's and SmartNoise's.

One person is in at most 4 groups with at most 2 rows each, values are clipped to 0..200,000, epsilon is 1 and delta
1e-6 for the whole question. The made-up people keep within these limits, so that every library answers about the same
rows and only noise differs; all groups have the same number of people, so that one release is hundreds of draws.

The noise of the sum behind an average is measured as (released mean - true clipped mean) x true count, for everybody.
The values lie evenly around the middle of the bounds there, so that this is the noise of the centred sum and the noise
of the count has no part in it; in the other tables they are skewed, like incomes.

A spread measured from n draws of Laplace noise has a standard error of sqrt(5 / 4n): 6 % for 300 draws, 3 % for 1,200.

    python bench/accuracy.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import MappingProxyType

import duckdb
import numpy as np
from _peers import PEERS, Against, Reply, ask_ours, ask_peer
from _timing import show
from numpy.typing import NDArray
from peers.common import Job
from rich.console import Console
from rich.table import Table

GROUPS, PEOPLE = 400, 700  # people in each group, every one of them in two
HIGH = 200_000
SIZES, SAME = range(10, 401, 10), 15  # groups of graded sizes, so many of each
ALONE = 1_000  # rows of the table that is only counted
REPEATS, SECONDS = 10, 10.0  # releases of each question, and what a peer may take for them
DRAWS = 300  # of a count of the whole table
SUM_TARGETS = {"OpenDP": Fraction(2, 5), "PipelineDP": Fraction(10, 13)}
NO_TARGETS: Mapping[str, Fraction] = MappingProxyType({})
Errors = NDArray[np.float64]
Unit = tuple[str, float]  # how a number is shown, and in how many of its units
UNITS: dict[str, Unit] = {"count": ("COUNT", 1.0), "mean": ("AVG, thousands", 1e3), "sum": ("SUM, millions", 1e6)}


def write(folder: Path) -> None:
    """Values step evenly through -25,000..225,000; the skewed ones are their squares, with the same highest value."""
    even = "(p // {0} * 104729) % 250001"
    rows = {
        "equal": f"SELECT p AS person, (p % {GROUPS} + k) % {GROUPS} AS g, {even.format(GROUPS)} AS e "
        f"FROM range({GROUPS * PEOPLE // 2}) a(p), range(2) b(k)",
        "graded": f"SELECT row_number() OVER () AS person, g, 0 AS e FROM range({len(SIZES) * SAME}) a(g), "
        f"range({SIZES[-1]}) b(k) WHERE k < {SIZES.start} + {SIZES.step} * (g % {len(SIZES)})",
        "alone": f"SELECT p AS person, 0 AS g, 0 AS e FROM range({ALONE}) a(p)",
    }
    with duckdb.connect() as connection:
        for name, select in rows.items():
            values = "CAST(e - 25000 AS BIGINT) AS x, CAST(e * e // 277778 AS BIGINT) AS y"
            columns = f"CAST(person AS BIGINT) AS person, CAST(g AS BIGINT) AS g, {values}"
            connection.execute(f"COPY (SELECT {columns} FROM ({select})) TO '{folder / name}.parquet'")


@cache
def truth(path: str, value: str) -> dict[int | None, dict[str, float]]:
    clipped = f"LEAST(GREATEST({value}, 0), {HIGH})"
    sql = f"SELECT g, COUNT(*), SUM({clipped}), AVG({clipped}) FROM read_parquet('{path}') GROUP BY g"
    with duckdb.connect() as connection:
        rows = connection.execute(sql).fetchall()
    found = {g: {"count": n, "sum": float(total), "mean": mean} for g, n, total, mean in rows}
    return found | {None: found[0]}


def errors(reply: Reply, job: Job, name: str) -> Errors:
    known = truth(job.path, job.value)
    return np.array(
        [
            released - known[key][name]
            for release in reply.releases
            for key, released in zip(release["key"], release[name], strict=True)
        ]
    )


def question(folder: Path, table: str, *aggregates: str, **other: object) -> Job:
    fields = {"groups": 4, "rows": 2, "high": HIGH, "repeats": REPEATS, "seconds": SECONDS, "value": "y"} | other
    return Job(path=str(folder / f"{table}.parquet"), aggregates=aggregates, **fields)  # type: ignore[arg-type]


def everybody(job: Job) -> dict[str, Reply]:
    return {"ours": ask_ours(replace(job, repeats=3 * job.repeats))} | {peer: ask_peer(peer, job) for peer in PEERS}


def spread(reply: Reply, job: Job, name: str, per: float) -> float | None:
    """The root mean square of the errors."""
    found = errors(reply, job, name)
    return float(np.sqrt(np.mean(np.square(found)))) / per if len(found) else None


def beside(
    replies: dict[str, Reply], job: Job, name: str, unit: Unit, targets: Mapping[str, Fraction] = NO_TARGETS
) -> list[Against]:
    """Our error over every peer's."""
    shown, per = unit
    ours, found = spread(replies["ours"], job, name, per) or 0.0, []
    for who, reply in replies.items():
        if who != "ours":
            draws = f" ({len(errors(reply, job, name)):,} draws)" if reply.releases else ""
            peer = spread(reply, job, name, per)
            found.append(Against(f"{shown}, {who}{draws}", ours, peer, targets.get(who), reply.why))
    return found


def said(replies: dict[str, Reply]) -> None:
    table = Table(title="What each library says about its noise", title_justify="left")
    for heading in ("library", "noisy number", "noise"):
        table.add_column(heading)
    for who, reply in replies.items():
        for name, text in reply.said.items():
            table.add_row(who, name, text)
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    for note in sorted({f"{who}: {reply.note}" for who, reply in replies.items() if reply.note}):
        print(note)


def private_keys(folder: Path) -> None:
    """COUNT and AVG by private key; by hand, an OpenDP user asks for a count and a centred sum and divides."""
    job = question(folder, "equal", "count", "mean", value="x", seconds=2 * SECONDS)
    replies = everybody(job) | {"OpenDP by hand": ask_peer("OpenDP", replace(job, by_hand=True))}
    people = truth(job.path, job.value)[0]["count"]
    title = "COUNT and AVG by private key, standard deviation of the noise of the"
    millions = ("centred sum", 1e6 / people)
    show(f"{title} centred sum", beside(replies, job, "mean", millions, SUM_TARGETS), unit="millions", per=1.0)
    show(f"{title} count", beside(replies, job, "count", ("count", 1.0)), unit="rows", per=1.0)
    said(replies)


def public_keys(folder: Path) -> None:
    """Each aggregate alone with the whole budget, and the three in one question."""
    rows = []
    for name, unit in UNITS.items():
        job = question(folder, "equal", name, keys=GROUPS)
        rows += beside(everybody(job), job, name, unit)
    show("One aggregate by public key, root mean square error", rows, unit="rmse", per=1.0)
    job = question(folder, "equal", *UNITS, keys=GROUPS)
    replies = everybody(job)
    rows = [row for name, unit in UNITS.items() for row in beside(replies, job, name, unit)]
    show("COUNT, AVG and SUM in one question by public key, root mean square error", rows, unit="rmse", per=1.0)


def half(reply: Reply) -> float | None:
    """The size of a group that is kept with probability one half, between the two sizes around it."""
    if not reply.releases:
        return None
    kept = Counter(key % len(SIZES) for release in reply.releases for key in release["key"])
    shares = np.maximum.accumulate([kept[place] / (SAME * len(reply.releases)) for place in range(len(SIZES))])
    return float(np.interp(0.5, shares, np.array(SIZES)))


def lost(reply: Reply) -> float | None:
    kept = [len(release["key"]) for release in reply.releases]
    return len(SIZES) * SAME - float(np.mean(kept)) if kept else None


def selection(folder: Path) -> None:
    """A COUNT by private key: its error where all groups are large, and which groups it shows where they are not."""
    job = question(folder, "equal", "count")
    show(
        "COUNT by private key, root mean square error",
        beside(everybody(job), job, "count", UNITS["count"]),
        unit="rows",
        per=1.0,
    )
    replies = everybody(question(folder, "graded", "count"))
    measures = {"people, kept with 50 %": half, f"of {len(SIZES) * SAME} groups lost": lost}
    rows = [
        Against(f"{what}, {peer}", measure(replies["ours"]) or 0.0, measure(replies[peer]), None, replies[peer].why)
        for what, measure in measures.items()
        for peer in PEERS
    ]
    show(f"COUNT by private key of groups of {SIZES[0]} to {SIZES[-1]} people", rows, unit="number", per=1.0)


def alone(folder: Path) -> None:
    job = question(folder, "alone", "count", key=None, rows=1, groups=1, repeats=DRAWS, seconds=2 * SECONDS)
    rows = beside(everybody(job), job, "count", UNITS["count"])
    show(f"COUNT of {ALONE:,} people with 1 row each, root mean square error", rows, unit="rows", per=1.0)


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("DISCREET_BENCH_DIR", ".")) as name:
        folder = Path(name).resolve()
        write(folder)
        private_keys(folder)
        public_keys(folder)
        selection(folder)
        alone(folder)


if __name__ == "__main__":
    main()
