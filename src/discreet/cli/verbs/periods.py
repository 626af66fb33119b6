"""`discreet stream`: start a stream, release its periods one by one, and show what was released."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.output import say, stages
from discreet.cli.verbs.verb_commands import CommandCall, command, print_result
from discreet.curator.curator import Curator
from discreet.errors import InvalidParameter
from discreet.requests.question_requests import Ask
from discreet.requests.table_requests import OpenStream

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def stream() -> None:
    """Publish running totals of a query for one charge, one period at a time."""


Period = Annotated[
    str | None, typer.Option(help="The period to release, or an earlier period to show again. Default: the next one.")
]

_NAMED = ("name", "confidence", "state", "analyst", "json", "csv", "config")


@app.command()
@command(OpenStream, positional=("name", "sql"), without=("choose_limits", "confidence", "key", "json", "csv"))
def start(call: CommandCall) -> None:
    """Start a stream and pay for all of it. The same command again changes nothing."""
    whole = call.values["every"].isdigit()
    numbers = {"every": int(call.values["every"]), "start": _first(call.values["start"])} if whole else {}
    request = call.request(OpenStream, **numbers)
    with stages("Starting"), Curator.from_config(call.config, opening=False) as curator:
        stream = curator.perform(request, call.caller)
        told = f"Started {request.name!r} for {stream.cost}, charged once: {stream.method}."
        told = f"{told} Next period: {stream.next_period}."
    say(told)


@app.command()
@command(OpenStream, positional=("name",), only=_NAMED)
def release(call: CommandCall, *, period: Period = None) -> None:
    """Read the next period and release its totals. A released period is shown again, and not read."""
    with stages("Releasing"), Curator.from_config(call.config, opening=False) as curator:
        answer = curator.perform(call.request(OpenStream), call.caller).release(period=period)
    print_result(Ask, answer, call.form)


@app.command()
@command(OpenStream, positional=("name",), only=_NAMED)
def show(call: CommandCall) -> None:
    """Show everything that a stream has released. Reads no data and costs nothing."""
    with Curator.from_config(call.config, opening=False) as curator:
        answer = curator.perform(call.request(OpenStream), call.caller).answers()
    print_result(Ask, answer, call.form)


def _first(start: str | None) -> int | None:
    """Returns the first number of periods that are numbers."""
    if start is None:
        return None
    try:
        return int(start)
    except ValueError:
        raise InvalidParameter("start", start, "to be a whole number, as the periods are") from None
