"""Rows that are protected by periods of their dates: whose row it is, is a person in one period."""

from __future__ import annotations

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal
from discreet.plan.model.types import Type

_STARTS = {"day": "to_date", **{per: f"start_of_{per}" for per in ("week", "month", "quarter", "year")}}
"""For each length of a period the function that returns its first day."""


@dataclass(frozen=True, slots=True)
class RowPeriod:
    """The periods of a table's rows.

    Args:
        column: the date of a row; a row without one is not counted.
        kind: of the column, a date or a timestamp.
        per: the length of a period.
    """

    column: str
    kind: Type
    per: str

    @property
    def date(self) -> ColumnRef:
        """Returns the date of a row."""
        return ColumnRef(self.column, self.kind)

    @property
    def first_day(self) -> Expression:
        """Returns the first day of a row's period."""
        if self.per not in _STARTS:
            raise InternalError(f"There are no periods of a {self.per}.")
        if self.per == "day" and self.kind is Type.DATE:
            return self.date
        return FunctionCall(_STARTS[self.per], (self.date,), Type.DATE)


def names_days(where: Expression, date: ColumnRef) -> bool:
    """Returns whether a condition is that a date lies between days that are named, or in one of several such spans."""
    if not isinstance(where, FunctionCall):
        return False
    if where.function == "or":
        return all(names_days(part, date) for part in where.arguments)
    return where.function == "and" and [_end(part, date) for part in where.arguments] == ["greater_equal", "less"]


def _end(part: Expression, date: ColumnRef) -> str:
    """Returns how a condition compares the date with a day; empty if it is another one."""
    if not isinstance(part, FunctionCall) or len(part.arguments) != 2:
        return ""
    one, other = part.arguments
    return part.function if one == date and isinstance(other, Literal) and other.value is not None else ""
