"""Errors as help: what went wrong, what to do, where; and the exit code that says which kind it was.

No traceback is ever shown. Messages of this library are functions of public facts; those of anything else could hold
data, so they are dropped.
"""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from discreet.errors import (
    DiscreetError,
    InsufficientBudget,
    InternalError,
    InvalidParameter,
    KeyConflict,
    NotPermitted,
    UnknownTable,
    UnsupportedEvent,
    UnsupportedQuery,
)
from discreet.report.display import printable

WRONG_USAGE, BUDGET_REFUSED, QUESTION_REFUSED, FAILED = 2, 3, 4, 5
STOPPED = 130  # as of every program that Ctrl-C ends: 128 and the number of the signal
_CODES: tuple[tuple[type[DiscreetError], int], ...] = (
    (InsufficientBudget, BUDGET_REFUSED),
    (UnsupportedQuery, QUESTION_REFUSED),
    (UnknownTable, QUESTION_REFUSED),
    (UnsupportedEvent, QUESTION_REFUSED),
    (InvalidParameter, WRONG_USAGE),
    (NotPermitted, WRONG_USAGE),  # --analyst or --project names somebody who may not
    (KeyConflict, WRONG_USAGE),  # --key belongs to another question
    (DiscreetError, FAILED),
)


def exit_code(error: DiscreetError) -> int:
    """2 wrong usage, 3 budget refused, 4 question refused, 5 failed.

    >>> exit_code(UnknownTable("vists", ["visits"]))
    4
    """
    return next(code for kind, code in _CODES if isinstance(error, kind))


def explanation(error: DiscreetError) -> dict[str, str]:
    """An error as labelled lines: its kind with the reason, then the hint and the position where it has them.

    >>> explanation(UnsupportedQuery("A join reads two tables.", "Ask about one.", (1, 15)))
    {'UnsupportedQuery': 'A join reads two tables.', 'Hint': 'Ask about one.', 'Position': 'line 1, column 15'}
    """
    position, hint = getattr(error, "position", None), getattr(error, "hint", "")
    where = f"line {position[0]}, column {position[1]}" if position else ""
    reason = str(error).removesuffix(f" ({where})").removesuffix(hint).strip()
    return {type(error).__name__: reason} | ({"Hint": hint} if hint else {}) | ({"Position": where} if where else {})


def show(error: DiscreetError) -> None:
    """Prints an error to standard error, unwrapped so that what it proposes can be copied."""
    console = Console(stderr=True, highlight=False)
    for label, text in explanation(error).items():
        colour = "bold red" if label not in ("Hint", "Position") else "bold"
        console.print(Text.assemble((f"{label}: ", colour), printable(text, lines=True)), soft_wrap=True)


def stopped(error: KeyboardInterrupt) -> None:
    """Says what Ctrl-C has stopped: its notes are this library's own words."""
    console = Console(stderr=True, highlight=False)
    for line in ("Stopped.", *getattr(error, "__notes__", ())):
        console.print(Text(printable(line)), soft_wrap=True)


class Guarded(TyperGroup):
    """A group of commands whose errors become help and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Runs a command."""
        try:
            return super().invoke(ctx)
        except DiscreetError as error:
            found: DiscreetError = error
        except KeyboardInterrupt as error:
            stopped(error)
            raise typer.Exit(STOPPED) from None
        except BrokenPipeError:  # whoever read our output has read enough
            raise
        except OSError as error:  # the system's own words name files, never their content
            found = InvalidParameter("file", error.filename or "a file", f"to be usable: {error.strerror}")
        except Exception as error:  # an unforeseen message could hold data: only its kind is told
            if type(error).__module__.startswith(("click", "typer")):
                raise
            found = InternalError(f"Something unforeseen happened ({type(error).__name__}). Please report it.")
        show(found)
        raise typer.Exit(exit_code(found)) from None
