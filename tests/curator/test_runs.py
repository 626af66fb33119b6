"""Between a charge and its storage nothing that was drawn is told, and a charge is run three times at most."""

from __future__ import annotations

import ast
import inspect
import json
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet.curator
from discreet.curator import Curator, paid_release
from discreet.curator.paid_release import AGAIN, LOST, STAYS, USED_UP
from discreet.engines import Memory
from discreet.errors import LedgerError, QueryFailed, RunsUsedUp
from discreet.ledger import AnchoredLedger, Ledger, restore, restore_anchored
from discreet.ledger.outcomes import MOST_RUNS
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.privacy import Budget, PureDP
from discreet.progress import stage
from discreet.synthetic.measurement_log import MeasurementLog
from tests.curator.paid_verbs import CHARGES, LIMITS, RESUMED, SPENDS_NOTHING, VERBS, Outside, PaidVerb, hospital

pytestmark = pytest.mark.usefixtures("ctrl_c")

BY_NAME = {verb.name: verb for verb in VERBS}
SLOW = {"fit a network", "fit a search"}
CASES = [
    pytest.param(verb, method, id=f"{verb}-{method}", marks=[pytest.mark.slow] if verb.name in SLOW else [])
    for verb in VERBS
    for method in ("store_answer", *(["store_beside"] if verb.beside else []))
]


@contextmanager
def stopped_at(method: str, outside: Outside) -> Iterator[None]:
    """Has Ctrl-C come when all that a run draws was drawn, and nothing of it is stored."""

    kept = {name: getattr(Ledger, name) for name in ("store_answer", "store_beside")}

    def storing(name: str) -> Callable[..., Any]:
        def store(ledger: Ledger, receipt: Any, replay_key: str, payload: Any, **how: Any) -> Any:
            outside.drawn.append(payload)
            if name == method and ("batch" not in json.loads(payload) or name == "store_answer"):
                outside.seen.append("STORE")
                raise KeyboardInterrupt
            return kept[name](ledger, receipt, replay_key, payload, **how)  # how a batch is laid out draws nothing

        return store

    with pytest.MonkeyPatch.context() as patch:
        for name in kept:
            patch.setattr(Ledger, name, storing(name))
        yield


@contextmanager
def logged(outside: Outside) -> Iterator[None]:
    """Hears all loggers, at all levels, and all warnings."""
    handler = logging.Handler()
    handler.emit = lambda record: outside.seen.append(f"log: {record.getMessage()}")  # type: ignore[method-assign]
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            yield
        outside.seen += [f"warning: {one.message}" for one in told]
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def run_stopped(verb: PaidVerb, curator: Curator, outside: Outside, method: str = "store_answer") -> None:
    with stopped_at(method, outside), logged(outside):
        try:
            verb.call(curator, key="k", progress=outside.hear)
        except KeyboardInterrupt as error:
            outside.caught(error)
        else:
            pytest.fail("nothing was stored")


def left(verb: PaidVerb, method: str, seed: int) -> Outside:
    """All that leaves a run that is stopped when everything was drawn."""
    outside = Outside()
    with hospital(seed=seed, seen=outside.seen) as curator:
        run_stopped(verb, curator, outside, method)
    return outside


def between(seen: list[str]) -> list[str]:
    """What was seen from the first read on until something would have been stored."""
    return seen[seen.index("READ") : seen.index("STORE")]


def check_nothing_drawn_is_told(verb: PaidVerb, method: str = "store_answer") -> tuple[Outside, Outside]:
    """Compares two runs with different draws, and returns what left them."""
    first, second = (left(verb, method, seed) for seed in (1, 2))
    assert first.seen == second.seen
    assert set(between(first.seen)) == {"READ"}  # so that no time of a stage tells how long a draw took
    return first, second


# ------------------------------------------------------------------------------------------------ what is told of a run


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("verb", "method"), CASES)
def test_what_is_told_of_a_stopped_run_does_not_depend_on_its_draws(
    verb: PaidVerb, method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = check_nothing_drawn_is_told(verb, method)
    assert first.drawn != second.drawn
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["ask", "ask_many", "profile", "fit", "synthesize by mst"])
def test_frames_of_a_stop_hold_nothing_that_was_drawn(name: str) -> None:
    """Error reporters print the variables of frames."""
    outside = Outside()
    with hospital() as curator, stopped_at("store_answer", outside), pytest.raises(KeyboardInterrupt) as caught:
        BY_NAME[name].call(curator, key="k")
    found = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    named = {name: value for frame in found.stack for name, value in (frame.locals or {}).items()}
    drawn = outside.drawn[-1]
    assert not named.keys() & {"new", "payload", "outcome", "model", "result"}
    assert not any(len(value) > 30 and value.strip("'\"")[:30] in str(drawn) for value in named.values())
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)


def test_a_failure_after_a_draw_says_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a draw leads to may fail; why is not told, nor by frames."""

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("ward and age were chosen")

    monkeypatch.setattr("discreet.synthetic.aim._Rounds.refit", fails)
    seen = []
    for name in ("synthesize by aim", "synthesize within bins"):
        with hospital() as curator, pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is, it is looked at
            BY_NAME[name].call(curator, key="k")
        found = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        seen.append("".join(found.format()))
        assert str(caught.value) == "The question could not be answered. Its charge stays; ask the steward."
    assert not any("were chosen" in text or "ValueError" in text for text in seen)


def test_numerical_warnings_of_a_run_are_not_given() -> None:
    class Warns(Memory):
        def read(self, reading: Reading) -> ExactGroups:
            np.array([1.0]) / np.array([0.0])
            return super().read(reading)

    curator = Curator.for_tests(engine=Warns(), bits=SeededBits(1))
    curator.protect([{"x": 1}], name="t", types={"x": "int"}, budget=Budget(epsilon=10))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    assert told == []


# ------------------------------------------------------------------------------------------------------- how many runs


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "verb", [pytest.param(verb, id=str(verb), marks=[pytest.mark.slow] if verb.name in SLOW else []) for verb in VERBS]
)
def test_a_charge_is_run_three_times_and_the_fourth_is_refused(verb: PaidVerb) -> None:
    outside = Outside()
    with hospital(seen=outside.seen) as curator:
        for run in range(MOST_RUNS):
            run_stopped(verb, curator, outside)
            assert outside.seen[-1].startswith("frame: ")
            assert (USED_UP in outside.seen, AGAIN in outside.seen) == (run == MOST_RUNS - 1, True)
        spent, entries = curator.budget("patients").spent, len(curator.entries())
        outside.seen.clear()
        with pytest.raises(RunsUsedUp) as refused:
            verb.call(curator, key="k", progress=outside.hear)
        assert refused.value.runs == MOST_RUNS
        assert refused.value.sequence == next(entry.sequence for entry in curator.entries() if entry.kind == "charge")
        assert "The charge stays" in str(refused.value)
        assert "new key" in str(refused.value)
        assert "READ" not in outside.seen
        assert (curator.budget("patients").spent, len(curator.entries())) == (spent, entries)
        assert curator.budget("patients").failures == 0
        verb.call(curator, key="another")
        is_kept = verb.name == "ask_many"  # whose releases are stored one by one, and are asked for again for nothing
        assert (curator.budget("patients").spent == spent) is is_kept  # else a new key is a new charge
        curator.verify()


@pytest.mark.ci
def test_sixty_stops_are_three_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one charge there are three draws, however often it is asked for again, also by a new process."""
    verb, choose, chosen = BY_NAME["synthesize by mst"], MeasurementLog.choose, list[int]()

    def counted(log: MeasurementLog, *given: Any, **how: Any) -> int:
        chosen.append(choose(log, *given, **how))
        return chosen[-1]

    monkeypatch.setattr(MeasurementLog, "choose", counted)
    outside = Outside()
    with hospital() as curator:
        for _ in range(60):
            with stopped_at("store_answer", outside), pytest.raises((KeyboardInterrupt, RunsUsedUp)):
                verb.call(curator, key="k", progress=outside.hear)
        charges = [entry for entry in curator.entries() if entry.kind == "charge"]
    assert (len(outside.drawn), len(chosen), len(charges)) == (MOST_RUNS, 2 * MOST_RUNS, 1)


def test_the_count_survives_another_process_and_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paid_release, "WAIT", 0.0)
    verb, ledger = BY_NAME["ask"], str(tmp_path / "book")
    for _ in range(MOST_RUNS):
        with hospital(ledger) as curator:
            run_stopped(verb, curator, Outside())
    with hospital(ledger) as curator:
        curator._ledger.backup(str(tmp_path / "copy"))
    for place in (ledger, str(tmp_path / "copy")):
        with hospital(place) as curator, pytest.raises(RunsUsedUp):
            verb.call(curator, key="k")


def test_an_answer_is_given_however_often_it_was_run() -> None:
    verb = BY_NAME["ask"]
    with hospital() as curator:
        for _ in range(MOST_RUNS - 1):
            run_stopped(verb, curator, Outside())
        answer = verb.call(curator, key="k")
        for _ in range(5):
            again = verb.call(curator, key="k")
            assert (again.records, again.replayed) == (answer.records, True)


def test_a_failure_ends_a_charge_whatever_runs_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    verb = BY_NAME["profile"]
    with hospital() as curator:
        run_stopped(verb, curator, Outside())
        with monkeypatch.context() as patch:
            patch.setattr(Memory, "read", lambda *_: 1 / 0)
            with pytest.raises(QueryFailed):
                verb.call(curator, key="k")
        with pytest.raises(QueryFailed):
            verb.call(curator, key="k")
        assert curator.budget("patients").failures == 1


def test_without_a_key_nothing_is_run_again() -> None:
    verb, outside = BY_NAME["ask"], Outside()
    with hospital() as curator:
        for _ in range(MOST_RUNS + 2):
            with stopped_at("store_answer", outside), pytest.raises(KeyboardInterrupt) as caught:
                verb.call(curator, key=None)
            assert caught.value.__notes__ == [STAYS, LOST]
        assert sum(entry.kind == "charge" for entry in curator.entries()) == MOST_RUNS + 2


def test_a_stream_is_resumed_as_often_as_it_is_opened(tmp_path: Path) -> None:
    question = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
    answers = []
    for _ in range(MOST_RUNS + 3):
        with hospital(str(tmp_path / "book")) as curator:
            stream = curator.stream(question, every="day", horizon=9, start="2026-01-01", epsilon=1, periods=2)
            answers.append(stream.release())
            charges = [entry for entry in curator.entries() if entry.kind == "charge" and entry.price]
    assert len(answers) == MOST_RUNS + 3
    assert sum("beside" not in entry.content for entry in charges) == 1


def test_an_exit_is_noted_as_a_stop() -> None:
    """SIGTERM, as many programs handle it, raises SystemExit."""
    verb = BY_NAME["ask"]
    with hospital() as curator:

        def leave(*_: Any, **__: Any) -> None:
            raise SystemExit(3)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Ledger, "store_answer", leave)
            with pytest.raises(SystemExit) as caught:
                verb.call(curator, key="k")
        assert caught.value.__notes__ == [STAYS, AGAIN]
        assert [entry.kind for entry in curator.entries()][-2:] == ["charge", "interrupt"]
        assert not verb.call(curator, key="k").replayed  # at once: nobody is waited for


def test_what_was_open_in_a_restored_copy_is_not_run(tmp_path: Path) -> None:
    """It may have been answered in the ledger that was lost, also where nothing was spent in between."""
    anchor, copy, again = (str(tmp_path / name) for name in ("anchor", "copy", "again"))
    verb = BY_NAME["ask"]
    ledger = AnchoredLedger(str(tmp_path / "book"), anchor_file=anchor)
    with hospital(ledger) as curator:
        run_stopped(verb, curator, Outside())
        ledger.keep_anchor(backup=ledger.backup(copy))
        assert not verb.call(curator, key="k").replayed
    restored = restore_anchored(copy, again, anchor_file=anchor, accept_loss=True)
    assert (restored.missing, restored.lost) == (2, {})
    with hospital(AnchoredLedger(again, anchor_file=anchor)) as curator:
        with pytest.raises(LedgerError, match="restored from a copy"):
            verb.call(curator, key="k")
        assert curator.budget("patients").spent == PureDP(1)
        verb.call(curator, key="another")
        assert curator.budget("patients").spent == PureDP(2)
        curator.verify()


def test_what_was_open_when_a_ledger_was_frozen_is_not_run(tmp_path: Path) -> None:
    copy, verb = str(tmp_path / "copy"), BY_NAME["ask"]
    with hospital(str(tmp_path / "book")) as curator:
        run_stopped(verb, curator, Outside())
        curator._ledger.backup(copy)
        verb.call(curator, key="k")
        head = curator._ledger.head()
    with restore(copy, str(tmp_path / "again"), anchor=head) as ledger:
        assert ledger.is_frozen
        ledger.resume()
    with hospital(str(tmp_path / "again")) as curator, pytest.raises(LedgerError, match="restored from a copy"):
        verb.call(curator, key="k")


# ------------------------------------------------------------------------------------------------------------ the list


CHARGING = {"charge", "charge_all", "claim", "reopen"}


def charging(path: Path) -> Iterator[str]:
    """The functions of a file that charge, or have something released for a charge, as Class.function."""
    tree = ast.parse(path.read_text())
    classes = [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]
    scopes: list[ast.Module | ast.ClassDef] = [tree, *classes]
    for node in scopes:
        for function in node.body:
            if isinstance(function, ast.FunctionDef) and any(map(_charges, ast.walk(function))):
                yield f"{node.name}.{function.name}" if isinstance(node, ast.ClassDef) else function.name


def _charges(node: ast.AST) -> bool:
    call = node.func if isinstance(node, ast.Call) else None
    if isinstance(call, ast.Name):
        return call.id in ("charge_request", "release_once")
    return isinstance(call, ast.Attribute) and call.attr in CHARGING and _is_ledger(call)


def _is_ledger(call: ast.Attribute) -> bool:
    value = call.value
    return (isinstance(value, ast.Name) and value.id == "ledger") or (
        isinstance(value, ast.Attribute) and value.attr in ("_ledger", "ledger")
    )


@pytest.mark.ci
def test_every_place_that_charges_is_listed() -> None:
    """Whoever adds a verb adds it to `VERBS`, and every test of this file runs on it."""
    root = Path(next(iter(discreet.curator.__path__)))
    found = {site for path in root.rglob("*.py") for site in charging(path)}
    assert found == {verb.site for verb in VERBS} | RESUMED | CHARGES | LIMITS | SPENDS_NOTHING


def test_every_method_with_a_key_is_listed() -> None:
    def has_key(method: Callable[..., Any]) -> bool:
        return "key" in inspect.signature(method).parameters

    public = {name for name, method in inspect.getmembers(Curator, inspect.isfunction) if not name.startswith("_")}
    asked = {name for name in public if has_key(getattr(Curator, name))}
    assert asked == {verb.name.split(" ")[0] for verb in VERBS}


# ------------------------------------------------------------------------------------------------------------ mistakes


def test_mutant_a_stage_names_what_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator tells the pair that it chose, and the run is not hushed."""
    marginal = MeasurementLog.marginal

    def told(log: MeasurementLog, rows: Any, attributes: Any, **how: Any) -> Any:
        stage(f"Measuring {' and '.join(attributes)}")
        return marginal(log, rows, attributes, **how)

    with monkeypatch.context() as patch:
        patch.setattr(MeasurementLog, "marginal", told)
        check_nothing_drawn_is_told(BY_NAME["synthesize by aim"])  # a run tells nothing, whatever code inside says
        patch.setattr(paid_release, "sealed_stage", lambda _: nullcontext())
        with pytest.raises(AssertionError):
            check_nothing_drawn_is_told(BY_NAME["synthesize by aim"])


def test_mutant_runs_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    test = test_a_charge_is_run_three_times_and_the_fourth_is_refused
    monkeypatch.setattr("discreet.ledger.outcomes.MOST_RUNS", 10**9)
    with pytest.raises(pytest.fail.Exception):
        test(BY_NAME["ask"])
