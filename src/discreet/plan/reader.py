"""The reader with its table filled: import it, and every kind of node that a question may use is known."""

from __future__ import annotations

from discreet.plan import calendar, filters, numbers, operators, ranks, spreads, vocabulary, wording
from discreet.plan.grammar import only, read, refuse_node

__all__ = [
    "calendar",
    "filters",
    "numbers",
    "only",
    "operators",
    "ranks",
    "read",
    "refuse_node",
    "spreads",
    "vocabulary",
    "wording",
]
