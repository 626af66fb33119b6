"""Which files are one table, under hostile names and contents: nothing fails by a value, nothing else is reached."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDB
from discreet.engines.duckdb import engine as module
from discreet.engines.sources.file_set import FileSet, partitions_of
from discreet.engines.sources.query_view import query_view
from discreet.errors import InvalidParameter, QueryFailed
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from discreet.presentation.inspection.file_check import check_file, mend_file
from tests.engines.lakes import WRITERS, scattered
from tests.engines.raw_arrow import text_array
from tests.engines.tables import B, D, F, N, S, T, bounding, call, col, lit, witnesses
from tests.open_groups import unsealed

ROWS = Reading(table="t", statistics=(Statistic(kind="rows"),))


def by(name: str, kind: Type = T) -> Reading:
    return Reading(table="t", keys=(col(name, kind),), statistics=ROWS.statistics)


def counts(source: Any, reading: Reading, columns: Mapping[str, Type]) -> dict[Any, int]:
    """How many rows each value has."""
    with DuckDB(threads=1) as engine:
        engine.register("t", source, columns)
        return {key[0] if key else None: rows for key, (rows,) in unsealed(engine.read(reading)).items()}


def written(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({name: [cell] for name, cell in columns.items()}), path)
    return path


# ------------------------------------------------------------------------------------------------ which files there are


def listed(source: str | Path) -> list[str]:
    files = FileSet.of_place(source)
    assert files is not None
    with files.list_files() as found:
        return [Path(file.place).relative_to(files.root).as_posix() for file in found.files]


def test_the_rule_of_a_folder_is_public(tmp_path: Path) -> None:
    shown = ["a.parquet", "b.CSV", "c.jsonl.gz", "deep/er/d.feather", "_w=1/e.pq", "f.tsv.zst"]
    hidden = [
        "_SUCCESS",
        ".a.parquet.crc",
        ".b.csv",
        "_delta/x.parquet",
        "README.txt",
        "x.xlsx",
        "x.parquet.gz",
        "y.gz",
    ]
    for name in (*shown, *hidden):
        (tmp_path / "lake" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lake" / name).touch()
    os.mkfifo(tmp_path / "lake" / "pipe.csv")
    assert listed(tmp_path / "lake") == sorted(shown)
    assert listed(f"{tmp_path}/lake/*.txt") == ["README.txt"]  # it was named
    assert listed(f"{tmp_path}/lake/**/*.parquet") == ["a.parquet"]
    assert listed(f"{tmp_path}/lake/**") == sorted(shown)
    assert listed(f"{tmp_path}/lake/?.[pC]*") == ["a.parquet", "b.CSV"]
    assert listed(f"{tmp_path}/la*/*.parquet") == ["lake/a.parquet"]


def test_links_do_not_lead_out_of_a_folder(tmp_path: Path) -> None:
    lake = written(tmp_path / "lake" / "a.parquet", n=1).parent
    outside = written(tmp_path / "outside" / "b.parquet", n=2)
    (lake / "b.parquet").symlink_to(outside)
    (lake / "folder").symlink_to(outside.parent)
    (lake / "gone.parquet").symlink_to(tmp_path / "gone")
    (tmp_path / "link").symlink_to(lake)
    assert counts(lake, by("n", N), {"n": N}) == {1: 1}
    assert counts(f"{lake}/**/*", by("n", N), {"n": N}) == {1: 1}
    assert counts(tmp_path / "link", by("n", N), {"n": N}) == {1: 1}  # what the steward names is followed


@pytest.mark.parametrize(
    "pattern", ["{0}/*/../../x.csv", "{0}/absent/*.csv", "/", "{0}/**/..", "s3://lake/*.csv", "a\0*"]
)
def test_patterns_that_leave_their_folder_are_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(InvalidParameter):
        DuckDB().register("t", pattern.format(tmp_path), {"n": N})


@pytest.mark.parametrize("kind", ["_delta_log", "metadata/v1.metadata.json"])
def test_formats_whose_folders_have_deleted_rows_are_no_folders_of_files(tmp_path: Path, kind: str) -> None:
    written(tmp_path / "part.parquet", n=1)
    (tmp_path / kind).mkdir(parents=True)
    for source in (tmp_path, f"{tmp_path}/*.parquet", f"{tmp_path}/**"):
        with pytest.raises(InvalidParameter, match="files that are no longer part of it"):
            FileSet.of_place(source)
        with pytest.raises(InvalidParameter):
            DuckDB().schema_of(source)


def test_a_list_of_unknown_or_missing_files_is_refused(tmp_path: Path) -> None:
    known = written(tmp_path / "a.parquet", n=1)
    (tmp_path / "b.xlsx").touch()
    for other in ("b.xlsx", "gone.parquet", ".", "*.parquet"):
        with pytest.raises(InvalidParameter):
            DuckDB().register("t", [known, tmp_path / other], {"n": N})


ODD: tuple[str, ...] = (
    "a*.parquet",
    "a?.parquet",
    "[ab].parquet",
    "a{b,c}.parquet",
    "it's.parquet",
    "a,b.parquet",
    'a"b.parquet',
    "ab.parquet",
)
ODD += (
    "a'],['b.parquet",
    "new\nline.parquet",
    "a\\b.parquet",
    "%41.parquet",
    "$q0.parquet",
    "ünï.parquet",
    "a b.parquet",
)


def test_hostile_names_of_files_and_folders_are_only_names(tmp_path: Path) -> None:
    for place, name in enumerate(ODD):
        written(tmp_path / "lake" / f"p={name}" / name, n=place)
    raw = os.fsencode(tmp_path) + b"/lake/bad\xff*.parquet"
    os.rename(written(tmp_path / "lake" / "last.parquet", n=99), raw)
    columns = {"n": N, "p": T}
    assert counts(tmp_path / "lake", by("n", N), columns) == dict.fromkeys([*range(len(ODD)), 99], 1)
    expected: dict[Any, int] = {name.replace("%41", "A"): 1 for name in ODD}
    none: dict[Any, int] = {None: 1}
    assert counts(tmp_path / "lake", by("p"), columns) == expected | none
    texts = tmp_path / "texts"
    texts.mkdir()
    for place, name in enumerate(ODD):
        (texts / name.replace(".parquet", ".csv.gz")).write_bytes(gzip.compress(f"n\n{place}\n".encode()))
    assert counts(texts, by("n", N), {"n": N}) == dict.fromkeys(range(len(ODD)), 1)


def test_files_that_were_opened_for_their_names_are_closed(tmp_path: Path) -> None:
    for place in range(5):
        written(tmp_path / f"[{place}].parquet", n=place)
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        assert len(counts(tmp_path, by("n", N), {"n": N})) == 5
    assert len(os.listdir("/dev/fd")) <= before


# -------------------------------------------------------------------------------------------------------------- columns


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", n=1, s="a", day="2024-01-01")
    written(tmp_path / "b.parquet", s="b", n="2")
    written(tmp_path / "c.parquet", n=3.0, extra=[1])
    (tmp_path / "d.csv").write_text("day;n;n\n2024-01-02;4;5\n")
    (tmp_path / "e.csv").write_text("")
    (tmp_path / "f.ndjson").write_text('{"n": 6, "s": {"a": [1]}, "day": "2024-01-03"}\n')
    columns = {"n": N, "s": T, "day": D}
    assert counts(tmp_path, by("n", N), columns) == {1: 1, 2: 1, 3: 1, 4: 1, 6: 1}
    assert counts(tmp_path, by("s"), columns) == {"a": 1, "b": 1, None: 2, '{"a":[1]}': 1}
    assert len(counts(tmp_path, by("day", D), columns)) == 4


def test_rows_count_of_which_no_column_is_read(tmp_path: Path) -> None:
    lists, other = pa.table({"x": [[1], [2]]}), pa.table({"file_index": [1, 2]})
    for name, table in {"a": lists, "b": other}.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
        with pa.ipc.new_file(str(tmp_path / f"{name}.arrow"), table.schema) as out:
            out.write_table(table)
    (tmp_path / "c.csv").write_text("x\n1\n2\n")
    (tmp_path / "c.ndjson").write_text('{"x": 1}\n{"x": 2}\n')
    written(tmp_path / "d.parquet", n=7)
    assert counts(tmp_path, by("n", N), {"n": N}) == {None: 12, 7: 1}


def test_a_value_of_a_type_that_cannot_be_read_is_null(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", n=1)
    pq.write_table(pa.table({"n": pa.array([1], pa.date32())}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"n": [[1]]}), tmp_path / "c.parquet")
    assert counts(tmp_path, by("n", N), {"n": N}) == {1: 1, None: 2}


def test_a_folder_named_after_a_column_says_its_value(tmp_path: Path) -> None:
    written(tmp_path / "ward=A" / "a.parquet", n=1, ward="file")
    written(tmp_path / "ward=A" / "ward=B" / "a.parquet", n=2, ward="file")
    written(tmp_path / "b.parquet", n=3, ward="file")
    written(tmp_path / "other=1" / "c.parquet", n=4)
    assert counts(tmp_path, by("ward"), {"ward": T}) == {"A": 1, "B": 1, "file": 1, None: 1}
    assert counts(tmp_path / "ward=A", by("ward"), {"ward": T}) == {
        "file": 1,
        "B": 1,
    }  # above the table is no partition


def test_a_column_called_as_duckdbs_own_is_a_column(tmp_path: Path) -> None:
    for ward in "AB":
        written(tmp_path / f"ward={ward}" / "a.parquet", file_index=7, filename="x", file_row_number=3)
        (tmp_path / f"ward={ward}" / "b.csv").write_text("file_index,filename\n8,y\n")
        (tmp_path / f"ward={ward}" / "c.ndjson").write_text('{"file_index": 9, "filename": "z"}\n')
    columns = {"ward": T, "file_index": N, "filename": T}
    assert counts(tmp_path, by("ward"), columns) == {"A": 3, "B": 3}
    assert counts(tmp_path, by("file_index", N), columns) == {7: 2, 8: 2, 9: 2}
    assert counts(tmp_path, by("filename"), columns) == {"x": 2, "y": 2, "z": 2}


def test_names_of_partitions_are_read_as_hive_writes_them() -> None:
    folders = ["a=%2F%00é", "b=", "c=__HIVE_DEFAULT_PARTITION__", "d=%FF", "e=x=y", "=1", "f", "g=%zz", "h=\udcff"]
    assert partitions_of(folders) == {"a": "/\0é", "b": None, "c": None, "d": None, "e": "x=y", "g": "%zz", "h": None}


@pytest.mark.parametrize(
    "value", ["9" * 40, "-0", "1e999", "NaN", "%00", "%27%3B--", "0001-01-01", "Infinity", "%F0%9F%A4%A6"]
)
def test_no_name_of_a_partition_makes_a_read_fail(tmp_path: Path, value: str) -> None:
    written(tmp_path / f"p={value}" / "a.parquet", n=1)
    for kind in (N, T, D, S):
        assert sum(counts(tmp_path, by("p", kind), {"p": kind}).values()) == 1
    assert sum(counts(tmp_path, ROWS, {"p": F}).values()) == 1


# ---------------------------------------------------------------------------------------------------------------- cells

LINES = {
    b'{"n": 1}': 1,
    b'\xef\xbb\xbf{"n": 2}': 2,
    b'{"n": "3"}': 3,
    b'{"n": 1.5}': None,
    b'{"n": 1}{"n": 2}': None,
    b'{"n": 99999999999999999999}': None,
    b'{"n": 1e400}': None,
    b'{"n": null}': None,
    b'{"n": [1]}': None,
    b'{"m": 1}': None,
    b"[4]": None,
    b"5": None,
    b"nonsense": None,
    b'{"n": "\\ud800"}': None,
    b'{"n": 6, "s": "\\u0000"}': 6,
    b'{"n": 7, "n": 8}': 7,
    b'{"\\u006e": 9}': 9,
    b'{"n": 10, "s": "' + b"x" * 1_500_000 + b'"}': 10,
    b'{"n": 11, "s": ' + b"[" * 5000 + b"]" * 5000 + b"}": 11,
}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:20].decode("latin-1"))
def test_a_line_of_json_changes_no_other_row(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "a.ndjson").write_bytes(line + b'\n\n  \r\n{"n": 12, "s": "a"}\r\n{"n": 13}')
    expected: dict[Any, int] = {12: 1, 13: 1, LINES[line]: 1}
    assert counts(tmp_path, by("n", N), {"n": N, "s": T}) == expected


@pytest.mark.parametrize(
    "line", [b'{"n": "\xff"}', b'{"n": 1, "s": "' + b"x" * 3_000_000 + b'"}'], ids=["utf8", "long"]
)
def test_a_line_that_is_no_text_is_left_out(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "a.ndjson").write_bytes(b'{"n": 12}\n' + line + b'\n{"n": 13}\n')
    assert counts(tmp_path, by("n", N), {"n": N}) == {12: 1, 13: 1}


@pytest.mark.ci
def test_names_in_json_are_only_names(tmp_path: Path) -> None:
    names = ["a/b", "~1", "~", "0", 'q"q', "it's", "$.a", "#0", "é"]
    (tmp_path / "a.ndjson").write_text(json.dumps({name: place for place, name in enumerate(names)}))
    columns = dict.fromkeys(names, N)
    assert [counts(tmp_path, by(name, N), columns) for name in names] == [{place: 1} for place, _ in enumerate(names)]


@pytest.mark.parametrize("split", [False, True])
def test_texts_that_are_not_utf8_are_null_and_change_no_other_cell(tmp_path: Path, split: bool) -> None:
    """DuckDB's reader of Parquet fails at them; all parts are then read with care, those of Arrow as they are."""
    bad = pa.table({"s": text_array([b"ok", b"\xff\xfe", b"fine"], pa.string()), "n": [1, 2, 3]})
    for ward in ("A", "B") if split else ("A",):
        (tmp_path / f"ward={ward}").mkdir()
        pq.write_table(bad, tmp_path / f"ward={ward}" / "a.parquet")
    pq.write_table(pa.table({"n": [4], "s": ["b"]}), tmp_path / "ward=A" / "b.parquet")
    with pa.ipc.new_file(str(tmp_path / "c.arrow"), bad.schema) as out:
        out.write_table(bad)
    columns, wards = {"s": T, "n": N, "ward": T}, 2 if split else 1
    assert counts(tmp_path, by("s"), columns) == {"ok": wards + 1, None: wards + 1, "fine": wards + 1, "b": 1}
    expected: dict[Any, int] = {"A": 4, None: 3} | ({"B": 3} if split else {})
    assert counts(tmp_path, by("ward"), columns) == expected


def test_milliseconds_that_are_no_microseconds_are_null(tmp_path: Path) -> None:
    for ward, moment in (("A", 0), ("B", (1 << 63) - 1)):
        (tmp_path / f"ward={ward}").mkdir()
        pq.write_table(
            pa.table({"at": pa.array([moment], pa.timestamp("ms"))}), tmp_path / f"ward={ward}" / "a.parquet"
        )
    keys, statistics = witnesses(col("at", S))
    with DuckDB(threads=1) as engine:
        engine.register("t", tmp_path, {"at": S, "ward": T})
        assert len(unsealed(engine.read(Reading(table="t", keys=keys, statistics=statistics)))) == 2
        assert unsealed(engine.read(by("ward"))).keys() == {("A",), ("B",)}


# ---------------------------------------------------------------------------------------------------------- the sandbox


def test_only_the_listed_files_are_within_reach(tmp_path: Path) -> None:
    inside, other = written(tmp_path / "lake" / "a.parquet", n=1), written(tmp_path / "other.parquet", n=2)
    with DuckDB(threads=1) as engine, query_view() as view:
        engine.register("t", tmp_path / "lake", {"n": N})
        assert unsealed(engine.read(ROWS)) == {(): (1,)}
        late = written(tmp_path / "lake" / "b.parquet", n=3)
        database = engine._database(view, {"t0": engine._tables["t"]})
        assert database.connection.execute(f"SELECT n FROM '{inside}'").fetchall() == [(1,)]
        for path in (other, late, tmp_path / "lake" / "*.parquet"):
            with pytest.raises(duckdb.PermissionException):
                database.connection.execute(f"SELECT * FROM read_parquet('{path}')")
        with pytest.raises(duckdb.Error):
            database.connection.execute("SET enable_external_access = true")
        assert unsealed(engine.read(ROWS)) == {(): (1,)}  # the view's list


def test_a_folder_that_cannot_be_read_is_no_empty_table(tmp_path: Path) -> None:
    lake = written(tmp_path / "lake" / "a.parquet", n=1).parent
    with DuckDB(threads=1) as engine:
        engine.register("t", lake, {"n": N})
        engine.register("s", [written(tmp_path / "1.parquet", n=1), written(tmp_path / "2.parquet", n=1)], {"n": N})
        lake.rename(tmp_path / "moved")
        (tmp_path / "2.parquet").unlink()
        for table in ("t", "s"):
            with pytest.raises(QueryFailed):
                unsealed(engine.read(Reading(table=table, statistics=ROWS.statistics)))


# ---------------------------------------------------------------------------------------------- what a steward is shown


@pytest.mark.ci
@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.zst", "ndjson", "jsonl.gz", "feather"])
def test_a_steward_looks_into_a_folder_as_into_a_file(tmp_path: Path, ending: str) -> None:
    rows = [
        {"patient": place, "ward": "AB"[place % 2], "age": 20 + place, "charge": 0.5, "kind": "x"} for place in range(9)
    ]
    lake = scattered(rows, tmp_path / "lake", ending, 2)
    for source, count in {lake: 9, lake / f"part0.{ending}": 5}.items():
        found = check_file(source)
        assert found.types == {"patient": "int", "ward": "text", "age": "int", "charge": "float", "kind": "text"}
        assert found.rows == count
    with pytest.raises(InvalidParameter):
        mend_file(lake, tmp_path / "copy.csv")


def test_partitions_and_names_in_json_are_shown_to_a_steward(tmp_path: Path) -> None:
    written(tmp_path / "day=2024-01-01" / "[a].parquet", n=1)
    (tmp_path / "day=2024-01-02").mkdir()
    (tmp_path / "day=2024-01-02" / "b.ndjson").write_text('{"n": 2}\n{"s": "x"}\nnone\n')
    assert check_file(tmp_path).types == {"n": "int", "day": "date", "s": "text"}


# --------------------------------------------------------------------------------------------------- files without rows


@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "ndjson", "jsonl.gz", "feather"])
def test_files_without_rows_do_not_shift_partitions(tmp_path: Path, ending: str) -> None:
    """A row knows its partition by the place of its file among all files of a scan, those without rows included."""
    for ward in "ABCDE":
        rows = [{"patient": 1, "age": ord(ward), "charge": 1.0, "kind": ward}] if ward in "BD" else []
        (tmp_path / f"ward={ward}").mkdir()
        WRITERS[ending](rows, tmp_path / f"ward={ward}" / "part", ["patient", "age", "charge", "kind"])
    columns = {"ward": T, "kind": T, "age": N}
    with DuckDB(threads=1) as engine, query_view():
        engine.register("t", tmp_path, columns)
        for name in ("ward", "kind"):
            assert unsealed(engine.read(by(name))) == {("B",): (1,), ("D",): (1,)}
        for where in (call("equal", B, col("ward", T), lit("D", T)), call("equal", B, col("age", N), lit(ord("D"), N))):
            asked = Reading(table="t", where=where, keys=(col("ward", T),), statistics=ROWS.statistics)
            assert unsealed(engine.read(asked)) == {("D",): (1,)}


# ------------------------------------------------------------------------------------------- what footers say of ids

OTHERS = [(pa.array([None, None], pa.int64()), 3), (pa.array(["x", "7"]), 4), (pa.array([1.5, None]), 4)]


@pytest.mark.parametrize(("other", "people"), OTHERS)
def test_footers_that_say_nothing_of_ids_change_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Any, people: int
) -> None:
    """Files with ids that are missing, texts or no whole numbers, among others; the footer of one says nothing."""
    monkeypatch.setattr(module, "_FEW", 0)  # small tables are measured, too
    numbers, measured = pa.array([3, 3, 4, 1 << 62]), list[tuple[int, int, int]]()
    honest = module._size

    def size(*told: Any) -> tuple[int, int, int]:
        measured.append(honest(*told))
        return measured[-1]

    monkeypatch.setattr(module, "_size", size)
    pq.write_table(pa.table({"u": numbers, "w": ["a"] * 4}), tmp_path / "1.parquet")
    limits, statistics = bounding(1, 1, unit="u"), (Statistic(kind="rows"),)
    asked = Reading(table="t", keys=(col("w", T),), bounding=limits, statistics=statistics)
    with DuckDB(threads=1) as engine:
        engine.register("t", tmp_path, {"u": N, "w": T})
        assert unsealed(engine.read(asked)) == {("a",): (3,)}
        pq.write_table(pa.table({"u": other, "w": ["a"] * 2}), tmp_path / "2.parquet")
        assert unsealed(engine.read(asked)) == {("a",): (people,)}
        pq.write_table(pa.table({"u": numbers, "w": ["a"] * 4}), tmp_path / "1.parquet", write_statistics=False)
        assert unsealed(engine.read(asked)) == {("a",): (people,)}
    assert (measured[0], measured[-1]) == ((3, 1 << 62, 4), module._UNKNOWN)
