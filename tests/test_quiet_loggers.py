"""Loggers of other libraries: silent from the thread that calls them, while it does, and nobody else."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from discreet.quiet_loggers import quiet


def test_only_these_loggers_only_in_this_thread_only_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    one, other = logging.getLogger("one.driver"), logging.getLogger("other.driver")
    with ThreadPoolExecutor(1) as elsewhere, quiet(one):
        with quiet(one, other):
            other.error("silent within")
        one.error("silent still")
        other.error("heard beside")
        elsewhere.submit(one.error, "heard from elsewhere").result()
    one.error("heard afterwards")
    assert caplog.messages == ["heard beside", "heard from elsewhere", "heard afterwards"]
