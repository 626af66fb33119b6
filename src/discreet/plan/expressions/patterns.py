r"""Regular expressions: a small grammar with one meaning, which every engine and `pattern_matcher` understand.

A pattern is made of characters and sets of them, sequences, choices, repetitions, groups and anchors. There is no
looking around and no reference back, so that a text is matched in time proportional to its length. `write_pattern` is
its normal form, without any of the abbreviations in which languages differ: sets are ranges of code points, \A and \z
are the ends of the text, and \b is an edge of a word of ASCII letters, digits and underscores. A question's canonical
text holds the normal form, and engines are given it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Literal as Choice

from discreet.errors import InternalError
from discreet.plan.expressions.letter_case import LOWER, UPPER, lower_case, upper_case

Range = tuple[int, int]
Ranges = tuple[Range, ...]
"""Code points from one to another, in order and with gaps between the ranges."""

ALL: Ranges = ((0, 0x10FFFF),)
DIGITS: Ranges = ((0x30, 0x39),)
WORDS: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACES: Ranges = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))


class PatternNode:
    """A part of a pattern."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Characters(PatternNode):
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Concatenation(PatternNode):
    """Parts one after the other."""

    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class Alternation(PatternNode):
    """One of several parts, an earlier one before a later."""

    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class Repetition(PatternNode):
    """A part several times, without an end if `most` is None: as often as possible, or as seldom if it is lazy."""

    part: PatternNode
    least: int
    most: int | None
    lazy: bool = False


@dataclass(frozen=True, slots=True)
class CaptureGroup(PatternNode):
    """A part whose text may be asked for."""

    part: PatternNode


Place = Choice["start", "end", "edge"]
"""The beginning of the text, its end, or an edge of a word."""


@dataclass(frozen=True, slots=True)
class Anchor(PatternNode):
    """A place between characters."""

    kind: Place


# ----------------------------------------------------------------------------------------------------------------- sets


def unite_ranges(ranges: Iterable[Range]) -> Ranges:
    """Returns ranges in order, those that touch made one.

    >>> unite_ranges([(5, 9), (1, 3), (4, 4)])
    ((1, 9),)
    """
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def without(ranges: Ranges) -> Ranges:
    """Returns all code points that are in none of the ranges."""
    edges = [(-1, -1), *ranges, (ALL[0][1] + 1, ALL[0][1] + 1)]
    return tuple((one[1] + 1, other[0] - 1) for one, other in pairwise(edges) if one[1] + 1 <= other[0] - 1)


def fold_case(ranges: Ranges) -> Ranges:
    """Returns the ranges and, for each letter in them, what it becomes in upper and then in lower case."""
    cased = (point for point in UPPER.keys() | LOWER.keys() if any(first <= point <= last for first, last in ranges))
    return unite_ranges([*ranges, *((point, point) for point in (ord(lower_case(upper_case(chr(p)))) for p in cased))])


# --------------------------------------------------------------------------------------------------------- normal form


@singledispatch
def write_pattern(node: PatternNode) -> str:
    r"""Writes a pattern in its normal form.

    >>> write_pattern(Repetition(Characters(((0x2D, 0x2D), (0x61, 0x7A))), 1, None))
    '[\\x{2d}a-z]+'
    """
    raise InternalError(f"A {type(node).__name__} is no part of a pattern.")


@write_pattern.register
def _(node: Characters) -> str:
    if len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]:
        return _point(node.ranges[0][0])
    return "[" + "".join(_range(*each) for each in node.ranges) + "]"


def _range(first: int, last: int) -> str:
    return _point(first) if first == last else f"{_point(first)}-{_point(last)}"


def _point(point: int) -> str:
    return chr(point) if point < 0x80 and chr(point).isalnum() else f"\\x{{{point:x}}}"


@write_pattern.register
def _(node: Concatenation) -> str:
    return "".join(
        f"(?:{write_pattern(part)})" if isinstance(part, Alternation) else write_pattern(part) for part in node.parts
    )


@write_pattern.register
def _(node: Alternation) -> str:
    return "|".join(write_pattern(part) for part in node.parts)


@write_pattern.register
def _(node: Repetition) -> str:
    inner = write_pattern(node.part)
    part = inner if isinstance(node.part, Characters | CaptureGroup) else f"(?:{inner})"
    return part + _count(node.least, node.most) + ("?" if node.lazy else "")


def _count(least: int, most: int | None) -> str:
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if known is not None:
        return known
    if most == least:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


@write_pattern.register
def _(node: CaptureGroup) -> str:
    return f"({write_pattern(node.part)})"


@write_pattern.register
def _(node: Anchor) -> str:
    return {"start": r"\A", "end": r"\z", "edge": r"\b"}[node.kind]


# ---------------------------------------------------------------------------------------------------------- properties


def nullable(node: PatternNode) -> bool:
    """Returns whether a pattern can match between two characters."""
    if isinstance(node, Concatenation):
        return all(nullable(part) for part in node.parts)
    if isinstance(node, Alternation):
        return any(nullable(part) for part in node.parts)
    if isinstance(node, Repetition):
        return node.least == 0 or nullable(node.part)
    return nullable(node.part) if isinstance(node, CaptureGroup) else isinstance(node, Anchor)


def size(node: PatternNode) -> int:
    """Counts the ranges of characters of a pattern, and its other parts, those that are repeated each time."""
    if isinstance(node, Characters):
        return len(node.ranges)
    if isinstance(node, Concatenation | Alternation):
        return 1 + sum(size(part) for part in node.parts)
    if isinstance(node, Repetition):
        return 1 + (1 + size(node.part)) * max(node.most or node.least + 1, 1)
    return 1 + size(node.part) if isinstance(node, CaptureGroup) else 1


def is_word(node: PatternNode, *, last: bool) -> bool:
    """Returns whether a pattern surely begins, or ends, with a letter, digit or underscore of ASCII."""
    if isinstance(node, Characters):
        return unite_ranges([*node.ranges, *WORDS]) == WORDS
    if isinstance(node, Concatenation):
        return bool(node.parts) and is_word(node.parts[-1 if last else 0], last=last)
    if isinstance(node, Alternation):
        return all(is_word(part, last=last) for part in node.parts)
    if isinstance(node, Repetition):
        return node.least > 0 and is_word(node.part, last=last)
    return isinstance(node, CaptureGroup) and is_word(node.part, last=last)


def keep_one_group(node: PatternNode, number: int) -> PatternNode:
    """Returns a pattern with one group: that of the number, counted by opening brackets, or with 0 the whole of it."""
    return _remove_other_groups(node, number, [0]) if number else CaptureGroup(remove_groups(node))


def groups(node: PatternNode) -> int:
    """Counts the groups of a pattern."""
    counter = [0]
    _remove_other_groups(node, 0, counter)
    return counter[0]


def remove_groups(node: PatternNode) -> PatternNode:
    """Returns a pattern without its groups: whether it is found does not depend on them."""
    return _remove_other_groups(node, 0, [0])


def _remove_other_groups(node: PatternNode, number: int, seen: list[int]) -> PatternNode:
    """Returns the pattern without groups but one; the groups that have been opened are counted in `seen`."""
    if isinstance(node, CaptureGroup):
        seen[0] += 1
        own = seen[0]
        part = _remove_other_groups(node.part, number, seen)
        return CaptureGroup(part) if own == number else part
    if isinstance(node, Repetition):
        return Repetition(_remove_other_groups(node.part, number, seen), node.least, node.most, node.lazy)
    if isinstance(node, Concatenation | Alternation):
        return type(node)(tuple(_remove_other_groups(part, number, seen) for part in node.parts))
    return node
