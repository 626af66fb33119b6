r"""Patterns as PostgreSQL's regular expressions: translated part by part, since it reads other notations than RE2.

Whether a pattern is found in a text does not depend on which of several matches is preferred, in which PostgreSQL and
RE2 differ; so repetitions are written without preference. No text of PostgreSQL holds U+0000.

What a group finds does depend on it: of the matches that begin first, PostgreSQL takes the longest, and RE2 the one
that the first choice leads to. These are the same if the next character always decides which part of the pattern it
belongs to, and no part would rather do without it: then there is one way to match any stretch of text, every choice is
between going on and stopping, and going on comes first (`is_certain`; Brueggemann-Klein and Wood 1998 call such
expressions one-unambiguous).
"""

from __future__ import annotations

from functools import lru_cache, singledispatch

from discreet.errors import InternalError
from discreet.plan.expressions.pattern_grammar import parse
from discreet.plan.expressions.patterns import (
    Alternation,
    Anchor,
    CaptureGroup,
    Characters,
    Concatenation,
    PatternNode,
    Ranges,
    Repetition,
    groups,
    nullable,
    unite_ranges,
)

_MOST = 255  # the largest number of times that PostgreSQL reads
_NOTHING = r"\ud800"  # half a character, which no text holds
_PLACES = {"start": r"\A", "end": r"\Z", "edge": r"\y"}


@lru_cache(maxsize=256)
def translate_pattern(pattern: str) -> str:
    r"""Returns a pattern of the normal form as PostgreSQL reads it.

    >>> translate_pattern(r"\A[0-9]+\z")
    '\\A(?:[\\u0030-\\u0039])+\\Z'
    """
    return _text(parse(pattern))


@singledispatch
def _text(node: PatternNode) -> str:
    raise InternalError(f"A {type(node).__name__} is no part of a pattern.")


@_text.register
def _(node: Characters) -> str:
    ranges = [(max(first, 1), last) for first, last in node.ranges if last > 0]
    if not ranges:
        return _NOTHING
    return "[" + "".join(f"{_point(first)}-{_point(last)}" for first, last in ranges) + "]"


def _point(point: int) -> str:
    return f"\\u{point:04x}" if point < 1 << 16 else f"\\U{point:08x}"


@_text.register
def _(node: Concatenation) -> str:
    return "".join(f"(?:{_text(part)})" if isinstance(part, Alternation) else _text(part) for part in node.parts)


@_text.register
def _(node: Alternation) -> str:
    return "|".join(_text(part) for part in node.parts)


@_text.register
def _(node: CaptureGroup) -> str:
    return f"({_text(node.part)})"


@_text.register
def _(node: Anchor) -> str:
    return _PLACES[node.kind]


@_text.register
def _(node: Repetition) -> str:
    part = f"(?:{_text(node.part)})"
    if node.most is None:
        return {0: f"{part}*", 1: f"{part}+"}.get(node.least) or f"{_times(part, node.least)}{part}*"
    return _times(part, node.least) + _up_to(part, node.most - node.least)


def _times(part: str, count: int) -> str:
    whole, rest = divmod(count, _MOST)
    return f"{part}{{{_MOST}}}" * whole + (f"{part}{{{rest}}}" if rest else "")


def _up_to(part: str, count: int) -> str:
    whole, rest = divmod(count, _MOST)
    return f"{part}{{0,{_MOST}}}" * whole + (f"{part}{{0,{rest}}}" if rest else "")


# ------------------------------------------------------------------------------------------------ one way to match


UNCERTAIN = (
    "In this pattern a character may belong to several parts: PostgreSQL then takes the longest match, but other "
    "engines take the first choice."
)
CERTAINLY = (
    "Let each part end where the next can begin, without lazy repetitions: '([^,]*),' for '(.*?),'. Or take parts of "
    "texts with SUBSTR, SPLIT_PART and STRPOS."
)
"""Why a group is refused, and what helps."""


@lru_cache(maxsize=256)
def is_certain(pattern: str) -> bool:
    r"""Returns whether a group of a pattern finds the same whether the longest match is preferred or the first choice.

    >>> is_certain(r"([^\x{2c}]*)\x{2c}"), is_certain(r"([\x{0}-\x{10ffff}]*?)\x{2c}"), is_certain("(a|ab)")
    (True, False, False)
    """
    return _is_certain(parse(pattern), ())


@singledispatch
def _is_certain(node: PatternNode, after: Ranges) -> bool:  # noqa: ARG001 - of those that follow
    """Returns whether there is one way to match a part, before something that begins with one of these characters."""
    raise InternalError(f"A {type(node).__name__} is no part of a pattern.")


@_is_certain.register(Characters)
@_is_certain.register(Anchor)
def _(node: PatternNode, after: Ranges) -> bool:
    del node, after
    return True


@_is_certain.register
def _(node: CaptureGroup, after: Ranges) -> bool:
    return _is_certain(node.part, after)


@_is_certain.register
def _(node: Concatenation, after: Ranges) -> bool:
    for part in reversed(node.parts):
        if not _is_certain(part, after):
            return False
        after = unite_ranges([*_first(part), *(after if nullable(part) else ())])
    return True


@_is_certain.register
def _(node: Alternation, after: Ranges) -> bool:
    """Refuses choices that may be empty: one could be preferred to a choice that goes on."""
    before: Ranges = ()
    for part in node.parts:
        if nullable(part) or _meet(_first(part), before) or not _is_certain(part, after):
            return False
        before = unite_ranges([*before, *_first(part)])
    return True


@_is_certain.register
def _(node: Repetition, after: Ranges) -> bool:
    """Refuses groups in what repeats: engines differ in which of their finds they keep."""
    first, again = _first(node.part), node.most != 1
    if node.lazy or nullable(node.part) or (again and groups(node.part)):
        return False
    if node.least != node.most and _meet(first, after):
        return False
    return _is_certain(node.part, unite_ranges([*(first if again else ()), *after]))


def _first(node: PatternNode) -> Ranges:
    """Returns the characters with which a match may begin."""
    if isinstance(node, Characters):
        return node.ranges
    if isinstance(node, Alternation):
        return unite_ranges(each for part in node.parts for each in _first(part))
    if isinstance(node, Concatenation):
        needed = next((i for i, part in enumerate(node.parts) if not nullable(part)), len(node.parts))
        return unite_ranges(each for part in node.parts[: needed + 1] for each in _first(part))
    return _first(node.part) if isinstance(node, Repetition | CaptureGroup) else ()


def _meet(one: Ranges, other: Ranges) -> bool:
    return any(first <= last_other and first_other <= last for first, last in one for first_other, last_other in other)
