"""An answer as a table, a frame and a chart: functions of its records alone."""

from __future__ import annotations

import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pyarrow as pa
import pytest

from discreet.curator import Answer
from discreet.measurement.profile.coverage import Coverage
from discreet.measurement.profile.sizes import Figure
from discreet.privacy import Budget, events
from tests.report.reader import Page

EVIL = "<script>alert(1)</script>"
ROW = {"ward": EVIL, "n": 3, "n_low": 1, "n_high": 5, "cost": 2.5, "cost_low": -math.inf, "cost_high": 4.0}
EMPTY = {"ward": None, "n": -1, "n_low": -3, "n_high": 1, "cost": None, "cost_low": -math.inf, "cost_high": math.inf}


def answer(*records: dict[str, Any], **fields: Any) -> Answer:
    given: dict[str, Any] = {
        "columns": tuple(records[0]) if records else (),
        "records": records,
        "cost": Budget(epsilon="0.5"),
        "remaining": Budget(epsilon="1.5"),
        "event": events.Pure("0.5"),
        "replayed": False,
        "notes": (f"At most {EVIL}.",),
        "confidence": Fraction(19, 20),
        "private": True,
    }
    return Answer(**given | fields)


def test_a_notebook_shows_values_intervals_cost_and_notes_as_text() -> None:
    text = answer(ROW, EMPTY)._repr_html_()
    read = Page(text)
    assert "<script" not in text
    assert [" ".join(read.texts["td"]).split("  ")[i].strip() for i in range(2)] == [
        "3 (1 to 5)",
        "2.5 (no bound to 4.0)",
    ]
    assert "95 %" in read.text("caption")
    assert read.text("p") == "Cost: epsilon=0.5. Remaining: epsilon=1.5. Intervals cover: what was counted."
    assert read.text("li") == f"At most {EVIL}."
    assert len(read.named("svg")) == 4
    assert len(read.named("circle")) == 3  # one number has no value
    assert read.fetched == []


def test_printed_it_is_a_table_with_intervals_cost_and_notes() -> None:
    lines = str(answer(ROW, EMPTY)).splitlines()
    assert lines[0].endswith("n (95 % interval)   cost (95 % interval)")
    assert lines[2].endswith("3 (1 to 5)  2.5 (no bound to 4.0)")
    scope = "Intervals cover: what was counted"
    assert lines[4:] == ["Cost: epsilon=0.5", "Remaining: epsilon=1.5", scope, f"- At most {EVIL}."]
    seeded = str(answer(replayed=True, private=False)).splitlines()
    assert seeded[0] == "NOT PRIVATE: the noise was seeded, for tests. No group was large enough to be shown."
    assert seeded[1] == "Replayed: a stored answer, free"
    assert "\x1b" not in str(answer({"k": "A\x1b[2J"}))


def test_a_notebook_says_what_was_free_and_what_is_not_private() -> None:
    text = answer(ROW, replayed=True, private=False)._repr_html_()
    assert "Free: a stored answer, replayed." in text
    assert "Not private" in text
    assert "Not private" not in answer(ROW)._repr_html_()


def test_a_chart_is_altairs_if_it_is_there() -> None:
    drawn = answer(ROW, EMPTY).chart()
    assert isinstance(drawn, alt.VConcatChart)
    drawn.to_dict(validate=True)


_FETCHED = re.compile(r"""(src|href|url)\s*[=(]\s*["']?https?:""")


def test_a_chart_says_what_was_left_out() -> None:
    left = Coverage(share=0.25, low=0.2, high=0.3, rows=Figure(25.0, 20.0, 30.0))
    first, second = answer(ROW, EMPTY, coverage={"n": left}).chart().to_dict()["vconcat"]
    assert " ".join(first["title"]["text"]) == str(left)
    assert "title" not in second
    assert "title" not in str(answer(ROW, coverage=None).chart().to_dict()["vconcat"][0].keys())


@pytest.mark.ci
def test_a_chart_needs_no_network(tmp_path: Path) -> None:
    drawn = answer(ROW, EMPTY).chart()
    shown = drawn._repr_mimebundle_()
    assert list(shown) == ["image/svg+xml"]
    assert shown["image/svg+xml"].startswith("<svg")
    drawn.save(tmp_path / "chart.html")
    for page in (shown["image/svg+xml"], drawn.to_html(), (tmp_path / "chart.html").read_text()):
        assert not _FETCHED.search(page)
    assert _FETCHED.search(drawn.to_html(inline=False))  # so would be a page of Altair's own
    drawn.save(tmp_path / "chart.json")
    assert json.loads((tmp_path / "chart.json").read_text()) == drawn.to_dict()


def test_a_chart_is_drawn_as_somebody_has_chosen() -> None:
    drawn = answer(ROW).chart()
    with alt.renderers.enable("json"):
        assert "application/json" in drawn._repr_mimebundle_()[0]
    assert isinstance(drawn.copy(), type(drawn))


def test_a_chart_without_a_converter_is_left_to_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = answer(ROW).chart()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert "application/vnd.vegalite.v6+json" in drawn._repr_mimebundle_()


def test_a_chart_is_a_dictionary_without_altair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    spec = answer(ROW).chart()
    assert [panel["data"]["values"][0]["value"] for panel in spec["vconcat"]] == [3, 2.5]


def test_frames_hold_the_records() -> None:
    asked = answer(ROW, EMPTY)
    table = asked.to_arrow()
    assert table.to_pylist() == [ROW, EMPTY]
    assert table.schema.field("n").type == pa.int64()
    assert table.schema.field("cost_low").type == pa.float64()
    assert asked.to_polars().to_dicts() == [ROW, EMPTY]
    assert list(asked.to_pandas()["n"]) == [3, -1]
    assert pl.DataFrame(asked).equals(asked.to_polars())  # through the stream of Arrow


def test_numbers_of_a_column_are_of_one_kind() -> None:
    mixed = answer({"n": 1, "big": 2**70}, {"n": 0.5, "big": None})
    assert mixed.to_arrow().to_pylist() == [{"n": 1.0, "big": 2.0**70}, {"n": 0.5, "big": None}]
    assert answer({"yes": True}, {"yes": None}).to_arrow().schema.field("yes").type == pa.bool_()


def test_no_rows_are_an_answer_too() -> None:
    nothing = answer()
    assert nothing.columns == ()
    assert (len(nothing.to_arrow()), len(nothing.to_pandas()), len(nothing.to_polars())) == (0, 0, 0)
    assert "no group is shown" in nothing._repr_html_()
    assert nothing.chart().to_dict()["width"] > 0
