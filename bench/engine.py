"""What exact, bounded reading costs beside plain DuckDB on the same Parquet file, measured in this run.

Row level: COUNT and AVG by 1,000 groups, over clipped values: CPU time, and peak memory of a process that asks nothing
else. User level: COUNT, and COUNT and AVG, with at most 3 groups and 1 row for each user, beside DuckDB's
COUNT(DISTINCT user) by group. Users own 1.2, 2 or 10 rows on average: almost nobody, one in seven, and almost everybody
is above the limit of groups. Then ids or keys of text, and groups so few that a user has several rows in most of them.
Last, the smallest question on a table of 1,000 rows.

The targets are those for 10,000,000 rows.

    python bench/engine.py [rows, default 1000000]
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
from _timing import Row, cpu, show

from discreet.engines import DuckDB
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import ContributionBounding, Reading, Statistic
from discreet.plan.model.types import Type

REPEATS = 3
THREADS = 2
TINY, TIMES = 1000, 100
USERS = {"few": 1.2, "several": 2.0, "most": 10.0}  # rows per user
COLUMNS = {
    **dict.fromkeys(USERS, Type.INT),
    "g": Type.INT,
    "x": Type.FLOAT,
    **dict.fromkeys(("name", "place", "ward"), Type.TEXT),
}
STEPS = 20  # of the grid: 2^-20
CLIPPED = "SELECT g, COUNT(*), AVG(LEAST(GREATEST(x, 0), 500)) FROM {t} GROUP BY g"
HALF_AS_MUCH_AGAIN, THREE_AND_A_HALF = Fraction(3, 2), Fraction(7, 2)


def generate(path: Path, rows: int) -> None:
    """Random users, groups and values; name and place are several and g as texts, a ward one of 20."""
    users = ", ".join(f"CAST(random() * {rows / share} AS BIGINT) AS {name}" for name, share in USERS.items())
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT *, 'user ' || several AS name, 'place ' || g AS place FROM (SELECT {users}, "
            "CAST(floor(random() * 1000) AS BIGINT) AS g, random() * 1000 - 200 AS x, "
            f"CAST(CAST(floor(random() * 20) AS INT) AS VARCHAR) AS ward FROM range({rows}))) TO '{path}'"
        )


def reading(bounding: ContributionBounding | None, key: str = "g") -> Reading:
    """COUNT and AVG by group."""
    x = ColumnRef("x", Type.FLOAT)
    total = Statistic(kind="sum", argument=x, exponent=-STEPS, low=0, high=500 << STEPS, shift=250 << STEPS)
    return Reading(
        table="t",
        keys=(ColumnRef(key, COLUMNS[key]),),
        bounding=bounding,
        statistics=(Statistic(kind="rows"), Statistic(kind="values", argument=x), total),
    )


def count_alone(asked: Reading) -> Reading:
    """COUNT by group."""
    return dataclasses.replace(asked, statistics=asked.statistics[:1])


@dataclasses.dataclass
class Bench:
    """Our engine and plain DuckDB over one file."""

    path: Path
    engine: DuckDB
    plain: duckdb.DuckDBPyConnection

    def ours(self, asked: Reading) -> float:
        return cpu(lambda: self.engine.read(asked), REPEATS)

    def peer(self, sql: str) -> float:
        return cpu(lambda: self.plain.execute(sql.format(t=f"read_parquet('{self.path}')")).fetchall(), REPEATS)

    def by_row(self) -> Row:
        return Row(
            "row level, COUNT and AVG by group", self.ours(reading(None)), self.peer(CLIPPED), HALF_AS_MUCH_AGAIN
        )

    def by_user(self, what: str, unit: str, key: str, target: Fraction | None, *, alone: bool = False) -> list[Row]:
        """COUNT and AVG of one kind of table, and COUNT alone if that is wanted."""
        distinct = self.peer(f"SELECT {key}, COUNT(DISTINCT {unit}) FROM {{t}} GROUP BY {key}")
        asked = reading(ContributionBounding(unit=unit, groups=3, rows=1, salt="salt"), key)
        rows = [Row(f"user level, {what}", self.ours(asked), distinct, target)]
        return rows + [Row("  COUNT alone", self.ours(count_alone(asked)), distinct, target)] * alone


def times(bench: Bench) -> list[Row]:
    """All claims of time about one file."""
    rows = [bench.by_row()]
    for name, share in USERS.items():
        rows += bench.by_user(f"{share} rows per user", name, "g", THREE_AND_A_HALF, alone=True)
    rows += bench.by_user("2.0 rows, keys of text", "several", "place", None)
    rows += bench.by_user("2.0 rows, ids of text", "name", "g", None)
    rows += bench.by_user("10.0 rows in 20 groups", "most", "ward", None)
    return rows


def tiny(folder: Path) -> list[Row]:
    """The smallest questions, beside the smallest of DuckDB's, on a table in memory."""
    path = folder / "tiny.parquet"
    generate(path, TINY)
    with DuckDB(threads=THREADS) as engine, duckdb.connect(config={"threads": THREADS}) as plain:
        plain.execute(f"CREATE TABLE t AS SELECT * FROM read_parquet('{path}')")
        engine.register("t", plain.sql("SELECT * FROM t").to_arrow_table(), COLUMNS)
        count = Reading(table="t", statistics=(Statistic(kind="rows"),))
        public = tuple((str(ward),) for ward in range(20))
        by_ward = dataclasses.replace(count, keys=(ColumnRef("ward", Type.TEXT),), public_keys=public)

        def often(work: Callable[[], object]) -> float:
            return cpu(lambda: [work() for _ in range(TIMES)], REPEATS) / TIMES

        peer = often(lambda: plain.execute("SELECT count(*) FROM t").fetchall())
        return [
            Row(f"COUNT of {TINY:,} rows", often(lambda: engine.read(count)), peer, Fraction(5)),
            Row("  by 20 public keys", often(lambda: engine.read(by_ward)), peer, Fraction(5)),
        ]


OURS = """
import sys
sys.path.insert(0, {folder!r})
import engine
engine.ask({path!r})
"""
PLAIN = """
import duckdb
with duckdb.connect(config={{"threads": {threads}}}) as plain:
    plain.execute({sql!r}).fetchall()
"""
PEAK = """
from pathlib import Path
import resource
status = Path("/proc/self/status")  # Linux counts the parent's memory in ru_maxrss, but not in VmHWM
lines = status.read_text().splitlines() if status.exists() else []
found = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
print(found[0] if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def ask(path: str) -> None:
    """The row level's question once."""
    with DuckDB(threads=THREADS) as engine:
        engine.register("t", Path(path), COLUMNS)
        engine.read(reading(None))


def peak(code: str) -> float:
    """The most memory, in MiB, that a process held which ran nothing else."""
    ran = subprocess.run([sys.executable, "-c", code + PEAK], check=True, capture_output=True, text=True)
    return float(ran.stdout) / 1024


def memory(path: Path) -> Row:
    """The claim of memory about one file."""
    ours = peak(OURS.format(folder=str(Path(__file__).parent), path=str(path)))
    plain = peak(PLAIN.format(threads=THREADS, sql=CLIPPED.format(t=f"read_parquet('{path}')")))
    return Row("row level, peak of a process", ours, plain, Fraction(2))


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        generate(path, rows)
        show("memory", [memory(path)], unit="MiB", per=1)
        with DuckDB(threads=THREADS) as engine, duckdb.connect(config={"threads": THREADS}) as plain:
            engine.register("t", path, COLUMNS)
            show(f"engines/duckdb, {rows:,} rows", times(Bench(path, engine, plain)), unit="ms", per=1e-3)
        show("latency", tiny(Path(folder)), unit="ms", per=1e-3)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
