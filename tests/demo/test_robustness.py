"""The page about privacy and robustness stands alone and tells what was measured."""

from __future__ import annotations

import pytest

from discreet.attacks import (
    backdoor_under_privacy,
    labels_under_lies,
    location_under_outliers,
    regression_under_outliers,
)
from discreet.demo import robustness_page, write_robust
from discreet.demo.robustness_page import run_contamination
from discreet.noise import SeededBits
from tests.report.reader import Page

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = {
        "outliers": location_under_outliers(100, shares=(0, 0.3), runs=2, bits=SeededBits(1)),
        "regression": regression_under_outliers(1000, shares=(0, 0.1, 0.2, 0.3), runs=1, bits=SeededBits(1)),
        "labels": labels_under_lies(200, shares=(0, 0.3), epsilons=(1,), runs=1, bits=SeededBits(1)),
        "backdoor": backdoor_under_privacy(200, planted=(0, 10), epsilons=(1,), runs=2, bits=SeededBits(1)),
    }
    return write_robust(found, tmp_path_factory.mktemp("robust") / "new").read_text(encoding="utf-8")


def test_the_page_stands_alone_and_every_chart_says_what_it_shows(read: str) -> None:
    page = Page(read)
    assert page.fetched == ["lab.html"]
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags}
    assert len(page.named("figure")) == 4
    assert {"outliers", "regression", "labels", "backdoor", "promise"} <= {tag.get("id") for tag in page.named("h2")}


def test_every_claim_is_told_with_what_was_measured(read: str) -> None:
    claims = [text for text in Page(read).texts["li"] if text.startswith(("✓ Holds", "✗ Not in this run"))]
    assert len(claims) == 4 + 3 + 3 + 3
    for what in ("a private mean is as fragile", "a private Huber line stays", "every model guesses", "a few rows are"):
        assert sum(what in text for text in claims) == 1


def test_a_curve_that_lies_on_another_is_named(read: str) -> None:
    assert "The curve of private least squares lies on that of least squares" in read


def test_it_prints_how_far_group_privacy_reaches(read: str) -> None:
    assert "until 40 changed rows at epsilon 0.1 or 4 changed rows at epsilon 1" in read


def test_without_learners_the_page_is_about_numbers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robustness_page, "find_spec", lambda _: None)
    monkeypatch.setattr(
        robustness_page,
        "location_under_outliers",
        lambda **_: location_under_outliers(50, shares=(0,), runs=1, bits=SeededBits(2)),
    )
    assert list(run_contamination()) == ["outliers"]
