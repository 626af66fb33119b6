r"""Patterns as PostgreSQL's regular expressions: translated part by part, since it reads other notations than RE2.

Whether a pattern is found in a text does not depend on which of several matches is preferred, in which PostgreSQL and
RE2 differ; so repetitions are written without preference. No text of PostgreSQL holds U+0000.
"""

from __future__ import annotations

from functools import lru_cache, singledispatch

from discreet.errors import InternalError
from discreet.plan.expressions.pattern_grammar import parse
from discreet.plan.expressions.patterns import (
    Alternation,
    Anchor,
    Characters,
    Concatenation,
    Group,
    Node,
    Repetition,
)

_MOST = 255  # the largest number of times that PostgreSQL reads
_NOTHING = r"\ud800"  # half a character, which no text holds
_PLACES = {"start": r"\A", "end": r"\Z", "edge": r"\y"}


@lru_cache(maxsize=256)
def translated(pattern: str) -> str:
    r"""Returns a pattern of the normal form as PostgreSQL reads it.

    >>> translated(r"\A[0-9]+\z")
    '\\A(?:[\\u0030-\\u0039])+\\Z'
    """
    return _text(parse(pattern))


@singledispatch
def _text(node: Node) -> str:
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
def _(node: Group) -> str:
    return f"(?:{_text(node.part)})"


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
