"""Pictures on pages are what their generators draw, can be read on a telephone, and stand out from both backgrounds."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from docs.generators import composition_picture, question_picture, reconstruction_picture
from docs.site.navigation import DOCS
from tests.cases import every
from tests.docs.contrast import BACKGROUNDS, ENOUGH, contrast

PICTURES = [composition_picture, question_picture]  # the README's own is drawn in tests/test_walkthroughs.py
EVERY = [module.PICTURE for module in (*PICTURES, reconstruction_picture)]
SHOWN = 388
"""Pixels of a picture on a page of 420: what the theme leaves on both sides is 16 pixels."""

SMALLEST = 11
"""Pixels of the smallest letters there."""


def text_colours(picture: str) -> dict[str, list[str]]:
    """The colours of texts, for a light page and for a dark one."""
    style = picture.partition("<style>")[2].partition("</style>")[0]
    light, _, dark = style.partition("@media (prefers-color-scheme: dark)")
    rule = re.compile(r"(?:text[.\w]*|\.name|\.title|\.mark)\s*\{[^}]*?fill: (#[0-9a-f]{6})")
    return {"light": rule.findall(light), "dark": rule.findall(dark)}


def test_the_ratio_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#ffffff") == 21
    assert round(contrast("#767676", "#ffffff"), 2) == 4.54


@pytest.mark.ci
@every("module", PICTURES)
def test_a_picture_is_what_is_drawn(module: ModuleType) -> None:
    assert module.PICTURE.read_text("utf-8") == module.picture()


def test_every_picture_has_a_generator() -> None:
    assert sorted(path for path in DOCS.glob("images/*") if path.is_file()) == sorted(EVERY)


@every("module", PICTURES)
def test_letters_are_large_enough_on_a_telephone(module: ModuleType) -> None:
    text = module.PICTURE.read_text("utf-8")
    width = float(re.findall(r'viewBox="0 0 ([\d.]+)', text)[0])
    sizes = [float(size) for size in re.findall(r"(?:font: |font-size: )([\d.]+)px", text)]
    assert sizes
    assert min(sizes) * min(1, SHOWN / width) >= SMALLEST


@every("path", EVERY)
def test_texts_stand_out_from_the_page(path: Path) -> None:
    found = text_colours(path.read_text("utf-8"))
    for scheme, colours in found.items():
        assert colours
        assert min(contrast(colour, BACKGROUNDS[scheme]) for colour in colours) >= ENOUGH


def test_the_page_tells_what_the_picture_shows() -> None:
    """The numbers in the description of the picture are those that stand in it."""
    page = (DOCS / "how_it_works.md").read_text("utf-8")
    (told,) = re.findall(r"!\[([^\]]*)\]\(images/composition.svg\)", page)
    shown = composition_picture.PICTURE.read_text("utf-8")
    for method, number in (("basic", "75"), ("advanced", "30"), ("RDP", "4.4"), ("PLD", "4.2")):
        assert f">{method} {number}</text>" in shown
        assert number in told
    assert all(f">{name}</text>" in shown and name.split()[1] in told for name in ("RDP 3.9", "PLD 3.6"))
    assert composition_picture.PANELS[0].counts[-1] == 300
    assert composition_picture.PANELS[1].counts[-1] == 3000
