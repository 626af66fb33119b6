"""Looks at pages of a built site: links between them, and each page in a browser, narrow and wide, light and dark."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, Locator, Page

from tests.docs.contrast import BACKGROUNDS, ENOUGH, contrast, luminance
from tests.service.page.chromium import Complaints, new_page

NARROW, WIDE = {"width": 420, "height": 900}, {"width": 1200, "height": 900}
OUTSIDE = re.compile(r"(https?|mailto):")

WIDER = """() => {
  const around = [document.documentElement];
  for (let box = document.querySelector("article"); box; box = box.parentElement) around.push(box);
  const ending = around.filter((box, place) => !place || getComputedStyle(box).overflowX !== "visible");
  return Math.max(...ending.map(box => box.scrollWidth - box.clientWidth));
}"""
"""By how many pixels a page scrolls sideways, or its column of text; tables and code have boxes of their own."""

IMAGES = """() => [...document.images].flatMap(image => {
  const name = image.getAttribute("src");
  const missing = image.getAttribute("alt")?.trim() || image.getAttribute("role") === "presentation" ? [] : ["no alt"];
  return (image.complete && image.naturalWidth ? missing : [...missing, "not loaded"]).map(why => `${name}: ${why}`);
})"""

CHARTS = """() => [...document.querySelectorAll(".lesson-chart [role=img]")].flatMap(chart => {
  const seen = [...chart.querySelectorAll("svg")].filter(one => one.getClientRects().length);
  const told = chart.getAttribute("aria-label") ? [] : ["a chart without a description"];
  return seen.length ? told : [...told, "no version of a chart is shown"];
})"""

FILLS = """() => [...new Set([...document.querySelectorAll(".lesson-chart svg text")]
  .filter(one => one.getClientRects().length).map(one => getComputedStyle(one).fill))]"""

SHARE = """async ([picture, background, enough]) => {
  const image = new Image();
  image.src = "data:image/png;base64," + picture;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  const linear = part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const table = Array.from({length: 256}, (_, part) => linear(part / 255));
  const data = pen.getImageData(0, 0, image.width, image.height).data;
  let clear = 0;
  for (let at = 0; at < data.length; at += 4) {
    const here = 0.2126 * table[data[at]] + 0.7152 * table[data[at + 1]] + 0.0722 * table[data[at + 2]];
    const [low, high] = here < background ? [here, background] : [background, here];
    clear += (high + 0.05) / (low + 0.05) >= enough;
  }
  return 4 * clear / data.length;
}"""
"""The share of pixels that stand out from a background, of which the luminance is given."""

LEAST = 0.008
"""Of a picture with text: letters in the wrong scheme leave a tenth of it, which test_site tries."""


class _Anchors(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what links can lead to, and where they lead."""
        found = dict(attrs)
        self.names |= {str(found[name]) for name in ("id", "name") if found.get(name)}
        link = found.get("href") if tag in ("a", "link") else found.get("src")
        self.links += [link] if link else []


@cache
def _anchors(page: Path) -> _Anchors:
    return _Anchors(page.read_text(encoding="utf-8"))


def dead_links(site: Path) -> list[str]:
    """Returns links inside the site that lead to no file, or to no place in one.

    Args:
        site: the folder of the built site.
    """
    return [
        f"{page.relative_to(site)}: {link}"
        for page in sorted(site.rglob("*.html"))
        for link in dict.fromkeys(_anchors(page).links)
        if _is_dead(page, link)
    ]


def _is_dead(page: Path, link: str) -> bool:
    if OUTSIDE.match(link) or link.startswith("data:"):
        return False
    parts = urlsplit(link)
    there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not there.is_file():
        return True
    return bool(parts.fragment) and there.suffix == ".html" and unquote(parts.fragment) not in _anchors(there).names


def faults(browser: Browser, pages: list[Path]) -> dict[str, list[str]]:
    """Returns what is wrong with pages in a browser, by the name of the page.

    Args:
        browser: that opens them, from the disk as a reader would.
        pages: files.
    """
    window = new_page(browser, viewport=NARROW, color_scheme="light")
    said = Complaints()
    said.watch(window, "file:")
    found: dict[str, list[str]] = {}
    for page in pages:
        said.told.clear()
        window.goto(page.as_uri())
        told = [fault for look in _looks(window) for fault in look]
        if told or said.told:
            found[page.as_uri().rpartition("/site/")[2]] = [*told, *said.told]
    window.context.close()
    return found


def _looks(window: Page) -> Iterator[list[str]]:
    """Looks at the page that is open, in each of its four forms; it ends narrow and light again."""
    yield window.evaluate(IMAGES)
    drawn = window.locator("article img[src$='.svg'], .lesson-chart").count()
    for size in (WIDE, NARROW):
        window.set_viewport_size(size)  # type: ignore[arg-type]
        yield [f"{more} pixels too wide at {size['width']}" for more in [window.evaluate(WIDER)] if more > 0]
        if not drawn:
            continue  # the theme is not ours
        for scheme in ("dark", "light"):
            window.emulate_media(color_scheme=scheme)
            where = f"{size['width']} {scheme}"
            yield [f"{fault} ({where})" for fault in window.evaluate(CHARTS)]
            yield [f"{fill} is too faint ({where})" for fill in _faint(window.evaluate(FILLS), scheme)]
            yield [f"{name} is too faint ({where})" for name in _faint_pictures(window, scheme)]


def _faint(fills: list[str], scheme: str) -> list[str]:
    """Returns colours of letters whose contrast with the background is too low."""
    return [fill for fill in fills if contrast(_hex(fill), BACKGROUNDS[scheme]) < ENOUGH]


def _hex(fill: str) -> str:
    red, green, blue = (int(part) for part in re.findall(r"\d+", fill)[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"


def _faint_pictures(window: Page, scheme: str) -> list[str]:
    pictures = window.locator("article img[src$='.svg']").all()
    return [str(one.get_attribute("src")) for one in pictures if clear_share(one, scheme) < LEAST]


def clear_share(picture: Locator, scheme: str) -> float:
    """Returns the share of a picture's pixels that stand out from the page, as it is drawn."""
    drawn = base64.b64encode(picture.screenshot()).decode()
    return float(picture.page.evaluate(SHARE, [drawn, luminance(BACKGROUNDS[scheme]), ENOUGH]))
