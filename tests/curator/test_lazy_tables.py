"""Lazy tables of other libraries: the same answers as one file if they choose columns, refused if they compute."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext as ok
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from discreet.curator.catalog.lazy_tables import stored_table
from discreet.engines import DuckDB
from discreet.engines.sources import polars_scans
from discreet.engines.sources.file_set import FileSet
from discreet.errors import InvalidParameter
from discreet.plan.model.readings import Reading, Statistic
from tests.curator.clinic import DECLARED
from tests.curator.lazy_tables import COMPUTED, LAZY, written
from tests.curator.test_many_files import clinic, told
from tests.curator.test_memory_tables import ASKED, ROWS, empty_curator
from tests.engines.raw_arrow import text_array
from tests.engines.tables import N, T, col
from tests.open_groups import unsealed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(ROWS, tmp_path_factory.mktemp("lazy"))


@pytest.fixture(scope="module")
def of_one_file(folder: Path) -> list[Any]:
    return told(folder / "one.parquet", ASKED)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", LAZY)
def test_answers_are_those_of_one_file(kind: str, folder: Path, of_one_file: list[Any]) -> None:
    assert told(LAZY[kind](folder), ASKED) == of_one_file


@pytest.mark.parametrize("kind", COMPUTED)
def test_what_computes_is_refused(kind: str, folder: Path) -> None:
    with empty_curator() as curator:
        for protect in (curator.protect, curator.public):
            declared: dict[str, Any] = {} if protect == curator.public else {"unit": "patient", "max_rows": 1}
            with pytest.raises(InvalidParameter) as caught:
                protect(COMPUTED[kind](folder), name="visits", **declared)
            assert caught.value.name == "source"
            assert caught.value.hint
            assert str(folder) not in str(caught.value)
        assert not curator.accounts()


def test_what_the_refusal_proposes_is_accepted(folder: Path, tmp_path: Path, of_one_file: list[Any]) -> None:
    computed = pl.scan_parquet(folder / "one.parquet").filter(pl.lit(value=True))
    with pytest.raises(InvalidParameter, match=r"write its rows to a Parquet file, and pass the path\.") as caught:
        clinic(computed)
    assert caught.value.hint.startswith("Store it, then protect it")
    computed.collect().write_parquet(tmp_path / "stored.parquet")
    assert told(tmp_path / "stored.parquet", ASKED) == of_one_file


def test_a_lazy_table_of_files_has_the_budget_of_its_files(folder: Path) -> None:
    for other in (pl.scan_parquet(folder / "one.parquet").select("patient"), ds.dataset(folder / "one.parquet")):
        with clinic(folder / "one.parquet") as curator, pytest.raises(InvalidParameter, match=r"has a budget|data of"):
            curator.protect(other, name="again", unit="patient", max_rows=1)
        with clinic(folder / "one.parquet") as curator, pytest.raises(InvalidParameter, match="protected table"):
            curator.public(other, name="again")


def test_a_lazy_table_in_memory_has_one_budget(folder: Path) -> None:
    for kind in ("duckdb table", "arrow in memory", "polars in memory", "ibis"):
        source = LAZY[kind](folder)
        with clinic(source) as curator, pytest.raises(InvalidParameter, match=r"has a budget|data of"):
            curator.protect(source, name="again", unit="patient", max_rows=1)


def test_a_relation_is_copied_when_it_is_protected(folder: Path, of_one_file: list[Any]) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE visits AS FROM '{folder}/one.parquet'")
    with clinic(connection.table("visits")) as curator:
        connection.execute("DELETE FROM visits")
        connection.close()
        assert list(curator.ask(ASKED[0], epsilon=2)) == of_one_file[0][0]


def test_a_relation_of_a_database_in_a_file_is_that_file(folder: Path, tmp_path: Path) -> None:
    """Its rows are copied, and they are the same data wherever they are read."""
    connection = duckdb.connect(tmp_path / "clinic.duckdb")
    connection.execute(f"CREATE TABLE visits AS FROM '{folder}/one.parquet'")
    with clinic(connection.sql("SELECT * FROM visits")) as curator:
        connection.close()
        for name, account in (("again", None), ("shared", "visits")):
            with pytest.raises(InvalidParameter, match="not to be the data of table 'visits'") if not account else ok():
                curator.protect(
                    tmp_path / "clinic.duckdb", table="visits", name=name, unit="patient", max_rows=1, account=account
                )


def test_types_of_texts_are_declared_under_the_new_names(folder: Path) -> None:
    for scan in (pl.scan_csv(folder / "other.csv"), pl.scan_ndjson(folder / "other.ndjson")):
        source = scan.select(patient="person")
        with pytest.raises(InvalidParameter) as caught:
            clinic(source, types=None, bounds={}, keys={})
        assert caught.value.name == "types"
    assert '"patient": "text"' not in str(caught.value)  # names in JSON are content


def test_columns_that_were_not_chosen_are_not_there(folder: Path) -> None:
    source = pl.scan_parquet(folder / "one.parquet").select("patient", "ward")
    with pytest.raises(InvalidParameter, match="readable column"):
        clinic(source, types={"age": "int"}, bounds={})


# ------------------------------------------------------------------------------------------------------ renamed columns


def counts(source: Any, name: str) -> dict[Any, int]:
    with DuckDB(threads=1) as engine:
        engine.register("t", source, {name: T if name != "n" else N})
        asked = Reading(table="t", keys=(col(name, T if name != "n" else N),), statistics=(Statistic(kind="rows"),))
        return {key: rows for (key,), (rows,) in unsealed(engine.read(asked)).items()}


def test_renamed_columns_are_read_with_care(tmp_path: Path) -> None:
    """Texts that are not UTF-8 make the first reading fail; the second one knows the columns by their old names."""
    good, bad = (text_array(cells, pa.string()) for cells in ([b"x", b"y", b"y"], [b"p", b"\xff", b"q"]))
    pq.write_table(pa.table({"a": good, "b": bad, "n": [1, 2, 3]}), tmp_path / "x.parquet")
    source = stored_table(pl.scan_parquet(tmp_path / "x.parquet").rename({"a": "b", "b": "a"}))
    assert counts(source, "b") == {"x": 1, "y": 2}
    assert counts(source, "a") == {"p": 1, None: 1, "q": 1}
    twice = stored_table(pl.scan_parquet(tmp_path / "x.parquet").select("b", also="b"))
    assert counts(twice, "also") == counts(twice, "b") == {"p": 1, None: 1, "q": 1}


def test_milliseconds_under_another_name_are_read_with_care(tmp_path: Path) -> None:
    moments = pa.array([0, 1 << 62], pa.int64()).view(pa.timestamp("ms"))
    pq.write_table(pa.table({"at": moments, "s": ["x", "y"]}), tmp_path / "x.parquet")
    source = stored_table(pl.scan_parquet(tmp_path / "x.parquet").select(n="at", at="s"))
    assert counts(source, "at") == {"x": 1, "y": 1}


def test_partitions_of_a_dataset_are_those_that_arrow_finds(tmp_path: Path) -> None:
    (tmp_path / "ward=Z" / "A").mkdir(parents=True)
    pq.write_table(pa.table({"n": [1], "ward": ["own"]}), tmp_path / "ward=Z" / "A" / "x.parquet")
    assert counts(stored_table(ds.dataset(tmp_path / "ward=Z")), "ward") == {"own": 1}
    scheme = ds.partitioning(pa.schema([("kind", pa.string())]))
    assert counts(stored_table(ds.dataset(tmp_path / "ward=Z", partitioning=scheme)), "kind") == {"A": 1}
    assert counts(stored_table(pl.scan_parquet(tmp_path / "ward=Z" / "A" / "x.parquet")), "ward") == {"own": 1}


def test_a_schema_chooses_the_columns_of_a_dataset(folder: Path) -> None:
    source = stored_table(ds.dataset(folder / "one.parquet").replace_schema(pa.schema([("ward", pa.string())])))
    assert DuckDB().schema_of(source) == {"ward": T}


# ------------------------------------------------------------------------------------------------------- the allow-list


def test_an_option_of_a_scan_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Also one that a later version of polars will have."""
    scan, written_plan = pl.scan_parquet(folder / "one.parquet"), polars_scans._plan_of
    places: list[Callable[[Any], Any]] = [
        lambda plan: plan["Scan"],
        lambda plan: plan["Scan"]["unified_scan_args"],
        lambda plan: plan["Scan"]["unified_scan_args"]["hive_options"],
        lambda plan: plan["Scan"]["scan_type"]["Parquet"]["options"],
        lambda plan: plan["Scan"]["sources"],
        lambda plan: plan,
    ]
    assert isinstance(stored_table(scan), FileSet)
    for place in places:

        def changed(frame: Any, place: Callable[[Any], Any] = place) -> Any:
            plan = json.loads(json.dumps(written_plan(frame)))
            if frame is scan:
                place(plan)["every_other_row"] = True
            return plan

        monkeypatch.setattr(polars_scans, "_plan_of", changed)
        with pytest.raises(InvalidParameter, match="chosen and renamed"):
            stored_table(scan)


def test_a_plan_that_polars_cannot_write_is_refused(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(pl.LazyFrame, "serialize", lambda *_, **__: (_ for _ in ()).throw(ValueError("CANARY")))
    with pytest.raises(InvalidParameter, match="chosen and renamed") as caught:
        stored_table(pl.scan_parquet(folder / "one.parquet"))
    assert "CANARY" not in str(caught.value)


def test_hostile_names_of_columns_are_names(tmp_path: Path) -> None:
    names = ['"df":[1]', 'a"b', "Scan", '"}}', "Alias", "x AS y", "new\nline"]
    pq.write_table(pa.table({name: ["x"] for name in names}), tmp_path / "x.parquet")
    scan = pl.scan_parquet(tmp_path / "x.parquet")
    source = stored_table(scan.select(pl.col(name).alias(f"{name}!") for name in names))
    assert DuckDB().schema_of(source) == {f"{name}!": T for name in names}
    relation = duckdb.connect().read_parquet(str(tmp_path / "x.parquet"))
    assert list(DuckDB().schema_of(stored_table(relation))) == names


def test_the_declared_columns_are_all_that_there_are() -> None:
    assert set(DECLARED["types"]) == set(ROWS[0])
