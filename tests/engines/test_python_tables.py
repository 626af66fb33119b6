"""Columns and rows of plain Python and numpy: any object and any bits are read or NULL, as in a list of rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet.engines import DuckDB
from discreet.engines.abstract_engine import stored_value
from discreet.engines.duckdb import python_tables as module
from discreet.engines.duckdb.sources import ArrowFrame, source_of
from discreet.errors import InvalidParameter
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines.raw import FLOATS, INTEGERS
from tests.engines.raw_objects import OBJECTS, Rude
from tests.engines.raw_objects import _text_of as text_of
from tests.engines.tables import B, D, F, N, S, T, col
from tests.engines.test_sources import same
from tests.open_groups import unsealed

LEAST = -(1 << 63)
WHOLE = [number for number in INTEGERS if number is not None]
DAYS = [number for number in WHOLE if number != LEAST]
EPOCH = dt.datetime(1970, 1, 1)


def _day(number: int) -> dt.date | None:
    try:
        return EPOCH.date() + dt.timedelta(days=number)
    except OverflowError:
        return None


def _moment(number: int, per_second: int) -> dt.datetime | None:
    try:
        return EPOCH + dt.timedelta(microseconds=number * 10**6 // per_second)
    except OverflowError:
        return None


WORDS = ["a", "b", "ß", "🤦", "", "\ud800", "a\udfffb"]
NOT_NUMBERS = np.array([number for number in FLOATS if number is not None])
ARRAYS: list[tuple[Any, Type, list[Any]]] = [
    (np.array(WHOLE), N, WHOLE),
    (np.array(WHOLE).astype(">i8"), N, WHOLE),
    (np.array([1, -1, 127], "i1"), N, [1, -1, 127]),
    (np.array([1, 1 << 63, (1 << 64) - 1], "u8"), N, [1, None, None]),
    (NOT_NUMBERS, F, [*NOT_NUMBERS.tolist()]),
    (NOT_NUMBERS[:5].astype("f2"), F, NOT_NUMBERS[:5].tolist()),
    (np.array([1.5, np.nan], ">f4"), F, [1.5, None]),
    (np.array([True, False]), B, [True, False]),
    (np.array(WORDS), T, [text_of(word) for word in WORDS]),
    (np.array(["a", "b"], np.dtypes.StringDType()), T, ["a", "b"]),
    (np.array([*DAYS, LEAST]).view("M8[D]"), D, [*map(_day, DAYS), None]),
    (np.array([*DAYS, LEAST]).view("M8[s]"), S, [*(_moment(number, 1) for number in DAYS), None]),
    (
        np.array([*DAYS, LEAST]).view("M8[us]"),
        S,
        [*(_moment(n, 10**6) if abs(n) < 1 << 62 else None for n in DAYS), None],
    ),
    (np.array(["2024-02-29", "NaT"], ">M8[ms]"), S, [dt.datetime(2024, 2, 29), None]),
    (np.ma.masked_array([1, 2, 3], mask=[False, True, False]), N, [1, None, 3]),
    (np.ma.masked_array(["a", "b"], mask=[False, True]), T, ["a", None]),
    (np.arange(10)[::-2], N, [9, 7, 5, 3, 1]),
]


@pytest.mark.parametrize(("array", "kind", "meaning"), ARRAYS, ids=lambda each: str(getattr(each, "dtype", "")))
def test_arrays_carry_their_types(array: Any, kind: Type, meaning: list[Any]) -> None:
    source = {"x": array, "n": list(range(len(array)))}
    assert DuckDB().schema_of(source) == {"x": kind}
    same(source, [{"x": cell, "n": place} for place, cell in enumerate(meaning)], {"x": kind, "n": N})


NONE = [np.zeros(2, "c16"), np.zeros(2, "m8[s]"), np.zeros(2, "S3"), np.zeros(2, "V4"), np.zeros((2, 2))]
NONE += [np.zeros(2, "M8[h]"), np.zeros(2, "M8[25s]"), np.zeros(2, "g")]


@pytest.mark.parametrize("array", NONE, ids=lambda array: str(array.dtype))
def test_arrays_of_other_types_are_left_out(array: Any) -> None:
    source = {"x": array, "n": np.arange(2)}
    assert DuckDB().schema_of(source) == {"n": N}
    with pytest.raises(InvalidParameter, match="readable column"):
        DuckDB().register("t", source, {"x": N})


def _meaning(cell: Any, declared: Type) -> Any:
    """What a cell is to the referee; numbers and moments under the type of texts are what they print as."""
    stored, value = stored_value(cell)
    return text_of(cell) if declared is T and stored in (F, S) and value is not None else cell


@pytest.mark.parametrize("declared", [N, F, B, T, D, S])
def test_any_object_is_read_as_the_referee_reads_it(declared: Type) -> None:
    cells = np.empty(len(OBJECTS), dtype=object)
    for place, cell in enumerate(OBJECTS):
        cells[place] = cell
    columns, numbers = {"x": declared, "n": N}, np.arange(len(OBJECTS))
    rows = [{"x": _meaning(cell, declared), "n": place} for place, cell in enumerate(OBJECTS)]
    same({"x": OBJECTS, "n": numbers}, rows, columns)
    same({"x": cells, "n": numbers}, rows, columns)
    same([{"x": cell, "n": place} for place, cell in enumerate(OBJECTS)], rows, columns)
    assert DuckDB().schema_of({"x": OBJECTS, "n": numbers}) == {"n": N}


def test_mixed_columns_lose_nothing_that_their_type_can_hold() -> None:
    at = dt.datetime(2024, 2, 29, 23, tzinfo=dt.timezone(-dt.timedelta(hours=5)))
    cells = {"n": ["40", 40.0, True, None, 2.5], "day": [at, "2024-02-29", dt.date(2024, 3, 1), "x", None]}
    rows = [{"n": 40}, {"n": 40}, {"n": 1}, {}, {"n": 2}]
    same({"n": cells["n"]}, rows, {"n": N})
    days = [dt.date(2024, 3, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1), None, None]
    same({"day": cells["day"]}, [{"day": day} for day in days], {"day": D})


class Hostile(dict[str, Any]):
    def get(self, *_: Any) -> Any:
        raise RuntimeError("CANARY")


def test_rows_that_answer_nothing_are_null() -> None:
    same([{"n": 1}, Hostile(n=2), {"m": 3}, {"n": Rude()}], [{"n": 1}, {}, {}, {}], {"n": N})
    with pytest.raises(InvalidParameter, match="list of dictionaries") as caught:
        DuckDB().register("t", [{"n": 1}, ["CANARY"]], {"n": N})
    assert "CANARY" not in str(caught.value)


def test_structured_arrays_are_columns() -> None:
    kinds: Any = [("n", ">i4"), ("s", "U2"), ("x", "f8"), ("o", "O"), ("pair", "i4", (2,)), ("at", "M8[s]")]
    rows = np.array([(1, "a", 0.5, "z", (1, 2), "2024-01-01"), (2, "ß", np.nan, None, (3, 4), "NaT")], dtype=kinds)
    columns = {"n": N, "s": T, "x": F, "at": S}
    assert DuckDB().schema_of(rows) == columns == DuckDB().schema_of(rows.view(np.recarray))
    at = dt.datetime(2024, 1, 1)
    meaning = [{"n": 1, "s": "a", "x": 0.5, "o": "z", "at": at}, {"n": 2, "s": "ß", "x": None, "o": None, "at": None}]
    same(rows, meaning, {**columns, "o": T})
    same(rows.view(np.recarray), meaning, {**columns, "o": T})


def test_columns_are_read_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", 3)
    cells = [str(place) if place % 3 else None for place in range(10)]
    rows = [{"s": cell, "n": place} for place, cell in enumerate(cells)]
    same({"s": cells, "n": np.arange(10)}, rows, {"s": T, "n": N})
    same(rows, rows, {"s": T, "n": N})


def test_a_copy_shares_no_memory_and_has_the_declared_columns_only() -> None:
    numbers = np.arange(1000)
    table = pa.table({"n": numbers, "m": numbers, "c": pa.array(["a", "b"] * 500).dictionary_encode()})
    with DuckDB(threads=1) as engine:
        engine.register("t", engine.freeze(table.slice(10, 20), {"n": N, "c": T}), {"n": N, "c": T})
        numbers[:] = -1
        counted = Statistic(kind="sum", argument=col("n", N), high=10**6)
        asked = Reading(table="t", keys=(col("c", T),), statistics=(Statistic(kind="rows"), counted))
        assert unsealed(engine.read(asked)) == {
            ("a",): (10, sum(range(10, 30, 2))),
            ("b",): (10, sum(range(11, 30, 2))),
        }
        kept = engine.freeze(table, {"n": N}).stream
    assert pa.RecordBatchReader.from_stream(kept).schema.names == ["n"]


def test_dictionaries_and_runs_that_differ_from_batch_to_batch_are_copied() -> None:
    batches = [
        pa.record_batch(
            {
                "c": pa.array(words, pa.string()).dictionary_encode(),
                "r": pc.run_end_encode(pa.array(numbers, pa.int64())),
            }
        )
        for words, numbers in ((["a", "b", None], [1, 1, 2]), (["c", "a"], [7, None]), ([None], [None]))
    ]
    rows = [row for batch in batches for row in batch.to_pylist()]
    same(pa.Table.from_batches(batches), rows, {"c": T, "r": N})


def test_columns_whose_names_differ_by_letter_case_are_all_copied() -> None:
    table = pa.table([pa.array([1]), pa.array([2]), pa.array(["x"])], names=["a", "A", "s"])
    with DuckDB(threads=1) as engine:
        names = list(engine.schema_of(table))
        engine.register("t", table, {names[1]: N})
        asked = Reading(table="t", keys=(col(names[1], N),), statistics=(Statistic(kind="rows"),))
        assert unsealed(engine.read(asked)) == {(2,): (1,)}


def test_a_long_text_is_read_whatever_else_is_in_its_batch() -> None:
    frame = pd.DataFrame({"s": pd.Series(["x" * 100, None], dtype=object)})
    kind = source_of(frame)
    assert isinstance(kind, ArrowFrame)
    assert kind.stream.schema.field("s").type == pa.large_string()  # offsets of 32 bits end at two gigabytes
