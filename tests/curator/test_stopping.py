"""A question that is stopped: its charge stays, it is told so, and the same key has one answer however it goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from discreet.curator import Answer, Curator
from discreet.curator import paid_release as module
from discreet.curator.asking import answer as answer_module
from discreet.curator.paid_release import AGAIN, LOST, STAYS, STORED, UNKNOWN, costs_no_more
from discreet.errors import AccountLocked, LedgerError, NotPermitted, QueryFailed
from discreet.ledger import FAILURE_CREDITS, Ledger
from discreet.privacy import Budget, PureDP, events
from tests.curator.spies import COUNT, Broken, Spy, clinic, filtered
from tests.measurement.test_rounding import as_before

pytestmark = pytest.mark.usefixtures("ctrl_c")

ROOT = Path(__file__).parents[2]


def stop() -> None:
    raise KeyboardInterrupt


def kinds(curator: Curator) -> list[str]:
    return [entry.kind for entry in curator.history("visits") if entry.kind not in ("open", "attach")]


def stopped(spy: Spy, curator: Curator, key: str | None = "k") -> list[str]:
    """What is told to whoever stops a question while it reads."""
    spy.before = stop
    with pytest.raises(KeyboardInterrupt) as caught:
        curator.ask(COUNT, epsilon=0.25, key=key)
    spy.before = lambda: None
    assert type(caught.value) is KeyboardInterrupt
    return list(caught.value.__notes__)


# ------------------------------------------------------------------------------------------------------------- stopping


def test_a_stopped_question_stays_charged_and_is_answered_under_its_key() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    assert stopped(spy, curator) == [STAYS, AGAIN]
    answer = curator.ask(COUNT, epsilon=0.25, key="k")  # at once: nobody is waited for who is known to have stopped
    assert (answer.replayed, str(answer.cost.details), str(answer.remaining.loss)) == (
        False,
        "epsilon=0.25",
        "epsilon=0.75",
    )
    again = curator.ask(COUNT, epsilon=0.25, key="k")
    assert (again.records, again.replayed, spy.reads) == (answer.records, True, 2)
    assert kinds(curator) == ["charge", "interrupt", "claim", "answer"]
    balance = curator.budget("visits")
    assert (balance.spent, balance.failures) == (PureDP("0.25"), 0)
    curator.verify()


def test_a_question_may_be_stopped_twice_and_answered_then() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    for _ in range(2):
        assert stopped(spy, curator) == [STAYS, AGAIN]
    assert not curator.ask(COUNT, epsilon=0.25, key="k").replayed
    assert kinds(curator) == ["charge", "interrupt", "claim", "interrupt", "claim", "answer"]
    assert curator.budget("visits").spent == PureDP("0.25")
    curator.verify()


def test_without_a_key_nothing_ties_another_question_to_the_charge() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    assert stopped(spy, curator, key=None) == [STAYS, LOST]
    assert not curator.ask(COUNT, epsilon=0.25).replayed
    assert curator.budget("visits").spent == PureDP("0.5")


@pytest.mark.parametrize(("key", "notes"), [("k", [STAYS, AGAIN]), (None, [UNKNOWN])])
def test_stopped_while_the_charge_is_committed(
    monkeypatch: pytest.MonkeyPatch, key: str | None, notes: list[str]
) -> None:
    curator, charge = clinic(Budget(epsilon=1)), Ledger.charge_all

    def late(*arguments: object, **options: object) -> None:
        charge(*arguments, **options)  # type: ignore[arg-type]
        stop()

    monkeypatch.setattr(Ledger, "charge_all", late)
    with pytest.raises(KeyboardInterrupt) as caught:
        curator.ask(COUNT, epsilon=0.25, key=key)
    assert caught.value.__notes__ == notes
    monkeypatch.setattr(Ledger, "charge_all", charge)
    monkeypatch.setattr(module, "WAIT", 0.0)  # nobody noted that it was stopped
    assert not curator.ask(COUNT, epsilon=0.25, key=key).replayed
    assert curator.budget("visits").spent == PureDP("0.25" if key else "0.5")


def test_stopped_before_the_charge_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    curator = clinic(Budget(epsilon=1))
    monkeypatch.setattr(Ledger, "charge_all", lambda *_, **__: stop())
    with pytest.raises(KeyboardInterrupt) as caught:
        curator.ask(COUNT, epsilon=0.25, key="k")
    assert not hasattr(caught.value, "__notes__")
    assert kinds(curator) == []


def test_stopped_after_the_answer_was_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    curator = clinic(Budget(epsilon=1))
    with monkeypatch.context() as patch:
        patch.setattr(answer_module, "plain_rows", lambda _: stop())
        with pytest.raises(KeyboardInterrupt) as caught:
            curator.ask(COUNT, epsilon=0.25)
    assert caught.value.__notes__ == [STAYS, STORED]
    assert curator.ask(COUNT, epsilon=0.25).replayed
    assert kinds(curator) == ["charge", "answer"]


# ------------------------------------------------------------------------------------------- two at work for one charge


def overtaken(tmp_path: Path, patch: pytest.MonkeyPatch, first: Spy, second: Spy) -> tuple[Curator, list[Answer]]:
    """Two curators on one ledger; while the first reads, the second claims the same charge and ends it."""
    patch.setattr(module, "WAIT", 0.0)
    ledger, found = str(tmp_path / "book"), list[Answer]()
    one = clinic(Budget(epsilon=1), ledger=ledger, engine=first)
    other = clinic(Budget(epsilon=1), ledger=ledger, engine=second)

    def overtake() -> None:
        try:
            found.append(other.ask(COUNT, epsilon=0.25, key="k"))
        except QueryFailed:
            found.clear()

    first.before = overtake
    return one, found


def test_the_first_answer_that_is_stored_is_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, found = overtaken(tmp_path, monkeypatch, Spy(), Spy())
    assert one.ask(COUNT, epsilon=0.25, key="k").records == found[0].records
    assert kinds(one) == ["charge", "claim", "answer"]
    assert one.budget("visits").spent == PureDP("0.25")
    one.verify()


def test_who_fails_after_another_has_answered_has_their_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, found = overtaken(tmp_path, monkeypatch, Broken(), Spy())
    assert one.ask(COUNT, epsilon=0.25, key="k").records == found[0].records
    assert one.budget("visits").failures == 0


def test_who_answers_after_another_has_failed_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, found = overtaken(tmp_path, monkeypatch, Spy(), Broken())
    with pytest.raises(QueryFailed):
        one.ask(COUNT, epsilon=0.25, key="k")
    assert (found, one.budget("visits").failures, kinds(one)) == ([], 1, ["charge", "claim", "fail"])
    one.verify()


def test_a_claim_is_granted_to_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many wait for somebody who was stopped: one runs the question, the others have its answer."""
    monkeypatch.setattr(module, "WAIT", 60.0)
    spy, ledger = Spy(), str(tmp_path / "book")
    curator = clinic(Budget(epsilon=1), ledger=ledger, engine=spy)
    stopped(spy, curator)
    gate, answers = threading.Barrier(8), list[Answer]()

    def ask() -> None:
        gate.wait()
        answers.append(curator.ask(COUNT, epsilon=0.25, key="k"))

    askers = [threading.Thread(target=ask) for _ in range(8)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert (spy.reads, len(answers), kinds(curator).count("claim")) == (2, 8, 1)
    assert all(answer.records == answers[0].records for answer in answers)


# ---------------------------------------------------------------------------------------------------- who may not claim


def test_who_may_not_charge_may_not_claim() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=2), engine=spy)
    stopped(spy, curator)
    spy.before = lambda: 1 / 0
    for age in range(FAILURE_CREDITS):
        with pytest.raises(QueryFailed):
            curator.ask(filtered(age), epsilon=0.25)
    reads = spy.reads
    with pytest.raises(AccountLocked):
        curator.ask(COUNT, epsilon=0.25, key="k")
    assert spy.reads == reads
    curator.unlock("visits")
    spy.before = lambda: None
    assert not curator.ask(COUNT, epsilon=0.25, key="k").replayed


def test_a_charge_of_an_earlier_period_pays_for_nothing_in_this_one() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    stopped(spy, curator)
    curator.renew("visits")
    with pytest.raises(LedgerError, match="renewed"):
        curator.ask(COUNT, epsilon=0.25, key="k")
    assert spy.reads == 1
    assert not curator.ask(COUNT, epsilon=0.25, key="new").replayed


def test_keys_of_others_are_not_claimed() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    stopped(spy, curator)
    curator.ask(COUNT, epsilon=0.25, key="k", analyst="bob")
    assert curator.budget("visits").spent == PureDP("0.5")
    curator.appoint("ana", "analyst", account="visits")
    with pytest.raises(NotPermitted):
        curator.ask(COUNT, epsilon=0.25, key="k", analyst="bob")


def test_a_charge_of_an_earlier_version_is_run_for_no_more_than_it_was_charged_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The grid of values has become finer since, and with it the noise is described by another event."""
    sql, spy = "SELECT SUM(charge / 7) AS s, VARIANCE(charge) AS v FROM visits", Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    spy.before = stop
    with monkeypatch.context() as patch:
        as_before(patch)
        with pytest.raises(KeyboardInterrupt):
            curator.ask(sql, epsilon=0.25, key="k")
    spy.before = lambda: None
    answer = curator.ask(sql, epsilon=0.25, key="k")
    (charge,) = [entry for entry in curator.history("visits") if entry.kind == "charge"]
    charged = events.from_json(charge.content["event"])
    assert answer.event != charged
    assert costs_no_more(answer.event, charged, curator.account("visits"))
    assert curator.ask(sql, epsilon=0.25, key="k").records == answer.records


# --------------------------------------------------------------------------------------------------------- real signals

ENDLESS = """
import sys, threading
import pyarrow as pa
from discreet import Budget, Curator
from discreet.engines import DuckDB
class Telling(DuckDB):
    told = False
    def read(self, *arguments):
        if not self.told:
            threading.Timer(0.4, print, ["reading"], {"flush": True}).start()  # DuckDB is at work by then
        self.told = True
        return super().read(*arguments)
curator = Curator(sys.argv[1], engine=Telling(threads=2))
table = pa.table({"person": [1] * 4000, "x": list(range(4000))})
curator.protect(table, name="t", unit="person", bounds={"x": (0, 10)}, max_rows=5, budget=Budget(epsilon=1))
joined = "t AS a JOIN t AS b ON a.person = b.person JOIN t AS c ON a.person = c.person"
try:
    curator.ask(f"SELECT SUM(a.x * b.x + c.x) AS s FROM {joined}", epsilon="0.5", key="k")
except KeyboardInterrupt as error:
    print(*error.__notes__, flush=True)
print(curator.ask("SELECT COUNT(*) AS n FROM t", epsilon="0.25").columns[0], curator.verify().sequence)
"""


@pytest.mark.ci
def test_ctrl_c_stops_an_endless_question_and_the_process_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / "book")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as asking:
        assert asking.stdout is not None
        watch = threading.Timer(60, asking.kill)  # the 64 billion rows of the question take far longer
        watch.start()
        assert asking.stdout.readline() == "reading\n"
        asking.send_signal(signal.SIGINT)
        told, after = asking.stdout.readline(), asking.stdout.readline()
        code = asking.wait()
        watch.cancel()
    assert (code, told, after.split()[:1]) == (0, f"{STAYS} {AGAIN}\n", ["n"])
    with Ledger(str(tmp_path / "book"), read_only=True) as ledger:
        kinds = [entry.kind for entry in ledger.history("t")]
        assert kinds == ["open", "attach", "charge", "interrupt", "charge", "answer"]
        assert ledger.balance("t").spent == PureDP("0.75")
        assert ledger.balance("t").failures == 0
        ledger.verify()
