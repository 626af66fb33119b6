"""The reader with its table filled: import it, and every kind of node that a question may use is known."""

from __future__ import annotations

from discreet.plan import filters, operators, ranks, spreads, vocabulary
from discreet.plan.grammar import only, read, refuse_node

__all__ = ["filters", "only", "operators", "ranks", "read", "refuse_node", "spreads", "vocabulary"]
