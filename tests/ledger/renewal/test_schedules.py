"""Calendars: which period a day is in, in every zone, and what is no calendar."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.privacy import Budget, PureDP, RenewalSchedule, RenewingBudget
from discreet.privacy.budget import PERIODS, write_calendar

DAYS = st.dates(dt.date(1950, 1, 1), dt.date(2150, 1, 1))
STARTS = DAYS.map(lambda day: day.replace(day=min(day.day, 28)))
RENEWING = [per for per in PERIODS if per != "never"]
LONGEST = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
SHORTEST = {"day": 1, "week": 7, "month": 28, "quarter": 89, "year": 365}


@given(st.sampled_from(RENEWING), STARTS, DAYS)
def test_each_day_is_in_one_period(per: str, start: dt.date, day: dt.date) -> None:
    schedule = RenewalSchedule(per, start=start)
    first = schedule.period_at(dt.datetime.combine(day, dt.time(12), dt.UTC))
    following = schedule.after(first)
    assert first <= day < following
    assert SHORTEST[per] <= (following - first).days <= LONGEST[per]
    assert schedule.period_at(dt.datetime.combine(start, dt.time(), dt.UTC)) == start


@given(st.sampled_from(RENEWING), STARTS, DAYS)
def test_periods_do_not_overlap(per: str, start: dt.date, day: dt.date) -> None:
    schedule = RenewalSchedule(per, start=start)
    first = schedule.period_at(dt.datetime.combine(day, dt.time(), dt.UTC))
    last = schedule.after(first) - dt.timedelta(days=1)
    assert schedule.period_at(dt.datetime.combine(last, dt.time(23, 59), dt.UTC)) == first


def test_a_period_begins_at_midnight_of_its_zone() -> None:
    berlin, moment = RenewalSchedule("day", "Europe/Berlin"), dt.datetime(2026, 7, 1, 22, 30, tzinfo=dt.UTC)
    assert berlin.period_at(moment) == dt.date(2026, 7, 2)
    assert RenewalSchedule("day").period_at(moment) == dt.date(2026, 7, 1)
    assert berlin.period_at(moment.replace(month=12)) == dt.date(2026, 12, 1)  # an hour less in winter


def test_the_usual_periods_are_those_of_the_calendar() -> None:
    moment = dt.datetime(2026, 11, 19, tzinfo=dt.UTC)  # a Thursday
    found = [RenewalSchedule(per).period_at(moment).isoformat() for per in RENEWING]
    assert found == ["2026-11-19", "2026-11-16", "2026-11-01", "2026-10-01", "2026-01-01"]
    assert RenewalSchedule("never").period_at(moment) == dt.date.min


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"per": "fortnight"}, "per"),
        ({"per": "month", "zone": "Middle-earth"}, "zone"),
        ({"per": "month", "zone": "../etc/passwd"}, "zone"),
        ({"per": "month", "start": "yesterday"}, "start"),
        ({"per": "month", "start": "2026-01-31"}, "start"),
        ({"per": "month", "start": dt.datetime(2026, 1, 1)}, "start"),
        ({"zone": "Europe/Berlin"}, "zone"),
        ({"start": "2026-01-01"}, "start"),
    ],
)
def test_what_is_no_calendar_is_refused_by_name(told: dict[str, str], name: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Budget(epsilon=1, **told)
    assert caught.value.name == name
    assert caught.value.hint


def test_a_budget_says_how_it_renews() -> None:
    budget = Budget(epsilon=1, per="year", start="2026-07-01", zone="Europe/Berlin")
    assert type(budget) is RenewingBudget
    assert (budget.amount, str(budget)) == (PureDP(1), "epsilon=1 per year, counted from 2026-07-01, in Europe/Berlin")
    again = Budget(epsilon=1, per="year", zone="Europe/Berlin", start=dt.date(2026, 7, 1))
    assert again == budget
    assert write_calendar(budget.schedule) == {"per": "year", "start": "2026-07-01", "zone": "Europe/Berlin"}
    assert write_calendar(RenewalSchedule("month")) == {"per": "month"}
    assert write_calendar(None) == {"per": "never"}
    assert RenewalSchedule.read(budget.schedule.write()) == budget.schedule
