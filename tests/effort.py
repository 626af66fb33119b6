"""How much is tried: a part in the quick suite, all of it in the slow one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest
from hypothesis import settings

SLOW = os.environ.get("DISCREET_HYPOTHESIS") == "slow"

Case = TypeVar("Case")


def tried(examples: int) -> settings:
    """As many examples of a costly test in the slow suite, and a quarter of them in the quick one."""
    return settings(max_examples=examples if SLOW else max(1, examples // 4))


def rounds(all_of_them: int, quick: int) -> int:
    """Returns how often a test repeats what it does: in the slow suite, and in the quick one."""
    return all_of_them if SLOW else quick


def some(cases: Iterable[Case], every: int) -> list[Case]:
    """Returns all cases in the slow suite, and in the quick one the first of each so many."""
    return list(cases)[:: 1 if SLOW else every]


def shadowed(engine: str) -> pytest.MarkDecorator:
    """Marks a test that needs an engine as slow, except beside that engine's own shadow (tests/shadow.py)."""
    if os.environ.get("DISCREET_SHADOW") == engine:
        return pytest.mark.skipif(False, reason="runs beside the others of this engine")
    return pytest.mark.slow
