"""Parts of the report on a book: an account, what was asked, what was released, what was changed, what failed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from discreet.ledger import Balance, Book
from discreet.presentation.ledger_report.ledger_history import AccountHistory, Act, Asked, BookHistory, anchor_note
from discreet.presentation.ledger_report.released_numbers import CONFIDENCE, released_numbers
from discreet.presentation.ledger_report.used_shares import Spending, steps_left
from discreet.report import answers, page
from discreet.report.display import percent, printable, rate
from discreet.report.html import Html
from discreet.report.time_charts import BurnDown, burn_down

SHORTEST = dt.timedelta(days=1)
"""From the first charge of a period on; before that, a pace says nothing."""

FARTHEST = dt.timedelta(days=3650)
"""Beyond which no day is told."""

METHOD = (
    "Forecast: what is left, divided by what was spent for each day since the first charge of the present period. A "
    "renewal begins a new period, and with it a new pace. It supposes that questions go on as they did; before a day "
    "has passed, there is no forecast."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a pace leads to.

    Attributes:
        pace: which share is spent a day.
        used_up: when nothing is left; None if that is further off than anybody can say.
    """

    pace: float
    used_up: dt.datetime | None

    @property
    def words(self) -> str:
        """The day, in words."""
        return "not within ten years" if self.used_up is None else f"about {day(self.used_up)}"


def day(moment: dt.datetime) -> str:
    """Returns a day in words.

    >>> day(dt.datetime(2026, 2, 1))
    '1 February 2026'
    """
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


_MONTHS = (  # of no locale
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def forecast(spent: float, left: float, *, since: dt.datetime | None, now: dt.datetime) -> Forecast | None:
    """Returns when something is used up; None if it is too early to tell.

    Args:
        spent: the share of it that is used, in the present period.
        left: of it.
        since: the first charge of the period; None if there was none.
        now: when the forecast is made.

    >>> begun, now = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 11)
    >>> forecast(0.25, 0.75, since=begun, now=now).words
    'about 10 February 2026'
    """
    if since is None or spent <= 0 or now - since < SHORTEST:
        return None
    pace = spent / ((now - since) / dt.timedelta(days=1))
    days = left / pace
    far = days > FARTHEST / dt.timedelta(days=1)
    return Forecast(pace=pace, used_up=None if far else now + dt.timedelta(days=days))


MOST_SPENDERS = 50
MOST_WORDINGS = 20
MOST_RELEASES = 25
MOST_GROUPS = 30
"""Rows of one release; the book has all."""

_LETTERS = 240
"""Of a question in a table; `discreet history --json` has all."""


SHARES = (
    "Shares are counted by the rule under which most is left. Many small questions cost less together than their sum, "
    "so that a share can be larger than what remains by the rule in force, which the command budget shows."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spender:
    """Whose budget or cap a line is about."""

    name: str
    kind: str
    spending: Spending
    balance: Balance
    forecast: Forecast | None

    @property
    def capped(self) -> bool:
        """Whether there is a budget or cap of its own to be used up."""
        return self.kind == "account" or self.spending.cap is not None


def spenders(book: Book, account: AccountHistory, now: dt.datetime) -> list[Spender]:
    """Returns the account, then those who asked or have a cap, those who have used most of it first."""

    def told(name: str, kind: str, spending: Spending, balance: Balance) -> Spender:
        capped = kind == "account" or spending.cap is not None
        found = forecast(1 - spending.left, spending.left, since=spending.first, now=now) if capped else None
        return Spender(name=name, kind=kind, spending=spending, balance=balance, forecast=found)

    whole = told("the account", "account", account.own, book.balance(account.name))
    people = [
        told(name, "analyst", one, book.balance(account.name, analyst=name)) for name, one in account.people.items()
    ]
    projects = [
        told(name, "project", one, book.balance(account.name, project=name)) for name, one in account.projects.items()
    ]
    order = sorted([*people, *projects], key=lambda one: (not one.capped, one.spending.left, -one.spending.questions))
    return [whole, *order[:MOST_SPENDERS]]


def anchor_notes(history: BookHistory) -> list[Html]:
    """Returns a warning for each time that the anchor was missing, the newest first."""
    return [page.paragraph(plain(anchor_note(act)), kind="refusal") for act in reversed(history.anchor_acts)]


def account_section(account: AccountHistory, found: list[Spender], now: dt.datetime) -> Html:
    """Returns an account: its figures, its burn-down, and who has which part of it."""
    whole, *others = found
    own, balance = whole.spending, whole.balance
    versions = ", ".join(f"{plain(table)} (version {plain(version)})" for table, version in account.tables.items())
    figures = {
        "budget": str(balance.total),
        "remaining": str(balance.remaining),
        "share left": rate(own.left),
        "questions": f"{own.questions:,}",
        "used up": _when(whole),
    }
    about = (
        f"Tables: {versions or 'none'}. Protected: {plain(account.unit)}; neighbours: "
        f"{account.neighbours.value.replace('_', ' or ')}. Period {balance.period}; spent in its lifetime: "
        f"{_loss(balance)}. {SHARES}"
    )
    figure = page.figure(
        burn_down(_lines(found), now=now, headline=_headline(account, whole)),
        caption=f"Lines: what is left, as a share of each budget or cap. Dashed: at the pace so far. {METHOD}",
        description=f"{_headline(account, whole)}. "
        + "; ".join(f"{one.name}: {rate(one.spending.left)} left" for one in found),
        broad=True,
    )
    parts = [page.facts(figures), page.paragraph(about), figure, *([_caps(others)] if others else [])]
    return page.section(_anchor(account.name), f"Account {plain(account.name)}", *parts)


def _anchor(account: str) -> str:
    return "account-" + "".join(letter if letter.isalnum() else f"-{ord(letter):x}-" for letter in account)


def account_link(account: str) -> tuple[str, str]:
    """Returns the name and the text of a link to an account's section."""
    return _anchor(account), f"Account {plain(account)}"


def _headline(account: AccountHistory, whole: Spender) -> str:
    left = rate(whole.spending.left)
    return f"{left} of the budget of {plain(account.name)} is left; used up {_when(whole)}"


def _when(one: Spender) -> str:
    if not one.capped:
        return "no cap of their own"
    if one.spending.left <= 0:
        return "now"
    return "too early to tell" if one.forecast is None else one.forecast.words


def _loss(balance: Balance) -> str:
    return "not bounded" if balance.lifetime is None else str(balance.lifetime)


def _lines(found: Iterable[Spender]) -> dict[str, BurnDown]:
    return {
        one.name if one.kind == "account" else f"{one.kind} {plain(one.name)}": steps_left(
            one.spending, None if one.forecast is None else one.forecast.used_up
        )
        for one in found
        if one.capped and one.spending.curve
    }


_CAPS = ("who", "cap", "spent", "left", "questions", "answered", "failed", "used up")


def _caps(others: list[Spender]) -> Html:
    rows = [
        (
            plain(one.name) if one.kind == "analyst" else f"project {plain(one.name)}",
            str(one.balance.total) if one.capped else "none",
            "not bounded" if one.balance.spent is None else str(one.balance.spent),
            str(one.balance.remaining),
            f"{one.spending.questions:,}",
            f"{one.spending.answered:,}",
            f"{one.spending.failed:,}",
            _when(one),
        )
        for one in others
    ]
    return page.table(_CAPS, rows, caption="Analysts and projects, by what they have used", numbers=_CAPS[4:7])


# ------------------------------------------------------------------------------------------------------ what was asked


def asked_section(history: BookHistory) -> Html:
    """Returns what was asked how often, and the newest questions."""
    counted = [
        (plain(account.name), cut(words), f"{count:,}")
        for account in history.accounts.values()
        for words, count in account.wordings.most_common(MOST_WORDINGS)
    ]
    often = page.table(("account", "question", "asked"), counted, caption="Asked most often", numbers=("asked",))
    newest = [one for one in reversed(history.asked.values()) if not one.paid_by]
    rows = [
        (
            str(one.sequence),
            page.amount(moment(one.time)),
            plain(one.account),
            plain(one.who) + (f" for {plain(one.project)}" if one.project else ""),
            cut(one.words),
            page.amount(one.cost),
            one.outcome,
        )
        for one in newest
    ]
    columns = ("entry", "time (UTC)", "account", "who", "question", "cost", "outcome")
    newest_table = page.table(columns, rows, caption=f"The newest {len(rows):,} questions", numbers=("entry",))
    if not counted:
        return page.section("asked", "Who asked what", page.paragraph("Nothing was asked yet."))
    return page.section("asked", "Who asked what", often, newest_table)


def cut(text: str) -> str:
    """Returns a question as a line that a table holds."""
    line = " ".join(plain(text).split())
    return line if len(line) <= _LETTERS else f"{line[: _LETTERS - 1]}…"


def plain(text: str) -> str:
    """Returns a name or a question with its control characters spelled out."""
    return printable(text.replace("\n", " "))


def moment(time: str) -> str:
    """Returns the time of an entry, to the minute."""
    return time[:16].replace("T", " ")


# --------------------------------------------------------------------------------------------------- what was released


def released_section(book: Book, history: BookHistory) -> Html:
    """Returns the newest answers whose numbers the book tells, with their intervals."""
    kept = [one for one in reversed(history.asked.values()) if one.replay_key]
    shown, hidden = list[Html](), 0
    for one in kept:
        if len(shown) == MOST_RELEASES:
            break
        found = _release(book, history, one)
        hidden += found is None
        shown += [] if found is None else [found]
    told = (
        f"{history.counts['answer']:,} releases are kept in the book. These are the newest {len(shown):,} that are "
        f"numbers, as they were released, with {percent(CONFIDENCE)} intervals: they are private, and showing them "
        "again costs nothing."
    )
    more = [page.paragraph(_HIDDEN.format(count=hidden), kind="small")] if hidden else []
    return page.section("released", "What was released", page.paragraph(told), page.beside(*shown), *more)


_HIDDEN = (
    "{count} of the newest releases are no tables of numbers, or were made about rows that the book alone does not "
    "describe (models, streams, batches, joins): ask the same question again to see one, which is free."
)


def _release(book: Book, history: BookHistory, one: Asked) -> Html | None:
    """The numbers of an answer; None if they cannot be told from the book."""
    payload = next((kept.payload for kept in book.stored(one.replay_key) if kept.charge == one.sequence), None)
    found = None if payload is None else released_numbers(one.question, payload, history.declared_at(one.sequence))
    if found is None:
        return None
    groups = list(found.records[:MOST_GROUPS])
    paid = f"paid by entry {one.paid_by}" if one.paid_by else one.cost
    caption = f"Entry {one.sequence}, {moment(one.time)}, {plain(one.who)}, {paid}"
    table = page.scrolling(answers.table(groups, caption=caption), label=caption)
    left = len(found.records) - len(groups)
    notes = [page.paragraph(f"and {left:,} more groups.", kind="small")] if left else []
    if not found.private:
        notes.append(page.paragraph("Not private: the noise was seeded, for tests.", kind="refusal"))
    return page.group(page.paragraph(cut(one.words)), table, *notes)


# ------------------------------------------------------------------------------------------------- changes and failures


def changes_section(history: BookHistory) -> Html:
    """Returns what stewards did, the newest first."""
    rows = [_act(act) for act in reversed(history.acts)]
    columns = ("entry", "time (UTC)", "account", "who", "act", "what")
    told = "Accounts, tables, people and caps change by entries of the book, and none erases another."
    table = page.table(columns, rows, caption=f"The newest {len(rows):,} acts", numbers=("entry",))
    return page.section("changes", "What was declared and changed", page.paragraph(told), table)


def _act(act: Act) -> tuple[str, ...]:
    return (
        str(act.sequence),
        page.amount(moment(act.time)),
        plain(act.account),
        plain(act.who),
        act.kind,
        cut(act.words),
    )


def failures_section(history: BookHistory, balances: Mapping[str, Balance]) -> Html:
    """Returns failed questions, and who is stopped by them."""
    failed = [one for one in reversed(history.asked.values()) if one.outcome == "failed"]
    count = sum(account.own.failed for account in history.accounts.values())
    stopped = [
        f"{who or 'Names without a role'} may ask nothing new on {plain(name)} until a steward unlocks it."
        for name, balance in balances.items()
        for who in map(plain, balance.stopped)
    ]
    told = f"{count:,} questions failed after their charge, which stays." if count else "No question has failed."
    rows = [
        (str(one.sequence), page.amount(moment(one.time)), plain(one.account), plain(one.who), cut(one.words))
        for one in failed
    ]
    columns = ("entry", "time (UTC)", "account", "who", "question")
    listed = [page.table(columns, rows, caption="The newest failures", numbers=("entry",))] if rows else []
    return page.section("failures", "Failures", page.paragraph(told), *map(page.paragraph, stopped), *listed)
