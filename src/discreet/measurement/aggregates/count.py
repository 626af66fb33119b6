"""COUNT(*), COUNT(x), COUNT(DISTINCT unit) and COUNT(DISTINCT x): a row, a value or a person is one."""

from __future__ import annotations

from discreet.measurement.aggregates.form import Form
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Statistic


def rows_form() -> Form:
    """Kept rows: each moves the count by one."""
    return Form(statistics=(Statistic(kind="rows"),), corners=((1,),))


def values_form(argument: Expression, *, nulls: bool = False) -> Form:
    """Kept rows whose argument is not NULL, and those where it is: a row moves one of the two counts by one."""
    values = Statistic(kind="values", argument=argument)
    if not nulls:
        return Form(statistics=(values,), corners=((1,),))
    return Form(statistics=(values, Statistic(kind="nulls", argument=argument)), corners=((1, 0), (0, 1)))


def units_form() -> Form:
    """Units with a kept row: one each per group, however many rows they have."""
    return Form(statistics=(Statistic(kind="units"),), corners=((1,),), once=True)


def distinct_form(argument: Expression) -> Form:
    """Different values among kept rows.

    A row more makes one value more at most, and none fewer, whatever the others hold: so the kept rows of a unit move
    the number of values in their group by one each at most, as they move the number of rows. Values that a column's
    public keys do not name are values like others.
    """
    return Form(statistics=(Statistic(kind="distinct", argument=argument),), corners=((1,),))
