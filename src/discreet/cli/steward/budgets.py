"""`discreet budget`, `amend`, `history` and `verify`: what may be spent, what was spent, what happened."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import Json, json_text, say
from discreet.curator.config.toml_file import Config, load
from discreet.errors import InvalidParameter
from discreet.ledger import Balance, Book, Entry, Head, is_there
from discreet.ledger.serialization import read_loss, write_loss
from discreet.privacy import Budget
from discreet.report.display import Display, printable

Account = Annotated[str | None, typer.Option(help="Only this account.")]

_LONGEST = 100


def budget(*, account: Account = None, json: Json = False, config: ConfigFile = HERE) -> None:
    """Show what each account may spend, has spent, has left, and has spent in its lifetime."""
    with _book(load(config)) as book:
        balances = {name: book.balance(name) for name in ([account] if account else book.accounts())}
    typer.echo(_budgets_json(balances) if json else _budgets(balances))


def amend(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Whose budget is changed.")],
    *,
    epsilon: Annotated[str | None, typer.Option(help="Of the new budget.")] = None,
    delta: Annotated[str | None, typer.Option(help="Of the new budget.")] = None,
    rho: Annotated[str | None, typer.Option(help="Of the new budget.")] = None,
    note: Annotated[str, typer.Option(help="Why; kept in the book.")] = "",
    config: ConfigFile = HERE,
) -> None:
    """Give an account another budget of its currency; what was spent stays spent, and the book keeps both."""
    declared = load(config)
    wanted = Budget(epsilon=epsilon, delta=delta, rho=rho)
    _book(declared).close()
    with Book(declared.ledger) as book:
        balance = book.stewardship.amend(account, budget=wanted, note=note)
    typer.echo(_budgets({account: balance}))
    if declared.budgets.get(account) != wanted:
        say(f"Write the same under [budgets.{printable(account)}] of {config}; until then other commands refuse it.")


def history(
    *,
    account: Account = None,
    analyst: Annotated[str | None, typer.Option(help="Only what this name did, and what was done to it.")] = None,
    project: Annotated[
        str | None, typer.Option(help="Only what was charged for this project or allotted to it.")
    ] = None,
    json: Json = False,
    config: ConfigFile = HERE,
) -> None:
    """List the entries of the book: sequence, time, who, what, cost."""
    with _book(load(config)) as book:
        entries = book.history(account and book.account(account).name, analyst=analyst, project=project)
    if json:
        typer.echo(_history_json(entries))
    else:
        Console().print(_history(entries))


def verify(
    *,
    anchor: Annotated[str | None, typer.Option(metavar="SEQ:HASH", help="A head that was printed earlier.")] = None,
    config: ConfigFile = HERE,
) -> None:
    """Walk the whole book and print its head; keep that elsewhere, and pass it as --anchor the next time."""
    kept = None if anchor is None else _anchor(anchor)
    declared = load(config)
    with _book(declared) as book:
        head = book.verify()
    if kept is not None:
        with Book(declared.ledger) as book:  # a book that lacks its anchor is frozen, which is an entry
            book.check_anchor(kept)
    say(f"The book is as it was written: {head.sequence} entries.")
    if kept is not None:
        say(f"It contains the anchor, entry {kept.sequence}.")
    typer.echo(str(head))


def _book(config: Config) -> Book:
    if not is_there(config.ledger):
        raise InvalidParameter("ledger", config.ledger, "to exist", "Run `discreet protect` first.")
    return Book(config.ledger, read_only=True)


def _anchor(text: str) -> Head:
    try:
        return Head.parse(text)
    except InvalidParameter as error:
        hint = "Pass the last line that an earlier `discreet verify` printed."
        raise InvalidParameter("anchor", text, error.condition, hint) from None


def _budgets(balances: Mapping[str, Balance]) -> str:
    """Returns a table with a column for each account."""
    figures = [balance.facts for balance in balances.values()]
    rows = [(label, *(each[label] for each in figures)) for label in (figures[0] if figures else ())]
    return Display(columns=("", *balances), rows=rows).text()


def _budgets_json(balances: Mapping[str, Balance]) -> str:
    """Returns the same as JSON, amounts as exact fractions."""
    fields = {
        account: {
            "total": write_loss(balance.total),
            "spent": None if balance.spent is None else write_loss(balance.spent),
            "remaining": write_loss(balance.remaining.loss),
            "largest_pure": str(balance.remaining.epsilon),
            "lifetime": None if balance.lifetime is None else write_loss(balance.lifetime),
            "locked": balance.locked,
            "stopped": list(balance.stopped),
        }
        for account, balance in balances.items()
    }
    return json_text(fields)


def _history(entries: tuple[Entry, ...]) -> Table:
    """Returns a table with a line for each entry."""
    drawn = Table(highlight=False)
    drawn.add_column("sequence", justify="right")
    drawn.add_column("time", no_wrap=True)
    for heading in ("account", "who", "what", "cost"):
        drawn.add_column(heading, overflow="fold")
    for entry in entries:
        cells = (
            str(entry.sequence),
            entry.time[:19].replace("T", " "),
            entry.account,
            entry.who,
            _what(entry),
            _cost(entry),
        )
        drawn.add_row(*(Text(printable(cell)) for cell in cells))
    return drawn


def _history_json(entries: tuple[Entry, ...]) -> str:
    """Returns the same as JSON, questions in full."""
    fields = [
        {
            "sequence": entry.sequence,
            "time": entry.time,
            "kind": entry.kind,
            "account": entry.account,
            "who": entry.who,
            "question": entry.content.get("question"),
            "cost": entry.content.get("cost"),
        }
        for entry in entries
    ]
    return json_text(fields)


def _what(entry: Entry) -> str:
    """Returns what an entry is about, in a few words."""
    content = entry.content
    said = _WORDS.get(entry.kind, _nothing)(content) if entry.about == 0 else f"of entry {entry.about}"
    text = f"{entry.kind} {said}".strip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _cost(entry: Entry) -> str:
    """Returns the cost of a charge; nothing of other entries."""
    return str(read_loss(entry.content["cost"])) if entry.kind == "charge" else ""


def _nothing(_: dict[str, Any]) -> str:
    return ""


def _budget(content: dict[str, Any]) -> str:
    return str(read_loss(content["budget"]))


def _question(text: str) -> str:
    """Returns the table and the columns of the answer; a filter, which may be sensitive, is only mentioned."""
    asked = json_format.loads(text)
    if "batch" in asked:
        return f"{len(asked['batch'])} questions: {'; '.join(_asked(one) for one in asked['batch'])}"
    return _asked(asked)


def _asked(asked: dict[str, Any]) -> str:
    outputs = ", ".join(name for name, *_ in asked.get("outputs", []))
    if "fit" in asked:
        return f"{asked.get('table', '')}: {asked['fit']['class']} fitted to {outputs}"
    return f"{asked.get('table', '')}: {outputs}{' (filtered)' if 'where' in asked else ''}"


_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "open": lambda content: f"with {_budget(content['account'])}",
    "attach": lambda content: f"{content['table']} {content['version']}",
    "amend": lambda content: f"to {_budget(content)}",
    "renew": lambda content: f"with {_budget(content)}",
    "appoint": lambda content: f"{content['name']} as {content['role']}",
    "service": lambda content: " ".join(filter(None, (content["act"], content.get("key"), "of", content["about"]))),
    "charge": lambda content: _question(content["question"]),
    "claim": lambda content: f"entry {content['charge']}, to run it again",
    "interrupt": lambda content: f"of entry {content['charge']}, whose charge stays",
}
