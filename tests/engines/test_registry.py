"""The manual lists the sources that there are: every kind has an entry, every entry a kind, and the page the table."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from discreet.curator.catalog import lazy_tables
from discreet.engines import Folder
from discreet.engines.duckdb import sources as embedded
from discreet.engines.mariadb.address import MariaDBTable
from discreet.engines.sources.registry import OFFERED, sources_table
from discreet.engines.sources.stored_frames import StoredFrame
from discreet.engines.spark import sources as spark
from discreet.server_address import ServerTable

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "where_data_lives.md"
INSIDE = {"ComposedTable"}
"""What is no source of a steward's: what one query makes of one."""


def test_every_kind_of_source_is_in_the_manual() -> None:
    servers = [ServerTable, MariaDBTable]
    classes = [*get_args(embedded.Source), *get_args(spark.Source), *servers, Folder, StoredFrame]
    offered = [name for one in OFFERED for name in one.classes]
    assert {kind.__name__ for kind in classes} - INSIDE == set(offered)
    assert len(offered) == len(set(offered))


def test_the_page_has_the_table() -> None:
    assert sources_table() in PAGE.read_text(encoding="utf-8")


def test_the_libraries_of_lazy_tables_are_named() -> None:
    (row,) = (line for line in sources_table().splitlines() if line.startswith("| A lazy table"))
    known = {"duckdb": "DuckDB", "ibis": "ibis", "polars": "polars", "pyarrow": "Arrow"}
    assert known.keys() == lazy_tables.LIBRARIES.keys()
    assert all(name in row for name in known.values())


def test_no_cell_of_the_table_is_empty_or_breaks_a_line() -> None:
    rows = sources_table().splitlines()[2:]
    assert len(rows) == len(OFFERED)
    assert all(row.count(" | ") == 4 and "|  |" not in row for row in rows)
