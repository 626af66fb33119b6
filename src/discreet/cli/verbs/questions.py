"""`discreet ask` and `choose-epsilon`: one query or several, and budgets side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.output import Html, OutputFormat, write_page
from discreet.cli.verbs.verb_commands import CommandCall, command, perform, print_result, show_details
from discreet.errors import InvalidParameter
from discreet.lazy import Module
from discreet.plan.model.schema import Limits
from discreet.report.csv_text import csv_text
from discreet.requests.question_requests import Ask, AskMany, ChooseEpsilon, Explain
from discreet.sql.sql_tokens import statements

if TYPE_CHECKING:
    from discreet.curator.asking import choices
    from discreet.report import page
else:  # which `ask` does not need
    choices, page = Module("discreet.curator.asking.choices"), Module("discreet.report.page")

Questions = Annotated[
    list[str] | None, typer.Argument(metavar="SQL", help="One SELECT, or several that share the epsilon of one charge.")
]
File = Annotated[Path | None, typer.Option(help="A file of questions, each followed by a semicolon.")]
Bounds = Annotated[tuple[str, str] | None, typer.Option(help="Without a question: the bounds of the values of a mean.")]

_EXAMPLE = """e.g. discreet ask "SELECT COUNT(*) AS n FROM visits" --epsilon 0.1, or name a --file of questions"""


@command(Ask, AskMany, without=("sql", "questions"))
def ask(call: CommandCall, question: Questions = None, *, file: File = None) -> None:
    """Run a query and pay for it. The same query again is answered from the ledger for free."""
    texts = _texts(question, file)
    if len(texts) == 1:
        explained = perform(call, Explain, sql=texts[0]) if call.values["details"] else None
        answer = perform(call, Ask, "Answering", sql=texts[0])
        print_result(Ask, answer, call.form)
        show_details(call, explained.details if explained and not answer.replayed else ("Nothing was charged.",))
        return
    _check_several(call)
    print_result(AskMany, perform(call, AskMany, "Answering", questions=texts), call.form)


def _texts(questions: list[str] | None, file: Path | None) -> list[str]:
    """Returns the questions: those that are written, or those in a file.

    Raises:
        InvalidParameter: if there are none, both are given, or the file cannot be read.
    """
    if file is None:
        found = list(questions or ())
    elif questions:
        raise InvalidParameter("--file", str(file), "without typed questions", "Write all questions into the file.")
    else:
        try:
            found = statements(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            raise InvalidParameter("--file", str(file), "to be a text file", "Name another file.") from None
    if not found:
        raise InvalidParameter("SQL", "nothing", "to be one SELECT or more", f"Write a question, {_EXAMPLE}.")
    if len(found) > 1 and file is None and len(found[0].split()) == 1:
        raise InvalidParameter("SQL", found[0], "to be a whole question", f"Write it between quotes, {_EXAMPLE}.")
    return found


def _check_several(call: CommandCall) -> None:
    """Refuses what is for one question alone, and one limit of two, which no single table completes.

    Raises:
        InvalidParameter: naming the option.
    """
    for name, value in call.beyond(AskMany, Ask).items():
        raise InvalidParameter(name, value, "to come with one question", "Ask each question alone with this option.")
    groups, rows = call.values["limits_groups"], call.values["limits_rows"]
    if (groups is None) != (rows is None):
        hint = "For several questions, pass both limits, or --choose-limits, or neither."
        raise InvalidParameter("--limits-groups", groups, "to come with --limits-rows", hint)


@command(ChooseEpsilon, positional=("sql",), optional=("sql",))
def choose_epsilon(call: CommandCall, *, bounds: Bounds = None, html: Html = None) -> None:
    """Compare budgets: the error of an answer, what an attacker could learn. Reads no data and spends nothing."""
    if call.values["sql"] is None:
        found = _without_question(call, bounds)
    elif bounds is not None:
        raise InvalidParameter("--bounds", bounds, "without a question", "Leave it out: tables declare bounds.")
    else:
        found = perform(call, ChooseEpsilon, "Comparing")
    if html is not None:
        write_page(_choices_page(found), html, "--html")
    if call.form is OutputFormat.CSV:
        typer.echo(csv_text(list(found.records[0]), found.records), nl=False)
    else:
        print_result(ChooseEpsilon, found, call.form)


def _without_question(call: CommandCall, bounds: tuple[str, str] | None) -> choices.Choices:
    """Returns what budgets mean for a plain count, and for a mean of values within bounds."""
    request: ChooseEpsilon = call.request(ChooseEpsilon, sql="")
    if request.limits == "choose":
        raise InvalidParameter("--choose-limits", "given", "to come with a question", "Pass limits, or a question.")
    limits = request.limits if isinstance(request.limits, Limits) else Limits()
    return choices.choose_epsilon(
        request.candidates,
        delta=request.delta or 0,
        bounds=bounds,
        rows=request.rows,
        limits=limits,
        confidence=request.confidence,
    )


def _choices_page(told: choices.Choices) -> str:
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
