"""What a question is asked with that its options leave open: limits of which one is given, and a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.curator.asking.planner import LimitsWish
from discreet.curator.curator import Curator
from discreet.errors import InvalidParameter
from discreet.ledger import OWNER
from discreet.noise import system_bits
from discreet.plan.model.schema import Limits

_KEY_BITS = 64


def limits(
    curator: Curator,
    question: str,
    delta: str | None,
    *,
    groups: int | None,
    rows: int | None,
    choosing: bool = False,
    analyst: str = OWNER,
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
    asked = curator.explain(question, epsilon=1, delta=delta, analyst=analyst).program.question
    usual = curator.table(asked.table).schema.limits
    return Limits(usual.groups if groups is None else groups, usual.rows if rows is None else rows)


@contextmanager
def keyed(key: str | None) -> Iterator[str]:
    """A question's key, or one that nobody has: whoever stops the question is told with which key it goes on."""
    word = f"once-{system_bits().integer(_KEY_BITS):016x}" if key is None else key
    try:
        yield word
    except KeyboardInterrupt as stop:
        charged = getattr(stop, "__notes__", ())
        stop.add_note(f"The key is: --key {word}" if charged else "Nothing was charged.")
        raise
