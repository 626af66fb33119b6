"""The lab as a page: attacks on raw and on private releases, for readers who have never heard of epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from discreet.demo.lab import Exhibit
from discreet.report import page
from discreet.report.finding import EPSILON, comparison_section, finding_section
from discreet.report.html import Html

FILE, REPORT = "lab.html", "report.html"
_READING = {
    "How to read the charts": (
        "Every dot is a private release that was really made and attacked. The line through it is where the rate lies "
        "with 95 % chance. The dashed curve is the most that anybody could reach against this epsilon. Dotted lines "
        "are releases without a guarantee, and a guess."
    ),
    "What epsilon means": EPSILON,
}


def write_lab(exhibits: Sequence[Exhibit], folder: Path) -> Path:
    """Writes the page, over an older one, and says where it is.

    Raises:
        MissingExtra: if charts cannot be drawn; nothing is written.
    """
    text = lab(exhibits)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(text, encoding="utf-8")
    return path


def lab(exhibits: Sequence[Exhibit]) -> str:
    """The whole page."""
    lead = (
        "Three releases about made-up people that name nobody, and what an attacker makes of them. Beside each, the "
        "same release with noise that is measured out by differential privacy."
    )
    contents = {one.name: one.title for one in exhibits} | {"reading": "How to read this"}
    sections = [page.section(one.name, one.title, *_shown(one)) for one in exhibits]
    words = [
        page.section(name.lower().replace(" ", "-"), name, page.paragraph(text), level=3)
        for name, text in _READING.items()
    ]
    back = page.paragraph(page.link("The story of the clinic", REPORT))
    reading = page.section("reading", contents["reading"], *words)
    return page.document("What releases give away", *sections, reading, back, lead=lead, contents=contents)


def _shown(exhibit: Exhibit) -> list[Html]:
    alone = [] if exhibit.finding is None else finding_section(exhibit.finding)
    return [page.paragraph(exhibit.told), *alone, *comparison_section(exhibit.comparison)]
