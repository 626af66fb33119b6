"""The demo does the main job, and what it tells is true."""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from discreet.attacks import location_under_outliers
from discreet.demo import Story, background, clinic, lab, show, tell, terminal, write_report
from discreet.demo.average_attack import EPSILONS, raw
from discreet.demo.conversation import BUDGET, LIMITS, LINES
from discreet.errors import InsufficientBudget, MissingExtra, UnsupportedQuery
from discreet.noise import SeededBits
from tests.cli.clinic import run
from tests.report.reader import Page

TRIALS = 12


@pytest.fixture(scope="module")
def told() -> tuple[Story, str]:
    """The story of the whole clinic and what was printed, with noise that is the same in every run."""
    console = Console(width=120, file=io.StringIO(), record=True)
    story = tell(console, bits=SeededBits(2026), trials=TRIALS)
    return story, console.export_text()


@pytest.fixture(scope="module")
def report(told: tuple[Story, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its report."""
    return write_report(told[0], tmp_path_factory.mktemp("demo") / "new" / "folder").read_text(encoding="utf-8")


def test_questions_are_answered_replayed_and_refused(told: tuple[Story, str]) -> None:
    answered = {said.line.name: said.answer for said in told[0].said if said.answer is not None}
    refused = {said.line.name: said.refusal for said in told[0].said if said.refusal is not None}
    assert set(answered) | set(refused) == {line.name for line in LINES}
    assert [name for name, answer in answered.items() if answer.replayed] == ["again"]
    assert isinstance(refused["too many"], InsufficientBudget)
    assert isinstance(refused["one row"], UnsupportedQuery)
    first = {row["ward"]: row["cost"] for row in answered["wards"]}
    again = {row["ward"]: row["cost"] for row in answered["again"]}
    assert len(again) == 2
    assert again.items() <= first.items()


REACHES = 7  # a 95 % interval of Laplace noise reaches 3 scales; beyond 21 lie exp(-21) < 1e-9 of the draws


def test_answers_lie_where_the_truth_is(told: tuple[Story, str]) -> None:
    story = told[0]
    wards = next(said.answer for said in story.said if said.line.name == "wards")
    assert wards is not None
    for row in wards:
        for name in ("visits", "cost"):
            reach = max(row[f"{name}_high"] - row[name], row[name] - row[f"{name}_low"])
            assert abs(row[name] - story.exact[f"wards {name}"][row["ward"]]) <= REACHES * reach


def test_rare_diagnoses_stay_hidden(told: tuple[Story, str], report: str) -> None:
    story, printed = told
    shown = next(said.answer for said in story.said if said.line.name == "diagnoses")
    assert shown is not None
    assert 5 <= len(shown) <= 9
    for rare in ("porphyria", "kuru"):
        assert story.exact["diagnoses patients"][rare] < 30
        assert rare not in printed
        assert rare not in report


def test_the_ledger_adds_up(told: tuple[Story, str]) -> None:
    story = told[0]
    paid = [said.line.epsilon for said in story.said if said.answer is not None and not said.answer.replayed]
    kinds = Counter(entry.kind for entry in story.entries)
    assert kinds["charge"] == kinds["answer"] == len(paid)
    assert story.head.sequence == len(story.entries)
    assert story.balance.total == BUDGET
    assert f"epsilon={sum(map(float, paid)):g}" in str(story.balance.spent)


def test_exact_averages_give_the_bill_away_and_private_ones_do_not(told: tuple[Story, str]) -> None:
    story = told[0]
    assert story.raw.inferred_bill == clinic.RICH_CHARGE
    assert tuple(found.epsilon for found in story.private) == EPSILONS
    wide, _, narrow = story.private
    assert wide.quantile(0.95) - wide.quantile(0.05) > clinic.RICH_CHARGE / 4
    assert all(abs(inferred) < clinic.RICH_CHARGE / 2 for inferred in narrow.inferred)  # a bounded bill, hardly noisy


def test_the_story_is_printed(told: tuple[Story, str]) -> None:
    story, printed = told
    for text in ("1. A clinic", "free, replayed", "refused: The charge needs epsilon=0.5", "48,750, exactly"):
        assert text in printed
    assert f"Verified: {story.head.sequence} chained entries" in printed
    assert max(map(len, printed.splitlines())) <= 120


def test_the_report_stands_alone_and_is_well_formed(report: str) -> None:
    read = Page(report)
    assert read.fetched == ["lab.html"]  # beside it
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in read.tags}
    assert re.findall(r"https?://[^\"< ]*", report.replace('xmlns="http://www.w3.org/2000/svg"', "")) == [
        "http://www.w3.org/1999/xlink"
    ] * report.count("xmlns:xlink=")
    assert read.named("html") == [{"lang": "en"}]
    assert read.text("title") == "Private answers about a small clinic"
    figures = len(read.named("figure"))
    assert figures == len(read.named("figcaption")) == 9
    assert len(read.classed("light")) == len(read.classed("dark")) == 2 * figures
    assert len(read.named("caption")) == len(read.named("table"))


def test_headings_are_in_order_and_names_are_unique(report: str) -> None:
    read = Page(report)
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    names = [attributes["id"] for tag, attributes in read.tags if "id" in attributes]
    assert len(names) == len(set(names))
    assert {link["href"] for link in read.named("a")} <= {"lab.html", *(f"#{name}" for name in names)}


def test_the_bill_is_told_only_where_the_attack_is(report: str) -> None:
    told = re.sub(r' (?:d|transform)="[^"]*"', "", report)  # where pictures have their lines is no telling
    before, _, rest = told.partition('id="attack"')
    attack, _, after = rest.partition('id="book"')
    written = re.compile(r"48[,.]?750")
    assert written.search(attack)
    assert not written.search(before)
    assert not written.search(after)


def test_answers_of_seeded_noise_say_so(report: str) -> None:
    assert report.count("Not private") == sum(line.name not in ("too many", "one row") for line in LINES)


@pytest.fixture
def _short_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its other attacks have tests of their own."""
    monkeypatch.setattr(lab, "SHOWN", lab.SHOWN[:1])
    few = location_under_outliers(60, shares=(0, 0.3), runs=1, bits=SeededBits(1))
    monkeypatch.setattr(import_module("discreet.demo.story_page"), "run_contamination", lambda **_: {"outliers": few})


@pytest.mark.ci
@pytest.mark.usefixtures("_short_lab")
def test_a_tiny_clinic_whose_groups_are_all_hidden_is_told_too(tmp_path: Path) -> None:
    console = Console(width=100, file=io.StringIO())
    path = show(console, tmp_path, bits=SeededBits(5), patients=60, trials=2)
    assert "no group is shown" in path.read_text(encoding="utf-8")
    assert "Names come back" in (tmp_path / "lab.html").read_text(encoding="utf-8")


@pytest.mark.ci
@pytest.mark.usefixtures("_short_lab")
def test_without_the_extra_the_story_is_told_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    console = Console(width=200, file=io.StringIO(), record=True)
    with pytest.raises(MissingExtra) as caught:
        show(console, tmp_path / "out", bits=SeededBits(5), patients=60, trials=2)
    assert caught.value.hint == "In a checkout of Discreet, run: pip install '.[report]'"
    assert "Verified" in console.export_text()
    assert not (tmp_path / "out").exists()


def test_the_command_line_shows_it_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []
    monkeypatch.setattr(import_module("discreet.cli.demo"), "show", lambda _, folder: folders.append(folder))
    monkeypatch.chdir(tmp_path)
    assert run("demo").code == 0
    assert run("demo", "--out", "elsewhere").code == 0
    assert folders == [Path("discreet-demo"), Path("elsewhere")]
    (tmp_path / "taken").touch()
    assert run("demo", "--out", "taken").code == 2


def test_the_clinic_is_the_same_each_time_and_within_its_limits() -> None:
    rows = clinic.visits()
    assert rows == clinic.visits()
    assert [row.charge for row in rows if row.patient == clinic.RICH_PATIENT] == [clinic.RICH_CHARGE]
    others = clinic.without(rows, clinic.RICH_PATIENT)
    assert max(row.charge for row in others) <= clinic.HIGHEST_CHARGE
    assert max(Counter(row.patient for row in rows).values()) <= clinic.MOST_VISITS
    wards = Counter((row.patient, row.ward) for row in rows)
    assert max(wards.values()) <= LIMITS.rows
    assert max(Counter(patient for patient, _ in wards).values()) <= LIMITS.groups
    assert raw(rows).inferred_bill == clinic.RICH_CHARGE


def _text(table: object) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_composition_shows_the_four_accountants() -> None:
    text = _text(terminal.accounts(background.accounts()))
    for number in ("10.0000", "5.2215", "4.7746", "4.6927"):  # basic, zCDP, optimal, Laplace PLD of 100 times 0.1
        assert number in text


def test_meaning_shows_posterior_and_power() -> None:
    text = _text(terminal.meanings(background.meanings()))
    for number in ("73.11 %", "13.59 %", "95.26 %", "95.27 %", "52.50 %", "5.53 %"):
        assert number in text


def test_noisy_counts_come_with_their_intervals(bits: SeededBits) -> None:
    text = _text(terminal.counts(background.counts(bits)))
    assert "DiscreteLaplace(20, 1)" in text
    assert text.count(" to ") == 4


@pytest.mark.parametrize(("epsilon", "belief"), [(0.1, 0.5250), (1.0, 0.7311), (3.0, 0.9526), (8.0, 0.9997)])
def test_posterior(epsilon: float, belief: float) -> None:
    assert background.posterior(epsilon) == pytest.approx(belief, abs=5e-5)
