"""Ctrl-C on the command line: status 130, what stays charged, and the key with which the question goes on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.verbs import verb_commands
from discreet.curator.asking.planner import Planner
from discreet.engines import DuckDB
from discreet.ledger import Ledger
from discreet.ledger.outcomes import MOST_RUNS
from discreet.progress import told_to
from tests.cli.clinic import COUNT, run, told_budget

pytestmark = pytest.mark.usefixtures("ctrl_c")

CHEAP = ["--epsilon", "0.25"]
KEY = re.compile(r"The key is: --key (\S+)")
ENDLESS = """\
ledger = "t.ledger"
[tables.t]
source = "t.csv"
unit = "person"
types = { person = "int", x = "int" }
bounds = { x = [0, 10] }
max_rows = 5
[budgets.t]
epsilon = 1
"""
JOINED = "t AS a JOIN t AS b ON a.person = b.person JOIN t AS c ON a.person = c.person"
SUM = f"SELECT SUM(a.x * b.x + c.x) AS s FROM {JOINED}"


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("clinic")
def test_a_stopped_question_names_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "_run_reading", stop)
        stopped = run("ask", COUNT, *CHEAP)
    assert (stopped.code, stopped.out) == (130, "")
    assert "the charge stays" in stopped.err
    key = KEY.findall(stopped.err)
    answered = json.loads(run("ask", COUNT, *CHEAP, "--key", *key, "--json").out)
    assert (answered["cost"]["epsilon"], answered["replayed"]) == ("0.25", False)
    assert told_budget()["balance"]["spent"]["epsilon"] == "1/4"
    assert "interrupt of entry" in run("history").out


@pytest.mark.usefixtures("clinic")
def test_before_the_charge_nothing_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("ask", "explain"):
        with monkeypatch.context() as patch:
            patch.setattr(Planner, "plan", stop)
            stopped = run(command, COUNT, *CHEAP)
        assert (stopped.code, stopped.err.splitlines()[0]) == (130, "Stopped.")
        assert ("Nothing was charged." in stopped.err) == (command == "ask")


SYNTHESIZE = ["synthesize", "SELECT ward, age FROM visits", "--out", "made.csv", "--epsilon", "0.25", "--bins", "2"]
CALLS = {
    "ask": ["ask", COUNT, *CHEAP],
    "ask for several": ["ask", COUNT, f"{COUNT} WHERE age > 40", *CHEAP],
    "synthesize": [*SYNTHESIZE, "--generator", "mst"],
}


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize("call", CALLS)
def test_a_command_runs_its_charge_three_times_and_tells_nothing_of_it(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is printed does not depend on what was drawn, and the fourth time nothing is read."""
    drawn, told, seen = list[str](), list[str](), list[tuple[str, ...]]()
    command = [*CALLS[call], "--key", "k"]

    def stopping(_ledger: Ledger, _receipt: Any, _key: str, payload: str, **_: Any) -> None:
        drawn.append(payload)
        raise KeyboardInterrupt

    monkeypatch.setattr(verb_commands, "stages", lambda first: told_to(told.append))  # noqa: ARG005 - for a terminal
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store_answer", stopping)
        for _ in range(MOST_RUNS):
            stopped = run(*command)
            assert (stopped.code, stopped.out) == (130, "")
            seen.append((stopped.err, *told))
            told.clear()
    assert seen[0] == seen[1]
    assert "--key k" in seen[0][0]
    assert "--key k" not in seen[-1][0]
    assert "A new key is a new charge" in seen[-1][0]
    assert seen[-1][1:] == seen[0][1:]
    spent = run("budget", "--json").out
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "_run_reading", stop)
        refused = run(*command)
    assert (refused.code, refused.out) == (3, "")
    assert "RunsUsedUp" in refused.err
    assert "The charge stays" in refused.err
    assert run("budget", "--json").out == spent
    assert len(drawn) == MOST_RUNS


ASKING = """
import sys, threading
from discreet.cli import main
from discreet.engines import DuckDB
read = DuckDB._run_reading
def reading(*arguments):
    threading.Timer(0.4, print, ["reading"], {"flush": True}).start()  # DuckDB is at work by then
    return read(*arguments)
DuckDB._run_reading = reading
main()
"""


@pytest.mark.slow
def test_a_real_signal_stops_an_endless_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 billion rows, of which the second time few are left, so that the same question is answered."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "discreet.toml").write_text(ENDLESS)
    (tmp_path / "t.csv").write_text("person,x\n" + "1,5\n" * 4000)
    assert run("protect").code == 0
    command = [sys.executable, "-c", ASKING, "ask", SUM, "--epsilon", "0.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        assert asking.stdout.readline() == "reading\n"
        asking.send_signal(signal.SIGINT)
        out, err = asking.communicate(timeout=60)
    assert (asking.returncode, out) == (130, "")
    (tmp_path / "t.csv").write_text("person,x\n" + "1,5\n" * 10)
    key = KEY.findall(err)
    assert run("ask", SUM, "--epsilon", "0.5", "--key", *key).code == 0
    assert told_budget("t")["balance"]["spent"]["epsilon"] == "1/2"
    assert run("verify").code == 0
