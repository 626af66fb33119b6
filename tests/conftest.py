"""Shared set-up: hypothesis profiles, and a fixed seed of its own for every test."""

import gc
import hashlib
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from discreet.noise import SeededBits

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

gc.disable()  # until everything is imported, since nothing of that is garbage


def pytest_collection_finish() -> None:
    """Modules and collected tests stay to the end: looking through them for garbage would be a twentieth of it all."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20)  # most of what tests make is gone before anybody looks


def pytest_unconfigure() -> None:
    """Lets go of everything at the end, so that libraries in C see their objects freed."""
    gc.unfreeze()


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
