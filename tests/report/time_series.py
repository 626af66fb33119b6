"""Budgets that are used up over a few weeks."""

from __future__ import annotations

import datetime as dt

from discreet.report.time_charts import BurnDown

NOW = dt.datetime(2026, 7, 1, tzinfo=dt.UTC)
_STEPS = [(NOW - dt.timedelta(days=30 - day), 1 - day / 60) for day in range(30)]
BUDGETS = {
    "the account": BurnDown(steps=_STEPS, used_up=NOW + dt.timedelta(days=30)),
    "analyst ana": BurnDown(steps=_STEPS[:3]),
}
