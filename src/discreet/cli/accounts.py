"""The book as tables: what may be spent, what was spent, what happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from discreet.cli.words import json_text
from discreet.ledger import Balance, Entry
from discreet.ledger.serialization import at_most, read_loss, write_loss
from discreet.privacy import Loss
from discreet.report.display import printable

_LONGEST = 100


def budgets(balances: Mapping[str, Balance]) -> Table:
    """One column for each account."""
    drawn = Table(highlight=False)
    drawn.add_column("")
    for account in balances:
        drawn.add_column(Text(printable(account)), overflow="fold")
    for label, figure in _FIGURES.items():
        drawn.add_row(label, *(Text(figure(balance)) for balance in balances.values()))
    return drawn


def budgets_json(balances: Mapping[str, Balance]) -> str:
    """The same as JSON, amounts as exact fractions."""
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


def history(entries: tuple[Entry, ...]) -> Table:
    """One line for each entry."""
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
            what(entry),
            cost(entry),
        )
        drawn.add_row(*(Text(printable(cell)) for cell in cells))
    return drawn


def history_json(entries: tuple[Entry, ...]) -> str:
    """The same as JSON, questions in full."""
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


def what(entry: Entry) -> str:
    """What an entry is about, in a few words."""
    content = entry.content
    said = _WORDS.get(entry.kind, _nothing)(content) if entry.about == 0 else f"of entry {entry.about}"
    text = f"{entry.kind} {said}".strip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def cost(entry: Entry) -> str:
    """Of a charge."""
    return str(read_loss(entry.content["cost"])) if entry.kind == "charge" else ""


def _loss(loss: Loss | None) -> str:
    return "not bounded" if loss is None else str(loss)


def _stopped(balance: Balance) -> tuple[str, ...]:
    """Who may ask nothing new, if anybody."""
    names = ", ".join(printable(name) or "names without a role" for name in balance.stopped)
    return (f"stopped after failures: {names}",) if names else ()


def _nothing(_: dict[str, Any]) -> str:
    return ""


def _budget(content: dict[str, Any]) -> str:
    return str(read_loss(content["budget"]))


def _question(text: str) -> str:
    """The table and the columns of the answer; literals of a filter may be sensitive, so it is only mentioned."""
    asked = json.loads(text)
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
    "charge": lambda content: _question(content["question"]),
    "claim": lambda content: f"entry {content['charge']}, to run it again",
    "interrupt": lambda content: f"of entry {content['charge']}, whose charge stays",
}

_FIGURES: dict[str, Callable[[Balance], str]] = {
    "total": lambda balance: str(balance.total),
    "spent": lambda balance: _loss(balance.spent),
    "remaining": lambda balance: str(balance.remaining),
    "largest pure question": lambda balance: f"epsilon={at_most(balance.remaining.epsilon)}",
    "spent in its lifetime": lambda balance: _loss(balance.lifetime),
    "state": lambda balance: "; ".join((f"open, period {balance.period}", *_stopped(balance))),
}
