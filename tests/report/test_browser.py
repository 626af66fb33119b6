"""Pages in Chromium: nothing is wider than the page, and texts of charts are large enough, wide and narrow."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from discreet.attacks import location_under_outliers
from discreet.demo.robustness_page import write_robust
from discreet.ledger import Ledger
from discreet.noise import SeededBits
from discreet.presentation.ledger_report.report_page import write_report
from discreet.privacy import Budget, Unit, events
from discreet.report import attack_finding, page
from discreet.report.attack_finding import Comparison, Finding, Trial
from discreet.synthetic import MST
from tests.report.test_readable import CHARTS

chromium = pytest.importorskip("tests.service.page.chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium.CHROMIUM is None, reason="there is no Chromium here"),
]
SMALLEST = 10.0  # pixels
_SIZES = """() => [...document.querySelectorAll("figure svg text")].map(text => {
  const picture = text.ownerSVGElement, shown = picture.getBoundingClientRect();
  return [shown.width, parseFloat(getComputedStyle(text).fontSize) * shown.width / picture.viewBox.baseVal.width];
}).filter(([width, size]) => width > 0).map(([width, size]) => size)"""
_FONTS = """() => [...new Set([document.body, ...document.querySelectorAll("svg text")]
  .map(one => getComputedStyle(one).fontFamily.replaceAll('"', "")))]"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = location_under_outliers(100, shares=(0, 0.1, 0.3, 0.55), runs=2, bits=SeededBits(1))
    with Ledger() as ledger:
        ledger.stewardship.open_account("patients", unit=Unit("patient", "id"), budget=Budget(epsilon=2))
        ledger.charge("patients", events.Pure(1), analyst="an analyst with a long name", question="{}")
        write_report(ledger, folder / "book.html", now=dt.datetime.now(dt.UTC) + dt.timedelta(days=9))
    figures = [page.figure(spec, caption="c", description="d") for spec in CHARTS.values()]
    (folder / "charts.html").write_text(page.document("Charts", *figures), encoding="utf-8")
    raw = Finding(attack="Linkage", goal="rows named", success=1, baseline=0.1, targets=100)
    weak = Finding(attack="Linkage", goal="rows named", success=0.2, baseline=0.1, targets=100, bound=0.3)
    trials = Trial(defence="no defence", epsilon=None, finding=raw), Trial(defence="epsilon 1", epsilon=1, finding=weak)
    compared = Comparison(trials=trials, ceiling=((0.1, 0.15), (1, 0.3), (10, 0.9)))
    (folder / "attack.html").write_text(attack_finding.finding_page(compared), encoding="utf-8")
    frame = {f"column number {n}": [place % (n + 3) for place in range(400)] for n in range(4)}
    generator = MST(epsilon=1, delta=1e-6, random_state=1)
    model = generator.fit(frame, domain={name: range(40) for name in frame})
    (folder / "synthetic.html").write_text(model.to_html(), encoding="utf-8")
    return [
        write_robust({"outliers": found}, folder),
        *(folder / f"{name}.html" for name in ("book", "charts", "attack", "synthetic")),
    ]


def test_nothing_is_wider_than_the_page_and_texts_can_be_read(pages: list[Path]) -> None:
    with chromium.chromium() as browser:
        for path in pages:
            shown = chromium.new_page(browser)
            shown.goto(f"file://{path}")
            for scheme in ("light", "dark"):
                shown.emulate_media(color_scheme=scheme)
                for width in (360, 420, 800, 1200):
                    shown.set_viewport_size({"width": width, "height": 900})
                    assert shown.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (path.name, width)
                    sizes = shown.evaluate(_SIZES)
                    assert sizes, path.name
                    assert min(sizes) >= SMALLEST, (path.name, width)
            assert len(shown.evaluate(_FONTS)) == 1, path.name
