"""SUM: values clipped to public bounds, added as whole steps."""

from __future__ import annotations

from discreet.plan.aggregates.form import Form, Scaled
from discreet.plan.aggregates.steps import Steps
from discreet.plan.nodes import Expression
from discreet.plan.reading import Statistic
from discreet.plan.schema import Bounds


def sum_forms(argument: Expression, bounds: Bounds) -> tuple[Form, ...]:
    """One row adds a number of steps between the bounds; NULL adds nothing."""
    steps = Steps.of(bounds, argument.type)
    statistic = Statistic(kind="sum", argument=argument, exponent=steps.exponent, low=steps.low, high=steps.high)
    corners = tuple((end,) for end in (steps.low, steps.high) if end)
    return (Scaled(statistics=(statistic,), corners=corners, exponent=steps.exponent),)
