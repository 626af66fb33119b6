"""`discreet stream`: start a stream, release its periods one by one, and show what was released."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import Csv, Json, form, say, stages
from discreet.cli.verbs.questions import Analyst, Confidence, Delta, Groups, Project, Question, Rows, print_answers
from discreet.curator.curator import Curator
from discreet.errors import InvalidParameter
from discreet.ledger import OWNER
from discreet.plan.model.schema import Limits

app = typer.Typer(
    name="stream",
    help="Publish again and again for one charge: running totals of a question, released one period at a time.",
    no_args_is_help=True,
    add_completion=False,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the stream.")]
Every = Annotated[str, typer.Option(help="How long a period is: day, week, month, quarter, year, or a number.")]
Horizon = Annotated[int | None, typer.Option(help="How many periods there are; leave it out if that is unknown.")]
Start = Annotated[str | None, typer.Option(help="The first day, e.g. 2026-01-01, or the first number.")]
Window = Annotated[int | None, typer.Option(help="Over how many periods sums go; all so far, unless given.")]
Periods = Annotated[int | None, typer.Option(help="In how many periods of the whole stream one unit may count.")]
Epsilon = Annotated[str | None, typer.Option(help="What the whole stream may cost; kept exactly.")]
Rho = Annotated[str | None, typer.Option(help="Instead of epsilon and delta.")]
State = Annotated[
    str | None, typer.Option(help="The file of the private state; beside the ledger, unless that is on a server.")
]
Period = Annotated[str | None, typer.Option(help="The period that is meant: the next one, or one that was released.")]


@app.command()
def start(
    name: Name,
    question: Question,
    *,
    every: Every = "day",
    horizon: Horizon = None,
    start: Start = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    window: Window = None,
    periods: Periods = None,
    limits_groups: Groups = None,
    limits_rows: Rows = None,
    analyst: Analyst = OWNER,
    project: Project = "",
    state: State = None,
    config: ConfigFile = HERE,
) -> None:
    """Start a stream and pay for all of it; again, it changes nothing."""
    whole = every.isdigit()
    limits = None if limits_groups is None and limits_rows is None else Limits(limits_groups or 1, limits_rows or 1)
    with stages("Starting"), Curator.from_config(config, opening=False) as curator:
        stream = curator.stream(
            question,
            name=name,
            every=int(every) if whole else every,
            horizon=horizon,
            start=_first(start) if whole else start,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            window=window,
            periods=periods,
            limits=limits,
            analyst=analyst,
            project=project,
            state=state,
        )
        told = f"Started {name!r} for {stream.cost}, charged once: {stream.method}. Next period: {stream.next_period}."
    say(told)


@app.command()
def release(
    name: Name,
    *,
    period: Period = None,
    analyst: Analyst = OWNER,
    confidence: Confidence = "0.95",
    state: State = None,
    json: Json = False,
    csv: Csv = False,
    config: ConfigFile = HERE,
) -> None:
    """Read the next period and release its totals; a period that was released is shown again, and not read."""
    chosen = form(as_json=json, as_csv=csv)
    with stages("Releasing"), Curator.from_config(config, opening=False) as curator:
        answer = curator.stream(name=name, analyst=analyst, confidence=confidence, state=state).release(period=period)
    print_answers([answer], chosen)


@app.command()
def show(
    name: Name,
    *,
    analyst: Analyst = OWNER,
    confidence: Confidence = "0.95",
    state: State = None,
    json: Json = False,
    csv: Csv = False,
    config: ConfigFile = HERE,
) -> None:
    """Show all that was released of a stream; reads no data, costs nothing."""
    chosen = form(as_json=json, as_csv=csv)
    with Curator.from_config(config, opening=False) as curator:
        answer = curator.stream(name=name, analyst=analyst, confidence=confidence, state=state).answers()
    print_answers([answer], chosen)


def _first(start: str | None) -> int | None:
    """The first number of periods that are numbers."""
    if start is None:
        return None
    try:
        return int(start)
    except ValueError:
        raise InvalidParameter("--start", start, "to be a whole number, as the periods are") from None
