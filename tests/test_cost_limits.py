"""A quick test that takes too much CPU is listed, or fails where that is asked for, and one that hangs is given up."""

from __future__ import annotations

import ast
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tests import cost_limits
from tests.conftest import LEFT_ALONE, TESTS
from tests.cost_limits import (
    CPU_LIMIT,
    EXCEPTIONS,
    CostLimits,
    ImportClock,
    cost_in_a_child,
    given_up_after,
    measure_factor,
)

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]

DEAR = """
import time, pytest

def spend():
    end = time.process_time() + 0.06
    while time.process_time() < end:
        pass

def test_dear():
    spend()

def test_excused():
    spend()

cache = []

def test_first_to_fill_a_cache():
    if not cache:
        spend()
        cache.append(1)

@pytest.mark.slow
def test_slow():
    spend()

@pytest.fixture
def prepared():
    spend()

def test_cheap(prepared):
    time.sleep(0.06)
"""


def _run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *, fails: bool, factor: float = 1
) -> pytest.RunResult:
    monkeypatch.setattr(cost_limits, "measure_factor", lambda: 1.0)
    monkeypatch.setitem(EXCEPTIONS, "test_some.py", {"test_excused": "takes up to ten times as long"})
    pytester.makepyfile(test_some=DEAR)
    pytester.makeini("[pytest]\nmarkers = slow: is")
    arguments = "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:schemathesis"
    return pytester.runpytest_inprocess(*arguments, plugins=[CostLimits(fails=fails, factor=factor, limit=0.03)])


@pytest.mark.ci
def test_the_call_of_a_quick_test_is_limited(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _run(pytester, monkeypatch, fails=True)
    found.assert_outcomes(passed=4, failed=1)
    found.stdout.fnmatch_lines(["*s of CPU for test_some.py::test_dear, 0.03 s times 1.00 allowed*"])


def test_elsewhere_the_end_of_the_run_lists_it(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _run(pytester, monkeypatch, fails=False)
    found.assert_outcomes(passed=5)
    found.stdout.fnmatch_lines(["*quick tests that are not quick*", "*s of CPU for test_some.py::test_dear*"])
    found.stdout.no_fnmatch_line("*test_cheap*")


def test_a_slower_machine_may_take_longer(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(pytester, monkeypatch, fails=True, factor=5).assert_outcomes(passed=5)


@pytest.mark.parametrize("waits", [True, False])
def test_a_child_that_does_not_end_is_stopped_and_what_it_used_counts(waits: bool) -> None:
    class Endless:
        def runtest(self) -> None:
            while not waits:
                pass
            threading.Event().wait()

    spent = cost_in_a_child(Endless(), longest=0.4)  # type: ignore[arg-type]
    assert spent < 0.3 if waits else spent > 0.05  # to fork a process of some GB takes 0.1 s, where others are at work


def test_the_factor_is_that_of_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= measure_factor() < 100
    monkeypatch.setattr(cost_limits, "REFERENCE", 1e-5)
    assert measure_factor() > 100


def test_imports_are_not_the_test_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dear_module.py").write_text(
        "import time\nend = time.process_time() + 0.03\nwhile time.process_time() < end:\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    clock = ImportClock()
    others = [finder for finder in sys.meta_path if not isinstance(finder, ImportClock)]
    monkeypatch.setattr(sys, "meta_path", [clock, *others])
    assert __import__("dear_module").end > 0
    assert 0.03 <= clock.spent < 3


def test_a_loader_of_many_modules_is_timed_once() -> None:
    class Everything:
        def find_spec(self, name: str, *_where: object) -> ModuleSpec:
            return ModuleSpec(name, self)  # type: ignore[arg-type]

        def exec_module(self, module: object) -> object:
            return module

    clock, finder = ImportClock(), Everything()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "meta_path", [clock, finder])
        timed = [clock.find_spec(name).loader.exec_module for name in ("one", "two")]
    assert timed[0] is timed[1]


def test_what_hangs_is_given_up() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"given up after 0.01 s"), given_up_after(0.01):
        threading.Event().wait()


def test_exceptions_are_few_and_are_tests() -> None:
    assert sum(map(len, EXCEPTIONS.values())) <= 50
    for path, reasons in EXCEPTIONS.items():
        assert reasons.keys() <= _tests_of(ROOT / path), path
        assert all(reasons.values())
    assert CPU_LIMIT <= 0.5


def _tests_of(path: Path) -> set[str]:
    if path.suffix == ".md":
        return {path.name} if path.exists() else set()
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_files_that_are_left_alone_have_no_quick_test(name: str) -> None:
    (path,) = TESTS.rglob(name)
    tree = ast.parse(path.read_text())
    marks = {"pytest.mark.ci", "pytest.mark.slow"}
    if any(ast.unparse(each) in {f"pytestmark = {mark}" for mark in marks} for each in tree.body):
        return
    tests = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")]
    assert tests
    assert [each.name for each in tests if not marks & {*map(ast.unparse, each.decorator_list)}] == []
