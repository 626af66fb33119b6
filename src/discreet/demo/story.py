"""What this library can do, told in three tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from discreet import accounting
from discreet.demo.questions import main_job
from discreet.mechanisms import Laplace
from discreet.privacy import events

VISITS = 1_204  # people in an imaginary waiting room; the only private number of this story
QUERIES = 100
EACH = Fraction(1, 10)
DELTA = Fraction(1, 10**6)


def tell(console: Console) -> None:
    """Prints the whole story."""
    console.print(
        "\n[bold]Discreet[/bold]: exact noise, a price for every release, an error bar on every number.\n",
        highlight=False,
    )
    console.print(noisy_count())
    console.print(composition())
    console.print(meaning())
    for piece in main_job():
        console.print(piece, highlight=False)
    console.print(
        "Every draw above came from AES-256-CTR keyed by the operating system. "
        "Run it again: the noisy counts change, the prices do not.\n",
        highlight=False,
    )


def noisy_count() -> Table:
    """One count at several budgets: released value, interval, event."""
    table = Table(title="1. A count of people, released", title_justify="left")
    for heading in ("epsilon", "released", "95 % interval", "the event that describes it"):
        table.add_column(heading, justify="right" if heading in ("epsilon", "released") else "left")
    for epsilon in ("0.05", "0.1", "0.5", "1"):
        mechanism = Laplace(epsilon=epsilon, sensitivity=1)
        estimate, event = mechanism.estimate(VISITS), mechanism.event
        described = f"DiscreteLaplace({event.scale}, {event.sensitivity})"
        table.add_row(epsilon, f"{estimate.value:,}", f"{estimate.low:,} to {estimate.high:,}", described)
    return table


@dataclass(frozen=True, slots=True)
class Accountant:
    """A way to add up releases, and one line about it."""

    method: str
    remark: str


ACCOUNTANTS = (
    Accountant("basic", "epsilons add up"),
    Accountant("zCDP", "concentrated: good for many small releases"),
    Accountant("optimal homogeneous", "tight if only each epsilon is known"),
    Accountant("PLD", "tight, because the noise is known to be Laplace"),
)


def composition() -> Table:
    """A hundred Laplace releases under four accountants."""
    release = events.Repeated(events.Laplace(noise_multiplier=1 / EACH), QUERIES)
    title = f"2. {QUERIES} Laplace releases at epsilon={float(EACH)} each: together, at delta={float(DELTA):.0e}"
    table = Table(title=title, title_justify="left")
    table.add_column("accountant")
    table.add_column("epsilon", justify="right")
    table.add_column("why")
    for accountant in ACCOUNTANTS:
        epsilon = accounting.epsilon(release, DELTA, method=accountant.method)
        table.add_row(accountant.method, f"{epsilon:.4f}", accountant.remark)
    table.add_section()
    least = accounting.epsilon(release, DELTA)
    table.add_row("discreet.accounting.epsilon", f"{least:.4f}", "the least of all valid bounds")
    return table


def meaning() -> Table:
    """What an attacker gains at several epsilons."""
    table = Table(title="3. What an epsilon means for one person", title_justify="left")
    table.add_column("epsilon", justify="right")
    table.add_column("a guess of 50 % becomes at most", justify="right")
    table.add_column("best test's power at 5 % false alarms", justify="right")
    table.add_column("95 % error of a count", justify="right")
    for text in ("0.1", "0.5", "1", "3", "8"):
        epsilon = Fraction(text)
        power = 1 - accounting.trade_off(events.Pure(epsilon), "0.05")
        error = Laplace(epsilon=epsilon, sensitivity=1).interval(0, confidence="0.95").high
        table.add_row(text, f"{100 * posterior(float(epsilon)):.2f} %", f"{100 * power:.2f} %", f"± {error}")
    return table


def posterior(epsilon: float, prior: float = 0.5) -> float:
    """The largest belief that a pure epsilon-DP release can leave where the prior was, by Bayes' rule.

    >>> round(posterior(1.0), 4)
    0.7311
    """
    return prior * math.exp(epsilon) / (1 - prior + prior * math.exp(epsilon))
