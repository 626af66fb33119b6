r"""Patterns that a search by backtracking finds in time proportional to the text, and LIKE as such a pattern.

Java and PCRE try one way to match after another. A pattern has few ways if those from any one place are bounded,
whatever the text is; LIKE always has, since the first place at which a part between two %s is found is as good as any
later one.
"""

from __future__ import annotations

from functools import singledispatch

from discreet.plan.expressions.pattern_grammar import parse
from discreet.plan.expressions.patterns import (
    Alternation,
    CaptureGroup,
    Characters,
    Concatenation,
    PatternNode,
    Repetition,
    size,
)

_MOST_STEPS = 2000  # from one place: ways times parts
_WORD = "[0-9A-Z_a-z]"

EDGE = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
"""Where a word of ASCII begins or ends, which a language's own sign is not in every version."""


def write_like(pattern: str) -> str:
    r"""Writes a pattern of LIKE as a regular expression without backtracking over what was found.

    >>> write_like("a%b_c")
    '(?s)\\A\\x{61}.*\\x{62}.\\x{63}\\z'
    """
    first, *others = pattern.split("%")
    text = f"(?s)\\A{_signs(first)}"
    if not others:
        return f"{text}\\z"
    *middle, last = others
    found = "".join(f"(?>.*?{_signs(part)})" for part in middle if part)
    return f"{text}{found}.*{_signs(last)}\\z" if last else f"{text}{found}"


def _signs(part: str) -> str:
    return "".join("." if sign == "_" else f"\\x{{{ord(sign):x}}}" for sign in part)


def has_few_ways(pattern: str) -> bool:
    r"""Returns whether a pattern in normal form is found quickly.

    >>> has_few_ways(r"\A[0-9]{2,3}|a"), has_few_ways("[0-9]+x")
    (True, False)
    """
    node = parse(pattern)
    return _ways(node) * size(node) <= _MOST_STEPS


_ENDLESS = 1 << 60


def _ways(node: PatternNode) -> int:
    """Returns how many ways there are to go through a pattern from one place, at most; capped."""
    return min(_count(node), _ENDLESS)


@singledispatch
def _count(_node: PatternNode) -> int:
    return 1


@_count.register
def _(node: CaptureGroup) -> int:
    return _ways(node.part)


@_count.register
def _(node: Concatenation) -> int:
    total = 1
    for part in node.parts:
        total = min(total * _ways(part), _ENDLESS)
    return total


@_count.register
def _(node: Alternation) -> int:
    return sum(_ways(part) for part in node.parts)


@_count.register
def _(node: Repetition) -> int:
    """Of single characters up to a number: a way for each length. Of anything else Java goes deeper each time."""
    if node.most is None or not isinstance(node.part, Characters):
        return _ENDLESS
    return node.most - node.least + 1
