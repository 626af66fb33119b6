"""Who is protected: the unit of privacy, and what it means for two datasets to differ in one unit."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter


class Neighbours(Enum):
    """The relation between two datasets that a guarantee cannot tell apart; a guarantee without one means nothing.

    Neither relation is the weaker one for sensitivities (a sum of ages in [18, 100] moves by 100 under ADD_REMOVE and
    by 82 under REPLACE), so amounts are never carried from one to the other except by `privacy.convert`.

    Raises:
        InvalidParameter: from ``Neighbours(text)`` if the text names no relation.

    >>> Neighbours("replace")
    <Neighbours.REPLACE: 'replace'>
    """

    ADD_REMOVE = "add_remove"
    """One dataset is the other plus all the rows of one unit; the number of units is private."""

    REPLACE = "replace"
    """Both hold the same number of units, the rows of one unit differ arbitrarily; the number of units is public."""

    @classmethod
    def _missing_(cls, value: object) -> Neighbours:
        raise InvalidParameter(
            "neighbours", value, "to be 'add_remove' or 'replace'", "Pass e.g. neighbours=Neighbours.ADD_REMOVE."
        )


@dataclass(frozen=True, slots=True, init=False)
class Unit:
    """What one individual is: all rows that agree in some columns, or each row on its own.

    Args:
        name: what a unit is called in messages, in the singular, such as "patient".
        columns: the columns whose values together identify a unit; none means that every row is a unit of its own.

    Raises:
        InvalidParameter: if a name is empty or no text, or a column is named twice.

    >>> Unit("patient", ["patient_id"])
    Unit(name='patient', columns=('patient_id',))
    >>> print(Unit("patient day", ["patient_id", "day"]))
    patient day (patient_id, day)
    """

    name: str
    columns: tuple[str, ...]

    def __init__(self, name: str, columns: str | Iterable[str] = ()) -> None:
        assign(self, name=_check_name("name", name), columns=_columns(columns))

    @classmethod
    def row(cls) -> Unit:
        """Returns the unit that is one row.

        >>> Unit.row().is_row
        True
        """
        return cls("row")

    @property
    def is_row(self) -> bool:
        """Returns whether every row is a unit of its own, so that no contribution needs bounding."""
        return not self.columns

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.columns)})" if self.columns else self.name


def _columns(columns: object) -> tuple[str, ...]:
    if isinstance(columns, str):
        columns = (columns,)
    if not isinstance(columns, Iterable):
        raise InvalidParameter("columns", columns, "to be column names", "Pass e.g. columns=['patient_id'].")
    names = tuple(_check_name("columns", column) for column in columns)
    if len(set(names)) < len(names):
        raise InvalidParameter("columns", names, "to name each column once")
    return names


def _check_name(parameter: str, name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InvalidParameter(
            parameter, name, "to be a text that is not empty", "Pass e.g. Unit('patient', 'patient_id')."
        )
    return name
