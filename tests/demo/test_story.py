"""The demo tells the truth: its numbers are those of the theory."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from discreet.demo import clinic, questions, story


def _text(table: Table) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_composition_shows_the_four_accountants() -> None:
    text = _text(story.composition())
    for number in ("10.0000", "5.2215", "4.7746", "4.6927"):  # basic, zCDP, optimal, Laplace PLD of 100 times 0.1
        assert number in text


def test_meaning_shows_posterior_and_power() -> None:
    text = _text(story.meaning())
    for number in ("73.11 %", "13.59 %", "95.26 %", "95.27 %", "52.50 %", "5.53 %"):
        assert number in text


def test_noisy_counts_come_with_their_intervals() -> None:
    text = _text(story.noisy_count())
    assert "DiscreteLaplace(20, 1)" in text
    assert text.count(" to ") == 4


@pytest.mark.parametrize(("epsilon", "belief"), [(0.1, 0.5250), (1.0, 0.7311), (3.0, 0.9526), (8.0, 0.9997)])
def test_posterior(epsilon: float, belief: float) -> None:
    assert story.posterior(epsilon) == pytest.approx(belief, abs=5e-5)


def test_the_whole_story_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    story.tell(Console(width=120))
    printed = capsys.readouterr().out
    assert "1. A count" in printed
    assert "3. What an epsilon means" in printed
    assert "free: replayed" in printed
    assert "48,750, exactly" in printed
    assert "The charge needs epsilon=1" in printed


def test_the_rich_patient_is_the_one_the_attack_leaves_out() -> None:
    rows = clinic.visits()
    assert f"<> {clinic.RICH_PATIENT}" in questions.WITHOUT
    assert [row.charge for row in rows if row.patient == clinic.RICH_PATIENT] == [clinic.RICH_CHARGE]
    assert rows == clinic.visits()
