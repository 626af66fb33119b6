"""Limits of a question of which only one is given."""

from __future__ import annotations

from discreet.curator.curator import Curator
from discreet.curator.preparing import LimitsWish
from discreet.errors import InvalidParameter
from discreet.plan.schema import Limits


def limits(
    curator: Curator,
    question: str,
    delta: str | None,
    *,
    groups: int | None,
    rows: int | None,
    choosing: bool = False,
) -> LimitsWish:
    """The limits of a question; of two, the one that is not given is the table's own.

    Raises:
        InvalidParameter: if limits are given, and are to be found out.
    """
    if choosing and (groups, rows) != (None, None):
        hint = "Name limits, or have them chosen, not both."
        raise InvalidParameter("--choose-limits", "given", "without --limits-groups and --limits-rows", hint)
    if choosing:
        return "choose"
    if groups is None and rows is None:
        return None
    asked = curator.explain(question, epsilon=1, delta=delta).program.question
    usual = curator.table(asked.table).schema.limits
    return Limits(usual.groups if groups is None else groups, usual.rows if rows is None else rows)
