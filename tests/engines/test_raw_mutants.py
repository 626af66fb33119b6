"""Reading with a mistake in it: a raw value would make a question fail, or mean something else, and a test notices."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from discreet.engines import Memory, abstract_engine
from discreet.engines.duckdb import arrow, source_tables, sources
from discreet.errors import InvalidParameter, QueryFailed
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines.tables import F, col
from tests.engines.test_raw import chosen, judge
from tests.open_groups import unsealed


def a_plain_cast_of_seconds(patch: pytest.MonkeyPatch) -> None:
    plain = (Type.TIMESTAMP, "CAST({0} AS TIMESTAMP)")
    patch.setattr(sources, "STORED", {**sources.STORED, "TIMESTAMP_S": plain})


def zones_left_to_duckdb(patch: pytest.MonkeyPatch) -> None:
    patch.delitem(arrow._FORMS, "is_timestamp")
    patch.setattr(arrow, "_AS_THEY_ARE", (*arrow._AS_THEY_ARE, "is_timestamp"))


def texts_taken_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sources, "UNCHECKED_TEXT", "{0}")


def files_read_without_care(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(source_tables, "take_care", lambda *_: None)


def broken_texts_replaced(patch: pytest.MonkeyPatch) -> None:
    honest = source_tables.scan
    patch.setattr(source_tables, "scan", lambda paths, utf8="replace": honest(paths, utf8))


def decimals_without_a_guard(patch: pytest.MonkeyPatch) -> None:
    plain: Any = lambda _: (Type.FLOAT, "CAST({0} AS DOUBLE)")  # noqa: E731
    patch.setattr(sources, "_PARAMETRIC", {**sources._PARAMETRIC, "decimal": plain})


def decimals_left_to_duckdb(patch: pytest.MonkeyPatch) -> None:
    for bits in (32, 64, 128):
        patch.delitem(arrow._FORMS, f"is_decimal{bits}")
    patch.setattr(arrow, "_AS_THEY_ARE", (*arrow._AS_THEY_ARE, "is_decimal"))


def objects_as_they_print(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("discreet.engines.duckdb.sources.text_of", str)


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str]] = [
    (a_plain_cast_of_seconds, "pandas s None"),
    (zones_left_to_duckdb, "arrow s UTC"),
    (texts_taken_as_they_are, "arrow string Stream"),
    (files_read_without_care, "parquet utf8 statistics=True"),
    (files_read_without_care, "parquet ms utc=True statistics=False"),
    (broken_texts_replaced, "parquet utf8 statistics=True"),
    (decimals_without_a_guard, "parquet decimal 38 2"),
    (decimals_left_to_duckdb, "arrow decimal128 18 0"),
    (objects_as_they_print, "pandas objects"),
]


@pytest.mark.parametrize(("mutate", "name"), MUTANTS, ids=lambda each: getattr(each, "__name__", each))
def test_a_raw_value_notices(
    monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None], name: str, tmp_path: Path
) -> None:
    (specimen,) = chosen(name)
    mutate(monkeypatch)
    # what lies in memory is converted when it is registered, so that a conversion that fails is refused there
    with pytest.raises((AssertionError, InvalidParameter, QueryFailed)):
        judge(specimen, specimen.cells, tmp_path)


def test_a_row_notices_decimals_that_are_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    total = Statistic(kind="sum", argument=col("x", F), low=-9, high=9)
    rows = [{"x": Decimal(1)}, {"x": Decimal("NaN")}, {"x": Decimal("1e999999")}]
    assert _read(rows, total) == {(): (1,)}
    monkeypatch.setattr(abstract_engine, "_STORED", (((Decimal,), (Type.FLOAT, float)),))
    with pytest.raises(QueryFailed):
        _read(rows, total)


def _read(rows: list[dict[str, Any]], statistic: Statistic) -> dict[Any, Any]:
    memory = Memory()
    memory.register("t", rows, {"x": F})
    return dict(unsealed(memory.read(Reading(table="t", statistics=(statistic,)))))
