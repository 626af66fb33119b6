"""Which tests kill which mutants: `make test-mutants` runs every test that calls what a mutant changes, on that mutant.

A first run of the suite has counters on the targets of all mutants and writes which tests call them. A second process
collects the suite once more, with nothing cached by tests, and forks for each mutant and each test that calls it: the
child changes the code and runs the test, and the parent waits for it, up to a time. Both runs append what they find to
files and leave out what these already say, so that a stopped run goes on where it was. What a test has done by another
process (a worker of the service, a command in a shell) is not seen by the counters.
"""

from __future__ import annotations

import faulthandler
import functools
import inspect
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from discreet.service.worker.limits import die_with_parent
from tests.audit.mutants.registry import Mutant
from tests.audit.mutants.table import MUTANTS

FOLDER = Path("build/mutants")
CALLS, KILLS, TABLE = "calls.jsonl", "kills.jsonl", "kills.md"
OWN = "tests/audit/test_mutants.py"  # applies mutants by itself
SHORTEST, SLOWER = 10.0, 20.0
"""A test on a mutant is given up after so many seconds, or after so many times as long as it took without."""

Target = tuple[Any, str]


class Recorder:
    """Stands for a MonkeyPatch, and only notes what would be changed."""

    def __init__(self) -> None:
        self.targets: list[Target] = []

    def setattr(self, owner: Any, name: str, value: Any, raising: bool = True) -> None:
        """Notes an attribute."""
        del value, raising
        self.targets.append((owner, name))

    def undo(self) -> None:
        """Has nothing to take back."""


def targets_of(mutant: Mutant) -> list[Target]:
    """Returns the attributes that a mutant changes."""
    recorder = Recorder()
    mutant.apply(recorder)  # type: ignore[arg-type]
    return recorder.targets


def functions_of(owner: Any) -> Iterator[Target]:
    """Yields the functions of a module and of its classes, as attributes."""
    module = owner if isinstance(owner, ModuleType) else sys.modules[owner.__module__]
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from ((value, each) for each in list(vars(value)) if _function(value, each) is not None)
        elif isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield module, name


def _function(owner: Any, name: str) -> FunctionType | None:
    raw = inspect.getattr_static(owner, name)
    inner = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
    return inner if isinstance(inner, FunctionType) else None


def watched(target: Target) -> list[Target]:
    """Returns the functions whose calls are counted: the target, or those that use it if it is no function."""
    owner, name = target
    if _function(owner, name) is not None:
        return [target]
    found = []
    for each in functions_of(owner):
        code = getattr(_function(*each), "__code__", None)
        if code is not None and name in (*code.co_names, *code.co_freevars):
            found.append(each)
    return found


def count_calls(target: Target, note: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    """Has a function call `note` before it does what it does."""
    owner, name = target
    raw, inner = inspect.getattr_static(owner, name), _function(owner, name)
    assert inner is not None

    @functools.wraps(inner)
    def counted(*arguments: Any, **options: Any) -> Any:
        note()
        return inner(*arguments, **options)

    patch.setattr(owner, name, type(raw)(counted) if isinstance(raw, classmethod | staticmethod) else counted)


def lines(path: Path) -> list[dict[str, Any]]:
    """Returns what was written so far, and removes a last line that was cut off."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def _append(path: Path, found: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(found) + "\n")


class CallCount:
    """Runs every test once and writes which mutants' targets it calls.

    Args:
        mutants: those that are asked about.
        folder: where it is written.
    """

    def __init__(self, mutants: Sequence[Mutant], folder: Path) -> None:
        self._mutants, self._path, self._called = mutants, folder / CALLS, set[str]()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Runs what was not run before."""
        known = {line["test"] for line in lines(self._path)}
        items = [item for item in session.items if item.nodeid not in known and not item.nodeid.startswith(OWN)]
        with pytest.MonkeyPatch.context() as patch:
            for mutant in self._mutants:
                for target in {each for one in targets_of(mutant) for each in watched(one)}:
                    count_calls(target, functools.partial(self._called.add, mutant.name), patch)
            for item, following in zip(items, [*items[1:], None], strict=True):
                self._called.clear()
                before = time.perf_counter()
                reports = runtestprotocol(item, log=False, nextitem=following)
                took = time.perf_counter() - before
                passed = all(report.passed for report in reports)
                found = {"test": item.nodeid, "seconds": took, "passed": passed, "mutants": sorted(self._called)}
                _append(self._path, found)
        return True


class KillRun:
    """Runs every test on the mutants whose targets it calls, each in a process of its own.

    Args:
        mutants: those that are asked about.
        folder: what `CallCount` wrote, and what is found.
    """

    def __init__(self, mutants: Sequence[Mutant], folder: Path) -> None:
        self._mutants = {mutant.name: mutant for mutant in mutants}
        self._folder = folder

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Runs what was not run before, and writes the table."""
        path = self._folder / KILLS
        known = {(line["mutant"], line["test"]) for line in lines(path)}
        items = {item.nodeid: item for item in session.items}
        for line in lines(self._folder / CALLS):
            for name in line["mutants"] if line["passed"] and line["test"] in items else ():
                if name in self._mutants and (name, line["test"]) not in known:
                    longest = max(SHORTEST, SLOWER * line["seconds"])
                    outcome = judge(self._mutants[name], items[line["test"]], longest)
                    _append(path, {"mutant": name, "test": line["test"], "outcome": outcome})
        (self._folder / TABLE).write_text(table(lines(path), self._mutants), encoding="utf-8")
        return True


def judge(mutant: Mutant, item: pytest.Item, longest: float) -> str:
    """Returns what becomes of a test on a mutant: killed (or it crashed, or hung, which are kills) or survived."""
    faulthandler.cancel_dump_traceback_later()  # a child that ends a watch would wait for the parent's thread
    child = os.fork()
    if not child:
        os.setsid()  # whatever it starts ends with it
        die_with_parent()  # a run that is killed leaves nothing behind
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        with mutant.applied():
            reports = runtestprotocol(item, log=False, nextitem=None)
        os._exit(any(report.failed for report in reports))
    end = time.monotonic() + longest
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return {0: "survived", 1: "killed"}.get(code, "crashed")
        time.sleep(0.002)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


def table(found: Sequence[dict[str, Any]], mutants: Sequence[str] | dict[str, Mutant]) -> str:
    """Returns the page: for each mutant its killers, and for each test how many it kills, alone or with others."""
    kills = [(line["mutant"], line["test"]) for line in found if line["outcome"] != "survived"]
    ran, by_mutant = Counter(line["mutant"] for line in found), Counter(mutant for mutant, _ in kills)
    by_test = Counter(test for _, test in kills)
    alone = Counter(test for mutant, test in kills if by_mutant[mutant] == 1)
    rows = [f"| {name} | {ran[name]} | {by_mutant[name]} |" for name in mutants]
    tests = [f"| `{test}` | {number} | {alone[test]} |" for test, number in by_test.most_common()]
    pairs = [f"- {mutant}: {', '.join(f'`{t}`' for m, t in kills if m == mutant)}" for mutant in mutants]
    head = "# Which tests kill which mutants\n\n| mutant | tests that call it | that kill it |\n|---|---|---|\n"
    middle = "\n\n| test | mutants it kills | that nothing else kills |\n|---|---|---|\n"
    return head + "\n".join(rows) + middle + "\n".join(tests) + "\n\n" + "\n".join(pairs) + "\n"


def pytest_configure(config: pytest.Config) -> None:
    """Takes over the run: DISCREET_MUTANTS says which step it is, and MUTANTS names some mutants, for all of them."""
    wanted = [name for name in os.environ.get("MUTANTS", "").split(",") if name]
    chosen = [mutant for mutant in MUTANTS if not wanted or mutant.name in wanted]
    step = CallCount if os.environ["DISCREET_MUTANTS"] == "calls" else KillRun
    config.pluginmanager.register(step(chosen, config.rootpath / FOLDER), "discreet-mutants")
