"""The lab's attacks succeed on raw releases and stay below their bounds on private ones, and its page says so."""

from __future__ import annotations

import re

import pytest

from discreet.demo import Exhibit, exhibits, write_lab
from discreet.demo.lab import QUASI, hospital, register, town
from discreet.noise import SeededBits
from discreet.report.attack_finding import wilson_interval
from tests.report.reader import Page

STRONG = 1.0  # an epsilon at which all three attacks must have lost

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def shown() -> tuple[Exhibit, ...]:
    return tuple(exhibits(bits=SeededBits(2026)))


@pytest.fixture(scope="module")
def read(shown: tuple[Exhibit, ...], tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_lab(shown, tmp_path_factory.mktemp("lab") / "new").read_text(encoding="utf-8")


def test_raw_releases_fall_and_private_ones_stay_below_their_bounds(shown: tuple[Exhibit, ...]) -> None:
    for exhibit in shown:
        comparison = exhibit.comparison
        assert comparison.raw.success > 0.9
        for trial in comparison.private:
            assert trial.finding.bound is not None
            # Four standard errors are about twice the reach of a 95 % interval: one chance in 10,000 for each dot.
            _, low, high = wilson_interval(trial.finding.bound, trial.finding.targets)
            assert trial.finding.success <= trial.finding.bound + (high - low)
            if trial.epsilon is not None and trial.epsilon <= STRONG:
                assert trial.finding.success < comparison.raw.success / 1.5


def test_rounding_is_no_defence(shown: tuple[Exhibit, ...]) -> None:
    rebuilt = next(exhibit for exhibit in shown if exhibit.name == "rebuilt")
    assert rebuilt.comparison["rounded to 5"].success > 0.95


def test_names_that_the_page_tells_are_right(shown: tuple[Exhibit, ...]) -> None:
    people = town()
    named = shown[0]
    assert named.finding is not None
    row, person = named.finding.recovered[0]
    assert people[row].number == people[person].number
    assert people[person].name in named.told
    assert people[row].diagnosis in named.told


def test_the_page_stands_alone_and_every_chart_says_what_it_shows(shown: tuple[Exhibit, ...], read: str) -> None:
    page = Page(read)
    assert page.fetched == ["report.html"]
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags}
    figures = len(page.named("figure"))
    assert figures == len(shown) + 1
    assert len(page.classed("light")) == len(page.classed("dark")) == 2 * figures
    for exhibit in shown:
        assert exhibit.title in read
        assert exhibit.comparison.headline in page.texts["p"]  # above the picture, where it breaks as the page does
    assert read.count(">total epsilon (log scale)<") == 4 * len(shown)
    assert len(re.findall(r">[\d.]+ % most possible<", read)) == 4 * len(shown)


def test_readers_are_told_what_epsilon_means(read: str) -> None:
    assert "What epsilon means" in read
    assert "2.7 at epsilon 1" in read


def test_the_town_is_the_same_each_time_and_the_register_has_no_diagnosis() -> None:
    assert town(50) == town(50)
    people = town(50)
    assert set(register(people)[0]) == {"number", "name", *QUASI}
    assert set(hospital(people, 20)[0]) == {"number", "diagnosis", *QUASI}
    assert len(hospital(people, 20)) == 20
