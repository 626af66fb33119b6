"""Charts are valid Vega-Lite, whatever the numbers and names."""

from __future__ import annotations

import json
import math
from typing import Any

import altair as alt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report import answers, charts
from discreet.report.charts import CurvePoint, Point, Spec

NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9)


@st.composite
def points(draw: st.DrawFn) -> Point:
    value = draw(st.none() | NUMBERS)
    low = draw(st.just(-math.inf) | st.floats(0, 1e6).map(lambda less: (value or 0) - less))
    high = draw(st.just(math.inf) | st.floats(0, 1e6).map(lambda more: (value or 0) + more))
    return Point(label=draw(st.text(max_size=8)), value=value, low=low, high=high)


def valid(spec: Spec) -> Spec:
    """The chart, if it is JSON that Vega-Lite's own schema accepts."""
    json.dumps(spec, allow_nan=False)
    alt.Chart.from_dict(spec, validate=True)
    return spec


def rows(spec: Spec) -> list[dict[str, Any]]:
    return list(spec["data"]["values"])


@pytest.mark.parametrize("draw", [charts.dots, charts.bars])
@given(found=st.lists(points(), max_size=5))
def test_every_point_has_a_row_of_its_own_inside_the_chart(draw: Any, found: list[Point]) -> None:
    spec = draw(found, title="n")
    json.dumps(spec, allow_nan=False)
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < high
    assert len({row["label"] for row in rows(spec)}) == len(found)
    for row, point in zip(rows(spec), found, strict=True):
        shown = [row[name] for name in ("value", "low", "high", "open_low", "open_high") if row[name] is not None]
        assert all(low <= part <= high for part in shown)
        assert (row["value"] is None) == (point.value is None)
        assert (row["open_high"] is not None) == (point.value is not None and point.high == math.inf)


def test_repeated_names_get_rows_of_their_own() -> None:
    found = [Point(label=label, value=1, low=0, high=2) for label in ("A", "A (2)", "A", "A")]
    assert [row["label"] for row in rows(charts.dots(found, title="n"))] == ["A", "A (2)", "A (3)", "A (4)"]


def test_an_interval_without_an_end_gets_an_arrow() -> None:
    closed = charts.dots([Point(label="A", value=1, low=0, high=2)], title="n")
    opened = charts.dots([Point(label="A", value=1, low=-math.inf, high=math.inf)], title="n")
    valid(opened)
    shapes = [[layer["mark"].get("shape") for layer in spec["layer"]] for spec in (closed, opened)]
    assert shapes == [[None, "circle"], [None, "triangle-left", "triangle-right", "circle"]]


def test_exact_values_stand_beside_released_ones_if_given() -> None:
    spec = valid(charts.bars([Point(label="A", value=1, low=0, high=2)], title="n", exact={"A": 3.0}))
    assert rows(spec)[0]["exact"] == 3.0
    assert spec["layer"][-1]["mark"]["shape"] == "diamond"
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"][1] > 3


def test_bars_begin_at_zero() -> None:
    spec = charts.bars([Point(label="A", value=100, low=90, high=110)], title="n")
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"][0] == 0


def test_other_charts_are_valid() -> None:
    readings = [CurvePoint(x=0.05 * 2**i, value=10, low=10 - 1 / (i + 1), high=10 + 1 / (i + 1)) for i in range(6)]
    spec = valid(charts.curve(readings, across="epsilon", title="n", logarithmic=True))
    assert spec["encoding"]["x"]["axis"]["values"] == pytest.approx([0.05, 0.1, 0.2, 0.5, 1])
    valid(charts.curve(readings, across="epsilon", title="n"))
    valid(charts.lengths({"a": 1.0, "b": 0.0}, title="n"))
    cloud = valid(charts.clouds({"a": [1.0, 2.0, 50.0], "b": [-3.0]}, title="n", landmarks={"truth": 20.0}))
    assert [len(rows(layer)) for layer in cloud["layer"] if "data" in layer] == [4, 1, 1]


def test_an_answer_has_one_panel_for_each_number() -> None:
    record = {"ward": "A", "n": 3, "n_low": 1, "n_high": 5, "cost": None, "cost_low": -math.inf, "cost_high": math.inf}
    spec = valid(answers.spec([record, record | {"ward": None}]))
    assert [panel["layer"][0]["encoding"]["x"]["title"] for panel in spec["vconcat"]] == ["n", "cost"]
    assert [row["label"] for row in rows(spec["vconcat"][0])] == ["A", "NULL"]


def test_an_answer_without_keys_has_one_point_for_each_number() -> None:
    record = {"n": 3, "n_low": 1, "n_high": 5, "cost": 2.5, "cost_low": 2.0, "cost_high": 3.0}
    spec = valid(answers.spec([record]))
    assert [row["label"] for panel in spec["vconcat"] for row in rows(panel)] == ["n", "cost"]


def test_a_panel_says_what_is_remarked_of_its_column() -> None:
    record = {"n": 3, "n_low": 1, "n_high": 5, "cost": 2.5, "cost_low": 2.0, "cost_high": 3.0}
    counted, paid = valid(answers.spec([record], remarks={"n": "4 % of rows left out " * 9}))["vconcat"]
    assert " ".join(counted["title"]["text"]) == ("4 % of rows left out " * 9).strip()
    assert max(map(len, counted["title"]["text"])) < 70
    assert "title" not in paid
    assert "title" not in valid(answers.spec([record]))["vconcat"][0]


def test_no_rows_are_a_chart_too() -> None:
    assert rows(valid(answers.spec([]))) == []


def test_names_are_data_and_nothing_else() -> None:
    evil = "datum['x'].y</script>"
    record = {evil: "a.b[0]", "n": 3, "n_low": 1, "n_high": 5}
    spec = valid(answers.spec([record]))
    assert rows(spec)[0]["label"] == "a.b[0]"
    assert evil not in json.dumps(spec)
