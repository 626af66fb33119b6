"""Private quantiles: how long they take beside plain DuckDB, and how wrong they are beside OpenDP.

- Time: the median and three quantiles of a double by 100 public groups, from a Parquet file to the answer, charged to a
  ledger before it is read; beside the same SELECT on DuckDB, and beside one QUANTILE_CONT of a list. The least of
  several runs in turn. Every row is a person.
- Error: one quantile of 10,000 rows at epsilon 1. A tenth of ours pays for an interval, which OpenDP does not give.
  OpenDP chooses among candidates that somebody must list: the best of several even lists is taken, best in hindsight.
  PipelineDP's quantile tree is that of python-dp, and is not measured.

    python bench/quantiles.py [rows, default 1000000]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
from _peers import AMPLE, Against, Reply, ask_peer
from _timing import Row, show
from peers.common import Job

from discreet import Curator

GROUPS, HIGH = 100, 1000
REPEATS = 3
SMALL, DRAWS, SECONDS = 10_000, 100, 40.0
CANDIDATES = (1_000, 10_000)
SHARES = (0.5, 0.9, 0.99)
QUANTILES = "MEDIAN(x) AS m, QUANTILE_CONT(x, 0.25) AS a, QUANTILE_CONT(x, 0.75) AS b, QUANTILE_CONT(x, 0.95) AS c"
LISTED = "QUANTILE_CONT(x, [0.25, 0.5, 0.75, 0.95])"


def generate(path: Path, rows: int) -> None:
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        value = "CAST(floor(random() * 100) AS BIGINT) AS g, least(-ln(1 - random()) * 150, 999) AS x"
        connection.execute(f"COPY (SELECT {value} FROM range({rows})) TO '{path}'")


def curator(path: Path) -> Curator:
    made = Curator(path.with_suffix(".ledger"))
    made.protect(path, name="t", budget=AMPLE, bounds={"x": (0, HIGH)}, keys={"g": range(GROUPS)})
    return made


def least(*works: Callable[[], object]) -> list[float]:
    """Seconds of each, the least of several runs in turn."""
    best = [float("inf")] * len(works)
    for _ in range(REPEATS):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def times(folder: Path, rows: int) -> None:
    path = folder / "large.parquet"
    generate(path, rows)
    made, asked = curator(path), iter(range(10**9))

    def plain(select: str) -> Callable[[], object]:
        return lambda: duckdb.sql(f"SELECT g, {select} FROM read_parquet('{path}') GROUP BY g").fetchall()

    def ours() -> object:
        """Every time another question, by a condition that all rows satisfy: none is a replay."""
        sql = f"SELECT g, {QUANTILES} FROM t WHERE x > -{next(asked) + 1} GROUP BY g"
        return made.ask(sql, epsilon=1, delta=0)

    private, same, listed = least(ours, plain(QUANTILES), plain(LISTED))
    found = [
        Row("the same SELECT", private, same, Fraction(4)),
        Row("one QUANTILE_CONT of a list", private, listed, None),
    ]
    show(f"Four quantiles by {GROUPS} groups of {rows:,} rows, beside DuckDB", found, unit="s", per=1.0)


def errors(releases: list[float], truth: float) -> float:
    return float(np.sqrt(np.mean(np.square(np.array(releases) - truth))))


def ask_ours(path: Path, share: float) -> list[float]:
    made = curator(path)
    asked = (f"SELECT QUANTILE(x, {share}) AS q FROM t WHERE x > -{i + 1}" for i in range(DRAWS))
    return [made.ask(sql, epsilon=1, delta=0)[0]["q"] for sql in asked]


def accuracy(folder: Path) -> None:
    path, found = folder / "small.parquet", []
    generate(path, SMALL)
    for share in SHARES:
        ((truth,),) = duckdb.sql(f"SELECT QUANTILE_CONT(x, {share}) FROM read_parquet('{path}')").fetchall()
        ours = errors(ask_ours(path, share), truth)
        replies = {count: _opendp(path, share, count) for count in CANDIDATES}
        theirs = {
            count: errors([row for release in reply.releases for row in release["quantile"]], truth)
            for count, reply in replies.items()
            if reply.releases
        }
        best = min(theirs, key=lambda count: theirs[count], default=None)
        why = next(iter(replies.values())).why
        peer = None if best is None else theirs[best]
        listed = "" if best is None else f", {best:,} candidates, {len(replies[best].releases)} draws"
        found.append(Against(f"quantile {share}, OpenDP{listed}", ours, peer, Fraction(1), why))
    show(f"One quantile of {SMALL:,} rows at epsilon 1, root mean square error", found, unit="rmse", per=1.0)


def _opendp(path: Path, share: float, candidates: int) -> Reply:
    job = Job(
        path=str(path),
        aggregates=(),
        key=None,
        unit=None,
        high=HIGH,
        quantile=share,
        candidates=candidates,
        repeats=DRAWS,
        seconds=SECONDS,
    )
    return ask_peer("OpenDP", job, "quantile")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(dir=os.environ.get("DISCREET_BENCH_DIR", ".")) as name:
        folder = Path(name).resolve()
        times(folder, rows)
        accuracy(folder)


if __name__ == "__main__":
    main()
