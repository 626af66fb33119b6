"""The same data do not get two budgets: by path, by file, by object, by declared identity; across processes too."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.engines.duckdb.sources import FileTable
from discreet.errors import InvalidParameter
from discreet.ledger import AnchoredLedger, Ledger, stewardship
from discreet.ledger.stewardship import DataOrigin
from discreet.privacy import Budget

BUDGET = Budget(epsilon=1)
TYPES = {"who": "text", "age": "int"}
CSV = "who,age\np1,40\np2,50\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_text(CSV)
    return path


def curator_of(folder: Path) -> Curator:
    return Curator(folder / "book.ledger", engine=DuckDB(threads=1))


def protect(curator: Curator, source: Any, name: str, **more: Any) -> None:
    declared: dict[str, Any] = {"types": TYPES, "budget": BUDGET, **more}
    curator.protect(source, name=name, unit="who", **{"max_rows": 1, **declared})


def refused(curator: Curator, source: Any, field: str = "source", **more: Any) -> InvalidParameter:
    """The refusal of a second name; nothing was opened or written."""
    accounts, entries = curator.accounts(), len(curator.entries())
    with pytest.raises(InvalidParameter) as caught:
        protect(curator, source, "again", **more)
    assert caught.value.name == field
    assert (curator.accounts(), len(curator.entries())) == (accounts, entries)
    return caught.value


def the_path(file: Path) -> Any:
    return str(file)


def relative(file: Path) -> Any:
    return os.path.relpath(file)


def roundabout(file: Path) -> Any:
    return file.parent / "." / ".." / file.parent.name / file.name


def symbolic_link(file: Path) -> Any:
    (file.parent / "other.csv").symlink_to(file)
    return file.parent / "other.csv"


def linked_folder(file: Path) -> Any:
    (file.parent / "folder").symlink_to(file.parent)
    return file.parent / "folder" / file.name


def hard_link(file: Path) -> Any:
    (file.parent / "other.csv").hardlink_to(file)
    return file.parent / "other.csv"


def moved(file: Path) -> Any:
    return file.rename(file.parent / "other.csv")


def listed(file: Path) -> Any:
    (file.parent / "more.csv").write_text(CSV)
    return [file.parent / "more.csv", file]


WAYS = [the_path, relative, roundabout, symbolic_link, linked_folder, hard_link, moved, listed]


@pytest.mark.parametrize("restarted", [False, True], ids=["same process", "restarted"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_file_has_one_budget(file: Path, way: Callable[[Path], Any], restarted: bool) -> None:
    first = curator_of(file.parent)
    protect(first, file, "visits")
    if restarted:
        first.close()
    curator = curator_of(file.parent) if restarted else first
    source = way(file)
    error = refused(curator, source)
    assert "table 'visits'" in error.condition
    assert "account='visits'" in error.hint
    assert "identity=" in error.hint
    protect(curator, source, "again", account="visits")
    assert curator.tables() == {"visits": "visits", "again": "visits"}
    curator.verify()


def test_a_table_of_a_database_has_one_budget(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as database:
        database.execute("CREATE TABLE visits AS SELECT 'p1' AS who, 40 AS age")
        database.execute("CREATE TABLE staff AS SELECT 's1' AS who, 50 AS age")
    (tmp_path / "other.duckdb").symlink_to(tmp_path / "clinic.duckdb")
    curator = curator_of(tmp_path)
    protect(curator, FileTable(path=tmp_path / "clinic.duckdb", table="visits"), "visits", types=None)
    refused(curator, FileTable(path=tmp_path / "clinic.duckdb", table="visits"), types=None)
    refused(curator, FileTable(path=tmp_path / "other.duckdb", table="Visits", schema="MAIN"), types=None)
    protect(curator, FileTable(path=tmp_path / "clinic.duckdb", table="staff"), "staff", types=None)


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame({"who": pd.array(["p1"], dtype="string"), "age": [40]}),
    "polars": lambda: pl.DataFrame({"who": ["p1"], "age": [40]}),
    "arrow": lambda: pa.table({"who": ["p1"], "age": [40]}),
    "rows": lambda: [{"who": "p1", "age": 40}],
}


@pytest.mark.parametrize("kind", FRAMES)
def test_an_object_has_one_budget(kind: str) -> None:
    curator = Curator(engine=Memory() if kind == "rows" else DuckDB(threads=1))
    frame = FRAMES[kind]()
    protect(curator, frame, "visits")
    assert "account='visits'" in refused(curator, frame).hint
    protect(curator, frame, "again", account="visits")
    protect(curator, frame, "third", identity="another one")
    for name in ("visits", "again", "third"):  # doing it again changes nothing
        protect(curator, frame, name, account={"again": "visits"}.get(name))
    protect(curator, FRAMES[kind](), "fourth")  # an equal one is not the same one


def test_doing_it_again_changes_nothing(file: Path) -> None:
    curator = curator_of(file.parent)
    protect(curator, file, "visits")
    before = curator.verify()
    protect(curator, str(file), "visits")
    curator.close()
    with curator_of(file.parent) as again:
        protect(again, file, "visits")
        assert again.verify() == before


def test_other_files_of_a_table_are_remembered(file: Path) -> None:
    """The same name from another place, and a file that was written anew, are the table's as well."""
    curator = curator_of(file.parent)
    protect(curator, file, "visits")
    other = file.parent / "other.csv"
    other.write_text(CSV)
    protect(curator, other, "visits")
    new = file.parent / "new.csv"
    new.write_text(CSV)
    new.replace(other)
    protect(curator, other, "visits")
    for path in (file, other):
        refused(curator, path)
    refused(curator, other.rename(file.parent / "third.csv"))
    curator.verify()


def test_a_table_does_not_take_the_place_of_another(file: Path) -> None:
    curator = curator_of(file.parent)
    protect(curator, file, "visits")
    other = file.parent / "other.csv"
    other.write_text(CSV)
    protect(curator, other, "staff")
    with pytest.raises(InvalidParameter) as caught:
        protect(curator, other, "visits")
    assert caught.value.name == "source"
    other.replace(file)  # the other's file under the first one's path
    with pytest.raises(InvalidParameter) as caught:
        protect(curator, file, "visits")
    assert caught.value.name == "source"


def test_a_declared_identity_says_what_data_are(file: Path) -> None:
    curator = curator_of(file.parent)
    protect(curator, file, "visits", identity="2025")
    copy = file.parent / "copy.csv"
    copy.write_text(CSV)
    assert "account='visits'" in refused(curator, copy, "identity", identity="2025").hint
    assert "account='visits'" in refused(curator, file).hint
    protect(curator, copy, "more", identity="2025", account="visits")
    protect(curator, file, "next", identity="2026")  # the steward says that other people are in it now
    before = curator.verify()
    curator.close()
    with curator_of(file.parent) as again:
        protect(again, file, "visits")
        protect(again, file, "next", identity="2026")
        assert again.verify() == before
        with pytest.raises(InvalidParameter) as caught:
            protect(again, file, "visits", identity="2027")
        assert caught.value.name == "identity"
        file.write_text(CSV + "p3,60\n")
        file.rename(file.parent / "kept.csv")
        file.write_text(CSV)  # another file in the place that both tables are read from
        protect(again, file, "visits")
        protect(again, file, "next")
        again.verify()


@pytest.mark.parametrize("bad", ["", "a\x1b[31m", " x", "x" * 201])
def test_an_identity_is_a_name(file: Path, bad: str) -> None:
    with curator_of(file.parent) as curator:
        refused(curator, file, "identity", identity=bad)


def ledger_gone(path: Path) -> None:
    """Removes a ledger with its anchor, or it would be missed."""
    with AnchoredLedger(str(path), read_only=True) as ledger:
        Path(ledger.anchor_file).unlink()
    path.unlink()


def test_ledgers_without_files_are_read_and_learn_them_once(file: Path) -> None:
    curator = curator_of(file.parent)
    protect(curator, file, "visits")
    declaration = curator._ledger.declaration("visits")
    curator.close()
    ledger_gone(file.parent / "book.ledger")
    with Ledger(str(file.parent / "book.ledger")) as old:  # as earlier versions wrote it
        old.stewardship.open_account("visits", unit=_unit(), budget=BUDGET)
        old.stewardship.attach("visits", account="visits", declaration=declaration or "")
        entries = old.verify().sequence
    with curator_of(file.parent) as curator:
        protect(curator, file, "visits")
        protect(curator, file, "visits")
        assert curator.verify().sequence == entries + 2  # with the entry about its anchor
        refused(curator, file)


def _unit() -> Any:
    with Curator(engine=Memory()) as curator:
        protect(curator, [], "visits")
        return curator.account("visits").unit


def test_the_ledger_itself_refuses(file: Path) -> None:
    """Inside the transaction that attaches: two processes cannot both be the first."""
    curator = curator_of(file.parent)
    protect(curator, file, "visits")
    state = file.stat()
    origin = DataOrigin({"/elsewhere.csv": f"{state.st_dev}:{state.st_ino}"}, "")
    with AnchoredLedger(str(file.parent / "book.ledger")) as ledger:
        ledger.stewardship.open_account("staff", unit=curator.account("visits").unit, budget=BUDGET)
        with pytest.raises(InvalidParameter):
            ledger.stewardship.attach("staff", account="staff", declaration="{}", origin=origin)


# --------------------------------------------------------------------------------------------------------------- public


@pytest.mark.parametrize("way", [the_path, symbolic_link, hard_link, moved], ids=lambda way: way.__name__)
def test_what_is_protected_is_not_published(file: Path, way: Callable[[Path], Any]) -> None:
    curator = curator_of(file.parent)
    protect(curator, file, "visits")
    curator.close()
    with curator_of(file.parent) as again, pytest.raises(InvalidParameter) as caught:
        again.public(way(file), name="people", types=TYPES)
    assert caught.value.name == "source"
    assert "'visits'" in caught.value.condition


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", [the_path, symbolic_link, hard_link], ids=lambda way: way.__name__)
def test_what_is_public_is_not_protected(file: Path, way: Callable[[Path], Any]) -> None:
    curator = curator_of(file.parent)
    curator.public(file, name="people", types=TYPES)
    curator.public(file, name="people", types=TYPES)
    assert "'people'" in refused(curator, way(file)).condition
    assert "'people'" in refused(curator, way(file) if way is the_path else file, identity="others").condition


def test_an_object_is_public_or_protected() -> None:
    frame, other = FRAMES["arrow"](), FRAMES["arrow"]()
    curator = Curator(engine=DuckDB(threads=1))
    protect(curator, frame, "visits")
    with pytest.raises(InvalidParameter):
        curator.public(frame, name="people")
    curator.public(other, name="people")
    refused(curator, other)


# ------------------------------------------------------------------------------------------------------- configuration


def test_two_tables_of_a_configuration_on_one_file(file: Path) -> None:
    def written(second: str) -> Path:
        path = file.parent / "discreet.toml"
        tables = [
            f'[tables.{name}]\nsource = "visits.csv"\nunit = "who"\nmax_rows = 1\n{more}\n'
            'types = { who = "text", age = "int" }\n'
            for name, more in (("visits", ""), ("again", second))
        ]
        accounts = ["visits"] if "account" in second else ["visits", "again"]
        path.write_text("".join([*tables, *(f'[budgets.{name}]\nepsilon = "1"\n' for name in accounts)]))
        return path

    with pytest.raises(InvalidParameter) as caught:
        Curator.from_config(written(""))
    assert caught.value.name == "tables.again.source"
    for second in ('account = "visits"', 'identity = "others"'):
        ledger_gone(file.parent / "discreet.ledger")
        Curator.from_config(written(second)).close()
        Curator.from_config(written(second)).close()


# ------------------------------------------------------------------------------------------------------------- mistakes


def by_path_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DataOrigin, "is_origin_of", lambda self, told: bool(self.files.keys() & told.get("files", {}).keys()))


def by_file_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        DataOrigin,
        "is_origin_of",
        lambda self, told: bool(set(self.files.values()) & set(told.get("files", {}).values())),
    )


def nothing_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stewardship, "tables", lambda _: {})
    patch.setattr("discreet.ledger.ledger.tables", lambda _: {})
    patch.setattr("discreet.ledger.stewardship.tables", lambda _: {})


def rewritten(file: Path) -> Any:
    (file.parent / "new.csv").write_text(CSV)
    return (file.parent / "new.csv").replace(file)


@pytest.mark.parametrize(
    ("mutate", "way"), [(by_path_alone, hard_link), (by_file_alone, rewritten), (nothing_compared, the_path)]
)
def test_mistakes_are_noticed(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
    way: Callable[[Path], Any],
) -> None:
    curator = curator_of(file.parent)
    protect(curator, file, "visits")
    source = way(file)
    refused(curator, source)
    mutate(monkeypatch)
    protect(curator, source, "again")  # a second budget for the same people
