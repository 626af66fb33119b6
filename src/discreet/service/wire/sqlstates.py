"""Errors as PostgreSQL reports them: a SQLSTATE for each class, with position and hint."""

from __future__ import annotations

from discreet import errors
from discreet.errors import DiscreetError, explained
from discreet.service.wire.question_settings import WIRE

SQLSTATES: dict[type[BaseException], str] = {
    errors.InvalidParameter: "22023",  # invalid_parameter_value
    errors.InvalidValue: "22000",  # data_exception
    errors.UnsupportedQuery: "0A000",  # feature_not_supported
    errors.UnsupportedEvent: "0A000",
    errors.UnknownTable: "42P01",  # undefined_table
    errors.InsufficientBudget: "53400",  # configuration_limit_exceeded
    errors.AccountLocked: "55006",  # object_in_use
    errors.KeyConflict: "23505",  # unique_violation
    errors.RunsUsedUp: "55000",  # object_not_in_prerequisite_state
    errors.NotPermitted: "42501",  # insufficient_privilege
    errors.LedgerTampered: "58000",  # system_error
    errors.LedgerError: "58000",
    errors.LedgerUnavailable: "57P03",  # cannot_connect_now
    errors.QueryFailed: "58000",
    errors.StreamError: "58000",
    errors.NotAuthenticated: "28000",  # invalid_authorization_specification
    errors.TooManyRequests: "53400",
    errors.ServiceUnavailable: "57P03",  # cannot_connect_now
    errors.UnknownJob: "42704",  # undefined_object
    errors.ServiceError: "58000",
    errors.RandomnessUnavailable: "58000",
    errors.MissingExtra: "58000",
    errors.InternalError: "XX000",
}
"""The nearest class decides."""

_FAULT = "Something went wrong that should not have; nothing is said about why."


class WireError(Exception):
    """An error of the protocol or of a command, as it is reported.

    Args:
        sqlstate: PostgreSQL's code.
        message: what is wrong.
        hint: what to do.
        place: the character of the statement at which it is, from 0; None if at none.
        fatal: whether the connection ends.
    """

    def __init__(
        self, sqlstate: str, message: str, hint: str = "", *, place: int | None = None, fatal: bool = False
    ) -> None:
        self.sqlstate, self.message, self.hint, self.place, self.fatal = sqlstate, message, hint, place, fatal
        super().__init__(message)


def sqlstate(error: BaseException) -> str:
    """Returns the code of an error; an unknown one is our fault."""
    return next((SQLSTATES[kind] for kind in type(error).__mro__ if kind in SQLSTATES), "XX000")


def wire_error(error: BaseException, text: str = "", *, before: int = 0) -> WireError:
    """Returns any error as it is reported.

    Args:
        error: what was raised; what is none of ours is not repeated.
        text: the statement, in which line and column are looked up.
        before: characters of the statement before the part that was read.
    """
    if isinstance(error, WireError):
        return error
    if not isinstance(error, DiscreetError) or isinstance(error, errors.InternalError):
        return WireError("XX000", _FAULT)
    position, told = getattr(error, "position", None), explained(error, WIRE)
    message, hint = told[type(error).__name__], told.get("Hint", "")
    place = None if position is None else _place(text[before:], position)
    fatal = isinstance(error, errors.NotAuthenticated)
    return WireError(sqlstate(error), message, hint, place=None if place is None else place + before, fatal=fatal)


def _place(text: str, position: tuple[int, int]) -> int | None:
    """The character at a line and a column, both from 1."""
    lines = text.split("\n")
    line, column = position
    if not 0 < line <= len(lines):
        return None
    return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1


def fields(error: WireError, *, offset: int = 0) -> dict[str, str]:
    """Returns the fields of a report; positions count characters of the whole message, from 1."""
    severity = "FATAL" if error.fatal else "ERROR"
    position = "" if error.place is None else str(error.place + offset + 1)
    return {"S": severity, "V": severity, "C": error.sqlstate, "M": error.message, "H": error.hint, "P": position}


def notice(message: str, *, detail: str = "") -> dict[str, str]:
    """Returns the fields of a notice."""
    return {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": message, "D": detail}
