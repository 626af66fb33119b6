"""The remaining budget of an account, a person or a project, step by step, by the filters of the ledger.

This is the one computation of a burn-down: the report and the page of a service both draw its steps.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from discreet.dataclass import dataclass
from discreet.ledger.tallies import ChargePrice, RemainingBudget, Tallies, share_used
from discreet.privacy import Loss
from discreet.report.time_charts import BurnDown

MOST_STEPS = 400
"""Steps of a curve that are drawn; up to twice as many charges are remembered."""


@dataclass(frozen=True, slots=True)
class BudgetStep:
    """The budget that remains from a moment on, of the one that was in force then.

    Attributes:
        time: when it began.
        total: the budget or cap, as it was at the time.
        spent: the sums of its period, under each rule of the account.
        is_charge: whether it was spent from; otherwise the budget changed or began again.
    """

    time: dt.datetime
    total: Loss
    spent: Tallies
    is_charge: bool = True

    @property
    def remaining(self) -> RemainingBudget:
        """Returns what remained, as a balance showed it at the time."""
        return RemainingBudget.of(self.spent, self.total)

    @property
    def remaining_share(self) -> float:
        """Returns the share of the budget that was left."""
        used = share_used(self.spent, self.total)
        return 0.0 if used is None else max(1.0 - float(used), 0.0)


@dataclass(slots=True, kw_only=True)
class SpenderHistory:
    """One spender while the ledger is read.

    Attributes:
        budget: the account's, as it is in force: of those who have no cap of their own, it is theirs.
        cap: of their own, if they have one.
        first: the first charge of the present period.
        questions: charged ones, ever.
    """

    budget: Loss
    cap: Loss | None = None
    first: dt.datetime | None = None
    questions: int = 0
    answered: int = 0
    failed: int = 0
    has_calendar: bool = False
    """Whether the cap renews by itself, and not with the account."""
    opened: str = ""
    """The period of that calendar that the last charge was in."""
    curve: list[BudgetStep] = field(default_factory=list)
    periods: dict[str, Tallies] = field(default_factory=dict)
    """Of an account whose rows have budgets by period, what was spent on those of each."""
    _spent: Tallies | None = None
    _charges: int = 0  # steps of the curve that are charges

    @property
    def total(self) -> Loss:
        """Returns the budget or cap that is in force."""
        return self.budget if self.cap is None else self.cap

    @property
    def remaining_share(self) -> float:
        """Returns the share of the total that is left."""
        return self.curve[-1].remaining_share if self.curve else 1.0

    def charge(self, time: dt.datetime, price: ChargePrice) -> None:
        """Adds a charge to what was spent."""
        self.questions += 1
        self.lose(time, price)

    def lose(self, time: dt.datetime, price: ChargePrice) -> None:
        """Adds what counts as spent, by no question of its own: charges that were lost with a ledger."""
        if not self.curve:
            self._step(time, is_charge=False)
        self.first = self.first or time
        self._spent = price.add_to(self._sums)
        self._step(time, is_charge=True)

    def charge_periods(self, time: dt.datetime, price: ChargePrice, days: Iterable[str]) -> None:
        """Adds a charge to what was spent on the rows of some periods; the curve is that of the fullest."""
        self.questions += 1
        if not self.curve:
            self._step(time, is_charge=False)
        self.first = self.first or time
        for day in days:
            self.periods[day] = price.add_to(self.periods.get(day, Tallies.zero(self.budget)))
        self._step(time, is_charge=True)

    def begin(self, time: dt.datetime, budget: Loss) -> None:
        """Begins a period of the account: everything is left, but of a cap that renews by itself."""
        self.budget = budget
        self.periods.clear()
        if not self.has_calendar:
            self.first, self._spent = None, None
            self._step(time, is_charge=False)

    def open_period(self, time: dt.datetime, opened: str) -> None:
        """Begins a period of a cap that renews by itself, if a charge is in another one than the charge before."""
        if self.has_calendar and opened != self.opened:
            self.opened, self.first, self._spent = opened, None, None
            self._step(time, is_charge=False)

    def replace_spending(self, time: dt.datetime, given_back: Tallies, used: Tallies) -> None:
        """Gives back an amount that was set aside, without the part of it that was used."""
        self._spent = (self._sums - given_back) + used
        self._step(time, is_charge=False)

    def amend(self, time: dt.datetime, budget: Loss) -> None:
        """Gives the account another budget; what was spent stays spent."""
        self.budget = budget
        if self.cap is None:
            self._step(time, is_charge=False)

    def limit(self, time: dt.datetime, cap: Loss | None, calendar: Mapping[str, Any] | None = None) -> None:
        """Gives another cap, or takes it away; what was spent stays spent."""
        self.cap, self.has_calendar = cap, calendar is not None and calendar["per"] != "never"
        self.opened = "" if calendar is None else str(calendar["opened"])
        self._step(time, is_charge=False)

    @property
    def _sums(self) -> Tallies:
        return Tallies.zero(self.budget) if self._spent is None else self._spent

    def _used(self, sums: Tallies) -> float:
        used = share_used(sums, self.total)
        return math.inf if used is None else float(used)

    def _step(self, time: dt.datetime, *, is_charge: bool) -> None:
        sums = [self._sums + period for period in self.periods.values()] or [self._sums]
        fullest = max(sums, key=self._used)
        self.curve.append(BudgetStep(time, self.total, fullest, is_charge))
        self._charges += is_charge
        if self._charges > 2 * MOST_STEPS:
            self.curve = _thin_curve(self.curve, 2)
            self._charges = sum(step.is_charge for step in self.curve)


def _thin_curve(curve: list[BudgetStep], every: int) -> list[BudgetStep]:
    """Keeps every n-th charge, the last step and all changes of the budget."""
    kept, charges = list[BudgetStep](), 0
    for step in curve:
        charges += step.is_charge
        if not step.is_charge or charges % every == 0 or step is curve[-1]:
            kept.append(step)
    return kept


def steps_left(spending: SpenderHistory, used_up: dt.datetime | None = None) -> BurnDown:
    """Returns what a chart draws of a spender.

    Args:
        spending: of an account, a person or a project.
        used_up: when nothing is left at the pace so far, if that was forecast.
    """
    curve = _thin_curve(spending.curve, max(1, -(-len(spending.curve) // MOST_STEPS)))
    return BurnDown(steps=[(step.time, step.remaining_share) for step in curve], used_up=used_up)
