"""Many files as one table: the same answers as one file, nothing seen of the files, one list for each query."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.engines import DuckDB
from discreet.engines.duckdb.composed import file_parts
from discreet.engines.sources import query_view
from discreet.engines.sources.file_set import FileSet, Listing
from discreet.errors import InsufficientBudget, InvalidParameter, QueryFailed
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits
from discreet.privacy import Budget
from tests.curator.clinic import DECLARED, Row, visits
from tests.engines.lakes import WRITERS, parquet, partitioned, scattered

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, COUNT(*) AS n, AVG(charge) AS c FROM visits GROUP BY ward",
    "SELECT SUM(age) AS s, COUNT(DISTINCT kind) AS k FROM visits WHERE kind <> 'other'",
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind",
)
ROWS = [{**row, "charge": None if row["charge"] != row["charge"] else row["charge"]} for row in visits(5, patients=60)]


def clinic(source: Any, ledger: str | Path = ":memory:", **declared: Any) -> Curator:
    curator = Curator.for_tests(str(ledger), engine=DuckDB(threads=1), bits=SeededBits(7))
    curator._measure_with(curator._engine, Releaser(SeededBits(7)), salt="the same rows of all")
    options = {**DECLARED, "max_groups": 2, "max_rows": 2, **declared}
    curator.protect(source, name="visits", unit="patient", budget=Budget(epsilon=100, delta=1e-6), **options)
    return curator


def told(source: Any, questions: Sequence[str] = QUESTIONS, **declared: Any) -> list[Any]:
    """All that is seen of the answers: their values, intervals, notes and costs."""
    with clinic(source, **declared) as curator:
        answers = [curator.ask(sql, epsilon=2) for sql in questions]
        return [(list(answer), answer.notes, str(answer.cost), str(answer)) for answer in answers]


@pytest.fixture(scope="module")
def of_one_file(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    path = tmp_path_factory.mktemp("one") / "visits.parquet"
    parquet(ROWS, path)
    return told(path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", WRITERS)
def test_answers_are_those_of_one_file(tmp_path: Path, kind: str, of_one_file: list[Any]) -> None:
    assert told(scattered(ROWS, tmp_path / "lake", kind)) == of_one_file


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", WRITERS)
def test_answers_of_partitions_are_those_of_one_file(tmp_path: Path, kind: str, of_one_file: list[Any]) -> None:
    assert told(partitioned(ROWS, tmp_path / "lake", kind)) == of_one_file


@pytest.mark.parametrize("way", ["pattern", "list", "pattern of partitions"])
def test_answers_are_the_same_however_files_are_named(tmp_path: Path, way: str, of_one_file: list[Any]) -> None:
    write = partitioned if way == "pattern of partitions" else scattered
    lake = write(ROWS, tmp_path / "lake", "parquet")
    named = {"pattern": f"{lake}/*", "list": [*lake.iterdir()], "pattern of partitions": f"{lake}/ward=*/*"}
    assert told(named[way]) == of_one_file


@pytest.mark.ci
def test_files_of_all_formats_together_are_one_table(tmp_path: Path, of_one_file: list[Any]) -> None:
    for place, kind in enumerate(WRITERS):
        scattered(ROWS[place :: len(WRITERS)], tmp_path / "lake" / kind, kind, 1)
    (tmp_path / "lake" / "_SUCCESS").touch()
    (tmp_path / "lake" / ".part.csv.crc").touch()
    assert told(tmp_path / "lake") == of_one_file


def test_types_of_parquet_and_arrow_are_carried(tmp_path: Path, of_one_file: list[Any]) -> None:
    assert told(scattered(ROWS, tmp_path / "lake", "parquet"), types=None) == of_one_file


def test_partitions_are_declared(tmp_path: Path, of_one_file: list[Any]) -> None:
    with pytest.raises(InvalidParameter, match='"ward": "text"'):  # names of folders have no type
        told(partitioned(ROWS, tmp_path / "parts", "parquet"), types=None)
    assert told(tmp_path / "parts", types={"ward": "text"}) == of_one_file


# ----------------------------------------------------------------------------------------------------------- neighbours


def _lake(folder: Path, rows: list[Row]) -> Path:
    """Each person has a file; whoever has none is in the ward of a folder that would not be there otherwise."""
    folder.mkdir(parents=True)
    for person in {row["patient"] for row in rows}:
        parquet([row for row in rows if row["patient"] == person], folder / f"{person}")
    return folder


LAYOUTS: dict[str, Callable[[Path, list[Row]], Path]] = {
    "a file each": _lake,
    "row groups": lambda folder, rows: scattered(rows, folder, "parquet", 1),
    "partitions": lambda folder, rows: partitioned(rows, folder, "parquet"),
    "texts in partitions": lambda folder, rows: partitioned(rows, folder, "csv"),
    "lines of JSON": lambda folder, rows: scattered(rows, folder, "ndjson", 2),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_neighbours_differ_in_nothing_but_what_noise_covers(tmp_path: Path, layout: str) -> None:
    made = iter(range(10**6))

    def curator_of(rows: list[Row]) -> Curator:
        return clinic(LAYOUTS[layout](tmp_path / str(next(made)), rows))

    rows = [dict(row) for row in ROWS if row["patient"] < 4]
    found = audit.query(curator_of, [QUESTIONS[3]], rows, neighbours=1, delta=1e-7)
    assert found.passed, found.summary()


def test_no_file_is_an_empty_table(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    parquet([], tmp_path / "none.parquet")
    assert told(empty) == told(tmp_path / "none.parquet")
    assert clinic(f"{empty}/**/*.parquet").ask(QUESTIONS[0], epsilon=1)
    with pytest.raises(InvalidParameter, match="Declare them"):
        told(empty, types=None)


def test_a_file_that_cannot_be_read_is_a_failure_that_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    lake, texts = scattered(ROWS, tmp_path / "CANARY", "parquet"), set()
    with clinic(lake) as curator:
        for name, content in {"x.parquet": b"PAR1CANARY", "x.arrow": b"ARROW1CANARY", "x.csv.gz": b"CANARY"}.items():
            (lake / name).write_bytes(content)
            with pytest.raises(QueryFailed) as caught:
                curator.ask(QUESTIONS[0], epsilon=1)
            texts.add(f"{caught.value} {caught.value.__cause__} {caught.value.__context__}")
            (lake / name).unlink()
            curator.unlock("visits", note="mended")
        assert curator.ask(QUESTIONS[0], epsilon=1)
        assert len(texts) == 1
        assert "CANARY" not in "".join(texts) + caplog.text + "".join(capfd.readouterr())
        assert "CANARY" not in "".join(
            str(entry.content) for entry in curator.history("visits") if entry.kind != "attach"
        )


# ------------------------------------------------------------------------------------------------- one list for a query


def _grows(monkeypatch: pytest.MonkeyPatch, lake: Path) -> list[int]:
    """Lets a folder gain a file after each time that it is listed; returns how many files were seen each time."""
    listed, seen = FileSet.list_files, list[int]()

    def listed_and_grown(files: FileSet) -> Listing:
        found = listed(files)
        seen.append(len(found.files))
        parquet(ROWS, lake / f"more{len(seen)}")
        return found

    monkeypatch.setattr(FileSet, "list_files", listed_and_grown)
    return seen


STAGES = "SELECT kind, AVG(charge) AS c FROM visits GROUP BY kind"


def _stages_are_about_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = scattered(ROWS, tmp_path / "lake", "parquet")
    with clinic(lake, bounds={}) as curator:
        seen = _grows(monkeypatch, lake)
        curator.ask(STAGES, epsilon=20)  # finds bounds first
        assert seen == [3]
        curator.ask(QUESTIONS[0], epsilon=1)
        assert seen == [3, 4]


def test_a_query_lists_once_after_its_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stages_are_about_the_same_rows(tmp_path, monkeypatch)


def test_a_view_for_every_stage_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_view, "_VIEW", _Forgetful())
    with pytest.raises(AssertionError):
        _stages_are_about_the_same_rows(tmp_path, monkeypatch)


class _Forgetful:
    """A mistake: no stage finds the view of another."""

    def get(self) -> None:
        return None

    def set(self, view: object) -> None:
        del view

    def reset(self, token: object) -> None:
        del token


def test_nothing_is_listed_before_the_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = scattered(ROWS, tmp_path / "lake", "parquet")
    with clinic(lake) as curator:
        seen = _grows(monkeypatch, lake)
        curator.explain(QUESTIONS[1], epsilon=1)
        with pytest.raises(InsufficientBudget):
            curator.ask(QUESTIONS[1], epsilon=1000)
        assert seen == []
        answer = curator.ask(QUESTIONS[1], epsilon=1)
        assert list(curator.ask(QUESTIONS[1], epsilon=1)) == list(answer)  # a replay
        assert seen == [3]


# -------------------------------------------------------------------------------------------------- types of partitions

NUMBERS = ("01", "2", "+3", "x")


def _partitions_are_read_as_declared(folder: Path, kind: str, names: Sequence[str]) -> None:
    """Compares partitions with a file in which the same is a column of texts."""
    rows = [{**row, "ward": names[row["patient"] % len(names)]} for row in ROWS]
    keys = [*names] if kind == "text" else [1, 2, 3]
    declared: dict[str, Any] = {"types": {**DECLARED["types"], "ward": kind}, "keys": {"ward": keys}}
    parquet(rows, folder / "one")
    lake = partitioned(rows, folder / "lake", "parquet")
    assert told(lake, QUESTIONS[1:2], **declared) == told(folder / "one.parquet", QUESTIONS[1:2], **declared)


@pytest.mark.parametrize("kind", ["int", "text"])
@pytest.mark.parametrize("count", [3, 4])
def test_partitions_are_read_as_declared(tmp_path: Path, kind: str, count: int) -> None:
    """The engine would guess BIGINT of three of these names, and text of all of them together."""
    _partitions_are_read_as_declared(tmp_path, kind, NUMBERS[:count])


def test_an_engine_that_guesses_the_types_of_partitions_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = file_parts._partition

    def guessed(files: Any, name: str) -> str:
        values = [file.partitions.get(name) for file in files]
        whole = all(str(value).lstrip("+").isdecimal() for value in values)
        text = written(files, name)
        return f"CAST(TRY_CAST({text} AS BIGINT) AS VARCHAR)" if whole else text

    monkeypatch.setattr(file_parts, "_partition", guessed)
    with pytest.raises(AssertionError):
        _partitions_are_read_as_declared(tmp_path, "text", NUMBERS[:3])


# -------------------------------------------------------------------------------------------------------------- protect


def test_columns_stay_as_they_were_declared(tmp_path: Path) -> None:
    lake, ledger = scattered(ROWS, tmp_path / "lake", "parquet"), tmp_path / "book.ledger"
    with clinic(lake, ledger, types=None) as curator:
        before = curator.verify()
    pq.write_table(pa.table({"patient": ["x"], "more": [1], "age": ["old"], "ward": [3]}), lake / "other.parquet")
    with clinic(lake, ledger, types=None) as curator:
        assert curator.verify() == before
        assert curator.ask(QUESTIONS[1], epsilon=1)


def test_the_same_files_have_one_budget(tmp_path: Path) -> None:
    lake = scattered(ROWS, tmp_path / "lake", "parquet")
    with clinic(lake) as curator:
        (tmp_path / "link.parquet").hardlink_to(lake / "part1.parquet")
        links = [tmp_path / "link.parquet", lake / "part1.parquet", [*lake.iterdir()]]
        for again in (lake, f"{lake}/*.parquet", tmp_path, *links):
            with pytest.raises(InvalidParameter, match="has a budget"):
                curator.protect(again, name="again", unit="patient", budget=Budget(epsilon=1), max_rows=1, max_groups=1)
    with clinic(tmp_path / "link.parquet") as curator:
        for again in (lake, f"{lake}/*.parquet", [*lake.iterdir()]):
            with pytest.raises(InvalidParameter, match="has a budget"):
                curator.protect(again, name="again", unit="patient", budget=Budget(epsilon=1), max_rows=1, max_groups=1)
