"""Public tables: known to everybody, charged to nobody, and a source of group keys."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from discreet.curator import Curator
from discreet.curator.catalog import public_tables as module
from discreet.engines import DuckDB, Memory
from discreet.errors import InvalidParameter, QueryFailed, UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.model.readings import Groups, Reading
from discreet.plan.model.types import Type
from discreet.privacy import Budget
from tests.cases import every
from tests.curator.clinic import visits
from tests.curator.spies import BY_WARD, COUNT, OPTIONS, Broken, Spy
from tests.effort import some

WARDS = [{"ward": ward, "floor": floor} for ward, floor in (("C", 1), ("A", 2), (None, 3), ("B", 3), ("A", 1))]
TYPES = {"ward": "text", "floor": "int"}
FROM_WARDS = OPTIONS | {"keys": {"ward": "wards.ward"}}


def opened(ledger: str = ":memory:", engine: Memory | None = None) -> Curator:
    curator = Curator.for_tests(ledger, engine=engine or Memory(), bits=SeededBits(4))
    curator.public(WARDS, name="wards", types=TYPES)
    return curator


def protect(curator: Curator, source: Any = None, **options: Any) -> None:
    rows = visits(3, patients=50) if source is None else source
    curator.protect(rows, name="visits", budget=Budget(epsilon=10), **(FROM_WARDS | options))


def test_a_column_gives_the_keys_sorted_and_without_null() -> None:
    curator = opened()
    protect(curator)
    assert [row["ward"] for row in curator.ask(BY_WARD, epsilon=1)] == ["A", "B", "C"]


def test_a_reference_declares_what_a_list_declares(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    protect(opened(ledger))
    listed = Curator.for_tests(ledger, engine=Memory(), bits=SeededBits(4))
    protect(listed, keys={"ward": ["A", "B", "C"]})
    before = listed.verify()
    other = Curator.for_tests(ledger, engine=Memory(), bits=SeededBits(4))
    other.public([*WARDS, {"ward": "D"}], name="wards", types=TYPES)
    with pytest.raises(InvalidParameter) as refused:  # a ward more is another declaration
        protect(other)
    assert refused.value.name == "declaration"
    assert listed.verify() == before


def test_files_give_keys_too(tmp_path: Path) -> None:
    (tmp_path / "wards.csv").write_text("ward;floor\nC;1\nA;2\n;3\nB;3\nA;1\n")
    curator = Curator.for_tests(engine=DuckDB(), bits=SeededBits(4))
    curator.public(tmp_path / "wards.csv", name="wards", types=TYPES)
    protect(curator, pd.DataFrame(visits(3, patients=50)))
    assert [row["ward"] for row in curator.ask(BY_WARD, epsilon=1)] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("kind", "values", "keys"),
    [
        ("int", [3, -1, 3, None], [-1, 3]),
        ("bool", [True, False], [False, True]),
        ("date", [dt.date(2026, 2, 1), dt.date(2025, 12, 31)], [dt.date(2025, 12, 31), dt.date(2026, 2, 1)]),
        ("timestamp", [dt.datetime(2026, 1, 1, 5)], [dt.datetime(2026, 1, 1, 5)]),
        ("text", ["b", "a", "a "], ["a", "a ", "b"]),
    ],
)
def test_keys_of_every_type(kind: str, values: list[Any], keys: list[Any]) -> None:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(4))
    curator.public([{"x": value} for value in values], name="public", types={"x": kind})
    rows = [{"y": value} for value in keys]
    curator.protect(rows, name="folk", types={"y": kind}, keys={"y": "public.x"}, budget=Budget(epsilon=1))
    assert [row["y"] for row in curator.ask("SELECT y, COUNT(*) AS n FROM folk GROUP BY y", epsilon=1)] == keys


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        ({"ward": "wards"}, "Public tables are: wards"),
        ({"ward": "ward"}, "List the keys"),
        ({"ward": "rooms.ward"}, "Public tables are: wards"),
        ({"ward": "wards.room"}, "Its columns are floor, ward."),
        ({"ward": "wards.floor"}, "It is int"),
        ({"charge": "wards.floor"}, "It is int"),
        ({"ward": "visits.ward"}, "Public tables are: wards"),
    ],
)
def test_references_to_nothing_are_refused_before_anything_is_opened(keys: dict[str, str], hint: str) -> None:
    curator = opened()
    with pytest.raises(InvalidParameter) as refused:
        protect(curator, keys=keys)
    assert refused.value.name == f"keys[{next(iter(keys))!r}]"
    assert hint in refused.value.hint
    assert curator.accounts() == ()


def test_a_protected_table_gives_no_keys() -> None:
    curator = opened()
    protect(curator)
    with pytest.raises(InvalidParameter):
        curator.protect(visits(1), name="more", budget=Budget(epsilon=1), **OPTIONS | {"keys": {"ward": "visits.ward"}})


@pytest.mark.parametrize(("rows", "most"), [([{"ward": None}], 10), (WARDS, 2)])
def test_none_and_too_many_are_no_keys(rows: list[dict[str, Any]], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEYS", most)
    curator = Curator(engine=Memory())
    curator.public(rows, name="wards", types={"ward": "text"})
    with pytest.raises(InvalidParameter) as refused:
        protect(curator)
    assert refused.value.name == "keys['ward']"


def test_a_public_table_that_cannot_be_read_is_no_failed_question() -> None:
    curator = opened(engine=Broken())
    with pytest.raises(InvalidParameter) as refused:
        protect(curator)
    assert "Nothing was charged" in refused.value.hint


def test_questions_about_public_tables_are_refused_and_cost_nothing() -> None:
    spy = Spy()
    curator = opened(engine=spy)
    protect(curator)
    reads, before = spy.reads, curator.verify()
    for sql in ("SELECT COUNT(*) AS n FROM wards", "SELECT * FROM Wards", "SELECT ward FROM wards"):
        for act in (curator.ask, curator.explain, curator.rehearse):
            with pytest.raises(UnsupportedQuery) as refused:
                act(sql, epsilon=1)
            assert refused.value.hint == "It is public: query it directly."
    with pytest.raises(UnsupportedQuery):
        curator.table("wards")
    assert (spy.reads, curator.verify()) == (reads, before)


def test_a_table_is_public_or_protected(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    curator = opened(ledger)
    protect(curator)
    for name in ("visits", "Visits", "WARDS"):
        with pytest.raises(InvalidParameter) as refused:
            curator.public(WARDS, name=name, types=TYPES)
        assert refused.value.name == "name"
    for name in ("wards", "Wards", "VISITS"):
        with pytest.raises(InvalidParameter) as refused:
            curator.protect(visits(1), name=name, budget=Budget(epsilon=1), **OPTIONS)
        assert refused.value.name == "name"
    with pytest.raises(InvalidParameter):  # nor does another process make it public
        opened(ledger).public(visits(1), name="visits", types=OPTIONS["types"])
    assert [row["ward"] for row in curator.ask(BY_WARD, epsilon=1)] == ["A", "B", "C"]


def test_registering_again_is_fine_and_leaves_no_trace_in_the_ledger() -> None:
    curator = opened()
    curator.public(WARDS, name="wards", types=TYPES)
    protect(curator)
    assert [entry.kind for entry in curator.entries()] == ["open", "attach"]
    assert curator.tables() == {"visits": "visits"}
    curator.ask(COUNT, epsilon=1)


# --------------------------------------------------------------------------------------------------- bounds of numbers

NUMBERS: list[list[Any]] = [
    *([0.25, 0.5, None, 2.5], [1e-9, 2e-9], [-1e18, 5.0], [0.19, 0.2], [0.0], [-0.0, 1e300], [float("nan"), 1.0]),
    *([1900, 2030], [0, 0], [-7], [None], [], [(1 << 63) - 1], [-(1 << 62), 3]),
]


@every("numbers", some(NUMBERS, 4))
def test_numbers_have_the_bounds_that_they_keep_to(numbers: list[Any]) -> None:
    kind = "float" if any(isinstance(value, float) for value in numbers) else "int"
    found = []
    for engine in (Memory(), DuckDB(threads=1)):
        source: Any = [{"x": value} for value in numbers]
        frame = pd.DataFrame({"x": pd.array(numbers, dtype="Float64" if kind == "float" else "Int64")})
        engine.register("t", source if isinstance(engine, Memory) else frame, {"x": Type(kind)}, public=True)
        found.append(module.kept_to("t", "x", Type(kind), engine))
    assert found[0] == found[1]
    present = [value for value in numbers if value is not None and value == value]  # noqa: PLR0124 - but for NaN
    if found[0] is None:
        assert not present or max(map(abs, present)) >= 1 << 52
    else:
        largest = max(map(abs, present))
        slack = max(largest / 500, 1 if kind == "int" else 1e-12)
        assert min(present) - slack <= found[0].low <= min(present) <= max(present) <= found[0].high
        assert found[0].high <= max(present) + slack + 1


def test_sums_of_a_joined_number_need_no_clip() -> None:
    curator = opened()
    protect(curator)
    sql = "SELECT SUM(v.age * w.floor) AS s FROM visits AS v JOIN wards AS w ON w.ward = v.ward"
    assert curator.ask(sql, epsilon=1)


def test_a_public_table_that_cannot_be_read_has_no_bounds() -> None:
    class Unreadable(Memory):
        def read_public(self, reading: Reading) -> Groups:
            del reading
            raise QueryFailed

    opened(engine=Unreadable())
    assert module.kept_to("wards", "floor", Type.INT, Unreadable()) is None
