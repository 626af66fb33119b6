"""Whole private questions beside plain DuckDB and other libraries, from the file to the answer, measured in this run.

Ours is charged to a durable ledger before the file is read; the account is opened beforehand, as a steward does, and
no repetition asks what was asked before, so nothing is replayed. Times are the least of several runs in turn (medians
for the small question, where a commit waits for the disk); memory is the peak of a process of its own.

- Row level: COUNT and AVG by 1,000 public groups; DuckDB computes the same aggregates of the clipped values.
- User level: COUNT by group, at most 3 groups and 1 row for each user; DuckDB counts distinct users by group. Users own
  1.2, 2 or 10 rows on average: almost nobody, one in seven, and almost everybody is above the limit of groups.
- Small: COUNT of 1,000 rows, beside two bare durable commits of SQLite and ten times DuckDB's time; and COUNT of
  100,000 rows whose 100,000 keys are declared, before and after four releases by these keys.
- Peers: the same questions at the same guarantee, on fewer rows where they are slow, about a minute for each.

    python bench/query.py [rows, default 1000000]
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import count
from pathlib import Path
from statistics import median

import duckdb
from _peers import AMPLE, PEERS, Reply, ask_peer, protect, sql_of
from _timing import Row, show
from peers.common import Job
from rich.console import Console
from rich.table import Table

from discreet import Curator

REPEATS = 5
SMALL, SMALL_REPEATS = 1_000, 60
RELEASES, MANY = 4, 100_000  # of as many groups, before a small question
GROUPS = 1_000
USERS = {"few": 1.2, "several": 2.0, "most": 10.0}  # rows per user
PEER_ROWS = {"OpenDP": 1_000_000, "PipelineDP": 100_000, "SmartNoise": 100_000}
PEER_SECONDS = 60.0
EPSILON, DELTA = 1, 1e-6
LEDGERS = count()  # a new one for every repetition
Times = tuple[float, float]  # wall and processor seconds


def generate(path: Path, rows: int) -> None:
    users = ", ".join(f"CAST(random() * {rows / share} AS BIGINT) AS {name}" for name, share in USERS.items())
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT {users}, CAST(floor(random() * {GROUPS}) AS BIGINT) AS g, random() * 1000 - 200 AS x "
            f"FROM range({rows})) TO '{path}'"
        )


def row_job(path: Path) -> Job:
    return Job(path=str(path), aggregates=("count", "mean"), unit=None, keys=GROUPS, high=500)


def user_job(path: Path, unit: str) -> Job:
    return Job(path=str(path), aggregates=("count",), unit=unit, groups=3, keys=GROUPS, high=500)


def count_job(path: Path) -> Job:
    return Job(path=str(path), aggregates=("count",), unit=None, key=None, high=500)


PLAIN = {
    "row": "SELECT g, COUNT(*), AVG(LEAST(GREATEST(x, 0), 500)) FROM read_parquet('{}') GROUP BY g",
    "user": "SELECT g, COUNT(DISTINCT {}) FROM read_parquet('{}') GROUP BY g",
    "count": "SELECT COUNT(*) FROM read_parquet('{}')",
}


@contextmanager
def asking(job: Job, folder: Path) -> Iterator[Callable[[], object]]:
    """A question nobody has asked, to a curator that has read the file before: nothing is replayed, nothing is cold."""
    text = sql_of(job)
    with Curator(str(folder / f"{next(LEDGERS)}.ledger"), anchor=folder / f"{next(LEDGERS)}.anchor") as curator:
        protect(curator, job, AMPLE)
        curator.ask(text.replace("FROM t", "FROM t WHERE x > 0"), epsilon=2 * EPSILON, delta=DELTA)
        yield lambda: curator.ask(text, epsilon=EPSILON, delta=DELTA)


def reading(sql: str, connection: duckdb.DuckDBPyConnection) -> Callable[[], object]:
    return lambda: connection.execute(sql).fetchall()


def one(work: Callable[[], object]) -> Times:
    start, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - used


@cache
def compare(job: Job, sql: str, folder: Path) -> tuple[Times, Times]:
    """The least times of ours and of DuckDB, run in turn: a busy machine disturbs both alike."""
    ours, plain = [], []
    with duckdb.connect() as connection:
        read = reading(sql, connection)
        read()
        for _ in range(REPEATS):
            with asking(job, folder) as ask:
                ours.append(one(ask))
            plain.append(one(read))
    return least(ours), least(plain)


def least(runs: list[Times]) -> Times:
    return min(wall for wall, _ in runs), min(cpu for _, cpu in runs)


def large(path: Path, rows: int, folder: Path) -> None:
    measured = [
        ("row level, COUNT and AVG by group", Fraction(3, 2), compare(row_job(path), PLAIN["row"].format(path), folder))
    ]
    for unit, share in USERS.items():
        times = compare(user_job(path, unit), PLAIN["user"].format(unit, path), folder)
        measured.append((f"user level, {share} rows per user", Fraction(7, 2), times))
    for place, kind in enumerate(("wall time", "CPU time")):
        found = [Row(what, ours[place], plain[place], target) for what, target, (ours, plain) in measured]
        show(f"{rows:,} rows, {GROUPS:,} groups, beside plain DuckDB, {kind}", found, unit="ms", per=1e-3)


# Programs that load nothing but what they measure. ru_maxrss starts from the parent's memory on Linux; the kernel's own
# mark, where there is one, starts with the program.
PLAIN_ONCE = """import duckdb, sys
duckdb.connect().execute(sys.argv[1]).fetchall()
"""
OURS_ONCE = f"""import sys
from discreet import Budget, Curator
with Curator(sys.argv[2], anchor=sys.argv[2] + ".anchor") as curator:
    curator.protect(sys.argv[3], name="t", budget=Budget(epsilon=1, delta="1e-3"), bounds={{"x": (0, 500)}},
                    keys={{"g": range({GROUPS})}})
    curator.ask(sys.argv[1], epsilon={EPSILON}, delta={DELTA})
"""
HIGHEST = """import pathlib, resource
status = pathlib.Path("/proc/self/status")
marks = [line.split() for line in status.read_text().splitlines()] if status.exists() else []
here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(next((int(mark[1]) * 1024 for mark in marks if mark[0] == "VmHWM:"), here))
"""


def peak(program: str, *arguments: str) -> float:
    """Bytes that a fresh process holds at most while it runs a program."""
    command = [sys.executable, "-c", program + HIGHEST, *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory(path: Path, rows: int, folder: Path) -> None:
    ours = peak(OURS_ONCE, sql_of(row_job(path)), str(folder / "peak.ledger"), str(path))
    row = Row("row level, COUNT and AVG by group", ours, peak(PLAIN_ONCE, PLAIN["row"].format(path)), Fraction(2))
    show(f"{rows:,} rows, beside plain DuckDB, peak memory of a process", [row], unit="MB", per=1e6)


def commits(path: Path) -> Iterator[None]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE entries (place INTEGER PRIMARY KEY, body TEXT)")
    while True:
        for _ in range(2):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO entries (body) VALUES (?)", ("x" * 500,))
            connection.execute("COMMIT")
        yield


def small(folder: Path) -> None:
    path = folder / "small.parquet"
    generate(path, SMALL)
    runs, bare = [], commits(folder / "bare.sqlite")
    with (
        Curator(str(folder / "small.ledger"), anchor=folder / "small.anchor") as curator,
        duckdb.connect() as connection,
    ):
        protect(curator, count_job(path), AMPLE)
        for turn in range(SMALL_REPEATS):
            read = reading(PLAIN["count"].format(path) + where(turn), connection)
            runs.append([one(work) for work in (small_count(curator, turn), partial(next, bare), read)])
    (ours, cpu), (two, two_cpu), (plain, _) = (middle([run[place] for run in runs]) for place in range(3))
    row = Row(f"COUNT of {SMALL:,} rows, beside two commits and 10x DuckDB", ours, two + 10 * plain, Fraction(1))
    show("A small question with a durable ledger, median wall time", [row], unit="ms", per=1e-3)
    print(f"two bare commits {two * 1e3:.3f} ms, DuckDB {plain * 1e3:.3f} ms\n")
    rows = [Row("after nothing, beside two bare commits", cpu, two_cpu, None)]
    before, after = after_releases(folder)
    rows += [Row(f"after {RELEASES} releases of {MANY:,} groups, beside before them", after, before, Fraction(11, 10))]
    show("A small COUNT with a durable ledger, median CPU time; 4 ms at most", rows, unit="ms", per=1e-3)


def where(turn: int) -> str:
    return f" WHERE x > {turn}"  # another question each time


def small_count(curator: Curator, turn: int) -> Callable[[], object]:
    return partial(curator.ask, "SELECT COUNT(*) AS n FROM t" + where(turn), epsilon=0.1)


def middle(runs: list[Times]) -> Times:
    """Medians, without the first runs, which load what the others find loaded."""
    return median(wall for wall, _ in runs[5:]), median(cpu for _, cpu in runs[5:])


def after_releases(folder: Path) -> tuple[float, float]:
    """CPU seconds of a small COUNT of a table with very many keys, before and after releases by these keys."""
    path, turns = folder / "keys.parquet", SMALL_REPEATS // 2
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT i AS g, i % 500 AS x FROM range({MANY}) r(i)) TO '{path}'")
    with Curator(str(folder / "keys.ledger"), anchor=folder / "keys.anchor") as curator:
        curator.protect(str(path), name="t", budget=AMPLE, bounds={"x": (0, 500)}, keys={"g": range(MANY)})
        before = [one(small_count(curator, turn)) for turn in range(turns)]
        for least in range(RELEASES):
            curator.ask(f"SELECT g, COUNT(*) AS n FROM t WHERE x >= {least} GROUP BY g", epsilon=0.1)
        after = [one(small_count(curator, turn)) for turn in range(turns, 2 * turns)]
    return middle(before)[1], middle(after)[1]


def questions(path: Path, tiny: Path) -> dict[str, tuple[Job, str]]:
    return {
        "row level, COUNT and AVG by group": (row_job(path), PLAIN["row"].format(path)),
        "user level, 2 rows per user": (user_job(path, "several"), PLAIN["user"].format("several", path)),
        f"COUNT of {SMALL:,} rows": (count_job(tiny), PLAIN["count"].format(tiny)),
    }


def peers(rows: int, folder: Path) -> None:
    table = Table(title="Other libraries, CPU time of one question", title_justify="left")
    for heading in ("question", "rows", "library", "peer (ms)", "ours (ms)", "peer/DuckDB", "ours/peer"):
        table.add_column(heading, justify="left" if heading in {"question", "library"} else "right")
    notes = set()
    for peer in PEERS:
        size = min(rows, PEER_ROWS[peer])
        path = folder / f"{size}.parquet"
        if not path.exists():
            generate(path, size)
        for what, (job, sql) in questions(path, folder / "small.parquet").items():
            reply = ask_peer(peer, replace(job, repeats=REPEATS, seconds=PEER_SECONDS, timed=True))
            shown = f"{SMALL if job.key is None else size:,}"
            table.add_row(what, shown, peer, *figures(reply, *compare(job, sql, folder)))
            notes |= {f"{peer}: {reply.note}"} if reply.note else set()
    Console(width=None if sys.stdout.isatty() else 118).print(table)
    print("\n".join([f"Each question: up to {REPEATS} releases in {PEER_SECONDS:.0f} s, the least CPU time.", *notes]))


def figures(reply: Reply, ours: Times, plain: Times) -> tuple[str, str, str, str]:
    mine = f"{ours[1] * 1e3:.1f}"
    if reply.cpu is None:
        return "", mine, "", reply.why
    ratio = Row("", ours[1], reply.cpu, None).ratio
    return f"{reply.cpu * 1e3:.1f}", mine, f"{reply.cpu / plain[1]:.0f}x", ratio


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("DISCREET_BENCH_DIR", ".")) as name:
        folder = Path(name).resolve()
        path = folder / f"{rows}.parquet"
        generate(path, rows)
        large(path, rows, folder)
        memory(path, rows, folder)
        small(folder)
        peers(rows, folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
