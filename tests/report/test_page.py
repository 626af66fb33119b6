"""A page stands alone: it fetches nothing, runs nothing, and is read by everybody."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from discreet.errors import MissingExtra
from discreet.report import answers, charts, page
from discreet.report.charts import Point
from discreet.report.page import POLICY
from discreet.report.render import PALETTES, Scheme, svg
from tests.report.reader import Page

EVIL = "<script>alert(1)</script>"
SPEC = charts.dots([Point(label=EVIL, value=1, low=-math.inf, high=2)], title=EVIL)


def whole() -> str:
    record = {EVIL: EVIL, "n": 3, "n_low": 1, "n_high": 5}
    return page.document(
        EVIL,
        page.section("one", EVIL, page.paragraph(EVIL), page.code(EVIL), page.bullets(EVIL)),
        page.facts({EVIL: EVIL}),
        page.table([EVIL], [[EVIL]], caption=EVIL, numbers=[EVIL]),
        page.scrolling(answers.table([record], caption=EVIL), label=EVIL),
        page.figure(SPEC, caption=EVIL, description=EVIL),
        lead=EVIL,
        contents={"one": EVIL},
    )


def test_nothing_that_is_shown_becomes_markup() -> None:
    text = whole()
    read = Page(text)
    assert "<script" not in text
    assert "alert(1)" in read.text("title")
    assert {attributes["id"] for _, attributes in read.tags if "id" in attributes} >= {"one"}
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)


def test_nothing_is_fetched() -> None:
    read = Page(whole())
    assert read.fetched == []
    assert not {"script", "link", "iframe", "object", "embed", "img", "form"} & {tag for tag, _ in read.tags}
    policy = {attributes.get("http-equiv"): attributes.get("content") for attributes in read.named("meta")}
    assert policy["Content-Security-Policy"] == POLICY
    assert POLICY.startswith("default-src 'none';")
    assert "script" not in POLICY


def test_it_has_a_language_a_title_and_one_first_heading() -> None:
    read = Page(whole())
    assert read.named("html") == [{"lang": "en"}]
    assert [tag for tag, _ in read.tags if tag in ("h1", "h2", "h3")] == ["h1", "h2"]
    assert len(read.named("caption")) == len(read.named("table")) == 2
    assert all(cell["scope"] in ("col", "row") for cell in read.named("th"))


def test_figures_come_in_both_schemes_under_one_description() -> None:
    read = Page(page.figure(SPEC, caption="c", description="What it shows"))
    assert [len(read.classed(scheme.value)) for scheme in Scheme] == [2, 2]
    assert [a["aria-label"] for _, a in read.tags if a.get("role") == "img"] == ["What it shows"]
    assert len(read.named("svg")) == 4  # wide and narrow, light and dark
    assert [len(read.classed(size)) for size in ("wide", "narrow")] == [1, 1]


def test_each_scheme_has_colours_of_its_own() -> None:
    drawn = {scheme: svg(SPEC, scheme) for scheme in Scheme}
    for scheme, palette in PALETTES.items():
        for other in set(Scheme) - {scheme}:
            assert palette.ink in drawn[scheme]
            assert palette.ink not in drawn[other]


def test_pictures_on_one_page_do_not_share_names() -> None:
    clipped = {"mark": {"type": "point", "clip": True}, "encoding": {}, "data": {"values": [{}]}}
    first, second = (svg(clipped | {"width": width}, Scheme.LIGHT) for width in (100, 200))
    names = [{a["id"] for _, a in Page(drawn).tags if "id" in a} for drawn in (first, second)]
    assert names[0]
    assert names[0].isdisjoint(names[1])
    assert all(f"url(#{name})" in first for name in names[0])


def test_a_chart_cannot_fetch_its_data() -> None:
    spec = {"data": {"url": "http://127.0.0.1:9/rows.csv"}, "mark": "point", "encoding": {}}
    with pytest.raises(ValueError, match="not allowed"):
        svg(spec, Scheme.LIGHT)


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[report\]'") as caught:
        svg(SPEC, Scheme.LIGHT)
    assert (caught.value.module, caught.value.extra) == ("vl_convert", "report")


def test_the_room_loads_nothing_optional() -> None:
    code = "import sys, discreet.report; print(not {'altair', 'vl_convert', 'pandas', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "True"


def test_small_error_bars_keep_their_ends() -> None:
    read = Page(answers.error_bar(5, -math.inf, 8, span=(0, 10)))
    _, interval = read.named("line")
    assert (interval["x1"], interval["x2"]) == ("4.0", "74.4")  # the edge; 4 + 88 * 0.8
    assert len(Page(answers.error_bar(None, -math.inf, math.inf, span=(0, 0))).named("circle")) == 0
