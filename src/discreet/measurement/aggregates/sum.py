"""SUM alone: values clipped to public bounds, added as whole steps."""

from __future__ import annotations

from discreet.measurement.aggregates.form import Form
from discreet.measurement.aggregates.steps import Steps
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Statistic


def clipped_sum(argument: Expression, steps: Steps, shift: int = 0) -> Statistic:
    """The sum of x - shift over values clipped to their bounds, in fine steps; NULL adds nothing."""
    exponent, low, high = steps.grid
    return Statistic(kind="sum", argument=argument, exponent=exponent, low=low, high=high, shift=shift << steps.finer)


def sum_form(argument: Expression, steps: Steps) -> Form:
    """One row adds a number of steps between the bounds."""
    corners = tuple((end,) for end in (steps.low, steps.high) if end)
    return Form(statistics=(clipped_sum(argument, steps),), corners=corners, grains=(steps.finer,))
