"""The built site in Debian's Chromium: pages fit, pictures load and can be read, links lead somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from docs.site.navigation import DOCS
from tests.docs.built_site import LEAST, NARROW, clear_share, dead_links, faults
from tests.service.page.chromium import CHROMIUM, chromium, new_page

ROOT = DOCS.parent
BUILT = os.environ.get("DISCREET_SITE", "")
"""A folder with a site that is looked at; without it the test builds one."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's package chromium is not installed"),
]
_DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Ends when the page was drawn again."""

_STYLE = (
    "<style>body { margin: 0; background: #fff } @media (prefers-color-scheme: dark) { body { background: #131416 } }"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def site(tmp_path: Path) -> Path:
    if BUILT:
        return Path(BUILT).resolve()
    if not all(map(find_spec, ("sphinx", "furo", "myst_parser"))):
        pytest.skip("the extra for the site is not installed")
    pages, built = tmp_path / "pages", tmp_path / "site"
    options = ["-q", "-W", "--keep-going", "-b", "html", "-c", "docs/site", str(pages), str(built)]
    for command in (["docs.site.assemble", str(pages)], ["sphinx", *options]):
        subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)
    return built


def test_pages_can_be_read_and_lead_somewhere(site: Path, browser: Browser) -> None:
    """One test, since the site is built for it."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 200
    assert dead_links(site) == []
    assert faults(browser, pages) == {}
    _follows_the_button(browser, site)


def _follows_the_button(browser: Browser, site: Path) -> None:
    """Pictures have the scheme that a reader chose on the page, whatever the system says."""
    for system, chosen in (("light", "dark"), ("dark", "light")):
        window = new_page(browser, viewport=NARROW, color_scheme=system)
        window.goto((site / "how_it_works.html").as_uri())
        window.evaluate("chosen => { document.body.dataset.theme = chosen }", chosen)
        window.evaluate(_DRAWN)
        for picture in window.locator("article img").all():
            assert clear_share(picture, chosen) >= LEAST
        window.context.close()


def _page(folder: Path, body: str) -> Path:
    path = folder / "page.html"
    path.write_text(f"<!doctype html><title>x</title>{_STYLE}</style><body data-theme=auto><article>{body}</article>")
    return path


_FAINT = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60">'
    '<text y="30" font-size="20" fill="{}">a text</text></svg>'
)
_BROKEN = {
    "too wide at 420": "<p style='width: 500px'>wide</p>",
    "no alt": "<img src='picture.svg'>",
    "not loaded": "<img src='nothing.svg' alt='nothing'>",
    "is too faint (420 dark)": "<img src='picture.svg' alt='dark letters on every page'>",
    "no version of a chart": "<div class=lesson-chart><div role=img aria-label=x></div></div>",
    "without a description": "<div class=lesson-chart><div role=img><svg></svg></div></div>",
    "rgb(90, 90, 90) is too faint": "<div class=lesson-chart><div role=img aria-label=x>"
    "<svg><text y=20 fill='#5a5a5a'>x</text></svg></div></div>",
    "asked for http": "<script src='http://127.0.0.1:9/x.js'></script>",
    "a script failed": "<script>throw new Error('a script failed')</script>",
}


@pytest.mark.parametrize("fault", _BROKEN)
def test_faults_are_seen(fault: str, tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "picture.svg").write_text(_FAINT.format("#333"))
    (told,) = faults(browser, [_page(tmp_path, _BROKEN[fault])]).values()
    assert any(fault in one for one in told)


def test_a_page_without_faults_passes(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "picture.svg").write_text(_FAINT.format("#7a7a7a"))
    assert faults(browser, [_page(tmp_path, "<p>words</p><div style='overflow: auto'><p style='width: 900px'>x")]) == {}


def test_dead_links_are_seen(tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text("<h1 id=top>There</h1>")
    links = ["there.html", "there.html#top", "#here", "there.html#gone", "gone.html", "#gone", "https://example.org/#x"]
    (tmp_path / "page.html").write_text("<p id=here>" + "".join(f"<a href='{link}'>x</a>" for link in links))
    assert dead_links(tmp_path) == ["page.html: there.html#gone", "page.html: gone.html", "page.html: #gone"]
