"""Stages are told by name, from public facts alone; whoever listens changes nothing."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from discreet import attacks
from discreet.cli import audits, output
from discreet.curator import Curator
from discreet.learn import LogisticRegression
from discreet.noise import SeededBits
from discreet.privacy import Budget
from discreet.progress import Stage, stage, telling, told_to
from discreet.sql.frame import count
from tests.cli.clinic import COUNT, write

_READ = "Reading visits and adding noise"
QUESTIONS = {
    "SELECT COUNT(*) AS n FROM visits": _READ,
    "SELECT ward, AVG(charge) AS c FROM visits GROUP BY ward": _READ,
    "SELECT ward, COUNT(DISTINCT id) AS c FROM visits GROUP BY ROLLUP (ward)": _READ,
    "SELECT MEDIAN(charge) AS c FROM visits": _READ,
    "SELECT SUM(free) AS s FROM visits": "Choosing bounds and limits, then reading visits and adding noise",
}
_BEFORE, _AFTER = ["Reading the question", "Planning", "Charging the account"], ["Working out intervals"]


def curator(folder: Path, people: int) -> Curator:
    rows = (f"{i},{'AB'[i % 2]},{i % 90},{10 * i},{int(i % 3 == 0)}\n" for i in range(people))
    (folder / f"{people}.csv").write_text("id,ward,charge,free,ill\n" + "".join(rows))
    made = Curator.for_tests(bits=SeededBits(1))
    types = {"id": "int", "ward": "text", "charge": "float", "free": "float", "ill": "int"}
    made.protect(
        str(folder / f"{people}.csv"),
        name="visits",
        unit="id",
        max_rows=1,
        types=types,
        bounds={"charge": (0, 100), "ill": (0, 1)},
        keys={"ward": ["A", "B"]},
        budget=Budget(epsilon=100, delta="1e-3"),
    )
    return made


@pytest.mark.sampled(2)
@pytest.mark.parametrize("people", [0, 3, 3000])
def test_stages_do_not_depend_on_the_data(tmp_path: Path, people: int) -> None:
    asked = curator(tmp_path, people)
    for question, planned in QUESTIONS.items():
        told: list[str] = []
        answer = asked.ask(question, epsilon=1, progress=told.append)
        assert told == [*_BEFORE, planned, *_AFTER]
        assert not any(re.search(r"[0-9%]", name) for name in told)
        told.clear()
        assert asked.ask(question, epsilon=1, progress=told.append).records == answer.records
        assert told == [*_BEFORE[:2], *_AFTER]  # from the ledger


@pytest.mark.ci
def test_fits_and_profiles_tell_their_stages(tmp_path: Path) -> None:
    asked, told = curator(tmp_path, 300), list[str]()
    learner = LogisticRegression(epsilon=1, classes=[0, 1], norm_bound=100)
    asked.fit(learner, "SELECT charge, ill FROM visits", target="ill", progress=told.append)
    assert told == ["Planning", "Charging the account", "Reading visits and fitting LogisticRegression"]
    told.clear()
    asked.profile("visits", epsilon=0.1, progress=told.append)
    assert told == ["Charging the account", _READ]
    told.clear()
    asked.table("visits").where("charge > 3").agg(n=count()).ask(epsilon=1, progress=told.append)
    assert told[-1] == _AFTER[0]


def test_explanations_tell_their_stages(tmp_path: Path) -> None:
    asked, told = curator(tmp_path, 3), list[str]()
    with told_to(told.append):
        asked.explain("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    assert told == _BEFORE[:2]


@pytest.mark.ci
def test_audits_tell_their_stages_and_not_those_of_every_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[str]()
    write(tmp_path)
    monkeypatch.setattr(audits, "stages", lambda first: told_to(told.append))  # noqa: ARG005 - in place of a terminal
    audits.audit_tables(tmp_path / "discreet.toml", None, [COUNT], epsilon="1", delta=None, neighbours=2, rows=20)
    asking = "Asking about neighbouring tables"
    assert told[:2] == ["Auditing visits", "Copying tables"]
    assert told[told.index(asking) :] == [asking, "Auditing visits: 1 of 2 pairs", "Auditing visits: 2 of 2 pairs"]


def test_attacks_tell_what_they_do() -> None:
    told = list[str]()
    people = [{"age": i % 5, "ward": "AB"[i % 2], "ill": str(i % 3)} for i in range(40)]
    with told_to(told.append):
        attacks.uniqueness(people, ["age", "ward"])
        attacks.uniqueness.compare(people, ["age", "ward"], sensitive="ill", epsilons=["1"])
    assert [told[0], told[1]] == ["Attacking by uniqueness", "Comparing defences against uniqueness"]


def test_a_listener_that_fails_costs_nothing(tmp_path: Path) -> None:
    def fails(name: str) -> None:
        raise ValueError(name)

    asked = curator(tmp_path, 30)
    assert len(asked.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1, progress=fails)) == 1


def test_listeners_are_nested_and_forgotten() -> None:
    outer, inner = list[str](), list[str]()

    @telling
    def work(*, progress: object = None) -> None:  # noqa: ARG001 - it is told all along
        stage("working")

    with told_to(outer.append):
        work()
        work(progress=inner.append)
        stage("after")
    stage("to nobody")
    assert (outer, inner) == (["working", "after"], ["working"])


def test_a_terminal_shows_stages_and_a_pipe_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with output.stages("Starting"):
        stage("Reading visits")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with output.stages("Starting"):
        stage("Reading [b]visits[/b]")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "[b]visits[/b]" in shown.err


def test_what_is_spent_is_told_in_words_and_as_a_number() -> None:
    told: list[Stage] = []
    with told_to(told.append):  # type: ignore[arg-type]  # a stage is a text
        stage("Measuring", spent=0.5)
        stage("Fitting")
    assert told == ["Measuring (50 % of the budget spent)", "Fitting"]
    assert [one.spent for one in told] == [0.5, None]
    again = pickle.loads(pickle.dumps(told[0]))
    assert (again, again.spent) == (told[0], 0.5)
