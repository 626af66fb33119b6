"""Curators, which know both data and budgets: they plan measurements from public facts, charge, and only then run.

`curator.py` is the river, from the text of a question to its answer. Its parts: `catalog` (tables and accounts),
`config` (a discreet.toml), `measurement_plan` (a question before its charge), `replay` (what was released before),
`asking` (planning, reading, answering), `training` (learners under the same ledger), `observation` (audits look on).
Names load when they are first used, so that reading a discreet.toml needs no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.curator.asking.answer import Answer
    from discreet.curator.asking.explanation import Explanation
    from discreet.curator.curator import Curator
    from discreet.measurement.program.execution import ReleasedStatistics, run
    from discreet.measurement.program.program import Program, choose

_NAMES = {
    "Answer": "discreet.curator.asking.answer",
    "Curator": "discreet.curator.curator",
    "Explanation": "discreet.curator.asking.explanation",
    **dict.fromkeys(("Program", "choose"), "discreet.measurement.program.program"),
    **dict.fromkeys(("ReleasedStatistics", "run"), "discreet.measurement.program.execution"),
}

__all__ = ["Answer", "Curator", "Explanation", "Program", "ReleasedStatistics", "choose", "run"]


def __getattr__(name: str) -> object:
    """Loads a name from its module on first use."""
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'discreet.curator' has no attribute {name!r}")
