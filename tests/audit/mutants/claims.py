"""Mistakes with charges that are run again: what is shown, what is claimed, and what was spent before."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from discreet.curator import Answer, Curator
from discreet.curator import paid_release as module
from discreet.curator.measurement_plan import MeasurementPlan
from discreet.curator.paid_release import ChargedRelease
from discreet.engines import Memory
from discreet.errors import LedgerError, QueryFailed, RunsUsedUp
from discreet.ledger import Ledger, Receipt, charges, outcomes, restore
from discreet.measurement.probes.probes import SHARE
from discreet.noise import SeededBits
from discreet.privacy import Budget, events
from discreet.progress import stage
from discreet.synthetic.measurement_log import MeasurementLog
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.curator.spies import Spy

COUNT = "SELECT COUNT(*) AS n FROM people"
MEAN = "SELECT AVG(age) AS m FROM people"
ROWS = [{"age": 20 + i % 60} for i in range(400)]


def _people(ledger: str = ":memory:", *, engine: Memory | None = None, seed: int = 1) -> Curator:
    curator = Curator.for_tests(ledger, engine=engine or Memory(), bits=SeededBits(seed))
    curator.protect(ROWS, name="people", types={"age": "int"}, budget=Budget(epsilon=1000))
    return curator


def _stopped(sql: str, *, at: int, epsilon: int) -> Curator:
    """Returns a curator whose question was interrupted at one of its reads."""
    spy = Spy()
    curator = _people(engine=spy)

    def stop() -> None:
        if spy.reads == at:
            raise KeyboardInterrupt

    spy.before = stop
    with pytest.raises(KeyboardInterrupt):
        curator.ask(sql, epsilon=epsilon, key="k")
    spy.before = lambda: None
    return curator


def _overtaken(sql: str, *, epsilon: int) -> tuple[list[Answer], list[str]]:
    """Returns the answers and the entries of two curators: the second takes over the first's charge."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WAIT", 0.0)
        spy, ledger, answers = Spy(), str(Path(folder) / "ledger"), list[Answer]()
        with _people(ledger, engine=spy) as one, _people(ledger, seed=2) as other:

            def overtake() -> None:
                if spy.reads == 1:
                    answers.append(other.ask(sql, epsilon=epsilon, key="k"))

            spy.before = overtake
            answers.append(one.ask(sql, epsilon=epsilon, key="k"))
            entries = ["beside" if "beside" in entry.content else entry.kind for entry in one.entries()]
    return answers, entries


@catcher("the ledger after an answer")
def what_is_shown_is_what_is_stored() -> None:
    curator = _people()
    answer = curator.ask(COUNT, epsilon=1, key="k")
    assert [entry.kind for entry in curator.entries()][-2:] == ["charge", "answer"]
    assert curator.ask(COUNT, epsilon=1, key="k").records == answer.records


@catcher("two runs of one charge")
def two_runs_of_a_charge_have_one_answer() -> None:
    answers, entries = _overtaken(COUNT, epsilon=1)
    assert answers[0].records == answers[1].records
    assert (entries.count("charge"), entries.count("answer")) == (1, 1)


@catcher("two runs of one charge")
def two_runs_of_a_charge_have_one_probe() -> None:
    answers, entries = _overtaken(MEAN, epsilon=40)
    assert answers[0].records == answers[1].records
    assert entries.count("beside") == 1


@catcher("the ledger after Ctrl-C")
def a_charge_is_claimed_before_it_is_run_again() -> None:
    curator = _stopped(COUNT, at=1, epsilon=1)
    curator.ask(COUNT, epsilon=1, key="k")
    assert [entry.kind for entry in curator.entries()][-4:] == ["charge", "interrupt", "claim", "answer"]


@catcher("the ledger after Ctrl-C")
def what_probes_spent_is_not_spent_again() -> None:
    curator = _stopped(MEAN, at=2, epsilon=40)
    with suppress(QueryFailed):
        curator.ask(MEAN, epsilon=40, key="k")
    last = curator.entries()[-1]
    assert last.kind == "answer"
    (stored,) = curator._ledger.read_answers(last.content["replay_key"])
    assert Fraction(json.loads(stored.payload)["epsilon"]) <= 40 * (1 - SHARE)


@catcher("output of a stopped run")
def a_stopped_run_reveals_no_choice() -> None:
    stages = [_stages_of_a_stopped_synthesis(seed) for seed in range(4)]
    assert all(one == stages[0] for one in stages)


@catcher("output of a stopped run")
def a_charge_is_run_at_most_three_times() -> None:
    curator = _stopped(COUNT, at=1, epsilon=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "store_answer", _interrupted)
        for _ in range(5):
            with pytest.raises((KeyboardInterrupt, RunsUsedUp)):
                curator.ask(COUNT, epsilon=1, key="k")
    kinds = [entry.kind for entry in curator.entries()]
    assert (kinds.count("charge"), kinds.count("claim")) == (1, 2)


@catcher("the ledger after a restore")
def a_charge_of_a_restored_copy_is_not_run() -> None:
    with TemporaryDirectory() as folder:
        lost, copy, again = (str(Path(folder) / name) for name in ("lost", "copy", "again"))
        with _people(lost) as curator, pytest.MonkeyPatch.context() as patch:
            patch.setattr(Ledger, "store_answer", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                curator.ask(COUNT, epsilon=1, key="k")
            patch.undo()
            curator._ledger.backup(copy)
            curator.ask(COUNT, epsilon=1, key="k")  # an answer that the copy does not know
            head = curator._ledger.head()
        with restore(copy, again, anchor=head) as ledger:
            ledger.resume()
        with _people(again) as curator:
            with suppress(LedgerError):
                curator.ask(COUNT, epsilon=1, key="k")
            assert "claim" not in [entry.kind for entry in curator.entries()]


def _interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def _stages_of_a_stopped_synthesis(seed: int) -> list[str]:
    """Returns the stages of a synthesis that is stopped after all draws; its budget for choosing pairs is small."""
    stages: list[str] = []
    columns = {name: ["x", "y"] for name in "abcd"}
    rows = [{name: "xy"[(i >> place) % 2] for place, name in enumerate(columns)} for i in range(64)]
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(seed))
    types = dict.fromkeys(columns, "text")
    curator.protect(rows, name="t", types=types, keys=columns, budget=Budget(epsilon=10, delta=1e-6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "store_answer", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            curator.synthesize("t", epsilon="0.1", generator="mst", progress=stages.append)
    return stages


# ------------------------------------------------------------------------------------------------------------- mistakes
def _names_its_choices(patch: pytest.MonkeyPatch) -> None:
    right = MeasurementLog.marginal

    def marginal(log: MeasurementLog, rows: Any, attributes: Any, **how: Any) -> Any:
        stage(f"Measuring {' and '.join(attributes)}")
        return right(log, rows, attributes, **how)

    patch.setattr(MeasurementLog, "marginal", marginal)
    patch.setattr(module, "sealed_stage", lambda _name: nullcontext())


def _own(patch: pytest.MonkeyPatch) -> None:
    right = Ledger.store_answer

    def store_answer(ledger: Ledger, *arguments: Any, **more: Any) -> bool:
        right(ledger, *arguments, **more)
        return True

    patch.setattr(Ledger, "store_answer", store_answer)


def _every_probe(patch: pytest.MonkeyPatch) -> None:
    def store_beside(rows: Any, _receipt: Receipt, free: Any, replay_key: str, payload: bytes) -> bytes:
        (written,) = charges.charge(rows, free)
        outcomes.store_answer(rows, written, replay_key, payload)
        return payload

    patch.setattr(outcomes, "store_beside", store_beside)


def _forgetful(measurement: MeasurementPlan, _asked: Any, _event: events.Event) -> int:
    return len(measurement.missing)


MUTANTS = [
    Mutant(
        "shown before it is stored",
        "An answer is shown although the ledger does not have it.",
        setting(
            module.ChargeRun,
            "end",
            lambda run, made: ChargedRelease(run._ledger, run.receipt, made.payload.encode(), made.event),
        ),
        what_is_shown_is_what_is_stored,
    ),
    Mutant(
        "every run shows its own answer",
        "When two runs share one charge, the second shows its own draw and not the stored answer of the first.",
        _own,
        two_runs_of_a_charge_have_one_answer,
    ),
    Mutant(
        "every run releases its own bounds",
        "When two runs share one charge, each keeps the result of its own probes.",
        _every_probe,
        two_runs_of_a_charge_have_one_probe,
    ),
    Mutant(
        "run again without a claim",
        "A request that finds a charge without an answer reads the data at once.",
        setting(outcomes, "claim_run", lambda _journal, receipt, _wait: receipt._replace(repeated=False)),
        a_charge_is_claimed_before_it_is_run_again,
    ),
    Mutant(
        "probes that the question forgets",
        "A question that is run again forgets what its probes have spent, and spends its whole epsilon.",
        setting(MeasurementPlan, "probes_paid", _forgetful),
        what_probes_spent_is_not_spent_again,
    ),
    Mutant(
        "progress names what was chosen",
        "Progress names the pair of columns that was chosen privately, before anything is stored.",
        _names_its_choices,
        a_stopped_run_reveals_no_choice,
    ),
    Mutant(
        "runs without a limit",
        "A charge that is interrupted again and again draws new noise every time.",
        setting(outcomes, "MOST_RUNS", 10**9),
        a_charge_is_run_at_most_three_times,
    ),
    Mutant(
        "open charges of an old copy",
        "A charge that was open in a backup is run again, although the lost ledger may have answered it.",
        setting(outcomes, "_refuse_restored", lambda _rows, _charge: None),
        a_charge_of_a_restored_copy_is_not_run,
    ),
]
