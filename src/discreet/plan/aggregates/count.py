"""COUNT(*), COUNT(x) and COUNT(DISTINCT unit): a row, a value or a person is one."""

from __future__ import annotations

from discreet.plan.aggregates.form import Form, Scaled
from discreet.plan.nodes import Expression
from discreet.plan.reading import Statistic


def count_forms() -> tuple[Form, ...]:
    """Kept rows: each moves the count by one."""
    return (Scaled(statistics=(Statistic(kind="rows"),), corners=((1,),)),)


def count_values_forms(argument: Expression) -> tuple[Form, ...]:
    """Kept rows whose argument is not NULL."""
    return (Scaled(statistics=(Statistic(kind="values", argument=argument),), corners=((1,),)),)


def count_units_forms() -> tuple[Form, ...]:
    """Units with a kept row: one each per group, however many rows they have."""
    return (Scaled(statistics=(Statistic(kind="units"),), corners=((1,),), once=True),)
