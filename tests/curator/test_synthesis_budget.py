"""What a synthetic table costs: the planned event is charged before anything is read or drawn, and draws add up to it.

Whoever is killed in between has lost a charge and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from discreet import accounting
from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.curator import Curator, paid_release
from discreet.errors import InsufficientBudget, QueryFailed
from discreet.ledger import Ledger
from discreet.ledger.tallies import prices
from discreet.noise import Bits, SeededBits
from discreet.privacy import Budget, Loss, Neighbours
from discreet.privacy.events import Calibrated, Composed, Concentrated
from discreet.synthetic import measurement_log, mst
from tests.curator import synthesis_nursery as nursery
from tests.curator.clinic import visits
from tests.curator.spies import OPTIONS, Spy
from tests.curator.synthesis_cases import GENERATORS, charged_in, drawn, priced_in, rho_of

ROOT = Path(__file__).parents[2]
ROWS = "SELECT ward, age, charge FROM visits"
APPROXIMATE, CONCENTRATED = Budget(epsilon=20, delta=1e-6), Budget(rho=20)
ALMOST = 1 - Fraction(1, 10**12)


class Counted(SeededBits):
    """Counts how often it is asked."""

    drawn = 0

    def fill(self, array: NDArray[Any]) -> None:
        self.drawn += 1
        super().fill(array)

    def lanes(self, count: int) -> list[int]:
        self.drawn += 1
        return super().lanes(count)


def clinic(
    budget: Loss, engine: Spy, *, ledger: str = ":memory:", bits: Bits | None = None, **declared: Any
) -> Curator:
    curator = Curator.for_tests(ledger, engine=engine, bits=bits or SeededBits(11))
    curator.protect(visits(3, patients=60), name="visits", budget=budget, **(OPTIONS | declared))
    return curator


# ------------------------------------------------------------------------------------------------------------ identity


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("relation", list(Neighbours), ids=lambda one: str(one.value))
def test_the_charge_is_the_event_and_draws_add_up_to_it(name: str, relation: Neighbours) -> None:
    """To the last digit where releases are known in advance, and to 1e-12 of their sum, which is rounded for each."""
    for budget, limit in ((APPROXIMATE, 1), (CONCENTRATED, 3)):
        curator = clinic(budget, Spy(), neighbours=relation)
        how: dict[str, Any] = {"epsilon": 2, "delta": 1e-8, "generator": name, "bins": 3, "rows_per_unit": limit}
        plan = curator.plan_synthesize(ROWS, **how)
        recorder = MechanismRecorder(SeededBits(3))
        with watch_mechanisms(recorder):
            found = curator.synthesize(ROWS, **how)
        (charged,) = charged_in(curator)
        assert charged == plan.event == found.event == found.model.event
        releases = [handed.mechanism.event for handed in recorder.made]
        if isinstance(charged, Composed):
            assert list(charged.events) == releases
        else:
            assert charged == Concentrated(found.model.rho)
        assert ALMOST * rho_of(charged) < drawn(recorder.made) <= rho_of(charged)
        assert len(releases) == len(found.model.charges)
        assert sum(rho for _, rho in found.model.charges) == found.model.rho
        (priced,) = priced_in(curator)
        assert isinstance(priced, Calibrated)
        assert (priced.epsilon, priced.delta) == (Fraction(2), Fraction(1, 10**8))
        assert (
            found.cost.details == prices(priced, budget, relation).spent_under(budget) == curator.budget("visits").spent
        )
        assert 1.8 < accounting.epsilon(charged, 1e-8) <= 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", GENERATORS)
def test_another_table_is_another_charge_until_there_is_nothing_left(name: str) -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=2, delta=1e-6), spy)
    bought = 0
    with suppress(InsufficientBudget):
        while bought < 20:
            curator.synthesize(ROWS, epsilon=1, delta=1e-7, generator=name, bins=bought + 1)
            bought += 1
    assert 1 <= bought < 20
    assert (spy.reads, len(charged_in(curator))) == (bought, bought)
    total = Composed(charged_in(curator))
    assert accounting.epsilon(total, 1e-6) <= 2


# ---------------------------------------------------------------------------------------------------------- the order


@pytest.mark.parametrize("name", GENERATORS)
def test_before_a_row_is_read_the_whole_charge_is_on_disk_and_nothing_was_drawn(name: str, tmp_path: Path) -> None:
    spy, bits, path = Spy(), Counted(11), tmp_path / "book"
    curator = clinic(APPROXIMATE, spy, ledger=str(path), bits=bits)
    event = curator.plan_synthesize(ROWS, epsilon=1, generator=name).event
    seen: list[Any] = []

    def look() -> None:
        with Ledger(str(path)) as ledger:
            charges = [entry for entry in ledger.history() if entry.kind == "charge"]
            seen.append((bits.drawn, len(charges), ledger.verify().sequence == charges[-1].sequence))

    spy.before, before = look, bits.drawn
    curator.synthesize(ROWS, epsilon=1, generator=name)
    assert seen == [(before, 1, True)]
    assert charged_in(curator) == [event]
    assert bits.drawn > before


@pytest.mark.parametrize("name", GENERATORS)
def test_what_cannot_be_paid_is_neither_read_nor_drawn(name: str) -> None:
    spy, bits = Spy(), Counted(11)
    curator = clinic(Budget(epsilon=1, delta=1e-6), spy, bits=bits)
    before = bits.drawn
    with pytest.raises(InsufficientBudget):
        curator.synthesize(ROWS, epsilon=3, generator=name)
    assert (spy.reads, bits.drawn, charged_in(curator)) == (0, before, [])


# -------------------------------------------------------------------------------------------------------------- killed


def run(*arguments: object) -> dict[str, str]:
    """What makers of a nursery made: a digest for each key."""
    command = [sys.executable, "-m", "tests.curator.synthesis_nursery", *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1200, cwd=ROOT)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {word for word, *_ in lines} <= {"made"}
    return {key: digest for _, key, digest in lines}


@pytest.mark.ci
@pytest.mark.parametrize("where", ["read", pytest.param("fit", marks=pytest.mark.slow)])
def test_a_kill_loses_the_charge_and_nothing_else(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The charge is in the ledger. The same key makes the table for it, once; another key pays again, and says so."""
    monkeypatch.setattr(paid_release, "WAIT", 0.0)
    path = str(tmp_path / "book")
    assert run(where, path) == {}
    with nursery.curator(path) as curator:
        entries = curator.entries()
        assert [entry.key for entry in entries if entry.kind == "charge"] == [f"{name}-1" for name in GENERATORS]
        assert not [entry for entry in entries if entry.kind in ("answer", "fail")]
        assert not curator.plan_synthesize("people", epsilon=1, generator="mst").free  # it is paid again without a key
        spent = curator.budget("people").spent
        for name in GENERATORS:
            first = nursery.made(curator, f"{name}-1")
            assert (first.replayed, first.private) == (False, True)
            assert curator.budget("people").spent == spent
            again = nursery.made(curator, f"{name}-1")
            assert again.replayed
            assert nursery.digest(again) == nursery.digest(first)
            assert nursery.digest(nursery.made(curator, f"{name}-2")) == nursery.digest(first)  # it is stored by now
        assert (len(charged_in(curator)), curator.budget("people").spent) == (len(GENERATORS), spent)
        curator.verify()


@pytest.mark.slow
@pytest.mark.parametrize("by", [1, 5])
def test_a_kill_at_each_step_is_charged_once_and_made_once(
    by: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process dies at a statement of SQL, the next one asks with the same key; later and later until none dies."""
    monkeypatch.setattr(paid_release, "WAIT", 0.0)
    path = str(tmp_path / "book")
    found = run("steps", path, by)
    assert len(found) > 1
    with nursery.curator(path) as curator:
        head, entries = curator.verify(), curator.entries()
        charges = {entry.key for entry in entries if entry.kind == "charge"}
        answers = [entry.about for entry in entries if entry.kind == "answer"]
        assert charges <= set(found)  # those after the first find it stored
        assert len(charges) == len(charged_in(curator)) == len(answers) == len(set(answers))
        for key, digest in found.items():
            assert nursery.digest(nursery.made(curator, key)) == digest
        assert curator.verify() == head


# ------------------------------------------------------------------------------------------------------ other versions


def stopped(path: str) -> None:
    """A charge of one version whose process ended before it read."""

    def stop() -> None:
        raise KeyboardInterrupt

    spy = Spy()
    spy.before = stop
    with clinic(APPROXIMATE, spy, ledger=path) as curator, pytest.raises(KeyboardInterrupt):
        curator.synthesize(ROWS, epsilon=1, generator="mst", key="k")


def times(monkeypatch: pytest.MonkeyPatch, factor: Fraction) -> None:
    """Another version, which spends another part of the budget that was asked for."""
    honest = measurement_log.concentrated_budget
    monkeypatch.setattr(mst, "concentrated_budget", lambda *terms: factor * honest(*terms))


def test_a_stopped_table_that_costs_more_than_its_charge_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, spy = str(tmp_path / "book"), Spy()
    stopped(path)
    times(monkeypatch, Fraction(3, 2))
    with clinic(APPROXIMATE, spy, ledger=path) as curator:
        with pytest.raises(QueryFailed):
            curator.synthesize(ROWS, epsilon=1, generator="mst", key="k")
        assert (spy.reads, len(charged_in(curator))) == (0, 1)


def test_a_stopped_table_that_costs_less_than_its_charge_is_made_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, spy = str(tmp_path / "book"), Spy()
    stopped(path)
    times(monkeypatch, Fraction(1, 2))
    recorder = MechanismRecorder(SeededBits(3))
    with clinic(APPROXIMATE, spy, ledger=path) as curator:
        spent = curator.balance("visits").spent
        with watch_mechanisms(recorder):
            found = curator.synthesize(ROWS, epsilon=1, generator="mst", key="k")
        (charged,) = charged_in(curator)
        assert curator.balance("visits").spent == spent
        assert drawn(recorder.made) <= rho_of(found.event) <= rho_of(charged) * Fraction(51, 100)


def test_a_stored_table_is_free_also_for_a_version_that_would_release_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, spy = str(tmp_path / "book"), Spy()
    with clinic(APPROXIMATE, spy, ledger=path) as curator:
        first = curator.synthesize(ROWS, epsilon=1, generator="mst")
    times(monkeypatch, Fraction(3, 2))
    with clinic(APPROXIMATE, spy, ledger=path) as curator:
        again = curator.synthesize(ROWS, epsilon=1, generator="mst")
        assert again.table.equals(first.table)
        assert (again.replayed, again.event, spy.reads) == (True, first.event, 1)
        assert len(charged_in(curator)) == 1
