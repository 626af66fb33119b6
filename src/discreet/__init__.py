"""Discreet: learn from private data without exposing anyone in it.

Differential privacy with exact discrete noise, a description and a price for every release, and an error bar on every
number. `Curator` holds tables and answers questions; the rooms behind it load when they are first used:
``discreet.mechanisms``, ``discreet.accounting``, ``discreet.privacy``, ``discreet.noise``, ``discreet.errors`` ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet import (
        accounting,
        attacks,
        audit,
        deep,
        engines,
        errors,
        exact,
        learn,
        ledger,
        local,
        mechanisms,
        noise,
        plan,
        privacy,
        remote,
        statistics,
        stream,
        synthetic,
        workload,
    )
    from discreet.curator import Answer, Curator
    from discreet.curator.asking.choices import choose_epsilon
    from discreet.plan.model.sample import Sample
    from discreet.plan.model.schema import Limits
    from discreet.presentation.inspection.file_check import check_file
    from discreet.privacy import Budget
    from discreet.remote import connect
    from discreet.sql.frame import (
        correlation,
        count,
        count_distinct,
        count_units,
        covariance,
        maximum,
        mean,
        median,
        minimum,
        mode,
        quantile,
        stddev,
        sum,  # noqa: A004 - the name every frame library gives it
        variance,
    )

__version__ = "0.2.0"

_NAMES = {
    "Answer": "discreet.curator",
    "Budget": "discreet.privacy",
    "Curator": "discreet.curator",
    "check_file": "discreet.presentation.inspection.file_check",
    "choose_epsilon": "discreet.curator.asking.choices",
    "connect": "discreet.remote",
    "Limits": "discreet.plan.model.schema",
    "Sample": "discreet.plan.model.sample",
    **dict.fromkeys(("count", "count_distinct", "count_units", "mean", "sum"), "discreet.sql.frame"),
    **dict.fromkeys(("maximum", "median", "minimum", "mode", "quantile"), "discreet.sql.frame"),
    **dict.fromkeys(("correlation", "covariance", "stddev", "variance"), "discreet.sql.frame"),
}

__all__ = ["Answer", "Budget", "Curator", "Limits", "Sample"]
__all__ += [
    "accounting",
    "attacks",
    "audit",
    "check_file",
    "choose_epsilon",
    "connect",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
]
__all__ += [
    "covariance",
    "deep",
    "engines",
    "errors",
    "exact",
    "learn",
    "ledger",
    "local",
    "maximum",
    "mean",
    "mechanisms",
]
__all__ += [
    "median",
    "minimum",
    "mode",
    "noise",
    "plan",
    "privacy",
    "quantile",
    "remote",
    "statistics",
    "stddev",
    "stream",
    "sum",
    "synthetic",
    "variance",
    "workload",
]


def __getattr__(name: str) -> object:
    """Loads a room, or a name from its room, on first use: importing the package itself stays nearly free."""
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if name in __all__:
        return import_module(f"discreet.{name}")
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
