r"""Patterns read from text: the notation that RE2, PostgreSQL and Perl share, and those of LIKE and SIMILAR TO.

What these languages do not share, or what takes more than one look at each character, is refused by name. Where they
differ in meaning, one is chosen: . is every character but a line feed; ^ and $ are the ends of the text; \d, \w, \s and
\b know ASCII only, and so do names of sets such as [:alpha:].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

from discreet.plan.expressions.patterns import (
    ALL,
    DIGITS,
    SPACES,
    WORDS,
    Alternation,
    Anchor,
    CaptureGroup,
    Characters,
    Concatenation,
    PatternNode,
    Place,
    Ranges,
    Repetition,
    fold_case,
    is_word,
    nullable,
    size,
    unite_ranges,
    without,
)

DEEPEST = 20  # brackets inside each other
LARGEST = 2000  # parts and ranges of characters, those that are repeated counted each time
MOST_TIMES = 500

_SETS: dict[str, Ranges] = {"d": DIGITS, "w": WORDS, "s": SPACES}
_SIGNS = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
_NAMED: dict[str, Ranges] = {
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "digit": DIGITS,
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "upper": ((0x41, 0x5A),),
    "lower": ((0x61, 0x7A),),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "word": WORDS,
}
_PLACES: dict[str, Place] = {
    **dict.fromkeys("A", "start"),
    **dict.fromkeys("zZ", "end"),
    **dict.fromkeys("bymM", "edge"),
}
_TIMES = re.compile(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}")
_CODE = re.compile(r"x(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))")
_NAME = re.compile(r"\[:(\^?)([a-z]+):\]")


class PatternError(Exception):
    """A pattern that is not understood: why, what to do, and at which character, from 1."""

    def __init__(self, reason: str, hint: str, place: int) -> None:
        self.reason, self.hint, self.place = reason, hint, place
        super().__init__(reason)


def parse(text: str, *, fold: bool = False) -> PatternNode:
    r"""Reads a regular expression.

    Args:
        text: the pattern.
        fold: whether it is to be found in texts that are in upper and then in lower case: its letters are put so too.

    Raises:
        PatternError: if it is not understood.

    >>> from discreet.plan.expressions.patterns import write_pattern
    >>> write_pattern(parse(r"^\d{2}[^,]?"))
    '\\A[0-9]{2}[\\x{0}-\\x{2b}\\x{2d}-\\x{10ffff}]?'
    """
    found = _Reader(text, fold).whole()
    if size(found) > LARGEST:
        raise PatternError("The pattern is too large with all its repetitions.", "Repeat less, or use + or *.", 1)
    return found


@dataclass(slots=True)
class _Reader:
    """Reads a pattern from left to right; `at` is the next place in it, `depth` how many brackets are open."""

    text: str
    fold: bool
    at: int = 0
    depth: int = 0

    def whole(self) -> PatternNode:
        """Returns the pattern that the whole text is."""
        found = self._either()
        if self.at < len(self.text):
            self._refuse("A closing bracket has no opening bracket.", r"Write \) for the character.", self.at)
        return found

    def _refuse(self, reason: str, hint: str, at: int) -> NoReturn:
        raise PatternError(reason, hint, at + 1)

    def _next(self, text: str) -> bool:
        """Returns whether this comes next; then it is passed over."""
        found = self.text.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _either(self) -> PatternNode:
        parts = [self._sequence()]
        while self._next("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def _sequence(self) -> PatternNode:
        parts: list[PatternNode] = []
        edges: list[tuple[int, int]] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            begin = self.at
            parts.append(self._times(self._atom(), begin))
            if parts[-1] == Anchor("edge"):
                edges.append((len(parts) - 1, begin))
        for place, begin in edges:
            self._check_edge(begin, parts[max(place - 1, 0) : place], parts[place + 1 : place + 2])
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _check_edge(self, begin: int, before: list[PatternNode], after: list[PatternNode]) -> None:
        r"""Edges are of words of ASCII, and a word begins or ends at \m or \M if one is surely there."""
        word = self.text[begin : begin + 2]
        if any(is_foreign(part) for part in (*before, *after)):
            hint = "Write what may be next to it, such as (^| ) and ($| )."
            self._refuse(f"{word} recognizes words of ASCII letters only.", hint, begin)
        starts = any(is_word(part, last=False) for part in after)
        ends = any(is_word(part, last=True) for part in before)
        if (word == r"\m" and not starts) or (word == r"\M" and not ends):
            self._refuse(f"{word} needs an ASCII letter or digit next to it.", r"Put it there, or write \b.", begin)

    # --------------------------------------------------------------------------------------------------- repetitions

    def _times(self, part: PatternNode, begin: int) -> PatternNode:
        """Returns the part as often as the signs after it say."""
        found = self._count()
        if found is None:
            return part
        if nullable(part):
            self._refuse("A repetition needs something that takes up characters.", "Leave one of the two out.", begin)
        lazy = self._next("?")
        if self.text[self.at : self.at + 1] in ("*", "+", "?", "{"):
            self._refuse("Two repetitions follow each other.", "Leave one out.", self.at)
        return Repetition(part, *found, lazy)

    def _count(self) -> tuple[int, int | None] | None:
        known: tuple[tuple[str, int, int | None], ...] = (("*", 0, None), ("+", 1, None), ("?", 0, 1))
        for sign, least, most in known:
            if self._next(sign):
                return least, most
        return self._written_count() if self.text.startswith("{", self.at) else None

    def _written_count(self) -> tuple[int, int | None]:
        found = _TIMES.match(self.text, self.at)
        if found is None:
            self._refuse("A repetition is written {2}, {2,} or {2,5}.", r"Write \{ for the character.", self.at)
        least = int(found[1])
        most = int(found[3]) if found[3] else None if found[2] else least
        if max(least, most or 0) > MOST_TIMES or (most is not None and (most < least or most < 1)):
            self._refuse(f"A repetition goes from fewer to more times, up to {MOST_TIMES}.", "Use + or *.", self.at)
        self.at = found.end()
        return least, most

    # --------------------------------------------------------------------------------------------------------- atoms

    def _atom(self) -> PatternNode:
        sign = self.text[self.at]
        self.at += 1
        if sign in _ATOMS:
            return _ATOMS[sign](self)
        if sign in "*+?{":
            self._refuse(f"{sign} repeats nothing.", f"Write \\{sign} for the character.", self.at - 1)
        return Characters(self._fold_case(((ord(sign), ord(sign)),)))

    def _fold_case(self, ranges: Ranges) -> Ranges:
        return fold_case(ranges) if self.fold else ranges

    def _bracket(self) -> PatternNode:
        begin = self.at - 1
        plain = self._next("?:")
        if not plain and self.text.startswith("?", self.at):
            hint = "Use (...) or (?:...), and (?i) at the very beginning only."
            self._refuse("Brackets that begin with ? look around, name groups or set options.", hint, begin)
        self.depth += 1
        if self.depth > DEEPEST:
            self._refuse(f"More than {DEEPEST} brackets are nested.", "Look for less at a time.", begin)
        inner = self._either()
        if not self._next(")"):
            self._refuse("A bracket is opened and never closed.", r"Close it, or write \( for the character.", begin)
        self.depth -= 1
        return inner if plain else CaptureGroup(inner)

    def _escape(self) -> PatternNode:
        sign = self.text[self.at : self.at + 1]
        if sign in _PLACES:
            self.at += 1
            return Anchor(_PLACES[sign])
        return Characters(self._ranges(self._read_escape()))

    def _read_escape(self) -> Ranges | int:
        """Returns what a sign after a backslash means: a set, or a code point."""
        begin, sign = self.at - 1, self.text[self.at : self.at + 1]
        code = _CODE.match(self.text, self.at)
        if code is not None and int(code[1] or code[2], 16) <= ALL[0][1]:
            self.at = code.end()
            return int(code[1] or code[2], 16)
        self.at += 1
        if sign.lower() in _SETS:
            known = self._fold_case(_SETS[sign.lower()])
            return known if sign.islower() else without(known)
        if sign in _SIGNS:
            return _SIGNS[sign]
        if not sign or sign.isalnum() or not sign.isascii():
            why = "looks back at what was found" if sign.isdigit() else "is not supported"
            self._refuse(f"\\{sign} {why}.", r"Use \d, \w, \s, \b, \t, \n, or a backslash before a sign.", begin)
        return ord(sign)

    def _ranges(self, found: Ranges | int) -> Ranges:
        return found if isinstance(found, tuple) else self._fold_case(((found, found),))

    # ---------------------------------------------------------------------------------------------------------- sets

    def _set(self) -> PatternNode:
        begin, negated = self.at - 1, self._next("^")
        found = [*self._member(begin)]  # a bracket that comes first is a sign like others
        while not self._next("]"):
            found += self._member(begin)
        ranges = without(unite_ranges(found)) if negated else unite_ranges(found)
        if not ranges:
            self._refuse("The set is empty.", "Leave it out.", begin)
        return Characters(ranges)

    def _member(self, begin: int) -> Ranges:
        """Returns a sign, a range of signs, or a named set."""
        if self.text[self.at : self.at + 2] in ("[:", "[.", "[="):
            return self._read_named_set()
        low = self._end(begin)
        if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
            return self._ranges(low)
        self.at += 1
        high = self._end(begin)
        if not isinstance(low, int) or not isinstance(high, int) or low > high:
            self._refuse("A range goes from one character to a later one.", r"Write \- for the character.", begin)
        return self._fold_case(((low, high),))

    def _end(self, begin: int) -> Ranges | int:
        if self.at >= len(self.text):
            self._refuse("A set is opened and never closed.", r"Close it with ], or write \[ for the character.", begin)
        sign = self.text[self.at]
        self.at += 1
        return self._read_escape() if sign == "\\" else ord(sign)

    def _read_named_set(self) -> Ranges:
        found = _NAME.match(self.text, self.at)
        if found is None or found[2] not in _NAMED:
            self._refuse("The name of the set is not known.", f"Use one of {', '.join(_NAMED)}.", self.at)
        self.at = found.end()
        known = self._fold_case(_NAMED[found[2]])
        return without(known) if found[1] else known


_ATOMS: dict[str, Callable[[_Reader], PatternNode]] = {
    ".": lambda _: Characters(without(((0x0A, 0x0A),))),
    "^": lambda _: Anchor("start"),
    "$": lambda _: Anchor("end"),
    "(": _Reader._bracket,
    "[": _Reader._set,
    "\\": _Reader._escape,
}


def is_foreign(node: PatternNode) -> bool:
    """Returns whether a pattern names characters beyond ASCII; sets of all but a few do not."""
    if isinstance(node, Characters):
        return any(first > 0x7F for first, _ in node.ranges)
    if isinstance(node, Concatenation | Alternation):
        return any(is_foreign(part) for part in node.parts)
    return isinstance(node, Repetition | CaptureGroup) and is_foreign(node.part)


# --------------------------------------------------------------------------------------------------- LIKE, SIMILAR TO

_ANY = r"[\x{0}-\x{10ffff}]"
_WILD = {"%": f"{_ANY}*", "_": _ANY}
_SIGN_OR_SET = re.compile(r"\[\^?\]?[^\]]*\]|.", re.DOTALL)


def unescape_pattern(text: str, escape: str) -> list[tuple[str, bool]]:
    """Takes a pattern of LIKE apart: its signs, and whether each means itself, because another comes before it.

    Raises:
        PatternError: if that comes before anything else than %, _ or itself.

    >>> unescape_pattern("a!%%", "!")
    [('a', False), ('%', True), ('%', False)]
    """
    found, place = [], 0
    while place < len(text):
        sign, is_escaped = text[place], escape != "" and text[place] == escape
        if is_escaped:
            place += 1
            sign = text[place : place + 1]
            if not sign or sign not in ("%", "_", escape):
                raise PatternError(f"{escape} escapes %, _ and itself only.", "Double it for the character.", place)
        found.append((sign, is_escaped))
        place += 1
    return found


def from_like(text: str, escape: str, *, fold: bool = False) -> PatternNode:
    """Reads a pattern of LIKE with a sign that makes the next one mean itself.

    Raises:
        PatternError: if that comes before anything else than %, _ or itself.
    """
    signs = (sign if is_itself else _WILD.get(sign, sign) for sign, is_itself in unescape_pattern(text, escape))
    return parse(_whole(_itself(sign) if len(sign) == 1 else sign for sign in signs), fold=fold)


def from_similar(text: str, escape: str) -> PatternNode:
    """Reads a pattern of SIMILAR TO as SQL defines it: % and _ as in LIKE, | * + ? {} () [] as in regular expressions.

    Raises:
        PatternError: also where databases differ: at . ^ $ outside of sets, and at a backslash that is no escape.
    """
    parts, rest = [], text
    while rest:
        if escape and rest.startswith(escape) and len(rest) > 1:
            parts.append(_itself(rest[1]))
            rest = rest[2:]
        else:
            found = _SIGN_OR_SET.match(rest)
            part = found[0] if found else rest[0]
            parts.append(_similar(part, escape, len(text) - len(rest) + 1))
            rest = rest[len(part) :]
    return parse(_whole(parts))


def _similar(part: str, escape: str, place: int) -> str:
    if part in (".", "^", "$") or "\\" in part or (escape and escape in part):
        hint = "Write [.] or [$] for a character, or use regexp_full_match for a regular expression."
        raise PatternError(f"Databases read {part[:20]} in SIMILAR TO in different ways.", hint, place)
    return _WILD.get(part, part)


def _itself(sign: str) -> str:
    return f"\\x{{{ord(sign):x}}}"


def _whole(parts: Iterable[str]) -> str:
    return f"^(?:{''.join(parts)})$"
