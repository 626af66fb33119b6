"""Whose rows a table has: a column of ids, several columns together, or a way over keys to a table that has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.ledger import Account
from discreet.plan.analysis.relation_schema import name_units, part_link, unit_column
from discreet.plan.model.nodes import UNIT
from discreet.plan.model.row_period import RowPeriod
from discreet.plan.model.schema import ColumnSchema, TableSchema, UnitLink
from discreet.plan.model.types import Type
from discreet.privacy import AnyBudget, Neighbours, RenewalSchedule
from discreet.privacy.budget import split

ARROW = "->"
_STEP = re.compile(r"\s*(?:(?P<own>[^.,>]+)\.)?(?P<column>[^.,>]+?)\s*->\s*(?P<table>[^.,>]+?)\.(?P<key>[^.,>]+?)\s*")
_HINT = 'Write it like unit="customer_id -> customers.id".'

Schemas = Mapping[str, TableSchema]
UnitLike = str | Sequence[str] | None
"""A column, several columns, a way, or nothing if each row is one unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The rule by which a table's rows belong to people.

    Args:
        unit: the column of ids; `UNIT` if it is none of the table's own; None if each row is a unit.
        parts: the columns that make an id together.
        reach: the way to a table that has the ids.
        column: the id, where it is no column of the table.
        people: what units are called, where no column says it.
        target: the table that a way leads to, at its end or at once.
        person: the column of ids, where a unit is one person's rows of one period.
        period: the periods of the rows then.
    """

    unit: str | None
    parts: tuple[str, ...] = ()
    reach: UnitLink | None = None
    column: ColumnSchema | None = None
    people: str = ""
    target: TableSchema | None = None
    person: str = ""
    period: RowPeriod | None = None

    def link(self, column: str) -> str:
        """Returns what a column has in common with columns of other tables."""
        if self.reach is not None and column == self.reach.column:
            return self.reach.link
        return part_link(self.parts.index(column)) if column in self.parts else ""


def owner(name: str, unit: UnitLike, columns: Mapping[str, Type], known: Schemas) -> Owner:
    """Returns the rule by which the rows of a table belong to people.

    Args:
        name: the table.
        unit: a column; several columns; or a way, ``"column -> table.key"``, to a protected table whose rows with that
            key tell whose they are. Where that table is itself on a way, its steps may be added after commas.
        columns: of the table.
        known: the protected tables that there are.

    Raises:
        InvalidParameter: if it names no columns, columns that cannot be ids, or a way that leads nowhere.
    """
    if unit is None:
        return Owner(unit=None)
    if not isinstance(unit, str):
        return _together(name, unit, columns)
    if ARROW in unit and unit not in columns:
        return _on_a_way(name, unit, columns, known)
    _check_column(name, unit, columns)
    return Owner(unit=unit)


def in_periods(
    name: str,
    whose: Owner,
    schedule: RenewalSchedule,
    columns: Mapping[str, Type],
    *,
    searched: bool = False,
    sample: object = None,
) -> Owner:
    """Returns the rule of a table whose rows have a budget for each period of their dates.

    Its unit is one person's rows of one period. No column of its own is that, so that nothing may be joined by it or
    put together for each person: a person's rows of two periods are two units' rows.

    Raises:
        InvalidParameter: if the table has no such dates, or its unit is not one column of ids; for private limits,
            which look at all rows; and for a sample of people, who are drawn with their rows of all periods.
    """
    if searched:
        hint = Hint(f"Declare how many rows of one person and {schedule.per} count, such as {{max_rows:5}}.")
        raise InvalidParameter(
            "limits", "private", "to be numbers, because the rows of each period have a budget", hint
        )
    if sample is not None:
        condition = f"to be left out, because the rows of each {schedule.per} have a budget"
        raise InvalidParameter("sample_of", "a sample of people", condition, "Intervals cover noise alone then.")
    if whose.unit is None or whose.unit not in columns or whose.target is not None:
        told = f"to be one column of ids of {name!r}, because each {schedule.per} of {schedule.of} has its own budget"
        raise InvalidParameter("unit", whose.unit if whose.parts == () else whose.parts, told)
    kind = columns.get(schedule.of)
    if kind not in (Type.DATE, Type.TIMESTAMP) or schedule.of == whose.unit:
        dates = [column for column, one in columns.items() if one in (Type.DATE, Type.TIMESTAMP)]
        hint = Hint(f"Its columns of dates are: {', '.join(dates) or 'none'}. Declare their types with {{types}}.")
        raise InvalidParameter("budget.of", schedule.of, f"to name a column of dates of {name!r}", hint)
    people = f"{whose.unit} and {schedule.per} of {schedule.of}"
    return Owner(
        unit=UNIT,
        column=ColumnSchema(name=UNIT, type=Type.TEXT),
        people=people,
        person=whose.unit,
        period=RowPeriod(schedule.of, kind, schedule.per),
    )


def row_schedule(opened: Account | None, budget: AnyBudget | None) -> RenewalSchedule | None:
    """Returns by which dates rows have budgets, as the account was opened or is to be; None if all rows share one."""
    if opened is not None:
        return opened.rows
    schedule = None if budget is None else split(budget)[1]
    return schedule if schedule is not None and schedule.of else None


def account_of(name: str, account: str | None, whose: Owner) -> str:
    """Returns the account of a table; one on a way has that of the table it leads to.

    Raises:
        InvalidParameter: if another one is asked for.
    """
    if whose.target is None:
        return account or name
    if account not in (None, whose.target.account):
        hint = f"Leave it out: rows that lead to {whose.target.name!r} belong to the same people."
        raise InvalidParameter("account", account, f"to be {whose.target.account!r}", hint)
    return whose.target.account


def relation_of(neighbours: Neighbours | str | None, whose: Owner) -> Neighbours:
    """Returns the relation of a table's account."""
    if neighbours is not None:
        return Neighbours(neighbours)
    return Neighbours.ADD_REMOVE if whose.target is None else whose.target.neighbours


def target_of(unit: UnitLike) -> str | None:
    """Returns the table that a way leads to first; None if it is none.

    >>> target_of("orders.customer_id -> customers.id"), target_of("customer_id")
    ('customers', None)
    """
    if not isinstance(unit, str) or ARROW not in unit:
        return None
    first = _STEP.fullmatch(unit.split(",", maxsplit=1)[0])
    return None if first is None else first["table"]


def _together(name: str, given: Sequence[str], columns: Mapping[str, Type]) -> Owner:
    parts = tuple(given) if isinstance(given, list | tuple) else (given,)
    for part in parts:
        _check_column(name, part, columns)
    if len(set(parts)) != len(parts) or not parts:
        raise InvalidParameter("unit", parts, "to name each column once", 'Pass e.g. unit=("person", "day").')
    if len(parts) == 1:
        return Owner(unit=parts[0])
    return Owner(unit=UNIT, parts=parts, column=ColumnSchema(name=UNIT, type=Type.TEXT))


def _check_column(name: str, column: object, columns: Mapping[str, Type]) -> None:
    if not isinstance(column, str) or column not in columns:
        hint = f"Its columns are {', '.join(sorted(columns))}."
        raise InvalidParameter("unit", column, f"to name a column of {name!r}", hint)
    if columns[column] is Type.FLOAT:
        raise InvalidParameter("unit", column, "not to be of type float", "Use whole numbers or texts as ids.")


def _on_a_way(name: str, unit: str, columns: Mapping[str, Type], known: Schemas) -> Owner:
    (own, reach), *further = _steps(unit)
    if own not in ("", name):
        raise InvalidParameter("unit", unit, f"to begin with a column of {name!r}", _HINT)
    _check_column(name, reach.column, columns)
    target = _end(name, reach, unit, known)
    kinds = columns[reach.column], target.columns[reach.key].type
    if kinds[0] is not kinds[1]:
        hint = f"They are {kinds[0].value} and {kinds[1].value}. Declare the same type for both with types=..."
        raise InvalidParameter("unit", unit, "to join columns of one type", hint)
    _check_further(unit, target, further, known)
    if reach.key == target.unit:  # the key is the id itself: nothing has to be looked up
        return Owner(unit=reach.column, target=target)
    return Owner(unit=UNIT, reach=reach, column=unit_column(target), people=name_units(target), target=target)


def _steps(unit: str) -> Iterator[tuple[str, UnitLink]]:
    for text in unit.split(","):
        step = _STEP.fullmatch(text)
        if step is None:
            raise InvalidParameter("unit", unit, 'to be a column, or steps "column -> table.column"', _HINT)
        yield (step["own"] or "").strip(), UnitLink(step["column"].strip(), step["table"].strip(), step["key"].strip())


def _end(name: str, reach: UnitLink, unit: str, known: Schemas) -> TableSchema:
    """Returns the table that a step leads to."""
    if reach.table == name or name in _tables_on_path(reach.table, known):
        raise InvalidParameter("unit", unit, "not to lead back to its own table", _HINT)
    target = known.get(reach.table)
    if target is None:
        raise InvalidParameter("unit", unit, "to lead to a protected table", f"Protect {reach.table!r} first.")
    if target.unit is None:
        hint = f"Each row of {reach.table!r} is a separate person. Declare its column of ids as unit."
        raise InvalidParameter("unit", unit, "to lead to a table with ids", hint)
    if reach.key not in target.stored_columns:
        hint = f"The columns of {reach.table!r} are {', '.join(sorted(target.stored_columns))}."
        raise InvalidParameter("unit", unit, f"to lead to a column of {reach.table!r}", hint)
    return target


def _tables_on_path(table: str, known: Schemas) -> Iterator[str]:
    """Returns the tables that a way goes on to."""
    schema = known.get(table)
    while schema is not None and schema.reach is not None:
        yield schema.reach.table
        schema = known.get(schema.reach.table)


def _check_further(unit: str, target: TableSchema, steps: Sequence[tuple[str, UnitLink]], known: Schemas) -> None:
    """Checks that further steps only repeat what was declared about the tables on the way."""
    at: TableSchema | None = target
    for own, step in steps:
        following = known.get(step.table)
        declared = at is not None and own in ("", at.name) and _declared_step(at, step, following)
        if not declared:
            hint = "Leave out the further steps: the tables in between declare them."
            raise InvalidParameter("unit", unit, "to match how those tables were declared", hint)
        at = following


def _declared_step(at: TableSchema, step: UnitLink, following: TableSchema | None) -> bool:
    if at.reach is not None:
        return at.reach == step
    same_people = following is not None and following.account == at.account
    return same_people and following is not None and step.column == at.unit and step.key == following.unit
