"""Errors as PostgreSQL reports them: a SQLSTATE for each class, with position and hint."""

from __future__ import annotations

from discreet import errors
from discreet.errors import DiscreetError, explain_error
from discreet.presentation.documents.error_documents import OUR_FAULT
from discreet.service.wire.protocol_messages import WireError
from discreet.service.wire.session_parameters import WIRE

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
    errors.LedgerError: "58000",  # system_error
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
"""The code of each class of errors; the nearest class above an error decides."""


def sqlstate(error: BaseException) -> str:
    """Returns the code of an error; an unknown one is our fault."""
    return next((SQLSTATES[kind] for kind in type(error).__mro__ if kind in SQLSTATES), "XX000")


def wire_error(error: BaseException, text: str = "", *, before: int = 0) -> WireError:
    """Returns any error as it is reported.

    Args:
        error: what was raised; the text of an error that is not ours is dropped.
        text: the statement, in which line and column are looked up.
        before: characters of the statement before the part that was read.
    """
    if isinstance(error, WireError):
        return error
    if not isinstance(error, DiscreetError) or isinstance(error, errors.InternalError):
        return WireError("XX000", OUR_FAULT)
    position, told = getattr(error, "position", None), explain_error(error, WIRE)
    message, hint = told[type(error).__name__], told.get("Hint", "")
    place = None if position is None else _place(text[before:], position)
    fatal = isinstance(error, errors.NotAuthenticated)
    return WireError(sqlstate(error), message, hint, place=place, fatal=fatal).shift_place(before)


def _place(text: str, position: tuple[int, int]) -> int | None:
    """Returns the character at a line and a column, both from 1."""
    lines = text.split("\n")
    line, column = position
    if not 0 < line <= len(lines):
        return None
    return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
