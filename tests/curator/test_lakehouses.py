"""Tables of Delta and Iceberg under a budget: a snapshot for each version, answers of one file, no file is seen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.curator.config.declared_changes import declared_changes
from discreet.curator.config.toml_file import load
from discreet.engines import DuckDB
from discreet.engines.lakes import lake_table
from discreet.errors import DeclarationChanged, InvalidParameter, NotPermitted, QueryFailed, UnsupportedQuery
from discreet.ledger import Caller
from discreet.privacy import Budget
from discreet.requests.version_requests import Advance, advance
from tests.curator.clinic import DECLARED, Row
from tests.curator.test_many_files import QUESTIONS, ROWS, clinic, told
from tests.engines.lakehouses import address_of, catalog, delta, iceberg, vacuum
from tests.engines.lakes import parquet, table

COUNT = QUESTIONS[0]


@pytest.fixture(scope="module")
def of_one_file(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    path = tmp_path_factory.mktemp("one") / "visits.parquet"
    parquet(ROWS, path)
    return told(path)


@pytest.fixture(autouse=True)
def other_process() -> None:
    """Nothing is known of snapshots that another test had in the same place."""
    lake_table._read_snapshot.cache_clear()


# -------------------------------------------------------------------------------------------------------------- answers


def by_person(rows: Sequence[Row]) -> list[pa.Table]:
    """Rows as commits of half of the people each."""
    return [table([row for row in rows if row["patient"] % 2 == half]) for half in (0, 1)]


@pytest.mark.parametrize("by", [(), ("ward",), ("kind", "ward")], ids=str)
def test_answers_of_delta_are_those_of_one_file(tmp_path: Path, by: Sequence[str], of_one_file: list[Any]) -> None:
    lake = delta(tmp_path / "lake", *by_person(ROWS), partition_by=by)
    assert told(lake, types=None) == of_one_file


@pytest.mark.ci
def test_answers_of_iceberg_are_those_of_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_one_file: list[Any]
) -> None:
    with catalog(tmp_path, monkeypatch) as found:
        written = iceberg(found, *by_person(ROWS))
        assert told(address_of(), types=None) == of_one_file
        assert told(written.metadata_location.removeprefix("file://"), types=None) == of_one_file


# ------------------------------------------------------------------------------------------------------------ snapshots


def _commit(lake: Path) -> None:
    delta(lake, table(ROWS[:7]))


def _compact(lake: Path) -> None:
    deltalake.DeltaTable(lake).optimize.compact()
    vacuum(lake)


def _compact_only(lake: Path) -> None:
    deltalake.DeltaTable(lake).optimize.compact()


def _erase(lake: Path) -> None:
    deltalake.DeltaTable(lake).delete("patient = 3")


def _evolve(lake: Path) -> None:
    more = table(ROWS[:1]).append_column("more", pa.array(["x"]))
    delta(lake, more, schema_mode="merge")


@pytest.mark.parametrize("change", [_commit, _compact_only, _erase, _evolve])
def test_no_change_of_the_table_turns_a_replay_into_a_question(tmp_path: Path, change: Callable[[Path], None]) -> None:
    lake, ledger = delta(tmp_path / "lake", *by_person(ROWS)), tmp_path / "book.ledger"
    with clinic(lake, ledger, types=None) as curator:
        before, spent = list(curator.ask(QUESTIONS[1], epsilon=1)), curator.budget("visits").spent
        change(lake)
        assert list(curator.ask(QUESTIONS[1], epsilon=1)) == before
        entries = len(curator.entries())
    lake_table._read_snapshot.cache_clear()
    with clinic(lake, ledger, types=None) as curator:
        assert len(curator.entries()) == entries
        assert list(curator.ask(QUESTIONS[1], epsilon=1)) == before
        assert curator.budget("visits").spent == spent


def test_a_new_version_is_the_newest_snapshot_and_each_version_keeps_its_own(tmp_path: Path) -> None:
    ledger, lake = tmp_path / "book.ledger", delta(tmp_path / "lake", table(ROWS))
    rows = "SELECT COUNT(*) AS n FROM visits"

    def count(version: str) -> int:
        with clinic(lake, ledger, types=None, version=version, max_groups=1, max_rows=1000) as curator:
            return int(round(curator.ask(rows, epsilon=20)[0]["n"], -2))

    few = count("2026-11")
    delta(lake, *[table(ROWS)] * 9)
    lake_table._read_snapshot.cache_clear()
    many = count("2026-12")
    assert many > 5 * few
    lake_table._read_snapshot.cache_clear()
    with clinic(lake, ledger, types=None, version="2026-11", max_groups=1, max_rows=1000) as curator:
        again = "SELECT COUNT(*) AS n FROM visits WHERE age IS NULL OR age >= 0"
        assert round(curator.ask(again, epsilon=20)[0]["n"], -2) == few


def test_the_ledger_decides_and_not_the_order_of_curators(tmp_path: Path) -> None:
    """A second curator that opens after a commit reads what the first one does."""
    lake, ledger = delta(tmp_path / "lake", table(ROWS)), tmp_path / "book.ledger"
    with clinic(lake, ledger, types=None) as first:
        delta(lake, table(ROWS))
        with clinic(lake, ledger, types=None) as second:
            sources = [curator._catalog.source("visits") for curator in (first, second)]
            assert sources[0] == sources[1]
            assert sources[0].snapshot.endswith(":0")


def test_a_catalog_that_reads_the_newest_snapshot_instead_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "discreet.curator.catalog.catalog.pin_snapshot", lambda source, *_: lake_table.newest_snapshot(source)
    )
    with pytest.raises(AssertionError):
        test_the_ledger_decides_and_not_the_order_of_curators(tmp_path)


def test_declaring_a_table_anew_keeps_its_snapshot(tmp_path: Path) -> None:
    lake, ledger = delta(tmp_path / "lake", table(ROWS)), tmp_path / "book.ledger"
    with clinic(lake, ledger, types=None) as curator:
        delta(lake, table(ROWS))
        options = {**DECLARED, "types": None, "max_groups": 2, "max_rows": 3}
        with pytest.raises(DeclarationChanged) as caught:
            curator.protect(lake, name="visits", unit="patient", **options)
        assert "snapshot" not in str(caught.value)
        curator.protect(lake, name="visits", unit="patient", change=True, **options)
        assert curator._catalog.source("visits").snapshot.endswith(":0")


def test_an_advance_reads_the_snapshot_that_was_newest_then_in_all_curators(tmp_path: Path) -> None:
    lake, ledger = delta(tmp_path / "lake", table(ROWS)), tmp_path / "book.ledger"
    with clinic(lake, ledger, types=None, version="1") as first:
        assert first.ask(COUNT, epsilon=1)
        delta(lake, table(ROWS))
        first.advance("visits", version="2")
        delta(lake, table(ROWS))
        spent = first.budget("visits").spent
        assert first.ask(COUNT, epsilon=1)
        assert first.budget("visits").spent != spent
        with clinic(lake, ledger, types=None, version="1") as second:
            assert second.ask(COUNT, epsilon=1)
            for curator in (first, second):
                assert curator._catalog.source("visits").snapshot.endswith(":1")
        assert first.verify()


def test_only_a_steward_learns_whether_the_newest_snapshot_can_be_read(tmp_path: Path) -> None:
    lake, ledger = delta(tmp_path / "CANARY", table(ROWS)), tmp_path / "book.ledger"
    with clinic(lake, ledger, types=None, version="1") as curator:
        for file in lake.glob("*.parquet"):
            file.unlink()
        with pytest.raises(InvalidParameter, match="all the files"):
            curator.advance("visits", version="2")
        request = Advance(table="visits", version="2")
        with pytest.raises(NotPermitted) as caught:
            advance(curator._ledger, request, Caller(analyst="ana"))
        assert "CANARY" not in str(caught.value)
        assert {entry.kind for entry in curator.entries()} <= {"open", "attach"}


# ------------------------------------------------------------------------------------------------------------- refusals


def test_a_snapshot_that_is_gone_is_refused_before_the_charge(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    lake, ledger = delta(tmp_path / "CANARY", *by_person(ROWS)), tmp_path / "book.ledger"
    clinic(lake, ledger, types=None).close()
    _compact(lake)
    lake_table._read_snapshot.cache_clear()
    texts = set()
    with clinic(lake, ledger, types=None) as curator:
        spent = curator.budget("visits").spent
        for sql in QUESTIONS:
            with pytest.raises(UnsupportedQuery, match="no longer there") as caught:
                curator.ask(sql, epsilon=1)
            texts.add(f"{caught.value} {caught.value.__cause__} {caught.value.__context__}")
        assert curator.budget("visits").spent == spent
        assert len(texts) == 1
        assert "CANARY" not in "".join(texts) + caplog.text + "".join(capfd.readouterr())
        assert "another version" in "".join(texts)
    with clinic(lake, ledger, types=None, version="2") as curator:  # the remedy
        assert curator.ask(COUNT, epsilon=1)


def test_an_engine_that_does_not_look_for_the_files_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lake_table.LakeTable, "is_gone", lambda _: False)
    with pytest.raises(QueryFailed):
        test_a_snapshot_that_is_gone_is_refused_before_the_charge(tmp_path, caplog, capfd)


def test_a_log_that_is_gone_is_refused_before_the_charge(tmp_path: Path) -> None:
    lake, ledger = delta(tmp_path / "lake", table(ROWS), table(ROWS)), tmp_path / "book.ledger"
    clinic(lake, ledger, types=None).close()
    delta(lake, table(ROWS))
    newest = deltalake.DeltaTable(lake)
    newest.create_checkpoint()
    for entry in (lake / "_delta_log").glob("*.json"):
        entry.unlink()
    lake_table._read_snapshot.cache_clear()
    with clinic(lake, ledger, types=None) as curator, pytest.raises(UnsupportedQuery, match="no longer there"):
        curator.ask(COUNT, epsilon=1)
    with clinic(lake, ledger, types=None, version="2") as curator:
        assert curator.ask(COUNT, epsilon=1)


def test_a_file_that_is_damaged_is_a_failure_that_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    lake = delta(tmp_path / "CANARY", *by_person(ROWS))
    with clinic(lake, types=None) as curator:
        spent = curator.budget("visits").spent
        next(lake.glob("*.parquet")).write_bytes(b"PAR1CANARY")
        with pytest.raises(QueryFailed) as caught:
            curator.ask(COUNT, epsilon=1)
        texts = f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"
        assert "CANARY" not in texts + caplog.text + "".join(capfd.readouterr())
        assert curator.budget("visits").spent != spent


def test_the_files_of_a_lake_have_one_budget(tmp_path: Path) -> None:
    lake = delta(tmp_path / "lake", *by_person(ROWS))
    files = sorted(map(str, lake.glob("*.parquet")))
    again: dict[str, Any] = {"name": "again", "unit": "patient", "budget": Budget(epsilon=1), "max_rows": 1}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link.parquet").hardlink_to(files[0])
    with clinic(lake, types=None) as curator:
        for source in (f"{lake}/", files[0], files, tmp_path, tmp_path / "other"):
            with pytest.raises(InvalidParameter, match="has a budget"):
                curator.protect(source, **again, max_groups=1)
        with pytest.raises(InvalidParameter, match="not to be the protected table"):
            curator.public(lake, name="open")
    with clinic(files[0], types=None) as curator, pytest.raises(InvalidParameter, match="has a budget"):
        curator.protect(lake, **again, max_groups=1)


# ----------------------------------------------------------------------------------------------------------- neighbours


def _a_file_each(folder: Path, rows: list[Row]) -> Path:
    people = sorted({row["patient"] for row in rows})
    return delta(folder, *([table([row for row in rows if row["patient"] == who]) for who in people] or [table([])]))


def _a_snapshot_underneath(folder: Path, rows: list[Row]) -> Path:
    """The last person's rows came by a commit of their own, which another one has merged since."""
    delta(folder, table(rows))
    if rows:
        deltalake.DeltaTable(folder).delete(f"patient = {rows[-1]['patient']}")
        delta(folder, table([row for row in rows if row["patient"] == rows[-1]["patient"]]))
    return folder


LAYOUTS: dict[str, Callable[[Path, list[Row]], Path]] = {
    "a file each": _a_file_each,
    "row groups": lambda folder, rows: delta(
        folder, table(rows), writer_properties=deltalake.WriterProperties(max_row_group_size=3)
    ),
    "partitions": lambda folder, rows: delta(folder, table(rows), partition_by=["ward"]),
    "a snapshot underneath": _a_snapshot_underneath,
}


@pytest.mark.ci
@pytest.mark.parametrize("layout", LAYOUTS)
def test_neighbours_differ_in_nothing_but_what_noise_covers(tmp_path: Path, layout: str) -> None:
    made = iter(range(10**6))

    def curator_of(rows: list[Row]) -> Curator:
        return clinic(LAYOUTS[layout](tmp_path / str(next(made)), rows))

    rows = [dict(row) for row in ROWS if row["patient"] < 3]
    found = audit.query(curator_of, [QUESTIONS[3]], rows, neighbours=1, delta=1e-7)
    assert found.passed, found.summary()


def _seen(folder: Path, layout: str, rows: list[Row], caplog: Any, capfd: Any) -> list[Any]:
    """All that an analyst sees besides values: costs, notes, errors, replays, what is logged and printed."""
    caplog.clear()
    lake = LAYOUTS[layout](folder, rows)
    capfd.readouterr()
    seen: list[Any] = []
    with clinic(lake) as curator:
        for sql in (*QUESTIONS, QUESTIONS[1]):
            answer = curator.ask(sql, epsilon=1)
            seen.append((answer.notes, str(answer.cost), len(answer), str(curator.explain(sql, epsilon=3))))
        kinds = [(entry.kind, entry.account) for entry in curator.entries()]
        delta(lake, table(ROWS[:1]), partition_by=["ward"] if layout == "partitions" else ())
        vacuum(lake)
        seen += [kinds, str(curator.budget("visits")), caplog.text, capfd.readouterr()]
    return seen


@pytest.mark.ci
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_an_analyst_sees_does_not_depend_on_one_person(
    tmp_path: Path, layout: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "discreet")
    fewer = [row for row in ROWS if row["patient"] != 7]
    seen = [_seen(tmp_path / str(n), layout, rows, caplog, capfd) for n, rows in enumerate((ROWS, fewer))]
    assert seen[0] == seen[1]


# -------------------------------------------------------------------------------------------------------------- Iceberg


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with catalog(tmp_path, monkeypatch) as found:
        yield found


def test_a_replay_of_iceberg_survives_commits_and_a_renamed_column(tmp_path: Path, local: Any) -> None:
    written, ledger = iceberg(local, *by_person(ROWS)), tmp_path / "book.ledger"
    with clinic(address_of(), ledger, types=None) as curator:
        before = list(curator.ask(QUESTIONS[1], epsilon=1))
    written.delete("patient = 3")
    written.append(table(ROWS[:4]))
    with written.update_schema() as update:
        update.rename_column("ward", "station")
    lake_table._read_snapshot.cache_clear()
    with clinic(address_of(), ledger, types=None) as curator:
        entries = len(curator.entries())
        assert list(curator.ask(QUESTIONS[1], epsilon=1)) == before
        assert len(curator.entries()) == entries
        assert curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)


def test_an_expired_snapshot_of_iceberg_is_refused_before_the_charge(tmp_path: Path, local: Any) -> None:
    written, ledger = iceberg(local, *by_person(ROWS)), tmp_path / "book.ledger"
    clinic(address_of(), ledger, types=None).close()
    first = written.metadata.snapshots[-1].snapshot_id
    written.append(table(ROWS))
    written.maintenance.expire_snapshots().by_id(first).commit()
    lake_table._read_snapshot.cache_clear()
    with clinic(address_of(), ledger, types=None) as curator:
        spent = curator.budget("visits").spent
        with pytest.raises(UnsupportedQuery, match="no longer there"):
            curator.ask(COUNT, epsilon=1)
        assert curator.budget("visits").spent == spent
    with clinic(address_of(), ledger, types=None, version="2") as curator:
        assert curator.ask(COUNT, epsilon=1)


def test_nothing_of_the_catalog_is_in_the_ledger(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    iceberg(local, *by_person(ROWS))
    monkeypatch.setenv("PYICEBERG_CATALOG__LOCAL__TOKEN", "CANARY")
    with clinic(address_of(), types=None) as curator:
        curator.ask(COUNT, epsilon=1)
        kept = "".join(str(entry.content) for entry in curator.entries())
        assert "CANARY" not in kept
        assert "sqlite:" not in kept
        assert address_of() in kept


# --------------------------------------------------------------------------------------------------------- declarations


@pytest.mark.ci
def test_a_file_of_declarations_names_both(tmp_path: Path, local: Any) -> None:
    delta(tmp_path / "visits_delta", *by_person(ROWS))
    iceberg(local, *by_person(ROWS), name="stays")
    text = f"""
        ledger = "book.ledger"
        budgets.visits.epsilon = 1
        budgets.stays.epsilon = 1
        [tables.visits]
        source = "visits_delta/"
        unit = "patient"
        max_rows = 1
        version = "2026-11"
        [tables.stays]
        source = "{address_of("stays")}"
        unit = "patient"
        max_rows = 1
    """
    config = tmp_path / "discreet.toml"
    config.write_text(text)
    with Curator.from_config(config, engine=DuckDB(threads=1)) as curator:
        for name in ("visits", "stays"):
            assert curator.ask(f"SELECT COUNT(*) AS n FROM {name}", epsilon=0.5)
    delta(tmp_path / "visits_delta", table(ROWS))
    lake_table._read_snapshot.cache_clear()
    assert declared_changes(load(config)) == ()
    config.write_text(text.replace("2026-11", "2026-12"))
    (change,) = declared_changes(load(config))
    assert change.data == ("version: 2026-11 -> 2026-12", "source: its newest snapshot is read from now on")


def test_a_file_of_declarations_opens_though_the_newest_commit_cannot_be_read(tmp_path: Path) -> None:
    lake = delta(tmp_path / "lake", table(ROWS))
    config = tmp_path / "discreet.toml"
    config.write_text(
        'ledger = "book.ledger"\nbudgets.visits.epsilon = 1\n'
        '[tables.visits]\nsource = "lake"\nunit = "patient"\nmax_rows = 1\n'
    )
    Curator.from_config(config, engine=DuckDB(threads=1)).close()
    (lake / "_delta_log" / f"{1:020}.json").write_text(
        '{"protocol": {"minReaderVersion": 9, "minWriterVersion": 9, "readerFeatures": ["new"], '
        '"writerFeatures": ["new"]}}'
    )
    lake_table._read_snapshot.cache_clear()
    assert declared_changes(load(config)) == ()
    with Curator.from_config(config, engine=DuckDB(threads=1)) as curator:
        assert curator.ask(COUNT, epsilon=0.5)
