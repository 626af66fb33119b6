"""The record of a shorthand: a function of SQL that is written in terms of functions of the plan."""

from __future__ import annotations

from collections.abc import Callable

from discreet.dataclass import dataclass
from discreet.plan.model.nodes import Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Shorthand:
    """A function of SQL that engines need not know.

    Args:
        words: what SQL calls it; the gate accepts these words.
        meaning: what it means, in a phrase, its arguments being a, b and c.
        example: an accepted question with its first word: an AVG, a GROUP BY or a WHERE over the reference's `visits`.
        counts: how many arguments it takes, as far as the parser does not see to it.
        expand: writes it in terms of functions of the plan; raises `calls.Mismatch` for arguments it does not take.
    """

    words: tuple[str, ...]
    meaning: str
    example: str
    counts: tuple[int, ...] = (1,)
    expand: Callable[..., Expression]
