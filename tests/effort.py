"""How much is tried: a part in the quick suite, all of it in the slow one."""

from __future__ import annotations

import os

from hypothesis import settings

SLOW = os.environ.get("DISCREET_HYPOTHESIS") == "slow"


def tried(examples: int) -> settings:
    """As many examples of a costly test in the slow suite, and a quarter of them in the quick one."""
    return settings(max_examples=examples if SLOW else max(1, examples // 4))
