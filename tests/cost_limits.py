"""What a test may cost: half a second of CPU for the call of a quick one, and a time after which any is given up.

The limit is for a machine on which `_work` takes `REFERENCE` seconds; elsewhere it is scaled by what that takes there,
at the start and once more when a test seems too slow. CPU is that of the process and of the children that it waited
for, without the import of modules, which the first test that needs one happens to pay. With DISCREET_TEST_COST=fail in
the environment a test above its limit fails; otherwise the end of the run lists it.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

CPU_LIMIT = 0.5
"""Seconds of CPU for the call of a quick test, where the factor is 1."""

REFERENCE = 0.0187
"""Seconds of CPU that `_work` takes on the machine for which the limit was set (a Neoverse N1 at 3 GHz): the median of
1,200 runs, of which nine in ten lie within 5 % of it, whether or not other processes run."""

TIME_LIMIT = 120.0
TIME_LIMIT_SLOW = 3600.0
"""Seconds by the clock for each of set-up, call and tear-down: a hundred times what they take on a busy machine."""

EXCEPTIONS = {
    "docs/tutorials/tour.md": {
        "tour.md": "a whole session",
    },
    "tests/accounting/test_calibration.py": {
        "test_discrete_gaussian_approaches_the_continuous_law": "the finest lattice",
    },
    "tests/accounting/test_extremes.py": {
        "test_a_finite_bound_always_exists": "some events have fine loss distributions",
    },
    "tests/audit/mechanisms/test_mechanisms.py": {
        "test_exact_laws_keep_the_claim": "some laws have many outcomes",
    },
    "tests/audit/test_mutants.py": {
        "test_the_mutant_is_caught": "audits of the more random mutants take 1 s",
    },
    "tests/cli/test_proposed_commands.py": {
        "test_proposed_commands_succeed": "runs several commands in turn",
    },
    "tests/conformance/test_accountants.py": {
        "test_a_larger_delta_never_costs_more": "the exact accountant composes every kind of event",
        "test_a_larger_epsilon_never_leaves_more_delta": "the exact accountant composes every kind of event",
        "test_lists_and_repetitions_agree": "the exact accountant composes every kind of event",
        "test_more_releases_never_cost_less": "the exact accountant composes every kind of event",
    },
    "tests/conformance/test_learners.py": {
        "test_scikit_learn_accepts_it": "runs scikit-learn's own checks",
    },
    "tests/curator/test_correlated.py": {
        "test_what_is_refused": "the first case fills its tables",
    },
    "tests/curator/test_private_bounds.py": {
        "test_one_person_moves_nothing_farther_than_was_paid": "several questions, on neighbours",
    },
    "tests/curator/test_runs.py": {
        "test_a_charge_is_run_three_times_and_the_fourth_is_refused": "some verbs train models",
    },
    "tests/curator/test_synthesis_neighbours.py": {
        "test_a_break_is_noticed": "some mutants are seen on the third table only",
    },
    "tests/deep/test_model_check.py": {
        "test_what_keeps_examples_apart_is_accepted": "some models are recurrent",
    },
    "tests/docs/test_reference.py": {
        "test_every_name_has_an_entry_with_its_source": "writes the whole reference once",
    },
    "tests/hints/test_hints_applied.py": {
        "test_calls": "the first call fills the tables of its world",
    },
    "tests/mechanisms/test_selection.py": {
        "test_the_probability_of_no_option_moves_by_more_than_e_to_the_epsilon": "exact probabilities of all outcomes",
    },
    "tests/noise/test_door.py": {
        "test_no_other_randomness": "parses the whole library, for all tests that look at its syntax",
    },
    "tests/redteam/test_peer_bugs.py": {
        "test_nan_passes_no_clamp": "three values, on neighbours, on two engines",
    },
    "tests/synthetic/test_estimation.py": {
        "test_the_fit_is_the_minimum_over_all_joint_tables": "the larger of its tables",
    },
    "tests/test_walkthroughs.py": {
        "test_a_page_shows_what_its_commands_print": "runs all commands of a page",
    },
}
"""Quick tests that may take ten times as long, and why. Most are tables of unlike cases, of which a few are dear."""

_PROPERTY = "cpu_over_limit"
_AGAIN = 3  # times that a test is measured which seems too slow


def _work() -> int:
    """What tests spend their time on: exact fractions, texts, lists and a sort."""
    total, seen = Fraction(0), dict[str, list[int]]()
    for n in range(1, 2500):
        total = (total + Fraction(1, n)) % 1 if n % 50 else Fraction(0)
        seen[f"{n:x}"] = [n] * 20
    return len(sorted(seen))


def measure_factor(rounds: int = 3) -> float:
    """Returns how many times as long as on the machine of reference the same work takes here; at least 1."""
    took = []
    for _ in range(rounds):
        before = time.process_time()
        _work()
        took.append(time.process_time() - before)
    return max(1.0, min(took) / REFERENCE)


class ImportClock:
    """Adds up the CPU that modules take to be loaded; it stands before all other finders and asks them."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._loading = False

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Finds a module as it would be found without the clock, and times its loader."""
        finders: list[Any] = sys.meta_path
        for finder in finders[finders.index(self) + 1 :]:
            spec: ModuleSpec | None = finder.find_spec(name, path, target)
            if spec is not None:
                self._watch(spec.loader)
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        """Times the methods of a loader of its own; a few finders give the same one for every module."""
        for method in ("create_module", "exec_module"):
            own = not isinstance(loader, type) and method not in getattr(loader, "__dict__", {method: None})
            if own and hasattr(loader, method):
                setattr(loader, method, self._timed(getattr(loader, method)))

    def _timed(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(argument: Any) -> Any:
            if self._loading:
                return function(argument)
            self._loading, before = True, time.process_time()
            try:
                return function(argument)
            finally:
                self._loading = False
                self.spent += time.process_time() - before

        return run


def cpu_spent() -> float:
    """Returns the seconds of CPU of this process, and of the children it has waited for, to the microsecond."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def cost_in_a_child(item: pytest.Item, longest: float = 10.0) -> float:
    """Returns the seconds of CPU of a test that is called once more, with the same fixtures, in a forked process.

    A test that cannot be called twice costs nothing. A child that does not end in time is stopped, and what it used by
    then counts: a lock that a thread of the parent held makes it wait for nothing, and use none.
    """
    faulthandler.cancel_dump_traceback_later()  # a child that ends a watch would wait for the parent's thread
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with suppress(BaseException):
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            before = cpu_spent()
            item.runtest()
            os.write(writing, str(cpu_spent() - before).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        ended = bool(select.select([told], [], [], longest)[0])
        if not ended:
            os.kill(child, signal.SIGKILL)
        found = told.read()
    _, _, used = os.wait4(child, 0)
    return float(found or 0) if ended else used.ru_utime + used.ru_stime


class CostLimits:
    """Times the tests of one process and judges what they cost.

    Args:
        fails: whether a test above its limit fails.
        factor: how much slower than the machine of reference this one is.
        limit: seconds of CPU for the call of a quick test, where the factor is 1.
        errors: the file descriptor to which a test that is stuck is traced; pytest captures the usual one.
    """

    def __init__(self, *, fails: bool, factor: float, limit: float = CPU_LIMIT, errors: int = 2) -> None:
        self._fails, self._factor, self._limit, self._errors = fails, factor, limit, errors
        self._clock = ImportClock()
        self._over: list[str] = []
        self._spent = 0.0

    def pytest_sessionstart(self) -> None:
        sys.meta_path.insert(0, self._clock)

    def pytest_sessionfinish(self) -> None:
        sys.meta_path.remove(self._clock)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Ends the process, with a trace, if a test is stuck where no signal of Python arrives: in a library in C."""
        faulthandler.dump_traceback_later(4 * _time_limit(item), exit=True, file=self._errors)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        with given_up_after(_time_limit(item)):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        before = cpu_spent() - self._clock.spent
        try:
            with given_up_after(_time_limit(item)):
                return (yield)
        finally:
            self._spent = cpu_spent() - self._clock.spent - before
            self._run_again(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        with given_up_after(_time_limit(item)):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report: Any = yield
        if call.when == "call" and report.passed and self._is_over(item):
            allowed = f"{self._limit_of(item)} s times {self._factor:.2f} allowed"
            said = f"{self._spent:.2f} s of CPU for {item.nodeid}, {allowed}"
            report.user_properties.append((_PROPERTY, said))
            if self._fails:
                report.outcome = "failed"
                report.longrepr = f"{said}. Make the test cheaper, or mark it slow and add a small one beside it."
        return report

    def _limit_of(self, item: pytest.Item) -> float:
        if item.get_closest_marker("slow"):
            return float("inf")
        path, _, name = item.nodeid.partition("[")[0].partition("::")
        return self._limit * (10 if name in EXCEPTIONS.get(path, {}) else 1)

    def _is_over(self, item: pytest.Item) -> bool:
        limit = self._limit_of(item)
        if self._spent > limit * self._factor:  # the machine may have become slower since the start
            self._factor = max(self._factor, measure_factor())
        return self._spent > limit * self._factor

    def _run_again(self, item: pytest.Item) -> None:
        """Measures a test that seems too slow again, if that matters: the first to use something fills caches.

        What else the processor does at the same time costs some more: the least of a few times counts.
        """
        for _ in range(_AGAIN):
            if self._fails and self._is_over(item):
                self._spent = min(self._spent, cost_in_a_child(item))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._over += [str(said) for name, said in report.user_properties if name == _PROPERTY]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._over:
            terminalreporter.section("quick tests that are not quick")
            for line in sorted(self._over):
                terminalreporter.line(line)


def _time_limit(item: pytest.Item) -> float:
    return TIME_LIMIT_SLOW if item.get_closest_marker("slow") else TIME_LIMIT


@contextmanager
def given_up_after(seconds: float) -> Iterator[None]:
    """Fails what takes longer by the clock."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        pytest.fail(f"given up after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pytest_configure(config: pytest.Config) -> None:
    """Judges costs where tests are as small as they usually are: with no more examples, and on no further engine."""
    errors = config.stash.get(fault_handler_stderr_fd_key, 2)
    if os.environ.get("DISCREET_HYPOTHESIS") == "slow" or "DISCREET_SHADOW" in os.environ:
        limits = CostLimits(fails=False, factor=float("inf"), errors=errors)
    else:
        fails = os.environ.get("DISCREET_TEST_COST") == "fail"
        limits = CostLimits(fails=fails, factor=measure_factor(), errors=errors)
    config.pluginmanager.register(limits, "discreet-cost-limits")
