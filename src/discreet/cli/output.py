"""What leaves the program: values as text, the forms JSON and CSV, errors as help, and exit codes."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.errors import (
    AccountLocked,
    AnchorNotKept,
    DiscreetError,
    InsufficientBudget,
    InvalidParameter,
    KeyConflict,
    NotPermitted,
    RunsUsedUp,
    UnknownTable,
    UnsupportedEvent,
    UnsupportedQuery,
    explain_error,
)
from discreet.hint_text import PYTHON, Spelling
from discreet.lazy import rich_console, rich_table, rich_text
from discreet.progress import told_to
from discreet.report.display import printable

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV: x, x_low and x_high for every number of an answer.")]
file_argument: Any = partial(typer.Argument, dir_okay=False)
file_option: Any = partial(typer.Option, dir_okay=False)
Html = Annotated[Path | None, file_option(help="Also write a page with charts.")]

WRONG_USAGE, BUDGET_REFUSED, QUESTION_REFUSED, FAILED = 2, 3, 4, 5
COMMAND_LINE = Spelling(
    name=lambda name: f"--{name.replace('_', '-')}",
    given=lambda name, value: f"--{name.replace('_', '-')} {value}".strip(),
)
"""How arguments are written in helps, where every one of them is an option."""

STOPPED = 130  # as of every program that Ctrl-C ends: 128 and the number of the signal
_CODES: tuple[tuple[type[DiscreetError], int], ...] = (
    (InsufficientBudget, BUDGET_REFUSED),
    (AccountLocked, BUDGET_REFUSED),  # failure credits are used up: nothing was read, and a steward decides
    (UnsupportedQuery, QUESTION_REFUSED),
    (UnknownTable, QUESTION_REFUSED),
    (UnsupportedEvent, QUESTION_REFUSED),
    (InvalidParameter, WRONG_USAGE),
    (NotPermitted, WRONG_USAGE),  # --analyst or --project names a person or project that may not
    (KeyConflict, WRONG_USAGE),  # --key belongs to another question
    (RunsUsedUp, BUDGET_REFUSED),  # --key was run three times: nothing was read, and another key is another charge
    (DiscreetError, FAILED),
)


def with_options(run: Callable[..., None], options: Iterable[Parameter], *, like: Any) -> Callable[..., None]:
    """Returns a function as Typer reads it: with options, and with the name and the help of another one."""
    found = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]
    run.__name__, run.__doc__ = like.__name__, like.__doc__
    run.__signature__ = Signature(found)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in found}
    return run


class OutputFormat(Enum):
    """The form in which a result is printed."""

    TABLE, JSON, CSV = "table", "json", "csv"


def form(*, as_json: bool, as_csv: bool) -> OutputFormat:
    """Returns the form that two options choose.

    Raises:
        InvalidParameter: if both are given.
    """
    if as_json and as_csv:
        raise InvalidParameter("--csv", "given", "without --json", "Choose one of them.")
    return OutputFormat.JSON if as_json else OutputFormat.CSV if as_csv else OutputFormat.TABLE


def say(text: str) -> None:
    """Prints a sentence as one line."""
    rich_console.Console(highlight=False, markup=False).print(printable(text), soft_wrap=True)


def draw_table(
    columns: Iterable[rich_table.Column | str], rows: Iterable[Iterable[str]], **style: Any
) -> rich_table.Table:
    """Returns a table whose cells are texts as they are: nothing in them is markup, or controls a terminal."""
    drawn = rich_table.Table(*columns, highlight=False, **style)
    for row in rows:
        drawn.add_row(*(rich_text.Text(printable(cell)) for cell in row))
    return drawn


@contextmanager
def stages(first: str) -> Iterator[None]:
    """Shows what is being done on a terminal, from the start until it ends: names of planned stages, and nothing more.

    No bar: how far a run has come can depend on what was drawn for it.
    """
    if not sys.stderr.isatty() and not _FORCED & os.environ.keys():  # a pipe, which needs nothing of rich
        yield
        return
    shown = rich_console.Console(stderr=True).status(first)
    with shown, told_to(lambda name: shown.update(rich_text.Text(printable(name)))):
        yield


_FORCED = {"FORCE_COLOR", "TTY_COMPATIBLE"}  # by which rich takes what is no terminal for one


def create_file(path: Path, text: str, *, mode: int, name: str, hint: str) -> None:
    """Writes a new file.

    Raises:
        InvalidParameter: if there is one, which is left as it is.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise InvalidParameter(name, str(path), "not to exist yet", f"{hint} The existing file is unchanged.") from None
    with os.fdopen(handle, "w", encoding="utf-8") as target:
        target.write(text)


def write_page(text: str, path: Path, option: str) -> None:
    """Writes a page that is one complete file, and replaces an older one.

    Raises:
        InvalidParameter: if the file cannot be written; it names the option.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        raise InvalidParameter(option, str(path), "to be a file that can be written", "Name another file.") from None


def json_text(fields: Any) -> str:
    r"""Returns plain values as JSON in which every control character is escaped.

    >>> json_text("\x7f\x1b")
    '"\\u007f\\u001b"'
    """
    return json.dumps(fields, indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def print_json(fields: Any) -> None:
    """Prints plain values as JSON."""
    typer.echo(json_text(fields))


def exit_code(error: DiscreetError) -> int:
    """Returns the exit code of an error: 2 wrong usage, 3 budget refused, 4 question refused, 5 failed.

    >>> exit_code(UnknownTable("vists", ["visits"]))
    4
    """
    return next(code for kind, code in _CODES if isinstance(error, kind))


def spelling_of(command: Any, error: DiscreetError) -> Spelling:
    """Returns how the command line spells the arguments of a command; other names stay as they are.

    Errors about discreet.toml do not name options: there, amounts are written as in Python.
    """
    words: dict[str, str] = {}
    whole: dict[str, str] = {}  # options that are never written with a value of Python: flags and files
    for parameter in getattr(command, "params", ()):
        option = parameter.param_type_name == "option"
        word = parameter.opts[0] if option else (parameter.metavar or parameter.name.upper()).strip("[].")
        words |= {parameter.name: word, **({word.lstrip("-").replace("-", "_"): word} if option else {})}
        if option and (parameter.is_flag or parameter.metavar == "FILE"):
            whole[parameter.name] = word if parameter.is_flag else f"{word} FILE"
    parts: Mapping[str, str] = getattr(getattr(command, "callback", None), "arguments", {})
    for part, argument in parts.items():  # an argument of several options goes by the first of them
        words.setdefault(argument, words.get(part, argument))
        words.setdefault(f"{argument}.{part}", words.get(part, argument))
    name = getattr(error, "name", None) or ""
    if "." in name and name not in words:
        return PYTHON
    return Spelling(
        name=lambda name: words.get(name, name),
        given=lambda name, value: whole.get(name) or _spell_argument(words, name, value),
    )


def _spell_argument(words: Mapping[str, str], name: str, value: str) -> str:
    """Returns an argument with its value; a budget becomes several options, each with its own value."""
    amounts = _BUDGET.fullmatch(value)
    if name not in words:
        return PYTHON.given(name, value)
    if amounts is not None:
        return " ".join(f"{words.get(one, one)} {amount}" for one, amount in _AMOUNT.findall(amounts[1]))
    quoted = f'"{value}"' if " " in value else value
    return f"{words[name]} {quoted}".strip() if words[name].startswith("-") else quoted or words[name]


_BUDGET, _AMOUNT = re.compile(r"Budget\((.*)\)"), re.compile(r"(\w+)=([^,\s]+)")


def show_error(error: DiscreetError, spelling: Spelling = PYTHON) -> None:
    """Prints an error to standard error, unwrapped so that what it proposes can be copied."""
    for label, text in explain_error(error, spelling).items():
        _complain(printable(text, lines=True), label, "bold red" if label not in ("Hint", "Position") else "bold")


def show_stop(error: KeyboardInterrupt) -> None:
    """Prints what Ctrl-C has stopped: its notes are this library's own words."""
    for line in ("Stopped.", *getattr(error, "__notes__", ())):
        _complain(printable(line))


def show_warning(text: str) -> None:
    """Prints a warning to standard error as a line."""
    _complain(printable(text), "Warning")


def _complain(text: str, label: str = "", style: str = "bold") -> None:
    told = rich_text.Text.assemble((f"{label}: " if label else "", style), text)
    rich_console.Console(stderr=True, highlight=False).print(told, soft_wrap=True)


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Prints warnings of this library to standard error as a line, without the place in its source."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AnchorNotKept)
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, AnchorNotKept):
                show_warning(str(message))
            else:
                before(message, category, *place, **more)

        warnings.showwarning = show
        yield
