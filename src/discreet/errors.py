"""Every exception of the library, each with the fields a program needs and a sentence a person can act on."""

from __future__ import annotations

from typing import Any


class DiscreetError(Exception):
    """The root of all errors raised on purpose by this library."""


class InvalidParameter(DiscreetError, ValueError):
    """A parameter is outside its domain; raised before anything is drawn, spent or read.

    >>> raise InvalidParameter("epsilon", -1, "> 0", "Pass a positive number, e.g. epsilon=0.1.")
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected epsilon=-1 > 0. Pass a positive number, e.g. epsilon=0.1.
    """

    def __init__(self, name: str, value: object, condition: str, hint: str = "") -> None:
        self.name, self.value, self.condition, self.hint = name, value, condition, hint
        super().__init__(f"Expected {name}={_short(value)} {condition}." + (f" {hint}" if hint else ""))


class InvalidValue(DiscreetError, ValueError):
    """A private value cannot be released as it is; the message never repeats the value."""

    def __init__(self, condition: str, hint: str) -> None:
        self.condition, self.hint = condition, hint
        super().__init__(f"Expected the value {condition}. {hint}")


class UnsupportedEvent(DiscreetError, TypeError):
    """An accounting method has no price for an event: refused, never guessed."""

    def __init__(self, event: object, method: str, hint: str = "") -> None:
        self.event, self.method, self.hint = event, method, hint
        super().__init__(f"{method} has no price for {_short(event)}." + (f" {hint}" if hint else ""))


class InsufficientBudget(DiscreetError):
    """A charge would exceed what is left; nothing was spent by asking."""

    def __init__(self, requested: Any, remaining: Any, hint: str = "") -> None:
        self.requested, self.remaining = requested, remaining
        super().__init__(f"The charge needs {requested}; {remaining} remain." + (f" {hint}" if hint else ""))


class RandomnessUnavailable(DiscreetError):
    """The operating system refused to give random bytes; no noise is drawn without them."""


class InternalError(DiscreetError):
    """A promise of the library to itself was broken: our fault, please report it."""


def _short(value: object, limit: int = 120) -> str:
    try:
        text = str(value) if not isinstance(value, str) else repr(value)
    except ValueError:  # an integer beyond the interpreter's limit for printing
        text = f"a {type(value).__name__} of more than 4300 digits"
    return text if len(text) <= limit else text[: limit - 3] + "..."
