"""Settings that are about questions: arguments of `ask` that a connection sets, and what messages call them."""

from __future__ import annotations

from typing import Any

from discreet.hint_text import Spelling
from discreet.requests.argument_kinds import Kind, covered, read_argument
from discreet.requests.argument_texts import read_text
from discreet.requests.question_requests import Ask
from discreet.requests.request import Argument, Request, arguments

PREFIX = "discreet."
PROJECT, KEY = "discreet.project", "discreet.key"
"""Who pays beside the caller, and the idempotency key of the next question."""

_SET: tuple[Kind, ...] = (
    Kind.NAME,
    Kind.NAMES,
    Kind.TEXT,
    Kind.AMOUNT,
    Kind.SHARE,
    Kind.DELTA,
    Kind.PRICE,
    Kind.COUNT,
    Kind.LIMITS,
)
_SET += (Kind.VALUE, Kind.GENERATOR, Kind.DOMAIN, Kind.DOMAINS, Kind.RULES)
_NOT_SET = (Kind.SQL, Kind.VALUES, Kind.LEARNER, Kind.BUDGET)
_IS_SETTING = covered({**dict.fromkeys(_SET, True), **dict.fromkeys(_NOT_SET, False)}, "wire")
"""Which kinds are set as texts: a query and its values are the statement's own, learners and budgets are not set."""


def settings_of(request: type[Request[Any]]) -> dict[str, Argument]:
    """Returns the arguments of a request that are settings, by the names of these."""
    offered = (each for each in arguments(request) if "wire" in each.arg.faces)
    return {f"{PREFIX}{each.name}": each for each in offered if _IS_SETTING[each.arg.kind]}


ASKING = settings_of(Ask)
"""The settings that say how questions are asked."""


def read_setting(name: str, text: str) -> Any:
    """Returns what a setting of `ASKING` says, as `Work` takes it.

    Raises:
        InvalidParameter: naming the argument, if it does not fit.
    """
    argument = ASKING[name]
    said = read_text(argument.name, text, argument.arg)
    read_argument(argument.name, said, argument.arg)
    return said


def _name(argument: str) -> str:
    return f"{PREFIX}{argument}" if f"{PREFIX}{argument}" in ASKING else argument


WIRE = Spelling(name=_name, given=lambda name, value: f"{_name(name)} = {value}" if value else _name(name))
"""How messages write arguments: as SET takes them."""
