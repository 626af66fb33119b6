"""The clinic's rows as tables that other libraries read lazily: those that choose columns, and those that compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tests.engines.lakes import table

Make = Callable[[Path], Any]
"""Makes a table of the folder that `written` fills."""

OTHER_NAMES = {"person": "patient", "unit": "ward", "years": "age", "charge": "charge", "what": "kind"}
"""The columns under other names."""


def written(rows: Any, folder: Path) -> Path:
    """Writes rows as files of several formats, some of them with other names, and a database."""
    found = table(rows)
    other = found.select(list(OTHER_NAMES.values())).rename_columns(list(OTHER_NAMES))
    pq.write_table(found, folder / "one.parquet")
    pq.write_table(other.append_column("more", pa.array(range(len(other)))), folder / "other.parquet")
    pl.DataFrame(pl.from_arrow(other)).write_csv(folder / "other.csv")
    pl.DataFrame(pl.from_arrow(other)).write_ndjson(folder / "other.ndjson")
    pl.DataFrame(pl.from_arrow(other)).write_ipc(folder / "other.arrow")
    for place in (0, 1):
        (folder / "many").mkdir(exist_ok=True)
        pq.write_table(found.slice(place * 20, 20 if not place else None), folder / "many" / f"{place}.parquet")
    partitioning = ds.partitioning(pa.schema([("ward", pa.string())]), flavor="hive")
    ds.write_dataset(found, folder / "hive", format="parquet", partitioning=partitioning)
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE other AS FROM '{folder}/other.parquet'")
    return folder


_BACK = {old: new for new, old in OTHER_NAMES.items()}
_SHOWN = ", ".join(f"{new} AS {old}" for new, old in OTHER_NAMES.items())


def _polars(scan: pl.LazyFrame) -> pl.LazyFrame:
    return scan.rename(OTHER_NAMES).select(*_BACK)


def _connected(folder: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE other AS FROM '{folder}/other.parquet'")
    connection.execute("CREATE VIEW computed AS SELECT person + 1 AS patient FROM other")
    connection.execute("CREATE TABLE half (patient INT, other INT GENERATED ALWAYS AS (100 // patient))")
    return connection


def _memtable(folder: Path) -> Any:
    return ibis.memtable(pq.read_table(folder / "other.parquet"))


LAZY: Mapping[str, Make] = {
    "polars parquet": lambda folder: pl.scan_parquet(folder / "one.parquet"),
    "polars folder": lambda folder: pl.scan_parquet(folder / "many"),
    "polars pattern": lambda folder: pl.scan_parquet(f"{folder}/many/*.parquet"),
    "polars partitions": lambda folder: pl.scan_parquet(folder / "hive"),
    "polars renamed": lambda folder: _polars(pl.scan_parquet(folder / "other.parquet")),
    "polars aliases": lambda folder: pl.scan_parquet(folder / "other.parquet").select(
        **{old: pl.col(new) for new, old in OTHER_NAMES.items()}
    ),
    "polars without a column": lambda folder: (
        pl.scan_parquet(folder / "other.parquet").drop("more").rename(OTHER_NAMES)
    ),
    "polars csv": lambda folder: _polars(pl.scan_csv(folder / "other.csv")),
    "polars ndjson": lambda folder: _polars(pl.scan_ndjson(folder / "other.ndjson")),
    "polars arrow": lambda folder: _polars(pl.scan_ipc(folder / "other.arrow")),
    "polars in memory": lambda folder: _polars(pl.read_parquet(folder / "other.parquet").lazy()),
    "duckdb table": lambda folder: _connected(folder).table("other").project(_SHOWN),
    "duckdb text": lambda folder: _connected(folder).sql(f"SELECT {_SHOWN} FROM main.other"),
    "duckdb subquery": lambda folder: _connected(folder).sql(f"FROM (SELECT {_SHOWN} FROM OTHER) AS x"),
    "duckdb file": lambda folder: duckdb.connect().sql(f"SELECT {_SHOWN} FROM '{folder}/other.parquet'"),
    "duckdb files": lambda folder: duckdb.connect().read_parquet(f"{folder}/many/*.parquet"),
    "duckdb database": lambda folder: duckdb.connect(str(folder / "clinic.duckdb")).table("other").project(_SHOWN),
    "arrow files": lambda folder: ds.dataset(folder / "many"),
    "arrow partitions": lambda folder: ds.dataset(folder / "hive", partitioning="hive"),
    "arrow in memory": lambda folder: ds.dataset(pq.read_table(folder / "one.parquet")),
    "arrow of two": lambda folder: ds.dataset([ds.dataset(path) for path in sorted((folder / "many").iterdir())]),
    "ibis": lambda folder: _memtable(folder).rename(**_BACK).drop("more"),
    "ibis chosen": lambda folder: _chosen(_memtable(folder)),
}
"""Plain projections, of which each has the clinic's columns."""


def _chosen(rows: Any) -> Any:
    return rows.select(**{old: rows[new] for new, old in OTHER_NAMES.items()})


def _one(folder: Path) -> pl.LazyFrame:
    return pl.scan_parquet(folder / "one.parquet")


def _sql(text: str) -> Make:
    return lambda folder: _connected(folder).sql(text)


def _ibis(compute: Callable[[Any], Any]) -> Make:
    return lambda folder: compute(_memtable(folder))


COMPUTED: Mapping[str, Make] = {
    "filter": lambda folder: _one(folder).filter(pl.col("age") > 1),
    "strict cast": lambda folder: _one(folder).with_columns(pl.col("kind").cast(pl.Int64)),
    "cast": lambda folder: _one(folder).select(pl.col("kind").cast(pl.Int64)),
    "cast of all": lambda folder: _one(folder).cast({"age": pl.Int8}),
    "mixes people": lambda folder: _one(folder).select(pl.col("age") - pl.col("age").mean()),
    "shift": lambda folder: _one(folder).select(pl.col("age").shift()),
    "sample": lambda folder: _one(folder).select(pl.col("age").sample(fraction=0.5)),
    "limit": lambda folder: _one(folder).head(5),
    "first rows": lambda folder: pl.scan_parquet(folder / "one.parquet", n_rows=5),
    "row numbers": lambda folder: _one(folder).with_row_index(),
    "numbered scan": lambda folder: pl.scan_parquet(folder / "one.parquet", row_index_name="place"),
    "paths": lambda folder: pl.scan_parquet(folder / "one.parquet", include_file_paths="path"),
    "join": lambda folder: _one(folder).join(_one(folder), on="patient"),
    "union": lambda folder: pl.concat([_one(folder), _one(folder)]),
    "distinct": lambda folder: _one(folder).unique(),
    "python": lambda folder: _one(folder).map_batches(lambda frame: frame),
    "group": lambda folder: _one(folder).group_by("patient").len(),
    "literal": lambda folder: _one(folder).select("patient", pl.lit(1)),
    "other delimiter": lambda folder: pl.scan_csv(folder / "other.csv", separator=";"),
    "other types": lambda folder: pl.scan_csv(folder / "other.csv", schema_overrides={"age": pl.String}),
    "bytes": lambda folder: pl.scan_csv((folder / "other.csv").read_bytes()),
    "cast in memory": lambda folder: pl.read_parquet(folder / "one.parquet").lazy().cast({"age": pl.Int8}),
    "duckdb view": _sql("SELECT patient FROM computed"),
    "duckdb view as a table": lambda folder: _connected(folder).table("computed"),
    "duckdb computed column": _sql("SELECT patient FROM half"),
    "duckdb filter": _sql("SELECT person FROM other WHERE years > 1"),
    "duckdb filtered": lambda folder: _connected(folder).table("other").filter("years > 1"),
    "duckdb limit": _sql("SELECT person FROM other LIMIT 5"),
    "duckdb sample": _sql("SELECT person FROM other USING SAMPLE 5"),
    "duckdb sampled": _sql("SELECT person FROM other TABLESAMPLE 50 PERCENT"),
    "duckdb cast": _sql("SELECT person, what::INT AS kind FROM other"),
    "duckdb expression": _sql("SELECT person + 1 AS person FROM other"),
    "duckdb aggregate": _sql("SELECT count(*) AS n FROM other"),
    "duckdb distinct": _sql("SELECT DISTINCT person FROM other"),
    "duckdb join": _sql("SELECT a.person FROM other AS a, other AS b"),
    "duckdb with": _sql("WITH q AS (SELECT person + 1 AS p FROM other) SELECT p FROM q"),
    "duckdb columns": _sql("SELECT COLUMNS('p.*') FROM other"),
    "duckdb exclude": _sql("SELECT * EXCLUDE (person) FROM other"),
    "duckdb row number": _sql("SELECT rowid FROM other"),
    "duckdb union": _sql("SELECT person FROM other UNION ALL SELECT person FROM other"),
    "duckdb csv": lambda folder: duckdb.connect().read_csv(str(folder / "other.csv")),
    "duckdb path of a csv": lambda folder: duckdb.connect().sql(f"FROM '{folder}/other.csv'"),
    "duckdb file names": lambda folder: duckdb.connect().sql(f"FROM read_parquet('{folder}/*.parquet', filename=true)"),
    "duckdb frame": lambda folder: duckdb.connect().from_arrow(pq.read_table(folder / "one.parquet")),
    "duckdb values": lambda _: duckdb.connect().values([1]),
    "arrow filter": lambda folder: ds.dataset(folder / "many").filter(pc.field("age") > 1),
    "arrow filter of two": lambda folder: ds.dataset([ds.dataset(folder / "many")]).filter(pc.field("age") > 1),
    "arrow scanner": lambda folder: ds.dataset(folder / "many").scanner(),
    "arrow delimiter": lambda folder: ds.dataset(
        folder / "other.csv", format=ds.CsvFileFormat(parse_options=pacsv.ParseOptions(delimiter=";"))
    ),
    "arrow missing values": lambda folder: ds.dataset(
        folder / "other.csv", format=ds.CsvFileFormat(convert_options=pacsv.ConvertOptions(null_values=["A"]))
    ),
    "ibis filter": _ibis(lambda t: t.filter(t.years > 1)),
    "ibis expression": _ibis(lambda t: t.mutate(years=t.years + 1)),
    "ibis limit": _ibis(lambda t: t.limit(5)),
    "ibis window": _ibis(lambda t: t.select(years=t.years - t.years.mean())),
    "ibis backend": lambda _: ibis.table({"person": "int64"}, name="visits"),
}
"""What computes anything, reads files in a way of its own, or whose rows another library keeps."""
