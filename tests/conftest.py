"""Shared set-up: hypothesis profiles, and a fixed seed of its own for every test."""

import atexit
import gc
import hashlib
import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from _pytest.pathlib import import_path
from hypothesis import HealthCheck, settings

from discreet.noise import SecureBits, SeededBits, rng

pytest_plugins = ["tests.object_server", "tests.postgres_server", "tests.spark_session", "tests.mariadb_server"]
pytest_plugins += ["tests.engines.postgres_tables", "tests.engines.mariadb_tables"]
if "DISCREET_SHADOW" in os.environ:
    pytest_plugins = [*pytest_plugins, "tests.shadow"]
if "DISCREET_MUTANTS" in os.environ:
    pytest_plugins = [*pytest_plugins, "tests.mutation"]

# A slow machine is no reason to fail, so nothing here depends on the clock, and every run tries the same examples.
_STEADY = settings(
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)

settings.register_profile("ci", _STEADY, max_examples=20)
settings.register_profile("slow", _STEADY, max_examples=1000)
settings.load_profile(os.environ.get("DISCREET_HYPOTHESIS", "ci"))

_GOLDEN = (5**0.5 - 1) / 2

TESTS = Path(__file__).parent

gc.disable()  # until everything is imported, since nothing of that is garbage
atexit.register(
    gc.unfreeze
)  # so that libraries in C see their objects freed; not before, since pytest looks five times


LEFT_ALONE = ("test_compiled.py", "test_fuzzed_api.py", "test_spark_clusters.py", "test_spark_readings.py")
"""Files without a quick test whose collection takes seconds."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves a file alone whose collection takes seconds, where nothing of it would run."""
    return True if collection_path.name in LEFT_ALONE and config.option.markexpr == "not slow" else None


def pytest_collection(session: pytest.Session) -> None:
    """Lets each worker load its share of all files first: what one has rewritten for pytest, the others only read."""
    config, given = session.config, getattr(session.config, "workerinput", None)
    if given is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    files = [file for file in sorted(TESTS.rglob("test_*.py")) if file.name not in LEFT_ALONE]
    mine = files[int(given["workerid"].removeprefix("gw")) :: given["workercount"]]
    for file in (*sorted(TESTS.rglob("*/conftest.py")), *mine):  # what a folder sets up comes before its tests
        with suppress(BaseException):  # it is raised once more where the file is collected
            import_path(file, mode="importlib", root=config.rootpath, consider_namespace_packages=False)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collects no doctests in this folder: to find out that its modules have none takes seconds."""
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as slow what the quick suite leaves out: of tests with many cases of one claim, and what `.ci/run` adds.

    Places are chosen by multiples of the golden ratio, which keep step with no product of parameters. A case that is
    slow by itself, or left out, is not for `.ci/run` either.
    """
    places: Counter[str] = Counter()
    for item in items:
        mark, name = item.get_closest_marker("sampled"), item.nodeid.partition("[")[0]
        left_out = mark is not None and places[name] * _GOLDEN % 1 >= 1 / mark.args[0]
        places[name] += 1
        if left_out or item.get_closest_marker("slow"):
            item.own_markers[:] = [each for each in item.own_markers if each.name != "ci"]
        if left_out or item.get_closest_marker("ci"):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Modules and collected tests stay to the end: looking through them for garbage would be a twentieth of it all."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20)  # most of what tests make is gone before anybody looks


class SteadyBits(SecureBits):
    """Passes for the system's source in a test, keyed by a name; a forked child draws the system's bits."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name, self._epoch, self._process = name, 0, os.getpid()

    def _key(self) -> bytes:
        if os.getpid() != self._process:
            return super()._key()
        self._epoch += 1
        return hashlib.sha384(f"{self._name}/{self._epoch}".encode()).digest()


@contextmanager
def steady(name: str) -> Iterator[None]:
    """What is drawn here without a source of its own follows from the name, so a verdict never changes by chance."""
    before, rng._SYSTEM = rng._SYSTEM, SteadyBits(name)
    try:
        yield
    finally:
        rng._SYSTEM = before


@pytest.fixture(autouse=True)
def steady_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test draws what its name says, whichever tests ran before it."""
    with steady(request.node.nodeid):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """What several tests share draws by a name of its own: which of them comes first depends on the workers."""
    if fixturedef.scope == "function":
        return (yield)
    with steady(f"{fixturedef.baseid}/{fixturedef.argname}/{getattr(request, 'param_index', 0)}"):
        return (yield)


@pytest.fixture
def bits(request: pytest.FixtureRequest) -> SeededBits:
    """Random bits seeded by the test's own name: the same on every run, different from every other test's."""
    digest = hashlib.sha256(request.node.nodeid.encode()).digest()
    return SeededBits(int.from_bytes(digest, "big"))


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises `KeyboardInterrupt`, as in every program; workers of a test run ignore it otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
