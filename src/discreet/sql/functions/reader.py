"""The reader with its table filled: import it, and every kind of node that a question may use is known."""

from __future__ import annotations

from discreet.sql.functions import casts as vocabulary
from discreet.sql.functions import dates as calendar
from discreet.sql.functions import filters, numbers, operators
from discreet.sql.functions import moments as spreads
from discreet.sql.functions import quantiles as ranks
from discreet.sql.functions import texts as wording
from discreet.sql.functions.grammar import only, read, refuse_node

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
