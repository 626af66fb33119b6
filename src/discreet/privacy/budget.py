"""Budgets: the largest loss that may be spent, for ever or in each period of a calendar."""

from __future__ import annotations

import datetime as dt
from typing import Any, overload

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.privacy.amounts import below_one
from discreet.privacy.losses import ZCDP, ApproxDP, Loss, PureDP

PERIODS = ("day", "week", "month", "quarter", "year", "never")
"""How often a budget may renew; "never" is for a budget that renews no longer."""

BUDGET_PARTS = ("epsilon", "delta", "rho", "per", "zone", "start", "of")
"""The arguments of `Budget`: amounts, and the calendar by which they renew, or by which rows have their own."""

FIRST_START = dt.date(2001, 1, 1)
"""Where periods are counted from unless a start is given: a Monday, and the first day of a month and a year."""

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_LAST_COMMON_DAY = 28  # every month has it
_UTC = "UTC"
_CHOICES = Hint("Pass {epsilon:1}, or {epsilon:1} with {delta:1e-6}, or {rho:0.1}, or {rho:0.1} with {delta:1e-6}.")


@dataclass(frozen=True, slots=True)
class RenewalSchedule:
    """A calendar by which a budget renews.

    Args:
        per: the length of a period, one of `PERIODS`.
        zone: the time zone of the calendar, by its IANA name.
        start: the first day of some period; all others follow from it.
        of: a column of dates. Then nothing renews by a clock: the rows of each period have a budget of their own.

    Raises:
        InvalidParameter: if there is no such period or time zone, a month may lack the day of the start, or rows are
            counted by another calendar than that of their dates.

    >>> schedule = RenewalSchedule("month", start=dt.date(2026, 7, 15))
    >>> schedule.period_at(dt.datetime(2026, 11, 14, 23, tzinfo=dt.UTC)), schedule.after(dt.date(2026, 10, 15))
    (datetime.date(2026, 10, 15), datetime.date(2026, 11, 15))
    """

    per: str
    zone: str = _UTC
    start: dt.date = FIRST_START
    of: str = ""

    def __post_init__(self) -> None:
        if self.per not in PERIODS:
            hint = Hint("Pass {per:month}, or another of these.")
            raise InvalidParameter("per", self.per, f"to be one of {', '.join(PERIODS)}", hint)
        _find_zone(self.zone)
        if check.day(start=self.start) is None:
            raise InvalidParameter("start", None, "to be a date", Hint("Pass {start:2026-07-01}."))
        if self.per in _MONTHS and self.start.day > _LAST_COMMON_DAY:
            hint = Hint("Pass {start:2026-07-01}: some months are shorter.")
            raise InvalidParameter("start", str(self.start), "to be one of the first 28 days of a month", hint)
        if self.of:
            self._check_rows()

    def _check_rows(self) -> None:
        """Refuses what dates of rows do not have: a time zone, another first day, and no periods at all."""
        check.label(of=self.of)
        given = [("zone", self.zone, _UTC), ("start", str(self.start), str(FIRST_START))]
        for name, value, usual in given:
            if value != usual:
                raise InvalidParameter(name, value, Hint("to come without {of}"), Hint(f"Leave {{{name}}} out."))
        if self.per == "never":
            raise InvalidParameter(
                "per", self.per, Hint("to be a period where {of} is given"), Hint("Pass {per:month}.")
            )

    def period_of(self, day: dt.date) -> dt.date:
        """Returns the first day of the period that the date of a row is in."""
        return self._add(self._count(day))

    def period_at(self, moment: dt.datetime) -> dt.date:
        """Returns the first day of the period that a moment is in, on the calendar of the zone."""
        return self.period_of(moment.astimezone(_find_zone(self.zone)).date())

    def after(self, period: dt.date) -> dt.date:
        """Returns the first day of the period after the one that begins on a day."""
        return self._add(self._count(period) + 1)

    def _count(self, day: dt.date) -> int:
        """Returns how many periods after the start the period of a day is."""
        if self.per not in _MONTHS:
            return (day - self.start).days // (7 if self.per == "week" else 1)
        months = 12 * (day.year - self.start.year) + day.month - self.start.month
        return (months - (day.day < self.start.day)) // _MONTHS[self.per]

    def _add(self, periods: int) -> dt.date:
        if self.per == "never":
            return dt.date.min
        if self.per not in _MONTHS:
            return self.start + dt.timedelta(days=periods * (7 if self.per == "week" else 1))
        year, month = divmod(12 * self.start.year + self.start.month - 1 + periods * _MONTHS[self.per], 12)
        return dt.date(year, month + 1, self.start.day)

    def write(self) -> dict[str, str]:
        """Returns the schedule as JSON fields: the arguments of `Budget`."""
        told = {"per": self.per, "start": self.start.isoformat(), "zone": self.zone}
        return {**told, "of": self.of} if self.of else told

    @classmethod
    def read(cls, fields: dict[str, str]) -> RenewalSchedule:
        """Returns the schedule that `write` wrote."""
        return cls(fields["per"], fields["zone"], dt.date.fromisoformat(fields["start"]), fields.get("of", ""))

    def __str__(self) -> str:
        if self.of:
            return f"for the rows of each {self.per} of {self.of}"
        start = "" if self.start == FIRST_START else f", counted from {self.start}"
        return f"per {self.per}{start}{'' if self.zone == _UTC else f', in {self.zone}'}"


def _find_zone(name: str) -> dt.tzinfo:
    """Returns a time zone by its name.

    Raises:
        InvalidParameter: if this machine knows none of that name.
    """
    if name == _UTC:
        return dt.UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - most budgets have no zone, and it takes time to load

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, TypeError, KeyError):
        hint = Hint("Pass {zone:Europe/Berlin}, or {zone:UTC}.")
        raise InvalidParameter("zone", name, "to be a time zone by its IANA name", hint) from None


@dataclass(frozen=True, slots=True)
class RenewingBudget:
    """A budget that renews: so much may be spent in each period of a calendar, on the same rows.

    It protects each period by itself. Over several periods the losses add up: after a year of monthly budgets of
    epsilon 1, the people in the data have lost up to epsilon 12.

    If the schedule names a column of dates, it is no clock that opens a period: the rows of each month, say, have the
    whole amount once and for all. It protects the rows of one person in one month.

    Args:
        amount: what may be spent in a period.
        schedule: when the next period begins.

    >>> budget = Budget(epsilon=1, per="month", zone="Europe/Berlin")
    >>> type(budget) is RenewingBudget, str(budget.amount), str(budget.schedule)
    (True, 'epsilon=1', 'per month, in Europe/Berlin')
    """

    amount: Loss
    schedule: RenewalSchedule

    def __str__(self) -> str:
        return f"{self.amount} {self.schedule}"

    def __repr__(self) -> str:
        return f"RenewingBudget({self})"


AnyBudget = Loss | RenewingBudget
"""A budget for ever, or one that renews."""


def write_calendar(schedule: RenewalSchedule | None) -> dict[str, str]:
    """Returns the arguments of `Budget` that say when a budget renews; without a schedule, that it never does."""
    if schedule is None:
        return {"per": "never"}
    usual = {"zone": _UTC, "start": FIRST_START.isoformat()}
    return {name: value for name, value in schedule.write().items() if usual.get(name) != value}


def split(budget: AnyBudget) -> tuple[Loss, RenewalSchedule | None]:
    """Returns the amount of a budget, and its schedule if it has one."""
    return (budget.amount, budget.schedule) if isinstance(budget, RenewingBudget) else (budget, None)


@overload
def Budget(*, epsilon: Number) -> PureDP: ...
@overload
def Budget(*, epsilon: Number, delta: Number) -> ApproxDP: ...
@overload
def Budget(*, rho: Number, delta: Number = ...) -> ZCDP: ...
@overload
def Budget(*, epsilon: Number | None = ..., delta: Number | None = ..., rho: Number | None = ...) -> Loss: ...
@overload
def Budget(
    *,
    epsilon: Number | None = ...,
    delta: Number | None = ...,
    rho: Number | None = ...,
    per: str,
    zone: str = ...,
    start: dt.date | str | None = ...,
    of: str = ...,
) -> RenewingBudget: ...
def Budget(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    per: str | None = None,
    zone: str = _UTC,
    start: dt.date | str | None = None,
    of: str = "",
) -> AnyBudget:
    """Returns the largest loss that may be spent.

    It is pure, approximate or zero-concentrated, by the amounts that are named.

    Args:
        epsilon: above 0; alone it makes a `PureDP`, with delta an `ApproxDP`.
        delta: strictly between 0 and 1; it accompanies epsilon or rho. Leave it out to say zero.
        rho: above 0; it makes a `ZCDP`, with delta the approximate form.
        per: "day", "week", "month", "quarter" or "year" for a budget that renews; each period has the whole amount.
        zone: the time zone in which its periods begin.
        start: the first day of some period, such as "2026-07-01" for years that begin in July.
        of: a column of dates. The rows of each period by these dates have the whole amount, whenever they are asked
            about. A query is charged to every period whose rows it may count.

    Returns:
        The loss that no sum of charges may exceed; with `per`, a `RenewingBudget`.

    Raises:
        InvalidParameter: if an amount is outside its domain, or the amounts do not go together.

    >>> print(Budget(epsilon=1), "|", Budget(epsilon=2, delta=1e-6), "|", Budget(rho=0.1))
    epsilon=1 | epsilon=2, delta=1e-06 | rho=0.1
    >>> print(Budget(epsilon=1, per="month"), "|", Budget(epsilon=1, per="month", of="visit_date"))
    epsilon=1 per month | epsilon=1 for the rows of each month of visit_date
    """
    amount = _loss(epsilon, delta, rho)
    if per is not None:
        return RenewingBudget(amount, RenewalSchedule(per, zone, _read_start(start), of))
    for name, value in (("zone", None if zone == _UTC else zone), ("start", start), ("of", of or None)):
        if value is not None:
            raise InvalidParameter(name, value, "to come with per", Hint("Pass {per:month} too."))
    return amount


def _loss(epsilon: Number | None, delta: Number | None, rho: Number | None) -> Loss:
    if (epsilon is None) == (rho is None):
        raise _wrong_mixture(epsilon, delta, rho)
    if delta is not None:
        check.positive(delta=delta)
        below_one(delta=delta)
    if rho is not None:
        return ZCDP(check.positive(rho=rho), 0 if delta is None else delta)
    amount = check.positive(epsilon=epsilon)
    return PureDP(amount) if delta is None else ApproxDP(amount, delta)


def _read_start(start: Any) -> dt.date:
    """Returns the first day of some period; a text is a date in ISO 8601."""
    if start is None:
        return FIRST_START
    try:
        return dt.date.fromisoformat(start) if isinstance(start, str) else start
    except ValueError:
        raise InvalidParameter("start", start, "to be a date", Hint("Pass {start:2026-07-01}.")) from None


def _wrong_mixture(epsilon: object, delta: object, rho: object) -> InvalidParameter:
    if epsilon is not None:
        return InvalidParameter("rho", rho, "to come without epsilon: a budget has one currency", _CHOICES)
    if delta is not None:
        return InvalidParameter("delta", delta, "to come with epsilon or rho", _CHOICES)
    return InvalidParameter("epsilon", None, "to be given, or rho", _CHOICES)
