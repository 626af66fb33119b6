"""The meanings of functions of texts in plain Python: letter case and trimming, parts, searches, LIKE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.plan.expressions.functions import LONGEST_TEXT
from discreet.plan.expressions.letter_case import lower_case, upper_case
from discreet.plan.expressions.pattern_matcher import program


def _substring(text: str, position: int, length: int) -> str:
    begin, end = position - 1, position - 1 + max(length, 0)
    return text[max(begin, 0) : max(end, 0)]


def _concat(first: str, second: str) -> str | None:
    return first + second if len(first) + len(second) <= LONGEST_TEXT else None


def _replace(text: str, old: str, new: str) -> str | None:
    if len(new) > len(old) and len(text) * len(new) > LONGEST_TEXT:
        return None
    return text.replace(old, new) if old else text


def _split_part(text: str, separator: str, place: int) -> str:
    parts = text.split(separator) if separator else [text]
    index = place - 1 if place > 0 else place
    return parts[index] if place and -len(parts) <= index < len(parts) else ""


def _like(text: str, pattern: str) -> bool:
    """One step back to the last % is enough, so the time is the product of the lengths at most."""
    at = place = 0
    retry, resume = -1, 0  # after the last % of the pattern, and where in the text it has been tried
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            retry, resume = place + 1, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at, place = at + 1, place + 1
        elif retry >= 0:
            resume += 1
            at, place = resume, retry
        else:
            return False
    return not pattern[place:].strip("%")


_ASCII_UPPER = {ord(letter): letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}
_ASCII_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}

TEXTS: dict[str, Callable[..., Any]] = {
    "like": _like,
    "upper": lambda text: text.translate(_ASCII_UPPER),
    "lower": lambda text: text.translate(_ASCII_LOWER),
    "upper_case": upper_case,
    "lower_case": lower_case,
    "trim": lambda text: text.strip(" "),
    "trim_left": lambda text: text.lstrip(" "),
    "trim_right": lambda text: text.rstrip(" "),
    "strip": lambda text, signs: text.strip(signs),
    "strip_left": lambda text, signs: text.lstrip(signs),
    "strip_right": lambda text, signs: text.rstrip(signs),
    "matches": lambda text, pattern: program(pattern).matches(text),
    "extract": lambda text, pattern: program(pattern).group(text),
    "length": len,
    "substring": _substring,
    "concat": _concat,
    "replace": _replace,
    "split_part": _split_part,
    "position": lambda text, part: text.find(part) + 1,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": str.__contains__,
}
"""By the names of `functions.FUNCTIONS`; no argument is NULL."""
