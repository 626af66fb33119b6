"""The commands: each reads its options, calls one function of the curator or the book, and prints what comes back."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli import accounts, answers, attacking, auditing, choosing, curating, explaining
from discreet.cli.failures import FAILED, Guarded
from discreet.cli.template import TEMPLATE
from discreet.curator.asking.choices import CANDIDATES
from discreet.curator.config.toml_file import FILE, Config, load
from discreet.curator.curator import Curator
from discreet.demo import FOLDER, show
from discreet.errors import InvalidParameter
from discreet.ledger import OWNER, Book, Head
from discreet.privacy import Budget
from discreet.report.display import printable

app = typer.Typer(
    cls=Guarded,
    name="discreet",
    help="Private answers about tables of people, with an error bar on every number and a book of what they cost.",
    epilog="Exit codes: 0 answered, 2 wrong usage, 3 budget refused, 4 question refused, 5 failed, 130 stopped.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(attacking.app, name="attack")

ConfigFile = Annotated[Path, typer.Option("--config", help="The declarations.", dir_okay=False)]
Question = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT, e.g. 'SELECT COUNT(*) AS n FROM visits'.")]
Epsilon = Annotated[str | None, typer.Option(help="What the answer may cost; kept exactly, e.g. 0.2 or 1/3.")]
Within = Annotated[str | None, typer.Option(help="Instead of --epsilon: how far each number may be from the truth.")]
MaxEpsilon = Annotated[str | None, typer.Option(help="What --within may cost at most.")]
Delta = Annotated[str | None, typer.Option(help="Needed for private groups; default: a hundredth of the account's.")]
Groups = Annotated[int | None, typer.Option("--limits-groups", help="Groups that one unit may enter.")]
Rows = Annotated[int | None, typer.Option("--limits-rows", help="Rows that one unit may have in each.")]
Other = Annotated[str | None, typer.Option(help="Label of one more group: all rows that no shown group has.")]
Choosing = Annotated[bool, typer.Option("--choose-limits", help="Find limits out privately, with a fifth of epsilon.")]
Confidence = Annotated[str, typer.Option(help="Of each interval.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV: x, x_low and x_high for every number of an answer.")]
Analyst = Annotated[str, typer.Option(help="Who asks, and pays from their cap.")]
Project = Annotated[str, typer.Option(help="Whose cap it counts against, too.")]
Account = Annotated[str | None, typer.Option(help="Only this account.")]

_HERE = Path(FILE)
_REPORT = Path(FOLDER)


class Form(Enum):
    """How an answer is printed."""

    TABLE, JSON, CSV = "table", "json", "csv"


@app.command()
def demo(*, out: Annotated[Path, typer.Option(help="The folder of report.html.", file_okay=False)] = _REPORT) -> None:
    """Make a small clinic, protect it, ask, attack exact and private answers, and write an HTML report."""
    show(Console(), out)


@app.command()
def init(*, config: ConfigFile = _HERE) -> None:
    """Write a commented discreet.toml to fill in; an existing one is never overwritten."""
    try:
        with config.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        hint = "It is left as it is; edit it, or name another file with --config."
        raise InvalidParameter("config", str(config), "not to exist yet", hint) from None
    _say(f"Wrote {config}. Declare your tables in it, then run: discreet protect")


@app.command()
def protect(*, config: ConfigFile = _HERE) -> None:
    """Open the declared accounts, attach the tables and appoint the analysts; again, it changes nothing."""
    declared = load(config)
    Curator.from_config(config).close()
    drawn = Table(highlight=False)
    for heading in ("table", "account", "unit", "budget"):
        drawn.add_column(heading)
    for table in declared.tables:
        unit = table.unit if isinstance(table.unit, str) else ", ".join(table.unit or ("each row",))
        cells = table.name, table.account, unit, str(declared.budgets[table.account])
        drawn.add_row(*(Text(printable(cell)) for cell in cells))
    for public in declared.public:
        drawn.add_row(Text(printable(public.name)), "", "", "public")
    Console().print(drawn)
    _say("Protected. Ask with: discreet ask 'SELECT COUNT(*) AS n FROM ...' --epsilon 0.1")


@app.command()
def ask(
    question: Question,
    *,
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
    confidence: Confidence = "0.95",
    json: Json = False,
    csv: Csv = False,
    config: ConfigFile = _HERE,
) -> None:
    """Ask a question and pay for it; the same question again is answered from the book for free."""
    form = _form(json, csv)
    with Console(stderr=True).status("Answering"), curating.keyed(key) as word:
        curator = Curator.from_config(config, opening=False)
        limits = curating.limits(
            curator,
            question,
            delta,
            groups=limits_groups,
            rows=limits_rows,
            choosing=choose_limits,
            analyst=analyst,
        )
        answer = curator.ask(
            question,
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
        )
    if form is Form.TABLE:
        answers.show(answer, Console())
    else:
        typer.echo(answers.as_json(answer) if form is Form.JSON else answers.as_csv(answer), nl=form is Form.JSON)


@app.command()
def explain(
    question: Question,
    *,
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
    rows: Annotated[int, typer.Option(help="Imagined rows of a group, which the error of a mean depends on.")] = 1000,
    config: ConfigFile = _HERE,
) -> None:
    """Show what a question would cost and how wrong its answer would be; reads no data, spends nothing."""
    curator = Curator.from_config(config, opening=False)
    limits = curating.limits(
        curator, question, delta, groups=limits_groups, rows=limits_rows, choosing=choose_limits, analyst=analyst
    )
    told = curator.explain(
        question,
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
    explaining.show(told, Console())


@app.command()
def choose_epsilon(
    question: Annotated[str | None, typer.Argument(metavar="[SQL]", help="A question about a protected table.")] = None,
    *,
    epsilon: Annotated[list[str] | None, typer.Option(help="A candidate; repeat it for each.")] = None,
    delta: Delta = None,
    bounds: Annotated[tuple[str, str] | None, typer.Option(help="Without a question: of the values of a mean.")] = None,
    rows: Annotated[int, typer.Option(help="Imagined rows of a group, which the error of a mean depends on.")] = 1000,
    limits_groups: Groups = None,
    limits_rows: Rows = None,
    analyst: Analyst = OWNER,
    confidence: Confidence = "0.95",
    json: Json = False,
    csv: Csv = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with charts.", dir_okay=False)] = None,
    config: ConfigFile = _HERE,
) -> None:
    """Compare budgets: how wrong an answer would be, what an attacker could learn; reads no data, spends nothing."""
    form = _form(json, csv)
    told = choosing.compared(
        question,
        epsilon or CANDIDATES,
        config,
        delta=delta,
        bounds=bounds,
        rows=rows,
        limits=(limits_groups, limits_rows),
        confidence=confidence,
        analyst=analyst,
    )
    if html is not None:
        choosing.write_page(told, html)
    if form is Form.TABLE:
        choosing.show(told, Console())
    else:
        typer.echo(choosing.as_json(told) if form is Form.JSON else choosing.as_csv(told), nl=form is Form.JSON)


@app.command()
def audit(
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="A declared table; all of them unless given.")
    ] = None,
    *,
    sql: Annotated[list[str] | None, typer.Option(help="A question to audit; repeat it for each.")] = None,
    epsilon: Annotated[str, typer.Option(help="What each question may cost.")] = "1",
    delta: Delta = None,
    neighbours: Annotated[int, typer.Option(help="Pairs of neighbouring tables to try.")] = 20,
    rows: Annotated[int, typer.Option(help="Of larger tables, so many rows of whole units are taken.")] = 2000,
    json: Json = False,
    report: Annotated[Path | None, typer.Option(help="Also write a page for everybody.", dir_okay=False)] = None,
    config: ConfigFile = _HERE,
) -> None:
    """Try to tell neighbouring tables apart by the answers; charges nothing, shows no data, ends with 5 if it can."""
    found = auditing.audited(config, table, sql or (), epsilon=epsilon, delta=delta, neighbours=neighbours, rows=rows)
    if report is not None:
        auditing.write_page(found, report)
    if json:
        typer.echo(auditing.as_json(found))
    else:
        for each in found:
            auditing.show(each, Console())
        auditing.explain(Console())
    if not all(each.passed for each in found):
        raise typer.Exit(FAILED)


@app.command()
def budget(*, account: Account = None, json: Json = False, config: ConfigFile = _HERE) -> None:
    """Show what each account may spend, has spent, has left, and has spent in its lifetime."""
    with _book(load(config)) as book:
        balances = {name: book.balance(name) for name in ([account] if account else book.accounts())}
    if json:
        typer.echo(accounts.budgets_json(balances))
    else:
        Console().print(accounts.budgets(balances))


@app.command()
def amend(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Whose budget is changed.")],
    *,
    epsilon: Annotated[str | None, typer.Option(help="Of the new budget.")] = None,
    delta: Annotated[str | None, typer.Option(help="Of the new budget.")] = None,
    rho: Annotated[str | None, typer.Option(help="Of the new budget.")] = None,
    note: Annotated[str, typer.Option(help="Why; kept in the book.")] = "",
    config: ConfigFile = _HERE,
) -> None:
    """Give an account another budget of its currency; what was spent stays spent, and the book keeps both."""
    declared = load(config)
    wanted = Budget(epsilon=epsilon, delta=delta, rho=rho)
    _book(declared).close()
    with Book(str(declared.ledger)) as book:
        balance = book.stewardship.amend(account, budget=wanted, note=note)
    Console().print(accounts.budgets({account: balance}))
    if declared.budgets.get(account) != wanted:
        _say(f"Write the same under [budgets.{printable(account)}] of {config}; until then other commands refuse it.")


@app.command()
def history(
    *,
    account: Account = None,
    analyst: Annotated[str | None, typer.Option(help="Only what this name did, and what was done to it.")] = None,
    project: Annotated[
        str | None, typer.Option(help="Only what was charged for this project or allotted to it.")
    ] = None,
    json: Json = False,
    config: ConfigFile = _HERE,
) -> None:
    """List the entries of the book: sequence, time, who, what, cost."""
    with _book(load(config)) as book:
        entries = book.history(account and book.account(account).name, analyst=analyst, project=project)
    if json:
        typer.echo(accounts.history_json(entries))
    else:
        Console().print(accounts.history(entries))


@app.command()
def verify(
    *,
    anchor: Annotated[str | None, typer.Option(metavar="SEQ:HASH", help="A head that was printed earlier.")] = None,
    config: ConfigFile = _HERE,
) -> None:
    """Walk the whole book and print its head; keep that elsewhere, and pass it as --anchor the next time."""
    kept = None if anchor is None else _anchor(anchor)
    declared = load(config)
    with _book(declared) as book:
        head = book.verify()
    if kept is not None:
        with Book(str(declared.ledger)) as book:  # a book that lacks its anchor is frozen, which is an entry
            book.check_anchor(kept)
    _say(f"The book is as it was written: {head.sequence} entries.")
    if kept is not None:
        _say(f"It contains the anchor, entry {kept.sequence}.")
    typer.echo(str(head))


def main() -> None:
    """Runs the command line."""
    app()


def _book(config: Config) -> Book:
    if not config.ledger.exists():
        raise InvalidParameter("ledger", str(config.ledger), "to exist", "Run `discreet protect` first.")
    return Book(str(config.ledger), read_only=True)


def _anchor(text: str) -> Head:
    try:
        return Head.parse(text)
    except InvalidParameter as error:
        hint = "Pass the last line that an earlier `discreet verify` printed."
        raise InvalidParameter("anchor", text, error.condition, hint) from None


def _form(json: bool, csv: bool) -> Form:
    if json and csv:
        raise InvalidParameter("--csv", "given", "without --json", "Choose one of them.")
    return Form.JSON if json else Form.CSV if csv else Form.TABLE


def _say(text: str) -> None:
    Console(highlight=False, markup=False).print(printable(text), soft_wrap=True)
