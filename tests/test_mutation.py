"""The run over mutants on two small tests: one calls what is changed and notices, the other one does not call it."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.mutation import CallCount, KillRun, Target, lines, table, targets_of, watched

pytest_plugins = ["pytester"]

TESTS = """
import time, small

def test_notices():
    assert small.doubled(2) == 4

def test_looks_away():
    assert small.doubled(2)

def test_elsewhere():
    assert small.other() == 3

def test_waits():
    while small.doubled(2) != 4:
        time.sleep(0.01)
"""
SMALL = """
FACTOR = 2

def doubled(x):
    return FACTOR * x

def other():
    return 3
"""


@catcher("nothing")
def nothing() -> None:
    """Is no check."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = types.ModuleType("small")
    exec(SMALL, vars(made))
    for name in ("doubled", "other"):
        vars(made)[name].__module__ = "small"
    monkeypatch.setitem(sys.modules, "small", made)
    return made


def test_a_constant_is_watched_in_the_functions_that_use_it(small: Any) -> None:
    (target,) = targets_of(Mutant("x", "x", setting(small, "FACTOR", 3), nothing))
    assert watched(target) == [(small, "doubled")]
    assert watched((small, "other")) == [(small, "other")]
    methods: Target = (Mutant, "applied")
    assert watched(methods) == [methods]


@pytest.mark.ci
def test_tests_that_call_a_mutant_run_on_it_and_a_stopped_run_goes_on(
    small: Any, pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.mutation.SHORTEST", 60.0)
    mutants = [
        Mutant("factor", "x", setting(small, "FACTOR", 3), nothing),
        Mutant("other", "x", setting(small, "other", lambda: 4), nothing),
    ]
    pytester.makepyfile(test_small=TESTS)
    arguments = "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:schemathesis"
    (tmp_path / "calls.jsonl").write_text(
        json.dumps({"test": "test_small.py::test_waits", "seconds": 0, "passed": True, "mutants": ["factor"]})
        + '\n{"test": "cut o'
    )
    pytester.runpytest_inprocess(*arguments, plugins=[CallCount(mutants, tmp_path)])
    called = {line["test"].partition("::")[2]: line["mutants"] for line in lines(tmp_path / "calls.jsonl")}
    assert called == {
        "test_waits": ["factor"],
        "test_notices": ["factor"],
        "test_looks_away": ["factor"],
        "test_elsewhere": ["other"],
    }
    pytester.runpytest_inprocess(*arguments, "-k", "not waits", plugins=[KillRun(mutants, tmp_path)])
    assert len(lines(tmp_path / "kills.jsonl")) == 3
    monkeypatch.setattr("tests.mutation.SHORTEST", 0.2)  # seconds, for the one that is left and never ends
    pytester.runpytest_inprocess(*arguments, plugins=[KillRun(mutants, tmp_path)])
    told = lines(tmp_path / "kills.jsonl")
    assert {(one["mutant"], one["test"].partition("::")[2]): one["outcome"] for one in told} == {
        ("factor", "test_waits"): "hung",
        ("factor", "test_notices"): "killed",
        ("factor", "test_looks_away"): "survived",
        ("other", "test_elsewhere"): "killed",
    }
    assert len(told) == 4
    page = (tmp_path / "kills.md").read_text()
    assert "| factor | 3 | 2 |" in page
    assert "| `test_small.py::test_elsewhere` | 1 | 1 |" in page
    assert page == table(lines(tmp_path / "kills.jsonl"), ["factor", "other"])
