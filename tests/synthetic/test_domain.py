"""Domains of tables: codes are functions of single values, total, and values come back into their codes."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.synthetic import Bins, Calendar, Domain, Keys
from discreet.synthetic.domain import ColumnDomain, FrameKind
from discreet.synthetic.domain.column_domains import MOST_VALUES

DAYS = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.decimals(),
    st.fractions(),
    DAYS,
    st.datetimes(),
    st.lists(st.integers(), max_size=2),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.just(np.datetime64("NaT")),
    st.just(object()),
    st.complex_numbers(),
    st.just(np.array([1, 2])),
    st.just(10**400),
)


@st.composite
def columns(draw: st.DrawFn) -> ColumnDomain:
    missing = draw(st.booleans())
    kind = draw(st.sampled_from(["keys", "bins", "real bins", "span", "round"]))
    if kind == "keys":
        values = draw(st.sampled_from([st.text(max_size=4), st.integers(-9, 9), DAYS]))
        return Keys(draw(st.lists(values, min_size=1, max_size=6, unique=True)), missing=missing)
    if kind == "bins":
        return Bins(sorted(draw(st.sets(st.integers(-(10**6), 10**6), min_size=2, max_size=8))), missing=missing)
    if kind == "real bins":
        edges = draw(st.sets(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=8))
        return Bins(sorted(edges), missing=missing, whole=False)
    if kind == "span":
        part = draw(st.sampled_from(["year", "quarter", "year_month", "day"]))
        first = draw(st.integers(1990, 2020))
        return Calendar(part, years=(first, first + draw(st.integers(0, 2))), missing=missing)
    return Calendar(draw(st.sampled_from(["month", "weekday"])), missing=missing)


@given(column=columns(), values=st.lists(VALUES, max_size=8))
@settings(deadline=None)
def test_every_value_has_a_code_of_its_own(column: ColumnDomain, values: list[Any]) -> None:
    codes = column.codes(values)
    assert codes.dtype == np.int64
    assert ((codes >= 0) & (codes < column.size)).all()
    assert codes.tolist() == [column.codes([value])[0] for value in values]  # whatever stands beside it


@given(column=columns(), data=st.data())
@settings(deadline=None)
def test_values_of_a_code_have_that_code(column: ColumnDomain, data: st.DataObject) -> None:
    codes = np.array(data.draw(st.lists(st.integers(0, column.size - 1), max_size=8)), dtype=np.int64)
    extremes = [2.0**-53, 0.5, 1 - 2.0**-53]
    for uniform in extremes:
        values = column.values(codes, np.full(codes.size, uniform))
        assert column.codes(values).tolist() == codes.tolist()


@pytest.mark.parametrize("kind", list(FrameKind))
def test_frames_of_every_kind_come_back(kind: FrameKind) -> None:
    domain = Domain(
        {
            "sex": ["F", "M"],
            "smokes": [True, False],
            "age": range(0, 100, 5),
            "weight": Bins([0.0, 50.5, 80.25, 200.0]),
            "admitted": Calendar("year_month", years=(2020, 2021)),
            "weekday": Calendar("weekday"),
            "ward": Keys([1, 2, 3], missing=False),
        }
    )
    sizes = np.array(list(domain.sizes.values()))
    codes = np.arange(60)[:, None] % sizes
    frame = domain.decode(codes, kind, bits=SeededBits(1))
    expected = {"dict": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[kind.value]
    assert isinstance(frame, expected)
    assert domain.encode(frame).tolist() == codes.tolist()


def test_frames_of_all_libraries_have_the_same_codes() -> None:
    domain = Domain({"a": [1, 2], "b": Bins([0, 1, 2]), "c": ["x", "y"], "d": Calendar("year", years=(2020, 2022))})
    day = dt.datetime(2021, 5, 17, 12, 30)
    columns = {"a": [1, None, 3], "b": [0.5, None, math.inf], "c": ["y", None, "z"], "d": [day, None, day]}
    frames = [columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]
    frames += [pd.DataFrame(columns).convert_dtypes(), pd.DataFrame(columns, dtype=object)]
    for frame in frames:
        assert domain.encode(frame).tolist() == [[0, 0, 1, 1], [2, 2, 2, 3], [2, 1, 2, 1]]


def test_a_value_that_no_object_can_hold_is_missing() -> None:
    far, near = 400_000_000_000, 1_700_000_000  # seconds: a day of the year 14645, and one of 2023
    domain = Domain({"day": Calendar("year", years=(2022, 2024)), "text": ["x"]})
    seconds = pa.array([near, far, None], pa.timestamp("s"))
    texts = pa.array([b"x", b"\xff", None], pa.binary()).view(pa.string())
    for frame in (pa.table({"day": seconds, "text": texts}), {"day": seconds, "text": texts}):
        assert domain.encode(frame).tolist() == [[1, 0], [3, 1], [3, 1]]
    days = pl.Series([near * 10**6, far * 10**6, None], dtype=pl.Int64).cast(pl.Datetime("us"))
    codes = domain.encode(pl.DataFrame({"day": days, "text": ["x"] * 3})).tolist()
    assert [codes[0], codes[2]] == [[1, 0], [3, 0]]


def test_moments_are_days_among_keys() -> None:
    domain = Domain({"day": [dt.date(2024, 1, 1), dt.date(2024, 2, 1)]})
    moments = [dt.datetime(2024, 2, 1, 8), None, dt.datetime(2024, 1, 1)]
    frames = [{"day": moments}, pd.DataFrame({"day": moments}), pl.DataFrame({"day": moments})]
    frames += [{"day": np.array(moments, dtype="datetime64[ns]")}]
    for frame in frames:
        assert domain.encode(frame).ravel().tolist() == [1, 2, 0]


def test_no_rows_and_all_values_missing() -> None:
    domain = Domain({"a": ["x"], "b": range(0, 10, 5)})
    assert domain.encode({"a": [], "b": []}).shape == (0, 2)
    assert domain.encode({"a": [None] * 3, "b": [math.nan] * 3}).tolist() == [[1, 2]] * 3
    closed = Domain({"a": Keys(["x", "y"], missing=False), "b": Bins([0, 5, 9], missing=False)})
    assert closed.encode({"a": [None], "b": [None]}).tolist() == [[0, 0]]
    assert domain.decode(np.empty((0, 2), dtype=np.int64)) == {"a": [], "b": []}


def test_numbers_of_other_types_are_numbers() -> None:
    bins = Bins([0, 1, 2])
    assert bins.codes([Decimal("1.5"), Fraction(1, 2), np.float32(1.5), True, "1"]).tolist() == [1, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda: Domain({}), "domain"),
        (lambda: Domain({"a": "xyz"}), "domain of a"),
        (lambda: Domain({"a": np.arange(3)}), "domain of a"),
        (lambda: Domain({3: ["x"]}), "domain"),  # type: ignore[dict-item]
        (lambda: Domain([("a", ["x"])]), "domain"),  # type: ignore[arg-type]
        (lambda: Keys([]), "keys"),
        (lambda: Keys(["x", "x"]), "keys"),
        (lambda: Keys([1, 1.0]), "keys"),
        (lambda: Keys([1, "x"]), "keys"),
        (lambda: Keys([None, "x"]), "keys"),
        (lambda: Keys([math.nan]), "keys"),
        (lambda: Keys(range(MOST_VALUES + 1)), "keys"),
        (lambda: Keys("xyz"), "keys"),
        (lambda: Bins([1]), "edges"),
        (lambda: Bins([1, 1]), "edges"),
        (lambda: Bins([2, 1]), "edges"),
        (lambda: Bins([0, math.inf]), "edges"),
        (lambda: Bins([0, "1"]), "edges"),
        (lambda: Bins([0, 0.5], whole=True), "edges"),
        (lambda: Bins(range(5, 0, -1)), "edges"),
        (lambda: Bins(range(0)), "edges"),
        (lambda: Bins(range(MOST_VALUES + 1)), "edges"),
        (lambda: Calendar("hour"), "part"),
        (lambda: Calendar("year"), "years"),
        (lambda: Calendar("month", years=(2020, 2021)), "years"),
        (lambda: Calendar("year", years=(2021, 2020)), "years"),
        (lambda: Calendar("day", years=(1, 9999)), "years"),
        (lambda: Domain({"a": ["x"]}, forbidden=[{"b": ["x"]}]), "forbidden"),
        (lambda: Domain({"a": ["x"]}, forbidden=[{"a": ["y"]}]), "forbidden"),
        (lambda: Domain({"a": ["x"]}, forbidden=[{}]), "forbidden"),
        (lambda: Domain({"a": ["x"]}, forbidden=[{"a": []}]), "forbidden"),
        (lambda: Domain({"a": ["x"]}, forbidden=[{"a": "x"}]), "forbidden"),
        (lambda: Domain({"a": ["x"]}, forbidden=[{"a": ["x", None]}]), "forbidden"),
        (lambda: Domain({"a": Keys(["x"], missing=False)}, forbidden=[{"a": [None]}]), "forbidden"),
        (lambda: Domain({"a": range(0, 10, 5)}, forbidden=[{"a": range(7)}]), "forbidden"),
        (lambda: Domain({"a": ["x"]}).encode({"a": ["x"], "b": [1]}), "column"),
        (lambda: Domain({"a": ["x"], "b": ["y"]}).encode({"a": ["x"]}), "domain"),
        (lambda: Domain({"a": ["x"], "b": ["y"]}).encode({"a": ["x"], "b": []}), "columns"),
        (lambda: Domain({"a": ["x"]}).encode({"a": 3}), "columns"),
        (lambda: Domain({"a": ["x"]}).encode(np.zeros((3, 1))), "frame"),
        (lambda: Domain({"a": ["x"]}).encode([["x"]]), "frame"),
        (lambda: Domain({"a": ["x"]}).decode(np.array([[2]])), "codes"),
        (lambda: Domain.from_json("[]"), "text"),
        (lambda: Domain.from_json('{"columns": {}}'), "text"),
    ],
)
def test_what_is_wrong_in_public_is_refused(wrong: Any, name: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        wrong()
    assert caught.value.name == name


def test_forbidden_combinations_are_zeros_of_a_table() -> None:
    columns = {"age": range(0, 30, 5), "status": ["single", "married"], "born": Calendar("year", years=(1990, 1992))}
    rules: list[dict[str, Any]] = [
        {"age": range(15), "status": ["married"]},
        {"age": (25, 30), "status": [None]},
        {"born": ["1991-07-01"]},
    ]
    domain = Domain(columns, forbidden=rules)
    both, one = domain.zeros()
    assert both.attributes == ("age", "status")
    gone = np.argwhere(np.isneginf(both.logs)).tolist()
    assert gone == [[0, 1], [1, 1], [2, 1], [5, 2]]
    assert np.isneginf(one.logs).tolist() == [False, True, False, False]


@given(found=st.dictionaries(st.text(min_size=1, max_size=3), columns(), min_size=1, max_size=3))
@settings(deadline=None)
def test_a_domain_is_kept_as_text(found: dict[str, ColumnDomain]) -> None:
    assert Domain.from_json(Domain(found).to_json()) == Domain(found)
