"""`discreet ask`, `explain` and `choose-epsilon`: questions about the declared tables."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import Csv, Form, Html, Json, form, json_text, stages, write_page
from discreet.curator.asking import choices
from discreet.curator.asking.answer import Answer
from discreet.curator.asking.choices import Choices
from discreet.curator.asking.planner import RequestedLimits
from discreet.curator.curator import Curator
from discreet.curator.paid_release import USED_UP
from discreet.errors import InvalidParameter
from discreet.ledger import OWNER
from discreet.ledger.serialization import write_loss
from discreet.measurement.profile.coverage import Coverage
from discreet.noise import system_bits
from discreet.plan.model.schema import Limits
from discreet.presentation.documents.json_values import write_value
from discreet.report import page
from discreet.report.csv_text import csv_text
from discreet.requests.argument_kinds import CANDIDATES
from discreet.sql.parameters import Parameters
from discreet.sql.sql_tokens import statements

Question = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT, e.g. 'SELECT COUNT(*) AS n FROM visits'.")]
Questions = Annotated[
    list[str] | None, typer.Argument(metavar="SQL", help="One SELECT, or several that share the epsilon of one charge.")
]
Epsilon = Annotated[str | None, typer.Option(help="What the answer may cost; kept exactly, e.g. 0.2 or 1/3.")]
Within = Annotated[str | None, typer.Option(help="Instead of --epsilon: how far each number may be from the truth.")]
MaxEpsilon = Annotated[str | None, typer.Option(help="What --within may cost at most.")]
Delta = Annotated[str | None, typer.Option(help="Needed for private groups; default: a hundredth of the account's.")]
Groups = Annotated[int | None, typer.Option("--limits-groups", help="Groups that one unit may enter.")]
Rows = Annotated[int | None, typer.Option("--limits-rows", help="Rows that one unit may have in each.")]
Other = Annotated[str | None, typer.Option(help="Label of one more group: all rows that no shown group has.")]
Choosing = Annotated[bool, typer.Option("--choose-limits", help="Find limits out privately, with a fifth of epsilon.")]
Confidence = Annotated[str, typer.Option(help="Of each interval.")]
Analyst = Annotated[str, typer.Option(help="Who asks, and pays from their cap.")]
Project = Annotated[str, typer.Option(help="Whose cap it counts against, too.")]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter", metavar="NAME=VALUE", help="The value of :NAME or $NAME, or of $1 or a ? by its number."
    ),
]
Imagined = Annotated[int, typer.Option(help="Imagined rows of a group, which the error of a mean depends on.")]

_KEY_BITS = 64


def ask(
    question: Questions = None,
    *,
    file: Annotated[Path | None, typer.Option(help="Questions in a file, with a semicolon after each.")] = None,
    parameter: Given = None,
    epsilon: Epsilon = None,
    within: Within = None,
    max_epsilon: MaxEpsilon = None,
    delta: Delta = None,
    limits_groups: Groups = None,
    limits_rows: Rows = None,
    choose_limits: Choosing = False,
    other: Other = None,
    analyst: Analyst = OWNER,
    project: Project = "",
    key: Annotated[str | None, typer.Option(help="A word of yours: asked again with it, it is charged once.")] = None,
    profile: Annotated[str | None, typer.Option(help="Buy a profile of the table with it, for this epsilon.")] = None,
    coverage: Annotated[
        str | None, typer.Option(help="The part of epsilon that tells what limits leave out of this question.")
    ] = None,
    confidence: Confidence = "0.95",
    json: Json = False,
    csv: Csv = False,
    config: ConfigFile = HERE,
) -> None:
    """Ask a question and pay for it; the same question again is answered from the book for free."""
    chosen, parameters, texts = form(as_json=json, as_csv=csv), _parameters(parameter), _texts(question, file)
    alone = {
        "--parameter": parameter,
        "--within": within,
        "--max-epsilon": max_epsilon,
        "--other": other,
        "--profile": profile,
        "--coverage": coverage,
    }
    with stages("Answering"), _keyed(key) as word, Curator.from_config(config, opening=False) as curator:
        if len(texts) > 1:
            limits = _limits_of_all(alone, groups=limits_groups, rows=limits_rows, choosing=choose_limits)
            answers = curator.ask_many(
                texts,
                epsilon=_given(epsilon),
                delta=delta,
                limits=limits,
                analyst=analyst,
                confidence=confidence,
                key=word,
                project=project,
            )
        else:
            _check_price(epsilon, within)
            limits = _limits(
                curator,
                texts[0],
                parameters,
                delta=delta,
                groups=limits_groups,
                rows=limits_rows,
                analyst=analyst,
                choosing=choose_limits,
            )
            answer = curator.ask(
                texts[0],
                parameters=parameters,
                epsilon=epsilon,
                delta=delta,
                limits=limits,
                other=other,
                analyst=analyst,
                confidence=confidence,
                key=word,
                within=within,
                max_epsilon=max_epsilon,
                project=project,
                profile=profile,
                coverage=coverage,
            )
            answers = [answer]
    print_answers(answers, chosen, several=len(texts) > 1)


def print_answers(answers: Sequence[Answer], chosen: Form, *, several: bool = False) -> None:
    """Prints answers one after the other; several as one list of JSON, or with an empty line between them."""
    if chosen is Form.JSON:
        found = [_answer_fields(answer) for answer in answers]
        typer.echo(json_text(found if several else found[0]))
        return
    texts = [csv_text(one.columns, one.records) if chosen is Form.CSV else f"{one}\n" for one in answers]
    typer.echo("\n".join(texts), nl=False)


def _texts(questions: list[str] | None, file: Path | None) -> list[str]:
    """Returns the questions: those that are written, or those in a file.

    Raises:
        InvalidParameter: if there are none, both are given, or the file cannot be read.
    """
    if file is None:
        found = list(questions or ())
    elif questions:
        raise InvalidParameter("--file", str(file), "without questions beside it", "Write them into the file.")
    else:
        try:
            found = statements(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            raise InvalidParameter("--file", str(file), "to be a file of text", "Name another.") from None
    if not found:
        raise InvalidParameter("SQL", "nothing", "to be one SELECT or more", f"Write a question, {_EXAMPLE}.")
    if len(found) > 1 and file is None and len(found[0].split()) == 1:
        raise InvalidParameter("SQL", found[0], "to be a whole question", f"Write it between quotes, {_EXAMPLE}.")
    return found


_EXAMPLE = """e.g. discreet ask "SELECT COUNT(*) AS n FROM visits" --epsilon 0.1, or name a --file with some"""


def _given(epsilon: str | None) -> str:
    """Returns what several questions may cost together.

    Raises:
        InvalidParameter: if nothing is said.
    """
    if epsilon is None:
        raise InvalidParameter("--epsilon", None, "to be given", "It is what all answers may cost together.")
    return epsilon


def _check_price(epsilon: str | None, within: str | None) -> None:
    """Refuses one question that names neither a price nor an error.

    Raises:
        InvalidParameter: with an example of both.
    """
    if epsilon is None and within is None:
        hint = "Add what it may cost, e.g. --epsilon 0.1, or how near it must be: --within 20 --max-epsilon 0.5."
        raise InvalidParameter("--epsilon", None, "to be given", hint)


def _limits_of_all(
    alone: Mapping[str, object], *, groups: int | None, rows: int | None, choosing: bool
) -> RequestedLimits:
    """Returns the limits of several questions.

    Raises:
        InvalidParameter: if something is given that is for one question alone, or one limit of two.
    """
    for option, value in alone.items():
        if value is not None:
            raise InvalidParameter(option, value, "with one question alone", "Ask that one by itself.")
    if (groups is None) != (rows is None) or (choosing and groups is not None):
        hint = "Name both limits, or have them chosen, or leave both to the tables."
        raise InvalidParameter("--limits-groups", groups, "to come with --limits-rows alone", hint)
    if choosing:
        return "choose"
    return None if groups is None or rows is None else Limits(groups, rows)


def explain(
    question: Question,
    *,
    parameter: Given = None,
    epsilon: Epsilon = None,
    within: Within = None,
    max_epsilon: MaxEpsilon = None,
    delta: Delta = None,
    limits_groups: Groups = None,
    limits_rows: Rows = None,
    choose_limits: Choosing = False,
    other: Other = None,
    analyst: Analyst = OWNER,
    project: Project = "",
    confidence: Confidence = "0.95",
    rows: Imagined = 1000,
    config: ConfigFile = HERE,
) -> None:
    """Show what a question would cost and how wrong its answer would be; reads no data, spends nothing."""
    parameters = _parameters(parameter)
    _check_price(epsilon, within)
    with Curator.from_config(config, opening=False) as curator:
        limits = _limits(
            curator,
            question,
            parameters,
            delta=delta,
            groups=limits_groups,
            rows=limits_rows,
            analyst=analyst,
            choosing=choose_limits,
        )
        with stages("Explaining"):
            told = curator.explain(
                question,
                parameters=parameters,
                epsilon=epsilon,
                delta=delta,
                limits=limits,
                other=other,
                analyst=analyst,
                confidence=confidence,
                rows=rows,
                within=within,
                max_epsilon=max_epsilon,
                project=project,
            )
    typer.echo(str(told))


def profile(
    table: Annotated[str, typer.Argument(help="A protected table.")],
    *,
    epsilon: Annotated[str, typer.Option(help="What the profile may cost, e.g. 0.05.")],
    column: Annotated[list[str] | None, typer.Option(help="Count its clipped and missing values; repeat it.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Count people's groups by it, or by 'a,b'; repeat it.")] = None,
    analyst: Analyst = OWNER,
    project: Project = "",
    config: ConfigFile = HERE,
) -> None:
    """Buy a portrait of a table: people, rows and groups per person, and what limits and bounds leave out."""
    with stages("Profiling"), _keyed(None) as word, Curator.from_config(config, opening=False) as curator:
        sets = None if by is None else [[name.strip() for name in keys.split(",")] for keys in by]
        found = curator.profile(
            table, epsilon=epsilon, columns=column, by=sets, analyst=analyst, key=word, project=project
        )
    typer.echo(str(found))


def choose_epsilon(
    question: Annotated[str | None, typer.Argument(metavar="[SQL]", help="A question about a protected table.")] = None,
    *,
    parameter: Given = None,
    epsilon: Annotated[list[str] | None, typer.Option(help="A candidate; repeat it for each.")] = None,
    delta: Delta = None,
    bounds: Annotated[tuple[str, str] | None, typer.Option(help="Without a question: of the values of a mean.")] = None,
    rows: Imagined = 1000,
    limits_groups: Groups = None,
    limits_rows: Rows = None,
    analyst: Analyst = OWNER,
    confidence: Confidence = "0.95",
    json: Json = False,
    csv: Csv = False,
    html: Html = None,
    config: ConfigFile = HERE,
) -> None:
    """Compare budgets: how wrong an answer would be, what an attacker could learn; reads no data, spends nothing."""
    chosen, tried = form(as_json=json, as_csv=csv), epsilon or CANDIDATES
    if question is None:
        limits = Limits(limits_groups or 1, limits_rows or 1)
        told = choices.choose_epsilon(
            tried, delta=delta or 0, bounds=bounds, rows=rows, limits=limits, confidence=confidence
        )
    elif bounds is not None:
        raise InvalidParameter("--bounds", bounds, "without a question", "A table declares its own bounds.")
    else:
        given = _parameters(parameter)
        with Curator.from_config(config, opening=False) as curator:
            own = _limits(
                curator, question, given, delta=delta, groups=limits_groups, rows=limits_rows, analyst=analyst
            )
            told = curator.choose_epsilon(
                question,
                tried,
                parameters=given,
                delta=delta,
                limits=own,
                analyst=analyst,
                rows=rows,
                confidence=confidence,
            )
    if html is not None:
        write_page(_choices_page(told), html, "html")
    if chosen is Form.CSV:
        typer.echo(csv_text(list(told.records[0]), told.records), nl=False)
    else:
        typer.echo(str(told) if chosen is Form.TABLE else _choices_json(told))


def _limits(
    curator: Curator,
    question: str,
    parameters: Parameters,
    *,
    delta: str | None,
    groups: int | None,
    rows: int | None,
    analyst: str,
    choosing: bool = False,
) -> RequestedLimits:
    """Returns the limits of a question; of two, the one that is not given is the table's own.

    Raises:
        InvalidParameter: if limits are given, and are to be found out.
    """
    if choosing and (groups, rows) != (None, None):
        hint = "Name limits, or have them chosen, not both."
        raise InvalidParameter("--choose-limits", "given", "without --limits-groups and --limits-rows", hint)
    if choosing:
        return "choose"
    if groups is None and rows is None:
        return None
    told = curator.explain(question, parameters=parameters, epsilon=1, delta=delta, analyst=analyst)
    asked = told.program.question
    usual = curator.table(asked.table).schema.limits
    return Limits(usual.groups if groups is None else groups, usual.rows if rows is None else rows)


def _parameters(given: list[str] | None) -> Parameters:
    """Returns the values of parameters: by name, or as a list if the names are the numbers from 1 on.

    Raises:
        InvalidParameter: if one is not NAME=VALUE, or is given twice.
    """
    if not given:
        return None
    found: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or name in found:
            condition = "to be given once" if name in found else "to be NAME=VALUE"
            raise InvalidParameter(
                "--parameter", text, condition, "For example --parameter ward=A --parameter least=18."
            )
        found[name] = _value(value)
    numbers = [str(place + 1) for place in range(len(found))]
    return [found[name] for name in numbers] if set(numbers) == set(found) else found


def _value(text: str) -> object:
    """A number, truth value, date, moment or quoted text as discreet.toml has it; anything else is a text as it is."""
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if set(found) == {"value"} else text


@contextmanager
def _keyed(key: str | None) -> Iterator[str]:
    """Yields a question's key, or one that nobody has: whoever stops the question is told how it goes on."""
    word = f"once-{system_bits().integer(_KEY_BITS):016x}" if key is None else key
    try:
        yield word
    except KeyboardInterrupt as stop:
        notes = getattr(stop, "__notes__", ())
        if USED_UP not in notes:
            stop.add_note(f"The key is: --key {word}" if notes else "Nothing was charged.")
        raise


def _answer_fields(answer: Answer) -> dict[str, Any]:
    """Returns the whole answer as fields of JSON; amounts are exact fractions, unbounded ends are null."""
    return {
        "columns": list(answer.columns),
        "rows": [{name: _plain(value) for name, value in record.items()} for record in answer],
        "confidence": float(answer.confidence),
        "cost": write_loss(answer.cost),
        "remaining": write_loss(answer.remaining.loss),
        "replayed": answer.replayed,
        "private": answer.private,
        "notes": list(answer.notes),
        "scope": answer.scope,
        "coverage": {name: _covered(found) for name, found in (answer.coverage or {}).items()} or None,
    }


def _covered(found: Coverage) -> dict[str, float | None]:
    """Returns the share that is left out, and the number of rows; an end that is not known is null."""
    rows = {"rows": found.rows.value, "rows_low": found.rows.low, "rows_high": _plain(found.rows.high)}
    return {"share": found.share, "low": found.low, "high": found.high, **rows}


def _plain(value: Any) -> Any:
    """A cell as documents have it, but for what is not finite: that is null here."""
    return None if isinstance(value, float) and not math.isfinite(value) else write_value(value)


def _choices_json(told: Choices) -> str:
    fields = {"confidence": float(told.confidence), "rows": told.rows, "choices": list(told.records)}
    return json_text(fields)


def _choices_page(told: Choices) -> str:
    """Returns a page that compares budgets.

    Raises:
        MissingExtra: if charts cannot be drawn.
    """
    return page.document(
        "Choosing a budget",
        page.table(told.headings, told.cells, caption="Budgets side by side", numbers=told.headings[1:]),
        page.bullets(*(f"{choice.budget}: {choice.words}" for choice in told.choices)),
        page.figure(told.spec(), caption="Error and risk by budget", description="Bars for each budget."),
        lead=told.about,
    )
