"""A steward's week, played from an empty folder: the transcript is kept beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import week


@pytest.mark.ci
def test_the_week_is_as_it_was_written(tmp_path: Path) -> None:
    """Play it again with ``python -m tests.cli.week`` if a command says something else on purpose."""
    assert list(week.played(tmp_path.resolve())) == week.TRANSCRIPT.read_text(encoding="utf-8").splitlines()


def test_the_transcript_shows_how_each_command_ended() -> None:
    text = week.TRANSCRIPT.read_text(encoding="utf-8")
    typed = [" ".join(step) for _, steps in week.WEEK for step in steps if isinstance(step, list)]
    assert [line.removeprefix("$ discreet ") for line in text.splitlines() if line.startswith("$")] == typed
    codes = [int(line[1]) for line in text.splitlines() if line in ("[0]", "[2]", "[3]", "[4]", "[5]")]
    assert [code for code in codes if code] == [2, 4, 3, 5, 5, 5]
    assert (len(codes), codes[-1]) == (len(typed), 0)
    assert "Account 'patients': for the missing entries, epsilon=0.2 counts as spent." in text
    assert text.count("spent 38.34 %") == 1  # 0.95 of the copy, and what the anchor knew beyond it
