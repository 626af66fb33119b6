"""A ledger of an earlier version goes on: it verifies, its answers are given again, its keys are charged once.

How the ledger was made is told, and can be read, in `tests.curator.old_book`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet import Curator
from discreet.curator.training.training_plan import TrainingPlan
from discreet.errors import AnchorMissing, InsufficientBudget, KeyConflict, LedgerError, NotPermitted, QueryFailed
from discreet.ledger import Head, Ledger
from discreet.noise import SeededBits
from discreet.privacy import Budget, events
from tests.curator import old_ledger
from tests.curator.old_ledger import ANSWERED, EARLIER, FAILED, FIT, STOPPED, STOPPED_FIT, VANISHED, Asked, Hooked

EXPECTED: dict[str, Any] = json.loads(re.sub(r"(?<![\w.])-0\.0(?!\d)", "0.0", old_ledger.TOLD.read_text()))
"""What was told then; a zero had a sign where it has none today."""

KEYED = [(asked, rows) for asked, rows in zip(ANSWERED, EXPECTED["answers"], strict=True) if "key" in asked.options]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The ledger, in a file of its own."""
    found = tmp_path / "book"
    found.write_bytes(gzip.decompress(old_ledger.BOOK.read_bytes()))
    return found


@pytest.fixture
def engine() -> Hooked:
    return Hooked()


@pytest.fixture
def curator(path: Path, engine: Hooked) -> Iterator[Curator]:
    with Curator(path, engine=engine, anchor="") as found:  # every test has a copy of the same ledger
        old_ledger.declare(found)
        engine.reads = 0
        yield found


def charges(curator: Curator) -> int:
    return sum(entry.kind == "charge" for entry in curator.entries())


def with_key(asked: Asked, key: str) -> Asked:
    return replace(asked, options={**asked.options, "key": key})


def test_the_ledger_verifies_and_holds_what_it_held(path: Path, curator: Curator) -> None:
    assert str(curator.verify()) == EXPECTED["head"]
    assert {name: str(curator.balance(name).spent) for name in curator.accounts()} == EXPECTED["spent"]
    assert {name: str(curator.balance(name).lifetime) for name in curator.accounts()} == EXPECTED["lifetime"]
    assert str(curator.analyst_cap("ana", account="patients")) == "epsilon=5, delta=0.0001"
    assert str(curator.project_cap("prices", account="shop")) == "rho=20"
    assert str(curator.budget("survey").total) == "epsilon=50"
    with Ledger(str(path)) as ledger:
        ledger.check_anchor(Head.parse(EXPECTED["head"]))


def test_it_gets_an_anchor_by_one_entry(path: Path, tmp_path: Path, engine: Hooked) -> None:
    for _ in range(2):
        with Curator(path, engine=engine, anchor=tmp_path / "anchor") as curator:
            old_ledger.declare(curator)
            assert {name: str(curator.balance(name).spent) for name in curator.accounts()} == EXPECTED["spent"]
            before, marked = curator.entries()[-2:]
            assert f"{before.sequence}:{before.hash}" == EXPECTED["head"]
            assert (marked.kind, marked.content["how"], curator.verify().sequence) == ("anchor", "marked", 114)
    (tmp_path / "anchor").unlink()
    with pytest.raises(AnchorMissing):
        Curator(path, anchor=tmp_path / "anchor")


@pytest.mark.ci
def test_every_answer_is_given_again_for_nothing(curator: Curator, engine: Hooked) -> None:
    """Also those with a key, and those that follow from others; nothing is read, and nothing is written.

    Joins of protected tables were answered from all of their rows, and are asked anew.
    """
    for asked, rows in zip(ANSWERED, EXPECTED["answers"], strict=True):
        if _joins_people(asked):
            continue
        again = asked.ask(curator)
        assert (old_ledger.told(again), again.replayed, again.private) == (rows, True, True), asked.sql
        assert again.cost.is_zero
    sql, options = FIT
    model = curator.fit(old_ledger.learner(), sql, **options)
    assert (old_ledger.model(model), model.replayed_) == (EXPECTED["fit"], True)
    assert engine.reads == 0
    assert str(curator.verify()) == EXPECTED["head"]


def _joins_people(asked: Asked) -> bool:
    return "JOIN stays" in asked.sql


def test_joins_from_before_are_answered_anew(curator: Curator, engine: Hooked) -> None:
    (joined,) = filter(_joins_people, ANSWERED)
    before = charges(curator)
    found = joined.ask(curator)
    assert not found.replayed
    assert (engine.reads, charges(curator)) == (1, before + 1)
    assert any("of each joined table" in note for note in found.notes)
    assert joined.ask(curator).replayed


def test_answers_without_their_keys_are_found_as_well(curator: Curator, engine: Hooked) -> None:
    for asked, _ in KEYED:
        options = {name: value for name, value in asked.options.items() if name != "key"}
        assert replace(asked, options=options).ask(curator).replayed, asked.sql
    sql, options = FIT
    assert curator.fit(old_ledger.learner(), sql, target="ward").replayed_
    assert engine.reads == 0


def test_private_answers_are_none_of_a_curator_for_tests(path: Path) -> None:
    with Curator.for_tests(path, engine=Hooked(), bits=SeededBits(1)) as curator:
        old_ledger.declare(curator)
        assert not ANSWERED[0].ask(curator).replayed


def test_a_key_with_another_question_is_a_conflict(curator: Curator) -> None:
    for asked in (*(asked for asked, _ in KEYED), *STOPPED, FAILED):
        table = asked.sql.split(" FROM ")[1].split()[0]
        options = {"epsilon": "1/7", "key": asked.options["key"], "analyst": asked.options.get("analyst", "owner")}
        with pytest.raises(KeyConflict):
            curator.ask(f"SELECT COUNT(*) AS n FROM {table}", **options)
    assert str(curator.verify()) == EXPECTED["head"]


def test_a_key_of_a_fit_is_a_conflict_with_another_one(curator: Curator) -> None:
    for _, options in (FIT, STOPPED_FIT):
        with pytest.raises(KeyConflict):
            curator.fit(old_ledger.learner(), "SELECT charge, ward FROM visits", **options)


def test_a_question_that_failed_has_failed(curator: Curator, engine: Hooked) -> None:
    for _ in range(2):
        with pytest.raises(QueryFailed):
            FAILED.ask(curator)
    assert engine.reads == 0
    assert curator.budget("visits").failures == 1
    assert str(curator.verify()) == EXPECTED["head"]


@pytest.mark.parametrize("asked", STOPPED, ids=lambda asked: asked.options["key"])
def test_a_question_that_was_stopped_is_claimed_and_answered_once(
    curator: Curator, engine: Hooked, asked: Asked
) -> None:
    """For what it was charged with then, whatever was found out since."""
    before, spent = charges(curator), {name: curator.balance(name).spent for name in curator.accounts()}
    answer = asked.ask(curator)
    assert (answer.replayed, engine.reads) == (False, 1)
    kinds = [entry.kind for entry in curator.entries()[int(EXPECTED["head"].split(":")[0]) :]]
    assert kinds == ["claim", "answer"]
    again = asked.ask(curator)
    assert (again.replayed, again.records, engine.reads) == (True, answer.records, 1)
    assert (charges(curator), {name: curator.balance(name).spent for name in curator.accounts()}) == (before, spent)
    curator.verify()


def test_an_old_charge_pays_for_no_more_than_it_was_made_for(curator: Curator, engine: Hooked) -> None:
    """Its digest does not tell the terms, so a larger epsilon is refused where it would be spent."""
    before = curator.balance("patients").spent
    for asked in STOPPED[:2]:
        with pytest.raises(QueryFailed):
            replace(asked, options={**asked.options, "epsilon": 3}).ask(curator)
    with pytest.raises(KeyConflict):
        replace(STOPPED[3], options={**STOPPED[3].options, "epsilon": 4}).ask(curator)
    assert (engine.reads, curator.balance("patients").spent) == (0, before)


def test_a_fit_that_was_stopped_is_claimed_and_fitted_once(curator: Curator, engine: Hooked) -> None:
    before = charges(curator)
    sql, options = STOPPED_FIT
    first = curator.fit(old_ledger.learner(), sql, **options)
    again = curator.fit(old_ledger.learner(), sql, **options)
    assert (first.replayed_, again.replayed_, engine.reads, charges(curator)) == (False, True, 1, before)
    assert old_ledger.model(first) == old_ledger.model(again)


def test_a_stopped_fit_that_costs_more_than_its_charge_reads_nothing(
    curator: Curator, engine: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version whose learner is dearer: the charge of another one does not pay for it."""
    monkeypatch.setattr(TrainingPlan, "charge", property(lambda _: events.Gaussian(1)))
    sql, options = STOPPED_FIT
    with pytest.raises(QueryFailed):
        curator.fit(old_ledger.learner(), sql, **options)
    assert engine.reads == 0


def test_a_charge_whose_process_has_died_can_be_claimed(
    curator: Curator, engine: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, before = Ledger.claim, charges(curator)
    monkeypatch.setattr(Ledger, "claim", lambda ledger, receipt, *, wait: claim(ledger, receipt, wait=0 * wait))
    answer = VANISHED.ask(curator)
    assert (answer.replayed, engine.reads, charges(curator)) == (False, 1, before)
    assert VANISHED.ask(curator).records == answer.records


def test_a_charge_of_an_earlier_period_is_not_claimed(curator: Curator, engine: Hooked) -> None:
    with pytest.raises(LedgerError, match="renewed"):
        EARLIER.ask(curator)
    assert engine.reads == 0


def test_those_who_were_appointed_are_still_held_to_it(curator: Curator) -> None:
    new = Asked(sql="SELECT COUNT(*) AS n FROM visits WHERE age = 50", options={"epsilon": 1})
    with pytest.raises(NotPermitted):
        replace(new, options={**new.options, "analyst": "eve"}).ask(curator)
    with pytest.raises(NotPermitted):
        replace(new, options={**new.options, "analyst": "somebody"}).ask(curator)
    with pytest.raises(InsufficientBudget):
        replace(new, options={"epsilon": 6, "analyst": "ana"}).ask(curator)
    assert not replace(new, options={**new.options, "analyst": "ana"}).ask(curator).replayed
    with pytest.raises(NotPermitted):
        curator.ask("SELECT COUNT(*) AS n FROM orders", epsilon=1, project="another")


def test_the_ledger_goes_on(curator: Curator) -> None:
    curator.amend("patients", budget=Budget(epsilon=70, delta="1e-3"))
    answer = with_key(Asked(sql="SELECT COUNT(*) AS n FROM visits WHERE age = 51", options={"epsilon": 1}), "new")
    assert not answer.ask(curator).replayed
    assert answer.ask(curator).replayed
    curator.verify()
