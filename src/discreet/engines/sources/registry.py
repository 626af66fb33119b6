"""The kinds of sources that can be protected: where their types come from, what they read themselves, what they refuse.

The table in `docs/howto/where_data_lives.md` is written from this one. A kind without an entry fails a test, and so
does an entry without a kind.
"""

from __future__ import annotations

from discreet.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedSource:
    """A kind of source, as a steward finds it in the manual.

    Args:
        name: what it is called.
        example: how it is given to `Curator.protect`.
        types: where the types of its columns come from.
        pushed_down: what of a query is done where the rows lie, so that the rest is not read.
        refused: what is refused, and why.
        classes: the classes that an engine makes of it; none if it makes those of the entry before.
    """

    name: str
    example: str
    types: str
    pushed_down: str
    refused: str
    classes: tuple[str, ...]


_CHOSEN = "columns"
_NOTHING = "nothing: all rows are read"
_COPIED = "nothing: its declared columns are copied when it is protected"

OFFERED: tuple[OfferedSource, ...] = (
    OfferedSource(
        name="One Parquet file",
        example='`"visits.parquet"`',
        types="carried",
        pushed_down=_CHOSEN,
        refused="columns of bytes, times, durations and nested types: no value of theirs may make a query fail",
        classes=("Parquet",),
    ),
    OfferedSource(
        name="One CSV or TSV file",
        example='`"visits.csv"`, `"visits.csv.gz"`',
        types="declared",
        pushed_down=_NOTHING,
        refused="a header with a name twice, or without one: columns could not be distinguished",
        classes=("Csv",),
    ),
    OfferedSource(
        name="A folder, a pattern or a list of files",
        example='`"visits/"`, `"visits/**/*.csv"`, `["a.parquet", "b.csv"]`',
        types="carried by Parquet and Arrow, else declared; those of partitions are declared",
        pushed_down=f"{_CHOSEN} of Parquet; partitions are not left out",
        refused="patterns in Delta and Iceberg tables, whose folders hold deleted rows; `..`, which leaves the folder",
        classes=("FileSet", "JsonLines"),
    ),
    OfferedSource(
        name="A Delta table",
        example='`"visits_delta/"`',
        types="carried, those of partitions too",
        pushed_down=f"{_CHOSEN}; partitions are not left out",
        refused="files outside its folder, which may have a budget; unknown features of the protocol",
        classes=("LakeTable",),
    ),
    OfferedSource(
        name="An Iceberg table",
        example='`"iceberg://local/care.visits"`, `"visits/metadata/v3.metadata.json"`',
        types="carried",
        pushed_down=f"{_CHOSEN}; partitions are not left out",
        refused="files of deleted rows, which are not read yet; files outside its folder",
        classes=(),
    ),
    OfferedSource(
        name="Objects of a bucket, files of a web server",
        example='`"s3://lake/visits/"`, `"gs://lake/**/*.csv"`, `"az://lake/visits.parquet"`, '
        '`"https://data.example/visits.csv"`',
        types="as those of files",
        pushed_down=f"{_CHOSEN} and row groups of Parquet; partitions are not left out",
        refused="http; redirects; addresses with a user, a password or a query string, for the ledger keeps them; "
        "folders and patterns of a web server, which has no lists",
        classes=("ObjectSet",),
    ),
    OfferedSource(
        name="A frame in memory",
        example="a pandas, polars or Arrow table, or another one with `__arrow_c_stream__`",
        types="carried; those of Python objects are declared",
        pushed_down=_COPIED,
        refused="readers of batches, which can be read only once",
        classes=("ArrowFrame",),
    ),
    OfferedSource(
        name="Columns or rows in Python",
        example='`{"age": [40, 60]}`, `[{"age": 40}, {"age": 60}]`, numpy arrays in a dictionary, a structured array',
        types="carried by numpy arrays; those of lists and of Python objects are declared",
        pushed_down=_COPIED,
        refused="generators, which can be read only once; columns of different lengths",
        classes=("RowList",),
    ),
    OfferedSource(
        name="A lazy table",
        example="a polars `LazyFrame`, a DuckDB relation, an Arrow dataset, an ibis table in memory",
        types="as those of its files, or of its rows in memory",
        pushed_down=f"{_CHOSEN} of files; what is in memory is copied when it is protected",
        refused="what computes, such as filters, casts, joins and limits: store it, then protect it",
        classes=("StoredFrame",),
    ),
    OfferedSource(
        name="A DuckDB database",
        example='`"clinic.duckdb", table="visits"`',
        types="carried",
        pushed_down=_CHOSEN,
        refused="views, whose expressions may fail; any query while another program has it open for writing",
        classes=("FileTable",),
    ),
    OfferedSource(
        name="A SQLite database",
        example='`"clinic.sqlite", table="visits"`',
        types="declared: a cell may have any type",
        pushed_down="columns; the rest is copied for each query",
        refused="views and virtual tables, whose expressions may fail; columns that it computes",
        classes=("SqliteTable",),
    ),
    OfferedSource(
        name="A table of a PostgreSQL server",
        example='`"postgresql://db.example/clinic/care.visits"`',
        types="carried",
        pushed_down="the whole query, on the server",
        refused="views and foreign tables, whose expressions may fail",
        classes=("ServerTable",),
    ),
    OfferedSource(
        name="A table of a MariaDB server",
        example='`"mysql://db.example/clinic/visits"`',
        types="carried",
        pushed_down="the whole query, on the server",
        refused="views, whose expressions may fail; tables that InnoDB does not store, which have no snapshot; MySQL",
        classes=("MariaDBTable",),
    ),
    OfferedSource(
        name="A table of a Spark cluster",
        example='`"spark://host:7077/clinic.visits"`, a DataFrame',
        types="carried",
        pushed_down="the whole query, on the cluster",
        refused="views, and tables that are not stored as Parquet",
        classes=("CatalogTable", "ParquetFiles", "SparkFrame"),
    ),
    OfferedSource(
        name="A folder of pictures or texts",
        example='`Folder(path="scans", suffix=".png", shape=(1, 28, 28))`',
        types="carried",
        pushed_down="a file is read only when a model learns from it",
        refused="JPEG, which is not read; links, which lead out of the folder",
        classes=("Folder",),
    ),
)
"""All kinds, in the order of the manual."""


def sources_table() -> str:
    """Returns the kinds as a table in Markdown.

    >>> sources_table().splitlines()[0]
    '| source | as you give it | types | read where it is | refused, and why |'
    """
    head = "| source | as you give it | types | read where it is | refused, and why |\n|---|---|---|---|---|\n"
    rows = ((one.name, one.example, one.types, one.pushed_down, one.refused) for one in OFFERED)
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)
