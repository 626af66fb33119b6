"""`discreet attack NAME FILE...`: each attack on files, alone or compared with defences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer.core import TyperGroup

from discreet import attacks
from discreet.attacks.linkage.attacker_files import numbers_in, read_numbers, read_ratings
from discreet.attacks.linkage.attacker_tables import columns_of, select_columns
from discreet.attacks.reconstruction.linear_reconstruction import Method
from discreet.cli.output import Html, Json, file_argument, file_option, print_json, stages, with_options, write_page
from discreet.errors import InvalidParameter
from discreet.report.attack_finding import Comparison, Finding, attack_document, finding_page


class AttackGroup(TyperGroup):
    """Attacks by the names they have in Python, or with dashes."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns the attack of a name."""
        return super().get_command(ctx, cmd_name.replace("_", "-"))


app = typer.Typer(cls=AttackGroup, no_args_is_help=True, add_completion=False)


@app.callback()
def attack() -> None:
    """Attack a release: see who can be found in it, what can be learned about them, and what noise changes."""


Table = Annotated[Path, file_argument(metavar="FILE", help="A CSV or Parquet file with one row per person.")]
Others = Annotated[Path, file_argument(help="People of the same population, one per row.")]
On = Annotated[list[str], typer.Option("--on", help="A column that an attacker may know. Repeatable.")]
Sensitive = Annotated[str | None, typer.Option(help="The column that should stay secret.")]
Needed = Annotated[str, typer.Option(help="The column that should stay secret.")]
Person = Annotated[str | None, typer.Option(help="An id column in both files, used only to check matches.")]
Truth = Annotated[Path | None, file_option(help="The secret bits, one per row, used only to check the result.")]
Compare = Annotated[bool, typer.Option("--compare", help="Protect the file in several ways, and attack each release.")]
Epsilon = Annotated[list[str], typer.Option(help="The epsilon of a private release, with --compare. Repeatable.")]

EPSILONS = ["0.1", "1", "10"]

Attack = Callable[[], Finding | Comparison]


def command(prepare: Callable[..., Attack]) -> Callable[..., Attack]:
    """Makes a command of a function that reads files and returns an attack: it is run, and what it found is shown."""

    def run(*, json: Json = False, html: Html = None, **given: Any) -> None:
        attempt = prepare(**given)
        with stages("Attacking"):
            found = attempt()
        if html is not None:
            write_page(finding_page(found), html, "html")
        if json:
            print_json(attack_document(found))
        else:
            typer.echo(str(found))

    shared = [each for each in signature(run, eval_str=True).parameters.values() if each.name != "given"]
    own = signature(prepare, eval_str=True).parameters.values()
    app.command()(with_options(run, [*own, *shared], like=prepare))
    return prepare


@command
def uniqueness(
    file: Table,
    *,
    on: On,
    cells: Annotated[int | None, typer.Option(help="Number of equally likely combinations, for a prediction.")] = None,
    sensitive: Sensitive = None,
    compare: Compare = False,
    epsilon: Epsilon = EPSILONS,
) -> Attack:
    """Count the people whom a few ordinary columns single out, and say which column to coarsen."""
    if compare:
        secret = _require_column(sensitive, "sensitive")
        return partial(attacks.uniqueness.compare, file, on, sensitive=secret, epsilons=epsilon)
    return partial(attacks.uniqueness, file, on, cells=cells)


@command
def linkage(
    file: Table,
    named: Annotated[Path, file_argument(metavar="NAMED", help="A file with names.")],
    *,
    on: On,
    population: Annotated[Path | None, file_option(help="A file of the whole population.")] = None,
    sensitive: Sensitive = None,
    truth: Person = None,
    compare: Compare = False,
    epsilon: Epsilon = EPSILONS,
) -> Attack:
    """Join a file without names with a list that has them."""
    if compare:
        secret, who = _require_column(sensitive, "sensitive"), _require_column(truth, "truth")
        return partial(attacks.linkage.compare, file, named, on=on, sensitive=secret, truth=who, epsilons=epsilon)
    return partial(attacks.linkage, file, named, on=on, population=population, sensitive=sensitive, truth=truth)


@command
def k_anonymity(
    file: Table, *, on: On, sensitive: Needed, compare: Compare = False, epsilon: Epsilon = EPSILONS
) -> Attack:
    """Measure k-anonymity, l-diversity and t-closeness, and how many secrets are still revealed."""
    if compare:
        return partial(attacks.k_anonymity.compare, file, quasi=on, sensitive=sensitive, epsilons=epsilon)
    return partial(attacks.k_anonymity, file, quasi=on, sensitive=sensitive)


@command
def intersection(
    file: Table,
    other: Annotated[Path | None, file_argument(metavar="[OTHER]", help="A second release.")] = None,
    *,
    on: On,
    sensitive: Needed,
    person: Person = None,
    compare: Compare = False,
    epsilon: Epsilon = EPSILONS,
) -> Attack:
    """Intersect what two releases say about the same people."""
    if compare:
        return partial(attacks.intersection.compare, file, quasi=on, sensitive=sensitive, epsilons=epsilon)
    if other is None:
        raise InvalidParameter("OTHER", None, "to be a file", "Name two releases, or one table with --compare.")
    who = _require_column(person, "person")
    return partial(attacks.intersection, file, other, on=on, sensitive=sensitive, person=who)


@command
def scoreboard(
    file: Annotated[Path, file_argument(metavar="FILE", help="A file with one rating per row.")],
    known: Annotated[Path | None, file_argument(metavar="[KNOWN]", help="The ratings that are known.")] = None,
    *,
    user: Annotated[str, typer.Option(help="The column of people's ids.")] = "user",
    item: Annotated[str, typer.Option(help="The column of rated items.")] = "item",
    rating: Annotated[str, typer.Option(help="The column of ratings.")] = "rating",
    day: Annotated[str, typer.Option(help="The column of dates, or of numbers of days.")] = "day",
    seconds: Annotated[bool, typer.Option("--seconds", help="Dates are numbers of seconds.")] = False,
    items: Annotated[int, typer.Option(help="Without KNOWN: known ratings per person.")] = 8,
    days: Annotated[int, typer.Option(help="Without KNOWN: largest error of known dates, in days.")] = 14,
    compare: Annotated[bool, typer.Option("--compare", help="Say who is in the data, from several releases.")] = False,
    epsilon: Epsilon = EPSILONS,
) -> Attack:
    """Find a person's record of ratings from a few ratings that are roughly known."""
    ratings, given = read_ratings(file, day, seconds), None if known is None else read_ratings(known, day, seconds)
    named: dict[str, Any] = {"user": user, "item": item, "rating": rating, "day": day}
    if compare:
        return partial(attacks.scoreboard.compare, ratings, items=items, days=days, epsilons=epsilon, **named)

    def run_scoreboard() -> Finding:
        about = given or attacks.known_ratings(ratings, items=items, days=days, **named)
        return attacks.scoreboard(ratings, about, **named)

    return run_scoreboard


@command
def reconstruct(
    file: Annotated[Path, file_argument(metavar="QUERIES", help="A row of 0 and 1 for each query.")],
    answers: Annotated[Path | None, file_argument(metavar="[ANSWERS]", help="One answer per row.")] = None,
    *,
    method: Annotated[Method, typer.Option(help="The method of reconstruction.")] = "least_squares",
    truth: Truth = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Answer the queries about --truth in several ways.")
    ] = False,
    epsilon: Epsilon = EPSILONS,
) -> Attack:
    """Rebuild a secret bit of each person from answers about subsets of them."""
    asked, secret = read_numbers(file), None if truth is None else read_numbers(truth)[:, 0].astype(int)
    if compare:
        if secret is None:
            raise InvalidParameter("--truth", None, "to be a file of bits", "Add --truth FILE.")
        return partial(attacks.reconstruct.compare, secret, queries=asked, method=method, epsilons=epsilon)
    if answers is None:
        raise InvalidParameter("ANSWERS", None, "to be a file", "Name the file of answers, or add --compare.")
    return partial(attacks.reconstruct, asked, read_numbers(answers)[:, 0], method=method, truth=secret)


@command
def difference(
    file: Table,
    *,
    column: Annotated[str, typer.Option(help="The column whose average is released, with and without a person.")],
    bounds: Annotated[tuple[float, float], typer.Option(help="Public bounds of the column.")],
    epsilon: Epsilon = EPSILONS,
) -> Attack:
    """Subtract an average without a person from the average with them, in several releases."""
    (cells,) = select_columns(columns_of(file), [column], parameter="--column")
    return partial(attacks.difference.compare, numbers_in(cells, column), bounds=bounds, epsilons=epsilon)


@command
def trace(
    file: Annotated[Path, file_argument(metavar="RELEASED", help="A file with one row of means.")],
    reference: Others,
    candidates: Annotated[Path, file_argument(help="The people to judge, one per row.")],
    *,
    people: Annotated[int | None, typer.Option(help="Number of people in the study, for a prediction.")] = None,
    false_positives: Annotated[float, typer.Option(help="Share of strangers that may be accused.")] = 0.05,
) -> Attack:
    """Say who took part in a study, from the means it released."""
    mean, known, judged = read_numbers(file)[0], read_numbers(reference), read_numbers(candidates)
    return partial(attacks.trace, mean, known, judged, n=people, false_positives=false_positives)


@command
def genome(
    file: Annotated[Path, file_argument(metavar="GROUP", help="Genotypes 0, 1 or 2, one row per person.")],
    reference: Others,
    strangers: Annotated[Path, file_argument(help="People outside the group, one per row.")],
    *,
    epsilon: Epsilon = EPSILONS,
) -> Attack:
    """Release a group's allele frequencies in several ways, and say who is in the group."""
    group, known, outside = (read_numbers(path).astype(int) for path in (file, reference, strangers))
    return partial(attacks.genome.compare, group, known, outside, epsilons=[float(each) for each in epsilon])


@command
def membership(
    file: Table,
    *,
    target: Annotated[str, typer.Option(help="The column to predict, with two values.")],
    bounds: Annotated[tuple[float, float], typer.Option(help="Public bounds of all other columns.")] = (0.0, 1.0),
    epsilon: Epsilon = EPSILONS,
) -> Attack:
    """Train models on half of the rows in several ways, and say which half it was."""
    columns = columns_of(file)
    (labels,) = select_columns(columns, [target], parameter="--target")
    features = np.column_stack([numbers_in(cells, name) for name, cells in columns.items() if name != target])
    classes, coded = np.unique(labels.astype(str), return_inverse=True)
    if len(classes) != 2:
        raise InvalidParameter("--target", list(classes[:5]), "to have two values", "Name another column.")
    tried = [float(each) for each in epsilon]
    return partial(attacks.membership.compare, features, coded, bounds=bounds, epsilons=tried)


def _require_column(given: str | None, name: str) -> str:
    if given is None:
        raise InvalidParameter(f"--{name}", None, "to name a column", f"Add --{name} COLUMN.")
    return given
