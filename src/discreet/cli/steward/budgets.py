"""`discreet budget`: what accounts, analysts and projects may spend, have spent and have left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import Json, json_text, say
from discreet.curator.config.enrolment import declared_book
from discreet.curator.config.toml_file import Config, load
from discreet.ledger import Balance, Book, Share, Standing
from discreet.ledger.serialization import write_loss
from discreet.privacy import Loss
from discreet.report.display import printable

Account = Annotated[str | None, typer.Option(help="Only this account.")]

_HEADINGS = ("who", "role", "cap", "spent", "remaining")


def budget(*, account: Account = None, json: Json = False, config: ConfigFile = HERE) -> None:
    """Show what each account, analyst and project may spend, has spent and has left, and lifetime spending."""
    with opened(load(config)) as book:
        standings = [book.standing(name) for name in ([account] if account else book.accounts())]
    if json:
        typer.echo(json_text({one.account: _fields(one) for one in standings}))
        return
    for one in standings:
        show(one)


def opened(config: Config) -> Book:
    """Returns the book that is declared, to be read; see `declared_book`."""
    return declared_book(config, read_only=True)


def show(standing: Standing) -> None:
    """Prints an account, and below it everybody on it; cells fold on narrow terminals."""
    say(f"Account {standing.account}")
    console = Console(highlight=False)
    console.print(_grid(("", ""), list(standing.facts.items())))
    if standing.lines:
        console.print()
        console.print(_grid(_HEADINGS, standing.lines))
    if standing.listed:
        say("Only those who were appointed may ask.")


def _grid(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    drawn = Table(highlight=False, box=None, pad_edge=False, show_header=any(headings), padding=(0, 2, 0, 0))
    for heading in headings:
        drawn.add_column(heading, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    return drawn


def _fields(standing: Standing) -> dict[str, Any]:
    """The same for programs, amounts as exact fractions."""
    return {
        **_figures(standing),
        "lifetime": _written(standing.lifetime),
        "period": standing.period,
        "locked": standing.locked,
        "stopped": list(standing.stopped),
        "listed": standing.listed,
        "analysts": {one.name: _share(one) for one in standing.people},
        "projects": {one.name: _share(one) for one in standing.projects},
    }


def _figures(balance: Balance) -> dict[str, Any]:
    return {
        "total": write_loss(balance.total),
        "spent": _written(balance.spent),
        "remaining": write_loss(balance.remaining.loss),
        "largest_pure": str(balance.remaining.epsilon),
    }


def _share(share: Share) -> dict[str, Any]:
    """Somebody's part: without a cap, the total and what remains are the account's."""
    return {
        "role": None if share.role is None else share.role.value,
        "cap": _written(share.cap),
        "spent": _written(share.balance.spent),
        "remaining": None if share.cap is None else write_loss(share.balance.remaining.loss),
        "largest_pure": str(share.spendable),
        "lifetime": _written(share.balance.lifetime),
        "locked": share.balance.locked,
    }


def _written(loss: Loss | None) -> dict[str, str] | None:
    return None if loss is None else write_loss(loss)
