"""Tables in memory: the same answers as one file, whatever happens to them later; what is read only once is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import arro3.core as arro3
import nanoarrow
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.engines import DuckDB
from discreet.engines.duckdb import engine as engine_module
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.privacy import Budget
from tests.curator.clinic import DECLARED, visits
from tests.curator.memory_tables import CHANGEABLE, IN_MEMORY, Once, Reread, columns, forget
from tests.curator.test_many_files import QUESTIONS, clinic, told
from tests.engines.lakes import parquet, table

ROWS = [{**row, "charge": None if row["charge"] != row["charge"] else row["charge"]} for row in visits(5, patients=20)]
ASKED = QUESTIONS[1:3]
"""All columns of the clinic, in two queries."""


@pytest.fixture(scope="module")
def of_one_file(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    path = tmp_path_factory.mktemp("one") / "visits.parquet"
    parquet(ROWS, path)
    return told(path, ASKED)


def empty_curator() -> Curator:
    return Curator.for_tests(":memory:", engine=DuckDB(threads=1), bits=SeededBits(3))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", IN_MEMORY)
def test_answers_are_those_of_one_file(kind: str, of_one_file: list[Any]) -> None:
    assert told(IN_MEMORY[kind](ROWS), ASKED) == of_one_file


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", CHANGEABLE)
def test_changes_after_protect_change_no_answer(kind: str, of_one_file: list[Any]) -> None:
    """Neither before the first query nor when the engine opens its database again."""
    source = IN_MEMORY[kind]([dict(row) for row in ROWS])
    with clinic(source) as curator:
        forget(source)
        first = list(curator.ask(ASKED[0], epsilon=2))
        curator.public(pl.DataFrame({"ward": ["A", "B"]}), name="wards")
        second = list(curator.ask(ASKED[1], epsilon=2))
    assert [first, second] == [values for values, *_ in of_one_file]


def test_without_the_copy_changes_are_seen(monkeypatch: pytest.MonkeyPatch, of_one_file: list[Any]) -> None:
    monkeypatch.setattr(engine_module, "freeze_columns", lambda _given, kind, _declared: kind)
    source = IN_MEMORY["a dictionary of arrays"](ROWS)
    with clinic(source) as curator:
        forget(source)
        assert list(curator.ask(ASKED[0], epsilon=2)) != of_one_file[0][0]


@pytest.mark.parametrize("wrap", [pa.table, pl.DataFrame, pd.DataFrame])
def test_memory_that_a_frame_shares_with_an_array_is_copied(wrap: Callable[[Any], Any]) -> None:
    ages = np.full(50, 30)
    source = wrap({"who": [f"p{place}" for place in range(50)], "age": ages})
    with empty_curator() as curator:
        curator.protect(
            source, name="people", unit="who", max_rows=1, bounds={"age": (0, 100)}, budget=Budget(epsilon=100)
        )
        ages[:] = 90
        found = curator.ask("SELECT AVG(age) AS a FROM people", epsilon=50)[0]["a"]
    assert 25 < found < 35


def test_a_failed_declaration_does_not_refresh_the_rows() -> None:
    source: dict[str, Any] = {"who": [f"p{place}" for place in range(50)], "age": np.full(50, 30)}
    declared: dict[str, Any] = {"unit": "who", "max_rows": 1, "types": {"who": "text"}, "bounds": {"age": (0, 100)}}
    with empty_curator() as curator:
        curator.protect(source, name="people", budget=Budget(epsilon=100), **declared)
        source["age"][:] = 90
        with pytest.raises(InvalidParameter):
            curator.protect(
                source, name="people", budget=Budget(epsilon=100), **{**declared, "bounds": {"age": (0, 50)}}
            )
        assert curator.ask("SELECT AVG(age) AS a FROM people", epsilon=20)[0]["a"] < 40
        curator.protect(source, name="people", budget=Budget(epsilon=100), **declared)  # as it is now
        assert curator.ask("SELECT AVG(age) AS a FROM people", epsilon=21)[0]["a"] > 80


# ------------------------------------------------------------------------------------------------- what is read once


def _rows() -> Iterator[Any]:
    yield from ROWS


ONCE: dict[str, Callable[[], Any]] = {
    "reader": lambda: table(ROWS).to_reader(),
    "generator": _rows,
    "iterator": lambda: iter(ROWS),
    "wrapped generator": lambda: Once(table(ROWS)),
    "stream of nanoarrow": lambda: nanoarrow.ArrayStream(table(ROWS)),
    "reader of arro3": lambda: arro3.RecordBatchReader.from_stream(table(ROWS)),
    "capsule": lambda: table(ROWS).__arrow_c_stream__(),
}


@pytest.mark.parametrize("kind", ONCE)
def test_what_can_be_read_only_once_is_refused(kind: str) -> None:
    curator = empty_curator()
    with pytest.raises(InvalidParameter) as caught:
        curator.protect(ONCE[kind](), name="visits", unit="patient", max_rows=1, budget=Budget(epsilon=1), **DECLARED)
    assert caught.value.name == "source"
    assert caught.value.hint
    assert not curator.accounts()


def test_what_the_refusal_proposes_is_accepted(of_one_file: list[Any]) -> None:
    remedies = {
        "pyarrow.table(source)": ("reader", "stream of nanoarrow", "reader of arro3"),
        "list(source)": ("iterator",),
    }
    for remedy, kinds in remedies.items():
        for kind in kinds:
            with pytest.raises(InvalidParameter) as caught:
                clinic(ONCE[kind]())
            assert remedy in caught.value.hint
        source = eval(remedy, {"source": ONCE[kinds[-1]](), "pyarrow": pa})
        assert told(source, ASKED) == of_one_file


# -------------------------------------------------------------------------------------------------- types and columns


def test_columns_of_python_objects_are_declared() -> None:
    for source in (columns(ROWS), list(ROWS)):
        with pytest.raises(InvalidParameter, match='"patient": "text"') as caught:
            clinic(source, types=None)
        assert caught.value.name == "types"


def test_a_table_without_rows_is_a_table() -> None:
    empty: Any
    for empty in ([], (), {name: [] for name in ROWS[0]}, Reread(table([]))):
        with clinic(empty) as curator:
            assert curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=2)[0]["n"] < 20


SHAPES: list[Any] = [
    *({}, {"a": [1], "b": [1, 2]}, {1: [1]}, {"a": "text"}, {"a": 5}, {"a": np.array(5)}),
    *(np.array([1, 2]), np.zeros((2, 2)), pa.array([1]), pd.Series([1]), pl.Series([1]), [[1], [2]], [1, 2], b"ab"),
]


@pytest.mark.parametrize("source", SHAPES, ids=lambda source: type(source).__name__)
def test_what_is_no_table_is_refused(source: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        empty_curator().protect(
            source, name="t", unit=None, account="all", max_rows=1, types={"a": "int"}, budget=Budget(epsilon=1)
        )
    assert caught.value.name in ("source", "column")
    assert caught.value.hint


def test_one_dictionary_has_one_budget() -> None:
    source = columns(ROWS)
    with clinic(source) as curator, pytest.raises(InvalidParameter, match="has a budget"):
        curator.protect(
            source, name="again", unit="patient", max_rows=1, budget=Budget(epsilon=1), types=DECLARED["types"]
        )


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["a dictionary of arrays", "a list of dictionaries", "any stream"])
def test_neighbours_differ_in_nothing_but_what_noise_covers(kind: str) -> None:
    rows = [dict(row) for row in ROWS if row["patient"] < 4]
    found = audit.query(lambda some: clinic(IN_MEMORY[kind](some)), [QUESTIONS[3]], rows, neighbours=1, delta=1e-7)
    assert found.passed, found.summary()
