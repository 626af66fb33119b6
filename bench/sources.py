"""What a question about people costs where the same rows lie in other files, folders and databases.

The question is COUNT, SUM and AVG by 1,000 groups, at most 3 groups and 1 row for each user; a user owns ten rows. Each
source has the same rows. The first table compares it with one Parquet file; the second compares what each source costs
beside the plain query of its own engine with what the Parquet file costs beside its own: the most is a difference of
0.3 of the plain query. Memory is the most that a fresh process takes, with 10 files and with 200. Processor time, the
least of several runs in turn.

The targets are for 10,000,000 rows.

    python bench/sources.py [rows, default 1000000] [kinds, default all: parquet,files,hive,duckdb,csv,ndjson,...]
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from _timing import Row, cpu, show

from discreet import Budget, Curator

REPEATS = 3
THREADS = 2
FILES, FEW_FILES = 200, 10
USER_ROWS, GROUPS = 10, 1_000
TYPES = {"u": "int", "g": "int", "x": "float", "ward": "int"}
SQL = "SELECT g, COUNT(*) AS n, SUM(x) AS total, AVG(x) AS x FROM t GROUP BY g"
PLAIN = "SELECT g, COUNT(DISTINCT u), SUM(x), AVG(x) FROM {} GROUP BY g"
MOST, MORE = Fraction(13, 10), Fraction(3, 10)


@dataclass(frozen=True)
class Kind:
    """A kind of source.

    Args:
        write: writes the rows of a DuckDB table `rows` below a folder, and returns what `protect` is given.
        plain: what comes after FROM in DuckDB's plain query; empty if it has its own.
        as_one_file: whether it must cost about what one Parquet file does.
        ask_plainly: the plain query of another engine.
        declared: further arguments of `protect`.
    """

    write: Callable[[duckdb.DuckDBPyConnection, Path], Any]
    plain: str = ""
    as_one_file: bool = False
    ask_plainly: Callable[[Path], object] | None = None
    declared: Mapping[str, Any] | None = None


def _copy(name: str, options: str, count: int = 1) -> Callable[[duckdb.DuckDBPyConnection, Path], Any]:
    """Returns what writes one file, or a folder of some with equally many rows."""

    def write(connection: duckdb.DuckDBPyConnection, folder: Path) -> Any:
        if count == 1:
            connection.execute(f"COPY rows TO '{folder / name}' ({options})")
            return str(folder / name)
        place = folder / f"many{count}"
        place.mkdir()
        for part in range(count):
            chosen = f"SELECT * FROM rows WHERE rowid % {count} = {part}"
            connection.execute(f"COPY ({chosen}) TO '{place / f'{part}{name}'}' ({options})")
        return str(place)

    return write


def _hive(connection: duckdb.DuckDBPyConnection, folder: Path) -> Any:
    connection.execute(f"COPY rows TO '{folder / 'hive'}' (FORMAT parquet, PARTITION_BY (ward))")
    return str(folder / "hive")


def _database(connection: duckdb.DuckDBPyConnection, folder: Path) -> Any:
    connection.execute(f"ATTACH '{folder / 't.duckdb'}' AS stored")
    connection.execute("CREATE TABLE stored.t AS FROM rows")
    connection.execute("DETACH stored")
    return str(folder / "t.duckdb")


def _sqlite(connection: duckdb.DuckDBPyConnection, folder: Path) -> Any:
    with sqlite3.connect(folder / "t.sqlite") as stored:
        stored.execute("CREATE TABLE t (u INT, g INT, x REAL, ward INT)")
        rows = connection.execute("FROM rows")
        while some := rows.fetchmany(100_000):
            stored.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", some)
    stored.close()
    return str(folder / "t.sqlite")


def _ask_sqlite(folder: Path) -> object:
    stored = sqlite3.connect(folder / "t.sqlite")
    try:
        return stored.execute(PLAIN.format("t")).fetchall()
    finally:
        stored.close()


def _arrow(connection: duckdb.DuckDBPyConnection, folder: Path) -> Any:
    import pyarrow.feather  # noqa: PLC0415 - needed here alone

    place = folder / "t.arrow"
    pyarrow.feather.write_feather(connection.sql("FROM rows").to_arrow_table(), str(place))
    return str(place)


def _ask_arrow(folder: Path) -> object:
    import pyarrow.dataset  # noqa: PLC0415

    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.register("t", pyarrow.dataset.dataset(str(folder / "t.arrow"), format="feather"))
        return connection.execute(PLAIN.format("t")).fetchall()


KINDS: Mapping[str, Kind] = {
    "parquet": Kind(_copy("t.parquet", "FORMAT parquet"), "read_parquet('{}/t.parquet')", as_one_file=True),
    "files": Kind(
        _copy("t.parquet", "FORMAT parquet", FILES), f"read_parquet('{{}}/many{FILES}/*.parquet')", as_one_file=True
    ),
    "few files": Kind(
        _copy("t.parquet", "FORMAT parquet", FEW_FILES),
        f"read_parquet('{{}}/many{FEW_FILES}/*.parquet')",
        as_one_file=True,
    ),
    "hive": Kind(_hive, "read_parquet('{}/hive/**/*.parquet', hive_partitioning = true)", as_one_file=True),
    "duckdb": Kind(_database, "stored.t", as_one_file=True, declared={"table": "t"}),
    "csv": Kind(_copy("t.csv", "FORMAT csv, HEADER"), "read_csv('{}/t.csv')"),
    "csv files": Kind(_copy("t.csv", "FORMAT csv, HEADER", 20), "read_csv('{}/many20/*.csv')"),
    "ndjson": Kind(_copy("t.ndjson", "FORMAT json"), "read_json('{}/t.ndjson')"),
    "arrow": Kind(_arrow, ask_plainly=_ask_arrow),
    "sqlite": Kind(_sqlite, ask_plainly=_ask_sqlite, declared={"table": "t"}),
}


def protect(curator: Curator, source: Any, kind: Kind) -> None:
    curator.protect(
        source,
        name="t",
        unit="u",
        max_groups=3,
        max_rows=1,
        types=TYPES,
        bounds={"x": (0, 500)},
        keys={"g": list(range(GROUPS))},
        budget=Budget(epsilon=1000, delta="1e-3"),
        **(kind.declared or {}),
    )


def asked(source: Any, kind: Kind) -> float:
    """Seconds of questions to a curator who has read the table before."""
    with Curator(":memory:") as curator:
        protect(curator, source, kind)
        epsilons = iter(range(1, 100))
        return cpu(lambda: curator.ask(SQL, epsilon=1 + Fraction(next(epsilons), 1000)), REPEATS)


def asked_plainly(folder: Path, kind: Kind) -> float:
    if kind.ask_plainly is not None:
        ask = kind.ask_plainly
        return cpu(lambda: ask(folder), REPEATS)
    with duckdb.connect(config={"threads": THREADS}) as connection:
        if kind.plain == "stored.t":
            connection.execute(f"ATTACH '{folder / 't.duckdb'}' AS stored (READ_ONLY)")
        sql = PLAIN.format(kind.plain.format(folder))
        return cpu(lambda: connection.execute(sql).fetchall(), REPEATS)


def memory(source: str) -> float:
    """Megabytes that a fresh process takes at most to ask once."""
    command = [sys.executable, __file__, "--memory", source]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _measure_memory(source: str) -> None:
    with Curator(":memory:") as curator:
        protect(curator, source, KINDS["files"])
        curator.ask(SQL, epsilon=1)
    lines = Path("/proc/self/status").read_text().splitlines()  # getrusage tells that of the parent, if it is more
    print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))


def compare(rows: int, names: Sequence[str]) -> None:
    """Prints the ratios."""
    with tempfile.TemporaryDirectory() as text, duckdb.connect() as connection:
        folder = Path(text)
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"CREATE TABLE rows AS SELECT CAST(random() * {rows // USER_ROWS} AS BIGINT) AS u, "
            f"CAST(floor(random() * {GROUPS}) AS BIGINT) AS g, random() * 1000 - 200 AS x, "
            f"CAST(floor(random() * {FILES}) AS BIGINT) AS ward FROM range({rows})"
        )
        ours, plain, sources = dict[str, float](), dict[str, float](), dict[str, Any]()
        for name in ("parquet", *(name for name in names if name != "parquet")):
            sources[name] = KINDS[name].write(connection, folder)
            ours[name], plain[name] = asked(sources[name], KINDS[name]), asked_plainly(folder, KINDS[name])
        # once more after all the others, since the machine changes
        ours["parquet"] = min(ours["parquet"], asked(sources["parquet"], KINDS["parquet"]))
        one = [
            Row(name, ours[name], ours["parquet"], MOST if KINDS[name].as_one_file else None)
            for name in ours
            if name != "parquet"
        ]
        show(f"A question about people, {rows:,} rows, beside one Parquet file", one, "s", 1.0)
        base = Fraction(ours["parquet"] / plain["parquet"]).limit_denominator(100)
        own = [Row(name, ours[name], plain[name], None if name == "parquet" else base + MORE) for name in ours]
        show("The same beside the plain query of the source", own, "s", 1.0)
        if {"files", "few files"} <= sources.keys():
            most = [Row(f"{FILES} files", memory(sources["files"]), memory(sources["few files"]), Fraction(11, 10))]
            show(f"Memory beside {FEW_FILES} files", most, "MB", 1.0)


def main() -> None:
    """Measures the sources that are named."""
    if sys.argv[1:2] == ["--memory"]:
        _measure_memory(sys.argv[2])
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    compare(rows, sys.argv[2].split(",") if len(sys.argv) > 2 else list(KINDS))


if __name__ == "__main__":
    main()
