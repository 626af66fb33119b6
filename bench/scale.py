"""What bounded contributions cost as tables grow, beside the plain query on the same database in the same run.

The question is COUNT and AVG by 1,000 groups, at most 3 groups and 1 row for each user; a user owns ten rows, so that
the limits bind nearly everybody. Beside it COUNT(DISTINCT user) and AVG by group, as anybody would ask. Times are those
of the processors, of a server with all of its workers and of Spark with its own processes, the least of several runs in
turn. Last, what a row costs in the
largest table beside the smallest: one, if the cost is linear.

The targets are those for 10,000,000 rows and more. PostgreSQL is a server of our own in a temporary folder, Spark runs
on two threads of this machine, and compiles what it runs while it runs it: its first rounds do not count. A database
that is not installed is left out.

    python bench/scale.py [duckdb,postgres,spark, default all] [rows, ..., default 1000000]
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import duckdb
from _timing import Row, show

from discreet.engines import DuckDB, Engine
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import ContributionBounding, Reading, Statistic
from discreet.plan.model.types import Type

sys.path.insert(0, str(Path(__file__).parents[1]))  # the server that tests start

REPEATS = 3
WARM = {"spark": 2}  # rounds before times count
THREADS = 2
USER_ROWS, GROUPS = 10, 1_000
COLUMNS = {"u": Type.INT, "g": Type.INT, "x": Type.FLOAT}
STEPS = 20  # of the grid: 2^-20
PLAIN = "SELECT g, COUNT(DISTINCT u), AVG(LEAST(GREATEST(x, 0), 500)) FROM {} GROUP BY g"
LINEAR = Fraction(6, 5)


def generate(path: Path, rows: int) -> None:
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT CAST(random() * {rows // USER_ROWS} AS BIGINT) AS u, "
            f"CAST(floor(random() * {GROUPS}) AS BIGINT) AS g, random() * 1000 - 200 AS x "
            f"FROM range({rows})) TO '{path}'"
        )


def questions() -> dict[str, Reading]:
    """COUNT and AVG of groups that anybody can have, and of public ones."""
    x = ColumnRef("x", Type.FLOAT)
    total = Statistic(kind="sum", argument=x, exponent=-STEPS, low=0, high=500 << STEPS, shift=250 << STEPS)
    statistics = (Statistic(kind="rows"), total, Statistic(kind="values", argument=x))
    limits = ContributionBounding(unit="u", groups=3, rows=1, salt="salt")
    public = tuple((group,) for group in range(GROUPS))
    return {
        what: Reading(
            table="t", keys=(ColumnRef("g", Type.INT),), bounding=limits, statistics=statistics, public_keys=keys
        )
        for what, keys in (("private keys", None), ("public keys", public))
    }


@dataclass(frozen=True)
class Database:
    """Our engine and the plain query on one database, the clock of its processors, and the most that ours may cost."""

    engine: Engine
    plain: Callable[[], object]
    clock: Callable[[], float]
    target: Fraction


@contextmanager
def on_duckdb(path: Path) -> Iterator[Database]:
    with DuckDB(threads=THREADS) as engine, duckdb.connect(config={"threads": THREADS}) as connection:
        engine.register("t", path, COLUMNS)
        sql = PLAIN.format(f"read_parquet('{path}')")
        yield Database(engine, lambda: connection.execute(sql).fetchall(), time.process_time, Fraction(8, 5))


@contextmanager
def on_postgres(path: Path) -> Iterator[Database]:
    from discreet.engines.postgres.engine import Postgres  # noqa: PLC0415 - an extra
    from tests.postgres_server import PostgresServer  # noqa: PLC0415

    settings = {"work_mem": "1GB", "shared_buffers": "256MB", "max_parallel_workers_per_gather": "1"}
    server = PostgresServer(settings, place=str(path.parent))
    try:
        with server.superuser() as connection:
            connection.execute("CREATE TABLE t (u BIGINT, g BIGINT, x DOUBLE PRECISION)")
            with connection.cursor().copy("COPY t FROM STDIN") as copy:
                for lines in as_text(path):
                    copy.write(lines)
            connection.execute("ANALYZE t")
            connection.execute("CREATE ROLE reader LOGIN")
            connection.execute("GRANT SELECT ON t TO reader")
        with Postgres(server.url("reader")) as engine, server.superuser() as connection:
            engine.register("t", "t", COLUMNS)
            sql = PLAIN.format("t")
            clock = server_clock(server.pid or 0)
            yield Database(engine, lambda: connection.execute(sql).fetchall(), clock, Fraction(11, 5))
    finally:
        server.close()


@contextmanager
def on_spark(path: Path) -> Iterator[Database]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    from discreet.engines.spark.engine import Spark  # noqa: PLC0415

    settings = {"spark.driver.memory": "6g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master(f"local[{THREADS}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        with Spark(session) as engine:
            engine.register("t", path, COLUMNS)
            sql = PLAIN.format(f"parquet.`{path}`")
            clock = process_clock(session.sparkContext._gateway.proc.pid)
            yield Database(engine, lambda: session.sql(sql).toArrow(), clock, Fraction(5, 4))
    finally:
        session.stop()


def as_text(path: Path) -> Iterator[str]:
    """The rows of a file as lines with tabs."""
    with duckdb.connect(config={"threads": 1}) as connection:
        found = connection.execute(f"SELECT concat_ws(chr(9), u, g, x) FROM read_parquet('{path}')")
        while some := found.fetchmany(100_000):
            yield "".join(f"{line}\n" for (line,) in some)


DATABASES = {"duckdb": on_duckdb, "postgres": on_postgres, "spark": on_spark}
EXTRAS = {"duckdb": "duckdb", "postgres": "psycopg", "spark": "pyspark"}


def is_installed(database: str) -> bool:
    return find_spec(EXTRAS[database]) is not None


TICK = os.sysconf("SC_CLK_TCK")


def process_clock(pid: int) -> Callable[[], float]:
    """The processor time of a process, and of those that it has waited for."""
    return lambda: sum(map(int, process_numbers(pid)[11:15])) / TICK


def server_clock(server: int) -> Callable[[], float]:
    """The processor time of a server: of its processes that are there, and of those that it has waited for."""

    def clock() -> float:
        found = [process_numbers(pid) for pid in filter(str.isdigit, os.listdir("/proc"))]
        own = [sum(map(int, stat[11:13])) for stat in found if stat[1] == str(server)]
        return sum(own) / TICK + process_clock(server)()

    return clock


def process_numbers(pid: int | str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # which has ended meanwhile
        return ["0"] * 20


def least(database: Database, works: Sequence[Callable[[], object]], warm: int) -> list[float]:
    """Seconds of each work, run in turn: a busy machine disturbs all alike."""
    best = [math.inf] * len(works)
    for _ in range(warm):
        for work in works:
            work()
    for _ in range(REPEATS):
        for place, work in enumerate(works):
            start = database.clock()
            work()
            best[place] = min(best[place], database.clock() - start)
    return best


def measured(name: str, rows: int, folder: Path) -> list[Row]:
    path = folder / f"{rows}.parquet"
    if not path.exists():
        generate(path, rows)
    with DATABASES[name](path) as database:
        asked = questions()
        works = [lambda reading=reading: database.engine.read(reading) for reading in asked.values()]
        plain, *ours = least(database, [database.plain, *works], WARM.get(name, 0))
        return [
            Row(f"{name}, {rows:,} rows, {what}", seconds, plain, database.target)
            for what, seconds in zip(asked, ours, strict=True)
        ]


def main(databases: list[str], sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # a server of another user looks for its own folder in it
        for name in databases:
            found = {rows: measured(name, rows, Path(folder)) for rows in sorted(sizes)}
            rows = [row for table in found.values() for row in table]
            show(f"engines/{name}, user level beside the plain query", rows, unit="ms", per=1e-3)
            smallest, largest = min(found), max(found)
            if smallest < largest:
                grown = [
                    Row(
                        f"a row of {largest:,}: {few.what.partition('rows, ')[2]}",
                        many.ours / largest,
                        few.ours / smallest,
                        LINEAR,
                    )
                    for few, many in zip(found[smallest], found[largest], strict=True)
                ]
                show(f"engines/{name}, a row beside one of {smallest:,}", grown, unit="us")


if __name__ == "__main__":
    chosen = sys.argv[1].split(",") if len(sys.argv) > 1 else list(filter(is_installed, DATABASES))
    main(chosen, [int(rows) for rows in sys.argv[2:]] or [1_000_000])
