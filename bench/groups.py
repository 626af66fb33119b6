"""Answers of many groups beside the plain query of DuckDB, both from a file to an Arrow table, measured in this run.

COUNT and AVG by public groups, row by row; then COUNT by private groups of people. Ours is charged to a durable ledger
before the file is read, by a curator that has read it before for another question. Times are those of the processors,
the least of several runs in turn. What a group costs beyond the read is what an answer of all groups takes more than
one of a thousand, on the same rows. Memory is what the peak of a process grows by for each group.

    python bench/groups.py [rows, default 1000000] [groups, ..., default 1000 100000]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path

import duckdb
from _timing import Row, show

from discreet import Budget, Curator

REPEATS = 3
FEW, MANY = 1_000, 100_000
BUDGET = Budget(epsilon=10**6, delta=Fraction(1, 10**3))
LEDGERS = count()  # a new one for every repetition
MEMORY = "--memory"  # of one answer, in a process of its own


@dataclass(frozen=True)
class Case:
    """A question about so many groups of so many rows, and the most that it may cost, as a share of the plain one."""

    groups: int
    rows: int
    private: bool = False

    @property
    def target(self) -> Fraction | None:
        if self.private:
            return Fraction(3) if self.groups == MANY else None
        known = {(FEW, 10**6): Fraction(2), (FEW, 10**7): Fraction(5, 4), (MANY, 10**6): Fraction(5)}
        return {**known, (10**6, 10**7): Fraction(4)}.get((self.groups, self.rows))

    @property
    def what(self) -> str:
        kind = "private" if self.private else "public"
        return f"{self.groups:,} {kind} groups, {self.rows:,} rows"

    @property
    def sql(self) -> str:
        return f"SELECT g{self.groups} AS g, COUNT(*) AS n{'' if self.private else ', AVG(x) AS m'} FROM t GROUP BY 1"


def generate(path: Path, rows: int, groups: list[int]) -> None:
    made = ", ".join(f"CAST(floor(random() * {each}) AS BIGINT) AS g{each}" for each in groups)
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"COPY (SELECT {made}, i AS id, random() * 500 AS x FROM range({rows}) t(i)) TO '{path}'")


@contextmanager
def asking(case: Case, path: Path, folder: Path) -> Iterator[Callable[[], object]]:
    """A question nobody has asked, to a curator that has read the file before: nothing is replayed, nothing is cold."""
    keys = {} if case.private else {f"g{case.groups}": range(case.groups)}
    people = {"unit": "id", "max_groups": 1, "max_rows": 1} if case.private else {}
    with Curator(str(folder / f"{next(LEDGERS)}.ledger"), anchor=folder / f"{next(LEDGERS)}.anchor") as curator:
        curator.protect(str(path), name="t", keys=keys, bounds={"x": (0, 500)}, budget=BUDGET, **people)
        curator.ask("SELECT COUNT(*) AS n, AVG(x) AS m FROM t", epsilon=1)
        yield lambda: curator.ask(case.sql, epsilon=4, delta=Fraction(1, 10**6)).to_arrow()


def plain(case: Case, path: Path, connection: duckdb.DuckDBPyConnection) -> Callable[[], object]:
    return lambda: connection.execute(case.sql.replace("FROM t", f"FROM read_parquet('{path}')")).to_arrow_table()


def compare(case: Case, path: Path, folder: Path) -> tuple[float, float]:
    """The least times of ours and of DuckDB, run in turn: a busy machine disturbs both alike."""
    ours, theirs = [], []
    with duckdb.connect() as connection:
        read = plain(case, path, connection)
        read()
        for _ in range(REPEATS):
            with asking(case, path, folder) as ask:
                ours.append(used(ask))
            theirs.append(used(read))
    return min(ours), min(theirs)


def used(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def peak(case: Case, path: Path) -> int:
    """The peak of a process that asks once, in bytes."""
    told = [sys.executable, __file__, MEMORY, str(case.rows), str(case.groups), str(path)]
    return int(subprocess.run(told, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Prints a line for each number of groups, what a group costs, and how much memory one takes."""
    rows, *groups = [int(text) for text in sys.argv[1:]] or [10**6]
    groups = groups or [FEW, MANY]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "rows.parquet"
        generate(path, rows, groups)
        cases = [Case(each, rows) for each in groups] + [Case(each, rows, private=True) for each in groups]
        found = {case: compare(case, path, folder) for case in cases}
        show(
            "Answers of groups, to Arrow, beside DuckDB's",
            [Row(case.what, *times, case.target) for case, times in found.items()],
            "ms",
            1e-3,
        )
        first, last = cases[0], cases[len(groups) - 1]
        if first.groups < last.groups:
            more = last.groups - first.groups
            beyond = [found[last][side] - found[first][side] for side in (0, 1)]
            each = (peak(last, path) - peak(first, path)) / more
            print(f"a public group beyond the read: {(beyond[0] - beyond[1]) / more * 1e6:.1f} us (target 3)")
            print(f"memory of a public group: {each:,.0f} bytes (target 400)")


def remember(rows: int, groups: int, path: Path) -> None:
    with tempfile.TemporaryDirectory() as name, asking(Case(groups, rows), path, Path(name)) as ask:
        ask()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    if sys.argv[1:2] == [MEMORY]:
        remember(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        main()
