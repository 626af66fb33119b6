"""`discreet survey`: make a randomized survey, answer it, and estimate from the reports that came back."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import Csv, Json, OutputFormat, create_file, file_argument, file_option, form, print_json, say
from discreet.errors import InvalidParameter
from discreet.local.permanent_response import PermanentResponse
from discreet.local.survey import Survey
from discreet.report.csv_text import csv_text

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def survey() -> None:
    """Ask people without a trusted collector: make a randomized survey, answer it, and estimate the shares."""


File = Annotated[Path, file_argument(metavar="SURVEY", help="The survey's JSON file.")]
Question = Annotated[str, typer.Option(help="The question.")]
Values = Annotated[list[str], typer.Option("--value", help="An answer to choose from. Repeatable.")]
Epsilon = Annotated[str, typer.Option(help="Epsilon of one report: the odds of the truth are at most e^epsilon.")]
People = Annotated[int, typer.Option(help="About how many people will answer: decides how answers are randomized.")]
Answer = Annotated[str | None, typer.Option("--value", help="Your answer.")]
Table = Annotated[Path | None, file_option(help="A CSV file with one answer per row, instead of --value.")]
Column = Annotated[str | None, typer.Option(help="The column of answers in that file.")]
Out = Annotated[Path | None, file_option(help="The file to append reports to. Default: print them.")]
Remember = Annotated[
    Path | None, typer.Option(help="A private file that keeps the report, so that it is sent again unchanged.")
]
Reports = Annotated[list[Path], file_argument(metavar="REPORTS...", help="Files of reports.")]
Confidence = Annotated[str, typer.Option(help="The confidence of each interval.")]
Project = Annotated[
    bool, typer.Option("--project", help="Move shares to the nearest possible shares: at least 0, with sum 1.")
]
Drop = Annotated[bool, typer.Option("--drop", help="Leave out invalid reports, and count them.")]


@app.command()
def make(file: File, *, question: Question, value: Values, epsilon: Epsilon, people: People = 1000) -> None:
    """Write a survey that all may read. An existing file is never overwritten."""
    survey = Survey(question=question, values=value, epsilon=epsilon, people=people)
    create_file(file, survey.to_json(), mode=0o644, name="file", hint="Name another file.")
    spread = survey.oracle.variance(people, Fraction(1, len(survey.values))) ** 0.5
    say(f"Wrote {file}: answers are randomized by {type(survey.oracle).__name__}.")
    say(f"With {people} answers, shares are off by about {spread:.2g}.")


@app.command()
def answer(
    file: File,
    *,
    value: Answer = None,
    table: Table = None,
    column: Column = None,
    out: Out = None,
    remember: Remember = None,
) -> None:
    """Randomize one answer, or a column of them, on the respondent's side. Only reports are written."""
    survey = _survey(file)
    if (value is None) == (table is None) or (table is None) != (column is None):
        hint = "Pass --value ANSWER, or --table FILE --column NAME."
        raise InvalidParameter("--value", value, "or else --table with --column", hint)
    if remember is not None and value is None:
        hint = "The file keeps the report of one person."
        raise InvalidParameter("--remember", str(remember), "to come with --value only", hint)
    answers = [str(value)] if table is None else _column(table, str(column))
    if not set(answers) <= set(survey.values):
        told = "your answer" if table is None else "a row"
        raise InvalidParameter("--value", told, f"to be one of: {', '.join(survey.values)}", "Nothing was sent.")
    if remember is not None:
        lines = _write_permanent_report(survey, str(value), remember)
    else:
        lines = survey.answer(answers)
    _send(lines, out)


@app.command()
def estimate(
    file: File,
    reports: Reports,
    *,
    confidence: Confidence = "0.95",
    project: Project = False,
    drop: Drop = False,
    json: Json = False,
    csv: Csv = False,
) -> None:
    """Estimate the share of every answer from files of reports, with intervals."""
    shown = form(as_json=json, as_csv=csv)
    survey = _survey(file)
    lines = [line for path in reports for line in _text(path, "reports").splitlines()]
    found = survey.estimate(lines, confidence=confidence, project=project, drop=drop)
    named = zip(found.domain.values or (), found, strict=True)
    answers = [{"value": v, "share": e.value, "share_low": e.low, "share_high": e.high} for v, e in named]
    if shown is OutputFormat.TABLE:
        typer.echo(f"{survey.question}\n{found}")
    elif shown is OutputFormat.JSON:
        print_json({"reports": found.reports, "dropped": found.dropped, "answers": answers})
    else:
        typer.echo(csv_text(["value", "share", "share_low", "share_high"], answers), nl=False)


def _survey(file: Path) -> Survey:
    return Survey.from_json(_text(file, "survey"))


def _text(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidParameter(name, str(path), "to be text in UTF-8") from None


def _column(table: Path, column: str) -> list[str]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as source:
            reader = csv.DictReader(source)
            if column not in (reader.fieldnames or ()):
                listed = ", ".join(reader.fieldnames or ()) or "none"
                raise InvalidParameter("--column", column, f"to be a column of {table}", f"It has: {listed}.")
            return [row[column] for row in reader]
    except (UnicodeDecodeError, csv.Error):
        raise InvalidParameter("--table", str(table), "to be CSV in UTF-8") from None


def _write_permanent_report(survey: Survey, value: str, path: Path) -> list[str]:
    """Returns the report of one person who keeps it: it is written down before it is sent."""
    state = _text(path, "--remember") if path.exists() else None
    client = PermanentResponse(survey.oracle, state=state)
    report = client.report(value)
    if state is None:
        create_file(path, client.state, mode=0o600, name="file", hint="Name another file.")
    return survey.lines(report)


def _send(lines: list[str], out: Path | None) -> None:
    text = "".join(f"{line}\n" for line in lines)
    if out is None:
        typer.echo(text, nl=False)
        return
    with out.open("a", encoding="utf-8") as target:
        target.write(text)
    say(f"Added {len(lines)} {'report' if len(lines) == 1 else 'reports'} to {out}.")
