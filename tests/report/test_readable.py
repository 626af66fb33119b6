"""Charts can be read: texts stay inside of pictures and apart, as large on a telephone as on a desk, in one font."""

from __future__ import annotations

import html
import re
from itertools import combinations
from typing import Any

import pytest

from discreet.report import charts, comparison_charts, marginal_charts, page, time_charts
from discreet.report.charts import Point, Spec, at_width
from discreet.report.render import FONT, NARROW, Scheme, chart, config, svg
from tests.cases import every
from tests.effort import some
from tests.report.time_series import BUDGETS, NOW

LETTER = 6.7  # pixels of an average letter of 12 pixels in fonts as wide as Arial, on the large side
SMALLEST = 10  # pixels of a text on a page of 420
LINES = {"no defence": 1.0, "rounded to 5": 1.0, "below 10 withheld": 0.99, "noise of 4": 0.96, "chance": 0.5}
FOUND = {"a": [(x / 10, (0.5, 0.4, 0.6)) for x in range(5)], "b": [(x / 10, (0.51, 0.4, 0.6)) for x in range(5)]}
LONG = "share of rows that are outliers at the upper bound, all in one direction, and a few words more"
CHARTS: dict[str, Spec] = {
    "against epsilon": comparison_charts.against_epsilon(
        {0.1: (0.5, 0.4, 0.6), 10: (0.7, 0.6, 0.8)},
        ceiling=[(0.1, 0.52), (1, 0.6), (10, 0.82)],
        lines=LINES,
        headline="A headline that is longer than a telephone is wide, as headlines of attacks are",
        title="bits that were rebuilt",
    ),
    "curves": comparison_charts.curves(FOUND, {}, headline="h", across=LONG, title=LONG, joined=True, parts=True),
    "rates": comparison_charts.rates({"found": (0.5, 0.4, 0.6)}, {"chance": 0.1}, headline="h", across="people"),
    "paid": comparison_charts.paid_and_used({"SELECT COUNT(*) FROM visits": 1.0, "x" * 90: 0.5}, headline="Passed"),
    "burn-down": time_charts.burn_down(BUDGETS, now=NOW, headline="90 % is left"),
    "distribution": marginal_charts.distribution(
        [
            marginal_charts.ShareBar(label="a value of many words", share=0.7, measured=0.6, low=0.4, high=0.8),
            marginal_charts.ShareBar(label="missing or other", share=0.3, measured=None, low=0, high=0),
        ]
    ),
    "distances": marginal_charts.distances(
        [marginal_charts.Distance(label="age and ward", distance=0.1, noise=0.05, low=0.02, high=0.2)]
    ),
    "dots": charts.dots([Point(label="a ward with a rather long name", value=3, low=1, high=9)], title="visits"),
}
_TEXT = re.compile(r"<text ([^>]*)>([^<]+)</text>")
_FULL = re.compile(r'transform="translate\(([-\d.]+),([-\d.]+)\)(?: rotate\(([-\d.]+)\))?')


def drawn(name: str, width: int) -> str:
    spec = {part: value for part, value in CHARTS[name].items() if part != "title"}
    return svg(at_width(spec, width), Scheme.LIGHT, width=width)


@every("name", CHARTS)
def test_a_narrow_picture_is_no_wider_than_a_telephone_and_its_texts_are_not_small(name: str) -> None:
    picture = drawn(name, NARROW)
    width = float(re.findall(r'viewBox="0 0 ([\d.]+)', picture)[0])
    shown = 420 - 2 * 17  # the padding of a page of 420 pixels
    scale = min(1.0, shown / width)
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', picture)]
    assert width <= NARROW
    assert sizes
    assert min(sizes) * scale >= SMALLEST


@every("name", CHARTS)
def test_pictures_have_the_font_of_the_page(name: str) -> None:
    families = {html.unescape(family) for family in re.findall(r'font-family="([^"]+)"', drawn(name, NARROW))}
    assert families == {FONT} == {config(Scheme.DARK)["font"]}
    assert f"--font: {FONT};" in page.style()
    assert "font: 1.0625rem/1.6 var(--font)" in page.style()


@every("width", [NARROW, charts.WIDTH])
def test_names_of_lines_do_not_meet(width: int) -> None:
    """Names stand one below the other: they are apart if their lines are as far apart as a letter is high."""
    said = {f"{name}": place for name, place in _named(drawn("against epsilon", width)).items()}
    assert len(said) == len(LINES) + 1
    assert all(abs(one - other) >= 12 for one, other in combinations(said.values(), 2))


def test_names_that_are_not_moved_apart_would_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison_charts, "apart", lambda values: values)
    made = comparison_charts.against_epsilon(
        {1: (0.5, 0.4, 0.6), 10: (0.5, 0.4, 0.6)}, ceiling=[], lines=LINES, headline="h", title="t"
    )
    said = _named(svg(at_width(made, NARROW), Scheme.LIGHT, width=NARROW))
    assert any(abs(one - other) < 12 for one, other in combinations(said.values(), 2))


def _named(picture: str) -> dict[str, float]:
    """The heights of texts that begin with a rate."""
    found: dict[str, float] = {}
    for attributes, text in _TEXT.findall(picture):
        place = _FULL.search(attributes)
        if place is not None and re.match(r"[\d.]+ % ", text):
            found[text] = float(place[2])
    return found


@every("width", [NARROW, charts.WIDTH])
def test_long_titles_of_axes_are_broken(width: int) -> None:
    texts = [text for _, text in _TEXT.findall(drawn("curves", width))]
    longest = max(len(line) for text in texts for line in text.splitlines())
    assert longest * LETTER <= width


@pytest.mark.ci
@every("spec", some([CHARTS["curves"], charts.panels([CHARTS["curves"], CHARTS["curves"]])], 6))
def test_a_chart_in_a_notebook_has_its_long_titles_broken(spec: Spec) -> None:
    """A title that is longer than the chart stands over its edges, and what shows the picture cuts it off there."""
    shown = chart(spec).to_dict()
    for part in shown.get("vconcat", [shown]):
        titles = [axis["title"] for layer in part["layer"] for axis in layer["encoding"].values() if "title" in axis]
        broken = [title for title in titles if isinstance(title, list)]
        assert broken
        assert all(len(line) * LETTER <= part["width"] for title in broken for line in title)
        assert LONG not in titles


def test_a_title_becomes_text_of_the_page() -> None:
    shown = page.figure(CHARTS["against epsilon"], caption="c", description="d")
    assert '<p class="headline">A headline that is longer' in shown
    assert shown.count("A headline that is longer") == 1


def test_panels_become_pictures_side_by_side() -> None:
    several = charts.panels([CHARTS["dots"], CHARTS["dots"]])
    shown = page.figure(several, caption="c", description="d")
    assert shown.count('class="wide"') == 2
    assert 'class="beside"' in shown


def test_a_pass_looks_like_one_and_a_violation_does_not() -> None:
    kinds = [{row["kind"] for row in _paid(share)["data"]["values"]} for share in (1.0, 1.01)]
    assert kinds == [{"kept"}, {"broken"}]
    assert _domain(_paid(1.0)) == [0, 1.25]  # a bar at the line does not end at the edge


def _paid(share: float) -> Spec:
    return comparison_charts.paid_and_used({"SELECT 1": share}, headline="h")


def _domain(spec: Spec) -> Any:
    return spec["layer"][1]["encoding"]["x"]["scale"]["domain"]
