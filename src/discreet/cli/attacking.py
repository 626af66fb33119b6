"""`discreet attack NAME FILE...`: each attack on files, alone or beside defences."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from discreet import attacks
from discreet.attacks.tables import Columns, chosen, columns_of
from discreet.cli.findings import attacked
from discreet.errors import InvalidParameter


class Named(TyperGroup):
    """Attacks by the names they have in Python, or with dashes."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The attack of a name."""
        return super().get_command(ctx, cmd_name.replace("_", "-"))


app = typer.Typer(
    cls=Named,
    help="Attack a release: who can be found in it, what can be told about them, and what noise changes.",
    no_args_is_help=True,
)

Table = Annotated[Path, typer.Argument(metavar="FILE", help="A CSV or Parquet file, one row a person.", dir_okay=False)]
On = Annotated[list[str], typer.Option("--on", help="A column that others may know; repeat it for each.")]
Sensitive = Annotated[str | None, typer.Option(help="The column that nobody should learn about a person.")]
Needed = Annotated[str, typer.Option(help="The column that nobody should learn about a person.")]
Compare = Annotated[bool, typer.Option("--compare", help="Protect the file in several ways, and attack each release.")]
Epsilon = Annotated[list[str] | None, typer.Option(help="Of a private release, for --compare; repeat it for each.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Html = Annotated[Path | None, typer.Option(help="Also write a page with charts.", dir_okay=False)]
User = Annotated[str, typer.Option(help="The column that says whose rating it is.")]
Item = Annotated[str, typer.Option(help="The column of what was rated.")]
Rating = Annotated[str, typer.Option(help="The column of ratings.")]
Day = Annotated[str, typer.Option(help="The column of dates, or of numbers of days.")]

EPSILONS = ("0.1", "1", "10")


@app.command()
def uniqueness(
    file: Table,
    *,
    on: On,
    cells: Annotated[int | None, typer.Option(help="Equally likely combinations, for a prediction.")] = None,
    sensitive: Sensitive = None,
    compare: Compare = False,
    epsilon: Epsilon = None,
    json: Json = False,
    html: Html = None,
) -> None:
    """Count the people whom a few ordinary columns single out, and say which column to coarsen."""
    if compare:
        secret = _needed(sensitive, "sensitive")
        run = partial(attacks.uniqueness.compare, file, on, sensitive=secret, epsilons=epsilon or EPSILONS)
        attacked(run, as_json=json, html=html)
    else:
        attacked(partial(attacks.uniqueness, file, on, cells=cells), as_json=json, html=html)


@app.command()
def linkage(
    file: Table,
    named: Annotated[Path, typer.Argument(metavar="NAMED", help="A list with names.", dir_okay=False)],
    *,
    on: On,
    population: Annotated[Path | None, typer.Option(help="Everybody, if there is such a file.", dir_okay=False)] = None,
    sensitive: Sensitive = None,
    truth: Annotated[str | None, typer.Option(help="A column of both that says who is who, to keep score.")] = None,
    compare: Compare = False,
    epsilon: Epsilon = None,
    json: Json = False,
    html: Html = None,
) -> None:
    """Join a file without names with a list that has them."""
    if compare:
        secret, who, tried = _needed(sensitive, "sensitive"), _needed(truth, "truth"), epsilon or EPSILONS
        run = partial(attacks.linkage.compare, file, named, on=on, sensitive=secret, truth=who, epsilons=tried)
        attacked(run, as_json=json, html=html)
    else:
        alone = partial(attacks.linkage, file, named, on=on, population=population, sensitive=sensitive, truth=truth)
        attacked(alone, as_json=json, html=html)


@app.command()
def k_anonymity(
    file: Table,
    *,
    on: On,
    sensitive: Needed,
    compare: Compare = False,
    epsilon: Epsilon = None,
    json: Json = False,
    html: Html = None,
) -> None:
    """Measure k-anonymity, l-diversity and t-closeness, and whose secret is told in spite of them."""
    if compare:
        run = partial(attacks.k_anonymity.compare, file, quasi=on, sensitive=sensitive, epsilons=epsilon or EPSILONS)
        attacked(run, as_json=json, html=html)
    else:
        attacked(partial(attacks.k_anonymity, file, quasi=on, sensitive=sensitive), as_json=json, html=html)


@app.command()
def intersection(
    file: Table,
    other: Annotated[Path | None, typer.Argument(metavar="[OTHER]", help="A second release.", dir_okay=False)] = None,
    *,
    on: On,
    sensitive: Needed,
    person: Annotated[str | None, typer.Option(help="A column of both that says who is who, to keep score.")] = None,
    compare: Compare = False,
    epsilon: Epsilon = None,
    json: Json = False,
    html: Html = None,
) -> None:
    """Lay one release over another and intersect what they say about the same people."""
    if compare:
        run = partial(attacks.intersection.compare, file, quasi=on, sensitive=sensitive, epsilons=epsilon or EPSILONS)
        attacked(run, as_json=json, html=html)
    elif other is None:
        raise InvalidParameter("OTHER", None, "to be a file", "Name two releases, or one table with --compare.")
    else:
        who = _needed(person, "person")
        alone = partial(attacks.intersection, file, other, on=on, sensitive=sensitive, person=who)
        attacked(alone, as_json=json, html=html)


@app.command()
def scoreboard(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One row a rating.", dir_okay=False)],
    known: Annotated[Path | None, typer.Argument(metavar="[KNOWN]", help="What is known.", dir_okay=False)] = None,
    *,
    user: User = "user",
    item: Item = "item",
    rating: Rating = "rating",
    day: Day = "day",
    seconds: Annotated[bool, typer.Option("--seconds", help="Dates are numbers of seconds.")] = False,
    items: Annotated[int, typer.Option(help="Without KNOWN: ratings that are known of each person.")] = 8,
    days: Annotated[int, typer.Option(help="Without KNOWN: by how many days known dates are off, at most.")] = 14,
    json: Json = False,
    html: Html = None,
) -> None:
    """Find people's records of ratings by a few ratings that are roughly known."""
    ratings, given = _rated(file, day, seconds), None if known is None else _rated(known, day, seconds)

    def run() -> attacks.Scoreboard:
        about = given or attacks.known_ratings(
            ratings, items=items, days=days, user=user, item=item, rating=rating, day=day
        )
        return attacks.scoreboard(ratings, about, user=user, item=item, rating=rating, day=day)

    attacked(run, as_json=json, html=html)


def _rated(file: Path, day: str, seconds: bool) -> Columns:
    """A table of ratings with dates in days."""
    columns = columns_of(file)
    if seconds:
        (moments,) = chosen(columns, [day], parameter="--day")
        columns[day] = moments.astype(float) / (24 * 60 * 60)
    return columns


def _needed(given: str | None, name: str) -> str:
    if given is None:
        raise InvalidParameter(f"--{name}", None, "to name a column", f"Add --{name} COLUMN.")
    return given
