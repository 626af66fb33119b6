"""Hints as templates, which each face (Python, command line, service) spells in its own way; a mark below a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, Self


class Spelling(NamedTuple):
    """The way a face writes arguments: Python ``epsilon=0.1``, the command line ``--epsilon 0.1``.

    Attributes:
        name: writes the name of an argument alone.
        given: writes an argument with a value; the value is empty where only its use is meant.
    """

    name: Callable[[str], str]
    given: Callable[[str, str], str]


PYTHON = Spelling(name=str, given=lambda name, value: f"{name}={value}")


class Hint(str):
    """Says what to do instead, with arguments that every face spells in its own way.

    Args:
        template: a text in which ``{epsilon:0.1}`` means an argument with a value, ``{within}`` one without.

    >>> hint = Hint("Pass e.g. {epsilon:0.1}.")
    >>> print(hint, "|", hint.spell_for(Spelling(name="--{}".format, given="--{} {}".format)))
    Pass e.g. epsilon=0.1. | Pass e.g. --epsilon 0.1.
    """

    __slots__ = ("template",)
    template: str

    def __new__(cls, template: str) -> Self:
        """Returns the text as Python spells it."""
        made = super().__new__(cls, _spell_arguments(template, PYTHON))
        made.template = template
        return made

    def __getnewargs__(self) -> tuple[str]:
        return (self.template,)

    def spell_for(self, spelling: Spelling) -> str:
        """Returns the text as a face spells it."""
        return _spell_arguments(self.template, spelling)


def spell(text: str, spelling: Spelling) -> str:
    """Returns a text as a face spells it; one that is no hint stays as it is."""
    return text.spell_for(spelling) if isinstance(text, Hint) else text


_ARGUMENT = re.compile(r"\{([a-z_]+)(?::([^{}\s][^{}]*))?\}")


def _spell_arguments(template: str, spelling: Spelling) -> str:
    return _ARGUMENT.sub(lambda found: spelling.given(found[1], found[2] or ""), template)


_BUDGET = re.compile(r"((?:epsilon|rho)=[^\s,]+(?:, delta=[^\s,]+)?) ")


def spell_expected(reason: str, name: str, spelling: Spelling) -> str:
    """Returns "Expected name=value ..." as a face spells it; a budget, which may be several arguments, as it is given.

    >>> shell = Spelling(name="--{}".format, given=lambda _, value: value.replace("Budget(rho=", "--rho ").rstrip(")"))
    >>> spell_expected("Expected cap=rho=1 to fit.", "cap", shell), spell_expected("Expected n=0 > 0.", "n", shell)
    ('Expected --rho 1 to fit.', 'Expected --n=0 > 0.')
    """
    after = reason.partition(f"Expected {name}=")[2]
    budget = _BUDGET.match(after)
    if budget is not None and spelling is not PYTHON:
        return f"Expected {spelling.given(name, f'Budget({budget[1]})')} {after[budget.end() :]}"
    return reason.replace(f"Expected {name}=", f"Expected {spelling.name(name)}=", 1)


_WIDTH, _BEFORE = 100, 60  # of what is shown of a long line, and of what comes before the place


def point_at(text: str, position: tuple[int, int]) -> str:
    """Returns the line of a text at a position, and a mark below it; nothing if there is no such line."""
    (number, column), lines = position, text.split("\n")
    if not 0 < number <= len(lines):
        return ""
    start = max(0, column - 1 - _BEFORE)
    shown = "".join(c if c.isprintable() else " " for c in lines[number - 1][start : start + _WIDTH])
    return f"\n  {shown}\n  {' ' * (column - 1 - start)}^"
