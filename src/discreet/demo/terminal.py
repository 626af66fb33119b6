"""The story for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.curator import Answer
from discreet.demo.average_attack import PrivateAverages, RawAverages
from discreet.demo.background import DELTA, EACH, QUERIES, AccountantBound, Count, Meaning
from discreet.demo.clinic import RICH_CHARGE
from discreet.demo.conversation import DemoReply
from discreet.demo.lab import Exhibit
from discreet.presentation.ledger_view.entry_view import EntryView
from discreet.report.answers import AnswerShape
from discreet.report.display import format_measured, number, plain, rate


def heading(console: Console, text: str) -> None:
    """Prints the heading of a part of the story."""
    console.print()
    console.rule(Text(text, style="bold"), align="left", style="dim")
    console.print()


def say(console: Console, text: str, style: str = "") -> None:
    """Prints a sentence in a style of the console."""
    console.print(Text(text, style=style))


def exchange(console: Console, said: DemoReply) -> None:
    """Prints a question and what came back."""
    console.print(Text(said.line.title, style="bold"))
    console.print(Text(said.line.text, style="cyan"))
    if said.answer is not None:
        console.print(rows(said.answer) if len(said.answer) else Text("no group is shown"))
        cost = "free, replayed" if said.answer.replayed else f"cost {said.answer.cost}"
        say(console, f"{cost}; {said.answer.remaining} remain")
    else:
        say(console, f"refused: {said.refusal}", "red")
    say(console, said.line.remark + "\n", "dim")


def rows(answer: Answer) -> Table:
    """Returns an answer with error bars."""
    shape = AnswerShape.of(answer.columns)
    table = _table([(name, name in shape.numbers) for name in shape.names])
    for record in answer:
        cells = (
            format_measured(record[name], record[f"{name}_low"], record[f"{name}_high"])
            if name in shape.numbers
            else plain(record[name])
            for name in shape.names
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def attack(raw: RawAverages, found: Sequence[PrivateAverages]) -> Table:
    """Returns what exact and private averages reveal about one bill."""
    table = _table([("averages", False), ("the bill, as inferred", True), ("nine in ten trials", False)])
    table.add_row("exact", f"{number(raw.inferred_bill)}, exactly", "every time")
    for private in found:
        middle = f"{number(private.quantile(0.05))} to {number(private.quantile(0.95))}"
        table.add_row(f"epsilon {private.epsilon} each", number(private.quantile(0.5)), middle)
    table.add_section()
    table.add_row("the truth", number(RICH_CHARGE), "")
    return table


def exhibit(console: Console, shown: Exhibit) -> None:
    """Prints an attack on raw and on private releases."""
    console.print(Text(shown.title, style="bold"))
    say(console, shown.told + "\n")
    table = _table([("what was released", False), ("attack succeeds (95 % interval)", True), ("most possible", True)])
    table.title = f"{shown.comparison.raw.attack}: {shown.comparison.raw.goal}"
    for trial in shown.comparison:
        most = "no limit known" if trial.finding.bound is None else rate(trial.finding.bound)
        table.add_row(Text(trial.defence), trial.finding.with_interval, most)
    table.add_section()
    table.add_row("a guess", rate(shown.comparison.raw.baseline), "")
    console.print(table)


def ledger(entries: Iterable[EntryView]) -> Table:
    """Returns the entries of the account."""
    table = _table([("entry", True), ("what", False), ("cost", False), ("hash", False)])
    for entry in entries:
        table.add_row(str(entry.sequence), entry.kind, entry.cost_text, f"{entry.hash[:12]}…")
    return table


def counts(found: Sequence[Count]) -> Table:
    """Returns one count at several budgets."""
    table = _table([("epsilon", True), ("released", True), ("95 % interval", False), ("the event", False)])
    table.title = "A count of people, released"
    for count in found:
        table.add_row(count.epsilon, f"{count.value:,}", f"{count.low:,} to {count.high:,}", count.event)
    return table


def accounts(found: Sequence[AccountantBound]) -> Table:
    """Returns many releases under several accountants."""
    table = _table([("accountant", False), ("epsilon", True), ("why", False)])
    table.title = f"{QUERIES} Laplace releases at epsilon {float(EACH)}: together, at delta {float(DELTA):.0e}"
    for account in found:
        table.add_row(account.method, f"{account.epsilon:.4f}", account.remark)
    return table


def meanings(found: Sequence[Meaning]) -> Table:
    """Returns what an attacker gains at several epsilons."""
    columns = (
        "epsilon",
        "50 % belief becomes at most",
        "best test's power at 5 % false alarms",
        "95 % error of a count",
    )
    table = _table([(name, True) for name in columns])
    table.title = "What an epsilon means for one person"
    for meaning in found:
        belief, power = f"{100 * meaning.belief:.2f} %", f"{100 * meaning.power:.2f} %"
        table.add_row(meaning.epsilon, belief, power, f"± {meaning.error}")
    return table


def _table(columns: Iterable[tuple[str, bool]]) -> Table:
    """Returns an empty table; columns of numbers are aligned on the right."""
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", highlight=False)
    for name, is_number in columns:
        table.add_column(Text(plain(name)), justify="right" if is_number else "left")
    return table
