"""Accounts and those who spend from them, as frozen views: figures of the ledger, their use over time, a forecast.

Figures are those of `ledger.Standing`, and use is read from the entries by `ledger_history`; nothing is computed again
by a face that shows them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace

from discreet.dataclass import dataclass
from discreet.ledger import Balance, Share, Standing
from discreet.ledger.account import describe_share
from discreet.presentation.ledger_view.budget_use import SpenderHistory, steps_left
from discreet.presentation.ledger_view.forecast import Forecast, forecast
from discreet.presentation.ledger_view.ledger_history import AccountHistory
from discreet.report.charts import Spec
from discreet.report.display import plain, rate
from discreet.report.time_charts import BurnDown, burn_down

ACCOUNT, ANALYST, PROJECT, TEAM = "account", "analyst", "project", "team"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpenderView:
    """An account, a person or a project: what it may spend, has spent and has left, and how it came to that.

    Attributes:
        name: whose figures these are.
        kind: "account", "analyst", "project" or "team".
        role: the person's, in words; "project" or "team" for these, and empty for the account.
        cap: the budget or cap, in words; "none" without one.
        spent: in the present period, in words.
        remaining: of the budget or cap, in words; "as the account" without one.
        balance: the same figures as amounts.
        queries: charged ones, ever.
        answered: of the queries.
        failed: of the queries.
        left: the share of the budget or cap that is left; of the account's budget, without a cap.
        forecast: when it is used up; None if it is too early to tell, or there is nothing to use up.
        is_charged: whether anything was ever charged to it, or counts as such.
        burn_down: what was left after each charge and each change of the budget; None before there was any.
    """

    name: str
    kind: str
    role: str
    cap: str
    spent: str
    remaining: str
    balance: Balance
    queries: int
    answered: int
    failed: int
    left: float
    forecast: Forecast | None
    is_charged: bool
    burn_down: BurnDown | None

    @property
    def is_capped(self) -> bool:
        """Returns whether there is a budget or cap of its own to be used up."""
        return self.cap != "none"

    @property
    def label(self) -> str:
        """Returns the name in a list or a legend."""
        return "the account" if self.kind == ACCOUNT else f"{self.kind} {plain(self.name)}"

    @property
    def used_up(self) -> str:
        """Returns when the budget is used up, in words."""
        if not self.is_capped:
            return "no cap"
        if self.left <= 0:
            return "now"
        return "too early to tell" if self.forecast is None else self.forecast.words

    @property
    def facts(self) -> dict[str, str]:
        """Returns the figures by their labels."""
        return {label.capitalize(): text for label, text in self.balance.facts.items()}

    @property
    def stopped_names(self) -> tuple[str, ...]:
        """Returns the names that may ask nothing new until a steward unlocks the account."""
        return tuple(who or "names without a role" for who in self.balance.stopped)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView:
    """An account and all who spend from it.

    Attributes:
        name: the account's.
        unit: who is protected.
        neighbours: by what neighbouring tables differ, in words.
        tables: each with the version that was attached last.
        is_listed: whether only people who were appointed may ask.
        whole: the account itself.
        people: all who asked or were appointed, by name.
        projects: all that have a cap, by name.
        teams: all that have a cap, by name.
        kinds: how many entries of each kind are about it.
        wordings: charged queries by their words, those that were asked most often first.
    """

    name: str
    unit: str
    neighbours: str
    tables: dict[str, str]
    is_listed: bool
    whole: SpenderView
    people: tuple[SpenderView, ...]
    projects: tuple[SpenderView, ...]
    teams: tuple[SpenderView, ...]
    kinds: dict[str, int]
    wordings: tuple[tuple[str, int], ...]

    @property
    def ranked_spenders(self) -> list[SpenderView]:
        """Returns people, projects and teams, those who have used most of their caps first."""
        return sorted(
            (*self.people, *self.projects, *self.teams), key=lambda one: (not one.is_capped, one.left, -one.queries)
        )


def view_account(standing: Standing, history: AccountHistory, now: dt.datetime) -> AccountView:
    """Returns the view of an account.

    Args:
        standing: its figures, from the ledger.
        history: what was read from its entries.
        now: when forecasts are made.
    """
    return AccountView(
        name=standing.account,
        unit=history.unit,
        neighbours=history.neighbours.value.replace("_", " or "),
        tables=dict(history.tables),
        is_listed=standing.listed,
        whole=view_balance(standing.account, ACCOUNT, standing, history.own, now),
        people=tuple(_view_share(one, ANALYST, history.people.get(one.name), now) for one in standing.people),
        projects=tuple(_view_share(one, PROJECT, history.projects.get(one.name), now) for one in standing.projects),
        teams=tuple(_view_share(one, TEAM, history.teams.get(one.name), now) for one in standing.teams),
        kinds=dict(history.kinds),
        wordings=tuple(history.wordings.most_common()),
    )


def view_balance(
    name: str, kind: str, balance: Balance, spending: SpenderHistory | None, now: dt.datetime
) -> SpenderView:
    """Returns the view of a balance: of an account, or of a person's or project's part of one."""
    figures = str(balance.total), describe_share(balance.spent_share), str(balance.remaining)
    return _view(balance, spending, now, name=name, kind=kind, role="", figures=figures)


def _view_share(share: Share, kind: str, spending: SpenderHistory | None, now: dt.datetime) -> SpenderView:
    role = kind if kind in (PROJECT, TEAM) else "no role" if share.role is None else share.role.value
    return _view(share.balance, spending, now, name=share.name, kind=kind, role=role, figures=share.figures)


def _view(
    balance: Balance,
    spending: SpenderHistory | None,
    now: dt.datetime,
    *,
    name: str,
    kind: str,
    role: str,
    figures: tuple[str, str, str],
) -> SpenderView:
    cap, spent, remaining = figures
    used = SpenderHistory(budget=balance.total) if spending is None else spending
    endless = cap == "none" or balance.rows  # rows of later periods come with budgets of their own
    ahead = None if endless else forecast(1 - used.remaining_share, used.remaining_share, since=used.first, now=now)
    return SpenderView(
        name=name,
        kind=kind,
        role=role,
        cap=cap,
        spent=spent,
        remaining=remaining,
        balance=balance,
        queries=used.questions,
        answered=used.answered,
        failed=used.failed,
        left=float(balance.remaining.share),
        forecast=ahead,
        is_charged=any(step.is_charge for step in used.curve),
        burn_down=steps_left(used, None if ahead is None else ahead.used_up) if used.curve else None,
    )


def burn_down_chart(spenders: Iterable[SpenderView], *, now: dt.datetime | None = None) -> Spec | None:
    """Returns the chart of what was left of budgets and caps after each charge; None if nothing was charged.

    Args:
        spenders: the first is the one that the headline is about.
        now: until when lines are drawn, and from when forecasts; without it the chart ends with the last charge, and
            is the same whenever it is drawn.
    """
    first, *others = spenders
    if first.burn_down is None or not first.is_charged:
        return None
    drawn = {one.label: one.burn_down for one in (first, *others) if one.burn_down and (one is first or one.is_capped)}
    if now is None:  # a forecast begins at the present, which is not on such a chart
        drawn = {label: replace(line, used_up=None) for label, line in drawn.items()}
    end = first.burn_down.steps[-1][0] if now is None else now
    return burn_down(drawn, now=end, headline=headline(first, is_forecast=now is not None))


def headline(spender: SpenderView, *, is_forecast: bool) -> str:
    """Returns what a burn-down of an account, or of the reader's own part, shows, as a sentence."""
    of = f"the budget of {plain(spender.name)}" if spender.kind == ACCOUNT else "your budget or cap"
    left = f"{rate(spender.left)} of {of} remains"
    return f"{left}; runs out: {spender.used_up}" if is_forecast else left
