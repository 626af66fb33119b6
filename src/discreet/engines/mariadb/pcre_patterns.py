r"""Patterns as MariaDB's PCRE reads them, which tries one way to match after another, and gives up after ten million.

Only patterns are given to it that are found in time proportional to the text. In its own notation `\b` is an edge of a
word of any script.
"""

from __future__ import annotations

from discreet.engines.sql.pattern_ways import EDGE, has_few_ways, write_like

SLOW = "MariaDB may not find this pattern in a long text."
BOUNDED = "Bound its repetitions, like [0-9]{1,9} for [0-9]+, or test a part of it by LIKE."

like = write_like


def is_quick(pattern: str) -> bool:
    """Returns whether a pattern in normal form is surely found."""
    return has_few_ways(pattern)


def translate_pattern(pattern: str) -> str:
    r"""Returns a pattern of the normal form as PCRE reads it.

    >>> translate_pattern(r"\A[0-9]{2,3}|a")
    '\\A[0-9]{2,3}|a'
    """
    return pattern.replace(r"\b", EDGE)  # a backslash itself is written \x{5c}
