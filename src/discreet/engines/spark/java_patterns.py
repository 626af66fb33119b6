r"""Patterns as Java reads them, where it finds them in time proportional to the text.

Java tries one way to match after another, and goes one call deeper for each repetition of a group. A pattern is given
to it only if the ways from any one place are few, whatever the text is, and the calls no deeper than the pattern is
long; LIKE always is, since the first place at which a part between two %s is found is as good as any later one.
"""

from __future__ import annotations

from discreet.engines.sql.pattern_ways import EDGE, has_few_ways


def found_quickly(pattern: str) -> str | None:
    r"""Writes a pattern in normal form as Java reads it; None if Java might take long to find it.

    >>> found_quickly(r"\A[0-9]{2,3}|a"), found_quickly("[0-9]+x")
    ('\\A[0-9]{2,3}|a', None)
    """
    return pattern.replace(r"\b", EDGE) if has_few_ways(pattern) else None  # a backslash itself is written \x{5c}
