"""Private quantiles: how long they take beside plain DuckDB, and how wrong they are beside OpenDP and a quantile tree.

- Time: the median and three quantiles of a double by 100 public groups, from a Parquet file to the answer, charged to a
  ledger before it is read; beside the same SELECT on DuckDB, and beside one QUANTILE_CONT of a list. The least of
  several runs in turn. Every row is a person.
- Error of four: the same four quantiles at epsilon 1 for all of them, by groups of 100,000 rows. Groups do not share
  rows, so that a group's error is the same however many there are: ten are asked on both sides. OpenDP gets epsilon 1/4
  for each quantile. A tenth of ours pays for intervals, which OpenDP does not give.
- Error of one: a quantile of 10,000 rows at epsilon 1.

OpenDP chooses among candidates that somebody must list: the best of several even lists is taken for each quantile, best
in hindsight over all groups and draws; of four quantiles, a list that is too slow for twenty draws is left out, as one
of a million candidates would be.

PipelineDP's quantiles come from a tree of counts in python-dp, which has no wheel for every processor. A stand-in draws
its law as it is published: four levels of sixteen children each, Laplace noise of scale 4 / epsilon on every count, one
tree for all quantiles of a group, and a descent by shares of counts below zero taken for zero.

    python bench/quantiles.py [rows, default 1000000]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
from _peers import AMPLE, Against, Reply, ask_peer
from _timing import Row, show
from peers.common import Job

from discreet import Curator
from discreet.noise import discrete_laplace

GROUPS, HIGH = 100, 1000
REPEATS = 3
SMALL, DRAWS, SECONDS = 10_000, 100, 30.0
CANDIDATES = (1_000, 10_000)
SHARES = (0.5, 0.9, 0.99)
FEW, EACH, TOGETHER, LISTS = 10, 100_000, {"a": 0.25, "m": 0.5, "b": 0.75, "c": 0.95}, (1_000, 10_000, 100_000)
LEVELS, CHILDREN = 4, 16  # of python-dp's tree
PATIENCE, ENOUGH, FEWEST = 180.0, 30, 20  # seconds and draws for a list of candidates, and the least that tell anything
QUANTILES = "MEDIAN(x) AS m, QUANTILE_CONT(x, 0.25) AS a, QUANTILE_CONT(x, 0.75) AS b, QUANTILE_CONT(x, 0.95) AS c"
LISTED = "QUANTILE_CONT(x, [0.25, 0.5, 0.75, 0.95])"


def generate(path: Path, rows: int, group: str = "CAST(floor(random() * 100) AS BIGINT)") -> None:
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        value = f"{group} AS g, least(-ln(1 - random()) * 150, 999) AS x"
        connection.execute(f"COPY (SELECT {value} FROM range({rows})) TO '{path}'")


def curator(path: Path, groups: int = GROUPS) -> Curator:
    made = Curator(path.with_suffix(".ledger"), anchor=path.with_suffix(".anchor"))
    made.protect(path, name="t", budget=AMPLE, bounds={"x": (0, HIGH)}, keys={"g": range(groups)})
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


def together(folder: Path) -> None:
    """Four quantiles at once, by group."""
    path, found = folder / "groups.parquet", []
    generate(path, FEW * EACH, f"CAST(range % {FEW} AS BIGINT)")
    answers = duckdb.sql(f"SELECT g, {QUANTILES} FROM read_parquet('{path}') GROUP BY g").fetchall()
    truths = {g: {"m": m, "a": a, "b": b, "c": c} for g, m, a, b, c in answers}
    made = curator(path, FEW)
    asked = (f"SELECT g, {QUANTILES} FROM t WHERE x > -{i + 1} GROUP BY g" for i in range(DRAWS))
    ours = [row for sql in asked for row in made.ask(sql, epsilon=1, delta=0)]
    columns = duckdb.sql(f"SELECT g, x FROM read_parquet('{path}')").fetchnumpy()
    grown = [
        dict(zip(TOGETHER, tree_quantiles(columns["x"][columns["g"] == g], list(TOGETHER.values()), 1.0), strict=True))
        | {"g": g}
        for g in range(FEW)
        for _ in range(ENOUGH)
    ]
    for name, share in TOGETHER.items():
        own = errors([row[name] - truths[row["g"]][name] for row in ours], 0)
        replies = {
            count: _opendp(path, share, count, key="g", keys=FEW, epsilon=0.25, draws=ENOUGH, seconds=PATIENCE)
            for count in LISTS
        }
        theirs = {
            count: errors([q - truths[g][name] for g, q in _chosen(reply)], 0)
            for count, reply in replies.items()
            if len(reply.releases) >= FEWEST
        }
        found.append(_against(share, own, theirs, replies))
        tree = errors([row[name] - truths[row["g"]][name] for row in grown], 0)
        found.append(
            Against(f"quantile {share}, PipelineDP's tree (stand-in), {ENOUGH} draws", own, tree, Fraction(1), "")
        )
    title = f"Four quantiles at epsilon 1 by {FEW} groups of {EACH:,} rows, {DRAWS} draws, root mean square error"
    show(title, found, unit="rmse", per=1.0)


def tree_quantiles(values: np.ndarray, shares: Sequence[float], epsilon: float) -> list[float]:
    """Quantiles by the stand-in for python-dp's tree over the bounds from 0 to HIGH."""
    leaves = np.minimum((values / HIGH * CHILDREN**LEVELS).astype(np.int64), CHILDREN**LEVELS - 1)
    levels = [
        np.bincount(leaves // CHILDREN ** (LEVELS - level), minlength=CHILDREN**level) for level in range(1, LEVELS + 1)
    ]
    scale = Fraction(LEVELS) / Fraction(epsilon)
    noisy = [counts + discrete_laplace(scale, counts.size) for counts in levels]
    return [_descended([np.maximum(counts, 0) for counts in noisy], share) for share in shares]


def _descended(levels: list[np.ndarray], share: float) -> float:
    node, width, left = 0, float(HIGH), 0.0
    for counts in levels:
        own = counts[node * CHILDREN : (node + 1) * CHILDREN]
        if not own.sum():
            break
        ends = np.cumsum(own) / own.sum()
        child = int(np.searchsorted(ends, share, side="left").clip(0, CHILDREN - 1))
        start = ends[child - 1] if child else 0.0
        share = min(max((share - start) / max(ends[child] - start, 1e-12), 0.0), 1.0)
        node, width = node * CHILDREN + child, width / CHILDREN
        left += child * width
    return left + share * width


def _chosen(reply: Reply) -> list[tuple[int, float]]:
    return [pair for release in reply.releases for pair in zip(release["key"], release["quantile"], strict=True)]


def _against(
    share: float, ours: float, theirs: dict[int, float], replies: dict[int, Reply], target: int = 1
) -> Against:
    best = min(theirs, key=lambda count: theirs[count], default=None)
    why = next(iter(replies.values())).why
    peer = None if best is None else theirs[best]
    listed = "" if best is None else f", {best:,} candidates, {len(replies[best].releases)} draws"
    return Against(f"quantile {share}, OpenDP{listed}", ours, peer, Fraction(target) if target else None, why)


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
        found.append(_against(share, ours, theirs, replies, target=0))
    title = f"One quantile of {SMALL:,} rows at epsilon 1, ours with an interval, root mean square error"
    show(title, found, unit="rmse", per=1.0)


def _opendp(
    path: Path,
    share: float,
    candidates: int,
    *,
    key: str | None = None,
    keys: int | None = None,
    epsilon: float = 1.0,
    draws: int = DRAWS,
    seconds: float = SECONDS,
) -> Reply:
    job = Job(
        path=str(path),
        aggregates=(),
        key=key,
        keys=keys,
        unit=None,
        high=HIGH,
        epsilon=epsilon,
        quantile=share,
        candidates=candidates,
        repeats=draws,
        seconds=seconds,
    )
    return ask_peer("OpenDP", job, "quantile")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(dir=os.environ.get("DISCREET_BENCH_DIR", ".")) as name:
        folder = Path(name).resolve()
        times(folder, rows)
        together(folder)
        accuracy(folder)


if __name__ == "__main__":
    main()
