"""How DuckDB reads a table depends on what lies in it; what it finds does not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDB
from discreet.engines.duckdb import engine as module
from discreet.engines.sql.printer import Access
from discreet.errors import QueryFailed
from tests.engines.tables import ACCESSES, F, N, S, T, accessed, bounding, col
from tests.engines.test_bounding import reading
from tests.open_groups import unsealed

ROWS = 20_000
LAST = (1 << 63) - 1
IDS = {
    "dense": [i * i % 5003 for i in range(ROWS)],
    "apart": [i % 5003 * 1_000_003 for i in range(ROWS)],
    "ends of all numbers": [LAST if i % 9 else -LAST - 1 for i in range(ROWS)],
    "some missing": [None if i % 7 else i % 500 for i in range(ROWS)],
    "all missing": [None] * ROWS,
}
DENSE = ("dense", "some missing")


@pytest.mark.parametrize("ids", IDS)
def test_units_that_are_close_together_are_found_by_their_places(tmp_path: Path, ids: str) -> None:
    values = [(i * 2654435761 % 1_000_003) / 7 for i in range(ROWS)]  # hardly any two are alike
    keys = [i * 7919 % 40 for i in range(ROWS)]
    table = pa.table({"u": pa.array(IDS[ids], pa.int64()), "a": keys, "x": values, "y": [x / 3 for x in values]})
    pq.write_table(table, tmp_path / "t.parquet")
    asked = reading(bounding(3, 1), keys=(col("a", N),))
    with DuckDB(threads=1) as engine:
        engine.register("t", tmp_path / "t.parquet", {"u": N, "a": N, "x": F})
        assert engine._access(asked, engine._cursor()) == Access(is_kept=True, is_dense=ids in DENSE)
        found = unsealed(engine.read(asked))
        assert bool(found) is (ids != "all missing")
        assert all(unsealed(accessed(engine, access).read(asked)) == found for access in ACCESSES)


def test_the_most_places_are_close_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(
        pa.table({"u": [i % 5003 for i in range(ROWS)], "a": [1] * ROWS, "x": [1.0] * ROWS}), tmp_path / "t.parquet"
    )
    with DuckDB(threads=1) as engine:
        engine.register("t", tmp_path / "t.parquet", {"u": N, "a": N, "x": F})
        monkeypatch.setattr(module, "_bits", lambda _source: 20)
        for places, is_dense in ((5002, True), (5001, False)):
            monkeypatch.setattr(module, "_PLACES", places)
            assert engine._access(reading(bounding(3, 1)), engine._cursor()).is_dense is is_dense


def test_what_a_file_says_of_another_column_makes_nothing_fail(tmp_path: Path) -> None:
    """DuckDB reads what is said of all columns, and fails at milliseconds that are no microseconds."""
    moments = pa.array([LAST if i == 7 else i for i in range(ROWS)], pa.timestamp("ms"))
    values = [(i * 2654435761 % 1_000_003) / 7 for i in range(ROWS)]
    table = pa.table({"u": IDS["dense"], "a": [i % 40 for i in range(ROWS)], "x": values, "m": moments})
    pq.write_table(table, tmp_path / "t.parquet", compression="none")
    asked = reading(bounding(3, 1), keys=(col("a", N),))
    with DuckDB(threads=1) as engine:
        engine.register("t", tmp_path / "t.parquet", {"u": N, "a": N, "x": F, "m": S})
        assert module._bits(engine._tables["t"].source) > module._FEW
        found = unsealed(engine.read(asked))
        engine.register("t", table.drop_columns(["m"]), {"u": N, "a": N, "x": F})
        assert unsealed(engine.read(asked)) == found


def test_a_file_that_is_gone_is_a_failure_that_says_nothing(tmp_path: Path) -> None:
    """How a table is read best is found out where errors lose their texts."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"u": [1, 2], "a": [1, 1], "x": [1.0, 2.0]}), path)
    with DuckDB(threads=1) as engine:
        engine.register("t", path, {"u": N, "a": N, "x": F})
        path.unlink()
        with pytest.raises(QueryFailed) as failed:
            unsealed(engine.read(reading(bounding(3, 1), keys=(col("a", N),))))
        assert path.name not in f"{failed.value} {failed.value.__cause__} {failed.value.__context__}"


def test_small_tables_texts_and_long_files_are_read_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text file is not looked into, nor is a small table, and what is too long is not kept."""
    table = pa.table({"u": [1, 2, 3], "a": [1, 1, 1], "x": [1.0, 2.0, 3.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("u,a,x\n1,1,1\n2,1,2\n")
    asked = reading(bounding(3, 1), keys=(col("a", N),))
    with DuckDB(threads=1) as engine:
        for source, kept in ((tmp_path / "t.csv", True), (tmp_path / "t.parquet", False), (table, False)):
            engine.register("t", source, {"u": N, "a": N, "x": F})
            assert engine._access(asked, engine._cursor()) == Access(is_slow=kept, is_kept=True)
        engine.register("t", tmp_path / "t.parquet", {"u": T, "a": N, "x": F})
        monkeypatch.setattr(module, "_BYTES_KEPT", 1)
        monkeypatch.setattr(module, "_bits", lambda _source: 20)
        assert engine._access(asked, engine._cursor()) == Access()
