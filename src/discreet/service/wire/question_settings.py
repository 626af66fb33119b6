"""Settings that are about questions: arguments of `ask` that a connection sets, and what messages call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.hint_text import Spelling
from discreet.requests.argument_kinds import Arg, Kind, covered, read_argument
from discreet.requests.argument_texts import read_text
from discreet.requests.question_requests import Ask
from discreet.requests.request import Argument, Request, arguments

PREFIX = "discreet."
PROJECT, KEY = "discreet.project", "discreet.key"
"""Who pays beside the caller, and the idempotency key of the next question."""

Read = Callable[[str, str, Arg], Any]


def _read(name: str, text: str, arg: Arg) -> Any:
    """Returns what a text says, if it fits its argument."""
    said = read_text(name, text, arg)
    read_argument(name, said, arg)
    return said


_NOT_SET: Mapping[Kind, Read | None] = dict.fromkeys((Kind.SQL, Kind.VALUES, Kind.LEARNER, Kind.BUDGET))
_NUMBERS: Mapping[Kind, Read | None] = dict.fromkeys(
    (Kind.AMOUNT, Kind.SHARE, Kind.DELTA, Kind.PRICE, Kind.COUNT), _read
)
_WORDS: Mapping[Kind, Read | None] = dict.fromkeys(
    (Kind.NAME, Kind.NAMES, Kind.TEXT, Kind.VALUE, Kind.LIMITS, Kind.GENERATOR), _read
)
_OBJECTS: Mapping[Kind, Read | None] = dict.fromkeys((Kind.DOMAIN, Kind.DOMAINS, Kind.RULES), _read)
_SETTINGS = covered({**_NOT_SET, **_NUMBERS, **_WORDS, **_OBJECTS}, "wire")
"""How settings are read; None for a query and its values, which are the statement's own, and for what nobody sets."""


def settings_of(request: type[Request[Any]]) -> dict[str, Argument]:
    """Returns the arguments of a request that are settings, by the names of these."""
    offered = (each for each in arguments(request) if "wire" in each.arg.faces)
    return {f"{PREFIX}{each.name}": each for each in offered if _SETTINGS[each.arg.kind] is not None}


ASKING = settings_of(Ask)
"""The settings that say how questions are asked."""


def read_setting(name: str, text: str) -> Any:
    """Returns what a setting of `ASKING` says, as `Work` takes it.

    Raises:
        InvalidParameter: naming the argument, if it does not fit.
    """
    argument = ASKING[name]
    read = _SETTINGS[argument.arg.kind]
    return text if read is None else read(argument.name, text, argument.arg)


def _name(argument: str) -> str:
    return f"{PREFIX}{argument}" if f"{PREFIX}{argument}" in ASKING else argument


WIRE = Spelling(name=_name, given=lambda name, value: f"{_name(name)} = {value}" if value else _name(name))
"""How messages write arguments: as SET takes them."""
