"""Patterns at work in plain Python: all ways to match are followed side by side, one character at a time.

The time is at most the length of the text times the size of the pattern, whatever they are: no way is tried after
another, as backtracking matchers do. Which match is found, and what its group holds, is as in Perl: the one that begins
first, and of those the one that earlier choices and longer repetitions lead to (shorter ones where lazy).

Pike, "The text editor sam", 1987; Cox, "Regular expression matching: the virtual machine approach", 2009.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from discreet.plan.expressions.pattern_grammar import parse
from discreet.plan.expressions.patterns import (
    ALL,
    WORDS,
    Alternation,
    Anchor,
    CaptureGroup,
    Characters,
    Concatenation,
    PatternNode,
    Ranges,
    Repetition,
)

Marks = tuple[int, ...]
"""Where the group begins and ends on a way, as far as it has come; in a repetition, the last time."""

Ways = dict[int, Marks]
"""The steps that have been come to, each on the first way that led there, in their order."""


@dataclass(frozen=True, slots=True)
class PatternStep:
    """One step of a program: takes a character, chooses where to go on, looks at the place, or notes it."""

    kind: Literal["take", "go", "mark", "look", "end"]
    ranges: Ranges = ()
    targets: tuple[int, ...] = ()
    anchor: str = ""


@dataclass(slots=True)
class PatternProgram:
    """The steps of a pattern; the last is its end.

    >>> PatternProgram.of(parse("b(a+)")).group("abaab"), PatternProgram.of(parse("x")).matches("ab")
    ('aa', False)
    """

    steps: list[PatternStep] = field(default_factory=list)

    @classmethod
    def of(cls, pattern: PatternNode) -> PatternProgram:
        """Returns the program of a pattern."""
        made = cls()
        made._add(pattern)
        made.steps.append(PatternStep("end"))
        return made

    def _add(self, node: PatternNode) -> None:
        _WRITERS[type(node)](self, node)

    def _characters(self, node: Characters) -> None:
        self.steps.append(PatternStep("take", ranges=node.ranges))

    def _concatenation(self, node: Concatenation) -> None:
        for part in node.parts:
            self._add(part)

    def _alternation(self, node: Alternation) -> None:
        *firsts, last = node.parts
        ends = []
        for part in firsts:
            fork = self._hold()
            self._add(part)
            ends.append(self._hold())
            self._fork(fork, fork + 1, len(self.steps))
        self._add(last)
        for end in ends:
            self._fork(end, len(self.steps))

    def _repetition(self, node: Repetition) -> None:
        for _ in range(node.least):
            self._add(node.part)
        if node.most is None:
            self._without_end(node)
            return
        forks = []
        for _ in range(node.most - node.least):
            forks.append(self._hold())
            self._add(node.part)
        for fork in forks:
            self._fork(fork, fork + 1, len(self.steps), lazy=node.lazy)

    def _without_end(self, node: Repetition) -> None:
        fork = self._hold()
        self._add(node.part)
        self._fork(self._hold(), fork)
        self._fork(fork, fork + 1, len(self.steps), lazy=node.lazy)

    def _group(self, node: CaptureGroup) -> None:
        self.steps.append(PatternStep("mark"))
        self._add(node.part)
        self.steps.append(PatternStep("mark"))

    def _anchor(self, node: Anchor) -> None:
        self.steps.append(PatternStep("look", anchor=node.kind))

    def _hold(self) -> int:
        self.steps.append(PatternStep("go"))
        return len(self.steps) - 1

    def _fork(self, place: int, *targets: int, lazy: bool = False) -> None:
        self.steps[place] = PatternStep("go", targets=targets[::-1] if lazy else targets)

    def matches(self, text: str) -> bool:
        """Returns whether the pattern is found anywhere in a text."""
        return self._first(text) is not None

    def group(self, text: str) -> str:
        """Returns the text of the group in the first match; empty if there is none."""
        found = self._first(text)
        return text[slice(*found)] if found else ""

    def _first(self, text: str) -> Marks | None:
        """Returns the marks of the first match."""
        found: Marks | None = None
        ways: Ways = {}
        for place in range(len(text) + 1):
            if found is None:
                self._follow(0, (), text, place, ways)
            following: Ways = {}
            for at, marks in ways.items():
                here = self.steps[at]
                if here.kind == "end":
                    found = marks
                    break  # the ways after this one come second to it
                if here.kind == "take" and place < len(text) and _holds(here.ranges, ord(text[place])):
                    self._follow(at + 1, marks, text, place + 1, following)
            ways = following
            if found is not None and not ways:
                break
        return found

    def _follow(self, step: int, marks: Marks, text: str, place: int, ways: Ways) -> None:
        """Goes on from a step to all that it leads to at this place, in their order, but where a way has been."""
        waiting = [(step, marks)]
        while waiting:
            at, noted = waiting.pop()
            if at in ways:
                continue
            ways[at] = noted
            here = self.steps[at]
            if here.kind == "go":
                waiting += [(target, noted) for target in reversed(here.targets)]
            elif here.kind == "mark":
                waiting.append((at + 1, (*noted, place) if len(noted) == 1 else (place,)))
            elif here.kind == "look" and _LOOKS[here.anchor](text, place):
                waiting.append((at + 1, noted))


def _holds(ranges: Ranges, point: int) -> bool:
    index = bisect_right(ranges, (point, ALL[0][1])) - 1
    return index >= 0 and point <= ranges[index][1]


def _is_edge(text: str, place: int) -> bool:
    beside = (text[max(place - 1, 0) : place], text[place : place + 1])
    one, other = (bool(sign) and _holds(WORDS, ord(sign)) for sign in beside)
    return one is not other


_LOOKS: dict[str, Callable[[str, int], bool]] = {
    "start": lambda _text, place: place == 0,
    "end": lambda text, place: place == len(text),
    "edge": _is_edge,
}

_WRITERS: dict[type[PatternNode], Callable[[PatternProgram, Any], None]] = {
    Characters: PatternProgram._characters,
    Concatenation: PatternProgram._concatenation,
    Alternation: PatternProgram._alternation,
    Repetition: PatternProgram._repetition,
    CaptureGroup: PatternProgram._group,
    Anchor: PatternProgram._anchor,
}


@lru_cache(maxsize=256)
def program(pattern: str) -> PatternProgram:
    """Returns the program of a pattern in its normal form, or any other."""
    return PatternProgram.of(parse(pattern))
