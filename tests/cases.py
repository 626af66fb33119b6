"""Many small cases in one test: all of them are tried, and every one that fails is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def try_all(cases: Iterable[Case], check: Callable[[Case], None]) -> None:
    """Runs a check on every case.

    Raises:
        BaseExceptionGroup: with what each failing case raised, and a note that names it.
    """
    failures: list[BaseException] = []
    tried = 0
    for case in cases:
        tried += 1
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - a test reports whatever goes wrong
            error.add_note(f"in the case {ascii(case)[:500]}")
            failures.append(error)
    assert tried
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {tried} cases failed", failures)
