"""Many at once and many killed: never more answers than charges, never a charge that was promised and is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.privacy import Budget
from tests.ledger.crowds import check, run
from tests.ledger.ledgers import TENTH, opened


@pytest.mark.ci
@pytest.mark.parametrize(
    ("processes", "threads", "cap"),
    [(3, 4, 100), pytest.param(8, 64, 500, marks=pytest.mark.slow)],
)
def test_spending_at_once_answers_exactly_what_the_budget_allows(
    tmp_path: Path, processes: int, threads: int, cap: int
) -> None:  # RT-059
    path = tmp_path / "book"
    opened(path, Budget(epsilon=f"{cap}/10")).close()
    lines = run("crowd", path, processes, threads)
    assert check(path, lines, cap) == cap
    assert sum(line[0] == "answered" for line in lines) == cap


def killed(path: Path, runs: int, seed: int) -> None:
    opened(path, Budget(epsilon=10**6)).close()
    lines = run("killed", path, runs, seed)
    assert check(path, lines, 10**7) > runs / 10  # enough of them came far enough
    with Ledger(str(path)) as ledger:  # nothing needs repairing
        assert not ledger.charge("patients", TENTH).repeated


@pytest.mark.ci
def test_kills_lose_nothing_that_was_promised(tmp_path: Path) -> None:  # RT-060
    killed(tmp_path / "book", 50, seed=1)


@pytest.mark.slow
def test_a_thousand_kills_lose_nothing_that_was_promised(tmp_path: Path) -> None:
    killed(tmp_path / "book", 1000, seed=2)
